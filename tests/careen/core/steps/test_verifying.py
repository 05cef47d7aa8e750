"""The phase Verifying. The agent first proves that the host runs a new boot. One patch then restores everything on the
Node."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from careen.core.actions import Notify, Occasion, PatchNode
from careen.core.decision import Decision
from careen.core.facts import keys
from careen.core.facts.observation import NOT_ASKED, PodView, Taint, Unknown
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.progress import OwnerHealth
from careen.core.facts.reasons import Code
from careen.core.lock.content import LockContent
from tests.careen.core.builders import (
    NO,
    NOW,
    UNKNOWN_NEED,
    YES,
    a_daemon_pod,
    a_pod,
    a_policy,
    a_progress,
    ago,
    decided,
    kinds,
    the_lock,
    the_patch,
    the_record,
)

OURS = Taint(key="careen.dev/reboot", effect="PreferNoSchedule")
THEIRS = Taint(key="dedicated", effect="NoSchedule", value="db")
RECORD = a_progress(
    Phase.VERIFYING,
    taint_key=OURS.key,
    tainted_at="2026-03-04T11:58:00Z",
    drain_started_at="2026-03-04T11:59:00Z",
    displaced=4,
    prior_labels={"pool": "web"},
    reboots_for_need=1,
    failures=3,
)
NODE = {"taints": (THEIRS, OURS), "labels": {"pool": "away"}}
POLICY = {"pre_reboot_labels": {"pool": "away"}, "post_reboot_labels": {"checked": "yes"}}


def verifying(node: dict[str, Any] | None = None, **changes: Any) -> Decision:
    given: dict[str, Any] = {"need": NO, "policy": a_policy(**POLICY), **changes}
    return decided(RECORD, node={**NODE, **(node or {})}, **given)


def test_one_patch_restores_the_cordon_the_taint_and_the_labels() -> None:
    decision = verifying()
    assert (decision.phase, decision.reason.code, kinds(decision)) == (
        Phase.SETTLING,
        Code.BACK_IN_SERVICE,
        [PatchNode],
    )
    patch = the_patch(decision)
    assert (patch.unschedulable, patch.taints) == (False, (THEIRS,))
    assert patch.labels == {keys.REBOOT_LABEL: "in-progress", "pool": "web", "checked": "yes"}
    record = the_record(decision)
    assert (record.claim, record.is_cordoned_by_us, record.taint_key) == ("c1", False, "")
    assert record.failures == 0, "the agent must reset the count of failures"
    assert [action.occasion for action in decision.actions if isinstance(action, Notify)] == [Occasion.UNCORDON]


@pytest.mark.parametrize(("waited", "look"), [(0.0, 0.3), (1.0, 0.3), (2.0, 0.5), (3.0, 0.75), (4.0, 1.0), (60.0, 1.0)])
def test_an_unready_node_is_checked_often_at_first(waited: float, look: float) -> None:
    """DaemonSet pods are often ready a moment after the agent starts."""
    record = replace(RECORD, verify_started=ago(waited))
    decision = decided(record, node={**NODE, "ready": False}, need=NO, policy=a_policy(**POLICY))
    assert (decision.phase, decision.look_again_seconds) == (Phase.VERIFYING, look)


def test_the_reboot_report_contains_the_boot_ids_the_durations_and_the_restored_labels() -> None:
    report = json.loads(str(the_patch(verifying()).annotations[keys.LAST_REBOOT]))
    assert report == {
        "at": "2026-03-04T12:00:00Z",
        "bootLeft": "boot-0",
        "boot": "boot-1",
        "moves": 4,
        "seconds": 60,
        "needSince": "2026-03-04T11:00:00Z",
        "failures": 3,
        "leadSeconds": 60,
        "labels": {"checked": {"was": None, "to": "yes"}},
    }


def test_a_persons_cordon_from_before_the_claim_stays() -> None:
    record = a_progress(Phase.VERIFYING, is_cordoned_by_us=False, prior_unschedulable=True)
    assert the_patch(decided(record, need=NO)).unschedulable is None


@pytest.mark.parametrize(
    ("node", "pods", "words"),
    [
        pytest.param(
            {"boot_id": "boot-0"},
            (),
            "the kubelet has not reported the new boot",
            id="the Node still reports the old boot",
        ),
        pytest.param({"ready": False}, (), "the node is not ready", id="the node is not ready"),
        pytest.param(
            {}, Unknown("503"), "the pods of this node cannot be listed", id="the pods of the node cannot be listed"
        ),
        pytest.param(
            {},
            (a_daemon_pod("a", is_ready=False), a_daemon_pod("b")),
            "these pods of this node are not ready: kube-system/a",
            id="a DaemonSet's pod is not ready",
        ),
    ],
)
def test_the_agent_restores_nothing_before_the_boot_is_verified(node: dict[str, Any], pods: Any, words: str) -> None:
    decision = verifying(node, pods=pods)
    assert (decision.phase, decision.reason.code, decision.reason.sentence) == (Phase.VERIFYING, Code.VERIFYING, words)
    assert all(action.unschedulable is None for action in decision.actions if isinstance(action, PatchNode))


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(a_pod(is_ready=False), id="an unready pod of a ReplicaSet"),
        pytest.param(
            a_pod(namespace="kube-system", owner_kind="DaemonSet", owner_name="kured", is_ready=False),
            id="the unready pod of the agent itself",
        ),
        pytest.param(
            a_daemon_pod(is_ready=False, deletion_timestamp=NOW + timedelta(seconds=30)),
            id="a terminating pod of a DaemonSet",
        ),
        pytest.param(a_daemon_pod(is_ready=False, phase="Failed"), id="a failed pod of a DaemonSet"),
    ],
)
def test_the_verification_waits_only_for_daemonset_pods_that_must_run(pod: Any) -> None:
    """A pod of the agents' own DaemonSet, a terminating pod and a failed pod need not run."""
    assert verifying(pods=(pod,)).phase is Phase.SETTLING


