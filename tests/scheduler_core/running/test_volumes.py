"""Tells stories of pods whose volumes are bound only when the pods have a node."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from scheduler_core.config.configuration import Configuration
from scheduler_core.cycle import Scheduler
from scheduler_core.framework.verdict import SUCCESS, Verdict
from scheduler_core.plugins.volume_binding import SELECTED_NODE
from scheduler_core.queue.scheduling_queue import Room
from scheduler_core.running.commands import Bind, PatchVolume, WriteStatus
from scheduler_core.running.parts import BindingStep
from tests.scheduler_core.plugins.asking import claim, storage_class, using, volume
from tests.scheduler_core.running.test_machine import coming, kinds, ready, room
from tests.scheduler_core.running.world import World


def with_storage(*nodes: str, claims: tuple[str, ...] = ("data",), of: str = "make", **settings: Any) -> World:
    world = ready(*nodes, **settings)
    world.create_storage()
    for each in claims:
        world.create_claim(each, of)
    world.deliver()
    return world


def patches(world: World) -> list[PatchVolume]:
    return [each for each in world.open if isinstance(each, PatchVolume)]


def on_its_way(world: World) -> list[BindingStep]:
    return [each.step for each in world.machine.parts.bindings.values()]


def answer(world: World, of: type, fault: str = "good") -> None:
    world.carry_out(next(i for i, each in enumerate(world.open) if isinstance(each, of)), fault)


def said(world: World) -> str:
    """The message of the last status that was asked for."""
    return next(each.message for each in reversed(world.open) if isinstance(each, WriteStatus))


def test_a_claim_gets_the_node_and_the_pod_is_bound_when_the_claim_is() -> None:
    world = with_storage()
    coming(world, ("db", 1, 0), volumes=using("data"))
    (patch,) = patches(world)
    assert (patch.kind, patch.key, patch.annotations) == (
        "PersistentVolumeClaim",
        "default/data",
        ((SELECTED_NODE, "n1"),),
    )
    assert str(patch.version) == world.objects["PersistentVolumeClaim", "data"]["metadata"]["resourceVersion"]
    answer(world, PatchVolume)
    world.deliver()
    world.wait(5)
    assert (on_its_way(world), world.written["Bind"]) == ([BindingStep.VOLUMES], 0)
    world.volumes_work()
    world.deliver()
    answer(world, WriteStatus)
    assert kinds(world) == ["Bind"]
    world.settle(20)
    assert (world.node_of("db"), world.written["PatchVolume"]) == ("n1", 1)


def test_a_free_volume_is_bound_to_the_claim() -> None:
    world = with_storage(of="wait")
    world.put(copy.deepcopy(volume("v")), "ADDED")
    world.deliver()
    coming(world, ("db", 1, 0), volumes=using("data"))
    (patch,) = patches(world)
    uid = world.objects["PersistentVolumeClaim", "data"]["metadata"]["uid"]
    assert (patch.kind, patch.key, patch.claim, patch.claim_uid) == ("PersistentVolume", "v", "default/data", uid)
    assert patch.annotations == (("pv.kubernetes.io/bound-by-controller", "yes"),)
    world.settle(20)
    assert (world.node_of("db"), world.written["PatchVolume"]) == ("n1", 1)


def test_a_volume_that_somebody_reserved_for_the_claim_gets_only_its_uid() -> None:
    world = with_storage(of="wait")
    world.put(copy.deepcopy(volume("v", spec={"claimRef": {"namespace": "default", "name": "data"}})), "ADDED")
    world.deliver()
    coming(world, ("db", 1, 0), volumes=using("data"))
    (patch,) = patches(world)
    assert (patch.claim, patch.annotations) == ("default/data", ())
    assert patch.claim_uid


def test_volumes_are_written_before_claims_and_one_after_another() -> None:
    world = with_storage(claims=("a", "b"))
    world.create_claim("c", "wait")
    world.put(copy.deepcopy(volume("v")), "ADDED")
    world.deliver()
    coming(world, ("db", 1, 0), volumes=using("a", "b", "c"))
    written = []
    while patches(world):
        (patch,) = patches(world)
        written.append(patch.key)
        answer(world, PatchVolume)
    assert written == ["v", "default/a", "default/b"]
    world.settle(20)
    assert world.node_of("db") == "n1"


def test_the_node_is_nominated_while_volumes_are_bound() -> None:
    world = with_storage()
    coming(world, ("db", 1, 0), volumes=using("data"))
    assert [each.nominated_node for each in world.open if isinstance(each, WriteStatus)] == ["n1"]


def test_two_pods_never_get_the_same_volume() -> None:
    world = with_storage("n1", "n2", claims=("a", "b"), of="wait")
    world.put(copy.deepcopy(volume("v")), "ADDED")
    world.deliver()
    coming(world, ("x", 1, 0), volumes=using("a"))
    coming(world, ("y", 1, 0), volumes=using("b"))
    assert [patch.claim for patch in patches(world)] == ["default/a"]
    assert room(world, "y") is Room.WAITING
    world.put(copy.deepcopy(volume("w")), "ADDED")
    world.settle(60)
    assert (world.node_of("x") != "", world.node_of("y") != "") == (True, True)


def test_pods_that_share_a_claim_write_it_once_and_go_to_one_node() -> None:
    world = with_storage("n1", "n2")
    coming(world, ("x", 1, 0), ("y", 1, 0), volumes=using("data"))
    assert len(patches(world)) == 1
    world.settle(20)
    assert world.node_of("x") == world.node_of("y") != ""
    assert world.written["PatchVolume"] == 1


def test_the_second_pod_writes_the_claim_if_the_first_could_not() -> None:
    world = with_storage()
    coming(world, ("x", 1, 0), ("y", 1, 0), volumes=using("data"))
    first = patches(world)[0]
    answer(world, PatchVolume, "403")
    (second,) = patches(world)
    assert (second.pod_uid != first.pod_uid, second.annotations) == (True, first.annotations)


@pytest.mark.parametrize("step", [BindingStep.PERMIT, BindingStep.VOLUMES])
def test_a_pod_that_is_deleted_meanwhile_leaves_the_volume_to_others(step: BindingStep) -> None:
    world = with_storage(claims=("a", "b"), of="wait")
    world.put(copy.deepcopy(volume("v")), "ADDED")
    world.deliver()
    coming(world, ("x", 1, 0), volumes=using("a"))
    (of_x,) = world.machine.parts.bindings.values()
    assert of_x.step is BindingStep.VOLUMES
    of_x.step = step
    answer(world, PatchVolume, "lost before it took effect")
    world.remove("Pod", "x")
    world.deliver()
    coming(world, ("y", 1, 0), volumes=using("b"))
    assert [patch.claim for patch in patches(world)] == ["default/b"]


@pytest.mark.parametrize("fault", ["403", "422", "500", "200 {}", "lost before it took effect"])
def test_a_write_that_failed_is_an_error_and_the_pod_tries_again_after_its_backoff(fault: str) -> None:
    world = with_storage()
    coming(world, ("db", 4, 0), volumes=using("data"))
    answer(world, WriteStatus)
    answer(world, PatchVolume, fault)
    (status,) = world.open
    assert isinstance(status, WriteStatus)
    assert (status.reason, status.nominated_node) == ("SchedulerError", "")
    assert status.message.startswith('running PreBind plugin "VolumeBinding": PersistentVolumeClaim default/data: ')
    assert (on_its_way(world), room(world, "db")) == ([], Room.BACKOFF)
    assert world.machine.parts.cache.snapshot().pods_on("n1") == ()
    world.settle(60)
    assert world.node_of("db") == "n1"


def test_a_claim_that_changed_since_the_decision_is_not_overwritten() -> None:
    world = with_storage("n1", "n2")
    coming(world, ("db", 1, 0), volumes=using("data"))
    held = world.objects["PersistentVolumeClaim", "data"]
    (patch,) = patches(world)
    other = "n2" if dict(patch.annotations)[SELECTED_NODE] == "n1" else "n1"
    held["metadata"]["annotations"][SELECTED_NODE] = other
    world.put(held)
    answer(world, PatchVolume)
    assert held["metadata"]["annotations"][SELECTED_NODE] == other
    world.settle(60)
    assert world.node_of("db") == other


def test_a_busy_server_is_asked_again_and_the_pod_keeps_its_room() -> None:
    world = with_storage()
    coming(world, ("db", 4, 0), volumes=using("data"))
    answer(world, PatchVolume, "429")
    assert (on_its_way(world), patches(world)) == ([BindingStep.VOLUMES], [])
    world.wait(3)
    assert len(patches(world)) == 1


def test_nothing_is_written_any_more_for_a_pod_that_left_while_the_server_was_busy() -> None:
    world = with_storage()
    coming(world, ("db", 4, 0), volumes=using("data"))
    answer(world, PatchVolume, "429")
    world.remove("Pod", "db")
    world.deliver()
    world.wait(3)
    assert patches(world) == []


def test_a_provisioner_that_gives_up_sends_the_pod_back_and_it_may_go_to_another_node() -> None:
    world = with_storage("n1", "n2")
    coming(world, ("db", 1, 0), volumes=using("data"))
    answer(world, PatchVolume)
    world.deliver()
    world.volumes_work(can_provision=False)
    world.deliver()
    answer(world, WriteStatus)
    assert said(world) == 'running PreBind plugin "VolumeBinding": binding volumes: provisioning failed for PVC "data"'
    assert SELECTED_NODE not in world.objects["PersistentVolumeClaim", "data"]["metadata"]["annotations"]
    world.settle(60)
    assert world.node_of("db") != ""


def test_what_the_watch_has_not_shown_yet_is_not_taken_for_a_provisioner_that_gave_up() -> None:
    world = with_storage()
    coming(world, ("db", 1, 0), volumes=using("data"))
    answer(world, PatchVolume)
    world.wait(5)
    assert on_its_way(world) == [BindingStep.VOLUMES]


def slow(timeout: int) -> Scheduler:
    args = [{"name": "VolumeBinding", "args": {"bindTimeoutSeconds": timeout}}]
    return Scheduler(Configuration.from_mapping({"profiles": [{"pluginConfig": args}]}))


@pytest.mark.parametrize(("scheduler", "patience"), [(None, 600), (slow(30), 30)])
def test_a_claim_that_is_not_bound_in_time_sends_the_pod_back_and_keeps_its_node(
    scheduler: Scheduler | None, patience: int
) -> None:
    world = with_storage("n1", "n2", scheduler=scheduler)
    coming(world, ("db", 1, 0), volumes=using("data"))
    for kind in (PatchVolume, WriteStatus):
        answer(world, kind)
    world.deliver()
    world.wait(patience - 1)
    assert on_its_way(world) == [BindingStep.VOLUMES]
    world.wait(1)
    assert said(world) == 'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
    node = world.objects["PersistentVolumeClaim", "data"]["metadata"]["annotations"][SELECTED_NODE]
    world.settle(60)
    assert world.node_of("db") == node


def _node_goes(world: World) -> None:
    world.remove("Node", "n1")


def _claim_goes(world: World) -> None:
    world.remove("PersistentVolumeClaim", "data")


def _volume_loses_its_claim(world: World) -> None:
    held = world.objects["PersistentVolume", "v"]
    del held["spec"]["claimRef"]
    world.put(held)


def _volume_moves(world: World) -> None:
    held = world.objects["PersistentVolume", "v"]
    held["spec"]["nodeAffinity"] = volume("v", zones=("far",))["spec"]["nodeAffinity"]
    world.put(held)


@pytest.mark.parametrize(
    ("happens", "why"),
    [
        (_node_goes, 'failed to get node "n1"'),
        (_claim_goes, "PersistentVolumeClaim default/data no longer exists"),
        (_volume_loses_its_claim, 'ClaimRef got reset for pv "v"'),
        (_volume_moves, 'pv "v" node affinity doesn\'t match node "n1"'),
    ],
)
def test_the_pod_goes_back_if_its_volume_can_no_longer_be_bound(happens: Callable[[World], None], why: str) -> None:
    world = with_storage(of="wait")
    world.put(copy.deepcopy(volume("v")), "ADDED")
    world.deliver()
    coming(world, ("db", 1, 0), volumes=using("data"))
    answer(world, PatchVolume)
    answer(world, WriteStatus)
    world.deliver()
    happens(world)
    world.deliver()
    world.wait(1)
    assert (said(world), on_its_way(world)) == (
        f'running PreBind plugin "VolumeBinding": binding volumes: {why}',
        [],
    )


def test_a_provisioned_volume_that_the_node_cannot_reach_sends_the_pod_back() -> None:
    world = with_storage()
    coming(world, ("db", 1, 0), volumes=using("data"))
    answer(world, PatchVolume)
    answer(world, WriteStatus)
    world.volumes_work()
    made = world.objects["PersistentVolume", "pv-data"]
    made["spec"]["nodeAffinity"] = volume("v", zones=("far",))["spec"]["nodeAffinity"]
    world.put(made)
    world.relist()
    assert said(world).endswith('pv "pv-data" node affinity doesn\'t match node "n1"')


@pytest.mark.parametrize("is_reachable", [True, False])
def test_a_claim_whose_volume_the_watch_has_not_shown_yet_is_waited_for(is_reachable: bool) -> None:
    world = with_storage()
    coming(world, ("db", 1, 0), volumes=using("data"))
    answer(world, PatchVolume)
    answer(world, WriteStatus)
    world.deliver()
    world.volumes_work()
    if not is_reachable:
        made = world.objects["PersistentVolume", "pv-data"]
        made["spec"]["nodeAffinity"] = volume("v", zones=("far",))["spec"]["nodeAffinity"]
        world.backlog = [event for event in world.backlog if event["object"]["kind"] != "PersistentVolume"]
        world.put(made, "ADDED")
    world.backlog.sort(key=lambda event: event["object"]["kind"], reverse=True)  # the claim's events come first
    of_claim = sum(event["object"]["kind"] == "PersistentVolumeClaim" for event in world.backlog)
    world.deliver(of_claim)
    assert on_its_way(world) == [BindingStep.VOLUMES]
    world.deliver()
    assert kinds(world) == (["Bind"] if is_reachable else ["WriteStatus"])


def test_a_claim_whose_version_is_no_number_is_not_written() -> None:
    world = with_storage()
    held = world.objects["PersistentVolumeClaim", "data"]
    held["metadata"]["resourceVersion"] = "new"
    world.collect(world.machine.take({"type": "MODIFIED", "object": held}, world.now))
    coming(world, ("db", 1, 0), volumes=using("data"))
    assert patches(world) == []
    assert said(world).endswith("the resourceVersion of PersistentVolumeClaim default/data is not a number")


def test_a_pod_without_volumes_needs_no_time_to_bind_them() -> None:
    world = with_storage(scheduler=slow(0))
    coming(world, ("a", 1, 0))
    assert kinds(world) == ["Bind"]


def test_a_new_process_goes_on_where_the_last_one_died() -> None:
    world = with_storage("n1", "n2")
    coming(world, ("db", 1, 0), volumes=using("data"))
    answer(world, PatchVolume)
    node = world.objects["PersistentVolumeClaim", "data"]["metadata"]["annotations"][SELECTED_NODE]
    world.start()
    world.settle(20)
    assert (world.node_of("db"), world.written["PatchVolume"]) == (node, 1)


def test_a_pod_whose_claim_is_bound_is_bound_at_once() -> None:
    world = ready()
    for each in (storage_class(), claim("data", bound_to="v"), volume("v")):
        world.put(copy.deepcopy(each), "ADDED")
    coming(world, ("db", 4, 0), volumes=using("data"))
    assert [type(each) for each in world.open] == [Bind]


def test_a_victim_that_waits_for_its_volumes_is_not_deleted_but_sent_back() -> None:
    world = with_storage()
    coming(world, ("db", 4, 0), volumes=using("data"))
    coming(world, ("boss", 4, 10))
    assert (world.written["DeleteVictim"], room(world, "db")) == (0, Room.BACKOFF)
    world.settle(20)
    assert world.node_of("boss") == "n1"


def test_a_nomination_that_still_waits_is_not_written_after_the_binding() -> None:
    world = with_storage()
    coming(world, ("db", 1, 0), volumes=using("data"))
    answer(world, WriteStatus, "429")
    answer(world, PatchVolume)
    world.volumes_work()
    world.deliver()
    answer(world, Bind)
    world.wait(4)
    assert world.open == []


class Counts:
    """Its PreBind comes before that of VolumeBinding."""

    name = "Counts"

    def __init__(self) -> None:
        self.calls = 0

    def pre_bind(self, _state: object, _pod: object, _node: str) -> Verdict:
        self.calls += 1
        return SUCCESS

    def events(self) -> tuple[()]:
        return ()


def test_each_prebind_plugin_is_called_once_also_if_a_later_one_waits() -> None:
    counts = Counts()
    points = {"preBind": {"disabled": [{"name": "*"}], "enabled": [{"name": "Counts"}, {"name": "VolumeBinding"}]}}
    configuration = Configuration.from_mapping({"profiles": [{"plugins": points}]})
    world = with_storage(scheduler=Scheduler(configuration, plugins={"Counts": lambda _args, _version: counts}))
    coming(world, ("db", 1, 0), volumes=using("data"))
    world.wait(5)
    world.settle(20)
    assert (world.node_of("db"), counts.calls) == ("n1", 1)
