"""A claim is in the lock, but the annotation in which careen stores the node's progress does not contain this claim.
The agent takes over the claim or releases it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from careen.core.actions import PatchNode, WriteLock
from careen.core.decision import Decision
from careen.core.facts import keys
from careen.core.facts.memory import ClaimMemory, Memory, RebootMemory, RebootOutcome
from careen.core.facts.observation import NOT_ASKED, Holders, Unknown
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.progress import Announcement, Progress, to_annotation
from careen.core.facts.reasons import Code
from careen.core.lock.content import Entry
from tests.careen.core.builders import (
    BOOT,
    LOCK_OBJECT,
    NO,
    UPTIME,
    YES,
    a_marked_node,
    a_node,
    a_progress,
    ago,
    an_entry,
    decided,
    held,
    kinds,
    remembering,
    the_lock,
    the_patch,
    the_record,
    with_parts,
)

FRESH = remembering(is_reconciled=False)
KURED = '{"nodeID":"n1","metadata":{"unschedulable":false},"created":"2026-03-04T00:00:00Z","TTL":0}'
KURED_CORDONED = KURED.replace("false", "true")


def idle(**changes: Any) -> Decision:
    return decided(
        **{"need": NO, "memory": FRESH, "lock": held(an_entry()), "holders": Holders(nodes=(a_node(),)), **changes}
    )


def test_the_agent_reads_its_node_again_after_it_has_read_the_lock() -> None:
    assert idle(holders=NOT_ASKED).wants == {Evidence.HOLDERS}


def test_an_idle_node_removes_its_claim_if_it_has_no_progress_record() -> None:
    decision = idle()
    assert (decision.phase, decision.reason.code, kinds(decision)) == (Phase.IDLE, Code.ENTRY_RELEASED, [WriteLock])
    assert the_lock(decision).entries == ()


def test_a_claim_is_kept_if_a_newer_read_of_the_node_shows_the_claim() -> None:
    newer = a_marked_node(a_progress(Phase.CLAIMING))
    assert kinds(idle(holders=Holders(nodes=(newer,)))) == []


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        pytest.param(
            to_annotation(a_progress(Phase.VERIFYING)),
            an_entry(boot="boot-0"),
            id="the Node's record has the phase Verifying",
        ),
        pytest.param(
            '{"version": 99, "claims": ["c1"]}', an_entry(boot="boot-0"), id="a newer release wrote the Node's record"
        ),
    ],
)
def test_a_claim_is_kept_if_a_newer_read_of_the_node_shows_a_later_or_unreadable_record(
    text: str, entry: Entry
) -> None:
    newer = a_node(annotations={keys.PROGRESS: text})
    assert kinds(idle(lock=held(entry), holders=Holders(nodes=(newer,)))) == []


def test_a_recreated_node_does_not_take_over_the_claim_of_the_former_node() -> None:
    """A person deleted the Node and created it again from a copy. The agent cannot know whether the host was asked to
    reboot before the deletion."""
    content = held(an_entry(uid="uid-old"))
    assert kinds(idle(node={"labels": {keys.REBOOT_LABEL: "in-progress"}}, lock=content)) == []


def test_an_agent_removes_no_claim_if_the_second_read_of_its_node_fails() -> None:
    assert kinds(idle(holders=Unknown("503"))) == []


def test_a_claim_from_before_the_boot_is_taken_over_and_the_new_boot_is_verified() -> None:
    decision = idle(lock=held(an_entry(boot="boot-0")))
    assert (decision.phase, decision.reason.code) == (Phase.VERIFYING, Code.ENTRY_ADOPTED)
    record = the_record(decision)
    assert (record.claim, record.boot_left, record.lock, record.is_cordoned_by_us, record.reboots_for_need) == (
        "c1",
        "boot-0",
        LOCK_OBJECT,
        False,
        1,
    )


@pytest.mark.parametrize(
    ("label", "cordoned_before", "is_ours"),
    [("in-progress", False, True), ("in-progress", True, False), (None, False, False)],
)
def test_the_label_and_the_claim_show_who_cordoned_a_node_that_has_no_progress_record(
    label: str | None, cordoned_before: bool, is_ours: bool
) -> None:
    node = {"unschedulable": True, "labels": {keys.REBOOT_LABEL: label} if label else {}}
    decision = idle(node=node, lock=held(an_entry(boot="boot-0", cordoned=cordoned_before)))
    assert the_record(decision).is_cordoned_by_us is is_ours


def test_a_claim_without_a_boot_id_is_taken_over_with_the_current_boot_id() -> None:
    """An annotation with a claim and without a boot id would be unreadable for the agents, and would halt the
    roll-out."""
    node = {"labels": {keys.REBOOT_LABEL: "in-progress"}}
    record = the_record(idle(node=node, lock=held(an_entry(boot=""))))
    assert (record.claim, record.boot_left, record.is_releasing) == ("c1", BOOT, True)
    announced = the_record(idle(node=ANNOUNCED, lock=held(an_entry(boot=""))))
    assert (announced.claim, announced.boot_left, announced.phase) == ("c1", BOOT, Phase.REBOOTING)


def test_the_drain_of_a_node_that_lost_its_progress_record_is_undone() -> None:
    node = {"unschedulable": True, "labels": {keys.REBOOT_LABEL: "in-progress"}}
    decision = idle(node=node, need=NO)
    assert (decision.phase, decision.reason.code) == (Phase.WAITING, Code.ENTRY_ADOPTED)
    assert the_patch(decision).unschedulable is False
    assert (the_record(decision).claim, the_record(decision).is_releasing) == ("c1", True)


@pytest.mark.parametrize(("unschedulable", "cordoned_before"), [(True, True), (False, False), (False, True)])
def test_a_persons_earlier_cordon_stays_when_the_progress_record_is_lost(
    unschedulable: bool, cordoned_before: bool
) -> None:
    node = {"unschedulable": unschedulable, "labels": {keys.REBOOT_LABEL: "in-progress"}}
    assert the_patch(idle(node=node, lock=held(an_entry(cordoned=cordoned_before)))).unschedulable is None


def test_the_claim_of_a_deleted_node_is_released_after_the_reboot_deadline() -> None:
    """The Node was deleted and created again with the same name. The agent cannot know whether the host was asked to
    reboot before the deletion."""
    content = held(an_entry(uid="uid-former"))
    first = idle(lock=content)
    assert (first.reason.code, kinds(first)) == (Code.ENTRY_RELEASED, [])
    early = idle(lock=content, memory=with_parts(first.memory, holder_check__holders_not_before=0), uptime=UPTIME + 899)
    assert kinds(early) == []
    late = idle(lock=content, memory=with_parts(first.memory, holder_check__holders_not_before=0), uptime=UPTIME + 901)
    assert kinds(late) == [WriteLock]


def test_a_waiting_node_removes_a_claim_that_its_progress_record_does_not_contain() -> None:
    decision = decided(
        a_progress(Phase.WAITING), lock=held(an_entry(claim="late")), holders=Holders(nodes=(a_node(),)), need=YES
    )
    assert decision.reason.code is Code.ENTRY_RELEASED
    assert the_lock(decision).entries == ()


def test_an_idle_node_that_needs_a_reboot_enters_waiting_before_it_removes_an_old_claim() -> None:
    assert idle(need=YES).phase is Phase.WAITING


def test_a_node_with_a_reboot_label_but_no_progress_record_recovers_before_it_waits() -> None:
    node = {"unschedulable": True, "labels": {keys.REBOOT_LABEL: "in-progress"}}
    assert idle(node=node, need=YES, lock=NOT_ASKED).wants == {Evidence.LOCK}
    assert idle(node=node, need=NO, lock=NOT_ASKED, memory=remembering(is_reconciled=True)).wants == {Evidence.LOCK}, (
        "the record was removed while this process ran"
    )
    decision = idle(node=node, need=YES)
    assert (decision.phase, decision.reason.code, the_patch(decision).unschedulable) == (
        Phase.WAITING,
        Code.ENTRY_ADOPTED,
        False,
    )
    assert idle(node=node, need=YES, lock=Unknown("503")).reason.code is Code.NEED_SEEN


@pytest.mark.parametrize(
    ("content", "unschedulable", "uncordons"),
    [(KURED, True, True), (KURED, False, False), (KURED_CORDONED, True, False)],
)
def test_careen_removes_a_claim_and_a_cordon_that_kured_left(
    content: str, unschedulable: bool, uncordons: bool
) -> None:
    decision = idle(lock=content, node={"unschedulable": unschedulable})
    assert kinds(decision) == ([PatchNode, WriteLock] if uncordons else [WriteLock])
    assert the_lock(decision).entries == ()
    if uncordons:
        assert the_patch(decision).unschedulable is False


@pytest.mark.parametrize(
    "changes", [{"foreign": ("kured runs",)}, {"foreign": Unknown("403")}, {"node": {"ready": False}}]
)
def test_kureds_claim_stays_while_kured_runs_or_the_node_is_unready(changes: dict[str, Any]) -> None:
    assert kinds(idle(lock=KURED, **changes)) == []


def test_the_agent_looks_for_kureds_pods_before_it_removes_kureds_claim() -> None:
    assert idle(lock=KURED, foreign=NOT_ASKED).wants == {Evidence.FOREIGN}


def test_a_partly_readable_claim_is_removed_without_an_uncordon() -> None:
    in_parts = '{"nodeID":"n1","maxOwners":1,"locks":[{"nodeID":"n1","id":"c1","boot":5}]}'
    assert kinds(idle(lock=in_parts, node={"unschedulable": True})) == [WriteLock]


def test_an_agent_ignores_a_claim_that_kured_wrote_for_another_node() -> None:
    assert kinds(idle(lock=KURED.replace("n1", "n9"))) == []


# ---- record, label and taint are lost, and managedFields name who set the cordon ----

OURS, KUBECTL = ("careen-agent",), ("kubectl-cordon",)


def cordoned(*by: str, **changes: Any) -> dict[str, Any]:
    return {"unschedulable": True, "cordoned_by": by, **changes}


def test_the_drain_of_a_node_that_lost_careens_labels_and_annotations_is_undone() -> None:
    """After the loss, the agent has set the label `required` again, because the host still needs a reboot. The claim
    from before the loss is still in the lock, so the agent can tell that a drain had begun."""
    decision = decided(
        a_progress(Phase.WAITING), lock=held(an_entry()), node=cordoned(*OURS), holders=Holders(nodes=(a_node(),))
    )
    assert (decision.phase, decision.reason.code) == (Phase.WAITING, Code.ENTRY_ADOPTED)
    assert the_patch(decision).unschedulable is False
    assert (the_record(decision).claim, the_record(decision).is_releasing) == ("c1", True)


@pytest.mark.parametrize("by", [KUBECTL, (), ("argo", "careen-agent")])
def test_a_node_that_lost_careens_labels_and_annotations_keeps_a_cordon_of_unknown_origin(by: tuple[str, ...]) -> None:
    decision = decided(
        a_progress(Phase.WAITING), lock=held(an_entry()), node=cordoned(*by), holders=Holders(nodes=(a_node(),))
    )
    assert kinds(decision) == [WriteLock], "the agent removes the claim and keeps the cordon"


def test_a_rebooted_node_that_lost_careens_annotations_is_verified_and_uncordoned() -> None:
    decision = idle(node=cordoned(*OURS), lock=held(an_entry(boot="boot-0")))
    assert (decision.phase, the_record(decision).is_cordoned_by_us) == (Phase.VERIFYING, True)


@pytest.mark.parametrize("label", ["in-progress", None])
def test_managed_fields_decide_who_set_a_cordon_even_if_label_and_claim_say_otherwise(label: str | None) -> None:
    """After careen's cordon, a person uncordoned the node and cordoned it again. The cordon is therefore the person's,
    although careen's label and claim suggest that careen set it."""
    node = cordoned(*KUBECTL, labels={keys.REBOOT_LABEL: label} if label else {})
    assert the_record(idle(node=node, lock=held(an_entry(boot="boot-0")))).is_cordoned_by_us is False
    if label:
        assert the_patch(idle(node=node)).unschedulable is None


