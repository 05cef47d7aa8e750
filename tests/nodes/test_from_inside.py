"""Tests what an attacker who controls an agent can reach. The attacker is a program in the agent's real container."""

from __future__ import annotations

import json

import pytest

from tests.nodes.harness.story import Story

pytestmark = pytest.mark.cluster

# Prints which sockets of the host accept a connection, and where a file can be written; every mount is tried.
_PROBE = r"""
import glob, json, os, socket, sys
SOCKETS = ("containerd/containerd.sock", "dbus/system_bus_socket", "systemd/private", "systemd/journal/socket")
connected, written, entered = [], [], []
roots = ["/", "/host"] + glob.glob("/proc/[0-9]*/root")
for root in roots:
    for folder in ("run", "var/run"):
        for name in SOCKETS:
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                probe = socket.socket(socket.AF_UNIX, kind)
                try:
                    probe.connect(os.path.join(root, folder, name))
                    connected.append(os.path.join(root, folder, name))
                except OSError:
                    pass
                probe.close()
    try:
        if root.startswith("/proc/") and not os.path.samestat(os.stat(root + "/."), os.stat("/")):
            entered.append(os.readlink(root))
    except OSError:
        pass
mounts = [line.split()[4] for line in open("/proc/self/mountinfo")]
below = {os.path.dirname(path) for path in mounts} | set(mounts)
for top in ("/host", "/tmp", "/etc", "/opt", "/var", "/run"):
    below |= {folder for folder, _, _ in os.walk(top)}
for folder in sorted(below):
    path = os.path.join(folder, "written-from-inside")
    try:
        with open(path, "w") as file:
            file.write("x")
        os.unlink(path)
        written.append(folder)
    except OSError:
        pass
print(json.dumps({"connected": connected, "written": written, "entered": entered, "tried": len(below)}))
"""
# Mounts of every container: none is the host's, and none outlives the pod.
_OWN = {"/dev", "/dev/shm", "/dev/mqueue", "/dev/termination-log"}


def test_an_agent_that_reboots_by_a_signal_can_reach_only_the_lock_folder_of_the_host(story: Story) -> None:
    story.install("signal")
    found = json.loads(story.in_agent(story.machines[0], _PROBE))
    assert found["tried"] > 20
    assert found["connected"] == []
    assert found["entered"] == []
    assert set(found["written"]) - _OWN == {"/host/run/careen/lock"}


def test_an_agent_that_reboots_by_a_command_can_reach_the_host_only_through_process_1(story: Story) -> None:
    """`command` is the default reboot method. As SECURITY.md says, the agent is then root on the host through process
    1. The container mounts no path of the host."""
    story.install()
    found = json.loads(story.in_agent(story.machines[0], _PROBE))
    assert [path for path in found["connected"] if not path.startswith("/proc/")] == []
    assert set(found["written"]) - _OWN == set()
