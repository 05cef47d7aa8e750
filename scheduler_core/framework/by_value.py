"""Runs rules that read one field of the node, such as its taints. The argument of a rule is a value of that field, so
the same rule serves a single node and all nodes at once.

In a cluster such a field has few different values. So the rule is evaluated once for each value, and the result for all
nodes is cached as long as the nodes do not change.
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
    """Returns the refusals of a filter whose `rule` reads one field of the node. `distinct` has the different values of
    the field. `question` is the key of the cached result, and contains all other data that `rule` reads."""
    known: tuple[NDArray[Any], Mapping[int, Verdict]] | None = nodes.columns.by_value.get(question)
    if known is None:
        values, places = distinct
        codes, verdicts = numbered(map(rule, values))
        known = nodes.columns.by_value[question] = codes[places], verdicts
    return Refusals(nodes.take(known[0]), known[1])


def scores_by_value(nodes: NodeList, distinct: Distinct[T], rule: Callable[[T], int], question: Hashable) -> Scores:
    """Returns the scores of a plugin whose `rule` reads one field of the node. `distinct` has the different values of
    the field. `question` is the key of the cached result, and contains all other data that `rule` reads."""
    known: Scores | None = nodes.columns.by_value.get(question)
    if known is None:
        values, places = distinct
        of_values = np.array([rule(value) for value in values], dtype=np.int64)
        known = nodes.columns.by_value[question] = of_values[places]
    return nodes.take(known)
