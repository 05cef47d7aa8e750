"""Decides where a waiting node stands in the line of waiting nodes, whether the node comes next, and whether the node
takes a claim.

`waiting.py` first evaluates the cheap gates (see `Cost` in `gates/question.py`), and calls `ready` only if no cheap
gate refuses the reboot. `lock/order.py` decides the order of the line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from careen.core.actions import PatchNode
from careen.core.decision import Decision, Refusal
from careen.core.drain import baseline
from careen.core.facts import keys
from careen.core.facts.memory import Claiming, Costly
from careen.core.facts.observation import Fleet, NodeView
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.reasons import Code
from careen.core.facts.times import from_rfc3339, rfc3339
from careen.core.gates import asked, missing
from careen.core.gates.budgets import others_down
from careen.core.gates.question import Cost, When
from careen.core.lock import content as lock
from careen.core.lock import gathering, order, overdue, pauses
from careen.core.lock.clearance import Clearance, start_of
from careen.core.lock.content import Entry, LockContent
from careen.core.node import autoscalers
from careen.core.node.restoring import NodeChange
from careen.core.situation import Situation
from careen.core.steps.shared import counting, crowd, giving_back, preparing
from careen.core.writing import (
    Status,
    Stay,
    Transition,
    forecast_annotation,
    move,
    stay,
    stored_refusals,
    want,
    write_lock,
)
from scheduler_core.simulation.forecast import Forecast

LOOK_SECONDS = 30.0  # while a gate refuses: windows and pods change by the minute
COSTLY_PAUSE_SECONDS = 10.0  # before the node asks costly gates again; doubles with each refusal in a row
COSTLY_PAUSE_LIMIT_SECONDS = 60.0  # each forecast costs a second of computing, and lists the whole cluster

# The sentence names no holders or places: otherwise every release would cost a patch of every waiting node.
_WAITS = "the gates pass; the node waits in line"

_COSTLY_GATES = frozenset(gate.name for gate in asked(When.READY, Cost.COSTLY))


def ready(situation: Situation, content: LockContent) -> Decision:
    """Return the decision for a waiting node that no cheap gate refuses. Only the agent of the next node in line
    evaluates the costly gates."""
    number: dict[str, str | None] = {}
    if counting.is_due(situation, content):
        if situation.seen.lacks(Evidence.PODS):
            return want(situation, Evidence.PODS)
        number, situation = (
            counting.number(situation),
            situation.with_memory(replace(situation.memory, moves_counted_at=situation.seen.uptime)),
        )
    memory = situation.memory
    if memory.costly.not_before > situation.seen.uptime and memory.costly.holders == others_holding(situation, content):
        return _pausing(situation, content)
    if situation.node.labels.get(keys.REBOOT_LABEL) != order.READY:
        # Set the label `ready` first. The agents that write the line, this agent included (`_in_line`), choose only
        # nodes with this label.
        return _say_waiting(situation, look=0.0, annotations=number)
    return _write_number(situation, number) if number else _in_line(situation, content)


def stored_costly(situation: Situation) -> tuple[Refusal, ...]:
    """Return those refusals in the Node's annotations that come from costly gates (see `Cost` in
    `gates/question.py`)."""
    return tuple(each for each in stored_refusals(situation.node) if each.gate in _COSTLY_GATES)


def _write_number(situation: Situation, number: Mapping[str, str | None]) -> Decision:
    patch = PatchNode(
        purpose="write how many pods a drain would move",
        resource_version=situation.node.resource_version,
        annotations=number,
    )
    return stay(situation, Status(Code.WAITING_FOR_TURN, _WAITS, is_silent=True), Stay(look=0.0, actions=(patch,)))


def _in_line(situation: Situation, content: LockContent) -> Decision:
    """Return the decision for a node whose label says that it is ready to reboot. If the node is next in line, the
    agent runs the expensive checks (costly gates) and takes a claim. Otherwise the agent adds the node to the line of
    waiting nodes in the lock, prepares a forecast, or waits."""
    name = situation.node.name
    start = start_of(name, content, situation.policy, situation.memory, situation.seen.uptime)
    situation = situation.with_memory(start.memory)
    gathers_for = _gathers_for(situation, start)
    if gathers_for > 0 and not stored_costly(
        situation
    ):  # waiting here would replace the stored refusals, and with them the instants since when they stand
        look = min(gathers_for, gathering.gather_pause_seconds(start.memory.agents))
        return _say_waiting(situation, look=look)
    if not start.is_allowed and start.asks_waiters:
        if situation.seen.lacks(Evidence.WAITERS):
            return want(situation, Evidence.WAITERS)
        start = _first_of_all(situation, content, start)
    if start.is_allowed:
        watched = replace(start.memory.line, passed=start.passed)
        return _start(situation.with_memory(replace(start.memory, line=watched)), content)
    if name not in content.line.names and len(content.line.names) < order.line_length(content, situation.policy):
        return _join_line(situation, content)
    decision = preparing.decide(situation, content) or _say_waiting(situation, look=_line_pause(situation, content))
    return replace(decision, starts_soon=preparing.is_near(situation, content))


def _gathers_for(situation: Situation, start: Clearance) -> float:
    """Return how many seconds this node still waits before it takes the first claim of a roll-out. Meanwhile other
    nodes can become ready, so that the order includes them. The wait is measured twice: since this process first saw
    the free lock, and since the node became ready according to its annotation. The shorter remaining wait applies."""
    since = from_rfc3339(situation.node.annotations.get(keys.READY_SINCE, ""))
    shown = (situation.seen.now - since).total_seconds() if since is not None else -1.0
    if start.gathers_for <= 0 or shown < 0:
        return start.gathers_for
    return min(start.gathers_for, max(0.0, gathering.gather_seconds(situation.memory.agents) + 1.0 - shown))


def _join_line(situation: Situation, content: LockContent) -> Decision:
    """Return the decision to add waiting nodes, perhaps also this node, to the line in the lock, because the line has
    too few names. The agents of nodes in the line read the lock more often than other agents. With too few names in the
    line, perhaps no agent soon notices that a claim was released."""
    if situation.seen.lacks(Evidence.WAITERS):
        return want(situation, Evidence.WAITERS)
    waiters = situation.seen.waiters
    shown = content.with_line(content.line.showing(situation.node.name))
    handed = shown
    if isinstance(waiters, tuple):
        handed = order.name_next(shown, _with_own(situation, waiters), situation.policy, at=rfc3339(situation.seen.now))
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


def _with_own(situation: Situation, waiters: tuple[NodeView, ...]) -> tuple[NodeView, ...]:
    """Return the list of waiting nodes in which this node has its latest state, because the list may have been read
    before the agent changed this node's label."""
    return (*(node for node in waiters if node.name != situation.node.name), situation.node)


