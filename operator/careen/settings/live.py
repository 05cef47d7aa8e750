"""The settings in force. A changed ConfigMap takes effect as a whole or not at all.

After a bad edit the old settings stay in force, and the agent reports the problem. So they do after the ConfigMap is
deleted (`kubectl replace --force` deletes it for a moment), or their gates could not refuse any more. What cannot
change while the agent runs takes effect at its next start.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from msgspec import field

from careen.core.facts.observation import Unknown
from careen.core.facts.policy import Policy
from careen.settings import last_good, scheduler_config, yaml_text
from careen.settings.last_good import LastGood
from careen.settings.policy import policy_of
from careen.settings.sources import BadSettings, Resolved, resolve
from careen.settings.tree import LISTS_OF_MAPPINGS, SETTINGS, Settings, flag
from scheduler_core.values import Value

_LOG = logging.getLogger("careen.config")

KEY = "config.yaml"


class SeenConfigMap(Value, kw_only=True):
    """A ConfigMap as it was read."""

    uid: str = ""
    resource_version: str = ""
    data: Mapping[str, str] = field(default_factory=dict)

    @property
    def identity(self) -> tuple[str, str]:
        """Differs after each change."""
        return self.uid, self.resource_version


class KeptSettings(Value, kw_only=True):
    """What an agent keeps of its settings while it sleeps: the ConfigMap in force, and the identity of a newer one that
    it refused; NO_CONFIG_MAP if that was deleted."""

    config_map: SeenConfigMap | None = None
    refused: tuple[str, str] | None = None

    @property
    def last_read(self) -> tuple[str, str]:
        """The identity of the ConfigMap that was read last."""
        return self.refused or (self.config_map.identity if self.config_map else NO_CONFIG_MAP)

    @property
    def length(self) -> int:
        """In characters."""
        data = self.config_map.data if self.config_map else {}
        return sum(len(key) + len(text) for key, text in data.items())


NO_CONFIG_MAP = ("", "")


class Invocation(Value, kw_only=True):
    """The agent's command line and environment, which do not change while it runs."""

    flags: Mapping[str, Sequence[str]]
    environment: Mapping[str, str]


