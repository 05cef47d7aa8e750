"""Where a waiting node that no cheap gate refuses stands in the line, whether it comes next, and whether it takes a
claim. `lock/order.py` decides the order of the line."""

from __future__ import annotations

from collections.abc import Mapping

from careen.core.actions import PatchNode
from careen.core.decision import Decision, Refusal, stored_refusals
from careen.core.drain import baseline
from careen.core.drain.forecast_annotation import forecast_annotation
from careen.core.facts import keys
from careen.core.facts.memory import Claiming, Costly
from careen.core.facts.observation import NodeView
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.reasons import Code
from careen.core.facts.times import from_rfc3339, rfc3339
from careen.core.gates import COSTLY, asked, missing
from careen.core.gates.budgets import others_down
from careen.core.gates.question import Cost, When
from careen.core.lock import content as lock
from careen.core.lock import order, overdue, pauses
from careen.core.lock.clearance import Clearance, start_of
from careen.core.lock.content import Entry, LockContent
from careen.core.node import autoscalers
from careen.core.node.restoring import NodeChange
from careen.core.outcomes import Status, Stay, Transition, move, stay, write_lock
from careen.core.situation import Situation, known
from careen.core.steps.shared import counting, crowd, preparing, release
from scheduler_core.values import replace_value as replace

LOOK_SECONDS = 30.0  # while a gate refuses: windows and pods change by the minute
COSTLY_PAUSE_SECONDS = 10.0  # before the node asks costly gates again; doubles with each refusal in a row
COSTLY_PAUSE_LIMIT_SECONDS = 60.0  # each forecast costs a second of computing, and lists the whole cluster

# The sentence names no holders or places: otherwise every release would cost a patch of every waiting node.
# It says `so far`, because only the next node in line asks the costly gates.
_WAITS = "no gate refuses so far; the node waits in line"

_REFUSED_WITHIN_SECONDS = 5.0  # of its claim, usually within one; a drain is rarely over sooner


def ready(situation: Situation, content: LockContent) -> Decision:
    """Only the agent of the next node in line evaluates the costly gates."""
    number: dict[str, str | None] = {}
    if counting.is_due(situation, content):
        pods = situation.read(Evidence.PODS)
        number = counting.number(situation.node, pods, situation.policy.drain) if pods is not None else {}
        situation.remember(moves_counted_at=situation.seen.uptime)
    costly = situation.memory.costly
    if costly.not_before > situation.seen.uptime and {*costly.holders} <= {*situation.other_holders}:
        return _pausing(situation, content)
    if situation.node.labels.get(keys.REBOOT_LABEL) != order.READY:
        # Set the label `ready` first: the agents that write the line, this one included (`_in_line`), choose only nodes
        # with this label.
        return _say_waiting(situation, look=0.0, annotations=number)
    return _write_number(situation, number) if number else _in_line(situation, content)


def stored_costly(node: NodeView) -> tuple[Refusal, ...]:
    """The refusals of costly gates on the Node."""
    return tuple(each for each in stored_refusals(node) if each.gate in COSTLY)


def _write_number(situation: Situation, number: Mapping[str, str | None]) -> Decision:
    patch = PatchNode(
        purpose="write how many pods a drain would move",
        resource_version=situation.node.resource_version,
        annotations=number,
    )
    return stay(situation, Status(Code.WAITING_FOR_TURN, _WAITS, is_silent=True), Stay(look=0.0, actions=(patch,)))


def _in_line(situation: Situation, content: LockContent) -> Decision:
    """The label says `ready`. The next node in line asks the costly gates and takes a claim. Every other node joins the
    line, prepares its drain, or waits."""
    start = start_of(situation.node.name, content, situation.policy, situation.memory, situation.seen.uptime)
    situation.remember(line=start.memory.line)
    gathers_for = _gathers_for(situation, start)
    if gathers_for > 0 and not stored_costly(situation.node):
        # A node that a costly gate has refused was next in line already: it has waited for the others.
        return _say_waiting(situation, look=min(gathers_for, pauses.gather_pause_seconds(situation.memory.agents)))
    if not start.is_allowed and start.asks_waiters:
        start = _first_of_all(situation, content, start, situation.read(Evidence.WAITERS))
    if start.is_allowed:
        situation.remember(line=replace(start.memory.line, passed=start.passed))
        return _start(situation, content)
    has_room = len(content.line.names) < order.line_length(content, situation.policy)
    if has_room and situation.node.name not in content.line.names:
        return _join_line(situation, content)
    decision = preparing.decide(situation, content) or _say_waiting(situation, look=_line_pause(situation, content))
    return replace(decision, starts_soon=preparing.is_near(situation, content))


