"""The agents report delays and the end of a roll-out to people. If many nodes wait for the same reason, only one agent
reports the delay. The agent computes the figures of a roll-out from one list of Nodes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

import pytest

from careen.agent.messages import Messenger
from careen.agent.telemetry.metrics import Metrics
from careen.agent.telling.teller import Teller, figures_of_rollout
from careen.agent.turn import TurnResult
from careen.cluster.wire.errors import Forbidden, Unclear
from careen.core.actions import Notify
from careen.core.decision import Decision, Reason, Refusal
from careen.core.facts import keys
from careen.core.facts.memory import Memory
from careen.core.facts.phases import Phase
from careen.core.facts.reasons import Code
from careen.core.facts.times import rfc3339
from careen.core.people.rollout import Figures
from careen.services.notification_urls import parse
from careen.settings.tree import Settings
from tests.careen.cluster.conftest import Cluster, cluster
from tests.careen.core.builders import NOW, a_marked_node, a_progress, a_reading, an_observation, held


def turn_result(name: str, code: Code, *, is_of_cluster: bool = False, **changes: Any) -> TurnResult:
    since = NOW - timedelta(days=1, minutes=1)
    refusal = Refusal(gate="a", code=code, sentence="no", since=since, is_of_cluster=is_of_cluster)
    node = a_marked_node(a_progress(Phase.WAITING), name=name, uid=f"uid-{name}")
    decision = Decision(
        phase=Phase.WAITING,
        reason=Reason(code=Code.REFUSED, sentence="no"),
        look_again_seconds=30.0,
        memory=Memory(),
        refusals=(refusal,),
    )
    seen = an_observation(node, lock=a_reading(held()))
    return TurnResult(decision=decision, observation=seen, stop=None, phase=Phase.WAITING, **changes)


__all__ = ["cluster"]  # a fixture


class World:
    def __init__(self, cluster: Cluster) -> None:
        for name in ("default", "kube-system"):
            cluster.server.seed({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        self.cluster = cluster
        self.told: list[Notify] = []
        self.tasks: list[asyncio.Task[object]] = []

    def teller(self, **settings: Any) -> Teller:
        given = Settings(node_id="n", **{"notify_url": (parse("generic://h"),), **settings})
        messages = Messenger(
            node="n", settings=lambda: given, metrics=Metrics("n"), in_background=lambda work: work.close()
        )
        messages.tell = self.told.append  # type: ignore[method-assign]
        return Teller(api=self.cluster.api, settings=lambda: given, messages=messages, in_background=self._start)

    def _start(self, work: Coroutine[Any, Any, object]) -> None:
        self.tasks.append(asyncio.create_task(work))

    async def done(self) -> int:
        await asyncio.gather(*self.tasks)
        return len(self.told)


@pytest.fixture
def world(cluster: Cluster) -> World:
    return World(cluster)


async def test_each_node_reports_its_own_delay_once(world: World) -> None:
    one, other = world.teller(), world.teller()
    for teller, name in ((one, "n1"), (one, "n1"), (other, "n2"), (world.teller(), "n1")):
        teller.look(turn_result(name, Code.BLOCKING_POD))
        await world.done()
    assert [message.sentence[:7] for message in world.told] == ["Node n1", "Node n2"], (
        "a restarted agent sends no second report"
    )


async def test_only_one_of_the_paused_nodes_reports_the_pause(world: World) -> None:
    for name in ("n1", "n2", "n3"):
        world.teller().look(turn_result(name, Code.PAUSED))
    assert await world.done() == 1


@pytest.mark.parametrize(
    ("code", "earlier", "ready", "told"),
    [
        (Code.PAUSED, timedelta(hours=3), "True", 0),
        (Code.PAUSED, timedelta(hours=3), "Unknown", 1),  # its agent may be dead
        (Code.PAUSED, timedelta(days=8), "True", 1),  # its agent reports again after a week
        (Code.PAUSED, timedelta(minutes=44), "True", 1),  # its agent may notice the pause later than this agent
        (Code.PAUSED, timedelta(hours=-3), "True", 1),
        (Code.ALERT, timedelta(hours=3), "True", 1),
        (Code.HALTED, timedelta(hours=3), "True", 1),
    ],
)
async def test_a_pause_that_another_node_reported_hours_ago_is_not_reported_again(
    world: World, code: Code, earlier: timedelta, ready: str, told: int
) -> None:
    """The API server keeps an Event for only an hour, so the Event of the earlier report may no longer exist."""
    since = NOW - timedelta(days=1, minutes=1) - earlier
    refusals = [{"gate": "a", "code": code.value, "sentence": "no", "since": rfc3339(since)}]
    world.cluster.server.seed(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": "n2",
                "labels": {keys.REBOOT_LABEL: "required"},
                "annotations": {keys.REFUSALS: json.dumps(refusals)},
            },
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        }
    )
    world.teller().look(turn_result("n1", Code.PAUSED))
    assert await world.done() == told


async def test_a_cluster_wide_refusal_is_reported_despite_a_refusal_that_concerns_one_node(world: World) -> None:
    since = rfc3339(NOW - timedelta(days=3))
    theirs = {"gate": "a", "code": Code.HEALTH_QUERY.value, "sentence": "no", "since": since}
    world.cluster.server.seed(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": "n2",
                "labels": {keys.REBOOT_LABEL: "required"},
                "annotations": {keys.REFUSALS: json.dumps([theirs])},
            },
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }
    )
    world.teller().look(turn_result("n1", Code.HEALTH_QUERY, is_of_cluster=True))
    assert await world.done() == 1


async def test_a_pause_is_reported_even_if_the_waiting_nodes_are_unknown(world: World) -> None:
    world.cluster.wire.before = lambda request: Unclear("no answer") if request.method == "GET" else None
    world.teller().look(turn_result("n1", Code.PAUSED))
    assert await world.done() == 1


async def test_messages_are_sent_even_if_events_cannot_be_posted(world: World) -> None:
    world.cluster.wire.before = lambda _: Unclear("no answer")
    world.teller().look(turn_result("n1", Code.BLOCKING_POD))
    assert await world.done() == 1


async def test_an_agent_without_the_right_to_post_events_reports_no_cluster_wide_pause(world: World) -> None:
    no_right = Forbidden("POST events", status=403, reason="Forbidden", message="", retry_after_seconds=None)
    world.cluster.wire.before = lambda _: no_right
    for name in ("n1", "n2", "n3"):
        world.teller().look(turn_result(name, Code.PAUSED))
    assert await world.done() == 0
    world.teller().look(turn_result("n1", Code.BLOCKING_POD))
    assert await world.done() == 1


@pytest.mark.parametrize("settings", [{"notify_on": ("drain",)}, {"notify_url": ()}, {"notify_blocked_after": 0.0}])
async def test_an_agent_without_message_receivers_sends_no_request(world: World, settings: dict[str, Any]) -> None:
    world.teller(**settings).look(turn_result("n1", Code.BLOCKING_POD))
    assert (await world.done(), world.tasks) == (0, [])


async def test_the_figures_of_a_roll_out_come_from_the_last_reboot_of_each_node(cluster: Cluster) -> None:
    report = {"at": "2026-03-04T12:00:00Z", "seconds": 60, "moves": 2}
    for name in ("n1", "n2"):
        cluster.server.seed(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "annotations": {keys.LAST_REBOOT: json.dumps(report)}},
            }
        )
    assert await figures_of_rollout(cluster.api) == Figures(nodes=2, seconds=60, pods=4, failures=0)
