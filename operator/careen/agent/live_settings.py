"""The settings in force, and what a changed ConfigMap does to them: all of it or nothing.

A bad edit leaves everything as it was and is told; settings that cannot change while the agent runs wait for its restart.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from careen.agent import yaml_text
from careen.agent.settings import SETTINGS, Settings, flag
from careen.agent.settings_policy import policy_of
from careen.agent.settings_sources import BadSettings, Resolved, resolve
from careen.core.policy import Policy

_LOG = logging.getLogger("careen.config")

KEY = "config.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenConfigMap:
    """A ConfigMap as it was read."""

    uid: str = ""
    resource_version: str = ""
    data: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What does not change while the agent runs: its command line and environment."""

    flags: Mapping[str, Sequence[str]]
    environment: Mapping[str, str]


class LiveSettings:
    """The effective settings. `offer` is the only way they change."""

    def __init__(self, given: Given, config_map: SeenConfigMap | None, *, config_map_name: str) -> None:
        """Raises `BadSettings`: at the start there is nothing older that could stay in force."""
        self._given = given
        self._name = config_map_name
        self._data = config_map.data if config_map else {}
        self.resolved = self._resolve(self._data)
        self._policy = policy_of(self.resolved.settings)

    @property
    def settings(self) -> Settings:
        """In force now."""
        return self.resolved.settings

    @property
    def policy(self) -> Policy:
        """In force now."""
        return self._policy

    @property
    def scheduler_config(self) -> str:
        """The scheduler's configuration as text: of the ConfigMap's key, or of a file. Raises OSError, KeyError."""
        where = self.settings.scheduler_config
        if where.startswith("configmap:"):
            return self._data[where.removeprefix("configmap:")]
        if not where:
            return ""
        return Path(where).read_text(encoding="utf-8")

    def offer(self, config_map: SeenConfigMap | None) -> tuple[str, ...]:
        """Takes the ConfigMap's settings into force. The problems if they cannot be used: then nothing has changed."""
        data = config_map.data if config_map else {}
        if data == self._data:
            return ()
        try:
            resolved = self._resolve(data)
        except BadSettings as error:
            return error.problems
        changed = _changed(self.settings, resolved.settings)
        waiting = [name for name in changed if not SETTINGS[name].is_live]
        # What cannot change now keeps its value, so that the policy and the parts built from it stay of one piece.
        settings = replace(resolved.settings, **{name: getattr(self.settings, name) for name in waiting})
        self.resolved = replace(resolved, settings=settings)
        self._policy = policy_of(settings)
        self._data = data
        _tell(changed, waiting, resolved)
        return ()

    def _resolve(self, data: Mapping[str, str]) -> Resolved:
        return resolve(
            flags=self._given.flags, environment=self._given.environment, config_map=parse(data.get(KEY, ""), self._name), config_map_name=self._name
        )


def parse(text: str, name: str) -> Mapping[str, Any]:
    """The ConfigMap's YAML. Raises `BadSettings`."""
    try:
        values = yaml_text.load(text)
    except yaml_text.BadYaml as error:
        raise BadSettings([f"`{KEY}` in ConfigMap {name} is no YAML: {error}"]) from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise BadSettings([f"`{KEY}` in ConfigMap {name} must be a mapping of settings to values"])
    return values


def _changed(before: Settings, after: Settings) -> list[str]:
    return [name for name in SETTINGS if getattr(before, name) != getattr(after, name)]


def _tell(changed: list[str], waiting: list[str], resolved: Resolved) -> None:
    for name in changed:
        value = SETTINGS[name].kind.shown(getattr(resolved.settings, name))
        if name in waiting:
            _LOG.warning("%s is now %s (%s); it takes effect when the agent starts again", flag(name), value, resolved.origins[name].where)
        else:
            _LOG.info("%s is now %s (%s)", flag(name), value, resolved.origins[name].where)
    for note in resolved.notes:
        _LOG.warning("%s", note)
