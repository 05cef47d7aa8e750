"""What Reserve, Permit, PreBind and Bind plugins may say on a pod's way to its node, and what is counted."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.config.configuration import Configuration
from scheduler_core.cycle import Scheduler
from scheduler_core.framework.verdict import SKIP, SUCCESS, Verdict, VerdictCode, error, unschedulable
from scheduler_core.queue.scheduling_queue import Room
from scheduler_core.running.commands import Bind, Command, Count, LookAtPod, WriteStatus
from scheduler_core.running.waiting.permits import WaitingPods
from tests.scheduler_core.running.test_machine import coming, kinds, ready, room
from tests.scheduler_core.running.world import LOST_BEFORE, World

WAIT = Verdict(VerdictCode.WAIT)
PENDING = Verdict(VerdictCode.PENDING, ("a device is on its way",))


class Says:
    """Gives these verdicts, by method, and counts its calls."""

    def __init__(self, name: str = "Says", **verdicts: Verdict) -> None:
        self.name = name
        self.calls: list[str] = []
        for method, verdict in verdicts.items():
            setattr(self, method, self._saying(method, verdict))

    def _saying(self, method: str, verdict: Verdict) -> Any:
        def say(_state: Any, _pod: Any, _node: str) -> Verdict:
            self.calls.append(method)
            return verdict

        return say

    def events(self) -> tuple[()]:
        return ()


class Reserves(Says):
    def unreserve(self, _state: Any, _pod: Any, _node: str) -> None:
        self.calls.append("unreserve")


def asking(*plugins: Says, point: str = "multiPoint", then: tuple[str, ...] = ()) -> World:
    """One node, and a scheduler with these plugins. At `point`, only they run, followed by those in `then`."""
    names = [{"name": name} for name in (*(each.name for each in plugins), *then)]
    chosen = {"enabled": names} if point == "multiPoint" else {"disabled": [{"name": "*"}], "enabled": names}
    configuration = Configuration.from_mapping({"profiles": [{"plugins": {point: chosen}}]})
    made = {each.name: (lambda _args, _version, each=each: each) for each in plugins}
    return ready(scheduler=Scheduler(configuration, plugins=made), permits=WaitingPods())


def refusers(world: World, name: str) -> set[str]:
    found = world.machine.parts.queue.find(f"default/{name}")
    assert found is not None
    return found[1].unschedulable_plugins


def said(world: World) -> tuple[str, str]:
    (status,) = [each for each in world.open if isinstance(each, WriteStatus)]
    return status.reason, status.message


def test_a_pod_that_reserve_refuses_waits_for_its_plugin_and_is_released_once() -> None:
    plugin = Reserves(reserve=unschedulable("no more licences"))
    world = asking(plugin)
    coming(world, ("a", 1, 0))
    assert (said(world), refusers(world, "a")) == (
        ("Unschedulable", "0/1 nodes are available: 1 no more licences."),
        {"Says"},
    )
    assert plugin.calls == ["reserve", "unreserve"]
    assert world.machine.parts.cache.assumed_node("default/a") == ""


@pytest.mark.parametrize("plugin", [Reserves(reserve=PENDING), Says(permit=PENDING)], ids=["reserve", "permit"])
def test_a_pod_that_is_pending_for_a_plugin_waits_for_it_and_does_not_count_as_refused(plugin: Says) -> None:
    world = asking(plugin)
    coming(world, ("a", 1, 0))
    found = world.machine.parts.queue.find("default/a")
    assert found is not None
    assert (found[1].pending_plugins, found[1].unschedulable_plugins, room(world, "a")) == (
        {"Says"},
        set(),
        Room.WAITING,
    )
    assert said(world) == ("Unschedulable", "0/1 nodes are available: 1 a device is on its way.")


@pytest.mark.parametrize("rejecting", ["One", "Two"])
def test_only_the_permit_plugin_that_rejects_a_pod_must_help_it_later(rejecting: str) -> None:
    world = asking(Says("One", permit=WAIT), Says("Two", permit=WAIT))
    coming(world, ("a", 4, 0))
    (uid,) = world.machine.parts.bindings
    world.collect(world.machine.reject(uid, rejecting, "not now", world.now))
    assert refusers(world, "a") == {rejecting}


def test_a_victim_that_waits_for_permit_is_tried_again_after_its_backoff_without_an_event() -> None:
    world = asking(Says("One", permit=WAIT), Says("Two", permit=WAIT))
    coming(world, ("a", 4, 0))
    world.carry_out()
    coming(world, ("boss", 4, 10))
    assert (refusers(world, "a"), room(world, "a")) == (set(), Room.BACKOFF)
    assert ("SchedulerError", "preempted") in [
        (each.reason, each.message) for each in world.open if isinstance(each, WriteStatus)
    ]
    boss = world.pod("boss")["metadata"]["uid"]  # type: ignore[index]
    assert [each.note for each in world.events if each.reason == "Preempted"] == [
        f"Preempted by pod {boss} on node n1 (in kube-scheduler memory)."
    ]


def test_a_pod_that_reserve_refuses_wakes_nobody() -> None:
    """Nobody was refused while it had its room: two pods that Reserve refuses would wake each other for ever."""
    world = asking(Reserves(reserve=unschedulable("no more licences")))
    coming(world, ("large", 9, 0), ("a", 2, 0))
    world.wait(20)
    assert (room(world, "large"), room(world, "a")) == (Room.WAITING, Room.WAITING)
    label = ("backoff", "AssignedPodDelete"), ("active", "AssignedPodDelete")
    assert [world.machine.parts.queue.incoming[each] for each in label] == [0, 0]


def test_a_rejection_without_a_message_is_still_a_rejection() -> None:
    world = asking(Says(permit=WAIT))
    coming(world, ("a", 1, 0))
    (uid,) = world.machine.parts.bindings
    world.carry_out()
    world.collect(world.machine.reject(uid, "Says", "", world.now))
    assert (said(world), room(world, "a")) == (
        ("Unschedulable", "0/1 nodes are available: 1 rejected."),
        Room.WAITING,
    )


@pytest.mark.parametrize(
    ("verdict", "reason", "message"),
    [
        (unschedulable("not yet"), "Unschedulable", "not yet"),
        (error("no disk"), "SchedulerError", 'running PreBind plugin "Says": no disk'),
        (SKIP, "", ""),
        (SUCCESS, "", ""),
    ],
)
def test_prebind_may_refuse_or_fail_and_skip_is_no_refusal(verdict: Verdict, reason: str, message: str) -> None:
    world = asking(Says(pre_bind=verdict))
    coming(world, ("a", 1, 0))
    assert kinds(world) == (["WriteStatus"] if reason else ["Bind"])
    assert not reason or (said(world), refusers(world, "a"), room(world, "a")) == (
        (reason, message),
        set(),
        Room.BACKOFF,
    )


@pytest.mark.parametrize(
    ("verdict", "then", "commands", "message"),
    [
        (SUCCESS, (), [], ""),
        (SKIP, ("DefaultBinder",), ["Bind"], ""),
        (SKIP, (), ["WriteStatus"], "all bind plugins skipped the pod"),
        (error("no route"), ("DefaultBinder",), ["WriteStatus"], "no route"),
    ],
)
def test_the_first_bind_plugin_that_does_not_skip_binds_the_pod(
    verdict: Verdict, then: tuple[str, ...], commands: list[str], message: str
) -> None:
    plugin = Says(bind=verdict)
    world = asking(plugin, point="bind", then=then)
    coming(world, ("a", 1, 0))
    assert (kinds(world), plugin.calls) == (commands, ["bind"])
    assert not message or message in said(world)[1]
    assert [each.reason for each in world.events] == [
        *(["Scheduled"] if verdict is SUCCESS else []),
        *(["FailedScheduling"] if message else []),
    ]


def counts(commands: tuple[Command, ...]) -> dict[tuple[str, str], float]:
    return {(each.metric, each.label): each.amount for each in commands if isinstance(each, Count)}


def test_a_binding_is_counted_with_its_attempts_and_the_time_since_the_first() -> None:
    world = ready()
    coming(world, ("a", 9, 0))
    world.carry_out()
    world.wait(5)
    world.put({**world.objects["Node", "n1"], "status": {"allocatable": {"cpu": "9", "memory": "64Gi", "pods": "110"}}})
    world.deliver()
    world.run()
    (bind,) = world.open
    assert isinstance(bind, Bind)
    told = world.machine.answered(bind, world.effect(bind), world.now + 2)
    assert counts(told) == {
        ("schedule_attempts_total", "scheduled"): 1,
        ("pod_scheduling_attempts", ""): 2,
        ("pod_scheduling_sli_duration_seconds", "2"): 7,
    }


def after(world: World, name: str, cpu: int, priority: int) -> dict[tuple[str, str], float]:
    """What the machine counts when it tries this new pod."""
    world.create_pod(name, cpu, priority)
    world.deliver()
    told = world.machine.next(world.now)
    world.collect(told)
    return {key: amount for key, amount in counts(told).items() if key[0].startswith("preemption")}


def test_each_cycle_in_which_preemption_runs_is_counted_and_victims_only_if_there_are_some() -> None:
    world = ready()
    assert after(world, "a", 4, 0) == {}
    world.settle(10)
    assert after(world, "equal", 4, 0) == {("preemption_attempts_total", ""): 1}
    assert after(world, "boss", 4, 10) == {("preemption_attempts_total", ""): 1, ("preemption_victims", ""): 1}
    world.begin_deletion("a")
    assert after(world, "other", 4, 20) == {("preemption_attempts_total", ""): 1}


def test_a_binding_that_the_watch_shows_before_the_answer_is_counted_and_told_once() -> None:
    world = ready()
    coming(world, ("a", 1, 0))
    (bind,) = world.open
    outcome = world.effect(bind)
    told = tuple(each for event in world.backlog for each in world.machine.take(event, world.now))
    told += world.machine.answered(bind, outcome, world.now)
    assert sum(isinstance(each, Count) and each.label == "scheduled" for each in told) == 1


def test_a_look_without_an_answer_is_repeated() -> None:
    world = ready()
    coming(world, ("a", 1, 0))
    world.carry_out(0, LOST_BEFORE)
    for looks in (1, 2, 3):
        world.wait(10)
        assert [type(each) for each in world.open] == [LookAtPod] * looks
        world.wait(9)
        assert len(world.open) == looks


def test_a_pod_that_is_being_deleted_when_its_binding_fails_is_not_tried_again() -> None:
    world = ready()
    coming(world, ("a", 1, 0))
    world.begin_deletion("a")
    world.carry_out()  # 409
    assert (room(world, "a"), world.machine.parts.bindings, world.open) == (None, {}, [])
