"""--order=fewest-moves: the number stands on the Node before the node shows itself ready, and costs one list of the own pods now and then."""

from __future__ import annotations

from typing import Any

import pytest

from careen.core import keys
from careen.core.actions import PatchNode
from careen.core.decision import Decision
from careen.core.lock import LockContent
from careen.core.observation import NOT_ASKED, Taint, Unknown
from careen.core.phases import Evidence, Phase
from careen.core.policy import Order
from careen.core.steps.counting import NAMED_SECONDS, OTHERS_SECONDS
from tests.careen.core.builders import (
    NO,
    UPTIME,
    a_daemon_pod,
    a_pod,
    a_policy,
    a_progress,
    an_entry,
    decided,
    held,
    kinds,
    remembering,
    the_patch,
)

RECORD = a_progress(Phase.WAITING, taint_key="careen.dev/reboot")
TAINTED = {"taints": (Taint(key="careen.dev/reboot", effect="PreferNoSchedule"),)}
FEWEST = a_policy(order=Order.FEWEST_MOVES)
PODS = (a_pod("web-1"), a_pod("web-2"), a_daemon_pod(), a_pod("done", phase="Succeeded"))
BUSY = held(an_entry("n9"), next=("n8",))


def counting(label: str = "required", moves: str | None = None, **changes: Any) -> Decision:
    annotations = {} if moves is None else {keys.MOVES: moves}
    return decided(RECORD, node={**TAINTED, "label": label, "annotations": annotations}, **{"policy": FEWEST, "lock": BUSY, "waiters": (), **changes})


def test_the_pods_that_a_drain_would_evict_are_counted_before_the_node_shows_itself_ready() -> None:
    assert counting(pods=NOT_ASKED).wants == {Evidence.PODS}
    decision = counting(pods=PODS)
    assert kinds(decision) == [PatchNode]
    assert the_patch(decision).annotations == {keys.MOVES: "2"}
    assert decision.look_again_seconds == 0.0


def test_a_number_that_stands_there_is_not_written_again_and_the_node_goes_on() -> None:
    decision = counting(moves="2", pods=PODS)
    assert the_patch(decision).labels == {keys.REBOOT_LABEL: "ready"}
    assert decision.memory.moves_counted_at == UPTIME


@pytest.mark.parametrize(("content", "pause"), [
    pytest.param(held(an_entry("n9"), next=("n1",)), NAMED_SECONDS, id="named"), pytest.param(BUSY, OTHERS_SECONDS, id="not named"),
])
def test_those_who_are_named_count_often_and_the_others_rarely(content: LockContent, pause: float) -> None:
    def asks(ago: float) -> bool:
        return Evidence.PODS in counting("ready", "2", pods=NOT_ASKED, lock=content, memory=remembering(moves_counted_at=UPTIME - ago)).wants

    assert (asks(pause - 1), asks(pause)) == (False, True)


def test_pods_that_cannot_be_listed_hold_nobody_up() -> None:
    decision = counting(pods=Unknown("503"))
    assert the_patch(decision).labels == {keys.REBOOT_LABEL: "ready"}
    assert decision.memory.moves_counted_at == UPTIME


@pytest.mark.parametrize("order", [Order.OLDEST, Order.ZONE])
def test_no_other_order_counts(order: Order) -> None:
    assert the_patch(counting(pods=NOT_ASKED, policy=a_policy(order=order))).labels == {keys.REBOOT_LABEL: "ready"}


def test_the_number_goes_with_everything_else_of_ours() -> None:
    assert the_patch(counting(moves="2", need=NO)).annotations[keys.MOVES] is None
