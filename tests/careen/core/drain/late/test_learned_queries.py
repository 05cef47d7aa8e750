"""What a node learns about health queries: one that was good at the claim, bad after the drain, and good again soon
after the undo, was bad because of the drain."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from careen.core.actions import PatchNode, PostEvent
from careen.core.decision import Decision
from careen.core.facts import keys
from careen.core.facts.observation import NOT_ASKED, Sample, Unknown
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.policy import HealthQuery
from careen.core.facts.reasons import Code
from tests.careen.core.builders import NOW, UPTIME, a_marked_node, a_pod, a_policy, a_progress
from tests.careen.core.steps.shared.test_late_gates import CEPH, LATE_CEPH, Node, ceph

GOOD, WARN, ERROR = ceph(0), ceph(1), ceph(2)
DAY = 86400.0


class Learner(Node):
    """A node whose drains ask one health query."""

    def __init__(self, query: HealthQuery = CEPH, good: tuple[Sample, ...] = (GOOD,)) -> None:
        self.query = query
        super().__init__(a_policy(health_queries=(query,)), queries={query.name: good})

    def sees(self, *samples: Sample, after: float = 2.0, **seen: Any) -> Decision:
        now = (NOW + timedelta(seconds=self.uptime + after - UPTIME)).timestamp()
        fresh = tuple(replace(each, evaluated_at=now) for each in samples)
        return self.turn(after, **{"queries": {self.query.name: fresh}, **seen})

    def fails_with(self, *bad: Sample) -> None:
        """The samples stay bad until the drain is undone and the claim is released."""
        assert self.sees(*bad).phase is Phase.DRAINING
        assert self.sees(*bad, after=601).phase is Phase.FAILED
        self.sees(*bad)
        assert self.sees(*bad).phase is Phase.FAILED

    def drains_again(self, *good: Sample, later: float = 0.0) -> None:
        learned = self.node.annotations.get(keys.LEARNED_QUERIES)
        self.uptime += later
        self.node = a_marked_node(
            a_progress(Phase.CLAIMING), annotations={keys.LEARNED_QUERIES: learned} if learned else {}
        )
        assert self.sees(*(good or (GOOD,)), pods=(a_pod(),)).phase is Phase.DRAINING


def learned(after: float = 30.0, query: HealthQuery = CEPH, bad: Sample = WARN) -> tuple[Learner, Decision]:
    node = Learner(query)
    node.fails_with(bad)
    return node, node.sees(GOOD, after=after)


def events(decision: Decision) -> list[str]:
    return [
        each.sentence
        for each in decision.actions
        if isinstance(each, PostEvent) and each.code is Code.HEALTH_QUERY_LEARNED
    ]


def test_a_query_that_only_the_drain_makes_bad_does_not_refuse_after_the_next_drain() -> None:
    node, decision = learned()
    assert decision.phase is Phase.FAILED
    (told,) = events(decision)
    assert told == (
        "the health query ceph became bad with this node's drain and good again after its undo: for 30 days it may be "
        "1 while the node is drained. To say so for all nodes, give the query in --health-queries the field "
        'late: "<= 1"'
    )
    node.drains_again()
    again = node.sees(WARN)
    assert again.phase is Phase.REBOOTING
    assert again.reason.sentence.endswith("these health queries may be bad while the node is drained: ceph")


@pytest.mark.parametrize(
    ("comparison", "bound", "good", "bad", "setting"),
    [
        ("==", 3.0, 3.0, 2.0, ">= 2"),
        ("<", 0.9, 0.5, 0.95, "<= 0.95"),
        ("<=", 1.0, 1.0, 4.0, "<= 4"),
        (">", 2.0, 3.0, 2.0, ">= 2"),
        (">=", 3.0, 3.0, 2.0, ">= 2"),
    ],
)
def test_the_event_names_the_setting_with_the_worst_value(
    comparison: str, bound: float, good: float, bad: float, setting: str
) -> None:
    query = replace(CEPH, comparison=comparison, bound=bound)
    node = Learner(query, (ceph(good),))
    node.fails_with(ceph(bad))
    assert events(node.sees(ceph(good)))[0].endswith(f'the field late: "{setting}"')
    node.drains_again(ceph(good))
    worse = bad + (bad - bound or (good - bound) * -1)
    assert node.sees(ceph(worse)).phase is Phase.DRAINING
    assert node.sees(ceph(bad)).phase is Phase.REBOOTING


def test_a_failed_node_asks_only_queries_that_it_may_learn() -> None:
    node = Learner()
    node.fails_with(WARN)
    with pytest.raises(AssertionError, match=Evidence.QUERIES.value):
        node.turn(queries=NOT_ASKED)
    node, _ = learned()
    assert node.turn(queries=NOT_ASKED).phase is Phase.FAILED


def test_the_node_looks_every_five_seconds_and_writes_only_once() -> None:
    node = Learner()
    node.fails_with(WARN)
    for _ in range(5):
        decision = node.sees(WARN)
        assert decision.look_again_seconds == 5.0
        assert not [each for each in decision.actions if isinstance(each, PatchNode)]
    assert events(node.sees(GOOD))
    assert not events(node.sees(GOOD))


@pytest.mark.parametrize("answer", [Unknown("refused"), ()])
def test_an_unknown_answer_teaches_nothing(answer: Any) -> None:
    node = Learner()
    node.fails_with(WARN)
    assert not events(node.turn(queries={"ceph": answer}))
    assert not events(node.turn(queries={"ceph": (replace(GOOD, age_seconds=500.0),)}))
    assert events(node.sees(GOOD))


@pytest.mark.parametrize(("after", "is_learned"), [(590.0, True), (601.0, False)])
def test_a_query_that_is_good_again_much_later_was_not_bad_because_of_the_drain(after: float, is_learned: bool) -> None:
    _, decision = learned(after)
    assert bool(events(decision)) is is_learned


def test_a_failed_node_keeps_watching_although_its_back_off_is_over() -> None:
    node = Learner()
    node.fails_with(WARN)
    assert node.sees(WARN, after=400).phase is Phase.FAILED
    assert events(node.sees(GOOD))
    assert node.sees(GOOD, after=5).phase is Phase.WAITING


def test_a_value_that_is_worse_than_the_learned_one_refuses() -> None:
    node, _ = learned()
    node.drains_again()
    assert node.sees(ERROR).reason.code is Code.HEALTH_QUERY


def test_a_worse_value_that_is_learned_too_widens_what_is_known() -> None:
    node, _ = learned()
    node.drains_again()
    node.fails_with(ERROR)
    node.sees(GOOD)
    node.drains_again()
    assert node.sees(ERROR).phase is Phase.REBOOTING


def test_a_worse_value_that_is_not_learned_takes_nothing_back() -> None:
    node, _ = learned()
    node.drains_again()
    node.fails_with(ERROR)
    node.drains_again()
    assert node.sees(WARN).phase is Phase.REBOOTING


def test_what_was_learned_is_forgotten_after_thirty_days() -> None:
    node, _ = learned()
    node.drains_again(later=29 * DAY)
    assert node.sees(WARN).phase is Phase.REBOOTING
    node.drains_again(later=2 * DAY)
    assert node.sees(WARN).reason.code is Code.HEALTH_QUERY


@pytest.mark.parametrize("changes", [{"query": "other"}, {"comparison": "<", "bound": 0.5}, {"comparison": "<="}])
def test_another_query_of_the_same_name_has_nothing_learned(changes: dict[str, Any]) -> None:
    node, _ = learned()
    node.policy = replace(node.policy, health_queries=(replace(CEPH, **changes),))
    node.drains_again()
    assert node.sees(WARN).reason.code is Code.HEALTH_QUERY


def test_a_query_with_a_condition_for_drained_nodes_is_never_learned() -> None:
    _, decision = learned(query=LATE_CEPH, bad=ERROR)
    assert not events(decision)
    node, _ = learned()
    node.policy = replace(node.policy, health_queries=(replace(CEPH, late_comparison="<=", late_bound=0.5),))
    node.drains_again()
    assert node.sees(WARN).reason.code is Code.HEALTH_QUERY


def a_disk(name: str, value: float) -> Sample:
    return ceph(value, disk=name)


def test_only_the_series_that_the_drain_makes_bad_is_learned() -> None:
    good = (a_disk("a", 0), a_disk("b", 0))
    node = Learner(good=good)
    node.fails_with(a_disk("a", 1), a_disk("b", 0))
    assert events(node.sees(*good))
    node.drains_again(*good)
    assert node.sees(a_disk("a", 0), a_disk("b", 1)).reason.code is Code.HEALTH_QUERY
    assert node.sees(a_disk("a", 1), a_disk("b", 0)).phase is Phase.REBOOTING


def test_a_series_that_is_new_since_the_claim_is_not_learned() -> None:
    node = Learner(good=(a_disk("a", 0), a_disk("b", 0)))
    node.fails_with(a_disk("a", 0), a_disk("c", 1))
    assert not events(node.sees(a_disk("a", 0), a_disk("b", 0)))


def test_the_only_series_of_a_query_is_recognised_although_its_exporter_has_moved() -> None:
    node = Learner(good=(ceph(0, instance="10.0.0.4:9283"),))
    node.fails_with(ceph(1, instance="10.0.0.5:9283"))
    assert events(node.sees(ceph(0, instance="10.0.0.6:9283")))


def test_a_drain_that_evicted_nothing_teaches_nothing() -> None:
    node = Learner()
    node.node = a_marked_node(
        a_progress(Phase.DRAINING, displaced=0),
        annotations={keys.KNOWN_AT_THE_CLAIM: node.node.annotations[keys.KNOWN_AT_THE_CLAIM]},
    )
    node.fails_with(WARN)
    assert not events(node.sees(GOOD))


@pytest.mark.parametrize("text", ["", "no JSON", "[]", '{"learned": {"ceph": 5}}', '{"open": {"ceph": {"at": 5}}}'])
def test_an_unreadable_record_counts_as_none(text: str) -> None:
    node = Learner()
    node.node = replace(node.node, annotations={**node.node.annotations, keys.LEARNED_QUERIES: text})
    node.fails_with(WARN)
    assert events(node.sees(GOOD))
