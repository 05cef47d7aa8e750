"""Loads the Kubernetes client without what an agent never uses.

The client's package imports, whoever asks for what, the OAuth flows of old kubeconfigs and the websockets of `exec`: 120
modules and 4.6 MiB (kubernetes 37.0.2), on every node of a fleet. The agent and its forecast child load it through here; the
commands for people, whose kubeconfigs may need those flows, do not.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn

_LEFT_OUT = ("oauthlib", "oauthlib.oauth2", "requests", "requests.utils", "requests_oauthlib", "websocket")


def load_lean_client() -> None:
    """Imports `kubernetes` with stand-ins for what is left out, and takes them away again: a later import gets the real ones."""
    if "kubernetes" in sys.modules:
        return
    stand_ins = {name: _StandIn(name) for name in _LEFT_OUT if name not in sys.modules}
    sys.modules.update(stand_ins)
    try:
        import_module("kubernetes.client.api_client")
        import_module("kubernetes.config")
    finally:
        for name in stand_ins:
            del sys.modules[name]


class _StandIn(ModuleType):
    """A module that has every name, each good for nothing but being imported."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__init__": _refuse})


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    raise NotImplementedError(f"{type(self).__name__} is left out of the agent to save memory; give it a kubeconfig with a token or a certificate")
