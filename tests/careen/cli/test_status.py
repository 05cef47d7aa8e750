from __future__ import annotations

import re

from careen.core.facts import keys
from careen.core.lock.content import Entry, LockContent
from careen.core.lock.line import Line
from tests.careen.cli.conftest import Desk


def busy_fleet(desk: Desk) -> None:
    desk.node("n1")
    desk.node("n2", "Waiting", reason="held: disk swap", label="required")
    desk.node("n3", "Draining", reason="evicting 3 pods", label="in-progress")
    desk.node("n4", "Waiting", reason="it waits in line", label="ready")
    desk.node("n5", "Failed", reason="the reboot command failed", label="failed")
    desk.lock(
        LockContent(
            entries=(Entry(node="n3", id="c1", created="2026-03-04T12:00:00Z"),),
            max_owners=2,
            line=Line(names=("n4",), at="2026-03-04T11:59:00Z", waiting=2),
        )
    )


def without_ages(text: str) -> str:
    """Return the output with AGE instead of each age, and with a bar instead of the spaces between two columns. The
    width of a column depends on the ages."""
    return re.sub(r" {2,}", "|", re.sub(r"\b\d+d(\d+h)?", "AGE", text))


def test_status_shows_every_node(desk: Desk) -> None:
    busy_fleet(desk)
    assert without_ages(desk.ok("status")).splitlines() == [
        "Roll-out: 0 of 4 done, 1 working (n3 for AGE), 2 queued, 1 failed (n5).",
        "Lock: 1 of 2 claims held by n3 (AGE); next: n4, chosen from 2 waiting nodes.",
        "",
        "NODE|PHASE|SINCE|LINE|REASON",
        "n5|Failed|AGE|-|the reboot command failed",
        "n3|Draining|AGE|holder|evicting 3 pods",
        "n4|Waiting|AGE|next|it waits in line",
        "n2|Waiting|AGE|required|held: disk swap",
        "n1|Idle|-|-|-",
        "",
        "5 nodes: 1 Failed, 1 Draining, 2 Waiting, 1 Idle.",
    ]


def test_status_can_leave_out_idle_nodes(desk: Desk) -> None:
    busy_fleet(desk)
    output = desk.ok("status", "--busy")
    assert "n1 " not in output
    assert "5 nodes: " in output


def test_status_as_json_has_the_content_of_the_table(desk: Desk) -> None:
    busy_fleet(desk)
    value = desk.json("status")
    assert value["lock"] | {"raw": None} == {
        "state": "held",
        "why": None,
        "pauseReason": None,
        "maxOwners": 2,
        "holders": [
            {
                "node": "n3",
                "claim": "c1",
                "uid": None,
                "since": "2026-03-04T12:00:00Z",
                "groups": [],
                "bootLeft": None,
                "failed": None,
                "overdue": None,
            }
        ],
        "haltedBecause": None,
        "next": ["n4"],
        "nextAt": "2026-03-04T11:59:00Z",
        "waiting": 2,
        "releasedAt": None,
        "raw": None,
    }
    assert [node["name"] for node in value["nodes"]] == ["n5", "n3", "n4", "n2", "n1"]
    assert value["nodes"][2] == {
        "name": "n4",
        "phase": "Waiting",
        "since": "2026-03-04T12:00:00Z",
        "reason": "it waits in line",
        "label": "ready",
        "turn": "next",
        "refusals": [],
        "hold": None,
        "warning": None,
        "unschedulable": False,
        "cordon": None,
        "ready": True,
        "readySince": None,
        "expected": None,
    }


def test_status_as_json_contains_the_refusals(desk: Desk) -> None:
    refusal = {"gate": "alerts", "code": "alert", "sentence": "DiskFull is firing", "since": "2026-03-04T12:00:00Z"}
    desk.node("n1", "Waiting", refusals=[refusal])
    desk.lock()
    assert desk.json("status")["nodes"][0]["refusals"] == [refusal | {"remedy": None}]


def test_status_shows_the_fleet_and_the_error_if_the_daemonset_is_missing(desk: Desk) -> None:
    desk.node("n1")
    output = desk.ok("status")
    assert (
        "Lock: the lock could not be read: DaemonSet careen/careen does not exist; name the lock's DaemonSet with "
        "--ds-namespace and --ds-name." in output
    )
    assert "1 node: 1 Idle." in output
    assert desk.json("status")["lock"]["state"] == "unknown"


def test_status_finds_the_lock_on_kureds_daemonset(desk: Desk) -> None:
    desk.node("n1")
    desk.lock(
        '{"nodeID":"n1","metadata":{"unschedulable":false},"created":"2026-03-04T12:00:00Z","TTL":0}',
        namespace="kube-system",
        name="kured",
    )
    output = desk.ok("status", "--ds-namespace", "kube-system", "--ds-name", "kured")
    assert "\nLock: 1 of 1 claims held by n1 (AGE)." in without_ages(output)


def test_status_says_that_no_reboot_may_start_while_the_lock_is_unreadable(desk: Desk) -> None:
    desk.lock("what?")
    assert desk.ok("status").startswith(
        "Lock: the lock cannot be understood (the text of the lock is not JSON), so no reboot may start; `careen lock "
        "show` prints the lock."
    )
    lock = desk.json("status")["lock"]
    assert {key for key in lock if lock[key] is not None} == {"state", "why", "raw"}
    assert (lock["state"], lock["why"], lock["raw"]) == ("garbage", "the text of the lock is not JSON", "what?")


