"""Saves memory with the tricks in `TRICKS`, most of which stop imports of library code that the agent does not use,
such as the Kubernetes client's models. `make bench-tricks` measures each (bench/agent/tricks.md), `make bench-agent`
all together.

Agent, forecast child and commands apply them before they import `cluster/wire/client.py` or kopf. A command whose
kubeconfig may need the OAuth flows loads the whole client.
"""

from __future__ import annotations

import gc
import os
import ssl
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

_PACKAGES = ("kubernetes", "kubernetes.client", "kubernetes.config", "kubernetes.utils")
_LOADED = ("kubernetes.client.rest", "kubernetes.config.config_exception", "kubernetes.config.incluster_config")
# kube_config.py imports them for the OAuth flows of old kubeconfigs.
_OAUTH = ("oauthlib", "oauthlib.oauth2", "requests_oauthlib")

# Imported by a library, but not used by an idle agent. Only modules that are imported whole, because a `from` import
# would load them anyway.
ON_USE = (
    "attr.validators",  # attrs, of aiohttp
    "gzip",  # prometheus_client, for clients that ask for it
    "html",  # http.server, for its error pages
    "idna",  # yarl, for host names beyond ASCII
    "msgspec.inspect",
    "msgspec.toml",
    "msgspec.yaml",
    "jsonpatch",  # kopf, for patches that we do not send
    "shutil",  # tempfile, for files; brings bz2 and lzma
    "zipfile",  # importlib.metadata
)

TRICKS = {
    "lean-client": "the Kubernetes client's REST layer is loaded without the client's models, pydantic and websockets",
    "no-collections": "imports create no garbage, so the cyclic garbage collector is off until the imports end",
    "no-oauth": "kube_config.py is loaded without the OAuth flows of old kubeconfigs",
    "no-web-server": "kopf is loaded without aiohttp's web server, which only kopf's probes and webhooks use",
    "no-system-certificates": "aiohttp loads no system certificates at import; kopf always passes the "
    "cluster's certificates",
    "no-multipart": "aiohttp is loaded without multipart bodies, which no request to an API server has",
    "no-tracing": "aiohttp is loaded without its tracing, which has sixteen attrs classes",
    "no-webhooks": "kopf is loaded without the servers of its webhooks",
    "no-missing-path": "paths that do not exist are removed from sys.path, because a version lookup would open "
    "them as zip files with zipfile",
    "no-multiprocessing": "the Kubernetes client is loaded with `os` in place of multiprocessing, because the client "
    "calls only `cpu_count`, which both modules have",
    "no-wsgi": "prometheus_client is loaded without wsgiref; the agent serves its metrics itself",
    **{f"on-use:{name}": f"`{name}` is loaded when something uses it" for name in ON_USE},
}
"""The tricks and their effects. `bench.agent.tricks` switches off one at a time."""

switched_off: set[str] = set()


@contextmanager
def lean_start() -> Iterator[None]:
    """No cyclic garbage collection while the agent's command is imported. Rarely used modules load only on first use,
    also after the context."""
    _load_on_use()
    with without_collections():
        yield


def load_lean_client() -> None:
    """Imports the parts of `kubernetes` that `cluster/wire/client.py` uses, unless the whole client is loaded.

    The packages stay in `sys.modules` without what their `__init__` would have imported: a later `from
    kubernetes.client import CoreV1Api` in this process raises ImportError.
    """
    if "kubernetes" in sys.modules:
        return
    if _is_on("no-missing-path"):
        sys.path[:] = [entry for entry in sys.path if Path(entry).exists()]
    with lean_start(), _if_on("no-oauth", _standing_in(*_OAUTH)):
        if _is_on("lean-client"):
            _load_bare_packages()
        import_module("kubernetes.config.kube_config")


def load_lean_metrics() -> None:
    """Imports the parts of prometheus_client that `telemetry/metrics.py` uses."""
    with without_collections(), _if_on("no-wsgi", _standing_in("wsgiref", "wsgiref.simple_server")):
        import_module("prometheus_client")


