from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from careen.core.facts import keys
from careen.core.gates import GATES
from careen.core.lock.content import Entry, LockContent
from careen.core.lock.line import Line
from tests.careen.cli.conftest import Desk

SINCE = "2026-03-04T12:00:00Z"
HELD = {"gate": "hold", "code": "held", "sentence": "held: disk swap", "since": SINCE}
OUTSIDE = {
    "gate": "maintenance-window",
    "code": "outside-window",
    "sentence": "now is Sunday; the window opens Monday 22:00 UTC",
    "since": SINCE,
}
ALERT = {"gate": "alerts", "code": "alert", "sentence": "DiskFull is firing", "since": SINCE}


def rows(output: str) -> dict[str, list[str]]:
    """Parse the table that the command prints. Return for each gate the verdict, the start time and the reason in its
    row."""
    lines = output.split("GATE ", 1)[1].split("\n\n", 1)[0].splitlines()[1:]
    return {cells[0]: cells[1:] for line in lines if (cells := re.split(r" {2,}", line.strip()))}


def test_why_lists_every_gate_in_the_order_of_evaluation(desk: Desk) -> None:
    desk.node("n1", "Waiting")
    desk.lock()
    assert list(rows(desk.ok("why", "n1"))) == [gate.name for gate in GATES]


def test_why_shows_message_start_time_and_remedy_of_each_refusal(desk: Desk) -> None:
    desk.node("n1", "Waiting", reason="2 gates refuse", label="required", hold="disk swap", refusals=[HELD, ALERT])
    desk.agent_on("n1")
    desk.lock()
    output = desk.ok("why", "n1")
    assert re.match(r"n1 has been Waiting for \d+d\w*: 2 gates refuse\.\n", output)
    table = rows(output)
    assert table["hold"][0] == "refuses"
    assert table["hold"][2] == "held: disk swap"
    assert table["alerts"][0] == "refuses"
    assert output.split("What you can do:\n")[1].splitlines() == [
        (
            "  held: Run `careen unhold n1`, or remove the annotation careen.dev/hold, or wait until its `until` has "
            "passed."
        ),
        "  alert: Resolve the named alert, or ignore it with --alert-filter-regexp.",
    ]


def test_why_shows_a_costly_gate_as_not_asked_while_a_cheap_gate_refuses(desk: Desk) -> None:
    desk.node("n1", "Waiting", refusals=[OUTSIDE], label="required")
    desk.lock()
    assert rows(desk.ok("why", "n1"))["forecast"][0::2] == [
        "not asked",
        "the earlier gate `maintenance-window` refuses, so the agent does not ask this gate",
    ]


def test_why_shows_that_the_agent_asks_no_costly_gate_after_a_costly_gate_refuses(desk: Desk) -> None:
    desk.node("n1", "Waiting", refusals=[ALERT], label="required")
    desk.lock()
    table = rows(desk.ok("why", "n1"))
    assert table["budgets"][0] == "yes"
    assert table["forecast"][0::2] == [
        "not asked",
        "the earlier gate `alerts` refuses, so the agent does not ask this gate",
    ]


def test_why_says_that_only_the_next_node_in_line_makes_a_forecast(desk: Desk) -> None:
    desk.node("n1", "Waiting", label="ready")
    desk.lock(LockContent(entries=(Entry(node="n2", id="c"),), max_owners=1, line=Line(names=("n3", "n1"), at=SINCE)))
    output = desk.ok("why", "n1")
    assert rows(output)["forecast"][0::2] == ["not asked", "only the agent of the next node in line asks this gate"]
    assert "Line: n1 is number 2 of the 2 nodes that are named next in the lock." in output


def test_why_shows_that_a_draining_node_has_passed_every_gate(desk: Desk) -> None:
    desk.node("n1", "Draining", reason="evicting 3 pods")
    desk.agent_on("n1")
    desk.lock(LockContent(entries=(Entry(node="n1", id="c"),), max_owners=1))
    output = desk.ok("why", "n1", "--all")
    assert {cells[0] for cells in rows(output).values()} == {"yes"}
    assert "Line: n1 holds a claim." in output
    assert "What you can do" not in output


