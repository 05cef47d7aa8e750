"""Merges the default plugins with a profile's enabled, disabled and MultiPoint plugins into one ordered list per
extension point.

The rules are those of kube-scheduler v1.36: pkg/scheduler/apis/config/v1/default_plugins.go (merging with the defaults)
and pkg/scheduler/framework/runtime/framework.go (expanding MultiPoint).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Final

from msgspec import field

from scheduler_core.config.fields import ConfigurationError
from scheduler_core.values import Value

EXTENSION_POINTS = (
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
)
"""The names of the extension points, as a configuration spells them, in the order in which they run."""

MULTI_POINT = "multiPoint"
EVERY_PLUGIN = "*"
_ALIKE: Final = 0.85  # NodeResourceFit and NodeResourcesFit

_HIGHEST_SCORE = 100
_HIGHEST_TOTAL = 2**63 - 1


class EnabledPlugin(Value, kw_only=True):
    """Weight 0: the configuration sets none; scoring then uses 1."""

    name: str
    weight: int = 0


class PluginSelection(Value, kw_only=True):
    """What is enabled and disabled at one extension point. `*` in `disabled` stands for every default plugin."""

    enabled: tuple[EnabledPlugin, ...] = ()
    disabled: tuple[str, ...] = ()


def refuse_misspelt_names(rules: PluginRules, configured: Iterable[str], known: Iterable[str], *, where: str) -> None:
    """Raises ConfigurationError if a name that is disabled or has arguments is nearly that of a plugin: it would change
    nothing without a word. Other names without a plugin are ignored, as kube-scheduler ignores all of them."""
    names = {EVERY_PLUGIN, *known}
    written = [
        (f"{where}.plugins.{point}.disabled[{index}]", name)
        for point, selection in rules.selections.items()
        for index, name in enumerate(selection.disabled)
    ]
    written += [(f"{where}.pluginConfig", name) for name in configured]
    if problems := [
        f"{path}: no plugin has the name {name!r}; did you mean {close[0]}?"
        for path, name in written
        if name not in names and (close := get_close_matches(name, names, n=1, cutoff=_ALIKE))
    ]:
        raise ConfigurationError(problems)


class EffectivePlugins(Value, kw_only=True):
    """A profile's plugins after the merge. `by_point`: names in the order in which they run. `weights`: of each score
    plugin, at least 1."""

    by_point: Mapping[str, tuple[str, ...]]
    weights: Mapping[str, int]

    @property
    def names(self) -> tuple[str, ...]:
        """Every plugin in any extension point, once each, in the order of first appearance."""
        return tuple(dict.fromkeys(name for point in EXTENSION_POINTS for name in self.by_point[point]))


class PluginRules(Value, kw_only=True):
    """A profile's plugin lists as its author wrote them: one for each extension point, and `multiPoint`."""

    selections: Mapping[str, PluginSelection] = field(default_factory=dict)

    def at(self, point: str) -> PluginSelection:
        return self.selections.get(point, PluginSelection())

    def needed(self, defaults: Iterable[EnabledPlugin]) -> tuple[str, ...]:
        """All plugins that the profile may use, once each, default plugins first."""
        merged = merge_with_defaults(tuple(defaults), self.at(MULTI_POINT))
        everywhere = [*merged, *(plugin for point in EXTENSION_POINTS for plugin in self.at(point).enabled)]
        return tuple(dict.fromkeys(plugin.name for plugin in everywhere))


def merge_with_defaults(defaults: tuple[EnabledPlugin, ...], own: PluginSelection) -> tuple[EnabledPlugin, ...]:
    """The default plugins that the profile does not disable, then its other enabled plugins. A default plugin that the
    profile also enables keeps its place, with the profile's weight."""
    redefined = {plugin.name: plugin for plugin in own.enabled}
    kept = (
        () if EVERY_PLUGIN in own.disabled else tuple(plugin for plugin in defaults if plugin.name not in own.disabled)
    )
    replaced = {plugin.name for plugin in kept} & set(redefined)
    # Without only the mention that replaces a default plugin: one that the profile enables twice stays twice, and
    # `_expand` refuses it.
    extra = [plugin for plugin in own.enabled if plugin.name not in replaced or plugin is not redefined[plugin.name]]
    return (*(redefined.get(plugin.name, plugin) for plugin in kept), *extra)