def _gathers_for(situation: Situation, start: Clearance) -> float:
    """The seconds until this node may take the first claim of a roll-out. Until then other nodes can become ready, so
    that the order includes them. The wait counts since this process first saw the free lock, or since the node became
    ready by its annotation; the shorter rest applies."""
    since = from_rfc3339(situation.node.annotations.get(keys.READY_SINCE, ""))
    shown = (situation.seen.now - since).total_seconds() if since is not None else -1.0
    if start.gathers_for <= 0 or shown < 0:
        return start.gathers_for
    return min(start.gathers_for, max(0.0, pauses.gather_seconds(situation.memory.agents) + 1.0 - shown))


def _join_line(situation: Situation, content: LockContent) -> Decision:
    """Add waiting nodes, perhaps this one, to a line with too few names: agents of nodes in the line read the lock more
    often, and one of them must soon notice a released claim."""
    waiters = situation.read(Evidence.WAITERS)
    shown = content.with_line(content.line.showing(situation.node.name))
    handed = shown
    if waiters is not None:
        handed = order.name_next(
            shown, _with_own(situation.node, waiters), situation.policy, at=rfc3339(situation.seen.now)
        )
    if (handed.line.names, handed.line.abreast, shown) == (content.line.names, content.line.abreast, content):
        return _say_waiting(situation, look=_line_pause(situation, content))
    return stay(
        situation,
        Status(Code.WAITING_FOR_TURN, _WAITS, label=order.READY, is_silent=True),
        Stay(
            look=pauses.NEXT_LOOK_SECONDS,
            actions=(write_lock(situation, f"{situation.node.name} adds nodes to the line of waiting nodes", handed),),
        ),
    )


def _with_own(node: NodeView, waiters: tuple[NodeView, ...]) -> tuple[NodeView, ...]:
    """The waiting nodes with this node's latest state: the list may be older than a change of its label."""
    return (*(each for each in waiters if each.name != node.name), node)


def _first_of_all(
    situation: Situation, content: LockContent, start: Clearance, waiters: tuple[NodeView, ...] | None
) -> Clearance:
    if waiters is None:
        return start
    line = order.name_next(content, _with_own(situation.node, waiters), situation.policy, at="").line
    places = start.places if line.abreast is None else min(start.places, line.abreast)
    return replace(start, is_allowed=situation.node.name in line.names[:places])


def _start(situation: Situation, content: LockContent) -> Decision:
    situation.need(*preparing.lacking(situation))
    situation = preparing.used(situation)
    for gate in asked(When.READY, Cost.COSTLY):  # one after the other: a refusal saves the cost of the gates after it
        situation.need(*missing(situation, (gate,)))
        if refused := gate.ask(situation, When.READY):
            return _pass_on(situation, content, refused)
    return _claim(situation)


def _claim(situation: Situation) -> Decision:
    """Write a claim id on the Node. The claim enters the lock in a later turn: other agents remove a claim whose id is
    not on its Node."""
    progress = replace(
        release.without_claim(situation.progress),
        claim=situation.seen.chance.claim_id,
        lock=situation.reading.object_id,
        claimed=situation.mark(),
        boot_left=situation.boot,
        failed="",
        failed_at=None,
    )
    # A prepared forecast is not kept: under the claim its facts are compared once more.
    forecast = known(situation.seen.forecast) if preparing.why_not(situation) != "" else None
    taken = Claiming(forecast=forecast, at=situation.seen.uptime, holders=situation.other_holders)
    situation.remember(reboot=None, claiming=taken)
    protected = autoscalers.protected(situation.node) if situation.policy.protect_from_autoscalers else {}
    unready_pods = baseline.said(baseline.taken(situation, ()))
    permitting = {gate.name for gate in asked(When.READY, Cost.COSTLY)}
    kept = tuple(each for each in stored_costly(situation.node) if each.gate not in permitting)  # asked under the claim
    again = f"; before, `{kept[0].gate}` refused: {kept[0].sentence}" if kept else ""
    return move(
        situation,
        Status(
            Code.TAKING_CLAIM,
            f"this node is next in line: its agent takes a claim and asks all gates again{unready_pods}{again}",
            refusals=kept,
        ),
        Transition(
            Phase.CLAIMING,
            progress,
            change=NodeChange(annotations={**preparing.annotation(situation), **protected}),
        ),
    )


