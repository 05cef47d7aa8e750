"""Loads libraries without their largest unused parts. These need private memory on each node whose agent is awake: the
Kubernetes client's models, pydantic and websockets 14 MiB, the OAuth flows of old kubeconfigs 4 MiB, aiohttp's web
server 3 MiB. Smaller parts are not worth a trick: an agent with nothing to do sleeps (decision 24).

Agent, forecast child and commands call these functions before they import `cluster/wire/client.py` or kopf. A command
whose kubeconfig may need the OAuth flows loads the whole client.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import NoReturn

_PACKAGES = ("kubernetes", "kubernetes.client", "kubernetes.config", "kubernetes.utils")
_LOADED = ("kubernetes.client.rest", "kubernetes.config.config_exception", "kubernetes.config.incluster_config")
# kube_config.py imports them for the OAuth flows of old kubeconfigs.
_OAUTH = ("oauthlib", "oauthlib.oauth2", "requests_oauthlib")


@contextmanager
def without_collections() -> Iterator[None]:
    """No cyclic garbage collection, in all threads, while this context is open, and later none of what exists at its
    end: imports create no garbage. Without collections an agent starts in a fifth less processor time."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def load_lean_client() -> None:
    """Imports the parts of `kubernetes` that `cluster/wire/client.py` uses, unless the whole client is loaded.

    The packages stay in `sys.modules` without what their `__init__` would have imported: a later `from
    kubernetes.client import CoreV1Api` in this process raises ImportError.
    """
    if "kubernetes" in sys.modules:
        return
    with without_collections(), _standing_in(*_OAUTH):
        _load_bare_packages()
        import_module("kubernetes.config.kube_config")


def load_lean_kopf() -> ModuleType:
    """Imports kopf without aiohttp's web server, which only kopf's probes and webhooks use, and returns aiohttp. Call
    `load_lean_client` first, because kopf imports the whole client."""
    with without_collections():
        aiohttp = import_module("aiohttp")
        # An import statement binds a module to its parent only when it loads it.
        with _standing_in("aiohttp.web"), _bound_to(aiohttp, "web", sys.modules["aiohttp.web"]):
            import_module("kopf")
    return aiohttp


def _load_bare_packages() -> None:
    spec = find_spec("kubernetes")
    if spec is None or spec.origin is None:
        raise ImportError("the package kubernetes is not installed")
    root = str(Path(spec.origin).parent)
    for name in _PACKAGES:
        sys.modules[name] = _bare(name, root + name.removeprefix("kubernetes").replace(".", "/"))
    client = sys.modules["kubernetes.client"]
    client.Configuration = import_module("kubernetes.client.configuration").Configuration  # type: ignore[attr-defined]
    client.ApiClient = _left_out("ApiClient")  # type: ignore[attr-defined]
    for name in _LOADED:
        import_module(name)


def _bare(name: str, path: str) -> ModuleType:
    package = ModuleType(name)
    package.__path__ = [path]
    return package


class _StandIn(ModuleType):
    """An empty substitute for a module. Any name can be imported from it, but not used."""

    def __getattr__(self, name: str) -> type[object]:
        if name.startswith("__"):
            raise AttributeError(name)
        return _left_out(name)


def _left_out(name: str) -> type[object]:
    return type(name, (), {"__init__": _refuse})


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    raise NotImplementedError(
        f"{type(self).__name__} is left out of the agent to save memory; give the agent a kubeconfig with a token or a "
        "certificate"
    )


@contextmanager
def _standing_in(*names: str) -> Iterator[None]:
    """Imports of these modules get empty substitutes in this context. A loaded module is not replaced."""
    added = {name: _StandIn(name) for name in names if name not in sys.modules}
    sys.modules.update(added)
    try:
        yield
    finally:
        for name, module in added.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]


@contextmanager
def _bound_to(package: ModuleType, name: str, module: ModuleType) -> Iterator[None]:
    before = vars(package).get(name)
    setattr(package, name, module)
    try:
        yield
    finally:
        if before is None:
            delattr(package, name)
        else:
            setattr(package, name, before)
