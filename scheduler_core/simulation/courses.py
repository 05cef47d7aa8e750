"""The courses that one drain may take, from the first eviction until nothing moves.

Evictions are asked one after another, in order. What a controller makes at once is placed before the next
eviction: that is how it goes on a real cluster, where an eviction takes the API server a tenth of a second and
a replacement has its node in a tenth of that. A StatefulSet's replacement comes when the old pod is gone, a
Job's later still.

A course is one way through. It divides where something is open: at a tie, because the scheduler picks one of
the equal nodes, and where pods end, because nobody can know which ends first. Courses that have become alike
are one again: replicas of one owner are interchangeable. `most` bounds how many are followed side by side; pods
judged after the bound was met are marked, for then a node may be missing from what is said of them. What the
courses say together is in `landings.py`.

Where the scheduler looks at a part of the nodes, a course also carries the searches that lead to it, each with its
weight (`searches.py`), and divides where they come to different nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from scheduler_core.cycle import CycleResult, NoProfileError, Scheduler
from scheduler_core.model.pod import Pod
from scheduler_core.simulation.evicted.evictions import BudgetLedger, EvictionRefusal
from scheduler_core.simulation.evicted.jobs import JobsAfter, after_evictions
from scheduler_core.simulation.evicted.replacements import Recreation, recreation_of, replacement_of
from scheduler_core.simulation.searches import Draw, Likely, Shares, Way, are_few, mixed, ways, weight_of
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value, replace_value

NOTHING_DRAWN = Draw()
_NEXT_ROUND = "(the next round first)"  # in no API name
_MOST_PREEMPTIONS = (
    200  # a chain of preemptions always ends, because priorities fall; this guards against our own mistake
)
# What controllers write on each pod that bears a number: of this pod, not of its kind.
_PERSONAL_LABELS = frozenset(
    {"statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index", "batch.kubernetes.io/job-completion-index"}
)


class Displaced(Value):
    """A pod that left its place and the replacement that looks for another; `arrival` is the place in the queue.

    `choices` are the nodes it may take in this course: its own, and those of the equals that no course of their
    own follows."""

    pod: Pod
    replacement: Pod
    arrival: int
    result: CycleResult | None = None
    landed: bool = False
    unknown: str = ""  # why nobody here can tell where it goes
    choices: tuple[str, ...] = ()
    shares: Shares = ()  # how likely each node is in this course; empty where nobody can tell
    score: int | None = None  # the total of the node, in the main course where several could take the pod
    runner_up: tuple[str, int] | None = None  # the best of the others
    is_after_cut: bool = False  # judged when courses had been left out already
    waited: bool = False  # it had no node before the drain

    @property
    def kind(self) -> Hashable:
        """See `kind_of`."""
        return kind_of(self.pod)


def kind_of(pod: Pod) -> Hashable:
    """Equal for pods that are interchangeable: their controller makes them alike, and nothing else tells them apart."""
    labels = frozenset(pair for pair in pod.labels.items() if pair[0] not in _PERSONAL_LABELS)
    return (pod.namespace, pod.owner, labels, pod.spec, pod.is_ready) if pod.owner else pod.key


@dataclass(slots=True)
class Course:
    """One course, between two steps. Everything in it but its own dictionaries is shared with the courses it
    divided from."""

    scheduler: Scheduler
    world: Snapshot
    ledger: BudgetLedger
    remaining: tuple[Pod, ...]  # to be asked in this round, in order
    displaced: dict[str, Displaced] = field(default_factory=dict)  # by the evicted pod's key
    refused: dict[str, EvictionRefusal] = field(default_factory=dict)
    held: tuple[Pod, ...] = ()  # refused in this round, to be asked in the next
    ending: tuple[Pod, ...] = ()  # evicted in this round, still on the node
    afterwards: tuple[Pod, ...] = ()  # evicted in this round, their replacements to come when they are gone
    at_last: tuple[Pod, ...] = ()  # evicted in any round, their replacements to come when all is over
    jobs: JobsAfter | None = None  # what the evictions make of the Jobs; None as long as no Job's pod was evicted
    healthy: tuple[Pod, ...] = ()  # of whom a replacement landed in this round: it counts for the budgets of the next
    pool: tuple[str, ...] = ()  # who comes next in an order that cannot be known
    postponed: tuple[str, ...] = ()  # of the pool: who comes only after the evictions of the next round
    line: tuple[str, ...] = ()  # who comes next, in order
    preemptions: int = 0
    tells_scores: bool = True  # of the nodes taken in the main course, and of the next best
    is_main: bool = True  # takes the scheduler's own pick at each tie, and the first of each pool
    is_over: bool = False
    searches: tuple[Likely, ...] = ()  # how the scheduler may go through its nodes; none: it looks at all
    ways: Mapping[str, Way] = field(default_factory=dict)  # by node, where the searches of the judged pod end
    is_cut: bool = False
    judged: Displaced | None = None  # whose node is open
    choices: tuple[str, ...] = ()  # what is open, as `_find_choices` says it

    # ---- one step ----

    def go_on(self) -> None:
        """On until something is open (`choices` has it), or to the end (`is_over`)."""
        while not self.is_over:
            self.choices = self._find_choices()
            if self.choices:
                return
            if self.line:
                self._try(self.displaced[self.line[0]])
            elif self.pool:
                self._take(self.pool[0])  # the others are of its kind
            elif self.remaining:
                self._evict(self.remaining[0])
            else:
                self._end_round()

    def _find_choices(self) -> tuple[str, ...]:
        """What is open: nodes for the pod that was judged, or keys of the pool, one of each kind; that of the
        main course first."""
        if self.ways:
            return tuple(self.ways)
        if self.judged is not None:
            return _open_nodes(self.judged)
        if self.line or not self.pool:
            return ()
        kinds = {self.displaced[key].kind: key for key in reversed(self.pool)}
        others = (_NEXT_ROUND,) if any(self.ledger.refusal(pod) is None for pod in self.remaining) else ()
        return (*reversed(kinds.values()), *others) if len(kinds) + len(others) > 1 else ()

    @property
    def question(self) -> str:
        """What is open, in words that tell it from other open questions."""
        if self.judged is not None:
            return f"{self.judged.pod.node_name} {self.judged.pod.key} {len(self.displaced)}"
        return " ".join(self.pool)

    def divided(self, ways: int, turn: int) -> list[Course]:
        """The courses into which the open question divides this one, at most `ways`; `turn` makes courses
        differ in what they pick."""
        choices, searches = self.choices, self.searches
        if ways < len(choices):
            choices = (*choices[turn % len(choices) :], *choices[: turn % len(choices)])
        picked = [choices[number * len(choices) // ways] for number in range(min(ways, len(choices)))]
        followed = set(picked)
        left_out = tuple(choice for choice in choices if choice not in followed)
        parts = [self, *(self._copy() for _ in picked[1:])]
        for number, (part, choice) in enumerate(zip(parts, picked, strict=True)):
            part.searches = searches[number :: len(parts)]
            part._choose(choice, left_out if part is self else ())
            part.is_cut = part.is_cut or (bool(left_out) and (not searches or are_few(searches)))
        return parts

    @property
    def most_ways(self) -> int:
        """Into how many it can divide: each part needs a search of its own, where searches are followed."""
        return len(self.searches) if self.searches else len(self.choices)

    @property
    def weight(self) -> float:
        """How likely this course is; 1 where nobody can tell."""
        return weight_of(self.searches) if self.searches else 1.0

    def _choose(self, choice: str, left_out: Sequence[str]) -> None:
        if self.ways:
            self._go(self.ways[choice])
        elif self.judged is not None:
            self._land(choice, left_out)
        elif choice == _NEXT_ROUND:
            self.pool, self.postponed = (), self.pool
        else:
            self._take(choice)

    def _take(self, key: str) -> None:
        self.pool = tuple(other for other in self.pool if other != key)
        self.line = (key,)

    def _copy(self) -> Course:
        return replace(
            self, is_main=False, displaced=dict(self.displaced), refused=dict(self.refused), ledger=self.ledger.copy()
        )

    # ---- evictions ----

    def _evict(self, pod: Pod) -> None:
        self.remaining = self.remaining[1:]
        refusal = self.ledger.refusal(pod)
        if refusal:
            self.refused[pod.key] = refusal
            self.held = (*self.held, pod)
            return
        self.refused.pop(pod.key, None)
        self.ledger.spend(pod)
        self.world = self.world.with_pod_terminating(pod.key)
        self.ending = (*self.ending, pod)
        match recreation_of(pod):
            case Recreation.AT_ONCE:
                self.line = (self._enqueue(pod),)
            case Recreation.AFTER_IT_IS_GONE:
                self.afterwards = (*self.afterwards, pod)
            case Recreation.MUCH_LATER:
                self.at_last = (*self.at_last, pod)

    def _end_round(self) -> None:
        """The evicted pods end; who waited for that comes now. Then those are asked again that a budget had
        refused, until a round moves nothing."""
        for pod in self.healthy:
            self.ledger.refill(pod)
        self.healthy = ()
        if self.ending or self.postponed:
            self.world = self.world.without_pods([pod.key for pod in self.ending])
            retried = tuple(each.pod.key for each in self.waiting)  # the postponed among them
            self.postponed = ()
            self.pool = (*retried, *(self._enqueue(pod) for pod in self.afterwards))
            self.remaining, self.held, self.ending, self.afterwards = self.held, (), (), ()
            self.line = self._who_waited  # they have stood in the queue for longer
        elif self.at_last:
            self.jobs = after_evictions(self.world.objects.jobs, self.at_last)
            self.pool = tuple(self._enqueue(pod) for pod in self.at_last if pod.key not in self.jobs.lost)
            self.at_last = ()
        else:
            self.is_over = True

    def enqueue_waiting(self, pods: Iterable[Pod]) -> None:
        """Pods that had no node before: those that only just came are placed now, the others are tried again
        when pods have gone."""
        for pod in pods:
            self.displaced[pod.key] = Displaced(pod, pod, len(self.displaced), waited=True)
        self.line = self._who_waited

    @property
    def _who_waited(self) -> tuple[str, ...]:
        waited = [each for each in self.displaced.values() if each.waited and not each.landed]
        return tuple(each.pod.key for each in sorted(waited, key=lambda each: (-each.pod.priority, each.arrival)))

    def _enqueue(self, pod: Pod) -> str:
        self.displaced[pod.key] = Displaced(pod, replacement_of(pod), len(self.displaced))
        return pod.key

    @property
    def waiting(self) -> list[Displaced]:
        """Those displaced and without a node, in the queue's order: priority, then arrival."""
        return sorted(
            (each for each in self.displaced.values() if not (each.landed or each.waited)),
            key=lambda each: (-each.pod.priority, each.arrival),
        )

    # ---- cycles ----

    def _try(self, each: Displaced) -> None:
        """One cycle for the first of the line. If it finds a node it has been judged, for its landing may be
        open between several."""
        result, unknown, found = None, "", {}
        try:
            found = self._search(each)
            result = next(iter(found.values())).result
            unknown = result.unknown or result.error
        except NoProfileError:
            unknown = (
                f"is scheduled by {each.pod.spec.scheduler_name}, whose profile is not known here (--scheduler-config)"
            )
        tried = replace_value(each, result=result, unknown=unknown, is_after_cut=self.is_cut)
        self.displaced[each.pod.key] = tried
        self.line = self.line[1:]
        if any(found) or (result is not None and (result.node is not None or result.preemption is not None)):
            self.judged, self.ways = tried, found if self.searches else {}
        elif each.waited:
            self.displaced[each.pod.key] = replace_value(tried, result=result and result.without_evidence())
            self.line = tuple(
                key for key in self.line if self.displaced[key].kind != each.kind
            )  # its like would fare no better

    def _search(self, each: Displaced) -> dict[str, Way]:
        """Where each search ends; one way where every node is looked at."""
        if not self.searches:
            result = self.scheduler.schedule(self.world, each.replacement)
            return {"": Way("", result, (), ())}
        searches = tuple(dict.fromkeys(likely.search for likely in self.searches))
        results = dict(zip(searches, self.scheduler.schedule_each(self.world, each.replacement, searches), strict=True))
        found = ways(each.pod.key, self.searches, [results[likely.search] for likely in self.searches])
        if set(found) == {""}:
            self.searches = found[""].searches
        return found

    def _go(self, way: Way) -> None:
        """The way that some of the searches take."""
        each, self.ways, self.searches = self.judged, {}, way.searches
        assert each is not None, "only a judged pod has ways"
        self.displaced[each.pod.key] = self.judged = replace_value(each, result=way.result, shares=way.shares)
        if way.node:
            self._land(way.node)
        else:
            self.judged = None  # an extender refused every node that these searches found

    def _land(self, node: str, left_out: Sequence[str] = ()) -> None:
        each, self.judged = self.judged, None
        assert each is not None, "only a judged pod lands"
        assert each.result is not None, "a judged pod has a result"
        victims = self._make_room(each.result)
        if each.result.node is None:
            # A cycle's own landing also promises volumes to the pod's claims; after a preemption that choice
            # belongs to a later cycle.
            self.world = self.world.with_pod_placed(each.replacement, node)
        else:
            taken = each.result if node == each.result.node else replace(each.result, node=node)
            self.world = self.scheduler.place(self.world, taken)
        told = _told(each.result) if self.is_main and self.tells_scores else {}
        self.displaced[each.pod.key] = replace_value(
            each,
            replacement=each.replacement.on_node(node),
            landed=True,
            choices=(node, *left_out),
            result=each.result.without_evidence(),
            **told,
        )
        if not victims and not each.waited:
            self.healthy = (*self.healthy, each.pod)

    def _make_room(self, result: CycleResult) -> list[Pod]:
        """Takes away whom the pod preempts; their controllers make them anew, and they look for another place next."""
        if result.node is not None or result.preemption is None or self.preemptions >= _MOST_PREEMPTIONS:
            return []
        keys = set(result.preemption.victims)
        victims = [pod for pod in self.world.pods_on(result.preemption.node) if pod.key in keys]
        self.preemptions += 1
        for victim in victims:
            self.world = self.world.without_pod(victim.key)
            self._displace_again(victim)
        return victims

    def _displace_again(self, victim: Pod) -> None:
        """A pod that is preempted. One that only just landed is the same displaced pod, at the end of the queue
        once more."""
        known = next(
            (each for each in self.displaced.values() if each.landed and each.replacement.key == victim.key), None
        )
        if known is not None:
            self.displaced[known.pod.key] = Displaced(
                known.pod, replacement_of(known.pod), len(self.displaced) + self.preemptions
            )
            self.line = (*self.line, known.pod.key)
        elif recreation_of(victim) in (Recreation.AT_ONCE, Recreation.AFTER_IT_IS_GONE):
            self.line = (*self.line, self._enqueue(victim))

    # ---- alike ----

    @property
    def likeness(self) -> Hashable:
        """Equal for courses that go on alike: the same kinds of pods stand on the same nodes and wait in the
        same order."""
        landed = Counter((each.kind, each.replacement.node_name) for each in self.displaced.values() if each.landed)
        return (
            frozenset(landed.items()),
            tuple(each.kind for each in self.waiting),
            tuple(self.displaced[key].kind for key in self.line),
            tuple(self.displaced[key].kind for key in self.pool),
            len(self.postponed),
            tuple(pod.key for pod in self.remaining),
            len(self.ending),
            tuple(pod.key for pod in self.held),
            self.ledger.state,
        )

    def absorb(self, other: Course) -> None:
        """Takes over what a course that is alike knows beyond this one: nodes that no course follows."""
        self.is_cut, self.is_main, is_theirs = self.is_cut or other.is_cut, self.is_main or other.is_main, other.is_main
        mine, self.searches = self.weight, (*self.searches, *other.searches)
        theirs: dict[Hashable, list[Displaced]] = {}
        for each in other.displaced.values():
            theirs.setdefault((each.kind, each.replacement.node_name), []).append(each)
        for key, each in self.displaced.items():
            twin = theirs[each.kind, each.replacement.node_name].pop()
            if is_theirs or twin.choices != each.choices or twin.shares != each.shares or twin.is_after_cut:
                self.displaced[key] = replace_value(
                    each,
                    result=twin.result if is_theirs else each.result,
                    score=twin.score if is_theirs else each.score,
                    runner_up=twin.runner_up if is_theirs else each.runner_up,
                    choices=tuple(dict.fromkeys((*each.choices, *twin.choices))),
                    shares=mixed([(mine, each.shares), (other.weight, twin.shares)]),
                    is_after_cut=each.is_after_cut or twin.is_after_cut,
                )


