"""Applies the agents' own rules to a simulated roll-out at simulated times: the gates (checks that may refuse a
reboot), the lock, and the order of the nodes.

Each gate declares whether a plan can evaluate the gate, and which facts the plan must know for that. The plan assumes
that the gates which it cannot evaluate permit the reboot. `gates.unforeseen` lists these gates.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from careen.core.decision import Refusal
from careen.core.facts import keys
from careen.core.facts.memory import Memory
from careen.core.facts.observation import (
    NOT_ASKED,
    Chance,
    DryRunAnswer,
    Evictable,
    Fleet,
    Need,
    NeedAnswer,
    NodeView,
    PodView,
)
from careen.core.facts.policy import Order, Policy
from careen.core.facts.progress import OwnerHealth, Progress, to_annotation
from careen.core.facts.reasons import Code
from careen.core.facts.times import rfc3339
from careen.core.gates import foreseen
from careen.core.gates.cluster_interval import ends as interval_ends
from careen.core.gates.hold import until_of
from careen.core.gates.maintenance_window import maintenance_window
from careen.core.gates.question import Foreseen, When
from careen.core.lock import changes, order
from careen.core.lock import content as lock
from careen.core.lock.content import Entry, LockContent
from careen.core.lock.groups import groups
from careen.core.lock.line import Line
from careen.core.lock.reading import LockReading
from careen.core.observation import Observation
from careen.core.situation import Notebook, Situation
from careen.core.steps.shared import late_gates
from careen.plan.waiters import Waiters
from careen.plan.window_groups import WindowGroups
from scheduler_core.sentences import first_few
from scheduler_core.simulation.forecast import Forecast, Outcome, PodForecast
from scheduler_core.simulation.timeline import Obstacle


class RolloutRules:
    """Implements `Rules` of scheduler_core's rollout.py: decides as agents with this policy would, and contains the
    simulated lock."""

    def __init__(
        self,
        nodes: Iterable[NodeView],
        policy: Policy,
        *,
        named: tuple[str, ...] = (),
        moves: Mapping[str, int] | None = None,
        moves_in_zone: Mapping[str, int] | None = None,
        released_at: str = "",
    ) -> None:
        """Prepares the rules for the nodes of a cluster. At the beginning of the roll-out, no node holds a claim.

        `named` are the nodes that are in the lock's line now. `moves` says how many pods a drain of each node would
        evict, and `moves_in_zone` how many of these must stay in the node's zone; both are used for nodes whose
        annotations do not have these numbers. `released_at` is the end of the cluster's last reboot, as the lock says.
        """
        # The forecasts already leave out pods that the selector does not match, and their pods have no labels to check
        # again.
        self._policy = replace(policy, drain=replace(policy.drain, selector=None))
        self._gates = {known: foreseen(known) for known in Foreseen}
        self._content = LockContent(line=Line(names=named), released_at=released_at)
        self._zone: str | None = None
        self._rest: tuple[datetime, tuple[str, ...]] | None = None
        fleet = {node.name: node for node in nodes}
        # The Nodes that the gate `budgets` counts even without a claim. The gate finds the nodes with claims in the
        # lock, so it need not go through thousands of healthy Nodes.
        self._fleet = tuple(_plain(node) for node in fleet.values() if _counts_for_the_budgets(node))
        self._sizes = _group_sizes(fleet.values(), policy)
        self._waiters = Waiters((_ready(node, moves or {}, moves_in_zone or {}) for node in fleet.values()), policy)
        self._ends_of_waits = sorted({each for node in fleet.values() for each in self._personal(node)})
        self._wanted_now = {
            name: until
            for name, node in fleet.items()
            if (until := until_of(node.annotations.get(keys.REBOOT_NOW, "")))
        }
        self._windows = WindowGroups(fleet.values(), policy)

    # ---- the questions of rollout.py ----

    def line(self, waiting: Collection[str], at: datetime, movable: Callable[[str], int]) -> Sequence[str]:
        """Returns the waiting nodes that come next; none if every claim is taken. Leaves out nodes whose maintenance
        windows are closed, except nodes with a valid annotation careen.dev/reboot-now. In a real roll-out, the agents
        of the nodes that are left out would not set the label careen.dev/reboot to `ready`, and only nodes with this
        value can come next."""
        if not lock.free_slots(self._content, self._policy.concurrency):
            return ()
        if self._rests(at):
            return self._first_at_rest(waiting, at, movable)
        return self._next(waiting, at, movable)

    def _first_at_rest(self, waiting: Collection[str], at: datetime, movable: Callable[[str], int]) -> Sequence[str]:
        """Returns the node that would come next if --cluster-minimum-interval did not forbid every node to begin a
        reboot. The roll-out asks the gates about this node, and a gate such as `cluster-interval` refuses. The plan
        reports this refusal as the reason why the node waits. If this method always returned no node, the plan would
        report no reason.

        Returns no node while some node holds a claim, because the interval begins only when that node releases its
        claim.
        """
        if self._content.holders:
            return ()
        if self._rest is None or self._rest[0] != at:
            self._rest = (at, tuple(self._next(waiting, at, movable))[:1])
        return [name for name in self._rest[1] if name in waiting]

    def _next(self, waiting: Collection[str], at: datetime, movable: Callable[[str], int]) -> Sequence[str]:
        waiting = self._ready(waiting, at)
        if not waiting:
            return ()
        self._content = order.name_next(
            self._content,
            self._waiters.short_list(waiting, self._content, movable),
            self._policy,
            at="",
            zone=self._zone,
            moves_of=lambda node: movable(node.name),
        )
        return self._content.line.names[: self._content.line.abreast]

    def refusal(self, node: str, at: datetime, forecast: Forecast | None) -> Obstacle | None:
        """Returns the refusal of the first gate that refuses to let the node begin its drain; None if all gates permit
        it."""
        situation = self._situation(node, at, forecast)
        for gate in self._gates[Foreseen.WITH_FORECAST if forecast else Foreseen.WITHOUT_FORECAST]:
            if gate is maintenance_window and self._windows.is_open(node, at):
                continue
            when = When.READY if When.READY in gate.when else When.CLAIMED
            if (refused := gate.ask(situation, when)) is not None:
                return Obstacle(rule=refused.gate, subject=_subject(refused, forecast), sentence=refused.sentence)
        return None

    def late_refusal(self, node: str, at: datetime) -> Obstacle | None:
        """Returns the refusal of the first gate that refuses the reboot of the drained node; None if all gates permit
        it.

        As in `steps/shared/late_gates.py`, the reboot is always refused if a person has set a hold on the node or has
        paused the lock. --late-policy decides whether the other gates may refuse the reboot.
        """
        situation = self._situation(node, at, None)
        for gate in self._gates[Foreseen.WITHOUT_FORECAST]:
            if When.BEFORE_REBOOT not in gate.when or not late_gates.undoes(gate, self._policy):
                continue
            if (refused := gate.ask(situation, When.BEFORE_REBOOT)) is not None:
                return Obstacle(rule=refused.gate, subject=_subject(refused, None), sentence=refused.sentence)
        return None

    def claimed(self, node: str, at: datetime) -> None:  # noqa: ARG002 - the port's signature
        """Adds the node's claim to the lock. The roll-out calls this only if the lock has room for a claim."""
        view = self._waiters[node]
        entry = Entry(
            node=node, id=node, uid=view.uid, groups=tuple(sorted(groups(view, self._policy))), zone=view.zone
        )
        added = changes.add(
            self._content, entry, self._policy.concurrency, in_one_zone=self._policy.order is Order.ZONE
        )
        assert added is not None, "a node took a claim beyond the limit"
        self._content = added

    def released(self, node: str, at: datetime) -> None:
        """Removes the node's claim from the lock. Remembers the node's zone, because the other nodes of this zone come
        next, except with --order=fewest-moves."""
        self._content = changes.remove(self._content, node, node)
        if self._policy.cluster_interval_seconds:
            self._content = changes.released(self._content, rfc3339(at))
        self._zone = self._waiters[node].zone

    def next_opening(self, at: datetime) -> datetime | None:
        """Returns the next time at which a closed window opens or a gate stops refusing a node's reboot."""
        instants = self._ends_of_waits[bisect_right(self._ends_of_waits, at) :][:1]
        again = interval_ends(self._content, self._policy, at)
        instants += [each for each in (again, self._windows.next_opening(at)) if each is not None and each > at]
        return min(instants, default=None)

    def next_closing(self, at: datetime) -> datetime | None:
        """Returns the last second before all windows are closed. If no window is open at `at`, the search starts at the
        next opening."""
        return self._windows.next_closing(at)

    # ---- details ----

    def _rests(self, at: datetime) -> bool:
        """Whether --cluster-minimum-interval forbids every node to begin a reboot at the instant `at`. Returns False if
        an annotation of at least one Node asks for a reboot now, because that node does not have to wait for the
        interval."""
        if not self._policy.cluster_interval_seconds or self._wanted_now:
            return False
        again = interval_ends(self._content, self._policy, at)
        return bool(self._content.holders) or (again is not None and at < again)

    def _ready(self, waiting: Collection[str], at: datetime) -> Collection[str]:
        if self._windows.are_all_open(at):
            return waiting
        return [name for name in waiting if self._windows.is_open(name, at) or self._is_wanted_now(name, at)]

    def _is_wanted_now(self, name: str, at: datetime) -> bool:
        until = self._wanted_now.get(name)
        return until is not None and at < until

    def _personal(self, node: NodeView) -> list[datetime]:
        found = (gate.ends(node, self._policy) for gate in self._gates[Foreseen.WITHOUT_FORECAST])
        return [each for each in found if each is not None]

    def _situation(self, name: str, at: datetime, forecast: Forecast | None) -> Situation:
        node = self._waiters[name]
        pods = (
            tuple(_pod(pod) for pod in forecast.pods if pod.is_bound or pod.outcome is not Outcome.STAYS)
            if forecast
            else NOT_ASKED
        )
        seen = Observation(
            now=at,
            uptime=0.0,
            chance=Chance(claim_id=name, jitter=0.0),
            memory=Memory(),
            clock_skew_seconds=0.0,
            node=node,
            boot_id="boot",
            need=Need(answer=NeedAnswer.YES),
            lock=LockReading(content=self._content, text=None, resource_version="", daemonset_uid=""),
            fleet=Fleet(nodes=self._fleet, read_at_uptime=0.0, group_sizes=self._sizes),
            forecast=forecast or NOT_ASKED,
            pods=pods,
            evictability={pod.uid: _answer(pod) for pod in forecast.pods} if forecast else NOT_ASKED,
            owners=tuple(_binding_owner(pod, name) for pod in forecast.pods if pod.is_bound) if forecast else NOT_ASKED,
        )
        return Situation(seen=seen, policy=self._policy, node=node, progress=Progress(), notebook=Notebook(Memory()))