@pytest.mark.parametrize("is_reconciled", [True, False])
def test_careens_cordon_without_a_claim_is_removed(is_reconciled: bool) -> None:
    decision = idle(node=cordoned(*OURS), lock=held(), memory=remembering(is_reconciled=is_reconciled))
    assert (decision.phase, decision.reason.code, kinds(decision)) == (Phase.IDLE, Code.CORDON_LIFTED, [PatchNode])
    assert the_patch(decision).unschedulable is False
    assert dict(the_patch(decision).annotations) == {}


def test_careens_cordon_on_a_waiting_node_is_removed() -> None:
    decision = decided(a_progress(Phase.WAITING), lock=held(), node=cordoned(*OURS))
    assert (decision.phase, decision.reason.code, the_patch(decision).unschedulable) == (
        Phase.WAITING,
        Code.CORDON_LIFTED,
        False,
    )


@pytest.mark.parametrize(
    "node", [cordoned(*KUBECTL), cordoned(), cordoned("argo", "careen-agent"), cordoned(*OURS, ready=False)]
)
def test_foreign_cordons_and_cordons_of_unready_nodes_are_kept(node: dict[str, Any]) -> None:
    assert kinds(idle(node=node, lock=held())) == []


def test_without_a_progress_record_the_agent_reads_the_lock_before_it_removes_a_cordon() -> None:
    fresh = idle(node=cordoned(*OURS), lock=NOT_ASKED, memory=remembering(is_reconciled=True))
    assert fresh.wants == {Evidence.LOCK}
    failing = idle(node=cordoned(*OURS), lock=Unknown("503"), memory=remembering(is_reconciled=True))
    assert (kinds(failing), failing.memory.holder_check.holders_not_before) == ([], UPTIME + 30)
    assert idle(node=cordoned(*OURS), lock=NOT_ASKED, memory=failing.memory).wants == frozenset()