_UNKNOWN: Final = "is unknown or has no extension point"


def effective_plugins(
    rules: PluginRules, defaults: Iterable[EnabledPlugin], serves: Callable[[str, str], bool], *, where: str = "plugins"
) -> EffectivePlugins:
    """`serves(plugin, point)`: whether the plugin has the method of this extension point.

    Raises ConfigurationError if an enabled plugin does not exist, does not implement the extension point, or is enabled
    twice, if there is no Bind plugin or not exactly one QueueSort plugin, or if the sum of the weighted scores could
    overflow. The message begins with `where`, the path of the profile's plugins.
    """
    multi_point = merge_with_defaults(tuple(defaults), rules.at(MULTI_POINT))
    for index, plugin in enumerate(rules.at(MULTI_POINT).enabled):
        if not any(serves(plugin.name, point) for point in EXTENSION_POINTS):
            raise ConfigurationError([f"{where}.{MULTI_POINT}.enabled[{index}]: plugin {plugin.name} {_UNKNOWN}"])
    by_point = {point: _expand(point, rules.at(point), multi_point, serves, where) for point in EXTENSION_POINTS}
    if len(by_point["queueSort"]) != 1:
        raise ConfigurationError(
            [f"{where}.queueSort: exactly one plugin must sort the queue, found {len(by_point['queueSort'])}"]
        )
    if not by_point["bind"]:
        raise ConfigurationError([f"{where}.bind: at least one bind plugin must be enabled"])
    mentions = tuple(plugin for plugin in (*rules.at("score").enabled, *multi_point) if serves(plugin.name, "score"))
    return EffectivePlugins(by_point=by_point, weights=_weights(by_point["score"], mentions, where))


def _expand(
    point: str,
    own: PluginSelection,
    multi_point: tuple[EnabledPlugin, ...],
    serves: Callable[[str, str], bool],
    where: str,
) -> tuple[str, ...]:
    specific = tuple(plugin.name for plugin in own.enabled)
    for index, name in enumerate(specific):
        if not serves(name, point):
            is_known = any(serves(name, each) for each in EXTENSION_POINTS)
            problem = f"does not implement {point}" if is_known else _UNKNOWN
            raise ConfigurationError([f"{where}.{point}.enabled[{index}]: plugin {name} {problem}"])
        if name in specific[:index]:
            raise ConfigurationError([f"{where}.{point}.enabled[{index}]: plugin {name} is enabled twice"])
    if EVERY_PLUGIN in own.disabled:
        return specific
    general = [plugin.name for plugin in multi_point if serves(plugin.name, point) and plugin.name not in own.disabled]
    overridden = [name for name in specific if name in general]
    unmentioned = [name for name in general if name not in specific]
    for name in unmentioned:
        if unmentioned.count(name) > 1:
            raise ConfigurationError([f"{where}.{MULTI_POINT}.enabled: plugin {name} is enabled twice"])
    return (*overridden, *unmentioned, *(name for name in specific if name not in general))


def _weights(scorers: tuple[str, ...], mentions: tuple[EnabledPlugin, ...], where: str) -> Mapping[str, int]:
    # The first mention wins: a weight at the point itself comes before one from MultiPoint.
    given: dict[str, int] = {}
    for plugin in mentions:
        given.setdefault(plugin.name, plugin.weight)
    total = 0
    for weight in given.values():
        # A total below zero counts as an overflow too, because the real check itself overflows.
        if total < 0 or (weight or 1) * _HIGHEST_SCORE > _HIGHEST_TOTAL - total:
            negative = [f"the weight of {each} is {given[each]}" for each in given if given[each] < 0]
            why = f"{negative[0]}, so" if negative else "the weights are so large"
            raise ConfigurationError([f"{where}.score: {why} that a total could overflow"])
        total += (weight or 1) * _HIGHEST_SCORE
    return {name: given[name] or 1 for name in scorers}
