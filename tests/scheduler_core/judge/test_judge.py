"""Tests the judge, which reads recorded cases and writes the decisions of scheduler_core: the format of cases and
decisions, and the handling of invalid input."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from scheduler_core.__main__ import main
from scheduler_core.config.fields import ConfigurationError
from scheduler_core.judge.answer import judge
from scheduler_core.judge.cases import Case, CaseError, read_case, write_answers
from scheduler_core.testing.builders import a_node, a_pod, manifests


def line(*builders: Any, pods: list[str], **more: Any) -> str:
    return json.dumps({"id": "c", "objects": manifests(*builders), "pods": pods, **more})


def answers(text: str) -> dict[str, dict[str, Any]]:
    return judge(read_case(text))


def test_the_judge_reports_the_only_node_that_fits() -> None:
    assert answers(line(a_node("n1"), a_node("n2").cordoned(), a_pod("p"), pods=["default/p"])) == {
        "default/p": {
            "nodes": {
                "n1": {"code": "Success"},
                "n2": {
                    "code": "UnschedulableAndUnresolvable",
                    "plugin": "NodeUnschedulable",
                    "reasons": ["node(s) were unschedulable"],
                },
            },
            "best": ["n1"],
        }
    }


def test_the_judge_reports_scores_if_two_nodes_fit() -> None:
    answer = answers(line(a_node("n1"), a_node("n2"), a_pod("p"), pods=["default/p"]))["default/p"]
    assert answer["best"] == ["n1", "n2"]
    assert answer["scores"]["n1"] == {
        "total": 397,
        "plugins": {"TaintToleration": 300, "NodeResourcesFit": 97, "DynamicResources": 0, "ImageLocality": 0},
    }
    assert "fit_error" not in answer


def test_the_judge_lists_no_nodes_after_a_prefilter_refusal() -> None:
    pod = a_pod("p").with_field("spec.volumes", [{"name": "v", "persistentVolumeClaim": {"claimName": "nope"}}])
    answer = answers(line(a_node("n1"), pod, pods=["default/p"]))["default/p"]
    assert answer["prefilter"] == {
        "code": "UnschedulableAndUnresolvable",
        "plugin": "VolumeRestrictions",
        "reasons": ['persistentvolumeclaim "nope" not found'],
    }
    assert answer["fit_error"].startswith('0/1 nodes are available: persistentvolumeclaim "nope" not found.')
    assert "nodes" not in answer


def test_the_judge_reports_node_and_victims_of_a_preemption() -> None:
    low = a_pod("low").requesting(cpu="3").with_priority(0).on("n1")
    answer = answers(line(a_node("n1"), low, a_pod("p").requesting(cpu="3").with_priority(9), pods=["default/p"]))[
        "default/p"
    ]
    assert answer["preemption"] == {"node": "n1", "victims": ["default/low"]}


def test_judged_pods_with_a_node_name_do_not_affect_each_other() -> None:
    pods = [a_pod(name).requesting(cpu="3").with_field("spec.nodeName", "n1") for name in ("a", "b")]
    assert {
        key: answer["best"]
        for key, answer in answers(line(a_node("n1"), pods, pods=["default/a", "default/b"])).items()
    } == {"default/a": ["n1"], "default/b": ["n1"]}


def test_the_judge_ignores_the_nomination_of_the_judged_pod() -> None:
    promised = a_pod("promised").requesting(cpu="3").with_field("status.nominatedNodeName", "n1")
    asked = a_pod("asked").requesting(cpu="3").with_field("status.nominatedNodeName", "n1")
    answer = answers(line(a_node("n1"), a_node("n2"), promised, asked, pods=["default/asked"]))["default/asked"]
    assert answer["best"] == ["n2"]


def test_the_judge_reports_only_the_gate_of_a_gated_pod() -> None:
    pod = a_pod("p").with_field("spec.schedulingGates", [{"name": "wait"}])
    assert answers(line(a_node("n1"), pod, pods=["default/p"])) == {
        "default/p": {
            "preenqueue": {
                "code": "UnschedulableAndUnresolvable",
                "plugin": "SchedulingGates",
                "reasons": ["waiting for scheduling gates: [wait]"],
            }
        }
    }


def test_the_judge_reports_an_error_for_an_unreadable_pod() -> None:
    bad = a_pod("bad").requesting(cpu="lots")
    other = a_pod("other").with_field("spec.schedulerName", "another")
    got = answers(
        line(
            a_node("n1"),
            bad,
            other,
            a_pod("good"),
            pods=["default/bad", "default/good", "default/missing", "default/other"],
        )
    )
    assert got["default/good"]["best"] == ["n1"]
    assert got["default/bad"]["error"].startswith(
        "Pod default/bad: spec.containers[0].resources.requests.cpu: 'lots' is not a quantity"
    )
    assert got["default/missing"] == {"error": "the snapshot has no pod default/missing"}
    assert got["default/other"] == {"error": "pod default/other: no profile has the schedulerName 'another'"}


def test_a_recorded_case_is_decided_with_the_release_and_configuration_that_the_case_contains() -> None:
    tainted = a_node("n1").tainted("k", "v")
    old = answers(line(tainted, a_pod("p"), pods=["default/p"], kubeVersion="1.33"))["default/p"]
    assert old["nodes"]["n1"]["reasons"] == ["node(s) had untolerated taint {k: v}"]
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"filter": {"disabled": [{"name": "TaintToleration"}]}}}],
    }
    assert answers(line(tainted, a_pod("p"), pods=["default/p"], config=config))["default/p"]["best"] == ["n1"]


@pytest.mark.parametrize(
    "text", ["{}", "not json", '{"id": 7, "objects": [], "pods": []}', '{"id": "x", "objects": {}, "pods": []}']
)
def test_an_invalid_case_is_refused(text: str) -> None:
    with pytest.raises(CaseError, match=r"^the line is not a valid case: "):
        read_case(text)


def test_the_judge_reports_the_path_of_an_invalid_configuration_field() -> None:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "percentageOfNodesToScore": 101,
    }
    with pytest.raises(ConfigurationError, match="percentageOfNodesToScore"):
        read_case(line(pods=[], config=config))


def test_the_judge_writes_one_line_per_case() -> None:
    assert write_answers("c", {"default/p": {"best": ["n1"]}}) == '{"id":"c","answers":{"default/p":{"best":["n1"]}}}'


def test_the_judge_continues_after_an_invalid_line_and_exits_with_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good = line(a_node("n1"), a_pod("p"), pods=["default/p"])
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{good}\n\nnonsense\n{good}\n"))
    assert main(["judge", "--processes", "1"]) == 2
    said = capsys.readouterr()
    assert [json.loads(text)["id"] for text in said.out.splitlines()] == ["c", "c"]
    assert said.err.startswith("case 2: the line is not a valid case: ")


def test_a_crash_in_one_case_does_not_affect_other_cases(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken_for_three_nodes(case: Case) -> dict[str, dict[str, Any]]:
        if len(case.objects) == 4:
            raise KeyError("a bug")
        return judge(case)

    monkeypatch.setattr("scheduler_core.judge.answer.judge", broken_for_three_nodes)
    good, bad = (
        line(a_node("n1"), a_pod("p"), pods=["default/p"]),
        line(a_node("n1"), a_node("n2"), a_node("n3"), a_pod("p"), pods=["default/p"]),
    )
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{good}\n{bad}\n{good}\n"))
    assert main(["judge", "--processes", "1"]) == 2
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 2
    assert said.err.startswith("case 2: internal error, please report it: ")
    assert "KeyError: 'a bug'" in said.err


@pytest.mark.parametrize("arguments", [[], ["judge", "--processes", "0"], ["nonsense"]])
def test_the_judge_exits_with_2_for_wrong_arguments(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err
