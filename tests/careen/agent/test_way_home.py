"""A whole reboot of a node, from the sentinel file to the release of the claim. Decisions, agent and API server are
real, and time is virtual.

The tests kill the agent's process before and after every single request, and lose every response once. Each time the
host must reboot exactly once, and the node must return to idle without any label, annotation or taint of careen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from careen.agent.loop import Loop
from careen.agent.telemetry.http_server import Heartbeat
from careen.agent.telemetry.logs import LogContext
from careen.agent.turn import Reconciler
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.client import connect
from careen.cluster.wire.errors import Unclear
from careen.cluster.wire.transport import Request, Response, Transport
from careen.core.facts.observation import Need, NeedAnswer
from careen.core.facts.phases import Phase
from careen.core.facts.policy import Policy
from careen.core.facts.progress import Progress, to_annotation
from careen.core.facts.selectors import Selector
from careen.core.facts.windows import Window
from careen.host import reboot
from drydock.server.testing import running_server
from scheduler_core.simulation.forecast import Forecast, Outcome, PodForecast
from tests.careen.agent.conftest import KEY, Shell
from tests.careen.virtual_shell import Meddling, VirtualClock

POLICY = Policy(node_name="n1", daemonset_namespace="careen", daemonset_name="careen")
PODS = ("web-1", "web-2")
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "uid-web", "controller": True}


class Killed(BaseException):
    """Simulates the end of the process by `kill -9`. It is a BaseException, so no code of the agent catches it."""


class Controlled:
    """A transport to a cluster with a ReplicaSet controller, which acts after each eviction, even if the agent does not
    receive the response."""

    act: Callable[[], None]

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    async def send(self, request: Request) -> Response:
        response = await self._inner.send(request)
        if request.path.endswith("/eviction"):
            self.act()
        return response


class OnVirtualTime(Meddling):
    """A transport that sets the date of the server's responses to virtual time."""

    clock: VirtualClock

    async def send(self, request: Request) -> Response:
        response = await super().send(request)
        return replace(response, headers={**response.headers, "date": format_datetime(self.clock.now(), usegmt=True)})


