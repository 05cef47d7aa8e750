"""Rules that read one field of the node, such as its taints, as a value: the same rule serves one node and all nodes.

Such a field has few different values in a cluster. So the rule runs once for each value, and the result for all nodes
is cached as long as the nodes do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from scheduler_core.framework.extension_points import Scores
from scheduler_core.framework.refusals import Refusals, numbered
from scheduler_core.framework.verdict import Verdict
from scheduler_core.snapshot.node_list import NodeList

T = TypeVar("T")
Distinct = tuple[Sequence[T], NDArray[np.intp]]
"""The distinct values of a field, and for each node of the snapshot the position of its value among them."""


def refusals_by_value(
    nodes: NodeList, distinct: Distinct[T], rule: Callable[[T], Verdict], question: Hashable
) -> Refusals:
    """`distinct`: the different values of the field. `question`: the key of the cached result; it must contain all
    other data that `rule` reads."""
    known: tuple[NDArray[Any], Mapping[int, Verdict]] | None = nodes.columns.by_value.get(question)
    if known is None:
        values, places = distinct
        codes, verdicts = numbered(map(rule, values))
        known = nodes.columns.by_value[question] = codes[places], verdicts
    return Refusals(nodes.take(known[0]), known[1])


def scores_by_value(nodes: NodeList, distinct: Distinct[T], rule: Callable[[T], int], question: Hashable) -> Scores:
    """As `refusals_by_value`."""
    known: Scores | None = nodes.columns.by_value.get(question)
    if known is None:
        values, places = distinct
        of_values = np.array([rule(value) for value in values], dtype=np.int64)
        known = nodes.columns.by_value[question] = of_values[places]
    return nodes.take(known)
