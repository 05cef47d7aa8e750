"""A waiting node that the cheap gates let pass: its position in the line, its turn, and the claim.

Whether it may stand in line at all is decided in `waiting.py`; who comes when is in `lock/order.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from careen.core import autoscalers
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
from careen.core.lock import order, overdue
from careen.core.lock.content import Entry, LockContent
from careen.core.lock.order import Turn, whose_turn
from careen.core.situation import Situation
from careen.core.steps.shared import counting, crowd, giving_back, preparing
from careen.core.writing import (
    NodeChange,
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
COSTLY_PAUSE_SECONDS = 10.0  # alerts and forecasts are not asked again sooner; doubles with each refusal in a row
COSTLY_PAUSE_LIMIT_SECONDS = 60.0  # a forecast is a second of work and lists of the whole cluster

# The same words at every look: with holders or places in them, every release would cost a patch of every waiting node.
_WAITS = "the gates pass; waits for its turn"

# Refusals that any other node would meet as well: the turn stays where it is, the next one would fare no better.
_CLUSTER_WIDE = frozenset(
    {Code.NODES_DOWN, Code.ZONE_AT_WORK, Code.FLEET_UNKNOWN, Code.ALERT, Code.ALERTS_UNKNOWN, Code.FOREIGN_COORDINATOR}
)


_COSTLY_GATES = frozenset(gate.name for gate in asked(When.READY, Cost.COSTLY))


def ready(situation: Situation, content: LockContent) -> Decision:
    """Decides for a node that passes the cheap gates. Only a node whose turn it is asks for alerts and a forecast."""
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
        return _say_waiting(
            situation, look=0.0, annotations=number
        )  # seen by whoever names the next, and by the list below
    return _write_number(situation, number) if number else _in_line(situation, content)


def stored_costly(situation: Situation) -> tuple[Refusal, ...]:
    """The refusals of costly gates that stand on the Node."""
    return tuple(each for each in stored_refusals(situation.node) if each.gate in _COSTLY_GATES)


def _write_number(situation: Situation, number: Mapping[str, str | None]) -> Decision:
    patch = PatchNode(purpose="pods to move", resource_version=situation.node.resource_version, annotations=number)
    return stay(situation, Status(Code.WAITING_FOR_TURN, _WAITS, is_silent=True), Stay(look=0.0, actions=(patch,)))


def _in_line(situation: Situation, content: LockContent) -> Decision:
    """Ready, and shown to be: is it our turn, and if not, is anything to be done for those who come before?"""
    name = situation.node.name
    turn = whose_turn(name, content, situation.policy, situation.memory, situation.seen.uptime)
    situation = situation.with_memory(turn.memory)
    gathers_for = _gathers_for(situation, turn)
    if gathers_for > 0 and not stored_costly(
        situation
    ):  # or an agent started anew would forget since when it is refused
        look = min(gathers_for, order.gather_look_seconds(turn.memory.agents))
        return _say_waiting(situation, look=look)
    if not turn.is_ours and turn.asks_waiters:
        if situation.seen.lacks(Evidence.WAITERS):
            return want(situation, Evidence.WAITERS)
        turn = _first_of_all(situation, content, turn)
    if turn.is_ours:
        watched = replace(turn.memory.line, passed=turn.passed)
        return _our_turn(situation.with_memory(replace(turn.memory, line=watched)), content)
    if name not in content.line.names and len(content.line.names) < order.line_length(content, situation.policy):
        return _join_line(situation, content)
    decision = preparing.decide(situation, content) or _say_waiting(situation, look=_turn_look(situation, content))
    return replace(decision, expects_turn=preparing.is_near(situation, content))


def _gathers_for(situation: Situation, turn: Turn) -> float:
    """What is left of the gathering: as this process has watched it, or as the Node tells since when it has
    been shown ready, to the second."""
    since = from_rfc3339(situation.node.annotations.get(keys.READY_SINCE, ""))
    shown = (situation.seen.now - since).total_seconds() if since is not None else -1.0
    if turn.gathers_for <= 0 or shown < 0:
        return turn.gathers_for
    return min(turn.gathers_for, max(0.0, order.gather_seconds(situation.memory.agents) + 1.0 - shown))


def _join_line(situation: Situation, content: LockContent) -> Decision:
    """Too few are named, so a release might find nobody who looks often: fill the line, ourselves included
    where we belong."""
    if situation.seen.lacks(Evidence.WAITERS):
        return want(situation, Evidence.WAITERS)
    waiters = situation.seen.waiters
    shown = content.with_line(content.line.showing(situation.node.name))
    handed = shown
    if isinstance(waiters, tuple):
        handed = order.hand_on(shown, _with_own(situation, waiters), situation.policy, at=rfc3339(situation.seen.now))
    if (handed.line.names, handed.line.abreast, shown) == (content.line.names, content.line.abreast, content):
        return _say_waiting(situation, look=_turn_look(situation, content))
    return stay(
        situation,
        Status(Code.WAITING_FOR_TURN, _WAITS, label=order.READY, is_silent=True),
        Stay(
            look=order.NEXT_LOOK_SECONDS,
            actions=(write_lock(situation, f"{situation.node.name} fills the line", handed),),
        ),
    )


def _with_own(situation: Situation, waiters: tuple[NodeView, ...]) -> tuple[NodeView, ...]:
    """The list may be a little older than our own label."""
    return (*(node for node in waiters if node.name != situation.node.name), situation.node)


def _first_of_all(situation: Situation, content: LockContent, turn: Turn) -> Turn:
    waiters = situation.seen.waiters
    if not isinstance(waiters, tuple):
        return turn
    line = order.hand_on(content, _with_own(situation, waiters), situation.policy, at="").line
    places = turn.places if line.abreast is None else min(turn.places, line.abreast)
    return replace(turn, is_ours=situation.node.name in line.names[:places])


def _our_turn(situation: Situation, content: LockContent) -> Decision:
    if unread := preparing.lacking(situation):
        return want(situation, *unread)
    situation = preparing.used(situation)
    gates = asked(When.READY, Cost.COSTLY)
    for gate in gates:  # one after the other: what a cheaper one refuses, no dearer one is asked
        if lacking := missing(situation, (gate,)):
            return want(situation, *lacking)
        if refused := gate.ask(situation, When.READY):
            return _pass_on(situation, content, refused)
    return _claim(situation)


def _claim(situation: Situation) -> Decision:
    """The claim id stands on the Node before it enters the lock: an entry without a Node that carries its id
    has no holder."""
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
            # One that was made ahead is not fresh: under the claim it is compared once more with what it rests on.
            forecast=forecast if isinstance(forecast, Forecast) and preparing.why_not(situation) != "" else None,
            at=situation.seen.uptime,
            holders=others_holding(situation, content) if isinstance(content, LockContent) else (),
        ),
    )
    return move(
        situation.with_memory(memory),
        Status(
            Code.TAKING_CLAIM,
            "it is this node's turn: it takes a claim and asks everything once "
            f"more{baseline.said(baseline.taken(situation, ()))}",
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
    """A costly gate refuses: say so, and let the next node come, or keep the turn when the next would be
    refused as well."""
    is_everybodys = refused.is_of_cluster or refused.code in _CLUSTER_WIDE
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
    handed = _kept_line(situation, content, refused) if is_everybodys else _handed_on(situation, content)
    return stay(
        situation.with_memory(memory),
        Status(Code.REFUSED, with_overdue(situation, refused.sentence), refusals=(refused,), label=order.READY),
        Stay(
            look=order.NEXT_LOOK_SECONDS if is_named else min(pause, _refused_in_line_look(situation, content)),
            annotations={**forecast_annotation(situation), **preparing.annotation(situation)},
            actions=(write_lock(situation, f"{situation.node.name} cannot come: {refused.code}", handed),)
            if is_named
            else (),
        ),
    )


def _kept_line(situation: Situation, content: LockContent, refused: Refusal) -> LockContent:
    """The line as it is, but first whoever is among the nodes down and waits itself: nobody counts against
    itself, so it may come."""
    waiters, line = situation.seen.waiters, content.line
    if isinstance(waiters, tuple):
        names_waiting = {node.name for node in _with_own(situation, waiters)}
        line = replace(line.keeping(names_waiting), waiting=len(names_waiting))
    first = _cordoned_and_ready(situation, content) if refused.code is Code.NODES_DOWN else ()
    names = (*first, *(name for name in line.names if name not in first))
    # Who comes first now may be of another zone than those after it.
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
    """The first refusals often pass within seconds (a taint that goes away, a replica that becomes ready);
    later ones do not."""
    pause = COSTLY_PAUSE_SECONDS * 2.0 ** min(situation.memory.costly.refusals, 10)
    return min(pause, COSTLY_PAUSE_LIMIT_SECONDS) * (0.75 + 0.5 * situation.seen.chance.jitter)


def _handed_on(situation: Situation, content: LockContent) -> LockContent:
    """The lock with ourselves at the end of the line."""
    name, waiters, at = situation.node.name, situation.seen.waiters, rfc3339(situation.seen.now)
    content = content.with_line(content.line.passing_over((name,)))
    if isinstance(waiters, tuple):
        return order.hand_on(content, _with_own(situation, waiters), situation.policy, at=at, zone=situation.node.zone)
    left = content.line.without(name)
    return content.with_line(left.naming((*left.names, name), at=at, waiting=left.waiting, abreast=left.abreast))


def others_holding(situation: Situation, content: LockContent) -> tuple[str, ...]:
    """Who holds claims besides this node: what the costly gates say depends on them more than on time."""
    return tuple(sorted(name for name in content.holders if name != situation.node.name))


def _pausing(situation: Situation, content: LockContent) -> Decision:
    """A costly gate refused a moment ago; its refusal stands until it is asked again."""
    kept = tuple(each for each in stored_refusals(situation.node) if each.gate == situation.memory.costly.gate)
    sentence = kept[0].sentence if kept else _WAITS
    left = situation.memory.costly.not_before - situation.seen.uptime
    look = max(0.5, min(left, _refused_in_line_look(situation, content)))
    return stay(
        situation,
        Status(Code.REFUSED, with_overdue(situation, sentence), refusals=kept, label=order.READY),
        Stay(look=look),
    )


def _refused_in_line_look(situation: Situation, content: LockContent) -> float:
    """While the line has room, the next release names whoever waits, and may be just what lets this node come:
    it looks as if it were named last."""
    name = situation.node.name
    has_room = len(content.line.names) < order.line_length(content, situation.policy)
    if has_room and content.holders and name not in content.line.names:
        content = content.with_line(replace(content.line, names=(*content.line.names, name)))
    return _turn_look(situation, content)


def _say_waiting(situation: Situation, *, look: float, annotations: Mapping[str, str | None] | None = None) -> Decision:
    return stay(
        situation,
        Status(Code.WAITING_FOR_TURN, _waits(situation), label=order.READY),
        Stay(look=look, annotations=annotations or {}),
    )


def _waits(situation: Situation) -> str:
    """The turn, or the holder that keeps it from coming: said once when it becomes overdue, and once when it no
    longer is."""
    content, late = situation.lock, _overdue_holders(situation)
    # Counted by marks, not by free places: those change with each claim, and every waiting node would be patched.
    if not isinstance(content, LockContent) or len(late) < lock.limit(content, situation.policy.concurrency):
        return with_overdue(situation, _WAITS)
    return f"the gates pass; waits for {overdue.clauses(late)}"


def with_overdue(situation: Situation, sentence: str) -> str:
    """The sentence, and which holder is overdue meanwhile."""
    late = _overdue_holders(situation)
    return f"{sentence}; overdue: {overdue.clauses(late)}" if late else sentence


def _overdue_holders(situation: Situation) -> tuple[Entry, ...]:
    content = situation.lock
    return overdue.holders_overdue(content, besides=situation.node.name) if isinstance(content, LockContent) else ()


def _turn_look(situation: Situation, content: LockContent) -> float:
    if not content.line.names and not content.holders:
        return order.NEXT_LOOK_SECONDS * (
            0.75 + 0.5 * situation.seen.chance.jitter
        )  # somebody of few is about to claim
    name, seen = situation.node.name, situation.seen
    waiting = crowd.how_many_wait(situation)
    return order.look_again_seconds(
        name, content, situation.policy, seen.chance.jitter, waiting=waiting, now=situation.server_now
    )


def refused_look(situation: Situation) -> float:
    """The pause of a node that a gate refuses, longer where many may wait. Those in line are few, and the first
    to go when what refuses them ends: a person who resumes the roll-out sees them start."""
    content = situation.lock
    if isinstance(content, LockContent) and situation.node.name in content.line.names:
        return LOOK_SECONDS
    return order.paced(LOOK_SECONDS, crowd.how_many_wait(situation), situation.seen.chance.jitter)
