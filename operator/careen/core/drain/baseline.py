"""The health of workloads before a drain, kept in the record and compared after the reboot.

It has a row for each controller of a pod that the drain evicts, one for each DaemonSet with a pod on this node, and one
for each static pod. The rows of the last two are about one pod: `replicas` is 1, `ready` is 0 or 1, `generation` of a
DaemonSet's is a checksum of the pod's template revision. Earlier releases read these rows but do not compare them.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable

from careen.core.facts.observation import PodView
from careen.core.facts.phases import Phase
from careen.core.facts.progress import OwnerHealth, Progress
from careen.core.situation import Situation
from scheduler_core.sentences import first_few
from scheduler_core.values import replace_value as replace

# The kubelet's default limit of pods on a node. The rows must fit into an annotation: each takes about 100 bytes.
MOST_DAEMON_SETS = 110
LOOK_SECONDS = 1.0
SLOW_LOOK_SECONDS = 5.0  # a workload that has not recovered by now takes minutes
_SOON_BACK_SECONDS = 30.0
MOST_STATIC_PODS = 20  # a control plane has five

DAEMON_SET, STATIC_POD, _JOB = "DaemonSet", "StaticPod", "Job"


def is_of_the_node(row: OwnerHealth) -> bool:
    """Whether the row is about a pod that belongs to the node: the drain leaves it there."""
    return row.kind == STATIC_POD or _is_daemon_set(row)


def _is_daemon_set(row: OwnerHealth) -> bool:
    return _without_group(row.kind) == DAEMON_SET


def _without_group(kind: str) -> str:
    return kind.partition(".")[0]


def services(owners: Iterable[OwnerHealth]) -> tuple[OwnerHealth, ...]:
    """The workloads that must be as healthy after the reboot as before: neither DaemonSets nor Jobs nor static
    pods.

    A Job is work and not a service. A Job that has ended never has ready pods again, and the status of a running one
    does not say when its back-off (10 s to 10 minutes after an eviction) lets it create the next pod.
    """
    return tuple(owner for owner in owners if _without_group(owner.kind) != _JOB and not is_of_the_node(owner))


def compared(owners: Iterable[OwnerHealth]) -> tuple[OwnerHealth, ...]:
    """The `services` that had ready pods: without any before, a workload cannot become worse."""
    return tuple(owner for owner in services(owners) if owner.ready)


def daemon_sets(owners: Iterable[OwnerHealth]) -> tuple[OwnerHealth, ...]:
    """The rows of DaemonSets that careen can read and whose pod was ready."""
    return tuple(owner for owner in owners if owner.kind == DAEMON_SET and owner.ready)


def taken(situation: Situation, leaving: Iterable[PodView]) -> tuple[OwnerHealth, ...]:
    """The baseline before the cordon: the workloads of the pods in `leaving`, and the DaemonSets on this node."""
    owners, pods, displaced = situation.seen.owners, situation.seen.pods, {pod.owner_uid for pod in leaving}
    workloads = tuple(owner for owner in owners if owner.uid in displaced) if isinstance(owners, tuple) else ()
    here = pods if isinstance(pods, tuple) else ()
    return (*workloads, *_daemon_sets(situation, here), *_static_pods(here))


def unrecorded(situation: Situation, evicted: Iterable[PodView]) -> frozenset[str]:
    """The UIDs of controllers of these pods that the record lacks: their first pod came after the baseline, for example
    from another node's drain."""
    recorded = {row.uid for row in situation.progress.owners}
    return frozenset(pod.owner_uid for pod in evicted if pod.owner_uid and not pod.is_work) - recorded


def at_reboot(situation: Situation) -> tuple[OwnerHealth, ...]:
    """The record's rows, without static pods that are gone although the kubelet still runs: somebody removed their
    manifests."""
    rows, pods = situation.progress.owners, situation.seen.pods
    if not isinstance(pods, tuple):
        return rows
    return tuple(row for row in rows if row.kind != STATIC_POD or any(_is_about(row, pod) for pod in pods))


