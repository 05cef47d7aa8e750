"""Builds every part of an agent and passes each its dependencies. No other module does.

The order: names of the node and the API server from flags and environment; the lock's DaemonSet; the review of rights;
the ConfigMap's settings; a file lock that permits only one agent on the host; the loop. kopf starts after the first
turn, so that a node that has just rebooted comes back into service first; often later (`following.py`).

What happens if the lock or the settings cannot be used: see `start.py`.
"""

from __future__ import annotations

import asyncio
import logging
import random
import signal
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from careen.agent import handlers
from careen.agent.apply import Hands
from careen.agent.asleep import doorkeeper, handover, sleeper
from careen.agent.asleep.bed import Bed
from careen.agent.asleep.rest import SleepAttempt
from careen.agent.asleep.threads import STOPS
from careen.agent.clock import SystemClock
from careen.agent.forecast import check as forecast_check
from careen.agent.forecast.forecaster import ChildForecaster, Limits
from careen.agent.forecast.patience import ForecastPatience
from careen.agent.loop import Loop
from careen.agent.messages import Messenger
from careen.agent.need_watch import NeedWatch
from careen.agent.observe import Observer, Senses
from careen.agent.self_test import SelfTests
from careen.agent.startup import message_urls
from careen.agent.startup.following import SettingsFollower
from careen.agent.startup.host import count_soft_reboots, host_of
from careen.agent.startup.rights import AGAIN_SECONDS, UNKNOWN_SECONDS, asked_for_by
from careen.agent.startup.servers import alert_source, metric_source, silences
from careen.agent.startup.start import Start
from careen.agent.telemetry import logs
from careen.agent.telemetry.http_server import Heartbeat, HttpServer
from careen.agent.telemetry.metrics import Metrics
from careen.agent.turn import Reconciler, TurnResult
from careen.cluster.access import OptionalRight
from careen.cluster.events import Subject, post_event
from careen.cluster.lock_store import LockStore
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.client import ClientTransport, connect
from careen.cluster.wire.errors import ClusterError
from careen.cluster.wire.transport import Request, Response
from careen.core.actions import Occasion
from careen.core.facts.observation import NeedAnswer, NodeView, Unknown
from careen.core.facts.phases import Phase
from careen.core.facts.reasons import Code, event_reason
from careen.host import single_agent
from careen.host.node_host import Host, LocalHost
from careen.settings.live import NO_CONFIG_MAP, Invocation, KeptSettings, LiveSettings, SeenConfigMap
from careen.settings.sources import Source, resolve
from careen.settings.tree import Settings, flag

if TYPE_CHECKING:
    from careen.agent.telling.silencer import Silencer
    from careen.agent.telling.teller import Teller
    from careen.core.people.rollout import Figures

_LOG = logging.getLogger("careen.agent")

# The agent ends within five seconds of SIGTERM: this long for the current turn, the rest for the shutdown.
STOP_SECONDS = 3.0
MESSAGE_SECONDS = 1.5
_RETRY_SECONDS = 2.0
_TEST_AGAIN_SECONDS = 60.0
_SILENT_SECONDS = 10.0  # a watch that works has said what it watches by then