@pytest.mark.parametrize("phase", [Phase.DRAINING, Phase.REBOOTING, Phase.VERIFYING, Phase.FAILED])
def test_while_the_progress_record_has_a_claim_the_cordon_is_not_removed(phase: Phase) -> None:
    decision = decided(a_progress(phase), node=cordoned(*OURS))
    assert decision.reason.code is not Code.CORDON_LIFTED


def recreated(record: Progress | None, **changes: Any) -> Decision:
    """Return the decision of an agent process whose Node was deleted and recreated. Before the deletion, this process
    had read `record` on the Node."""
    before = (
        decided(record, node={"uid": "former"}, need=YES, lock=held(an_entry(uid="former"))).memory
        if record
        else remembering()
    )
    given = {
        "need": YES,
        "lock": held(an_entry(uid="former")),
        "holders": Holders(nodes=(a_node(),)),
        "memory": before,
        **changes,
    }
    return decided(a_progress(Phase.WAITING), **given)


@pytest.mark.parametrize("phase", [Phase.CLAIMING, Phase.DRAINING])
def test_an_agent_on_a_recreated_node_releases_the_former_nodes_claim_at_once(phase: Phase) -> None:
    """The host has not rebooted since the claim was written. Neither this agent process nor another one can have asked
    the host to reboot, so the claim is no longer needed."""
    decision = recreated(a_progress(phase))
    assert (decision.reason.code, kinds(decision)) == (Code.ENTRY_RELEASED, [WriteLock])
    assert the_lock(decision).entries == ()


