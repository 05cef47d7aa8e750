"""What events mean for pods that wait: whom the machine tries again, and whom it leaves alone."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.queue.scheduling_queue import Room
from scheduler_core.running.commands import Bind, DeleteVictim, WriteStatus
from scheduler_core.running.evicting import deleted, failed
from scheduler_core.running.failures import WriteOutcome
from scheduler_core.running.parts import Eviction, Parts
from scheduler_core.running.writes import Writes
from tests.scheduler_core.running.test_machine import coming, ready, room
from tests.scheduler_core.running.world import World, node

DELETION = "2026-11-27T00:00:00Z"


@pytest.mark.parametrize(("spec", "is_terminating"), [({"schedulerName": "another"}, False), ({}, True)])
def test_a_pod_of_another_scheduler_or_one_that_is_being_deleted_is_never_queued(
    spec: dict[str, Any], is_terminating: bool
) -> None:
    world = ready()
    world.create_pod("a", **spec)
    held = world.pod("a")
    assert held is not None
    if is_terminating:
        held["metadata"]["deletionTimestamp"] = DELETION
        world.backlog.clear()
        world.put(held, "ADDED")
    world.deliver()
    assert (room(world, "a"), world.machine.has_work) == (None, False)


def full_node_and_a_pod_that_waits() -> World:
    """`a` is assumed to be on n1, and `b` waits for the same room."""
    world = ready("n1")
    coming(world, ("a", 4, 0), ("b", 4, 0))
    assert room(world, "b") is Room.WAITING
    world.wait(2)
    return world


def test_the_room_of_a_pod_that_somebody_bound_elsewhere_is_given_to_the_next() -> None:
    world = full_node_and_a_pod_that_waits()
    world.put({**node("n2"), "spec": {"unschedulable": True}}, "ADDED")
    world.deliver()
    world.run()
    world.wait(11)
    assert room(world, "b") is Room.WAITING
    held = world.pod("a")
    assert held is not None
    held["spec"]["nodeName"] = "n2"
    world.put(held)
    world.deliver()
    world.run()
    assert world.machine.parts.cache.assumed_node("default/b") == "n1"


def test_an_event_that_is_older_than_our_status_does_not_make_us_forget_it() -> None:
    world = ready()
    coming(world, ("a", 9, 0))
    (status,) = world.open
    assert isinstance(status, WriteStatus)
    uid, said = status.uid, world.machine.parts.said
    world.collect(world.machine.answered(status, WriteOutcome(code=200, version=world.version + 2), world.now))
    held = world.pod("a")
    assert held is not None
    for labels, is_kept in (({"app": "older"}, True), ({"app": "ours"}, False)):
        world.put({**held, "metadata": {**held["metadata"], "labels": labels}})
        world.deliver()
        assert (uid in said) is is_kept


def test_a_status_that_waits_is_not_forgotten_when_the_watch_shows_the_one_before() -> None:
    world = ready()
    coming(world, ("a", 9, 0))
    (first,) = world.open
    assert isinstance(first, WriteStatus)
    world.create_node("n2")
    world.deliver()
    parts = world.machine.parts
    parts.queue.activate((parts.cache.find("Pod", "default/a"),), world.now)
    world.run()
    world.effect(first)
    world.deliver()
    assert parts.said[first.uid].message.startswith("0/2 nodes")


@pytest.mark.parametrize(("answered", "seen"), [(None, "100"), (50, "new")])
def test_our_status_is_forgotten_with_the_next_event_if_versions_cannot_be_compared(
    answered: int | None, seen: str
) -> None:
    world = ready()
    coming(world, ("a", 9, 0))
    (status,) = world.open
    assert isinstance(status, WriteStatus)
    world.collect(world.machine.answered(status, WriteOutcome(code=200, version=answered), world.now))
    held = world.pod("a")
    assert held is not None
    changed = {**held, "metadata": {**held["metadata"], "labels": {"app": "b"}, "resourceVersion": seen}}
    world.collect(world.machine.take({"type": "MODIFIED", "object": changed}, world.now))
    assert status.uid not in world.machine.parts.said


def test_a_failed_status_does_not_make_us_forget_the_one_that_waits_behind_it() -> None:
    world = ready()
    coming(world, ("a", 9, 0))
    world.create_node("n2")
    world.deliver()
    parts = world.machine.parts
    parts.queue.activate((parts.cache.find("Pod", "default/a"),), world.now)
    world.run()
    world.carry_out(0, "403")
    (second,) = world.open
    assert isinstance(second, WriteStatus)
    assert parts.said[second.uid].message.startswith("0/2 nodes")


@pytest.mark.parametrize("is_written", [True, False])
def test_a_pod_of_lower_priority_loses_its_nomination_and_keeps_its_reason(is_written: bool) -> None:
    world = ready()
    coming(world, ("v", 4, 0))
    world.settle(20)
    coming(world, ("p", 4, 5))
    if is_written:
        world.carry_out()
        world.deliver()
    coming(world, ("q", 4, 10))
    if not is_written:
        world.carry_out()  # the status that nominates p, and the one that clears it is sent
    (cleared,) = [each for each in world.open if isinstance(each, WriteStatus) and each.pod == "default/p"]
    assert cleared.nominated_node == ""
    assert (cleared.reason, cleared.changes_condition) == (("", False) if is_written else ("Unschedulable", True))
    assert bool(cleared.message) is not is_written


@pytest.mark.parametrize(("was_refused", "fault", "reason"), [(False, "403", ""), (True, "", "Unschedulable")])
def test_a_nomination_that_somebody_else_made_is_cleared_and_the_condition_keeps_its_time(
    was_refused: bool, fault: str, reason: str
) -> None:
    world = ready()
    coming(world, ("v", 4, 0))
    world.settle(20)
    world.create_pod("p", 4, 5, preemptionPolicy="Never")
    held = world.pod("p")
    assert held is not None
    refusal = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "before"}
    held["status"] |= {"nominatedNodeName": "n1", "conditions": [refusal] if was_refused else []}
    world.backlog.clear()
    world.put(held, "ADDED")
    world.deliver()
    world.run()
    if fault:
        world.carry_out(0, fault)
    coming(world, ("q", 4, 10))
    if not fault:
        world.carry_out()
    (cleared,) = [each for each in world.open if isinstance(each, WriteStatus) and each.pod == "default/p"]
    assert (cleared.nominated_node, cleared.reason, cleared.changes_condition) == ("", reason, False)


@pytest.mark.parametrize("how", ["cleared", "deleted", "deletion begins", "kept"])
def test_a_nomination_that_ends_lets_pods_of_at_most_its_priority_try_again(how: str) -> None:
    world = ready()
    coming(world, ("guard", 1, 100))
    world.settle(10)
    world.create_pod("p", 4, 10)
    held = world.pod("p")
    assert held is not None
    held["status"]["nominatedNodeName"] = "n1"
    world.backlog.clear()
    world.put(held, "ADDED")
    world.deliver()
    world.run()
    coming(world, ("low", 4, 0), ("equal", 4, 10), ("high", 4, 50))
    world.wait(20)
    assert [room(world, name) for name in ("p", "low", "equal", "high")] == [Room.WAITING] * 4
    if how == "deleted":
        world.remove("Pod", "p")
    elif how == "deletion begins":  # and a finalizer keeps the pod
        world.begin_deletion("p")
    else:
        status = {} if how == "cleared" else held["status"]
        world.put({**held, "metadata": {**held["metadata"], "labels": {"app": "q"}}, "status": status})
    world.deliver()
    moved = {name for name in ("low", "equal", "high") if room(world, name) is not Room.WAITING}
    assert moved == (set() if how == "kept" else {"low", "equal"})


# ---- two pods that preempt the same victim ----


def preempting(holds: bool) -> tuple[World, Parts, Eviction]:
    """The pod `p` evicts x, then v."""
    world = ready()
    coming(world, ("p", 9, 10))
    parts = world.machine.parts
    preemptor = parts.cache.find("Pod", "default/p")
    others = {"uid-x"} if holds else set()
    eviction = Eviction(preemptor=preemptor, others=others, last=("default/v", "uid-v"), holds=holds)
    parts.evictions[preemptor.uid] = eviction
    return world, parts, eviction


def delete(name: str) -> DeleteVictim:
    return DeleteVictim(number=99, pod=f"default/{name}", uid=f"uid-{name}", message="", preemptor="default/q")


@pytest.mark.parametrize("how", ["deleted", "failed"])
def test_what_becomes_of_the_last_victim_concerns_a_pod_only_when_its_others_are_gone(how: str) -> None:
    def answer(parts: Parts, name: str, now: float) -> None:
        if how == "deleted":
            deleted(parts, delete(name), now, was_there=False)
        else:
            failed(parts, delete(name), now)

    world, parts, eviction = preempting(holds=True)
    answer(parts, "v", world.now)
    answer(parts, "y", world.now)
    assert (list(parts.evictions.values()), eviction.others) == ([eviction], {"uid-x"})
    world, parts, eviction = preempting(holds=False)
    answer(parts, "y", world.now)
    assert list(parts.evictions.values()) == [eviction]
    answer(parts, "v", world.now)
    assert (parts.evictions, room(world, "p")) == ({}, Room.ACTIVE)


def test_the_pod_that_preempts_waits_for_the_event_of_a_last_victim_that_was_there() -> None:
    world, parts, _ = preempting(holds=False)
    deleted(parts, delete("v"), world.now, was_there=True)
    assert (parts.evictions, room(world, "p")) == ({}, Room.WAITING)


# ---- one write at a time ----


def bind(number: int, uid: str = "u") -> Bind:
    return Bind(number=number, pod="default/a", uid=uid, node="n1")


def status(number: int, uid: str = "u") -> WriteStatus:
    return WriteStatus(number=number, pod="default/a", uid=uid)


def as_it_is(write: Any) -> Any:
    return write


def test_a_write_is_known_while_it_waits_and_while_it_is_in_flight() -> None:
    writes = Writes()
    assert [writes.has(kind, "u") for kind in (Bind, WriteStatus)] == [False, False]
    writes.ask(status(1))
    assert [writes.has(kind, "u") for kind in (Bind, WriteStatus)] == [False, True]
    writes.to_send(0, as_it_is)
    assert [writes.has(kind, "u") for kind in (Bind, WriteStatus)] == [False, True]
    writes.ask(bind(2))
    assert [writes.has(kind, "u") for kind in (Bind, WriteStatus)] == [True, True]
    writes.answered(1)
    assert [writes.has(kind, "u") for kind in (Bind, WriteStatus)] == [True, False]
    assert [writes.is_busy(uid) for uid in ("u", "other")] == [True, False]


def test_a_write_that_is_in_flight_cannot_be_withdrawn() -> None:
    writes = Writes()
    writes.ask(status(1))
    writes.to_send(0, as_it_is)
    writes.ask(status(2))
    writes.withdraw("u", WriteStatus)
    assert (writes.in_flight, writes.to_send(0, as_it_is)) == ((status(1),), [])
