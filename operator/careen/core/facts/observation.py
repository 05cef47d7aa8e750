"""Everything an agent knows at one instant, frozen.

Two values stand for not knowing, each with its reason: `Unknown` (asked, no usable answer) and `NotAsked`.
Neither means no. Instants of the host's own clock are `uptime` seconds: they run on across restarts of the
agent and begin anew with each boot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar, Union

from msgspec import field
from msgspec.structs import force_setattr

from careen.core.facts import keys
from careen.core.facts.memory import Memory
from careen.core.facts.phases import Evidence
from careen.core.facts.progress import OwnerHealth, Progress, UnreadableProgress, believed, from_annotation
from careen.core.lock import content as lock
from careen.core.lock.content import Garbage, LockContent
from scheduler_core.simulation.forecast import Forecast
from scheduler_core.values import Value


class Unknown(Value):
    """Asked, and no usable answer came; `why` is a sentence for people."""

    why: str


class NotAsked(Value):
    """Nobody asked this turn. A decision that needs it names it in `wants`."""

    @property
    def why(self) -> str:
        """Why it is not known, as `Unknown` says it."""
        return "nobody asked"


class Gone(Value):
    """The own Node does not exist (404 from a consistent read)."""


NOT_ASKED = NotAsked()
_NO_RECORD = from_annotation(None)

_T = TypeVar("_T")
Asked = Union[_T, Unknown, NotAsked]  # noqa: UP007 - a generic alias needs Union before Python 3.12


class Taint(Value, kw_only=True):
    """One taint as the API has it; `time_added` is kept as text so that it goes back unchanged."""

    key: str
    effect: str
    value: str | None = None
    time_added: str | None = None


READINESS_PREFIX = "readiness.k8s.io/"
"""Of the taints that node-readiness-controller puts on a node while a NodeReadinessRule's conditions do not hold
(kubernetes-sigs/node-readiness-controller, api/v1alpha1)."""


class NodeView(Value, kw_only=True):
    """A Node, as far as careen looks at Nodes. `boot_id` is what the kubelet last reported; empty when never."""

    name: str
    uid: str
    resource_version: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = True  # condition Ready is "True"; "False" and "Unknown" are not ready
    boot_id: str = ""
    cordoned_by: tuple[str, ...] = ()  # field managers that set `spec.unschedulable` as it stands; empty: not told
    tainted_by: tuple[str, ...] = ()  # field managers that set `spec.taints` as it stands; empty: not told
    written: Progress | UnreadableProgress = _NO_RECORD  # the record as the annotations have it, whatever is given

    def __post_init__(self) -> None:
        force_setattr(self, "written", from_annotation(self.annotations.get(keys.PROGRESS)))

    @property
    def record(self) -> Progress | UnreadableProgress:
        """The record, or why it cannot be one that this release wrote. Whoever judges another node by its record
        asks this: what the node's own agent takes for unreadable proves nothing to others."""
        return believed(self.written)

    @property
    def readiness_taints(self) -> tuple[str, ...]:
        """Keys of the taints of NodeReadinessRules, by name."""
        return tuple(sorted({taint.key for taint in self.taints if taint.key.startswith(READINESS_PREFIX)}))

    @property
    def zone(self) -> str:
        """The zone's name, or empty."""
        return self.labels.get(keys.ZONE) or self.labels.get(keys.ZONE_BETA) or ""

    @property
    def is_control_plane(self) -> bool:
        """Whether the Node carries the control-plane label, of today or of before 1.24."""
        return keys.CONTROL_PLANE in self.labels or keys.MASTER in self.labels


class SignedNode(Value, kw_only=True):
    """A Node, and which field managers set each of its labels and annotations, as far as the server tells."""

    node: NodeView
    labels_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    annotations_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class NeedAnswer(StrEnum):
    """Does the host ask for a reboot?"""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class Wish(StrEnum):
    """What a person may ask of a node."""

    REBOOT = "reboot"
    DRAIN = "drain"  # and stay drained until it is handed back
    MAINTENANCE = "maintenance"  # the same, for work by hand


class PersonRequest(Value, kw_only=True):
    """A person's wish for this node; see `core/people/asked.py`."""

    wish: Wish
    reason: str = ""
    at: datetime | None = None  # when it was asked
    until: datetime | None = None  # when it ends by itself
    boot: str = ""  # the boot that is to end; of a reboot only
    is_now: bool = False  # outside windows and intervals too, as with careen.dev/reboot-now


class Need(Value, kw_only=True):
    """The sentinel's answer; `detail` says what was looked at, and for UNKNOWN why it could not be told. With a
    `request` it is a person who asks, whatever the host says."""

    answer: NeedAnswer
    detail: str = ""
    package_manager: str = ""  # which package manager is at work on the host, empty when none or not looked at
    request: PersonRequest | None = None


class SelfTest(Value, kw_only=True):
    """What is known against the reboot before it is asked for; both sentences empty: nothing."""

    obstacle: str = ""  # why the host would surely not reboot
    warning: str = ""  # what the reboot would lose, though it happens


class LockReading(Value, kw_only=True):
    """The lock as it stood in one consistent read of the DaemonSet, parsed once; `text` is the annotation, None
    where there is none."""

    content: LockContent | Garbage
    text: str | None
    resource_version: str
    daemonset_uid: str
    annotation: str = keys.LOCK_ANNOTATION
    agents: int | None = (
        None  # how many nodes should run an agent, as the DaemonSet's status says; None when it does not say
    )
    gates: Mapping[str, str] = field(default_factory=dict)  # the DaemonSet's annotations careen.dev/gate.NAME

    @classmethod
    def of(cls, text: str | None, **others: Any) -> LockReading:
        """The reading of an annotation with this text; `others` are the other fields."""
        return cls(content=lock.parse(text), text=text, **others)

    @property
    def object_id(self) -> str:
        """Tells one lock from another: the DaemonSet may be recreated, the key be changed."""
        return f"{self.daemonset_uid}/{self.annotation}"


