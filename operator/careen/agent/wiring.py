"""Builds every part of an agent and hands each what it needs; nothing else does.

The order of the start: who am I and where is the API server (flags, environment) → the ConfigMap's settings, waited for
until they are known → the host's lock for agents → turns. Only after the first turn come kopf and the review of rights:
a node that has just rebooted is given back first.
"""

from __future__ import annotations

import asyncio
import logging
import random
import signal
import socket
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, cast

from careen.agent import forecast_check, handlers, lock_place, logs
from careen.agent.apply import Hands
from careen.agent.clock import SystemClock
from careen.agent.forecast import ChildForecaster, Limits
from careen.agent.forecast_patience import ForecastPatience
from careen.agent.http_server import Heartbeat, HttpServer
from careen.agent.live_settings import Given, LiveSettings, SeenConfigMap
from careen.agent.loop import Loop
from careen.agent.messages import Messenger
from careen.agent.metrics import Metrics
from careen.agent.need_watch import NeedWatch
from careen.agent.observe import Observer, Senses
from careen.agent.settings import Settings
from careen.agent.settings_sources import BadSettings, Source, resolve
from careen.agent.turn import Mind, Turned
from careen.cluster import objects
from careen.cluster.access import missing_rights, needed_rights
from careen.cluster.api import ApiServer
from careen.cluster.client import ClientTransport, connect
from careen.cluster.errors import ClusterError, NotFound
from careen.cluster.events import Subject, post_event
from careen.cluster.lock_store import LockStore
from careen.cluster.transport import Request, Response
from careen.core.observation import NodeView
from careen.core.phases import Phase
from careen.host import single_agent
from careen.host.commands import HostExec
from careen.host.node_host import Host, LocalHost
from careen.services.prometheus import Access, AlertSource, Prometheus

_LOG = logging.getLogger("careen.agent")

# SIGTERM is answered within five seconds: this long for the turn under way, the rest for saying good-bye.
STOP_SECONDS = 3.0
MESSAGE_SECONDS = 1.5
_RETRY_SECONDS = 2.0
_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_RIGHTS_SECONDS = 600.0
_RIGHTS_UNKNOWN_SECONDS = 60.0


