"""Replaces the agent's process by the sleeper. Imports the standard library only."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from careen.agent.asleep import sleeper
from careen.agent.asleep.threads import STOPS


class Bed:
    """Everything that is handed over."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self._content = content

    def lie_down(self) -> NoReturn:
        """Replaces this process. Raises OSError if that fails: then it ends, and the kubelet starts another."""
        program = _program()
        kept = [self._content[name] for name in ("listener", "lock") if self._content.get(name) is not None]
        for descriptor in kept:
            os.set_inheritable(descriptor, True)
        descriptors = ",".join(map(str, [sleeper.write_handover(dict(self._content)), *kept]))
        command = [sys.executable, *sys.orig_argv[1:]]
        if signal.sigpending() & STOPS:
            os._exit(0)
        os.execve(  # noqa: S606 - a program of this package
            sys.executable, [sys.executable, "-I", "-S", program, descriptors, "--", *command], os.environ
        )


def _program() -> str:
    """Its bytecode if there is one: the compiler would cost memory that stays."""
    cached = getattr(sleeper, "__cached__", None)
    return cached if cached and Path(cached).exists() else sleeper.__file__
