"""Runs the code of the tutorial for plugins from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial-plugin.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_every_code_block_of_the_tutorial_runs_and_its_assertions_hold() -> None:
    names: dict[str, Any] = {"__name__": "tutorial"}
    for block in BLOCKS:
        exec(compile(block, "docs/tutorial-plugin.md", "exec", dont_inherit=True), names)
    assert names["result"].node == "calm"
    assert names["fast"].schedule(names["snapshot"], names["pod"]).node is not None


def test_the_tutorial_asserts_its_results() -> None:
    assert sum(block.count("assert ") for block in BLOCKS) >= 7