class Agent:
    """One agent, from its start to SIGTERM."""

    def __init__(self, given: Given) -> None:
        """Raises `BadSettings` and `CannotReachCluster`, both for exit code 2."""
        self._given = given
        # Without the ConfigMap only what must be known before it: the rest is judged when it has been read.
        resolved = resolve(flags=given.flags, environment=given.environment, is_whole=False)
        self._basics = resolved.settings
        self._is_place_given = all(resolved.origins[name].source is not Source.DEFAULT for name in ("ds_namespace", "ds_name"))
        self._node = self._basics.node_id
        self._clock = SystemClock()
        self._transport: ClientTransport = connect(Path(self._basics.kubeconfig) if self._basics.kubeconfig else None, part="agent")
        self._place = logs.set_up(form=self._basics.log_format, level=self._basics.log_level, node=self._node)
        self._metrics = Metrics(self._node)
        self._heartbeat = Heartbeat(self._clock.monotonic)
        self._api = ApiServer(self._transport, self._clock, chance=random.random, observer=self._count)
        self._background: set[asyncio.Task[object]] = set()
        self._loop: Loop | None = None
        self._messages: Messenger | None = None

    async def run(self) -> None:
        """Works until SIGTERM or SIGINT. Raises `BadSettings` if the ConfigMap's first settings cannot be used."""
        stopping = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stopping.set)
        server = self._serve()
        work = asyncio.create_task(self._work())
        stopped = asyncio.create_task(stopping.wait())
        try:
            await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if stopping.is_set():
                await self._end(work)
            else:
                await work
        finally:
            stopped.cancel()
            if server is not None:
                server.close()
            self._transport.close()

    async def _end(self, work: asyncio.Task[None]) -> None:
        """Lets a turn under way come to its end if it does so soon; otherwise cuts it, which any later start can mend."""
        if self._loop is not None:
            self._loop.stop()
            if self._loop.is_turning:
                await asyncio.wait({work}, timeout=STOP_SECONDS)
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work
        if self._messages is not None:
            await self._messages.finish(seconds=MESSAGE_SECONDS)      # the one about the reboot that stops us, most of all
        _LOG.info("told to stop; whoever starts next goes on from what stands on the Node and in the lock")

    async def _work(self) -> None:
        await self._make_sure_of_the_lock()
        live = await self._first_settings()
        settings = live.settings
        held = await self._become_only_agent(settings)
        host = _host(settings)
        lock = LockStore(self._api, namespace=settings.ds_namespace, name=settings.ds_name, annotation=settings.lock_annotation)
        need = NeedWatch(host, self._clock, is_command=bool(settings.reboot_sentinel_command), period_seconds=lambda: live.settings.period)
        mind = Mind(Observer(self._senses(live, host, lock, need)), self._hands(live, host, lock))
        patience = ForecastPatience(lambda: live.settings.forecast_patience)
        loop = Loop(
            mind=mind,
            policy=lambda: live.policy,
            need=need,
            clock=self._clock,
            chance=random.random,
            place=self._place,
            metrics=self._metrics,
            heartbeat=self._heartbeat,
            after_first_turn=lambda: self._after_first_turn(live, host, mind, loop),
            after_turn=lambda turned: self._after_turn(patience, turned),
            other_deadlines_seconds=lambda: _deadlines_of(live.settings),
        )
        self._loop = loop
        await loop.run()
        del held  # kept until here: the lock goes with it

    # ---- the start ----

    def _serve(self) -> HttpServer | None:
        try:
            server = HttpServer(self._basics.metrics_host, self._basics.metrics_port, heartbeat=self._heartbeat, exposition=self._metrics.exposition)
        except OSError as error:
            # kured dies here; a taken port is no reason to leave a node without its agent.
            _LOG.error("cannot serve metrics on %s:%s: %s", self._basics.metrics_host or "*", self._basics.metrics_port, error)
            return None
        _LOG.info("metrics, health and readiness on port %s", server.port)
        return server

    async def _make_sure_of_the_lock(self) -> None:
        """Before the first write: an agent with another lock than its fellows would not see their claims. Raises `BadSettings`."""
        basics = self._basics
        named = lock_place.Place(basics.ds_namespace, basics.ds_name)
        while True:
            self._heartbeat.expect_within(120.0, f"looking whose lock {named} carries")
            try:
                judged = await lock_place.judge(
                    self._api, named, is_given=self._is_place_given, pod=None if basics.kubeconfig else _own_pod(self._given.environment), annotation=basics.lock_annotation,
                )
            except ClusterError as error:
                _LOG.warning("whose lock %s carries is not known yet, so nothing is done: %s", named, error)
                await self._clock.sleep(_RETRY_SECONDS)
                continue
            if judged.refusal:
                raise BadSettings([judged.refusal])
            if judged.remark:
                _LOG.warning("%s", judged.remark)
            return

    async def _first_settings(self) -> LiveSettings:
        """Waits until it is known what the ConfigMap says: a window or a gate in it must hold from the first turn on."""
        name = self._config_map_title()
        while True:
            self._heartbeat.expect_within(120.0, f"reading ConfigMap {name}")
            try:
                live = LiveSettings(self._given, await self._read_config_map(), config_map_name=name)
            except ClusterError as error:
                _LOG.warning("settings are not known yet, so nothing is done: %s", error)
                await self._clock.sleep(_RETRY_SECONDS)
                continue
            self._metrics.show_config(ok=True)
            for note in live.resolved.notes:
                _LOG.warning("%s", note)
            return live

    async def _read_config_map(self) -> SeenConfigMap | None:
        if not self._basics.config_map:
            return None
        try:
            found = await self._api.get(f"/api/v1/namespaces/{self._basics.ds_namespace}/configmaps/{self._basics.config_map}", objects.ConfigMap)
        except NotFound:
            return None
        return SeenConfigMap(uid=found.metadata.uid, resource_version=found.metadata.resource_version, data=found.data or {})

    async def _become_only_agent(self, settings: Settings) -> single_agent.Held | None:
        """Waits for another agent of this host to end. Where no lock can be had, the API's versions must do."""
        has_told = False
        while settings.host_lock_dir:
            self._heartbeat.expect_within(60.0, "waiting for another agent of this node to end")
            match single_agent.take(Path(settings.host_root or "/"), settings.host_lock_dir, self._node):
                case single_agent.Held() as held:
                    self._metrics.show_only_agent(1)
                    return held
                case single_agent.CannotLock(why):
                    _LOG.info("no host lock against a second agent of this node: %s", why)
                    break
                case single_agent.HeldByOther(file):
                    self._metrics.show_only_agent(0)
                    if not has_told:
                        _LOG.warning("another agent of this node works and holds %s; waiting for it to end", file)
                    has_told = True
                    await self._clock.sleep(_RETRY_SECONDS)
        self._metrics.show_only_agent(-1)
        return None

    def _after_first_turn(self, live: LiveSettings, host: Host, mind: Mind, loop: Loop) -> None:
        self._in_background(self._test_host(host))
        if self._basics.config_map:
            self._follow_config_map(live, loop)
        self._in_background(self._review_rights(live, mind))

    def _config_map_title(self) -> str:
        return f"{self._basics.ds_namespace}/{self._basics.config_map}"

    def _follow_config_map(self, live: LiveSettings, loop: Loop) -> None:
        ours = asyncio.get_running_loop()
        handlers.follow_config_map(
            namespace=self._basics.ds_namespace,
            name=self._basics.config_map,
            credentials=self._transport.credentials,
            on_change=lambda seen: cast("None", ours.call_soon_threadsafe(self._config_map_changed, live, loop, seen)),
        )

    def _config_map_changed(self, live: LiveSettings, loop: Loop, seen: SeenConfigMap | None) -> None:
        problems = live.offer(seen)
        self._metrics.show_config(ok=not problems)
        if not problems:
            loop.wake()
            return
        sentence = f"the settings were left as they are, because the new ones cannot be used: {'; '.join(problems)}"
        _LOG.error("%s", sentence)
        subject = Subject(kind="ConfigMap", name=self._basics.config_map, namespace=self._basics.ds_namespace, uid=seen.uid if seen else "")
        # Every agent of the fleet sees the same edit: whoever comes first tells it.
        once = f"{seen.uid}/{seen.resource_version}" if seen else ""
        self._in_background(post_event(self._api, subject, reason="BadSettings", sentence=sentence, is_warning=True, host=self._node, once=once))

    async def _test_host(self, host: Host) -> None:
        """Says at the start what would otherwise show on the day of the reboot."""
        problems = await host.self_test()
        self._metrics.self_test_problems.labels(self._node).set(len(problems))
        for problem in problems:
            _LOG.error("self-test: %s", problem)

    async def _review_rights(self, live: LiveSettings, mind: Mind) -> None:
        """Names missing rights, once when nothing is in progress, and again as long as some are missing.

        After a reboot there are more urgent things to ask the server than whether it would answer.
        """
        settings = live.settings
        rights = needed_rights(
            node=self._node, namespace=settings.ds_namespace, daemonset=settings.ds_name, config_map=settings.config_map, forecast=settings.forecast != "off"
        )
        while True:
            pause = _RIGHTS_SECONDS
            if mind.phase in (None, Phase.IDLE, Phase.WAITING):
                try:
                    missing = await missing_rights(self._api, rights)
                except ClusterError as error:
                    _LOG.info("whether rights are missing is not known: %s", error)
                    pause = _RIGHTS_UNKNOWN_SECONDS
                else:
                    for right in missing:
                        _LOG.error("a right is missing: %s; without it %s", right.title, right.because)
                    self._metrics.missing_rights.labels(self._node).set(len(missing))
                    if not missing:
                        return
            await self._clock.sleep(pause)

    # ---- the parts ----

    def _senses(self, live: LiveSettings, host: Host, lock: LockStore, need: NeedWatch) -> Senses:
        settings = live.settings
        return Senses(
            node_name=self._node,
            daemonset_namespace=settings.ds_namespace,
            daemonset_name=settings.ds_name,
            api=self._api,
            host=host,
            need=need,
            lock=lock,
            forecaster=ChildForecaster(kubeconfig=settings.kubeconfig, limits=lambda: _limits(live), clock=self._clock, metrics=self._metrics),
            alerts=lambda: _alerts(live.settings),
            chance=random.random,
        )

    def _hands(self, live: LiveSettings, host: Host, lock: LockStore) -> Hands:
        return Hands(
            node_name=self._node,
            api=self._api,
            host=host,
            lock=lock,
            chance=random.random,
            metrics=self._metrics,
            notify=self._messenger(live).tell,
            in_background=self._in_background,
        )

    def _messenger(self, live: LiveSettings) -> Messenger:
        self._messages = Messenger(node=self._node, settings=lambda: live.settings, metrics=self._metrics, in_background=self._in_background)
        return self._messages

    def _in_background(self, work: Coroutine[Any, Any, object]) -> None:
        """For what must not hold up a turn; kept here, because the event loop keeps no task alive by itself."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _after_turn(self, patience: ForecastPatience, turned: Turned) -> None:
        is_over, sentence = patience.look(turned.decision.refusals, turned.observation.now, turned.phase)
        self._metrics.forecast_overdue.labels(self._node).set(is_over)
        node = turned.observation.node
        if sentence and isinstance(node, NodeView):
            _LOG.warning("%s", sentence)
            subject = Subject(kind="Node", name=node.name, uid=node.uid)
            # Once, also when the agent is started anew meanwhile: what it remembers is since when.
            self._in_background(post_event(self._api, subject, reason="ForecastOverdue", sentence=sentence, is_warning=True, host=self._node, once=str(patience.since)))
        if drain := forecast_check.finished_drain(turned):
            self._in_background(self._quietly(forecast_check.check(self._api, drain, self._metrics, self._node)))

    async def _quietly(self, work: Coroutine[Any, Any, object]) -> None:
        """For what is nice to have: a server that does not answer is no news here."""
        try:
            await work
        except ClusterError as error:
            _LOG.debug("left out: %s", error)

    def _count(self, request: Request, response: Response | None) -> None:
        status = str(response.status) if response is not None else "lost"
        self._metrics.requests.labels(self._node, request.method, status).inc()


def _own_pod(environment: Mapping[str, str]) -> lock_place.OwnPod:
    """As the pod tells it: its namespace by the service account's files, its name by POD_NAME, or as its host name."""
    try:
        namespace = _NAMESPACE_FILE.read_text(encoding="utf-8").strip()
    except OSError:
        namespace = ""
    return lock_place.OwnPod(namespace=namespace, name=environment.get("POD_NAME") or socket.gethostname())


