"""Tests a machine's cgroup on a computer with cgroups of version 2. Needs root and a kernel that can mount them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.architecture.source_tree import ROOT
from tests.patience import run

IN_GROUPS = ROOT / "tests" / "nodes" / "machine" / "in-groups"
SCRIPT = """\
set -eu
mount -t cgroup2 none "$1"
group=careen-tests/$$
CGROUPS=$1 "$2" "$group/m1" sh -c 'grep ^0:: /proc/self/cgroup'
echo "shared: $(cat "$1/$group/cgroup.subtree_control")"
echo "has: $(cat "$1/$group/m1/cgroup.controllers")"
echo "all: $(cat "$1/cgroup.controllers")"
rmdir "$1/$group/m1" "$1/$group"
rmdir --ignore-fail-on-non-empty "$1/careen-tests"
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_the_cgroup_of_a_machine_has_all_controllers_of_version_2(tmp_path: Path) -> None:
    mounted = tmp_path / "cgroups"
    mounted.mkdir()
    if run(["unshare", "--mount", "mount", "-t", "cgroup2", "none", str(mounted)]).returncode != 0:
        pytest.skip("this kernel mounts no cgroups of version 2 here")
    done = run(["unshare", "--mount", "bash", "-c", SCRIPT, "in-groups", str(mounted), str(IN_GROUPS)])
    assert done.returncode == 0, done.stderr
    within, *controllers = done.stdout.splitlines()
    assert within.startswith("0::/careen-tests/")
    assert within.endswith("/m1")
    shared, has, every = (line.partition(": ")[2] for line in controllers)
    assert shared == has == every
