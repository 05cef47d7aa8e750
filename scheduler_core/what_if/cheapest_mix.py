"""The cheapest nodes of several kinds that give the pending pods a place: sizes, zones, prices."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from scheduler_core.arguments import checked, expect_count, expect_fields
from scheduler_core.cycle import Scheduler
from scheduler_core.model.node import HOSTNAME_LABEL
from scheduler_core.model.pod import Pod
from scheduler_core.sentences import html_table
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value
from scheduler_core.what_if.fewest_nodes import room_needed
from scheduler_core.what_if.more_nodes import MOST, MoreNodes, may_ever_fit, try_counts, with_new_nodes
from scheduler_core.what_if.node_template import NodeTemplate
from scheduler_core.what_if.placing import Placer

# Each try places all pods, so this many keep the answer for hundreds of pods within seconds.
_MOST_TRIES: Final = 30
_MOST_MIXES: Final = 20_000
_CENT: Final = 1e-9  # a sum of prices such as 0.1 depends on its order
# Labels by which nodes of similar groups differ, as in cluster-autoscaler's balancing of similar node groups.
_OF_PLACE: Final = ("/zone", "/region")
_OF_GROUP: Final = frozenset(
    {
        HOSTNAME_LABEL,
        "agentpool",
        "alpha.eksctl.io/nodegroup-name",
        "cloud.google.com/gke-nodepool",
        "eks.amazonaws.com/nodegroup",
        "kubernetes.azure.com/agentpool",
    }
)
_Vector = tuple[int, ...]


class NodeOffer(Value, kw_only=True):
    """New nodes like the template, each for this price (in any unit), at most so many."""

    template: NodeTemplate
    price: float = 1
    most: int = MOST

    def __post_init__(self) -> None:
        expect_fields(self)

    def __repr__(self) -> str:
        return f"<NodeOffer {self.template.name!r} price={self.price:g} most={self.most}>"


class NodeMix(Value, kw_only=True):
    """The nodes to add, by the template's name, their price, and the result of adding them. `is_cheapest`: each cheaper
    mix was tried or is certainly too small; otherwise some were left out to save time. `tried`: how many mixes were
    tried."""

    counts: Mapping[str, int]
    price: float
    result: MoreNodes
    is_cheapest: bool
    tried: int

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}: {count}" for name, count in self.counts.items() if count)
        return f"<NodeMix {counts or 'no node'} price={self.price:g} is_enough={self.is_enough}>"

    def _repr_html_(self) -> str:
        """For notebooks: the nodes to add."""
        return html_table(("node", "count"), self.counts.items())

    @property
    def is_enough(self) -> bool:
        return not self.result.refused


@checked
def cheapest_mix(scheduler: Scheduler, snapshot: Snapshot, pods: Sequence[Pod], offers: Sequence[NodeOffer]) -> NodeMix:
    """The cheapest new nodes that place each pod for which any number of them helps. Of mixes with the same price, the
    fewest nodes, then the one that is most even over similar groups: offers that differ only in zone or group.

    Raises ValueError if there is no offer, if two have the same name, or if a price or a number is negative.
    """
    _check(offers)
    search = _MixSearch(scheduler, snapshot, pods, offers)
    counts = search.cheapest()
    names = [offer.template.name for offer in offers]
    return NodeMix(
        counts=dict(zip(names, counts, strict=True)),
        price=search.price(counts),
        result=search.result(Placer(scheduler, pods), counts),
        is_cheapest=search.is_complete,
        tried=search.tried,
    )


def _check(offers: Sequence[NodeOffer]) -> None:
    for offer in offers:
        expect_count(f"most of {offer.template.name}", offer.most, of="the number of nodes on offer")
    names = [offer.template.name for offer in offers]
    if not names:
        raise ValueError("there is no offer: pass NodeOffer(template=like_node(snapshot, name), price=…)")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"two offers have the name {twice[0]}: give each template its own name")
    for offer in offers:
        if not (math.isfinite(offer.price) and offer.price >= 0):
            raise ValueError(f"the price of {offer.template.name} is {offer.price}: expected a number, 0 or more")


class _MixSearch:
    def __init__(
        self, scheduler: Scheduler, snapshot: Snapshot, pods: Sequence[Pod], offers: Sequence[NodeOffer]
    ) -> None:
        self._scheduler = scheduler
        self._snapshot = snapshot
        self._pods = tuple(pods)
        self._offers = offers
        self._one_of_each = with_new_nodes(snapshot, [(offer.template, 1) for offer in offers])
        self._groups = _similar(offers)
        self.tried = 0
        self.is_complete = True
        self._most = tuple(min(offer.most, len(pods)) for offer in offers)

    def price(self, counts: _Vector) -> float:
        return round(sum(offer.price * count for offer, count in zip(self._offers, counts, strict=True)), 9)

    def result(self, placer: Placer, counts: _Vector, at_least: int = 0) -> MoreNodes:
        pairs = [(offer.template, count) for offer, count in zip(self._offers, counts, strict=True)]
        return try_counts(placer, self._snapshot, pairs, at_least)

    def cheapest(self) -> _Vector:
        plenty, placed = self._most_placed()
        hopeful = self._hopeful([pod for pod in self._pods if pod.key not in placed])
        if hopeful:
            found = self._search(tuple(pod for pod in self._pods if pod.key in placed | hopeful), None)
            if found is not None:
                return found
        return self._search(tuple(pod for pod in self._pods if pod.key in placed), plenty) or plenty

    def _most_placed(self) -> tuple[_Vector, frozenset[str]]:
        """All nodes on offer, only those of one offer, or none: the cheapest of those with the most placed pods. And
        these pods. Empty nodes of another kind may keep a pod away that must spread over nodes or zones."""
        places = range(len(self._most))
        alone = [tuple(most if each == place else 0 for each, most in enumerate(self._most)) for place in places]
        placer = Placer(self._scheduler, self._pods)
        none = (0,) * len(self._most)
        found = {counts: frozenset(self.result(placer, counts).placed) for counts in (none, *alone, self._most)}
        best = max(found, key=lambda counts: (len(found[counts]), -self.price(counts)))
        return best, found[best]

    def _hopeful(self, left: Sequence[Pod]) -> frozenset[str]:
        """Those of these pods to which another number of new nodes might give a node: an empty one takes them, or
        refuses them by a rule that counts nodes."""
        if not left:
            return frozenset()
        world, names = self._one_of_each
        return frozenset(pod.key for pod in left if may_ever_fit(self._scheduler, world, pod, names))

    def _search(self, pods: tuple[Pod, ...], plenty: _Vector | None) -> _Vector | None:
        """The cheapest mix that is enough for these pods. `plenty`: one that is enough, if known. None if there is
        none, or if it was not found in time."""
        self._placer = Placer(self._scheduler, pods)
        world, names = self._one_of_each
        self._room = room_needed(self._scheduler, world, names, pods)
        best = self._of_one_group(plenty)
        limit, before, was_complete = math.inf if best is None else self.price(best), self.tried, self.is_complete
        mixes = [mix for mix in self._mixes(limit) if best is None or self._rank(mix) < self._rank(best)]
        least = self._room.least_price([offer.price for offer in self._offers])
        if is_least := best is not None and limit <= least + _CENT:
            self.is_complete = was_complete  # no mix is cheaper, however many there are
        for mix in sorted(mixes, key=self._rank):
            if self.tried - before >= _MOST_TRIES:
                self.is_complete = self.is_complete and is_least
                return best
            if self._is_enough(mix):
                return mix
        return best

    def _is_enough(self, counts: _Vector) -> bool:
        if self._room.is_too_little(counts):
            return False
        self.tried += 1
        pods = len(self._placer.pods)
        return not self.result(self._placer, counts, pods).is_cut

    def _of_one_group(self, plenty: _Vector | None) -> _Vector | None:
        """The cheapest mix of only one group of similar offers, evenly; if none is enough, `plenty`."""
        found = [] if plenty is None else [plenty]
        for group in self._groups:
            limit = sum(self._most[each] for each in group)
            enough = next((mix for n in range(limit + 1) if self._is_enough(mix := self._evenly(group, n))), None)
            found += [enough] if enough is not None else []
        return min(found, key=self._rank, default=None)

    def _evenly(self, group: Sequence[int], number: int) -> _Vector:
        counts = [0] * len(self._offers)
        for _ in range(number):
            open_ones = [each for each in group if counts[each] < self._most[each]]
            counts[min(open_ones, key=lambda each: counts[each])] += 1
        return tuple(counts)

    def _rank(self, counts: _Vector) -> tuple[float, int, int, _Vector]:
        uneven = sum(counts[each] ** 2 for group in self._groups for each in group if len(group) > 1)
        return self.price(counts), sum(counts), uneven, tuple(-count for count in counts)

    def _mixes(self, price: float) -> list[_Vector]:
        """Mixes for at most this price that may be enough: of all offers, or, if these are too many, evenly within each
        similar group."""
        prices = [offer.price for offer in self._offers]
        found = list(islice(_vectors(self._most, prices, price), _MOST_MIXES + 1))
        if len(found) > _MOST_MIXES:
            self.is_complete = False
            limits = tuple(sum(self._most[each] for each in group) for group in self._groups)
            numbers = islice(_vectors(limits, [prices[group[0]] for group in self._groups], price), _MOST_MIXES)
            found = [self._together(each) for each in numbers]
        return [mix for mix in found if not self._room.is_too_little(mix)]

    def _together(self, numbers: _Vector) -> _Vector:
        parts = [self._evenly(group, number) for group, number in zip(self._groups, numbers, strict=True)]
        return tuple(map(sum, zip(*parts, strict=True)))


def _vectors(limits: _Vector, prices: Sequence[float], price: float) -> Iterator[_Vector]:
    """All counts up to these limits for at most this price."""
    if not limits:
        yield ()
        return
    for first in range(limits[0] + 1):
        left = price - first * prices[0]
        if left < -_CENT:
            return
        for rest in _vectors(limits[1:], prices[1:], left):
            yield (first, *rest)


def _similar(offers: Sequence[NodeOffer]) -> tuple[tuple[int, ...], ...]:
    """The positions of the offers of each group of similar ones."""
    groups: dict[object, list[int]] = {}
    for place, offer in enumerate(offers):
        node = offer.template.node
        labels = frozenset(pair for pair in node.labels.items() if not _tells_apart(*pair, node.name))
        sizes = frozenset(node.allocatable.items())
        groups.setdefault((offer.price, sizes, frozenset(node.taints), labels), []).append(place)
    return tuple(map(tuple, groups.values()))


def _tells_apart(key: str, value: str, node_name: str) -> bool:
    return key in _OF_GROUP or key.endswith(_OF_PLACE) or value == node_name
