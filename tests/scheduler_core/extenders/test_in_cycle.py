"""Tests extenders as part of a whole scheduling cycle, over real HTTP."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from scheduler_core.config.configuration import Configuration
from scheduler_core.cycle import Scheduler
from scheduler_core.cycle_result import CycleResult
from scheduler_core.framework.verdict import Verdict, VerdictCode
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.testing.builders import a_node, a_pod
from tests.scheduler_core.extenders.extender_server import Answer, ExtenderServer

NODES = [a_node(name).manifest for name in ("n1", "n2", "n3")]


@pytest.fixture
def extender() -> Iterator[Any]:
    with ExitStack() as stack:

        def start(answers: dict[str, Answer], **settings: Any) -> tuple[ExtenderServer, dict[str, Any]]:
            server = stack.enter_context(ExtenderServer(answers).running())
            return server, {"urlPrefix": server.url, "nodeCacheCapable": True, **settings}

        yield start


def cycle(*extenders: dict[str, Any], pod: Any = None, nodes: Any = None) -> CycleResult:
    asked = pod or a_pod("new")
    snapshot = load_objects([*(nodes or NODES), asked.manifest])
    return Scheduler(Configuration.from_mapping({"extenders": list(extenders)})).schedule(
        snapshot, snapshot.pod("default/new")
    )


def passing(*names: str, **more: Any) -> Answer:
    return lambda _: {"NodeNames": list(names), **more}


def test_an_extender_gets_the_nodes_that_passed_the_plugins(extender: Any) -> None:
    server, settings = extender({"filter": passing("n3")}, filterVerb="filter")
    nodes = [a_node("n1").cordoned().manifest, *NODES[1:]]
    result = cycle(settings, nodes=nodes)
    assert server.asked("filter")[0]["NodeNames"] == ["n2", "n3"]
    assert result.node == "n3"
    assert result.statuses["n1"].reasons == ("node(s) were unschedulable",)


def test_refusals_of_extenders_appear_in_the_diagnosis_and_in_the_message(extender: Any) -> None:
    answer = passing(FailedNodes={"n1": "no licence"}, FailedAndUnresolvableNodes={"n2": "wrong site"})
    result = cycle(extender({"filter": answer}, filterVerb="filter")[1])
    assert result.node is None
    assert result.statuses["n1"] == Verdict(VerdictCode.UNSCHEDULABLE, ("no licence",), "Extender")
    assert result.statuses["n2"] == Verdict(VerdictCode.UNSCHEDULABLE_AND_UNRESOLVABLE, ("wrong site",), "Extender")
    assert result.statuses["n3"] == Verdict(VerdictCode.UNSCHEDULABLE_AND_UNRESOLVABLE, (), "Extender")
    assert result.sentence.startswith("0/3 nodes are available: 1 no licence, 1 wrong site. ")
    assert result.diagnosis.refusing_plugins() == {"Extender"}


def test_scores_of_extenders_are_added_to_the_total(extender: Any) -> None:
    plain = cycle()
    result = cycle(
        extender({"prioritize": lambda _: [{"Host": "n2", "Score": 7}]}, prioritizeVerb="prioritize", weight=3)[1]
    )
    assert (result.node, result.best) == ("n2", ("n2",))
    assert result.scores["n2"].total == plain.scores["n2"].total + 210
    assert result.scores["n2"].by_plugin["Extender"] == 210
    assert result.scores["n1"].total == plain.scores["n1"].total


def test_a_failing_extender_ends_the_cycle(extender: Any) -> None:
    server, settings = extender({"filter": 500}, filterVerb="filter")
    result = cycle(settings)
    assert result.error == f"extender {server.url}: failed filter with extender at URL {server.url}/filter, code 500"
    assert result.node is None


def test_a_failing_ignorable_extender_does_not_end_the_cycle(extender: Any) -> None:
    assert cycle(extender({"filter": 500}, filterVerb="filter", ignorable=True)[1]).best == ("n1", "n2", "n3")


def test_extenders_first_get_only_the_nominated_node(extender: Any) -> None:
    nominated = a_pod("new").with_field("status.nominatedNodeName", "n2")
    agrees, settings = extender({"filter": lambda body: {"NodeNames": body["NodeNames"]}}, filterVerb="filter")
    assert cycle(settings, pod=nominated).node == "n2"
    assert [body["NodeNames"] for body in agrees.asked("filter")] == [["n2"]]


def test_an_extenders_refusal_of_the_nominated_node_starts_a_full_search(extender: Any) -> None:
    nominated = a_pod("new").with_field("status.nominatedNodeName", "n2")
    server, settings = extender(
        {"filter": lambda body: {"NodeNames": [name for name in body["NodeNames"] if name != "n2"]}},
        filterVerb="filter",
    )
    assert cycle(settings, pod=nominated).best == ("n1", "n3")
    assert [body["NodeNames"] for body in server.asked("filter")] == [["n2"], ["n1", "n2", "n3"]]


def test_a_resource_ignored_by_the_scheduler_is_not_required_on_nodes(extender: Any) -> None:
    pod = a_pod("new").with_container({"name": "c", "resources": {"requests": {"example.com/fpga": "1"}}})
    managed = [{"name": "example.com/fpga", "ignoredByScheduler": True}]
    assert (
        cycle(extender({"filter": passing("n2")}, filterVerb="filter", managedResources=managed)[1], pod=pod).node
        == "n2"
    )
    assert cycle(pod=pod).node is None