def _pass_on(situation: Situation, content: LockContent, refused: Refusal) -> Decision:
    """A costly gate refuses: other nodes go first. If the gate would refuse every node, this one keeps its place."""
    is_named = situation.node.name in content.line.names
    if is_named:
        situation.need(Evidence.WAITERS)
    annotations = {**forecast_annotation(situation.seen), **preparing.annotation(situation)}
    pause = costly_pause_seconds(situation)
    put_off(situation, pause, refused.gate, refusals=situation.memory.costly.refusals + 1)  # forgets the preparation
    handed = _kept_line(situation, content, refused) if refused.is_of_cluster else _at_the_end(situation, content)
    return stay(
        situation,
        Status(Code.REFUSED, with_overdue(situation, refused.sentence), refusals=(refused,), label=order.READY),
        Stay(
            look=pauses.NEXT_LOOK_SECONDS if is_named else min(pause, _refused_in_line_pause(situation, content)),
            annotations=annotations,
            actions=(write_lock(situation, f"{situation.node.name} cannot begin its reboot: {refused.code}", handed),)
            if is_named
            else (),
        ),
    )


def put_off(situation: Situation, pause: float, gate: str, *, refusals: int) -> None:
    """Remember not to ask the costly gates again before `pause` is over or a node that is at work releases its
    claim."""
    not_before = situation.seen.uptime + pause
    costly = Costly(not_before=not_before, refusals=refusals, gate=gate, holders=_at_work(situation))
    situation.remember(costly=costly, prepared=None)


def _at_work(situation: Situation) -> tuple[str, ...]:
    """The other holders whose claims are older than a claim that a gate refuses. The release of a younger one may only
    mean that its node was refused too, and brings nothing new."""
    content = situation.content
    if content is None:
        return ()
    oldest = situation.policy.drain.delay_seconds + _REFUSED_WITHIN_SECONDS
    taken = {entry.node: from_rfc3339(entry.created) for entry in content.entries}
    return tuple(
        name
        for name in situation.other_holders
        if (at := taken[name]) is None or (situation.server_now - at).total_seconds() > oldest
    )


def _kept_line(situation: Situation, content: LockContent, refused: Refusal) -> LockContent:
    """The line after a refusal that concerns every node: it keeps its order, but if too many nodes are down, the ready
    nodes that are already cordoned move to its head. The gate `budgets` may let such a node go, because it does not
    count a node's own cordon."""
    waiters, line = known(situation.seen.waiters), content.line
    if waiters is not None:
        names_waiting = {node.name for node in _with_own(situation.node, waiters)}
        line = replace(line.keeping(names_waiting), waiting=len(names_waiting))
    first = _cordoned_and_ready(situation, content) if refused.code is Code.NODES_DOWN else ()
    names = (*first, *(name for name in line.names if name not in first))
    # The node that is now first may be in another zone than those after it.
    abreast = line.abreast if not first or line.abreast is None else 1
    names, at = names[: order.line_length(content, situation.policy)], rfc3339(situation.seen.now)
    return content.with_line(line.naming(names, at=at, waiting=line.waiting, abreast=abreast))


def _cordoned_and_ready(situation: Situation, content: LockContent) -> tuple[str, ...]:
    """Those for which fewer other nodes are down than the lock may hold claims."""
    fleet, own = known(situation.seen.fleet), situation.node.name
    if fleet is None:
        return ()
    most = lock.limit(content, situation.policy.concurrency)
    waits = (
        node
        for node in fleet.nodes
        if node.unschedulable and node.ready and node.labels.get(keys.REBOOT_LABEL) == order.READY
    )
    counts = situation.policy.count_cordoned
    return tuple(
        sorted(
            node.name
            for node in waits
            if node.name != own and len(others_down(node.name, content, fleet, count_cordoned=counts)) < most
        )
    )