def worse(before: Iterable[OwnerHealth], now: Iterable[OwnerHealth]) -> tuple[tuple[OwnerHealth, int, int], ...]:
    """The workloads with fewer ready pods than before the drain and than are wanted now: each with the number of its
    ready pods and the number that is missing nothing.

    All ReplicaSets of one parent count as one workload, so a roll-out that replaces one by another hides nothing. A
    workload without a parent that was scaled down or deleted counts together with those that were created in its place.
    """
    rows = compared(before)
    were, wanted, ready = Counter[str](), Counter[str](), Counter[str]()
    for row in rows:
        were[_key(row)] += row.ready
    others: Counter[tuple[str, str, str]] = Counter()
    for row in now:
        if _key(row) in were:
            wanted[_key(row)] += row.replicas
            ready[_key(row)] += row.ready
        elif not row.parent:
            others[row.kind, row.namespace, "wanted"] += row.replicas
            others[row.kind, row.namespace, "ready"] += row.ready
    found: dict[str, tuple[OwnerHealth, int, int]] = {}
    for row in rows:
        key, place = _key(row), (row.kind, row.namespace)
        is_replaced = not row.parent and wanted[key] < were[key]
        have = ready[key] + (others[*place, "ready"] if is_replaced else 0)
        need = min(were[key], wanted[key] + (others[*place, "wanted"] if is_replaced else 0))
        if have < need:
            found.setdefault(key, (row, have, need))
    return tuple(found.values())


def what_ails(before: Iterable[OwnerHealth], now: tuple[OwnerHealth, ...] | None) -> str:
    """The workloads with fewer ready pods than before the drain, although they are still wanted; "" if there are
    none."""
    rows = compared(before)
    if not rows:
        return ""
    if now is None:
        return "the health of the displaced workloads cannot be read"
    ailing = [f"{row.title} ({have} of {need} pods ready)" for row, have, need in worse(rows, now)]
    return f"these workloads are not yet as healthy as before the drain: {first_few(ailing)}" if ailing else ""


def what_moves(before: Iterable[OwnerHealth], now: tuple[OwnerHealth, ...] | None) -> str:
    """The operators' workloads with more pods than before the drain: an operator still moves one, and the baseline of
    the next node would count it twice. "" without any."""
    rows = {row.uid: row for row in compared(before) if is_foreign(row)}
    found = [row for row in now or () if row.uid in rows and row.alive > rows[row.uid].replicas]
    moving = [f"{row.title} ({row.alive} pods instead of {rows[row.uid].replicas})" for row in found]
    return f"pods of these workloads are still being moved: {first_few(moving)}" if moving else ""


def look_seconds(waited: float) -> float:
    """The pause until the agent counts the workloads' pods again."""
    return LOOK_SECONDS if waited < _SOON_BACK_SECONDS else SLOW_LOOK_SECONDS


def with_earlier(
    rows: Iterable[OwnerHealth], earlier: Iterable[OwnerHealth], at_work: Iterable[Progress] = ()
) -> tuple[OwnerHealth, ...]:
    """The baseline, with workloads as healthy as before earlier drains: those that did not recover from one
    (--settle-policy=continue), and those of the nodes at work, which may have taken pods away. What these have taken
    is lent (`containers`): as long as they hold their claims, they answer for it themselves (`due`).

    A workload of an operator may also have more pods than ever, because a drain under way moves them. Then the number
    from before that drain counts."""
    taken_rows, found = tuple(rows), []
    owed, have = _ready(earlier), _ready(taken_rows)
    before, steady = Counter[str](), Counter[str]()
    for record in at_work:
        counted = _ready(record.owners)
        before |= counted
        steady |= counted if record.phase == Phase.DRAINING or record.is_releasing else Counter()
    for row in taken_rows:
        key = _key(row)
        now = have.pop(key, None)
        if not services((row,)) or now is None:
            found.append(row)
        elif is_foreign(row) and 0 < steady[key] < now:
            found.append(replace(row, ready=steady[key], replicas=steady[key]))
        else:
            more = max(0, owed[key] - now)
            lent = max(0, before[key] - now - more)
            ready = row.ready + more + lent
            found.append(replace(row, ready=ready, replicas=max(row.replicas, ready), containers=lent))
    return tuple(found)


def due(situation: Situation) -> tuple[OwnerHealth, ...]:
    """The record's workloads, without what is lent to nodes that took their claims earlier and still hold them."""
    rows = situation.progress.owners
    if not situation.older_holders:
        return rows
    return tuple(
        row if not services((row,)) else replace(row, ready=max(0, row.ready - row.containers)) for row in rows
    )


def _ready(rows: Iterable[OwnerHealth]) -> Counter[str]:
    ready = Counter[str]()
    for row in rows:
        ready[_key(row)] += row.ready
    return ready


def is_foreign(row: OwnerHealth) -> bool:
    """Whether careen cannot read the workload's kind, so that its numbers are counts of its pods. What the API server
    stores with replicas has a generation."""
    return row.generation == 0 and not is_of_the_node(row)


def still_owed(
    earlier: Iterable[OwnerHealth], before: Iterable[OwnerHealth], now: tuple[OwnerHealth, ...] | None
) -> tuple[OwnerHealth, ...]:
    """The workloads that have not recovered, for the next baselines: those of this record that are worse than before
    (all, if their health is unknown), and those of earlier records that this one does not have."""
    rows = compared(before)
    bad = {_key(row) for row in rows} if now is None else {_key(row) for row, _, _ in worse(rows, now)}
    ours = {_key(row) for row in rows}
    return (*(row for row in earlier if _key(row) not in ours), *(row for row in rows if _key(row) in bad))


