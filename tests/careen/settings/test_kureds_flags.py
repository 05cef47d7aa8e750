"""Tests each of kured's 43 flags in every form that kured reads: as an argument and as an environment variable."""

from __future__ import annotations

import re
from datetime import UTC, time
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from careen.cli.agent import agent
from careen.cli.support.agent_options import given_flags
from careen.core.facts.selectors import Selector
from careen.settings.sources import BadSettings, Resolved, resolve
from careen.settings.tree import SETTINGS, flag

DURATIONS = [
    ("0", 0.0),
    ("0s", 0.0),
    ("90s", 90.0),
    ("1h30m", 5400.0),
    ("1.5h", 5400.0),
    ("+5m", 300.0),
    ("1m0.5s", 60.5),
]
SWITCHES = [
    (text, text in {"1", "t", "T", "TRUE", "true", "True"})
    for text in ["1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False"]
]
TEXTS = [('""', ""), ("''", ""), ("", "")]

KUREDS: dict[str, list[tuple[str, Any]]] = {
    "node-id": [("n1", "n1"), ('"n1"', "n1")],
    "period": [*DURATIONS[2:], ('"1h"', 3600.0)],
    "reboot-sentinel": [("/sentinel/reboot-required", ("/sentinel/reboot-required",)), ('"/x"', ("/x",))],
    "reboot-sentinel-command": [
        *TEXTS,
        ("/usr/bin/needs-restarting -r", "/usr/bin/needs-restarting -r"),
        ('sh -c "! needs-restarting -r"', 'sh -c "! needs-restarting -r"'),
    ],
    "reboot-method": [("command", "command"), ("signal", "signal"), ('"signal"', "signal")],
    "reboot-command": [("/bin/systemctl reboot", "/bin/systemctl reboot"), ('"/a b" "c d"', '"/a b" "c d"')],
    "reboot-signal": [("39", 39), ("+15", 15), ("0x27", 39)],
    "reboot-delay": DURATIONS,
    "concurrency": [("1", 1), ("2", 2), ('"3"', 3), ("0x2", 2)],
    "ds-namespace": [("kube-system", "kube-system"), ('"ops"', "ops")],
    "ds-name": [("kured", "kured")],
    "lock-annotation": [("weave.works/kured-node-lock", "weave.works/kured-node-lock")],
    "lock-ttl": DURATIONS,
    "lock-release-delay": DURATIONS,
    "prefer-no-schedule-taint": [*TEXTS, ("weave.works/kured-node-reboot", "weave.works/kured-node-reboot")],
    "drain-delay": DURATIONS,
    "drain-timeout": DURATIONS,
    "drain-grace-period": [("-1", -1), ("0", 0), ("30", 30), ('"0"', 0)],
    "drain-pod-selector": [
        *((text, None) for text, _ in TEXTS),
        ("app=db,tier!=x", Selector.parse("app=db,tier!=x")),
        ("app==db", Selector.parse("app==db")),
        ("app in (a,b),!skip", Selector.parse("app in (a,b),!skip")),
    ],
    "skip-wait-for-delete-timeout": [("0", 0), ("600", 600)],
    "force-reboot": [*SWITCHES, ('"true"', True)],
    "prometheus-url": [
        *TEXTS,
        ("http://prometheus.monitoring.svc.cluster.local", "http://prometheus.monitoring.svc.cluster.local"),
    ],
    "alert-filter-regexp": [(text, None) for text, _ in TEXTS]
    + [("^RebootRequired$", "^RebootRequired$"), ('"^A|B$"', "^A|B$")],
    "alert-filter-match-only": SWITCHES,
    "alert-firing-only": SWITCHES,
    "blocking-pod-selector": [
        *((text, ()) for text, _ in TEXTS),
        ("runtime=long,cost=expensive", (Selector.parse("runtime=long,cost=expensive"),)),
    ],
    "reboot-days": [
        ("sun,mon,tue,wed,thu,fri,sat", (6, 0, 1, 2, 3, 4, 5)),
        ("su,Monday,2,3", (6, 0, 1, 2)),
        ("mo,,tu,", (0, 1)),
        ('"mo,tu"', (0, 1)),
        *((text, ()) for text, _ in TEXTS),
    ],
    "start-time": [
        ("0:00", time(0)),
        ("22", time(22)),
        ("03:04pm", time(15, 4)),
        ("3pm", time(15)),
        ('"23:59:59"', time(23, 59, 59)),
    ],
    "end-time": [("23:59:59", time(23, 59, 59)), ("6:00", time(6))],
    "time-zone": [("UTC", UTC), ("", UTC), ('""', UTC), ("Europe/Berlin", ZoneInfo("Europe/Berlin"))],
    "annotate-nodes": SWITCHES,
    "pre-reboot-node-labels": [
        ("a=b,example.com/c=", (("a", "b"), ("example.com/c", ""))),
        ("a=b=c", (("a", "b"),)),
        ("", ()),
        ('""', ()),
    ],
    "post-reboot-node-labels": [("a=b", (("a", "b"),)), ("a=b==c,d=e", (("a", "b"), ("d", "e")))],
    "notify-url": [
        ('""', ()),
        ("", ()),
        ("slack://T00000000/B00000000/SECRETWORDSECRETWORDSECR", "slack"),
        ('"logger://"', "logger"),
    ],
    "slack-hook-url": [(text, None) for text, _ in TEXTS] + [("https://hooks.slack.com/services/T/B/C", "slack")],
    "slack-username": [("prod", "prod"), *TEXTS],
    "slack-channel": [("alerting", "alerting"), *TEXTS],
    "message-template-drain": [("Draining node %s", "Draining node %s"), ('"%s" drains', '"%s" drains')],
    "message-template-reboot": [("Rebooting node %s", "Rebooting node %s")],
    "message-template-uncordon": [
        ("Node %s rebooted & uncordoned successfully!", "Node %s rebooted & uncordoned successfully!")
    ],
    "metrics-host": [*TEXTS, ("0.0.0.0", "0.0.0.0"), ("[::1]", "[::1]")],
    "metrics-port": [("8080", 8080), ('"9090"', 9090)],
    "log-format": [("text", "text"), ("json", "json")],
}
FORMS = [
    pytest.param(name, text, value, id=f"{name}={text}") for name, forms in KUREDS.items() for text, value in forms
]
# Settings that another setting requires.
BESIDE = {"alert_filter_regexp": ("x",), "prometheus_url": ("http://p",)}


