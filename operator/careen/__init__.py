"""careen: reboots the nodes of a Kubernetes cluster one by one, and forecasts where every pod will land.
docs/glossary.md has its words."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from careen.library import from_kubeconfig

__all__ = ["from_kubeconfig"]


def __dir__() -> list[str]:
    return list(__all__)


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'careen' has no attribute {name!r}")
    # Loaded at the first use: an agent needs neither the function nor numpy.
    return getattr(import_module("careen.library"), name)
