"""Tests a chain of extenders over real HTTP: which extenders are called and in which order, which nodes pass all
extenders, and what happens after an error of an extender."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from scheduler_core.config.configuration import ExtenderSettings, ManagedResource
from scheduler_core.extenders.chain import ExtenderChain, Survivors
from scheduler_core.extenders.transport import HttpTransport
from scheduler_core.framework.verdict import SUCCESS, Verdict, VerdictCode, error
from scheduler_core.model.node import Node
from scheduler_core.model.pod import Container, Pod, PodSpec
from scheduler_core.preemption.victims import Victims
from tests.scheduler_core.extenders.extender_server import Answer, ExtenderServer

NODES = tuple(Node(name=name, labels={"zone": name}, allocatable={"cpu": 4000}) for name in ("n1", "n2", "n3"))
POD = Pod(name="p", namespace="shop", uid="uid-p")


@pytest.fixture
def servers() -> Iterator[Any]:
    """Yields a function that starts a server. The function returns the server and the settings of its extender."""
    with ExitStack() as stack:

        def start(answers: dict[str, Answer], **settings: Any) -> tuple[ExtenderServer, ExtenderSettings]:
            server = stack.enter_context(ExtenderServer(answers).running())
            return server, ExtenderSettings(url_prefix=server.url, **settings)

        yield start


def chain(*settings: ExtenderSettings) -> ExtenderChain:
    return ExtenderChain.connect(settings, HttpTransport)


def only(*names: str) -> Answer:
    return lambda _body: {"NodeNames": list(names)}


def dead(**settings: Any) -> ExtenderSettings:
    return ExtenderSettings(url_prefix="http://127.0.0.1:9", timeout_seconds=0.5, **settings)


# ---- filter ----


def test_each_extender_gets_the_nodes_that_passed_the_previous_extender(servers: Any) -> None:
    first, first_settings = servers({"filter": only("n3", "n1")}, filter_verb="filter", node_cache_capable=True)
    second, second_settings = servers({"filter": only("n1")}, filter_verb="filter", node_cache_capable=True)
    survivors = chain(first_settings, second_settings).filter(POD, NODES)
    assert [node.name for node in survivors.nodes] == ["n1"]
    assert [body["NodeNames"] for body in (*first.asked("filter"), *second.asked("filter"))] == [
        ["n1", "n2", "n3"],
        ["n3", "n1"],
    ]


def test_the_chain_stops_when_no_node_is_left(servers: Any) -> None:
    _, first = servers({"filter": only()}, filter_verb="filter", node_cache_capable=True)
    second, second_settings = servers({"filter": only("n1")}, filter_verb="filter", node_cache_capable=True)
    assert chain(first, second_settings).filter(POD, NODES).nodes == ()
    assert second.requests == []


def test_an_extenders_unresolvable_refusal_overrides_a_resolvable_refusal(servers: Any) -> None:
    _, settings = servers(
        {
            "filter": lambda _: {
                "NodeNames": ["n1"],
                "FailedNodes": {"n2": "busy", "n3": "busy"},
                "FailedAndUnresolvableNodes": {"n3": "broken"},
            }
        },
        filter_verb="filter",
        node_cache_capable=True,
    )
    refusals = chain(settings).filter(POD, NODES).refusals
    assert refusals == {
        "n2": Verdict(VerdictCode.UNSCHEDULABLE, ("busy",), "Extender"),
        "n3": Verdict(VerdictCode.UNSCHEDULABLE_AND_UNRESOLVABLE, ("broken",), "Extender"),
    }


def test_an_extender_that_is_not_cache_capable_gets_and_returns_whole_nodes(servers: Any) -> None:
    server, settings = servers(
        {"filter": lambda body: {"Nodes": {"items": body["Nodes"]["items"][1:]}}}, filter_verb="filter"
    )
    assert [node.name for node in chain(settings).filter(POD, NODES).nodes] == ["n2", "n3"]
    (asked,) = server.asked("filter")
    assert asked["NodeNames"] is None
    assert asked["Pod"]["metadata"] == {"name": "p", "namespace": "shop", "uid": "uid-p", "labels": {}}
    assert asked["Nodes"]["items"][0]["metadata"]["labels"] == {"zone": "n1"}
    assert asked["Nodes"]["items"][0]["status"]["allocatable"] == {"cpu": "4000m"}


def test_an_error_ends_the_cycle_unless_the_extender_is_ignorable(servers: Any) -> None:
    _, healthy = servers({"filter": only("n1")}, filter_verb="filter", node_cache_capable=True)
    ignored = chain(dead(filter_verb="filter", ignorable=True), healthy).filter(POD, NODES)
    failed = chain(dead(filter_verb="filter"), healthy).filter(POD, NODES)
    assert [node.name for node in ignored.nodes] == ["n1"]
    assert failed.nodes == ()
    assert failed.problem is not None
    assert failed.problem.code is VerdictCode.ERROR
    assert failed.problem.reasons[0].startswith("extender http://127.0.0.1:9: POST http://127.0.0.1:9/filter: ")


def test_an_error_message_in_an_extenders_response_counts_as_an_error(servers: Any) -> None:
    server, settings = servers({"filter": lambda _: {"Error": "no licence"}}, filter_verb="filter")
    assert chain(settings).filter(POD, NODES) == Survivors(
        nodes=(), refusals={}, problem=error(f"extender {server.url}: no licence")
    )


def test_an_extender_without_a_filter_lets_all_nodes_pass(servers: Any) -> None:
    server, settings = servers({}, prioritize_verb="prioritize", weight=1)
    assert chain(settings).filter(POD, NODES).nodes == NODES
    assert server.requests == []


def asking_for(*, requests: tuple[str, ...] = (), limits: tuple[str, ...] = (), in_init: bool = False) -> Pod:
    container = Container(name="c", requests=dict.fromkeys(requests, 1), limits=dict.fromkeys(limits, 1))
    return Pod(name="p", spec=PodSpec(init_containers=(container,)) if in_init else PodSpec(containers=(container,)))


@pytest.mark.parametrize(
    ("pod", "is_asked"),
    [
        (asking_for(), False),
        (asking_for(requests=("cpu",)), False),
        (asking_for(requests=("example.com/fpga",)), True),
        (asking_for(limits=("example.com/fpga",)), True),
        (asking_for(requests=("example.com/fpga",), in_init=True), True),
    ],
)
def test_an_extender_is_called_only_for_pods_that_request_its_managed_resources(
    servers: Any, pod: Pod, is_asked: bool
) -> None:
    server, settings = servers(
        {"filter": only("n1")},
        filter_verb="filter",
        node_cache_capable=True,
        managed_resources=(ManagedResource(name="example.com/fpga"),),
    )
    assert len(chain(settings).filter(pod, NODES).nodes) == (1 if is_asked else 3)
    assert bool(server.requests) is is_asked


# ---- prioritize ----


def test_extender_scores_are_weighted_and_scaled_to_a_hundred(servers: Any) -> None:
    _, one = servers(
        {"prioritize": lambda _: [{"Host": "n1", "Score": 3}, {"Host": "n2", "Score": 10}]},
        prioritize_verb="prioritize",
        weight=2,
    )
    _, other = servers(
        {"prioritize": lambda _: [{"Host": "n2", "Score": 1}, {"Host": "stranger", "Score": 9}]},
        prioritize_verb="prioritize",
        weight=1,
    )
    assert chain(one, other).prioritize(POD, NODES) == {"n1": 60, "n2": 210, "stranger": 90}


def test_an_error_in_prioritize_drops_the_scores_of_that_extender(servers: Any) -> None:
    _, healthy = servers({"prioritize": lambda _: [{"Host": "n1", "Score": 1}]}, prioritize_verb="prioritize", weight=1)
    assert chain(dead(prioritize_verb="prioritize", weight=5), healthy).prioritize(POD, NODES) == {"n1": 10}


def test_an_interested_extender_without_a_prioritize_verb_gives_every_node_zero(servers: Any) -> None:
    _, settings = servers({}, filter_verb="filter")
    assert chain(settings).prioritize(POD, NODES) == {"n1": 0, "n2": 0, "n3": 0}


# ---- preempt ----

LOW = Pod(name="low", uid="uid-low")
MID = Pod(name="mid", uid="uid-mid")
CANDIDATES = {"n1": Victims(pods=(MID, LOW), budget_violations=1), "n2": Victims(pods=(LOW,))}
PODS_ON = {"n1": (MID, LOW), "n2": (LOW,), "n3": ()}


def remain(**nodes: list[str]) -> Answer:
    return lambda _: {
        "NodeNameToMetaVictims": {name: {"Pods": [{"UID": uid} for uid in uids]} for name, uids in nodes.items()}
    }


def test_each_extender_gets_only_the_preemption_candidates_that_the_previous_extender_left(servers: Any) -> None:
    first, first_settings = servers(
        {"preempt": remain(n1=["uid-low"], n2=["uid-low"])}, preempt_verb="preempt", node_cache_capable=True
    )
    second, second_settings = servers({"preempt": remain(n1=["uid-low"])}, preempt_verb="preempt")
    assert chain(first_settings, second_settings).narrow_preemption(POD, CANDIDATES, PODS_ON) == {
        "n1": Victims(pods=(LOW,))
    }
    assert first.asked("preempt")[0]["NodeNameToMetaVictims"]["n1"] == {
        "Pods": [{"UID": "uid-mid"}, {"UID": "uid-low"}],
        "NumPDBViolations": 1,
    }
    assert [p["metadata"]["name"] for p in second.asked("preempt")[0]["NodeNameToVictims"]["n1"]["Pods"]] == ["low"]


def test_preemption_does_not_call_extenders_without_a_preempt_verb(servers: Any) -> None:
    server, settings = servers({}, filter_verb="filter")
    assert chain(settings).narrow_preemption(POD, CANDIDATES, PODS_ON) == CANDIDATES
    assert server.requests == []


@pytest.mark.parametrize("ignorable", [True, False])
def test_a_response_without_victims_is_an_error_unless_the_extender_is_ignorable(servers: Any, ignorable: bool) -> None:
    server, settings = servers({"preempt": remain(n1=[], n2=["uid-low"])}, preempt_verb="preempt", ignorable=ignorable)
    answer = chain(settings).narrow_preemption(POD, CANDIDATES, PODS_ON)
    assert answer == (
        {"n2": Victims(pods=(LOW,))}
        if ignorable
        else error(f'extender {server.url}: expected at least one victim pod on node "n1"')
    )


def test_a_failed_preempt_call_is_an_error_unless_the_extender_is_ignorable() -> None:
    assert chain(dead(preempt_verb="preempt", ignorable=True)).narrow_preemption(POD, CANDIDATES, PODS_ON) == CANDIDATES
    failed = chain(dead(preempt_verb="preempt")).narrow_preemption(POD, CANDIDATES, PODS_ON)
    assert isinstance(failed, Verdict)
    assert failed.code is VerdictCode.ERROR


# ---- bind ----


def test_the_first_interested_extender_with_a_bind_verb_binds_the_pod(servers: Any) -> None:
    server, settings = servers({"bind": lambda _: {"Error": ""}}, bind_verb="bind")
    assert chain(dead(filter_verb="filter"), settings).bind(POD, "n1") == SUCCESS
    assert server.asked("bind") == [{"PodName": "p", "PodNamespace": "shop", "PodUID": "uid-p", "Node": "n1"}]


def test_the_bind_plugins_run_if_no_extender_binds(servers: Any) -> None:
    _, settings = servers({}, filter_verb="filter")
    assert chain(settings).bind(POD, "n1") is None


def test_a_failed_binding_is_an_error_unless_the_extender_is_ignorable(servers: Any) -> None:
    server, settings = servers({"bind": lambda _: {"Error": "too late"}}, bind_verb="bind")
    assert chain(settings).bind(POD, "n1") == error(f"extender {server.url}: too late")
    assert chain(dead(bind_verb="bind", ignorable=True)).bind(POD, "n1") is None


def test_an_extender_chain_reports_which_verbs_it_supports() -> None:
    assert (chain(dead(filter_verb="f")).has_filters, chain(dead(filter_verb="f")).has_prioritizers) == (True, False)
    assert (bool(chain()), chain().has_filters) == (False, False)
