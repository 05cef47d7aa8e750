"""The result of a filter that checks all nodes in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from scheduler_core.framework.verdict import SUCCESS, Verdict, VerdictCode

_OF_FUNCTIONS: Final = (VerdictCode.UNSCHEDULABLE, VerdictCode.UNSCHEDULABLE_AND_UNRESOLVABLE)


class Refusals:
    """A code (a small integer) for each node, 0 if it passed, and the verdict of each other code.

    If there are too many codes for a mapping, `verdicts` is a function; all its verdicts must be Unschedulable or
    UnschedulableAndUnresolvable.
    """

    __slots__ = ("_verdicts", "codes", "may_fail")

    def __init__(
        self, codes: NDArray[np.integer] | NDArray[np.bool_], verdicts: Mapping[int, Verdict] | Callable[[int], Verdict]
    ) -> None:
        self.codes = codes
        self._verdicts = verdicts
        self.may_fail = not callable(verdicts) and not all(v.is_rejection or v.is_success for v in verdicts.values())

    @classmethod
    def of_each(cls, verdicts: Iterable[Verdict]) -> Self:
        """From one verdict per node."""
        return cls(*numbered(verdicts))

    def may_be(self, code: VerdictCode) -> bool:
        """If False, no node's verdict has this VerdictCode."""
        if callable(self._verdicts):
            return code in _OF_FUNCTIONS
        return any(verdict.code is code for verdict in self._verdicts.values())

    def verdict(self, code: int) -> Verdict:
        """SUCCESS for code 0."""
        if code == 0:
            return SUCCESS
        if callable(self._verdicts):
            return self._verdicts(code)
        if code not in self._verdicts:
            raise ValueError(
                f"filter_all returned a Refusals with code {code}, which its verdicts {self._verdicts} lack"
            )
        return self._verdicts[code]


def numbered(verdicts: Iterable[Verdict]) -> tuple[NDArray[Any], Mapping[int, Verdict]]:
    """Each verdict's code in `Refusals`, and each code's verdict."""
    numbers: dict[Verdict, int] = {}
    codes = [0 if each.is_success else numbers.setdefault(each, len(numbers) + 1) for each in verdicts]
    kind = bool if len(numbers) < 2 else np.intp  # a mask is searched several times faster than numbers
    return np.array(codes, dtype=kind), {number: verdict for verdict, number in numbers.items()}
