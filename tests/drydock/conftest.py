"""Fixtures: a running API server for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from drydock.server.testing import RunningServer, server_in_thread


@pytest.fixture
def server() -> Iterator[RunningServer]:
    with server_in_thread(bookmark_seconds=0.2) as running:
        yield running
