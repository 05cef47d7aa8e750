"""Tests that careen reads label selectors as Kubernetes does."""

from __future__ import annotations

import pytest

from careen.core.facts.selectors import Selector, SelectorError

LABELS = {"app": "db", "tier": "back", "size": "12", "careen.dev/x": ""}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("app=db", True),
        ("app==db", True),
        ("app = db", True),
        ("app=web", False),
        ("app!=web", True),
        ("app!=db", False),
        ("other!=x", True),
        ("app", True),
        ("other", False),
        ("!other", True),
        ("! other", True),
        ("!app", False),
        ("app in (db, web)", True),
        ("app in (web)", False),
        ("app notin (web)", True),
        ("other notin (a)", True),
        ("app notin (db,web)", False),
        ("app=db,tier=back", True),
        ("app=db,tier=front", False),
        ("app in (db),!other , tier", True),
        ("size>10", True),
        ("size < 10", False),
        ("app>10", False),
        ("other>1", False),
        ("careen.dev/x=", True),
        ("careen.dev/x", True),
        ("app=", False),
    ],
)
def test_a_selector_matches_as_in_kubernetes(text: str, expected: bool) -> None:
    assert Selector.parse(text).matches(LABELS) is expected


@pytest.mark.parametrize(
    "text",
    [
        "app=db,",
        ",app",
        "app in db",
        "app in (db",
        "app=a b",
        "a&b",
        "=x",
        "size>big",
        "app in (a b)",
        "!!app",
        "app=-x",
        "a/b/c=x",
        "A.com/x",
        "!a..b/c",
        f"{'a' * 64}",
        f"app={'b' * 64}",
        f"app in (a, {'b' * 64})",
    ],
)
def test_an_invalid_label_selector_is_refused(text: str) -> None:
    with pytest.raises(SelectorError, match="is not a label selector"):
        Selector.parse(text)
