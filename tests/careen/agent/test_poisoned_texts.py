"""Each text in the test cluster that a client can write contains control characters. The agent escapes these characters
in its log, annotations, Events, messages, metrics and probe responses."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from email.utils import format_datetime
from typing import Any

import pytest

from careen.agent.apply import Applier
from careen.agent.messages import wording
from careen.agent.rescue import Rescue
from careen.agent.telemetry import logs
from careen.agent.telemetry.http_server import Heartbeat
from careen.agent.turn import Reconciler
from careen.cluster.events import Subject, event
from careen.cluster.wire.errors import Unclear
from careen.cluster.wire.transport import Request, Response, Transport
from careen.core.actions import AskReboot, ConfirmClaim, Evict, EvictPod, Notify, Occasion
from careen.core.facts import keys
from careen.core.facts.memory import Memory, RebootMemory, RebootOutcome
from careen.core.facts.observation import Alert, Need, NeedAnswer, SelfTest, Unknown
from careen.core.facts.policy import AlertPolicy, Policy
from careen.host import reboot
from careen.settings.tree import Settings
from tests.careen.agent.conftest import KEY, FakeAlerts, Shell
from tests.careen.cli.test_poisoned_texts import LOCKS, annotations
from tests.careen.poisoned_texts import LONG, MARK, POISON, strings_in, unfit, unfit_json
from tests.careen.virtual_shell import VirtualClock

POLICY = Policy(
    node_name="n1", daemonset_namespace="careen", daemonset_name="careen", reboot_cordoned=False, alerts=AlertPolicy()
)


@dataclass
class Recorder:
    """Collects everything that the agent wrote: its log, requests, messages and metrics."""

    shell: Shell
    log: io.StringIO

    def bodies(self) -> list[Any]:
        """Return the bodies of all requests except Evictions, which must contain pod names unchanged."""
        bodies = [json.loads(each.body) for each in self.shell.wire.asked if each.body]
        return [each for each in bodies if each.get("kind") != "Eviction"]

    def heard(self) -> list[str]:
        written = [text for body in self.bodies() for text in strings_in(body)]
        told = [wording(each, Settings(node_id="n1"), "n1") for each in self.shell.told]
        return [self.log.getvalue(), *written, *told, self.shell.metrics.exposition().decode()]

    def wrong(self) -> list[str]:
        return [problem for text in self.heard() for problem in unfit(text)]


@dataclass
class OnTime:
    """A transport that sets the date of each response to virtual time. With the real date, the agent would report only
    that its clock and the server's clock differ."""

    inner: Transport
    clock: VirtualClock

    async def send(self, request: Request) -> Response:
        response = await self.inner.send(request)
        return replace(response, headers={**response.headers, "date": format_datetime(self.clock.now(), usegmt=True)})


@pytest.fixture(params=["text", "json"])
def ears(request: pytest.FixtureRequest, shell: Shell) -> Iterator[Recorder]:
    root, ours = logging.getLogger(), logging.getLogger("careen")
    before = (root.handlers[:], root.level, ours.level)
    stream = io.StringIO()
    shell.wire.inner = OnTime(shell.wire.inner, shell.clock)
    logs.set_up(form=request.param, level="debug", node="n1", stream=stream)
    yield Recorder(shell, stream)
    root.handlers[:], level, our_level = before
    root.setLevel(level)
    ours.setLevel(our_level)


async def turns(shell: Shell, policy: Policy = POLICY, most: int = 6) -> None:
    reconciler = Reconciler(shell.observer(), shell.hands)
    for _ in range(most):
        result = await reconciler.turn(policy)
        logging.getLogger("careen.loop").info("%s", result.decision.reason.sentence)
        if result.stop:
            logging.getLogger("careen.loop").error(
                "a turn did not finish, so the agent tries again: %s", result.stop.why
            )
        shell.metrics.show_refusals(result.decision.refusals)
        shell.metrics.show_overdue(result.decision.memory.holder_check.overdue)
        await shell.clock.sleep(60)
    await asyncio.gather(*shell.background)


def needs_reboot(shell: Shell, text: str) -> None:
    shell.host.need = Need(answer=NeedAnswer.YES, detail=text)


def a_hold(shell: Shell, text: str) -> None:
    shell.put_node("n1", annotations={keys.HOLD: text})


def anothers_words_on_the_node(shell: Shell, text: str) -> None:
    shell.put_node("n1", annotations=annotations("Waiting", text), labels={keys.REBOOT_LABEL: "required"})


def a_lock(shell: Shell, text: str) -> None:
    lock = {"nodeID": "manual", "reason": text, "locks": [{"nodeID": text, "id": text, "failed": text}]}
    shell.put_daemonset(annotations={KEY: json.dumps(lock)})


