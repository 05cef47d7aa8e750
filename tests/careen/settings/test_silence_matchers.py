"""Tests the setting that lists the matchers of a silence. Each matcher is written as in Alertmanager. A list that
would also silence the alerts of other nodes is refused."""

from __future__ import annotations

import pytest

from careen.settings.lists.silence_matchers import DEFAULT, matchers


def test_each_default_silence_matcher_can_be_parsed_again_from_its_text() -> None:
    assert tuple(matchers(each.text) for each in DEFAULT) == DEFAULT


@pytest.mark.parametrize(
    ("text", "each"),
    [
        ('node="$NODE"', (("node", "=", "$NODE"),)),
        ("node=$NODE", (("node", "=", "$NODE"),)),
        ('{ node = "$NODE" , job!~"a,b" }', (("node", "=", "$NODE"), ("job", "!~", "a,b"))),
        ('instance=~"$NODE:\\\\d+"', (("instance", "=~", "$NODE:\\d+"),)),
        ('a="say \\"$NODE\\""', (("a", "=", 'say "$NODE"'),)),
    ],
)
def test_matchers_of_silences_are_written_as_in_alertmanager(text: str, each: tuple[tuple[str, str, str], ...]) -> None:
    assert matchers(text).each == each


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "node",
        'node="n1"',
        'node!="$NODE"',
        'node!~"$NODE"',
        'node=~"$NODE("',
        'instance=~"$NODE.*"',
        'node=~"$NODE|"',
        'node=~".*$NODE.*|.*"',
        'node="$NODE" job="x"',
        'node="$NODE",,',
        '{node="$NODE"',
        "no-de=$NODE",
        'node="$NODE',
    ],
)
def test_invalid_matchers_of_silences_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        matchers(text)


def test_a_regular_expression_matcher_escapes_the_nodes_name() -> None:
    (row,) = matchers('instance=~"$NODE:.*"').of_node("n1.example.com")
    assert row["value"] == "n1\\.example\\.com:.*"