def _first_of_all(situation: Situation, content: LockContent, start: Clearance) -> Clearance:
    waiters = situation.seen.waiters
    if not isinstance(waiters, tuple):
        return start
    line = order.name_next(content, _with_own(situation, waiters), situation.policy, at="").line
    places = start.places if line.abreast is None else min(start.places, line.abreast)
    return replace(start, is_allowed=situation.node.name in line.names[:places])


def _start(situation: Situation, content: LockContent) -> Decision:
    if unread := preparing.lacking(situation):
        return want(situation, *unread)
    situation = preparing.used(situation)
    gates = asked(When.READY, Cost.COSTLY)
    for gate in gates:  # one after the other: a refusal saves the cost of the gates after it
        if lacking := missing(situation, (gate,)):
            return want(situation, *lacking)
        if refused := gate.ask(situation, When.READY):
            return _pass_on(situation, content, refused)
    return _claim(situation)


def _claim(situation: Situation) -> Decision:
    """Return the decision to write a claim id on the Node. The agent adds the claim to the lock in a later round of its
    loop, because other agents remove a claim from the lock if its Node does not carry the claim's id."""
    progress = replace(
        giving_back.without_claim(situation.progress),
        claim=situation.seen.chance.claim_id,
        lock=situation.reading.object_id,
        claimed=situation.mark(),
        boot_left=situation.boot,
        failed="",
        failed_at=None,
    )
    content, forecast = situation.lock, situation.seen.forecast
    memory = replace(
        situation.memory,
        reboot=None,
        claiming=Claiming(
            # A prepared forecast is not kept here: under the claim its facts are compared once more.
            forecast=forecast if isinstance(forecast, Forecast) and preparing.why_not(situation) != "" else None,
            at=situation.seen.uptime,
            holders=others_holding(situation, content) if isinstance(content, LockContent) else (),
        ),
    )
    unready_pods = baseline.said(baseline.taken(situation, ()))
    return move(
        situation.with_memory(memory),
        Status(
            Code.TAKING_CLAIM,
            f"this node is next in line: its agent takes a claim and asks all gates again{unready_pods}",
        ),
        Transition(
            Phase.CLAIMING,
            progress,
            change=NodeChange(annotations={**preparing.annotation(situation), **_protected(situation)}),
        ),
    )