def test_why_takes_three_lines_for_an_idle_node(desk: Desk) -> None:
    desk.node("n1")
    desk.agent_on("n1")
    desk.lock()
    assert desk.ok("why", "n1").splitlines() == [
        "n1 is Idle: its agent has seen no need for a reboot.",
        "Lock: no node holds a claim.",
        "Next: the node's agent decides again within 5s.",
    ]


@pytest.mark.parametrize(("phase", "holders"), [("Draining", ("n1",)), ("Waiting", ())])
def test_why_takes_three_lines_for_a_node_that_no_gate_refuses(
    desk: Desk, phase: str, holders: tuple[str, ...]
) -> None:
    desk.node("n1", phase, reason="all is well", label="ready")
    desk.agent_on("n1")
    entries = tuple(Entry(node=name, id="c") for name in holders)
    desk.lock(LockContent(entries=entries, max_owners=1, line=Line(names=("n1",), at=SINCE)))
    lines = desk.ok("why", "n1").splitlines()
    assert [line.split(" ")[0] for line in lines] == ["n1", "Lock:", "Next:"]
    assert ("n1 is the only node that the lock names next" in lines[1]) is (not holders)


def test_why_keeps_what_nobody_expects_of_an_idle_node(desk: Desk) -> None:
    desk.node("n1", annotations={keys.WARNING: "the reboot would lose the pod shop/a"})
    desk.agent_on("n1")
    desk.lock()
    assert desk.ok("why", "n1").splitlines()[3:] == ["Warning: the reboot would lose the pod shop/a."]


def test_why_shows_the_gates_of_an_idle_node_whose_agent_is_missing_or_which_is_held(desk: Desk) -> None:
    desk.node("n1")
    desk.lock()
    assert "What you can do:" in desk.ok("why", "n1")
    desk.node("n2", hold="disk swap")
    desk.agent_on("n2")
    assert "held: disk swap" in desk.ok("why", "n2")


def test_why_shows_every_gate_of_an_idle_node_as_not_asked(desk: Desk) -> None:
    desk.node("n1")
    desk.agent_on("n1")
    desk.lock()
    output = desk.ok("why", "n1", "--all")
    assert output.startswith("n1 is Idle: its agent has seen no need for a reboot.\nLock: no node holds a claim.\n")
    assert {tuple(cells[0::2]) for cells in rows(output).values()} == {
        ("not asked", "the agent of an idle node asks no gate")
    }


def test_why_shows_a_hold_that_the_agent_has_not_read_yet(desk: Desk) -> None:
    desk.node("n1", hold="disk swap")
    desk.agent_on("n1")
    desk.lock()
    output = desk.ok("why", "n1")
    assert rows(output)["hold"] == ["will refuse", "-", "held: disk swap"]
    assert "  held: Run `careen unhold n1`" in output


def test_why_does_not_show_an_expired_hold(desk: Desk) -> None:
    desk.node("n1", hold="disk swap until=2026-03-04T12:00:00Z")
    desk.lock()
    assert rows(desk.ok("why", "n1", "--all"))["hold"][0] == "not asked"


def test_why_lists_only_the_gates_that_will_refuse_an_idle_node(desk: Desk) -> None:
    desk.node("n1", hold="disk swap")
    desk.agent_on("n1")
    desk.lock()
    output = desk.ok("why", "n1")
    assert [name for name in rows(output) if not name.startswith("…")] == ["hold"]
    assert f"… and {len(GATES) - 1} gates that the agent does not ask (`--all`)." in output
    assert "… and" not in desk.ok("why", "n1", "--all")


def test_why_shows_a_pause_and_a_hold_as_two_reasons(desk: Desk) -> None:
    desk.node("n1", "Waiting", hold="disk swap", refusals=[HELD])
    desk.lock()
    desk.ok("lock", "pause", "--reason", "freeze")
    value = desk.json("why", "n1")
    assert [(each["code"], each["answer"], each["sentence"]) for each in value["gates"] if each["gate"] == "hold"] == [
        ("held", "refuses", "held: disk swap"),
        ("paused", "will refuse", "a person paused the lock: freeze"),
    ]


