"""Tests the setting that lists pods which block reboots: accepted values, and errors with line and field."""

from __future__ import annotations

import pytest

from careen.core.facts.policy import BlockingPods, BlockingScope
from careen.settings import live
from careen.settings.policy import policy_of
from careen.settings.sources import BadSettings, resolve


def entries(text: str) -> tuple[BlockingPods, ...]:
    resolved = resolve(
        flags={"node_id": ["n1"]},
        environment={},
        config_map=live.parse(text, "careen"),
        config_map_name="careen",
    )
    return policy_of(resolved.settings).blocking_pods


def test_the_policy_contains_each_entry_of_the_setting_blocking_pods_unchanged() -> None:
    first, second, third = entries(
        """
blocking-pods:
  - {name: backup, pods: "app=backup,tier in (a, b)", namespaces: [shop, ops, shop], scope: cluster, longest: 2h}
  - {name: db, pods: app=db, namespaces: shop, scope: group, group: example.com/pool}
  - name: own
    pods: "!movable"
"""
    )
    assert (first.scope, first.namespaces, first.longest_seconds) == (BlockingScope.CLUSTER, ("ops", "shop"), 7200)
    assert first.matches("shop", {"app": "backup", "tier": "b"})
    assert not first.matches("shop", {"app": "backup"})
    assert not first.matches("web", {"app": "backup", "tier": "b"})
    assert (second.scope, second.group, second.namespaces) == (BlockingScope.GROUP, "example.com/pool", ("shop",))
    assert (third.scope, third.group, third.longest_seconds, third.namespaces) == (BlockingScope.NODE, "", 0, ())


def test_an_entry_may_select_pods_by_annotations_or_those_that_would_be_lost() -> None:
    both, quiet, lost = entries(
        """
blocking-pods:
  - {name: both, pods: app=db, annotations: ["a/b=c", "d="]}
  - {name: quiet, annotations: a/b=c}
  - {name: lost, lost: true, longest: 1h, namespaces: [shop]}
"""
    )
    assert (both.annotations, both.what) == ((("a/b", "c"), ("d", "")), "app=db with a/b=c or d=")
    assert both.matches("shop", {"app": "db"}, {"d": ""})
    assert not both.matches("shop", {"app": "db"}, {"d": "x"})
    assert not both.matches("shop", {}, {"a/b": "c"})
    assert quiet.matches("shop", {}, {"a/b": "c"})
    assert not quiet.matches("shop", {"a/b": "c"})
    assert (lost.is_lost, lost.longest_seconds, quiet.is_lost) == (True, 3600, False)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("{pods: app=db}", "`blocking-pods[0].name`: the field is missing"),
        ("{name: a}", "`blocking-pods[0].pods`: the entry selects no pods"),
        ("{name: a, lost: true, pods: a}", "`blocking-pods[0].lost`: `lost` selects the pods by itself"),
        ("{name: a, lost: true, scope: cluster}", "`blocking-pods[0].lost`: `lost` selects the pods by itself"),
        ("{name: a, annotations: [x]}", "`blocking-pods[0].annotations`: 'x': expected KEY=VALUE"),
        ("{name: a, pods: ''}", "`blocking-pods[0].pods`: expected one value"),
        ("{name: a, pods: 'app='}\n- {name: a, pods: app=db}", "has two entries named a"),
        ("{name: a, pods: '=db'}", "`blocking-pods[0].pods`: '=db'"),
        ("{name: a, pods: app=db, scope: zone}", "expected one of node, group, cluster"),
        (
            "{name: a, pods: app=db, scope: group}",
            "`blocking-pods[0].group`: the field `group` and `scope: group` belong together",
        ),
        (
            "{name: a, pods: app=db, group: pool}",
            "`blocking-pods[0].group`: the field `group` and `scope: group` belong together",
        ),
        ("{name: a, pods: app=db, scope: group, group: 'a b'}", "`blocking-pods[0].group`: 'a b'"),
        ("{name: a, pods: app=db, namespaces: [Shop]}", "expected the name of a namespace"),
        ("{name: a, pods: app=db, namespaces: []}", "expected a list with at least one value"),
        (f"{{name: a, pods: app=db, namespaces: {['x'] * 51}}}", "has more than 50 entries"),
        ("{name: a, pods: app=db, longest: 0}", "`blocking-pods[0].longest`: '0'"),
        ("{name: a, pods: app=db, longest: 3}", "`blocking-pods[0].longest`: '3'"),
        ("{name: a, pods: app=db, selector: x}", "`blocking-pods[0].selector`: the field is unknown"),
    ],
)
def test_an_invalid_entry_of_the_setting_blocking_pods_is_reported_with_line_and_field(
    entry: str, problem: str
) -> None:
    with pytest.raises(BadSettings) as refused:
        entries(f"blocking-pods:\n- {entry}\n")
    assert problem in refused.value.problems[0]
