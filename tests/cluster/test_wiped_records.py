"""Tests careen's records (annotations with the progress of a Node's reboot) that are removed or corrupted, with and
without a running agent. careen still removes its taints, labels and annotations.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cluster.harness.machines.hosts import Host
from tests.cluster.harness.story import Story
from tests.cluster.harness.workloads import deployment, on_node

pytestmark = pytest.mark.cluster

RECORD = "careen.dev/progress"


def wait_tainted(story: Story, hosts: list[Host]) -> None:
    for host in hosts:
        story.annotate_node(host, "careen.dev/hold", "wait")
    story.need_reboot(hosts)
    story.wait_for(
        "they wait, tainted", lambda: all(story.phase(host) == "Waiting" and story.is_tainted(host) for host in hosts)
    )


def test_careen_removes_its_taint_from_a_node_without_a_valid_record_once_no_reboot_is_needed(story: Story) -> None:
    """The nodes no longer need a reboot. The test removes one record and corrupts another record while the agents of
    both nodes run. It removes a third record while the node has no agent.
    """
    wiped, spoilt, alone = hosts = story.nodes(3)
    foreign = {"key": "example.com/theirs", "effect": "PreferNoSchedule"}
    story.admin.patch(f"/api/v1/nodes/{wiped.name}", {"spec": {"taints": [foreign]}})
    wait_tainted(story, hosts)
    alone.agent_wanted = False
    story.wait_for("the third node has no agent", lambda: alone.agent is None)
    for host in hosts:
        host.withdraw()
    story.annotate_node(wiped, RECORD, None)
    story.annotate_node(spoilt, RECORD, '{"version": 1, "phase": "Wai')
    marks = [key for key in story.state(alone).annotations if key.startswith("careen.dev/")]
    story.admin.patch(
        f"/api/v1/nodes/{alone.name}",
        {"metadata": {"annotations": dict.fromkeys(marks), "labels": {"careen.dev/reboot": None}}},
    )
    story.start_agents()
    story.annotate_node(wiped, "careen.dev/hold", None)
    story.wait_for(
        "no mark of careen is left on the two nodes whose records were removed",
        lambda: story.is_home(wiped) and story.is_home(alone),
        60,
    )
    assert ("example.com/theirs", "PreferNoSchedule") in story.state(wiped).taints
    story.annotate_node(spoilt, RECORD, None)  # a person has to remove an unreadable record
    story.wait_for(
        "no mark of careen is left on the node whose record was corrupted", lambda: story.is_home(spoilt), 60
    )
    assert not any(host.reboots for host in hosts)
    story.judge()


def test_the_roll_out_continues_after_a_draining_node_loses_its_record(story: Story) -> None:
    hosts = story.nodes(2)
    story.workloads(deployment("slow", 3, stop_seconds=6, **on_node(hosts[0].name)))
    story.need_reboot(hosts[:1])
    story.reaches(hosts[0], "Draining")
    story.wait_for(
        "evictions are under way",
        lambda: any(life.deleting_at for life in story.observer.pods() if life.node == hosts[0].name),
    )
    story.annotate_node(hosts[0], RECORD, None)
    hosts[1].ask_for_reboot()
    story.finishes(hosts, 180)
    story.judge()
    story.is_clean(hosts)
    assert [len(host.reboots) for host in hosts] == [1, 1]


def changed(story: Story, host: Host, **fields: Any) -> str:
    """Return the record of the node's progress with these fields changed."""
    return json.dumps({**json.loads(story.state(host).annotations[RECORD]), **fields})


def test_invalid_annotations_on_one_node_do_not_stop_reboots_of_other_nodes(story: Story) -> None:
    """The annotations contain an uptime of 400 digits, times before the year 1 and after the year 9999, an invalid
    forecast and an invalid lock.
    """
    huge, early, late, deep, *others = hosts = story.nodes(6)
    poisoned = hosts[:4]
    wait_tainted(story, poisoned)
    mark = {"boot": huge.boot_id, "uptime": 10**399}
    story.annotate_node(huge, RECORD, changed(story, huge, claimed=mark, announced=mark, reboots_for_need=10**399))
    instant = "0001-01-01T00:00:00+23:59"
    refusal = {"gate": "hold", "code": "held", "sentence": "wait", "since": instant}
    story.annotate_node(early, "careen.dev/refusals", json.dumps([refusal]))
    story.annotate_node(early, "careen.dev/since", instant)
    story.annotate_node(
        late,
        "careen.dev/last-reboot",
        json.dumps({"at": "9999-12-31T23:59:59-23:59", "seconds": 1e308, "moves": -(10**399)}),
    )
    story.annotate_node(late, "careen.dev/hold", "wait until=9999-12-31T23:59:59-23:59")
    story.annotate_node(deep, RECORD, "[" * 50_000)
    story.annotate_node(deep, "careen.dev/moves", "9" * 5_000)
    story.need_reboot(others)
    story.finishes(others, 120)
    for host in hosts:
        turns = [
            line
            for line in story.metrics(host).splitlines()
            if line.startswith("careen_turns_total") and 'end="broken"' in line
        ]
        assert not [line for line in turns if not line.endswith(" 0.0")], f"a turn of {host.name} failed"
    assert not any(host.reboots for host in poisoned), "they are held"
    for host in poisoned:
        keys = [
            RECORD,
            "careen.dev/refusals",
            "careen.dev/last-reboot",
            "careen.dev/since",
            "careen.dev/moves",
            "careen.dev/hold",
        ]
        host.withdraw()
        story.admin.patch(f"/api/v1/nodes/{host.name}", {"metadata": {"annotations": dict.fromkeys(keys)}})
    story.wait_for("no mark of careen is left on the nodes", lambda: all(story.is_home(host) for host in poisoned), 90)
    story.judge()
