"""Every Python block of the pages for planners and researchers, and of the library's README, runs as it stands."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from scheduler_core.testing.builders import a_node, manifests

ROOT = Path(__file__).parents[2]
PAGES = ("docs/planning.md", "docs/research.md", "scheduler_core/README.md")


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_the_page_runs_in_order(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    served = json.dumps({"items": manifests(a_node("n1"), a_node("n2"))}).encode()
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, stdout=served))
    names: dict[str, Any] = {"__name__": "page"}
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert len(blocks) >= 2
    for block in blocks:
        exec(compile(block, page, "exec", dont_inherit=True), names)


@pytest.mark.parametrize("page", PAGES)
def test_the_page_asserts_or_prints_its_results(page: str) -> None:
    assert re.search(r"^(assert |print\(|    print\()", (ROOT / page).read_text(), re.MULTILINE)
