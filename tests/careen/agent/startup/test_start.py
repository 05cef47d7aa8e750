"""The start of an agent, on virtual time. The node may have a claim on the reboot lock when its agent starts. The
tests show how long the agent waits for unreadable settings or an unreadable lock, and which settings it then uses
(`careen.agent.startup.recorded_claim`)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from careen.agent.startup.start import PATIENCE_SECONDS, Start
from careen.agent.telemetry.http_server import Heartbeat
from careen.agent.telemetry.metrics import Metrics
from careen.cluster.wire.client import connect
from careen.cluster.wire.errors import Forbidden, Unclear
from careen.cluster.wire.transport import Request
from careen.core.facts import keys
from careen.core.facts.phases import Phase
from careen.core.facts.policy import ForecastPolicy
from careen.core.facts.progress import Progress, to_annotation
from careen.settings.live import Invocation, LiveSettings
from careen.settings.sources import BadSettings, resolve
from drydock.server.testing import RunningServer, running_server
from tests.careen.virtual_shell import Meddling, VirtualClock, api_on
from tests.patience import until

CLAIM = Progress(phase=Phase.VERIFYING.value, claim="c1", lock="uid/example.com/lock", boot_left="b0")
KEPT = json.dumps({"version": 1, "settings": {"concurrency": ["3"]}})


@dataclass
class World:
    """A cluster with the node n1, and the arguments for the start of n1's agent."""

    server: RunningServer
    wire: Meddling
    clock: VirtualClock
    background: list[asyncio.Task[object]] = field(default_factory=list)

    def start(self, *, is_place_given: bool = True, **flags: str) -> Start:
        given = Invocation(
            flags={
                "node_id": ("n1",),
                "kubeconfig": ("k",),
                "ds_namespace": ("careen",),
                "ds_name": ("careen",),
                **{k: (v,) for k, v in flags.items()},
            },
            environment={},
        )
        basics = resolve(flags=given.flags, environment={}, is_whole=False).settings
        self.heartbeat = Heartbeat(self.clock.monotonic)
        self.heartbeat.ready()
        self.metrics = Metrics("n1")
        return Start(
            given=given,
            basics=basics,
            is_place_given=is_place_given,
            api=api_on(self.wire, self.clock),
            clock=self.clock,
            metrics=self.metrics,
            heartbeat=self.heartbeat,
            in_background=lambda work: self.background.append(asyncio.ensure_future(work)),
            chance=lambda: 0.5,
        )

    def put_node(self, record: Progress | str | None = None, kept: str = "") -> None:
        text = to_annotation(record) if isinstance(record, Progress) else record
        annotations = {**({keys.PROGRESS: text} if text else {}), **({keys.SETTINGS: kept} if kept else {})}
        self.server.seed({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "annotations": annotations}})

    def put_config(self, text: str) -> None:
        self.server.seed(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "careen", "namespace": "careen"},
                "data": {"config.yaml": text},
            }
        )

    def put_daemonset(self, name: str = "careen") -> None:
        pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        self.server.seed(
            {
                "apiVersion": "apps/v1",
                "kind": "DaemonSet",
                "metadata": {"name": name, "namespace": "careen"},
                "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": pod},
            }
        )

    async def told(self) -> list[tuple[str, str]]:
        await asyncio.gather(*self.background)
        journal = [change.after.content for change in self.server.store.journal if change.after is not None]
        return [(each["involvedObject"]["kind"], each["reason"]) for each in journal if each["kind"] == "Event"]

    def is_config_ok(self) -> bool:
        return 'careen_config_ok{node="n1"} 1.0' in self.metrics.exposition().decode()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with running_server() as server:
        transport = connect(server.write_kubeconfig(tmp_path / "kubeconfig"), part="test")
        made = World(server, Meddling(transport), VirtualClock())
        server.seed({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
        yield made
        await asyncio.gather(*made.background)
        transport.close()


def failing(
    resource: str, error: Callable[[], Exception], *, times: int = 10**9
) -> Callable[[Request], Exception | None]:
    left = [times]

    def before(request: Request) -> Exception | None:
        if resource not in request.path or left[0] <= 0:
            return None
        left[0] -= 1
        return error()

    return before


def lost() -> Exception:
    return Unclear("no answer")


def forbidden() -> Exception:
    return Forbidden("GET configmaps", status=403, reason="Forbidden", message="no", retry_after_seconds=None)


# ---- settings ----


@pytest.mark.parametrize("error", [lost, forbidden])
async def test_a_node_with_a_claim_waits_only_briefly_for_its_config_map(
    world: World,
    error: Callable[[], Exception],
) -> None:
    world.put_node(CLAIM, KEPT)
    world.put_config("concurrency: 5")
    world.wire.before = failing("configmaps", error)
    start = world.start()
    live = await start.first_settings()
    assert PATIENCE_SECONDS <= world.clock.seconds <= PATIENCE_SECONDS + 13  # a pause, and a read that fails
    assert (live.policy.concurrency, live.settings.lock_annotation) == (3, "example.com/lock")
    assert "ConfigMap careen/careen cannot be read" in live.policy.settings_problem
    assert not world.is_config_ok()
    assert world.heartbeat.readiness()[0] is False
    assert await world.told() == [("Node", "SettingsUnusable")]
    world.wire.before = lambda _: None
    assert live.offer(await start.read_config_map()) == ()
    start.show_settings(live)
    assert (live.policy.concurrency, live.policy.settings_problem, world.is_config_ok()) == (5, "", True)
    assert world.heartbeat.readiness()[0] is True


async def test_a_node_with_a_claim_uses_a_config_map_that_becomes_readable_in_time(world: World) -> None:
    world.put_node(CLAIM, KEPT)
    world.put_config("concurrency: 5")
    world.wire.before = failing("configmaps", lost, times=3)
    live = await world.start().first_settings()
    assert (live.policy.concurrency, live.stands_in) == (5, "")


@pytest.mark.parametrize("record", [None, Progress(phase="Waiting"), '{"version":99}', "garbage"])
async def test_a_node_without_a_claim_waits_without_limit_for_its_settings(
    world: World, record: Progress | str | None
) -> None:
    world.put_node(record, KEPT)
    world.put_config("concurrency: 5")
    world.wire.before = failing("configmaps", lost, times=300)
    live = await world.start().first_settings()
    assert world.clock.seconds > 10 * PATIENCE_SECONDS
    assert (live.policy.concurrency, live.stands_in) == (5, "")


async def test_the_agent_waits_at_its_start_until_it_can_read_its_node(world: World) -> None:
    """If the API server does not answer, the agent cannot do anything for its node."""
    world.put_node(CLAIM, KEPT)
    world.put_config("concurrency: none")
    world.wire.before = failing("/", lost, times=200)
    live = await world.start().first_settings()
    assert world.clock.seconds > PATIENCE_SECONDS
    assert live.policy.concurrency == 3


@pytest.mark.parametrize("record", [None, Progress(phase="Waiting"), "garbage"])
async def test_invalid_settings_stop_the_start_of_an_agent_without_a_claim(
    world: World, record: Progress | str | None
) -> None:
    world.put_node(record, KEPT)
    world.put_config("concurrency: none")
    with pytest.raises(BadSettings, match="concurrency"):
        await world.start().first_settings()
    assert await world.told() == []


async def test_an_agent_does_not_start_with_a_url_that_apprise_rejects(world: World) -> None:
    world.put_node(None)
    with pytest.raises(BadSettings) as caught:
        await world.start(notify_url="tgram://SECRETWORD").first_settings()
    (problem,) = caught.value.problems
    assert problem.startswith(
        "--notify-url: tgram: apprise does not accept this URL; it expects tgram://{bot_token} or "
    )
    assert "SECRET" not in problem


async def test_an_agent_does_not_start_with_an_invalid_url_in_its_url_file(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world.put_node(None)
    file = tmp_path / "urls"
    await world.start(notify_url_file=str(file)).first_settings()
    assert (
        f"--notify-url-file: {file} cannot be read: No such file or directory; the receivers in this file get messages "
        "as soon as the agent can read the file" in caplog.text
    )
    file.write_text("logger://\nnonsense://SECRETWORD\ntgram://SECRETWORD\n")
    with pytest.raises(BadSettings) as caught:
        await world.start(notify_url_file=str(file)).first_settings()
    line, refused = caught.value.problems
    assert line.startswith(f"--notify-url-file: {file}, line 2: expected a shoutrrr URL")
    assert refused.startswith("--notify-url-file: tgram: apprise does not accept this URL")
    assert "SECRET" not in str(caught.value)


async def test_an_agent_with_a_claim_starts_despite_a_url_that_apprise_rejects(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.put_node(CLAIM, KEPT)
    world.put_config("concurrency: 3")
    live = await world.start(notify_url="tgram://SECRETWORD").first_settings()
    assert (live.stands_in, live.settings.concurrency) == ("", 3)
    assert "apprise does not accept this URL" in caplog.text
    assert "SECRET" not in caplog.text


@pytest.mark.parametrize("kept", ["", json.dumps({"version": 1, "settings": {}})])
async def test_a_missing_config_map_is_no_problem_if_no_settings_were_stored_with_the_claim(
    world: World, kept: str
) -> None:
    """An agent stores the settings of the ConfigMap on the Node when it takes a claim. If the Node shows no stored
    settings, the restarted agent works without a ConfigMap."""
    world.put_node(CLAIM, kept)
    live = await world.start().first_settings()
    assert (live.stands_in, live.policy.settings_problem) == ("", "")
    assert world.is_config_ok()


async def test_a_node_with_a_claim_but_no_recorded_settings_uses_the_agents_flags(world: World) -> None:
    world.put_node(CLAIM)
    world.put_config("concurrency: none")
    live = await world.start(verify_timeout="7m").first_settings()
    assert (live.settings.verify_timeout, live.settings.lock_annotation) == (420.0, "example.com/lock")
    assert not live.policy.are_settings_whole
    assert sorted(await world.told()) == [("ConfigMap", "BadSettings"), ("Node", "SettingsUnusable")]


async def test_the_first_loop_round_uses_the_node_that_the_agent_read_at_its_start(world: World) -> None:
    world.put_node()
    start = world.start()
    await start.first_settings()
    assert start.node_read is not None
    assert start.node_read[0].name == "n1"


# ---- the lock ----


async def test_an_agent_without_a_claim_does_not_start_if_the_daemonset_is_missing(world: World) -> None:
    world.put_node(Progress(phase="Waiting"))
    with pytest.raises(BadSettings, match="DaemonSet careen/careen does not exist"):
        await world.start(is_place_given=False).make_sure_of_the_lock()


async def test_an_agent_with_a_claim_starts_without_its_daemonset(
    world: World,
) -> None:
    world.put_node(CLAIM, KEPT)
    start = world.start(is_place_given=False)
    await start.make_sure_of_the_lock()
    live = await start.first_settings()
    policy = start.policy_of(live)
    assert "DaemonSet careen/careen does not exist" in policy.settings_problem
    assert not policy.are_settings_whole, (
        "without its DaemonSet, the agent cannot see the other nodes' claims, so no drain may end with a reboot"
    )
    woken: list[float] = []
    again = asyncio.ensure_future(start.judge_lock_again(live, lambda: woken.append(world.clock.seconds)))
    await asyncio.sleep(0.1)
    assert woken == []
    world.put_daemonset()
    await again
    assert start.policy_of(live).settings_problem == live.policy.settings_problem
    assert len(woken) == 1


async def test_a_node_with_a_claim_waits_only_briefly_for_the_lock(
    world: World,
) -> None:
    world.put_node(CLAIM, KEPT)
    world.put_config("concurrency: 5")
    world.wire.before = failing("daemonsets", lost)
    start = world.start(is_place_given=False)
    await start.make_sure_of_the_lock()
    assert world.clock.seconds >= PATIENCE_SECONDS
    live = await start.first_settings()
    assert (live.policy.concurrency, live.stands_in) == (5, "")
    assert "cannot tell" in start.policy_of(live).settings_problem
    assert not world.is_config_ok(), "the settings are valid, but the lock is still unknown"
    assert world.heartbeat.readiness()[0] is False


async def test_an_agent_without_a_claim_waits_until_it_can_read_the_lock(world: World) -> None:
    world.put_node()
    world.put_daemonset()
    world.wire.before = failing("daemonsets", lost, times=100)
    start = world.start(is_place_given=False)
    await start.make_sure_of_the_lock()
    assert world.clock.seconds > PATIENCE_SECONDS
    assert start.policy_of(_live()).settings_problem == ""


def _live() -> LiveSettings:
    return LiveSettings(Invocation(flags={"node_id": ("n1",)}, environment={}), None, config_map_name="careen/careen")


async def test_an_agent_with_a_claim_reports_the_missing_daemonset_once_it_can_read_its_node(world: World) -> None:
    """The first 20 requests for the Node fail. The agent needs its Node to see that the node has a claim: only an agent
    with a claim starts without its DaemonSet."""
    world.put_node(CLAIM, KEPT)
    world.wire.before = failing("nodes", lost, times=20)
    start = world.start(is_place_given=False)
    await start.make_sure_of_the_lock()
    assert "does not exist" in start.lock_problem


# ---- rights ----


@pytest.mark.parametrize(("error", "least", "most"), [(forbidden, 300.0, 700.0), (lost, 1.0, 250.0)])
async def test_the_agent_retries_a_forbidden_read_less_often_than_an_unanswered_read(
    world: World, error: Callable[[], Exception], least: float, most: float
) -> None:
    world.put_node()
    world.wire.before = failing("configmaps", error, times=12)
    start, began = world.start(), world.clock.monotonic()
    await start.first_settings()
    assert least <= world.clock.monotonic() - began <= most


def kureds_rights(user: str, verb: str, group: str, resource: str, namespace: str, name: str) -> bool:
    return (verb, resource) in {
        ("get", "nodes"),
        ("patch", "nodes"),
        ("get", "pods"),
        ("list", "pods"),
        ("create", "pods/eviction"),
        ("get", "daemonsets"),
        ("update", "daemonsets"),
    }


async def test_an_agent_that_may_not_read_the_config_map_uses_its_flags(world: World) -> None:
    world.put_node()
    world.put_config("concurrency: 3")
    world.server.api.authorizer = kureds_rights
    start = world.start(concurrency="2")
    await start.review_rights()
    live = await start.first_settings()
    assert live.settings.concurrency == 2
    assert (live.policy.forecast, start.policy_of(live).forecast) == (ForecastPolicy.REFUSE, ForecastPolicy.OFF)
    assert [each.resource for each in world.server.api.requests if each.code == 403] == []


async def test_missing_rights_do_not_switch_off_a_requested_forecast(world: World) -> None:
    world.put_node()
    world.server.api.authorizer = kureds_rights
    start = world.start(forecast="refuse")
    await start.review_rights()
    assert start.policy_of(await start.first_settings()).forecast is ForecastPolicy.REFUSE


async def test_the_agent_waits_at_its_start_until_it_may_read_an_explicitly_named_config_map(world: World) -> None:
    """The ConfigMap may contain a maintenance window, so the agent waits for the right to read the ConfigMap."""
    world.put_node()
    world.put_config("concurrency: 3")
    world.server.api.authorizer = kureds_rights
    start = world.start(config_map="careen")
    await start.review_rights()
    asked = asyncio.ensure_future(start.first_settings())
    refused = lambda: [each for each in world.server.api.requests if each.code == 403]  # noqa: E731
    await until(lambda: len(refused()) >= 2)
    world.server.api.authorizer = lambda *_: True
    assert (await asked).settings.concurrency == 3


async def test_the_agent_keeps_every_feature_if_its_role_binding_is_created_late(world: World) -> None:
    """The RoleBinding that grants access to the lock and to the ConfigMap may be created after the agent's pod. The
    agent waits for this RoleBinding, so that the settings of the ConfigMap apply."""
    world.put_node()
    world.put_config("concurrency: 3")
    world.server.api.authorizer = lambda *asked: kureds_rights(*asked) and "daemonsets" not in asked[3]
    start = world.start()
    await start.review_rights()
    asked = asyncio.ensure_future(start.first_settings())
    refused = lambda: [each for each in world.server.api.requests if each.code == 403]  # noqa: E731
    await until(lambda: len(refused()) >= 2)
    world.server.api.authorizer = lambda *_: True
    assert (await asked).settings.concurrency == 3
    assert start.rights.is_whole
