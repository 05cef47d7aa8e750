"""A copy of the module k8s.io/kubernetes in which a program schedules instead of `(*Scheduler).Run`."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
_COPIED: Final = ("api", "cmd", "go.mod", "go.sum", "pkg", "plugin", "test", "third_party")
_GO_RUN: Final = re.compile(r"^(\t+)go ((?:\w+\.)*(?:Scheduler|sched))\.Run\((.*)\)$", re.MULTILINE)
_SKIP: Final = '\tif why := testCtx.Scheduler.Impossible(); why != "" {\n\t\tt.Skip(why)\n\t}\n'
_CHANGES: Final = {
    "pkg/scheduler/scheduler.go": (
        ("func (sched *Scheduler) Run(", "func (sched *Scheduler) runHere("),
        ("type Scheduler struct {\n", "type Scheduler struct {\n\texternal *external\n\n"),
        (
            "\tsched.NextPod = podQueue.Pop\n",
            "\tsched.external = newExternal(options)\n\tsched.NextPod = podQueue.Pop\n",
        ),
    ),
    # A workload that ends within two samples would have no figure.
    "test/integration/scheduler_perf/util.go": (
        ("throughputSampleInterval = time.Second", "throughputSampleInterval = 100 * time.Millisecond"),
    ),
    # It waits ten minutes for goroutines that tests leave behind.
    "test/integration/framework/goleak.go": (("timeout := 600 * time.Second", "timeout := time.Second"),),
    "test/integration/util/util.go": (
        (
            '\tif err != nil {\n\t\tt.Fatalf("Couldn\'t create scheduler: %v", err)\n\t}\n',
            '\tif err != nil {\n\t\tt.Fatalf("Couldn\'t create scheduler: %v", err)\n\t}\n' + _SKIP,
        ),
    ),
}


def module_of(release: str, work: Path) -> Path:
    """The changed copy, made once for these changes. `release`: such as 1.36.3."""
    module = work / "kubernetes"
    mark, changes = module / "changed", repr((release, _CHANGES))
    if not mark.exists() or mark.read_text() != changes:
        shutil.rmtree(module, ignore_errors=True)
        work.mkdir(parents=True, exist_ok=True)
        original = downloaded(release)
        shutil.copytree(original, module, ignore=lambda at, names: _not_copied(Path(at) == original, names))
        for path in [module, *module.rglob("*")]:
            path.chmod(path.stat().st_mode | 0o200)
        change(module, f"v0.{release.removeprefix('1.')}")
        mark.write_text(changes)
    shutil.copy(HERE / "external.go", module / "pkg/scheduler/external.go")
    return module


def _not_copied(is_root: bool, names: Iterable[str]) -> list[str]:
    return [each for each in names if each not in _COPIED] if is_root else []


def downloaded(release: str) -> Path:
    told = subprocess.run(
        ["go", "mod", "download", "-json", f"k8s.io/kubernetes@v{release}"], check=True, capture_output=True, text=True
    )
    return Path(json.loads(told.stdout)["Dir"])


def change(root: Path, staging: str) -> None:
    """`staging`: the version of the modules that k8s.io/kubernetes has as folders, such as v0.36.3."""
    go_mod = root / "go.mod"
    go_mod.write_text(re.sub(r"=> \./staging/src/(k8s\.io/\S+)", rf"=> \1 {staging}", go_mod.read_text()))
    for each in ("go.work", "go.work.sum"):
        (root / each).unlink(missing_ok=True)
    for name, changes in _CHANGES.items():
        path = root / name
        text = path.read_text()
        for old, new in changes:
            if old not in text:
                raise ValueError(f"{name} of this release has no {old!r}")
            text = text.replace(old, new, 1)
        path.write_text(text)
    for path in sorted((root / "test/integration").rglob("*.go")):
        text = path.read_text()
        if (changed := waiting(text)) != text:
            path.write_text(changed)


def waiting(text: str) -> str:
    """Tests start the scheduler and go on at once; here they wait until the program has listed everything."""
    return _GO_RUN.sub(r"\1go \2.Run(\3)\n\1\2.Started()", text)