def test_status_shows_the_hold_of_an_idle_node(desk: Desk) -> None:
    desk.node("n1", hold="disk swap")
    desk.lock()
    assert re.search(r"^n1 +Idle +- +- +held: disk swap$", desk.ok("status"), re.MULTILINE)


def test_status_reports_a_claim_of_a_missing_node_with_the_remedy(desk: Desk) -> None:
    desk.node("n2", "Waiting", reason="it waits in line", label="ready")
    desk.lock(LockContent(entries=(Entry(node="n9", id="c1", uid="u", created="2026-03-04T12:00:00Z"),), max_owners=1))
    (stray,) = (line for line in desk.ok("status").splitlines() if line.startswith("Stray claim: "))
    assert stray.startswith("Stray claim: a claim is held by n9, but there is no Node n9. careen frees the claim when")
    assert "`careen lock release n9`" in stray
    assert [(each["node"], each["why"]) for each in desk.json("status")["strayClaims"]] == [("n9", "no-such-node")]


def test_the_wide_table_adds_readiness_label_moves_and_hold(desk: Desk) -> None:
    report = '{"at":"2026-03-04T12:00:00Z"}'
    desk.node(
        "n1",
        "Waiting",
        label="ready",
        hold="disk swap",
        annotations={keys.MOVES: "7", keys.LAST_REBOOT: report},
        reason="it waits in line",
    )
    desk.node("n2", annotations={keys.LAST_REBOOT: '{"at":["x"]}'})
    desk.lock()
    assert without_ages(desk.ok("status", "-o", "wide")).split("\n\n")[-2].splitlines() == [
        "NODE|PHASE|SINCE|LINE|READY|ZONE|LABEL|MOVES|LAST REBOOT|HOLD|REASON",
        "n1|Waiting|AGE|ready|yes|-|ready|7|AGE ago|disk swap|it waits in line",
        "n2|Idle|-|-|yes|-|-|-|-|-|-",
    ]


def test_status_can_print_only_names_for_other_programs(desk: Desk) -> None:
    busy_fleet(desk)
    assert desk.ok("status", "-o", "name", "--busy").splitlines() == ["node/n5", "node/n3", "node/n4", "node/n2"]


def test_an_unreadable_record_beside_an_empty_hold_is_shown_in_full(desk: Desk) -> None:
    desk.node("n1", progress={"version": 99}, hold=" ")
    desk.lock()
    assert "held without a reason" in desk.ok("status")
    assert desk.json("status")["lock"]["maxOwners"] is None


def test_a_selector_chooses_the_nodes_of_the_table(desk: Desk) -> None:
    busy_fleet(desk)
    lines = without_ages(desk.ok("status", "-l", f"{keys.REBOOT_LABEL} in (ready,failed)")).splitlines()
    assert lines[0] == "Roll-out: 0 of 4 done, 1 working (n3 for AGE), 2 queued, 1 failed (n5).", (
        "the roll-out is that of all"
    )
    assert [line.split("|")[0] for line in lines[4:6]] == ["n5", "n4"]
    assert lines[-1] == "2 of 5 nodes: 1 Failed, 1 Waiting."
    chosen = ("status", "--selector", f"{keys.REBOOT_LABEL}=ready")
    assert [node["name"] for node in desk.json(*chosen)["nodes"]] == ["n4"]
    assert desk.ok(*chosen, "-o", "name") == "node/n4\n"
    assert desk.run("status", "-l", "").exit_code == 2


def test_status_and_lock_call_a_drain_for_maintenance_one(desk: Desk) -> None:
    desk.node(
        "n1",
        "Draining",
        reason="3 pods have to leave",
        progress={"version": 1, "phase": "Draining", "claim": "c1", "boot_left": "b"},
        annotations={keys.REQUEST: '{"want":"maintenance","reason":"disk swap"}'},
    )
    desk.lock(LockContent(entries=(Entry(node="n1", id="c1", created="2026-03-04T12:00:00Z"),), max_owners=1))
    output = without_ages(desk.ok("status"))
    assert output.startswith("Roll-out: 1 in maintenance, on the way there or back.\n")
    assert "n1|Draining (maintenance)|AGE|holder|3 pods have to leave" in output
    assert "1 node: 1 Draining (maintenance)." in output
    assert "reboot" not in output
    assert "Draining (maintenance)" in desk.ok("lock", "show")


def test_status_says_who_cordoned_a_node_and_when(desk: Desk) -> None:
    """Lists of Nodes leave that out."""
    desk.node("n1")
    desk.node("n2", "Waiting")
    seeded = desk.server.get("nodes", "n1")
    assert seeded is not None
    owner = {
        "manager": "kubectl",
        "operation": "Update",
        "time": "2026-03-04T12:00:00Z",
        "fieldsV1": {"f:spec": {"f:unschedulable": {}}},
    }
    metadata = {**seeded["metadata"], "managedFields": [owner]}
    desk.server.seed({**seeded, "metadata": metadata, "spec": {"unschedulable": True}})
    desk.lock()
    assert re.search(r"n1 +Idle +- +- +kubectl \d+d", desk.ok("status"))
