"""Scores forecasts: compares the nodes that a forecast lists for the pods of a drain with the nodes on which the
replacement pods were placed. Pods are compared for each owner, because the replicas of one owner are interchangeable.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from careen.agent.forecast.check import most_matches
from scheduler_core.simulation.forecast import Outcome, PodForecast
from tests.cluster.harness.measures.drains import Drain, PodEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """An owner with replacement pods on nodes that the forecast did not list. `said` has the nodes that the forecast
    listed for each pod, and `went` has the nodes of the replacement pods.
    """

    node: str
    owner: str
    said: tuple[tuple[str, ...], ...]
    went: tuple[str, ...]
    reason: str


@dataclass(slots=True, kw_only=True)
class Score:
    """The counts over several drains. `pods` counts the pods that were forecast to move and were replaced before their
    node was uncordoned. `superseded` counts the pods that were forecast to move and were not replaced before that time.
    """

    drains: int = 0
    drains_in_order: int = 0
    pods: int = 0
    inside: int = 0
    firsts: int = 0  # landed on the node that was named first
    single: int = 0
    single_equal: int = 0
    single_in_order: int = 0
    single_equal_in_order: int = 0
    superseded: int = 0
    sizes: int = 0
    pending_said: int = 0
    pending_seen: int = 0
    misses: list[Miss] = field(default_factory=list)

    @property
    def mean_size(self) -> float:
        """Return the mean number of nodes that a forecast lists for one pod."""
        return self.sizes / (self.pods + self.superseded) if self.pods else 0.0

    def add(self, other: Score) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


def score(drain: Drain) -> Score:
    """Compare the forecast of one drain with the drain's events. Count the replacement pods that were placed on a node
    of the forecast.
    """
    in_order = not (why := disorder(drain))
    result = Score(drains=1, drains_in_order=int(in_order))
    bound = {event.uid: event.node for event in drain.events if event.kind == "bound"}
    made = [event for event in drain.events if event.kind == "created"]
    evicted = Counter(event.owner for event in drain.events if event.kind == "evicted")
    said: dict[str, list[PodForecast]] = defaultdict(list)
    for pod in drain.forecast.with_outcome(Outcome.MOVES):
        said[pod.owner].append(pod)
    for owner, pods in said.items():
        # Pods that left earlier come first; nothing else distinguishes pods of one owner.
        own = [event for event in made if event.owner == owner][drain.lacking.get(owner, 0) :]
        went = [bound[event.uid] for event in own if event.uid in bound]
        _count(result, drain.node, pods, went, max(0, evicted[owner] - len(own)), why)
    result.pending_said = drain.forecast.count(Outcome.PENDING) + drain.forecast.count(Outcome.RETURNS)
    result.pending_seen = sum(1 for event in made if event.uid not in bound)
    return result


def _count(result: Score, node: str, pods: Sequence[PodForecast], went: list[str], late: int, why: str) -> None:
    late = min(late, len(pods))
    sets = [pod.landing for pod in pods]
    inside = min(most_matches(sets, went), len(pods) - late)
    single = [each for each in sets if len(each) == 1]
    judged = max(0, len(single) - late)
    equal = min(most_matches(single, went), judged)
    result.superseded += late
    result.pods += len(pods) - late
    result.inside += inside
    result.firsts += min(most_matches([nodes[:1] for nodes in sets], went), inside)
    result.single += judged
    result.single_equal += equal
    result.sizes += sum(map(len, sets))
    if not why:
        result.single_in_order += judged
        result.single_equal_in_order += equal
    if inside < len(pods) - late:
        result.misses.append(
            Miss(node=node, owner=pods[0].owner, said=tuple(sets), went=tuple(went), reason=why or "not explained")
        )


def disorder(drain: Drain) -> str:
    """Return how the events of the drain contradict the assumptions of a forecast, or an empty text.

    A forecast makes four assumptions. Pods are evicted in the order of the forecast, but pods under a budget may be
    evicted later. Each replacement of a ReplicaSet's pod is bound before the next eviction. Jobs replace their pods
    last. Every created pod replaces a pod that this drain evicted. For example, a Job's late replacement of a pod from
    an earlier drain contradicts the last assumption.
    """
    if stranger := _stranger(drain):
        return f"{stranger} was created, but replaces no pod of this drain"
    if early := _early(drain):
        return early
    place = {pod.title: number for number, pod in enumerate(drain.forecast.pods)}
    asked = [
        event for event in drain.events if event.kind == "evicted" and event.node == drain.node and event.title in place
    ]
    refused = _refused(drain)
    for before, after in pairwise(asked):
        if place[after.title] < place[before.title] and after.title not in refused:
            return f"{after.title} was evicted after {before.title}"
        late = _unbound_between(drain.events, before, after)
        if late:
            return f"{late} had no node yet when {after.title} was evicted"
    return ""


def _stranger(drain: Drain) -> str:
    """Return the name of the first created pod that replaces no pod of this drain, or an empty text."""
    owed: Counter[str] = Counter()
    for event in drain.events:
        if event.kind == "evicted":
            owed[event.owner] += 1
        elif event.kind == "created":
            if not owed[event.owner] or drain.lacking.get(event.owner):
                return event.title
            owed[event.owner] -= 1
    return ""


def _early(drain: Drain) -> str:
    """Return a sentence about a pod that a Job created earlier than a forecast assumes, or an empty text if there is no
    such pod. A forecast assumes that Jobs replace their evicted pods last: after all evictions, and after all other
    owners have replaced their evicted pods. A forecast does not assume in which order several Jobs replace their
    pods."""
    away: list[PodEvent] = []  # evicted from this node and not replaced yet, Jobs' pods aside
    came = ""
    for event in drain.events:
        if event.kind == "evicted" and event.node == drain.node and event.owner:
            if came:
                return f"{came} was created before {event.title} was evicted"
            away += [] if _is_of_job(event) else [event]
        elif event.kind == "created" and _is_of_job(event):
            came = event.title
            if away:
                return f"{came} was created before a replacement of {away[0].title}"
        elif event.kind == "created":
            replaced = next((gone for gone in away if gone.owner == event.owner), None)
            away = [gone for gone in away if gone is not replaced]
    return ""


def _is_of_job(event: PodEvent) -> bool:
    return event.owner.startswith("Job ")


def _refused(drain: Drain) -> set[str]:
    """Return the pods under a disruption budget, because the API server may refuse their evictions at first."""
    return {pod.title for pod in drain.forecast.pods if pod.title in drain.budgeted}


def _unbound_between(events: Sequence[PodEvent], before: PodEvent, after: PodEvent) -> str:
    """`before` and `after` are two evictions. Return the name of the pod that replaces the first evicted pod, if the
    scheduler bound this replacement only after the second eviction. Otherwise return an empty text."""
    if not before.owner.startswith("ReplicaSet"):
        return ""
    made = next(
        (e for e in events if e.kind == "created" and e.owner == before.owner and e.version > before.version), None
    )
    if made is None:
        return ""
    bound = next((e for e in events if e.kind == "bound" and e.uid == made.uid), None)
    return made.title if bound is not None and bound.version > after.version else ""
