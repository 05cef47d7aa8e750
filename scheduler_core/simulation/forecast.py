"""The forecast: the outcome of each pod of a node in a simulated drain, and its JSON.

Only values and no numpy: an agent reads a forecast but does not compute it; `drain.py` does, in another process.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Self

import msgspec

from scheduler_core.sentences import first_few, html_table
from scheduler_core.values import Value


class Outcome(StrEnum):
    """What would happen to one pod if its node were drained now."""

    STAYS = "stays"  # the drain leaves the pod on the node, for example a DaemonSet's pod
    MOVES = "moves"  # a replacement fits on the nodes in `landing`
    RETURNS = "returns"  # only this node can run the pod, which waits until the reboot is over
    PENDING = "pending"  # a replacement fits nowhere; the sentence gives the reason of each plugin
    BLOCKED = "blocked"  # a disruption budget or a webhook refuses; `is_never`: waiting cannot change that
    LOST = "lost"  # no controller recreates the pod: it has none, or its Job fails or has ended
    UNKNOWN = "unknown"  # another scheduler, unallocated devices, scheduling gates: not predictable here


class Opens(StrEnum):
    """When the eviction of a slow pod is allowed, as far as an agent has seen it."""

    CORDON = "cordon"  # once the node is cordoned
    EMPTIED = "emptied"  # once the other pods have left the node
    ATTEMPT = "attempt"  # after a real eviction request
    UNSEEN = "unseen"


class UnreadableForecastError(ValueError):
    """Not a forecast in the format of this release. The caller must act as if there were none."""


class BudgetNumbers(Value, kw_only=True):
    """A PodDisruptionBudget's status: the evictions that it allows now, and its healthy, desired and expected pods. Its
    controller, such as "CephCluster rook-ceph", is empty without one."""

    namespace: str
    name: str
    disruptions_allowed: int
    current_healthy: int
    desired_healthy: int
    expected_pods: int
    owner: str = ""
    identity: str = ""  # another one proves that somebody changed or replaced the budget


class RunnerUp(Value, kw_only=True):
    """The highest score among the nodes that the pod would not take; of equal nodes, the first by name."""

    node: str
    score: int


class PodForecast(Value, kw_only=True):
    """The outcome of one pod and the evidence for it.

    `landing` has, sorted by name, the nodes with the highest score in some scenario. If the scheduler checks only a
    part of the nodes, it is the smallest set that takes the pod in 95 of 100 cases, the most likely first, and `shares`
    has the probabilities. With `is_cut`, a node may be missing, because not all scenarios were simulated.

    With `loses_data`, the data in the pod's emptyDir is lost, whatever the outcome. `score` is the highest score, or
    None if only one node could take the pod. `remedies` are changes that would place a pending pod; each was tried and
    is enough alone.
    """

    namespace: str
    name: str
    uid: str
    outcome: Outcome
    sentence: str
    landing: tuple[str, ...] = ()
    shares: tuple[float, ...] = ()  # one for each of `landing`, between 0 and 1; empty if every node is checked
    is_never: bool = False
    budget: BudgetNumbers | None = None
    owner: str = ""  # "ReplicaSet shop/cart-5d9", empty for a bare pod
    loses_data: bool = False
    score: int | None = None
    runner_up: RunnerUp | None = None
    remedies: tuple[str, ...] = ()
    is_cut: bool = False
    owner_uid: str = ""
    # For a slow pod: its budget is closed by its numbers, but its owner may open it during the drain. The landing is
    # that of an eviction after all others.
    opens: Opens | None = None
    wants_rest: str = ""  # the annotation that asks autoscalers not to disturb the pod
    is_bound: bool = False  # stays because its owner's template names this node: an eviction would not remove it

    def __repr__(self) -> str:
        landing = f" to {first_few(self.landing)}" if self.landing else ""
        return f"<PodForecast {self.title!r} {self.outcome}{landing}>"

    @property
    def title(self) -> str:
        """namespace/name."""
        return f"{self.namespace}/{self.name}"


class NodesAnswer(Value, kw_only=True, rename="camel", omit_defaults=True):
    """How many of `pods` pods without a node get one from `count` more nodes like the template.

    `placed` maps a pod to its node, `refused` each other pod to the reason. `needed` is the smallest number of new
    nodes that places all pods; None if no number up to `tried` does. Then `best_count` new nodes place the most:
    `best_placed` pods.

    For several templates, `added` has the number of nodes of each, and `cheapest` the cheapest ones that place each pod
    for which any number of them helps, for `price`; `is_cheapest` is false if a cheaper choice may exist.
    """

    template: str
    count: int
    pods: int
    placed: dict[str, str]
    refused: dict[str, str]
    needed: int | None
    best_count: int
    best_placed: int
    tried: int
    added: dict[str, int] = msgspec.field(default_factory=dict)
    cheapest: dict[str, int] = msgspec.field(default_factory=dict)
    price: float = 0.0
    is_cheapest: bool = True


class Forecast(Value, kw_only=True):
    """The outcome of every pod of one node in eviction order, without those that already terminate, and notes for
    the reader."""

    node: str
    made_at: str  # RFC 3339: when the lists of the cluster's objects were read
    pods: tuple[PodForecast, ...] = ()
    scenarios: int = 1  # the number of simulated scenarios
    already_pending: int = 0  # pods of the cluster that had no node before the drain
    notes: tuple[
        str, ...
    ] = ()  # "the only control-plane node goes down for the reboot", "default scheduler profile assumed"
    left_out: tuple[str, ...] = ()  # the uids of the pods whose words about their places the snapshot leaves out
    more_nodes: NodesAnswer | None = None  # for the reader; the same for all nodes that are drained together

    def __repr__(self) -> str:
        counts = "".join(f" {outcome}={count}" for outcome, count in self.counts.items())
        return f"<Forecast node={self.node!r}{counts or ' no pods'}>"

    def _repr_html_(self) -> str:
        """For notebooks: what becomes of each pod."""
        rows = [(pod.title, pod.outcome, ", ".join(pod.landing), pod.sentence) for pod in self.pods]
        return html_table(("pod", "outcome", "lands on", "why"), rows)

    def count(self, outcome: Outcome) -> int:
        return sum(1 for pod in self.pods if pod.outcome is outcome)

    @property
    def counts(self) -> dict[Outcome, int]:
        """In the order of `Outcome`, without outcomes that no pod has."""
        return {outcome: n for outcome in Outcome if (n := self.count(outcome))}

    def with_outcome(self, outcome: Outcome) -> tuple[PodForecast, ...]:
        return tuple(pod for pod in self.pods if pod.outcome is outcome)

    @property
    def slow(self) -> tuple[PodForecast, ...]:
        """The pods whose eviction is refused now and may be allowed during the drain."""
        return tuple(pod for pod in self.pods if pod.opens is not None)

    @property
    def never(self) -> tuple[PodForecast, ...]:
        """The pods whose eviction stays refused until somebody changes the cluster; waiting does not help."""
        return tuple(pod for pod in self.pods if pod.outcome is Outcome.BLOCKED and pod.is_never)

    def to_mapping(self) -> dict[str, Any]:
        """The forecast for JSON; `from_mapping` reads it."""
        return {
            "version": 1,
            "node": self.node,
            "madeAt": self.made_at,
            "notes": list(self.notes),
            "courses": self.scenarios,
            "alreadyPending": self.already_pending,
            "pods": [_pod_to_mapping(pod) for pod in self.pods],
        } | {
            key: value
            for key, value in (("leftOut", list(self.left_out)), ("moreNodes", msgspec.to_builtins(self.more_nodes)))
            if value
        }

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> Self:
        """Raises UnreadableForecastError for anything that `to_mapping` did not return."""
        try:
            if mapping["version"] != 1:
                raise UnreadableForecastError(
                    f"the forecast has version {mapping['version']!r}; this release reads version 1"
                )
            return cls(
                node=mapping["node"],
                made_at=mapping["madeAt"],
                notes=tuple(mapping["notes"]),
                scenarios=mapping.get("courses", 1),
                already_pending=mapping.get("alreadyPending", 0),
                pods=tuple(_pod_from_mapping(pod) for pod in mapping["pods"]),
                left_out=tuple(mapping.get("leftOut", ())),
                more_nodes=msgspec.convert(mapping.get("moreNodes"), NodesAnswer | None),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise UnreadableForecastError(f"the forecast cannot be read: {error}") from error


def _pod_to_mapping(pod: PodForecast) -> dict[str, Any]:
    mapping: dict[str, Any] = {
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
        "outcome": pod.outcome.value,
        "sentence": pod.sentence,
    }
    if pod.landing:
        mapping["landing"] = list(pod.landing)
    if pod.shares:
        mapping["shares"] = list(pod.shares)
    flags = {"never": pod.is_never, "losesData": pod.loses_data, "cut": pod.is_cut, "bound": pod.is_bound}
    mapping |= {name: True for name, is_set in flags.items() if is_set}
    if pod.owner:
        mapping["owner"] = pod.owner
    if pod.opens:
        mapping |= {"opens": pod.opens.value, "ownerUid": pod.owner_uid}
    if pod.wants_rest:
        mapping["wantsRest"] = pod.wants_rest
    if pod.score is not None:
        mapping["score"] = pod.score
    if pod.runner_up:
        mapping["runnerUp"] = {"node": pod.runner_up.node, "score": pod.runner_up.score}
    if pod.remedies:
        mapping["remedies"] = list(pod.remedies)
    if pod.budget:
        mapping["budget"] = _budget_to_mapping(pod.budget)
    return mapping


def _budget_to_mapping(budget: BudgetNumbers) -> dict[str, Any]:
    mapping: dict[str, Any] = {
        "namespace": budget.namespace,
        "name": budget.name,
        "disruptionsAllowed": budget.disruptions_allowed,
        "currentHealthy": budget.current_healthy,
        "desiredHealthy": budget.desired_healthy,
        "expectedPods": budget.expected_pods,
    }
    more = {"owner": budget.owner, "identity": budget.identity}
    return mapping | {name: value for name, value in more.items() if value}


def _pod_from_mapping(mapping: Mapping[str, Any]) -> PodForecast:
    budget, runner_up = mapping.get("budget"), mapping.get("runnerUp")
    return PodForecast(
        namespace=mapping["namespace"],
        name=mapping["name"],
        uid=mapping["uid"],
        outcome=Outcome(mapping["outcome"]),
        sentence=mapping["sentence"] or "",
        landing=tuple(mapping.get("landing", ())),
        shares=tuple(mapping.get("shares", ())),
        is_never=mapping.get("never", False),
        owner=mapping.get("owner") or "",
        wants_rest=mapping.get("wantsRest") or "",
        loses_data=mapping.get("losesData", False),
        is_cut=mapping.get("cut", False),
        is_bound=mapping.get("bound", False),
        score=mapping.get("score"),
        remedies=tuple(mapping.get("remedies", ())),
        runner_up=runner_up and RunnerUp(node=runner_up["node"], score=runner_up["score"]),
        budget=budget
        and BudgetNumbers(
            namespace=budget["namespace"],
            name=budget["name"],
            disruptions_allowed=budget["disruptionsAllowed"],
            current_healthy=budget["currentHealthy"],
            desired_healthy=budget["desiredHealthy"],
            expected_pods=budget["expectedPods"],
            owner=budget.get("owner", ""),
            identity=budget.get("identity", ""),
        ),
        opens=Opens(mapping["opens"]) if mapping.get("opens") else None,
        owner_uid=mapping.get("ownerUid") or "",
    )