@pytest.mark.parametrize(("waited", "phase"), [(899, Phase.VERIFYING), (901, Phase.FAILED)])
def test_a_node_that_never_becomes_ready_halts_the_roll_out_and_stays_cordoned(waited: float, phase: Phase) -> None:
    record = a_progress(Phase.VERIFYING, verify_started=ago(waited))
    decision = decided(record, node={"ready": False})
    assert decision.phase is phase
    if phase is Phase.FAILED:
        assert decision.reason.code is Code.NEVER_READY
        assert (the_record(decision).claim, the_record(decision).is_cordoned_by_us) == ("c1", True)
        assert the_patch(decision).unschedulable is None


@pytest.mark.parametrize(("need", "taints"), [(YES, None), (UNKNOWN_NEED, (THEIRS,)), (NO, (THEIRS,))])
def test_the_taint_stays_only_if_the_host_needs_another_reboot(need: Any, taints: Any) -> None:
    assert the_patch(verifying(need=need)).taints == taints


@pytest.mark.parametrize(("reboots", "phase"), [(1, Phase.SETTLING), (2, Phase.FAILED)])
def test_a_reboot_loop_returns_the_node_to_service_and_halts_the_roll_out(reboots: int, phase: Phase) -> None:
    record = a_progress(Phase.VERIFYING, reboots_for_need=reboots)
    decision = decided(record, need=YES)
    assert decision.phase is phase
    assert the_patch(decision).unschedulable is False
    if phase is Phase.FAILED:
        assert (decision.reason.code, the_record(decision).claim) == (Code.REBOOT_LOOP, "c1")


def test_a_verifying_node_first_restores_its_missing_claim() -> None:
    decision = verifying(lock=LockContent())
    assert decision.reason.code is Code.ENTRY_PUT_BACK
    (entry,) = the_lock(decision).entries
    assert entry.boot == "boot-0"


@pytest.mark.parametrize("lock", [Unknown("503"), "garbage"])
def test_a_verified_node_returns_to_service_despite_an_unreadable_lock(lock: Any) -> None:
    assert verifying(lock=lock).phase is Phase.SETTLING


def daemon_row(**changes: Any) -> OwnerHealth:
    """Return the entry for the DaemonSet of `a_daemon_pod` in the annotation with the node's progress."""
    return OwnerHealth(
        **{
            "kind": "DaemonSet",
            "namespace": "kube-system",
            "name": "proxy",
            "uid": "ds-proxy",
            "generation": zlib.crc32(b"5d9"),
            "replicas": 1,
            "ready": 1,
            **changes,
        }
    )


REVISION = {"labels": {"controller-revision-hash": "5d9"}}


@pytest.mark.parametrize(
    ("rows", "pod", "early", "late"),
    [
        pytest.param(
            (daemon_row(),),
            REVISION,
            Phase.VERIFYING,
            Phase.FAILED,
            id="a pod that was ready before the reboot",
        ),
        pytest.param(
            (daemon_row(ready=0),),
            REVISION,
            Phase.SETTLING,
            Phase.SETTLING,
            id="a pod that was not ready before the reboot",
        ),
        pytest.param(
            (daemon_row(ready=0),),
            {"labels": {"controller-revision-hash": "77f"}},
            Phase.SETTLING,
            Phase.SETTLING,
            id="a pod that was not ready before and has a new template",
        ),
        pytest.param((), REVISION, Phase.VERIFYING, Phase.SETTLING, id="a pod of a new DaemonSet"),
        pytest.param(
            (daemon_row(uid="other"),), REVISION, Phase.VERIFYING, Phase.SETTLING, id="a pod of a recreated DaemonSet"
        ),
        pytest.param(
            (daemon_row(),),
            {"labels": {"controller-revision-hash": "77f"}},
            Phase.VERIFYING,
            Phase.SETTLING,
            id="a pod that was ready before and has a new template",
        ),
        pytest.param(
            (daemon_row(generation=0),),
            {},
            Phase.VERIFYING,
            Phase.FAILED,
            id="a pod that was ready before and has no template revision",
        ),
    ],
)
def test_daemonset_pods_are_compared_with_their_state_before_the_drain(
    rows: Any, pod: dict[str, Any], early: Phase, late: Phase
) -> None:
    for waited, phase in ((899, early), (901, late)):
        record = replace(RECORD, owners=rows, verify_started=ago(waited))
        assert decided(record, need=NO, pods=(a_daemon_pod(is_ready=False, **pod),)).phase is phase


