"""Services and controllers, reduced to the pods that they select."""

from __future__ import annotations

from scheduler_core.model.labels import LabelSelector
from scheduler_core.values import Value


class SelectingOwner(Value, kw_only=True):
    """A Service, ReplicationController, ReplicaSet or StatefulSet. `service_labels` is a Service's or RC's plain
    selector, else None.

    `replicas` is the number in the spec, None for kinds without one. `bound_to` is the node that its pod template
    names."""

    kind: str
    api_version: str
    namespace: str
    name: str
    selector: LabelSelector
    selects_by_labels: tuple[tuple[str, str], ...] | None = None
    replicas: int | None = None
    bound_to: str = ""
