"""Tests the output of `careen shadow` for given numbers of decisions that agree and disagree with the scheduler."""

from __future__ import annotations

import json

import pytest

from careen.report.shadow.shadow_report import Followed, exit_code, shadow_json, shadow_text
from careen.shadow.outcomes import MEANINGS, AgreementReason, Compared
from careen.shadow.tally import RunCounts

FOLLOWED = Followed(seconds=61.4, nodes=20, pods=300, events=1234, lists=17, notes=("a note",))
AT = "2026-03-04T12:00:00Z"


def one(reason: AgreementReason, **more: object) -> Compared:
    base = {"pod": "shop/web", "profile": "default-scheduler", "at": AT, "reason": reason, "node": "n9"}
    return Compared(**{**base, **more})  # type: ignore[arg-type]


def tally(*each: Compared) -> RunCounts:
    made = RunCounts()
    for compared in each:
        made.add(compared)
    return made


def many(agreed: int, disagreed: int, **more: object) -> RunCounts:
    said = {"said": (("n1", 0.7), ("n2", 0.2), ("n3", 0.05), ("n4", 0.05))}
    agreeing = [one(AgreementReason.FIRST, **said)] * agreed
    return tally(*agreeing, *[one(AgreementReason.OTHER_NODE, why="n1 has the score 1", **said, **more)] * disagreed)


def test_the_first_sentence_says_how_often_careen_shadow_and_kube_scheduler_agree() -> None:
    text = shadow_text(many(19, 1), FOLLOWED, last=10)
    assert text.startswith(
        "20 nodes and 300 pods were followed for 61 s (1234 events): scheduler_core agrees with the "
        "scheduler on 19 of 20 pods (95.0 %), and expects 4.0 possible nodes per pod on average."
    )
    assert "Note: a note." in text
    assert "n1, n2, n3 and 1 more" in text
    assert "Likely cause" not in text


def test_careen_shadow_prints_a_message_if_no_pod_could_be_compared() -> None:
    text = shadow_text(RunCounts(), FOLLOWED, last=10)
    assert "no bound pod could be compared." in text
    assert shadow_json(RunCounts(), FOLLOWED, last=10)["agreement"] is None


@pytest.mark.parametrize(
    ("made", "code"),
    [
        (RunCounts(), 4),
        (tally(one(AgreementReason.ORDER)), 4),
        (many(1, 0), 0),
        (many(5, 24), 0),  # too few to tell
        (many(6, 24), 3),
        (many(24, 6), 0),
    ],
)
def test_the_exit_code_says_whether_careen_shadow_and_kube_scheduler_agree(made: RunCounts, code: int) -> None:
    assert exit_code(made) == code


def test_the_report_lists_likely_causes_if_few_decisions_agree() -> None:
    text = shadow_text(many(6, 40, nodes=200, is_sampled=True, is_best_of_all=True), FOLLOWED, last=2)
    assert "An agreement below 80 % means" in text
    assert (
        "the scheduler probably examines more nodes than the configuration given to careen says "
        "(percentageOfNodesToScore)" in text
    )
    assert "The last 2 disagreements:" in text


@pytest.mark.parametrize(
    ("more", "cause"),
    [
        ({"nodes": 200, "is_sampled": True, "is_best_of_all": True}, "examines more nodes"),
        ({"nodes": 200}, "examines only a part of the nodes (percentageOfNodesToScore)"),
        ({"nodes": 20}, "other score plugins, weights or arguments"),
    ],
)
def test_the_report_shows_the_likely_cause_that_explains_the_disagreements(more: dict[str, object], cause: str) -> None:
    (found,) = many(0, 40, **more).causes()
    assert cause in found


def test_the_report_lists_plugins_that_refuse_nodes_chosen_by_the_scheduler() -> None:
    made = tally(*[one(AgreementReason.REFUSED_NODE, plugin="NodeAffinity")] * 40)
    (found,) = made.causes()
    assert found.startswith("the plugin NodeAffinity refuses 40 of the 40 nodes that the scheduler chose")


def test_the_json_output_of_careen_shadow_has_the_content_of_its_text_output() -> None:
    said = json.loads(json.dumps(shadow_json(many(19, 1), FOLLOWED, last=1)))
    assert (said["agreed"], said["disagreed"], said["cannotSay"], said["agreement"]) == (19, 1, 0, 0.95)
    assert said["profiles"] == [
        {"profile": "default-scheduler", "agreement": 0.95, "reasons": {"first": 19, "other-node": 1}}
    ]
    (last,) = said["disagreements"]
    assert last["said"][0] == {"node": "n1", "share": 0.7}
    assert (last["node"], last["reason"], last["plugin"]) == ("n9", "other-node", None)
    assert shadow_json(many(19, 1), FOLLOWED, last=0)["disagreements"] == []


def test_the_report_explains_each_reason_for_the_result_of_a_comparison() -> None:
    assert set(MEANINGS) == set(AgreementReason)
