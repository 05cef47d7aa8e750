"""Loads scheduler plugins in Python by what a person names on the command line."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any, Final, cast

from scheduler_core.framework.plugin_set import Factory
from scheduler_core.running.waiting.permits import WaitingPods

ENTRY_POINTS: Final = "careen.scheduler_plugins"
"""The group in which a package names its plugins: NAME = "MODULE:FACTORY"."""


class PluginError(ValueError):
    """A plugin that a person named cannot be loaded; a sentence says which, and why."""


def plugins_of(given: Iterable[str]) -> Mapping[str, Factory]:
    """The factories by name, from texts such as `QuietNodes=quiet.py:quiet_nodes`. Raises PluginError for one that
    cannot be loaded."""
    found: dict[str, Factory] = {}
    for text in given:
        name, _, place = text.partition("=")
        where, _, factory = place.rpartition(":")
        if not (name and where and factory):
            raise PluginError(f"--plugin {text}: write NAME=FILE.py:FACTORY or NAME=MODULE:FACTORY")
        if name in found:
            raise PluginError(f"--plugin {text}: another --plugin already has the name {name}")
        made = getattr(_module(where, text), factory, None)
        if not callable(made):
            raise PluginError(f"--plugin {text}: {where} has no function {factory}")
        found[name] = cast("Factory", made)
    return found


def installed_plugins() -> Mapping[str, Factory]:
    """The factories of installed packages, by the names of their entry points. A factory is loaded when a profile
    enables it; then it raises PluginError if it cannot be loaded."""
    return {each.name: _installed(each) for each in entry_points(group=ENTRY_POINTS)}


def usable(name: str, factory: Factory, permits: WaitingPods) -> Factory:
    """The factory, with the pods that wait for Permit plugins if it takes a parameter `permits`. Raises PluginError
    for whatever it raises."""

    def make(args: Any, kube_version: Any) -> Any:
        try:
            if "permits" in signature(factory).parameters:
                return factory(args, kube_version, permits=permits)  # type: ignore[call-arg]
            return factory(args, kube_version)
        except PluginError:
            raise
        except (Exception, SystemExit) as error:
            raise PluginError(f"the plugin {name} cannot be made: its factory raised {_said(error)}") from error

    return make


def _installed(entry: EntryPoint) -> Factory:
    def make(args: Any, kube_version: Any) -> Any:
        try:
            factory = entry.load()
        except (Exception, SystemExit) as error:  # whatever the package's own code raises
            why = _said(error)
            raise PluginError(f"the installed plugin {entry.name} ({entry.value}) cannot be loaded: {why}") from error
        return factory(args, kube_version)

    return make


def _module(where: str, text: str) -> ModuleType:
    is_file = where.endswith(".py")
    if is_file and not Path(where).is_file():
        raise PluginError(f"--plugin {text}: there is no file {where}")
    try:
        return _of_file(Path(where)) if is_file else importlib.import_module(where)
    except (Exception, SystemExit) as error:  # whatever the file's own code raises
        raise PluginError(f"--plugin {text}: {where} cannot be loaded: {_said(error)}") from error


def _of_file(path: Path) -> ModuleType:
    specification = importlib.util.spec_from_file_location(f"careen_plugin_{path.stem}", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module  # dataclasses look up the module of their annotations
    specification.loader.exec_module(module)
    return module


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
