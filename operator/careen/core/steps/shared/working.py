"""What the phases with careen at work on the node share: a claim that is missing in the lock goes back into it, because
the node *is* down, and at the end the node gets back what it had before the drain."""

from __future__ import annotations

from careen.core.decision import Decision
from careen.core.drain import drain_plan
from careen.core.drain.drain_plan import DrainPlan
from careen.core.facts import keys
from careen.core.facts.observation import PodView
from careen.core.facts.progress import Progress
from careen.core.facts.reasons import Code
from careen.core.lock import changes
from careen.core.node import own_taint
from careen.core.node.restoring import NodeChange, as_before
from careen.core.outcomes import Status, Stay, Transition, move, stay, write_lock
from careen.core.situation import Situation
from scheduler_core.values import replace_value as replace


def back_in_service(situation: Situation, besides: NodeChange, *, keeps_taint: bool) -> tuple[Progress, NodeChange]:
    """The record and the other changes of the patch that puts the node back into service and moves it to Settling. With
    `keeps_taint` the soft taint stays, because the node still needs a reboot."""
    ours = situation.node, situation.progress, situation.policy
    taints, owned = own_taint.with_ours(*ours) if keeps_taint else (own_taint.without_ours(*ours), "")
    record = replace(
        situation.progress,
        is_cordoned_by_us=False,
        prior_unschedulable=False,
        prior_labels={},
        settle_started=situation.mark(),
        taint_key=owned,
        failures=0,
    )
    return record, replace(as_before(*ours, besides), taints=taints)


def put_back(situation: Situation) -> Decision | None:
    """Put a missing claim back into the lock, or correct the record if the claim is in another lock object."""
    content = situation.content
    if content is None:
        return None
    if situation.own_entry is None:
        entry = situation.new_entry(situation.progress.claim)
        return stay(
            situation,
            Status(Code.ENTRY_PUT_BACK, "the claim of this node was missing from the lock: the agent put it back"),
            Stay(
                look=0.0,
                actions=(
                    write_lock(
                        situation,
                        "put the missing claim of this node back",
                        changes.put_back(content, entry, situation.policy.concurrency),
                    ),
                ),
            ),
        )
    if situation.reading.object_id != situation.progress.lock:
        return move(
            situation,
            Status(
                Code.ENTRY_PUT_BACK,
                situation.node.annotations.get(keys.REASON, "the claim is in another lock object now"),
            ),
            Transition(situation.phase, replace(situation.progress, lock=situation.reading.object_id)),
        )
    return None


def plan_of(situation: Situation, pods: tuple[PodView, ...]) -> DrainPlan:
    """What is left to drain."""
    return drain_plan.plan(
        pods,
        situation.policy.drain,
        situation.memory,
        uptime=situation.seen.uptime,
        now=situation.seen.now,
        cordoned_at=situation.cordoned_at,
    )


def older_claims(situation: Situation) -> tuple[str, ...]:
    """The other nodes at work whose claims are older. Two nodes may wait for each other, for example for budgets whose
    pods the other one has evicted; the younger claim gives way."""
    failed = () if situation.content is None else {entry.node for entry in situation.content.failed}
    return tuple(each for each in situation.older_holders if each not in failed)


def is_released(situation: Situation) -> bool:
    """Whether this agent (just before a crash) or a person removed the claim from the lock object that contained it."""
    return (
        situation.content is not None
        and situation.own_entry is None
        and situation.reading.object_id == situation.progress.lock
    )
