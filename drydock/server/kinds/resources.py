"""The kinds of objects that the embedded API server supports, one line each."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceType:
    """One kind, with the names that discovery shows."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    keeps_status_on_create: bool = False
    stored_as: tuple[str, str] = field(default=("", ""))

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def storage(self) -> tuple[str, str]:
        """The group and plural under which objects are stored. Events are served in two groups and stored in one."""
        return self.stored_as if self.stored_as != ("", "") else (self.group, self.plural)

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources

    @property
    def singular(self) -> str:
        return self.kind.lower()

    @property
    def qualified(self) -> str:
        """The name in refusals, such as `deployments.apps` or `pods`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


def _row(
    group_version: str,
    plural: str,
    kind: str,
    scope: str,
    *subresources: str,
    short: str = "",
    keeps_status: bool = False,
    stored_as: tuple[str, str] = ("", ""),
) -> ResourceType:
    group, _, version = group_version.rpartition("/")
    return ResourceType(
        group=group,
        version=version,
        plural=plural,
        kind=kind,
        namespaced=scope == "namespaced",
        short_names=tuple(short.split()),
        subresources=subresources,
        keeps_status_on_create=keeps_status,
        stored_as=stored_as,
    )


RESOURCE_TYPES: tuple[ResourceType, ...] = (
    _row("v1", "namespaces", "Namespace", "cluster", "status", "finalize", short="ns"),
    # A kubelet registers its Node with a status in the same request; only later updates go through the subresource.
    _row("v1", "nodes", "Node", "cluster", "status", short="no", keeps_status=True),
    _row("v1", "pods", "Pod", "namespaced", "status", "eviction", "binding", short="po"),
    _row("v1", "services", "Service", "namespaced", "status", short="svc"),
    _row("v1", "endpoints", "Endpoints", "namespaced", short="ep"),
    _row("v1", "events", "Event", "namespaced", short="ev"),
    _row("v1", "configmaps", "ConfigMap", "namespaced", short="cm"),
    _row("v1", "secrets", "Secret", "namespaced"),
    _row("v1", "serviceaccounts", "ServiceAccount", "namespaced", short="sa"),
    _row("v1", "persistentvolumeclaims", "PersistentVolumeClaim", "namespaced", "status", short="pvc"),
    _row("v1", "persistentvolumes", "PersistentVolume", "cluster", "status", short="pv"),
    _row("v1", "replicationcontrollers", "ReplicationController", "namespaced", "status", "scale", short="rc"),
    _row("v1", "limitranges", "LimitRange", "namespaced", short="limits"),
    _row("v1", "resourcequotas", "ResourceQuota", "namespaced", "status", short="quota"),
    _row("apps/v1", "deployments", "Deployment", "namespaced", "status", "scale", short="deploy"),
    _row("apps/v1", "replicasets", "ReplicaSet", "namespaced", "status", "scale", short="rs"),
    _row("apps/v1", "statefulsets", "StatefulSet", "namespaced", "status", "scale", short="sts"),
    _row("apps/v1", "daemonsets", "DaemonSet", "namespaced", "status", short="ds"),
    _row("apps/v1", "controllerrevisions", "ControllerRevision", "namespaced"),
    _row("batch/v1", "jobs", "Job", "namespaced", "status"),
    _row("batch/v1", "cronjobs", "CronJob", "namespaced", "status", short="cj"),
    _row("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", "namespaced", "status", short="pdb"),
    _row("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", "cluster", short="pc"),
    _row("storage.k8s.io/v1", "storageclasses", "StorageClass", "cluster", short="sc"),
    _row("storage.k8s.io/v1", "csinodes", "CSINode", "cluster"),
    _row("storage.k8s.io/v1", "csidrivers", "CSIDriver", "cluster"),
    _row("storage.k8s.io/v1", "csistoragecapacities", "CSIStorageCapacity", "namespaced"),
    _row("storage.k8s.io/v1", "volumeattachments", "VolumeAttachment", "cluster", "status"),
    _row("coordination.k8s.io/v1", "leases", "Lease", "namespaced"),
    _row("events.k8s.io/v1", "events", "Event", "namespaced", short="ev", stored_as=("", "events")),
    _row("resource.k8s.io/v1", "resourceclaims", "ResourceClaim", "namespaced", "status"),
    _row("resource.k8s.io/v1", "resourceslices", "ResourceSlice", "cluster"),
    _row("resource.k8s.io/v1", "deviceclasses", "DeviceClass", "cluster"),
    _row("rbac.authorization.k8s.io/v1", "roles", "Role", "namespaced"),
    _row("rbac.authorization.k8s.io/v1", "rolebindings", "RoleBinding", "namespaced"),
    _row("rbac.authorization.k8s.io/v1", "clusterroles", "ClusterRole", "cluster"),
    _row("rbac.authorization.k8s.io/v1", "clusterrolebindings", "ClusterRoleBinding", "cluster"),
)

# Asked by POST, answered at once, never kept: `access_reviews.py`.
REVIEW_KINDS: dict[tuple[str, str], str] = {
    ("authorization.k8s.io", "selfsubjectaccessreviews"): "SelfSubjectAccessReview",
    ("authentication.k8s.io", "selfsubjectreviews"): "SelfSubjectReview",
}

BY_PATH: dict[tuple[str, str, str], ResourceType] = {(r.group, r.version, r.plural): r for r in RESOURCE_TYPES}
BY_KIND: dict[tuple[str, str], ResourceType] = {(r.api_version, r.kind): r for r in RESOURCE_TYPES}


def resource_named(plural: str) -> ResourceType:
    """The resource with this plural; of two API groups that have it, the first. Raises KeyError."""
    for row in RESOURCE_TYPES:
        if row.plural == plural:
            return row
    raise KeyError(plural)