def _key(row: OwnerHealth) -> str:
    return row.parent or row.uid


def said(rows: Iterable[OwnerHealth]) -> str:
    """A clause that names the DaemonSets and static pods here that are not ready, so that the node will not wait for
    them after the reboot; "" without any."""
    not_ready = [row.title for row in rows if is_of_the_node(row) and not row.ready]
    return (
        f"; the node will not wait after its reboot for pods that are not ready now: {first_few(not_ready)}"
        if not_ready
        else ""
    )


def _daemon_sets(situation: Situation, pods: Iterable[PodView]) -> tuple[OwnerHealth, ...]:
    """One row for each DaemonSet, ready if one of its pods here is. At most MOST_DAEMON_SETS, those not ready first."""
    rows: dict[str, OwnerHealth] = {}
    ours = (pod for pod in pods if pod.owner_kind == DAEMON_SET and must_run(situation, pod))
    for pod in sorted(ours, key=lambda pod: pod.is_ready):
        rows[pod.owner_uid] = OwnerHealth(
            kind=pod.kind_of_owner,
            namespace=pod.namespace,
            name=pod.owner_name,
            uid=pod.owner_uid,
            generation=_revision(pod),
            replicas=1,
            ready=int(pod.is_ready),
            containers=pod.containers,
        )
    return tuple(sorted(rows.values(), key=lambda row: (row.ready, row.namespace, row.name))[:MOST_DAEMON_SETS])


def _static_pods(pods: Iterable[PodView]) -> tuple[OwnerHealth, ...]:
    """One row for each static pod, by its name: the kubelet may give it another UID after the boot."""
    rows = (
        OwnerHealth(
            kind=STATIC_POD,
            namespace=pod.namespace,
            name=pod.name,
            uid=pod.uid,
            generation=0,
            replicas=1,
            ready=int(pod.is_ready),
            containers=pod.containers,
        )
        for pod in pods
        if pod.is_mirror and not pod.is_finished
    )
    return tuple(sorted(rows, key=lambda row: (row.ready, row.namespace, row.name))[:MOST_STATIC_PODS])


def is_of_old_boot(situation: Situation, pod: PodView) -> bool:
    """Whether the API still shows the pod as it was before the drain: the kubelet of the new boot starts each container
    again, so its report differs."""
    row = next((row for row in situation.progress.owners if _is_about(row, pod)), None)
    return row is not None and 0 < row.containers == pod.containers


def _is_about(row: OwnerHealth, pod: PodView) -> bool:
    if row.kind == STATIC_POD:
        return pod.is_mirror and (row.namespace, row.name) == (pod.namespace, pod.name)
    return _is_daemon_set(row) and row.uid == pod.owner_uid


def missing(situation: Situation, pods: Iterable[PodView]) -> tuple[OwnerHealth, ...]:
    """The rows of DaemonSets and static pods that were ready before the drain, and of which no pod runs here now."""
    running = [pod for pod in pods if not pod.is_terminating and not pod.is_finished]
    rows = (row for row in situation.progress.owners if is_of_the_node(row) and row.ready)
    return tuple(row for row in rows if not any(_is_about(row, pod) for pod in running))


def must_run(situation: Situation, pod: PodView) -> bool:
    """Whether this pod of a DaemonSet, or static pod, must run on this node. careen's own need not: it becomes ready
    only after the agent has finished its work."""
    policy = situation.policy
    is_own = pod.namespace == policy.daemonset_namespace and pod.owner_name == policy.daemonset_name
    return (
        (pod.owner_kind == DAEMON_SET or pod.is_mirror)
        and not is_own
        and not pod.is_terminating
        and not pod.is_finished
    )


def was_ready(situation: Situation, pod: PodView) -> bool | None:
    """Whether the pod of this DaemonSet or this static pod was ready before the drain, given the pod that runs now.

    None, unknown: no row, because the pod is new or the record an earlier release's, or the pod was
    ready but had another template.
    """
    row = next((row for row in situation.progress.owners if _is_about(row, pod)), None)
    if row is None or (_is_daemon_set(row) and row.ready and row.generation != _revision(pod)):
        return None
    return bool(row.ready)


def _revision(pod: PodView) -> int:
    """A checksum of the label `controller-revision-hash`, which all pods of one DaemonSet template share; 0 without
    it."""
    revision = pod.labels.get("controller-revision-hash", "")
    return zlib.crc32(revision.encode()) if revision else 0