def _group_sizes(nodes: Iterable[NodeView], policy: Policy) -> dict[str, int]:
    """Returns the number of nodes in each group to which a budget in percent applies."""
    shares = [budget for budget in policy.budgets if budget.percent is not None]
    return Counter(group for node in nodes for budget in shares if (group := budget.group_of(node.labels)) is not None)


def _ready(node: NodeView, moves: Mapping[str, int], moves_in_zone: Mapping[str, int]) -> NodeView:
    """Returns a copy of the node with the values that decide its place among the waiting nodes: the label `ready`,
    since when it needs a reboot, the number of pods that its drain moves, and how many of these must stay in its
    zone."""
    since = order.need_since(node)
    annotations = {key: value for key, value in node.annotations.items() if key != keys.PROGRESS}
    if since[:1] == "2":  # a real year, not the placeholder of an unknown beginning
        annotations[keys.PROGRESS] = to_annotation(Progress(need_since=since))
    if node.name in moves and keys.MOVES not in annotations:
        annotations[keys.MOVES] = str(moves[node.name])
        annotations[keys.MOVES_IN_ZONE] = str(moves_in_zone.get(node.name, 0))
    return replace(node, labels={**node.labels, keys.REBOOT_LABEL: order.READY}, annotations=annotations)


def _plain(node: NodeView) -> NodeView:
    """Returns the node without annotations and without careen's label, so that the budgets count the node as down only
    if it is cordoned or not ready."""
    return replace(
        node, annotations={}, labels={key: value for key, value in node.labels.items() if key != keys.REBOOT_LABEL}
    )


