"""A node reboots once, and one write of its agent fails. From the appearance of the sentinel file to the release of the
claim, the agent still sends every Event and message exactly once and counts every step exactly once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from careen.agent.loop import Loop
from careen.agent.telemetry.http_server import Heartbeat
from careen.agent.telemetry.logs import LogContext
from careen.agent.turn import Reconciler
from careen.cluster.wire.errors import Unclear
from careen.cluster.wire.transport import Request
from careen.core.actions import Occasion
from careen.core.facts.phases import Phase
from tests.careen.agent.test_way_home import POLICY, Killed, Life, a_life, count, is_write

Meddle = Callable[[Life, int], None]


def touch(life: Life, request: Request) -> None:
    """Change the object that this request writes, as a kubelet or the DaemonSet controller would, so that the write
    conflicts."""
    if "/nodes/" in request.path:
        life.server.seed({**life.node("n1"), "status": {**life.status(str(life.host.boot)), "daemonEndpoints": {}}})
    elif "daemonsets" in request.path:
        found = life.server.get("daemonsets", "careen", "careen")
        assert found is not None
        life.server.seed({**found, "status": {**found["status"], "observedGeneration": len(life.wire.asked)}})


def conflict(life: Life, number: int) -> None:
    seen = 0

    def before(request: Request) -> None:
        nonlocal seen
        if is_write(request):
            seen += 1
            if seen == number:
                touch(life, request)

    life.wire.before = before


def lose(moment: str) -> Meddle:
    """Return a function that breaks the connection at the n-th write of an agent. `moment` says whether the connection
    breaks `before` or `after` the server carries out the write. The connection stays broken for twelve seconds."""

    def meddle(life: Life, number: int) -> None:
        seen, down_until = 0, -1.0

        def before(request: Request) -> Exception | None:
            return at(request, "before")

        def after(request: Request) -> Exception | None:
            return at(request, "after")

        def at(request: Request, now: str) -> Exception | None:
            nonlocal seen, down_until
            if is_write(request) and now == "before":
                seen += 1
            if is_write(request) and seen == number and down_until < 0 and now == moment:
                down_until = life.clock.seconds + 12.0
                return Unclear("connection reset")
            return Unclear("down") if now == "before" and life.clock.seconds < down_until else None

        life.wire.before, life.wire.after = before, after

    return meddle


async def live(life: Life) -> None:
    """Run the loop of the real agent until the host reboots. Then run the loop of a new process until the node is
    idle."""
    for _ in range(2):
        reconciler = life.new_process()
        loop = Loop(
            reconciler=reconciler,
            policy=lambda: POLICY,
            need=life.need,
            clock=life.clock,
            chance=lambda: 0.0,
            place=LogContext("n1"),
            metrics=life.metrics,
            heartbeat=Heartbeat(life.clock.monotonic),
            after_first_turn=lambda: None,
        )
        sleep, turns = life.clock.sleep, 0

        async def sleep_and_look(
            pause: float,
            loop: Loop = loop,
            reconciler: Reconciler = reconciler,
            sleep: Callable[[float], object] = sleep,
        ) -> None:
            nonlocal turns
            turns += 1
            await sleep(pause)  # type: ignore[misc]
            await life.settle_background()
            if turns > 400 or (life.reboots_seen and reconciler.phase is Phase.IDLE):
                loop.stop()

        life.clock.sleep = sleep_and_look  # type: ignore[method-assign]
        try:
            await loop.run()
        except Killed:
            await life.settle_background()
        finally:
            life.clock.sleep = sleep  # type: ignore[method-assign]


def events(life: Life) -> Counter[str]:
    found = [
        change.after.content
        for change in life.server.store.journal
        if change.after is not None and change.after.content.get("kind") == "Event"
    ]
    return Counter(event["reason"] for event in found)


def counted(life: Life, code: str) -> float:
    return float(life.metrics.reasons.labels("n1", code)._value.get())


_TOLD = {"NeedSeen": 1, "DrainStarted": 1, "Rebooted": 1, "GivenBack": 1, "Released": 1}


@pytest.mark.parametrize(
    "meddle", [conflict, lose("before"), lose("after")], ids=["conflict", "lost", "landed, answer lost"]
)
async def test_each_step_is_reported_once_despite_a_fault_at_one_write(tmp_path: Path, meddle: Meddle) -> None:
    writes = await count(tmp_path, is_write)
    for number in range(1, writes + 1):
        async with a_life(tmp_path) as life:
            meddle(life, number)
            await live(life)
            life.check_home()
            told = events(life)
            assert {code: told[code] for code in _TOLD} == _TOLD, f"write {number}: {told}"
            assert {code: counted(life, code) for code in ("drain-started", "given-back", "released")} == {
                "drain-started": 1,
                "given-back": 1,
                "released": 1,
            }, f"write {number}"
            said = [message.occasion for message in life.told]
            assert said[:3] == [Occasion.DRAIN, Occasion.REBOOT, Occasion.UNCORDON], f"write {number}"
            assert said[3:] in ([Occasion.DONE], []), (
                f"with a fault at write {number}, the end of the roll-out must be reported at most once"
            )
            assert said[3:] or meddle is not conflict, f"write {number}"
