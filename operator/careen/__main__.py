"""The entry point of `python -m careen` and of the console scripts `careen`, `kubectl-careen` and `kured`.

The SIGTERM handler is installed before anything of careen is loaded: a pod that Kubernetes stops while its agent loads
ends as completed, not as failed.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import PurePath
from types import FrameType

_LONG = (["agent"], ["scheduler"], ["shadow"])
_OBJECTS = 100_000  # a command that ends soon has little garbage, and thousands of modules and Nodes to look through
_OWN_OPTIONS = ("-h", "--help", "--version", "--context")


def main() -> None:
    """Runs the command line. Never returns."""
    arguments = with_command(sys.argv[0], sys.argv[1:])
    if arguments[:1] == ["agent"]:
        signal.signal(signal.SIGTERM, _leave)
        if "CAREEN_HANDOVER" in os.environ:
            from careen.agent.asleep.doorkeeper import open_door  # answers probes while the rest loads

            open_door()
    if arguments[:1] in _LONG:
        gc.disable()  # until the command is loaded
    else:
        gc.set_threshold(_OBJECTS)
    # The image starts its scripts with SIGTERM blocked, so that a signal that arrives while Python starts is not lost.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGINT})
    from careen.cli import main as run

    run(arguments)


def with_command(called_as: str, arguments: Sequence[str]) -> list[str]:
    """Puts `agent` in front if the command line names no command.

    kured has no commands, so its manifests do not write `agent`. Flags alone also go to the agent, so that `args:
    [--period=1h]` works in a DaemonSet.
    """
    first = arguments[0] if arguments else ""
    is_kured = PurePath(called_as).name == "kured"
    if first != "agent" and (is_kured or (first.startswith("-") and first.split("=")[0] not in _OWN_OPTIONS)):
        return ["agent", *arguments]
    return list(arguments)


def _leave(_number: int, _frame: FrameType | None) -> None:
    # In force until the agent installs its own handler: no connection is open, and no request was sent.
    os._exit(0)


if __name__ == "__main__":
    main()
