"""Tests the first lines of `careen status`. If no node may begin a reboot, these lines show the reason, how long it has
lasted, and the remedy."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from careen.core.decision import stored_refusals
from careen.core.facts.times import rfc3339
from careen.core.gates.drain_forecast import drain_forecast
from careen.core.gates.halt import halted_because
from careen.core.gates.question import When
from careen.core.lock.content import Entry, LockContent
from scheduler_core.simulation.drain import simulate_drain
from scheduler_core.snapshot.loading import load_objects
from tests.careen.cli.conftest import Desk
from tests.careen.core.builders import a_node as a_node_view
from tests.careen.core.builders import a_policy, a_situation
from tests.scheduler_core.simulation.test_drain import a_node, a_pod


def ago(**span: float) -> str:
    return rfc3339(datetime.now(UTC) - timedelta(**span))


def refusal(gate: str, code: str, sentence: str, *, hours: float = 3, **more: Any) -> dict[str, Any]:
    return {"gate": gate, "code": code, "sentence": sentence, "since": ago(hours=hours, minutes=0.5), **more}


def waits(desk: Desk, name: str, *refusals: dict[str, Any], **more: Any) -> None:
    desk.node(name, "Waiting", reason="refused", label="required", refusals=list(refusals), **more)


def headline(desk: Desk) -> str:
    """Return the lines of `careen status` above "Roll-out:" and "Lock:", joined into one line. Each age is shortened
    to its largest unit, for example `2h5m` to `2h`."""
    return re.sub(r"(\d+[hm])\d+[ms]", r"\1", " ".join(re.split("Roll-out:|Lock:", desk.ok("status"))[0].split()))


# ---- the forecast of a small cluster with hard zone spread ----


def refused_by_spread(node: str) -> dict[str, Any]:
    """Return the refusal that an agent writes if the replica on its node fits on no other node: three replicas must be
    spread over three zones, and each zone has only one node."""
    spread = {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "web"}},
            },
        ]
    }
    objects = [
        *(a_node(f"n{i}", zone=zone, cpu="1") for i, zone in enumerate("abc", 1)),
        *(a_pod(f"web-{i}", f"n{i}", cpu="650m", **spread) for i in (1, 2, 3)),
    ]
    forecast = simulate_drain(load_objects(objects), [node], made_at="2026-01-01T00:00:00Z")[0]
    refused = drain_forecast.ask(a_situation(policy=a_policy(), forecast=forecast), When.READY)
    assert refused is not None
    return refusal(
        "forecast", refused.code.value, refused.sentence, **({"remedy": refused.remedy} if refused.remedy else {})
    )


def test_status_shows_the_pod_and_the_remedy_if_every_forecast_refuses(desk: Desk) -> None:
    for name in ("n1", "n2", "n3"):
        waits(desk, name, refused_by_spread(name))
    desk.lock(LockContent())
    said = headline(desk)
    assert said.startswith(
        "No reboot will start: the gate `forecast` refuses all 3 waiting nodes; for example, n1: 1 of 1 pods "
        "would not find room: shop/web-1 ("
    )
    assert "The cause has lasted for 3h" in said
    assert (
        "What you can do: n1: shop/web-1 would find a place with one more empty, uncordoned node like n1 (zone a)."
        in said
    )
    assert "or accept the pending pods with --forecast-pending-allowed=1." in said


def test_why_shows_the_remedy_that_the_forecast_found(desk: Desk) -> None:
    row = refused_by_spread("n2")
    waits(desk, "n2", row)
    desk.lock(LockContent())
    assert [each.remedy for each in stored_refusals(a_node_view(annotations=desk.annotations("n2")))] == [row["remedy"]]
    assert f"{row['remedy']}. Add capacity" in " ".join(desk.ok("why", "n2").split())
    assert desk.json("status")["nodes"][0]["refusals"][0]["remedy"] == row["remedy"]


# ---- other reasons that stop every node ----


def test_status_shows_the_reason_of_a_pause_and_the_command_that_ends_it(desk: Desk) -> None:
    waits(desk, "n1")
    desk.lock(LockContent(is_paused=True, pause_reason="storage upgrade"))
    assert (
        headline(desk)
        == "No reboot will start: a person paused the lock (storage upgrade), so n1 must wait until the pause ends. "
        "What you can do: Run `careen lock resume`."
    )


def test_status_says_that_an_unreadable_lock_stops_every_node(desk: Desk) -> None:
    waits(desk, "n1")
    desk.lock("what?")
    assert headline(desk).startswith(
        "No reboot will start: the lock cannot be understood (the text of the lock is not JSON). What you "
        "can do: Run `careen lock show`, then correct or remove the lock's annotation"
    )


def test_status_shows_the_failed_node_that_halts_the_roll_out(desk: Desk) -> None:
    waits(desk, "n1")
    desk.node("n5", "Failed", reason="never ready", label="failed", since=ago(hours=2, minutes=0.5))
    desk.lock(
        LockContent(entries=(Entry(node="n5", id="c1", created=ago(hours=3), failed="never-ready"),), max_owners=2)
    )
    said = headline(desk)
    assert said.startswith(
        "No reboot will start: n5 failed (never-ready) and keeps its claim, so the roll-out halts. The cause has "
        "lasted for 2h. What you can do: Repair n5 and run `careen retry n5`, or run `careen lock release n5`."
    )


def test_status_tells_a_halt_and_its_remedy_once(desk: Desk) -> None:
    content = LockContent(
        entries=(Entry(node="n5", id="c1", created=ago(hours=3), failed="never-ready"),), max_owners=2
    )
    desk.node("n5", "Failed", reason="not Ready in time", label="failed", since=ago(hours=2))
    sentence = halted_because(content)
    for name in ("n1", "n2"):
        waits(desk, name, refusal("halt", "halted", sentence))
    desk.lock(content)
    said = " ".join(desk.ok("status").split())
    assert (said.count(sentence), said.count("careen retry n5")) == (1, 1)
    assert "Lock: HALTED; 1 of 2 claims held by n5" in said
    assert said.count("the roll-out halts") == 3  # the sentence, and the two nodes that it holds


def test_status_shows_a_hold_that_the_agent_has_not_read_yet(desk: Desk) -> None:
    waits(desk, "n1", hold="disk swap")
    waits(desk, "n2", refusal("hold", "held", "held: disk swap"), hold="disk swap")
    desk.lock(LockContent())
    assert headline(desk).startswith(
        "No reboot will start: held: disk swap (the gate `hold` refuses all 2 waiting nodes)."
    )
    assert "`careen unhold NODE`" in headline(desk)


def test_status_outside_the_maintenance_window_shows_when_the_window_opens(desk: Desk) -> None:
    opens = (datetime.now(UTC) + timedelta(hours=5, minutes=0.5)).replace(second=0, microsecond=0)
    shuts = opens + timedelta(hours=1)
    desk.server.seed(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "careen", "namespace": "careen"},
            "data": {"config.yaml": f'start-time: "{opens:%H:%M}"\nend-time: "{shuts:%H:%M}"\ntime-zone: UTC\n'},
        }
    )
    closed = f"the maintenance window is closed: every day {opens:%H:%M}–{shuts:%H:%M} UTC"
    for name in ("n1", "n2"):
        waits(desk, name, refusal("maintenance-window", "outside-window", closed))
    desk.lock(LockContent())
    said = headline(desk)
    told = f"the next window opens at {opens:%a %Y-%m-%d %H:%M} UTC, in "
    assert f"No reboot will start: {closed}; {told}" in said
    assert "(all 2 waiting nodes)" in said
    assert "annotate the Node with careen.dev/reboot-now" in said


def test_status_shows_which_of_several_maintenance_windows_opens_first(desk: Desk) -> None:
    opens = (datetime.now(UTC) + timedelta(hours=5, minutes=0.5)).replace(second=0, microsecond=0)
    shuts = opens + timedelta(hours=1)
    desk.server.seed(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "careen", "namespace": "careen"},
            "data": {"config.yaml": f'start-time: "{opens:%H:%M}"\nend-time: "{shuts:%H:%M}"\ntime-zone: UTC\n'},
        }
    )
    for name in ("n1", "n2"):
        waits(desk, name, refusal("maintenance-window", "outside-window", f"the maintenance window is closed: {name}"))
    desk.lock(LockContent())
    told = f"the next window opens at {opens:%a %Y-%m-%d %H:%M} UTC, in "
    assert f"No reboot will start: each node is outside its own maintenance windows; {told}" in headline(desk)


def test_status_reports_a_maintenance_window_that_never_opens(desk: Desk) -> None:
    desk.server.seed(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "careen", "namespace": "careen"},
            "data": {"config.yaml": "reboot-days: []\n"},
        }
    )
    closed = "the maintenance window is closed: --reboot-days lists no day"
    waits(desk, "n1", refusal("maintenance-window", "outside-window", closed))
    desk.lock(LockContent())
    assert headline(desk).startswith(
        f"No reboot will start: {closed}; no window ever opens (n1). The cause has lasted for 3h"
    )


def test_status_reports_several_maintenance_windows_that_never_open(desk: Desk) -> None:
    desk.server.seed(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "careen", "namespace": "careen"},
            "data": {"config.yaml": "reboot-days: []\n"},
        }
    )
    for name in ("n1", "n2"):
        waits(desk, name, refusal("maintenance-window", "outside-window", f"the maintenance window is closed: {name}"))
    desk.lock(LockContent())
    told = "each node is outside its own maintenance windows; no window ever opens (all 2 waiting nodes)"
    assert headline(desk).startswith(f"No reboot will start: {told}.")


def test_status_says_that_the_next_maintenance_window_is_unknown_if_settings_are_unreadable(desk: Desk) -> None:
    waits(
        desk,
        "n1",
        refusal("maintenance-window", "outside-window", "the maintenance window is closed: mon 01:00–02:00 UTC"),
    )
    assert "; the settings could not be read, so it is unknown when a window opens" in headline(desk)


def test_status_raises_no_alarm_while_a_holder_is_at_work(desk: Desk) -> None:
    waits(desk, "n1")
    waits(desk, "n2")
    desk.node("n3", "Draining", reason="evicting 3 pods", label="in-progress", since=ago(hours=1, minutes=0.5))
    desk.lock(LockContent(entries=(Entry(node="n3", id="c1", created=ago(hours=1)),), max_owners=1))
    assert headline(desk) == ""


def test_status_orders_the_reasons_by_the_number_of_waiting_nodes(desk: Desk) -> None:
    for name in ("n1", "n2", "n3"):
        waits(desk, name, refusal("alerts", "alert", "these alerts are active: DiskFull"))
    waits(desk, "n4", refusal("blocking-pods", "blocking-pod", "shop/job runs here", hours=9))
    desk.lock(LockContent())
    said = headline(desk)
    assert said.startswith(
        "No reboot will start: these alerts are active: DiskFull (the gate `alerts` refuses 3 of 4 waiting nodes, "
        "namely n1, n2, n3); shop/job runs here (the gate `blocking-pods` refuses 1 of 4 waiting nodes, namely n4)."
    )
    assert "The cause has lasted for 3h" in said, "the last of the four nodes was refused 3 hours ago"
    assert said.index("Resolve the named alert") < said.index("Wait until the named pod is done")


@pytest.mark.parametrize("paused", [False, True])
def test_status_shows_no_headline_if_no_node_waits(desk: Desk, paused: bool) -> None:
    desk.node("n1")
    desk.lock(LockContent(is_paused=paused))
    assert headline(desk) == ""
    assert desk.json("status")["headline"] is None


def test_status_shows_no_headline_if_a_waiting_node_may_reboot(desk: Desk) -> None:
    waits(desk, "n1", refusal("blocking-pods", "blocking-pod", "shop/job runs here"))
    waits(desk, "n2")
    desk.lock(LockContent())
    assert headline(desk) == ""


def test_status_shows_why_one_node_is_refused_while_no_node_holds_a_claim(desk: Desk) -> None:
    """While no node holds a claim, `careen status` shows why the gate `forecast` refuses n1. While n4 holds a claim,
    the roll-out makes progress, so `careen status` does not show the refusal."""
    waits(desk, "n1", refused_by_spread("n1"))
    waits(desk, "n2")
    waits(desk, "n3")
    desk.lock(LockContent())
    said = headline(desk)
    assert said.startswith("No reboot has started so far: 1 of 1 pods would not find room: shop/web-1 (")
    assert (
        "(the gate `forecast` refuses 1 of 3 waiting nodes, namely n1); the gates have not checked n2, n3 yet. "
        "The cause" in said
    )
    desk.lock(LockContent(entries=(Entry(node="n4", id="c1", created=ago(hours=1)),), max_owners=2))
    assert headline(desk) == ""


@pytest.mark.parametrize(("seconds", "is_told"), [(6, False), (60, True)])
def test_status_raises_no_alarm_if_a_costly_gate_has_refused_for_a_moment(
    desk: Desk, seconds: int, is_told: bool
) -> None:
    """After a reboot the next node's budget may be used up for seconds, until the moved pods are ready."""
    sentence = "these dry-run evictions were refused: shop/web-1"
    waits(desk, "n1", refusal("dry-run-evictions", "eviction-refused", sentence, hours=seconds / 3600))
    desk.lock(LockContent())
    assert headline(desk).startswith(f"No reboot will start: {sentence}") == is_told
    assert bool(headline(desk)) == is_told


def test_status_reports_the_claim_of_a_missing_node_as_a_stray_claim(desk: Desk) -> None:
    waits(desk, "n1")
    desk.lock(LockContent(entries=(Entry(node="n9", id="c1", created=ago(hours=1)),), max_owners=1))
    assert headline(desk).startswith(
        "No further reboot will start: n1 must wait for a free claim; n9 holds the only claim: there is no Node n9."
    )
    assert "Stray claim: a claim is held by n9" in desk.ok("status")


def test_status_as_json_contains_the_headline(desk: Desk) -> None:
    row = refusal("alerts", "alert", "these alerts are active: DiskFull")
    waits(desk, "n1", row)
    desk.lock(LockContent())
    assert desk.json("status")["headline"] == {
        "code": "alert",
        "why": "No reboot will start: these alerts are active: DiskFull (the gate `alerts` refuses n1)",
        "since": row["since"],
        "waysOut": ["Resolve the named alert, or ignore it with --alert-filter-regexp."],
    }