def _counts_for_the_budgets(node: NodeView) -> bool:
    """Whether the gate `budgets` has to count this Node even if the node holds no claim. The gate counts a node that is
    cordoned or not ready as down, and counts control-plane nodes for the quorum."""
    return node.unschedulable or not node.ready or node.is_control_plane


def _pod(pod: PodForecast) -> PodView:
    if not pod.is_bound:
        return PodView(namespace=pod.namespace, name=pod.name, uid=pod.uid)
    kind, _, _ = pod.owner.partition(" ")
    return PodView(
        namespace=pod.namespace, name=pod.name, uid=pod.uid, owner_kind=kind, owner_uid=pod.owner, came_bound=True
    )


def _binding_owner(pod: PodForecast, node: str) -> OwnerHealth:
    """Parses a controller from the forecast's text, such as "ReplicaSet shop/cart-5d9", into the form that the gate
    `bound-pods` needs."""
    kind, _, rest = pod.owner.partition(" ")
    namespace, _, name = rest.partition("/")
    return OwnerHealth(
        kind=kind, namespace=namespace, name=name, uid=pod.owner, generation=0, replicas=0, ready=0, bound_to=node
    )


def _answer(pod: PodForecast) -> DryRunAnswer:
    if pod.outcome is Outcome.BLOCKED:
        return DryRunAnswer(answer=Evictable.BUDGET, detail=pod.sentence)
    return DryRunAnswer(answer=Evictable.ALLOWED)


