"""Templates of messages. kured's placeholder `%s` still works. Each known field in braces, such as `{node}`, is
replaced once, and other text in braces is kept."""

from __future__ import annotations

import pytest

from careen.core.people.templates import fields_of, filled, spoken

VALUES = {"node": "n1", "cluster": "prod", "reason": "a new kernel", "duration": "3 min", "forecast": "no forecast"}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("Draining node %s", "Draining node n1"),
        ("%%s is %s", "%s is n1"),
        ("{cluster}/{node}: {reason} ({duration}; {forecast})", "prod/n1: a new kernel (3 min; no forecast)"),
        ("{{node}} {node}", "{node} n1"),
        ('{"text": "%s"}', '{"text": "n1"}'),
        ("{ node } {} {1} {unheard}", "{ node } {} {1} {unheard}"),
        ("", ""),
    ],
)
def test_a_message_template_is_filled_from_left_to_right(template: str, text: str) -> None:
    assert filled(template, VALUES) == text


def test_braces_in_an_inserted_value_are_kept() -> None:
    assert filled("%s {reason}", {"node": "{reason}%s", "reason": "%s{node}{{node}}"}) == "{reason}%s %s{node}{{node}}"


def test_only_names_in_single_braces_are_fields_of_a_template() -> None:
    assert fields_of('{node} {{cluster}} {reason} {node} {"a": 1} {x-y}') == ("node", "reason", "x-y")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (3599, "1 h"),
        (12000, "3 h 20 min"),
        (7200, "2 h"),
        (86400, "1 d"),
        (187200, "2 d 4 h"),
    ],
)
def test_a_message_template_shows_durations_in_rounded_units(seconds: float, text: str) -> None:
    assert spoken(seconds) == text
