"""The possible searches of a scheduler that does not check every node, with their probabilities.

Three facts about the scheduler's search of its node list cannot be observed: the position where it starts, the number
of parallel workers, and the order of the nodes. So a drain is simulated for many starts at once, for several numbers of
workers and for each possible order. Each `Likely` is one of these searches.
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
# For all numbers of workers and orders together: with 5 numbers of workers and 1 order, each pair has 32 starts.
MOST_SEARCHES = 160
# Few, because each extender is called once for each search.
_MOST_WITH_EXTENDERS = 8
# If more nodes than this are equally good, even a slightly different start usually leads to a different one of these
# nodes. The start is not known exactly, so all of these nodes count as equally likely.
_FEW_EQUALS = 8
# If at least this number of searches is simulated, leaving out one of them changes the probabilities only a little.
_MANY = 32

# The probability, in each cycle, that the next search starts further from the computed start than any of `STEPS`, so
# that a learned search is wrong from then on. The number was chosen when this had happened in three of about a thousand
# recorded cycles. In the clusters of bench/accuracy/cycles.md, which were recorded later, it happened in 10 of 1,199
# cycles (the column `far off`).
_LOSES = 0.002
# After more cycles of other pods than this, the position of the start counts as unknown.
_MOST_OTHERS = 30

# Groups of nodes, each with its probability. Within a group, every node is equally likely.
Shares = tuple[tuple[tuple[str, ...], float], ...]


class Draw(Value):
    """Chooses pseudo-randomly among equal options. The same seed always gives the same choices. Seed 0 always chooses
    the first option. A caller that knows the scheduler's own choice lists it as the first option."""

    seed: int = 0

    def among(self, number: int, about: str) -> int:
        """Returns the position of the chosen option among `number` options. `about` is a text that identifies the
        choice: with the same seed, the same text always gives the same position."""
        return crc32(f"{self.seed} {about}".encode()) % number if self.seed and number else 0


class Likely(Value):
    """One way in which the scheduler may search its nodes in its next cycle, and its probability (`weight`). The
    weights of all possible searches add up to 1.

    `number` is 0 if the search was not learned from observed bindings. If the search was learned, the simulation
    changes the chosen node or the next start in some cycles at random, and `number` is the seed of these changes. The
    changes are needed because the real search may start a few nodes before or after the computed start, may find nodes
    with equal scores in another order, or may follow a cycle that nobody observed. `lost` is the search to simulate
    after an unobserved cycle.

    `others` is how many pods per second are bound outside of drains. The cycle of such a pod also moves the start of
    the next search. Each number in `strides` is a possible distance of this move, in nodes.
    """

    search: Search
    weight: float
    number: int = 0
    lost: Search | None = None
    others: float = 0.0
    strides: tuple[int, ...] = ()


class Way(Value):
    """All possible searches of the scheduler after which the simulation places a pod on the same node (`node`), or on
    no node.

    `shares` says where the real scheduler would place the pod after these searches. Usually that is `node` alone, with
    the probability 1. If a search finds several equal nodes and the real scheduler chooses one of them at random,
    `shares` has all of these nodes. `shares` is empty if the searches find no node.
    """

    node: str  # empty if no node fits
    result: CycleResult
    searches: tuple[Likely, ...]
    shares: Shares


def possible_searches(
    snapshot: Snapshot, scheduler: Scheduler, most: int = MOST_SEARCHES, start: int | None = None
) -> tuple[Likely, ...]:
    """Returns at most `most` ways in which the scheduler may search its nodes next. The ways differ in the number of
    parallel workers, in the order of the node list, and in the position where the search starts. If `start` is given,
    all searches start there; otherwise the starts are spread evenly over the node list. Returns an empty tuple if the
    scheduler checks every node."""
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
    """Returns at most `most` searches with evenly spaced starts, for several numbers of workers and each known order of
    nodes. Leaves out random orders. `turn` is the number of nodes by which every start is moved. Returns no searches
    if the scheduler checks every node."""
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
    """Chooses one search at random: one of `learnt` if this argument is given, otherwise one of the possible searches.
    The seed of `draw` decides which. Returns a tuple with the chosen search. Returns an empty tuple if the seed of
    `draw` is 0, or if there are no possible searches because the scheduler checks every node."""
    possible = (possible_searches(snapshot, scheduler) if learnt is None else learnt) if draw.seed else ()
    return tuple(replace_value(each, weight=1.0) for each in possible[draw.among(len(possible), "search") :][:1])


