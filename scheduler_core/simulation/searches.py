"""The possible searches of a scheduler that does not check every node, with their probabilities.

Start, number of parallel workers and order of the nodes cannot be observed. So a drain is simulated for many starts at
once, for several numbers of workers and for each possible order; each `Likely` is one such search.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from zlib import crc32

from scheduler_core.cycle import Scheduler
from scheduler_core.cycle_result import CycleResult
from scheduler_core.sampling import Search
from scheduler_core.simulation.scenario_parts.deviations import AHEAD, STEPS, moves_start
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value, replace_value

# Usual numbers of processors. The scheduler's `parallelism`, by default 16, is the largest number of workers.
_WORKERS = (1, 2, 4, 8, 16)
# Of all numbers of workers and orders together: with 5 numbers of workers and 1 order, each pair has 32 starts.
MOST_SEARCHES = 160
# Few, because each extender is called once for each search.
_MOST_WITH_EXTENDERS = 8
# If more nodes than this are equally good, even a slightly different start usually leads to a different one. The start
# is not known exactly, so all of them count as equally likely.
_FEW_EQUALS = 8
# From so many simulated searches on, leaving one out changes the probabilities only a little.
_MANY = 32

# The probability, in each cycle, that the next search starts further from the computed start than any of `STEPS`, so
# that a learned search is wrong from then on. Chosen when this had happened in three of about a thousand recorded
# cycles. In the clusters of bench/accuracy/cycles.md, which were recorded later, it happened in 10 of 1,199 cycles (the
# column `far off`).
_LOSES = 0.002
# After more cycles of other pods than this, the start counts as unknown.
_MOST_OTHERS = 30

# Groups of nodes with their probability; within a group, all are equally likely.
Shares = tuple[tuple[tuple[str, ...], float], ...]


class Draw(Value):
    """Chooses pseudo-randomly, always the same by seed; seed 0 the first option, where a caller puts the scheduler's
    own choice."""

    seed: int = 0

    def among(self, number: int, about: str) -> int:
        """The position of the chosen one of `number` options. `about` identifies the choice: same seed, same text,
        same position."""
        return crc32(f"{self.seed} {about}".encode()) % number if self.seed and number else 0


class Likely(Value):
    """A possible search of the next cycle, and its probability (`weight`). The weights of all add up to 1.

    `number` is 0 for a search that was not learned. For a learned one it is a seed by which some cycles get another
    node or next start: a real search may start a few nodes off, find equal nodes in another order, or follow a cycle
    that nobody observed. After such a cycle, `lost` is simulated.

    `others` is how many pods per second are bound outside of drains; each moves the next start, by one of `strides`
    nodes.
    """

    search: Search
    weight: float
    number: int = 0
    lost: Search | None = None
    others: float = 0.0
    strides: tuple[int, ...] = ()


class Way(Value):
    """The searches after which the simulation places a pod on the same node, or on none.

    `shares` is where the real scheduler would place it: usually on `node` alone, with probability 1; on all of several
    equal nodes if it chooses at random; empty if no node is found.
    """

    node: str  # empty if no node fits
    result: CycleResult
    searches: tuple[Likely, ...]
    shares: Shares


def possible_searches(
    snapshot: Snapshot, scheduler: Scheduler, most: int = MOST_SEARCHES, start: int | None = None
) -> tuple[Likely, ...]:
    """At most `most` possible next searches, with several numbers of workers and orders. All start at `start` if it
    is given, otherwise evenly spread. Empty if the scheduler checks every node."""
    nodes, configuration = len(snapshot.nodes), scheduler.configuration
    if all(scheduler.nodes_wanted_by(each, nodes) >= nodes for each in configuration.profiles):
        return ()
    most = min(most, _MOST_WITH_EXTENDERS) if configuration.extenders else most
    workers = _workers(scheduler)
    if not scheduler.kube_version.shuffles_first_nodes:
        return _in_orders(range(len(snapshot.columns.tree_orders)), workers, nodes, most, start)
    by_age = len(snapshot.columns.tree_orders) - 1
    known = _in_orders((by_age,), workers, nodes, max(1, most // 2), start)
    drawn = max(1, most // 2) if most > 1 else 0
    begins = ((number * nodes // max(1, drawn)) if start is None else start for number in range(drawn))
    shuffled = tuple(
        Likely(Search(begin, workers[number % len(workers)], shuffle=number + 1), 1.0 / (2 * drawn))
        for number, begin in enumerate(begins)
    )
    share = 0.5 if shuffled else 1.0
    return (*(replace_value(each, weight=each.weight * share) for each in known), *shuffled)


def in_known_orders(snapshot: Snapshot, scheduler: Scheduler, most: int, turn: int = 0) -> tuple[Likely, ...]:
    """At most `most` searches with evenly spaced starts, all moved by `turn` nodes, for several numbers of workers
    and each known order; no random orders. Empty if the scheduler checks every node."""
    nodes = len(snapshot.nodes)
    if not possible_searches(snapshot, scheduler, 1):
        return ()
    most = min(most, _MOST_WITH_EXTENDERS) if scheduler.configuration.extenders else most
    first = 0 if not scheduler.kube_version.shuffles_first_nodes else len(snapshot.columns.tree_orders) - 1
    # Counted from the last order, which is the order by age, because the number of orders may change with the nodes.
    orders = range(first - len(snapshot.columns.tree_orders), 0)
    found = _in_orders(orders, _workers(scheduler), nodes, most, None)
    return tuple(
        replace_value(each, search=replace_value(each.search, start=(each.search.start + turn) % nodes))
        for each in found
    )


def _workers(scheduler: Scheduler) -> list[int]:
    return sorted({min(each, scheduler.configuration.parallelism) for each in _WORKERS})


def _in_orders(
    orders: Sequence[int], workers: Sequence[int], nodes: int, most: int, start: int | None
) -> tuple[Likely, ...]:
    kinds = [(each, order) for order in orders for each in workers]
    kinds = kinds[:: -(-len(kinds) // most)]
    if start is not None:
        return tuple(Likely(Search(start, side_by_side, order), 1.0 / len(kinds)) for side_by_side, order in kinds)
    starts = max(1, min(nodes, most // len(kinds)))
    weight = 1.0 / (starts * len(kinds))
    # Each kind has other starts, so that the starts of all kinds together are evenly spaced.
    return tuple(
        Likely(Search(int((turn + number / len(kinds)) * nodes / starts), side_by_side, order), weight)
        for number, (side_by_side, order) in enumerate(kinds)
        for turn in range(starts)
    )


def drawn_search(
    snapshot: Snapshot, scheduler: Scheduler, draw: Draw, learnt: tuple[Likely, ...] | None = None
) -> tuple[Likely, ...]:
    """One search that the seed of `draw` chooses from `learnt` or else from the possible ones. Empty with seed 0, or
    if the scheduler checks every node."""
    possible = (possible_searches(snapshot, scheduler) if learnt is None else learnt) if draw.seed else ()
    return tuple(replace_value(each, weight=1.0) for each in possible[draw.among(len(possible), "search") :][:1])


def after_others(searches: tuple[Likely, ...], pod: str, seconds: float) -> tuple[Likely, ...]:
    """The searches after `seconds` in which pods outside of the drain may have been bound and have moved the start.
    `pod` is the key of the pod that is scheduled next."""
    if not any(each.others for each in searches):
        return searches
    return tuple(_after_others(each, pod, each.others * seconds) for each in searches)


def _after_others(likely: Likely, pod: str, expected: float) -> Likely:
    """Moves the start as if a random number of other pods had been bound, on average `expected`: geometrically
    distributed, because the estimate needs a wide tail."""
    if not expected:
        return likely
    chance = max(_drawn(likely.number, f"others {pod}"), 1e-12)
    number = int(log(chance) / log(expected / (1.0 + expected)))
    if number > _MOST_OTHERS or (number and not likely.strides):
        return likely if likely.lost is None else replace_value(likely, search=likely.lost)
    places = [crc32(f"{likely.number} other {turn} {pod}".encode()) % len(likely.strides) for turn in range(number)]
    moved = sum(likely.strides[place] for place in places)
    return (
        replace_value(likely, search=replace_value(likely.search, start=likely.search.start + moved))
        if moved
        else likely
    )


def are_few(searches: Sequence[Likely]) -> bool:
    """Whether each of the searches matters: the first one's weight is above 1/32."""
    return bool(searches) and searches[0].weight > 1.0 / _MANY


