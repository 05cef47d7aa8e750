"""Autoscalers do not remove a node while it reboots. A node that an autoscaler is removing does not begin its
reboot."""

from __future__ import annotations

import json
from typing import Any

import pytest

from careen.core import rescue
from careen.core.actions import EvictPod, PatchNode
from careen.core.decision import Decision
from careen.core.facts import keys
from careen.core.facts.observation import NodeView, Taint
from careen.core.facts.phases import Phase
from careen.core.facts.policy import DrainPolicy
from careen.core.facts.progress import to_annotation
from careen.core.facts.reasons import Code
from careen.core.lock import order
from careen.core.lock.content import LockContent
from careen.core.lock.line import Line
from careen.core.node.autoscalers import PROTECTION, left_alone, protected, removed_by, taken_back
from careen.core.steps.idle import LEAVING_LOOK_SECONDS
from tests.careen.core.builders import (
    BOOT,
    NO,
    UPTIME,
    a_node,
    a_pod,
    a_policy,
    a_progress,
    ago,
    decided,
    evicted,
    remembering,
    the_lock,
    the_patch,
)

SCALE_DOWN, DISRUPT = keys.SCALE_DOWN_DISABLED, keys.DO_NOT_DISRUPT
TOLD = keys.SET_ANNOTATIONS
FREE = {SCALE_DOWN: None, DISRUPT: None}


def applied(before: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in {**before, **patch}.items() if value is not None}


def on(annotations: dict[str, str]) -> NodeView:
    return a_node(annotations=annotations)


# ---- annotations that keep autoscalers away ----

THEIRS = [
    {},
    {SCALE_DOWN: "true"},
    {DISRUPT: "true", "example.org/other": "x"},
    {SCALE_DOWN: "false", DISRUPT: ""},
    {SCALE_DOWN: "true", DISRUPT: "true"},
]


@pytest.mark.parametrize("before", THEIRS)
def test_careens_autoscaler_annotations_are_removed_and_earlier_values_restored(before: dict[str, str]) -> None:
    during = applied(before, protected(on(before)))
    assert {key: during[key] for key in PROTECTION} == dict(PROTECTION)
    assert applied(during, taken_back(during)) == before


@pytest.mark.parametrize("key", PROTECTION)
@pytest.mark.parametrize("value", ["false", "", "a person's", None])
def test_an_autoscaler_annotation_that_a_person_changed_during_the_reboot_stays(key: str, value: str | None) -> None:
    during = applied({}, protected(on({})))
    changed = applied(during, {key: value})
    assert applied(changed, taken_back(changed)) == ({} if value is None else {key: value})


def test_a_second_claim_keeps_the_saved_original_values_of_the_annotations() -> None:
    first = applied({DISRUPT: "false"}, protected(on({DISRUPT: "false"})))
    assert protected(on(first)) == {}, "the node already has every annotation"
    lifted = applied(first, {SCALE_DOWN: "false"})
    second = applied(lifted, protected(on(lifted)))
    assert applied(second, taken_back(second)) == {DISRUPT: "false", SCALE_DOWN: "false"}


@pytest.mark.parametrize(
    "told",
    ["", "x", "[]", "null", "{}", '{"a":1}', "[" * 200_000, json.dumps({SCALE_DOWN: ["x"], DISRUPT: {"y": 1}}), 7],
)
def test_unreadable_saved_annotation_values_are_removed_without_other_changes(told: Any) -> None:
    during = {SCALE_DOWN: "true", DISRUPT: "true", TOLD: told}
    assert taken_back(during) == {TOLD: None}


def test_a_saved_value_is_not_restored_to_an_annotation_that_careen_does_not_set() -> None:
    """The agent stores the former values of annotations that it changes, and restores them later. A client that may
    edit only the stored values must not be able to make the agent write other annotations."""
    told = json.dumps({keys.CONTROL_PLANE: "x", "kubelet.alpha/y": None, DISRUPT: None})
    assert taken_back({TOLD: told, DISRUPT: "true"}) == {TOLD: None, DISRUPT: None}


# ---- from the claim to its release ----

SET = {SCALE_DOWN: "true", DISRUPT: "true", TOLD: json.dumps(FREE, sort_keys=True)}
LINE = LockContent(line=Line(names=("n1",), at="2026-03-04T11:59:59Z", waiting=1))


def claims(**policy: Any) -> Decision:
    node = {"label": order.READY, "annotations": {keys.MOVES: "0"}}
    return decided(a_progress(Phase.WAITING), a_policy(taint_key=None, **policy), node=node, lock=LINE)


def test_the_claim_patch_sets_the_autoscaler_annotations() -> None:
    decision = claims()
    assert decision.phase is Phase.CLAIMING
    assert SET.items() <= the_patch(decision).annotations.items()


def test_with_the_protection_switched_off_a_claim_sets_no_autoscaler_annotation() -> None:
    decision = claims(protect_from_autoscalers=False)
    assert decision.phase is Phase.CLAIMING
    assert not set(SET) & set(the_patch(decision).annotations)


