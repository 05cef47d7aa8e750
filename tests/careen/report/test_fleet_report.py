from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.progress import Progress, to_annotation
from careen.core.gates.halt import halted as halt_answer
from careen.core.lock.content import Entry, LockContent
from careen.core.lock.line import Line
from careen.report.fleet_report import fleet_json, fleet_text, in_order, node_json, place_of

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


def a_node(name: str, phase: str = "", reason: str = "", label: str = "") -> NodeView:
    annotations = {keys.PHASE: phase, keys.REASON: reason, keys.SINCE: "2026-03-04T11:00:00Z"} if phase else {}
    return NodeView(
        name=name,
        uid=f"uid-{name}",
        resource_version="1",
        annotations=annotations,
        labels={keys.REBOOT_LABEL: label} if label else {},
    )


def test_careen_status_lists_failed_nodes_first_then_rebooting_then_waiting_nodes() -> None:
    nodes = [
        a_node("f"),
        a_node("e", "Waiting"),
        a_node("d", "Waiting"),
        a_node("c", "Settling"),
        a_node("b", "Rebooting"),
        a_node("a2", "Failed"),
        a_node("a1", "Failed"),
    ]
    assert [node.name for node in in_order(nodes, LockContent(line=Line(names=("e",))))] == [
        "a1",
        "a2",
        "b",
        "c",
        "e",
        "d",
        "f",
    ]


def test_careen_status_sorts_a_node_in_an_unknown_phase_with_the_failed_nodes() -> None:
    assert [node.name for node in in_order([a_node("a", "Failed"), a_node("z", "Careening")], LockContent())] == [
        "a",
        "z",
    ]


def test_careen_status_shows_the_reboot_label_instead_of_a_place_if_the_lock_is_empty() -> None:
    """The column LINE shows `ready` or `required`. It shows no other value of the label."""
    assert [
        place_of(a_node("a", "Waiting", label=label), LockContent())
        for label in ("ready", "required", "in-progress", "")
    ] == ["ready", "required", "", ""]


def test_careen_status_wraps_long_reasons_to_the_width_of_the_terminal() -> None:
    text = fleet_text(
        [a_node("n1", "Waiting", "one two three four five six seven eight nine ten eleven twelve")],
        LockContent(),
        NOW,
        width=70,
    )
    assert text.splitlines() == [
        "Roll-out: 0 of 1 done, 1 queued.",
        "Lock: no node holds a claim.",
        "",
        "NODE   PHASE     SINCE   LINE   REASON",
        "n1     Waiting   1h      -      one two three four five six seven",
        "                                eight nine ten eleven twelve",
        "",
        "1 node: 1 Waiting.",
    ]


def test_careen_status_shows_who_cordoned_a_node() -> None:
    record = to_annotation(Progress(phase="Draining", claim="c", boot_left="b", is_cordoned_by_us=True))
    ours = a_node("n1", "Draining", "drains")
    nodes = [
        replace(ours, unschedulable=True, annotations={**ours.annotations, keys.PROGRESS: record}),
        replace(a_node("n2"), unschedulable=True),
        a_node("n3"),
    ]
    assert fleet_text(nodes, LockContent(), NOW).splitlines()[3:7] == [
        "NODE   PHASE      SINCE   LINE   CORDON     REASON",
        "n1     Draining   1h      -      careen     drains",
        "n2     Idle       -       -      somebody   -",
        "n3     Idle       -       -      -          -",
    ]
    assert [node_json(node, LockContent())["cordon"] for node in nodes] == ["careen", "somebody", None]


def test_careen_status_prints_no_table_for_a_cluster_without_nodes() -> None:
    assert fleet_text([], LockContent(), NOW) == "Lock: no node holds a claim.\n\n0 nodes."


def test_careen_status_shows_the_same_warning_of_several_nodes_once() -> None:
    nodes = [
        replace(
            a_node(name, "Waiting", "waits"),
            annotations={keys.PHASE: "Waiting", keys.WARNING: "pods on the node get no grace period"},
        )
        for name in ("n2", "n1")
    ]
    text = fleet_text([*nodes, a_node("n3")], LockContent(), NOW)
    assert text.splitlines()[2] == "Warning (n1, n2): pods on the node get no grace period."
    assert text.count("Warning") == 1
    assert [each["warning"] for each in fleet_json(nodes, LockContent())["nodes"]] == [
        "pods on the node get no grace period"
    ] * 2


