"""Tests `careen plan` with the live cluster, with a dump of a cluster, with the settings of the agents, and
with the report as an HTML page."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from careen.agent.clock import SystemClock
from careen.core.facts import keys
from careen.core.facts.observation import PersonRequest, RequestKind
from careen.core.facts.times import from_rfc3339
from careen.core.lock.content import LockContent
from careen.core.lock.line import Line
from careen.core.people.requests import to_annotation
from tests.careen.cli.conftest import Desk

START = ("--start", "2026-03-04T22:00:00Z")


@pytest.fixture(autouse=True)
def before_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan may not begin in the past."""
    monkeypatch.setattr(SystemClock, "now", lambda _: datetime(2026, 3, 4, 21, 30, tzinfo=UTC))


def a_node(
    name: str,
    *,
    cpu: str = "4",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    resources = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, **(labels or {})},
            "annotations": annotations or {},
        },
        "spec": spec,
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def a_replica(name: str, node: str, cpu: str = "1", owner: str = "web") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "labels": {"app": owner},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": owner,
                    "uid": f"uid-{owner}",
                    "controller": True,
                }
            ],
        },
        "spec": {
            "nodeName": node,
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}],
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


@pytest.fixture
def shop(desk: Desk) -> Desk:
    desk.server.seed(a_node("n1"), a_node("n2"), a_node("n3"), a_replica("web-1", "n1"))
    return desk


def dumped(desk: Desk, folder: Path) -> str:
    file = folder / "dump.json.gz"
    desk.ok("snapshot", "--file", str(file))
    return str(file)


def starts(plan: dict[str, Any]) -> list[tuple[str, str]]:
    return [(visit["node"], visit["start"]) for visit in plan["visits"]]


def test_plan_lists_start_and_end_and_moves_of_the_nodes_in_reboot_order(shop: Desk) -> None:
    output = shop.ok("plan", *START)
    assert output.startswith("3 of 3 nodes reboot; ")
    assert output.splitlines()[1] == "Plan for 3 nodes from Wed 2026-03-04 22:00 UTC, 1 at a time, in the order oldest."
    assert [line.split() for line in output.splitlines()[3:7]] == [
        ["NODE", "START", "(UTC)", "END", "MOVES", "NOTE"],
        ["n2", "Wed", "2026-03-04", "22:00", "22:04:30", "0", "-"],
        ["n3", "Wed", "2026-03-04", "22:04:35", "22:09:05", "0", "-"],
        ["n1", "Wed", "2026-03-04", "22:09:10", "22:13:40", "1", "-"],
    ]
    assert "3 of 3 nodes reboot; the roll-out ends Wed 2026-03-04 22:13:40 UTC, after 13m40s." in output
    assert "1 move of 1 pod" in output
    assert (
        "the plan assumes durations that no node has measured; give --drain, --settle, --boot to use your own durations"
        in output
    )


def test_plan_uses_the_agents_settings_unless_an_option_overrides_them(shop: Desk) -> None:
    shop.lock(flags=["--concurrency=2"])
    assert [start[-9:] for _, start in starts(shop.json("plan", *START))] == ["22:00:00Z", "22:00:00Z", "22:04:35Z"]
    # Three nodes at a time: the pod of the third node fits nowhere until the first node is back.
    assert [start[-9:] for _, start in starts(shop.json("plan", *START, "--set", "concurrency=3"))] == [
        "22:00:00Z",
        "22:00:00Z",
        "22:04:00Z",
    ]