def after_others(searches: tuple[Likely, ...], pod: str, seconds: float) -> tuple[Likely, ...]:
    """Returns the searches that are possible after `seconds` have passed. In this time, the scheduler may have bound
    pods outside of the drain. Each such binding has moved the start of the scheduler's next search. `pod` is the key of
    the pod that the drain's simulation schedules next."""
    if not any(each.others for each in searches):
        return searches
    return tuple(_after_others(each, pod, each.others * seconds) for each in searches)


def _after_others(likely: Likely, pod: str, expected: float) -> Likely:
    """Moves the start of the search as if the scheduler had bound a random number of other pods, on average `expected`.
    The number has a geometric distribution, whose wide tail is needed because `expected` is only an estimate."""
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
    """Whether the possible searches of the scheduler are so few that each of them matters: the probability (`weight`)
    of the first search is above 1/32. False if there are no searches."""
    return bool(searches) and searches[0].weight > 1.0 / _MANY


def ways(pod: str, searches: Sequence[Likely], results: Sequence[CycleResult]) -> dict[str, Way]:
    """Groups the scheduler's possible searches by the node that each search chooses for the pod. The most likely node
    comes first. Searches that find no node have the key ""."""
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
    """Returns the weighted average of several probability distributions over nodes. Each element of `parts` is a pair:
    a weight, and a distribution."""
    total = sum(weight for weight, _ in parts)
    sums: dict[tuple[str, ...], float] = {}
    for weight, shares in parts:
        for nodes, share in shares:
            sums[nodes] = sums.get(nodes, 0.0) + share * weight / total
    return tuple(sums.items())


def _taken(result: CycleResult, turn: int) -> tuple[str, tuple[str, ...]]:
    """Returns the node that the scheduler chooses in this cycle, and all equally good nodes that it might choose
    instead. `turn` is a number that selects one of the equally good nodes."""
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
    """Returns the result of the simulated cycle, or sometimes a result that deviates from it at random. If `likely` was
    learned from bindings, this function assumes that in some cycles one parallel worker is ahead of another worker. In
    such a cycle, the scheduler may choose any of the equally good nodes, so the returned result has a random node of
    `result.best`."""
    if len(result.best) < 2 or not _is_ahead(likely, pod):
        return result
    return replace_value(result, node=result.best[crc32(f"{likely.number} among {pod}".encode()) % len(result.best)])


def _after(likely: Likely, result: CycleResult, start: int, pod: str) -> Likely:
    """Returns the scheduler's search in the next cycle. `start` is the position at which this search starts according
    to the simulated cycle.

    If `likely` was learned from bindings, the function sometimes returns another search, because real searches also
    differ from simulated searches. In some cycles, the returned search starts a few nodes before or after `start`. In a
    few cycles, the function returns the search `likely.lost`, which stands for a search after an unobserved cycle.
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
    """Returns by how many nodes the start of a learned search differs from the computed start. `moves` is the
    probability that this number is one of `STEPS`; otherwise the number is 0. `chance` is a random number between 0 and
    1."""
    for step, share in STEPS.items():
        chance -= share * moves
        if chance < 0:
            return step
    return 0


def _drawn(number: int, about: str) -> float:
    """Returns a pseudo-random number from 0 to 1, always the same for the same arguments."""
    return crc32(f"{number} {about}".encode()) / 2**32
