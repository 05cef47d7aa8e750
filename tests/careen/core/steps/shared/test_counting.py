"""Before the agent of a waiting node labels the Node as ready to reboot, it counts the pods that a drain would move. It
counts these pods again from time to time."""

from __future__ import annotations

from typing import Any

import pytest

from careen.core.actions import PatchNode
from careen.core.decision import Decision
from careen.core.facts import keys
from careen.core.facts.observation import NOT_ASKED, PodView, Taint, Unknown
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.policy import Order, Policy
from careen.core.facts.reasons import Code
from careen.core.lock.content import LockContent
from careen.core.lock.line import Line
from careen.core.steps.shared.counting import NAMED_SECONDS, OTHERS_SECONDS
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
BUSY = held(an_entry("n9"), line=Line(names=("n8",)))
NAMED = held(an_entry("n9"), line=Line(names=("n1",)))
UNCOUNTED = remembering(moves_counted_at=None)


def counting(label: str = "required", moves: str | None = None, **changes: Any) -> Decision:
    annotations = {} if moves is None else {keys.MOVES: moves}
    given = {"policy": FEWEST, "lock": BUSY, "waiters": (), "memory": UNCOUNTED, **changes}
    return decided(RECORD, node={**TAINTED, "label": label, "annotations": annotations}, **given)


def asks(ago: float, policy: Policy, content: LockContent, moves: str | None = "2") -> bool:
    """Whether the agent of a waiting node lists the node's pods again if its last list is `ago` seconds old."""
    return (
        Evidence.PODS
        in counting(
            "ready",
            moves,
            pods=NOT_ASKED,
            lock=content,
            policy=policy,
            memory=remembering(moves_counted_at=UPTIME - ago),
        ).wants
    )


@pytest.mark.parametrize("order", list(Order))
def test_the_agent_counts_the_pods_of_its_node_before_the_agent_sets_careens_label_to_ready(order: Order) -> None:
    """The agent counts only pods that a drain would evict: two of the four pods, because the drain evicts neither a
    DaemonSet's pod nor a finished pod. The patch that sets the label also writes the count."""
    assert counting(pods=NOT_ASKED, policy=a_policy(order=order)).wants == {Evidence.PODS}
    decision = counting(pods=PODS, policy=a_policy(order=order))
    patch = the_patch(decision)
    assert (patch.labels, patch.annotations[keys.MOVES]) == ({keys.REBOOT_LABEL: "ready"}, "2")
    assert decision.reason.code is Code.WAITING_FOR_TURN


SPREAD = (*PODS, a_pod("api-1", spreads_over_zones=True), a_daemon_pod(spreads_over_zones=True))


@pytest.mark.parametrize(
    ("before", "pods", "written"),
    [
        pytest.param(
            {}, SPREAD, {keys.MOVES: "3", keys.MOVES_IN_ZONE: "1"}, id="the first count finds one zone-bound pod"
        ),
        pytest.param(
            {keys.MOVES: "3", keys.MOVES_IN_ZONE: "2"},
            SPREAD,
            {keys.MOVES_IN_ZONE: "1"},
            id="fewer zone-bound pods than before",
        ),
        pytest.param({keys.MOVES: "3", keys.MOVES_IN_ZONE: "1"}, SPREAD, {}, id="as many zone-bound pods as before"),
        pytest.param(
            {keys.MOVES: "2", keys.MOVES_IN_ZONE: "1"},
            PODS,
            {keys.MOVES_IN_ZONE: None},
            id="no zone-bound pods any more",
        ),
        pytest.param({}, PODS, {keys.MOVES: "2"}, id="the first count finds no zone-bound pods"),
    ],
)
def test_a_node_counts_the_pods_that_must_stay_in_its_zone(
    before: dict[str, str], pods: tuple[PodView, ...], written: dict[str, str | None]
) -> None:
    node = {**TAINTED, "label": "required", "annotations": before}
    patch = the_patch(decided(RECORD, node=node, policy=a_policy(), lock=BUSY, waiters=(), memory=UNCOUNTED, pods=pods))
    counted = {key: value for key, value in patch.annotations.items() if key in (keys.MOVES, keys.MOVES_IN_ZONE)}
    assert counted == written


def test_an_unchanged_pod_count_is_not_written_again() -> None:
    decision = counting(moves="2", pods=PODS)
    assert keys.MOVES not in the_patch(decision).annotations
    assert decision.memory.moves_counted_at == UPTIME


def test_an_agent_counts_the_pods_again_before_each_attempt_to_label_its_node_ready() -> None:
    """One patch writes both the count and careen's label with the value `ready`. If this patch fails with a conflict,
    the agent counts the pods again before the next attempt."""
    just_now = remembering(moves_counted_at=UPTIME - 1)
    assert counting(moves="9", pods=NOT_ASKED, policy=a_policy(), memory=just_now).wants == {Evidence.PODS}
    assert the_patch(counting(moves="9", pods=PODS, policy=a_policy(), memory=just_now)).annotations[keys.MOVES] == "2"


def test_a_changed_pod_count_is_written_in_a_separate_patch_if_the_order_is_fewest_moves() -> None:
    decision = counting(
        "ready", moves="9", pods=PODS, lock=NAMED, memory=remembering(moves_counted_at=UPTIME - NAMED_SECONDS)
    )
    assert kinds(decision) == [PatchNode]
    assert the_patch(decision).annotations == {keys.MOVES: "2"}
    assert decision.look_again_seconds == 0.0


@pytest.mark.parametrize(
    ("policy", "content", "pause"),
    [
        pytest.param(FEWEST, NAMED, NAMED_SECONDS, id="the node is named in the lock"),
        pytest.param(FEWEST, BUSY, OTHERS_SECONDS, id="the node is not named in the lock"),
    ],
)
def test_the_agent_repeats_the_count_of_pods_if_the_order_is_fewest_moves(
    policy: Policy, content: LockContent, pause: float
) -> None:
    assert (asks(pause - 1, policy, content), asks(pause, policy, content)) == (False, True)


def test_the_agent_does_not_count_the_pods_again_if_nodes_reboot_in_the_default_order() -> None:
    assert not asks(10 * OTHERS_SECONDS, a_policy(), NAMED)


def test_a_node_soon_repeats_a_failed_request_for_the_list_of_its_pods() -> None:
    assert (
        asks(NAMED_SECONDS - 1, a_policy(), BUSY, moves=None),
        asks(NAMED_SECONDS, a_policy(), BUSY, moves=None),
    ) == (False, True)


def test_a_list_of_pods_that_was_read_for_another_purpose_does_not_change_the_pod_count() -> None:
    decision = counting("ready", "1", pods=PODS, memory=remembering(moves_counted_at=UPTIME - 1))
    assert all(keys.MOVES not in action.annotations for action in decision.actions if isinstance(action, PatchNode))


def test_a_node_is_labelled_ready_although_its_pods_are_unknown() -> None:
    decision = counting(pods=Unknown("503"))
    assert the_patch(decision).labels == {keys.REBOOT_LABEL: "ready"}
    assert decision.memory.moves_counted_at == UPTIME


def test_the_pod_count_is_removed_when_the_node_no_longer_needs_a_reboot() -> None:
    assert the_patch(counting(moves="2", need=NO)).annotations[keys.MOVES] is None