def _host(settings: Settings) -> LocalHost:
    return LocalHost(
        root=Path(settings.host_root or "/"),
        sentinel_file=settings.reboot_sentinel,
        sentinel_command=settings.reboot_sentinel_command,
        sentinel_seconds=settings.sentinel_timeout,
        boot_id_file=Path(settings.boot_id_file),
        how=HostExec(settings.host_exec),
        reboot_method=cast("Literal['command', 'signal']", settings.reboot_method),
        reboot_command=settings.reboot_command,
        reboot_signal=settings.reboot_signal,
        reboot_seconds=settings.reboot_timeout,
    )


def _deadlines_of(settings: Settings) -> float:
    """How long a turn may wait for what is not the API server."""
    return settings.sentinel_timeout + settings.prometheus_timeout + settings.forecast_timeout + settings.reboot_timeout


def _alerts(settings: Settings) -> AlertSource | None:
    if not settings.prometheus_url:
        return None
    access = Access(
        token_file=settings.prometheus_token_file, username=settings.prometheus_username, password_file=settings.prometheus_password_file,
        ca_file=settings.prometheus_ca_file, certificate_file=settings.prometheus_client_certificate_file, key_file=settings.prometheus_client_key_file,
    )
    return Prometheus(settings.prometheus_url, timeout_seconds=settings.prometheus_timeout, access=access)


def _limits(live: LiveSettings) -> Limits:
    settings = live.settings
    return Limits(
        seconds=settings.forecast_timeout, memory_bytes=settings.forecast_memory, scheduler_config=live.scheduler_config,
        drain_pod_selector=settings.drain_pod_selector,
    )
