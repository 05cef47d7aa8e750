"""The fields of a node that scheduling reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from msgspec import field

from scheduler_core.arguments import expect_flags
from scheduler_core.model.taints import NO_SCHEDULE, Taint
from scheduler_core.sentences import amounts, html_table
from scheduler_core.values import Value

UNSCHEDULABLE_TAINT_KEY: Final = "node.kubernetes.io/unschedulable"
HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
ZONE_LABEL: Final = "topology.kubernetes.io/zone"
_SHOWN: Final = ("cpu", "memory", "pods")


class NodeImage(Value, weakref=True):
    """All names of one image on a node."""

    names: tuple[str, ...]
    size_bytes: int


class Node(Value, kw_only=True):
    """`allocatable`: cpu in millis, others in whole units. Without `pods` in it, no pod may run on the node."""

    name: str
    uid: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    allocatable: Mapping[str, int] = field(default_factory=dict)
    images: tuple[NodeImage, ...] = ()
    declared_features: frozenset[str] = frozenset()
    created_at: str = ""  # RFC 3339 as in the API; empty if unknown

    def __repr__(self) -> str:
        shown = amounts({name: self.allocatable[name] for name in _SHOWN if name in self.allocatable})
        offer = shown or "allocatable=nothing"
        return f"<Node {self.name!r} {offer} taints={len(self.taints)}{' cordoned' * self.unschedulable}>"

    def _repr_html_(self) -> str:
        """For notebooks: what the node offers, and to whom."""
        rows = [
            ("node", self.name),
            ("cordoned", "yes" if self.unschedulable else "no"),
            ("taints", ", ".join(f"{each.key}={each.value}:{each.effect}" for each in self.taints) or "none"),
            ("allocatable", amounts(self.allocatable) or "nothing"),
            ("labels", " ".join(map("=".join, self.labels.items())) or "none"),
        ]
        return html_table(("field", "value"), rows)

    def cordoned(self, *, with_taint: bool = True) -> Node:
        """Shortly after a cordon: unschedulable, and with the taint that the node lifecycle controller adds, or before
        that if `with_taint` is false."""
        expect_flags(with_taint=with_taint)
        taint = Taint(UNSCHEDULABLE_TAINT_KEY, "", NO_SCHEDULE)
        taints = self.taints if not with_taint or taint in self.taints else (*self.taints, taint)
        return replace(self, unschedulable=True, taints=taints)

    def uncordoned(self) -> Node:
        """Schedulable and without the cordon's taint."""
        return replace(
            self, unschedulable=False, taints=tuple(t for t in self.taints if t.key != UNSCHEDULABLE_TAINT_KEY)
        )
