"""What happens between a decision and its effect: looks, pauses, deletions, and events that come early or late."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.config.configuration import Configuration
from scheduler_core.cycle import Scheduler
from scheduler_core.framework.verdict import SUCCESS, unschedulable
from scheduler_core.queue.failed_cycle import FailedCycle
from scheduler_core.queue.queued_pod import QueuedPod
from scheduler_core.queue.scheduling_queue import Room
from scheduler_core.running.commands import Bind, DeleteVictim, LookAtPod, WriteStatus
from scheduler_core.running.failures import WriteOutcome
from scheduler_core.running.refusing import nominate, write_refusal
from scheduler_core.running.waiting.permits import WaitingPods
from tests.scheduler_core.running.test_binding import WAIT, Reserves, Says, asking
from tests.scheduler_core.running.test_machine import coming, kinds, ready, room, with_gang
from tests.scheduler_core.running.world import LOST_BEFORE, World


def scheduled(world: World) -> int:
    return sum(each.reason == "Scheduled" for each in world.events)


def try_now(world: World, name: str) -> None:
    parts = world.machine.parts
    parts.queue.activate((parts.cache.find("Pod", f"default/{name}"),), world.now)
    world.run()


def queued(world: World, name: str) -> QueuedPod:
    found = world.machine.parts.queue.find(f"default/{name}")
    assert found is not None
    return found[1]


def status(world: World) -> WriteStatus:
    (found,) = [each for each in world.open if isinstance(each, WriteStatus)]
    return found


def bound_elsewhere(world: World, name: str, node: str) -> None:
    held = world.objects["Pod", name]
    held["spec"]["nodeName"] = node
    world.put(held)


# ---- a look ----


def looking(*nodes: str) -> World:
    """The Bind of a to n1 is lost, and the machine looks at the pod."""
    world = ready(*nodes)
    coming(world, ("a", 4, 0))
    world.carry_out(0, LOST_BEFORE)
    world.wait(10)
    assert kinds(world) == ["LookAtPod"]
    return world


def test_a_look_that_finds_another_pod_of_this_name_frees_the_room() -> None:
    world = looking()
    world.remove("Pod", "a")
    world.create_pod("a", 4)
    world.carry_out()
    assert (world.machine.parts.bindings, kinds(world)) == ({}, ["WriteStatus"])


def test_a_look_that_fails_is_repeated_and_the_pod_keeps_its_room() -> None:
    world = looking()
    world.carry_out(0, "500")
    assert world.machine.parts.cache.assumed_node("default/a") == "n1"
    world.wait(10)
    assert [type(each) for each in world.open] == [LookAtPod]


def test_a_pod_that_a_look_finds_on_another_node_was_not_bound_by_this_scheduler() -> None:
    world = looking("n1", "n2")
    bound_elsewhere(world, "a", "n2")
    world.carry_out()
    assert (world.machine.parts.bindings, scheduled(world)) == ({}, 0)


def test_a_refusal_after_a_doubtful_bind_counts_when_the_next_look_finds_no_node() -> None:
    world = looking()
    world.carry_out()
    world.carry_out(0, "403")
    world.wait(0)
    assert kinds(world) == ["LookAtPod"]
    world.carry_out()
    assert status(world).message == "binding rejected: the API server answered 403"


# ---- answers and pauses ----


def test_a_pod_gives_up_its_room_if_the_server_stays_too_busy_for_its_binding() -> None:
    world = ready()
    coming(world, ("a", 4, 0))
    for _ in range(10):
        world.carry_out(0, "429")
        world.wait(3)
    assert room(world, "a") is None
    world.carry_out(0, "429")
    assert (room(world, "a"), world.machine.parts.bindings) == (Room.BACKOFF, {})


def test_a_pause_without_retry_after_takes_a_second() -> None:
    world = ready()
    coming(world, ("a", 4, 0))
    world.collect(world.machine.answered(world.open.pop(), WriteOutcome(code=429), world.now))
    assert world.open == []
    world.wait(1)
    assert kinds(world) == ["Bind"]


def test_a_refusal_that_waits_is_written_if_reserve_refuses_the_pod_again() -> None:
    world = asking(Reserves(reserve=unschedulable("no more licences")))
    coming(world, ("a", 1, 0))
    world.carry_out(0, "429")
    try_now(world, "a")
    world.wait(3)
    assert status(world).message == "0/1 nodes are available: 1 no more licences."


def test_a_refusal_that_waits_is_written_if_the_api_server_refuses_the_binding_again() -> None:
    world = ready()
    coming(world, ("a", 1, 0))
    world.carry_out(0, "403")
    world.carry_out(0, "429")
    try_now(world, "a")
    world.carry_out(0, "403")
    world.wait(3)
    assert status(world).message == "binding rejected: the API server answered 403"


def test_the_binding_of_a_pod_that_is_deleted_during_a_pause_is_not_sent() -> None:
    world = ready()
    coming(world, ("a", 1, 0))
    world.carry_out(0, "429")
    coming(world, ("b", 1, 0))
    world.carry_out(0, "429")
    world.remove("Pod", "b")
    world.deliver()
    world.wait(3)
    assert [each.pod for each in world.open] == ["default/a"]


def test_a_refused_binding_that_shall_wait_for_ten_minutes_delays_no_other_and_waits_for_32_seconds() -> None:
    world = ready()
    coming(world, ("a", 1, 0))
    refused = world.open.pop()
    world.collect(world.machine.answered(refused, WriteOutcome(code=429, retry_after_seconds=600), world.now))
    coming(world, ("b", 1, 0))
    assert [each.pod for each in world.open] == ["default/b"]
    world.carry_out()
    world.deliver()
    world.wait(31)
    assert world.open == []
    world.wait(1)
    assert [each.pod for each in world.open] == ["default/a"]
    world.carry_out()
    assert world.node_of("a") == world.node_of("b") == "n1"


def test_a_status_names_the_newest_version_even_if_only_an_answer_has_shown_it() -> None:
    world = ready()
    coming(world, ("big", 9, 0))
    world.carry_out()
    version = world.version
    world.backlog.clear()  # the watch is late
    world.create_node("n2")
    world.deliver()
    try_now(world, "big")
    assert status(world).version == version


def test_a_status_that_replaces_one_that_waits_takes_its_nomination_over() -> None:
    world = ready()
    coming(world, ("big", 9, 0))
    parts = world.machine.parts
    pod = parts.cache.find("Pod", "default/big")
    for message, node in (("first", "n1"), ("second", None)):
        failed = FailedCycle(room=Room.WAITING, reason="Unschedulable", message=message, nominated_node=node)
        assert write_refusal(parts, pod, failed)
    world.carry_out()
    assert (status(world).message, status(world).nominated_node) == ("second", "n1")


def test_a_nomination_takes_over_the_refusal_that_waits() -> None:
    world = asking(Says("Licence", permit=unschedulable("no more licences")))
    coming(world, ("a", 1, 0))
    world.carry_out(0, "429")
    parts = world.machine.parts
    nominate(parts, parts.cache.find("Pod", "default/a"), "n1")
    world.wait(3)
    assert (status(world).message, status(world).nominated_node) == (
        "0/1 nodes are available: 1 no more licences.",
        "n1",
    )


def test_a_status_that_was_refused_for_now_is_not_sent_after_the_binding() -> None:
    world = ready()
    coming(world, ("a", 9, 0))
    world.create_node("n2", 9)
    world.deliver()
    world.wait(2)
    world.run()
    assert kinds(world) == ["WriteStatus"]  # the Bind waits for its answer
    world.carry_out(0, "429")
    assert kinds(world) == ["Bind"]
    world.collect(world.machine.answered(world.open.pop(), WriteOutcome(code=201), world.now))
    world.wait(4)
    assert world.open == []


def test_the_answer_to_a_bind_of_an_earlier_attempt_does_not_count() -> None:
    world = ready("n1", "n2")
    world.objects["Node", "n2"]["spec"] = {"unschedulable": True}
    world.put(world.objects["Node", "n2"])
    coming(world, ("a", 1, 0))
    held = world.objects["Pod", "a"]
    requests = held["spec"]["containers"][0]["resources"]["requests"]
    for cpu in ("unreadable", "1"):
        requests["cpu"] = cpu
        world.put(held)
    for name, is_cordoned in (("n1", True), ("n2", False)):
        world.objects["Node", name]["spec"] = {"unschedulable": is_cordoned}
        world.put(world.objects["Node", name])
    world.deliver()
    world.run()
    (binding,) = world.machine.parts.bindings.values()
    (bind,) = world.open
    assert isinstance(bind, Bind)
    assert (bind.node, binding.node) == ("n1", "n2")
    world.carry_out()
    assert scheduled(world) == 0
    world.carry_out()  # the second Bind: the pod has a node
    world.deliver()
    assert (scheduled(world), world.machine.parts.bindings, room(world, "a")) == (0, {}, None)


# ---- a pod on its way ----


def test_a_pod_that_permit_has_allowed_keeps_no_events_and_no_nomination() -> None:
    world = ready()
    coming(world, ("v", 4, 0))
    world.settle(10)
    coming(world, ("p", 4, 10))
    while world.open:
        world.carry_out()
    world.deliver()
    assert [node for _, node in world.machine.parts.queue.nominations.all] == ["n1"]
    world.end_terminating()
    world.deliver()
    world.wait(2)
    world.run()
    assert kinds(world) == ["Bind"]
    assert (world.machine.parts.queue.nominations.all, world.machine.parts.queue.in_flight) == ((), ())


def test_a_pod_that_waits_for_two_permit_plugins_needs_both_and_no_other_decides() -> None:
    world = asking(Says("One", permit=WAIT), Says("Two", permit=WAIT))
    coming(world, ("a", 1, 0))
    world.carry_out()
    (uid,) = world.machine.parts.bindings
    world.collect(world.machine.allow(uid, "Other", world.now))
    world.collect(world.machine.reject(uid, "Other", "no", world.now))
    world.collect(world.machine.allow(uid, "One", world.now))
    assert kinds(world) == []
    world.collect(world.machine.allow(uid, "Two", world.now))
    assert kinds(world) == ["Bind"]


class Curious:
    """Registers no events, so that every event may help."""

    name = "Curious"

    def permit(self, _state: Any, _pod: Any, _node: str) -> Any:
        return WAIT


def test_the_room_that_a_rejected_pod_frees_does_not_wake_the_pod_itself() -> None:
    enabled = {"profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "Curious"}]}}}]}
    made = {"Curious": lambda _args, _version: Curious()}
    world = ready(scheduler=Scheduler(Configuration.from_mapping(enabled), plugins=made), permits=WaitingPods())
    coming(world, ("a", 4, 0))
    (uid,) = world.machine.parts.bindings
    world.collect(world.machine.reject(uid, "Curious", "not now", world.now))
    assert (queued(world, "a").unschedulable_plugins, room(world, "a")) == ({"Curious"}, Room.WAITING)


def test_the_condition_of_a_pod_that_only_had_a_nomination_changes_its_time() -> None:
    world = with_gang()
    coming(world, ("a", 4, 0))
    world.carry_out()
    (uid,) = world.machine.parts.bindings
    world.collect(world.machine.reject(uid, "Gang", "not now", world.now))
    assert status(world).changes_condition


def test_what_a_pod_reserved_is_released_when_its_binding_is_refused() -> None:
    plugin = Reserves(reserve=SUCCESS)
    world = asking(plugin)
    coming(world, ("a", 4, 0))
    world.carry_out(0, "403")
    assert plugin.calls == ["reserve", "unreserve"]


def test_a_pod_that_the_watch_shows_on_another_node_before_the_answer_was_not_bound_by_this_scheduler() -> None:
    world = ready("n1", "n2")
    coming(world, ("a", 4, 0))
    (bind,) = world.open
    assert isinstance(bind, Bind)
    bound_elsewhere(world, "a", "n2" if bind.node == "n1" else "n1")
    world.deliver()
    assert (world.machine.parts.bindings, scheduled(world)) == ({}, 0)


def test_the_deletion_of_a_pod_on_its_way_wakes_the_pods_that_its_room_may_help() -> None:
    world = ready()
    coming(world, ("a", 4, 0), ("b", 4, 0))
    assert room(world, "b") is Room.WAITING
    world.remove("Pod", "a")
    world.deliver()
    assert room(world, "b") is Room.BACKOFF


# ---- pods that wait ----


def test_a_waiting_pod_that_is_being_deleted_leaves_the_queue() -> None:
    world = ready()
    coming(world, ("big", 9, 0))
    world.begin_deletion("big")
    assert room(world, "big") is None


def test_a_pod_that_was_created_again_while_the_watch_was_broken_begins_anew() -> None:
    world = ready()
    coming(world, ("big", 9, 0))
    world.remove("Pod", "big")
    world.create_pod("big", 9)
    world.relist()
    assert (queued(world, "big").attempts, room(world, "big")) == (0, Room.ACTIVE)


# ---- preemption ----


def preempting() -> tuple[World, DeleteVictim]:
    """p preempts v on n1; the deletion of v has no answer yet."""
    world = ready()
    coming(world, ("v", 4, 0))
    world.settle(10)
    coming(world, ("p", 4, 10))
    world.wait(20)
    assert room(world, "p") is Room.WAITING
    (delete,) = [each for each in world.open if isinstance(each, DeleteVictim)]
    return world, delete


def test_a_pod_that_preempts_may_go_on_when_the_watch_shows_that_its_last_victim_terminates() -> None:
    world, delete = preempting()
    world.effect(delete)
    world.create_node("n2")
    world.deliver()
    assert room(world, "p") is Room.ACTIVE


@pytest.mark.parametrize("is_deleted_at_once", [False, True])
def test_a_pod_that_preempts_is_held_until_the_watch_shows_what_the_answer_to_the_deletion_said(
    is_deleted_at_once: bool,
) -> None:
    world, delete = preempting()
    world.machine.answered(delete, WriteOutcome(code=200), world.now)
    world.create_node("n2")
    world.deliver()
    assert room(world, "p") is Room.WAITING
    if is_deleted_at_once:
        world.remove("Pod", "v")
    else:
        world.begin_deletion("v")
    world.deliver()
    assert (world.machine.parts.evictions, room(world, "p")) == ({}, Room.ACTIVE)


def test_a_last_victim_that_somebody_else_deletes_first_holds_the_pod_only_until_the_answer() -> None:
    world = ready()
    coming(world, ("v1", 2, 0), ("v2", 2, 0))
    world.settle(20)
    coming(world, ("p", 4, 10))
    (eviction,) = world.machine.parts.evictions.values()
    world.begin_deletion(eviction.last[0].removeprefix("default/"))
    world.deliver()
    world.carry_out(kinds(world).index("DeleteVictim"))
    assert world.machine.parts.evictions
    world.carry_out(kinds(world).index("DeleteVictim"))
    assert world.machine.parts.evictions == {}


def test_a_pod_that_preempts_tries_again_if_its_victim_ends_without_having_been_bound() -> None:
    world = ready()
    coming(world, ("v", 4, 0))
    (bind,) = [each for each in world.open if isinstance(each, Bind)]
    coming(world, ("p", 4, 10))
    world.open.remove(bind)
    world.collect(world.machine.answered(bind, WriteOutcome(code=403), world.now))
    assert room(world, "p") is Room.WAITING
    (delete,) = [each for each in world.open if isinstance(each, DeleteVictim)]
    world.machine.answered(delete, WriteOutcome(code=200), world.now)
    world.remove("Pod", "v")
    world.deliver()
    assert room(world, "p") is Room.ACTIVE


def test_a_pod_that_preempts_tries_again_if_the_last_victim_lives_on_although_its_deletion_found_nothing() -> None:
    world, delete = preempting()
    world.machine.answered(delete, WriteOutcome(code=409), world.now)
    assert (world.machine.parts.evictions, room(world, "p")) == ({}, Room.ACTIVE)


def test_a_new_pod_of_the_last_victims_name_does_not_hold_the_pod_that_preempts() -> None:
    world, _ = preempting()
    world.remove("Pod", "v")
    world.create_pod("v", 1)
    world.relist()
    assert room(world, "p") is Room.ACTIVE


def test_a_victim_whose_binding_is_under_way_is_deleted_after_it() -> None:
    world = ready()
    coming(world, ("a", 4, 0))
    coming(world, ("boss", 4, 10))
    assert (room(world, "a"), world.machine.parts.cache.assumed_node("default/a")) == (None, "n1")
    world.carry_out()
    assert "DeleteVictim" in kinds(world)


def test_a_pod_whose_nomination_is_not_written_yet_preempts_nobody_else() -> None:
    world = ready()
    coming(world, ("v", 4, 0))
    world.settle(10)
    coming(world, ("p", 4, 10))
    assert kinds(world) == ["WriteStatus", "DeleteVictim"]
    world.carry_out(1)
    world.create_node("n2")
    world.create_pod("cheaper", 4, -10, nodeName="n2")
    world.deliver()
    try_now(world, "p")
    assert (world.written["DeleteVictim"], queued(world, "p").attempts) == (1, 2)
