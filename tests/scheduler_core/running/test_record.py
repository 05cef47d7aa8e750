"""Tests that a record gives the same commands again, and what `python -m scheduler_core replay` shows of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule

from scheduler_core.__main__ import main
from scheduler_core.cache.events import Sync
from scheduler_core.config.configuration import Configuration
from scheduler_core.cycle import Scheduler
from scheduler_core.extenders.protocol import ExtenderError
from scheduler_core.framework.verdict import Verdict, VerdictCode
from scheduler_core.running.machine import Machine
from scheduler_core.running.record.lines import command_line
from scheduler_core.running.record.recorder import Recorder
from scheduler_core.running.record.replay import Replay
from scheduler_core.running.waiting.permits import WaitingPods
from tests.scheduler_core.running.recorded_world import RecordedWorld, replayed
from tests.scheduler_core.running.test_machine_laws import AnyInterleaving
from tests.scheduler_core.running.world import SCHEDULER, node
from tests.scheduler_core.state_machines import play

Run = Any


class AnyRecordedInterleaving(AnyInterleaving):
    world: RecordedWorld

    def __init__(self) -> None:
        super().__init__()
        self.world = RecordedWorld()

    @rule(steps=st.integers(1, 3))
    def watch_line_arrives_as_text(self, steps: int) -> None:
        for event in self.world.backlog[:steps]:
            self.world.collect(self.world.machine.take(json.dumps(event, indent=1).encode(), self.world.now))
        del self.world.backlog[:steps]

    def teardown(self) -> None:
        super().teardown()
        for record, commanded in zip(self.world.records, self.world.commanded, strict=True):
            assert replayed(record) == commanded


def test_the_record_of_any_interleaving_gives_the_same_commands() -> None:
    play(AnyRecordedInterleaving, examples=int(os.environ.get("MACHINE_EXAMPLES", "20")), steps=60)


# ---- what reaches the machine by other ways ----


def test_the_answers_of_extenders_are_part_of_the_record() -> None:
    class Moody:
        def __init__(self) -> None:
            self.asked = 0

        def post(self, _verb: str, _body: bytes) -> bytes:
            self.asked += 1
            if self.asked == 1:
                raise ExtenderError("not now")
            return json.dumps({"NodeNames": ["n2"]}).encode()

    config = {"extenders": [{"urlPrefix": "http://x", "filterVerb": "filter", "nodeCacheCapable": True}]}
    record: list[bytes] = []
    recorder = Recorder(record.append)
    moody = Moody()
    connect = recorder.transport(lambda _settings: moody)
    world = RecordedWorld(
        recorder, config=config, scheduler=Scheduler(Configuration.from_mapping(config), transport=connect)
    )
    for name in ("n1", "n2", "n3"):
        world.create_node(name)
    world.create_pod("a")
    world.settle(20)
    assert (world.node_of("a"), moody.asked) == ("n2", 2)
    assert replayed(record) == world.commanded[0]


def test_what_permit_plugins_decide_between_calls_is_part_of_the_record() -> None:
    class Gang:
        name = "Gang"

        def permit(self, _state: object, _pod: object, _node: str) -> Verdict:
            return Verdict(VerdictCode.WAIT)

        def events(self) -> tuple[()]:
            return ()

    config = {"profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "Gang"}]}}}]}
    plugins = {"Gang": lambda _args, _version: Gang()}
    permits = WaitingPods()
    scheduler = Scheduler(Configuration.from_mapping(config), plugins=plugins)
    world = RecordedWorld(config=config, scheduler=scheduler, permits=permits)
    world.create_node("n1")
    uids = [world.create_pod(name) for name in "abc"]
    world.deliver()
    world.run(5)
    permits.allow(uids[0], "Gang")
    permits.reject(uids[1], "Gang", "too few")
    world.wait(1)
    world.collect(world.machine.allow(uids[2], "Gang", world.now))
    world.settle(20)
    assert (world.node_of("a"), world.node_of("b"), world.node_of("c")) == ("n1", "", "n1")
    assert replayed(world.records[0], plugins=plugins) == world.commanded[0]


def test_a_list_whose_pages_end_early_deletes_nothing_and_is_not_complete_in_the_replay_either() -> None:
    def pages() -> Iterator[bytes]:
        yield json.dumps({"items": [node("n1")]}).encode()
        raise OSError("connection reset")

    world = RecordedWorld()
    for name in ("n1", "n2"):
        world.create_node(name)
    world.deliver()
    for broken in (pages(), iter([b'{"items": [}'])):
        world.collect(world.machine.take(Sync("Node", broken), world.now))
        with pytest.raises((OSError, ValueError)):
            apply_list(world, "Node")
        assert not world.machine.is_listing("Node")
    world.create_pod("a")
    world.settle(20)
    replay = Replay(world.records[0])
    assert [each for told in replay.calls() for each in told.commands] != []
    for machine in (world.machine, replay.machine):
        assert machine.parts.cache.snapshot().node_names == ("n1", "n2")


def apply_list(world: RecordedWorld, kind: str) -> None:
    while world.machine.is_listing(kind):
        world.collect(world.machine.next(world.now))


def test_scheduling_goes_on_while_a_page_of_a_later_list_has_not_arrived_in_the_replay_too() -> None:
    world = RecordedWorld()
    for name in ("n1", "n2"):
        world.create_node(name)
    world.create_pod("a")
    world.settle(20)
    arrived = [json.dumps({"items": [node("n1")]}).encode()]
    is_over = False

    def pages() -> Iterator[bytes]:
        while arrived:
            yield arrived.pop()

    machine = world.machine
    world.collect(machine.take(Sync("Node", pages(), lambda: bool(arrived) or is_over), world.now))
    world.collect(machine.next(world.now))
    assert (machine.is_listing("Node"), machine.has_work) == (True, False)
    world.create_pod("b")
    world.settle(20)
    assert world.node_of("b") != ""
    assert machine.is_listing("Node")
    is_over = True
    apply_list(world, "Node")
    replay = Replay(world.records[0])
    assert [command_line(told.at, each) for told in replay.calls() for each in told.commands] == world.commanded[0]
    for each in (machine, replay.machine):
        assert each.parts.cache.snapshot().node_names == ("n1",)


def test_no_pod_is_placed_after_a_first_list_that_could_not_be_read() -> None:
    def broken() -> Iterator[bytes]:
        raise OSError("connection reset")
        yield b""

    machine = Machine(SCHEDULER)
    machine.take({"kind": "PodList", "apiVersion": "v1", "items": []}, 0.0)
    machine.take({"type": "ADDED", "object": node("n1")}, 0.0)
    machine.take(Sync("Node", broken()), 0.0)
    with pytest.raises(OSError, match="connection reset"):
        machine.next(0.0)
    world = RecordedWorld()
    world.create_pod("a")
    machine.take(world.backlog[0], 0.0)
    assert (machine.has_work, machine.next(0.0)) == (False, ())


# ---- the command ----


@pytest.fixture
def world() -> RecordedWorld:
    """Two pods are placed, a third fits nowhere."""
    world = RecordedWorld()
    for name in ("n1", "n2"):
        world.create_node(name)
    for name, cpu in (("a", 1), ("b", 2), ("big", 9)):
        world.wait(1)
        world.create_pod(name, cpu)
        world.settle(20)
    return world


@pytest.fixture
def file(world: RecordedWorld, tmp_path: Path) -> Path:
    path = tmp_path / "record"
    path.write_bytes(b"".join(world.records[0]))
    return path


def printed(capfd: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capfd.readouterr().out.splitlines()]


def test_another_process_prints_the_same_commands_byte_for_byte(world: RecordedWorld, file: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "scheduler_core", "replay", str(file)],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "7"},
    )
    assert (done.stdout, done.stderr) == (b"".join(world.commanded[0]), b"")


@pytest.mark.parametrize("until", ["1021.5", "2026-11-18T11:23:41.500000+00:00"])
def test_the_replay_stops_at_a_time_of_the_record_or_of_the_day(until: str, file: Path, capfd: Run) -> None:
    assert main(["replay", str(file), "--until", until]) == 0
    assert [each["pod"] for each in printed(capfd) if each["command"] == "Bind"] == ["default/a"]


def test_the_decisions_about_a_pod_are_shown_and_the_last_one_is_explained(file: Path, capfd: Run) -> None:
    assert main(["replay", str(file), "--at", "default/big", "--explain"]) == 0
    *_, last = printed(capfd)
    assert (last["pod"], last["node"]) == ("default/big", None)
    assert last["sentence"].startswith("0/2 nodes are available")
    assert last["answer"]["nodes"]["n1"]["plugin"] == "NodeResourcesFit"
    assert main(["replay", str(file), "--at", "b"]) == 0
    (only,) = printed(capfd)
    assert (only["pod"], "answer" in only, only["epoch"]) == ("default/b", False, 1_795_000_000.0 + only["at"])


def test_another_configuration_decides_about_the_same_pods(file: Path, tmp_path: Path, capfd: Run) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(
        """
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
  plugins: {score: {disabled: [{name: NodeResourcesBalancedAllocation}]}}
