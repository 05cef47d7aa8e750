"""Decides for a node in the phase Claiming: the Node carries the claim id. The agent adds the claim to the lock,
evaluates every gate (condition for a reboot) again on fresh data, and cordons the node.

Two nodes with claims in different lock objects (the DaemonSet was recreated, or the key changed) must never both
cordon. Each agent lists the Nodes after it wrote the claim id on its own Node, so at least one of the two agents sees
the other node's claim. That agent takes its node back to the phase Waiting.
"""

from __future__ import annotations

from dataclasses import replace

from careen.core import patience
from careen.core.actions import Occasion
from careen.core.decision import Decision, Refusal
from careen.core.drain import baseline, drain_plan
from careen.core.facts.memory import Costly
from careen.core.facts.observation import Fleet, NeedAnswer, NodeView, NotAsked, Unknown
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.policy import Order
from careen.core.facts.progress import UnreadableProgress
from careen.core.facts.reasons import Code
from careen.core.facts.times import from_rfc3339, rfc3339, span
from careen.core.gates import asked, missing, refusals
from careen.core.gates.budgets import budgets, works
from careen.core.gates.question import Cost, When
from careen.core.lock import changes, order
from careen.core.lock import content as lock
from careen.core.lock.content import LockContent
from careen.core.node import autoscalers, cordons
from careen.core.node.restoring import NodeChange
from careen.core.people import telling
from careen.core.situation import Situation
from careen.core.steps import line
from careen.core.steps.shared import preparing
from careen.core.writing import Status, Stay, Transition, forecast_annotation, move, stay, undo, want, write_lock

# An agent cordons its node less than this time after it has read the lock. So after this time, another agent must read
# the lock again before its cordon, and then sees the claim of this node.
_CLAIMER_PATIENCE_SECONDS = 15.0
_STEP_BACK_PAUSE_SECONDS = 5.0
_UNKNOWN_PATIENCE_SECONDS = 15.0  # a claim that waits longer than this delays the other nodes
_LINE_SECONDS = 5.0  # a node that becomes ready in the meantime joins the line by itself
_LAST = (Evidence.LOCK, Evidence.PEERS, Evidence.FLEET)  # the evidence for the cordon
_PASSING = frozenset(
    {
        Code.NEED_UNKNOWN,
        Code.BOOT_ID_UNKNOWN,
        Code.LOCK_UNKNOWN,
        Code.FLEET_UNKNOWN,
        Code.PODS_UNKNOWN,
        Code.OWNERS_UNKNOWN,
        Code.EVICTIONS_UNKNOWN,
    }
)


def decide(situation: Situation) -> Decision:
    """Return the decision to add the claim to the lock, to cordon the node, or to go back to the phase Waiting."""
    if situation.seen.need.answer is NeedAnswer.NO:
        return _back(situation, Code.NEED_GONE, "the host no longer asks for a reboot")
    if why_left_alone := autoscalers.left_alone(situation.node):
        return _back(situation, Code.BEING_REMOVED, why_left_alone)
    cheap = asked(When.CLAIMED, Cost.CHEAP)
    if lacking := missing(situation, cheap):
        return want(situation, *lacking)
    if refused := refusals(situation, cheap, When.CLAIMED):
        return _wait_a_little(situation, refused[0]) or _back(
            situation, refused[0].code, refused[0].sentence, refused, label="required"
        )
    content = situation.lock
    assert isinstance(content, LockContent), (
        "the gate `hold` also checks the lock, and must refuse the reboot if the lock is unreadable"
    )
    if situation.reading.object_id != situation.progress.lock:
        return _back(situation, Code.SURPLUS, "the claim belongs to another lock object")
    if situation.own_entry is None:
        return _enter(situation, content)
    if (left := _delay_left(situation)) > 0:
        return stay(
            situation,
            Status(
                Code.TAKING_CLAIM,
                f"the node waits {span(round(left))} before its cordon (--drain-delay)",
                is_silent=True,
            ),
            Stay(look=min(left, 5.0)),
        )
    return _ask_everything(situation)