def ways(pod: str, searches: Sequence[Likely], results: Sequence[CycleResult]) -> dict[str, Way]:
    """Groups the searches by the node that they choose, the most likely first; "" for none."""
    # Scenarios that have only one search each must not all choose the same one of several equal nodes.
    chance = crc32(f"{pod} {searches[0].search}".encode())
    found: dict[str, list[tuple[Likely, CycleResult, tuple[str, ...]]]] = {}
    for turn, (likely, result) in enumerate(zip(searches, results, strict=True)):
        node, equals = _taken(_with_deviation(likely, result, pod), chance + turn)
        onward = likely if result.next_start is None else _after(likely, result, result.next_start, pod)
        found.setdefault(node, []).append((onward, result, equals))
    made = {node: _way(node, each) for node, each in found.items()}
    return dict(sorted(made.items(), key=lambda pair: (-weight_of(pair[1].searches), pair[0])))


def weight_of(searches: Sequence[Likely]) -> float:
    return sum(each.weight for each in searches)


def mixed(parts: Sequence[tuple[float, Shares]]) -> Shares:
    """The weighted average of distributions over nodes, each given with its weight."""
    total = sum(weight for weight, _ in parts)
    sums: dict[tuple[str, ...], float] = {}
    for weight, shares in parts:
        for nodes, share in shares:
            sums[nodes] = sums.get(nodes, 0.0) + share * weight / total
    return tuple(sums.items())


