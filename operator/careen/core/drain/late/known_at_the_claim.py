"""What alerts and health queries said when the node was cordoned, kept on the Node until the reboot, and since when the
drained node waits for a refusal. A refusal after the drain is judged against it: what was there before, the drain did
not cause.

Each part has a limit, all together 4 KiB. A part that does not fit is not kept, and then the drain caused nothing of
it. The same holds for a claim of an earlier release, which kept nothing.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from typing import TypeVar

from msgspec import field

from careen.core.facts import keys
from careen.core.facts.observation import Alert, PodView, Sample
from careen.core.facts.policy import HealthQuery
from careen.core.facts.untrusted import fields_of, json_of
from careen.core.situation import Situation, known
from scheduler_core.values import Value
from scheduler_core.values import replace_value as replace

T = TypeVar("T")

_FINGERPRINT = 6  # 36 bits: among 300 alerts, one in a million claims has two that look the same
_ALERTS_LIMIT = 1800  # characters: 300 alerts
_SERIES_LIMIT = 800
_DISPLACED_LIMIT = 1300
_OF_THE_POD = frozenset({"pod", "exported_pod", "pod_name", "uid"})


class Known(Value, kw_only=True):
    """The annotation `careen.dev/known-at-the-claim`. None: not kept."""

    claim: str = ""
    alerts: str | None = None  # the fingerprints of all active alerts, also of those that do not block
    series: Mapping[str, Mapping[str, float]] | None = None  # the values by health query and series
    displaced: Mapping[str, Mapping[str, tuple[str, ...]]] | None = None  # names by namespace and kind
    waits: Mapping[str, float] = field(default_factory=dict)  # the uptimes at which a drained node began to wait

    def has(self, alert: Alert) -> bool:
        """Whether the alert was active, or whether that is not known."""
        return self.alerts is None or fingerprint(alert) in _chunks(self.alerts)

    def value_of(self, query: HealthQuery, series: str) -> float | None:
        """The series' value at the claim; None if it had none, or if that is not known."""
        return (self.series or {}).get(query.name, {}).get(series)

    def names(self, namespace: str | None) -> Iterable[tuple[str, str]]:
        """Kind and name of everything that the drain displaces in the namespace; None: in all namespaces."""
        displaced = self.displaced or {}
        for each in displaced if namespace is None else (namespace,):
            for kind, names in displaced.get(each, {}).items():
                yield from ((kind, name) for name in names)


def of(situation: Situation) -> Known:
    """What the Node has of this claim; empty without anything."""
    written = json_of(situation.node.annotations.get(keys.KNOWN_AT_THE_CLAIM))
    found, _ = fields_of(written, Known)
    return found if found.claim == situation.progress.claim else Known(claim=situation.progress.claim)


def annotation(situation: Situation, leaving: Iterable[PodView]) -> dict[str, str | None]:
    """The annotation for the cordon's patch, from what the gates have just read; {} if nothing is asked."""
    policy = situation.policy
    if policy.alerts is None and not policy.health_queries:
        return {}
    alerts = known(situation.seen.alerts)
    seen = Known(
        claim=situation.progress.claim,
        alerts=_fitting("".join(sorted({fingerprint(each) for each in alerts or ()})), _ALERTS_LIMIT)
        if policy.alerts is not None and alerts is not None
        else None,
        series=_fitting(_series(situation), _SERIES_LIMIT),
        displaced=_fitting(_displaced(leaving), _DISPLACED_LIMIT),
    )
    return {keys.KNOWN_AT_THE_CLAIM: _text(seen)}


def waiting(situation: Situation, kept: Known, what: str) -> dict[str, str | None]:
    """The annotation with the present instant as the begin of this wait."""
    return {keys.KNOWN_AT_THE_CLAIM: _text(replace(kept, waits={**kept.waits, what: round(situation.seen.uptime, 3)}))}