class Life(Shell):
    """A node and its agent processes. Whenever the test kills a process, the next process starts. The last process runs
    until the node is idle again."""

    reboots_seen = 0
    starts = 0

    def prepare(self) -> None:
        self.put_node(
            "n1",
            labels={"kubernetes.io/hostname": "n1"},
            spec={"taints": [{"key": "theirs", "effect": "NoSchedule"}]},
            status=self.status("boot-n1"),
        )
        self.put_node("n2")
        self.server.seed(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}},
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "metadata": {"name": "web", "namespace": "shop", "uid": "uid-web", "generation": 1},
                "spec": {"replicas": 2},
                "status": {"readyReplicas": 2},
            },
        )
        for name in PODS:
            self.put_pod(name, metadata={"uid": name, "ownerReferences": [OWNER]})
        self.host.need = Need(answer=NeedAnswer.YES)
        self.host.ask_reboot = self.reboot  # type: ignore[method-assign]
        self.forecaster.answer = Forecast(
            node="n1",
            made_at="2026-03-04T12:00:00Z",
            pods=tuple(
                PodForecast(namespace="shop", name=name, uid=name, outcome=Outcome.MOVES, sentence="", landing=("n2",))
                for name in PODS
            ),
        )

    def replace_evicted_pods(self) -> None:
        """Create the pods that take the place of the evicted ones, ready on n2."""
        for name in PODS:
            again = f"{name}-again"
            if self.server.get("pods", name, "shop") is None and self.server.get("pods", again, "shop") is None:
                self.put_pod(again, "n2", metadata={"uid": again, "ownerReferences": [OWNER]})

    def status(self, boot: str) -> dict[str, Any]:
        return {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"bootID": boot}}

    async def reboot(self) -> reboot.RebootAnswer:
        """Boot the host, which afterwards needs no reboot, and kill the agent process that requested the reboot."""
        self.check_at_reboot()
        self.reboots_seen += 1
        self.host.boot = f"boot-{self.reboots_seen}"
        self.host.need = Need(answer=NeedAnswer.NO)
        node = self.node("n1")
        self.server.seed({**node, "status": self.status(self.host.boot)})
        raise Killed

    def check_at_reboot(self) -> None:
        """Check safety rule 2: when the agent asks the host to reboot, the node is cordoned and drained and its claim
        is in the lock."""
        assert self.node("n1")["spec"].get("unschedulable") is True
        assert [name for name in PODS if self.server.get("pods", name, "shop")] == []
        assert [entry["nodeID"] for entry in self.lock_content()["locks"]] == ["n1"]

    def lock_content(self) -> dict[str, Any]:
        found = self.server.get("daemonsets", "careen", "careen")
        assert found is not None
        return dict(json.loads(found["metadata"].get("annotations", {}).get(KEY, "{}")))

    async def live(self, *, most_turns: int = 150) -> None:
        """Run the agent's loop until the node is idle after a reboot. After each simulated kill, continue with a new
        process."""
        reconciler = self.new_process()
        for _ in range(most_turns):
            try:
                result = await reconciler.turn(POLICY)
            except Killed:
                await self.settle_background()
                await self.clock.sleep(5.0)
                reconciler = self.new_process()
                continue
            await self.settle_background()
            if result.phase is Phase.IDLE and result.stop is None and self.reboots_seen:
                return
            await self.clock.sleep(1.0 if result.stop else max(result.decision.look_again_seconds, 0.02))
        raise AssertionError(
            f"the node is not idle after {most_turns} turns: "
            f"{reconciler.phase}, {self.node('n1')['metadata'].get('annotations')}"
        )

    def new_process(self) -> Reconciler:
        self.starts += 1
        return Reconciler(self.observer(), self.hands)

    async def settle_background(self) -> None:
        tasks, self.background[:] = self.background[:], []
        await asyncio.gather(*tasks, return_exceptions=True)

    def check_home(self) -> None:
        """Check that the node has rebooted once, that only the reports of the reboot are left on the Node, that the
        lock is empty, and that taints, labels and annotations of other clients are still there."""
        node = self.node("n1")
        assert self.reboots_seen == 1
        assert "unschedulable" not in node["spec"]
        assert node["spec"]["taints"] == [{"key": "theirs", "effect": "NoSchedule"}]
        assert node["metadata"]["labels"] == {"kubernetes.io/hostname": "n1"}
        assert set(node["metadata"].get("annotations", {})) <= {"careen.dev/last-reboot", "careen.dev/history"}
        assert self.lock_content().get("locks", []) == []


@asynccontextmanager
async def a_life(folder: Path) -> AsyncIterator[Life]:
    clock = VirtualClock()
    async with running_server() as server:
        transport = connect(server.write_kubeconfig(folder / "kubeconfig"), part="test")
        controlled = Controlled(transport)
        wire = OnVirtualTime(controlled)
        wire.clock = clock
        life = Life(server=server, wire=wire, api=ClusterApi(wire, clock, chance=lambda: 0.0), clock=clock)
        controlled.act = life.replace_evicted_pods
        life.put_daemonset()
        life.prepare()
        yield life
        await life.settle_background()
        transport.close()


async def test_a_node_reboots_once_and_returns_to_idle(tmp_path: Path) -> None:
    async with a_life(tmp_path) as life:
        await life.live()
        life.check_home()
        assert life.starts == 2, "one agent runs before the reboot and another after it"
        assert len(life.wire.asked) < 60


def nth(
    number: int, what: Callable[[], BaseException | None], *, only: Callable[[Request], bool] = lambda _: True
) -> Callable[[Request], Any]:
    """Return a function to call with each request. At the n-th request that `only` accepts, the function calls
    `what`."""
    seen = 0

    def at(request: Request) -> BaseException | None:
        nonlocal seen
        if not only(request):
            return None
        seen += 1
        return what() if seen == number else None

    return at


def is_awaited(request: Request) -> bool:
    """Return whether the agent's loop waits for the response to this request. The loop does not wait for Events, which
    the agent sends in the background."""
    return not request.path.endswith("/events")


def is_write(request: Request) -> bool:
    return request.method != "GET" and "dryRun" not in request.query and is_awaited(request)


