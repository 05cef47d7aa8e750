"""Tests how the plugins of a profile are merged: defaults, enabled, disabled and MultiPoint give one ordered list for
each extension point.

The plugins in these tests are invented. Each plugin's name lists its extension points, so that a row of the table
explains its result.
"""

from typing import Any

import pytest

from scheduler_core.config.fields import ConfigurationError
from scheduler_core.config.plugin_merge import (
    EnabledPlugin,
    PluginRules,
    PluginSelection,
    effective_plugins,
    merge_with_defaults,
)

SERVES = {
    "Order": {"queueSort"},
    "Bind": {"bind"},
    "A": {"filter", "score"},
    "B": {"filter", "score"},
    "C": {"filter"},
    "Own": {"filter", "score"},
    "OtherOrder": {"queueSort"},
}
DEFAULTS = (
    EnabledPlugin(name="Order"),
    EnabledPlugin(name="A", weight=3),
    EnabledPlugin(name="B"),
    EnabledPlugin(name="C"),
    EnabledPlugin(name="Bind"),
)


def selection(*enabled: str, disabled: tuple[str, ...] = (), weight: int = 0) -> PluginSelection:
    return PluginSelection(
        enabled=tuple(EnabledPlugin(name=name, weight=weight) for name in enabled), disabled=disabled
    )


def rules(**selections: PluginSelection) -> PluginRules:
    return PluginRules(selections=selections)


def effective(**selections: PluginSelection) -> Any:
    return effective_plugins(
        rules(**selections),
        DEFAULTS,
        lambda plugin, point: point in SERVES.get(plugin, ()),
        where="profiles[0].plugins",
    )


@pytest.mark.parametrize(
    ("own", "filters", "scorers", "weights"),
    [
        pytest.param({}, "ABC", "AB", {"A": 3, "B": 1}, id="an empty configuration gives the defaults"),
        pytest.param(
            {"multiPoint": selection("Own")},
            ("A", "B", "C", "Own"),
            ("A", "B", "Own"),
            {"A": 3, "B": 1, "Own": 1},
            id="a new plugin comes last at every extension point",
        ),
        pytest.param(
            {"multiPoint": selection("B", weight=9)},
            "ABC",
            "AB",
            {"A": 3, "B": 9},
            id="a default plugin that is enabled again keeps its place and gets the new weight",
        ),
        pytest.param(
            {"multiPoint": selection(disabled=("A",))},
            "BC",
            "B",
            {"B": 1},
            id="a plugin disabled in MultiPoint is removed from every extension point",
        ),
        pytest.param(
            {"multiPoint": selection("A", disabled=("A",))},
            "BCA",
            "BA",
            {"A": 1, "B": 1},
            id="a plugin both disabled and enabled in MultiPoint moves to the end",
        ),
        pytest.param(
            {"score": selection(disabled=("A",))},
            "ABC",
            "B",
            {"B": 1},
            id="a plugin disabled at one extension point is removed only there",
        ),
        pytest.param(
            {"score": selection(disabled=("*",))},
            "ABC",
            "",
            {},
            id="disabling * at an extension point removes all default plugins there",
        ),
        pytest.param(
            {"score": selection("B", disabled=("*",))},
            "ABC",
            "B",
            {"B": 1},
            id="with * disabled, an extension point has only its enabled plugins",
        ),
        pytest.param(
            {"filter": selection("C")},
            "CAB",
            "AB",
            {"A": 3, "B": 1},
            id="a default plugin that is enabled at an extension point comes first there",
        ),
        pytest.param(
            {"filter": selection("Own", "C")},
            ("C", "A", "B", "Own"),
            "AB",
            {"A": 3, "B": 1},
            id="an out-of-tree plugin enabled at an extension point comes after the plugins of MultiPoint",
        ),
        pytest.param(
            {"score": selection("B", weight=7)},
            "ABC",
            "BA",
            {"A": 3, "B": 7},
            id="a weight set at an extension point overrides the weight in MultiPoint",
        ),
        pytest.param(
            {"score": selection("A")},
            "ABC",
            "AB",
            {"A": 1, "B": 1},
            id="a plugin enabled at an extension point without a weight gets weight 1",
        ),
    ],
)
def test_default_plugins_have_the_order_and_weights_of_kube_scheduler(
    own: dict[str, PluginSelection], filters: str, scorers: str, weights: dict[str, int]
) -> None:
    plugins = effective(**own)
    assert (plugins.by_point["filter"], plugins.by_point["score"], plugins.weights) == (
        tuple(filters),
        tuple(scorers),
        weights,
    )


def test_disabling_star_in_multipoint_keeps_only_enabled_plugins() -> None:
    plugins = effective(multiPoint=selection("Order", "C", "Bind", disabled=("*",)))
    assert plugins.names == ("Order", "C", "Bind")


def test_merging_keeps_a_plugin_that_is_enabled_twice() -> None:
    assert [plugin.name for plugin in merge_with_defaults(DEFAULTS, selection("B", "B"))] == [
        "Order",
        "A",
        "B",
        "C",
        "Bind",
        "B",
    ]


def test_a_plugin_is_built_if_any_extension_point_uses_it() -> None:
    own = rules(multiPoint=selection(disabled=("A", "C")), score=selection("Own", disabled=("B",)))
    assert own.needed(DEFAULTS) == ("Order", "B", "Bind", "Own")


@pytest.mark.parametrize(
    ("own", "problem"),
    [
        (
            {"queueSort": selection("OtherOrder")},
            "profiles[0].plugins.queueSort: exactly one plugin must sort the queue, found 2",
        ),
        (
            {"queueSort": selection(disabled=("*",))},
            "profiles[0].plugins.queueSort: exactly one plugin must sort the queue, found 0",
        ),
        ({"bind": selection(disabled=("*",))}, "profiles[0].plugins.bind: at least one bind plugin must be enabled"),
        ({"score": selection("A", "C")}, "profiles[0].plugins.score.enabled[1]: plugin C does not implement score"),
        ({"filter": selection("C", "A", "C")}, "profiles[0].plugins.filter.enabled[2]: plugin C is enabled twice"),
        (
            {"multiPoint": selection("Own", "Own")},
            "profiles[0].plugins.multiPoint.enabled: plugin Own is enabled twice",
        ),
        ({"score": selection("A", "B", weight=2**31 - 1)}, None),
        (
            {"score": selection("A", weight=2**60)},
            "profiles[0].plugins.score: the weights are so large that a total could overflow",
        ),
    ],
)
def test_an_invalid_plugin_set_is_refused_with_its_path(own: dict[str, PluginSelection], problem: str | None) -> None:
    if problem is None:
        assert effective(**own).by_point["score"] == ("A", "B")
        return
    with pytest.raises(ConfigurationError) as refusal:
        effective(**own)
    assert refusal.value.problems == (problem,)


def test_an_unknown_plugin_in_multipoint_is_refused() -> None:
    with pytest.raises(
        ConfigurationError,
        match=r"profiles\[0\]\.plugins\.multiPoint\.enabled\[1\]: plugin Misspelt is unknown or has no extension point",
    ):
        effective(multiPoint=selection("Own", "Misspelt"))


def test_a_negative_weight_is_refused_only_if_it_makes_the_running_sum_negative() -> None:
    assert effective(multiPoint=selection("B", weight=-1)).weights == {"A": 3, "B": -1}
    with pytest.raises(ConfigurationError, match="could overflow"):
        effective(multiPoint=selection("A", weight=-1))
