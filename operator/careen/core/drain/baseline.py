"""The health of workloads before a drain, kept in the record and compared after the reboot.

It has a row for each controller of a pod that the drain evicts, and one for each DaemonSet with a pod on this node. A
DaemonSet's row is about that pod only: `replicas` is 1, `ready` is 0 or 1, `generation` is a checksum of the pod's
template revision. Earlier releases read these rows but do not compare them.
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
    """The workloads that must be as healthy after the reboot as before: neither DaemonSets nor Jobs."""
    return tuple(owner for owner in owners if owner.kind not in _NOT_COMPARED)


def taken(situation: Situation, leaving: Iterable[PodView]) -> tuple[OwnerHealth, ...]:
    """The baseline before the cordon: the workloads of the pods in `leaving`, and the DaemonSets on this node."""
    owners, pods, displaced = situation.seen.owners, situation.seen.pods, {pod.owner_uid for pod in leaving}
    workloads = tuple(owner for owner in owners if owner.uid in displaced) if isinstance(owners, tuple) else ()
    return (*workloads, *_daemon_sets(situation, pods if isinstance(pods, tuple) else ()))


def said(rows: Iterable[OwnerHealth]) -> str:
    """A clause that names the DaemonSets whose pods here are not ready, so that the node will not wait for them after
    the reboot; "" without any."""
    not_ready = [row.title for row in rows if row.kind == "DaemonSet" and not row.ready]
    return (
        f"; the node will not wait after its reboot for pods that are not ready now: {first_few(not_ready)}"
        if not_ready
        else ""
    )


def _daemon_sets(situation: Situation, pods: Iterable[PodView]) -> tuple[OwnerHealth, ...]:
    """One row for each DaemonSet, ready if one of its pods here is. At most MOST_DAEMON_SETS, those not ready first."""
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
    """Whether this DaemonSet pod must run on this node. careen's own need not: it becomes ready only after the agent
    has finished its work."""
    policy = situation.policy
    is_own = pod.namespace == policy.daemonset_namespace and pod.owner_name == policy.daemonset_name
    return (
        pod.owner_kind == "DaemonSet"
        and not is_own
        and not pod.is_terminating
        and pod.phase not in ("Succeeded", "Failed")
    )


def was_ready(situation: Situation, pod: PodView) -> bool | None:
    """Whether this DaemonSet's pod here was ready before the drain, given the pod that runs now.

    None, unknown: no row, because the pod is new or the record an earlier release's, or the pod was
    ready but had another template.
    """
    row = next((row for row in situation.progress.owners if row.kind == "DaemonSet" and row.uid == pod.owner_uid), None)
    if row is None or (row.ready and row.generation != _revision(pod)):
        return None
    return bool(row.ready)


def _revision(pod: PodView) -> int:
    """A checksum of the label `controller-revision-hash`, which all pods of one DaemonSet template share; 0 without
    it."""
    revision = pod.labels.get("controller-revision-hash", "")
    return zlib.crc32(revision.encode()) if revision else 0
