"""Wrong arguments and wrong plugins are refused with what to pass instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import pytest

from scheduler_core import (
    ClusterCache,
    Configuration,
    ConfigurationError,
    DumpWriter,
    Durations,
    Header,
    KubeVersion,
    Scheduler,
    Snapshot,
    Sync,
    UnreadableDumpError,
    UnusableEventError,
    Verdict,
    like_node,
    load_objects,
    load_pages,
    nodes_needed,
    pod_from_manifest,
    queue_for,
    read_dump,
    template_from_manifest,
    unschedulable,
    with_more_nodes,
)
from scheduler_core.config.kube_version import UnsupportedKubeVersionError
from scheduler_core.framework.binding import BindingCycle
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.extension_points import PostFilterResult, PreFilterResult
from scheduler_core.framework.plugin_set import METHOD_OF, PluginSet
from scheduler_core.framework.refusals import Refusals
from scheduler_core.framework.verdict import SUCCESS, VerdictCode
from scheduler_core.plugin_contract import PluginContractError
from scheduler_core.testing.builders import a_node, a_pod, manifests

SNAPSHOT = load_objects(manifests(a_node("n1"), a_node("n2")))
POD, NODE = a_pod().build(), a_node("n1").build()


class Odd:
    """Has one more method than a name."""

    name = "Odd"

    def __init__(self, **methods: Any) -> None:
        self.__dict__.update(methods)


def scheduler_with(plugin: Odd, *, name: str = "Odd", weight: int = 1) -> Scheduler:
    points = [point for point, method in METHOD_OF.items() if hasattr(plugin, method)]
    enabled = {point: {"enabled": [{"name": name, "weight": weight}]} for point in points}
    enabled["multiPoint"] = {"disabled": []}
    configuration = Configuration.from_mapping(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": enabled}],
        }
    )
    return Scheduler(configuration, plugins={name: lambda _args, _version: plugin})


def returns(value: Any) -> Any:
    return lambda *_: value


# ---- arguments ----


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (lambda any_: Scheduler().schedule(any_(POD), any_(SNAPSHOT)), "snapshot is a Pod, expected a Snapshot"),
        (lambda any_: Scheduler().schedule(SNAPSHOT, any_({})), r"pod is a dict.* pod_from_manifest\(…\)"),
        (lambda any_: Scheduler(any_({})), r"configuration is a dict.* Configuration.from_mapping\(…\)"),
        (lambda any_: nodes_needed(Scheduler(), SNAPSHOT, [POD], any_({})), "template is a dict.* like_node"),
        (lambda any_: with_more_nodes(any_(SNAPSHOT), any_(Scheduler()), [], any_({}), 1), "scheduler is a Snapshot"),
        (lambda any_: like_node(any_("n1"), any_(SNAPSHOT)), "snapshot is a str"),
        (
            lambda any_: template_from_manifest(SNAPSHOT, any_({}), Scheduler()),
            r"node is a dict.* node_from_manifest\(…\)",
        ),
        (lambda any_: SNAPSHOT.with_pod_placed(any_("n1"), any_(POD)), "pod is a str"),
    ],
)
def test_an_argument_of_the_wrong_type_is_refused_with_what_to_pass(ask: Any, told: str) -> None:
    with pytest.raises(TypeError, match=told):
        ask(lambda value: value)


def test_a_version_must_be_a_text() -> None:
    version: Any = 1.36
    with pytest.raises(UnsupportedKubeVersionError, match=r"is the float 1\.36; write it as a text like '1.36'"):
        Scheduler(kube_version=version)


# ---- plugins ----


@pytest.mark.parametrize(
    ("method", "value", "told"),
    [
        ("filter", True, "filter returned the bool True; it must return a Verdict: SUCCESS, or a refusal"),
        ("filter", None, "filter returned None; it must return a Verdict"),
        ("pre_filter", SUCCESS, "pre_filter returned the Verdict .*; it must return a PreFilterResult"),
        ("pre_score", True, "pre_score returned the bool True; it must return a Verdict"),
    ],
)
def test_a_plugin_that_returns_no_verdict_is_refused(method: str, value: object, told: str) -> None:
    with pytest.raises(PluginContractError, match=f'plugin "Odd": {told}'):
        scheduler_with(Odd(**{method: returns(value)}, score=returns(1))).schedule(SNAPSHOT, POD)


def test_a_filter_that_returns_true_is_refused_in_preemption_and_beside_nominated_pods_too() -> None:
    runner, state = scheduler_with(Odd(filter=returns(True))).runner(POD), CycleState()
    runner.pre_filter(state, POD, Scheduler().schedule(SNAPSHOT, POD).diagnosis.nodes)
    with pytest.raises(PluginContractError, match='plugin "Odd": filter returned the bool True'):
        runner.filter_node(state, POD, SNAPSHOT.node_info(0))


def test_a_gate_that_returns_false_is_refused() -> None:
    with pytest.raises(PluginContractError, match='plugin "Odd": pre_enqueue returned the bool False'):
        scheduler_with(Odd(pre_enqueue=returns(False))).runner(POD).pre_enqueue(POD)


def test_a_post_filter_that_returns_a_verdict_is_refused() -> None:
    plugin = Odd(post_filter=returns(SUCCESS), filter=returns(SUCCESS))
    with pytest.raises(PluginContractError, match='plugin "Odd": post_filter returned the Verdict'):
        scheduler_with(plugin).schedule(load_objects(manifests(a_node("n1").cordoned())), POD)


@pytest.mark.parametrize("method", ["reserve", "permit", "pre_bind", "bind"])
def test_a_binding_plugin_that_returns_none_is_refused(method: str) -> None:
    plugin = Odd(**{method: returns(None)})
    cycle = BindingCycle(
        PluginSet({"Odd": plugin}, {point: ("Odd",) for point in METHOD_OF if hasattr(plugin, METHOD_OF[point])}, {})
    )
    run = cycle.reserve if method in ("reserve", "permit") else cycle.bind
    with pytest.raises(PluginContractError, match=f'plugin "Odd": {method} returned None'):
        run(CycleState(), POD, "n1")


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (0.9, "the float 0.9"),
        (True, "the bool True"),
        ("5", "the str '5'"),
        (None, "None"),
    ],
)
def test_a_score_that_is_no_whole_number_is_refused(value: object, told: str) -> None:
    with pytest.raises(PluginContractError, match=f'plugin "Odd": score returned {told}; it must return a whole'):
        scheduler_with(Odd(score=returns(value))).schedule(SNAPSHOT, POD)


def test_a_score_of_numpy_is_a_whole_number() -> None:
    result = scheduler_with(Odd(score=returns(np.int32(7)))).schedule(SNAPSHOT, POD)
    assert result.scores["n1"].by_plugin["Odd"] == 7


def test_a_score_of_more_than_64_bits_is_refused() -> None:
    with pytest.raises(PluginContractError, match="a number of 64 bits"):
        scheduler_with(Odd(score=returns(2**70))).schedule(SNAPSHOT, POD)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (np.array([0.5, 1.0]), r"an array of float64 with the shape \(2,\)"),
        (np.array([1, 2, 3]), r"an array of int64 with the shape \(3,\)"),
        ([1, 2], r"the list \[1, 2\]"),
    ],
)
@pytest.mark.parametrize("method", ["score_all", "normalize"])
def test_scores_of_all_nodes_must_be_one_whole_number_for_each(method: str, value: object, told: str) -> None:
    plugin = Odd(score=returns(1), **{method: returns(value)})
    with pytest.raises(PluginContractError, match=f'plugin "Odd": {method} returned {told}; .* an array of 2 whole'):
        scheduler_with(plugin).schedule(SNAPSHOT, POD)


@pytest.mark.parametrize("score", [500, -1])
def test_a_score_out_of_range_names_plugin_score_and_node_where_one_looks(score: int) -> None:
    plugin = Odd(score=lambda _state, _pod, node_info: score if node_info.name == "n2" else 1)
    result = scheduler_with(plugin).schedule(SNAPSHOT, POD)
    assert result.node is None
    assert result.sentence == result.error
    assert result.sentence == (
        f'plugin "Odd" returns an invalid score {score}, it should in the range of [0, 100] after normalizing (node n2)'
    )


def test_a_plugin_must_come_from_a_factory_and_have_the_registered_name() -> None:
    plugin: Any = Odd(filter=returns(SUCCESS))
    with pytest.raises(TypeError, match="plugins\\['Odd'\\] is a Odd, expected a factory"):
        Scheduler(scheduler_with(plugin).configuration, plugins={"Odd": plugin})
    with pytest.raises(TypeError, match="its `name` must be 'Even'"):
        scheduler_with(plugin, name="Even")


class Raising:
    name = "Raising"

    def filter(self, _state: object, _pod: object, _node_info: object) -> object:
        raise KeyError("rack")


def test_an_error_of_a_plugin_names_the_plugin_and_the_pod() -> None:
    enabled = {"profiles": [{"plugins": {"filter": {"enabled": [{"name": "Raising"}]}}}]}
    scheduler = Scheduler(Configuration.from_mapping(enabled), plugins={"Raising": lambda _args, _version: Raising()})
    with pytest.raises(KeyError) as caught:
        scheduler.schedule(SNAPSHOT, POD)
    assert caught.value.__notes__ == [f'raised by plugin "Raising" for pod {POD.key}']


def test_an_error_of_a_factory_names_the_plugin() -> None:
    enabled = {"profiles": [{"plugins": {"filter": {"enabled": [{"name": "Odd"}]}}}]}
    factory: Any = lambda _args: Odd(filter=returns(SUCCESS))  # noqa: E731
    with pytest.raises(TypeError) as caught:
        Scheduler(Configuration.from_mapping(enabled), plugins={"Odd": factory})
    assert caught.value.__notes__ == [
        "raised by the factory of plugin 'Odd', called with the plugin's arguments and the KubeVersion"
    ]


@pytest.mark.parametrize(
    ("method", "wanted"),
    [("filter", "state, pod, node_info"), ("score", "state, pod, node_info"), ("reserve", "state, pod, node_name")],
)
def test_a_method_with_other_parameters_is_refused_before_it_is_called(method: str, wanted: str) -> None:
    with pytest.raises(TypeError, match=rf"plugin 'Odd': {method}\(pod, node\) is called with \({wanted}\)"):
        scheduler_with(Odd(**{method: lambda pod, node: (pod, node)}))


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ({"filter": {"enabled": [{"name": "NoSuch"}]}}, "plugin NoSuch is unknown or has no extension point"),
        ({"filter": {"enabled": [{"name": "ImageLocality"}]}}, "plugin ImageLocality does not implement filter"),
        (
            {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "ImageLocality", "weight": -1}]}},
            "the weight of ImageLocality is -1, so that a total could overflow",
        ),
    ],
)
def test_a_wrong_list_of_plugins_says_what_is_wrong(rules: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        Scheduler(Configuration.from_mapping({"profiles": [{"plugins": rules}]}))


@pytest.mark.parametrize("event", ["x", POD, 7])
def test_an_event_of_another_type_says_what_to_pass(event: Any) -> None:
    with pytest.raises(UnusableEventError, match="pass the server's line as bytes, a mapping, or a Sync"):
        ClusterCache().apply(event)


def test_kubectls_output_is_no_dump_and_the_error_says_who_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "nodes.json"
    path.write_text('{"kind": "List", "apiVersion": "v1", "items": []}')
    with pytest.raises(UnreadableDumpError, match=r"Snapshot\.from_manifests reads the output of `kubectl get"):
        Snapshot.from_dump(path)
    assert Snapshot.from_manifests(path).nodes == ()


# ---- parts of what a plugin returns ----


_MALFORMED: Final = (
    Verdict(cast("Any", "Unschedulable")),
    Verdict(VerdictCode.UNSCHEDULABLE, cast("Any", "a text")),
    unschedulable(cast("Any", 5)),
    unschedulable(cast("Any", ["full"])),
)


@pytest.mark.parametrize("verdict", _MALFORMED)
def test_a_refusal_with_other_parts_than_texts_is_refused(verdict: Verdict) -> None:
    with pytest.raises(PluginContractError, match=r'plugin "Odd": filter returned the Verdict .*its reasons texts'):
        scheduler_with(Odd(filter=returns(verdict))).schedule(SNAPSHOT, POD)


@pytest.mark.parametrize("verdict", _MALFORMED)
@pytest.mark.parametrize("method", ["pre_enqueue", "pre_filter", "pre_score", "post_filter"])
def test_such_a_verdict_is_refused_at_every_point(method: str, verdict: Verdict) -> None:
    results = {"pre_filter": PreFilterResult(verdict), "post_filter": PostFilterResult(verdict)}
    plugin = Odd(filter=returns(SUCCESS), score=returns(1), **{method: returns(results.get(method, verdict))})
    world = load_objects(manifests(a_node("n1").cordoned())) if method == "post_filter" else SNAPSHOT
    scheduler = scheduler_with(plugin)
    with pytest.raises(PluginContractError, match=f'plugin "Odd": {method} returned the Verdict .*its reasons texts'):
        scheduler.runner(POD).pre_enqueue(POD) if method == "pre_enqueue" else scheduler.schedule(world, POD)


@pytest.mark.parametrize("verdict", _MALFORMED)
@pytest.mark.parametrize("is_function", [True, False])
def test_such_a_verdict_of_a_filter_for_all_nodes_is_refused(is_function: bool, verdict: Verdict) -> None:
    refusals = Refusals(np.array([1, 1]), (lambda _code: verdict) if is_function else {1: verdict})
    scheduler = scheduler_with(Odd(filter=returns(SUCCESS), filter_all=returns(refusals)))
    with pytest.raises(TypeError, match=r'plugin "Odd": filter_all returned .* for code 1; it must be a Verdict'):
        _ = scheduler.schedule(SNAPSHOT, POD).sentence


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (PreFilterResult(cast("Any", True)), "pre_filter returned the bool True; it must return a Verdict"),
        (
            PreFilterResult(node_names=cast("Any", "n1")),
            "pre_filter returned the str 'n1'; .* node_names are None or a",
        ),
    ],
)
def test_a_pre_filter_result_with_other_parts_is_refused(result: PreFilterResult, told: str) -> None:
    with pytest.raises(PluginContractError, match=f'plugin "Odd": {told}'):
        scheduler_with(Odd(pre_filter=returns(result))).schedule(SNAPSHOT, POD)


def test_a_post_filter_that_nominates_a_text_is_refused() -> None:
    plugin = Odd(post_filter=returns(PostFilterResult(SUCCESS, cast("Any", "n1"))), filter=returns(SUCCESS))
    with pytest.raises(PluginContractError, match="returned the str 'n1'; it must return a Nomination"):
        scheduler_with(plugin).schedule(load_objects(manifests(a_node("n1").cordoned())), POD)


@pytest.mark.parametrize(
    "codes", [np.zeros(3, bool), [False, False], np.array([0.5, 0.0]), np.array(["a", ""]), np.array([None, None])]
)
def test_refusals_must_be_one_code_for_each_node(codes: Any) -> None:
    plugin = Odd(filter=returns(SUCCESS), filter_all=returns(Refusals(codes, {1: unschedulable("why")})))
    with pytest.raises(PluginContractError, match="it must return a Refusals with an array of 2 codes"):
        scheduler_with(plugin).schedule(SNAPSHOT, POD)


def test_a_code_without_a_verdict_says_so() -> None:
    plugin = Odd(filter=returns(SUCCESS), filter_all=returns(Refusals(np.array([7, 7]), {1: unschedulable("why")})))
    with pytest.raises(ValueError, match="a Refusals with code 7, which its verdicts"):
        scheduler_with(plugin).schedule(SNAPSHOT, POD)


@pytest.mark.parametrize("verdicts", [{1: unschedulable("why")}, lambda code: {1: unschedulable("why")}[code]])
def test_an_error_of_a_verdict_names_the_plugin_that_refused_and_not_the_one_that_asked(verdicts: Any) -> None:
    refusals = Refusals(np.array([7, 7]), verdicts)
    plugin = Odd(filter=returns(SUCCESS), filter_all=returns(refusals))
    plugins = {"plugins": {"filter": {"enabled": [{"name": "Odd"}]}}}
    scheduler = Scheduler(
        Configuration.from_mapping({"profiles": [plugins]}), plugins={"Odd": lambda _args, _version: plugin}
    )
    with pytest.raises((ValueError, KeyError)) as caught:
        scheduler.schedule(SNAPSHOT, POD)
    assert caught.value.__notes__ == [f'raised by plugin "Odd" for pod {POD.key}']


@pytest.mark.parametrize(("written", "meant"), [("preFilter", "pre_filter"), ("normalize_score", "normalize")])
def test_a_method_in_another_spelling_is_refused(written: str, meant: str) -> None:
    with pytest.raises(TypeError, match=f"nothing calls its method {written}: rename it {meant}"):
        scheduler_with(Odd(filter=returns(SUCCESS), **{written: returns(SUCCESS)}))


def test_a_plugin_that_reserves_and_cannot_release_is_refused() -> None:
    with pytest.raises(TypeError, match="plugin 'Odd': it has reserve, and no unreserve"):
        scheduler_with(Odd(reserve=returns(SUCCESS)))


def test_a_plugin_without_a_name_is_refused() -> None:
    with pytest.raises(TypeError, match="plugins has the name '', expected a text"):
        Scheduler(plugins={"": returns(None)})


# ---- values ----


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda any_: KubeVersion(major=1, minor=99), "Kubernetes 1.99 is not supported; the supported releases"),
        (lambda any_: Configuration.from_mapping({}, any_(1.36)), "write it as a text like '1.36'"),
        (lambda any_: Configuration(parallelism=any_("16")), "parallelism is a str '16', expected a whole number"),
        (lambda any_: Durations(boot=-1), "boot is -1: expected a number of seconds, 0 or more"),
        (lambda any_: Durations(boot=any_("5")), "boot is a str '5', expected a number"),
        (lambda any_: Header(kube_version=any_(1.36), taken_at=""), "kube_version is a float 1.36, expected a str"),
        (lambda any_: Sync("Pod", any_(5)), "pages is a int 5, expected several"),
        (lambda any_: DumpWriter(Header(kube_version="", taken_at=""), any_("x")), "out is a str, expected a file"),
        (lambda any_: read_dump(any_("dump.json.gz")), "source is a str, expected a file"),
        (lambda any_: pod_from_manifest({"metadata": {"name": "p"}}), r"Pod p: spec: .*\(strict=False accepts it\)"),
        (lambda any_: Snapshot.of([NODE, NODE]), "2 nodes have the name 'n1'"),
        (lambda any_: Snapshot.of([NODE], any_([{}])), "pods has a dict, expected only values of Pod"),
        (lambda any_: SNAPSHOT.with_pods_placed(any_([POD])), r"pass several of \(pod, node name\)"),
        (lambda any_: SNAPSHOT.without_pods("default/p"), r"pass \['default/p'\]"),
        (lambda any_: SNAPSHOT.pods_on(any_(["n1"])), "node_name is a list, expected a str: pass a text"),
        (lambda any_: SNAPSHOT.pod(any_(POD)), "key is a Pod, expected a str"),
        (lambda any_: load_pages(any_(["{}"])), "a page is a str, expected the body of an API list as bytes"),
        (lambda any_: Scheduler(clock=any_(5.0)), "clock is a float, expected a function"),
        (lambda any_: Scheduler().place(any_(POD), any_(SNAPSHOT)), "snapshot is a Pod, expected a Snapshot"),
        (lambda any_: Scheduler().schedule(SNAPSHOT, POD, start=-1), "start is -1: expected a position"),
        (lambda any_: Scheduler().schedule(SNAPSHOT, POD, search=any_(3)), "search is a int 3, expected a Search"),
        (lambda any_: queue_for(any_(SNAPSHOT)), "scheduler is a Snapshot, expected a Scheduler"),
        (lambda any_: ClusterCache().relist(any_({"type": "ADDED", "object": {"kind": "Pod"}})), "is no list: pass a"),
        (
            lambda any_: with_more_nodes(Scheduler(), SNAPSHOT, [POD, POD], like_node(SNAPSHOT, "n1"), 1),
            "two pods have",
        ),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_with_what_to_pass(make: Any, told: str) -> None:
    with pytest.raises((TypeError, ValueError), match=told):
        make(lambda value: value)


def test_a_pod_on_a_node_that_is_not_there_is_shown() -> None:
    assert repr(load_objects(manifests(a_pod("lost").on("gone")))).endswith("pending=0 orphans=1 problems=0>")


@pytest.mark.parametrize(
    ("profile", "told"),
    [
        (
            {"pluginConfig": [{"name": "NodeResourceFit", "args": {}}]},
            r"profiles\[0\]\.pluginConfig: no plugin has the name 'NodeResourceFit'; did you mean NodeResourcesFit",
        ),
        (
            {"plugins": {"score": {"disabled": [{"name": "ImageLocalty"}]}}},
            r"plugins\.score\.disabled\[0\]: no plugin has the name 'ImageLocalty'; did you mean ImageLocality",
        ),
        (
            {
                "pluginConfig": [
                    {
                        "name": "NodeAffinity",
                        "args": {
                            "addedAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": None}]}
                        },
                    }
                ]
            },
            r"preferredDuringSchedulingIgnoredDuringExecution\[0\]\.weight: must not be null",
        ),
    ],
)
def test_a_name_that_is_nearly_a_plugins_and_a_null_are_refused(profile: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        Scheduler(Configuration.from_mapping({"profiles": [profile]}))


def test_a_plugin_that_no_profile_enables_is_shown() -> None:
    assert repr(Scheduler(plugins={"Odd": returns(None)})).endswith("profiles=default-scheduler unused=Odd>")
