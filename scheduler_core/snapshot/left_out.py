"""Pods whose words about their places were left out to save memory, as sentences by namespace."""

from __future__ import annotations

from collections import Counter
from itertools import chain

from scheduler_core.sentences import count_of
from scheduler_core.snapshot.snapshot import Snapshot

_MOST_SENTENCES = 5


def left_out(snapshot: Snapshot) -> list[str]:
    """Of the namespaces with the most such pods."""
    pods = chain(snapshot.placed_pods, snapshot.pending)
    found = Counter(pod.namespace for pod in pods if pod.spec.is_left_out)
    told = sorted(found.items(), key=lambda each: (-each[1], each[0]))
    sentences = [
        f"left out: {count_of(number, 'pod')} of namespace {namespace} count with their requests alone, because "
        "the different affinities, spread constraints, tolerations, selectors, containers and labels of its pods "
        "exceed the memory that a namespace, or all of them, may take; where these pods land is unknown"
        for namespace, number in told[:_MOST_SENTENCES]
    ]
    more = sum(number for _, number in told[_MOST_SENTENCES:])
    return (
        [*sentences, f"left out: {more} pods of {len(told) - _MOST_SENTENCES} other namespaces"] if more else sentences
    )
