"""Nodes indexed by label: the value of a label key on each node, and the nodes that a selector matches.

Changes of pods leave the labels of nodes alone, so results are cached for as long as the nodes stay the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from scheduler_core.model.labels import NodeSelector, OneNode, Requirement, chosen
from scheduler_core.model.node import Node
from scheduler_core.snapshot.remembered import Remembered
from scheduler_core.values import Value

Mask = NDArray[np.bool_]
Number = TypeVar("Number", bound=np.generic)
_NOBODY: Final = np.zeros(1, dtype=np.int64)


class Topology(Value, eq=False):
    """The values of one label key, such as the zone: the domains. `missing` is how many there are; `codes` has for each
    node the number of its domain, from 0, or `missing` if the node lacks the key.

    An array over the domains has one more element, with the index `missing`, for nodes without the key.
    """

    key: str
    values: tuple[str, ...]
    code_of: Mapping[str, int]
    codes: NDArray[np.intp]
    present: Mask
    everywhere: bool
    used: int  # how many of the values occur on a node
    fewest: int  # how many nodes have the rarest of these values

    @property
    def missing(self) -> int:
        return len(self.values)

    def with_added(self, values: Sequence[str | None]) -> Topology:
        """Further nodes at the end, with their values of the label key, or None."""
        code_of = dict(self.code_of)
        for value in values:
            if value is not None:
                code_of.setdefault(value, len(code_of))
        missing = len(code_of)
        old = np.where(self.present, self.codes, missing)
        more = np.array([missing if value is None else code_of[value] for value in values], dtype=np.intp)
        codes = np.concatenate([old, more])
        return _topology(self.key, code_of, codes)

    @property
    def is_each_its_own(self) -> bool:
        """Whether there are as many values as nodes: each node is then its own domain, in the same order."""
        return self.missing == len(self.codes)

    def of_nodes(self, by_domain: NDArray[Number]) -> NDArray[Number]:
        """For each node the element of its domain; the caller must not change the array."""
        return by_domain[:-1] if self.is_each_its_own else by_domain.take(self.codes)

    def sum_by_domain(self, per_node: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Sums over the nodes of each domain."""
        if self.is_each_its_own:
            return np.concatenate((per_node, _NOBODY))
        return sum_by_code(self.codes, per_node, self.missing + 1)


def sum_by_code(codes: NDArray[np.intp], per_node: NDArray[np.integer[Any]], size: int) -> NDArray[np.int64]:
    """Sums over all nodes with the same number in `codes`: with `Topology.codes` of the zone label, one sum per
    zone. Skips zeros, because usually most nodes have none of the counted pods."""
    rows = (per_node != 0).nonzero()[0]
    return np.bincount(codes.take(rows), weights=per_node.take(rows), minlength=size).astype(np.int64)


def _topology(key: str, code_of: Mapping[str, int], codes: NDArray[np.intp]) -> Topology:
    present = codes != len(code_of)
    sizes = np.bincount(codes)
    sizes = sizes[sizes > 0]
    return Topology(
        key=key,
        values=tuple(code_of),
        code_of=code_of,
        codes=codes,
        present=present,
        everywhere=bool(present.all()),
        used=len(sizes),
        fewest=int(sizes.min(initial=len(codes))),
    )


class NodeLabels:
    """The labels of a fixed list of nodes, indexed by label key."""

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self._nodes = nodes
        self.identity = object()  # differs for each index; keeping it keeps no nodes in memory
        self._topologies: Remembered[str, Topology] = Remembered()
        self._requirements: Remembered[Requirement, Mask] = Remembered()
        self._selections: Remembered[tuple[tuple[tuple[str, str], ...], NodeSelector | None], Mask] = Remembered()

    def with_added(self, nodes: tuple[Node, ...]) -> NodeLabels:
        """The index of `nodes`, which must begin with the nodes of this index."""
        new = NodeLabels(nodes)
        more = nodes[len(self._nodes) :]
        for key, topology in self._topologies.items():
            new._topologies[key] = topology.with_added([node.labels.get(key) for node in more])
        return new

    def topology(self, key: str) -> Topology:
        """The values of this label key on all nodes."""
        known = self._topologies.get(key)
        if known is None:
            known = self._topologies[key] = self._index(key)
        return known

    def _index(self, key: str) -> Topology:
        code_of: dict[str, int] = {}
        found = [node.labels.get(key) for node in self._nodes]
        for value in found:
            if value is not None and value not in code_of:
                code_of[value] = len(code_of)
        missing = len(code_of)
        codes = np.fromiter(
            (missing if value is None else code_of[value] for value in found), dtype=np.intp, count=len(found)
        )
        return _topology(key, code_of, codes)

    def selected(self, node_selector: tuple[tuple[str, str], ...], required: NodeSelector | None) -> Mask:
        """For each node, whether it matches the pod's nodeSelector and required node affinity. The caller must not
        change the array."""
        key = (node_selector, required)
        known = self._selections.get(key)
        if known is None:
            known = self._selections[key] = chosen(self, node_selector, required)
        return known

    def all_of(self, answers: Iterable[Mask]) -> Mask:
        found = np.ones(len(self._nodes), dtype=bool)
        for answer in answers:
            found &= answer
        return found

    def any_of(self, answers: Iterable[Mask]) -> Mask:
        found = np.zeros(len(self._nodes), dtype=bool)
        for answer in answers:
            found |= answer
        return found

    def meeting(self, expression: Requirement) -> Mask:
        """For each node, whether its labels meet the requirement. The caller must not change the array."""
        known = self._requirements.get(expression)
        if known is None:
            topology = self.topology(expression.key)
            by_code = np.array([expression.accepts(value) for value in (*topology.values, None)], dtype=bool)
            known = self._requirements[expression] = by_code[topology.codes]
        return known

    def named(self, field: Requirement) -> Mask:
        """For each node, whether its metadata.name meets the requirement."""
        answers = (OneNode({}, node.name).named(field) for node in self._nodes)
        return np.fromiter(answers, dtype=bool, count=len(self._nodes))
