"""The function `decide` returns a decision for every observation. The tests also cover the checks that run before the
function of the node's phase."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from careen.core.actions import PatchNode, PostEvent, WriteLock
from careen.core.decide import decide
from careen.core.facts import keys
from careen.core.facts.memory import EvictAnswer, EvictionMemory, Memory, RebootMemory, RebootOutcome
from careen.core.facts.observation import NOT_ASKED, Gone, NodeView, Unknown
from careen.core.facts.phases import Evidence, Phase, is_allowed
from careen.core.facts.policy import DrainPolicy, LatePolicy, SettlePolicy
from careen.core.facts.progress import Progress
from careen.core.facts.reasons import Code
from careen.core.lock.content import LockContent
from careen.core.lock.line import Line
from careen.core.steps import idle
from tests.careen.core import builders
from tests.careen.core.builders import (
    BOOT,
    LOCK_OBJECT,
    NO,
    UPTIME,
    a_marked_node,
    a_node,
    a_pod,
    a_policy,
    a_progress,
    a_reading,
    ago,
    an_entry,
    an_observation,
    an_owner,
    decided,
    held,
    kinds,
    remembering,
    the_record,
)


@pytest.mark.parametrize(
    ("node", "code"),
    [
        (Unknown("connection refused"), Code.NODE_UNKNOWN),
        (Gone(), Code.NODE_GONE),
        (a_node(annotations={keys.PROGRESS: '{"version":2}'}), Code.PROGRESS_UNREADABLE),
        (a_node(annotations={keys.PROGRESS: '{"version":1,"phase":"Dancing"}'}), Code.PROGRESS_UNREADABLE),
        (a_node(annotations={keys.PROGRESS: '{"version":1,"phase":"Draining"}'}), Code.PROGRESS_UNREADABLE),
        (
            a_node(annotations={keys.PROGRESS: '{"version":1,"phase":"Idle","claim":"c","boot_left":"b"}'}),
            Code.PROGRESS_UNREADABLE,
        ),
        (a_node(annotations={keys.PROGRESS: '{"version":1,"phase":"Claiming","claim":"c"}'}), Code.PROGRESS_UNREADABLE),
    ],
)
def test_an_agent_reports_its_unreadable_node_or_progress_record_and_does_nothing_else(node: Any, code: Code) -> None:
    decision = decide(an_observation(node), a_policy())
    assert decision.reason.code is code
    written = [
        (set(action.annotations), action.labels, action.taints, action.unschedulable)
        for action in decision.actions
        if isinstance(action, PatchNode)
    ]
    assert written == ([({keys.REASON}, {}, None, None)] if isinstance(node, NodeView) else [])
    assert set(kinds(decision)) <= {PatchNode}


def test_an_unreadable_progress_record_is_reported_only_once() -> None:
    node = a_node(annotations={keys.PROGRESS: '{"version":2}'})
    first = decide(an_observation(node), a_policy())
    assert [type(action) for action in first.actions] == [PatchNode, PostEvent]
    told = a_node(annotations={keys.PROGRESS: '{"version":2}', keys.REASON: first.reason.sentence})
    assert decide(an_observation(told, memory=first.memory), a_policy()).actions == ()


@pytest.mark.parametrize(
    "phase", [Phase.CLAIMING, Phase.DRAINING, Phase.REBOOTING, Phase.SETTLING, Phase.FAILED, Phase.WAITING]
)
def test_a_new_boot_of_a_node_with_a_claim_starts_the_verification_in_any_phase(phase: Phase) -> None:
    progress = a_progress(
        phase,
        claim="c1",
        boot_left="boot-0",
        verify_started=None,
        is_releasing=phase in {Phase.WAITING, Phase.FAILED},
    )
    decision = decided(progress)
    assert (decision.phase, decision.reason.code) == (Phase.VERIFYING, Code.REBOOTED)
    record = the_record(decision)
    assert (record.claim, record.reboots_for_need, record.is_releasing) == ("c1", 1, False)
    assert record.verify_started is not None
    assert record.verify_started.boot == BOOT


def test_a_second_new_boot_restarts_the_verification() -> None:
    decision = decided(a_progress(Phase.VERIFYING, verify_started=ago(100, boot="boot-between")))
    assert decision.reason.code is Code.REBOOTED
    assert the_record(decision).reboots_for_need == 1


@pytest.mark.parametrize("phase", [Phase.CLAIMING, Phase.DRAINING, Phase.REBOOTING, Phase.VERIFYING, Phase.SETTLING])
def test_a_node_with_a_claim_stays_in_its_phase_while_the_boot_id_is_unreadable(phase: Phase) -> None:
    decision = decided(a_progress(phase), boot_id=Unknown("no such file"))
    assert (decision.phase, decision.reason.code) == (phase, Code.BOOT_ID_UNKNOWN)
    assert set(kinds(decision)) <= {PatchNode}
    assert all(action.unschedulable is None for action in decision.actions if isinstance(action, PatchNode))


def test_an_idle_agent_compares_the_lock_with_its_node_once_after_its_start() -> None:
    memory = Memory(node_uid="uid-n1")
    first = decided(memory=memory, need=builders.NO, lock=NOT_ASKED)
    assert first.wants == {Evidence.LOCK}
    second = decided(memory=memory, need=builders.NO, lock=LockContent())
    assert (second.wants, second.memory.is_reconciled) == (frozenset(), True)


def test_an_idle_node_that_needs_a_reboot_enters_waiting_despite_an_unreadable_lock() -> None:
    memory = Memory(node_uid="uid-n1")
    blind = decided(memory=memory, need=builders.NO, lock=Unknown("503"))
    assert not blind.memory.is_reconciled
    assert blind.look_again_seconds == 5.0
    assert decided(memory=blind.memory, need=builders.NO, lock=NOT_ASKED).wants == frozenset()
    assert decided(memory=blind.memory, need=builders.YES, lock=NOT_ASKED).phase is Phase.WAITING


def test_an_agent_remembers_its_reboot_request_but_no_evictions_after_its_node_is_recreated() -> None:
    """The Node has a new UID, but the host is the same. So a reboot that the agent requested may still be under way."""
    asked = RebootMemory(claim="c1", announcement=1, outcome=RebootOutcome.ACCEPTED)
    memory = remembering(
        node_uid="uid-old",
        reboot=asked,
        drain__evictions={"p": EvictionMemory(attempts=1, not_before=0, answer=EvictAnswer.BUDGET)},
    )
    after = decided(memory=memory, need=builders.NO, lock=LockContent()).memory
    assert (after.node_uid, after.reboot, after.drain.evictions) == ("uid-n1", asked, {})


@pytest.mark.parametrize("phase", [Phase.VERIFYING, Phase.FAILED])
def test_after_a_manual_uncordon_the_record_no_longer_contains_careens_cordon(phase: Phase) -> None:
    progress = a_progress(
        phase, is_cordoned_by_us=True, failed="never-ready", boot_left="boot-0", verify_started=ago(10)
    )
    decision = decided(progress, node={"unschedulable": False})
    assert decision.reason.code is Code.UNCORDONED_BY_HAND
    assert the_record(decision).is_cordoned_by_us is False


# Every decision, from every half-done state, is one that the table allows and that breaks no rule by itself.

unknown = Unknown("503")
locks = st.sampled_from(
    [
        a_reading(LockContent()),
        a_reading(held(an_entry())),
        a_reading(held(an_entry("n2", "c2"))),
        a_reading(held(an_entry(claim="old"))),
        a_reading(held(an_entry(), is_paused=True)),
        a_reading("garbage"),
        a_reading('{"nodeID":"n1"}'),
        a_reading(held(an_entry(boot="boot-0"))),
        a_reading(LockContent(line=Line(names=("n1",)))),
        unknown,
        replace(a_reading(held(an_entry())), daemonset_uid="other"),
    ]
)
policies = st.builds(
    a_policy,
    late_policy=st.sampled_from(LatePolicy),
    settle_policy=st.sampled_from(SettlePolicy),
    reboot_delay_seconds=st.sampled_from([0.0, 30.0]),
    concurrency=st.sampled_from([1, 2]),
    drain=st.builds(
        DrainPolicy,
        timeout_seconds=st.sampled_from([0.0, 20.0]),
        force_reboot=st.booleans(),
        delay_seconds=st.sampled_from([0.0, 100.0]),
    ),
    pre_reboot_labels=st.sampled_from([{}, {"pool": "maintenance"}]),
    taint_key=st.sampled_from([None, keys.DEFAULT_TAINT_KEY]),
)


def consistent(progress: Progress) -> Progress:
    """Return this progress without the fields that contradict its phase. If the phase requires a claim, the result
    contains one. `decide` refuses a progress that careen cannot have written."""
    phase = Phase(progress.phase)
    is_under_claim = phase not in {Phase.IDLE, Phase.WAITING, Phase.FAILED}
    has_claim = is_under_claim or (progress.claim != "" and phase is not Phase.IDLE)
    return replace(
        progress,
        claim="c1" if has_claim else "",
        boot_left=progress.boot_left if has_claim else "",
        is_releasing=has_claim and not is_under_claim and (phase is Phase.WAITING or progress.is_releasing),
    )


marks = st.sampled_from([None, ago(5), ago(50), ago(5000), ago(5, boot="boot-0")])
records = st.builds(
    Progress,
    phase=st.sampled_from([phase.value for phase in Phase]),
    claim=st.sampled_from(["", "c1"]),
    lock=st.just(LOCK_OBJECT),
    is_releasing=st.booleans(),
    claimed=marks,
    boot_left=st.sampled_from([BOOT, "boot-0"]),
    is_cordoned_by_us=st.booleans(),
    drain_started=marks,
    drained=marks,
    announcement=st.sampled_from([0, 1]),
    announced=marks,
    verify_started=marks,
    settle_started=marks,
    failed_at=marks,
    failed=st.sampled_from(["", "drain-timeout", "reboot-loop", "settle-timeout", "never-ready", "nonsense"]),
    tries=st.sampled_from([0, 3]),
    reboots_for_need=st.sampled_from([0, 3]),
    owners=st.sampled_from([(), (an_owner(),)]),
    need_since=st.just("2026-03-04T11:00:00Z"),
).map(consistent)
memories = st.builds(
    remembering,
    is_reconciled=st.booleans(),
    reboot=st.sampled_from(
        [None, *(RebootMemory(claim="c1", announcement=1, outcome=outcome) for outcome in RebootOutcome)]
    ),
)
observations = st.fixed_dictionaries(
    {
        "lock": locks,
        "memory": memories,
        "need": st.sampled_from([builders.YES, builders.NO, builders.UNKNOWN_NEED]),
        "pods": st.sampled_from([(), (a_pod(),), unknown, NOT_ASKED]),
        "peers": st.sampled_from([(), unknown, NOT_ASKED]),
        "fleet": st.sampled_from([builders.a_fleet(a_node()), builders.a_fleet(a_node(), age=60), unknown, NOT_ASKED]),
        "waiters": st.sampled_from([(), unknown, NOT_ASKED]),
        "owners": st.sampled_from([(), (an_owner(ready=1),), unknown, NOT_ASKED]),
        "foreign": st.sampled_from([(), ("kured",), unknown, NOT_ASKED]),
        "holders": st.sampled_from([builders.Holders(), unknown, NOT_ASKED]),
        "forecast": st.sampled_from([builders.Forecast(node="n1", made_at=""), unknown, NOT_ASKED]),
        "boot_id": st.sampled_from([BOOT, "boot-9", unknown]),
    }
)
nodes = st.fixed_dictionaries(
    {
        "unschedulable": st.booleans(),
        "ready": st.booleans(),
        "boot_id": st.sampled_from([BOOT, "boot-0"]),
        "annotations": st.sampled_from([{}, {keys.HOLD: "people"}, {keys.RETRY: "2026-03-04T12:00:00Z"}]),
    }
)


@settings(max_examples=600, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(records, nodes, observations, policies)
def test_any_consistent_state_leads_to_an_allowed_decision(
    progress: Progress, node: dict[str, Any], seen: dict[str, Any], policy: Any
) -> None:
    view = a_marked_node(progress, **node)
    decision = decide(an_observation(view, **seen), policy)
    assert decision.reason.code is not Code.PROGRESS_UNREADABLE or progress.failed in {"", "nonsense"}
    if decision.wants:
        assert decision.actions == ()
        return
    assert is_allowed(Phase(progress.phase), decision.phase)
    assert decision.look_again_seconds <= 1000
    for action in decision.actions:
        if isinstance(action, PatchNode):
            assert action.resource_version == view.resource_version
            if action.unschedulable is True:
                assert progress.phase == Phase.CLAIMING, "the agent cordons only in the phase Claiming"
                assert the_record(decision).is_cordoned_by_us is not view.unschedulable
                assert action.send_before is not None
                assert action.send_before <= UPTIME + policy.fleet_max_age_seconds
            if action.unschedulable is False:
                assert (
                    progress.is_cordoned_by_us
                    or seen["lock"].text == '{"nodeID":"n1"}'
                    or decision.reason.code is Code.ENTRY_ADOPTED
                )
            if (
                decision.phase is not Phase.IDLE
                and keys.PROGRESS in action.annotations
                and progress.claim
                and not the_record(decision).claim
            ):
                assert is_out_of_the_lock(seen["lock"], decision.actions), (
                    "the claim must leave the lock before the agent removes the claim from the Node"
                )


def is_out_of_the_lock(reading: Any, actions: tuple[Any, ...]) -> bool:
    if any(isinstance(action, WriteLock) for action in actions):
        return isinstance(actions[0], WriteLock)
    content = reading.content if not isinstance(reading, Unknown) else None
    return isinstance(content, LockContent) and content.entry("n1", "c1") is None


def test_an_idle_node_reads_the_lock_again_after_it_has_released_its_claim() -> None:
    """After the release, the server may still carry out a delayed write of the claim. The lock then contains the claim
    again."""
    released = decided(a_progress(Phase.WAITING, claim="c1", boot_left=BOOT, is_releasing=True), need=NO)
    assert released.memory.lock_due == UPTIME + 75.0
    home = decided(a_progress(Phase.WAITING), need=NO, memory=released.memory)
    assert (home.phase, home.memory.lock_due) == (Phase.IDLE, UPTIME + 75.0)
    early = decided(need=NO, memory=home.memory, lock=NOT_ASKED, uptime=UPTIME + 74.0)
    assert (early.wants, early.reason.code) == (frozenset(), Code.NO_NEED)
    due = decided(need=NO, memory=home.memory, lock=NOT_ASKED, uptime=UPTIME + 76.0)
    assert due.wants == {Evidence.LOCK}
    read = decided(need=NO, memory=home.memory, uptime=UPTIME + 76.0)
    assert (read.reason.code, read.memory.lock_due) == (Code.NO_NEED, UPTIME + 76.0 + idle.LONE_LOCK_LOOK_SECONDS)
