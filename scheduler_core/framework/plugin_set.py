"""The plugins of each extension point, with order and weights from the merged configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any, Final

from scheduler_core.framework.extension_points import Plugin
from scheduler_core.values import Value

# Extension point, as configurations spell it → the method of a plugin that serves it.
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

_PARAMETERS: Final[Mapping[str, tuple[str, ...]]] = {
    "preEnqueue": ("pod",),
    "queueSort": ("one", "other"),
    "preFilter": ("state", "pod", "nodes"),
    "filter": ("state", "pod", "node_info"),
    "postFilter": ("state", "pod", "search"),
    "preScore": ("state", "pod", "nodes"),
    "score": ("state", "pod", "node_info"),
    **dict.fromkeys(("reserve", "permit", "preBind", "bind", "postBind"), ("state", "pod", "node_name")),
}

_METHODS: Final = (*METHOD_OF.values(), "filter_all", "score_all", "normalize", "unreserve", "add_pod", "remove_pod")
_SPELLINGS: Final = {"normalizescore": "normalize", **{name.replace("_", ""): name for name in _METHODS}}

Factory = Callable[[Any, Any], Plugin]


class DuplicatePluginError(ValueError):
    """Two plugins have the same name; rename one, or a configuration could not distinguish them."""


def serves(plugin: Plugin, point: str) -> bool:
    """Whether the plugin has the method of this extension point, spelled as in configurations: `preFilter`."""
    return callable(getattr(plugin, METHOD_OF[point], None))


def register(*lists: Mapping[str, Factory]) -> dict[str, Factory]:
    """Raises DuplicatePluginError if a name occurs in two maps, and TypeError for a factory that is none."""
    together: dict[str, Factory] = {}
    for factories in lists:
        twice = sorted(together.keys() & factories.keys())
        if twice:
            raise DuplicatePluginError(f"two plugins are named {twice[0]}")
        for name, factory in factories.items():
            if not isinstance(name, str) or not name:
                raise TypeError(f"plugins has the name {name!r}, expected a text: pass {{name: factory}}")
            if not callable(factory):
                raise TypeError(
                    f"plugins[{name!r}] is a {type(factory).__name__}, expected a factory: pass a function of the "
                    "plugin's arguments and the KubeVersion that returns it"
                )
        together.update(factories)
    return together


def build(name: str, factory: Factory, *given: object) -> Plugin:
    """Raises TypeError if the factory makes a plugin with another name."""
    try:
        plugin = factory(*given)
    except Exception as bug:
        bug.add_note(
            f"raised by the factory of plugin {name!r}, called with the plugin's arguments and the KubeVersion"
        )
        raise
    if getattr(plugin, "name", None) != name:
        raise TypeError(f"the factory of plugin {name!r} returned {plugin!r}: its `name` must be {name!r}")
    return plugin


def check_parameters(plugin: Plugin) -> None:
    """Raises TypeError if a method of the plugin does not take the arguments of its extension point, or has the name of
    an extension point in another spelling, such as preFilter: nobody would call it. So if it reserves and cannot
    release."""
    for name in dir(plugin):
        meant = _SPELLINGS.get(name.replace("_", "").lower())
        if meant is not None and name != meant and not name.startswith("_") and callable(getattr(plugin, name)):
            raise TypeError(f"plugin {plugin.name!r}: nothing calls its method {name}: rename it {meant}")
    for point, parameters in _PARAMETERS.items():
        method = METHOD_OF[point]
        if not serves(plugin, point):
            continue
        try:
            own = signature(getattr(plugin, method))
        except (TypeError, ValueError):  # written in C
            continue
        try:
            own.bind(*parameters)
        except TypeError:
            wanted = ", ".join(parameters)
            raise TypeError(f"plugin {plugin.name!r}: {method}{own} is called with ({wanted})") from None
    if serves(plugin, "reserve") and not hasattr(plugin, "unreserve"):
        raise TypeError(f"plugin {plugin.name!r}: it has reserve, and no unreserve, which releases what reserve took")


class PluginSet(Value):
    """The plugins of one profile. `by_point`: names in the order in which they run. `weights`: by score plugin."""

    plugins: Mapping[str, Plugin]
    by_point: Mapping[str, tuple[str, ...]]
    weights: Mapping[str, int]

    def at(self, point: str) -> tuple[Any, ...]:
        return tuple(map(self.plugins.__getitem__, self.by_point.get(point, ())))
