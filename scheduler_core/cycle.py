"""One scheduling cycle for one pod, from top to bottom. Read this module first.

    search     PreFilter may restrict the nodes; Filter refuses nodes; extenders may refuse more nodes
    give up    if no node is left: PostFilter tries whether evicting other pods would help
    choose     the highest total of PreScore, Score, NormalizeScore and extenders, if several nodes are left
    bind       Reserve, Permit, PreBind, Bind, PostBind, for callers that bind the pod (framework/binding.py)

Without a `Search`, every node is filtered and scored. From 100 nodes on, the real scheduler stops early and starts at a
node that depends on its earlier cycles (pkg/scheduler/schedule_one.go); with a `Search`, so does this cycle.
`CycleResult.sample` says whether the real scheduler may stop early.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Final

import numpy as np

from scheduler_core.arguments import expect, expect_count, expect_flags
from scheduler_core.config.configuration import Configuration, ExtenderSettings, Profile
from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.config.plugin_merge import effective_plugins, refuse_misspelt_names
from scheduler_core.cycle_result import CycleResult, NodeSample
from scheduler_core.extenders.chain import EXTENDER_NAME, ExtenderChain
from scheduler_core.extenders.protocol import ExtenderTransport
from scheduler_core.framework.cycle_state import CycleError, CycleState
from scheduler_core.framework.diagnosis import Diagnosis
from scheduler_core.framework.extension_points import Nomination
from scheduler_core.framework.failed_search import FailedSearch
from scheduler_core.framework.plugin_set import Factory, PluginSet, build, check_parameters, register, serves
from scheduler_core.framework.runner import NOBODY, Nominated, Runner
from scheduler_core.framework.scoring.scorer import ScoreTable
from scheduler_core.framework.verdict import Verdict, VerdictCode, unknown, unresolvable
from scheduler_core.model.pod import Pod
from scheduler_core.model.requests import RequestRules
from scheduler_core.plugin_contract import plugin_that_raised
from scheduler_core.plugins import IN_TREE
from scheduler_core.plugins.default_preemption import DefaultPreemption
from scheduler_core.plugins.default_profile import default_plugins
from scheduler_core.plugins.dynamic_resources import DynamicResources
from scheduler_core.plugins.volume_binding import VolumePlan
from scheduler_core.sampling import Rows, Search, Windows, nodes_to_find
from scheduler_core.snapshot.columns import Columns
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.ties import first_of_places
from scheduler_core.values import replace_value

_LEFT_OUT: Final = unknown(
    "was left out to save memory: what the pods of its namespace say of their places is too much"
)
_NO_NODES: Final = "no nodes available to schedule pods"


class NoProfileError(LookupError):
    """No profile has the pod's schedulerName: the pod belongs to another scheduler or to none."""