_SUBJECTS: Mapping[Code, str] = {
    Code.OUTSIDE_WINDOW: "outside the window",
    Code.NO_WINDOW: "no window selects the node",
    Code.MINIMUM_INTERVAL: "the last reboot is too recent",
    Code.CLUSTER_INTERVAL: "the last reboot of the cluster is too recent",
    Code.QUORUM: "the control plane's quorum",
    Code.LIMIT_REACHED: "--concurrency is used up",
    Code.HELD: "held by a person",
    Code.CORDONED: "cordoned, not by careen",
}


def _subject(refused: Refusal, forecast: Forecast | None) -> str:
    """Returns the cause of a refusal without the node's name, so that nodes with the same cause can be counted
    together."""
    if refused.code is Code.BUDGET_SPENT:
        return refused.sentence.rpartition("; ")[2]
    if refused.code is Code.NODES_DOWN:
        return refused.sentence.partition("; with this node ")[0]
    if refused.code is Code.BOUND_POD and forecast is not None:
        return f"{', '.join(sorted({pod.owner for pod in forecast.pods if pod.is_bound})[:3])} (spec.nodeName)"
    if forecast is None:
        return _SUBJECTS.get(refused.code, refused.sentence)
    spent = sorted(
        {f"{pod.budget.namespace}/{pod.budget.name}" for pod in forecast.with_outcome(Outcome.BLOCKED) if pod.budget}
    )
    if spent:
        return f"the disruption budget{'s' if len(spent) > 1 else ''} {', '.join(spent)}"
    homeless = sorted({pod.owner or pod.title for pod in forecast.with_outcome(Outcome.PENDING)})
    if homeless:
        return f"no room for {first_few(homeless)}"
    return "pods that cannot be predicted"
