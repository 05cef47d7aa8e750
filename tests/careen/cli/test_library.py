"""`from careen import from_kubeconfig`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import careen
from careen.cluster.wire.client import CannotReachCluster
from tests.careen.cli.conftest import Desk


def test_a_cluster_is_read_by_its_kubeconfig(desk: Desk) -> None:
    desk.node("n1")
    assert careen.from_kubeconfig(desk.kubeconfig).node_names == ("n1",)


def test_by_default_it_is_the_cluster_of_kubeconfig(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.node("n1")
    monkeypatch.setenv("KUBECONFIG", str(desk.kubeconfig))
    assert careen.from_kubeconfig().node_names == ("n1",)


def test_it_works_in_a_notebook_whose_event_loop_runs(desk: Desk) -> None:
    desk.node("n1")

    async def cell() -> tuple[str, ...]:
        return careen.from_kubeconfig(desk.kubeconfig).node_names

    assert asyncio.run(cell()) == ("n1",)


def test_a_kubeconfig_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotReachCluster, match="cannot be read"):
        careen.from_kubeconfig(tmp_path / "none")


def test_dir_lists_the_function() -> None:
    assert dir(careen) == ["from_kubeconfig"]
    with pytest.raises(AttributeError, match="module 'careen' has no attribute 'nothing'"):
        _ = careen.nothing