def test_a_plan_does_not_move_pods_that_the_agents_selector_excludes(shop: Desk) -> None:
    """The selector in the agents' settings excludes the pod from drains. The agents do not evict this pod, so its
    disruption budget, which allows no eviction, does not block the drain."""
    shop.server.seed(
        a_replica("db-1", "n1", owner="db"),
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "db", "namespace": "shop"},
            "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "db"}}},
            # One of two pods is missing, so only the dry run of the eviction refuses.
            "status": {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 2},
        },
    )
    assert shop.run("plan", *START, "n1").exit_code == 3
    shop.lock(flags=["--drain-pod-selector=app=web"])
    plan = shop.json("plan", *START, "n1")
    assert [move["pod"] for move in plan["moves"]] == ["shop/web-1"]
    assert shop.run("plan", *START, "n1", "--set", "drain-pod-selector=app=db").exit_code == 3, (
        "the budget blocks a pod that the selector selects"
    )


def test_plan_applies_the_zone_budget_of_the_agents(desk: Desk) -> None:
    zone = "topology.kubernetes.io/zone"
    desk.server.seed(*(a_node(f"n{number}", labels={zone: "a"}) for number in range(3)))
    desk.lock(flags=["--concurrency=3", "--budget=zone=1"])
    plan = desk.json("plan", *START)
    assert plan["mostAtOnce"] == 1
    assert [(each["subject"], each["nodes"]) for each in plan["hindrances"]] == [
        ("the budget zone=a allows 1", ["n1", "n2"])
    ]


def test_plan_exits_with_3_if_the_roll_out_takes_longer_than_the_maintenance_window(shop: Desk) -> None:
    shop.lock(flags=["--start-time=22:00", "--end-time=22:08"])
    result = shop.run("plan", *START)
    assert result.exit_code == 3
    assert "The window ends at Wed 2026-03-04 22:08 UTC with 2 nodes still to reboot." in result.output
    assert (
        "3 of 3 nodes reboot; the roll-out ends Thu 2026-03-05 22:04:30 UTC, after 1d, inside a later window that "
        "closes Thu 2026-03-05 22:08 UTC." in result.output
    )


def test_plan_says_that_the_roll_out_ends_inside_the_maintenance_window(shop: Desk) -> None:
    shop.lock(flags=["--start-time=22:00", "--end-time=23:00"])
    result = shop.run("plan", *START)
    assert "after 13m40s, inside the window that closes Wed 2026-03-04 23:00 UTC." in result.output


def test_plan_shows_which_cluster_snapshot_and_settings_it_uses(shop: Desk) -> None:
    shop.lock(flags=["--concurrency=2"])
    origin = json.loads(shop.run("plan", *START, "--set", "end-time=23:00", "--output", "json").output)["origin"]
    assert origin["server"].startswith("http")
    assert origin["kubernetes"].startswith("v1.")
    assert origin["takenAt"].endswith("Z")
    assert origin["settings"]["concurrency"] == "2"
    assert origin["settings"]["end-time"] == "23:00:00"


def test_plan_uses_measured_durations_if_the_user_gives_none(desk: Desk) -> None:
    desk.server.seed(
        a_node("n1", annotations={keys.LAST_REBOOT: '{"at": "2026-01-01T00:00:00Z", "seconds": 660}'}), a_node("n2")
    )
    measured = desk.json("plan", *START)
    assert [visit["end"] for visit in measured["visits"]] == ["2026-03-04T22:11:30Z", "2026-03-04T22:23:05Z"]
    assert (
        measured["notes"][0] == "1 node of 2 measured how long the last reboot took; for the other nodes the plan uses "
        "the median of these durations"
    )
    given = desk.json("plan", *START, "--boot", "100s", "--drain", "20s", "--settle", "10s", "--handover", "0")
    assert [visit["end"] for visit in given["visits"]] == ["2026-03-04T22:02:10Z", "2026-03-04T22:04:20Z"]
    assert not any("durations" in note or "last reboot" in note for note in given["notes"])


def test_delays_in_the_agents_settings_lengthen_the_steps_of_a_plan(desk: Desk) -> None:
    desk.server.seed(a_node("n1"), a_node("n2"))
    desk.lock(flags=["--drain-delay=10s", "--reboot-delay=20s", "--lock-release-delay=40s"])
    (visit,) = desk.json("plan", *START, "n1")["visits"]
    assert [(step["step"], step["end"][-9:]) for step in visit["steps"]] == [
        ("held back", "22:00:10Z"),
        ("draining", "22:01:30Z"),
        ("rebooting", "22:04:30Z"),
        ("settling", "22:05:10Z"),
    ]


