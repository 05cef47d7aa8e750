"""Makes room for an unschedulable pod by evicting pods of lower priority from one node.

Refuses nothing. Names the node to nominate and the pods to evict; the caller of the cycle writes both to the cluster.
An earlier nomination of the pod is kept, set or cleared by the code that handles the failed cycle. The algorithm is in
preemption/. Source: pkg/scheduler/framework/plugins/defaultpreemption and pkg/scheduler/framework/preemption, v1.36.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import field

from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.config.plugin_args import DefaultPreemptionArgs
from scheduler_core.extenders.chain import ExtenderChain
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.extension_points import Nomination, PostFilterResult
from scheduler_core.framework.verdict import SUCCESS, Verdict, VerdictCode, error, unresolvable, unschedulable
from scheduler_core.model.pod import Pod
from scheduler_core.preemption.choice import choose_node
from scheduler_core.preemption.eligibility import why_ineligible
from scheduler_core.preemption.victims import VictimRules, Victims, select_victims
from scheduler_core.sentences import none_available
from scheduler_core.snapshot.node_info import NodeInfo
from scheduler_core.snapshot.nodes.kept_answers import KeptAnswers, kept_answers, others
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value

if TYPE_CHECKING:
    from scheduler_core.framework.failed_search import FailedSearch

# The real scheduler tries nodes in a random order until it has the configured number of candidates. Up to this number
# of nodes, all are tried here, so that the best candidate is found, whatever the order.
_SEARCHED_IN_FULL = 100

_NOT_HELPFUL = "Preemption is not helpful for scheduling"
_DEFAULT_VERSION = KubeVersion(major=1, minor=36)


def _nobody(_pod: Pod) -> bool:
    return False


class PreemptionAttempt(Value):
    """In the state of each cycle in which DefaultPreemption ran, even if nobody can be evicted."""


class DefaultPreemption(Value):
    """`is_preempting`: evictions for this pod are still in progress; it must not enter the queue until they end."""

    args: DefaultPreemptionArgs = field(default_factory=DefaultPreemptionArgs)
    extenders: ExtenderChain = field(default_factory=ExtenderChain)
    is_preempting: Callable[[Pod], bool] = _nobody
    kube_version: KubeVersion = _DEFAULT_VERSION
    name: str = "DefaultPreemption"

    def pre_enqueue(self, pod: Pod) -> Verdict:
        return (
            unresolvable("waiting for the preemption for this pod to be finished")
            if self.is_preempting(pod)
            else SUCCESS
        )

    def post_filter(self, state: CycleState, pod: Pod, search: FailedSearch) -> PostFilterResult:
        state.write(PreemptionAttempt())
        snapshot = search.nodes.snapshot
        obstacle = _why_ineligible(pod, search)
        if obstacle:
            return PostFilterResult(unschedulable(f"preemption: {obstacle}"))
        found = self.find_candidates(state, pod, search)
        failed = next((verdict for verdict in found.refusals if verdict.code is VerdictCode.ERROR), None)
        if not found.candidates and failed is not None:
            return PostFilterResult(error(f"preemption: {failed.message}"))
        if not found.candidates:
            return PostFilterResult(
                unschedulable(f"preemption: {_sentence(found.refusals, len(snapshot.nodes))}"), Nomination(clears=True)
            )
        candidates = self._ask_extenders(pod, found.candidates, snapshot)
        if isinstance(candidates, Verdict):
            return PostFilterResult(error(f"preemption: {candidates.message}"))
        if not candidates:
            return PostFilterResult(unschedulable("preemption: no candidate node for preemption"))
        node = choose_node(candidates)
        # Preemption waits for a terminating victim and does not evict it again.
        to_evict = tuple(sorted(victim.key for victim in candidates[node].pods if not victim.terminating))
        unordered = frozenset[str]().union(*(each.unordered_budgets for each in candidates.values()))
        nomination = Nomination(
            node=node, victims=to_evict, is_sampled=found.is_sampled, unordered_budgets=tuple(sorted(unordered))
        )
        return PostFilterResult(self._success(node, candidates[node]), nomination)

    def _success(self, node: str, victims: Victims) -> Verdict:
        if not self.kube_version.preemption_is_announced:
            return SUCCESS
        words = f"found a potential placement for pod on node {node}, preempting {len(victims.pods)} victims"
        return Verdict(VerdictCode.SUCCESS, (f"preemption: {words}",))

    def find_candidates(self, state: CycleState, pod: Pod, search: FailedSearch) -> Candidates:
        """Nodes where evictions would make room for the pod; stops when it has enough.

        The real search starts at a random node and runs in several threads. This one starts at the first node, to be
        deterministic.
        """
        rows = search.nodes.columns.in_tree_order(search.diagnosis.rows_that_may_be_helped)
        wanted = self._wanted(len(rows))
        candidates: dict[str, Victims] = {}
        refusals: list[Verdict] = []
        harmless = 0
        rules = VictimRules(
            unstarted_age_in_order=self.kube_version.unstarted_victims_age_in_order,
            stops_at_overdrawn=self.kube_version.first_overdrawn_budget_ends_the_count,
        )
        snapshot, trial = search.nodes.snapshot, _Trial(search)
        budgets = snapshot.objects.budgets
        before: KeptAnswers[Victims | Verdict] = kept_answers(
            snapshot, "victims", search.runner.question(state, pod), given=budgets
        )
        for row in rows.tolist():
            node_info = snapshot.node_info(row, search.nodes.rules)
            nominated = others(pod, search.nominated.get(node_info.name, ()))
            found = before.find(node_info, nominated)
            if found is None:
                found = select_victims(trial, state.copy(), pod, node_info, budgets, rules=rules)
                before.keep(node_info, nominated, found)
            if isinstance(found, Verdict):
                refusals.append(found)
                continue
            candidates[node_info.name] = found
            harmless += not found.budget_violations
            if harmless and len(candidates) >= wanted:
                break
        return Candidates(candidates, tuple(refusals), is_sampled=len(candidates) + len(refusals) < len(rows))

    def _wanted(self, node_count: int) -> int:
        if node_count <= _SEARCHED_IN_FULL:
            return node_count
        return min(
            node_count,
            max(node_count * self.args.min_candidate_nodes_percentage // 100, self.args.min_candidate_nodes_absolute),
        )

    def _ask_extenders(
        self, pod: Pod, candidates: dict[str, Victims], snapshot: Snapshot
    ) -> dict[str, Victims] | Verdict:
        if not self.extenders:
            return candidates
        return self.extenders.narrow_preemption(
            pod, candidates, {node.name: snapshot.pods_on(node.name) for node in snapshot.nodes}
        )


class Candidates(Value):
    """The nodes where evictions would make room, each with its victims, and the refusals of the nodes where evictions
    do not help. `is_sampled`: the search ended before it tried every node."""

    candidates: dict[str, Victims]
    refusals: tuple[Verdict, ...]
    is_sampled: bool = False


class _Trial(Value):
    """The cycle's filters on a node whose pods were changed. The filters also count the pods nominated to the node."""

    search: FailedSearch

    def filter_node(self, state: CycleState, pod: Pod, node_info: NodeInfo, *, has_passed: bool = False) -> Verdict:
        nominated = self.search.nominated.get(node_info.name, ())
        return self.search.runner.filter_node_with_nominated(state, pod, node_info, nominated, has_passed=has_passed)

    def counts_pods(self, state: CycleState) -> bool:
        return self.search.runner.counts_pods(state)

    def pod_added(self, state: CycleState, pod: Pod, added: Pod, node_info: NodeInfo) -> Verdict:
        return self.search.runner.add_pod(state, pod, added, node_info)

    def pod_removed(self, state: CycleState, pod: Pod, removed: Pod, node_info: NodeInfo) -> Verdict:
        return self.search.runner.remove_pod(state, pod, removed, node_info)


def _why_ineligible(pod: Pod, search: FailedSearch) -> str:
    snapshot = search.nodes.snapshot
    row = snapshot.columns.row_of.get(pod.nominated_node_name)
    if row is None:
        return why_ineligible(pod, None, ())
    return why_ineligible(pod, search.diagnosis.verdict(row), snapshot.placements.on_node(row))


def _sentence(refusals: Sequence[Verdict], node_count: int) -> str:
    """`0/3 nodes are available: 1 Insufficient cpu, 2 Preemption is not helpful for scheduling.` The last number counts
    the nodes on which no eviction was tried."""
    reasons = Counter(reason for verdict in refusals for reason in verdict.reasons)
    if len(refusals) < node_count:
        reasons[_NOT_HELPFUL] += node_count - len(refusals)
    return none_available(node_count, reasons)
