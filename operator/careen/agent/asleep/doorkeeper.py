"""Answers probes from the inherited listener while the woken agent loads. Imports the standard library only."""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Mapping, MutableMapping
from typing import Any

from careen.agent.asleep import sleeper
from careen.agent.asleep.threads import keep_signals_in_main_thread

_LOADING_SECONDS = 60.0  # after which a process that still loads is unhealthy


class Doorkeeper:
    """Serves until `leave`, in a thread."""

    def __init__(self, handover: Mapping[str, Any], listener: socket.socket) -> None:
        self.handover, self.listener = dict(handover), listener
        self._until = sleeper.boot_seconds() + _LOADING_SECONDS
        self._read, self._write = os.pipe()
        self._thread = threading.Thread(target=self._serve, name="doorkeeper", daemon=True)
        self._thread.start()

    def leave(self) -> socket.socket:
        """The listener, for the agent's own server."""
        os.write(self._write, b"x")
        self._thread.join()
        for descriptor in (self._read, self._write):
            os.close(descriptor)
        self.listener.setblocking(True)
        return self.listener

    def _serve(self) -> None:
        poll = select.poll()
        poll.register(self._read, select.POLLIN)
        probes = sleeper.Probes(self.listener, self._answer)
        probes.register(poll)
        while True:
            for descriptor, _ in poll.poll(1000):
                if descriptor == self._read:
                    poll.unregister(self._read)
                    probes.finish(1.0)
                    return
                probes.handle(descriptor)
            probes.tidy()

    def _answer(self, path: str) -> tuple[int, bytes]:
        late = "the woken agent does not load" if sleeper.boot_seconds() > self._until else ""
        return sleeper.answer(self.handover, path, late=late, is_asleep=False)


class Woken:
    """What a sleeper handed over to this process, taken once."""

    def __init__(self, handover: Mapping[str, Any], doorkeeper: Doorkeeper | None) -> None:
        self.handover = handover
        self.doorkeeper = doorkeeper


_woken: list[Woken] = []


def open_door(environment: MutableMapping[str, str] = os.environ) -> None:
    """Reads the handover and begins to answer. Without one that can be used nothing happens: an ordinary start."""
    text = environment.pop(sleeper.VARIABLE, "")
    if not text:
        return
    keep_signals_in_main_thread()
    descriptors = sleeper.passed_on(text)
    try:
        handover = sleeper.read_handover(descriptors[0])
        given = handover.get("listener")
        listener = socket.socket(fileno=given) if given is not None else None
        if listener is not None:
            os.set_inheritable(listener.fileno(), False)
        _woken[:] = [Woken(handover, Doorkeeper(handover, listener) if listener is not None else None)]
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        sleeper.drop(descriptors[1:])


def woken() -> Woken | None:
    """What was handed over, for the first caller only."""
    return _woken.pop() if _woken else None
