"""Compares the expected nodes of one pod with its binding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from careen.shadow.outcomes import AgreementReason, Compared
from scheduler_core.cycle import Scheduler
from scheduler_core.cycle_result import CycleResult
from scheduler_core.learning.expectation import Expectation
from scheduler_core.model.pod import Pod
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value, replace_value

_MOST_SAID: Final = 10


class Comparison(Value, kw_only=True):
    """The result, and the nodes that scheduler_core expected."""

    reason: AgreementReason
    expected: Expectation


def compare(expected: Expectation, node: str) -> Comparison:
    """`node` is empty if kube-scheduler found none."""
    return Comparison(reason=_reason(expected, node), expected=expected)


def _reason(expected: Expectation, node: str) -> AgreementReason:
    results = results_of(expected)
    if any(result.unknown or result.error for result in results):
        return AgreementReason.NOT_REPRODUCED
    without = sum(result.node is None for result in results)
    if not node:
        return AgreementReason.BOTH_PENDING if without else AgreementReason.NODE_SAID
    if without == len(results):
        return AgreementReason.NO_NODE_SAID
    named = expected.named
    if node in named:
        # Of equal nodes, each is as likely as the first.
        return AgreementReason.FIRST if node == named[0] or expected.exact is not None else AgreementReason.IN_SET
    status = results[0].statuses.get(node)
    return AgreementReason.OTHER_NODE if status is None or status.is_success else AgreementReason.REFUSED_NODE


def results_of(expected: Expectation) -> Sequence[CycleResult]:
    """The result of each possible search; only one if the scheduler examines every node."""
    if expected.exact is not None:
        return (expected.exact,)
    return [result for _, result in (*expected.followed, *expected.spread)]


def compared(
    given: Comparison,
    snapshot: Snapshot,
    scheduler: Scheduler,
    pod: Pod,
    node: str,
    *,
    at: str,
    reason: AgreementReason,
) -> Compared:
    """The record. A disagreement takes another search, to explain it."""
    expected = given.expected
    shares = expected.shares
    said = tuple((name, round(shares.get(name, 0.0), 3)) for name in expected.named[:_MOST_SAID])
    plain = Compared(
        pod=pod.key,
        profile=pod.spec.scheduler_name,
        at=at,
        reason=reason,
        node=node,
        said=() if _found_nothing(expected) else said,
        is_sampled=expected.is_sampled,
        nodes=len(snapshot.nodes),
    )
    if reason is AgreementReason.NOT_REPRODUCED:
        return replace_value(plain, why=_unknown(expected))
    if reason in (AgreementReason.OTHER_NODE, AgreementReason.REFUSED_NODE, AgreementReason.NO_NODE_SAID):
        return _explained(plain, scheduler.schedule(snapshot, pod), node)
    return plain


def _found_nothing(expected: Expectation) -> bool:
    return all(result.node is None for result in results_of(expected))


def _unknown(expected: Expectation) -> str:
    return next((words for result in results_of(expected) if (words := result.unknown or result.error)), "")


def _explained(plain: Compared, whole: CycleResult, node: str) -> Compared:
    """`plain` with why scheduler_core did not expect `node`. `whole` is a search over every node."""
    status = whole.statuses.get(node)
    if status is not None and not status.is_success:
        return replace_value(plain, why=f"{status.plugin}: {status.message}", plugin=status.plugin)
    best, scores = whole.highest_total, whole.scores.get(node)
    if scores is None or best is None:
        return replace_value(plain, why=whole.sentence)
    words = f"{node} has the score {scores.total}; the highest score is {best}, that of {whole.best[0]}"
    return replace_value(plain, why=words, is_best_of_all=node in whole.best)
