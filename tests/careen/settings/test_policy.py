"""Tests how settings become the policy that decisions use."""

from __future__ import annotations

from dataclasses import fields

import pytest

from careen.core.facts.policy import AlertPolicy, Policy
from careen.settings.policy import policy_of
from careen.settings.sources import resolve
from careen.settings.tree import Settings


def policy(**flags: str) -> Policy:
    written = {name: (value,) for name, value in flags.items()}
    return policy_of(resolve(flags={"node_id": ("n1",), **written}, environment={}).settings)


def test_the_settings_and_the_policy_have_the_same_defaults() -> None:
    """If the defaults differed, a person who reads the code of the policy would see wrong defaults."""
    ours = policy_of(Settings(node_id="n1"))
    default = Policy(node_name="n1")
    assert {each.name: getattr(ours, each.name) for each in fields(Policy)} == {
        each.name: getattr(default, each.name) for each in fields(Policy)
    }


@pytest.mark.parametrize(
    ("flags", "path", "value"),
    [
        ({"concurrency": "3"}, "concurrency", 3),
        ({"prefer_no_schedule_taint": ""}, "taint_key", None),
        ({"prefer_no_schedule_taint": "a/b"}, "taint_key", "a/b"),
        ({"annotate_nodes": "true"}, "annotate_nodes", True),
        ({"reboot_days": "sa,su"}, "window.days", frozenset({5, 6})),
        ({"drain_grace_period": "-1"}, "drain.grace_seconds", None),
        ({"drain_grace_period": "0"}, "drain.grace_seconds", 0),
        ({"drain_timeout": "5m"}, "drain.timeout_seconds", 300.0),
        ({"drain_delay": "5s"}, "drain.delay_seconds", 5.0),
        ({"drain_parallel": "3"}, "drain.parallel", 3),
        ({"skip_wait_for_delete_timeout": "9"}, "drain.skip_wait_for_delete_seconds", 9.0),
        ({"force_reboot": "true"}, "drain.force_reboot", True),
        ({"force_reboot": "true", "force_reboot_past_budgets": "true"}, "drain.force_past_budgets", True),
        ({"reboot_delay": "1m"}, "reboot_delay_seconds", 60.0),
        ({"reboot_deadline": "1m"}, "reboot_deadline_seconds", 60.0),
        ({"verify_timeout": "1m"}, "verify_timeout_seconds", 60.0),
        ({"settle_timeout": "1m"}, "settle_timeout_seconds", 60.0),
        ({"settle_policy": "continue"}, "settle_policy", "continue"),
        ({"late_policy": "reboot"}, "late_policy", "reboot"),
        ({"forecast": "off"}, "forecast", "off"),
        ({"forecast_pending_allowed": "2"}, "forecast_pending_allowed", 2),
        ({"forecast_unknown_allowed": "2"}, "forecast_unknown_allowed", 2),
        ({"reboot_loop_limit": "0"}, "reboot_loop_limit", 0),
        ({"minimum_interval": "1h"}, "minimum_interval_seconds", 3600.0),
        ({"lock_release_delay": "1m"}, "lock_release_delay_seconds", 60.0),
        ({"pre_reboot_node_labels": "a=b"}, "pre_reboot_labels", {"a": "b"}),
        ({"post_reboot_node_labels": "a=b,c=d"}, "post_reboot_labels", {"a": "b", "c": "d"}),
        ({"failure_backoff": "2m"}, "failure_backoff_seconds", 120.0),
        ({"unknown_patience": "2m"}, "unknown_patience_seconds", 120.0),
        ({"ds_namespace": "x"}, "daemonset_namespace", "x"),
        ({"prometheus_url": "http://p"}, "alerts", AlertPolicy()),
        ({"prometheus_url": "http://p", "alert_firing_only": "true"}, "alerts.firing_only", True),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else None,
)
def test_each_setting_sets_the_corresponding_field_of_the_policy(
    flags: dict[str, str], path: str, value: object
) -> None:
    found: object = policy(**flags)
    for name in path.split("."):
        found = getattr(found, name)
    assert found == value


def test_without_a_prometheus_no_alerts_are_read() -> None:
    assert policy().alerts is None