async def count(folder: Path, only: Callable[[Request], bool]) -> int:
    async with a_life(folder) as life:
        await life.live()
        return sum(only(request) for request in life.wire.asked)


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_node_returns_to_idle_after_a_kill_at_any_request(tmp_path: Path, moment: str) -> None:
    """The test runs the real decisions and the real agent, and kills the agent once before or after each request."""
    requests = await count(tmp_path, is_awaited)
    assert requests > 20
    for number in range(1, requests + 1):
        async with a_life(tmp_path) as life:
            setattr(life.wire, moment, nth(number, Killed, only=is_awaited))
            await life.live()
            life.check_home()
            assert life.starts == 3, f"request {number}"


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_node_reboots_exactly_once_even_if_a_write_or_its_response_is_lost(tmp_path: Path, moment: str) -> None:
    """The agent cannot know whether the request or the response was lost, because it sees the same error in both
    cases."""
    writes = await count(tmp_path, is_write)
    assert writes > 6
    for number in range(1, writes + 1):
        async with a_life(tmp_path) as life:
            setattr(life.wire, moment, nth(number, lambda: Unclear("connection reset"), only=is_write))
            await life.live()
            life.check_home()


async def test_a_node_reboots_exactly_once_even_if_a_write_takes_effect_late(tmp_path: Path) -> None:
    """The connection breaks at the write. A proxy delivers the write some seconds later, when the agent has already
    continued."""
    writes = await count(tmp_path, is_write)
    for number in range(1, writes + 1):
        async with a_life(tmp_path) as life:
            held_back: list[Request] = []

            def hold_back(
                request: Request,
                number: int = number,
                seen: list[int] = [0],  # noqa: B006 - a counter per run
                held: list[Request] = held_back,
            ) -> BaseException | None:
                if not is_write(request):
                    return None
                seen[0] += 1
                if seen[0] == number:
                    held.append(request)
                    return Unclear("timed out")
                return None

            hold_back.__defaults__ = (number, [0], held_back)
            life.wire.before = hold_back
            sleep = life.clock.sleep

            async def sleep_and_deliver(
                seconds: float, held: list[Request] = held_back, life: Life = life, sleep: Any = sleep
            ) -> None:
                await sleep(seconds)
                while held:
                    await life.wire.inner.send(held.pop())

            life.clock.sleep = sleep_and_deliver  # type: ignore[method-assign]
            await life.live()
            life.check_home()


async def test_an_api_server_outage_at_any_moment_only_delays_the_reboot(tmp_path: Path) -> None:
    requests = await count(tmp_path, lambda _: True)
    for number in range(1, requests + 1, 3):
        async with a_life(tmp_path) as life:
            back_at: list[float] = []

            def down(
                _: Request, life: Life = life, back_at: list[float] = back_at, number: int = number
            ) -> BaseException | None:
                if len(life.wire.asked) == number:
                    back_at.append(life.clock.seconds + 60)
                return Unclear("down") if back_at and life.clock.seconds < back_at[0] else None

            life.wire.before = down
            await life.live()
            life.check_home()


async def live_twice(life: Life, lag: int) -> None:
    """Run two agent processes on one node, as after the forced deletion of a pod. Their loops run at the same time, and
    the second process starts `lag` turns later."""
    first, second = life.new_process(), life.new_process()
    for number in range(200):
        both = [first.turn(POLICY)] if number < lag else [first.turn(POLICY), second.turn(POLICY)]
        tasks = [asyncio.ensure_future(each) for each in both]
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in pending:  # the host went down and killed every process
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        await life.settle_background()
        errors = [task.exception() for task in done]
        if any(isinstance(error, Killed) for error in errors):
            await life.clock.sleep(5.0)
            first, second = life.new_process(), life.new_process()
            continue
        assert errors == [None] * len(errors), errors
        await life.clock.sleep(0.5)
        if life.reboots_seen and all(task.result().phase is Phase.IDLE and task.result().stop is None for task in done):
            return
    raise AssertionError("not home")


@pytest.mark.parametrize("lag", [0, 1, 3, 5])
async def test_two_agents_on_one_node_reboot_the_host_once(tmp_path: Path, lag: int) -> None:
    """The lock file on the host, which normally stops a second agent, is missing. The resource versions of Node and
    lock must prevent a second reboot."""
    async with a_life(tmp_path) as life:
        await live_twice(life, lag)
        life.check_home()