def test_plan_leaves_out_a_held_node_and_shows_the_remedy(desk: Desk) -> None:
    desk.server.seed(a_node("n1", annotations={keys.HOLD: "auditors"}), a_node("n2"))
    result = desk.run("plan", *START)
    assert result.exit_code == 3
    assert (
        "- n1 cannot reboot: held: auditors. Lift the hold with `careen unhold` when it is no longer needed."
        in result.output
    )


def test_plan_treats_a_draining_node_as_if_its_reboot_had_not_begun(desk: Desk) -> None:
    """The agent of n2 has cordoned n2 for the drain. The plan ignores this cordon. If the plan counted n2 as cordoned,
    n1 would have to wait."""
    progress = {"version": 1, "phase": "Draining", "claim": "c", "boot_left": "b", "is_cordoned_by_us": True}
    desk.server.seed(a_node("n1"), a_replica("web-1", "n1"))
    desk.node("n2", "Draining", label="in-progress", progress=progress)
    desk.server.seed(
        a_node(
            "n2",
            annotations=desk.annotations("n2"),
            unschedulable=True,
            taints=[{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}],
        )
    )
    plan = desk.json("plan", *START)
    assert [node for node, _ in starts(plan)] == ["n2", "n1"], "the order starts with n2, because n2 has no pod"
    assert "n2 is already rebooting; the plan assumes that this reboot has not begun" in plan["notes"]
    assert plan["moves"][0]["to"] == "n2"


def test_plan_of_given_nodes_contains_only_these_nodes(desk: Desk) -> None:
    desk.server.seed(a_node("n1"), a_node("n2", labels={keys.REBOOT_LABEL: "required"}), a_node("n3"))
    assert desk.json("plan", *START, "--waiting")["nodes"] == ["n2"]
    assert desk.json("plan", *START, "n3", "n1")["nodes"] == ["n3", "n1"]


def test_a_node_with_an_expired_maintenance_request_is_planned(desk: Desk) -> None:
    over = PersonRequest(kind=RequestKind.MAINTENANCE, reason="disk", until=from_rfc3339("2020-01-01T00:00:00Z"))
    labels = {keys.REBOOT_LABEL: "required"}
    desk.server.seed(a_node("n1", labels=labels, annotations={keys.REQUEST: to_annotation(over)}))
    assert desk.json("plan", *START, "--waiting")["nodes"] == ["n1"]


def test_plan_leaves_out_a_node_that_an_autoscaler_removes(desk: Desk) -> None:
    leaving = a_node("n2", labels={keys.REBOOT_LABEL: "required"})
    leaving["spec"]["taints"] = [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]
    desk.server.seed(a_node("n1", labels={keys.REBOOT_LABEL: "required"}), leaving)
    plan = desk.json("plan", *START)
    assert plan["nodes"] == ["n1"]
    assert (
        "the plan leaves out n2, because an autoscaler is removing this node; to plan such a node anyway, give its name"
        in plan["notes"]
    )
    assert desk.json("plan", *START, "--waiting")["nodes"] == ["n1"]
    assert desk.json("plan", *START, "n2")["nodes"] == ["n2"]


