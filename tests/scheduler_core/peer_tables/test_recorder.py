"""The recorder renames a plugin's methods, and wraps them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scheduler_core.peer_tables.recorder.instrument import HERE, _of_entities, _wrap, instrument_queue
from tests.scheduler_core.peer_tables.recorder.record import _kept

PLUGIN = """package noop

import (
	"context"
)

type Noop struct{}

func (n *Noop) Name() string { return "Noop" }

func (n *Noop) Filter(ctx context.Context, _ fwk.CycleState, pod *v1.Pod, nodeInfo fwk.NodeInfo) *fwk.Status {
	return n.Filter2()
}

func New(_ context.Context, _ runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
	return &Noop{}, nil
}
"""


def test_a_method_and_the_constructor_are_wrapped(tmp_path: Path) -> None:
    path = tmp_path / "noop.go"
    path.write_text(PLUGIN)
    _wrap(path)
    text = path.read_text()
    assert "func (n *Noop) peerFilter(ctx context.Context" in text
    assert "func (pl *Noop) Filter(ctx context.Context, cycleState fwk.CycleState, pod *v1.Pod, nodeInfo" in text
    assert 'peertables.Dump("Filter", pl, pl.Name(), map[string]any{"pod": pod, "node": peertables.Node(' in text
    assert "func peerNew(_ context.Context" in text
    assert "p, err := peerNew(ctx, args, h)" in text
    assert '"k8s.io/kubernetes/pkg/scheduler/peertables"' in text


def test_a_file_without_such_methods_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "other.go"
    path.write_text("package other\n\nfunc Filter() {}\n")
    _wrap(path)
    assert path.read_text() == "package other\n\nfunc Filter() {}\n"


def test_a_queue_with_other_methods_is_refused(tmp_path: Path) -> None:
    queue = tmp_path / "pkg/scheduler/backend/queue/scheduling_queue.go"
    queue.parent.mkdir(parents=True)
    queue.write_text("package queue\n\nfunc (p *PriorityQueue) Add(x int) {}\n")
    with pytest.raises(ValueError, match=r"this release has no .*Update"):
        instrument_queue(tmp_path)
    assert "peerAdd" not in queue.read_text()


def test_the_queue_since_1_37_has_its_own_names() -> None:
    written = _of_entities((HERE / "peer_queue.go").read_text())
    assert "func (p *PriorityQueue) AddUnschedulablePodIfNotPresent(" in written
    assert 'peerCall(p, "AddUnschedulableIfNotPresent"' in written
    assert "PopSpecificPod" not in written


def test_a_recording_keeps_the_calls_and_the_test_of_each() -> None:
    lines = [
        "=== RUN   TestA\n",
        "=== RUN   TestA/one\n",
        "words\n",
        'PEER {"a":1}\n',
        'PEER {"plugins":[{"Name":"FakeX"}]}\n',
    ]
    assert _kept(lines) == [lines[1], lines[3], lines[4]]
    assert _kept(lines, cycles=True) == [lines[1], lines[3]]
