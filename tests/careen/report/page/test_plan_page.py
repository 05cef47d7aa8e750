"""Tests that the page of a plan is well-formed, self-contained and complete, and tests its layout if a browser is
available.
"""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from datetime import timedelta
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from careen.core.plain_text import one_line
from careen.report.page.overview import FROM_NODES
from careen.report.page.plan_page import plan_html
from careen.report.plan.risks import risks
from careen.report.plan.values import Origin, Plan
from scheduler_core.simulation.timeline import Closing, Move
from tests.careen.report.planned import DAY, T0, a_bad_plan, a_plan, a_visit
from tests.patience import run

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Page(HTMLParser):
    """Parses a page into its tags with attributes and its text. Fails if a tag is not closed, or closed twice."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.words += data

    def with_class(self, name: str) -> list[dict[str, str | None]]:
        return [attrs for _, attrs in self.tags if name in (attrs.get("class") or "").split()]


@pytest.fixture(params=[a_plan, a_bad_plan], ids=["a plan without problems", "a plan with every problem"])
def plan(request: pytest.FixtureRequest) -> Plan:
    made: Plan = request.param()
    return made


def test_the_plan_page_is_self_contained_and_forbids_external_content(plan: Plan) -> None:
    text = plan_html(plan)
    page = Page(text)
    assert {tag for tag, _ in page.tags} & {
        "script",
        "link",
        "img",
        "iframe",
        "object",
        "embed",
        "base",
        "form",
        "a",
        "video",
        "audio",
    } == set()
    assert {name for _, attrs in page.tags for name in attrs} & {
        "src",
        "href",
        "action",
        "srcset",
        "onload",
        "onclick",
    } == set()
    assert re.search(r"url\(|@import|https?:|//", text) is None
    policies = [
        attrs["content"]
        for tag, attrs in page.tags
        if tag == "meta" and attrs.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]


def test_the_plan_page_shows_every_risk_with_its_remedy(plan: Plan) -> None:
    words = Page(plan_html(plan)).words
    assert [risk for risk in risks(plan) if f"{risk.what}. {risk.remedy}".replace("`", "") not in words] == []
    assert ("The simulation sees no risk" in words) is (not risks(plan))


def test_the_plan_page_has_a_row_for_each_node_and_a_bar_for_each_step() -> None:
    page = Page(plan_html(a_bad_plan()))
    assert len(page.with_class("row")) == 1 + 2, "one row for the time axis, one for n1 and one for n2"
    bars = page.with_class("bar")
    assert [bar["aria-label"] for bar in bars][:2] == [
        "n1: draining from Wed 2026-03-04 22:00 UTC, for 1m",
        "n1: rebooting from Wed 2026-03-04 22:01 UTC, for 3m",
    ]
    assert len(bars) == 3 + 1 + 3


def edges(attrs: dict[str, str | None]) -> tuple[float, float]:
    found = re.match(r"left:([\d.]+)%;width:([\d.]+)%", attrs["style"] or "")
    assert found is not None
    return float(found[1]), float(found[1]) + float(found[2])


def test_a_bar_starts_at_the_position_of_its_time() -> None:
    """The plan takes 545 seconds. n1 takes the first 270 seconds, and n2 begins at 275 seconds."""
    assert [edges(bar) for bar in Page(plan_html(a_plan())).with_class("bar")] == [
        pytest.approx(each, abs=0.01)
        for each in [
            (0, 6000 / 545),
            (6000 / 545, 24_000 / 545),
            (24_000 / 545, 27_000 / 545),
            (27_500 / 545, 33_500 / 545),
            (33_500 / 545, 51_500 / 545),
            (51_500 / 545, 100),
        ]
    ]


def test_the_time_line_cuts_out_a_night_between_two_windows() -> None:
    page = Page(plan_html(a_plan(visits=(a_visit("n1", 0), a_visit("n2", DAY)))))
    assert [edges(bar) for bar in page.with_class("bar")][3][0] == pytest.approx(50)
    assert [cut["style"] for cut in page.with_class("cut")] == ["left:50.0%", "left:50.0%"]
    assert "Each dotted line marks a pause that is left out" in page.words
    assert Page(plan_html(a_plan())).with_class("cut") == []


def test_a_label_near_the_right_edge_is_placed_to_the_left() -> None:
    """Four nodes reboot in the first night, and one node reboots in the second night. The second night begins at four
    fifths of the time axis."""
    visits = (*(a_visit(f"n{number}", 270 * number) for number in range(4)), a_visit("n9", DAY))
    ticks = Page(plan_html(a_plan(visits=visits))).with_class("tick")
    assert [
        (tick["style"], "late" in (tick["class"] or "")) for tick in ticks if "minor" not in (tick["class"] or "")
    ] == [("left:0.0%", False), ("left:80.0%", True)]


@given(starts=st.lists(st.integers(0, 3 * DAY), min_size=1, max_size=8))
@settings(max_examples=50, deadline=None)
def test_every_bar_is_drawn_inside_the_time_line(starts: list[int]) -> None:
    visits = tuple(a_visit(f"n{place}", start) for place, start in enumerate(sorted(starts)))
    for bar in Page(plan_html(a_plan(visits=visits))).with_class("bar"):
        left, right = edges(bar)
        assert 0 <= left <= right <= 100.01


@given(
    name=st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30).map(
        lambda text: f'<script src=x onerror="1">&amp;{text}'
    )
)
@settings(max_examples=50, deadline=None)
def test_the_plan_page_escapes_html_markup_in_names(name: str) -> None:
    plan = a_plan(
        nodes=(name,),
        visits=(a_visit(name, 0),),
        moves=(Move(pod=name, source=name, target=name, at=T0),),
        notes=(name,),
        lost=(name,),
    )
    text = plan_html(plan)
    page = Page(text)
    assert "script" not in {tag for tag, _ in page.tags}
    assert [(attrs["aria-label"] or "").startswith(one_line(name)) for attrs in page.with_class("bar")] == [True] * 3
    assert page.words.count(one_line(name)) >= 4


def test_the_plan_page_compares_the_node_orders_and_marks_the_used_order() -> None:
    assert "The same roll-out in each order of the nodes" not in Page(plan_html(a_plan())).words
    words = Page(plan_html(a_bad_plan())).words
    assert "The same roll-out in each order of the nodes" in words
    assert "order fewest-moves (the agents use another order: --order=oldest)" in words


def test_the_plan_page_groups_pod_moves_by_node_and_lists_pods_that_move_twice_first() -> None:
    page = Page(plan_html(a_bad_plan()))
    assert sum(1 for tag, _ in page.tags if tag == "details") == 3
    assert page.words.index("Pods moved more than once") < page.words.index("n1: 1 move")
    assert "a displaced pod preempted this pod" in page.words


def test_a_plan_without_nodes_also_has_a_page() -> None:
    page = Page(plan_html(a_plan(visits=())))
    assert page.with_class("bar") == []
    assert "0 of 2 nodes reboot." in page.words


def a_large_plan(nodes: int = 60) -> Plan:
    """Return a plan for nodes in three zones. The nodes reboot one after another, and each drain moves one pod to the
    node n00."""
    names = tuple(f"n{number:02}" for number in range(nodes))
    visits = tuple(a_visit(name, 275 * place, moves=1) for place, name in enumerate(names))
    moves = tuple(
        Move(pod=f"shop/{name}", source=name, target="n00", at=visit.start)
        for name, visit in zip(names, visits, strict=True)
    )
    return replace(
        a_plan(nodes=names, visits=visits, moves=moves),
        zone_of={name: f"zone-{number % 3}" for number, name in enumerate(names)},
    )


def test_the_page_of_a_large_plan_begins_with_an_overview_and_folds_its_rows() -> None:
    page = Page(plan_html(a_large_plan()))
    tags = [tag for tag, _ in page.tags]
    assert tags.count("svg") == 1
    assert tags.index("svg") < tags.index("details") < [attrs.get("class") for _, attrs in page.tags].index("rows")
    assert "zone-0: 20 nodes" in page.words
    assert "rebooted nodes (of 60)" in page.words


def test_the_page_of_a_small_plan_shows_all_rows_unfolded() -> None:
    page = Page(plan_html(a_large_plan(FROM_NODES - 1)))
    assert "svg" not in {tag for tag, _ in page.tags}
    assert len(page.with_class("row")) == 50


def test_the_stacked_areas_of_all_zones_add_up_to_the_number_of_nodes() -> None:
    stripes = [attrs["points"] or "" for tag, attrs in Page(plan_html(a_large_plan())).tags if tag == "polygon"]
    assert len(stripes) == 3
    tops = [min(float(point.split(",")[1]) for point in points.split()) for points in stripes]
    assert tops == [pytest.approx(200 * (1 - share / 3), abs=0.1) for share in (1, 2, 3)]


def test_the_overview_shows_seven_zones_and_sums_up_all_other_zones() -> None:
    plan = a_large_plan()
    many = replace(plan, zone_of={name: f"zone-{place:02}" for place, name in enumerate(plan.timeline.nodes)})
    page = Page(plan_html(many))
    assert sum(tag == "polygon" for tag, _ in page.tags) == 8
    assert "others: 53 nodes" in page.words


def test_the_plan_page_lists_moves_in_the_order_in_which_the_nodes_reboot() -> None:
    """n1 is the first node to reboot, so the page lists its moves first. The plan's list of moves begins with a move of
    n2, because a pod of n2 was preempted early."""
    plan = a_plan(
        moves=(
            Move(pod="shop/b", source="n2", target="n1", at=T0),
            Move(pod="shop/a", source="n1", target="n2", at=T0),
        )
    )
    words = Page(plan_html(plan)).words
    assert words.index("n1: 1 move") < words.index("n2: 1 move")


def test_the_plan_page_shows_its_cluster_and_settings() -> None:
    origin = Origin(
        taken_at=T0,
        kubernetes="v1.36.3",
        server="api.example",
        context="prod<1>",
        settings={"concurrency": "2", "end-time": "06:00"},
    )
    words = Page(plan_html(replace(a_plan(), origin=origin))).words
    for fact in ("api.example", "prod<1>", "v1.36.3", "Wed 2026-03-04 22:00", "end-time", "06:00"):
        assert fact in words
    assert "Dump" not in words


def test_the_plan_page_begins_with_the_end_time_of_the_plan() -> None:
    closes = T0 + timedelta(hours=2)
    inside = Page(plan_html(replace(a_plan(), closes=closes))).words.split("What is at risk")[0]
    assert "the roll-out ends Wed 2026-03-04 22:09:05" in inside
    assert "inside the window that closes Thu 2026-03-05 00:00" in inside
    late = a_plan(
        visits=(a_visit("n1", 0), a_visit("n2", DAY)), closings=(Closing(at=T0 + timedelta(hours=2), left=1),)
    )
    assert "inside a later window that closes Wed 2026-03-04 22:00" in Page(plan_html(replace(late, closes=T0))).words


# ---- in a browser ----

BROWSER = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
in_a_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium on the PATH")

HARNESS = (
    """<!DOCTYPE html><body style="margin:0">"""
    """<iframe src="plan.html" style="border:0;width:{width}px;height:900px"></iframe><pre id="found"></pre><script>