def ending(phase: Phase, **changes: Any) -> Decision:
    # Switched off since: annotations already set are removed anyway.
    policy = a_policy(taint_key=None, protect_from_autoscalers=False)
    return decided(a_progress(phase), policy, node={"annotations": dict(SET), **changes.pop("node", {})}, **changes)


@pytest.mark.parametrize(
    ("decision", "phase"),
    [
        (lambda: ending(Phase.CLAIMING, need=NO), Phase.WAITING),
        (lambda: ending(Phase.DRAINING, need=NO), Phase.WAITING),
        (lambda: ending(Phase.DRAINING, node={"unschedulable": False}), Phase.FAILED),
        (lambda: ending(Phase.VERIFYING), Phase.SETTLING),
        (lambda: ending(Phase.WAITING, need=NO), Phase.IDLE),
        (lambda: ending(Phase.IDLE, need=NO), Phase.IDLE),
    ],
    ids=[
        "a claim is withdrawn",
        "a drain is undone",
        "a person uncordons the node",
        "the new boot is verified",
        "the host no longer needs a reboot",
        "an idle node has annotations of an earlier agent",
    ],
)
def test_every_return_to_service_removes_the_autoscaler_annotations(decision: Any, phase: Phase) -> None:
    made = decision()
    assert made.phase is phase
    assert {**FREE, TOLD: None}.items() <= the_patch(made).annotations.items()


def test_a_failed_reboot_removes_the_autoscaler_annotations() -> None:
    progress = a_progress(Phase.REBOOTING, announced=ago(901))
    made = decided(progress, a_policy(), node={"annotations": dict(SET)})
    assert made.phase is Phase.FAILED
    assert FREE.items() <= the_patch(made).annotations.items()


@pytest.mark.parametrize("phase", [Phase.CLAIMING, Phase.DRAINING])
def test_the_patch_that_undoes_a_drain_after_errors_removes_the_autoscaler_annotations(phase: Phase) -> None:
    """The agent sends this patch if several rounds of its loop fail with an exception."""
    node = {
        "kind": "Node",
        "metadata": {
            "name": "n1",
            "uid": "u",
            "resourceVersion": "7",
            "annotations": {**SET, keys.PROGRESS: to_annotation(a_progress(phase))},
        },
        "spec": {"unschedulable": True},
    }
    given = rescue.Circumstances(because="x", now="2026-03-04T12:00:00Z", uptime=UPTIME, boot=BOOT)
    patch = rescue.undone(node, given)
    assert patch is not None
    assert {**FREE, TOLD: None}.items() <= patch["metadata"]["annotations"].items()


# ---- a node that they remove ----

TO_BE_DELETED = Taint(key="ToBeDeletedByClusterAutoscaler", effect="NoSchedule", value="1772625600")
DISRUPTED = Taint(key="karpenter.sh/disrupted", effect="NoSchedule")
DISRUPTING = Taint(key="karpenter.sh/disruption", effect="NoSchedule", value="disrupting")
CANDIDATE = Taint(key="DeletionCandidateOfClusterAutoscaler", effect="PreferNoSchedule", value="1772625600")
OURS = Taint(key=keys.DEFAULT_TAINT_KEY, effect=keys.TAINT_EFFECT)


@pytest.mark.parametrize(
    ("taint", "who"),
    [
        (TO_BE_DELETED, "the cluster autoscaler"),  # kubernetes/autoscaler, utils/taints: ToBeDeletedTaint, NoSchedule
        (DISRUPTED, "Karpenter"),  # kubernetes-sigs/karpenter, pkg/apis/v1: DisruptedNoScheduleTaint
        (DISRUPTING, "Karpenter"),  # the same before 1.0
        (CANDIDATE, ""),  # kubernetes/autoscaler: DeletionCandidateTaintKey, PreferNoSchedule
        (Taint(key="karpenter.sh/disruption", effect="NoSchedule", value="candidate"), ""),
        (Taint(key="karpenter.sh/disrupted", effect="PreferNoSchedule"), ""),
        (Taint(key="example.org/ToBeDeletedByClusterAutoscaler", effect="NoSchedule"), ""),
    ],
)
def test_the_taint_identifies_the_autoscaler_that_removes_the_node(taint: Taint, who: str) -> None:
    assert removed_by(a_node(taints=(CANDIDATE, taint))) == who
    assert left_alone(a_node(taints=(taint,))) == (
        f"{who} is removing this node, so careen leaves the node alone" if who else ""
    )


@pytest.mark.parametrize("taint", [TO_BE_DELETED, DISRUPTED, DISRUPTING])
def test_an_idle_node_stays_idle_while_an_autoscaler_is_removing_it(taint: Taint) -> None:
    """The host needs a reboot. The agent reports in one Event that it leaves the node alone."""
    made = decided(node={"taints": (taint,)})
    assert (made.phase, made.reason.code, made.look_again_seconds) == (
        Phase.IDLE,
        Code.BEING_REMOVED,
        LEAVING_LOOK_SECONDS,
    )
    assert [type(action).__name__ for action in made.actions] == ["PostEvent"]
    again = decided(node={"taints": (taint,)}, memory=made.memory)
    assert again.actions == ()