def _enter(situation: Situation, content: LockContent) -> Decision:
    """Return the decision to add this node's claim to the lock. In the same write, the agent puts the waiting nodes
    that come next into the line, because the agents of nodes in the line read the lock often."""
    is_by_zone = situation.policy.order is Order.ZONE
    added = changes.add(
        content, situation.new_entry(situation.progress.claim), situation.policy.concurrency, in_one_zone=is_by_zone
    )
    if added is None:
        other_nodes = ", ".join(content.holders)
        return _back(situation, Code.LIMIT_REACHED, f"{other_nodes} took the free claims first")
    is_line_whole = _is_line_whole(situation, content)
    if not is_line_whole and situation.seen.lacks(Evidence.WAITERS):
        return want(situation, Evidence.WAITERS)
    line = added.line.showing(situation.node.name).passing_over(situation.memory.line.passed)
    added = added.with_line(line.one_fewer() if is_line_whole else line)
    waiters = situation.seen.waiters
    if not is_line_whole and isinstance(waiters, tuple):
        added = order.name_next(
            added,
            waiters,
            situation.policy,
            at=rfc3339(situation.seen.now),
            zone=situation.node.zone,
            leave_out=situation.node.name,
        )
    return stay(
        situation,
        Status(Code.TAKING_CLAIM, "the agent adds the claim to the lock", is_silent=True),
        Stay(look=0.0, actions=(write_lock(situation, "take a claim", added),)),
    )


def _is_line_whole(situation: Situation, content: LockContent) -> bool:
    """Whether the line in the lock is recent and names all waiting nodes. Then the agent need not list the waiting
    nodes again."""
    named_at = from_rfc3339(content.line.at)
    age = (situation.seen.now - named_at).total_seconds() if named_at is not None else -1.0
    are_named = situation.node.name in content.line.names and content.line.waiting <= len(content.line.names)
    return are_named and 0 <= age < _LINE_SECONDS and not situation.memory.line.passed


def _wait_a_little(situation: Situation, refused: Refusal) -> Decision | None:
    """Return the decision to keep the claim, and to evaluate the refusing gate again soon, if the gate refuses only
    because a fact is unknown. Return None if the fact has been unknown for too long, or if the gate refuses for another
    reason. The caller then takes the node back to the phase Waiting."""
    if refused.code not in _PASSING:
        return None
    if situation.seen.uptime - patience.began(situation) >= _UNKNOWN_PATIENCE_SECONDS:
        return None
    return stay(
        situation.with_memory(patience.met(situation, refused.gate)),
        Status(refused.code, refused.sentence, is_silent=True),
        Stay(look=1.0),
    )


def _delay_left(situation: Situation) -> float:
    elapsed = situation.elapsed(situation.progress.claimed)
    return situation.policy.drain.delay_seconds - (elapsed or 0.0)


