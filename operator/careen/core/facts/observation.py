"""What an agent sees of Nodes, pods, people, alerts and its host, as values; `core/observation.py` puts them together.

Two values say that a fact is not known, each with its reason: `Unknown` and `NotAsked`. Neither means no. Uptimes are
seconds since the host's boot by the host's clock: they go on across restarts of the agent and start again with each
boot.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import TypeVar, Union

from msgspec import field
from msgspec.structs import force_setattr

from careen.core.facts import keys
from careen.core.facts.phases import Phase
from careen.core.facts.progress import Progress, UnreadableProgress, consistent, from_annotation
from careen.core.facts.times import from_rfc3339
from scheduler_core.model.disruption_budget import DisruptionBudget
from scheduler_core.values import Value


class Unknown(Value):
    """A fact that the agent could not read; `why` is a sentence for people."""

    why: str


class NotAsked(Value):
    """A fact that the agent has not tried to read in this turn. A decision that needs it names it in `wants`."""

    @property
    def why(self) -> str:
        """Why the fact is not known, for people."""
        return "the agent has not read this fact in this turn"


class Gone(Value):
    """The agent's own Node does not exist (404 from a consistent read)."""


NOT_ASKED = NotAsked()
_NO_RECORD = from_annotation(None)

_T = TypeVar("_T")
Asked = Union[_T, Unknown, NotAsked]  # noqa: UP007 - a generic alias needs Union before Python 3.12


class Taint(Value, kw_only=True):
    """A taint of a Node. `time_added` stays text: it is written back unchanged."""

    key: str
    effect: str
    value: str | None = None
    time_added: str | None = None


_IDLE = Phase.IDLE.value  # read once: for thousands of Nodes the enum's attribute costs more than the rest
READINESS_PREFIX = "readiness.k8s.io/"
"""The prefix of the taints that node-readiness-controller puts on a node while the conditions of a NodeReadinessRule
do not hold (kubernetes-sigs/node-readiness-controller, api/v1alpha1)."""


class NodeView(Value, kw_only=True):
    """The parts of a Node that careen reads. `boot_id` is what the kubelet last reported; empty if nothing."""

    name: str
    uid: str
    resource_version: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = True  # condition Ready is "True"; "False" and "Unknown" are not ready
    ready_since: datetime | None = None  # when the condition Ready last changed, if it is not "True"
    agent_wrote: datetime | None = None  # the last write of a careen agent, where the server records it
    boot_id: str = ""
    kernel: str = ""  # its release, as the kubelet last reported it
    addresses: tuple[str, ...] = ()  # IP addresses and host names; only of the agent's own Node
    is_being_deleted: bool = False  # has a deletionTimestamp: finalizers hold it, for example of Karpenter
    cordoned_by: tuple[str, ...] = ()  # field managers of the present `spec.unschedulable`; empty: unknown
    cordoned_at: datetime | None = None  # their last write; decisions do without it
    tainted_by: tuple[str, ...] = ()  # field managers of the present `spec.taints`; empty: unknown
    volumes: tuple[str, ...] = ()  # attached to the node or in use there; only for the own Node
    written_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of careen's labels and annotations
    written: Progress | UnreadableProgress = _NO_RECORD  # always parsed from the annotations; an argument is ignored

    def __post_init__(self) -> None:
        force_setattr(self, "written", from_annotation(self.annotations.get(keys.PROGRESS)))

    @property
    def record(self) -> Progress | UnreadableProgress:
        """careen's record on the Node, or why it cannot be read or contradicts itself. The agents of all nodes use this
        property, so that they agree on which records are unusable."""
        return consistent(self.written)

    @property
    def need_since(self) -> datetime | None:
        """When its agent first saw the need; None without a readable record."""
        record = self.record
        return from_rfc3339(record.need_since) if isinstance(record, Progress) else None

    @property
    def shown_phase(self) -> str:
        """By the annotation for people; Idle without one."""
        return self.annotations.get(keys.PHASE, _IDLE)

    @property
    def readiness_taints(self) -> tuple[str, ...]:
        """The keys of the taints of NodeReadinessRules, sorted."""
        return tuple(sorted({taint.key for taint in self.taints if taint.key.startswith(READINESS_PREFIX)}))

    @property
    def zone(self) -> str:
        """Empty if the Node has none."""
        return self.labels.get(keys.ZONE) or self.labels.get(keys.ZONE_BETA) or ""

    @property
    def is_control_plane(self) -> bool:
        """By the present label or `node-role.kubernetes.io/master` from before Kubernetes 1.24."""
        return keys.CONTROL_PLANE in self.labels or keys.MASTER in self.labels


class SignedNode(Value, kw_only=True):
    """A Node with the field managers of its labels and annotations, as far as the API server reports them."""

    node: NodeView
    labels_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    annotations_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class NeedAnswer(StrEnum):
    """Whether the host asks for a reboot."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class RequestKind(StrEnum):
    """What a person can request for a node."""

    REBOOT = "reboot"
    DRAIN = "drain"  # and stay drained until a person hands the node back
    MAINTENANCE = "maintenance"  # the same, for work by hand


class PersonRequest(Value, kw_only=True):
    """A person's request for this node; see `core/people/requests.py`."""

    kind: RequestKind
    reason: str = ""
    at: datetime | None = None  # when the person made it
    until: datetime | None = None  # when it ends by itself
    boot: str = ""  # for a reboot: the boot that it is to end
    is_now: bool = False  # also outside of windows and intervals, as with careen.dev/reboot-now


class Need(Value, kw_only=True):
    """Whether the host needs a reboot. `detail` says which facts decided, or why the answer is unknown. With `request`,
    a person asked for the drain, whatever the host says."""

    answer: NeedAnswer
    detail: str = ""
    package_manager: str = ""  # which package manager is at work on the host, empty when none or not looked at
    request: PersonRequest | None = None


