from __future__ import annotations

import pytest

from scheduler_core import Scheduler
from scheduler_core.framework.diagnosis import Diagnosis
from scheduler_core.framework.verdict import Verdict, VerdictCode, unknown, unresolvable, unschedulable
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.testing.builders import PodBuilder, a_node, a_pod, manifests

NODES = [
    a_node("cordoned").cordoned(),
    a_node("small").offering(cpu="1"),
    a_node("tight").offering(cpu="2"),
    a_node("fits"),
    a_node("tainted").tainted("x"),
]
FILLER = a_pod("filler").requesting(cpu="1").on("tight")


def diagnosis_of(pod: PodBuilder) -> Diagnosis:
    return Scheduler().schedule(load_objects(manifests(NODES, FILLER)), pod.build()).diagnosis


def test_every_node_has_the_verdict_of_the_first_plugin_that_refused_it() -> None:
    diagnosis = diagnosis_of(a_pod().requesting(cpu="2"))
    said = [(verdict.plugin, verdict.code.value) for verdict in map(diagnosis.verdict, range(5))]
    for_good = "UnschedulableAndUnresolvable"
    assert said == [
        ("NodeUnschedulable", for_good),
        ("NodeResourcesFit", for_good),
        ("NodeResourcesFit", "Unschedulable"),
        ("", "Success"),
        ("TaintToleration", for_good),
    ]
    assert diagnosis.passed.tolist() == [3]


def test_only_nodes_with_resolvable_refusals_are_offered_to_preemption() -> None:
    assert diagnosis_of(a_pod().requesting(cpu="2")).rows_that_may_be_helped.tolist() == [2]


def test_refusals_are_counted_by_verdict_and_each_plugin_is_listed_once() -> None:
    diagnosis = diagnosis_of(a_pod().requesting(cpu="9"))
    assert {verdict.reasons: count for verdict, count in diagnosis.verdict_counts().items()} == {
        ("node(s) were unschedulable",): 1,
        ("Insufficient cpu",): 3,
        ("node(s) had untolerated taint(s)",): 1,
    }
    assert diagnosis.refusing_plugins() == {"NodeUnschedulable", "NodeResourcesFit", "TaintToleration"}
    assert (
        diagnosis.sentence("and so on")
        == "0/5 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, 3 "
        "Insufficient cpu. and so on"
    )


def test_a_diagnosis_finds_its_first_verdict_with_a_given_code() -> None:
    diagnosis = diagnosis_of(a_pod().requesting(cpu="2"))
    too_small, gone = (diagnosis.first_of(code) for code in (VerdictCode.UNSCHEDULABLE, VerdictCode.UNKNOWN))
    assert (too_small is not None and too_small.plugin, gone) == ("NodeResourcesFit", None)
    diagnosis = diagnosis.with_replaced({3: unknown("who knows").by("Extender")})
    assert diagnosis.first_of(VerdictCode.UNKNOWN) == unknown("who knows").by("Extender")


def test_a_diagnosis_does_not_return_a_verdict_that_an_extender_replaced() -> None:
    diagnosis = diagnosis_of(a_pod().requesting(cpu="2"))
    # the only one that eviction could have helped
    diagnosis = diagnosis.with_replaced({2: unresolvable("for good").by("Extender")})
    assert diagnosis.first_of(VerdictCode.UNSCHEDULABLE) is None


def test_the_unschedulable_message_counts_reasons_instead_of_verdicts() -> None:
    """Eleven nodes have too little cpu. Two nodes allow no pods, and one of them also has too little cpu. The message
    therefore contains 13 reasons for 12 nodes.

    Each reason in the message begins with its count. The message sorts the reasons as texts, so "11 Insufficient cpu"
    comes before "2 Too many pods".
    """
    nodes = [
        *[a_node(f"n{i}").offering(cpu="1") for i in range(10)],
        a_node("full").offering(cpu="1", pods="0"),
        a_node("full2").offering(cpu="9", pods="0"),
    ]
    pod = a_pod().requesting(cpu="2").with_field("spec.preemptionPolicy", "Never")
    result = Scheduler().schedule(load_objects(manifests(nodes)), pod.build())
    assert result.sentence.startswith("0/12 nodes are available: 11 Insufficient cpu, 2 Too many pods.")


def test_a_prefilter_refusal_applies_to_every_node() -> None:
    nodes = NodeList(load_objects(manifests(NODES)))
    for verdict, helped in ((unresolvable("no"), []), (unschedulable("no"), [0, 1, 2, 3, 4])):
        diagnosis = Diagnosis(nodes=nodes, prefilter=verdict)
        assert [diagnosis.verdict(row) for row in range(5)] == [verdict] * 5
        assert diagnosis.rows_that_may_be_helped.tolist() == helped
        assert diagnosis.passed.tolist() == []
        assert diagnosis.sentence() == "0/5 nodes are available: no."
        assert diagnosis.verdict_counts() == {verdict: 5}


def test_an_extenders_verdict_replaces_the_verdict_of_the_filters() -> None:
    """The message and the preemption use the extender's verdict. The node that the extender refuses does not pass."""
    diagnosis = diagnosis_of(a_pod().requesting(cpu="2"))
    refusals = {3: unschedulable("an extender said no"), 2: unresolvable("for good")}
    diagnosis = diagnosis.with_replaced({row: verdict.by("Extender") for row, verdict in refusals.items()})
    assert diagnosis.passed.tolist() == []
    assert diagnosis.rows_that_may_be_helped.tolist() == [3]
    assert diagnosis.verdict(3) == Verdict(diagnosis.verdict(3).code, ("an extender said no",), "Extender")
    assert (
        diagnosis.sentence()
        == "0/5 nodes are available: 1 Insufficient cpu, 1 an extender said no, 1 for good, 1 node(s) had "
        "untolerated taint(s), 1 node(s) were unschedulable."
    )


def test_replacing_verdicts_does_not_change_the_original_diagnosis() -> None:
    diagnosis = diagnosis_of(a_pod().requesting(cpu="2"))
    before = (diagnosis.sentence(), diagnosis.passed.tolist())
    refused = diagnosis.with_replaced({3: unschedulable("an extender said no").by("Extender")})
    assert (diagnosis.sentence(), diagnosis.passed.tolist()) == before
    assert (refused.passed.tolist(), refused.sentence() != before[0]) == ([], True)
    with pytest.raises(AttributeError):
        diagnosis.rounds = ()  # type: ignore[misc]


def test_a_node_refused_beside_nominated_pods_is_counted_once_if_two_codes_have_one_verdict() -> None:
    """Until 1.33 NodeResourcesFit gives the same verdict for a request above the node's size as for a full node."""
    small, full = (a_node(name).offering(cpu=cpu, pods="9").manifest for name, cpu in (("small", "2"), ("full", "4")))
    snapshot = load_objects([small, full, a_pod("a").requesting(cpu="3").on("full").manifest])
    chief = a_pod("chief").requesting(cpu="1").with_priority(9).build()
    scheduler = Scheduler(kube_version="1.33")
    wanted = a_pod("wanted").requesting(cpu="3").build()
    result = scheduler.schedule(snapshot, wanted, nominated={"small": (chief,), "full": (chief,)}, preempts=False)
    assert result.sentence == "0/2 nodes are available: 2 Insufficient cpu."
