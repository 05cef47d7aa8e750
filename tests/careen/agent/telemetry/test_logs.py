"""Log lines are text for people or JSON for programs."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from careen.agent.telemetry import logs


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("careen")
    before = (root.handlers[:], root.level, ours.level)
    yield
    root.handlers[:], level, our_level = before
    root.setLevel(level)
    ours.setLevel(our_level)


def lines(form: str, level: str = "info") -> list[str]:
    stream = io.StringIO()
    place = logs.set_up(form=form, level=level, node="n1", stream=stream)
    log = logging.getLogger("careen.test")
    log.info("first")
    place.phase, place.reason = "Waiting", "refused"
    log.warning("refused by %s", "hold", extra={"gate": "hold", "detail": 'two "words"', "count": 2})
    log.debug("quiet")
    logging.getLogger("kopf").info("chatter")
    log.error("broke", exc_info=ValueError("boom"))
    return stream.getvalue().splitlines()


def test_a_text_line_contains_node_phase_and_reason() -> None:
    first, second, third, *trace = lines("text")
    assert first.split(" ", 1)[1] == "INFO    n1: first"
    assert (
        second.split(" ", 1)[1]
        == 'WARNING n1 Waiting(refused): refused by hold gate=hold detail="two \\"words\\"" count=2'
    )
    assert third.endswith("ERROR   n1 Waiting(refused): broke")
    assert trace[-1] == "    ValueError: boom"


def test_a_json_line_has_node_phase_and_reason_as_fields() -> None:
    first, second, third = map(json.loads, lines("json"))
    assert {key: value for key, value in second.items() if key != "time"} == {
        "level": "warning",
        "message": "refused by hold",
        "node": "n1",
        "phase": "Waiting",
        "reason": "refused",
        "gate": "hold",
        "detail": 'two "words"',
        "count": 2,
    }
    assert "phase" not in first
    assert "ValueError: boom" in third["traceback"]
    assert first["time"].endswith("Z")


def test_the_log_level_applies_only_to_careens_own_log_lines() -> None:
    text = "\n".join(lines("text", "debug"))
    assert "quiet" in text
    assert "chatter" not in text
    assert "first" not in "\n".join(lines("text", "warning"))