def _protected(situation: Situation) -> dict[str, str | None]:
    return autoscalers.protected(situation.node) if situation.policy.protect_from_autoscalers else {}


def _pass_on(situation: Situation, content: LockContent, refused: Refusal) -> Decision:
    """Return the decision to report the refusal of a costly gate and to let other nodes go first. If the gate would
    refuse every node, this node keeps its place in the line of waiting nodes."""
    if situation.seen.lacks(Evidence.WAITERS) and situation.node.name in content.line.names:
        return want(situation, Evidence.WAITERS)
    pause = costly_pause_seconds(situation)
    memory = replace(
        situation.memory,
        costly=Costly(
            not_before=situation.seen.uptime + pause,
            refusals=situation.memory.costly.refusals + 1,
            gate=refused.gate,
            holders=others_holding(situation, content),
        ),
        prepared=None,
    )
    is_named = situation.node.name in content.line.names
    handed = _kept_line(situation, content, refused) if refused.is_of_cluster else _at_the_end(situation, content)
    return stay(
        situation.with_memory(memory),
        Status(Code.REFUSED, with_overdue(situation, refused.sentence), refusals=(refused,), label=order.READY),
        Stay(
            look=pauses.NEXT_LOOK_SECONDS if is_named else min(pause, _refused_in_line_pause(situation, content)),
            annotations={**forecast_annotation(situation), **preparing.annotation(situation)},
            actions=(write_lock(situation, f"{situation.node.name} cannot begin its reboot: {refused.code}", handed),)
            if is_named
            else (),
        ),
    )


def _kept_line(situation: Situation, content: LockContent, refused: Refusal) -> LockContent:
    """Return the lock's content after a refusal that concerns every node. The waiting nodes in the line keep their
    order, with one exception: if the refusal says that too many nodes are down, some other nodes move to the head of
    the line.

    Such a node waits with the value `ready` of the label careen.dev/reboot, and is already cordoned. The node moves
    only if the number of other nodes that are down is smaller than the number of claims that the lock may hold. The
    gate `budgets` may permit the reboot of this node, because the gate does not count a node's own cordon.
    """
    waiters, line = situation.seen.waiters, content.line
    if isinstance(waiters, tuple):
        names_waiting = {node.name for node in _with_own(situation, waiters)}
        line = replace(line.keeping(names_waiting), waiting=len(names_waiting))
    first = _cordoned_and_ready(situation, content) if refused.code is Code.NODES_DOWN else ()
    names = (*first, *(name for name in line.names if name not in first))
    # The node that is now first may be in another zone than those after it.
    abreast = line.abreast if not first or line.abreast is None else 1
    names, at = names[: order.line_length(content, situation.policy)], rfc3339(situation.seen.now)
    return content.with_line(line.naming(names, at=at, waiting=line.waiting, abreast=abreast))


def _cordoned_and_ready(situation: Situation, content: LockContent) -> tuple[str, ...]:
    fleet, own = situation.seen.fleet, situation.node.name
    if not isinstance(fleet, Fleet):
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
    """Return the pause in seconds after the refusal of a costly gate. The pause grows with each refusal in a row: the
    cause of a first refusal often passes within seconds (a taint disappears, a replica becomes ready), but the cause of
    repeated refusals lasts longer."""
    pause = COSTLY_PAUSE_SECONDS * 2.0 ** min(situation.memory.costly.refusals, 10)
    return min(pause, COSTLY_PAUSE_LIMIT_SECONDS) * (0.75 + 0.5 * situation.seen.chance.jitter)


