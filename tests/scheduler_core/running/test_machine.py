"""Tells stories of single pods: what the machine commands after each event and answer."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.config.configuration import Configuration
from scheduler_core.cycle import Scheduler
from scheduler_core.cycle_result import CycleResult
from scheduler_core.framework.verdict import Verdict, VerdictCode, unknown
from scheduler_core.queue.scheduling_queue import Room
from scheduler_core.running.commands import Bind, DeleteVictim, LookAtPod, Note, WriteStatus
from scheduler_core.running.failures import REACTIONS, Meaning, WriteOutcome
from scheduler_core.running.machine import Machine
from scheduler_core.running.parts import BindingStep
from scheduler_core.running.waiting.permits import WaitingPods
from tests.scheduler_core.running.world import LOST_BEFORE, SCHEDULER, World, node


def ready(*nodes: str, **settings: Any) -> World:
    world = World(**settings)
    for name in nodes or ("n1",):
        world.create_node(name)
    world.deliver()
    return world


def coming(world: World, *pods: tuple[str, int, int], **spec: Any) -> None:
    for name, cpu, priority in pods:
        world.create_pod(name, cpu, priority, **spec)
    world.deliver()
    world.run(len(pods))


def kinds(world: World) -> list[str]:
    return [type(each).__name__ for each in world.open]


def room(world: World, name: str) -> Room | None:
    found = world.machine.parts.queue.find(f"default/{name}")
    return None if found is None else found[0]


def test_a_pod_is_bound_and_the_watch_confirms_it() -> None:
    world = ready()
    world.create_pod("a")
    world.settle(20)
    assert (world.node_of("a"), world.machine.parts.bindings) == ("n1", {})
    assert [(each.reason, each.note) for each in world.events] == [
        ("Scheduled", "Successfully assigned default/a to n1")
    ]


def test_no_pod_is_placed_before_nodes_and_pods_were_listed() -> None:
    machine = Machine(SCHEDULER)
    world = World()
    world.create_pod("a")
    machine.take({"kind": "NodeList", "apiVersion": "v1", "items": [node("n1")]}, 0.0)
    machine.take(world.backlog[0], 0.0)
    assert (machine.has_work, machine.next(0.0)) == (False, ())
    machine.take(world.listing("Pod"), 0.0)
    assert [type(each) for each in machine.next(0.0)][-1:] == [Bind]


def test_a_refused_pod_is_told_once_why_and_not_again_while_the_reason_is_the_same() -> None:
    world = ready()
    coming(world, ("big", 9, 0))
    assert kinds(world) == ["WriteStatus"]
    world.carry_out()
    world.settle(1500)
    assert world.written["WriteStatus"] == 1
    assert [each.reason for each in world.events] == ["FailedScheduling"]


def test_a_new_process_does_not_repeat_what_the_status_says() -> None:
    world = ready()
    coming(world, ("big", 9, 0))
    world.carry_out()
    world.start()
    world.run(5)
    assert kinds(world) == []


def test_a_status_that_did_not_arrive_is_written_again_after_the_next_attempt() -> None:
    world = ready()
    coming(world, ("big", 9, 0))
    world.carry_out(0, "403")
    assert world.open == []
    world.wait(301)
    world.run(1)
    assert kinds(world) == ["WriteStatus"]


def test_a_later_status_replaces_the_one_that_waits_for_an_earlier_write() -> None:
    world = ready()
    coming(world, ("big", 9, 0))
    for name in ("n2", "n3"):
        world.create_node(name)
        world.deliver()
        parts = world.machine.parts
        parts.queue.activate((parts.cache.find("Pod", "default/big"),), world.now)
        world.run(1)
    assert kinds(world) == ["WriteStatus"]
    world.carry_out()
    (second,) = world.open
    assert isinstance(second, WriteStatus)
    assert second.message.startswith("0/3 nodes")


def test_the_binding_goes_before_a_status_that_waits() -> None:
    world = ready()
    coming(world, ("a", 4, 0), ("b", 4, 0))
    world.carry_out()
    world.create_node("n2")
    world.deliver()
    world.wait(2)
    world.run(1)
    assert kinds(world) == ["WriteStatus"]  # Bind of b waits for its answer
    world.carry_out()
    assert kinds(world) == ["Bind"]


@pytest.mark.parametrize(
    ("fault", "looks", "binds", "where"),
    [
        ("lost before it took effect", 1, 2, "n1"),
        ("lost after it took effect", 0, 1, "n1"),
        ("200 {}", 0, 1, "n1"),
        ("500", 1, 2, "n1"),
        ("429", 0, 2, "n1"),
        ("403", 0, 2, "n1"),
        ("422", 0, 2, "n1"),
        ("answered twice", 0, 1, "n1"),
    ],
)
def test_a_binding_ends_well_whatever_the_first_answer_is(fault: str, looks: int, binds: int, where: str) -> None:
    world = ready()
    coming(world, ("a", 1, 0))
    world.carry_out(0, fault)
    world.settle(60)
    assert (world.written["LookAtPod"], world.written["Bind"], world.node_of("a")) == (looks, binds, where)


def test_a_pod_keeps_its_room_while_nobody_knows_whether_it_is_bound() -> None:
    world = ready()
    coming(world, ("a", 4, 0))
    world.carry_out(0, "lost before it took effect")
    coming(world, ("b", 4, 0))
    for _ in range(20):
        world.wait(10)
        world.open = [each for each in world.open if not isinstance(each, LookAtPod)]
    assert (world.node_of("b"), room(world, "b")) == ("", Room.WAITING)
    assert world.machine.parts.cache.assumed_node("default/a") == "n1"


def test_a_conflict_with_an_earlier_bind_of_ours_does_not_free_the_room() -> None:
    world = ready()
    coming(world, ("a", 4, 0))
    first = world.open[0]
    world.carry_out(0, "lost before it took effect")
    world.wait(10)
    world.carry_out()  # the look: not bound
    world.effect(first)  # the first Bind arrives late
    assert world.backlog
    world.carry_out()  # the second one: 409
    assert world.machine.parts.cache.assumed_node("default/a") == "n1"
    world.settle(30)
    assert (world.node_of("a"), world.machine.parts.bindings) == ("n1", {})


def test_a_look_that_finds_no_pod_frees_its_room_before_the_watch_does() -> None:
    world = ready()
    coming(world, ("a", 4, 0))
    world.carry_out(0, LOST_BEFORE)
    world.wait(10)
    world.remove("Pod", "a")
    world.carry_out()
    assert (world.machine.parts.bindings, world.machine.parts.cache.assumed_node("default/a")) == ({}, "")


def test_a_look_that_is_answered_after_the_watch_has_shown_the_binding_changes_nothing() -> None:
    world = ready()
    coming(world, ("a", 4, 0))
    world.carry_out(0, "lost after it took effect")
    world.wait(10)
    world.deliver()
    assert kinds(world) == ["LookAtPod"]
    world.carry_out()
    assert (world.node_of("a"), world.machine.parts.bindings, world.open) == ("n1", {}, [])


def test_an_answer_to_an_earlier_look_says_nothing_about_a_later_bind() -> None:
    world = ready()
    coming(world, ("a", 4, 0))
    world.carry_out(0, LOST_BEFORE)
    world.wait(10)
    (slow,) = world.open
    stale = world.effect(slow)
    world.open.clear()
    world.wait(10)
    world.carry_out()  # the second look: there is no node yet
    world.carry_out()  # Bind
    world.wait(30)
    assert kinds(world) == ["LookAtPod"]
    world.collect(world.machine.answered(slow, stale, world.now))
    assert kinds(world) == ["LookAtPod"]


def test_a_pod_that_somebody_else_bound_is_left_alone() -> None:
    world = ready("n1", "n2")
    coming(world, ("a", 1, 0))
    held = world.pod("a")
    assert held is not None
    held["spec"]["nodeName"] = "n2"
    world.put(held)
    world.carry_out()
    world.settle(30)
    assert world.node_of("a") == "n2"
    assert [each.reason for each in world.events if each.reason == "Scheduled"] == []


def test_a_pause_that_the_server_asked_for_stops_only_the_write_that_it_refused() -> None:
    world = ready()
    coming(world, ("big", 9, 0))
    world.carry_out(0, "429")
    coming(world, ("a", 1, 0), ("large", 9, 0))
    assert kinds(world) == ["Bind", "WriteStatus"]
    world.wait(3)
    assert kinds(world) == ["Bind", "WriteStatus", "WriteStatus"]


def test_victims_are_deleted_with_their_uid_and_the_last_one_after_the_others() -> None:
    world = ready()
    coming(world, ("v1", 2, 0), ("v2", 2, 0))
    world.settle(20)
    coming(world, ("p", 4, 10))
    assert kinds(world) == ["WriteStatus", "DeleteVictim"]
    assert world.nomination_writes.total() == 1
    assert room(world, "p") is Room.WAITING
    delete = world.open[1]
    assert isinstance(delete, DeleteVictim)
    assert delete.uid == world.pod(delete.pod.partition("/")[2])["metadata"]["uid"]  # type: ignore[index]
    assert [each.holds for each in world.machine.parts.evictions.values()] == [True]
    world.carry_out(1)
    assert kinds(world) == ["WriteStatus", "DeleteVictim"]
    assert [each.holds for each in world.machine.parts.evictions.values()] == [False]
    world.settle(20)
    assert world.node_of("p") == "n1"


def test_the_end_of_an_earlier_victim_does_not_make_a_pod_preempt_once_more() -> None:
    """While the deletion of the last one is under way, a cheaper victim comes up."""
    world = ready()
    coming(world, ("v1", 2, 0), ("v2", 2, 0))
    world.settle(20)
    coming(world, ("p", 4, 10))
    world.carry_out(0)
    world.carry_out(0)
    world.end_terminating()
    world.create_node("n2")
    cheaper = world.create_pod("cheaper", 4, -10, nodeName="n2")
    world.deliver()
    world.wait(2)
    world.run()
    assert (room(world, "p"), kinds(world)) == (Room.WAITING, ["DeleteVictim"])
    world.settle(40)
    assert (world.node_of("p"), world.pod("cheaper")["metadata"]["uid"]) == ("n1", cheaper)  # type: ignore[index]


def test_a_pod_whose_victims_are_all_being_deleted_waits_for_their_end() -> None:
    world = ready()
    coming(world, ("v", 4, 0))
    world.settle(20)
    world.begin_deletion("v")
    coming(world, ("p", 4, 10))
    assert (kinds(world), world.machine.parts.evictions) == (["WriteStatus"], {})
    assert room(world, "p") is Room.WAITING
    world.remove("Pod", "v")
    world.settle(20)
    assert world.node_of("p") == "n1"


def test_a_pod_that_preempts_tries_again_if_a_victim_cannot_be_deleted() -> None:
    world = ready()
    coming(world, ("v1", 2, 0), ("v2", 2, 0))
    world.settle(20)
    coming(world, ("p", 4, 10))
    world.carry_out(1, "403")
    assert room(world, "p") is Room.ACTIVE


def test_a_status_and_an_eviction_that_the_api_server_refuses_are_in_the_log() -> None:
    for code, logged in (
        (403, ["default/p: Could not write the status", "default/v: Could not evict the pod"]),
        (404, []),
    ):
        world = ready()
        coming(world, ("v", 4, 0))
        world.settle(20)
        coming(world, ("p", 4, 10))
        answer = WriteOutcome(code=code, message="forbidden")
        said = [each for command in world.open for each in world.machine.answered(command, answer, world.now)]
        notes = [each for each in said if isinstance(each, Note) and each.why == "forbidden"]
        assert [f"{each.pod}: {each.text}" for each in notes if each.verbosity == 0] == logged


def test_two_pods_with_the_same_victim_delete_it_once_and_both_go_on() -> None:
    world = ready()
    coming(world, ("v", 4, 0))
    world.settle(20)
    coming(world, ("p", 2, 10), ("q", 2, 10))
    world.settle(30)
    assert world.written["DeleteVictim"] == 1
    assert (world.node_of("p"), world.node_of("q")) == ("n1", "n1")


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"schedulingGroup": {"podGroupName": "g"}}, "spec.schedulingGroup"),
        ({"workloadRef": {"name": "w", "podGroup": "g"}}, "spec.schedulingGroup"),
        ({"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]}, "spec.resourceClaims"),
    ],
)
def test_a_pod_that_cannot_be_placed_right_yet_stays_pending_with_the_reason(spec: Any, reason: str) -> None:
    world = ready()
    coming(world, ("a", 1, 0), **spec)
    (status,) = world.open
    assert isinstance(status, WriteStatus)
    assert (status.reason, status.message.partition(":")[0]) == ("Unschedulable", reason)
    world.settle(400)
    assert (world.node_of("a"), world.written["Bind"], world.written["WriteStatus"]) == ("", 0, 1)


class Doubtful:
    name = "Doubtful"

    def events(self) -> tuple[()]:
        return ()

    def filter(self, _state: Any, _pod: Any, _node: Any) -> Verdict:
        return unknown("nobody knows")


def test_a_pod_about_which_a_plugin_cannot_decide_is_told_only_that() -> None:
    enabled = {"profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "Doubtful"}]}}}]}
    configuration = Configuration.from_mapping(enabled)
    world = ready(scheduler=Scheduler(configuration, plugins={"Doubtful": lambda _args, _version: Doubtful()}))
    coming(world, ("a", 1, 0))
    (status,) = world.open
    assert isinstance(status, WriteStatus)
    assert (status.message, [each.note for each in world.events]) == ("nobody knows", ["nobody knows"])
    world.settle(60)
    assert (world.node_of("a"), room(world, "a")) == ("", Room.WAITING)


def test_a_pod_that_is_deleted_and_created_again_while_it_is_assumed_is_placed() -> None:
    world = ready()
    coming(world, ("db", 4, 0))
    world.remove("Pod", "db")
    world.create_pod("db", 4)
    world.relist()
    world.carry_out()
    world.settle(30)
    assert world.node_of("db") == "n1"


# ---- Permit ----


class Gang:
    name = "Gang"
    permit_seconds = 20

    def permit(self, _state: object, _pod: object, _node: str) -> Verdict:
        return Verdict(VerdictCode.WAIT)

    def events(self) -> tuple[()]:
        return ()


def with_gang() -> World:
    configuration = Configuration.from_mapping(
        {"profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "Gang"}]}}}]}
    )
    scheduler = Scheduler(configuration, plugins={"Gang": lambda _args, _version: Gang()})
    return ready(scheduler=scheduler, permits=WaitingPods())


def test_a_pod_waits_for_permit_with_its_room_and_its_nomination() -> None:
    world = with_gang()
    coming(world, ("a", 4, 0))
    (status,) = world.open
    assert isinstance(status, WriteStatus)
    assert (status.nominated_node, status.reason) == ("n1", "")
    uid = status.uid
    assert world.permits is not None
    assert world.permits.pods == {uid: ("Gang",)}
    world.carry_out()
    world.collect(world.machine.allow(uid, "Gang", world.now))
    assert kinds(world) == ["Bind"]
    world.carry_out()
    world.deliver()
    assert (world.node_of("a"), world.permits.pods) == ("n1", {})


def test_a_plugin_rejects_a_pod_by_the_handle_that_it_was_given() -> None:
    world = with_gang()
    coming(world, ("a", 4, 0))
    (uid,) = world.machine.parts.bindings
    assert world.permits is not None
    world.permits.reject(uid, "Gang", "not enough of them")
    world.wait(0.1)
    world.carry_out()
    assert (room(world, "a"), world.machine.parts.bindings) == (Room.WAITING, {})
    (status,) = world.open
    assert isinstance(status, WriteStatus)
    assert (status.message, status.nominated_node) == (
        "0/1 nodes are available: 1 not enough of them.",
        "",
    )


def test_a_pod_that_waits_too_long_for_permit_goes_back() -> None:
    world = with_gang()
    coming(world, ("a", 4, 0))
    world.wait(19.9)
    assert [each.step for each in world.machine.parts.bindings.values()] == [BindingStep.PERMIT]
    world.wait(0.1)
    assert world.machine.parts.bindings == {}
    assert room(world, "a") is Room.WAITING
    assert world.events[-1].note.endswith(" 1 rejected due to timeout after waiting 20s at plugin Gang.")


def test_a_waiting_pod_that_is_being_deleted_frees_its_room_at_once() -> None:
    world = with_gang()
    coming(world, ("a", 4, 0))
    world.begin_deletion("a")
    assert world.machine.parts.cache.snapshot().pods_on("n1") == ()


# ---- the table of failures ----


def test_the_table_has_a_reaction_for_each_command_and_meaning() -> None:
    assert {command: set(row) for command, row in REACTIONS.items()} == {command: set(Meaning) for command in REACTIONS}


def test_an_answer_for_a_command_that_is_not_in_flight_changes_nothing() -> None:
    world = ready()
    coming(world, ("a", 1, 0))
    bind = world.open[0]
    world.carry_out()
    world.deliver()
    assert world.machine.answered(bind, WriteOutcome(code=409), world.now) == ()
    assert world.machine.parts.cache.snapshot().pods_on("n1") != ()


# ---- what a status says ----


def test_the_condition_changes_its_time_only_with_its_status() -> None:
    world = ready()
    coming(world, ("a", 9, 0))
    (first,) = world.open
    assert isinstance(first, WriteStatus)
    assert first.changes_condition
    world.carry_out()
    world.create_node("n2")
    world.deliver()
    world.settle(400)
    assert world.written["WriteStatus"] > 1
    assert world.transitions == 1


def test_a_status_after_one_that_was_lost_still_changes_the_time() -> None:
    world = ready()
    coming(world, ("a", 9, 0))
    world.put({**node("n2", 9), "spec": {"unschedulable": True}}, "ADDED")
    world.deliver()
    world.wait(2)
    world.run()  # the second status waits for the answer to the first
    world.carry_out(fault=LOST_BEFORE)
    world.settle(10)
    assert world.transitions == 1


# ---- percentageOfNodesToScore ----


@pytest.mark.parametrize(("percentage", "starts"), [(0, [None] * 3), (100, [None] * 3), (10, [100, 80, 60])])
def test_a_given_percentage_of_nodes_is_obeyed_and_the_search_moves_on(percentage: int, starts: list[Any]) -> None:
    seen: list[CycleResult] = []
    scheduler = Scheduler(Configuration.from_mapping({"percentageOfNodesToScore": percentage}))
    machine = Machine(scheduler, on_attempt=lambda each: seen.append(each.result) if each.result else None)
    world = ready(*(f"n{number}" for number in range(120)))
    for kind in ("Node", "Pod"):
        machine.take(world.listing(kind), 0.0)
    for name in "abc":
        world.create_pod(name)
        machine.take(world.backlog[-1], 0.0)
        machine.next(0.0)
    assert [each.next_start for each in seen] == starts


def test_a_search_of_some_nodes_goes_on_after_a_cycle_without_nodes() -> None:
    world = World(scheduler=Scheduler(Configuration.from_mapping({"percentageOfNodesToScore": 10})))
    coming(world, ("a", 1, 0))
    world.create_node("n1")
    world.settle(30)
    assert world.node_of("a") == "n1"
