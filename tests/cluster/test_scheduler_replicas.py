"""Tests two processes of `careen scheduler`: the holder of the Lease schedules, and the other one takes over when the
holder is killed, told to end, or cut off from the API server.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from tests.cluster.harness.machines.proxy import LOST, Answer, Call, Proxy
from tests.cluster.harness.machines.schedulers import CareenScheduler, Schedulers, bound_by
from tests.patience import wait_until

pytestmark = pytest.mark.cluster

LEADS = "careen holds the Lease"
LATE_SECONDS = 8.0


@contextmanager
def stream_of_pods(schedulers: Schedulers) -> Iterator[None]:
    """Create ten pods a second."""
    ended = threading.Event()

    def create() -> None:
        number = 0
        while not ended.wait(0.1):
            schedulers.pods([f"p{number}"])
            number += 1

    thread = threading.Thread(target=create)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_the_other_replica_takes_over_from_a_killed_leader(schedulers: Schedulers) -> None:
    schedulers.nodes(100, cpus=32)
    first, second = _two(schedulers)
    with stream_of_pods(schedulers):
        wait_until(lambda: len(schedulers.bindings()) > 10)
        assert {bound_by(each) for each in schedulers.bindings()} == {first.credential}
        first.program.kill()
        second.says("careen schedules")
    schedulers.all_bound()
    schedulers.judge()
    _takes_turns(schedulers, first, second)


def test_a_leader_that_is_told_to_end_hands_over_without_the_wait(schedulers: Schedulers) -> None:
    schedulers.nodes(10, cpus=32)
    first, second = _two(schedulers)
    assert first.program.stop(30) == 0
    began = time.monotonic()
    second.says("careen schedules")
    print(f"taken over after {time.monotonic() - began:.1f} s")
    lease = schedulers.plane.admin.get(
        "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/scheduler.careen.dev"
    )
    assert lease["spec"]["leaseTransitions"] == 1
    schedulers.pods(["web"])
    schedulers.all_bound()
    assert [bound_by(each) for each in schedulers.bindings()] == [second.credential]


def test_a_leader_that_is_cut_off_ends_itself_before_the_other_replica_binds(schedulers: Schedulers) -> None:
    """Bindings that the leader sent last reach the API server late, some seconds after the leader lost its Lease."""
    schedulers.nodes(100, cpus=32)
    with closing(Proxy(schedulers.plane.server, schedulers.plane.certificate_authority)) as proxy:
        first, second = _two(schedulers, server=proxy.url)
        with stream_of_pods(schedulers):
            wait_until(lambda: len(schedulers.bindings()) > 10)
            proxy.watch_seconds = 0.0
            proxy.watch_rule = lambda _call: LOST
            proxy.rule = _cut_off
            wait_until(lambda: first.program.exit_code() is not None, first.program.tail)
            assert not second.has_said("careen schedules"), "the other replica scheduled beside the first"
            second.says("careen schedules")
        schedulers.all_bound()
    assert (first.program.exit_code(), first.has_said("careen lost the Lease")) == (1, True)
    schedulers.judge()
    _takes_turns(schedulers, first, second)


def _cut_off(call: Call, forward: Callable[[], Answer]) -> Answer:
    if call.path.endswith("/binding"):
        time.sleep(LATE_SECONDS)
        forward()
    return LOST


def _two(schedulers: Schedulers, *, server: str = "") -> tuple[CareenScheduler, CareenScheduler]:
    """The first of them leads."""
    first = schedulers.start("first", elects=True, server=server)
    first.says(LEADS)
    second = schedulers.start("second", elects=True)
    first.says("careen schedules")
    assert not second.has_said(LEADS)
    return first, second


def _takes_turns(schedulers: Schedulers, first: CareenScheduler, second: CareenScheduler) -> None:
    """Both have bound pods, and the second one only after the first one's last binding."""
    by = [bound_by(each) for each in schedulers.bindings()]
    assert by == [first.credential] * by.count(first.credential) + [second.credential] * by.count(second.credential)
    assert first.credential in by
    assert second.credential in by
