"""The plugins of each extension point, in order, with weights.

A plugin serves an extension point if it has the point's method. The order and the weights come from the merged
configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from scheduler_core.framework.extension_points import Plugin
from scheduler_core.values import Value

# Extension point in its configuration spelling → the method of a plugin that serves it.
METHOD_OF: Final[Mapping[str, str]] = {
    "preEnqueue": "pre_enqueue",
    "queueSort": "less",
    "preFilter": "pre_filter",
    "filter": "filter",
    "postFilter": "post_filter",
    "preScore": "pre_score",
    "score": "score",
    "reserve": "reserve",
    "permit": "permit",
    "preBind": "pre_bind",
    "bind": "bind",
    "postBind": "post_bind",
}

Factory = Callable[[Any, Any], Plugin]


class DuplicatePluginError(ValueError):
    """Two plugins have the same name, so a configuration could not distinguish them. Rename one of them."""


def serves(plugin: Plugin, point: str) -> bool:
    """Whether the plugin has the method of this extension point (`point` is written as in the configuration:
    `preFilter`)."""
    return callable(getattr(plugin, METHOD_OF[point], None))


def register(*lists: Mapping[str, Factory]) -> dict[str, Factory]:
    """Joins several maps of plugin names to factories. Raises DuplicatePluginError if a name occurs in two maps."""
    together: dict[str, Factory] = {}
    for factories in lists:
        twice = sorted(together.keys() & factories.keys())
        if twice:
            raise DuplicatePluginError(f"two plugins are named {twice[0]}")
        together.update(factories)
    return together


class PluginSet(Value):
    """The plugins of one profile. `by_point` maps an extension point to the names of its plugins, in the order in which
    they run. `weights` maps the name of a score plugin to its weight."""

    plugins: Mapping[str, Plugin]
    by_point: Mapping[str, tuple[str, ...]]
    weights: Mapping[str, int]

    def at(self, point: str) -> tuple[Any, ...]:
        """Returns the plugins of one extension point, in the order in which they run."""
        return tuple(self.plugins[name] for name in self.by_point.get(point, ()))
