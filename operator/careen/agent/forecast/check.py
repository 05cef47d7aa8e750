"""Checks after a drain whether the replacement pods run where the forecast said, and counts hits and misses in a
metric.

The agent writes the forecast on the Node together with the cordon. The agent checks the forecast when it releases the
node's claim in the cluster's lock, because the replacement pods run by then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from careen.agent.telemetry.metrics import Metrics
from careen.agent.turn import Turned
from careen.cluster.pods import places_of
from careen.cluster.wire.api import ClusterApi
from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.phases import Phase
from careen.core.facts.progress import OwnerHealth, Progress
from careen.core.facts.times import from_rfc3339
from careen.core.facts.untrusted import object_of

Landings = Mapping[str, tuple[str, ...]]


class Score(NamedTuple):
    """Numbers of evicted pods, by whether their forecast was right. A pod is a hit if its replacement runs on one of
    the nodes in the pod's forecast, and a miss if the replacement runs on another node.

    A pod is superseded, neither hit nor miss, if its controller has not replaced it (scaled down, deleted, or a Job
    that waits). It is also superseded if its forecast was shortened and does not contain the node of the replacement.

    `firsts` is the number of pods whose replacement runs on the first node in their forecast.
    """

    hits: int
    misses: int
    superseded: int = 0
    firsts: int = 0

    def plus(self, other: Score) -> Score:
        """Returns the sum of this score and `other`."""
        return Score(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class EndedDrain(NamedTuple):
    """A finished drain. `landings` is the forecast, `owners` are the controllers of the moved pods, and `since` is when
    the drain began. `sampled` is the set of pods for which kube-scheduler examined only some of the nodes."""

    landings: Landings
    owners: tuple[OwnerHealth, ...]
    since: datetime
    sampled: frozenset[str] = frozenset()


def finished_drain(turned: Turned) -> EndedDrain | None:
    """Returns the drain that this round of the agent's loop (`turned`) finished by releasing the node's claim in the
    cluster's lock. Returns None if the round finished no drain, or if the Node has no forecast."""
    node = turned.observation.node
    if (
        turned.stop is not None
        or not isinstance(node, NodeView)
        or turned.decision.phase not in (Phase.IDLE, Phase.WAITING)
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
    owners = tuple(owner for owner in record.owners if owner.kind != "DaemonSet")  # none of its pods moved
    return EndedDrain(landings, owners, since, sampled) if since and landings and owners else None


async def check(api: ClusterApi, drain: EndedDrain, metrics: Metrics, node: str) -> None:
    """Reads where the replacement pods run, and counts hits and misses. Raises `ClusterError`. The agent's loop does
    not wait for this function."""
    for is_sampled, score in (await scores_of(api, drain)).items():
        sampled = str(is_sampled).lower()
        metrics.forecast_pods.labels(node, "hit", sampled).inc(score.hits)
        metrics.forecast_pods.labels(node, "miss", sampled).inc(score.misses)
        metrics.forecast_pods.labels(node, "superseded", sampled).inc(score.superseded)
        metrics.forecast_first.labels(node, "hit", sampled).inc(score.firsts)
        metrics.forecast_first.labels(node, "miss", sampled).inc(score.hits + score.misses - score.firsts)


async def scores_of(api: ClusterApi, drain: EndedDrain) -> dict[bool, Score]:
    """Returns two scores: under the key True the score of the pods for which kube-scheduler examined only some of the
    nodes, and under the key False the score of all other pods. Lists the pods of each namespace once."""
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
    """Returns the score of the pods of one controller. `said` contains the nodes in the forecast of each evicted pod.
    `places` contains the node of each replacement pod, or an empty text if the replacement has no node yet."""
    whole = [nodes for nodes in said if keys.AND_OTHERS not in nodes]
    hits = most_matches(said, places)
    not_replaced = max(0, len(said) - len(places))
    misses = max(0, len(whole) - most_matches(whole, places) - not_replaced)
    firsts = most_matches([nodes[:1] for nodes in said], places)
    return Score(hits=hits, misses=misses, superseded=len(said) - hits - misses, firsts=min(firsts, hits + misses))


def most_matches(said: Sequence[tuple[str, ...]], places: Sequence[str]) -> int:
    """Returns how many of the replacement pods run on a node of their forecast. `said` contains the nodes of each
    forecast, and `places` the node of each replacement pod. Each forecast is paired with at most one replacement. The
    replacements of one owner are interchangeable, so the function forms as many matching pairs as possible.

    The algorithm is augmenting paths in a bipartite graph. It is fast enough, because each side has at most the pods of
    one node.
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
    """Whether this owner created the pod, judged by the pod's name, which begins with the name of its controller. If
    several owners' names match, the longest name decides."""
    namespace, _, name = title.partition("/")
    named = [each for each in owners if name.startswith(f"{each.name}-")]
    return namespace == owner.namespace and bool(named) and max(named, key=lambda each: len(each.name)) is owner


def _landings(text: str | None) -> Landings:
    """Parses the Node's forecast annotation. Returns the forecast nodes of each pod, with the pod's `namespace/name` as
    the key. Returns an empty dictionary if the annotation is unreadable."""
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


# More pods than four nodes have by the kubelet's default limit of 110. The limit is necessary because anybody may have
# written the annotation, and `most_matches` recurses up to once for each pod.
_MOST_PODS = 500
