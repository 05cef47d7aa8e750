"""Hints for pods that wait for a change of themselves: scheduling gates removed, resource claims created, their own
preemption ended.

Source: EventsToRegister in plugins/{schedulinggates,dynamicresources,defaultpreemption}, v1.36.
"""

from __future__ import annotations

from typing import Final

from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.model.pod import Pod
from scheduler_core.model.storage.devices import ResourceClaim
from scheduler_core.queue.events import Action, ClusterEvent, EventHint, Resource, never
from scheduler_core.queue.queued_pod import identity


def _is_the_pod_itself(pod: Pod, _old: Pod | None, new: Pod) -> bool:
    return identity(pod) == identity(new)


SCHEDULING_GATES: Final = (
    EventHint(ClusterEvent(Resource.POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED), _is_the_pod_itself),
)

# Only so that the queue calls PreEnqueue again; other plugins' hints decide whether the freed room helps.
DEFAULT_PREEMPTION: Final = (EventHint(ClusterEvent(Resource.POD, Action.DELETE), never),)


def _has_its_claims_now(pod: Pod, _old: Pod | None, new: Pod) -> bool:
    generated = {name for name, _ in new.generated_claims}
    return identity(pod) == identity(new) and all(
        entry.claim_name or entry.name in generated for entry in new.spec.resource_claims
    )


def _claim_changed(pod: Pod, old: ResourceClaim | None, new: ResourceClaim | None) -> bool:
    if new is None:
        return old is not None and old.allocated
    if old is not None and old.allocated and not new.allocated:
        return True  # its devices are free again for any pod
    if new.namespace != pod.namespace or new.name not in _claim_names(pod):
        return False
    return old is None or (old.allocated, old.available_on, old.reserved_for) != (
        new.allocated,
        new.available_on,
        new.reserved_for,
    )


def _claim_names(pod: Pod) -> set[str | None]:
    generated = dict(pod.generated_claims)
    return {entry.claim_name or generated.get(entry.name) for entry in pod.spec.resource_claims}


def dynamic_resources(kube_version: KubeVersion) -> tuple[EventHint, ...]:
    of_claims = Action.ADD | Action.UPDATE
    if kube_version.deleted_claims_requeue:
        of_claims |= Action.DELETE
    return (
        EventHint(ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE)),
        EventHint(ClusterEvent(Resource.RESOURCE_CLAIM, of_claims), _claim_changed),
        EventHint(ClusterEvent(Resource.POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM), _has_its_claims_now),
        EventHint(ClusterEvent(Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE)),
        EventHint(ClusterEvent(Resource.RESOURCE_SLICE, Action.ADD | Action.UPDATE)),
    )
