"""Starts an agent: finds its lock, then its settings.

If one of them cannot be used, the record decides:

* No claim: the agent waits for the API server. It ends if its lock may differ from the other agents', or if the
  settings are invalid.
* A claim: the agent works on this claim and takes no new one, because the node may be cordoned and others wait for the
  release. Instead of bad settings it uses those stored with the claim, until the ConfigMap has usable ones.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from careen.agent.startup import lock_place, message_urls
from careen.agent.startup.recorded_claim import RecordedClaim, claim_of, own_node
from careen.agent.startup.rights import Rights, asked_for_by
from careen.agent.telemetry.http_server import Heartbeat
from careen.agent.telemetry.metrics import Metrics
from careen.cluster import objects
from careen.cluster.access import OptionalRight, needed_rights
from careen.cluster.events import Subject, post_event
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.errors import ClusterError, Forbidden, NotFound, Withheld
from careen.cluster.wire.transport import Clock
from careen.core.facts.observation import NodeView
from careen.core.facts.policy import ForecastPolicy, Policy
from careen.core.facts.reasons import Code, event_reason
from careen.settings import last_good
from careen.settings.live import NO_CONFIG_MAP, Invocation, KeptSettings, LiveSettings, SeenConfigMap
from careen.settings.sources import BadSettings, is_written
from careen.settings.tree import DEFAULTS, Settings

if TYPE_CHECKING:
    from careen.agent.startup.allowed_keys import AllowedKeys

_LOG = logging.getLogger("careen.agent")

PATIENCE_SECONDS = 30.0
"""How long a holder waits for an unreadable lock or settings before it goes on without them."""

_RETRY_SECONDS = 2.0  # doubles; thousands of agents may wait for the same API server
_SOON_SECONDS = 8.0  # the longest pause in an outage of a minute: the soft taint must follow soon after it
_LONGEST_RETRY_SECONDS = 30.0  # in one of four minutes or more
_LONGEST_FORBIDDEN_SECONDS = 60.0  # a person must grant the right
_LOCK_AGAIN_SECONDS = 30.0
_LONGEST_PROBLEM = 500  # characters; it stands in an annotation and in Events

SETTINGS_WITH_KEYS = (
    "prefer_no_schedule_taint",
    "pre_reboot_node_labels",
    "post_reboot_node_labels",
    "annotate_nodes",
    "lock_annotation",
)
"""The settings that determine which keys the agent writes on the Node and the DaemonSet."""

_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


@dataclass(kw_only=True)
class Start:
    """Finds the lock, then the settings, and keeps the problems."""

    given: Invocation
    basics: Settings
    is_place_given: bool
    api: ClusterApi
    clock: Clock
    metrics: Metrics
    heartbeat: Heartbeat
    in_background: Callable[[Coroutine[Any, Any, object]], None]
    chance: Callable[[], float]
    kept: KeptSettings | None = None
    """The settings of this process before it slept; None at an ordinary start."""
    are_settings_new: bool = field(default=True, init=False)
    """Whether they differ from those before the sleep."""
    refused: tuple[str, str] | None = field(default=None, init=False)
    """The identity of the newest ConfigMap if it cannot be used."""
    lock_problem: str = field(default="", init=False)
    """Why the lock may differ from the other agents' lock."""
    node_read: tuple[NodeView, float] | None = field(default=None, init=False)
    """The agent's Node and when it was read; None if it was not."""
    rights: Rights = field(init=False)
    allowed_keys: AllowedKeys | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Flags and environment determine which rights the agent needs."""
        basics = self.basics
        self.refused = self.kept.refused if self.kept else None
        needed = needed_rights(
            node=basics.node_id,
            namespace=basics.ds_namespace,
            daemonset=basics.ds_name,
            config_map=basics.config_map,
            forecast=True,
            sleeps=basics.sleep != "off",
        )
        # A ConfigMap that a setting names may contain a window: without the right to read it nothing begins.
        kept = {OptionalRight.SETTINGS} if is_written("config_map", self.given.flags, self.given.environment) else set()
        self.rights = Rights(self.api, self.clock, self.metrics, node=basics.node_id, needed=needed, kept=kept)

    @property
    def config_map(self) -> str:
        """The ConfigMap of the settings, as `namespace/name`."""
        return f"{self.basics.ds_namespace}/{self.basics.config_map}"

    async def make_sure_of_the_lock(self) -> None:
        """Makes sure, before the first write, that the agent uses the other agents' lock: in another it would not see
        their claims.

        Raises `BadSettings`.
        """
        named, began, tries = self._lock_place, self.clock.monotonic(), 0
        while True:
            self.heartbeat.expect_within(120.0, f"the agent checks whether {named} carries the agents' own lock")
            try:
                judged = await self._judge_lock()
                claim = await self._claim() if judged.refusal else None
            except ClusterError as error:
                _LOG.warning(
                    "the agent cannot tell yet whether %s carries the agents' own lock, and waits: %s", named, error
                )
                claim = await self._claim_after_patience(began)
                if claim is not None:
                    self._do_without_lock(
                        claim, f"the agent cannot tell whether {named} carries the agents' own lock: {error}"
                    )
                    return
                await self._review_rights_after(error)
                tries += 1
                await self.clock.sleep(self._pause_seconds(error, tries, began))
                continue
            if judged.remark:
                _LOG.warning("%s", judged.remark)
            if judged.refusal and claim is None:
                raise BadSettings([judged.refusal])
            if judged.refusal and claim is not None:
                self._do_without_lock(claim, judged.refusal)
            return

    @property
    def _lock_place(self) -> lock_place.LockPlace:
        return lock_place.LockPlace(self.basics.ds_namespace, self.basics.ds_name)

    async def _judge_lock(self) -> lock_place.Judged:
        basics = self.basics
        return await lock_place.judge(
            self.api,
            self._lock_place,
            is_given=self.is_place_given,
            annotation=basics.lock_annotation,
            pod=None if basics.kubeconfig else _own_pod(self.given.environment),
        )

    def _do_without_lock(self, claim: RecordedClaim, why: str) -> None:
        self.lock_problem = f"{why[:_LONGEST_PROBLEM]}: this node goes back into service and takes no new claim"
        self._tell_of_standing_in(claim, self.lock_problem)

    async def judge_lock_again(self, live: LiveSettings, then: Callable[[], None]) -> None:
        """Repeats the check until the lock proves to be the agents' own, then calls `then`."""
        while self.lock_problem:
            await self.clock.sleep(_LOCK_AGAIN_SECONDS)
            try:
                judged = await self._judge_lock()
            except ClusterError as error:
                _LOG.info(
                    "the agent still cannot tell whether %s carries the agents' own lock: %s", self._lock_place, error
                )
                continue
            if not judged.refusal:
                self.lock_problem = ""
                _LOG.info(
                    "a new check shows that the agent may use the lock of %s: the agent works normally again",
                    self._lock_place,
                )
                self.show_settings(live)
                then()

    async def first_settings(self) -> LiveSettings:
        """Waits until the ConfigMap is read: its maintenance windows and gates must apply from the first turn on."""
        name, began, tries = self.config_map, self.clock.monotonic(), 0
        while True:
            self.heartbeat.expect_within(120.0, f"the agent reads ConfigMap {name}")
            try:
                live = await self._settings_or_last_good()
            except ClusterError as error:
                _LOG.warning("the settings are not known yet, so the agent waits: %s", error)
                if claim := await self._claim_after_patience(began):
                    return self._stand_in(claim, None, f"ConfigMap {name} cannot be read: {error}")
                await self._review_rights_after(error)
                tries += 1
                await self.clock.sleep(self._pause_seconds(error, tries, began))
                continue
            if tries and not self.rights.is_whole:
                await self.review_rights()
            self.show_settings(live)
            for note in live.resolved.notes if self.kept is None else ():
                _LOG.warning("%s", note)
            return live

    async def review_rights(self) -> None:
        """Reviews the rights before the first of them is used. Those of the forecast are reported later, when the
        settings show whether it is used."""
        self.heartbeat.expect_within(120.0, "the agent asks which rights it has")
        await self.rights.review()
        self.rights.tell(besides=(OptionalRight.FORECAST,))

    async def _review_rights_after(self, error: ClusterError) -> None:
        """After a denied request: a person may have bound a role since the last review."""
        if isinstance(error, Forbidden):
            await self.review_rights()

    async def _settings_or_last_good(self) -> LiveSettings:
        """Unusable settings are replaced by those from before the sleep, or by those stored with the claim.

        Raises `ClusterError`; `BadSettings` if the settings are unusable and there is no claim.
        """
        name = self.config_map
        try:
            seen = await self.read_config_map()
        except Forbidden as error:
            await self._review_rights_after(error)
            if self.kept is not None and (continued := self._continued(self.kept)) is not None:
                _LOG.warning(
                    "the agent keeps the present settings, because it may not read ConfigMap %s any more", name
                )
                return continued
            raise
        if self.kept is not None:
            offered = () if OptionalRight.SETTINGS in self.rights.without else (seen,)
            if (continued := self._continued(self.kept, *offered)) is not None:
                return continued
        if seen is None and self.basics.config_map:
            claim = await self._claim()
            if claim is not None and not last_good.says_nothing(claim.settings):
                return self._stand_in(claim, None, f"ConfigMap {name} does not exist")
        try:
            live = LiveSettings(self.given, seen, config_map_name=name)
            await self._judge_messages(live)
        except BadSettings as error:
            claim = await self._claim()
            if claim is None:
                raise
            return self._stand_in(claim, seen, f"the settings cannot be used: {'; '.join(error.problems)}")
        return live

    def _continued(self, kept: KeptSettings, *seen: SeenConfigMap | None) -> LiveSettings | None:
        """As an agent that did not sleep meets the ConfigMap `seen`, if it may read one. None if the settings from
        before the sleep cannot be used any more."""
        try:
            live = LiveSettings(self.given, kept.config_map, config_map_name=self.config_map, is_woken=True)
        except BadSettings as error:
            _LOG.warning("the settings from before the sleep cannot be used any more: %s", error)
            self.kept = None
            return None
        before = live.settings
        for each in seen:
            self.judged(live, each, live.offer(each, is_start=True))
        self.are_settings_new = live.settings != before
        if self.are_settings_new:
            self.in_background(message_urls.tell(live.resolved))
        return live

    async def _judge_messages(self, live: LiveSettings) -> None:
        """Raises `BadSettings` for a bad URL of a receiver. With a claim it only logs the URL, because no decision
        depends on messages."""
        try:
            await message_urls.judge(live.resolved)
        except BadSettings as error:
            if await self._claim() is None:
                raise
            for problem in error.problems:
                _LOG.error("the agent cannot send messages to a configured receiver: %s", problem)

    def _stand_in(self, claim: RecordedClaim, seen: SeenConfigMap | None, why: str) -> LiveSettings:
        """The settings stored with the claim, used until the ConfigMap has usable ones."""
        instead = last_good.restore(
            claim.settings,
            f"{why[:_LONGEST_PROBLEM]}: the node uses older settings for its present claim and takes no new claim",
            flags=self.given.flags,
            environment=self.given.environment,
            name=self.config_map,
            lock_annotation=claim.lock_annotation,
        )
        live = LiveSettings(self.given, seen, config_map_name=self.config_map, instead=instead)
        self._tell_of_standing_in(claim, instead.why)
        if seen is not None:
            self.tell_bad_settings(live, seen, why)
        return live

    def _tell_of_standing_in(self, claim: RecordedClaim, sentence: str) -> None:
        self.metrics.show_config(ok=False)
        self.heartbeat.hold_readiness(sentence)
        _LOG.error("%s", sentence)
        subject = Subject(kind="Node", name=self.basics.node_id, uid=claim.node_uid)
        reason = event_reason(Code.SETTINGS_UNUSABLE)
        self.in_background(
            post_event(
                self.api,
                subject,
                reason=reason,
                sentence=sentence,
                is_warning=True,
                host=self.basics.node_id,
                once=f"{claim.id}/{sentence}",
            )
        )

    def _pause_seconds(self, error: ClusterError, tries: int, began: float) -> float:
        """Grows, and differs between agents. Does not outlast the patience of a holder."""
        lasted = self.clock.monotonic() - began
        longest = min(_LONGEST_RETRY_SECONDS, max(_SOON_SECONDS, lasted / 8))
        if isinstance(error, Forbidden):
            longest = _LONGEST_FORBIDDEN_SECONDS
        pause = min(_RETRY_SECONDS * 2.0 ** min(tries - 1, 10), longest) * (0.5 + 0.5 * self.chance())
        left = PATIENCE_SECONDS - lasted
        return min(pause, max(left, _RETRY_SECONDS)) if left > 0 else pause

    async def _claim(self) -> RecordedClaim | None:
        """The claim in the record. Raises `ClusterError`."""
        asked_at = self.clock.monotonic()
        node = await own_node(self.api, self.basics.node_id)
        self.node_read = (node, asked_at) if node else None
        return claim_of(node) if node else None

    async def _claim_after_patience(self, began: float) -> RecordedClaim | None:
        """The recorded claim, once PATIENCE_SECONDS have passed since `began`; None before, or if the Node cannot be
        read. An agent that slept had none."""
        if self.kept is not None or self.clock.monotonic() - began < PATIENCE_SECONDS:
            return None
        try:
            return await self._claim()
        except ClusterError:
            return None

    def policy_of(self, live: LiveSettings) -> Policy:
        """The policy for decisions.

        While the lock may differ from the other agents' lock, it forbids a new claim, and the reboot after a drain that
        has begun. Without the rights for a forecast that no setting requests, it switches the forecast off.
        """
        policy = live.policy
        if OptionalRight.FORECAST in self.rights.without - asked_for_by(live.resolved.origins):
            policy = replace(policy, forecast=ForecastPolicy.OFF)
        if not self.lock_problem:
            return policy
        problems = [each for each in (self.lock_problem, policy.settings_problem) if each]
        return replace(policy, settings_problem="; ".join(problems), are_settings_whole=False)

    def judged(self, live: LiveSettings, seen: SeenConfigMap | None, problems: tuple[str, ...]) -> None:
        """After `live` was offered the ConfigMap: reports `problems`, once for each refused ConfigMap."""
        identity = seen.identity if seen else NO_CONFIG_MAP
        is_told, self.refused = self.refused == identity, identity if problems else None
        self.show_settings(live)
        if not problems or is_told:
            return
        sentence = "; ".join(problems)
        if seen is not None:
            sentence = f"the agent keeps the present settings, because the new ones cannot be used: {sentence}"
        _LOG.error("%s", sentence)
        self.tell_bad_settings(live, seen, sentence)

    def show_settings(self, live: LiveSettings) -> None:
        """Shows in a metric and in the readiness probe whether the agent uses the current settings and the other
        agents' lock.

        An agent on older settings or on another lock is not ready, so a roll-out of the DaemonSet stops at it. That a
        changed ConfigMap cannot be used appears only in the metric.
        """
        missing = self.lock_problem or live.stands_in
        self.metrics.show_config(ok=self.refused is None and not missing)
        self.heartbeat.hold_readiness(missing)

    def check_keys(self, live: LiveSettings) -> None:
        """Warns of configured keys that the admission policies would refuse, before the API server denies a write."""
        if self.allowed_keys is None:
            if all(getattr(live.settings, name) == DEFAULTS[name] for name in SETTINGS_WITH_KEYS):
                return
            from careen.agent.startup.allowed_keys import AllowedKeys  # few agents need it

            self.allowed_keys = AllowedKeys(self.api, self.basics)
        self.in_background(self.allowed_keys.check(live.settings))

    async def read_config_map(self) -> SeenConfigMap | None:
        if not self.basics.config_map:
            return None
        try:
            found = await self.api.get(
                f"/api/v1/namespaces/{self.basics.ds_namespace}/configmaps/{self.basics.config_map}",
                objects.ConfigMap,
            )
        except (NotFound, Withheld):
            return None
        return SeenConfigMap(
            uid=found.metadata.uid, resource_version=found.metadata.resource_version, data=found.data or {}
        )

    def tell_bad_settings(self, live: LiveSettings, seen: SeenConfigMap | None, sentence: str) -> None:
        """Posts an Event of the ConfigMap: one for all agents, since the whole fleet sees the same settings."""
        uid = seen.uid if seen else live.config_map_uid
        subject = Subject(kind="ConfigMap", name=self.basics.config_map, namespace=self.basics.ds_namespace, uid=uid)
        once = f"{uid}/{seen.resource_version if seen else 'deleted'}"
        self.in_background(
            post_event(
                self.api,
                subject,
                reason="BadSettings",
                sentence=sentence,
                is_warning=True,
                host=self.basics.node_id,
                once=once,
            )
        )


def _own_pod(environment: Mapping[str, str]) -> lock_place.OwnPod:
    """The namespace comes from the service account's files, the name is POD_NAME or the host name."""
    try:
        namespace = _NAMESPACE_FILE.read_text(encoding="utf-8").strip()
    except OSError:
        namespace = ""
    return lock_place.OwnPod(namespace=namespace, name=environment.get("POD_NAME") or socket.gethostname())
