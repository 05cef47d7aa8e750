"""How often the scheduler and scheduler_core agree, by profile and reason, and the last disagreements."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from typing import Final

from careen.shadow.outcomes import Agreement, AgreementReason, Compared, outcome_of

MOST_KEPT: Final = 1000
ENOUGH: Final = 30
"""The fewest comparisons that can judge the agreement. With fewer, a low one may be chance."""
LEAST_AGREEMENT: Final = 0.8
"""Below, the scheduler probably has another configuration than careen was given. With the same they agree far more
often: the expected sets cover 95 of 100 cases, and unclear cases are not counted."""


class RunCounts:
    """The counts of one run. `gaps` are interruptions of the watch, which hide the order of creations and bindings."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, AgreementReason]] = Counter()
        self.disagreements: deque[Compared] = deque(maxlen=MOST_KEPT)
        self.gaps = 0
        self.set_sizes = 0
        self.sets = 0
        self._untold: deque[Compared] = deque(maxlen=MOST_KEPT)

    def add(self, each: Compared) -> None:
        """Adds one comparison."""
        self.counts[each.profile, each.reason] += 1
        if each.outcome is Agreement.DISAGREED:
            self.disagreements.append(each)
            self._untold.append(each)
        if each.outcome is not Agreement.CANNOT_SAY and each.said and each.node:
            self.sets += 1
            self.set_sizes += len(each.said)

    def new_disagreements(self) -> list[Compared]:
        """Those since the last call."""
        found = list(self._untold)
        self._untold.clear()
        return found

    def number(self, outcome: Agreement, profile: str | None = None) -> int:
        """How many comparisons have this outcome."""
        return sum(
            count
            for (each, reason), count in self.counts.items()
            if outcome_of(reason) is outcome and profile in (None, each)
        )

    @property
    def compared(self) -> int:
        """How many bindings could be compared."""
        return self.number(Agreement.AGREED) + self.number(Agreement.DISAGREED)

    @property
    def agreement(self) -> float | None:
        """The share that agrees; None without comparisons."""
        return agreement_of(self.number(Agreement.AGREED), self.number(Agreement.DISAGREED))

    @property
    def mean_set(self) -> float | None:
        """The average size of the expected sets, which should contain the node in 95 of 100 cases. Of a shortened set,
        its listed part."""
        return self.set_sizes / self.sets if self.sets else None

    @property
    def is_too_low(self) -> bool:
        """Whether the scheduler probably has another configuration than careen was given."""
        agreement = self.agreement
        return self.compared >= ENOUGH and agreement is not None and agreement < LEAST_AGREEMENT

    @property
    def other_schedulers(self) -> Mapping[str, int]:
        """schedulerNames without a profile, and the number of their pods."""
        return {
            name: n for (name, reason), n in sorted(self.counts.items()) if reason is AgreementReason.OTHER_SCHEDULER
        }

    def causes(self) -> tuple[str, ...]:
        """Sentences about schedulers without a profile, and, if `is_too_low`, about the likely causes."""
        return (*_unknown_profiles(self.other_schedulers), *(_causes(self.disagreements) if self.is_too_low else ()))


def agreement_of(agreed: int, disagreed: int) -> float | None:
    """None without comparisons."""
    return agreed / (agreed + disagreed) if agreed + disagreed else None


def _unknown_profiles(others: Mapping[str, int]) -> Iterable[str]:
    for name, number in others.items():
        yield (
            f"{number} {'pod has' if number == 1 else 'pods have'} the schedulerName {name}, but the "
            "configuration that careen was given has no profile of that name; pass that scheduler's configuration with "
            "--scheduler-config"
        )


def _causes(disagreements: Iterable[Compared]) -> Iterable[str]:
    last = list(disagreements)
    refusals = Counter(each.plugin for each in last if each.plugin)
    for plugin, number in refusals.most_common(3):
        yield (
            f"the plugin {plugin} refuses {number} of the {len(last)} nodes that the scheduler chose: the scheduler "
            "probably does not use this plugin, or uses other arguments for it"
        )
    fitting = [each for each in last if each.reason is AgreementReason.OTHER_NODE]
    if not fitting:
        return
    best = sum(each.is_best_of_all for each in fitting)
    sampled = sum(each.is_sampled for each in fitting)
    large = sum(each.nodes >= _SAMPLES_FROM for each in fitting)
    if sampled * 2 > len(fitting) and best * 2 > len(fitting):
        yield (
            f"{best} of {len(fitting)} pods went to the node with the highest score: the scheduler probably examines "
            "more nodes than the configuration given to careen says (percentageOfNodesToScore)"
        )
    elif large * 2 > len(fitting) and sampled * 2 < len(fitting):
        yield (
            f"{len(fitting)} pods went to nodes that fit, but do not have the highest score: the scheduler probably "
            "examines only a part of the nodes (percentageOfNodesToScore), or scores with other plugins or weights"
        )
    else:
        yield (
            f"{len(fitting)} pods went to nodes that fit, but do not have the highest score: the scheduler probably "
            "has other score plugins, weights or arguments (a scoringStrategy, defaultConstraints) than the "
            "configuration given to careen says"
        )


_SAMPLES_FROM: Final = 100  # nodes; with fewer, the scheduler looks at all of them
