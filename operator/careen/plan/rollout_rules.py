"""The agents' rules in a simulated roll-out: the order of the nodes by `core/lock/order.py`, and the decisions of the
agents of the first nodes in line and of the holders by `core/decide.py`."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from careen.core.decision import Refusal
from careen.core.facts import keys
from careen.core.facts.observation import Fleet, NodeView, RequestKind
from careen.core.facts.phases import Phase
from careen.core.facts.policy import Policy
from careen.core.facts.progress import Progress, to_annotation
from careen.core.facts.reasons import Code
from careen.core.facts.times import rfc3339
from careen.core.gates import GATES, cluster_interval
from careen.core.gates.maintenance_window import is_waived
from careen.core.lock import content as lock
from careen.core.lock import order
from careen.core.lock.content import LockContent
from careen.core.lock.line import Line
from careen.core.people.requests import request_of
from careen.core.steps.shared import late_gates
from careen.plan.simulated_agent import SimulatedAgent, Stand, facts_at, facts_of, simulated, turns
from careen.plan.waiters import Waiters
from careen.plan.window_groups import WindowGroups
from careen.rollout.remedies import general
from scheduler_core.sentences import first_few
from scheduler_core.simulation.forecast import Forecast, Outcome
from scheduler_core.simulation.timeline import Obstacle
from scheduler_core.values import replace_value


class RolloutRules:
    """Implements `Rules` of scheduler_core's rollout.py, and contains the simulated lock and the holders' agents."""

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
        """At the beginning, no node holds a claim. `named` are the nodes in the lock's line. `moves` says how many pods
        a drain of each node would evict, and `moves_in_zone` how many of these must stay in the node's zone, for nodes
        without these annotations. `released_at` is the end of the cluster's last reboot, as the lock says."""
        self._policy = simulated(policy)
        self._content = LockContent(line=Line(names=named), released_at=released_at)
        self._holders: dict[str, Stand] = {}
        self._last: Stand | None = None  # of the waiting node that was asked last
        self._zone: str | None = None
        self._rest: tuple[datetime, tuple[str, ...]] | None = None
        fleet = {node.name: node for node in nodes}
        # The gate `budgets` finds the holders in the lock, so it need not go through thousands of healthy Nodes.
        self._fleet = tuple(_plain(node) for node in fleet.values() if _counts_for_the_budgets(node))
        self._sizes = _group_sizes(fleet.values(), policy)
        self._waiters = Waiters((_ready(node, moves or {}, moves_in_zone or {}) for node in fleet.values()), policy)
        ends = (gate.ends(node, policy) for node in fleet.values() for gate in GATES)
        self._ends_of_waits = sorted({each for each in ends if each is not None})
        self._hurried = {
            node.name: node
            for node in fleet.values()
            if not {keys.REBOOT_NOW, keys.REQUEST}.isdisjoint(node.annotations)
        }
        self._windows = WindowGroups(fleet.values(), policy)

    # ---- the order ----

    def line(self, waiting: Collection[str], at: datetime, movable: Callable[[str], int]) -> Sequence[str]:
        """The waiting nodes that come next; none if every claim is taken. Nodes whose windows are closed are left out,
        as without the label `ready`, unless a person waived the windows."""
        if not lock.free_slots(self._content, self._policy.concurrency):
            return ()
        if self._rests(at):
            return self._first_at_rest(waiting, at, movable)
        return self._next(waiting, at, movable)

    def _first_at_rest(self, waiting: Collection[str], at: datetime, movable: Callable[[str], int]) -> Sequence[str]:
        """The node that would come next without --cluster-minimum-interval: its refusal is the plan's reason for the
        wait of all. None while a node holds a claim, because the interval begins with the release."""
        if self._content.holders:
            return ()
        if self._rest is None or self._rest[0] != at:
            self._rest = (at, tuple(self._next(waiting, at, movable))[:1])
        return [name for name in self._rest[1] if name in waiting]

    def _next(self, waiting: Collection[str], at: datetime, movable: Callable[[str], int]) -> Sequence[str]:
        if not self._windows.are_all_open(at):
            waiting = [name for name in waiting if self._windows.is_open(name, at) or self._is_waived(name, at)]
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

    def _rests(self, at: datetime) -> bool:
        """Whether --cluster-minimum-interval forbids every reboot at this instant. False if a person waived it for a
        node, because that node need not wait."""
        if not self._policy.cluster_interval_seconds or any(self._is_waived(name, at) for name in self._hurried):
            return False
        again = cluster_interval.ends(self._content, self._policy, at)
        return bool(self._content.holders) or (again is not None and at < again)

    def _is_waived(self, name: str, at: datetime) -> bool:
        return name in self._hurried and is_waived(self._hurried[name], at)

    # ---- the agents' decisions ----

    def refusal(self, node: str, at: datetime, forecast: Forecast | None) -> Obstacle | None:
        """Why the node's agent does not begin the drain; None if it does, or if only a forecast can tell.

        A waiting node keeps nothing of these turns until `claimed`. A holder between claim and drain goes on.
        """
        told = facts_of(forecast, node) if forecast else {}
        if (held := self._holders.get(node)) is not None:
            stand = self._holders[node] = self._turns(held.claimed or held.agent, self._content, at, **told)
        else:
            head = self._content.with_line(Line(names=(node,), at=rfc3339(at), abreast=1, waiting=1))
            stand = self._last = self._turns(SimulatedAgent.waiting(self._waiters[node]), head, at, **told)
        return None if stand.decision.wants or stand.decision.phase is Phase.DRAINING else _obstacle(stand, forecast)

    def late_refusal(self, node: str, at: datetime) -> Obstacle | None:
        """Why the agent of the drained node undoes the drain; None if it asks the host to reboot."""
        stand = self._holders[node] = self._turns(self._holders[node].agent, self._content, at)
        return None if stand.decision.phase is Phase.REBOOTING else _obstacle(stand, None)

    def claimed(self, node: str, at: datetime) -> None:  # noqa: ARG002 - the port's signature
        """Keeps the claim that the agent of the last asked node took."""
        assert self._last is not None
        assert self._last.content.entries_of(node), f"{node} was not the last node that was asked, or was refused"
        self._holders[node] = self._last
        self._content = self._last.content.with_line(self._content.line.without(node))

    def released(self, node: str, at: datetime) -> None:
        """The agent releases its claim after the reboot, or after it has undone the drain. Other nodes of the node's
        zone come next, except with --order=fewest-moves."""
        agent = self._holders.pop(node).agent
        agent = agent.settled() if agent.record.phase == Phase.REBOOTING else agent
        stand = self._turns(agent, self._content, at)
        if stand.content.entries_of(node):  # a drained node waits for the end of a refusal, and then undoes the drain
            stand = self._turns(stand.agent, stand.content, at + _LONGEST_WAIT)
        self._content = stand.content
        assert not self._content.entries_of(node), f"{node} keeps its claim"
        self._zone = self._waiters[node].zone

    def _turns(self, agent: SimulatedAgent, content: LockContent, at: datetime, **told: Any) -> Stand:
        uptime = round(at.timestamp(), 3)  # as in a record: an instant before its own mark would be a wait
        fleet = Fleet(nodes=self._fleet, read_at_uptime=uptime, group_sizes=self._sizes)
        return turns(agent, content, self._policy, facts_at(at, fleet) | told)

    # ---- the calendar ----

    def next_opening(self, at: datetime) -> datetime | None:
        """The next instant at which a closed window opens or a gate stops refusing a node."""
        instants = self._ends_of_waits[bisect_right(self._ends_of_waits, at) :][:1]
        again = cluster_interval.ends(self._content, self._policy, at)
        instants += [each for each in (again, self._windows.next_opening(at)) if each is not None and each > at]
        return min(instants, default=None)

    def next_closing(self, at: datetime) -> datetime | None:
        """The last second before all windows are closed. If none is open at `at`, the search starts at the next
        opening."""
        return self._windows.next_closing(at)


