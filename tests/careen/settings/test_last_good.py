"""Tests the copy of the settings that an agent stores in an annotation of its Node while the node has a claim. The copy
contains no secret. An agent starts even if the annotation is invalid."""

from __future__ import annotations

import json
from typing import Any

import pytest

from careen.settings import last_good
from careen.settings.last_good import LastGood
from careen.settings.sources import BadSettings, resolve

FLAGS = {"node_id": ("n1",), "drain_timeout": ("5m",)}
SLACK = "slack://T00000000/B00000000/SECRETWORDSECRETWORDSECR"


def kept(config: dict[str, Any], environment: dict[str, str] | None = None) -> str:
    return last_good.to_annotation(
        resolve(flags=FLAGS, environment=environment or {}, config_map=config, config_map_name="c")
    )


def restored(text: str, flags: Any = FLAGS, **more: Any) -> LastGood:
    return last_good.restore(text, "why", flags=flags, environment=more.pop("environment", {}), name="c", **more)


def test_only_settings_from_the_config_map_are_stored_on_the_node() -> None:
    text = kept(
        {
            "reboot-days": ["mo", "tu"],
            "concurrency": 3,
            "drain-timeout": "1h",
            "budget": ["zone=1", "selector:app=db=1"],
        },
        {"CAREEN_PERIOD": "5m"},
    )
    assert json.loads(text) == {
        "version": 1,
        "settings": {"reboot-days": ["mo", "tu"], "concurrency": ["3"], "budget": ["zone=1", "selector:app=db=1"]},
    }


def test_current_flags_override_restored_settings() -> None:
    back = restored(
        kept(
            {
                "reboot-days": [],
                "concurrency": 3,
                "start-time": "22:00",
                "budget": ["zone=1"],
                "blocking-pod-selector": ["a=b,c=d"],
            }
        )
    )
    settings = back.resolved.settings
    assert back.is_whole
    assert (settings.reboot_days, settings.concurrency, settings.start_time.hour, settings.drain_timeout) == (
        (),
        3,
        22,
        300.0,
    )
    assert ([each.limit for each in settings.budget], [each.text for each in settings.blocking_pod_selector]) == (
        [1],
        ["a=b,c=d"],
    )
    assert (
        restored(kept({"concurrency": 3}), {"node_id": ("n1",), "concurrency": ("7",)}).resolved.settings.concurrency
        == 7
    )


def test_secrets_are_not_stored_on_the_node_and_missing_secrets_are_reported() -> None:
    text = kept(
        {
            "notify-url": [SLACK],
            "slack-hook-url": "https://hooks.slack.com/services/T00000000/B00000000/SECRETWORDSECRETWORDSECR",
        }
    )
    assert "SECRET" not in text
    assert restored(text).is_whole, "messages to people affect no decision"
    assert not last_good.says_nothing(text)
    text = kept({"prometheus-url": "http://me:SECRETWORD@prometheus:9090", "alert-firing-only": True})
    assert "SECRET" not in text
    back = restored(text)
    assert not back.is_whole
    assert back.resolved.settings.alert_firing_only


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "7",
        '"x"',
        "{",
        "{}",
        '{"version":2,"settings":{}}',
        '{"version":1}',
        '{"version":1,"settings":[]}',
        '{"version":1,"settings":{"a":"b"}}',
        '{"version":1,"settings":{"a":[1]}}',
        '{"version":1,"settings":{},"leftOut":7}',
        "[" * 100_000,
    ],
)
def test_an_invalid_annotation_restores_no_settings_and_raises_no_error(text: str) -> None:
    assert last_good.says_nothing(text)
    back = restored(text)
    assert not back.is_whole
    assert back.resolved.settings.concurrency == 1


@pytest.mark.parametrize(
    ("settings", "known"),
    [
        ({"concurrency": ["3"], "of-a-later-release": ["x"]}, 3),
        ({"concurrency": ["3"], "node-id": ["n2"]}, 3),
        ({"concurrency": ["none"]}, 1),
        ({"concurrency": ["1", "2"]}, 1),
        ({"concurrency": []}, 1),
    ],
)
def test_only_stored_settings_that_this_release_accepts_are_restored(
    settings: dict[str, list[str]], known: int
) -> None:
    back = restored(json.dumps({"version": 1, "settings": settings}))
    assert not back.is_whole
    assert (back.resolved.settings.concurrency, back.resolved.settings.node_id) == (known, "n1")


def test_restored_settings_that_conflict_with_a_flag_are_marked_as_incomplete() -> None:
    text = kept({"prometheus-url": "http://p:9090", "alert-firing-only": True})
    back = restored(text, {"node_id": ("n1",), "prometheus_url": ("",)})
    assert not back.is_whole
    assert back.resolved.settings.alert_firing_only


def test_if_no_setting_names_the_lock_annotation_the_name_recorded_with_the_claim_is_used() -> None:
    """`lock-annotation` is the setting that names the annotation with the lock. With each claim, the agent also records
    this name on the Node. `restore` uses the name from the flag --lock-annotation. Without the flag, `restore` uses the
    name from the copy of the settings on the Node. If that copy has no name, `restore` uses the name that was recorded
    with the claim. If the recorded name is invalid, `restore` uses the default."""
    assert restored("", lock_annotation="example.com/lock").resolved.settings.lock_annotation == "example.com/lock"
    assert (
        restored(
            kept({"lock-annotation": "a.b/c"}), lock_annotation="example.com/lock"
        ).resolved.settings.lock_annotation
        == "a.b/c"
    )
    assert (
        restored(
            "", {"node_id": ("n1",), "lock_annotation": ("f.g/h",)}, lock_annotation="x.y/z"
        ).resolved.settings.lock_annotation
        == "f.g/h"
    )
    assert (
        restored("", lock_annotation="no annotation!").resolved.settings.lock_annotation
        == "weave.works/kured-node-lock"
    )


def test_settings_too_long_for_an_annotation_are_not_stored_on_the_node() -> None:
    assert kept({"blocking-pod-selector": [f"app=a{number}" for number in range(5000)]}) == ""


def test_no_settings_are_restored_if_a_flag_is_invalid() -> None:
    with pytest.raises(BadSettings, match="period"):
        restored("", {"node_id": ("n1",), "period": ("often",)})