def an_overdue_holder(shell: Shell, text: str) -> None:
    row = {"nodeID": text, "id": text, "overdue": {"phase": "Draining", "since": "2026-03-04T11:00:00Z"}}
    shell.put_daemonset(annotations={KEY: json.dumps({"nodeID": text, "maxOwners": 1, "locks": [row]})})


def a_garbage_lock(shell: Shell, text: str) -> None:
    shell.put_daemonset(annotations={KEY: text})


def a_foreign_coordinator(shell: Shell, text: str) -> None:
    shell.put_daemonset("tools", text[:300], image="kured", scheduled=3)
    shell.put_daemonset("kube-system", "kured", scheduled=0, annotations={KEY: json.dumps({"nodeID": text})})


def a_foreign_cordon(shell: Shell, text: str) -> None:
    fields = [{"manager": text, "operation": "Update", "fieldsV1": {"f:spec": {"f:unschedulable": {}}}}]
    shell.put_node("n1", spec={"unschedulable": True}, managedFields=fields)


def a_peer(shell: Shell, text: str) -> None:
    shell.put_node(text[:300], labels={keys.REBOOT_LABEL: "in-progress"}, annotations=annotations("Draining", text))


def alerts(shell: Shell, text: str) -> None:
    shell.alerts = FakeAlerts(answer=(Alert(name=text, state="firing", labels={text: text}),))


def no_alerts(shell: Shell, text: str) -> None:
    shell.alerts = FakeAlerts(answer=Unknown(text))


def no_forecast(shell: Shell, text: str) -> None:
    shell.forecaster.answer = Unknown(text)


def no_need(shell: Shell, text: str) -> None:
    shell.host.need = Need(answer=NeedAnswer.UNKNOWN, detail=text)


def no_boot(shell: Shell, text: str) -> None:
    shell.host.boot = Unknown(text)


def a_self_test(shell: Shell, text: str) -> None:
    shell.host.self_test = SelfTest(obstacle=text, warning=text)


def a_pod(shell: Shell, text: str) -> None:
    shell.put_pod(f"pod-{text[:200]}", metadata={"labels": {"app": text[:200]}})


WORLDS: dict[str, Callable[[Shell, str], None]] = {
    each.__name__.replace("_", " "): each
    for each in (
        needs_reboot,
        a_hold,
        anothers_words_on_the_node,
        a_lock,
        an_overdue_holder,
        a_garbage_lock,
        a_foreign_coordinator,
        a_foreign_cordon,
        a_peer,
        alerts,
        no_alerts,
        no_forecast,
        no_need,
        no_boot,
        a_self_test,
        a_pod,
    )
}


@pytest.mark.parametrize("text", [POISON, LONG], ids=["short", "long"])
@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS.keys())
async def test_an_agent_escapes_poisoned_texts_in_everything_that_it_writes(
    ears: Recorder, world: Callable[[Shell, str], None], text: str
) -> None:
    shell = ears.shell
    shell.put_node("n1")
    shell.put_pod("web")
    needs_reboot(shell, "the sentinel file exists")
    world(shell, text)
    await turns(shell)
    assert ears.wrong() == []


SAYS_IT = [
    "a hold",
    "a lock",
    "a foreign coordinator",
    "a foreign cordon",
    "alerts",
    "no alerts",
    "no need",
    "a self test",
]


@pytest.mark.parametrize("name", SAYS_IT)
async def test_the_poisoned_texts_occur_in_the_agents_output(ears: Recorder, name: str) -> None:
    """If the agent wrote none of the poisoned texts, the other tests of this file would check nothing."""
    shell = ears.shell
    shell.put_node("n1")
    needs_reboot(shell, "the sentinel file exists")
    WORLDS[name](shell, POISON)
    await turns(shell)
    assert any(MARK in each for each in ears.heard()), ears.log.getvalue()


async def test_the_servers_refusal_of_an_eviction_is_made_safe_to_display(ears: Recorder) -> None:
    shell = ears.shell
    shell.put_pod("web")
    said = {
        "kind": "Status",
        "status": "Failure",
        "reason": POISON,
        "message": f"disruption budget {LONG}",
        "code": 429,
    }
    inner = shell.wire.inner

    class Refusing:
        async def send(self, request: Request) -> Response:
            if request.path.endswith("/eviction"):
                return Response(status=429, headers={"retry-after": POISON}, body=json.dumps(said).encode())
            return await inner.send(request)

    shell.wire.inner = Refusing()
    pods = (EvictPod(namespace="shop", name="web", uid="uid-pods-shop-web"),)
    applied = await Applier(shell.hands, Memory(), node_uid="u", remember=lambda _: None).apply(
        (Evict(pods=pods, parallel=1),)
    )
    assert applied.stop is None
    assert "the eviction of pod shop/web" in ears.log.getvalue()
    assert ears.wrong() == []


