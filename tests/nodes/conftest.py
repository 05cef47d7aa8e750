"""Fixtures: one lab (three machines that really boot, and a control plane) for all tests. Each test starts and ends
with Ready nodes on which nothing is installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nodes.harness.lab import Lab
from tests.nodes.harness.story import Story


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    lab = Lab()
    yield lab
    lab.close()


@pytest.fixture
def story(lab: Lab, tmp_path: Path) -> Iterator[Story]:
    story = Story(lab, tmp_path)
    yield story
    story.close()
