"""Tests what `make bench-rollout` prints and writes of the requests that it counted."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from bench.rollout.__main__ import _medians, _rows
from bench.rollout.measure import Result
from tests.cluster.harness.measures.audit import requests_of
from tests.cluster.harness.measures.figures import rollout
from tests.cluster.harness.observer import Seen

USER = "system:serviceaccount:careen:careen"


def request(verb: str, resource: str, group: str = "") -> dict[str, Any]:
    return {
        "verb": verb,
        "stage": "ResponseComplete",
        "user": {"username": USER},
        "objectRef": {"resource": resource, "apiGroup": group},
    }


def a_result(events: int, *, others: int = 3) -> Result:
    asked = [request("create", "events"), *[request("patch", "events", "events.k8s.io")] * (events - 1)]
    return Result(
        finished=True,
        asked=0,
        rollout=rollout(Seen(nodes=[], pods={}, locks=[]), {}, 0.0, 60.0),
        requests=requests_of([*asked, *[request("patch", "nodes")] * others], USER),
        idle=(),
        working=(),
        starting_seconds=0.0,
        processor_seconds=0.0,
        crashes=0,
        pending_at_the_end=0,
        node_minutes=1.0,
    )


def row(lines: list[str], name: str) -> str:
    [found] = [line.removeprefix(name).strip() for line in lines if line.startswith(f"{name}  ")]
    return found


def test_the_table_counts_events_apart_and_within_all_requests() -> None:
    lines = _rows(a_result(events=2))
    assert (row(lines, "API requests"), row(lines, "- API requests for Events")) == ("5", "2")


def test_the_json_counts_events_apart() -> None:
    found = asdict(a_result(events=2))["requests"]
    assert (found["total"], found["events"]) == (5, 2)


def test_the_medians_of_several_runs_count_events_apart() -> None:
    lines = _medians([a_result(events=1), a_result(events=2), a_result(events=6)])
    assert row(lines, "API requests") == "4.0 / 5.0 / 9.0"
    assert row(lines, "- API requests for Events") == "1.0 / 2.0 / 6.0"