class Fleet(Value, kw_only=True):
    """Every Node, and the host's uptime at the moment the list was *requested* (so that its age is never
    understated)."""

    nodes: tuple[NodeView, ...]
    read_at_uptime: float
    group_sizes: Mapping[str, int] | None = None  # by the budgets' groups; None: as many as `nodes` has of each


class Holders(Value, kw_only=True):
    """The Nodes that the lock names, read after the lock: found ones by name, and the names that do not exist."""

    nodes: tuple[NodeView, ...] = ()
    absent: frozenset[str] = frozenset()


class PlacedPod(Value, kw_only=True):
    """A pod anywhere in the cluster that an entry of --blocking-pods selects."""

    title: str  # namespace/name
    node: str  # empty while no scheduler has placed it
    rule: str  # the name of the entry


class PodView(Value, kw_only=True):
    """A pod on this node, as far as a drain looks at pods."""

    namespace: str
    name: str
    uid: str
    labels: Mapping[str, str] = field(default_factory=dict)
    phase: str = "Running"
    owner_kind: str = ""  # of the controller reference (controller=true); empty for a bare pod
    owner_name: str = ""
    owner_uid: str = ""
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
    came_bound: bool | None = None  # created with its node's name, so that no scheduler placed it; None: not told

    @property
    def is_terminating(self) -> bool:
        """Whether somebody asked for its end already."""
        return self.deletion_timestamp is not None

    @property
    def title(self) -> str:
        """namespace/name, for sentences."""
        return f"{self.namespace}/{self.name}"


class Alert(Value, kw_only=True):
    """An active alert of the alert source; `state` is firing or pending."""

    name: str
    state: str = "firing"
    labels: Mapping[str, str] = field(default_factory=dict)


class Sample(Value, kw_only=True):
    """One sample of a query's answer. The age is by the server's own clock."""

    value: float
    age_seconds: float
    evaluated_at: float  # Unix seconds
    labels: Mapping[str, str] = field(default_factory=dict)


class Evictable(StrEnum):
    """What a dry-run eviction answered."""

    ALLOWED = "allowed"
    BUDGET = "budget"  # 429 from a disruption budget
    DENIED = "denied"  # admission said no; `detail` has its words
    BARRED = "barred"  # the request was turned away before anybody judged it: a right is missing
    GONE = "gone"  # no such pod with that UID any more: nothing to evict
    UNKNOWN = "unknown"  # time out, 5xx


class DryRunAnswer(Value, kw_only=True):
    """The answer for one pod."""

    answer: Evictable
    detail: str = ""


class Chance(Value, kw_only=True):
    """Randomness for one turn, drawn by the shell: an id nobody used before, and a number in [0, 1)."""

    claim_id: str
    jitter: float


class Observation(Value, kw_only=True):
    """What is known this turn. The first block is always given; the rest is `NOT_ASKED` until wanted."""

    now: datetime  # aware; for windows, holds and what people read – never for deadlines
    uptime: float  # seconds since the host booted
    chance: Chance
    memory: Memory
    clock_skew_seconds: float | Unknown  # own clock minus the API server's Date header
    node: NodeView | Gone | Unknown
    boot_id: str | Unknown
    need: Need
    self_test: Asked[SelfTest] = NOT_ASKED
    lock: Asked[LockReading] = NOT_ASKED
    peers: Asked[tuple[NodeView, ...]] = NOT_ASKED
    holders: Asked[Holders] = NOT_ASKED
    waiters: Asked[tuple[NodeView, ...]] = NOT_ASKED
    crowd: Asked[int | None] = NOT_ASKED  # how many nodes wait; None: more than anybody counts
    fleet: Asked[Fleet] = NOT_ASKED
    pods: Asked[tuple[PodView, ...]] = NOT_ASKED
    disruptions: Asked[Mapping[str, int]] = NOT_ASKED  # by namespace/name of the budget: evictions allowed just now
    alerts: Asked[tuple[Alert, ...]] = NOT_ASKED
    blockers: Asked[tuple[PlacedPod, ...]] = NOT_ASKED  # of entries of --blocking-pods with a wider scope than the node
    queries: Asked[Mapping[str, tuple[Sample, ...] | Unknown]] = NOT_ASKED  # by the name of the health query
    readyz: Asked[tuple[str, ...]] = NOT_ASKED  # the API server's checks that fail; empty: it is ready
    foreign: Asked[tuple[str, ...]] = NOT_ASKED  # a sentence for each foreign coordinator seen; empty: none
    forecast: Asked[Forecast] = NOT_ASKED
    evictability: Asked[Mapping[str, DryRunAnswer]] = NOT_ASKED  # by pod UID
    owners: Asked[tuple[OwnerHealth, ...]] = NOT_ASKED

    def lacks(self, evidence: Evidence) -> bool:
        """Whether nobody asked for this evidence yet."""
        return isinstance(getattr(self, _FIELD[evidence]), NotAsked)

    def knows(self, evidence: Evidence) -> bool:
        """Whether this evidence was asked for and a usable answer came."""
        return not isinstance(getattr(self, _FIELD[evidence]), NotAsked | Unknown)


_FIELD: dict[Evidence, str] = {kind: kind.value.replace("-", "_") for kind in Evidence}
assert set(_FIELD.values()) <= {each.name for each in fields(Observation)}
