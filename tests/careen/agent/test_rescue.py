"""If turns fail, the agent reports the failure on the Node, in a metric and in an Event. It then restores a draining
node by separate code, because the code of a normal turn may fail again."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from careen.agent import turn
from careen.agent.loop import Loop
from careen.agent.rescue import Rescue, fault_of
from careen.agent.telemetry.http_server import Heartbeat
from careen.agent.telemetry.logs import LogContext
from careen.agent.turn import Reconciler
from careen.cluster.wire.errors import Unclear
from careen.cluster.wire.transport import Request
from careen.core.facts import keys
from careen.core.facts.policy import Policy
from careen.core.facts.progress import Progress, from_annotation, to_annotation
from careen.core.facts.reasons import Code
from tests.careen.agent.conftest import KEY, Shell

POLICY = Policy(node_name="n1", pre_reboot_labels={"pool": "maintenance"})
SECRET = "Bearer abc123"
DRAINING = Progress(
    phase="Draining", claim="c1", boot_left="boot-n1", is_cordoned_by_us=True, prior_labels={"pool": "web"}
)


def drain(shell: Shell, record: Progress = DRAINING, **annotations: str) -> None:
    shell.server.seed({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
    shell.put_node(
        "n1",
        labels={"pool": "maintenance", keys.REBOOT_LABEL: "in-progress"},
        spec={"unschedulable": True},
        annotations={
            keys.PHASE: record.phase,
            keys.REASON: "2 pods have to leave the node",
            keys.PROGRESS: to_annotation(record),
            **annotations,
        },
    )


def reason(shell: Shell) -> str:
    return str(shell.node("n1")["metadata"]["annotations"].get(keys.REASON, ""))


def is_cordoned(shell: Shell) -> bool:
    return bool(shell.node("n1")["spec"].get("unschedulable"))


async def events(shell: Shell) -> list[str]:
    await asyncio.gather(*shell.background)
    found = [
        change.after.content
        for change in shell.server.store.journal
        if change.after is not None and change.after.content.get("kind") == "Event"
    ]
    return [f"{event['type']} {event['reason']}: {event['message']}" for event in found]


def a_break() -> Exception:
    try:
        Policy(node_name="n1").taint_key.missing  # type: ignore[union-attr]  # noqa: B018
    except AttributeError as error:
        error.args = (SECRET,)
        return error
    raise AssertionError


async def break_for(shell: Shell, rescue: Rescue, seconds: float, *, every: float = 5.0) -> list[bool]:
    given_back = []
    for _ in range(int(seconds / every) + 1):
        given_back.append(await rescue.broke(a_break(), POLICY))
        shell.clock.seconds += every
    return given_back


async def test_a_failed_loop_round_is_reported_in_annotation_event_and_metric(shell: Shell) -> None:
    drain(shell)
    rescue = Rescue(shell.hands)
    assert not await rescue.broke(a_break(), POLICY)
    assert reason(shell).startswith("2 pods have to leave the node; the agent's turns break: AttributeError in ")
    (event,) = await events(shell)
    assert event.startswith("Warning TurnBroken: a turn failed: AttributeError in ")
    assert SECRET not in event + reason(shell)
    assert b'careen_broken_turns{node="n1"} 1.0' in shell.metrics.exposition()
    assert is_cordoned(shell), "one failed turn does not justify an undo"


async def test_consecutive_failed_loop_rounds_are_reported_only_once(shell: Shell) -> None:
    drain(shell, replace(DRAINING, phase="Rebooting"))
    rescue = Rescue(shell.hands)
    await break_for(shell, rescue, 300)
    assert shell.requests.count("PATCH /api/v1/nodes/n1") == 1
    assert len(await events(shell)) == 1


async def test_the_agent_undoes_the_drain_if_loop_rounds_fail_for_half_a_minute(
    shell: Shell,
) -> None:
    drain(shell)
    rescue = Rescue(shell.hands)
    given_back = await break_for(shell, rescue, 40)
    assert given_back.index(True) == 6, "the undo comes 30 s after the first failed turn"
    assert given_back.count(True) == 1
    node = shell.node("n1")
    assert not is_cordoned(shell)
    assert node["metadata"]["labels"] == {"pool": "web", keys.REBOOT_LABEL: "failed"}
    record = from_annotation(node["metadata"]["annotations"][keys.PROGRESS])
    assert isinstance(record, Progress)
    assert (record.claim, record.is_releasing, record.failed) == ("c1", True, Code.TURN_BROKEN.value)
    assert any("uncordoned, and the claim is released" in event for event in await events(shell))
    assert [message.occasion.value for message in shell.told] == ["failed"]


async def test_many_failed_loop_rounds_within_25_seconds_do_not_undo_the_drain(shell: Shell) -> None:
    drain(shell)
    assert not any(await break_for(shell, Rescue(shell.hands), 25, every=0.5))
    assert is_cordoned(shell)


async def test_a_successful_loop_round_resets_the_failure_count_and_removes_the_report(
    shell: Shell,
) -> None:
    drain(shell)
    rescue = Rescue(shell.hands)
    await break_for(shell, rescue, 25)
    seen = (await shell.observer().begin(turn.Memory(), turn.Phase.DRAINING, POLICY)).node
    assert await rescue.worked(seen)
    assert reason(shell) == "2 pods have to leave the node"
    assert b'careen_broken_turns{node="n1"} 0.0' in shell.metrics.exposition()
    assert not any(await break_for(shell, rescue, 25))


async def test_an_agent_without_failed_loop_rounds_sends_no_request_to_report_failures(shell: Shell) -> None:
    drain(shell)
    seen = (await shell.observer().begin(turn.Memory(), turn.Phase.IDLE, POLICY)).node
    shell.wire.asked.clear()
    assert not await Rescue(shell.hands).worked(seen)
    assert shell.requests == []


@pytest.mark.parametrize(
    ("hold", "is_undone"),
    [
        ("fans", True),
        ("", True),
        ("until=2026-03-04T11:00:00Z", False),
        ("until=2026-03-04T13:00:00Z", True),
        ("until=soon", True),
    ],
)
async def test_the_drain_of_a_held_node_is_undone_after_one_failed_loop_round(
    shell: Shell, hold: str, is_undone: bool
) -> None:
    drain(shell, **{keys.HOLD: hold})
    assert await Rescue(shell.hands).broke(a_break(), POLICY) is is_undone
    assert is_cordoned(shell) is not is_undone
    assert ("held" in reason(shell)) is is_undone


async def test_the_drain_of_a_paused_roll_out_is_undone_after_a_failed_loop_round(shell: Shell) -> None:
    drain(shell)
    shell.put_daemonset(annotations={KEY: '{"nodeID":"manual"}'})
    shell.wire.before = lambda request: KeyError("poison") if "daemonsets" in request.path else None
    assert not await Rescue(shell.hands).broke(a_break(), POLICY)
    shell.wire.before = lambda _: None
    assert await Rescue(shell.hands).broke(a_break(), POLICY)


async def test_the_drain_is_not_undone_if_another_agent_just_announced_the_reboot(shell: Shell) -> None:
    """After the agent has read its Node, a second agent of the node may record on the Node that a reboot follows. The
    undo by the first agent then fails with a conflict. Otherwise the host would reboot while its node is in service."""
    drain(shell, **{keys.HOLD: "fans"})
    announced = []

    def announce(request: Request) -> None:
        if request.method == "PATCH" and not announced:
            announced.append(True)
            drain(shell, replace(DRAINING, phase="Rebooting"), **{keys.HOLD: "fans"})

    shell.wire.before = announce
    assert not await Rescue(shell.hands).broke(a_break(), POLICY)
    assert is_cordoned(shell)
    assert shell.node("n1")["metadata"]["annotations"][keys.PHASE] == "Rebooting"


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_an_undo_of_the_drain_is_reported_once_even_if_its_first_patch_gets_no_response(
    shell: Shell, moment: str
) -> None:
    drain(shell, **{keys.HOLD: "fans"})
    lost = []

    def lose(request: Request) -> Exception | None:
        if request.method == "PATCH" and not lost:
            lost.append(True)
            return Unclear("connection reset")
        return None

    setattr(shell.wire, moment, lose)
    assert await Rescue(shell.hands).broke(a_break(), POLICY)
    assert not is_cordoned(shell)
    assert sum("the claim is released" in event for event in await events(shell)) == 1


async def test_an_undo_that_the_api_server_did_not_answer_is_repeated(shell: Shell) -> None:
    drain(shell)
    rescue = Rescue(shell.hands)
    shell.wire.before = lambda _: Unclear("down")
    assert not any(await break_for(shell, rescue, 60))
    shell.wire.before = lambda _: None
    assert await rescue.broke(a_break(), POLICY)


async def test_the_drain_is_undone_even_if_the_boot_id_cannot_be_read(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks() -> Any:
        raise OverflowError

    monkeypatch.setattr(shell.host, "uptime", breaks)
    monkeypatch.setattr(shell.host, "read_boot_id", breaks)
    drain(shell, **{keys.HOLD: "fans"})
    assert await Rescue(shell.hands).broke(a_break(), POLICY)
    assert not is_cordoned(shell)


async def loop_for(shell: Shell, reconciler: Reconciler, seconds: float, policy: Any = lambda: POLICY) -> None:
    loop = Loop(
        reconciler=reconciler,
        policy=policy,
        need=shell.need,
        clock=shell.clock,
        chance=lambda: 0.5,
        place=LogContext("n1"),
        metrics=shell.metrics,
        heartbeat=Heartbeat(shell.clock.monotonic),
        after_first_turn=lambda: None,
    )
    sleep, end = shell.clock.sleep, shell.clock.seconds + seconds

    async def sleep_and_look(pause: float) -> None:
        await sleep(pause)
        if shell.clock.seconds >= end:
            loop.stop()

    shell.clock.sleep = sleep_and_look  # type: ignore[method-assign]
    await loop.run()


async def test_the_loop_undoes_the_drain_if_every_decision_raises_an_exception(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    drain(shell)
    monkeypatch.setattr(turn, "decide", lambda *_: 1 / 0)
    await loop_for(shell, Reconciler(shell.observer(), shell.hands), 90)
    assert not is_cordoned(shell)
    assert "ZeroDivisionError in tests.careen.agent.test_rescue" not in reason(shell), (
        "the report shows where in careen the error occurred"
    )
    assert "ZeroDivisionError in careen.agent.turn" in reason(shell)


async def test_the_loop_undoes_the_drain_if_the_settings_raise_an_exception(shell: Shell) -> None:
    def policy() -> Policy:
        raise FileNotFoundError("/etc/scheduler.yaml")

    drain(shell)
    await loop_for(shell, Reconciler(shell.observer(), shell.hands), 90, policy)
    assert not is_cordoned(shell)


async def test_the_loop_continues_if_the_undo_of_the_drain_raises_an_exception(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    drain(shell)
    monkeypatch.setattr(turn, "decide", lambda *_: 1 / 0)
    monkeypatch.setattr(Rescue, "broke", lambda *_: 1 / 0)
    await loop_for(shell, Reconciler(shell.observer(), shell.hands), 90)
    assert "the agent can neither report nor repair a failed turn" in caplog.text
    assert shell.clock.seconds >= 90


def test_the_report_of_an_exception_group_shows_the_first_exception() -> None:
    assert fault_of(ExceptionGroup("two", [a_break(), ValueError(SECRET)])).startswith("AttributeError in ")
    assert fault_of(ValueError(SECRET)) == "ValueError"
