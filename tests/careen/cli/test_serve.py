from __future__ import annotations

import json
import urllib.request
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.careen.cli.conftest import Desk
from tests.careen.live_fleet import roll_out
from tests.careen.serving import served
from tests.patience import SECONDS


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "node-1", ""])
def test_an_address_that_others_can_reach_is_refused_before_any_request(desk: Desk, host: str) -> None:
    done = desk.run("serve", "--host", host)
    assert done.exit_code == 2
    assert "is not a loopback address" in done.output
    assert list(desk.server.api.requests) == []


def test_a_file_that_is_no_plan_is_refused(desk: Desk, tmp_path: Path) -> None:
    for text in ("no JSON", "{}", "[]"):
        (tmp_path / "plan.json").write_text(text)
        done = desk.run("serve", "--plan", str(tmp_path / "plan.json"))
        assert done.exit_code == 2
        assert "plan" in done.output


def test_the_command_serves_the_page_until_it_is_interrupted(desk: Desk, tmp_path: Path) -> None:
    desk.server.seed(*roll_out(30, datetime.now(UTC), blocked=5))
    with served(desk.server, tmp_path, "--no-plan") as url:
        with urllib.request.urlopen(f"{url}rollout.json", timeout=SECONDS) as answer:
            document = json.load(answer)
        assert document["progress"]["total"] == 30