def load_lean_kopf() -> None:
    """Imports kopf without its probes and webhooks. Call `load_lean_client` first, because kopf imports the whole
    client."""
    with (
        without_collections(),
        _if_on("no-multipart", _standing_in("aiohttp.multipart")),
        _if_on("no-tracing", _standing_in("aiohttp.tracing")),
        _if_on("no-system-certificates", _no_system_certificates()),
    ):
        aiohttp = import_module("aiohttp")
    with (
        without_collections(),
        _if_on("no-web-server", _no_web_server(aiohttp)),
        _if_on("no-webhooks", _standing_in("kopf._kits.webhooks")),
    ):
        import_module("kopf")


@contextmanager
def without_collections() -> Iterator[None]:
    """No cyclic garbage collection, in all threads, while this context is open."""
    if not _is_on("no-collections"):
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _is_on(trick: str) -> bool:
    assert trick in TRICKS, trick
    return trick not in switched_off


def _if_on(trick: str, context: AbstractContextManager[None]) -> AbstractContextManager[None]:
    return context if _is_on(trick) else nullcontext()


def _load_bare_packages() -> None:
    spec = find_spec("kubernetes")
    if spec is None or spec.origin is None:
        raise ImportError("the package kubernetes is not installed")
    root = str(Path(spec.origin).parent)
    for name in _PACKAGES:
        sys.modules[name] = _bare(name, root + name.removeprefix("kubernetes").replace(".", "/"))
    client = sys.modules["kubernetes.client"]
    with _if_on("no-multiprocessing", _bound({"multiprocessing": os})):
        client.Configuration = import_module("kubernetes.client.configuration").Configuration  # type: ignore[attr-defined]
    client.ApiClient = _left_out("ApiClient")  # type: ignore[attr-defined]
    for name in _LOADED:
        import_module(name)


def _bare(name: str, path: str) -> ModuleType:
    package = ModuleType(name)
    package.__path__ = [path]
    return package


def _load_on_use() -> None:
    if not any(isinstance(finder, _OnUse) for finder in sys.meta_path):
        sys.meta_path.insert(0, _OnUse([name for name in ON_USE if _is_on(f"on-use:{name}")]))


class _OnUse:
    """An import finder: the code of the modules in `names` runs when an attribute is first read.

    `importlib.util.LazyLoader` would run it as soon as a second module imports the module.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = frozenset(names)

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name in self._names else None
        if spec is not None and spec.loader is not None:
            spec.loader = _Later(spec.loader)  # type: ignore[assignment]
        return spec


class _Later:
    """The code runs only when the module is first used."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, _: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__class__ = _NotYetLoaded


class _NotYetLoaded(ModuleType):
    _lock = threading.RLock()
    _is_loading = False

    def __getattr__(self, name: str) -> Any:
        with self._lock:  # another thread has to wait for the whole module; this thread may be in a circular import
            if type(self) is _NotYetLoaded and not self._is_loading:
                self._is_loading = True
                try:
                    self.__loader__.exec_module(self)  # type: ignore[union-attr]
                finally:
                    del self._is_loading
                self.__class__ = ModuleType  # type: ignore[assignment]
        return ModuleType.__getattribute__(self, name)


class _StandIn(ModuleType):
    """An empty substitute for a module. Any name can be imported from it, but not used."""

    def __getattr__(self, name: str) -> Any:
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
    with _bound({name: _StandIn(name) for name in names}):
        yield


@contextmanager
def _bound(modules: Mapping[str, ModuleType]) -> Iterator[None]:
    added = {name: module for name, module in modules.items() if name not in sys.modules}
    sys.modules.update(added)
    try:
        yield
    finally:
        for name, module in added.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]


@contextmanager
def _no_web_server(aiohttp: ModuleType) -> Iterator[None]:
    # An import statement binds a module to its parent only when it loads it.
    with _standing_in("aiohttp.web"), _replaced(aiohttp, "web", sys.modules["aiohttp.web"]):
        yield


@contextmanager
def _no_system_certificates() -> Iterator[None]:
    """A default TLS context that this thread creates meanwhile trusts no certificate. Its connections fail, so the
    server's certificate is never left unchecked."""
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