def test_why_shows_a_failed_node_with_the_remedy(desk: Desk) -> None:
    desk.node(
        "n1",
        "Failed",
        reason="/bin/false failed with exit code 1",
        progress={"version": 1, "phase": "Failed", "failed": "reboot-command-failed"},
    )
    desk.agent_on("n1")
    desk.lock()
    output = desk.ok("why", "n1")
    assert (
        "  reboot-command-failed: Correct --reboot-command or the agent's rights on the host, then run "
        "`careen retry n1`."
    ) in output


def test_why_reports_an_unreadable_progress_annotation_as_the_reason(desk: Desk) -> None:
    desk.node("n1", "Waiting", progress={"version": 99})
    desk.agent_on("n1")
    desk.lock()
    assert (
        "  record: the annotation careen.dev/progress has version 99; this release reads versions up to 1. Run the "
        "release that wrote the record" in desk.ok("why", "n1")
    )


@pytest.mark.parametrize(
    ("present", "remark"),
    [
        (None, "no careen agent runs on n1, so nothing in this report is up to date."),
        (
            False,
            "careen/careen-n1 is not ready, so this report may be out of date. Look at the log of careen/careen-n1.",
        ),
    ],
    ids=["no agent", "an agent that is not ready"],
)
def test_why_reports_a_node_without_a_running_agent(desk: Desk, present: bool | None, remark: str) -> None:
    desk.node("n1")
    desk.lock()
    if present is not None:
        desk.agent_on("n1", ready=present)
    assert remark in desk.ok("why", "n1")


def test_why_reports_an_unreadable_lock_as_the_reason(desk: Desk) -> None:
    desk.node("n1", "Waiting")
    assert "Lock: the lock could not be read: DaemonSet careen/careen does not exist" in desk.ok("why", "n1")


def test_why_shows_refusals_of_unknown_gates(desk: Desk) -> None:
    desk.node("n1", "Waiting", refusals=[{**HELD, "gate": "tide", "sentence": "the tide is out"}])
    desk.lock()
    assert rows(desk.ok("why", "n1"))["tide"][2] == "the tide is out"


def test_why_of_a_missing_node_is_a_usage_error(desk: Desk) -> None:
    desk.node("worker-a-1")
    desk.lock()
    result = desk.run("why", "worker-a-2")
    assert result.exit_code == 2
    assert "there is no Node 'worker-a-2'; did you mean worker-a-1?" in result.output
    assert "there is no Node 'x' among the 1 Node of this cluster" in desk.run("why", "x").output


def test_why_as_json_has_the_content_of_the_text(desk: Desk) -> None:
    desk.node("n1", "Waiting", reason="r", refusals=[ALERT])
    desk.agent_on("n1")
    desk.lock()
    value = desk.json("why", "n1")
    assert (value["node"]["name"], value["lock"]["state"], value["agents"]) == (
        "n1",
        "free",
        [{"pod": "careen/careen-n1", "ready": True}],
    )
    (alert,) = (each for each in value["gates"] if each["gate"] == "alerts")
    assert alert == {
        "gate": "alerts",
        "answer": "refuses",
        "code": "alert",
        "sentence": "DiskFull is firing",
        "since": SINCE,
        "remedy": "Resolve the named alert, or ignore it with --alert-filter-regexp.",
        "longestSeconds": None,
    }


def test_why_of_a_waiting_node_mentions_the_claim_of_a_missing_node(desk: Desk) -> None:
    desk.node("n2", "Waiting", reason="it waits in line", label="ready", progress={"version": 1, "phase": "Waiting"})
    desk.lock(LockContent(entries=(Entry(node="n9", id="c1", uid="u", created=SINCE),), max_owners=1))
    assert "  stray claim: a claim is held by n9, but there is no Node n9." in desk.ok("why", "n2")
    assert [each["node"] for each in desk.json("why", "n2")["strayClaims"]] == ["n9"]
    desk.node("n9")
    assert [each["why"] for each in desk.json("why", "n2")["strayClaims"]] == ["another-node"]


