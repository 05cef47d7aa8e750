from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from careen.cluster import objects
from careen.core.facts import keys
from careen.core.lock.content import LockContent
from careen.core.lock.notation import parse
from careen.report.gate_answers import NodeStory
from careen.report.live.assets import ASSETS
from careen.report.live.done import done_nodes
from careen.report.live.node_document import node_document
from careen.report.live.past_reboots import reboot_report_html, reboot_report_json
from careen.report.live.planned import Planned, planned_of
from careen.report.live.rollout_document import Seen, rollout_document
from careen.rollout.reading import rollout
from tests.careen.live_fleet import a_node, roll_out
from tests.careen.poisoned_texts import MARK, POISON, strings_in, unfit

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
BACK_AT = "2026-03-04T11:00:00Z"
TEXTS = ("why", "kernel", "kernelLeft")


def seen_of(*written: dict[str, Any], at: datetime = NOW) -> Seen:
    nodes, lock = [], LockContent()
    for each in written:
        if each["kind"] == "DaemonSet":
            found = parse(each["metadata"]["annotations"][keys.LOCK_ANNOTATION])
            assert isinstance(found, LockContent)
            lock = found
        else:
            meta = {"uid": "u", "resourceVersion": "1", **each["metadata"]}
            nodes.append(objects.node_view(msgspec.convert({"spec": {}, **each, "metadata": meta}, objects.Node)))
    return Seen(nodes=tuple(nodes), lock=lock, at=at)


def test_the_document_counts_each_node_once() -> None:
    progress = rollout_document(seen_of(*roll_out(30, NOW, blocked=5)), Planned())["progress"]
    assert {name: progress[name] for name in ("total", "done", "working", "queued", "heldBack", "failed")} == {
        "total": 30,
        "done": 12,
        "working": 2,
        "queued": 11,
        "heldBack": 5,
        "failed": 0,
    }


def test_every_column_of_the_nodes_has_a_value_for_each_node() -> None:
    nodes = rollout_document(seen_of(*roll_out(30, NOW, blocked=5)), Planned())["nodes"]
    assert {name: len(column) for name, column in nodes.items()} == dict.fromkeys(nodes, 30)


def test_a_cause_has_all_the_nodes_that_it_holds() -> None:
    document = rollout_document(seen_of(*roll_out(30, NOW, blocked=5)), Planned())
    (cause,) = document["causes"]
    assert (cause["count"], cause["nodes"]) == (5, [25, 26, 27, 28, 29])
    assert cause["since"] == int((NOW - timedelta(hours=5)).timestamp())
    assert document["nodes"]["causes"][24:26] == [0, [0]]


def test_the_finish_moves_with_the_clock_while_nothing_gets_done() -> None:
    first = rollout_document(seen_of(*roll_out(30, NOW)), Planned())["progress"]["finish"]
    later = NOW + timedelta(minutes=10)  # the nodes at work should have been back after 210 s
    assert (
        rollout_document(seen_of(*roll_out(30, NOW), at=later), Planned())["progress"]["finish"] == first + 390
    )  # the first 210 s were expected


def test_the_chart_draws_what_happened_over_the_plan() -> None:
    planned = Planned(made_at=NOW, ends={"node-0014": NOW + timedelta(minutes=5)}, moves={"node-0014": 12})
    chart = rollout_document(seen_of(*roll_out(30, NOW)), planned)["chart"]
    assert sum(len(zone["done"]) for zone in chart["zones"]) == 12
    # what was done before the plan was made counts as it was
    assert sum(len(zone["plan"]) for zone in chart["zones"]) == 13
    assert chart["from"] < int(NOW.timestamp()) < chart["to"]


def test_nodes_that_are_behind_the_plan_are_counted() -> None:
    planned = Planned(made_at=NOW, ends={f"node-00{number}": NOW - timedelta(seconds=1) for number in (14, 15, 16)})
    note = rollout_document(seen_of(*roll_out(30, NOW)), planned)["chart"]["note"]
    assert "3 nodes behind the plan" in note


def test_an_old_reboot_is_not_part_of_the_roll_out() -> None:
    old = json.dumps({"at": "2026-01-01T00:00:00Z", "seconds": 100})
    idle = a_node("n9", "a", {keys.LAST_REBOOT: old})
    progress = rollout_document(seen_of(idle, *roll_out(30, NOW)), Planned())["progress"]
    assert progress["done"] == 12


def test_a_fleet_without_a_need_is_fine() -> None:
    document = rollout_document(seen_of(a_node("n1", "a", {})), Planned())
    assert document["headline"]["tone"] == "fine"
    assert document["headline"]["sentence"] == "No node needs a reboot."
    assert document["chart"]["zones"] == []


def poisoned() -> Seen:
    annotations = {
        keys.PHASE: "Waiting",
        keys.SINCE: POISON,
        keys.REASON: POISON,
        keys.HOLD: POISON,
        keys.NEED: POISON,
        keys.FORECAST: json.dumps({"at": POISON, "counts": {POISON: 1}, "pods": {POISON: [POISON]}}),
        keys.HISTORY: json.dumps(
            [{"at": "2026-03-04T11:00:00Z", "refused": {POISON: 9}} | dict.fromkeys(TEXTS, POISON)]
        ),
        keys.REFUSALS: json.dumps([{"gate": POISON, "code": "held", "sentence": POISON, "remedy": POISON}]),
    }
    return seen_of(a_node(POISON, POISON, annotations, label="ready"))


