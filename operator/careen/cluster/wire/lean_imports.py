"""Every trick by which the agent loads less of its libraries. `make bench-agent` measures what is left.

* The client's REST layer and configuration come without pydantic, models, OAuth and websockets.
* kopf comes without aiohttp's web server, which only its probes and webhooks use.
* aiohttp comes without the system's certificates, which it loads at import; kopf always passes the cluster's own.

Only the agent and its forecast child call these functions, before they import `cluster/wire/client.py` or kopf.
The commands for people load the whole client, because their kubeconfigs may need the OAuth flows."""

from __future__ import annotations

import ssl
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

_PACKAGES = ("kubernetes", "kubernetes.client", "kubernetes.config", "kubernetes.utils")
_LOADED = ("kubernetes.client.rest", "kubernetes.config.config_exception", "kubernetes.config.incluster_config")
# kube_config.py imports them for the OAuth flows of old kubeconfigs.
_OAUTH = ("oauthlib", "oauthlib.oauth2", "requests_oauthlib")


def load_lean_client() -> None:
    """Imports what `cluster/wire/client.py` uses of `kubernetes`; does nothing where the whole client is loaded
    already.

    The packages stay in `sys.modules` without what their `__init__` would have imported: a later
    `from kubernetes.client import CoreV1Api` in this process is an ImportError.
    """
    if "kubernetes" in sys.modules:
        return
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
    with _standing_in(*_OAUTH):
        import_module("kubernetes.config.kube_config")


def load_lean_kopf() -> None:
    """Imports kopf without its probes and webhooks. Call `load_lean_client` first: kopf imports the whole client."""
    with _no_system_certificates():
        aiohttp = import_module("aiohttp")
    # An import statement binds a module to its parent only when it loads it.
    with _standing_in("aiohttp.web"), _replaced(aiohttp, "web", sys.modules["aiohttp.web"]):
        import_module("kopf")


def _bare(name: str, path: str) -> ModuleType:
    package = ModuleType(name)
    package.__path__ = [path]
    return package


class _StandIn(ModuleType):
    """A module that has every name, each good for nothing but being imported."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _left_out(name)


def _left_out(name: str) -> type[object]:
    return type(name, (), {"__init__": _refuse})


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    raise NotImplementedError(
        f"{type(self).__name__} is left out of the agent to save memory; give it a kubeconfig with a token or "
        "a certificate"
    )


@contextmanager
def _standing_in(*names: str) -> Iterator[None]:
    """Within it, these modules import as stand-ins unless they are loaded; afterwards a later import gets the
    real ones."""
    added = {name: _StandIn(name) for name in names if name not in sys.modules}
    sys.modules.update(added)
    try:
        yield
    finally:
        for name in added:
            del sys.modules[name]


@contextmanager
def _no_system_certificates() -> Iterator[None]:
    """Within it, a default TLS context of this thread trusts nobody: a connection that used it would fail, not
    go unchecked."""
    ours, real = threading.get_ident(), ssl.create_default_context

    def create(*arguments: Any, **named: Any) -> ssl.SSLContext:
        if threading.get_ident() == ours:
            return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        return real(*arguments, **named)

    with _replaced(ssl, "create_default_context", create):
        yield


@contextmanager
def _replaced(module: ModuleType, name: str, value: object) -> Iterator[None]:
    before = vars(module).get(name)
    setattr(module, name, value)
    try:
        yield
    finally:
        if before is None:
            delattr(module, name)
        else:
            setattr(module, name, before)
