"""The phase Claiming: the Node carries the claim id. The agent adds the claim to the lock, evaluates every gate again
on fresh data, and cordons the node.

Two nodes with claims in different lock objects (the DaemonSet was recreated, or the key changed) must never both
cordon. Each agent lists the Nodes after it wrote the claim id on its own Node, so at least one of the two sees the
other's claim, and goes back to Waiting.
"""

from __future__ import annotations

from careen.core import patience
from careen.core.actions import Occasion
from careen.core.decision import Decision, Refusal
from careen.core.drain import baseline, drain_plan, slow_pods
from careen.core.drain.forecast_annotation import forecast_annotation
from careen.core.drain.late import known_at_the_claim
from careen.core.facts.observation import Fleet, NeedAnswer, NodeView, PodView, Unknown
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.policy import Order
from careen.core.facts.progress import OwnerHealth, Progress, UnreadableProgress
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
from careen.core.outcomes import Status, Stay, Transition, move, stay, undo, write_lock
from careen.core.people import requests, telling
from careen.core.situation import Situation, known
from careen.core.steps import line
from careen.core.steps.shared import preparing
from scheduler_core.values import replace_value as replace

# An agent cordons its node less than this time after it has read the lock. So after this time, another agent must read
# the lock again before its cordon, and then sees the claim of this node.
_CLAIMER_PATIENCE_SECONDS = 15.0
_STEP_BACK_PAUSE_SECONDS = 5.0
_UNKNOWN_PATIENCE_SECONDS = 15.0  # a claim that waits longer than this delays the other nodes
_LINE_SECONDS = 5.0  # a node that becomes ready in the meantime joins the line by itself
_BASELINE_SECONDS = 3.0  # the last reads before the cordon take less, unless an answer is late
_LAST = (Evidence.LOCK, Evidence.PEERS, Evidence.FLEET)  # the evidence for the cordon
_PASSING = frozenset(
    {
        Code.WRITE_NOT_KEPT,
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
    """Add the claim to the lock, cordon the node, or go back to Waiting."""
    if situation.seen.need.answer is NeedAnswer.NO:
        return _back(situation, Code.NEED_GONE, requests.why_gone(situation))
    if why_left_alone := autoscalers.left_alone(situation.node):
        return _back(situation, Code.BEING_REMOVED, why_left_alone)
    cheap = asked(When.CLAIMED, Cost.CHEAP)
    situation.need(*missing(situation, cheap))
    if refused := refusals(situation, cheap, When.CLAIMED):
        return _refused(situation, refused, label="required")
    content = situation.content
    assert content is not None, "the gate `hold` must refuse while the lock is not understood"
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
    return _ask_everything(situation, content)


def _enter(situation: Situation, content: LockContent) -> Decision:
    """Add this node's claim to the lock. The same write names the next nodes: agents of nodes in the line read the
    lock often."""
    is_by_zone = situation.policy.order is Order.ZONE
    added = changes.add(
        content, situation.new_entry(situation.progress.claim), situation.policy.concurrency, in_one_zone=is_by_zone
    )
    if added is None:
        other_nodes = ", ".join(content.holders)
        return _back(situation, Code.LIMIT_REACHED, f"{other_nodes} took the free claims first")
    is_line_whole = _is_line_whole(situation, content)
    waiters = None if is_line_whole else situation.read(Evidence.WAITERS)
    line = added.line.showing(situation.node.name).passing_over(situation.memory.line.passed)
    added = added.with_line(line.one_fewer() if is_line_whole else line)
    if waiters is not None:
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
    """Whether the line is recent and names all waiting nodes, so that the agent need not list them again."""
    named_at = from_rfc3339(content.line.at)
    age = (situation.seen.now - named_at).total_seconds() if named_at is not None else -1.0
    are_named = situation.node.name in content.line.names and content.line.waiting <= len(content.line.names)
    return are_named and 0 <= age < _LINE_SECONDS and not situation.memory.line.passed


def _refused(situation: Situation, refused: tuple[Refusal, ...], *, label: str = order.READY) -> Decision:
    first = refused[0]
    return _wait_a_little(situation, first) or _back(situation, first.code, first.sentence, refused, label=label)


def _unknown(situation: Situation, gate: str, code: Code, why: str) -> Decision:
    """A fact of no gate is unknown. Going back for it stores no refusal, so the node soon tries again."""
    unknown = Refusal(gate=gate, code=code, sentence=why)
    return _wait_a_little(situation, unknown) or _back(situation, code, unknown.sentence)


def _wait_a_little(situation: Situation, refused: Refusal) -> Decision | None:
    """Keep the claim for a while if the gate refuses only because a fact is unknown. Otherwise the node goes back."""
    if refused.code not in _PASSING:
        return None
    if situation.seen.uptime - patience.began(situation) >= _UNKNOWN_PATIENCE_SECONDS:
        return None
    patience.met(situation, refused.gate)
    return stay(situation, Status(refused.code, refused.sentence, is_silent=True), Stay(look=1.0))


def _delay_left(situation: Situation) -> float:
    elapsed = situation.elapsed(situation.progress.claimed)
    return situation.policy.drain.delay_seconds - (elapsed or 0.0)


def _ask_everything(situation: Situation, content: LockContent) -> Decision:
    """Evaluate the costly gates in order. Before the cordon, read the Nodes and the lock once more."""
    if preparing.lacking(situation):
        situation.read_again(*_LAST, Evidence.PODS, Evidence.DISRUPTIONS)
    situation = _with_fresh_forecast(preparing.used(situation))
    for gate in asked(When.CLAIMED, Cost.COSTLY):
        if gate is budgets:
            continue  # asked last, because its list of nodes becomes too old first
        situation.need(*missing(situation, (gate,)))
        if refused := gate.ask(situation, When.CLAIMED):
            return _refused(situation, (refused,))
    situation.need(Evidence.PODS, Evidence.OWNERS)
    if isinstance(situation.seen.owners, Unknown):
        why = f"careen cannot tell how healthy the workloads of this node are: {situation.seen.owners.why}"
        return _unknown(situation, "owners", Code.OWNERS_UNKNOWN, why)
    fleet = situation.seen.fleet
    if any(situation.seen.lacks(kind) for kind in _LAST) or (isinstance(fleet, Fleet) and _is_old(situation, fleet)):
        situation.read_again(*_LAST)
    if (at := situation.seen.owners_at) is not None and situation.seen.uptime - at > _BASELINE_SECONDS:
        situation.read_again(Evidence.OWNERS)  # a late answer since then: the workloads may have recovered
    if refused := budgets.ask(situation, When.CLAIMED):
        return _refused(situation, (refused,))
    assert isinstance(fleet, Fleet), "the gate `budgets` must refuse while the Nodes are unknown"
    return _others_first(situation, content) or _cordon(situation, fleet)


def _with_fresh_forecast(situation: Situation) -> Situation:
    """The situation with the forecast from before the claim, if that is a few seconds old and the holders are the
    same."""
    taken = situation.memory.claiming
    if taken.forecast is None or not situation.seen.lacks(Evidence.FORECAST):
        return situation
    is_old = situation.seen.uptime - taken.at > situation.policy.forecast_max_age_seconds
    if is_old or taken.holders != situation.other_holders:
        return situation
    return replace(situation, seen=replace(situation.seen, forecast=taken.forecast))


def _is_old(situation: Situation, fleet: Fleet) -> bool:
    return situation.seen.uptime - fleet.read_at_uptime > situation.policy.fleet_max_age_seconds * 0.8


def _others_first(situation: Situation, content: LockContent) -> Decision | None:
    """Go back if the holders and the nodes that careen took down are together more than the limit. Wait a little for a
    node in the phase Claiming that has no claim in this lock."""
    peers = situation.seen.peers
    if not isinstance(peers, tuple):
        why = f"careen cannot tell which other nodes hold claims: {peers.why}"
        return _unknown(situation, "peers", Code.FLEET_UNKNOWN, why)
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
    """Go back if one of these nodes, which this lock does not have, names another lock object: it may be about to
    cordon. Otherwise wait until each has added its claim or gone back, but no longer than `_CLAIMER_PATIENCE_SECONDS`
    after their last change."""
    other_nodes = ", ".join(sorted(node.name for node in claiming))
    mine = situation.progress.lock
    for node in claiming:
        progress = node.record
        if isinstance(progress, UnreadableProgress) or progress.lock != mine:
            return _back(situation, Code.SURPLUS, f"{node.name} is taking a claim in another lock object")
    uptime = situation.seen.uptime
    before = situation.memory.claiming
    states = (f"{node.name}/{node.resource_version}" for node in claiming)
    seen = {state: before.claimers.get(state, uptime) for state in states}
    if all(uptime - since > _CLAIMER_PATIENCE_SECONDS for since in seen.values()):
        return None
    situation.remember(claiming=replace(before, claimers=seen))
    return stay(
        situation,
        Status(Code.TAKING_CLAIM, f"the node waits until {other_nodes} gives up its claim", is_silent=True),
        Stay(look=1.0),
    )


def _cordon(situation: Situation, fleet: Fleet) -> Decision:
    """Cordon the node. The same patch records what an undo has to restore, so there is never a cordon without a record.
    A cordon left behind by an earlier claim of this node is treated as careen's."""
    policy, node = situation.policy, situation.node
    is_foreign = cordons.is_foreign(node)
    leaving = drain_plan.to_evict(known(situation.seen.pods) or (), policy.drain)
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
        owners=_baseline(situation, leaving),
        drain_started=situation.mark(),
        drain_started_at=rfc3339(situation.server_now),
        displaced=len(leaving),
        volumes=len(node.volumes),
    )
    return move(
        situation,
        Status(
            Code.DRAIN_STARTED,
            f"cordoned; {drain_plan.have_to_leave(len(leaving))}{slow_pods.said(situation)}"
            f"{baseline.said(progress.owners)}",
        ),
        Transition(
            Phase.DRAINING,
            progress,
            change=NodeChange(
                labels=dict(policy.pre_reboot_labels),
                unschedulable=True,
                send_before=fleet.read_at_uptime + policy.fleet_max_age_seconds,
                annotations={
                    **forecast_annotation(situation.seen),
                    **preparing.annotation(situation),
                    **known_at_the_claim.annotation(situation, leaving),
                    **slow_pods.at_cordon(situation),
                },
            ),
            then=(
                telling.about_reboot(
                    situation, Occasion.DRAIN, f"Draining node {node.name}", since=situation.progress.need_since
                ),
            ),
        ),
    )


def _baseline(situation: Situation, leaving: tuple[PodView, ...]) -> tuple[OwnerHealth, ...]:
    fleet = known(situation.seen.fleet)
    owed = situation.content.unsettled if situation.content else ()
    records = (node.record for node in (fleet.nodes if fleet else ()) if node.name != situation.node.name)
    at_work = [each for each in records if isinstance(each, Progress) and each.claim and each.owners]
    return baseline.with_earlier(baseline.taken(situation, leaving), owed, at_work)


def _back(
    situation: Situation, code: Code, sentence: str, refused: tuple[Refusal, ...] = (), *, label: str = order.READY
) -> Decision:
    """Go back to Waiting: mark the claim on the Node for release, then remove it from the lock and, in a later turn,
    from the Node. The first patch changes the Node's resourceVersion, so a cordon patch that is still under way gets a
    conflict."""
    is_asked_again_soon = not refused or label != order.READY
    pause = (
        _STEP_BACK_PAUSE_SECONDS * (0.5 + situation.seen.chance.jitter)
        if is_asked_again_soon
        else line.costly_pause_seconds(situation)
    )
    line.put_off(
        situation,
        pause,
        refused[0].gate if refused else "",
        refusals=situation.memory.costly.refusals + (0 if is_asked_again_soon else 1),
    )
    return undo(
        situation,
        Status(code, sentence, refusals=refused, label=label),
        Transition(Phase.WAITING, situation.progress),
    )
