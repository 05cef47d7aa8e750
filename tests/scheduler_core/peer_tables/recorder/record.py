"""Records the calls of a release's unit tests, for `make peer-tables KUBE=1.37`. Needs Go and the module proxy.

    python -m tests.scheduler_core.peer_tables.recorder.record 1.37 DIRECTORY

DIRECTORY gets a copy of the module and the tests' programs; the recordings are written beside the judges. Some half an
hour of processor time for a release of which nothing has been built yet, one package after another.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

from tests.oracle.releases import RELEASES
from tests.scheduler_core.peer_tables.recorder.instrument import instrument, instrument_queue

OUT: Final = Path(__file__).parents[1]
_PLUGINS: Final = "pkg/scheduler/framework/plugins"
# They decide nothing, or are no plugins.
_WITHOUT: Final = frozenset({"testing", "helper", "names", "feature", "defaultbinder", "queuesort"})
_PREEMPTION_KINDS: Final = "PostFilter,SelectVictimsOnNode,SelectCandidate,Hint"
_QUEUE: Final = "Queue"
_RANDOM: Final = "^TestConcurrent"  # thousands of calls, others each time
_CYCLES: Final = "Schedul|FindFit|PrioritizeNodes|ZeroRequest|FairEvaluation"
_RUN: Final = re.compile(r"=== (?:RUN|NAME|CONT)\s+(\S+)")
_LONGEST_CYCLE: Final = 20_000
_SOME_FAILED: Final = 1  # the exit code of a test program; a panic ends it with 2


def main() -> None:
    release, work = RELEASES[sys.argv[1]], Path(sys.argv[2]).absolute()
    module = work / "kubernetes"
    if not module.exists():
        copy = work / "copying"
        shutil.rmtree(copy, ignore_errors=True)  # of an interrupted run
        shutil.copytree(_downloaded(release), copy)
        for path in [copy, *copy.rglob("*")]:
            path.chmod(path.stat().st_mode | 0o200)
        instrument(copy, f"v0.{release.removeprefix('1.')}")
        instrument_queue(copy)
        copy.rename(module)
    calls: list[str] = []
    for package in sorted(each for each in (module / _PLUGINS).iterdir() if each.name not in _WITHOUT):
        if not list(package.glob("*_test.go")):
            continue
        kinds = _PREEMPTION_KINDS if package.name == "defaultpreemption" else ""
        ran = _ran(work, module, f"{_PLUGINS}/{package.name}", kinds)
        calls += _kept(ran.lines)
        if package.name == "dynamicresources":
            at = ran.began + timedelta(seconds=5)  # some claims have their device since 10 minutes, others 10 s less
    calls += _kept(_ran(work, module, "pkg/scheduler/framework/preemption", _PREEMPTION_KINDS).lines)
    calls += _kept(_ran(work, module, "pkg/scheduler", "schedulePod", "-test.run", _CYCLES).lines, cycles=True)
    _write(f"calls-{release}.txt.gz", [f"RECORDED {at:%Y-%m-%dT%H:%M:%SZ}\n", *calls])
    queue = _ran(work, module, "pkg/scheduler/backend/queue", _QUEUE, "-test.skip", _RANDOM)
    _write(f"queue-{release}.txt.gz", _queue_calls(queue.lines))


def _downloaded(release: str) -> Path:
    told = subprocess.run(
        ["go", "mod", "download", "-json", f"k8s.io/kubernetes@v{release}"], check=True, capture_output=True, text=True
    )
    return Path(json.loads(told.stdout)["Dir"])


class _Ran(NamedTuple):
    began: datetime
    lines: list[str]


def _ran(work: Path, module: Path, package: str, kinds: str, *options: str) -> _Ran:
    """The lines that the package's tests print. A test that fails, because it does not expect the wrapper, still asked
    its questions; tests that crash end the recording."""
    print(package, flush=True)
    program = work / f"{package.replace('/', '-')}.test"
    environment = {**os.environ, "GOWORK": "off", "GOFLAGS": "-mod=mod -buildvcs=false -p=2", "PEER_KINDS": kinds}
    build = ["go", "test", "-vet=off", "-ldflags=-s -w", "-c", "-o", str(program), f"./{package}"]
    subprocess.run(build, cwd=module, env=environment, check=True)
    began = datetime.now(UTC)
    told = subprocess.run(
        [str(program), "-test.v", *options],
        cwd=module / package,
        env=environment,
        check=False,
        capture_output=True,
    )
    if told.returncode not in (0, _SOME_FAILED):
        sys.exit(f"{package}: the tests crashed\n{told.stderr.decode(errors='replace')[-4000:]}")
    return _Ran(began, told.stdout.decode(errors="replace").splitlines(keepends=True))


def _kept(lines: list[str], *, cycles: bool = False) -> list[str]:
    """The calls, and the name of the test before them."""
    found: list[str] = []
    for line in lines:
        if line.startswith("PEER "):
            if not cycles or (len(line) <= _LONGEST_CYCLE and '"Name":"Fake' not in line):
                found.append(line)
        elif _RUN.match(line):
            if found and _RUN.match(found[-1]):
                found.pop()
            found.append(line)
    return found


def _queue_calls(lines: list[str]) -> Iterator[str]:
    test = ""
    for line in lines:
        if match := _RUN.match(line):
            test = match[1]
        elif line.startswith("PEER "):
            call = json.loads(line[5:])
            if not call["about"]["groups"]:  # their gate is off by default
                yield json.dumps({**call, "test": test}, sort_keys=True, separators=(",", ":")) + "\n"


def _write(name: str, lines: list[str] | Iterator[str]) -> None:
    (OUT / name).write_bytes(gzip.compress("".join(lines).encode(), mtime=0))


if __name__ == "__main__":
    main()