@pytest.mark.parametrize("until", ["", " until 2026-03-05T06:00:00Z"])
def test_plan_lists_a_node_in_maintenance_that_needs_no_reboot(desk: Desk, until: str) -> None:
    request = PersonRequest(
        kind=RequestKind.MAINTENANCE,
        reason="disk",
        until=from_rfc3339(until.removeprefix(" until ")) if until else None,
    )
    progress = {"version": 1, "phase": "Maintenance", "claim": "c", "boot_left": "b", "is_cordoned_by_us": True}
    desk.server.seed(a_node("n1", labels={keys.REBOOT_LABEL: "required"}), a_node("n3"))
    desk.node("n2", "Maintenance", label="in-progress", progress=progress)
    desk.server.seed(
        a_node(
            "n2",
            annotations={**desk.annotations("n2"), keys.REQUEST: to_annotation(request)},
            labels={keys.REBOOT_LABEL: "in-progress"},
            unschedulable=True,
        )
    )
    plan = desk.json("plan", *START)
    assert f"n2 is in maintenance{until}; the plan assumes that this node is back in service" in plan["notes"]
    assert sorted(plan["nodes"]) == ["n1", "n2", "n3"]
    assert desk.json("plan", *START, "--waiting")["nodes"] == ["n1"]


def test_plan_reports_that_nodes_wait_for_the_minimum_interval_of_the_cluster(desk: Desk) -> None:
    desk.server.seed(*(a_node(f"n{number}") for number in range(1, 4)))
    result = desk.run("plan", *START, "--set=cluster-minimum-interval=2h")
    assert result.exit_code == 0, result.output
    sentence = "The rule cluster-interval makes n2, n3 wait (the last reboot of the cluster is too recent), so a"
    assert sentence in " ".join(result.output.split())


def test_plan_assumes_that_a_paused_roll_out_is_resumed(shop: Desk) -> None:
    shop.lock(LockContent(is_paused=True))
    assert "the cluster is paused now; the plan assumes that the pause has ended" in shop.json("plan", *START)["notes"]


@pytest.mark.parametrize("order", ["zone", "fewest-moves"])
def test_plan_uses_the_order_of_the_agents_by_default(shop: Desk, order: str) -> None:
    """If a person asks for a plan in another order, the plan also names the order of the agents. The table that
    `--compare` prints marks the order of the agents."""
    shop.lock(flags=[f"--order={order}"])
    assert f"1 at a time, in the order {order}.\n" in shop.ok("plan", *START)
    assert f"order oldest (the agents use another order: --order={order})." in shop.ok(
        "plan", *START, "--order", "oldest"
    )
    assert f"order oldest (the agents use another order: --order={order})." in shop.ok(
        "plan", *START, "--set", "order=oldest"
    )
    rows = [line.split() for line in shop.ok("plan", *START, "--compare").splitlines()]
    notes = {row[0]: " ".join(row[6:]) for row in rows if row and row[0] in {"oldest", "zone", "fewest-moves"}}
    assert notes == {"oldest": "the default", "zone": "opt-in", "fewest-moves": "opt-in", order: "the agents' order"}


def test_plan_begins_with_the_waiting_nodes_in_the_order_of_the_lock(shop: Desk) -> None:
    shop.lock(LockContent(line=Line(names=("n3", "n2"), at="2026-03-04T21:59:00Z", waiting=3)))
    assert [node for node, _ in starts(shop.json("plan", *START))] == ["n3", "n2", "n1"]


def test_the_compare_flag_of_plan_shows_the_number_of_moves_in_each_order(shop: Desk) -> None:
    """n1 has waited longest, so it reboots first in the order `oldest`. Its pod moves to a node that reboots later, and
    then moves a second time. If n2 and n3 reboot first, the pod moves once."""
    for name, day in (("n1", 2), ("n2", 3), ("n3", 3)):
        need = {"version": 1, "phase": "Waiting", "need_since": f"2026-03-0{day}T00:00:00Z"}
        shop.server.seed(a_node(name, annotations={keys.PROGRESS: json.dumps(need)}))
    plan = shop.json("plan", *START, "--compare")
    assert {line: (each["moves"], each["doubleMoves"]) for line, each in plan["comparison"].items()} == {
        "oldest": (2, 1),
        "zone": (2, 1),
        "fewest-moves": (1, 0),
    }
    assert "fewest-moves   3         13m40s" in shop.ok("plan", *START, "--compare")