def test_the_message_lists_only_pods_that_were_ready_before_the_drain() -> None:
    pods = (
        a_daemon_pod("old", is_ready=False),
        a_daemon_pod("good", owner_uid="ds-cni", owner_name="cni", is_ready=False),
    )
    rows = (daemon_row(ready=0), daemon_row(name="cni", uid="ds-cni", generation=0))
    decision = decided(replace(RECORD, owners=rows), need=NO, pods=pods)
    assert decision.reason.sentence == "these pods of this node are not ready: kube-system/good"


def test_a_node_that_stops_waiting_for_pods_lists_the_unready_pods() -> None:
    decision = decided(replace(RECORD, verify_started=ago(901)), need=NO, pods=(a_daemon_pod(is_ready=False),))
    assert decision.reason.sentence == (
        "the node rebooted, is ready and is back in service; these pods of this node are not ready: "
        "kube-system/proxy-1 (none of these pods ran on this node before the drain)"
    )


RULES_TAINT = Taint(key="readiness.k8s.io/acme.com/network-unavailable", effect="NoSchedule")


def test_a_node_returns_to_service_only_after_its_readiness_taint_is_removed() -> None:
    decision = verifying(node={"taints": (RULES_TAINT,)})
    assert decision.phase is Phase.VERIFYING
    assert decision.reason.sentence == f"a NodeReadinessRule has not removed {RULES_TAINT.key}"


def test_a_readiness_taint_from_before_the_cordon_does_not_delay_the_verification() -> None:
    record = replace(RECORD, prior_readiness=(RULES_TAINT.key,))
    assert decided(record, need=NO, node={"taints": (RULES_TAINT,)}).phase is Phase.SETTLING


def test_a_lasting_readiness_taint_halts_the_roll_out() -> None:
    record = replace(RECORD, verify_started=ago(901))
    assert decided(record, need=NO, node={"taints": (RULES_TAINT,)}).reason.code is Code.NEVER_READY


def test_an_unready_node_halts_the_roll_out_at_the_verify_timeout() -> None:
    assert decided(replace(RECORD, verify_started=ago(901)), node={"ready": False}).reason.code is Code.NEVER_READY


def static_row(**changes: Any) -> OwnerHealth:
    """Return the entry for the static pod `etcd-n1`."""
    given = {"kind": "StaticPod", "name": "etcd-n1", "uid": "uid-etcd-n1", "generation": 0}
    return daemon_row(**{**given, **changes})


def etcd(**changes: Any) -> PodView:
    """Return the mirror pod of a static pod."""
    given = {"namespace": "kube-system", "owner_kind": "Node", "owner_name": "n1", "owner_uid": "n1", "is_mirror": True}
    return a_pod("etcd-n1", **{**given, **changes})


@pytest.mark.parametrize(
    ("rows", "pods", "early", "late"),
    [
        pytest.param((static_row(),), (etcd(),), Phase.SETTLING, Phase.SETTLING, id="ready as before"),
        pytest.param(
            (static_row(),),
            (etcd(uid="new"),),
            Phase.SETTLING,
            Phase.SETTLING,
            id="ready, created again by the kubelet",
        ),
        pytest.param((static_row(),), (etcd(is_ready=False),), Phase.VERIFYING, Phase.FAILED, id="not ready"),
        pytest.param((static_row(),), (etcd(phase="Failed"),), Phase.VERIFYING, Phase.FAILED, id="failed"),
        pytest.param((static_row(),), (), Phase.VERIFYING, Phase.FAILED, id="missing"),
        pytest.param(
            (static_row(ready=0),),
            (etcd(is_ready=False),),
            Phase.SETTLING,
            Phase.SETTLING,
            id="not ready before either",
        ),
        pytest.param((static_row(ready=0),), (), Phase.SETTLING, Phase.SETTLING, id="not ready before, missing now"),
        pytest.param((), (etcd(is_ready=False),), Phase.VERIFYING, Phase.SETTLING, id="a record without static pods"),
    ],
)
def test_static_pods_that_were_ready_must_be_ready_again(
    rows: Any, pods: tuple[PodView, ...], early: Phase, late: Phase
) -> None:
    for waited, phase in ((899, early), (901, late)):
        record = replace(RECORD, owners=rows, verify_started=ago(waited))
        assert decided(record, need=NO, pods=pods).phase is phase