def asked(outcome: RebootOutcome, announcement: int = 1, claim: str = "c1") -> Any:
    return replace(
        remembering(node_uid="former"),
        held=ClaimMemory(claim="c1", is_announced=False),
        reboot=RebootMemory(claim=claim, announcement=announcement, outcome=outcome),
    )


@pytest.mark.parametrize(
    ("changes", "is_released"),
    [
        pytest.param(
            {"memory": asked(RebootOutcome.NOT_ASKED)},
            True,
            id="this process recorded the reboot and did not ask the host",
        ),
        pytest.param({"memory": asked(RebootOutcome.FAILED)}, True, id="the host refused the reboot"),
        pytest.param(
            {"memory": asked(RebootOutcome.ACCEPTED, claim="an older one")},
            True,
            id="this process asked the host to reboot under an earlier claim",
        ),
        pytest.param({"memory": asked(RebootOutcome.ACCEPTED)}, False, id="this process asked the host to reboot"),
        pytest.param(
            {"memory": asked(RebootOutcome.UNCLEAR)}, False, id="this process may have asked the host to reboot"
        ),
        pytest.param(
            {"memory": asked(RebootOutcome.NOT_ASKED, announcement=2)},
            False,
            id="the reboot was recorded twice, the first time perhaps by another process",
        ),
        pytest.param({"memory": remembering()}, False, id="this process started after the claim"),
        pytest.param(
            {"lock": held(an_entry(claim="c2", uid="former"))},
            False,
            id="the claim in the lock is not the claim that this process knows",
        ),
        pytest.param({"lock": held(an_entry(uid="former", boot=""))}, False, id="the claim has no boot id"),
    ],
)
def test_the_claim_of_a_deleted_node_stays_if_the_host_may_have_been_asked_to_reboot(
    changes: dict[str, Any], is_released: bool
) -> None:
    """The Node was deleted and created again with the same name. The lock still contains the claim of the deleted
    Node."""
    decision = recreated(a_progress(Phase.DRAINING), **changes)
    assert (WriteLock in kinds(decision)) is is_released


def test_the_claim_of_a_deleted_node_stays_if_an_earlier_process_announced_the_reboot() -> None:
    """The Node was deleted and created again with the same name. The earlier process may have asked the host to
    reboot."""
    decision = recreated(a_progress(Phase.REBOOTING, announcement=1, announced=ago(30)))
    assert WriteLock not in kinds(decision)


# A record that a client removed after the reboot was announced.

ANNOUNCED = {
    "unschedulable": True,
    "cordoned_by": (keys.FIELD_MANAGER,),
    "labels": {keys.REBOOT_LABEL: "in-progress"},
    "annotations": {keys.PHASE: "Rebooting"},
}