def _group_sizes(nodes: Iterable[NodeView], policy: Policy) -> dict[str, int]:
    """The number of nodes in each group to which a budget in percent applies."""
    shares = [budget for budget in policy.budgets if budget.percent is not None]
    return Counter(group for node in nodes for budget in shares if (group := budget.group_of(node.labels)) is not None)


_LONGEST_WAIT = timedelta(seconds=max(late_gates.FOREIGN_SECONDS, late_gates.HOOK_SECONDS) + 1)
_OF_AN_EARLIER_TRY = frozenset({keys.PROGRESS, keys.REFUSALS, keys.RETRY})


def _ready(node: NodeView, moves: Mapping[str, int], moves_in_zone: Mapping[str, int]) -> NodeView:
    """The Node as its agent would write it when no cheap gate refuses: it waits for its reboot, with the label `ready`
    and the numbers that decide its place. A person's request to keep the node down and an autoscaler's taint are left
    out, because the plan was asked for the node's reboot."""
    request, since = request_of(node), order.need_since(node)
    unwanted = _OF_AN_EARLIER_TRY | ({keys.REQUEST} if request and request.kind is not RequestKind.REBOOT else set())
    annotations = {key: value for key, value in node.annotations.items() if key not in unwanted}
    # a real year, not the placeholder of an unknown beginning
    annotations[keys.PROGRESS] = _waits_since(since if since[:1] == "2" else "")
    if node.name in moves and keys.MOVES not in annotations:
        annotations[keys.MOVES] = str(moves[node.name])
        annotations[keys.MOVES_IN_ZONE] = str(moves_in_zone.get(node.name, 0))
    labels = {**node.labels, keys.REBOOT_LABEL: order.READY}
    return replace_value(node, labels=labels, annotations=annotations, taints=())


