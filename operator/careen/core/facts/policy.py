"""The settings that decisions obey, as values with units. The package `settings` says where the values come from.

Every default is the documented default of the flag of the same name. If kured has the flag too, the default is kured's.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol

from msgspec import field

from careen.core.facts import keys
from careen.core.facts.observation import Sample
from careen.core.facts.selectors import Selector
from careen.core.facts.windows import NamedWindow, Window
from scheduler_core.values import Value


class LatePolicy(StrEnum):
    """What the agent does if a gate refuses the reboot after the drain."""

    UNDO = "undo"
    REBOOT = "reboot"


class SettlePolicy(StrEnum):
    """What the agent does if the displaced workloads do not become healthy in time."""

    HALT = "halt"
    CONTINUE = "continue"


class ForecastPolicy(StrEnum):
    """What a bad forecast does. `refuse`: the node does not begin its drain; `warn`: the forecast is only written on
    the Node; `off`: there is none."""

    REFUSE = "refuse"
    WARN = "warn"
    OFF = "off"


class BoundPods(StrEnum):
    """How careen treats a pod that its controller binds to this node without a scheduler."""

    REFUSE = "refuse"
    STAY = "stay"


class Order(StrEnum):
    """Which waiting node is next. Control-plane nodes always come last, one at a time."""

    # A zone in which reboots have begun comes before other zones. In a zone, the oldest need comes first. Among needs
    # of the same hour, the node whose drain makes the fewest pods move twice comes first.
    OLDEST = "oldest"
    ZONE = "zone"  # never two zones at once: the next zone starts when no node of the last one is at work
    FEWEST_MOVES = "fewest-moves"  # the fewest pods to move first, by each node's own count


class BudgetKind(StrEnum):
    """How a budget groups the nodes."""

    ZONE = "zone"  # each zone is a group
    CONTROL_PLANE = "control-plane"  # the control-plane nodes are one group
    SELECTOR = "selector"  # the nodes that match a label selector are one group
    TOPOLOGY = "topology"  # the nodes with the same value of a label are a group


class Budget(Value, kw_only=True):
    """How many nodes of a group may be down at once, whatever took them down: `limit` nodes, or `percent` of the
    group."""

    kind: BudgetKind
    limit: int
    selector: Selector | None = None
    key: str = ""  # the label of a topology
    # None: at most `limit` nodes may be down. With a percentage, `limit` is a huge number, because an agent that orders
    # the waiting nodes uses `limit` and does not know the sizes of the groups.
    percent: int | None = None

    def most(self, members: int) -> int:
        """How many nodes of a group of this size may be down at once. A percentage is rounded down, but never below
        one: with zero no node could ever reboot."""
        return self.limit if self.percent is None else max(1, members * self.percent // 100)

    def group_of(self, labels: Mapping[str, str]) -> str | None:
        """The node's group under this budget, such as `zone=eu-1a`, also written into claims; None without a group."""
        if self.kind is BudgetKind.ZONE:
            zone = labels.get(keys.ZONE) or labels.get(keys.ZONE_BETA)
            return f"zone={zone}" if zone else None
        if self.kind is BudgetKind.CONTROL_PLANE:
            return "control-plane" if keys.CONTROL_PLANE in labels or keys.MASTER in labels else None
        if self.kind is BudgetKind.TOPOLOGY:
            value = labels.get(self.key)
            return f"topology:{self.key}={value}" if value else None
        assert self.selector is not None, "a budget of the kind `selector` must have a selector"
        return f"selector:{self.selector.text}" if self.selector.matches(labels) else None


class Pattern(Protocol):
    """A compiled regular expression."""

    def search(self, text: str, /) -> object:
        """True if it matches anywhere."""
        ...

    def fullmatch(self, text: str, /) -> object:
        """True if it matches the whole text."""
        ...


