"""Checks after a drain whether the replacement pods run where the forecast said, and counts hits and misses in a
metric.

The forecast was written on the Node with the cordon. It is checked when the claim is released, because the replacements
run by then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from careen.agent.telemetry.metrics import Metrics
from careen.agent.turn import TurnResult
from careen.cluster.pods import places_of
from careen.cluster.wire.api import ClusterApi
from careen.core.drain import baseline
from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.phases import Phase
from careen.core.facts.progress import OwnerHealth, Progress
from careen.core.facts.times import from_rfc3339
from careen.core.facts.untrusted import object_of

Landings = Mapping[str, tuple[str, ...]]


class Score(NamedTuple):
    """Numbers of evicted pods. Hit: the replacement runs on a node of the pod's forecast. Miss: on another node.

    Superseded, neither hit nor miss: the controller has not replaced the pod (scaled down, deleted, or a Job that
    waits), or the forecast was shortened and lacks the replacement's node. `firsts` counts replacements on the first
    node of their forecast.
    """

    hits: int
    misses: int
    superseded: int = 0
    firsts: int = 0

    def plus(self, other: Score) -> Score:
        """The sum."""
        return Score(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class EndedDrain(NamedTuple):
    """A finished drain. `landings` is the forecast, `owners` are the controllers of the moved pods, `sampled` the pods
    whose search was sampled."""

    landings: Landings
    owners: tuple[OwnerHealth, ...]
    since: datetime
    sampled: frozenset[str] = frozenset()


def finished_drain(result: TurnResult) -> EndedDrain | None:
    """The drain that this turn finished by releasing the claim; None if it finished none, or if the Node has no
    forecast."""
    node = result.observation.node
    if (
        result.stop is not None
        or not isinstance(node, NodeView)
        or result.decision.phase not in (Phase.IDLE, Phase.WAITING)
    ):
        return None
    record = node.written
    if not isinstance(record, Progress) or record.phase != Phase.SETTLING.value:
        return None
    written = node.annotations.get(keys.FORECAST)
    since, landings, shares = (
        from_rfc3339(record.drain_started_at),
        _landings(written),
        object_of(written).get("shares"),
    )
    sampled = frozenset(title for title in landings if isinstance(shares, dict) and title in shares)
    owners = tuple(each for each in record.owners if not baseline.is_of_the_node(each))  # none of its pods moved
    return EndedDrain(landings, owners, since, sampled) if since and landings and owners else None


async def check(api: ClusterApi, drain: EndedDrain, metrics: Metrics, node: str) -> None:
    """Counts hits and misses; the loop does not wait for it. Raises `ClusterError`."""
    for is_sampled, score in (await scores_of(api, drain)).items():
        sampled = str(is_sampled).lower()
        metrics.forecast_pods.labels(node, "hit", sampled).inc(score.hits)
        metrics.forecast_pods.labels(node, "miss", sampled).inc(score.misses)
        metrics.forecast_pods.labels(node, "superseded", sampled).inc(score.superseded)
        metrics.forecast_first.labels(node, "hit", sampled).inc(score.firsts)
        metrics.forecast_first.labels(node, "miss", sampled).inc(score.hits + score.misses - score.firsts)


async def scores_of(api: ClusterApi, drain: EndedDrain) -> dict[bool, Score]:
    """Two scores: of the sampled pods (True) and of all others (False). Lists the pods of each namespace once."""
    by_namespace: dict[str, list[OwnerHealth]] = defaultdict(list)
    for owner in drain.owners:
        by_namespace[owner.namespace].append(owner)
    scores = {False: Score(0, 0), True: Score(0, 0)}
    for namespace, owners in sorted(by_namespace.items()):
        said = {owner.uid: [title for title in drain.landings if _is_of(title, owner, owners)] for owner in owners}
        if not any(said.values()):
            continue
        places = await places_of(api, namespace, list(said), since=drain.since)
        for uid, titles in said.items():
            is_sampled = not drain.sampled.isdisjoint(titles)
            score = score_of_owner([drain.landings[title] for title in titles], places[uid])
            scores[is_sampled] = scores[is_sampled].plus(score)
    return scores


def score_of_owner(said: Sequence[tuple[str, ...]], places: Sequence[str]) -> Score:
    """The score of one controller's pods: the forecast nodes of each evicted pod, and the node of each replacement (""
    if it has none yet)."""
    whole = [nodes for nodes in said if keys.AND_OTHERS not in nodes]
    hits = most_matches(said, places)
    not_replaced = max(0, len(said) - len(places))
    misses = max(0, len(whole) - most_matches(whole, places) - not_replaced)
    firsts = most_matches([nodes[:1] for nodes in said], places)
    return Score(hits=hits, misses=misses, superseded=len(said) - hits - misses, firsts=min(firsts, hits + misses))


def most_matches(said: Sequence[tuple[str, ...]], places: Sequence[str]) -> int:
    """How many replacements run on a node of their forecast. Each forecast is paired with at most one replacement. The
    replacements of one owner are interchangeable, so as many pairs as possible are formed.

    Augmenting paths in a bipartite graph: fast enough, because each side has at most the pods of one node.
    """
    taken_by: dict[int, int] = {}

    def finds_place(forecast: int, tried: set[int]) -> bool:
        for place, node in enumerate(places):
            if node in said[forecast] and place not in tried:
                tried.add(place)
                if place not in taken_by or finds_place(taken_by[place], tried):
                    taken_by[place] = forecast
                    return True
        return False

    return sum(finds_place(forecast, set()) for forecast in range(len(said)))


def _is_of(title: str, owner: OwnerHealth, owners: Sequence[OwnerHealth]) -> bool:
    """Whether the pod's name begins with this owner's. Of several that match, the longest decides."""
    namespace, _, name = title.partition("/")
    named = [each for each in owners if name.startswith(f"{each.name}-")]
    return namespace == owner.namespace and bool(named) and max(named, key=lambda each: len(each.name)) is owner


def _landings(text: str | None) -> Landings:
    """The forecast nodes by `namespace/name` of the pod, from the Node's annotation; empty if it is unreadable."""
    pods = object_of(text).get("pods")
    found = (
        {title: _nodes(said) for title, said in pods.items()}
        if isinstance(pods, dict) and len(pods) <= _MOST_PODS
        else {}
    )
    return found if all(found.values()) else {}


def _nodes(said: object) -> tuple[str, ...]:
    if isinstance(said, str):
        return (said,)
    return tuple(said) if isinstance(said, list) and all(isinstance(node, str) for node in said) else ()


# More pods than four nodes have by the kubelet's default of 110. Anybody may have written the annotation, and
# `most_matches` recurses up to once for each pod.
_MOST_PODS = 500
