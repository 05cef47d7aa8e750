"""Services and controllers: which pods they select."""

from __future__ import annotations

from scheduler_core.model.labels import LabelSelector
from scheduler_core.values import Value


class SelectingOwner(Value, kw_only=True):
    """A Service, ReplicationController, ReplicaSet or StatefulSet. `selects_by_labels`: the label map of a Service or
    ReplicationController, None for the other kinds.

    `replicas`: as in the spec, None for a kind without replicas. `bound_to` and `template_labels`: spec.nodeName
    and the sorted labels of the pod template.
    """

    kind: str
    api_version: str
    namespace: str
    name: str
    selector: LabelSelector
    selects_by_labels: tuple[tuple[str, str], ...] | None = None
    replicas: int | None = None
    bound_to: str = ""
    template_labels: tuple[tuple[str, str], ...] = ()