def costly_pause_seconds(situation: Situation) -> float:
    """The pause after the refusal of a costly gate. It grows with each refusal in a row: the cause of a first one often
    passes within seconds (a taint disappears, a replica becomes ready)."""
    pause = COSTLY_PAUSE_SECONDS * 2.0 ** min(situation.memory.costly.refusals, 10)
    return min(pause, COSTLY_PAUSE_LIMIT_SECONDS) * (0.75 + 0.5 * situation.seen.chance.jitter)


def _at_the_end(situation: Situation, content: LockContent) -> LockContent:
    name, waiters, at = situation.node.name, known(situation.seen.waiters), rfc3339(situation.seen.now)
    content = content.with_line(content.line.passing_over((name,)))
    if waiters is not None:
        waiting = _with_own(situation.node, waiters)
        return order.name_next(content, waiting, situation.policy, at=at, zone=situation.node.zone)
    left = content.line.without(name)
    return content.with_line(left.naming((*left.names, name), at=at, waiting=left.waiting, abreast=left.abreast))


def _pausing(situation: Situation, content: LockContent) -> Decision:
    """Wait until the agent may ask the costly gates again."""
    costly = situation.memory.costly
    situation.remember(costly=replace(costly, holders=_at_work(situation)))  # a drain began meanwhile
    left = situation.memory.costly.not_before - situation.seen.uptime
    look = max(0.5, min(left, _refused_in_line_pause(situation, content)))
    return stay(situation, _status(situation), Stay(look=look))


def _refused_in_line_pause(situation: Situation, content: LockContent) -> float:
    """The seconds until a node that a costly gate refuses reads the lock again. While the line has room and another
    node holds a claim, it reads as often as the last node of the line: after the release this node may join the line,
    and the gate may permit the reboot."""
    name = situation.node.name
    has_room = len(content.line.names) < order.line_length(content, situation.policy)
    if has_room and content.holders and name not in content.line.names:
        content = content.with_line(replace(content.line, names=(*content.line.names, name)))
    return _line_pause(situation, content)


def _say_waiting(situation: Situation, *, look: float, annotations: Mapping[str, str | None] | None = None) -> Decision:
    return stay(situation, _status(situation), Stay(look=look, annotations=annotations or {}))


def _status(situation: Situation) -> Status:
    """The refusal of a costly gate stands until the gate is asked again, however long other nodes go first."""
    if kept := stored_costly(situation.node):
        sentence = with_overdue(situation, kept[0].sentence)
        return Status(Code.REFUSED, sentence, refusals=kept, label=order.READY)
    return Status(Code.WAITING_FOR_TURN, _waits(situation), label=order.READY)


def _waits(situation: Situation) -> str:
    """The sentence about a waiting node. It changes only when a holder becomes overdue or is no longer overdue."""
    content, late = situation.content, _overdue_holders(situation)
    # Compare with the limit, not with free slots: those change with each claim, and every Node would get a patch.
    if content is None or len(late) < lock.limit(content, situation.policy.concurrency):
        return with_overdue(situation, _WAITS)
    return f"no gate refuses so far; the node waits for overdue nodes: {overdue.sentences(late)}"


def with_overdue(situation: Situation, sentence: str) -> str:
    """The sentence, extended by the other nodes whose claims are marked as overdue."""
    late = _overdue_holders(situation)
    return f"{sentence}; overdue: {overdue.sentences(late)}" if late else sentence


def _overdue_holders(situation: Situation) -> tuple[Entry, ...]:
    content = situation.content
    return overdue.holders_overdue(content, besides=situation.node.name) if content is not None else ()


def _line_pause(situation: Situation, content: LockContent) -> float:
    if not content.line.names and not content.holders:
        return pauses.NEXT_LOOK_SECONDS * (
            0.75 + 0.5 * situation.seen.chance.jitter
        )  # one of a few nodes is about to take a claim
    name, seen = situation.node.name, situation.seen
    waiting = crowd.how_many_wait(situation)
    return pauses.look_again_seconds(
        name, content, situation.policy, seen.chance.jitter, waiting=waiting, now=situation.server_now
    )


def refused_pause(situation: Situation) -> float:
    """The pause of a waiting node while a cheap gate refuses. The few nodes in the line always decide again after
    `LOOK_SECONDS`: they are the first to begin their drains when a person resumes a paused lock."""
    content = situation.content
    if content is not None and situation.node.name in content.line.names:
        return LOOK_SECONDS
    return pauses.paced(LOOK_SECONDS, crowd.how_many_wait(situation), situation.seen.chance.jitter)
