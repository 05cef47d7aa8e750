"""Writes an estimate as JSON into a dump of the cluster, and reads it back. It names the node at which a search
starts, because positions change when nodes come and go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from scheduler_core.cycle import Scheduler
from scheduler_core.learning.search_estimate import SearchEstimate
from scheduler_core.sampling import Search
from scheduler_core.simulation.searches import Likely
from scheduler_core.snapshot.snapshot import Snapshot

_MOST_KEPT: Final = 200
_MOST_PLAUSIBLE: Final = 1e6  # the upper limit both for `others` (pods per second) and for each of `strides` (nodes)


class _KeptSearch(msgspec.Struct, frozen=True):
    node: str
    weight: float
    workers: int = 1
    order: int = -1


class _StoredEstimate(msgspec.Struct, frozen=True):
    bindings: int
    searches: tuple[_KeptSearch, ...]
    strides: tuple[int, ...] = ()
    others: float = 0.0


def to_mapping(estimate: SearchEstimate, snapshot: Snapshot) -> Mapping[str, Any]:
    """The most likely searches as JSON values. `snapshot` is the cluster from which the estimate was learned."""
    likeliest = sorted(estimate.followed, key=lambda each: -each.weight)[:_MOST_KEPT]
    kept = [
        _KeptSearch(_name(snapshot, each.search), round(each.weight, 6), each.search.workers, each.search.order)
        for each in likeliest
    ]
    found: dict[str, Any] = msgspec.to_builtins(
        _StoredEstimate(estimate.bindings, tuple(kept), estimate.strides, round(estimate.others, 4))
    )
    return found


def from_mapping(written: Any, snapshot: Snapshot) -> SearchEstimate | None:
    """Reads a stored estimate for the cluster in `snapshot`. A search from a node that no longer exists goes, and
    its probability is added to `doubt`. None if the estimate is invalid or no search remains."""
    try:
        kept = msgspec.convert(written, _StoredEstimate)
    except (msgspec.ValidationError, RecursionError):
        return None
    if not len(snapshot.nodes) or any(not 0.0 <= each.weight <= 1.0 or each.workers < 1 for each in kept.searches):
        return None
    if not 0.0 <= kept.others <= _MOST_PLAUSIBLE or not all(0 <= stride <= _MOST_PLAUSIBLE for stride in kept.strides):
        return None
    followed = [
        Likely(Search(start, each.workers, each.order), each.weight)
        for each in kept.searches
        if (start := _place(snapshot, each)) is not None
    ]
    total = sum(each.weight for each in followed)
    if not followed or not 0.0 < total <= 1.001:
        return None
    return SearchEstimate(
        followed=tuple(followed),
        doubt=max(0.0, 1.0 - total),
        bindings=max(0, kept.bindings),
        strides=kept.strides,
        others=kept.others,
    )


def learnt_searches(written: Any, snapshot: Snapshot, scheduler: Scheduler, most: int) -> tuple[Likely, ...] | None:
    """`most` searches for a forecast from a dump, likely ones several times. None if the dump has no readable
    estimate."""
    estimate = None if written is None else from_mapping(written, snapshot)
    return None if estimate is None else estimate.searches(snapshot, scheduler, most)


def _name(snapshot: Snapshot, search: Search) -> str:
    orders = snapshot.columns.tree_orders
    order = orders[search.order % len(orders)]
    return str(snapshot.columns.names[order[search.start % len(order)]])


def _place(snapshot: Snapshot, kept: _KeptSearch) -> int | None:
    row = snapshot.columns.row_of.get(kept.node)
    if row is None:
        return None
    orders = snapshot.columns.tree_orders
    return int((orders[kept.order % len(orders)] == row).argmax())