class Scheduler:
    """kube-scheduler's decisions under one configuration and for one Kubernetes release.

    Remembers nothing between calls: the same snapshot and pod always give the same result.
    """

    def __init__(
        self,
        configuration: Configuration | None = None,
        kube_version: str | KubeVersion = "1.36",
        plugins: Mapping[str, Factory] | None = None,
        transport: Callable[[ExtenderSettings], ExtenderTransport] | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """`plugins`: factories of out-of-tree plugins, by name; a profile must enable them. `transport` connects to an
        extender, by default over HTTP. `clock`, in seconds since the epoch, is asked only for claims whose devices are
        not ready.

        Raises ConfigurationError if a configured plugin does not exist or does not implement its extension point, and
        ExtenderError if an extender's address or certificates cannot be used.
        """
        expect("configuration", configuration, Configuration, optional=True)
        expect("plugins", plugins, Mapping, optional=True)
        for name, function in (("transport", transport), ("clock", clock)):
            if not (function is None or callable(function)):
                raise TypeError(f"{name} is a {type(function).__name__}, expected a function")
        self.configuration = configuration or Configuration()
        self.kube_version = kube_version if isinstance(kube_version, KubeVersion) else KubeVersion.parse(kube_version)
        self._clock = clock
        self.rules = RequestRules(
            status_resources=self.kube_version.status_resources_count,
            pod_level=self.kube_version.pod_level_resources,
            pod_level_resize=self.kube_version.pod_level_resize,
            whole_sums=self.kube_version.whole_sums_are_compared,
        )
        self.extenders = ExtenderChain.connect(self.configuration.extenders, transport or _over_http)
        factories = register(IN_TREE, plugins or {})
        self._runners = {
            p.scheduler_name: Runner(self._plugin_set(p, index, factories))
            for index, p in enumerate(self.configuration.profiles)
        }
        used = {name for runner in self._runners.values() for name in runner.plugins.plugins}
        self._unused = tuple(name for name in plugins or () if name not in used)
        self._percentages = {p.scheduler_name: self._percentage(p) for p in self.configuration.profiles}

    def __repr__(self) -> str:
        """Names the plugins that no profile enables: they never run."""
        unused = f" unused={', '.join(self._unused)}" if self._unused else ""
        return f"<Scheduler kube_version={str(self.kube_version)!r} profiles={', '.join(self._runners)}{unused}>"

    def _plugin_set(self, profile: Profile, index: int, factories: Mapping[str, Factory]) -> PluginSet:
        refuse_misspelt_names(profile.plugins, profile.written_args, factories, where=f"profiles[{index}]")
        defaults = tuple(p for p in default_plugins(self.kube_version) if p.name in factories)
        built = {
            name: build(name, factories[name], profile.plugin_args(name, self.kube_version), self.kube_version)
            for name in profile.plugins.needed(defaults)
            if name in factories
        }
        for name, plugin in built.items():
            if name not in IN_TREE:
                check_parameters(plugin)
        preemption = built.get("DefaultPreemption")
        if self.extenders and isinstance(preemption, DefaultPreemption):
            built["DefaultPreemption"] = replace_value(preemption, extenders=self.extenders)
        devices = built.get("DynamicResources")
        if isinstance(devices, DynamicResources):
            built["DynamicResources"] = replace_value(devices, clock=self._clock)
        lists = effective_plugins(
            profile.plugins,
            defaults,
            lambda name, point: name in built and serves(built[name], point),
            where=f"profiles[{index}].plugins",
        )
        return PluginSet(built, lists.by_point, lists.weights)

    @property
    def runners(self) -> Mapping[str, Runner]:
        """Each profile's plugins, by schedulerName."""
        return self._runners

    def runner(self, pod: Pod) -> Runner:
        """The plugins that serve this pod. Raises NoProfileError if no profile has its schedulerName."""
        if type(pod) is not Pod:
            expect("pod", pod, Pod)
        runner = self._runners.get(pod.spec.scheduler_name)
        if runner is None:
            raise NoProfileError(f"pod {pod.key}: no profile has the schedulerName {pod.spec.scheduler_name!r}")
        return runner

    def schedule(
        self,
        snapshot: Snapshot,
        pod: Pod,
        *,
        nominated: Nominated = NOBODY,
        honors_nomination: bool = True,
        search: Search | None = None,
        start: int | None = None,
        preempts: bool = True,
    ) -> CycleResult:
        """The node to which the pod would be bound now, and why other nodes refuse it. Changes no snapshot.

        `nominated` maps a node to the pods that preemption nominated to it. With `honors_nomination`, the pod's own
        nominated node is tried first. Without a `search`, every node is checked; `start=n` is short for
        `search=Search(n)`: one worker begins at this position of the scheduler's node order. Without `preempts`,
        PostFilter does not run: `node` is the same, and a pod that fits nowhere costs as little as one that fits.
        Raises NoProfileError if the pod belongs to another scheduler.
        """
        if start is not None:
            expect_count("start", start, of="a position in the scheduler's list of nodes")
            search = Search(start) if search is None else search
        (result,) = self.schedule_each(
            snapshot, pod, (search,), nominated=nominated, honors_nomination=honors_nomination, preempts=preempts
        )
        return result

    def schedule_each(
        self,
        snapshot: Snapshot,
        pod: Pod,
        searches: Sequence[Search | None],
        *,
        nominated: Nominated = NOBODY,
        honors_nomination: bool = True,
        preempts: bool = True,
    ) -> list[CycleResult]:
        """`schedule` for each of these searches, which share what is equal for all of them."""
        _expect_question(snapshot, pod, searches, nominated)
        if type(honors_nomination) is not bool or type(preempts) is not bool:
            expect_flags(honors_nomination=honors_nomination, preempts=preempts)
        if self.extenders and len(searches) > 1:  # an extender's refusals belong to one search
            return [
                self.schedule(
                    snapshot,
                    pod,
                    nominated=nominated,
                    honors_nomination=honors_nomination,
                    search=each,
                    preempts=preempts,
                )
                for each in searches
            ]
        runner = self.runner(pod)
        nodes = NodeList(snapshot, None, self.rules)
        if not len(nodes):
            return [CycleResult(pod, Diagnosis(nodes=nodes), sentence=_NO_NODES)] * len(searches)
        if pod.spec.is_left_out:
            refused = Diagnosis(nodes=nodes, prefilter=_LEFT_OUT)
            return [CycleResult(pod, refused, sentence=_LEFT_OUT.message)] * len(searches)
        state = CycleState()
        try:
            diagnosis = runner.search(state, pod, nodes, nominated)
            if honors_nomination and self._nominated_node_passes(pod, diagnosis):
                name, columns = pod.nominated_node_name, snapshot.columns
                result = CycleResult(
                    pod, diagnosis, node=name, best_rows=(columns.row_of[name],), names=columns.names, state=state
                )
                return [result if each is None else replace_value(result, next_start=each.start) for each in searches]
            cycle = _Cycle(
                self, runner, state=state, pod=pod, diagnosis=diagnosis, nominated=nominated, preempts=preempts
            )
            return [cycle.conclude(each) for each in searches]
        except CycleError as failure:
            refusal = Verdict(VerdictCode.ERROR, (str(failure),), failure.plugin)
            failed = CycleResult(
                pod, Diagnosis(nodes=nodes, prefilter=refusal), sentence=str(failure), error=str(failure)
            )
            return [failed if each is None else replace_value(failed, next_start=each.start) for each in searches]
        except Exception as bug:
            if name := plugin_that_raised(runner.plugins.plugins, bug.__traceback__):
                bug.add_note(f'raised by plugin "{name}" for pod {pod.key}')
            raise

    def nodes_wanted(self, pod: Pod, searched: int) -> int:
        """How many fitting nodes the real scheduler finds before it stops, if PreFilter left `searched` nodes."""
        expect("pod", pod, Pod)
        expect_count("searched", searched, of="a number of nodes")
        return _nodes_wanted(self._percentages.get(pod.spec.scheduler_name, 0), searched)

    def nodes_wanted_by(self, profile: Profile, searched: int) -> int:
        """`nodes_wanted` for pods of this profile. At most 1 if nothing scores nodes and no extender filters them."""
        expect("profile", profile, Profile)
        expect_count("searched", searched, of="a number of nodes")
        return _nodes_wanted(self._percentages[profile.scheduler_name], searched)

    def _percentage(self, profile: Profile) -> int | None:
        """The profile's percentageOfNodesToScore; None if the scheduler takes the first fitting node."""
        runner = self._runners[profile.scheduler_name]
        if not (runner.has_scores or self.extenders.has_prioritizers or self.extenders.has_filters):
            return None
        return self.configuration.nodes_percentage(profile)

    def _nominated_node_passes(self, pod: Pod, diagnosis: Diagnosis) -> bool:
        """False also if an extender fails."""
        columns = diagnosis.nodes.columns
        row = columns.row_of.get(pod.nominated_node_name)
        if row is None or row not in diagnosis.passed:
            return False
        return not self.extenders or bool(self.extenders.filter(pod, [columns.nodes[row]]).nodes)

    def extender_refusals(self, pod: Pod, columns: Columns, asked: Rows) -> dict[int, Verdict]:
        """Refusals by row. A node that an extender's answer omits is refused."""
        if not self.extenders:
            return {}
        answer = self.extenders.filter(pod, [columns.nodes[row] for row in asked])
        if answer.problem is not None:
            raise CycleError(EXTENDER_NAME, answer.problem.message)
        remaining = {node.name for node in answer.nodes}
        named = ((int(row), columns.names[row]) for row in asked)
        unnamed = unresolvable().by(EXTENDER_NAME)
        return {row: answer.refusals.get(name, unnamed) for row, name in named if name not in remaining}

    def with_extender_scores(self, pod: Pod, table: ScoreTable) -> ScoreTable:
        if not self.extenders:
            return table
        columns = table.nodes.columns
        given = self.extenders.prioritize(pod, [columns.nodes[row] for row in table.nodes.rows])
        scores = np.fromiter((given.get(name, 0) for name in table.nodes.names), dtype=np.int64, count=len(table.nodes))
        return ScoreTable(table.nodes, {**table.by_plugin, EXTENDER_NAME: scores}, table.total + scores)

    def place(self, snapshot: Snapshot, result: CycleResult) -> Snapshot:
        """The cluster as the next pod's cycle sees it: the pod on its node, the volumes for its claims reserved.

        Raises ValueError if the result has no node. The real binding is in framework/binding.py.
        """
        expect("snapshot", snapshot, Snapshot)
        expect("result", result, CycleResult)
        if result.node is None or result.state is None:
            raise ValueError(f"pod {result.pod.key} cannot be placed: the scheduling result has no node")
        for plugin in self.runner(result.pod).reserves:
            plugin.reserve(result.state, result.pod, result.node)
        plan = result.state.find(VolumePlan)
        placed = snapshot.with_pod_placed(result.pod, result.node)
        if plan is None or not (plan.claims or plan.volumes):
            return placed
        objects = plan.applied_to(snapshot.objects)
        return placed.with_objects(claims=objects.claims, volumes=objects.volumes)


def with_runners(scheduler: Scheduler, runners: Mapping[str, Runner]) -> Scheduler:
    """The same scheduler, with these runners for their profiles."""
    changed = copy.copy(scheduler)
    changed._runners = {**scheduler.runners, **runners}
    return changed


def _expect_question(snapshot: Snapshot, pod: Pod, searches: Sequence[Search | None], nominated: Nominated) -> None:
    if type(snapshot) is not Snapshot or type(pod) is not Pod:
        expect("snapshot", snapshot, Snapshot)
        expect("pod", pod, Pod)
    if nominated is not NOBODY:
        expect("nominated", nominated, Mapping)
    if type(searches) is not tuple:
        expect("searches", searches, Sequence)
    for each in searches:
        if each is not None and type(each) is not Search:
            expect("search", each, Search)


class _Cycle:
    """A cycle after the filters, for one or several possible searches. Searches that find the same nodes share their
    scores, and preemption runs only once."""

    def __init__(
        self,
        scheduler: Scheduler,
        runner: Runner,
        *,
        state: CycleState,
        pod: Pod,
        diagnosis: Diagnosis,
        nominated: Nominated,
        preempts: bool,
    ) -> None:
        self._preempts = preempts and runner.has_post_filters
        self._scheduler = scheduler
        self._runner = runner
        self._state = state
        self._pod = pod
        self._diagnosis = diagnosis
        self._nominated = nominated
        self._passed = diagnosis.passed
        self._wanted = scheduler.nodes_wanted(pod, len(diagnosis.searched))
        self._sample = NodeSample(self._wanted, len(self._passed)) if len(self._passed) > self._wanted else None
        self._tables: dict[bytes, ScoreTable] = {}
        self._given_up: CycleResult | None = None

    def conclude(self, search: Search | None) -> CycleResult:
        """`search=None`: every node is checked."""
        if search is None:
            result = self._decide(self._passed, is_in_tree_order=False)
            # If all nodes are equally good, `best` has all of them, and it does not matter which the scheduler checked.
            is_choice = result.table is not None and len(result.best_rows) < len(result.table.nodes)
            return replace_value(result, sample=self._sample) if self._sample and is_choice else result
        found = self._windows.found(search)
        next_start = (search.start + found.processed) % len(self._diagnosis.nodes)
        result = self._decide(found.rows, is_in_tree_order=True)
        if result.node and self._wanted == 1:
            result = replace_value(result, best_rows=self._passed)  # without scores, all fitting nodes are equally good
        return replace_value(result, sample=self._sample, evaluated=found.processed, next_start=next_start)

    @cached_property
    def _windows(self) -> Windows:
        return Windows(self._diagnosis, self._wanted, self._scheduler.configuration.parallelism)

    def _decide(self, found: Rows, *, is_in_tree_order: bool) -> CycleResult:
        """`found`: rows in the order of the search if `is_in_tree_order`, otherwise in the snapshot's order."""
        refused = self._scheduler.extender_refusals(self._pod, self._diagnosis.nodes.columns, found)
        self._diagnosis = self._diagnosis.with_replaced(refused)
        passed = found if not refused else np.array([row for row in found if int(row) not in refused], dtype=np.intp)
        if not len(passed):
            self._given_up = self._given_up or self._give_up()
            return self._given_up
        if len(passed) == 1:
            return self._chosen(int(passed[0]), passed)
        return self._choose(passed, is_in_tree_order=is_in_tree_order)

    def _chosen(self, row: int, best: Rows, table: ScoreTable | None = None) -> CycleResult:
        names = self._diagnosis.nodes.columns.names
        return CycleResult(
            self._pod, self._diagnosis, node=names[row], best_rows=best, names=names, table=table, state=self._state
        )

    def _give_up(self) -> CycleResult:
        pod, diagnosis, runner = self._pod, self._diagnosis, self._runner
        if not self._preempts:
            clears = self._scheduler.kube_version.missing_post_filter_clears_nomination
            nomination = Nomination(clears=True) if clears else None
            return CycleResult(pod, diagnosis, sentence=diagnosis.sentence(), nomination=nomination, state=self._state)
        search = FailedSearch(nodes=diagnosis.nodes, diagnosis=diagnosis, runner=runner, nominated=self._nominated)
        result = runner.post_filter(self._state, pod, search)
        return CycleResult(
            pod,
            diagnosis,
            sentence=diagnosis.sentence(result.verdict.message),
            nomination=result.nomination,
            state=self._state,
        )

    def _choose(self, passed: Rows, *, is_in_tree_order: bool) -> CycleResult:
        """The node with the highest total; among several, the order of the search decides."""
        table = self._table(np.sort(passed) if is_in_tree_order else passed)
        columns = table.nodes.columns
        best = table.nodes.rows.take((table.total == np.maximum.reduce(table.total)).nonzero()[0])
        if len(best) == 1:
            return self._chosen(int(best[0]), best, table)
        if self._scheduler.kube_version.tie_break != "heap":
            return self._chosen(min(best.tolist(), key=columns.names.__getitem__), best, table)
        found = passed if is_in_tree_order else columns.in_tree_order(passed)
        places = columns.places_in(found).take(best)
        return self._chosen(int(found[first_of_places(places)]), best, table)

    def _table(self, rows: Rows) -> ScoreTable:
        key = b"" if rows is self._passed else rows.tobytes()  # a short key if every node that passed is scored
        known = self._tables.get(key)
        if known is None:
            nodes = self._diagnosis.nodes
            scored = NodeList(nodes.snapshot, None if len(rows) == len(nodes) else rows, nodes.rules)
            table = self._runner.score(self._state, self._pod, scored)
            known = self._tables[key] = self._scheduler.with_extender_scores(self._pod, table)
        return known


def _nodes_wanted(percentage: int | None, searched: int) -> int:
    return min(1, searched) if percentage is None else nodes_to_find(searched, percentage)


def _over_http(settings: ExtenderSettings) -> ExtenderTransport:
    from scheduler_core.extenders.transport import HttpTransport

    return HttpTransport(settings)