def _ask_everything(situation: Situation) -> Decision:
    """Evaluate the costly gates in order, and return the decision that follows: read a missing fact, go back to the
    phase Waiting because a gate refuses, or cordon the node. Before the cordon, the agent reads the Nodes and the lock
    once more."""
    if preparing.lacking(situation):
        return want(situation, *_LAST, Evidence.PODS, Evidence.DISRUPTIONS)
    situation = _with_fresh_forecast(preparing.used(situation))
    for gate in asked(When.CLAIMED, Cost.COSTLY):
        if gate is budgets:
            continue  # asked last, because its list of nodes becomes too old first
        if lacking := missing(situation, (gate,)):
            return want(situation, *lacking)
        if refused := gate.ask(situation, When.CLAIMED):
            return _wait_a_little(situation, refused) or _back(situation, refused.code, refused.sentence, (refused,))
    if situation.seen.lacks(Evidence.OWNERS) or situation.seen.lacks(Evidence.PODS):
        return want(situation, *(kind for kind in (Evidence.PODS, Evidence.OWNERS) if situation.seen.lacks(kind)))
    if isinstance(situation.seen.owners, Unknown):
        unknown = Refusal(
            gate="owners",
            code=Code.OWNERS_UNKNOWN,
            sentence=f"careen cannot tell how healthy the workloads of this node are: {situation.seen.owners.why}",
        )
        return _wait_a_little(situation, unknown) or _back(situation, unknown.code, unknown.sentence)
    fleet = situation.seen.fleet
    if isinstance(fleet, NotAsked) or (isinstance(fleet, Fleet) and _is_old(situation, fleet)):
        return want(situation, *_LAST)
    if refused := budgets.ask(situation, When.CLAIMED):
        return _wait_a_little(situation, refused) or _back(situation, refused.code, refused.sentence, (refused,))
    assert isinstance(fleet, Fleet)
    return _others_first(situation) or _cordon(situation, fleet)


def _with_fresh_forecast(situation: Situation) -> Situation:
    """Return the situation with the forecast that the agent made before the node took its claim. The agent reuses that
    forecast only if it is at most a few seconds old and the same nodes hold claims. If not, return the situation
    unchanged."""
    taken, content = situation.memory.claiming, situation.lock
    if taken.forecast is None or not situation.seen.lacks(Evidence.FORECAST) or not isinstance(content, LockContent):
        return situation
    is_old = situation.seen.uptime - taken.at > situation.policy.forecast_max_age_seconds
    if is_old or taken.holders != line.others_holding(situation, content):
        return situation
    return replace(situation, seen=replace(situation.seen, forecast=taken.forecast))


def _is_old(situation: Situation, fleet: Fleet) -> bool:
    return situation.seen.uptime - fleet.read_at_uptime > situation.policy.fleet_max_age_seconds * 0.8


def _others_first(situation: Situation) -> Decision | None:
    """Return the decision to go back to the phase Waiting if the nodes with claims and the nodes that careen took down
    are together more than the limit. Return the decision to wait a little if another node is in the phase Claiming but
    has no claim in this lock. Return None otherwise."""
    peers, content = situation.seen.peers, situation.lock
    assert isinstance(content, LockContent)
    if not isinstance(peers, tuple):
        unknown = Refusal(
            gate="peers",
            code=Code.FLEET_UNKNOWN,
            sentence=f"careen cannot tell which other nodes hold claims: {peers.why}",
        )
        return _wait_a_little(situation, unknown) or _back(situation, unknown.code, unknown.sentence)
    others = [node for node in peers if node.name != situation.node.name and node.name not in content.holders]
    working = sorted(node.name for node in others if works(node))
    if len(content.holders) + len(working) > lock.limit(content, situation.policy.concurrency):
        other_nodes = ", ".join(working or content.holders)
        return _back(situation, Code.SURPLUS, f"the limit of claims is exceeded because of these nodes: {other_nodes}")
    claiming = [node for node in others if not works(node) and _claims(node)]
    return _wait_for(situation, claiming) if claiming else None


def _claims(node: NodeView) -> bool:
    progress = node.record
    return not isinstance(progress, UnreadableProgress) and progress.phase == Phase.CLAIMING