def test_careen_status_fits_a_screen_and_says_how_many_nodes_it_leaves_out() -> None:
    refusals = json.dumps(
        [{"gate": "alerts", "code": "alert", "sentence": "these alerts are active: Disk", "since": ""}]
    )
    held = [
        replace(node, annotations={**node.annotations, keys.REFUSALS: refusals})
        for node in (a_node(f"w{each:03}", "Waiting", "a reason " * 30) for each in range(200))
    ]
    nodes = [*held, *(a_node(f"i{each:04}") for each in range(800))]
    text = fleet_text(nodes, LockContent(), NOW, width=100, lines=40)
    assert len(text.splitlines()) <= 40
    assert "  200 nodes: alert Disk: w000, w001, w002 and 197 more. Resolve the named alert" in text
    shown = sum(1 for line in text.splitlines() if re.match(r"[wi]\d+ ", line))
    assert f"… and {1000 - shown} more nodes" in text
    assert len(fleet_text(nodes, LockContent(), NOW).splitlines()) > 1000


def test_careen_status_strikes_a_reason_that_the_lock_disproves() -> None:
    refusals = json.dumps([{"gate": "hold", "code": "paused", "sentence": "a person paused the lock", "since": ""}])
    node = a_node("n1", "Waiting", "a person paused the lock")
    node = replace(node, annotations={**node.annotations, keys.REFUSALS: refusals})
    assert "the lock is not paused, so this is over: a person paused the lock" in fleet_text([node], LockContent(), NOW)
    paused = fleet_text([node], LockContent(is_paused=True), NOW)
    assert "so this is over" not in paused


def test_careen_status_shows_a_dead_holder_as_dead() -> None:
    dead = replace(a_node("n1", "Draining", "evicting"), ready=False, ready_since=NOW - timedelta(seconds=107))
    lock = LockContent(entries=(Entry(node="n1", id="c", created="2026-03-04T11:00:00Z"),))
    text = fleet_text([replace(dead, agent_wrote=NOW - timedelta(seconds=110)), a_node("n2")], lock, NOW)
    assert re.search(
        r"^n1 +Draining +1h +holder +NotReady 1m47s +n1 has been NotReady for 1m47s, outside", text, re.MULTILINE
    )
    assert "its agent last wrote 1m50s ago" in text
    assert "1 without progress" in text.splitlines()[0]
    assert re.search(r"^n2 +Idle +- +- +yes", text, re.MULTILINE)


def test_causes_that_hold_the_same_nodes_are_told_in_one_line() -> None:
    row = {"gate": "budgets", "code": "nodes-down", "sentence": "two are down", "about": ["node n8", "node n9"]}
    annotations = {keys.PHASE: "Waiting", keys.REFUSALS: json.dumps([row])}
    waiting = [replace(a_node(f"n{number}"), annotations=annotations) for number in range(8)]
    down = [replace(a_node(name), unschedulable=True) for name in ("n8", "n9")]
    text = fleet_text([*waiting, *down], LockContent(), NOW, lines=10)
    (line,) = [each for each in text.splitlines() if each.startswith("  8 nodes: ")]
    assert line.startswith("  8 nodes: node n8, node n9: n0, n1, n2 and 5 more. Bring")


def test_the_cause_of_a_halt_is_listed_only_while_nothing_else_tells_its_remedy() -> None:
    """While another node still drains, the report begins with no obstacle."""
    failed = Entry(node="n8", id="c", created="2026-03-04T11:00:00Z", failed="never-ready")
    halted = LockContent(entries=(failed,), max_owners=2)
    no = halt_answer(halted)
    assert no is not None
    row = {"gate": "halt", "code": "halted", "sentence": no.sentence, "remedy": no.remedy, "about": list(no.about)}
    annotations = {keys.PHASE: "Waiting", keys.REFUSALS: json.dumps([row])}
    waiting = [replace(a_node(f"n{number}"), annotations=annotations) for number in range(8)]
    drains = LockContent(entries=(failed, replace(failed, node="n9", failed="")), max_owners=2)
    nodes = [*waiting, a_node("n8", "Failed"), a_node("n9", "Draining")]
    assert "careen retry n8" not in fleet_text(nodes[:-1], halted, NOW, lines=10)
    assert "  8 nodes: failed node n8: n0, n1, n2 and 5 more. Repair n8" in fleet_text(nodes, drains, NOW, lines=10)
