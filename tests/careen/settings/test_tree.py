"""Tests the definitions of all settings: kured's flags have kured's names and defaults, and careen's settings are
documented."""

from __future__ import annotations

import dataclasses
from datetime import UTC, time

import pytest

from careen.settings.tree import DEFAULTS, SETTINGS, Settings, flag, variable

# kured 1.23, cmd/kured/main.go: every flag with its default, as this tree writes values. Those that differ on purpose
# are below.
KURED = {
    "node-id": "",
    "period": 3600.0,
    "reboot-sentinel": ("/var/run/reboot-required",),
    "reboot-sentinel-command": "",
    "reboot-method": "command",
    "reboot-command": "/bin/systemctl reboot",
    "reboot-signal": 39,
    "reboot-delay": 0.0,
    "concurrency": 1,
    "ds-namespace": "kube-system",
    "ds-name": "kured",
    "lock-annotation": "weave.works/kured-node-lock",
    "lock-ttl": 0.0,
    "lock-release-delay": 0.0,
    "prefer-no-schedule-taint": "",
    "drain-delay": 0.0,
    "drain-timeout": 0.0,
    "drain-grace-period": -1,
    "drain-pod-selector": None,
    "skip-wait-for-delete-timeout": 0,
    "force-reboot": False,
    "prometheus-url": "",
    "alert-filter-regexp": None,
    "alert-filter-match-only": False,
    "alert-firing-only": False,
    "blocking-pod-selector": (),
    "reboot-days": (6, 0, 1, 2, 3, 4, 5),
    "start-time": time(0, 0),
    "end-time": time(23, 59, 59),
    "time-zone": UTC,
    "annotate-nodes": False,
    "pre-reboot-node-labels": (),
    "post-reboot-node-labels": (),
    "notify-url": "",
    "slack-hook-url": "",
    "slack-username": "kured",
    "slack-channel": "",
    "message-template-drain": "Draining node %s",
    "message-template-reboot": "Rebooting node %s",
    "message-template-uncordon": "Node %s rebooted & uncordoned successfully!",
    "metrics-host": "",
    "metrics-port": 8080,
    "log-format": "text",
}
DIFFERENT_ON_PURPOSE = {
    "prefer-no-schedule-taint": "careen.dev/reboot",  # on unless switched off
    "notify-url": (),  # kured accepts one; careen accepts several
    "slack-hook-url": None,
    "reboot-days": (0, 1, 2, 3, 4, 5, 6),  # the same seven days, Monday first
}


def test_kureds_43_flags_exist_with_their_names_and_defaults() -> None:
    assert len(KURED) == 43
    assert {
        flag(name): DEFAULTS[name] for name, setting in SETTINGS.items() if setting.is_kureds
    } == KURED | DIFFERENT_ON_PURPOSE


@pytest.mark.parametrize("name", SETTINGS)
def test_each_setting_is_documented_and_its_printed_default_can_be_parsed(name: str) -> None:
    setting = SETTINGS[name]
    assert setting.help.endswith((".", ")")), "a sentence"
    kind = setting.kind
    shown = kind.shown(DEFAULTS[name])
    read = tuple(kind.parse(part) for part in kind.split(shown)) if kind.many else kind.parse(shown)
    assert read == DEFAULTS[name]


def test_the_config_map_cannot_contain_settings_needed_to_find_the_config_map() -> None:
    bootstrap = {name for name, setting in SETTINGS.items() if setting.bootstrap}
    assert bootstrap == {
        "node_id",
        "kubeconfig",
        "ds_namespace",
        "ds_name",
        "config_map",
        "config_map_may_run_commands",
        "config_map_may_name_files",
        "metrics_host",
        "metrics_port",
        "log_format",
        "log_level",
    }
    assert all(not SETTINGS[name].is_live for name in bootstrap)


def test_flag_and_environment_variable_of_a_setting_follow_from_its_name() -> None:
    assert flag("blocking_pod_selector") == "blocking-pod-selector"
    assert variable("blocking_pod_selector", "KURED") == "KURED_BLOCKING_POD_SELECTOR"


def test_settings_are_immutable() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings().period = 1.0  # type: ignore[misc]
