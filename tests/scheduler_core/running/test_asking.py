"""Extenders that are asked beside the machine: meanwhile it takes what happens, and tries no other pod."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from scheduler_core.config.configuration import Configuration
from scheduler_core.cycle import Scheduler
from scheduler_core.extenders.asked_ahead import AskedAhead
from scheduler_core.extenders.protocol import ExtenderError
from scheduler_core.queue.scheduling_queue import Room
from scheduler_core.running.commands import AskExtender, Bind, Command, Count
from scheduler_core.running.machine import Attempt, Machine
from tests.scheduler_core.running.test_machine import coming, kinds, room
from tests.scheduler_core.running.world import World

Post = Callable[[str, bytes], bytes]
FILTER = {"urlPrefix": "http://x", "filterVerb": "filter", "nodeCacheCapable": True}


class _Extender:
    def __init__(self, post: Post) -> None:
        self.post = post


class AskingWorld(World):
    """`asked`: the calls without an answer."""

    def __init__(self, *extenders: dict[str, Any], posts: dict[str, Post]) -> None:
        self.asked: list[AskExtender] = []
        self.victims: list[float] = []
        self.attempts: list[Attempt] = []
        self.ahead = AskedAhead(lambda settings: _Extender(posts[settings.url_prefix]))
        config = Configuration.from_mapping({"extenders": list(extenders)})
        super().__init__(Scheduler(config, transport=self.ahead.transport))

    def new_machine(self) -> Machine:
        return Machine(self.scheduler, ahead=self.ahead, on_attempt=self.attempts.append)

    def collect(self, commands: tuple[Command, ...]) -> None:
        super().collect(commands)
        self.asked += [each for each in commands if isinstance(each, AskExtender)]
        counts = (each for each in commands if isinstance(each, Count))
        self.victims += [each.amount for each in counts if each.metric == "preemption_victims"]

    def answer(self) -> None:
        """As the shell does."""
        command = self.asked.pop(0)
        answer: bytes | ExtenderError
        try:
            answer = self.ahead.ask(command.call)
        except ExtenderError as error:
            answer = error
        self.collect(self.machine.told(command.number, answer, self.now))


def names(*passed: str) -> Post:
    return lambda _verb, _body: json.dumps({"NodeNames": list(passed)}).encode()


def town(*extenders: dict[str, Any], posts: dict[str, Post]) -> AskingWorld:
    world = AskingWorld(*(extenders or (FILTER,)), posts=posts)
    for each in ("n1", "n2"):
        world.create_node(each)
    world.deliver()
    return world


def binds(world: World) -> list[tuple[str, str]]:
    return [(each.pod.removeprefix("default/"), each.node) for each in world.open if isinstance(each, Bind)]


def test_while_an_extender_is_asked_events_are_taken_and_no_other_pod_is_tried() -> None:
    world = town(posts={"http://x": names("n2")})
    coming(world, ("a", 1, 0), ("b", 1, 0))
    assert (len(world.asked), kinds(world), world.machine.has_work) == (1, [], False)
    world.create_node("n3")
    world.deliver()
    assert world.machine.parts.cache.sizes()["nodes"] == 3
    world.answer()
    assert binds(world) == [("a", "n2")]
    world.run()
    world.answer()
    assert binds(world) == [("a", "n2"), ("b", "n2")]


def test_a_repeated_cycle_sees_what_it_saw_at_first() -> None:
    points = json.dumps([{"Host": "n1", "Score": 10}]).encode()
    told: list[Any] = []

    def post(verb: str, body: bytes) -> bytes:
        told.append(json.loads(body)["NodeNames"])
        return points if verb == "prioritize" else json.dumps({"NodeNames": told[-1]}).encode()

    world = town({**FILTER, "prioritizeVerb": "prioritize", "weight": 1}, posts={"http://x": post})
    coming(world, ("a", 1, 0))
    world.create_node("n0")
    world.deliver()
    world.answer()
    world.answer()
    assert told == [["n1", "n2"], ["n1", "n2"]]
    assert (binds(world), world.ahead._answers) == ([("a", "n1")], {})


def test_an_extender_that_fails_puts_its_pod_back_and_the_next_one_is_tried() -> None:
    def post(_verb: str, _body: bytes) -> bytes:
        raise ExtenderError("no answer within 5 s")

    world = town(posts={"http://x": post})
    coming(world, ("a", 1, 0), ("b", 1, 0))
    world.answer()
    assert (room(world, "a"), kinds(world)) == (Room.BACKOFF, ["WriteStatus"])
    world.run()
    assert len(world.asked) == 1


def test_a_pod_that_is_deleted_while_an_extender_is_asked_is_forgotten() -> None:
    world = town(posts={"http://x": names("n1")})
    coming(world, ("a", 1, 0), ("b", 1, 0))
    world.remove("Pod", "a")
    world.deliver()
    world.answer()
    assert (binds(world), world.machine.parts.queue.in_flight) == ([], ())
    world.run()
    world.answer()
    assert binds(world) == [("b", "n1")]


def test_a_node_that_left_while_an_extender_was_asked_sends_the_pod_back() -> None:
    world = town(posts={"http://x": names("n1")})
    coming(world, ("a", 1, 0))
    world.remove("Node", "n1")
    world.deliver()
    world.answer()
    assert (binds(world), room(world, "a"), world.machine.parts.queue.in_flight) == ([], Room.BACKOFF, ())
    assert world.events[-1].note == "node n1 was deleted before the pod was placed on it"


def test_an_attempt_shows_the_nodes_that_its_cycle_saw_before_an_extender_was_asked() -> None:
    world = town(posts={"http://x": names("n2")})
    coming(world, ("a", 1, 0))
    world.remove("Node", "n1")
    world.deliver()
    world.answer()
    (attempt,) = world.attempts
    assert (attempt.snapshot.has_node("n1"), binds(world)) == (True, [("a", "n2")])


def preempting() -> AskingWorld:
    """An extender is asked whether p may preempt v."""

    def post(_verb: str, body: bytes) -> bytes:
        victims = json.loads(body)["NodeNameToMetaVictims"]
        return json.dumps({"NodeNameToMetaVictims": victims}).encode()

    world = town({**FILTER, "filterVerb": "", "preemptVerb": "preempt"}, posts={"http://x": post})
    world.put({**world.objects["Node", "n2"], "spec": {"unschedulable": True}})
    world.create_pod("v", 4, 0, nodeName="n1")
    coming(world, ("p", 4, 10))
    return world


def test_an_event_while_an_extender_is_asked_does_not_let_a_pod_preempt_once_more() -> None:
    world = preempting()
    world.create_node("n3")
    world.deliver()
    world.answer()
    assert (kinds(world), room(world, "p")) == (["WriteStatus", "DeleteVictim"], Room.WAITING)


@pytest.mark.parametrize("happens", ["nothing", "its deletion begins", "it is created again elsewhere"])
def test_a_victim_that_left_while_an_extender_was_asked_is_not_deleted(happens: str) -> None:
    world = preempting()
    if happens == "its deletion begins":
        world.begin_deletion("v")
    elif happens != "nothing":
        world.remove("Pod", "v")
        world.create_pod("v", 4, 0, nodeName="n2")
        world.deliver()
    world.answer()
    assert kinds(world) == ["WriteStatus", *(["DeleteVictim"] if happens == "nothing" else [])]
    assert world.victims == ([1] if happens == "nothing" else [])


def test_an_extender_binds_after_another_one_that_may_be_ignored() -> None:
    bound: list[Any] = []

    def fails(_verb: str, _body: bytes) -> bytes:
        raise ExtenderError("not now")

    def works(_verb: str, body: bytes) -> bytes:
        bound.append(json.loads(body))
        return b"{}"

    world = town(
        {"urlPrefix": "http://x", "bindVerb": "bind", "ignorable": True},
        posts={"http://x": fails},
    )
    coming(world, ("a", 1, 0))
    world.answer()
    assert [each for each, _ in binds(world)] == ["a"]  # by the default binder
    world = town({"urlPrefix": "http://y", "bindVerb": "bind"}, posts={"http://y": works})
    coming(world, ("a", 1, 0), ("b", 1, 0))
    assert len(world.asked) == 2  # a binding holds no other pod up
    world.answer()
    world.answer()
    assert ([each["PodName"] for each in bound], binds(world)) == (["a", "b"], [])
    assert {each.step.name for each in world.machine.parts.bindings.values()} == {"SEEN"}


def test_a_late_answer_is_ignored() -> None:
    world = town(posts={"http://x": names("n1")})
    coming(world, ("a", 1, 0))
    number = world.asked[0].number
    world.answer()
    before = list(world.open)
    world.collect(world.machine.told(number, b"{}", world.now))
    assert world.open == before


@pytest.mark.parametrize("is_blocking", [True, False])
def test_whoever_may_wait_asks_at_once(is_blocking: bool) -> None:
    world = town(posts={"http://x": names("n1")})
    world.ahead.is_blocking = is_blocking
    coming(world, ("a", 1, 0))
    assert (len(world.asked), binds(world)) == ((0, [("a", "n1")]) if is_blocking else (1, []))


@pytest.mark.parametrize("is_recreated", [False, True])
def test_a_pod_that_is_deleted_or_created_again_while_an_extender_is_asked_is_not_placed(is_recreated: bool) -> None:
    world = town(posts={"http://x": names("n2")})
    coming(world, ("a", 1, 0))
    if is_recreated:
        world.remove("Pod", "a")
        world.create_pod("a", 1)
        world.deliver()
    else:
        world.begin_deletion("a")
    world.answer()
    assert (binds(world), world.asked, world.machine.parts.queue.in_flight) == ([], [], ())