class LiveSettings:
    """The settings in force. Only `offer` changes them."""

    def __init__(
        self,
        given: Invocation,
        config_map: SeenConfigMap | None,
        *,
        config_map_name: str,
        instead: LastGood | None = None,
        is_woken: bool = False,
    ) -> None:
        """The settings at the start. Those of `instead` are in force until `offer` gets usable ones. With `is_woken`,
        those of this process before it slept: a file that they name may be gone, as at any time.

        Without `instead`, raises `BadSettings` if they are unusable: there are no older ones.
        """
        self._given = given
        self._name = config_map_name
        self._seen = config_map
        self._instead = instead
        self._scheduler_text = ""
        self._waiting: tuple[str, ...] = ()
        if instead is None:
            self.resolved = self._resolve(self._data)
            self._scheduler_text = self._read_scheduler_config(self.resolved, self._data, is_new=not is_woken)
        else:
            self.resolved = instead.resolved
        self._policy = self._policy_of(self.resolved)

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.resolved.settings

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._policy

    @property
    def stands_in(self) -> str:
        """Why older settings replace the ConfigMap's, otherwise ""."""
        return self._instead.why if self._instead else ""

    @property
    def waiting(self) -> tuple[str, ...]:
        """Changed settings that take effect only at the agent's next start."""
        return self._waiting

    @property
    def seen(self) -> SeenConfigMap | None:
        """The ConfigMap that was read last; None if there was none."""
        return self._seen

    @property
    def config_map_uid(self) -> str:
        """Of the ConfigMap that was read last; "" if none was."""
        return self._seen.uid if self._seen else ""

    @property
    def scheduler_config(self) -> str | Unknown:
        """A text in the ConfigMap belongs to the settings in force; a file is read at each call."""
        where = self.settings.scheduler_config
        if scheduler_config.is_key(where) and self._instead is None:
            return self._scheduler_text
        try:
            return scheduler_config.read(where, {}, self._name)
        except scheduler_config.Unusable as error:
            return Unknown(f"--scheduler-config: {error}")

    @property
    def may_scheduler_config_name_files(self) -> bool:
        """Whether `scheduler_config` may contain file names, which its reader opens."""
        return _may_name_files(self.settings)

    def offer(self, config_map: SeenConfigMap | None, *, is_start: bool = False) -> tuple[str, ...]:
        """Puts the ConfigMap's settings into force; those that need a restart only with `is_start`. Unusable ones
        change nothing; their problems are returned."""
        if config_map is None:
            return self._missed()
        if self._instead is None and self._seen is not None and config_map.data == self._data:
            self._seen = config_map
            return ()
        try:
            resolved = self._resolve(config_map.data)
            is_new = resolved.settings.scheduler_config != self.settings.scheduler_config
            text = self._read_scheduler_config(resolved, config_map.data, is_new=is_new)
        except BadSettings as error:
            return error.problems
        self._take(config_map, resolved, text, is_start=is_start)
        return ()

    def _missed(self) -> tuple[str, ...]:
        """A problem if the ConfigMap was deleted; none if the agent has never seen it."""
        if self._seen is None and self._instead is None:
            return ()
        problem = (
            f"ConfigMap {self._name} was deleted, and its settings stay in force: create the ConfigMap again. To drop "
            "the settings, create an empty ConfigMap or restart the agents"
        )
        return (problem,)

    def _take(self, config_map: SeenConfigMap, resolved: Resolved, text: str, *, is_start: bool) -> None:
        changed = _changed(self.settings, resolved.settings)
        waiting = [name for name in changed if not SETTINGS[name].is_live and not is_start]
        # Settings that need a restart keep their values, so that the policy and the parts built from them agree.
        settings = replace(resolved.settings, **{name: getattr(self.settings, name) for name in waiting})
        self._seen, self._instead, self._waiting = config_map, None, tuple(waiting)
        if "scheduler_config" not in waiting:
            self._scheduler_text = text
        self.resolved = replace(resolved, settings=settings)
        self._policy = self._policy_of(resolved)
        _tell(changed, waiting, resolved)

    def _policy_of(self, resolved: Resolved) -> Policy:
        """With the ConfigMap's settings in `kept_settings`, for an agent that restarts and cannot read the
        ConfigMap."""
        policy, instead = policy_of(self.settings), self._instead
        if instead is None:
            return replace(policy, kept_settings=last_good.to_annotation(resolved))
        return replace(
            policy, kept_settings=instead.text, settings_problem=instead.why, are_settings_whole=instead.is_whole
        )

    @property
    def _data(self) -> Mapping[str, str]:
        return self._seen.data if self._seen else {}

    def _read_scheduler_config(self, resolved: Resolved, data: Mapping[str, str], *, is_new: bool) -> str:
        """The scheduler's configuration in the ConfigMap. Raises `BadSettings`.

        A file is checked here when the setting changes, and read again by each forecast.
        """
        where = resolved.settings.scheduler_config
        if not is_new and not scheduler_config.is_key(where):
            return ""
        try:
            may_name = _may_name_files(resolved.settings)
            return scheduler_config.read_checked(where, data, self._name, may_name_files=may_name)
        except scheduler_config.Unusable as error:
            raise BadSettings([f"{resolved.origins['scheduler_config'].where}: {error}"]) from None

    def _resolve(self, data: Mapping[str, str]) -> Resolved:
        return resolve(
            flags=self._given.flags,
            environment=self._given.environment,
            config_map=parse(data.get(KEY, ""), self._name),
            config_map_name=self._name,
        )


def parse(text: str, name: str) -> Mapping[str, Any]:
    """The ConfigMap's YAML. Raises `BadSettings`."""
    try:
        values = yaml_text.load(text, lists_of_mappings=LISTS_OF_MAPPINGS)
    except yaml_text.BadYaml as error:
        raise BadSettings([f"`{KEY}` in ConfigMap {name} is not YAML: {error}"]) from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise BadSettings([f"`{KEY}` in ConfigMap {name} must be a mapping of settings to values"])
    return values


def _may_name_files(settings: Settings) -> bool:
    return scheduler_config.may_name_files(
        settings.scheduler_config, is_config_map_trusted=settings.config_map_may_name_files
    )


def _changed(before: Settings, after: Settings) -> list[str]:
    return [name for name in SETTINGS if getattr(before, name) != getattr(after, name)]


def _tell(changed: list[str], waiting: list[str], resolved: Resolved) -> None:
    for name in changed:
        value = SETTINGS[name].kind.shown(getattr(resolved.settings, name))
        if name in waiting:
            _LOG.warning(
                "the setting %s is now %s (%s); this value takes effect when the agent starts again",
                flag(name),
                value,
                resolved.origins[name].where,
            )
        else:
            _LOG.info("the setting %s is now %s (%s)", flag(name), value, resolved.origins[name].where)
    for note in resolved.notes:
        _LOG.warning("%s", note)
