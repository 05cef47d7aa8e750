"""Records the health of workloads before a drain. careen's record on the Node (`facts/progress.py`) keeps this
baseline, and after the reboot the agent compares the workloads with it.

The record has one row for each controller of a pod that the drain evicts, and one for each DaemonSet with a pod on this
node. The row of a DaemonSet describes only the DaemonSet's pod on this node: `replicas` is 1, `ready` is 0 or 1, and
`generation` is a checksum of the pod's template revision. Earlier releases of careen read the DaemonSets' rows but do
not compare them with the state after the reboot.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from careen.core.facts.observation import PodView
from careen.core.facts.progress import OwnerHealth
from careen.core.situation import Situation
from scheduler_core.sentences import first_few

# The kubelet's default limit of pods on a node. The rows must fit into an annotation: each takes about 100 bytes.
MOST_DAEMON_SETS = 110

# A Job is work and not a service. A Job that has ended never has ready pods again, and the status of a running one does
# not say when its back-off (10 s to 10 minutes after an eviction) lets it create the next pod.
_NOT_COMPARED = frozenset({"Job", "DaemonSet"})


def services(owners: Iterable[OwnerHealth]) -> tuple[OwnerHealth, ...]:
    """Return the rows of `owners` for workloads that must be as healthy after the reboot as before it. Rows of
    DaemonSets and Jobs are left out."""
    return tuple(owner for owner in owners if owner.kind not in _NOT_COMPARED)


def taken(situation: Situation, leaving: Iterable[PodView]) -> tuple[OwnerHealth, ...]:
    """Return the baseline for the record on the Node, with the health before the cordon: one row for each workload of
    the pods in `leaving`, and one row for each DaemonSet with a pod on this node."""
    owners, pods, displaced = situation.seen.owners, situation.seen.pods, {pod.owner_uid for pod in leaving}
    workloads = tuple(owner for owner in owners if owner.uid in displaced) if isinstance(owners, tuple) else ()
    return (*workloads, *_daemon_sets(situation, pods if isinstance(pods, tuple) else ()))


def said(rows: Iterable[OwnerHealth]) -> str:
    """Return a clause that names the DaemonSets whose pods on this node are not ready now, and says that the node will
    not wait for these pods after the reboot. Return an empty text if all DaemonSet pods are ready."""
    not_ready = [row.title for row in rows if row.kind == "DaemonSet" and not row.ready]
    return (
        f"; the node will not wait after its reboot for pods that are not ready now: {first_few(not_ready)}"
        if not_ready
        else ""
    )


def _daemon_sets(situation: Situation, pods: Iterable[PodView]) -> tuple[OwnerHealth, ...]:
    """Return one row for each DaemonSet. `ready` is 1 if one of the DaemonSet's pods on this node is ready. Rows of
    DaemonSets that are not ready come first, because at most MOST_DAEMON_SETS rows are returned."""
    rows: dict[str, OwnerHealth] = {}
    for pod in sorted((pod for pod in pods if must_run(situation, pod)), key=lambda pod: pod.is_ready):
        rows[pod.owner_uid] = OwnerHealth(
            kind="DaemonSet",
            namespace=pod.namespace,
            name=pod.owner_name,
            uid=pod.owner_uid,
            generation=_revision(pod),
            replicas=1,
            ready=int(pod.is_ready),
        )
    return tuple(sorted(rows.values(), key=lambda row: (row.ready, row.namespace, row.name))[:MOST_DAEMON_SETS])


def must_run(situation: Situation, pod: PodView) -> bool:
    """Whether the pod belongs to a DaemonSet and must run on this node. False for pods of careen's own DaemonSet,
    because the agent's pod becomes ready only after the agent has finished its work."""
    policy = situation.policy
    is_own = pod.namespace == policy.daemonset_namespace and pod.owner_name == policy.daemonset_name
    return (
        pod.owner_kind == "DaemonSet"
        and not is_own
        and not pod.is_terminating
        and pod.phase not in ("Succeeded", "Failed")
    )


def was_ready(situation: Situation, pod: PodView) -> bool | None:
    """Whether this DaemonSet's pod on this node was ready before the drain. `pod` is the pod that runs on the node now.

    The result is None, which means unknown, in two cases:
    * The record on the Node has no row for the DaemonSet. Possible causes: the DaemonSet had no pod on this node before
      the drain, or an earlier release wrote the record.
    * The DaemonSet's pod was ready before the drain, but it had another template than `pod`.
    """
    row = next((row for row in situation.progress.owners if row.kind == "DaemonSet" and row.uid == pod.owner_uid), None)
    if row is None or (row.ready and row.generation != _revision(pod)):
        return None
    return bool(row.ready)


def _revision(pod: PodView) -> int:
    """Return a checksum of the pod's label `controller-revision-hash`, by which the DaemonSet controller marks all pods
    of the same template. Return 0 without that label."""
    revision = pod.labels.get("controller-revision-hash", "")
    return zlib.crc32(revision.encode()) if revision else 0
