"""Tests that the examples in scheduler_core/README.md run."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import scheduler_core
from scheduler_core.plugins import IN_TREE
from scheduler_core.testing.builders import a_node, a_pod, manifests

README = (Path(scheduler_core.__file__).parent / "README.md").read_text()


def test_the_first_example_of_the_readme_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    objects = manifests(a_node("n1"), a_node("n2").cordoned(), a_pod("bad").requesting(cpu="lots"))

    def listed(*_args: Any, **_more: Any) -> Any:
        return subprocess.CompletedProcess([], 0, stdout=json.dumps({"items": objects}).encode())

    monkeypatch.setattr(subprocess, "run", listed)
    (program,) = re.findall(r"## In twenty lines\n\n```python\n(.*?)```", README, re.DOTALL)
    assert len([line for line in program.splitlines() if line.strip()]) <= 20
    names: dict[str, Any] = {}
    exec(program, names)
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("left out: Pod default/bad: spec.containers[0].resources.requests.cpu")
    assert said[1] == "n1 ('n1',) "
    assert [line.split()[0] for line in said[2:]] == ["n1", "n2"]
    assert [pod.key for pod in names["snapshot"].pods_on("n1")] == ["shop/new"]


def test_the_second_and_third_example_in_the_readme_give_the_expected_results(
    capsys: pytest.CaptureFixture[str],
) -> None:
    followed, more = (
        "".join(re.findall(r"```python\n(.*?)```", README.split(f"## {title}\n")[1].split("\n## ")[0], re.DOTALL))
        for title in ("Keep a copy of a cluster up to date with a watch", "Would more nodes help?")
    )
    names: dict[str, Any] = {}
    exec(followed + more, names)
    assert names["cache"].snapshot().pod("shop/web").node_name == "n1"
    assert capsys.readouterr().out.splitlines() == [
        "With 0 more nodes like n1, 1 of 1 pending pods would get a node",
        "{'n1': 0} 0.0 True True",
        "n1 could go: {}",
    ]


def test_the_workload_of_the_readme_spreads_evenly(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = re.findall(r"## Where would a workload land\?\n\n```python\n(.*?)```", README, re.DOTALL)
    exec(program, {})
    assert sorted(line.split()[1] for line in capsys.readouterr().out.splitlines()) == ["a", "a", "b", "b"]


def test_every_plugin_in_the_table_of_old_predicate_names_exists() -> None:
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", README.split("## Old names")[1], re.MULTILINE)
    assert len(rows) > 20
    for _, now in rows[1:]:
        assert now.startswith(("none", "---")) or any(name in now for name in IN_TREE), now
