"""Opens the page of `careen serve` in Chromium."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from careen.core.facts import keys
from drydock.server.testing import RunningServer, server_in_thread
from tests.careen.live_fleet import a_node, roll_out
from tests.careen.poisoned_texts import POISON
from tests.careen.serving import served

pytestmark = pytest.mark.browser

MILLISECONDS = 60_000
SIZES = {"desk": (1280, 900), "phone": (390, 844)}
FRAME_MS = 250.0  # a person notices a longer pause


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with importlib.import_module("playwright.sync_api").sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), args=["--no-sandbox"]
        )
        yield browser
        browser.close()


@contextmanager
def opened(chromium: Any, url: str, *, size: str = "desk", scheme: str = "light") -> Iterator[Any]:
    """The page when it shows nodes. Whatever the browser complains about in the meantime is an error."""
    width, height = SIZES[size]
    context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(url)
    page.wait_for_selector("#rows tr", timeout=MILLISECONDS)
    yield page
    context.close()
    assert complaints == []


def broken_rules(page: Any) -> list[tuple[str, str]]:
    axe = importlib.import_module("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(page).response["violations"]
    return [(rule["id"], node["html"]) for rule in found for node in rule["nodes"]]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningServer, str]]:
    with server_in_thread() as server:
        server.seed(*roll_out(60, datetime.now(UTC), blocked=10))
        with served(server, tmp_path_factory.mktemp("fleet"), "--no-plan") as url:
            yield server, url


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("place", ["", "#node=node-0026", "report"])
def test_axe_finds_nothing_and_nothing_is_wider_than_the_screen(
    chromium: Any, fleet: tuple[RunningServer, str], size: str, scheme: str, place: str
) -> None:
    with opened(chromium, fleet[1], size=size, scheme=scheme) as page:
        page.goto(fleet[1] + place)
        page.wait_for_selector("#node-body h3" if place.startswith("#") else "h1", timeout=MILLISECONDS)
        assert broken_rules(page) == []
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_chart_is_on_the_first_screen(chromium: Any, fleet: tuple[RunningServer, str], scheme: str) -> None:
    with opened(chromium, fleet[1], scheme=scheme) as page:
        box = page.locator("svg.chart").bounding_box()
        assert box["y"] + box["height"] <= SIZES["desk"][1]


def test_a_node_opens_by_keyboard_and_gets_the_focus(chromium: Any, fleet: tuple[RunningServer, str]) -> None:
    with opened(chromium, fleet[1]) as page:
        page.locator("#rows a").first.focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("#node-body table", timeout=MILLISECONDS)
        assert page.evaluate("document.activeElement.id") == "node-title"
        assert page.locator("#node-body").inner_text().count("maintenance-window") == 1


def test_the_table_can_be_filtered(chromium: Any, fleet: tuple[RunningServer, str]) -> None:
    with opened(chromium, fleet[1]) as page:
        page.get_by_label("Held by").select_option(index=1)
        assert page.locator("#rows tr").count() == 10
        page.get_by_label("Name contains").fill("node-0055")
        assert page.locator("#rows tr").count() == 1


def test_the_page_follows_the_cluster_without_reload_and_keeps_the_focus(
    chromium: Any, fleet: tuple[RunningServer, str]
) -> None:
    server, url = fleet
    with opened(chromium, url) as page:
        page.evaluate("window.isSamePage = true")
        page.get_by_label("Name contains").fill("node-0027")
        page.locator("#rows a").focus()
        failed = {keys.PHASE: "Failed", keys.REASON: "the reboot command failed", keys.PROGRESS: '{"version":1}'}
        server.seed(a_node("node-0027", "eu-1a", failed, label="failed"))
        page.wait_for_selector("#rows td:text('Failed')", timeout=MILLISECONDS)
        assert page.evaluate("window.isSamePage")
        assert page.evaluate("document.activeElement.textContent") == "node-0027"


def test_texts_of_the_cluster_are_shown_and_never_run(chromium: Any, tmp_path: Path) -> None:
    evil = f"<img src=x onerror=alert(1)><script>alert(2)</script>{POISON}"
    with server_in_thread() as server:
        server.seed(*roll_out(12, datetime.now(UTC)))
        annotations = {keys.PHASE: "Failed", keys.REASON: evil, keys.NEED: evil, keys.HOLD: evil}
        server.seed(a_node("n-evil", "<b>zone</b>", annotations, label="failed"))
        with served(server, tmp_path, "--no-plan") as url, opened(chromium, url) as page:
            page.on("dialog", lambda _: pytest.fail("a text of the cluster ran as a script"))
            page.goto(f"{url}#node=n-evil")
            page.wait_for_selector("#node-body h3", timeout=MILLISECONDS)
            assert page.locator("img, main script, main b b").count() == 0
            assert "<script>alert(2)</script>" in page.locator("#work").inner_text()


def test_five_thousand_nodes_are_drawn_without_a_stutter(chromium: Any, tmp_path: Path) -> None:
    with server_in_thread() as server:
        server.seed(*roll_out(5000, datetime.now(UTC), blocked=900))
        with served(server, tmp_path, "--no-plan") as url:
            for size in SIZES:
                with opened(chromium, url, size=size) as page:
                    times = sorted(page.evaluate("(draw(), state.drawMs)") for _ in range(5))
                    print(f"5,000 nodes, {size}: {times[2]:.0f} ms in the median of 5 drawings")
                    assert times[0] <= FRAME_MS
