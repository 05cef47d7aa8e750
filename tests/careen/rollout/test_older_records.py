"""Refusals that agents of an earlier release wrote have the same data as those of this one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from careen.core.decision import Refusal
from careen.core.drain.forecast_objection import ROOM
from careen.core.facts.reasons import Code
from careen.rollout.older_records import completed


@pytest.mark.parametrize(
    ("code", "sentence", "data"),
    [
        pytest.param(
            Code.NODES_DOWN,
            "n2 is not ready and n3 is cordoned by somebody, not by careen; with this node 3 nodes would be down; the "
            "limit is 1",
            {"down": ("n2", "n3"), "lacks": 2},
            id="nodes that are down",
        ),
        pytest.param(
            Code.NODES_DOWN,
            "n2 is not ready, n3 is not ready, n4 is not ready and 4 more; with this node 8 nodes would be down; the "
            "limit is 2",
            {"down": ("n2", "n3", "n4"), "lacks": 3},
            id="some of the nodes that are down",
        ),
        pytest.param(
            Code.BUDGET_SPENT,
            "n2 holds a claim; the budget zone/a allows 1",
            {"about": ("budget zone/a",), "down": ("n2",), "lacks": 1},
            id="a budget of nodes",
        ),
        pytest.param(
            Code.MINIMUM_INTERVAL,
            "the last reboot of this node was at 2026-03-04T10:00:00Z; its next reboot may begin at "
            "2026-03-04T12:00:00Z",
            {"ends": datetime(2026, 3, 4, 12, tzinfo=UTC)},
            id="an interval",
        ),
        pytest.param(
            Code.ALERT, "these alerts are active: A, B and C", {"about": ("alert A", "alert B", "alert C")}, id="alerts"
        ),
        pytest.param(
            Code.FORECAST_REFUSES,
            "1 of 3 pods can never be evicted: shop/a (disruption budget shop/a wants 3 healthy); 2 of 3 pods would "
            "not find room: shop/b",
            {"about": ("budget shop/a", ROOM), "lacks": 2},
            id="a forecast",
        ),
        pytest.param(
            Code.GATE_ANNOTATION,
            "gate backup for the whole cluster: dump",
            {"about": ("annotation careen.dev/gate.backup on the DaemonSet",)},
            id="an annotation of the whole cluster",
        ),
        pytest.param(
            Code.HALTED,
            "n1 failed (settle-timeout) and keeps its claim, so the roll-out halts: run `careen retry n1`",
            {
                "sentence": "n1 failed (settle-timeout) and keeps its claim, so the roll-out halts",
                "remedy": "run `careen retry n1`",
            },
            id="a halt",
        ),
    ],
)
def test_the_sentence_of_an_earlier_release_gives_the_data(code: Code, sentence: str, data: dict[str, Any]) -> None:
    about = ("annotation careen.dev/gate.backup",) if code is Code.GATE_ANNOTATION else ()
    found = completed(Refusal(gate="gate", code=code, sentence=sentence, about=about))
    assert {name: getattr(found, name) for name in data} == data


def test_the_data_of_this_release_stands_whatever_the_sentence_says() -> None:
    told = Refusal(
        gate="budgets",
        code=Code.BUDGET_SPENT,
        sentence="n9 is not ready; the budget zone/b allows 1",
        about=("budget zone/a",),
        down=("n2", "n3"),
        lacks=1,
    )
    assert completed(told) == told