def _at_the_end(situation: Situation, content: LockContent) -> LockContent:
    """Return the lock's content with this node at the end of the line of waiting nodes."""
    name, waiters, at = situation.node.name, situation.seen.waiters, rfc3339(situation.seen.now)
    content = content.with_line(content.line.passing_over((name,)))
    if isinstance(waiters, tuple):
        return order.name_next(
            content, _with_own(situation, waiters), situation.policy, at=at, zone=situation.node.zone
        )
    left = content.line.without(name)
    return content.with_line(left.naming((*left.names, name), at=at, waiting=left.waiting, abreast=left.abreast))


def others_holding(situation: Situation, content: LockContent) -> tuple[str, ...]:
    """Return the names of the other nodes with claims. When these names change, the agent evaluates the costly gates
    again, because the refusals of these gates depend mostly on which nodes hold claims."""
    return tuple(sorted(name for name in content.holders if name != situation.node.name))


def _pausing(situation: Situation, content: LockContent) -> Decision:
    """Return the decision to wait until the agent evaluates the costly gates again. The refusal stays on the Node until
    then."""
    kept = tuple(each for each in stored_refusals(situation.node) if each.gate == situation.memory.costly.gate)
    sentence = kept[0].sentence if kept else _WAITS
    left = situation.memory.costly.not_before - situation.seen.uptime
    look = max(0.5, min(left, _refused_in_line_pause(situation, content)))
    return stay(
        situation,
        Status(Code.REFUSED, with_overdue(situation, sentence), refusals=kept, label=order.READY),
        Stay(look=look),
    )


def _refused_in_line_pause(situation: Situation, content: LockContent) -> float:
    """Return in how many seconds a node reads the lock again after a costly gate has refused its reboot. While the line
    of waiting nodes has room and another node holds a claim, this node reads the lock as often as the last node of the
    line. The reason is that the release of a claim may change two things for this node: this node may be added to the
    line, and the gate may permit the reboot."""
    name = situation.node.name
    has_room = len(content.line.names) < order.line_length(content, situation.policy)
    if has_room and content.holders and name not in content.line.names:
        content = content.with_line(replace(content.line, names=(*content.line.names, name)))
    return _line_pause(situation, content)


def _say_waiting(situation: Situation, *, look: float, annotations: Mapping[str, str | None] | None = None) -> Decision:
    return stay(
        situation,
        Status(Code.WAITING_FOR_TURN, _waits(situation), label=order.READY),
        Stay(look=look, annotations=annotations or {}),
    )


def _waits(situation: Situation) -> str:
    """Return the sentence for people about a waiting node: the node waits in line, or waits for overdue nodes that hold
    all claims. The sentence changes only when a node with a claim becomes overdue or is no longer overdue."""
    content, late = situation.lock, _overdue_holders(situation)
    # Compare with the limit, not with free slots: those change with each claim, and every Node would get a patch.
    if not isinstance(content, LockContent) or len(late) < lock.limit(content, situation.policy.concurrency):
        return with_overdue(situation, _WAITS)
    return f"the gates pass; the node waits for overdue nodes: {overdue.sentences(late)}"


def with_overdue(situation: Situation, sentence: str) -> str:
    """Return the sentence, extended by the other nodes whose claims are marked as overdue, if there are such nodes."""
    late = _overdue_holders(situation)
    return f"{sentence}; overdue: {overdue.sentences(late)}" if late else sentence


def _overdue_holders(situation: Situation) -> tuple[Entry, ...]:
    content = situation.lock
    return overdue.holders_overdue(content, besides=situation.node.name) if isinstance(content, LockContent) else ()


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
    """Return after how many seconds the agent of a waiting node decides again if a cheap gate (see `Cost` in
    `gates/question.py`) refuses. A node in the lock's line decides again after `LOOK_SECONDS`. Only a few nodes are in
    the line, and they are the first to begin their drains when a person resumes a paused lock. For other nodes the time
    is longer if many nodes may wait."""
    content = situation.lock
    if isinstance(content, LockContent) and situation.node.name in content.line.names:
        return LOOK_SECONDS
    return pauses.paced(LOOK_SECONDS, crowd.how_many_wait(situation), situation.seen.chance.jitter)
