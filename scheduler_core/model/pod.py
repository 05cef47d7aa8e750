"""The fields of a pod that scheduling reads: its own, such as its name, and a spec.

Pods of one template share one spec object, so results that depend only on the spec are computed once. requests.py adds
up requests; from_manifest.py has the JSON names.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import field

from scheduler_core.model.labels import LabelSelector, NodeAffinityRules
from scheduler_core.model.resources import whole_amounts
from scheduler_core.model.taints import Toleration
from scheduler_core.sentences import amounts, html_table
from scheduler_core.values import Value, replace_value


class HostPort(Value):
    """A missing IP means 0.0.0.0, a missing protocol TCP."""

    ip: str
    protocol: str
    port: int

    def conflicts_with(self, other: HostPort) -> bool:
        """Same protocol and port, and equal IPs or one IP 0.0.0.0. "::" conflicts only with "::" and 0.0.0.0
        (v1.36)."""
        if self.port != other.port or self.protocol != other.protocol:
            return False
        return self.ip == other.ip or "0.0.0.0" in (self.ip, other.ip)  # noqa: S104 -- compared, never bound


class Container(Value, kw_only=True):
    """`requests` and `limits` are in nano-units (10⁻⁹ of a unit). `restarts_always` distinguishes sidecars from other
    init containers. `may_restart_all`: a restart rule has the action RestartAllContainers."""

    name: str
    image: str = ""
    requests: Mapping[str, int] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    restarts_always: bool = False
    host_ports: tuple[HostPort, ...] = ()
    may_restart_all: bool = False


class PodAffinityTerm(Value, kw_only=True):
    """Selects pods by labels, in the named namespaces or in namespaces whose labels match, and counts them for each
    value of `topology_key`.

    If the API object has neither namespaces nor a namespace selector, `namespaces` has the namespace of the pod that
    owns the term.
    """

    topology_key: str
    selector: LabelSelector
    namespaces: frozenset[str]
    namespace_selector: LabelSelector

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """Whether the term selects a pod with these labels in this namespace."""
        return (
            namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)
        ) and self.selector.matches(labels)


class WeightedPodAffinityTerm(Value):
    weight: int
    term: PodAffinityTerm


class PodAffinity(Value, kw_only=True):
    """The terms of an affinity or an anti-affinity."""

    required: tuple[PodAffinityTerm, ...] = ()
    preferred: tuple[WeightedPodAffinityTerm, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.required or self.preferred)


class TopologySpreadConstraint(Value, kw_only=True):
    max_skew: int
    topology_key: str
    when_unsatisfiable: str = "DoNotSchedule"
    selector: LabelSelector
    min_domains: int | None = None
    honors_affinity: bool = True
    honors_taints: bool = False
    match_label_keys: tuple[str, ...] = ()


class LegacyDisk(Value, kw_only=True):
    """An in-tree disk that a pod uses without a claim. `kind` is the API's field name, such as gcePersistentDisk or
    rbd; `identity` the disk's name (pdName, volumeID, iqn, image, diskName). Only rbd uses `monitors` and `pool`."""

    kind: str
    identity: str
    read_only: bool = False
    monitors: tuple[str, ...] = ()
    pool: str = ""
    lun: int = 0
    partition: str = ""


class PodVolume(Value, kw_only=True):
    """A claim by name, a claim made for this pod (`ephemeral`), a legacy disk, an image, or a volume of a CSI driver.
    For any other volume, only `kind` is set."""

    name: str
    kind: str = ""
    claim_name: str | None = None
    read_only: bool = False
    ephemeral: bool = False
    legacy_disk: LegacyDisk | None = None
    csi_driver: str = ""
    image: str = ""


class PodResourceClaim(Value, kw_only=True):
    """An entry of spec.resourceClaims: a claim by name, or a template from which a claim is made."""

    name: str
    claim_name: str = ""
    template_name: str = ""