def having_asked(outcome: RebootOutcome) -> Memory:
    return remembering(reboot=RebootMemory(claim="c1", announcement=1, outcome=outcome, by="x"))


@pytest.mark.parametrize(
    ("memory", "is_asked"),
    [
        (remembering(), False),
        (having_asked(RebootOutcome.NOT_ASKED), False),
        (having_asked(RebootOutcome.ACCEPTED), True),
        (having_asked(RebootOutcome.UNCLEAR), True),
    ],
)
@pytest.mark.parametrize("need", [YES, NO])
def test_the_agent_restores_a_progress_record_that_was_lost_right_before_the_reboot(
    memory: Memory, is_asked: bool, need: Any
) -> None:
    decision = idle(node=ANNOUNCED, need=need, memory=memory)
    assert (decision.phase, decision.reason.code) == (Phase.REBOOTING, Code.ENTRY_ADOPTED)
    assert kinds(decision) == [PatchNode]
    assert the_patch(decision).unschedulable is None
    record = the_record(decision)
    assert (record.claim, record.boot_left, record.is_releasing, record.is_cordoned_by_us) == (
        "c1",
        BOOT,
        False,
        True,
    )
    assert record.announced == Announcement(boot=BOOT, uptime=UPTIME, is_asked=is_asked)


def test_a_process_remembers_its_reboot_request_even_if_the_progress_record_is_lost() -> None:
    node = {**ANNOUNCED, "annotations": {}}
    assert idle(node=node, memory=having_asked(RebootOutcome.ACCEPTED)).phase is Phase.REBOOTING
    assert idle(node=node).phase is Phase.WAITING


@pytest.mark.parametrize("unread", [{"lock": Unknown("503")}, {"holders": Unknown("503")}])
def test_a_lost_progress_record_is_not_restored_while_lock_or_node_is_unreadable(
    unread: dict[str, Any],
) -> None:
    decision = idle(node=ANNOUNCED, need=YES, **unread)
    assert (decision.phase, kinds(decision)) == (Phase.IDLE, [])


def test_a_progress_record_lost_before_the_reboot_causes_an_immediate_read_of_the_lock() -> None:
    """The lost annotation said that a reboot follows. Until the agent has written the annotation again, the agents of
    other nodes could remove this node's claim from the lock."""
    has_looked = remembering(is_reconciled=True, holder_check__holders_not_before=UPTIME + 20)
    assert idle(node=ANNOUNCED, need=YES, lock=NOT_ASKED, memory=has_looked).wants == {Evidence.LOCK}
    decision = idle(node=ANNOUNCED, need=YES, holders=NOT_ASKED, memory=has_looked)
    assert (decision.phase, kinds(decision)) == (Phase.IDLE, [])


# A record that is removed while a person keeps the node down.

KEPT = {keys.REQUEST: '{"want":"maintenance","reason":"disk swap"}'}
CORDONED = {"labels": {keys.REBOOT_LABEL: "in-progress"}, "unschedulable": True, "cordoned_by": (keys.FIELD_MANAGER,)}


@pytest.mark.parametrize("boot", [BOOT, "boot-0"], ids=["the host runs the same boot", "the host runs a new boot"])
def test_a_node_in_maintenance_that_loses_its_progress_record_stays_cordoned(boot: str) -> None:
    decision = idle(node={**CORDONED, "annotations": KEPT}, lock=held(an_entry(boot=boot)))
    assert (decision.phase, decision.reason.code) == (Phase.WAITING, Code.ENTRY_ADOPTED)
    assert decision.reason.sentence == (
        "the Node had no record of its claim in the lock: the agent releases the claim, but the cordon stays, because "
        "a person asked for maintenance: disk swap"
    )
    assert (the_patch(decision).unschedulable, the_record(decision).is_releasing) == (None, True)


def test_a_node_that_loses_its_progress_record_outside_of_a_maintenance_is_uncordoned() -> None:
    decision = idle(node=CORDONED, lock=held(an_entry(boot=BOOT)))
    assert the_patch(decision).unschedulable is False


def test_careens_cordon_without_a_claim_stays_while_a_maintenance_request_exists() -> None:
    lone = {"unschedulable": True, "cordoned_by": (keys.FIELD_MANAGER,)}
    assert Code.CORDON_LIFTED is idle(node=lone, lock=held()).reason.code
    kept = idle(node={**lone, "annotations": KEPT}, need=YES, lock=held())
    assert Code.CORDON_LIFTED is not kept.reason.code
    assert [each.unschedulable for each in kept.actions if isinstance(each, PatchNode)] in ([], [None])
