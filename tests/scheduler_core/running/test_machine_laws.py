"""Tests the laws of the machine after any interleaving of events, answers, losses, crashes and ticks."""

from __future__ import annotations

import os

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.scheduler_core.plugins.asking import using
from tests.scheduler_core.running.world import FAULTS, World
from tests.scheduler_core.state_machines import play

NODES = ("n1", "n2", "n3")
CLAIMS = ("make-1", "make-2", "wait-1", "wait-2")
NAMES = tuple(f"{letter}{number}" for letter in "ab" for number in range(6))


class AnyInterleaving(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.world.create_storage()

    @rule(name=st.sampled_from(NODES), cpu=st.integers(2, 6))
    def node_comes_or_grows(self, name: str, cpu: int) -> None:
        held = self.world.objects.get(("Node", name))
        if held is None:
            self.world.create_node(name, cpu)
        elif cpu > int(held["status"]["allocatable"]["cpu"]):
            held["status"]["allocatable"]["cpu"] = str(cpu)
            self.world.put(held)

    @rule(
        name=st.sampled_from(NAMES),
        cpu=st.integers(1, 3),
        priority=st.sampled_from((0, 0, 10)),
        spec=st.sampled_from(
            ({}, {}, {}, {"schedulingGroup": {"podGroupName": "g"}}, {"schedulingGates": [{"name": "g"}]})
        ),
    )
    def pod_comes(self, name: str, cpu: int, priority: int, spec: dict[str, object]) -> None:
        if self.world.pod(name) is None:
            self.world.create_pod(name, cpu, priority, **spec)

    @rule(name=st.sampled_from(NAMES), claims=st.sets(st.sampled_from(CLAIMS), min_size=1, max_size=2))
    def pod_with_volumes_comes(self, name: str, claims: set[str]) -> None:
        for claim in claims:
            if ("PersistentVolumeClaim", claim) not in self.world.objects:
                self.world.create_claim(claim, of=claim.partition("-")[0])
        if self.world.pod(name) is None:
            self.world.create_pod(name, 1, volumes=using(*sorted(claims)))

    @rule(number=st.integers(1, 3), node=st.sampled_from((None, *NODES)))
    def volume_comes(self, number: int, node: str | None) -> None:
        if ("PersistentVolume", f"v{number}") not in self.world.objects:
            self.world.create_volume(f"v{number}", node)

    @rule(claim=st.sampled_from(CLAIMS))
    def unused_claim_goes(self, claim: str) -> None:
        if not any(claim in repr(pod["spec"].get("volumes")) for pod in self.world.pods()):
            self.world.remove("PersistentVolumeClaim", claim)

    @rule(can_provision=st.booleans())
    def volume_controllers_work(self, can_provision: bool) -> None:
        self.world.volumes_work(can_provision=can_provision)

    @rule(name=st.sampled_from(NAMES))
    def pod_goes(self, name: str) -> None:
        self.world.remove("Pod", name)

    @rule(name=st.sampled_from(NAMES), cpu=st.integers(1, 3))
    def pod_is_created_again(self, name: str, cpu: int) -> None:
        self.world.remove("Pod", name)
        self.world.create_pod(name, cpu)

    @rule(name=st.sampled_from(NAMES))
    def pod_is_being_deleted(self, name: str) -> None:
        held = self.world.pod(name)
        if held is not None and "deletionTimestamp" not in held["metadata"]:
            held["metadata"]["deletionTimestamp"] = "2026-11-27T00:00:00Z"
            self.world.put(held)

    @rule(name=st.sampled_from(NAMES))
    def gates_are_removed(self, name: str) -> None:
        held = self.world.pod(name)
        if held is not None and held["spec"].pop("schedulingGates", None):
            self.world.put(held)

    @rule()
    def kubelets_end_pods(self) -> None:
        self.world.end_terminating()

    @rule(count=st.integers(1, 8))
    def watch_tells(self, count: int) -> None:
        self.world.deliver(count)

    @rule()
    def watch_is_lost(self) -> None:
        self.world.relist()

    @rule(steps=st.integers(1, 6))
    def machine_schedules(self, steps: int) -> None:
        self.world.run(steps)

    @rule(drawn=st.data(), fault=st.sampled_from(FAULTS))
    def command_is_carried_out(self, drawn: st.DataObject, fault: str) -> None:
        if self.world.open:
            self.world.carry_out(drawn.draw(st.integers(0, len(self.world.open) - 1)), fault)

    @rule()
    def all_commands_are_carried_out(self) -> None:
        while self.world.open:
            self.world.carry_out()

    @rule(seconds=st.sampled_from((0.4, 1, 4, 11, 31, 301)))
    def time_passes(self, seconds: float) -> None:
        self.world.wait(seconds)

    @rule()
    def process_dies(self) -> None:
        self.world.start()

    @invariant()
    def laws_hold(self) -> None:
        self.world.check()

    def teardown(self) -> None:
        self.world.settle()
        self.world.check()
        self.world.the_cache_equals_a_fresh_load()
        self.world.what_fits_is_bound()
        assert not self.world.machine.parts.bindings
        assert not self.world.machine.parts.evictions


def test_the_laws_hold_after_any_interleaving() -> None:
    play(AnyInterleaving, examples=int(os.environ.get("MACHINE_EXAMPLES", "60")), steps=60)