def fingerprint(alert: Alert) -> str:
    """Of the alert without its state, and without what a new pod of the same controller changes: the last part of the
    pod's name, and its uid."""
    labels = {key: value for key, value in alert.labels.items() if key not in _OF_THE_POD}
    pods = {key: alert.labels[key].rpartition("-")[0] for key in _OF_THE_POD - {"uid"} if key in alert.labels}
    return _hash([alert.name, labels, pods])


def series_of(query: HealthQuery, answer: Iterable[Sample]) -> tuple[tuple[str, Sample], ...]:
    """The matching samples of a query, each with its series. A series is known by its labels without pod and uid, and
    the only one of its query whatever its labels are: an exporter that moves to another node changes them."""
    matching = [sample for sample in answer if query.selects(sample)]
    if len(matching) == 1:
        return (("", matching[0]),)
    return tuple(
        (_hash({key: value for key, value in sample.labels.items() if key not in _OF_THE_POD}), sample)
        for sample in matching
    )


def condition_of(query: HealthQuery) -> str:
    """A fingerprint of what the query asks."""
    return _hash([query.query, query.condition])


def _series(situation: Situation) -> dict[str, dict[str, float]] | None:
    answers = known(situation.seen.queries)
    if answers is None or not situation.policy.health_queries:
        return None
    found: dict[str, dict[str, float]] = {}
    for query in situation.policy.health_queries:
        answer = answers.get(query.name)
        if isinstance(answer, tuple):
            samples = series_of(query, answer)
            found[query.name] = {series: each.value for series, each in samples if math.isfinite(each.value)}
    return found


def _displaced(leaving: Iterable[PodView]) -> dict[str, dict[str, tuple[str, ...]]]:
    """The controllers of the pods to evict. A Deployment stands for its ReplicaSets, a pod without a controller, or
    with a name that does not come from its controller's, for itself."""
    found: dict[str, dict[str, set[str]]] = {}
    for pod in leaving:
        for kind, name in _titles(pod):
            found.setdefault(pod.namespace, {}).setdefault(kind, set()).add(name)
    return {space: {kind: tuple(sorted(names)) for kind, names in kinds.items()} for space, kinds in found.items()}


def _titles(pod: PodView) -> Iterable[tuple[str, str]]:
    template = pod.labels.get("pod-template-hash", "")
    if pod.owner_kind == "ReplicaSet" and template and pod.owner_name.endswith(f"-{template}"):
        yield "Deployment", pod.owner_name.removesuffix(f"-{template}")
        return
    if pod.owner_kind:
        yield pod.owner_kind, pod.owner_name
    if not is_pod_of(pod.owner_kind, pod.owner_name, pod.name):
        yield "Pod", pod.name


def is_pod_of(kind: str, name: str, pod: str) -> bool:
    """Whether a pod with this name is one of this controller's, by the names that controllers give."""
    if kind == "Pod":
        return pod == name
    controller, _, last = pod.rpartition("-")
    if kind == "Deployment":
        return controller.rpartition("-")[0] == name
    return bool(name and last) and (controller == name or (kind == "Job" and controller.rpartition("-")[0] == name))


def _plain(content: object) -> str:
    return json.dumps(content, separators=(",", ":"), sort_keys=True)


def _hash(content: object) -> str:
    digest = hashlib.sha256(_plain(content).encode()).digest()
    return base64.urlsafe_b64encode(digest).decode()[:_FINGERPRINT]


@functools.lru_cache(maxsize=4)  # asked for each alert
def _chunks(text: str) -> frozenset[str]:
    return frozenset(text[at : at + _FINGERPRINT] for at in range(0, len(text), _FINGERPRINT))


def _fitting(part: T, limit: int) -> T | None:
    return part if len(_plain(part)) <= limit else None


def _text(seen: Known) -> str:
    fields = {"claim": seen.claim, "alerts": seen.alerts, "series": seen.series, "displaced": seen.displaced}
    return _plain({key: value for key, value in {**fields, "waits": seen.waits or None}.items() if value is not None})