def _wait_for(situation: Situation, claiming: list[NodeView]) -> Decision | None:
    """Return the decision for the agent's own node while the other nodes in `claiming` take claims. Those other nodes
    are in the phase Claiming, but this lock does not have their claims.

    If the record of one of the other nodes names another lock object, the agent's own node goes back to the phase
    Waiting, because that other node may be about to cordon. Otherwise the agent's own node waits. The wait ends when
    each node in `claiming` has added its claim to this lock or has gone back to the phase Waiting. Return None if no
    Node in `claiming` has changed for longer than `_CLAIMER_PATIENCE_SECONDS`.
    """
    other_nodes = ", ".join(sorted(node.name for node in claiming))
    mine = situation.progress.lock
    for node in claiming:
        progress = node.record
        if isinstance(progress, UnreadableProgress) or progress.lock != mine:
            return _back(situation, Code.SURPLUS, f"{node.name} is taking a claim in another lock object")
    uptime = situation.seen.uptime
    seen = {
        f"{node.name}/{node.resource_version}": situation.memory.claiming.claimers.get(
            f"{node.name}/{node.resource_version}", uptime
        )
        for node in claiming
    }
    if all(uptime - since > _CLAIMER_PATIENCE_SECONDS for since in seen.values()):
        return None
    return stay(
        situation.with_memory(replace(situation.memory, claiming=replace(situation.memory.claiming, claimers=seen))),
        Status(Code.TAKING_CLAIM, f"the node waits until {other_nodes} gives up its claim", is_silent=True),
        Stay(look=1.0),
    )


def _cordon(situation: Situation, fleet: Fleet) -> Decision:
    """Return the decision to cordon the node. The same patch records everything that has to be restored if the drain is
    undone, so there is never a cordon without a record. A cordon left behind by an earlier claim of this node is
    treated as careen's."""
    policy, node, pods = situation.policy, situation.node, situation.seen.pods
    is_foreign = cordons.is_foreign(node)
    leaving = drain_plan.to_evict(pods, policy.drain) if isinstance(pods, tuple) else ()
    progress = replace(
        situation.progress,
        is_cordoned_by_us=not is_foreign,
        prior_unschedulable=is_foreign,
        prior_labels={
            key: node.labels.get(key)
            for key, value in policy.pre_reboot_labels.items()
            if node.labels.get(key) != value
        },
        prior_readiness=node.readiness_taints,
        owners=baseline.taken(situation, leaving),
        drain_started=situation.mark(),
        drain_started_at=rfc3339(situation.server_now),
        displaced=len(leaving),
    )
    return move(
        situation,
        Status(
            Code.DRAIN_STARTED, f"cordoned; {drain_plan.have_to_leave(len(leaving))}{baseline.said(progress.owners)}"
        ),
        Transition(
            Phase.DRAINING,
            progress,
            change=NodeChange(
                labels=dict(policy.pre_reboot_labels),
                unschedulable=True,
                send_before=fleet.read_at_uptime + policy.fleet_max_age_seconds,
                annotations={**forecast_annotation(situation), **preparing.annotation(situation)},
            ),
            then=(
                telling.about_reboot(
                    situation, Occasion.DRAIN, f"Draining node {node.name}", since=situation.progress.need_since
                ),
            ),
        ),
    )


def _back(
    situation: Situation, code: Code, sentence: str, refused: tuple[Refusal, ...] = (), *, label: str = order.READY
) -> Decision:
    """Return the decision to go back to the phase Waiting: mark the claim on the Node for release, then remove the
    claim from the lock and, in a later round of the agent's loop, from the Node. The first patch changes the Node's
    resourceVersion, so a cordon patch that is still under way gets a conflict."""
    is_asked_again_soon = not refused or label != order.READY
    pause = (
        _STEP_BACK_PAUSE_SECONDS * (0.5 + situation.seen.chance.jitter)
        if is_asked_again_soon
        else line.costly_pause_seconds(situation)
    )
    content = situation.lock
    memory = replace(
        situation.memory,
        costly=Costly(
            not_before=situation.seen.uptime + pause,
            refusals=situation.memory.costly.refusals + (0 if is_asked_again_soon else 1),
            gate=refused[0].gate if refused else "",
            holders=line.others_holding(situation, content) if isinstance(content, LockContent) else (),
        ),
        prepared=None,
    )
    return undo(
        situation.with_memory(memory),
        Status(code, sentence, refusals=refused, label=label),
        Transition(Phase.WAITING, situation.progress),
    )
