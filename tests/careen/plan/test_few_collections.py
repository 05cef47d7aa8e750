"""Tests that Python's garbage collector runs rarely while careen simulates a plan, and as often as usual afterwards."""

from __future__ import annotations

import gc

import pytest

from careen.plan.few_collections import few_collections


def test_the_garbage_collector_runs_rarely_during_a_simulation_and_normally_afterwards() -> None:
    before = gc.get_threshold()
    with few_collections():
        assert gc.get_threshold()[0] == 10_000_000
        assert gc.isenabled()
    assert gc.get_threshold() == before


def test_an_error_during_a_simulation_restores_the_garbage_collector() -> None:
    before = gc.get_threshold()
    with pytest.raises(RuntimeError), few_collections():
        raise RuntimeError
    assert gc.get_threshold() == before


def test_a_simulation_does_not_turn_on_a_disabled_garbage_collector() -> None:
    before = gc.get_threshold()
    try:
        gc.set_threshold(0)
        with few_collections():
            assert gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*before)
