"""Tests that the dashboard is up to date, that Grafana's types accept it, and that it uses only existing metrics,
phases and outcomes.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from careen.core.facts.phases import Phase
from docs.dashboard import BOARDS, OF_THE_SHADOW, PAGES, PANELS, WIDTH, Board, Panel, config_map, dashboard
from tests.architecture.source_tree import ROOT
from tests.architecture.test_alerts import exported

ALL_PANELS = [*PANELS, *OF_THE_SHADOW]
titles = [panel.title for panel in ALL_PANELS]
boards = pytest.mark.parametrize("board", BOARDS, ids=[board.uid for board in BOARDS])


@pytest.mark.parametrize("name", PAGES)
def test_the_generated_dashboard_is_up_to_date(name: str) -> None:
    assert (ROOT / name).read_text() == PAGES[name](), "run `make docs`"


@boards
def test_the_config_map_contains_the_dashboard(board: Board) -> None:
    held = yaml.safe_load(config_map(board))
    assert held["metadata"]["labels"] == {"grafana_dashboard": "1"}
    assert held["data"] == {f"{board.uid}.json": dashboard(board)}


@boards
def test_each_field_of_the_dashboard_exists_in_grafanas_types(board: Board) -> None:
    """The test parses the dashboard into Grafana's generated types and writes it again. A field that the types do not
    know would then be missing.
    """
    given = json.loads(dashboard(board))
    written = json.loads(JSONEncoder().encode(Dashboard.from_json(given)))
    assert lost(given, written) == []


def lost(given: Any, written: Any, where: str = "") -> list[str]:
    if isinstance(given, dict):
        if not isinstance(written, dict):
            return [where]
        return [found for key, value in given.items() for found in lost(value, written.get(key), f"{where}.{key}")]
    if isinstance(given, list):
        if not isinstance(written, list) or len(given) != len(written):
            return [where]
        pairs = zip(given, written, strict=True)
        return [found for place, pair in enumerate(pairs) for found in lost(*pair, f"{where}[{place}]")]
    return [] if given == written else [where]


def test_the_comparison_reports_a_dashboard_field_that_grafanas_types_do_not_have() -> None:
    given = json.loads(dashboard())
    given["panels"][0]["gridPos"]["depth"] = 3
    assert lost(given, json.loads(JSONEncoder().encode(Dashboard.from_json(given)))) == [".panels[0].gridPos.depth"]


@pytest.mark.parametrize("panel", ALL_PANELS, ids=titles)
def test_each_panel_uses_only_existing_metrics_and_phases(panel: Panel) -> None:
    asked = set(re.findall(r"\b(?:careen|kured|process)_\w+", panel.query))
    assert asked
    assert asked - exported() == set()
    phases = {name for value in re.findall(r'phase=~?"([^"]+)"', panel.query) for name in value.split("|")}
    assert phases <= {phase.value for phase in Phase}


@boards
def test_panels_of_the_dashboard_do_not_overlap(board: Board) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads(dashboard(board))["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert max(x for x, _ in cells) < WIDTH
        assert not cells & taken
        taken |= cells