def test_the_compare_flag_of_plan_shows_what_half_and_twice_as_many_nodes_at_once_cost(shop: Desk) -> None:
    shop.lock(flags=["--concurrency=2"])
    plan = shop.json("plan", *START, "--compare")
    assert {most: each["reboots"] for most, each in plan["atOnce"].items()} == {"1": 3, "2": 3, "3": 3}
    assert plan["atOnce"]["1"]["seconds"] > plan["atOnce"]["2"]["seconds"] > plan["atOnce"]["3"]["seconds"]
    rows = [line.split() for line in shop.ok("plan", *START, "--compare").splitlines()]
    assert [row[0] for row in rows[rows.index(next(row for row in rows if row[:2] == ["AT", "ONCE"])) + 1 :][:3]] == [
        "1",
        "2",
        "3",
    ]


def test_a_plan_from_a_dump_equals_the_live_plan_and_lists_missing_facts(shop: Desk, tmp_path: Path) -> None:
    file = dumped(shop, tmp_path)
    live, replayed = shop.json("plan", *START), shop.json("plan", *START, "--from", file, "--kubeconfig", "/nowhere")
    for part in ("visits", "moves", "waits", "closings", "left", "figures"):
        assert live[part] == replayed[part]
    assert (
        "a dump has no annotations, so the plan does not know which nodes are held, how long their last "
        "reboots took, and "
        "since when each node needs a reboot" in replayed["notes"]
    )
    assert (
        "a dump does not contain the agents' settings, so the plan uses the defaults of the settings; --set changes a "
        "setting" in replayed["notes"]
    )


def test_a_plan_from_a_dump_starts_at_the_time_of_the_dump(shop: Desk, tmp_path: Path) -> None:
    file = Path(dumped(shop, tmp_path))
    header, *pages = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
    old = json.dumps(json.loads(header) | {"takenAt": "2025-05-06T07:08:09Z"}).encode() + b"\n"
    file.write_bytes(gzip.compress(b"".join([old, *pages])))
    plan = shop.json("plan", "--from", str(file))
    assert (plan["begins"], starts(plan)[0]) == ("2025-05-06T07:08:09Z", ("n2", "2025-05-06T07:08:09Z"))


def test_plan_shows_progress_on_a_terminal(shop: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shop.run("plan", *START).stderr == ""
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    result = shop.run("plan", *START)
    assert "order oldest" in result.stderr
    assert "3/3" in result.stderr
    assert result.stdout.startswith("3 of 3 nodes reboot")


def test_plan_changes_nothing_in_the_cluster(shop: Desk) -> None:
    shop.ok("plan", *START)
    assert shop.writes() == 0


def test_plan_says_that_a_node_is_missing_from_the_dump(shop: Desk, tmp_path: Path) -> None:
    file = str(tmp_path / "dump.json.gz")
    shop.ok("snapshot", "--file", file)
    result = shop.run("plan", "n9", "--from", file)
    assert (result.exit_code, "there is no Node 'n9' among the 3 Nodes of this dump" in result.output) == (2, True)
    pod = shop.run("explain", "shop/web-1", "--node", "n9", "--from", file)
    assert (pod.exit_code, "there is no Node 'n9' among the 3 Nodes of this dump" in pod.output) == (2, True)


def test_plan_writes_the_report_and_still_prints_the_plan(shop: Desk, tmp_path: Path) -> None:
    page = tmp_path / "plan.html"
    output = shop.ok("plan", *START, "--report", str(page))
    assert output.startswith(f"The report is in {page}.\n3 of 3 nodes reboot")
    assert page.read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param(["n9"], "there is no Node 'n9' among the 3 Nodes of this cluster", id="an unknown node"),
        pytest.param(["n1", "--waiting"], "give either names of Nodes or --waiting", id="two contradicting options"),
        pytest.param(
            ["--set", "concurrency"],
            "'concurrency' is not of the form NAME=VALUE, such as concurrency=VALUE",
            id="--set without a value",
        ),
        pytest.param(
            ["--set", "concurency=2"],
            "no setting 'concurency'; did you mean concurrency? The settings that change a plan: concurrency",
            id="an unknown setting",
        ),
        pytest.param(["--set", "concurrency=none"], "expected a whole number", id="concurrency is not a number"),
        pytest.param(["--boot", "fast"], "expected a duration such as 90s", id="--boot is not a duration"),
        pytest.param(
            ["--start", "tonight"],
            "'tonight' is not an instant with its offset, such as 2026-01-31T22:00:00Z",
            id="--start is not a time",
        ),
    ],
)
def test_plan_refuses_invalid_options_with_exit_code_2(shop: Desk, arguments: list[str], sentence: str) -> None:
    result = shop.run("plan", *arguments)
    assert (result.exit_code, sentence in " ".join(result.output.split())) == (2, True), result.output