def test_the_table_of_this_file_has_each_flag_of_kured() -> None:
    assert set(KUREDS) == {flag(name) for name, setting in SETTINGS.items() if setting.is_kureds}
    assert len(KUREDS) == 43


def as_flags(*arguments: str) -> dict[str, tuple[str, ...]]:
    """Parse these command-line arguments with click, and return the settings."""
    return given_flags(agent.make_context("agent", list(arguments)).params)


def settled(flags: dict[str, tuple[str, ...]], environment: dict[str, str] | None = None) -> Resolved:
    given = {**({} if "KURED_NODE_ID" in (environment or {}) else {"node_id": ("n1",)}), **flags}
    beside = BESIDE if "alert_filter_match_only" in flags or any("ALERT" in key for key in environment or {}) else {}
    beside = beside or (
        {"prometheus_url": ("http://p",)} if "alert_filter_regexp" in flags or "alert_firing_only" in flags else {}
    )
    mine = {key for key in beside if f"KURED_{key.upper()}" in (environment or {})}
    return resolve(
        flags={**{key: value for key, value in beside.items() if key not in mine}, **given},
        environment=environment or {},
    )


def held(resolved: Resolved, name: str) -> Any:
    """Return the value of a setting. For a secret or a compiled expression, return a text that identifies the value."""
    value = getattr(resolved.settings, name.replace("-", "_"))
    if name == "alert-filter-regexp":
        return value.text if value else None
    if name == "notify-url":
        return value[0].service if value else ()
    if name == "slack-hook-url":
        return value.service if value else None
    return value


@pytest.mark.parametrize(("name", "text", "value"), FORMS)
def test_careen_reads_each_flag_of_kured_as_kured_does(name: str, text: str, value: Any) -> None:
    assert held(settled(as_flags(f"--{name}={text}")), name) == value
    if not SETTINGS[name.replace("-", "_")].kind.is_switch:
        assert held(settled(as_flags(f"--{name}", text)), name) == value


@pytest.mark.parametrize(("name", "text", "value"), FORMS)
def test_careen_reads_each_variable_of_kured_as_kured_does(name: str, text: str, value: Any) -> None:
    variable = f"KURED_{name.replace('-', '_').upper()}"
    assert held(settled({}, {variable: text}), name) == value


@pytest.mark.parametrize("name", [name for name in KUREDS if SETTINGS[name.replace("-", "_")].kind.is_switch])
def test_a_boolean_flag_without_a_value_means_true(name: str) -> None:
    assert held(settled(as_flags(f"--{name}", "--period=1h")), name) is True


def test_list_flags_of_kured_may_be_repeated() -> None:
    found = settled(as_flags("--blocking-pod-selector=a=b,c=d", "--blocking-pod-selector=name=temperamental"))
    assert [each.text for each in found.settings.blocking_pod_selector] == ["a=b,c=d", "name=temperamental"]
    assert settled(as_flags("--reboot-days=mo,tu", "--reboot-days=fr")).settings.reboot_days == (0, 1, 4)


def test_if_a_flag_is_repeated_its_last_value_is_used() -> None:
    assert settled(as_flags("--period=1h", "--period=2h")).settings.period == 7200.0


def test_a_label_with_two_equals_signs_is_truncated_and_reported() -> None:
    assert settled(as_flags("--pre-reboot-node-labels=a=b=c,d=e")).notes == (
        (
            "--pre-reboot-node-labels: careen ignores the second = of a=b=c and the text after it, as kured does: "
            "a label has only one ="
        ),
    )


@pytest.mark.parametrize("text", ["0", "+0", "00", '"0"'])
def test_a_concurrency_of_zero_is_reported_with_the_remedy(text: str) -> None:
    with pytest.raises(BadSettings) as caught:
        settled(as_flags(f"--concurrency={text}"))
    (problem,) = caught.value.problems
    assert problem.startswith(
        f"--concurrency={text!r}: expected a whole number of at least 1: with 0, no node would ever"
    )
    assert "Give 1; `careen lock pause` stops a roll-out" in problem


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("--drain-timeout=-5m", "expected a duration that is not negative"),
        ("--period=3600", "only the number 0 may have no unit"),
        ("--reboot-method=magic", "expected one of command, signal"),
        ("--pre-reboot-node-labels=key-", "expected a label as key=value"),
        ("--alert-filter-regexp=(?!x)", "invalid perl operator: (?!"),
        ("--concurrency=two", "expected a whole number from 1 to 2147483647"),
        ("--concurrency=-1", "expected a whole number from 1 to 2147483647"),
    ],
)
def test_the_refusal_of_an_invalid_flag_shows_its_name(argument: str, words: str) -> None:
    with pytest.raises(BadSettings, match=re.escape(words)):
        settled({**as_flags(argument), "prometheus_url": ("http://p",)})
