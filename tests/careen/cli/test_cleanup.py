"""Tests `careen cleanup` against a server: what it shows, what it removes, and when it refuses."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest

from careen.core.facts import keys
from careen.core.facts.progress import Progress, to_annotation
from careen.core.lock.content import Entry, LockContent
from careen.core.lock.line import Line
from drydock.server.faults import Fault, FaultKind
from tests.careen.cli.conftest import Desk

HELD = LockContent(
    entries=(Entry(node="n2", id="c1", uid="uid-nodes--n2", boot="b1"),), max_owners=1, line=Line(names=("n1",), at="x")
)
_DRAINING = Progress(
    phase="Draining", claim="c1", lock="l", boot_left="b1", is_cordoned_by_us=True, taint_key="careen.dev/reboot"
)
DRAINING = json.loads(to_annotation(_DRAINING))
FOREIGN = {"key": "example.org/theirs", "effect": "NoSchedule"}
SOFT = {"key": "careen.dev/reboot", "effect": "PreferNoSchedule"}


def seed_node(desk: Desk, name: str, *, boot: str = "b1", **more: Any) -> dict[str, Any]:
    """Create a Node with labels, annotations and taints of careen, and return the Node as it was before careen changed
    it."""
    before = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"pool": "web"},
            "annotations": {"example.org/theirs": "x"},
        },
        "spec": {"taints": [FOREIGN]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"bootID": boot}},
    }
    marked = deepcopy(before)
    marked["metadata"]["labels"] |= more.get("labels", {})
    marked["metadata"]["annotations"] |= more.get("annotations", {})
    marked["spec"]["taints"] += more.get("taints", [])
    if more.get("unschedulable"):
        marked["spec"]["unschedulable"] = True
    desk.server.seed(marked)
    return before


def the_node(desk: Desk, name: str) -> dict[str, Any]:
    """Return the parts of the Node that careen may change, such as labels, annotations, taints and the cordon."""
    node = desk.server.get("nodes", name)
    assert node is not None
    return {
        "labels": node["metadata"].get("labels", {}),
        "annotations": node["metadata"].get("annotations", {}),
        "spec": {key: value for key, value in node["spec"].items() if value},
    }


def as_before(before: dict[str, Any]) -> dict[str, Any]:
    return {**{part: before["metadata"][part] for part in ("labels", "annotations")}, "spec": before["spec"]}


@pytest.fixture
def interrupted(desk: Desk) -> dict[str, dict[str, Any]]:
    """Create the four Nodes of an interrupted roll-out: one waits, one drains, one has rebooted, and one was not
    changed by careen. Return the four Nodes as they were before the roll-out."""
    desk.lock(HELD)
    waiting = Progress(phase="Waiting", need_since="2026-03-04T12:00:00Z", taint_key="careen.dev/reboot")
    return {
        "n1": seed_node(
            desk,
            "n1",
            labels={keys.REBOOT_LABEL: "required"},
            annotations={keys.PHASE: "Waiting", keys.PROGRESS: to_annotation(waiting), keys.HOLD: "wait"},
            taints=[SOFT],
        ),
        "n2": seed_node(
            desk,
            "n2",
            labels={keys.REBOOT_LABEL: "in-progress"},
            annotations={keys.PHASE: "Draining", keys.PROGRESS: json.dumps(DRAINING)},
            taints=[SOFT],
            unschedulable=True,
        ),
        "n3": seed_node(desk, "n3", annotations={keys.LAST_REBOOT: "{}"}),
        "n4": seed_node(desk, "n4", unschedulable=True) | {"spec": {"taints": [FOREIGN], "unschedulable": True}},
    }


def test_cleanup_without_the_yes_flag_shows_the_changes_and_writes_nothing(
    desk: Desk, interrupted: dict[str, Any]
) -> None:
    output = desk.ok("cleanup")
    assert desk.writes() == 0
    rows = [line.split() for line in output.splitlines() if line.startswith("n")]
    assert [row[:3] for row in rows if row[0] == "n2"] == [
        ["n2", "taint", "careen.dev/reboot"],
        ["n2", "cordon", "-"],
        ["n2", "label", "careen.dev/reboot"],
        ["n2", "annotation", "careen.dev/phase"],
        ["n2", "annotation", "careen.dev/progress"],
    ]
    assert not [row for row in rows if row[0] == "n4"]
    assert (
        output.splitlines()[-1]
        == "This was a dry run: careen cleanup --yes would remove 13 marks from 3 Nodes and the lock."
    )
    assert interrupted


def test_the_yes_flag_of_cleanup_restores_the_state_before_careen(desk: Desk, interrupted: dict[str, Any]) -> None:
    assert desk.ok("cleanup", "--yes").splitlines()[-1] == "careen cleanup removed 13 marks from 3 Nodes and the lock."
    assert {name: the_node(desk, name) for name in interrupted} == {
        name: as_before(before) for name, before in interrupted.items()
    }
    assert desk.lock_text() is None


def test_a_second_cleanup_writes_nothing(desk: Desk, interrupted: dict[str, Any]) -> None:
    desk.ok("cleanup", "--yes")
    writes = desk.writes()
    assert desk.ok("cleanup", "--yes").splitlines()[-1] == "No mark was removed."
    assert desk.ok("cleanup").splitlines()[-1] == "There are no marks of careen to remove."
    assert desk.writes() == writes
    assert interrupted


def test_cleanup_as_json_shows_planned_and_completed_changes(desk: Desk, interrupted: dict[str, Any]) -> None:
    before = desk.json("cleanup")
    assert (before["applied"], [node["name"] for node in before["nodes"]]) == (False, ["n1", "n2", "n3"])
    assert {"kind": "cordon", "name": None, "now": "cordoned", "afterwards": "lifted"} in before["nodes"][1]["goes"]
    after = desk.json("cleanup", "--yes")
    assert after["applied"]
    assert [node["done"] for node in (*after["nodes"], after["lock"])] == [True] * 4
    assert interrupted


def test_cleanup_works_without_the_daemonset(desk: Desk) -> None:
    before = seed_node(desk, "n1", labels={keys.REBOOT_LABEL: "required"}, taints=[SOFT])
    output = desk.ok("cleanup", "--yes")
    assert "DaemonSet careen/careen does not exist, so there is no lock to clean" in output
    assert the_node(desk, "n1") == as_before(before)


REBOOTING = {**DRAINING, "phase": "Rebooting", "announced": {"boot": "b1", "uptime": 5.0, "by": "x"}}


def rebooting(desk: Desk, **more: Any) -> dict[str, Any]:
    return seed_node(
        desk,
        "n2",
        labels={keys.REBOOT_LABEL: "in-progress"},
        annotations={keys.PHASE: "Rebooting", keys.PROGRESS: json.dumps(REBOOTING)},
        unschedulable=True,
        **more,
    )


def test_cleanup_refuses_while_a_node_reboots(desk: Desk) -> None:
    desk.lock(HELD)
    rebooting(desk)
    seed_node(desk, "n1", taints=[SOFT])
    result = desk.run("cleanup", "--yes")
    assert (result.exit_code, desk.writes()) == (1, 0)
    assert (
        "careen cleanup changed nothing: n2: the agent recorded that the reboot is next, and the Node has not reported "
        "a new boot. Wait" in result.output
    )
    assert desk.run("cleanup", "--yes", "--output", "json").exit_code == 1
    assert "careen cleanup --yes would change nothing because of n2: " in desk.ok("cleanup")


def test_cleanup_restores_a_rebooting_node_if_a_flag_allows_this(desk: Desk) -> None:
    desk.lock(HELD)
    before = rebooting(desk)
    desk.ok("cleanup", "--yes", "--even-rebooting")
    assert the_node(desk, "n2") == as_before(before)
    assert desk.lock_text() is None


def test_a_node_that_has_rebooted_does_not_block_the_cleanup(desk: Desk) -> None:
    desk.lock(HELD)
    before = rebooting(desk, boot="b2")
    desk.ok("cleanup", "--yes")
    assert the_node(desk, "n2") == as_before(before)


def fault_on(desk: Desk, name: str, kind: FaultKind, *, times: int = 99) -> None:
    """Make the next `times` patches of this object fail."""
    left = iter([True] * times)

    def plan(info: Any, _user: str, _stale: bool) -> Fault | None:
        is_hit = getattr(info, "verb", "") == "patch" and info.name == name
        return Fault(kind=kind, code=500) if is_hit and next(left, False) else None

    desk.server.api.plan = plan


def test_a_node_that_cleanup_cannot_write_keeps_its_claim(desk: Desk, interrupted: dict[str, Any]) -> None:
    fault_on(desk, "n2", FaultKind.SERVER_ERROR)
    result = desk.run("cleanup", "--yes")
    assert result.exit_code == 1
    assert "n2 was not changed: " in result.output
    assert result.output.splitlines()[-1].endswith(" 1 object could not be cleaned: n2.")
    assert desk.lock_content().holders == ("n2",)
    assert the_node(desk, "n1") == as_before(interrupted["n1"])


@pytest.mark.parametrize(
    "kind", [FaultKind.LOST_AFTER, FaultKind.ERROR_AFTER, FaultKind.LOST_BEFORE, FaultKind.CONFLICT]
)
@pytest.mark.parametrize("name", ["n2", "careen"])
def test_cleanup_reads_an_object_again_after_a_lost_answer_or_a_conflict(
    desk: Desk, interrupted: dict[str, Any], kind: FaultKind, name: str
) -> None:
    fault_on(desk, name, kind, times=1)
    desk.ok("cleanup", "--yes")
    assert the_node(desk, "n2") == as_before(interrupted["n2"])
    assert desk.lock_text() is None


def test_cleanup_skips_a_node_whose_agent_announces_the_reboot_during_the_cleanup(
    desk: Desk, interrupted: dict[str, Any]
) -> None:
    """`careen cleanup` reads a draining Node, and then the agent records on the Node that a reboot follows. The write
    of `careen cleanup` fails, because the Node has a new resourceVersion."""
    rounds = iter([True])

    def plan(info: Any, _user: str, _stale: bool) -> Fault | None:
        if getattr(info, "verb", "") == "patch" and info.name == "n2" and next(rounds, False):
            rebooting(desk)
        return None

    desk.server.api.plan = plan
    result = desk.run("cleanup", "--yes")
    assert result.exit_code == 1
    assert "n2 was not changed: the agent recorded that the reboot is next" in result.output
    assert desk.annotations("n2")[keys.PHASE] == "Rebooting"
    assert desk.lock_content().holders == ("n2",)
    assert interrupted


def test_cleanup_keeps_a_claim_that_an_agent_takes_during_the_cleanup(desk: Desk, interrupted: dict[str, Any]) -> None:
    """An agent takes a claim after `careen cleanup` has restored the Nodes. The claim must remain, because it keeps
    other nodes from rebooting.
    """
    rounds = iter([True])

    def plan(info: Any, _user: str, _stale: bool) -> Fault | None:
        if getattr(info, "verb", "") == "patch" and info.name == "careen" and next(rounds, False):
            desk.lock(json.dumps({"nodeID": "n4", "id": "c4", "created": "2026-03-04T12:00:00Z"}))
        return None

    desk.server.api.plan = plan
    assert "the claim points to a Node that was not cleaned" in desk.ok("cleanup", "--yes")
    assert desk.lock_content().holders == ("n4",)
    assert interrupted


def test_cleanup_keeps_and_reports_an_unreadable_lock(desk: Desk) -> None:
    desk.lock("what?")
    before = seed_node(desk, "n1", taints=[SOFT])
    result = desk.run("cleanup", "--yes")
    assert result.exit_code == 1
    assert "the lock cannot be understood (the text of the lock is not JSON)" in result.output
    assert (desk.lock_text(), the_node(desk, "n1")) == ("what?", as_before(before))


KUREDS = {"weave.works/kured-reboot-in-progress": "2026-03-04T12:00:00Z"}


def test_cleanup_removes_kureds_marks_only_with_the_flag_kured(desk: Desk) -> None:
    desk.lock('{"nodeID":"n1","metadata":{"unschedulable":false},"created":"2026-03-04T12:00:00Z","TTL":0}')
    before = seed_node(desk, "n1", annotations=KUREDS, unschedulable=True)
    assert "--kured removes kured's annotations" in desk.ok("cleanup", "--yes")
    assert desk.writes() == 0
    desk.ok("cleanup", "--yes", "--kured")
    assert (the_node(desk, "n1"), desk.lock_text()) == (as_before(before), None)


def test_cleanup_removes_a_taint_with_a_given_key(desk: Desk) -> None:
    before = seed_node(desk, "n1", taints=[{"key": "kured/soft", "effect": "PreferNoSchedule"}])
    desk.ok("cleanup", "--yes")
    assert desk.writes() == 0
    desk.ok("cleanup", "--yes", "--key", "kured/soft")
    assert the_node(desk, "n1") == as_before(before)


def with_agents(desk: Desk, image: str) -> None:
    desk.lock(LockContent(is_paused=True, pause_reason="freeze"))
    daemonset = deepcopy(desk.server.get("daemonsets", "careen", "careen"))
    assert daemonset is not None
    daemonset["status"]["currentNumberScheduled"] = 2
    daemonset["spec"]["template"]["spec"]["containers"][0]["image"] = image
    desk.server.seed(daemonset)


def test_cleanup_despite_running_agents_keeps_pauses_and_holds(desk: Desk) -> None:
    with_agents(desk, "careen:1")
    seed_node(desk, "n1", annotations={keys.HOLD: "disk swap"}, taints=[SOFT])
    output = desk.ok("cleanup", "--yes", "--even-with-agents")
    assert "Note: 2 agents of DaemonSet careen/careen may still run and write careen's marks again." in output
    assert desk.annotations("n1")[keys.HOLD] == "disk swap"
    assert desk.lock_content().is_paused


def test_cleanup_refuses_by_default_while_agents_run(desk: Desk) -> None:
    with_agents(desk, "careen:1")
    before = seed_node(desk, "n1", taints=[SOFT])
    seen = the_node(desk, "n1")
    result = desk.run("cleanup", "--yes")
    assert (result.exit_code, desk.writes()) == (1, 0)
    told = " ".join(result.output.split())
    assert (
        "careen cleanup changed nothing: 2 agents of DaemonSet careen/careen may still run. Delete the DaemonSet first"
        in told
    )
    assert desk.run("cleanup", "--yes", "--output", "json").exit_code == 1
    assert the_node(desk, "n1") == seen
    desk.ok("cleanup")
    desk.ok("cleanup", "--yes", "--even-with-agents")
    assert the_node(desk, "n1") == as_before(before)


def test_cleanup_needs_two_flags_if_agents_run_and_a_node_reboots(desk: Desk) -> None:
    with_agents(desk, "careen:1")
    rebooting(desk)
    told = desk.run("cleanup", "--yes").output
    assert "--even-with-agents" in told
    assert "--even-rebooting" in told
    for one in ("--even-with-agents", "--even-rebooting"):
        assert desk.run("cleanup", "--yes", one).exit_code == 1
    desk.ok("cleanup", "--yes", "--even-rebooting", "--even-with-agents")


def test_cleanup_keeps_a_pause_and_removes_a_hold_while_kured_runs(desk: Desk) -> None:
    with_agents(desk, "registry.example/kured:1.17.1")
    seed_node(desk, "n1", annotations={keys.HOLD: "disk swap"})
    desk.ok("cleanup", "--yes")
    assert keys.HOLD not in desk.annotations("n1")
    assert desk.lock_content().is_paused
