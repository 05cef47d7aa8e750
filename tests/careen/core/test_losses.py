"""Which of careen's writes stick on the Node and in the lock, how long the agent waits before it writes again what did
not stick, and what it does meanwhile."""

from __future__ import annotations

import pytest

from careen.core import losses
from careen.core.actions import Evict, PatchNode, PostEvent, WriteLock
from careen.core.facts import keys
from careen.core.facts.memory import Loss, Losses, Memory
from careen.core.facts.observation import NodeView, Taint
from careen.core.facts.phases import Phase
from careen.core.facts.reasons import Code
from careen.core.lock import notation
from tests.careen.core.builders import (
    UPTIME,
    a_marked_node,
    a_node,
    a_pod,
    a_progress,
    a_reading,
    an_entry,
    decided,
    held,
    the_patch,
    with_parts,
)

SOFT = Taint(key=keys.DEFAULT_TAINT_KEY, effect=keys.TAINT_EFFECT)
RECORD, LABEL, REASON = (f"annotation {keys.PROGRESS}", f"label {keys.REBOOT_LABEL}", f"annotation {keys.REASON}")
TAINT = f"taint {keys.DEFAULT_TAINT_KEY}"
WHOLE = PatchNode(
    purpose="test",
    resource_version="7",
    labels={keys.REBOOT_LABEL: "in-progress", "pool": "maintenance"},
    annotations={keys.PROGRESS: "record", keys.REASON: "why", keys.NEED: None},
    taints=(SOFT,),
    unschedulable=True,
)


def kept(**changes: object) -> NodeView:
    """Return the Node that contains every part of the patch WHOLE."""
    node = a_node(
        labels={keys.REBOOT_LABEL: "in-progress", "pool": "maintenance"},
        annotations={keys.PROGRESS: "record", keys.REASON: "why"},
        taints=(SOFT,),
        unschedulable=True,
    )
    return replace_node(node, **changes)


def replace_node(node: NodeView, **changes: object) -> NodeView:
    return NodeView(**{**{name: getattr(node, name) for name in NodeView.__struct_fields__}, **changes})


LOST = [
    pytest.param({"labels": {"pool": "maintenance"}}, LABEL, True, id="careen's label, by which other agents select"),
    pytest.param({"labels": {keys.REBOOT_LABEL: "in-progress"}}, "label pool", True, id="a label of the drain"),
    pytest.param({"annotations": {keys.REASON: "why"}}, RECORD, True, id="the record"),
    pytest.param({"annotations": {keys.PROGRESS: "other", keys.REASON: "why"}}, RECORD, True, id="another record"),
    pytest.param({"annotations": {keys.PROGRESS: "record"}}, REASON, False, id="the reason, a text for people"),
    pytest.param({"taints": ()}, TAINT, False, id="the soft taint, a comfort"),
    pytest.param({"unschedulable": False}, "cordon", True, id="the cordon"),
]


@pytest.mark.parametrize(("changes", "title", "stops"), LOST)
def test_an_answer_that_lacks_a_mark_names_the_mark_and_whether_decisions_rest_on_it(
    changes: dict[str, object], title: str, stops: bool
) -> None:
    missing = losses.lacking(WHOLE, kept(**changes))
    assert [wish.title for wish in missing] == [title]
    assert [losses.stops(wish, WHOLE) for wish in missing] == [stops]
    found = losses.after_patch(Losses(), WHOLE, a_node(), kept(**changes), uptime=UPTIME).marks
    assert {name: (loss.times, loss.stops) for name, loss in found.items()} == {title: (1, stops)}


def test_marks_of_others_in_the_answer_are_no_loss() -> None:
    others = Taint(key="theirs", effect="NoSchedule")
    answer = kept(
        taints=(SOFT, others),
        annotations={keys.PROGRESS: "record", keys.REASON: "why", "theirs": "x"},
    )
    assert losses.lacking(WHOLE, answer) == ()


def test_a_removed_mark_that_stays_is_a_loss() -> None:
    home = PatchNode(purpose="home", resource_version="7", labels={keys.REBOOT_LABEL: None}, taints=())
    assert [wish.title for wish in losses.lacking(home, kept())] == [LABEL, TAINT]