def test_no_text_of_the_cluster_leaves_with_control_characters() -> None:
    seen = poisoned()
    story = NodeStory(node=seen.nodes[0], lock=seen.lock, agents=(), now=NOW)
    for document in (rollout_document(seen, Planned(note=POISON)), node_document(story)):
        texts = list(strings_in(document))
        assert any(MARK in text for text in texts)
        assert [text for text in texts if unfit(text)] == []


def test_the_report_escapes_every_text_of_the_cluster() -> None:
    page = reboot_report_html(poisoned(), Planned(), days=31)
    assert MARK in page
    assert set(re.findall(r"<([a-z0-9]+)", page)) <= {
        *("html", "head", "meta", "title", "link", "body", "header", "nav", "a", "h1", "h2", "p", "main", "section"),
        *("div", "table", "thead", "tbody", "tr", "th", "td"),
    }
    assert "<script" not in page


def test_the_report_says_what_was_rebooted_why_and_from_which_kernel_to_which() -> None:
    report = reboot_report_json(seen_of(*roll_out(30, NOW)), Planned(), days=31)
    assert (report["nodes"], report["rebooted"], len(report["stillNeeded"])) == (30, 12, 18)
    assert report["reboots"][0] == {
        "node": "node-0011",
        "at": NOW - timedelta(seconds=150),
        "why": "linux-image-6.1.0-29 needs a reboot",
        "needSince": NOW - timedelta(days=2),
        "needStoodSeconds": 2 * 86400 - 150,
        "seconds": 280,
        "moves": 12,
        "plannedMoves": 12,
        "kernelBefore": "6.1.0-28-amd64",
        "kernelAfter": "6.1.0-29-amd64",
        "refusedSeconds": {"outside-window": 72000},
    }


def test_the_report_leaves_out_what_is_older_than_its_days() -> None:
    seen = seen_of(*roll_out(30, NOW), at=NOW + timedelta(days=9))
    assert reboot_report_json(seen, Planned(), days=8)["reboots"] == []
    assert len(reboot_report_json(seen, Planned(), days=10)["reboots"]) == 12


def test_a_plan_of_careen_plan_is_read_and_anything_else_refused() -> None:
    visit = {"node": "n1", "start": "2026-03-04T12:00:00Z", "end": "2026-03-04T12:05:00Z", "moves": 3, "undone": None}
    undone = {**visit, "node": "n2", "undone": "no room"}
    found = planned_of({"begins": "2026-03-04T12:00:00Z", "visits": [visit, undone, {"node": 1}, None]})
    assert found == Planned(made_at=NOW, ends={"n1": NOW + timedelta(minutes=5)}, moves={"n1": 3})
    assert [planned_of(value) for value in ({}, [], None, "x", {"visits": 1})] == [None] * 5


def test_the_files_of_the_page_load_nothing_from_elsewhere() -> None:
    for kind, text in ASSETS.values():
        assert kind.partition(";")[0] in ("text/html", "text/css", "text/javascript", "image/svg+xml")
        assert re.findall(r"(?:https?:)?//[a-z0-9.-]+", re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)) in (
            [],
            ["http://www.w3.org"],  # the name of SVG's namespace
        )


def test_the_nodes_of_a_roll_out_that_just_ended_are_done() -> None:
    over = [each for each in roll_out(30, NOW) if keys.LAST_REBOOT in each["metadata"]["annotations"]]
    document = rollout_document(seen_of(*over), Planned())
    assert document["headline"]["sentence"] == "The roll-out is over: 12 nodes rebooted."
    assert len(done_nodes(seen_of(*over).nodes, rollout(seen_of(*over).nodes, LockContent(), NOW))) == 12
    later = rollout_document(seen_of(*over, at=NOW + timedelta(days=3)), Planned())
    assert later["headline"]["sentence"] == "No node needs a reboot."


def test_a_holder_that_is_gone_from_its_kubelet_is_stuck_and_on_top() -> None:
    objects = roll_out(30, NOW)
    dead = objects[12]
    dead["status"]["conditions"] = [
        {"type": "Ready", "status": "Unknown", "lastTransitionTime": "2026-03-04T11:00:00Z"}
    ]
    document = rollout_document(seen_of(*objects), Planned())
    assert document["headline"]["tone"] == "stuck"
    assert "node-0012" in document["headline"]["sentence"]
    assert document["working"][0]["node"] == "node-0012"
    assert "NotReady for 1h" in document["working"][0]["says"]
    assert document["phases"][document["nodes"]["phase"][12]] == "Stuck"


def test_the_page_shows_what_the_plan_says_would_unblock_most() -> None:
    rows = [{"sentence": f"change {number}", "nodes": 1} for number in range(7)]
    planned = planned_of(
        {"begins": "2026-03-04T11:00:00Z", "visits": [], "unblocks": [*rows[:2], "nonsense", *rows[2:]]}
    )
    assert planned is not None
    document = rollout_document(seen_of(*roll_out(30, NOW)), planned)
    assert document["unblocks"] == [f"change {number}" for number in range(5)]
    assert rollout_document(seen_of(*roll_out(30, NOW)), Planned())["unblocks"] == []


def test_a_drain_for_maintenance_has_its_own_place_on_the_page() -> None:
    asked = {keys.REQUEST: '{"want":"maintenance"}'}
    document = rollout_document(seen_of(a_node("n1", "eu-1a", {keys.PHASE: "Draining", **asked})), Planned())
    assert document["phases"][document["nodes"]["phase"][0]] == "To maintenance or back"
