"""People's regular expressions are asked about alerts and samples in a thread, within a limit, and a decision asks none
of them again."""

from __future__ import annotations

import asyncio
import re
import threading
from typing import Any

import pytest

from careen.core.drain.late.known_at_the_claim import series_of
from careen.core.facts.observation import Alert, Sample, Unknown
from careen.core.facts.policy import AlertPolicy, HealthQuery, Matcher
from careen.core.gates.alerts import alerts, blocks
from careen.core.gates.health_queries import health_queries
from careen.core.gates.question import When
from careen.settings import matching
from careen.settings.go_regexp import GoRegexp
from tests.careen.core.builders import a_policy, a_situation
from tests.patience import SECONDS, until

POLICY = AlertPolicy(filter_regexp=GoRegexp("^Watch"))
ACTIVE = (Alert(name="Watchdog"), Alert(name="DiskFull"))


def a_query(name: str, *matchers: Matcher) -> HealthQuery:
    return HealthQuery(name=name, query="up", comparison="==", bound=1, fresh_seconds=60, matchers=matchers)


def a_sample(**labels: str) -> Sample:
    return Sample(value=1.0, age_seconds=1.0, evaluated_at=0.0, labels=labels)


def like(text: str, *, is_negated: bool = False) -> Matcher:
    return Matcher(label="instance", value=text, pattern=GoRegexp(text), is_negated=is_negated)


QUERY = a_query("up", like("n1(:.*)?"))
SAMPLES = (a_sample(instance="n1:9100"), a_sample(instance="n10:9100"), a_sample())


@pytest.fixture
def no_match(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Returns a function after which an expression of a person must not match any more."""

    def refuse(*_: Any) -> None:
        raise AssertionError("an expression was asked again")

    def forbid() -> None:
        for method in ("search", "fullmatch"):
            monkeypatch.setattr(GoRegexp, method, refuse)

    return forbid


async def test_the_gate_of_alerts_asks_no_expression_again(no_match: Any) -> None:
    found = await matching.of_alerts(ACTIVE, POLICY)
    no_match()
    assert [each.is_matched for each in found] == [True, False]  # type: ignore[union-attr]
    situation = a_situation(policy=a_policy(alerts=POLICY), alerts=found)
    assert [alerts.ask(situation, when).sentence for when in When] == [  # type: ignore[union-attr]
        "these alerts are active: DiskFull" for _ in When
    ]


async def test_the_gate_of_health_queries_asks_no_expression_again(no_match: Any) -> None:
    negated, exact = a_query("others", like("n1(:.*)?", is_negated=True)), a_query("exact")
    queries = (QUERY, negated, exact, a_query("unknown", like("x")))
    found = await matching.of_samples((SAMPLES, SAMPLES, SAMPLES, Unknown("down")), queries)
    no_match()
    assert found["unknown"] == Unknown("down")
    assert [[each.is_selected for each in found[name]] for name in ("up", "others", "exact")] == [  # type: ignore[union-attr]
        [True, False, False],
        [False, True, True],
        [None, None, None],
    ]
    assert len(series_of(QUERY, found["up"])) == 1  # type: ignore[arg-type]
    situation = a_situation(policy=a_policy(health_queries=queries), queries=found)
    health_queries.ask(situation, When.READY)
    health_queries.ask(situation, When.BEFORE_REBOOT)


@pytest.mark.parametrize("of", ["alerts", "samples"])
async def test_the_event_loop_goes_on_while_an_expression_matches(of: str, monkeypatch: pytest.MonkeyPatch) -> None:
    began, may_end = threading.Event(), threading.Event()

    def slow(*_: Any) -> bool:
        began.set()
        assert may_end.wait(SECONDS), "the event loop waits for the match"
        return True

    for method in ("search", "fullmatch"):
        monkeypatch.setattr(GoRegexp, method, slow)
    asked: Any = matching.of_alerts(ACTIVE, POLICY) if of == "alerts" else matching.of_samples((SAMPLES,), (QUERY,))
    matched = asyncio.ensure_future(asked)
    await until(began.is_set)
    may_end.set()
    await matched


@pytest.mark.parametrize("text", ["^Watch", "(x?){990}y"])
async def test_names_that_take_an_expression_too_many_steps_are_unknown(text: str) -> None:
    pattern = GoRegexp(text)
    length = matching.MOST_STEPS // pattern.steps([""])
    policy = AlertPolicy(filter_regexp=pattern)
    long = Alert(name="x" * length)
    assert await matching.of_alerts((long,), policy) == Unknown(
        "the names of the active alerts are too long for --alert-filter-regexp; give a shorter one"
    )


async def test_labels_that_take_the_expressions_too_many_steps_make_their_queries_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All queries of one reading have the limit together, and each sample counts, even if all are equal."""
    pattern = QUERY.matchers[0].pattern
    assert isinstance(pattern, GoRegexp)
    monkeypatch.setattr(matching, "MOST_STEPS", pattern.steps(["n1:9100"]) * 100)
    samples = (a_sample(instance="n1:9100"),) * 50
    two = (a_query("a", like("n1(:.*)?")), a_query("b", like("n1(:.*)?")), a_query("c"))
    assert all(isinstance(each, tuple) for each in (await matching.of_samples([samples] * 3, two)).values())
    found = await matching.of_samples((samples, (*samples, samples[0]), samples), two)
    why = Unknown("the labels of the samples are too long for the expressions in `labels`; give shorter ones")
    assert (found["a"], found["b"], found["c"]) == (why, why, samples)


async def test_alerts_without_a_persons_expression_stay_as_they_are() -> None:
    for policy in (None, AlertPolicy(), AlertPolicy(filter_regexp=re.compile("x"))):
        assert await matching.of_alerts(ACTIVE, policy) is ACTIVE
    assert await matching.of_alerts(Unknown("down"), POLICY) == Unknown("down")


@pytest.mark.parametrize("match_only", [False, True])
def test_what_the_expression_said_decides_and_otherwise_the_gate_asks_it(match_only: bool) -> None:
    policy = AlertPolicy(filter_regexp=re.compile("Watch"), match_only=match_only)
    assert blocks(Alert(name="Watchdog"), policy) is match_only
    assert blocks(Alert(name="Watchdog", is_matched=False), policy) is not match_only
    assert blocks(Alert(name="Other", is_matched=True), policy) is match_only
