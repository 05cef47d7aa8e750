"""Runs a controller after every change of the kinds that it watches.

A controller compares the wanted with the actual state of all objects: in a cluster this small, that is fast enough and
simpler than queues of keys.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from drydock.hosts.wake_up import wait_at_most
from drydock.server.api_errors import ApiError
from drydock.server.kinds.resources import resource_named
from drydock.server.verbs import Verbs

_log = logging.getLogger(__name__)
# A burst of changes is handled once, as in real controllers.
_PAUSE_SECONDS = 0.03

Reconcile = Callable[[Verbs], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    """`name` is the actor in the audit, `watches` the plurals whose changes start the controller.

    `reconcile` returns the seconds after which it must run again even without a change, or None.
    """

    name: str
    watches: tuple[str, ...]
    reconcile: Reconcile


async def run_controllers(verbs: Verbs, controllers: Sequence[Controller]) -> None:
    await asyncio.gather(*(_run(verbs, controller) for controller in controllers))


def _run(verbs: Verbs, controller: Controller) -> Awaitable[None]:
    changed = asyncio.Event()
    changed.set()
    stop_listening = verbs.store.listen([resource_named(plural).storage for plural in controller.watches], changed.set)

    async def loop() -> None:
        try:
            again: float | None = None
            while True:
                await wait_at_most(changed, again)
                changed.clear()
                again = _reconciled(verbs, controller)
                await asyncio.sleep(_PAUSE_SECONDS)
        finally:
            stop_listening()

    return loop()


def _reconciled(verbs: Verbs, controller: Controller) -> float | None:
    try:
        return controller.reconcile(verbs)
    except ApiError as refusal:
        # Nothing runs between the controller's reads and writes, so no other client is the cause: the server always
        # refuses this request.
        _log.warning("%s: %s", controller.name, refusal.message)
        return 1.0