GOING = {"deletion_timestamp": NOW}


@pytest.mark.parametrize(
    ("waited", "pods", "owners", "phase"),
    [
        pytest.param(10, (), (), Phase.VERIFYING, id="its controller has a moment to replace the pod"),
        pytest.param(40, (), (daemon_row(),), Phase.VERIFYING, id="the DaemonSet still wants a pod here"),
        pytest.param(901, (), (daemon_row(),), Phase.FAILED, id="the DaemonSet's pod never came"),
        pytest.param(40, (), Unknown("503"), Phase.VERIFYING, id="the DaemonSet cannot be read"),
        pytest.param(40, (), (), Phase.SETTLING, id="the DaemonSet was deleted"),
        pytest.param(40, (), (daemon_row(replicas=0),), Phase.SETTLING, id="the DaemonSet no longer selects the node"),
        pytest.param(
            40, ({"phase": "Failed"},), (), Phase.VERIFYING, id="its controller has yet to remove a failed pod"
        ),
        pytest.param(40, (GOING,), (daemon_row(),), Phase.VERIFYING, id="the old pod terminates"),
        pytest.param(40, (GOING,), (), Phase.SETTLING, id="the pods of a deleted DaemonSet terminate"),
        pytest.param(0, ({"phase": "Failed"}, {"name": "p2"}), (), Phase.SETTLING, id="a failed pod and its successor"),
    ],
)
def test_a_missing_daemonset_pod_is_not_health(waited: float, pods: Any, owners: Any, phase: Phase) -> None:
    """With the graceful shutdown of kubelets, DaemonSet pods are Failed after the boot, and replaced late."""
    record = replace(RECORD, owners=(daemon_row(),), verify_started=ago(waited))
    here = tuple(a_daemon_pod(**{**REVISION, **each}) for each in pods)
    assert decided(record, need=NO, pods=here, owners=owners).phase is phase


def test_a_missing_pod_of_a_daemonset_that_careen_cannot_read_is_never_dropped() -> None:
    rows = (daemon_row(kind="DaemonSet.apps.kruise.io"),)
    for waited, phase in ((40, Phase.VERIFYING), (901, Phase.FAILED)):
        record = replace(RECORD, owners=rows, verify_started=ago(waited))
        assert decided(record, need=NO, pods=(), owners=()).phase is phase


def test_daemonsets_are_read_only_while_a_pod_is_missing_for_long() -> None:
    record = replace(RECORD, owners=(daemon_row(),), verify_started=ago(40))
    unread = {"need": NO, "owners": NOT_ASKED}
    assert decided(record, pods=(), **unread).wants == {Evidence.OWNERS}
    assert decided(record, pods=(a_daemon_pod(**REVISION),), **unread).phase is Phase.SETTLING
    assert decided(record, pods=(a_daemon_pod(**REVISION, is_ready=False),), **unread).phase is Phase.VERIFYING


@pytest.mark.parametrize(
    ("row", "pod"),
    [(daemon_row(containers=7), a_daemon_pod(**REVISION)), (static_row(containers=7), etcd())],
)
@pytest.mark.parametrize(
    ("containers", "is_back"),
    [
        pytest.param(7, False, id="no container has started since the drain: the report is from the old boot"),
        pytest.param(8, True, id="the kubelet has started a container again"),
        pytest.param(0, True, id="no container is reported"),
    ],
)
def test_a_pod_that_the_new_boot_has_not_started_is_not_ready(
    row: OwnerHealth, pod: PodView, containers: int, is_back: bool
) -> None:
    record = replace(RECORD, owners=(row,), verify_started=ago(5))
    decision = decided(record, need=NO, pods=(replace(pod, containers=containers),))
    assert (decision.phase is Phase.SETTLING) is is_back
    unknown = replace(record, owners=(replace(row, containers=0),))
    assert decided(unknown, need=NO, pods=(pod,)).phase is Phase.SETTLING


def test_the_history_says_what_refused_for_how_long_and_the_node_forgets_it() -> None:
    node = {"annotations": {keys.REFUSED: '{"outside-window":7200,"alert":60}'}}
    patch = the_patch(verifying(node))
    assert json.loads(str(patch.annotations[keys.HISTORY]))[0]["refused"] == {"outside-window": 7200, "alert": 60}
    assert patch.annotations[keys.REFUSED] is None
    assert keys.REFUSED not in the_patch(verifying()).annotations
