"""The agent fills in the templates of messages to people, such as chat messages about a drain. It sends the messages in
the background, one after another, and each message once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest

from careen.agent.messages import Messenger, receivers, wording
from careen.agent.telemetry.metrics import Metrics
from careen.core.actions import Notify, Occasion
from careen.core.people.rollout import Figures
from careen.services.notification_urls import Target, parse
from careen.services.notify import Delivery
from careen.settings.tree import Settings
from tests.patience import LONG_SECONDS

SLACK = parse("slack://T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX")
HOOK = parse("slack://T11111111/B11111111/YYYYYYYYYYYYYYYYYYYYYYYY")
DRAIN = Notify(occasion=Occasion.DRAIN, sentence="Draining node n1", claim="c1")
REBOOT = Notify(occasion=Occasion.REBOOT, sentence="Rebooting node n1", claim="c1")
DONE = Notify(occasion=Occasion.DONE, sentence="Roll-out done", claim="c1")
FAILED = Notify(occasion=Occasion.FAILED, sentence="Node n1: the drain did not finish within 1m")


KNOWING = Notify(occasion=Occasion.DRAIN, sentence="x", reason="kernel", seconds=60.0, forecast="1 pod moves")
HALTED = Notify(occasion=Occasion.HALTED, sentence="Node n1: not ready", reason="n1: not ready")


class World:
    """The agent's messenger, and a record of the messages that it sent. A test can delay the messages with the event
    `gate`, and can let them fail with the reason `why`."""

    def __init__(self, **settings: Any) -> None:
        self.settings = Settings(node_id="n1", **settings)
        self.metrics = Metrics("n1")
        self.sent: list[tuple[str, tuple[Target, ...]]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.why = ""
        self.tasks: list[asyncio.Task[object]] = []
        self.messenger = Messenger(
            node="n1", settings=lambda: self.settings, metrics=self.metrics, in_background=self._start, send=self._send
        )

    def _start(self, work: Coroutine[Any, Any, object]) -> None:
        self.tasks.append(asyncio.create_task(work))

    async def _send(self, text: str, targets: Sequence[Target], *, seconds: float) -> tuple[Delivery, ...]:
        assert seconds == self.settings.notify_timeout
        await self.gate.wait()
        self.sent.append((text, tuple(targets)))
        return tuple(Delivery(service=target.service, why=self.why) for target in targets)

    def counted(self, result: str) -> float:
        return self.metrics.messages.labels("n1", "slack", result)._value.get()


async def test_a_message_is_sent_to_every_configured_url() -> None:
    world = World(notify_url=(SLACK, HOOK))
    world.messenger.tell(DRAIN)
    await world.messenger.finish(seconds=LONG_SECONDS)
    assert world.sent == [("Draining node n1", (SLACK, HOOK))]
    assert (world.counted("sent"), world.counted("failed")) == (2, 0)


def test_the_counters_of_each_receiver_are_zero_before_its_first_message(tmp_path: Path) -> None:
    """If a counter first appeared with the value 1, Prometheus would see no increase."""
    (tmp_path / "urls").write_text("generic+http://127.0.0.1:9/\nno URL\n")
    world = World(notify_url=(SLACK,), notify_url_file=(str(tmp_path / "urls"),))
    shown = world.metrics.exposition().decode()
    for service in ("slack", "generic", "file"):
        for result in ("sent", "failed"):
            assert f'careen_messages_total{{node="n1",result="{result}",service="{service}"}} 0.0' in shown


async def test_the_agent_logs_a_message_and_sends_nothing_if_no_url_is_configured(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    with caplog.at_level(logging.INFO, logger="careen"):
        world.messenger.tell(DRAIN)
    await world.messenger.finish(seconds=LONG_SECONDS)
    assert (world.sent, world.tasks) == ([], [])
    assert "the agent tells people: Draining node n1" in caplog.text


async def test_each_message_is_sent_once_per_claim() -> None:
    world = World(notify_url=(SLACK,))
    for message in (DRAIN, REBOOT, REBOOT, DRAIN):
        world.messenger.tell(message)
    await world.messenger.finish(seconds=LONG_SECONDS)
    assert [text for text, _ in world.sent] == ["Draining node n1", "Rebooting node n1"]


async def test_a_message_is_sent_again_for_a_new_claim_or_another_failure() -> None:
    world = World(notify_url=(SLACK,))
    for message in (
        REBOOT,
        FAILED,
        REBOOT,
        FAILED,
        Notify(occasion=Occasion.REBOOT, sentence="Rebooting node n1", claim="c2"),
    ):
        world.messenger.tell(message)
    await world.messenger.finish(seconds=LONG_SECONDS)
    assert [text for text, _ in world.sent] == [
        "Rebooting node n1",
        FAILED.sentence,
        FAILED.sentence,
        "Rebooting node n1",
    ]


async def test_messages_beyond_the_limit_of_the_queue_are_dropped_while_a_webhook_hangs() -> None:
    world = World(notify_url=(SLACK,))
    world.gate.clear()
    for number in range(12):
        world.messenger.tell(Notify(occasion=Occasion.FAILED, sentence=str(number)))
    assert len(world.tasks) == 10, "the last two messages exceed the limit of the queue"
    assert world.counted("failed") == 2
    await world.messenger.finish(seconds=0.01)
    world.gate.set()
    await world.messenger.finish(seconds=LONG_SECONDS)
    assert [text for text, _ in world.sent] == [str(number) for number in range(10)]


async def test_unsent_messages_are_logged_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    world = World(notify_url=(SLACK,))
    world.why = "status 403"
    world.messenger.tell(DRAIN)
    await world.messenger.finish(seconds=LONG_SECONDS)
    assert "the message to people through slack was not sent: status 403" in caplog.text
    assert (world.counted("sent"), world.counted("failed")) == (0, 1)


async def test_messages_are_sent_only_for_the_configured_occasions(caplog: pytest.LogCaptureFixture) -> None:
    world = World(notify_url=(SLACK,), notify_on=("reboot", "failed"))
    with caplog.at_level(logging.INFO, logger="careen"):
        for message in (DRAIN, REBOOT, FAILED):
            world.messenger.tell(message)
    await world.messenger.finish(seconds=LONG_SECONDS)
    assert [text for text, _ in world.sent] == ["Rebooting node n1", FAILED.sentence]
    assert "Draining" not in caplog.text


FOUND = Figures(nodes=3, seconds=12000.0, pods=1, failures=0)


@pytest.mark.parametrize(
    ("found", "template", "text"),
    [
        (FOUND, "", "Roll-out done: 3 nodes in 3 h 20 min, 1 pod moved, 0 failed tries"),
        (None, "", "Roll-out done"),
        (FOUND, "{cluster}: {nodes}/{pods}/{failures} {duration}", "prod: 3/1/0 3 h 20 min"),
        (None, "{nodes} in {duration}", "unknown in unknown"),
    ],
)
async def test_the_end_of_a_roll_out_is_reported_with_its_figures(
    found: Figures | None, template: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    world, asked = World(notify_url=(SLACK,), message_template_done=template, cluster_name="prod"), list[int]()

    async def figures() -> Figures | None:
        asked.append(1)
        return found

    world.messenger._figures = figures
    with caplog.at_level(logging.INFO, logger="careen"):
        world.messenger.tell(DONE)
        world.messenger.tell(DONE)
        await world.messenger.finish(seconds=LONG_SECONDS)
    assert [sent for sent, _ in world.sent] == [text]
    assert asked == [1]
    assert f"the agent tells people: {text}" in caplog.text


async def test_the_figures_of_a_roll_out_are_not_read_for_a_message_without_figures() -> None:
    world = World()

    async def figures() -> Figures | None:
        raise AssertionError

    world.messenger._figures = figures
    world.messenger.tell(DONE)
    await world.messenger.finish(seconds=LONG_SECONDS)
    assert world.tasks == []


async def test_the_agent_reads_the_file_with_receivers_before_each_message(tmp_path: Path) -> None:
    file = tmp_path / "urls"
    world = World(notify_url_file=(str(file),), slack_hook_url=HOOK)
    world.messenger.tell(DRAIN)
    assert world.metrics.messages.labels("n1", "file", "failed")._value.get() == 1, "the file does not exist yet"
    file.write_text("discord://t@1\nnonsense\n")
    world.messenger.tell(REBOOT)
    await world.messenger.finish(seconds=LONG_SECONDS)
    assert world.sent == [("Rebooting node n1", (parse("discord://t@1"),))]
    assert world.metrics.messages.labels("n1", "file", "failed")._value.get() == 2, "one line is not a URL"


def test_a_receiver_that_is_listed_twice_gets_each_message_once() -> None:
    settings = Settings(notify_url=(SLACK, HOOK, SLACK), notify_url_file=("/x",))
    assert receivers(settings, (HOOK, SLACK)) == (SLACK, HOOK)


def test_the_notify_url_flag_replaces_the_deprecated_slack_hook_flag() -> None:
    assert receivers(Settings(notify_url=(SLACK,), slack_hook_url=HOOK)) == (SLACK,)
    assert receivers(Settings(slack_hook_url=HOOK)) == (HOOK,)
    assert receivers(Settings()) == ()


@pytest.mark.parametrize(
    ("message", "settings", "text"),
    [
        (DRAIN, {}, "Draining node n1"),
        (DRAIN, {"message_template_drain": "%s: 100%% of its pods go"}, "n1: 100% of its pods go"),
        (DRAIN, {"message_template_drain": "%%s is %s"}, "%s is n1"),
        (DRAIN, {"message_template_drain": "a drain begins"}, "a drain begins"),
        (DRAIN, {"message_template_drain": ""}, "Draining node n1"),
        (REBOOT, {"message_template_drain": "no"}, "Rebooting node n1"),
        (Notify(occasion=Occasion.UNCORDON, sentence="x"), {}, "Node n1 rebooted & uncordoned successfully!"),
        (FAILED, {}, "Node n1: the drain did not finish within 1m"),
        (
            KNOWING,
            {"message_template_drain": "{cluster} {node} {reason} {duration} {forecast}"},
            "prod n1 kernel 1 min 1 pod moves",
        ),
        (DRAIN, {"message_template_drain": "{reason}, {duration}, {forecast}"}, "unknown, unknown, no forecast"),
        (KNOWING, {"message_template_drain": "{{node}} is %s"}, "{node} is n1"),
        (HALTED, {"message_template_halted": "halt: {reason}"}, "halt: n1: not ready"),
        (HALTED, {}, "Node n1: not ready"),
    ],
)
def test_the_message_follows_the_template(message: Notify, settings: dict[str, str], text: str) -> None:
    assert wording(message, Settings(cluster_name="prod", **settings), "n1") == text


def test_a_message_has_a_limit_whatever_its_template_repeats() -> None:
    text = wording(
        Notify(occasion=Occasion.BLOCKED, sentence="x", reason="r" * 9999),
        Settings(message_template_blocked="{reason}" * 512),
        "n1",
    )
    assert (len(text), text[-2:]) == (16_000, "r…")
