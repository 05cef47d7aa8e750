"""The phase Verifying: the agent waits until the kubelet reports the new boot, and the node, the DaemonSet pods and the
static pods on it are as ready as before. Then it removes the cordon and the soft taint in one patch."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from careen.core.actions import Occasion
from careen.core.decision import Decision
from careen.core.drain import baseline
from careen.core.facts import keys
from careen.core.facts.observation import NeedAnswer, PodView
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.progress import SOFT_REBOOTS, Progress, boot_id_of
from careen.core.facts.reasons import Code
from careen.core.facts.times import from_rfc3339, rfc3339, span
from careen.core.facts.untrusted import short
from careen.core.gates import loop_limit
from careen.core.node.changed_labels import labels_to_report
from careen.core.node.restoring import NodeChange
from careen.core.outcomes import Status, Stay, Transition, move, stay
from careen.core.people import requests, telling
from careen.core.situation import Situation, known
from careen.core.steps.shared import failing, history, reboot_report, working
from careen.core.steps.shared.history import Reboot
from scheduler_core.sentences import first_few
from scheduler_core.values import replace_value as replace

LOOK_SECONDS = 1.0  # the whole roll-out waits for each second of this
SHORTEST_LOOK_SECONDS = 0.3  # most nodes are ready when their agent starts, and their own pods a moment later
_LOOK_SHARE = 0.25  # of the time so far
_MISSING_SECONDS = 30.0  # a DaemonSet's controller replaces a pod within seconds; deleted DaemonSets are rare


def begin(situation: Situation) -> Decision:
    """Move to Verifying, because the host has rebooted since the node took its claim, and count one more reboot."""
    progress = replace(
        situation.progress,
        verify_started=situation.mark(),
        settle_started=None,
        is_releasing=False,
        failed="",
        failed_at=None,
        reboots_for_need=situation.progress.reboots_for_need + 1,
    )
    situation.remember(reboot=None)
    return move(
        situation,
        Status(Code.REBOOTED, f"the host runs the new boot {situation.boot}"),
        Transition(Phase.VERIFYING, progress, change=NodeChange(annotations=requests.met_by_this_boot(situation))),
    )


def again(situation: Situation) -> Decision:
    """Verify the present boot once more, because a person asked for a retry."""
    progress = replace(
        situation.progress, verify_started=situation.mark(), settle_started=None, failed="", failed_at=None
    )
    return move(
        situation,
        Status(Code.RETRY, "the agent checks again whether the node is back from its reboot"),
        Transition(Phase.VERIFYING, progress, change=NodeChange(annotations={keys.RETRY: None})),
    )


def decide(situation: Situation) -> Decision:
    """Return the node to service, or wait; after --verify-timeout fail and keep the claim."""
    if found := working.put_back(situation):
        return found
    waited = situation.elapsed(situation.progress.verify_started) or 0.0
    is_over = waited > situation.policy.verify_timeout_seconds
    ailing = what_ails(situation)
    if not ailing and not is_over:
        ailing = _new_pods_not_ready(situation)
    if not ailing:
        return _return_to_service(situation)
    if is_over:
        return failing.halted(
            situation,
            Code.NEVER_READY,
            f"{ailing}, {span(round(waited))} after the agent saw the new boot",
            progress=situation.progress,
        )
    look = min(max(SHORTEST_LOOK_SECONDS, waited * _LOOK_SHARE), LOOK_SECONDS)
    return stay(situation, Status(Code.VERIFYING, ailing), Stay(look=look))


def what_ails(situation: Situation) -> str:
    """Why the node is not yet back from its reboot; "" if it is."""
    node, pods = situation.node, known(situation.seen.pods)
    if node.boot_id != boot_id_of(situation.boot):
        return "the kubelet has not reported the new boot"
    if not node.ready:
        return "the node is not ready"
    if missing := [key for key in node.readiness_taints if key not in situation.progress.prior_readiness]:
        taints = ", ".join(missing[:3])
        return f"a NodeReadinessRule has not removed {taints}"
    if pods is None:
        return "the pods of this node cannot be listed"
    return _not_ready(situation, pods, were_ready=True, missing=_missing(situation, pods))


def _new_pods_not_ready(situation: Situation) -> str:
    """The pods that are not ready and whose state before the drain is unknown, because they were created or
    changed after the cordon. The node waits for them until --verify-timeout, then returns to service without them."""
    return _not_ready(situation, known(situation.seen.pods) or (), were_ready=None)


def _missing(situation: Situation, pods: tuple[PodView, ...]) -> list[str]:
    """The DaemonSets and static pods that were ready before the drain and have no pod here now, as text.

    A DaemonSet that was deleted meanwhile, or no longer selects this node, does not count. The agent asks for that only
    once no pod of it is left, not even a failed one, which its controller would replace.
    """
    gone = baseline.missing(situation, pods)
    left = {pod.owner_uid for pod in pods if not pod.is_terminating}
    asked = {row.uid for row in gone if row.kind == baseline.DAEMON_SET and row.uid not in left}
    waited = situation.elapsed(situation.progress.verify_started) or 0.0
    if asked and waited >= _MISSING_SECONDS:
        owners = situation.read(Evidence.OWNERS)
        if owners is not None:
            wanting = {row.uid for row in owners if row.replicas}
            gone = tuple(row for row in gone if row.uid not in asked or row.uid in wanting)
    return [f"{row.title} (no pod)" if row.kind == baseline.DAEMON_SET else f"{row.pod} (missing)" for row in gone]


def _not_ready(
    situation: Situation, pods: tuple[PodView, ...], *, were_ready: bool | None, missing: Iterable[str] = ()
) -> str:
    ailing = sorted(
        [
            *missing,
            *(
                pod.title
                for pod in pods
                if baseline.must_run(situation, pod)
                and (not pod.is_ready or baseline.is_of_old_boot(situation, pod))
                and baseline.was_ready(situation, pod) is were_ready
            ),
        ]
    )
    return f"these pods of this node are not ready: {first_few(ailing)}" if ailing else ""


def _return_to_service(situation: Situation) -> Decision:
    """One patch removes careen's cordon (not one from before the drain), restores the labels, sets those of
    --post-reboot-node-labels and writes the report of the reboot. The soft taint goes unless the host still asks for a
    reboot; if --reboot-loop-limit permits no further one, the node fails with the same patch."""
    seen, policy = situation.seen, situation.policy
    goes_on = seen.need.answer is NeedAnswer.YES
    record, change = working.back_in_service(
        situation,
        NodeChange(
            labels=policy.post_reboot_labels,
            annotations={
                keys.LAST_REBOOT: _report(situation),
                keys.HISTORY: history.with_one_more(situation.node, _reboot(situation)),
                **({keys.REFUSED: None} if keys.REFUSED in situation.node.annotations else {}),
            },
        ),
        keeps_taint=goes_on,
    )
    if goes_on and loop_limit.is_reached(situation):
        return failing.halted(
            situation,
            Code.REBOOT_LOOP,
            f"the host asks for a reboot again after {record.reboots_for_need} confirmed reboots",
            progress=record,
            change=change,
        )
    name = situation.node.name
    return move(
        situation,
        Status(Code.BACK_IN_SERVICE, _back_in_service(situation)),
        Transition(
            Phase.SETTLING,
            record,
            change=change,
            then=(
                telling.about_reboot(
                    situation,
                    Occasion.UNCORDON,
                    f"Node {name} rebooted & uncordoned successfully!",
                    since=situation.progress.drain_started_at,
                ),
            ),
        ),
    )


def _back_in_service(situation: Situation) -> str:
    unready_pods = _new_pods_not_ready(situation)
    back = "the node rebooted, is ready and is back in service"
    return f"{back}; {unready_pods} (none of these pods ran on this node before the drain)" if unready_pods else back


def _report(situation: Situation) -> str:
    progress, now = situation.progress, situation.seen.now
    report = {
        "at": rfc3339(now),
        "bootLeft": progress.boot_left,
        "boot": situation.boot,
        "proof": "soft-reboots" if _is_soft(progress.boot_left, situation.boot) else None,
        "moves": progress.displaced,
        "seconds": _between(progress.drain_started_at, now),
        "needSince": progress.need_since or None,
        "failures": progress.failures or None,
        "drainSeconds": reboot_report.drain_seconds(progress),
        "leadSeconds": _lead(progress),
        "labels": labels_to_report(situation.node, progress, situation.policy) or None,
    }
    return reboot_report.compact(report)


def _reboot(situation: Situation) -> Reboot:
    progress, now = situation.progress, situation.seen.now
    return Reboot(
        at=now,
        why=situation.node.annotations.get(keys.NEED, ""),
        seconds=_between(progress.drain_started_at, now),
        moves=progress.displaced,
        forecast_moves=history.forecast_moves_of(situation.node),
        need_since=from_rfc3339(progress.need_since),
        kernel_left=progress.announced.kernel if progress.announced else "",
        kernel=short(situation.node.kernel, history.LONGEST_KERNEL),
        refused=history.refused_of(situation.node),
    )


def _is_soft(left: str, boot: str) -> bool:
    return SOFT_REBOOTS in boot and boot_id_of(left) == boot_id_of(boot)


def _lead(progress: Progress) -> int | None:
    cordoned_at = from_rfc3339(progress.drain_started_at)
    return _between(progress.tainted_at, cordoned_at) if cordoned_at else None


def _between(earlier: str, later: datetime) -> int | None:
    since = from_rfc3339(earlier)
    return round((later - since).total_seconds()) if since else None
