"""Tests how much memory the container's limit leaves for a forecast."""

from __future__ import annotations

from pathlib import Path

import pytest

from careen.agent.forecast.container_memory import RESERVE_BYTES, MemoryLeft, room
from careen.agent.forecast.order import ForecastRequest

MIB = 2**20


def container(folder: Path, limit: str, used_mib: int, *, version: int = 2) -> Path:
    place = folder if version == 2 else folder / "memory"
    place.mkdir(exist_ok=True)
    names = ("memory.max", "anon") if version == 2 else ("memory.limit_in_bytes", "total_rss")
    (place / names[0]).write_text(f"{limit}\n")
    (place / "memory.stat").write_text(f"file 5\n{names[1]} {used_mib * MIB}\nkernel 7\n")
    return folder


def status(folder: Path, own_mib: int) -> Path:
    (folder / "status").write_text(f"Name:\tpython\nRssAnon:\t  {own_mib * 1024} kB\n")
    return folder / "status"


@pytest.mark.parametrize("version", [1, 2])
def test_the_limit_without_the_agents_memory_and_a_reserve_is_left(tmp_path: Path, version: int) -> None:
    groups = container(tmp_path, str(160 * MIB), 50, version=version)
    left = 160 * MIB - 40 * MIB - RESERVE_BYTES  # 10 of the 50 MiB are the process's own
    assert room(groups, status(tmp_path, 10)) == MemoryLeft(limit_bytes=160 * MIB, left_bytes=left)


@pytest.mark.parametrize(("limit", "version"), [("max", 2), (str(2**63 - 4096), 1), ("", 2)])
def test_without_a_limit_nothing_is_said(tmp_path: Path, limit: str, version: int) -> None:
    assert room(container(tmp_path, limit, 50, version=version), status(tmp_path, 10)) is None


def test_outside_of_a_container_nothing_is_said(tmp_path: Path) -> None:
    assert room(tmp_path, tmp_path / "status") is None


def test_a_limit_below_the_agents_memory_leaves_nothing(tmp_path: Path) -> None:
    found = room(container(tmp_path, str(32 * MIB), 50), status(tmp_path, 0))
    assert found == MemoryLeft(limit_bytes=32 * MIB, left_bytes=0)


@pytest.mark.parametrize(
    ("left_mib", "sentence"),
    [
        (20, "than the 20 MiB that the container's memory limit of 64 MiB leaves it: raise the container's limit"),
        (600, "more than 512 MiB: raise --forecast-memory and the container's limit"),
    ],
)
def test_the_forecast_names_the_limit_that_is_too_low(left_mib: int, sentence: str) -> None:
    order = ForecastRequest(nodes=("n1",), kubeconfig="", memory_bytes=512 * MIB, scheduler_config="")
    assert order.wants_more_memory(MemoryLeft(limit_bytes=64 * MIB, left_bytes=left_mib * MIB)).endswith(sentence)
