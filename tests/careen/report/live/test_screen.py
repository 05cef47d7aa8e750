from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from careen.core.facts import keys
from careen.report.live.rollout_document import RolloutScene
from careen.report.live.screen import Style, screen, sentence_line
from scheduler_core.values import replace_value
from tests.careen.live_fleet import a_node, roll_out
from tests.careen.poisoned_texts import POISON, unfit
from tests.careen.report.live.test_documents import NOW, seen_of


@pytest.mark.parametrize(("width", "height"), [(80, 24), (40, 12), (200, 60), (20, 4)])
@pytest.mark.parametrize("blocked", [0, 5, 17])
def test_the_screen_fits_the_terminal(width: int, height: int, blocked: int) -> None:
    lines = screen(RolloutScene.of(seen_of(*roll_out(30, NOW, blocked=blocked))), width=width, height=height)
    assert 0 < len(lines) <= height
    assert max(len(line.text) for line in lines) <= width


def test_the_screen_at_80_by_24_shows_the_roll_out() -> None:
    lines = screen(RolloutScene.of(seen_of(*roll_out(30, NOW, blocked=5))), width=80, height=24)
    assert [line.text for line in lines] == [
        "12 of 30 done, 2 working (node-0012 and 1 more for 1m10s, usually 4m40s), 11",
        "    queued, 5 held back, finish at about 12:31 UTC for the nodes that nothing h…",
        "[##################............................] 40 %, finish about 12:31:30 UTC",
        "Lock: 2 of 2 claims held by node-0012 (1m12s), node-0013 (1m12s).",
        "",
        "  node-0012  draining 1m10s, done 12:03:30 UTC: evicting 3 of 12 pods",
        "  node-0013  draining 1m10s, done 12:03:30 UTC: evicting 3 of 12 pods",
        "",
        "What holds nodes back:",
        "  5 nodes: the pod shop/db-0 forbids the reboot for 5h",
        "Read 12:00:00 UTC, every 5s; Ctrl-C ends.",
    ]
    assert Style.BAD not in {line.style for line in lines}


def test_no_line_has_a_control_character() -> None:
    annotations = {
        keys.PHASE: "Failed",
        keys.REASON: POISON,
        keys.PROGRESS: json.dumps({"version": 1, "failed": POISON}),
    }
    scene = RolloutScene.of(seen_of(a_node(POISON, POISON, annotations, label="failed")))
    lines = screen(scene, width=80, height=24)
    assert Style.BAD in {line.style for line in lines}
    assert [line.text for line in lines if unfit(line.text)] == []
    assert unfit(sentence_line(scene)) == []


def test_a_pipe_gets_the_instant_and_the_verdict() -> None:
    line = sentence_line(RolloutScene.of(seen_of(a_node("n1", "a", {}), at=datetime(2026, 3, 4, 12, tzinfo=UTC))))
    assert line == "2026-03-04T12:00:00Z No node needs a reboot."


def test_a_pipe_is_told_that_the_last_look_failed() -> None:
    seen = seen_of(a_node("n1", "a", {}), at=datetime(2026, 3, 4, 12, tzinfo=UTC))
    line = sentence_line(RolloutScene.of(replace_value(seen, trouble="The API server does not answer.")))
    assert line == "2026-03-04T12:00:00Z The API server does not answer. No node needs a reboot."