onload = () => {{
  const page = document.querySelector("iframe").contentDocument, root = page.documentElement
  const box = element => element.getBoundingClientRect()
  const inside = [...page.querySelectorAll(".bar")].every(bar => box(bar).left >= box(bar.parentNode).left - 1 """
    """&& box(bar).right <= box(bar.parentNode).right + 3 && box(bar).height > 5)
  const first = page.querySelector(".row:not(.axis)")
  document.getElementById("found").textContent = JSON.stringify({{
    scroll: root.scrollWidth, width: root.clientWidth, bars: page.querySelectorAll(".bar").length, inside,
    stacked: box(first.children[0]).bottom <= box(first.children[1]).top + 1, """
    """size: parseFloat(getComputedStyle(page.body).fontSize),
    colours: new Set([...page.querySelectorAll(".bar")].map(bar => getComputedStyle(bar).backgroundColor)).size,
  }})
}}
</script>"""
)


def chromium(*arguments: str, home: Path) -> str:
    assert BROWSER is not None
    done = run(
        [
            BROWSER,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--disable-dev-shm-usage",
            "--no-first-run",
            f"--user-data-dir={home / 'profile'}",
            "--virtual-time-budget=4000",
            *arguments,
        ],
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@in_a_browser
@pytest.mark.parametrize(("width", "stacked"), [(360, True), (1280, False)], ids=["a phone", "a screen"])
def test_the_plan_page_fits_the_width_of_the_browser(tmp_path: Path, width: int, stacked: bool) -> None:
    (tmp_path / "plan.html").write_text(plan_html(a_bad_plan()))
    (tmp_path / "harness.html").write_text(HARNESS.format(width=width))
    shown = chromium("--allow-file-access-from-files", "--dump-dom", f"file://{tmp_path}/harness.html", home=tmp_path)
    found = re.search(r'<pre id="found">(.+?)</pre>', shown)
    assert found is not None, shown[:2000]
    page = json.loads(unescape(found[1]))
    assert page == {
        "scroll": width,
        "width": width,
        "bars": 7,
        "inside": True,
        "stacked": stacked,
        "size": 16,
        "colours": 3,
    }


@in_a_browser
def test_the_plan_page_can_be_printed(tmp_path: Path) -> None:
    (tmp_path / "plan.html").write_text(plan_html(a_bad_plan()))
    chromium(
        "--no-pdf-header-footer",
        f"--print-to-pdf={tmp_path / 'plan.pdf'}",
        f"file://{tmp_path}/plan.html",
        home=tmp_path,
    )
    document = (tmp_path / "plan.pdf").read_bytes()
    assert document.startswith(b"%PDF-")
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", document)) <= 3
