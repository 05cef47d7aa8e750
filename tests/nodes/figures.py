"""Prints the figures of `make bench-nodes`: the time from the moment when a node needs a reboot to the release of its
claim, and the cost of an idle agent.

`make bench-nodes` also runs `make image-size`, which prints the size of the image.
"""

from __future__ import annotations

import time

import pytest

from tests.nodes.harness.machine import Machine, has_unified_cgroups
from tests.nodes.harness.story import AGENT, Story
from tests.nodes.test_changes_of_form import is_asleep

pytestmark = pytest.mark.cluster

IDLE_SECONDS = 60
MIB = 2**20


def test_measure_the_time_of_a_reboot_and_the_cost_of_an_idle_agent(
    story: Story, capsys: pytest.CaptureFixture[str]
) -> None:
    story.workloads()
    begun = time.time()
    story.install()
    ready = time.time() - begun
    rows = [f"{ready:.0f} s from the apply of the manifests until every agent is Ready"]
    rows += [
        f"{machine.name}: {seconds_from_need_to_release(story, machine):.1f} s from the need of a reboot "
        "to the release of the claim"
        for machine in story.machines
    ]
    machine = story.machines[0]
    story.wait_for("the agent sleeps", lambda: is_asleep(machine), seconds=600)
    rows += idle(machine)
    with capsys.disabled():
        print("\n" + "\n".join(rows))


def seconds_from_need_to_release(story: Story, machine: Machine) -> float:
    begun = time.time()
    machine.want_reboot()
    story.wait_for(f"{machine.name} rebooted and back", lambda: story.is_home(machine))
    return time.time() - begun


def idle(machine: Machine) -> list[str]:
    """Measure memory and processor time of the agent's cgroup, as the kubelet does. Return lines of text with these
    figures.
    """
    pid = machine.run("pgrep", "--full", AGENT).split()[0]
    groups = dict(line.split(":", 2)[1:] for line in machine.run("cat", f"/proc/{pid}/cgroup").splitlines())
    read = _of_all_together if has_unified_cgroups() else _of_each_controller
    before, *_ = read(machine, groups)
    time.sleep(IDLE_SECONDS)
    after, usage, anonymous = read(machine, groups)
    used = after - before
    return [
        f"agent's cgroup: {usage / MIB:.1f} MiB, of which anonymous {anonymous / MIB:.1f}",
        f"agent idle for {IDLE_SECONDS} s: {1000 * used / IDLE_SECONDS:.1f} millicores",
    ]


def _of_each_controller(machine: Machine, groups: dict[str, str]) -> tuple[float, int, int]:
    """Read seconds of CPU, bytes of memory, and bytes of anonymous memory from cgroups of version 1."""
    memory = f"/sys/fs/cgroup/memory{_group(groups, 'memory')}"
    cpu = f"/sys/fs/cgroup/cpuacct{_group(groups, 'cpuacct')}/cpuacct.usage"
    stat = _table(machine.run("cat", f"{memory}/memory.stat"))
    return (
        int(machine.run("cat", cpu)) / 1e9,
        int(machine.run("cat", f"{memory}/memory.usage_in_bytes")),
        stat["total_rss"],
    )


def _of_all_together(machine: Machine, groups: dict[str, str]) -> tuple[float, int, int]:
    """Read seconds of CPU, bytes of memory, and bytes of anonymous memory from cgroups of version 2."""
    group = f"/sys/fs/cgroup{groups['']}"
    cpu, stat = (_table(machine.run("cat", f"{group}/{name}")) for name in ("cpu.stat", "memory.stat"))
    return cpu["usage_usec"] / 1e6, int(machine.run("cat", f"{group}/memory.current")), stat["anon"]


def _table(text: str) -> dict[str, int]:
    return {name: int(value) for name, value in map(str.split, text.splitlines())}


def _group(groups: dict[str, str], controller: str) -> str:
    """Return the path of the controller's cgroup. Controllers that are mounted together share one name with commas."""
    return next(path for names, path in groups.items() if controller in names.split(","))