def test_the_pause_before_the_next_write_doubles_up_to_five_minutes() -> None:
    account, uptime, pauses = Losses(), UPTIME, []
    for _ in range(10):
        account = losses.after_patch(account, WHOLE, a_node(), kept(unschedulable=False), uptime=uptime)
        pauses.append(account.marks["cordon"].not_before - uptime)
        uptime = account.marks["cordon"].not_before
    assert pauses == [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


def test_a_write_that_sticks_ends_the_loss() -> None:
    account = losses.after_patch(Losses(), WHOLE, a_node(), kept(unschedulable=False), uptime=UPTIME)
    assert losses.after_patch(account, WHOLE, a_node(), kept(), uptime=UPTIME + 5).marks == {}


def test_a_mark_that_another_client_takes_back_again_and_again_costs_a_growing_pause_although_each_answer_has_it() -> (
    None
):
    """The first time costs no pause: it may be a person's change."""
    account, uptime, pauses = Losses(), UPTIME, []
    for _ in range(5):
        account = losses.after_patch(account, WHOLE, a_node(), kept(), uptime=uptime)
        by = {keys.PROGRESS: ("argocd-controller", keys.FIELD_MANAGER)}
        reverted = kept(annotations={keys.PROGRESS: "old", keys.REASON: "why"}, written_by=by)
        account = losses.after_read(account, reverted, None, uptime=uptime + 1)
        loss = account.marks[RECORD]
        pauses.append(loss.not_before - uptime - 1)
        uptime = max(loss.not_before, uptime + 1)
    assert pauses == [0, 2, 4, 8, 16]
    assert loss.by == ("argocd-controller",)
    assert losses.sentence({RECORD: loss}) == (
        f"what the agent writes does not stick: {RECORD}: argocd-controller changes it again"
    )


@pytest.mark.parametrize(("later", "is_loss"), [(losses.REVERT_SECONDS, True), (losses.REVERT_SECONDS + 1, False)])
def test_a_change_long_after_the_write_is_a_persons_and_no_loss(later: float, is_loss: bool) -> None:
    account = losses.after_patch(Losses(), WHOLE, a_node(), kept(), uptime=UPTIME)
    account = losses.after_read(account, kept(unschedulable=False), None, uptime=UPTIME + later)
    assert ("cordon" in account.marks) is is_loss


def test_a_persons_own_annotation_that_comes_again_is_no_loss() -> None:
    done = PatchNode(purpose="retry", resource_version="7", annotations={keys.RETRY: None})
    account = losses.after_patch(Losses(), done, a_node(annotations={keys.RETRY: ""}), a_node(), uptime=UPTIME)
    assert losses.after_read(account, a_node(annotations={keys.RETRY: ""}), None, uptime=UPTIME + 9).marks == {}


TAKES = WriteLock(
    purpose="take a claim", expected_resource_version="42", daemonset_uid="x", content=notation.render(held(an_entry()))
)
FREES = WriteLock(purpose="release", expected_resource_version="42", daemonset_uid="x", content=notation.render(held()))


@pytest.mark.parametrize(
    ("write", "lock", "is_loss"),
    [
        (TAKES, held(), True),
        (TAKES, held(an_entry()), False),
        (FREES, held(an_entry()), True),
        (FREES, held(an_entry("n2")), False),
        (TAKES, "garbage", False),
    ],
    ids=["a claim that is gone", "the claim stands", "a claim is back", "another node's claim", "an unreadable lock"],
)
def test_a_claim_that_another_client_takes_back_is_a_loss(write: WriteLock, lock: object, is_loss: bool) -> None:
    account = losses.after_lock_write(Losses(), write, "n1", is_kept=True, uptime=UPTIME)
    account = losses.after_read(account, a_node(), a_reading(lock), uptime=UPTIME + 1)  # type: ignore[arg-type]
    assert (losses.LOCK in account.marks) is is_loss


def test_a_write_of_the_lock_whose_answer_lacks_it_is_a_loss_at_once() -> None:
    account = losses.after_lock_write(Losses(), TAKES, "n1", is_kept=False, uptime=UPTIME)
    assert account.marks[losses.LOCK].not_before == UPTIME + losses.FIRST_PAUSE_SECONDS


# The decision ----------------------------------------------------------------------------------------------------


def a_loss(**changes: object) -> Loss:
    given = {
        "times": 3,
        "at": UPTIME - 1,
        "not_before": UPTIME + 60,
        "wanted": "x",
        "found": None,
        "is_reverted": False,
        "stops": True,
    }
    return Loss(**{**given, **changes})


def of(title: str, **changes: object) -> Memory:
    return Memory(node_uid="uid-n1", losses=Losses(marks={title: a_loss(**changes)}))


def test_an_agent_whose_record_does_not_stick_writes_nothing_and_says_why_once() -> None:
    first = decided(memory=of(RECORD))
    assert [type(action) for action in first.actions] == [PostEvent]
    assert (first.reason.code, first.phase) == (Code.WRITE_NOT_KEPT, Phase.IDLE)
    assert RECORD in first.reason.sentence
    assert 0 < first.look_again_seconds <= 5
    assert decided(memory=first.memory).actions == ()
    due = with_parts(first.memory, losses__marks={RECORD: a_loss(not_before=UPTIME)})
    assert [type(action) for action in decided(memory=due).actions][:1] == [PatchNode]


OURS = a_marked_node(a_progress(Phase.CLAIMING)).annotations[keys.PROGRESS]
EARLIER = '{"version":1,"phase":"Waiting"}'
PUT_BACK = {"is_reverted": True, "times": 1, "not_before": UPTIME, "wanted": OURS, "found": EARLIER, "by": ("argocd",)}


@pytest.mark.parametrize(
    ("record", "changes", "is_written"),
    [
        pytest.param(EARLIER, {}, True, id="another client put back the record from before"),
        pytest.param(EARLIER, {"not_before": UPTIME + 9.0}, False, id="again and again: after a pause"),
        pytest.param(EARLIER, {"by": ()}, False, id="perhaps another process of this agent wrote it"),
        pytest.param('{"version":1,"phase":"Waiting","tries":1}', {}, False, id="an agent has written since"),
        pytest.param("{}", {"found": "{}"}, False, id="a record that cannot be read is for a person"),
        pytest.param(None, {"found": None}, False, id="somebody removed the record"),
    ],
)
def test_a_record_that_another_client_put_back_is_written_again_and_no_decision_rests_on_it(
    record: str | None, changes: dict[str, object], is_written: bool
) -> None:
    node = {"annotations": {} if record is None else {keys.PROGRESS: record}}
    decision = decided(node=node, memory=of(RECORD, **{**PUT_BACK, **changes}))
    patches = [each for each in decision.actions if isinstance(each, PatchNode)]
    assert [each.annotations for each in patches if each.annotations == {keys.PROGRESS: OURS}] == (
        [{keys.PROGRESS: OURS}] if is_written else []
    )
    if is_written:
        assert len(decision.actions) == 1
        assert (decision.phase, decision.reason.code) == (Phase.CLAIMING, Code.WRITE_NOT_KEPT)
    if "not_before" in changes:
        assert patches == []


def test_a_single_change_by_another_client_gets_no_event() -> None:
    assert decided(memory=of("cordon", times=1, is_reverted=True, not_before=UPTIME)).actions[0] != PostEvent
    told = [decided(memory=of(REASON, times=times, is_reverted=True, stops=False)).actions[0] for times in (1, 2)]
    assert [isinstance(action, PostEvent) and action.code is Code.WRITE_NOT_KEPT for action in told] == [False, True]


TAINTED = a_progress(Phase.WAITING, taint_key=keys.DEFAULT_TAINT_KEY, tainted_at="2026-03-04T11:00:00Z")


def test_a_node_whose_soft_taint_does_not_stick_goes_on_without_it() -> None:
    missing = decided(TAINTED)
    assert the_patch(missing).taints == (SOFT,)
    decision = decided(TAINTED, memory=of(TAINT, stops=False, wanted="set"))
    assert not any(isinstance(each, PatchNode) and each.taints for each in decision.actions)
    assert decision.refusals == ()
    assert decision.reason.code is not Code.WRITE_NOT_KEPT


def test_a_cordon_that_admission_drops_undoes_the_drain_and_is_not_called_a_persons() -> None:
    in_service = {"unschedulable": False}
    by_hand = decided(a_progress(Phase.DRAINING), node=in_service)
    assert by_hand.reason.code is Code.UNCORDONED_BY_HAND
    dropped = decided(a_progress(Phase.DRAINING), node=in_service, memory=of("cordon", wanted="set"))
    assert (dropped.phase, dropped.reason.code) == (Phase.FAILED, Code.WRITE_NOT_KEPT)
    assert "cordon" in dropped.reason.sentence


def test_the_uncordon_is_sent_although_the_record_does_not_stick() -> None:
    on_hold = {"annotations": {keys.HOLD: "wait"}}
    decision = decided(a_progress(Phase.DRAINING), node=on_hold, memory=of(RECORD))
    assert the_patch(decision).unschedulable is False
    both = with_parts(of(RECORD), losses__marks={RECORD: a_loss(), "cordon": a_loss(wanted=None, found="set")})
    stuck = decided(a_progress(Phase.DRAINING), node=on_hold, memory=both)
    assert not any(isinstance(each, PatchNode) for each in stuck.actions)


def test_no_reboot_is_announced_while_the_claim_does_not_stick() -> None:
    assert decided(a_progress(Phase.DRAINING)).phase is Phase.REBOOTING
    lost = decided(a_progress(Phase.DRAINING), memory=of(losses.LOCK))
    assert lost.phase is not Phase.REBOOTING
    assert lost.refusals[0].code is Code.WRITE_NOT_KEPT
    assert not any(isinstance(each, WriteLock) for each in lost.actions)


def test_evictions_go_on_while_only_the_reason_does_not_stick() -> None:
    draining = decided(a_progress(Phase.DRAINING), pods=(a_pod(),), memory=of(REASON, stops=False))
    assert any(isinstance(each, Evict) for each in draining.actions)
