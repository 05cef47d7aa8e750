"""Which integration tests kube-scheduler has, and which of them start no scheduler that could be another program."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

ROOT: Final = "test/integration/scheduler"
VOLUMES: Final = "volumescheduling"
"""Beside the scheduler's packages: the tests of VolumeBinding, with Kubernetes' own controller of volumes."""
PACKAGES: Final = (
    *("filters", "scoring", "preemption", "preemption/misc", "preemption/nominatednodename", ".", "queueing"),
    *("queueing/queueinghint", "nominated_node_name", "taint", "eventhandler", "bind", "extender"),
    VOLUMES,
)
IN_GO: Final = {
    "plugins": "plugins in Go",
    "podgroup": "groups of pods: an alpha gate",
    "podgroup/topology_aware_scheduling": "groups of pods: an alpha gate",
    "batch": "counts the batches of the Go process",
    "serving": "asks the endpoints of the Go process",
}
"""Packages none of whose tests can have another scheduler: they are not built."""
IN_PART: Final = {
    "preemption": ("TestPreemption/.*[fF]ilter", "TestPreemption/…filter…", "a filter in Go decides"),
}
"""Stories that are left out (a pattern of Go's -test.skip), how they are listed, and why."""
_FUNCTION: Final = re.compile(r"^func (?:\([^)]*\) )?(\w+)\(.*?^}", re.MULTILINE | re.DOTALL)
_INSIDE: Final = {
    "calls ScheduleOne of the Go process": re.compile(r"\.ScheduleOne\("),
    "takes pods from the queue of the Go process": re.compile(r"NextPodOrDie\(|\.NextPod = "),
    "calls plugins of the Go process": re.compile(r"\.RunBindPlugins\("),
    "invents a node's feature in the Go process": re.compile(r"\.SetFrameworkDuringTest\("),
}


def path_of(package: str) -> str:
    """In the module."""
    return f"test/integration/{VOLUMES}" if package == VOLUMES else f"{ROOT}/{package}".removesuffix("/.")


def listed(package: Path) -> dict[str, str]:
    """Each test of the package, with the reason why no other program can do it, or ""."""
    bodies = {
        match[1]: match[0] for path in sorted(package.glob("*.go")) for match in _FUNCTION.finditer(path.read_text())
    }
    for path in sorted(package.parent.glob("*.go")):  # a package's tests may call its parent's
        for match in _FUNCTION.finditer(path.read_text()):
            bodies.setdefault(f"{package.parent.name}.{match[1]}", match[0])
    return {name: _inside(name, bodies, set()) for name in bodies if name.startswith("Test") and name != "TestMain"}


def _inside(name: str, bodies: dict[str, str], seen: set[str]) -> str:
    seen.add(name)
    body = bodies[name]
    for reason, pattern in _INSIDE.items():
        if pattern.search(body):
            return reason
    called = {each for each in re.findall(r"(?<![\w.])((?:\w+\.)?\w+)\(", body) if each in bodies}
    return next(filter(None, (_inside(each, bodies, seen) for each in sorted(called - seen))), "")