class PodSpec(Value, kw_only=True, eq=False, weakref=True):
    """What all pods of a template share. Compared by identity: the reader creates only one object for equal specs."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: Mapping[str, int] = field(default_factory=dict)
    pod_level_requests: Mapping[str, int] | None = None
    pod_level_limits: Mapping[str, int] | None = None
    scheduler_name: str = "default-scheduler"
    priority: int = 0
    preemption_policy: str = "PreemptLowerPriority"
    node_selector: tuple[tuple[str, str], ...] = ()
    node_affinity: NodeAffinityRules | None = None
    pod_affinity: PodAffinity = PodAffinity()
    pod_anti_affinity: PodAffinity = PodAffinity()
    tolerations: tuple[Toleration, ...] = ()
    topology_spread: tuple[TopologySpreadConstraint, ...] = ()
    volumes: tuple[PodVolume, ...] = ()
    scheduling_gates: tuple[str, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    host_network: bool = False
    host_users: bool = True
    # Read without what it says of its place, to save memory: where the pod may go is unknown.
    is_left_out: bool = False
    is_of_group: bool = False  # placed together with the other pods of a PodGroup or Workload

    @property
    def host_ports(self) -> tuple[HostPort, ...]:
        """Of containers and sidecars. Other init containers have ended before the pod uses its ports."""
        return tuple(
            port
            for c in (*self.containers, *(c for c in self.init_containers if c.restarts_always))
            for port in c.host_ports
        )

    @property
    def has_claims_or_disks(self) -> bool:
        """Whether a volume uses a PersistentVolumeClaim, also one made for this pod (`ephemeral`), or is a legacy disk.
        Only these volumes can restrict the choice of the node."""
        return any(
            volume.claim_name is not None or volume.ephemeral or volume.legacy_disk is not None
            for volume in self.volumes
        )


class OwnerReference(Value, weakref=True):
    api_version: str
    kind: str
    name: str
    uid: str = ""


class ContainerResize(Value, kw_only=True):
    """By the container's status, in nano-units: `actuated` (status.resources.requests) and `allocated`
    (status.allocatedResources); None if the status does not have them. `has_resources`: it has status.resources."""

    actuated: Mapping[str, int] | None
    allocated: Mapping[str, int] | None
    has_resources: bool = True


class PodResize(Value, kw_only=True, weakref=True):
    """The state of an in-place resize. `is_infeasible`: the node reported it as infeasible."""

    containers: Mapping[str, ContainerResize]
    pod_level: ContainerResize | None = None
    is_infeasible: bool = False


class WrittenRefusal(Value):
    """The condition PodScheduled=False in a pod's status: why the scheduler placed it nowhere the last time."""

    reason: str
    message: str


class Pod(Value, kw_only=True, gc=False):
    """`start_time` in seconds since the epoch, None before the pod started. `terminating`: it has a deletion
    timestamp."""

    name: str
    namespace: str = "default"
    uid: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    spec: PodSpec = field(default_factory=PodSpec)
    owner: OwnerReference | None = None
    node_name: str = ""
    nominated_node_name: str = ""
    phase: str = "Pending"
    terminating: bool = False
    start_time: float | None = None
    is_mirror: bool = False
    is_ready: bool = False
    preempted_by_scheduler: bool = False
    resize: PodResize | None = None
    generated_claims: tuple[tuple[str, str | None], ...] = ()
    wants_rest: str = ""  # the annotation that asks autoscalers not to disturb the pod, such as `KEY=VALUE`
    index_failures: int = 0  # in an Indexed Job: how often pods of the same index failed before
    refusal: WrittenRefusal | None = None  # of a pod without a node

    def __repr__(self) -> str:
        node = repr(self.node_name) if self.node_name else None
        return f"<Pod {self.key!r} node={node} priority={self.priority}{' terminating' * self.terminating}>"

    def _repr_html_(self) -> str:
        """For notebooks: what the pod asks for."""
        containers = (*self.spec.init_containers, *self.spec.containers)
        rows = [
            ("pod", self.key),
            ("node", self.node_name or "none"),
            ("priority", self.priority),
            ("owner", f"{self.owner.kind} {self.owner.name}" if self.owner else "none"),
            ("labels", " ".join(map("=".join, self.labels.items())) or "none"),
            *((f"requests of {each.name}", amounts(whole_amounts(each.requests)) or "none") for each in containers),
        ]
        return html_table(("field", "value"), rows)

    @property
    def key(self) -> str:
        """ "namespace/name"."""
        return f"{self.namespace}/{self.name}"

    @property
    def priority(self) -> int:
        return self.spec.priority

    @property
    def is_finished(self) -> bool:
        """Succeeded or failed: the scheduler ignores it."""
        return self.phase in ("Succeeded", "Failed")

    def on_node(self, node_name: str) -> Pod:
        return replace_value(self, node_name=node_name, nominated_node_name="", refusal=None)


RESTING: tuple[tuple[str, str], ...] = (
    ("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"),  # cluster autoscaler
    ("karpenter.sh/do-not-disrupt", "true"),  # Karpenter
    ("karpenter.sh/do-not-evict", "true"),  # Karpenter before v1beta1
)
"""The annotations and their values."""
_TEXTS = tuple((key, value, f"{key}={value}") for key, value in RESTING)


def wants_rest(annotations: Mapping[str, str]) -> str:
    """The first of these annotations, such as `karpenter.sh/do-not-disrupt=true`; "" without one."""
    return next((text for key, value, text in _TEXTS if annotations.get(key) == value), "")