def test_why_of_an_idle_node_does_not_mention_the_claim_of_a_missing_node(desk: Desk) -> None:
    desk.node("n2")
    desk.lock(LockContent(entries=(Entry(node="n9", id="c1", uid="u", created=SINCE),), max_owners=1))
    assert "stray" not in desk.ok("why", "n2")


@pytest.mark.parametrize(("agents", "seconds", "told"), [(3, 30, "30s"), (600, 125, "2m5s"), (0, 1200, "20m")])
def test_why_shows_when_the_agent_evaluates_the_gates_again(desk: Desk, agents: int, seconds: int, told: str) -> None:
    """In a large fleet, an agent outside of its maintenance window evaluates the gates less often. If the DaemonSet
    does not show the number of agents, `careen why` assumes the largest fleet."""
    desk.node("n1", "Waiting", refusals=[OUTSIDE], label="required", progress={"version": 1, "phase": "Waiting"})
    desk.lock(agents=agents)
    assert f"Next: the node's agent decides again within {told}." in desk.ok("why", "n1").splitlines()
    assert desk.json("why", "n1")["next"] == {"seconds": seconds, "what": "look"}


def test_why_shows_when_a_failed_node_is_retried(desk: Desk) -> None:
    since = datetime.now(UTC).isoformat(timespec="seconds")
    desk.node(
        "n1",
        "Failed",
        since=since,
        progress={"version": 1, "phase": "Failed", "failed": "drain-timeout", "failures": 2},
    )
    desk.lock(flags=["--failure-backoff=10m"])
    found = desk.json("why", "n1")["next"]
    assert found["what"] == "retry"
    assert 1190 <= found["seconds"] <= 1200
    assert re.search(
        r"^Next: the node's agent retries the reboot in (19m5\ds|20m)\.$", desk.ok("why", "n1"), re.MULTILINE
    )


def test_why_shows_no_retry_time_if_the_agents_settings_are_unreadable(desk: Desk) -> None:
    desk.node("n1", "Failed", progress={"version": 1, "phase": "Failed", "failed": "drain-timeout", "failures": 1})
    assert desk.json("why", "n1")["next"] is None
    assert "Next:" not in desk.ok("why", "n1")


def test_why_shows_when_the_maintenance_window_of_a_node_opens(desk: Desk) -> None:
    windows = '{name: web, start: "00:00", exclude: [2000-01-01..2998-12-31]}'
    desk.server.seed(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "careen", "namespace": "careen"},
            "data": {"config.yaml": f"time-zone: Europe/Berlin\nwindows:\n- {windows}\n"},
        }
    )
    desk.node("n1", "Waiting", refusals=[OUTSIDE], label="required")
    desk.lock()
    assert "the next window opens at Tue 2999-01-01 00:00 CET (Europe/Berlin), in" in desk.ok("why", "n1").replace(
        "\n", " "
    )
    assert desk.json("why", "n1")["nextOpening"] == "2998-12-31T23:00:00Z"


def test_why_shows_gate_annotations_that_the_agent_has_not_read_yet(desk: Desk) -> None:
    gates = {"careen.dev/gate.backup": "nightly dump", "careen.dev/gate.db": "failover"}
    desk.node("n1", "Waiting", label="required", annotations=gates)
    desk.lock()
    assert rows(desk.ok("why", "n1"))["gate-annotations"][-1] == "gate backup: nightly dump; gate db: failover"


def test_why_does_not_say_maintenance_twice(desk: Desk) -> None:
    desk.node("n1", "Maintenance", reason="a person asked for maintenance: disk swap")
    desk.lock()
    assert desk.ok("why", "n1").startswith("n1 has been in maintenance for ")


def test_why_names_the_gate_annotations_to_remove(desk: Desk) -> None:
    desk.node("n1", "Waiting", annotations={"careen.dev/gate.backup": "running", "careen.dev/gate.db": ""})
    desk.lock()
    assert "`kubectl annotate node n1 careen.dev/gate.backup- careen.dev/gate.db-`" in desk.ok("why", "n1")