@cache
def _waits_since(since: str) -> str:
    return to_annotation(Progress(phase=Phase.WAITING, need_since=since))


def _plain(node: NodeView) -> NodeView:
    """The node without annotations and careen's label: the budgets count it as down only if it is cordoned or not
    ready."""
    labels = {key: value for key, value in node.labels.items() if key != keys.REBOOT_LABEL}
    return replace_value(node, annotations={}, labels=labels)


def _counts_for_the_budgets(node: NodeView) -> bool:
    """Whether the gate `budgets` counts this Node even without a claim: as down, or for the quorum."""
    return node.unschedulable or not node.ready or node.is_control_plane


def _obstacle(stand: Stand, forecast: Forecast | None) -> Obstacle:
    decision = stand.decision
    if not decision.refusals:
        reason = decision.reason
        return Obstacle(rule=reason.code.value, subject=reason.sentence, sentence=reason.sentence)
    refused = decision.refusals[0]
    return Obstacle(
        rule=refused.gate,
        subject=_subject(refused, forecast),
        sentence=refused.sentence,
        barred=_barred(refused, forecast),
        remedy=general(refused) if refused.code is Code.FORECAST_REFUSES else "",
    )


def _barred(refused: Refusal, forecast: Forecast | None) -> tuple[str, ...]:
    """The pods whose budgets alone forbid the drain; () if the settings do not mind them."""
    if forecast is None or not any(each.startswith("budget ") for each in refused.about):
        return ()
    return tuple(f"{pod.namespace}/{pod.name}" for pod in forecast.never)


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


_OF_THE_FORECAST = frozenset(
    {Code.BOUND_POD, Code.PROTECTED_POD, Code.LOST_POD, Code.FORECAST_REFUSES, Code.EVICTION_REFUSED}
)


def _subject(refused: Refusal, forecast: Forecast | None) -> str:
    """The cause of a refusal without the node's name, so that nodes with the same cause can be counted together."""
    if refused.code is Code.BUDGET_SPENT:
        return refused.sentence.rpartition("; ")[2]
    if refused.code is Code.NODES_DOWN:
        return refused.sentence.partition("; with this node ")[0]
    if forecast is None or refused.code not in _OF_THE_FORECAST:
        return _SUBJECTS.get(refused.code, refused.sentence)
    if refused.code is Code.BOUND_POD:
        return f"{', '.join(sorted({pod.owner for pod in forecast.pods if pod.is_bound})[:3])} (spec.nodeName)"
    if refused.code is Code.PROTECTED_POD:
        wanting = sorted({pod.owner or pod.title for pod in forecast.pods if pod.wants_rest})
        return f"pods that ask not to be disturbed, of {first_few(wanting)}"
    if refused.code is Code.LOST_POD:
        return f"pods that would be lost: {first_few(sorted(pod.title for pod in forecast.with_outcome(Outcome.LOST)))}"
    spent = sorted(
        {
            f"{pod.budget.namespace}/{pod.budget.name}"
            for pod in forecast.with_outcome(Outcome.BLOCKED)
            if pod.budget and not pod.opens
        }
    )
    if spent:
        return f"the disruption budget{'s' if len(spent) > 1 else ''} {', '.join(spent)}"
    homeless = sorted({pod.owner or pod.title for pod in forecast.with_outcome(Outcome.PENDING)})
    if homeless:
        return f"no room for {first_few(homeless)}"
    return "pods that cannot be predicted"
