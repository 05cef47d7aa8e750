from __future__ import annotations

from careen.core.facts import keys
from tests.careen.cli.conftest import Desk


def test_history_prints_the_reboots_of_all_nodes_or_of_one_node(desk: Desk) -> None:
    desk.lock()
    desk.node(
        "n1", annotations={keys.HISTORY: '[{"at":"2026-03-03T12:00:00Z","why":"kernel","seconds":300,"moves":7}]'}
    )
    desk.node("n2", annotations={keys.HISTORY: '[{"at":"2026-03-04T12:00:00Z"}]'})
    assert [each["node"] for each in desk.json("history")["reboots"]] == ["n2", "n1"]
    assert desk.json("history", "n1")["reboots"] == [
        {"node": "n1", "at": "2026-03-03T12:00:00Z", "why": "kernel", "seconds": 300, "moves": 7}
    ]
    assert "2026-03-03 12:00:00 UTC" in desk.ok("history", "n1")


def test_history_refuses_a_node_that_does_not_exist(desk: Desk) -> None:
    desk.lock()
    desk.node("worker-1")
    result = desk.run("history", "worker-2")
    assert (result.exit_code, "did you mean worker-1?" in result.output) == (2, True)


def test_status_lists_reboots_in_progress_below_its_table(desk: Desk) -> None:
    desk.lock()
    record = {
        "version": 1,
        "phase": "Rebooting",
        "claim": "c",
        "boot_left": "b",
        "drain_started_at": "2026-03-04T12:00:00Z",
    }
    desk.node(
        "n1",
        "Rebooting",
        progress=record,
        annotations={keys.LAST_REBOOT: '{"at":"2026-03-01T12:00:00Z","seconds":300}'},
    )
    assert (
        "it should have been over at 2026-03-04 12:05:00 UTC (estimated duration: 5m, based on its last reboot)."
        in desk.ok("status")
    )
    assert desk.json("status")["nodes"][0]["expected"] == {
        "started": "2026-03-04T12:00:00Z",
        "seconds": 300,
        "end": "2026-03-04T12:05:00Z",
        "basis": "its last reboot",
    }