def test_plan_refuses_an_invalid_dump_with_exit_code_2(shop: Desk, tmp_path: Path) -> None:
    nonsense = tmp_path / "nonsense"
    nonsense.write_text("kind: Pod")
    result = shop.run("plan", "--from", str(nonsense))
    assert (result.exit_code, "this is not a gzip file" in result.output) == (2, True), result.output


def test_plan_refuses_an_unreadable_scheduler_configuration_with_exit_code_2(shop: Desk, tmp_path: Path) -> None:
    nonsense = tmp_path / "scheduler.yaml"
    nonsense.write_text("kind: Nothing")
    result = shop.run("plan", "--scheduler-config", str(nonsense))
    assert (result.exit_code, str(nonsense) in result.output) == (2, True), result.output


def test_plan_lists_the_gates_that_it_cannot_foresee(shop: Desk) -> None:
    (note,) = [each for each in shop.json("plan", *START)["notes"] if "foresee" in each]
    assert note.startswith("the plan does not foresee nodes that fail, ")
    assert "alerts" not in note
    shop.lock(flags=["--prometheus-url=http://prometheus.monitoring"])
    assert "alerts" in shop.json("plan", *START)["notes"][-1]


def test_plan_prints_the_range_of_results_over_the_requested_number_of_random_seeds(desk: Desk) -> None:
    for number in range(4):
        desk.server.seed(a_node(f"n{number}"), a_replica(f"web-{number}", f"n{number}", owner=f"web-{number}"))
    asked = ("plan", "n0", "n1", *START, "--set", "prefer-no-schedule-taint=")
    ranges = desk.json(*asked, "--seeds", "9")["ranges"]
    assert (ranges["seeds"], ranges["leftToChance"]) == (9, True)
    assert ranges["moves"] == [2, 3], "the first pod may land on the node that reboots next, and then it moves again"
    assert desk.json(*asked, "--seeds", "9")["ranges"] == ranges
    assert desk.json(*asked)["ranges"]["seeds"] == 5
    assert desk.json(*asked, "--seeds", "1")["ranges"]["seeds"] == 1
    assert (
        "With 9 different seeds, the plan has 2-3 moves and 0-1 double moves, and ends Wed 2026-03-04 22:09:05 UTC."
        in desk.ok(*asked, "--seeds", "9")
    )
    assert desk.run(*asked, "--seeds", "0").exit_code == 2


def test_plan_simulates_once_if_nothing_depends_on_chance(desk: Desk) -> None:
    desk.server.seed(a_node("n1"), a_node("n2"), a_replica("web-1", "n1"))
    assert desk.json("plan", *START, "--seeds", "9")["ranges"]["seeds"] == 1
    assert "No step of the plan depends on chance" in desk.ok("plan", *START)