def _taken(result: CycleResult, turn: int) -> tuple[str, tuple[str, ...]]:
    """The node that this cycle chooses, and all equally good ones; `turn` selects one of them."""
    if result.node is None:
        node = result.preemption.node if result.preemption else ""
        return node, (node,)
    depends_on_start = result.sample is not None and len(result.best) <= _FEW_EQUALS
    if len(result.best) == 1 or depends_on_start:
        return result.node, (result.node,)
    return result.best[turn % len(result.best)], result.best


def _way(node: str, parts: Sequence[tuple[Likely, CycleResult, tuple[str, ...]]]) -> Way:
    shares = mixed([(likely.weight, ((equals, 1.0),)) for likely, _, equals in parts])
    return Way(node, parts[0][1], tuple(likely for likely, _, _ in parts), shares if node else ())


def _with_deviation(likely: Likely, result: CycleResult, pod: str) -> CycleResult:
    """The cycle's result or, for a learned search, in some cycles one with a random node of `result.best`: a worker
    is ahead."""
    if len(result.best) < 2 or not _is_ahead(likely, pod):
        return result
    return replace_value(result, node=result.best[crc32(f"{likely.number} among {pod}".encode()) % len(result.best)])


def _after(likely: Likely, result: CycleResult, start: int, pod: str) -> Likely:
    """The search of the next cycle; `start` is where it starts by the simulated cycle.

    For a learned search, in some cycles a few nodes off, and in a few cycles `likely.lost`, because real searches
    deviate.
    """
    if likely.number == 0:
        return replace_value(likely, search=replace_value(likely.search, start=start))
    drawn = _drawn(likely.number, f"start {pod}")
    if drawn < _LOSES and likely.lost is not None:
        return Likely(likely.lost, likely.weight)
    step = _step((drawn - _LOSES) / (1.0 - _LOSES), moves_start(result)) if _is_ahead(likely, pod) else 0
    return replace_value(likely, search=replace_value(likely.search, start=start + step))


def _is_ahead(likely: Likely, pod: str) -> bool:
    return likely.number > 0 and _drawn(likely.number, f"ahead {pod}") < AHEAD


def _step(chance: float, moves: float) -> int:
    """By how many nodes the start of a learned search is off: one of `STEPS` with the probability `moves`, otherwise
    0. `chance` is from 0 to 1."""
    for step, share in STEPS.items():
        chance -= share * moves
        if chance < 0:
            return step
    return 0


def _drawn(number: int, about: str) -> float:
    """Pseudo-random from 0 to 1, always the same for the same arguments."""
    return crc32(f"{number} {about}".encode()) / 2**32