class SelfTest(Value, kw_only=True):
    """What the agent's self-test found before it asks the host to reboot; empty fields: nothing."""

    obstacle: str = ""  # why the host certainly would not reboot
    warning: str = ""  # what a reboot would lose although it succeeds


class Fleet(Value, kw_only=True):
    """Every Node of the cluster. `read_at_uptime` is when the list was *requested*, so that it never seems younger than
    it is."""

    nodes: tuple[NodeView, ...]
    read_at_uptime: float
    group_sizes: Mapping[str, int] | None = None  # by the budgets' groups; None: count the members in `nodes`


class Holders(Value, kw_only=True):
    """The Nodes of the claims, read after the lock. `absent` are names in the lock without a Node."""

    nodes: tuple[NodeView, ...] = ()
    absent: frozenset[str] = frozenset()


class PlacedPod(Value, kw_only=True):
    """A pod anywhere in the cluster that an entry of --blocking-pods selects."""

    title: str  # namespace/name
    node: str  # empty while no scheduler has placed it
    rule: str  # the name of the entry


_KINDS = frozenset({"ReplicaSet", "StatefulSet", "ReplicationController", "DaemonSet", "Job"})


class PodView(Value, kw_only=True):
    """The parts of a pod on this node that a drain reads."""

    namespace: str
    name: str
    uid: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    phase: str = "Running"
    owner_kind: str = ""  # of the controller reference (controller=true); empty for a bare pod
    owner_name: str = ""
    owner_uid: str = ""
    owner_api_version: str = "apps/v1"
    is_mirror: bool = False  # carries kubernetes.io/config.mirror: a static pod's image in the API
    has_empty_dir: bool = False
    is_ready: bool = True
    priority: int = 0
    deletion_timestamp: datetime | None = (
        None  # when the pod should be gone: the API server's clock plus the grace period
    )
    deletion_grace_seconds: float | None = None
    created_at: datetime | None = None  # by the API server's clock, cut to the second
    tolerates_cordon: bool = False  # the scheduler puts it on a cordoned node as well
    spreads_over_zones: bool = False  # by a required rule, so its replacement stays in the zone
    came_bound: bool | None = None  # created with its node's name, so no scheduler placed it; None: unknown
    finalizers: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()  # names of the PersistentVolumeClaims that it mounts
    is_work: bool = False  # its containers do not always restart: it does a piece of work and serves nobody
    containers: int = 0  # a checksum of its started containers, which each restart changes; 0: none are reported

    @property
    def kind_of_owner(self) -> str:
        """The controller's kind. Other API groups have a StatefulSet or a DaemonSet as well, which careen cannot read:
        their group follows, as in `StatefulSet.apps.kruise.io`."""
        group, _, _ = self.owner_api_version.rpartition("/")
        is_ambiguous = self.owner_kind in _KINDS and group not in ("", "apps", "batch")
        return f"{self.owner_kind}.{group}" if is_ambiguous else self.owner_kind

    @property
    def owner_title(self) -> str:
        """The controller, such as `Cluster shop/pg`; the pod itself without one."""
        return f"{self.owner_kind} {self.namespace}/{self.owner_name}" if self.owner_kind else f"Pod {self.title}"

    @property
    def owner_or_own_uid(self) -> str:
        """By which evictions of returning pods are counted."""
        return self.owner_uid or self.uid

    @property
    def is_terminating(self) -> bool:
        """Whether the pod is being deleted."""
        return self.deletion_timestamp is not None

    @property
    def is_finished(self) -> bool:
        """Whether it has ended, well or badly."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def title(self) -> str:
        """`namespace/name`, for sentences."""
        return f"{self.namespace}/{self.name}"


class AttachedVolume(Value, kw_only=True):
    """A volume with a VolumeAttachment to the own Node."""

    name: str  # of the PersistentVolume
    stays: bool = False  # a pod that stays on the node uses it


class Alert(Value, kw_only=True):
    """An active alert; `state` is firing or pending."""

    name: str
    state: str = "firing"
    labels: Mapping[str, str] = field(default_factory=dict)
    is_matched: bool | None = None  # by --alert-filter-regexp; None: nobody has asked


class Sample(Value, kw_only=True):
    """One sample of a health query's result. Its age is by the clock of the server that answered."""

    value: float
    age_seconds: float
    evaluated_at: float  # Unix seconds
    labels: Mapping[str, str] = field(default_factory=dict)
    is_selected: bool | None = None  # by the matchers of its query; None: nobody has asked


class Evictable(StrEnum):
    """What the API server would do if the agent evicted a pod now, by a dry run."""

    ALLOWED = "allowed"
    BUDGET = "budget"  # 429 from a disruption budget
    DENIED = "denied"  # admission denied it; `detail` has the message
    BARRED = "barred"  # rejected before admission and budgets judged it: the agent lacks a right
    GONE = "gone"  # the pod with that UID no longer exists: there is nothing to evict
    UNKNOWN = "unknown"  # timeout, 5xx


class ClosedBudgets(Value, kw_only=True):
    """The budgets that select a pod, and the labels of its controller's template (of the pod, if that is unknown)."""

    budgets: tuple[DisruptionBudget, ...] = ()
    template: Mapping[str, str] = field(default_factory=dict)


class DryRunAnswer(Value, kw_only=True):
    """The answer to the dry-run eviction of one pod."""

    answer: Evictable
    detail: str = ""
    closed: ClosedBudgets | None = None  # after a budget's refusal, if it could be read


class Chance(Value, kw_only=True):
    """The random values of one turn: a unique id, and a number in [0, 1)."""

    claim_id: str
    jitter: float