def test_a_node_that_an_autoscaler_may_remove_later_waits_like_any_other_node() -> None:
    assert decided(node={"taints": (CANDIDATE,)}).phase is Phase.WAITING


def test_if_an_autoscaler_begins_to_remove_a_waiting_node_the_node_stops_waiting() -> None:
    """Karpenter has put its taint on the Node, but the Node still exists. The agent sets the phase Idle, removes
    careen's label and taint from the Node, and removes the node from the line."""
    progress = a_progress(Phase.WAITING, taint_key=OURS.key)
    made = decided(progress, node={"taints": (OURS, DISRUPTED), "label": order.READY}, lock=LINE)
    assert (made.phase, made.reason.code) == (Phase.IDLE, Code.BEING_REMOVED)
    patch = the_patch(made)
    assert patch.labels == {keys.REBOOT_LABEL: None}
    assert patch.taints == (DISRUPTED,), "the agent must keep the autoscaler's taint"
    assert the_lock(made).line.names == ()


def test_if_an_autoscaler_removes_an_idle_node_the_node_leaves_the_line() -> None:
    """When an autoscaler begins to remove a node, the node's agent removes the node's name from the lock's list of next
    nodes. This write may have failed, so the agent repeats it when the node is idle."""
    line = LockContent(line=Line(names=("n1", "n2"), at="2026-03-04T11:59:59Z", waiting=2))
    due = remembering(lock_due=UPTIME - 1)
    made = decided(node={"taints": (DISRUPTED,)}, lock=line, memory=due, waiters=(a_node("n2"),))
    assert the_lock(made).line.names == ("n2",)


@pytest.mark.parametrize("phase", [Phase.CLAIMING, Phase.DRAINING])
def test_the_agent_undoes_a_claim_or_a_drain_if_an_autoscaler_begins_to_remove_the_node(phase: Phase) -> None:
    made = decided(a_progress(phase), node={"taints": (TO_BE_DELETED,)}, pods=(a_pod(),))
    assert (made.phase, made.reason.code) == (Phase.WAITING, Code.BEING_REMOVED)
    assert made.reason.sentence.startswith(
        "the cluster autoscaler is removing this node, so careen leaves the node alone"
    )
    assert the_patch(made).unschedulable is (False if phase is Phase.DRAINING else None)
    assert evicted(made) == []


def test_a_node_stays_in_the_phase_rebooting_if_an_autoscaler_begins_to_remove_it() -> None:
    progress = a_progress(Phase.REBOOTING)
    made = decided(progress, node={"taints": (TO_BE_DELETED,)})
    assert made.phase is Phase.REBOOTING


# ---- load balancers ----


def draining(seconds: float, settle: float) -> Decision:
    progress = a_progress(Phase.DRAINING, drain_started=ago(seconds))
    return decided(progress, a_policy(balancer_settle_seconds=settle), pods=(a_pod(),))


def test_the_drain_waits_for_load_balancers_before_the_first_eviction() -> None:
    waits = draining(10, 45)
    assert (evicted(waits), waits.reason.sentence) == (
        [],
        "the node waits 35s before the first eviction (--load-balancer-settle)",
    )
    assert waits.look_again_seconds == 2.0
    assert evicted(draining(45, 45)) == ["web-1"]
    assert evicted(draining(0, 0)) == ["web-1"]


def test_the_load_balancer_delay_does_not_count_towards_the_drain_timeout() -> None:
    progress = a_progress(Phase.DRAINING, drain_started=ago(70))
    policy = a_policy(balancer_settle_seconds=45, drain=DrainPolicy(timeout_seconds=60))
    assert decided(progress, policy, pods=(a_pod(),)).phase is Phase.DRAINING
    late = a_progress(Phase.DRAINING, drain_started=ago(106))
    assert decided(late, policy, pods=(a_pod(),)).phase is Phase.FAILED


def test_the_load_balancer_delay_counts_from_now_if_the_record_is_of_another_boot() -> None:
    progress = a_progress(Phase.DRAINING, drain_started=ago(300, boot="another"))
    waits = decided(progress, a_policy(balancer_settle_seconds=45), pods=(a_pod(),))
    assert (waits.phase, evicted(waits)) == (Phase.DRAINING, [])


# ---- a Node that is being deleted ----


@pytest.mark.parametrize("phase", [Phase.IDLE, Phase.WAITING, Phase.CLAIMING, Phase.DRAINING])
def test_a_node_that_is_being_deleted_gets_no_taint_and_keeps_no_claim_or_cordon(phase: Phase) -> None:
    record = a_progress(phase) if phase not in {Phase.IDLE, Phase.WAITING} else a_progress(phase, claim="", lock="")
    decision = decided(record, node={"is_being_deleted": True}, pods=(a_pod(),))
    assert decision.reason.code is Code.BEING_REMOVED
    assert "the Node is being deleted, so careen leaves the node alone" in decision.reason.sentence
    assert decision.phase in {Phase.IDLE, Phase.WAITING}
    for action in decision.actions:
        if isinstance(action, PatchNode):
            assert not action.adds_taint
            assert action.unschedulable is not True
        assert not isinstance(action, EvictPod)
