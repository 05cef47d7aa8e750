"""Quantities such as "500m", "1Gi" or "1e3" as exact integers.

They count *nano-units* (10⁻⁹ of one core, byte or device), the finest amount that the Kubernetes API can express
(apimachinery/pkg/api/resource/quantity.go, v1.36). Finer amounts are rounded away from zero when they are read. Sums
are made in nano-units and rounded up once, to milli-cores or whole units.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

NANOS_PER_UNIT: Final = 10**9
NANOS_PER_MILLI: Final = 10**6
LARGEST: Final = 2**63 - 1

_DECIMAL_EXPONENT: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_EXPONENT: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_PATTERN: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]+))?")

# No amount with a larger exponent fits the 63 bits that the scheduler computes with; smaller ones all round to
# one nano-unit.
_EXPONENT_BOUND: Final = 60
_LONGEST: Final = 1_000  # characters; Python reads no number of more than 4,300 digits


class QuantityError(ValueError):
    """The text is not a quantity; the message quotes it. The object that contains it cannot be used."""


@lru_cache(maxsize=16384)
def parse_nanos(text: str) -> int:
    """Raises QuantityError if the text is not a quantity.

    An amount above 2⁶³−1 units becomes 2⁶³−1 units, with any suffix; the API does so only for binary suffixes such as
    Gi.
    """
    match = _PATTERN.fullmatch(text) if 0 < len(text) <= _LONGEST else None
    if match is None:
        raise QuantityError(
            f"{text[:_LONGEST]!r} is not a quantity: expected digits with a suffix such as m, k, M, G, Ki, Mi, Gi or "
            "an exponent such as e3"
        )
    sign, whole, fraction, suffix, exponent = match.groups(default="")
    digits = int(whole + fraction or "0")
    if digits == 0:
        return 0
    if suffix in _BINARY_EXPONENT:
        nanos = _scaled(digits << _BINARY_EXPONENT[suffix], 9 - len(fraction))
    else:
        power = int(exponent) if exponent else _DECIMAL_EXPONENT[suffix]
        nanos = _scaled(
            digits, max(-_EXPONENT_BOUND - len(fraction) - len(whole), min(_EXPONENT_BOUND, power)) + 9 - len(fraction)
        )
    nanos = min(nanos, LARGEST * NANOS_PER_UNIT)
    return -nanos if sign == "-" else nanos


def _scaled(digits: int, power_of_ten: int) -> int:
    return digits * 10**power_of_ten if power_of_ten >= 0 else _divided_up(digits, 10**-power_of_ten)


def _divided_up(amount: int, divisor: int) -> int:
    """Rounds away from zero, like apimachinery's ScaledValue of an int64 amount."""
    return -(-amount // divisor) if amount >= 0 else -((-amount + divisor - 1) // divisor)


def nanos_to_millis(nanos: int) -> int:
    """Rounded away from zero. kube-scheduler reads cpu so (`MilliValue` of a quantity)."""
    return min(_divided_up(nanos, NANOS_PER_MILLI), LARGEST)


def nanos_to_units(nanos: int) -> int:
    """Rounded away from zero. kube-scheduler reads every resource except cpu so (`Value` of a quantity)."""
    return min(_divided_up(nanos, NANOS_PER_UNIT), LARGEST)
