"""Tests agent processes that are suspended for a minute. When they resume, they know only an old cluster state."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from tests.cluster.harness.machines.hosts import Host
from tests.cluster.harness.machines.proxy import Answer, Call
from tests.cluster.harness.story import Story
from tests.cluster.harness.workloads import deployment

pytestmark = pytest.mark.cluster

FROZEN_SECONDS = 65.0  # longer than any read on which an agent may base a step


class Freezer:
    """A proxy rule that suspends a host's agent after the server has executed a certain request, and before the agent
    gets the response.
    """

    def __init__(self, story: Story, host: Host, moment: Callable[[Call], bool]) -> None:
        self.frozen_at: float | None = None
        self._story, self._host, self._moment = story, host, moment

    def __call__(self, call: Call, forward: Callable[[], Answer]) -> Answer | None:
        if self.frozen_at is not None or not self._moment(call):
            return None
        self.frozen_at = time.monotonic()
        answer = forward()
        self._story.the_fleet().freeze_agent(self._host)
        threading.Timer(FROZEN_SECONDS, self._story.the_fleet().thaw_agent, [self._host]).start()
        return answer

    @property
    def is_frozen(self) -> bool:
        return self.frozen_at is not None

    @property
    def is_thawed(self) -> bool:
        return self.frozen_at is not None and time.monotonic() > self.frozen_at + FROZEN_SECONDS


def claims(host: Host) -> Callable[[Call], bool]:
    """Return a function that says whether a call writes the phase Claiming on the Node. The agent has read the lock
    some time before this call."""
    return lambda call: call.is_patch_of_node(host.name) and call.annotations.get("careen.dev/phase") == "Claiming"


def evicts(host: Host) -> Callable[[Call], bool]:
    return lambda call: call.is_eviction()


def confirms(host: Host) -> Callable[[Call], bool]:
    """Return a function that says whether a call is the agent's last read of the lock before the reboot. Before this
    call, the agent has announced the reboot on the Node. After this call, the agent sends the reboot command.
    """
    is_announced = False

    def moment(call: Call) -> bool:
        nonlocal is_announced
        if call.is_patch_of_node(host.name) and call.annotations.get("careen.dev/phase") == "Rebooting":
            is_announced = True
        return is_announced and call.method == "GET" and call.path.endswith("/daemonsets/careen")

    return moment


def test_agents_that_were_suspended_in_any_phase_break_no_rule_when_they_resume(story: Story) -> None:
    """Three agents are suspended at the same time, each in another phase. Meanwhile a person puts a hold on the node
    that was about to reboot, so this node must not reboot.
    """
    hosts = story.nodes(4, "--concurrency=3", change=story.behind_proxy)
    story.workloads(deployment("web", 8))
    moments: list[Callable[[Host], Callable[[Call], bool]]] = [claims, evicts, confirms]
    freezers: dict[str, Freezer] = {}
    for host, moment in zip(hosts, moments, strict=False):
        freezers[host.name] = story.proxies[host.name].rule = Freezer(story, host, moment(host))
    story.need_reboot(hosts)
    claimer, drainer, rebooter, _ = hosts
    story.wait_for("they are frozen", lambda: all(each.is_frozen for each in freezers.values()), 90)
    story.annotate_node(rebooter, "careen.dev/hold", "a fan is being replaced")
    story.wait_for("they are thawed", lambda: all(each.is_thawed for each in freezers.values()), FROZEN_SECONDS + 30)
    story.wait_for(
        "the agent of the held node has read the hold",
        lambda: story.phase(rebooter) == "Waiting" and not story.state(rebooter).unschedulable,
        60,
    )
    assert not rebooter.reboots
    story.finishes_one(claimer, 120)
    story.finishes_one(drainer, 120)
    assert not rebooter.reboots
    story.annotate_node(rebooter, "careen.dev/hold", None)
    story.finishes(hosts)
    story.judge(concurrency=3)
    assert [len(host.reboots) for host in hosts] == [1] * 4
