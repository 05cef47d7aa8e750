"""The faults that the embedded API server injects; the same seed gives the same kinds in the same order.

Real API servers and networks have them. None breaks a guarantee of the API: a consistent list is never stale, a refused
write never made.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from drydock.server.requests.info import RequestInfo


class FaultKind(StrEnum):
    """As the client sees it."""

    SLOW = "slow"  # the answer takes its time
    LOST_BEFORE = "lost-before"  # the connection breaks and nothing was done
    LOST_AFTER = "lost-after"  # the connection breaks and everything was done
    LATE = "late"  # the connection breaks, and the write is made seconds later, as by a proxy that held it back
    ERROR_AFTER = "error-after"  # 504, and everything was done
    CONFLICT = "conflict"  # 409 without another write: an API server whose own retry lost a race
    THROTTLED = "throttled"  # 429 with Retry-After
    SERVER_ERROR = "server-error"  # 500 or 503, nothing was done
    STALE_LIST = "stale-list"  # only where the client allowed it with resourceVersion=0


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRates:
    """Each fault's probability per request, from 0 to 1, and the longest delays of SLOW and LATE in seconds."""

    slow: float = 0.05
    slowest_seconds: float = 1.5
    latest_seconds: float = 4.0
    lost_before: float = 0.02
    # Writes are few and these are the faults that matter most to them.
    lost_after: float = 0.04
    late: float = 0.03
    error_after: float = 0.02
    conflict: float = 0.04
    throttled: float = 0.02
    server_error: float = 0.02
    stale_list: float = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    kind: FaultKind
    seconds: float = 0.0
    code: int = 0


FaultPlan = Callable[[RequestInfo, str, bool], Fault | None]

_WRITES = frozenset({"create", "update", "patch", "delete"})


def no_faults(_info: RequestInfo, _user: str, _may_be_stale: bool) -> Fault | None:
    return None


def seeded_faults(seed: int, *, suffers: Callable[[str], bool], rates: FaultRates | None = None) -> FaultPlan:
    """Chooses at random whether a request of the affected users gets a fault, and which. A watch fails only at its
    start."""
    chance, rate = random.Random(seed), rates or FaultRates()

    def plan(info: RequestInfo, user: str, may_be_stale: bool) -> Fault | None:
        if not suffers(user):
            return None
        drawn = chance.random()
        if may_be_stale and drawn < rate.stale_list:
            return Fault(kind=FaultKind.STALE_LIST, seconds=chance.uniform(1, 10))
        for kind, share in _shares(rate, info.verb):
            if drawn < share:
                return _fault(kind, chance, rate)
            drawn -= share
        return None

    return plan


def _shares(rate: FaultRates, verb: str) -> list[tuple[FaultKind, float]]:
    shares = [
        (FaultKind.SLOW, rate.slow),
        (FaultKind.LOST_BEFORE, rate.lost_before),
        (FaultKind.THROTTLED, rate.throttled),
        (FaultKind.SERVER_ERROR, rate.server_error),
    ]
    if verb in _WRITES:
        shares += [
            (FaultKind.LOST_AFTER, rate.lost_after),
            (FaultKind.LATE, rate.late),
            (FaultKind.ERROR_AFTER, rate.error_after),
        ]
    if verb in ("update", "patch"):
        shares.append((FaultKind.CONFLICT, rate.conflict))
    return shares


def _fault(kind: FaultKind, chance: random.Random, rate: FaultRates) -> Fault:
    match kind:
        case FaultKind.SLOW:
            return Fault(kind=kind, seconds=chance.uniform(0.05, rate.slowest_seconds))
        case FaultKind.LATE:
            return Fault(kind=kind, seconds=chance.uniform(0.2, rate.latest_seconds))
        case FaultKind.THROTTLED:
            return Fault(kind=kind, seconds=float(chance.randint(1, 2)), code=429)
        case FaultKind.SERVER_ERROR:
            return Fault(kind=kind, code=chance.choice((500, 503)))
        case _:
            return Fault(kind=kind)
