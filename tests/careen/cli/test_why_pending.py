"""Tests `careen why-pending`: on the live cluster, on a dump, and against a running scheduler."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.careen.cli.conftest import Desk
from tests.careen.cli.test_plan import a_node
from tests.careen.cli.test_scheduler import come, holder, node_of, scheduling
from tests.cluster.harness.machines.processes import free_port
from tests.patience import wait_until


@pytest.fixture
def town(desk: Desk) -> Desk:
    namespaces = ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": n}} for n in ("shop", "kube-system"))
    desk.server.seed(*namespaces, *(a_node(f"n{number}", cpu="4") for number in range(3)))
    return desk


def test_without_a_scheduler_the_live_cluster_says_why_what_helps_and_which_events(town: Desk) -> None:
    come(town, "large", cpu=6000)
    said = town.ok("why-pending", "shop/large")
    assert "The pod shop/large has no node: 0/3 nodes are available: 3 Insufficient cpu." in said
    assert "3 nodes: Insufficient cpu (NodeResourcesFit): n0, n1, n2" in said
    assert "One of these events makes the scheduler try it earlier:" in said
    found = town.json("why-pending", "shop/large")
    assert (found["pod"], found["groups"][0]["count"], found["nextTry"]["seconds"]) == ("shop/large", 3, None)


def test_a_pod_that_no_scheduler_has_tried_is_told_so(town: Desk, tmp_path: Path) -> None:
    come(town, "web")
    untried = "No scheduler has refused it yet. Does one run for careen-scheduler?"
    assert town.ok("why-pending", "shop/web").splitlines()[1:] == [untried]
    come(town, "large", cpu=6000)
    assert untried in town.ok("why-pending", "shop/large")
    with scheduling(town, tmp_path) as (_, said):
        wait_until(lambda: "conditions" in (town.server.get("pods", "large", "shop") or {})["status"], said)
    assert untried not in town.ok("why-pending", "shop/large")


def test_a_dump_says_the_same_as_the_live_cluster(town: Desk, tmp_path: Path) -> None:
    come(town, "large", cpu=6000)
    town.ok("snapshot", "--file", str(tmp_path / "dump.gz"))
    assert town.ok("why-pending", "shop/large", "--from", str(tmp_path / "dump.gz")) == town.ok(
        "why-pending", "shop/large"
    )


def test_a_running_scheduler_also_says_where_the_pod_is_in_the_queue(town: Desk, tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with scheduling(town, tmp_path, "--why-port", str(port)) as (_, said):
        come(town, "large", "web", cpu=3000)
        come(town, "larger", cpu=6000)
        wait_until(lambda: node_of(town, "web") and 'pod="shop/larger"' in said(), said)
        asked = town.ok("why-pending", "shop/larger", "--scheduler", url)
        assert "It is waiting for an event, tried 1 time." in asked
        assert "It is tried again in" in asked
        assert f"The pod shop/web is on {node_of(town, 'web')}." in town.ok(
            "why-pending", "shop/web", "--scheduler", url
        )
        unknown = town.run("why-pending", "nobody", "--scheduler", url)
        assert (unknown.exit_code, "knows no unfinished pod default/nobody" in unknown.output) == (2, True)


def test_a_scheduler_that_waits_for_the_lease_says_so(town: Desk, tmp_path: Path) -> None:
    port = free_port()
    with scheduling(town, tmp_path, "--identity", "first") as (_, said):
        wait_until(lambda: holder(town).startswith("first_"), said)
        words = ("--identity", "second", "--why-port", str(port))
        with scheduling(town, tmp_path, *words, name="two") as (_, said_too):

            def asked() -> str:
                return town.run("why-pending", "shop/web", "--scheduler", f"http://127.0.0.1:{port}").output

            wait_until(
                lambda: "it waits for the Lease kube-system/careen-scheduler; ask the holder" in asked(), said_too
            )


def test_an_address_that_does_not_answer_is_an_error_with_the_address(town: Desk) -> None:
    nobody = town.run("why-pending", "shop/web", "--scheduler", f"http://127.0.0.1:{free_port()}")
    assert (nobody.exit_code, "did not answer" in nobody.output) == (1, True)
    wrong = town.run("why-pending", "shop/web", "--scheduler", "localhost:8041")
    assert (wrong.exit_code, "write it as http://HOST:PORT" in wrong.output) == (2, True)