class Matcher(Value, kw_only=True):
    """A condition on one label of a sample, as in Prometheus: a missing label counts as empty."""

    label: str
    value: str
    pattern: Pattern | None = None  # None: compare the label with `value`
    is_negated: bool = False

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels fulfil the condition."""
        found = labels.get(self.label, "")
        matches = found == self.value if self.pattern is None else bool(self.pattern.fullmatch(found))
        return matches is not self.is_negated


_COMPARED: Mapping[str, Callable[[float, float], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class HealthQuery(Value, kw_only=True):
    """A query to Prometheus. Every sample of the result must be fresh and fulfil the condition."""

    name: str
    query: str
    comparison: str  # ==, !=, <, <=, > or >=
    bound: float
    fresh_seconds: float
    matchers: tuple[Matcher, ...] = ()
    is_of_node: bool = False  # the query is about this node alone: another node may get another answer
    late_comparison: str = ""  # the condition that is enough for a drained node; empty: none
    late_bound: float = 0.0

    def selects(self, sample: Sample) -> bool:
        """Whether its labels match."""
        if sample.is_selected is not None:
            return sample.is_selected
        return all(matcher.holds(sample.labels) for matcher in self.matchers)

    def holds(self, value: float) -> bool:
        """NaN never fulfils the condition."""
        return not math.isnan(value) and _COMPARED[self.comparison](value, self.bound)

    def holds_late(self, value: float) -> bool:
        """Whether the value is good enough for a node that is drained. NaN never is."""
        return self.holds(value) or (
            bool(self.late_comparison)
            and not math.isnan(value)
            and _COMPARED[self.late_comparison](value, self.late_bound)
        )

    @property
    def condition(self) -> str:
        """Such as `< 0.5`."""
        return f"{self.comparison} {self.bound:g}"

    @property
    def late_condition(self) -> str:
        """Such as `<= 1`; the usual condition without one for a drained node."""
        return f"{self.late_comparison} {self.late_bound:g}" if self.late_comparison else self.condition


class BlockingScope(StrEnum):
    """Which nodes must not reboot while a blocking pod runs."""

    NODE = "node"  # the node that it runs on
    GROUP = "group"  # every node with the same value of a label
    CLUSTER = "cluster"  # every node


_AT_REST = ("Succeeded", "Failed", "Unknown")  # kured's field selector (pkg/blockers/kubernetespod.go)


_NONE: Mapping[str, str] = MappingProxyType({})


class BlockingPods(Value, kw_only=True):
    """An entry of --blocking-pods: pods that forbid reboots while they run."""

    name: str
    selector: Selector  # without requirements: every pod
    annotations: tuple[tuple[str, str], ...] = ()  # the pod has one of them; empty: any pod
    is_lost: bool = False  # only pods that nothing would create again, by the forecast
    namespaces: tuple[str, ...] = ()  # empty: all
    scope: BlockingScope = BlockingScope.NODE
    group: str = ""  # the label whose value makes a group
    longest_seconds: float = 0.0  # an alert fires if such a pod blocks for longer; 0: never

    def matches(self, namespace: str, labels: Mapping[str, str], annotations: Mapping[str, str] = _NONE) -> bool:
        """Whether this entry selects the pod."""
        return (
            (not self.namespaces or namespace in self.namespaces)
            and self.selector.matches(labels)
            and (not self.annotations or any(annotations.get(key) == value for key, value in self.annotations))
        )

    def blocks(
        self, namespace: str, labels: Mapping[str, str], annotations: Mapping[str, str] = _NONE, *, phase: str
    ) -> bool:
        """Whether this entry selects the pod, and the pod may be running by its `status.phase`."""
        return phase not in _AT_REST and self.matches(namespace, labels, annotations)

    @property
    def what(self) -> str:
        """What the pods have in common, such as `app=db`."""
        marks = " or ".join(f"{key}={value}" for key, value in self.annotations)
        return " with ".join(each for each in (self.selector.text, marks) if each)


class AlertPolicy(Value, kw_only=True):
    """Which active alerts block a reboot, by three flags of kured's. With none of them set, any pending or firing alert
    does."""

    filter_regexp: Pattern | None = None  # alert names to ignore
    match_only: bool = False  # inverts the filter: only alerts with matching names block
    firing_only: bool = False


class DrainPolicy(Value, kw_only=True):
    """The settings of a drain, in seconds. A timeout of 0 is no limit."""

    delay_seconds: float = 0.0  # --drain-delay: between claim and cordon, gates are asked after it
    timeout_seconds: float = 0.0  # --drain-timeout
    grace_seconds: int | None = None  # --drain-grace-period; None (kured: -1) leaves the pod's own
    selector: Selector | None = None  # --drain-pod-selector: evict only these
    skip_wait_for_delete_seconds: float = (
        0.0  # --skip-wait-for-delete-timeout: do not wait for pods terminating longer; 0: always wait
    )
    force_reboot: bool = False  # --force-reboot: reboot after the drain's timeout, even if pods remain
    force_past_budgets: bool = False  # and also if a disruption budget keeps a pod here
    attempts_before_force: int = 3  # evictions of each pod that the server must have judged before force applies
    bound_pods: BoundPods = BoundPods.REFUSE  # --pods-bound-to-node
    slow_selectors: tuple[Selector, ...] = ()  # --slow-pod-selector: their budgets may open during the drain
    parallel: int = 1  # evictions under way at once; one after another keeps the forecast's order

    def lists_as_slow(self, labels: Mapping[str, str]) -> bool:
        """Whether --slow-pod-selector selects the pod."""
        return any(selector.matches(labels) for selector in self.slow_selectors)


class Policy(Value, kw_only=True):
    """All settings that decisions obey."""

    node_name: str
    concurrency: int = 1
    order: Order = Order.OLDEST
    daemonset_namespace: str = "kube-system"
    daemonset_name: str = "kured"
    taint_key: str | None = keys.DEFAULT_TAINT_KEY  # None: no taint
    annotate_nodes: bool = False
    silences_alerts: bool = False  # of this node, while it reboots
    window: Window = field(default_factory=Window)
    windows: tuple[NamedWindow, ...] = ()  # if there are any, `window` is for the nodes that none of them selects
    minimum_interval_seconds: float = 0.0
    cluster_interval_seconds: float = 0.0  # --cluster-minimum-interval; 0: none
    count_cordoned: bool = True  # a node that careen did not cordon itself counts as down
    reboot_cordoned: bool = True  # careen reboots such a node too
    budgets: tuple[Budget, ...] = ()  # control-plane=1 always applies as well
    blocking_pod_selectors: tuple[Selector, ...] = ()
    blocking_pods: tuple[BlockingPods, ...] = ()
    protects_pods: bool = True  # --protected-pods: pods that ask not to be disturbed forbid the reboot of their node
    health_queries: tuple[HealthQuery, ...] = ()
    alerts: AlertPolicy | None = None  # None: no alert source configured
    forecast: ForecastPolicy = ForecastPolicy.REFUSE
    forecast_pending_allowed: int = 0
    forecast_unknown_allowed: int = 0
    drain: DrainPolicy = field(default_factory=DrainPolicy)
    reboot_delay_seconds: float = 0.0
    reboot_deadline_seconds: float = 900.0  # a slow server's firmware takes ten minutes
    reboot_command_seconds: float = 60.0  # how long a reboot command may take to answer
    reboot_tries: int = 3
    reboot_loop_limit: int = 1  # repeats for the same need
    verify_timeout_seconds: float = 900.0
    late_policy: LatePolicy = LatePolicy.UNDO
    settle_policy: SettlePolicy = SettlePolicy.HALT
    settle_timeout_seconds: float = 600.0
    lock_release_delay_seconds: float = 0.0
    protect_from_autoscalers: bool = True  # --protect-from-autoscalers
    balancer_settle_seconds: float = 0.0  # --load-balancer-settle: between the cordon and the first eviction
    stable_boot_seconds: float = (
        30.0  # how old the boot must be at the release: a host that reboots once more keeps its claim
    )
    pre_reboot_labels: Mapping[str, str] = field(default_factory=dict)
    post_reboot_labels: Mapping[str, str] = field(default_factory=dict)
    failure_backoff_seconds: float = 60.0  # doubles with each failure in a row
    failure_backoff_limit_seconds: float = 3600.0
    unknown_patience_seconds: float = 600.0  # how long a drained or draining node waits for a fact before it is undone
    clock_skew_limit_seconds: float = 60.0
    lock_ttl_seconds: float = 0.0  # --lock-ttl: see `absence_seconds`; never frees a claim by itself
    fleet_max_age_seconds: float = 10.0  # how old the list of nodes may be at the cordon
    forecast_max_age_seconds: float = 10.0  # how old a forecast may be to count as fresh
    confirm_max_age_seconds: float = 5.0  # between the confirmed claim and the reboot
    kept_settings: str = ""  # stored on the Node with a claim; an agent that cannot use its settings starts with these
    settings_problem: str = ""  # why the agent runs on older settings and takes no new claim; empty: it does not
    are_settings_whole: bool = (
        True  # whether the older settings are complete; without all of them no drain goes on to its reboot
    )

    @property
    def absence_seconds(self) -> float:
        """How many seconds a claim's Node must be missing, or have another UID, before the claim counts as stale."""
        return max(self.reboot_deadline_seconds, self.lock_ttl_seconds)