# ---- with the loop, on virtual time ----


async def run_for(
    life: Life, seconds: float, policy: Policy = POLICY, at: dict[float, Callable[[], None]] | None = None
) -> None:
    """Run the loop of one agent process for `seconds`. `at` maps times, in seconds of virtual time, to functions
    that the test calls at these times, for example to change an object."""
    place, reconciler = LogContext("n1"), life.new_process()
    loop = Loop(
        reconciler=reconciler,
        policy=lambda: policy,
        need=life.need,
        clock=life.clock,
        chance=lambda: 0.0,
        place=place,
        metrics=life.metrics,
        heartbeat=Heartbeat(life.clock.monotonic),
        after_first_turn=lambda: None,
    )
    sleep, end, changes = life.clock.sleep, life.clock.seconds + seconds, dict(at or {})

    async def sleep_and_look(pause: float) -> None:
        await sleep(pause)
        await life.settle_background()
        for instant in [each for each in changes if each <= life.clock.seconds]:
            changes.pop(instant)()
        if life.clock.seconds >= end:
            loop.stop()

    life.clock.sleep = sleep_and_look  # type: ignore[method-assign]
    try:
        await loop.run()
    finally:
        life.clock.sleep = sleep  # type: ignore[method-assign]


async def test_an_idle_agent_reads_node_and_lock_every_five_minutes_and_sends_no_other_request(
    tmp_path: Path,
) -> None:
    async with a_life(tmp_path) as life:
        life.host.need = Need(answer=NeedAnswer.NO)
        await run_for(life, 60)
        life.wire.asked.clear()
        await run_for(life, 3600)
        lock = "GET /apis/apps/v1/namespaces/careen/daemonsets/careen"
        assert [request for request in life.requests if request not in ("GET /api/v1/nodes/n1", lock)] == []
        assert 12 <= life.requests.count("GET /api/v1/nodes/n1") <= 14
        assert life.requests.count(lock) <= 16, "an idle agent reads the lock to notice an overdue claim"


@pytest.mark.parametrize(
    "blocked",
    [
        pytest.param({"window": Window(days=frozenset())}, id="the node is outside the maintenance window"),
        pytest.param({"concurrency": 1}, id="another node has a claim in the lock"),
        pytest.param({"blocking_pod_selectors": (Selector.parse("app=block"),)}, id="a pod blocks the reboot"),
    ],
)
async def test_the_taint_is_set_within_ten_seconds_even_if_a_gate_refuses(
    tmp_path: Path, blocked: dict[str, Any]
) -> None:
    """The idle agent read its Node minutes ago, and the kubelet has changed the Node since then. Now the host begins to
    need a reboot."""
    async with a_life(tmp_path) as life:
        life.host.need = Need(answer=NeedAnswer.NO)
        life.put_pod("blocker", metadata={"labels": {"app": "block"}})
        if "concurrency" in blocked:
            life.put_daemonset(
                annotations={KEY: json.dumps({"nodeID": "n2", "locks": [{"nodeID": "n2", "id": "c2"}], "maxOwners": 1})}
            )
            life.put_node(
                "n2",
                labels={"careen.dev/reboot": "in-progress"},
                annotations={"careen.dev/progress": to_annotation(Progress(phase="Draining", claim="c2"))},
            )
        needed: list[float] = []

        def ask() -> None:
            needed.append(life.clock.seconds)
            life.host.need = Need(answer=NeedAnswer.YES)
            life.server.seed({**life.node("n1"), "status": {**life.status("boot-n1"), "daemonEndpoints": {}}})

        tainted: list[float] = []

        def look(request: Request) -> None:
            if not tainted and any(taint["key"] == "careen.dev/reboot" for taint in life.node("n1")["spec"]["taints"]):
                tainted.append(life.clock.seconds)

        life.wire.after = look
        await run_for(life, 160, replace(POLICY, **blocked), {123.0: ask})
        assert needed
        assert tainted
        assert 0 <= tainted[0] - needed[0] <= 10
        assert life.reboots_seen == 0