@pytest.mark.parametrize(
    "answer", [reboot.RebootRefused(LONG), reboot.RebootUnclear(POISON)], ids=["refused", "unclear"]
)
async def test_the_output_of_the_reboot_command_is_made_safe_to_display(
    ears: Recorder, answer: reboot.RebootAnswer
) -> None:
    shell = ears.shell
    shell.host.answer = answer
    shell.put_node("n1")
    shell.put_daemonset(annotations={KEY: json.dumps({"nodeID": "n1", "locks": [{"nodeID": "n1", "id": "c1"}]})})
    memory = Memory(reboot=RebootMemory(claim="c1", announcement=1, outcome=RebootOutcome.NOT_ASKED))
    await Applier(shell.hands, memory, node_uid="u", remember=lambda _: None).apply(
        (ConfirmClaim(claim="c1", node="n1"), AskReboot(within_seconds=5.0))
    )
    assert MARK in ears.log.getvalue()
    assert ears.wrong() == []


async def test_the_error_of_a_failed_loop_round_is_safe_to_display(ears: Recorder) -> None:
    shell = ears.shell
    shell.put_node("n1", annotations=annotations("Draining", POISON), labels={keys.REBOOT_LABEL: "in-progress"})
    rescue = Rescue(shell.hands)
    try:
        broken(POISON)
    except ValueError as error:
        logging.getLogger("careen.loop").exception("a turn failed with an exception")
        for _ in range(3):
            await rescue.broke(error, POLICY)
            await shell.clock.sleep(60)
    await asyncio.gather(*shell.background)
    assert MARK in ears.log.getvalue()
    assert ears.wrong() == []


async def test_the_error_of_a_lost_response_is_safe_to_display(ears: Recorder) -> None:
    shell = ears.shell
    shell.put_node("n1")
    needs_reboot(shell, "the sentinel file exists")
    shell.wire.before = lambda request: Unclear(LONG) if request.method == "PATCH" else None
    await turns(shell, most=2)
    assert MARK in ears.log.getvalue()
    assert ears.wrong() == []


def broken(text: str) -> None:
    raise ValueError(text)


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("text", [POISON, LONG, "\ud800"], ids=["short", "long", "half of a surrogate pair"])
def test_a_poisoned_text_cannot_forge_a_second_log_entry(form: str, text: str) -> None:
    record = logging.LogRecord("kopf", logging.INFO, __file__, 1, "%s", (text,), None)
    record.detail, record.node, record.phase, record.reason = text, text, text, text
    try:
        broken(text)
    except ValueError as error:
        record.exc_info = (type(error), error, error.__traceback__)
    entry = (logs.JsonFormat() if form == "json" else logs.TextFormat()).format(record)
    entry.encode()
    first, *rest = entry.split("\n")
    assert (unfit_json(entry) if form == "json" else unfit(entry)) == []
    assert [line for line in rest if not line.startswith("    ")] == []
    assert form == "text" or not rest
    assert len(entry) < 100_000, first[:100]


def test_events_messages_and_probe_responses_are_safe_to_display() -> None:
    subject = Subject(kind="Node", name="n1", uid="u")
    posted = event(subject, reason="R", sentence=LONG, is_warning=True, host="n1", at="2026-03-04T12:00:00Z")
    assert unfit(posted["message"], longest=1024) == []
    assert len(posted["message"].encode()) <= 1024
    templates = Settings(node_id="n1", message_template_drain="Draining %s\nby careen")
    told = wording(Notify(occasion=Occasion.DRAIN, sentence=POISON), templates, POISON)
    assert unfit(told) == []
    assert told.split("\n")[-1] == "by careen", "the administrator's own line break remains"
    assert unfit(wording(Notify(occasion=Occasion.FAILED, sentence=LONG), templates, "n1")) == []
    assert Heartbeat(lambda: 0.0).health()[0]


@pytest.mark.parametrize("text", LOCKS.values(), ids=LOCKS.keys())
async def test_a_poisoned_lock_causes_no_exception_in_the_agent(ears: Recorder, text: str) -> None:
    shell = ears.shell
    shell.put_node("n1")
    needs_reboot(shell, "the sentinel file exists")
    shell.put_daemonset(annotations={KEY: text})
    await turns(shell)
    assert "a turn failed with an exception" not in ears.log.getvalue()
    assert ears.wrong() == []
