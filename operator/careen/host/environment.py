"""The environment of the agent's children, without the agent's settings, which contain notification URLs: root on the
host, and every program that a command starts, can read it in `/proc/PID/environ`."""

from __future__ import annotations

import os

_SETTINGS = ("CAREEN_", "KURED_")
_NODE = frozenset({"CAREEN_NODE_ID", "KURED_NODE_ID"})  # scripts written for kured read their node's name from it


def of_children() -> dict[str, str]:
    """Paths, proxies and the API server's address stay in it."""
    return {key: value for key, value in os.environ.items() if key in _NODE or not key.startswith(_SETTINGS)}
