"""Tests the back-off of pods: how long a back-off lasts, in which order pods leave the back-off queue, and which pods
the queue may pop before their back-off ends."""

import pytest

from scheduler_core.model.pod import Pod, PodSpec
from scheduler_core.queue.backoff import BackoffPolicy, BackoffRoom
from scheduler_core.queue.queued_pod import QueuedPod

POLICY = BackoffPolicy()


def refused(name: str, *, at: float = 100.0, times: int = 1, priority: int = 0) -> QueuedPod:
    return QueuedPod(
        pod=Pod(name=name, spec=PodSpec(priority=priority)),
        timestamp=at,
        unschedulable_count=times,
        unschedulable_plugins={"NodeResourcesFit"},
    )


def failed(name: str, *, at: float = 100.0, times: int = 1) -> QueuedPod:
    return QueuedPod(pod=Pod(name=name), timestamp=at, consecutive_errors=times)


def higher_priority(one: QueuedPod, other: QueuedPod) -> bool:
    return one.pod.priority > other.pod.priority


def room(*pods: QueuedPod, policy: BackoffPolicy = POLICY) -> BackoffRoom:
    backoff = BackoffRoom(policy, higher_priority)
    for queued in pods:
        backoff.put(queued)
    return backoff


def names(pods: list[QueuedPod]) -> list[str]:
    return [queued.pod.name for queued in pods]


@pytest.mark.parametrize(
    ("failures", "seconds"), [(0, 0), (1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (64, 10), (10_000, 10)]
)
def test_the_backoff_doubles_from_one_second_to_ten(failures: int, seconds: float) -> None:
    assert POLICY.duration_seconds(failures) == seconds


def test_a_maximum_backoff_of_zero_disables_the_backoff() -> None:
    assert BackoffPolicy(max_seconds=0).is_waiting(refused("a", at=100), now=100) is False


@pytest.mark.parametrize(
    ("aligned", "now", "waits"),
    [
        (True, 101.2, True),
        (True, 101.999, True),
        (True, 102.0, False),
        (False, 101.5, True),
        (False, 101.6, False),
    ],
)
def test_a_backoff_ends_at_a_whole_second(aligned: bool, now: float, waits: bool) -> None:
    assert BackoffPolicy(aligned=aligned).is_waiting(refused("a", at=100.5), now) is waits


def test_earlier_refusals_do_not_lengthen_the_backoff_after_an_error() -> None:
    queued = QueuedPod(pod=Pod(name="a"), timestamp=100, unschedulable_count=5, consecutive_errors=2)
    assert POLICY.ends_at(queued) == 102


def test_a_pod_that_never_failed_has_no_backoff() -> None:
    assert POLICY.ends_at(QueuedPod(pod=Pod(name="a"), timestamp=100)) is None


def test_backoffs_that_end_in_the_same_second_are_ordered_by_priority() -> None:
    backoff = room(
        refused("low", at=100.1), refused("later", at=101.5, priority=9), refused("high", at=100.9, priority=5)
    )
    assert names(backoff.take_finished(110)) == ["high", "low", "later"]


def test_backoffs_not_aligned_to_whole_seconds_are_ordered_by_their_exact_end() -> None:
    backoff = room(refused("high", at=100.9, priority=5), refused("low", at=100.1), policy=BackoffPolicy(aligned=False))
    assert names(backoff.take_finished(110)) == ["low", "high"]


def test_refused_pods_whose_backoff_has_ended_are_popped_before_pods_that_failed_with_an_error() -> None:
    backoff = room(failed("error", at=100), refused("once", at=100), refused("thrice", at=100, times=3))
    assert names(backoff.take_finished(102)) == ["once", "error"]
    assert names(backoff.take_finished(104.9)) == []
    assert names(backoff.take_finished(105)) == ["thrice"]


def test_a_pod_that_failed_with_an_error_is_not_popped_early() -> None:
    backoff = room(failed("error", at=1), refused("second", at=100), refused("first", at=50))
    taken = [backoff.take_early(), backoff.take_early(), backoff.take_early()]
    assert [queued and queued.pod.name for queued in taken] == ["first", "second", None]
    assert [queued.pod.name for queued in backoff.pods] == ["error"]


def test_a_pod_is_in_only_one_of_the_two_backoff_queues() -> None:
    queued = refused("a")
    backoff = room(queued)
    queued.unschedulable_plugins.clear()
    backoff.put(queued)
    assert (
        len(backoff),
        backoff.take_early(),
        backoff.get("default/a"),
        backoff.remove("default/a"),
        len(backoff),
    ) == (1, None, queued, queued, 0)