def _told(result: CycleResult) -> dict[str, Any]:
    return {"score": result.highest_total, "runner_up": result.runner_up}


def _open_nodes(judged: Displaced) -> tuple[str, ...]:
    result = judged.result
    assert result is not None, "a judged pod has a result"
    if result.node is None:
        assert result.preemption is not None, "a judged pod has a node, or preempts for one"
        return (result.preemption.node,)
    return (result.node, *(name for name in result.best if name != result.node))


def follow(first: Course, most: int, draw: Draw = NOTHING_DRAWN) -> list[Course]:
    """Every course that begins as `first` does, at its end, at most so many; the main course is the first of them.
    Where there are more, `draw` says which ones."""
    going: list[Course] = [first]
    over: list[Course] = []
    while going:
        for course in going:
            course.go_on()
        over += [course for course in going if course.is_over]
        going = _divided([course for course in going if not course.is_over], most - len(over), draw)
    over.sort(key=lambda course: not course.is_main)
    return over if len(over) < 2 else _merged(over)


def _divided(courses: Sequence[Course], most: int, draw: Draw) -> list[Course]:
    spare = most - len(courses)
    parts: list[Course] = []
    for turn, course in enumerate(courses):
        ways = min(len(course.choices), 1 + max(0, spare), course.most_ways)
        spare -= ways - 1
        parts += course.divided(ways, turn + draw.among(len(course.choices), course.question))
    return parts if len(parts) < 2 else _merged(parts)


def _merged(courses: Sequence[Course]) -> list[Course]:
    alike: dict[Hashable, Course] = {}
    for course in courses:
        known = alike.setdefault(course.likeness, course)
        if known is not course:
            known.absorb(course)
    return list(alike.values())
