"""The agents' settings with the changes of --set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import click

from careen.cli.support.agents_settings import ANY_NODE
from careen.cli.support.screen import did_you_mean
from careen.report.tables import listed
from careen.settings.sources import BadSettings, resolve
from careen.settings.tree import SETTINGS, Settings, flag

_FOLLOWED = (
    "concurrency",
    "order",
    "budget",
    "count_cordoned",
    "reboot_cordoned",
    "reboot_days",
    "start_time",
    "end_time",
    "time_zone",
    "windows",
    "minimum_interval",
    "cluster_minimum_interval",
    "forecast",
    "forecast_pending_allowed",
    "forecast_unknown_allowed",
    "late_policy",
    "prefer_no_schedule_taint",
    "drain_pod_selector",
    "slow_pod_selector",
    "drain_delay",
    "load_balancer_settle",
    "pods_bound_to_node",
    "protected_pods",
    "blocking_pods",
    "force_reboot",
    "force_reboot_past_budgets",
    "reboot_delay",
    "lock_release_delay",
)
"""The settings that change a plan."""


def changed_settings(assignments: Sequence[str]) -> dict[str, Any]:
    """Parses --set as the agents parse their flags."""
    given: dict[str, list[str]] = {}
    for text in assignments:
        name, is_there, value = text.partition("=")
        field = name.strip().removeprefix("--").replace("-", "_")
        if not is_there or field not in SETTINGS:
            raise click.BadParameter(_no_such_setting(text, name.strip()), param_hint="--set")
        given.setdefault(field, []).append(value)
    try:
        settings = resolve(flags={"node_id": [ANY_NODE], **given}, environment={}, is_whole=False).settings
    except BadSettings as error:
        raise click.BadParameter("; ".join(error.problems), param_hint="--set") from error
    return {name: getattr(settings, name) for name in given}


def followed_settings(settings: Settings) -> dict[str, str]:
    """By the names of their flags: `{"concurrency": "2"}`."""
    return {flag(name): SETTINGS[name].kind.shown(getattr(settings, name)) for name in _FOLLOWED}


def _no_such_setting(text: str, name: str) -> str:
    names = [flag(each) for each in SETTINGS]
    if name in names:
        return f"{text!r} is not of the form NAME=VALUE, such as {name}=VALUE"
    suggestion = did_you_mean(name.replace("_", "-"), names, otherwise=".")
    return f"{text!r}: the agents have no setting {name!r}{suggestion} {_list_of_settings()}"


def _list_of_settings() -> str:
    return f"The settings that change a plan: {listed([flag(each) for each in _FOLLOWED], most=len(_FOLLOWED))}"


def without_effect(changed: Mapping[str, Any]) -> list[str]:
    """A note on the settings of --set that do not change a plan, if any."""
    idle = [flag(name) for name in changed if name not in _FOLLOWED]
    if not idle:
        return []
    return [f"--set changes settings that do not affect a plan: {listed(idle, most=len(idle))}. {_list_of_settings()}"]


def with_changes(settings: Settings | None, changed: dict[str, Any]) -> Settings:
    """Unknown settings of the agents are the defaults."""
    return replace(settings or Settings(node_id=ANY_NODE), **changed)
