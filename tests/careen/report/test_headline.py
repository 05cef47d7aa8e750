"""Tests the first sentence of `careen status`, as text and as structured data. More cases are in
tests/careen/cli/test_headline.py."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from careen.core.facts import keys
from careen.core.facts.observation import NodeView, Unknown
from careen.core.lock.content import LockContent
from careen.report.headline import headline_json, headline_text
from careen.report.lock_report import LockState
from careen.rollout.model import Standstill
from careen.rollout.reading import rollout
from tests.careen.core.builders import a_node

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


def headline(nodes: list[NodeView], lock: LockState, now: datetime) -> Standstill | None:
    return next(iter(rollout(nodes, lock, now).obstacles), None)


def waiting(name: str, *rows: tuple[str, str, str, str]) -> NodeView:
    refusals = [
        {"gate": gate, "code": code, "sentence": sentence, "since": since} for gate, code, sentence, since in rows
    ]
    return a_node(name, annotations={keys.PHASE: "Waiting", keys.REFUSALS: json.dumps(refusals)})


def test_the_headline_gives_the_first_time_at_which_all_waiting_nodes_were_refused() -> None:
    """Gates have refused n2 since 08:00 and n1 since 09:00, so all waiting nodes have been refused since 09:00."""
    nodes = [
        waiting("n1", ("alerts", "alert", "these alerts are active: A", "2026-03-04T09:00:00Z")),
        waiting(
            "n2",
            ("bound-pods", "bound-pod", "a pod is bound", "2026-03-04T08:00:00Z"),
            ("alerts", "alert", "these alerts are active: A", "2026-03-04T11:00:00Z"),
        ),
    ]
    found = headline(nodes, LockContent(), NOW)
    assert found is not None
    assert found.since == datetime(2026, 3, 4, 9, 0, tzinfo=UTC)
    assert found.code == "alert"


def test_the_headline_shows_refusals_even_if_the_lock_could_not_be_read() -> None:
    found = headline(
        [waiting("n1", ("alerts", "alert", "these alerts are active: A", "2026-03-04T11:00:00Z"))], Unknown("403"), NOW
    )
    assert found is not None
    assert found.why == "No reboot will start: these alerts are active: A (the gate `alerts` refuses n1)"


def test_the_headline_shows_three_reasons_and_counts_the_remaining_reasons() -> None:
    codes = [
        ("bound-pods", "bound-pod"),
        ("alerts", "alert"),
        ("blocking-pods", "blocking-pod"),
        ("stuck-pods", "stuck-pod"),
        ("forecast", "forecast-unknown"),
    ]
    found = headline(
        [waiting("n1", *((gate, code, f"{code}!", "2026-03-04T11:00:00Z") for gate, code in codes))], LockContent(), NOW
    )
    assert found is not None
    assert found.why.count(" (the gate ") == 3
    assert found.why.endswith("; and 2 more reasons")


def test_the_headline_ignores_refusals_that_cannot_be_parsed() -> None:
    assert headline([a_node("n1", annotations={keys.PHASE: "Waiting", keys.REFUSALS: "{"})], LockContent(), NOW) is None


def test_the_headline_says_how_long_the_wait_has_lasted_and_fits_the_terminal() -> None:
    found = headline(
        [waiting("n1", ("alerts", "alert", "these alerts are active: A", "2026-03-04T11:00:00Z"))], LockContent(), NOW
    )
    assert found is not None
    assert headline_text(found, NOW).splitlines() == [
        "No reboot will start: these alerts are active: A (the gate `alerts` refuses n1). The cause has lasted for 1h.",
        "What you can do:",
        "  Resolve the named alert, or ignore it with --alert-filter-regexp.",
    ]
    assert max(map(len, headline_text(found, NOW, width=60).splitlines())) <= 60
    assert headline_json(None) is None
