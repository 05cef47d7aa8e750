"""One displaced pod in one scenario; `kind_of` says which are interchangeable."""

from __future__ import annotations

from collections.abc import Hashable

from scheduler_core.cycle_result import CycleResult
from scheduler_core.model.pod import Pod
from scheduler_core.simulation.searches import Shares, mixed
from scheduler_core.values import Value, replace_value

# Labels that controllers write on numbered pods. They identify one pod, not its kind.
_PERSONAL_LABELS = frozenset(
    {"statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index", "batch.kubernetes.io/job-completion-index"}
)


class Displaced(Value):
    """A displaced pod and its replacement, which needs a node. `arrival` is the replacement's place in the order in
    which replacements entered the queue.

    `choices` are the nodes that it may get in this scenario: the chosen one, and equally good ones for which no
    separate scenario is simulated.
    """

    pod: Pod
    replacement: Pod
    arrival: int
    result: CycleResult | None = None
    landed: bool = False
    unknown: str = ""  # why the library cannot say which node the pod gets; else empty
    choices: tuple[str, ...] = ()
    shares: Shares = ()  # the probability of each node in this scenario; empty if unknown
    any_start: Shares = ()  # the probabilities for any start, in the main scenario only
    score: int | None = None  # the node's total score; only in the main scenario, if several nodes fit
    runner_up: tuple[str, int] | None = None  # the next best node and its total score
    is_after_cut: bool = False  # scheduled after scenarios had been left out
    waited: bool = False  # the pod had no node before the drain

    @property
    def kind(self) -> Hashable:
        return kind_of(self.pod)


def kind_of(pod: Pod) -> Hashable:
    """Equal for pods that a controller creates from one template, so that only their names differ."""
    labels = frozenset(pair for pair in pod.labels.items() if pair[0] not in _PERSONAL_LABELS)
    return (pod.namespace, pod.owner, labels, pod.spec, pod.is_ready) if pod.owner else pod.key


def joined(mine: Displaced, my_weight: float, theirs: Displaced, their_weight: float, *, is_theirs: bool) -> Displaced:
    """Combines interchangeable pods on the same node in two equivalent scenarios. Keeps the cycle result and score
    of `mine`, or of `theirs` if it is from the main scenario."""
    if not (is_theirs or theirs.is_after_cut or (theirs.choices, theirs.shares) != (mine.choices, mine.shares)):
        return mine
    kept = theirs if is_theirs else mine
    return replace_value(
        mine,
        result=kept.result,
        any_start=kept.any_start,
        score=kept.score,
        runner_up=kept.runner_up,
        choices=tuple(dict.fromkeys((*mine.choices, *theirs.choices))),
        shares=mixed([(my_weight, mine.shares), (their_weight, theirs.shares)]),
        is_after_cut=mine.is_after_cut or theirs.is_after_cut,
    )
