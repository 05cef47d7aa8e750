"""Questions to a running scheduler."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any, cast

import pytest

from careen.cli.serving.questions import Questions
from careen.scheduler.scheduler import NotSchedulingError
from careen.scheduler.why_pending import WhyPending


class Slow:
    """A scheduler whose answers take a while."""

    seconds = 0.5

    def why_pending(self, pod: str) -> WhyPending | None:
        time.sleep(self.seconds)
        if pod == "shop/standby":
            raise NotSchedulingError("it waits for the Lease")
        return None if pod == "shop/nobody" else WhyPending(pod=pod, scheduler="careen-scheduler", sentence="too large")


async def asked(query: str, scheduler: Any) -> tuple[int, Any, int]:
    """Status, body, and how often the loop ran meanwhile."""
    questions, turns = Questions(), 0
    questions.use(cast("Any", scheduler))
    answer = asyncio.ensure_future(asyncio.to_thread(questions.why_pending, query))
    while not answer.done():
        await asyncio.sleep(0.01)
        turns += 1
    status, body = answer.result()
    return status, json.loads(body), turns


async def test_pods_are_scheduled_while_an_answer_is_worked_out() -> None:
    status, body, turns = await asked("pod=shop/large", Slow())
    assert (status, body["sentence"]) == (200, "too large")
    assert turns > 10


@pytest.mark.parametrize(
    ("query", "status", "word"),
    [
        pytest.param("pod=shop/nobody", 404, "knows no unfinished pod shop/nobody", id="an unknown pod"),
        pytest.param("pod=shop/standby", 503, "waits for the Lease", id="not the leader"),
        pytest.param("", 400, "give ?pod=", id="no pod"),
    ],
)
async def test_what_cannot_be_answered_is_said(query: str, status: int, word: str) -> None:
    found, body, _ = await asked(query, Slow())
    assert found == status
    assert word in body["error"]