def test_a_live_plan_uses_the_durations_of_earlier_reboots(desk: Desk) -> None:
    def report(drain: int, settle: int) -> dict[str, str]:
        return {
            keys.LAST_REBOOT: json.dumps(
                {"at": "2026-01-01T00:00:00Z", "seconds": 120 + drain, "drainSeconds": drain, "settleSeconds": settle}
            )
        }

    desk.server.seed(a_node("n1", annotations=report(20, 4)), a_node("n2", annotations=report(30, 8)), a_node("n3"))
    made = desk.json("plan", *START, "n1")
    assert [step["end"][-9:] for step in made["visits"][0]["steps"]] == ["22:00:25Z", "22:02:25Z", "22:02:31Z"]
    assert made["notes"][:3] == [
        (
            "2 nodes of 3 measured how long the last reboot took; for the other nodes the plan uses the median of "
            "these durations"
        ),
        "--drain is 25s, the median of the durations that 2 nodes measured at the last reboot",
        "--settle is 6s, the median of the durations that 2 nodes measured at the last reboot",
    ]
    assert not any("durations that no node has measured" in note for note in made["notes"])


def test_a_plan_of_no_node_is_one_line(shop: Desk) -> None:
    assert shop.ok("plan", "--waiting") == "No node of the plan needs a reboot: there is nothing to plan.\n"


def test_a_plan_cannot_begin_in_the_past(shop: Desk) -> None:
    shop.lock()
    result = shop.run("plan", "--start", "2026-03-04T21:29:59Z")
    assert result.exit_code == 2
    assert "2026-03-04T21:29:59Z is in the past: it is now 2026-03-04T21:30:00Z" in result.output


def test_a_plan_of_no_node_has_no_notes_on_durations(shop: Desk) -> None:
    shop.lock()
    assert "durations" not in shop.ok("plan", *START, "--waiting")
    assert "durations" in shop.run("plan", *START).output


def unblocked(desk: Desk, *words: str) -> list[tuple[str, int]]:
    """The sentence and the nodes that each set of changes buys."""
    result = desk.run("plan", *START, "-o", "json", *words)
    assert result.exit_code in (0, 3), result.output
    return [(each["sentence"], each["nodes"]) for each in json.loads(result.stdout)["unblocks"]]


def test_plan_says_what_uncordoning_a_node_buys(desk: Desk) -> None:
    desk.server.seed(a_node("n1"), a_node("n2"), a_node("n3", unschedulable=True))
    desk.lock(flags=["--reboot-cordoned=false"])
    ((sentence, nodes),) = unblocked(desk, "n1", "n2")
    assert (sentence[:40], nodes) == ("uncordon n3: 2 more nodes reboot; the ro", 2)


def test_plan_says_what_one_node_more_buys(desk: Desk) -> None:
    desk.server.seed(
        a_node("n1"), a_node("n2"), *(a_replica(f"web-{each}", f"n{1 + each % 2}", cpu="1500m") for each in range(4))
    )
    desk.lock()
    ((sentence, nodes),) = unblocked(desk)
    assert sentence.startswith("add one node like n1: 2 more nodes reboot")
    assert nodes == 2


def test_plan_says_what_a_longer_window_buys(shop: Desk) -> None:
    shop.lock(flags=["--start-time=22:00", "--end-time=22:05", "--time-zone=UTC"])
    ((sentence, nodes),) = unblocked(shop)
    assert (sentence, nodes) == ("lengthen the maintenance windows by 30m: the roll-out ends 1d23h earlier", 0)


def test_plan_says_what_the_end_of_an_alert_buys(desk: Desk) -> None:
    row = {
        "gate": "alerts",
        "code": "alert",
        "sentence": "these alerts are active: DiskFull",
        "about": ["alert DiskFull"],
    }
    standing = {keys.PHASE: "Waiting", keys.REFUSALS: json.dumps([row])}
    desk.server.seed(a_node("n1", annotations=standing), a_node("n2"))
    desk.lock()
    assert unblocked(desk) == [("wait until the alert DiskFull is over: 2 more nodes reboot", 2)]
