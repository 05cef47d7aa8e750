"""What a child process sees of the agent's environment: not the settings, where the addresses of messages stand.

Everybody who is root on the host, and every program that a command starts, could read them in `/proc/PID/environ`.
"""

from __future__ import annotations

import os

_SETTINGS = ("CAREEN_", "KURED_")
_NODE = frozenset({"CAREEN_NODE_ID", "KURED_NODE_ID"})  # scripts written for kured ask it whose node they are on


def of_children() -> dict[str, str]:
    """The agent's own environment without its settings: paths, proxies and the place of the API server."""
    return {key: value for key, value in os.environ.items() if key in _NODE or not key.startswith(_SETTINGS)}