"""
    )
    assert main(["replay", str(file), "--with-config", str(other)]) == 0
    decisions = {each["pod"]: each for each in printed(capfd)}
    assert {pod: each["differs"] for pod, each in decisions.items()} == {
        "default/a": False,
        "default/b": True,
        "default/big": False,
    }
    assert decisions["default/b"]["node"] != decisions["default/a"]["node"]
    assert decisions["default/b"]["other"]["node"] == decisions["default/a"]["node"]


def test_a_pod_without_a_decision_is_named(file: Path, capfd: Run) -> None:
    assert main(["replay", str(file), "--at", "shop/web"]) == 1
    assert "no decision about pod shop/web" in capfd.readouterr().err


def test_a_replay_that_commands_something_else_ends_with_1(file: Path, capfd: Run) -> None:
    lines = file.read_bytes().replace(b'"cpu":"2"', b'"cpu":"9"')
    file.write_bytes(lines)
    assert main(["replay", str(file)]) == 1
    assert "the machine commands something else than in the record" in capfd.readouterr().err


HEADER = b'{"do":"record","format":1,"library":"1","kube_version":"1.36","awaits":["Node"]}\n'
ANSWERED = b'{"do":"answered","at":1,"name":"NAME","command":{},"outcome":{"code":1}}\n'


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "the record is empty"),
        (b"\x1f\x8b\x08\x00\xff\n", "not a line of a record"),
        (b'{"do":"tick","at":1}\n', "line 1: a record begins with its header"),
        (HEADER.replace(b'"format":1', b'"format":2'), "format 2 is unknown"),
        (HEADER.replace(b"1.36", b"1.99"), "1.99"),
        (HEADER.replace(b'"awaits"', b'"config":{"profiles":7},"awaits"'), "profiles"),
        (HEADER + HEADER, "line 2: a second record begins here"),
        (HEADER + b'{"do":"tick","at":1}\n{"do":"ti', "line 3: the line is cut off"),
        (HEADER + b'{"do":"dance","at":1}\n', "line 2: not a line of a record"),
        (HEADER + b'{"do":"tick","at":"noon"}\n', "line 2: not a line of a record"),
        (HEADER + b'{"do":"take","at":1,"event":{"type":"ERROR"}}\n', "line 2: the machine cannot use it"),
        (
            HEADER + b'{"do":"list","at":1,"kind":"Node","list":1}\n{"do":"next","at":1}\n',
            "a page of list 1 is missing",
        ),
        (
            HEADER + b'{"do":"answered","at":1,"name":"Note","command":{},"outcome":{"code":1}}\n',
            "'Note' is no command",
        ),
        (HEADER + b'{"do":"answered","at":1,"name":"Bind","command":{},"outcome":{"code":1}}\n', "line 2"),
        (HEADER + b'{"do":"extender","extender":0}\n', "no extender 0"),
    ],
)
def test_a_damaged_record_is_refused_with_2_and_the_line(
    content: bytes, problem: str, tmp_path: Path, capfd: Run
) -> None:
    path = tmp_path / "record"
    path.write_bytes(content)
    assert main(["replay", str(path)]) == 2
    assert problem in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--with-config", "{missing}"], "No such file"),
        (["--with-config", "{text}"], "neither JSON nor YAML"),
        (["--with-config", "{extender}"], "a replay cannot ask them"),
        (["--until", "yesterday"], "invalid"),
        (["--until", "2026-11-18T11:23:42"], "invalid"),
        (["--explain"], "--explain needs --at POD"),
    ],
)
def test_arguments_that_cannot_be_used_end_with_2(
    arguments: list[str], problem: str, file: Path, tmp_path: Path, capfd: Run
) -> None:
    (tmp_path / "text").write_text("- {")
    (tmp_path / "extender").write_text('{"extenders": [{"urlPrefix": "http://x", "filterVerb": "filter"}]}')
    words = [each.format(**{name: tmp_path / name for name in ("missing", "text", "extender")}) for each in arguments]
    try:
        code: object = main(["replay", str(file), *words])
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    assert problem in capfd.readouterr().err


def test_a_missing_record_is_refused_with_2(tmp_path: Path, capfd: Run) -> None:
    assert main(["replay", str(tmp_path / "none")]) == 2
    assert "No such file" in capfd.readouterr().err
