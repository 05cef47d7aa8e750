"""The answer of a filter's all-nodes form: one small code per node, and the verdict of each code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from scheduler_core.framework.verdict import SUCCESS, Verdict, VerdictCode


class Refusals:
    """A filter's answer for all nodes of a list: a small code per node, 0 for a pass, and the verdict of each other
    code.

    `verdicts` maps a code to the verdict, by a mapping or, for too many codes to list, by a function, which then must
    return only refusals."""

    __slots__ = ("_verdicts", "codes", "may_fail")

    def __init__(
        self, codes: NDArray[np.integer] | NDArray[np.bool_], verdicts: Mapping[int, Verdict] | Callable[[int], Verdict]
    ) -> None:
        self.codes = codes
        self._verdicts = verdicts
        self.may_fail = not callable(verdicts) and not all(v.is_rejection or v.is_success for v in verdicts.values())

    @classmethod
    def of_each(cls, verdicts: Iterable[Verdict]) -> Self:
        """The answer with these verdicts, one per node."""
        return cls(*numbered(verdicts))

    def may_be(self, code: VerdictCode) -> bool:
        """Whether a verdict could have that code; False is certain, True is not."""
        return callable(self._verdicts) or any(verdict.code is code for verdict in self._verdicts.values())

    def verdict(self, code: int) -> Verdict:
        """The verdict of a code; SUCCESS for 0."""
        if code == 0:
            return SUCCESS
        return self._verdicts(code) if callable(self._verdicts) else self._verdicts[code]


def numbered(verdicts: Iterable[Verdict]) -> tuple[NDArray[Any], Mapping[int, Verdict]]:
    """The code of each of these verdicts, and the verdicts by their codes."""
    numbers: dict[Verdict, int] = {}
    codes = [0 if each.is_success else numbers.setdefault(each, len(numbers) + 1) for each in verdicts]
    kind = bool if len(numbers) < 2 else np.intp  # a mask is searched several times faster than numbers
    return np.array(codes, dtype=kind), {number: verdict for verdict, number in numbers.items()}