class Agent:
    """One agent, from its start to SIGTERM."""

    def __init__(self, given: Invocation) -> None:
        """Raises `BadSettings` and `CannotReachCluster`. Both end the process with exit code 2."""
        self._given = given
        # Before the ConfigMap is read, only the settings needed to read it are validated.
        resolved = resolve(flags=given.flags, environment=given.environment, is_whole=False)
        self._basics = resolved.settings
        is_place_given = all(
            resolved.origins[name].source is not Source.DEFAULT for name in ("ds_namespace", "ds_name")
        )
        self._node = self._basics.node_id
        self._clock = SystemClock()
        self._transport: ClientTransport = connect(
            Path(self._basics.kubeconfig) if self._basics.kubeconfig else None, part="agent"
        )
        self._place = logs.set_up(form=self._basics.log_format, level=self._basics.log_level, node=self._node)
        self._metrics = Metrics(self._node)
        self._heartbeat = Heartbeat(self._clock.monotonic)
        self._woken = doorkeeper.woken()
        self._remembered = handover.remembered(self._woken)
        if self._woken is not None:
            _LOG.info("the agent wakes: %s", self._woken.handover.get("woken_by"))
            self._metrics.restore(self._woken.handover.get("counters"), self._woken.handover.get("requests"))
            if not self._woken.handover.get("not_ready"):
                self._heartbeat.ready()
        self._api = ClusterApi(self._transport, self._clock, chance=random.random, observer=self._count)
        self._background: set[asyncio.Task[object]] = set()
        self._loop: Loop | None = None
        self._messages: Messenger | None = None
        self._teller: Teller | None = None
        self._silencer: Silencer | None = None
        self._stopping = asyncio.Event()
        self._held: single_agent.Held | None = None
        self._rest: SleepAttempt | None = None
        self._following: SettingsFollower | None = None
        self._bed: Bed | None = None
        self._start = Start(
            given=given,
            basics=self._basics,
            is_place_given=is_place_given,
            api=self._api,
            clock=self._clock,
            metrics=self._metrics,
            heartbeat=self._heartbeat,
            in_background=self._in_background,
            kept=self._remembered.settings,
            chance=random.random,
        )
        self._rights = self._start.rights
        if self._remembered.is_reviewed:
            self._rights.are_as_before()

    async def run(self) -> Bed | None:
        """Works until SIGTERM or SIGINT, or until the agent may sleep: then returns what it hands over. Raises
        `BadSettings` if the ConfigMap's first settings cannot be used."""
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._stopping.set)
        server = self._serve()
        work = asyncio.create_task(self._work())
        stopped = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if self._stopping.is_set():
                await self._end(work)
            else:
                await work
            return await self._lie_down(server)
        finally:
            stopped.cancel()
            if server is not None and self._bed is None:
                server.close()
            self._transport.close()

    async def _lie_down(self, server: HttpServer | None) -> Bed | None:
        """From here on SIGTERM waits in the kernel for the sleeper; one that came before ends the agent."""
        if self._rest is None or self._rest.content is None or self._stopping.is_set():
            return None
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
        for _ in range(3):
            await asyncio.sleep(0)  # the event loop handles what Python has already received
        if self._stopping.is_set():
            return None
        content = {
            **self._rest.content,
            **self._metrics.handed_over(),
            "listener": server.hand_over(seconds=1.0) if server is not None else None,
            "lock": self._held.descriptor if self._held is not None else None,
        }
        self._bed = Bed(content)
        return self._bed

    async def _end(self, work: asyncio.Task[None]) -> None:
        """Lets the current turn finish if it ends soon, or cancels it. The next process continues from the record and
        the lock."""
        if self._loop is not None:
            self._loop.stop()
            if self._loop.is_turning:
                await asyncio.wait({work}, timeout=STOP_SECONDS)
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work
        if self._messages is not None:
            await self._messages.finish(seconds=MESSAGE_SECONDS)  # above all about the reboot that stops this agent
        _LOG.info("the agent stops on request; the next agent continues from the Node's record and the lock")

    async def _work(self) -> None:
        if not self._remembered.is_reviewed:
            await self._start.make_sure_of_the_lock()
            await self._start.review_rights()
        live = await self._start.first_settings()
        settings = live.settings
        self._tell_rights(live)
        held = await self._become_only_agent(settings)
        host = host_of(settings)
        if host.soft_reboots is not None and isinstance(await host.soft_reboots.read(), Unknown):
            self._in_background(count_soft_reboots(host, self._clock.sleep))
        lock = LockStore(
            self._api, namespace=settings.ds_namespace, name=settings.ds_name, annotation=settings.lock_annotation
        )
        need = NeedWatch(
            host.read_need,
            self._clock,
            commands=host.need.ask if host.need.has_commands else None,
            period_seconds=lambda: live.settings.period,
        )
        tests = SelfTests(host, self._clock)
        forecaster = self._forecaster(live)
        observer = Observer(self._senses(live, host, lock, need=need, tests=tests, forecaster=forecaster))
        if self._start.node_read is not None:
            observer.saw_node(*self._start.node_read)
        messages = self._messenger(live)
        reconciler = Reconciler(observer, self._hands(live, host, lock, messages), self._remembered.memory)
        patience = ForecastPatience(lambda: live.settings.forecast_patience)

        rest = self._rest_of(live, host, need, tests, reconciler)

        def after_turn(result: TurnResult) -> None:
            if rest is not None:
                rest.saw(result)
            if self._following is not None:
                self._following.saw(result)
            self._look_further(live, messages, result)
            self._after_turn(patience, tests, forecaster, result)

        loop = Loop(
            reconciler=reconciler,
            policy=lambda: self._start.policy_of(live),
            need=need,
            clock=self._clock,
            chance=random.random,
            place=self._place,
            metrics=self._metrics,
            heartbeat=self._heartbeat,
            after_first_turn=lambda: self._after_first_turn(
                live,
                rest,
                lambda: self._test_host(host, need, tests),
                lambda: self._begin_the_rest(live, rest, reconciler, loop),
            ),
            after_turn=after_turn,
            other_deadlines_seconds=lambda: _deadlines_of(live.settings),
            rests=lambda: self._rests(rest),
        )
        loop.told = self._remembered.told
        self._loop = loop
        self._following = self._following_of(live, loop)
        if rest is not None:
            rest.loop = loop
            self._rest = rest
        try:
            await loop.run()
        finally:
            await forecaster.get_ready(is_wanted=False)
        self._held = held  # a reference until here and beyond: without it the file lock would be released

    def _rest_of(
        self, live: LiveSettings, host: LocalHost, need: NeedWatch, tests: SelfTests, reconciler: Reconciler
    ) -> SleepAttempt | None:
        """None if the settings forbid sleep, or the sleeper could not notice something."""
        settings = live.settings
        if settings.sleep == "off" or host.soft_reboots is not None or _has_proxy(self._given.environment):
            return None
        return SleepAttempt(
            settings=lambda: live.settings,
            kept_settings=lambda: self._kept(live),
            host=host,
            need=need,
            reconciler=reconciler,
            credentials=self._transport.credentials,
            remembered=self._remembered,
            is_busy=lambda: bool(
                self._background or self._stopping.is_set() or self._start.lock_problem or live.stands_in
            ),
            is_reviewed=lambda: self._rights.is_whole and not (tests.last is not None and tests.last.obstacle),
            without=lambda: self._rights.without,
            not_ready=lambda: "" if self._heartbeat.readiness()[0] else self._heartbeat.readiness()[1],
            signatures=lambda: self._signatures_of(host),
        )

    def _kept(self, live: LiveSettings) -> KeptSettings:
        return KeptSettings(config_map=live.seen, refused=self._start.refused)

    async def _signatures_of(self, host: LocalHost) -> dict[str, str]:
        """In a thread, because a file system may hang."""
        return await asyncio.to_thread(lambda: {path: sleeper.file_signature(path) for path in host.need.watched()})

    # ---- the start ----

    def _serve(self) -> HttpServer | None:
        try:
            server = HttpServer(
                self._basics.metrics_host,
                self._basics.metrics_port,
                heartbeat=self._heartbeat,
                exposition=self._metrics.exposition,
                listener=self._woken.doorkeeper.leave()
                if self._woken is not None and self._woken.doorkeeper is not None
                else None,
            )
        except OSError as error:
            # kured exits here; a port in use is no reason to leave a node without its agent.
            _LOG.error(
                "the agent cannot serve metrics on %s:%s: %s",
                self._basics.metrics_host or "*",
                self._basics.metrics_port,
                error,
            )
            return None
        _LOG.info("the agent serves metrics, health and readiness on port %s", server.port)
        return server

    async def _become_only_agent(self, settings: Settings) -> single_agent.Held | None:
        """Waits until any other agent on this host has ended. If the host offers no file lock, only the
        resourceVersions of writes protect against a second agent."""
        has_told = False
        if self._woken is not None and isinstance(descriptor := self._woken.handover.get("lock"), int):
            root, folder = Path(settings.host_root or "/"), settings.host_lock_dir
            if held := single_agent.adopt(descriptor, root, folder, self._node):
                self._metrics.show_only_agent(1)
                return held
            _LOG.error("the file lock of this node is another file than before the sleep; the agent starts again")
            self._stopping.set()
            await asyncio.Event().wait()  # until `run` cancels this
        while settings.host_lock_dir:
            self._heartbeat.expect_within(60.0, "the agent waits until another agent of this node ends")
            match single_agent.take(Path(settings.host_root or "/"), settings.host_lock_dir, self._node):
                case single_agent.Held() as held:
                    self._metrics.show_only_agent(1)
                    return held
                case single_agent.CannotLock(why):
                    _LOG.info("the agent cannot use a file lock against a second agent of this node: %s", why)
                    break
                case single_agent.HeldByOther(file):
                    self._metrics.show_only_agent(0)
                    if not has_told:
                        _LOG.warning(
                            "another agent of this node has locked the file %s; this agent waits until that agent ends",
                            file,
                        )
                    has_told = True
                    await self._clock.sleep(_RETRY_SECONDS)
        self._metrics.show_only_agent(-1)
        return None

    def _after_first_turn(
        self,
        live: LiveSettings,
        rest: SleepAttempt | None,
        test: Callable[[], Coroutine[Any, Any, None]],
        begin: Callable[[], None],
    ) -> None:
        """An agent that may sleep at once begins only what must be done before; the rest if it stays awake."""
        if self._start.are_settings_new:
            self._start.check_keys(live)
        if not self._remembered.is_reviewed:
            self._in_background(test())
        if rest is None:
            begin()
            return

        def stay_awake() -> None:
            if self._remembered.is_reviewed:
                self._in_background(test())
            begin()

        rest.if_awake = stay_awake

    def _begin_the_rest(
        self, live: LiveSettings, rest: SleepAttempt | None, reconciler: Reconciler, loop: Loop
    ) -> None:
        if self._start.lock_problem:
            self._in_background(self._start.judge_lock_again(live, loop.wake))
        if self._following is not None:
            never_sleeps = rest is None or rest.are_settings_too_long or bool(live.stands_in)
            self._following.stay_awake(at_once=never_sleeps)
        self._in_background(self._review_rights(live, reconciler))

    async def _rests(self, rest: SleepAttempt | None) -> bool:
        if self._following is not None:
            await self._following.catch_up()
        return rest is not None and await rest.begins()

    def _following_of(self, live: LiveSettings, loop: Loop) -> SettingsFollower | None:
        """None without a ConfigMap or the rights to follow it."""
        if not self._basics.config_map or {OptionalRight.SETTINGS, OptionalRight.FOLLOWING} & self._rights.without:
            return None
        return SettingsFollower(
            follow=lambda: self._follow_config_map(live, loop),
            read=lambda: self._read_config_map(live, loop),
            now=self._clock.monotonic,
        )

    def _follow_config_map(self, live: LiveSettings, loop: Loop) -> None:
        ours, heard = asyncio.get_running_loop(), asyncio.Event()

        def changed(seen: SeenConfigMap | None) -> None:
            heard.set()
            self._config_map_changed(live, loop, seen)

        handlers.follow_config_map(
            namespace=self._basics.ds_namespace,
            name=self._basics.config_map,
            credentials=self._transport.credentials,
            on_change=lambda seen: cast("None", ours.call_soon_threadsafe(changed, seen)),
        )
        if live.seen is not None:
            self._in_background(self._look_if_silent(heard, changed))

    async def _look_if_silent(self, heard: asyncio.Event, changed: Callable[[SeenConfigMap | None], None]) -> None:
        """A watch begins with the present ConfigMap, and says nothing of one that was deleted just before."""
        try:
            async with asyncio.timeout(_SILENT_SECONDS):
                await heard.wait()
        except TimeoutError:
            with suppress(ClusterError):
                if await self._start.read_config_map() is None and not heard.is_set():
                    changed(None)

    async def _read_config_map(self, live: LiveSettings, loop: Loop) -> None:
        with suppress(ClusterError):
            self._config_map_changed(live, loop, await self._start.read_config_map())

    def _config_map_changed(self, live: LiveSettings, loop: Loop, seen: SeenConfigMap | None) -> None:
        stood_in = live.stands_in
        if not stood_in and (seen.identity if seen else NO_CONFIG_MAP) == self._kept(live).last_read:
            return
        problems = live.offer(seen)
        self._start.judged(live, seen, problems)
        if problems:
            return
        loop.wake()
        self._start.check_keys(live)
        self._in_background(message_urls.tell(live.resolved))
        if stood_in:
            self._leave_older_settings(live)

    def _leave_older_settings(self, live: LiveSettings) -> None:
        _LOG.info("the settings of ConfigMap %s can be used again", self._start.config_map)
        if live.waiting:
            # Parts built from the older settings cannot be changed; the next process continues the claim, if there is
            # one.
            _LOG.info("the agent restarts, because a change of %s needs a restart", ", ".join(map(flag, live.waiting)))
            self._stopping.set()

    async def _test_host(self, host: Host, need: NeedWatch, tests: SelfTests) -> None:
        """Reports problems of the host at the start; otherwise they would first appear at the reboot."""
        asked, boot = await need.read(), host.read_boot_id()
        problems = [asked.detail] if asked.answer is NeedAnswer.UNKNOWN else []
        problems += [boot.why] if isinstance(boot, Unknown) else []
        for problem in problems:
            _LOG.error("self-test: %s", problem)
        self._metrics.show_self_test(await tests.read(), besides=len(problems))
        while tests.last is not None and tests.last.obstacle:
            # A waiting node repeats the test itself; an idle one would report a problem that is over.
            await self._clock.sleep(_TEST_AGAIN_SECONDS)
            await tests.read()

    def _tell_rights(self, live: LiveSettings) -> None:
        self._rights.keep(asked_for_by(live.resolved.origins))
        self._rights.tell(besides=() if live.settings.forecast != "off" else (OptionalRight.FORECAST,))

    async def _review_rights(self, live: LiveSettings, reconciler: Reconciler) -> None:
        """Repeats the review while rights are missing and no reboot is under way. With more rights the process ends,
        and a new one starts with them."""
        while not self._rights.is_whole:
            await self._clock.sleep(AGAIN_SECONDS if self._rights.is_known else UNKNOWN_SECONDS)
            if reconciler.phase not in (None, Phase.IDLE, Phase.WAITING):
                continue
            before = self._rights.without
            await self._rights.review()
            self._tell_rights(live)
            if come := before - self._rights.without:
                _LOG.info("the agent restarts, because it now has the rights for %s", ", ".join(sorted(come)))
                self._stopping.set()

    # ---- the parts ----

    def _forecaster(self, live: LiveSettings) -> ChildForecaster:
        return ChildForecaster(
            kubeconfig=live.settings.kubeconfig, limits=lambda: _limits(live), clock=self._clock, metrics=self._metrics
        )

    def _senses(
        self,
        live: LiveSettings,
        host: Host,
        lock: LockStore,
        *,
        need: NeedWatch,
        tests: SelfTests,
        forecaster: ChildForecaster,
    ) -> Senses:
        settings = live.settings
        return Senses(
            node_name=self._node,
            daemonset_namespace=settings.ds_namespace,
            daemonset_name=settings.ds_name,
            api=self._api,
            host=host,
            need=need,
            self_tests=tests,
            lock=lock,
            forecaster=forecaster,
            alerts=lambda: alert_source(live.settings),
            metrics=lambda: metric_source(live.settings),
            chance=random.random,
        )

    def _hands(self, live: LiveSettings, host: Host, lock: LockStore, messages: Messenger) -> Hands:
        return Hands(
            node_name=self._node,
            api=self._api,
            host=host,
            lock=lock,
            chance=random.random,
            metrics=self._metrics,
            notify=messages.tell,
            silence=lambda: self._silencer_of(live).begin(),
            in_background=self._in_background,
        )

    def _messenger(self, live: LiveSettings) -> Messenger:
        self._messages = Messenger(
            node=self._node,
            settings=lambda: live.settings,
            metrics=self._metrics,
            in_background=self._in_background,
            figures=self._figures,
        )
        return self._messages

    async def _figures(self) -> Figures | None:
        from careen.agent.telling.teller import figures_of_rollout  # once in a roll-out

        return await figures_of_rollout(self._api)

    def _look_further(self, live: LiveSettings, messages: Messenger, result: TurnResult) -> None:
        """Reports a node that has been refused for long, and silences the alerts of a node that reboots. Both modules
        are loaded only when they are needed."""
        if result.decision.refusals and messages.is_wanted(Occasion.BLOCKED):
            if self._teller is None:
                from careen.agent.telling.teller import Teller

                self._teller = Teller(
                    api=self._api, settings=lambda: live.settings, messages=messages, in_background=self._in_background
                )
            self._teller.look(result)
        if self._silencer is not None or live.settings.alertmanager_silence:
            self._silencer_of(live).look(result.phase, result.observation)

    def _silencer_of(self, live: LiveSettings) -> Silencer:
        if self._silencer is None:
            from careen.agent.telling.silencer import Silencer

            self._silencer = Silencer(
                node=self._node,
                api=self._api,
                settings=lambda: live.settings,
                in_background=self._in_background,
                silences=silences,
            )
        return self._silencer

    def _in_background(self, work: Coroutine[Any, Any, object]) -> None:
        """Keeps a reference to the task, because asyncio's event loop keeps none."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _after_turn(
        self,
        patience: ForecastPatience,
        tests: SelfTests,
        forecaster: ChildForecaster,
        result: TurnResult,
    ) -> None:
        self._in_background(forecaster.get_ready(is_wanted=result.decision.starts_soon and result.stop is None))
        is_over, sentence = patience.look(result.decision.refusals, result.observation.now, result.phase)
        self._metrics.forecast_overdue.labels(self._node).set(is_over)
        node = result.observation.node
        if sentence and isinstance(node, NodeView):
            _LOG.warning("%s", sentence)
            subject = Subject(kind="Node", name=node.name, uid=node.uid)
            # The Event's name depends on when the refusal began, so a restarted agent cannot post it a second time.
            self._in_background(
                post_event(
                    self._api,
                    subject,
                    reason="ForecastOverdue",
                    sentence=sentence,
                    is_warning=True,
                    host=self._node,
                    once=str(patience.since),
                )
            )
        if isinstance(node, NodeView):
            self._tell_self_test(tests, node)
        if drain := forecast_check.finished_drain(result):
            self._in_background(self._quietly(forecast_check.check(self._api, drain, self._metrics, self._node)))

    def _tell_self_test(self, tests: SelfTests, node: NodeView) -> None:
        """Reports the self-test's findings as Events and metrics, even before the host needs a reboot."""
        if tests.last is None:
            return
        self._metrics.show_self_test(tests.last)
        subject, news = Subject(kind="Node", name=node.name, uid=node.uid), tests.news()
        for reason, sentence in (
            (event_reason(Code.REBOOT_IMPOSSIBLE), news.obstacle),
            ("ShutdownUnheard", news.warning),
        ):
            if sentence:
                self._in_background(
                    post_event(
                        self._api,
                        subject,
                        reason=reason,
                        sentence=sentence,
                        is_warning=True,
                        host=self._node,
                        once=sentence,
                    )
                )

    async def _quietly(self, work: Coroutine[Any, Any, object]) -> None:
        """Optional work: if a server does not answer, only a debug line."""
        try:
            await work
        except ClusterError as error:
            _LOG.debug("optional work was skipped after an error: %s", error)

    def _count(self, request: Request, response: Response | None) -> None:
        status = str(response.status) if response is not None else "lost"
        self._metrics.requests.labels(self._node, request.method, status).inc()


def _deadlines_of(settings: Settings) -> float:
    """How long a turn may wait for anything but the API server, in seconds."""
    return settings.sentinel_timeout + settings.prometheus_timeout + settings.forecast_timeout + settings.reboot_timeout


def _has_proxy(environment: Mapping[str, str]) -> bool:
    return any(environment.get(name) for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"))


def _limits(live: LiveSettings) -> Limits | Unknown:
    settings, configuration = live.settings, live.scheduler_config
    if isinstance(configuration, Unknown):
        return configuration
    return Limits(
        seconds=settings.forecast_timeout,
        memory_bytes=settings.forecast_memory,
        scheduler_config=configuration,
        may_name_files=live.may_scheduler_config_name_files,
        drain_pod_selector=settings.drain_pod_selector,
        slow_pod_selectors=settings.slow_pod_selector,
    )
