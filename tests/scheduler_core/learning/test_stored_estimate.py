"""Tests that a dump keeps what was learned about the scheduler's searches (a SearchEstimate), and that invalid content
is ignored."""

from __future__ import annotations

import gzip
import io
import json
from typing import Any

import pytest

from scheduler_core import Scheduler, Snapshot
from scheduler_core.learning.search_estimate import SearchEstimate
from scheduler_core.learning.stored_estimate import from_mapping, learnt_searches, to_mapping
from scheduler_core.sampling import Search
from scheduler_core.simulation.searches import Likely
from scheduler_core.snapshot.dump import DumpWriter, Header, read_dump
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.testing.builders import a_node

ESTIMATE = SearchEstimate(
    followed=(Likely(Search(7, 1, -1), 0.6), Likely(Search(120, 4, -1), 0.3)),
    doubt=0.1,
    bindings=12,
    strides=(103, 0, 110),
    others=0.5,
)


def town(names: range = range(150)) -> Snapshot:
    return load_objects({**a_node(f"n{number:03}").manifest, "kind": "Node", "apiVersion": "v1"} for number in names)


def dump(learnt: Any) -> bytes:
    out = io.BytesIO()
    writer = DumpWriter(Header(kube_version="v1.36.3", taken_at="2026-03-04T12:00:00Z"), out)
    items = [a_node(f"n{number:03}").manifest for number in range(150)]
    writer.add(json.dumps({"kind": "NodeList", "apiVersion": "v1", "items": items}).encode())
    writer.finish(learnt)
    return out.getvalue()


def test_a_dump_keeps_the_learned_searches() -> None:
    read = read_dump(io.BytesIO(dump(to_mapping(ESTIMATE, town()))))
    kept = from_mapping(read.learnt, read.snapshot)
    assert kept is not None
    assert kept.followed == ESTIMATE.followed
    assert (kept.bindings, pytest.approx(kept.doubt)) == (12, 0.1)
    assert (kept.strides, kept.others) == ((103, 0, 110), 0.5)


def test_learned_searches_of_an_earlier_release_can_be_read() -> None:
    kept = from_mapping({"bindings": 1, "searches": [SEARCH]}, town())
    assert kept is not None
    assert (kept.strides, kept.others) == ((), 0.0)


def test_a_learned_search_keeps_its_start_node_when_other_nodes_change() -> None:
    kept = from_mapping(to_mapping(ESTIMATE, town()), town(range(5, 150)))
    assert kept is not None
    assert [each.search.start for each in kept.followed] == [2, 115]


def test_a_learned_search_is_dropped_if_its_start_node_was_deleted() -> None:
    kept = from_mapping(to_mapping(ESTIMATE, town()), town(range(10, 150)))
    assert kept is not None
    assert [each.search.start for each in kept.followed] == [110]
    assert kept.doubt == pytest.approx(0.7)


def test_a_forecast_from_a_dump_starts_its_searches_at_the_learned_node() -> None:
    found = learnt_searches(to_mapping(ESTIMATE, town()), town(), Scheduler(), 100)
    assert found is not None
    assert sum(each.search.start == 7 for each in found) >= 50


def test_a_dump_without_learned_searches_can_be_read() -> None:
    read = read_dump(io.BytesIO(dump(None)))
    assert read.learnt is None
    assert learnt_searches(read.learnt, read.snapshot, Scheduler(), 100) is None
    assert gzip.decompress(dump(None)).endswith(b'{"end":1}\n')


SEARCH = {"node": "n001", "weight": 0.5}


@pytest.mark.parametrize(
    "written",
    [
        7,
        "x",
        [],
        {},
        {"bindings": 1},
        {"bindings": 1, "searches": []},
        {"bindings": 1, "searches": [{"node": "gone", "weight": 0.5}]},
        {"bindings": 1, "searches": [{**SEARCH, "weight": -1}]},
        {"bindings": 1, "searches": [{**SEARCH, "weight": 0.0}]},
        {"bindings": 1, "searches": [{**SEARCH, "weight": 2}]},
        {"bindings": 1, "searches": [SEARCH, SEARCH, SEARCH]},
        {"bindings": 1, "searches": [{**SEARCH, "workers": 0}]},
        {"bindings": 1, "searches": [{**SEARCH, "order": "x"}]},
        {"bindings": None, "searches": [SEARCH]},
        {"bindings": 1, "searches": [SEARCH], "others": -1.0},
        {"bindings": 1, "searches": [SEARCH], "others": 1e300},
        {"bindings": 1, "searches": [SEARCH], "strides": [-1]},
        {"bindings": 1, "searches": [SEARCH], "strides": [10**30]},
        {"bindings": 1, "searches": [SEARCH], "strides": "x"},
    ],
)
def test_invalid_learned_searches_in_a_dump_are_ignored(written: Any) -> None:
    assert from_mapping(written, town()) is None


def test_an_empty_cluster_has_no_learned_searches() -> None:
    assert from_mapping({"bindings": 1, "searches": [SEARCH]}, load_objects([])) is None
