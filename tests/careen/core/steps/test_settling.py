"""The phase Settling. The node waits until the workloads that its drain displaced are healthy, and then for the release
delay. It then removes its claim from the lock and writes into the lock which nodes reboot next."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from careen.core.actions import PatchNode, WriteLock
from careen.core.decision import Decision
from careen.core.facts import keys
from careen.core.facts.observation import NOT_ASKED, Unknown
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.policy import SettlePolicy
from careen.core.facts.progress import Mark, OwnerHealth
from careen.core.facts.reasons import Code
from careen.core.lock import notation
from careen.core.lock.content import LockContent, Overdue
from careen.core.lock.line import Line
from tests.careen.core.builders import (
    BOOT,
    NO,
    UNKNOWN_NEED,
    UPTIME,
    YES,
    a_marked_node,
    a_policy,
    a_progress,
    a_reading,
    ago,
    an_entry,
    an_owner,
    decided,
    held,
    kinds,
    remembering,
    the_lock,
    the_patch,
    the_record,
)

RECORD = a_progress(Phase.SETTLING, owners=(an_owner(),), reboots_for_need=1)


def settling(record: Any = RECORD, **changes: Any) -> Decision:
    return decided(record, **{"need": NO, "owners": (an_owner(),), **changes})


def test_a_release_removes_the_claim_from_both_lock_and_node_and_lists_the_next_nodes() -> None:
    n2 = a_marked_node(a_progress(Phase.WAITING), name="n2", label="ready")
    n3 = a_marked_node(a_progress(Phase.WAITING), name="n3", label="required")
    assert settling(waiters=NOT_ASKED).wants == {Evidence.WAITERS}
    decision = settling(waiters=(n2, n3))
    assert (decision.phase, decision.reason.code, kinds(decision)) == (
        Phase.IDLE,
        Code.RELEASED,
        [WriteLock, PatchNode],
    )
    content = the_lock(decision)
    assert (content.holders, content.line.names, content.line.waiting, content.line.at) == (
        (),
        ("n2",),
        2,
        "2026-03-04T12:00:00Z",
    )
    assert the_patch(decision).annotations[keys.PROGRESS] is None


@pytest.mark.parametrize(
    ("interval", "changes", "expected"),
    [
        pytest.param(3600, {}, "2026-03-04T12:00:00Z", id="the host's clock is correct"),
        pytest.param(
            3600, {"clock_skew_seconds": 30.0}, "2026-03-04T11:59:30Z", id="the host's clock is 30 seconds ahead"
        ),
        pytest.param(3600, {"waiters": Unknown("503")}, "2026-03-04T12:00:00Z", id="the waiting nodes are unknown"),
        pytest.param(0, {}, "", id="without --cluster-minimum-interval"),
    ],
)
def test_a_release_after_a_reboot_starts_the_minimum_interval_between_reboots_in_the_cluster(
    interval: float, changes: dict[str, Any], expected: str
) -> None:
    decision = settling(
        policy=a_policy(cluster_interval_seconds=interval), **{"lock": held(an_entry(), an_entry("n9")), **changes}
    )
    assert the_lock(decision).released_at == expected


def test_a_release_after_a_failed_reboot_starts_the_minimum_interval_between_reboots_in_the_cluster() -> None:
    progress = a_progress(Phase.WAITING, claim="c1", boot_left="boot-0", is_releasing=True, verify_started=ago(50))
    decision = decided(progress, lock=held(an_entry()), policy=a_policy(cluster_interval_seconds=3600))
    assert the_lock(decision).released_at == "2026-03-04T12:00:00Z"


N2 = a_marked_node(a_progress(Phase.WAITING), name="n2", label="ready")
BESIDE = held(an_entry(), an_entry("n9"))


@pytest.mark.parametrize(
    ("changes", "looks_again"),
    [
        pytest.param({"waiters": (N2,)}, False, id="the release listed the waiting nodes"),
        pytest.param({"waiters": Unknown("503")}, True, id="the waiting nodes are unknown"),
        pytest.param({"waiters": (N2,), "lock": BESIDE}, True, id="another node holds a claim"),
    ],
)
def test_an_idle_agent_reads_the_lock_again_unless_the_release_already_read_everything(
    changes: dict[str, Any], looks_again: bool
) -> None:
    """The agent process started after the reboot, so this process has not yet compared the lock with the Node while the
    node was idle. Usually, the agent reads the lock for this comparison in its next round. The agent skips this read in
    one case: the agent listed the waiting nodes for the release, and no other node holds a claim. In this case, the
    read would show nothing new."""
    home = settling(memory=remembering(is_reconciled=False), **changes)
    assert home.phase is Phase.IDLE
    idle = decided(need=NO, memory=home.memory, lock=NOT_ASKED, uptime=UPTIME + 2)
    assert idle.wants == ({Evidence.LOCK} if looks_again else frozenset())
    much_later = decided(need=NO, memory=home.memory, lock=NOT_ASKED, uptime=UPTIME + 10_000)
    assert much_later.wants == {Evidence.LOCK}, "the idle node still reads the lock from time to time"


def test_a_node_that_releases_its_claim_does_not_name_itself_as_next() -> None:
    older = [a_marked_node(a_progress(Phase.WAITING), name=name, label="ready") for name in ("n1", "n2")]
    content = the_lock(settling(waiters=tuple(older)))
    assert (content.line.names, content.line.waiting) == (("n2",), 1)


def test_a_releasing_node_that_cannot_list_waiting_nodes_keeps_the_next_nodes_in_the_lock() -> None:
    decision = settling(lock=held(an_entry(), line=Line(names=("n5",))), waiters=Unknown("503"))
    assert (the_lock(decision).holders, the_lock(decision).line.names) == ((), ("n5",))


@pytest.mark.parametrize(
    ("now", "is_settled"),
    [
        pytest.param((an_owner(),), True, id="the workload is as healthy as before"),
        pytest.param((an_owner(ready=2),), False, id="the workload has one ready replica fewer than before"),
        pytest.param((an_owner(ready=4, replicas=4),), True, id="another client scaled the workload up"),
        pytest.param((an_owner(ready=1, replicas=1),), True, id="another client scaled the workload down"),
        pytest.param((an_owner(ready=0, generation=2),), False, id="another client changed the workload"),
        pytest.param((an_owner(ready=3, replicas=5),), True, id="an autoscaler scaled the workload up"),
        pytest.param((an_owner(ready=2, replicas=5),), False, id="the additional pods are not ready either"),
        pytest.param((an_owner(ready=0, replicas=0),), True, id="another client scaled the workload to zero"),
        pytest.param(
            (an_owner(ready=0, uid="another"),), False, id="another client recreated the workload, without ready pods"
        ),
        pytest.param(
            (an_owner(ready=2, replicas=2, uid="another"),), True, id="another client recreated a smaller workload"
        ),
        pytest.param((), True, id="another client deleted the workload"),
        pytest.param(Unknown("503"), False, id="the workload cannot be read"),
    ],
)
def test_a_node_settles_when_as_many_pods_are_ready_as_before_or_as_are_still_wanted(
    now: Any, is_settled: bool
) -> None:
    decision = settling(owners=now)
    assert (decision.phase is Phase.IDLE) is is_settled
    assert decision.reason.code is (Code.RELEASED if is_settled else Code.SETTLING)


def test_a_workload_that_was_unhealthy_before_the_drain_need_not_recover() -> None:
    before: OwnerHealth = an_owner(ready=1)
    assert settling(replace(RECORD, owners=(before,)), owners=(an_owner(ready=1),)).phase is Phase.IDLE


@pytest.mark.parametrize(
    "now",
    [
        pytest.param({"ready": 0}, id="a completed or failed Job"),
        pytest.param({"replicas": 4, "ready": 3}, id="a Job that waits before it creates its next pod"),
        pytest.param({"replicas": 4, "ready": 0, "generation": 2}, id="a suspended Job"),
    ],
)
def test_a_settling_node_does_not_wait_for_jobs(now: dict[str, int]) -> None:
    job = an_owner("nightly", kind="Job", replicas=4, ready=4)
    decision = settling(replace(RECORD, owners=(job,)), owners=(replace(job, **now),))
    assert (decision.phase, decision.reason.code) == (Phase.IDLE, Code.RELEASED)


def test_a_job_does_not_hide_an_unhealthy_workload() -> None:
    job = an_owner("nightly", kind="Job", replicas=1, ready=1)
    decision = settling(replace(RECORD, owners=(job, an_owner())), owners=(replace(job, ready=0), an_owner(ready=2)))
    assert (
        decision.reason.sentence
        == "these workloads are not yet as healthy as before the drain: ReplicaSet shop/web (2 of 3 pods ready)"
    )


def test_a_node_without_displaced_workloads_settles_although_the_health_of_workloads_is_unreadable() -> None:
    job = an_owner("nightly", kind="Job", replicas=1, ready=1)
    assert settling(replace(RECORD, owners=(job,)), owners=Unknown("503")).phase is Phase.IDLE


def test_the_message_lists_the_unhealthy_workloads() -> None:
    assert (
        settling(owners=(an_owner(ready=2),)).reason.sentence
        == "these workloads are not yet as healthy as before the drain: ReplicaSet shop/web (2 of 3 pods ready)"
    )


@pytest.mark.parametrize(
    ("policy", "phase", "code"),
    [
        (SettlePolicy.HALT, Phase.FAILED, Code.SETTLE_TIMEOUT),
        (SettlePolicy.CONTINUE, Phase.IDLE, Code.RELEASED),
    ],
)
def test_after_the_settle_timeout_the_policy_halts_or_continues_the_roll_out(
    policy: SettlePolicy, phase: Phase, code: Code
) -> None:
    record = replace(RECORD, settle_started=ago(601))
    decision = settling(record, owners=(an_owner(ready=2),), policy=a_policy(settle_policy=policy))
    assert (decision.phase, decision.reason.code) == (phase, code)
    if phase is Phase.FAILED:
        assert (the_record(decision).claim, the_record(decision).is_releasing) == ("c1", False)
        assert kinds(decision) == [PatchNode, WriteLock]


@pytest.mark.parametrize(
    ("phase", "is_told"), [("NotReady", True), ("", True), ("Settling", False), ("Draining", False)]
)
def test_a_node_that_fails_beside_a_dead_holder_names_it(phase: str, is_told: bool) -> None:
    """Not one that only takes long: it may miss the same pods."""
    dead = an_entry("n9", "c9", overdue=Overdue(phase=phase, since="2026-03-04T11:00:00Z"))  # type: ignore[arg-type]
    lock = held(an_entry("n1", "c1"), dead)
    decision = settling(replace(RECORD, settle_started=ago(601)), owners=(an_owner(ready=2),), lock=lock)
    assert decision.reason.code is Code.SETTLE_TIMEOUT
    assert ("; look there first: " in decision.reason.sentence and "n9" in decision.reason.sentence) is is_told


@pytest.mark.parametrize(
    ("uptime", "owner", "phase"),
    [
        pytest.param(20.0, an_owner(ready=2), Phase.SETTLING, id="unhealthy workloads 20 seconds after the boot"),
        pytest.param(20.0, an_owner(), Phase.SETTLING, id="healthy workloads 20 seconds after the boot"),
        pytest.param(31.0, an_owner(), Phase.IDLE, id="healthy workloads 31 seconds after the boot"),
        pytest.param(31.0, an_owner(ready=2), Phase.FAILED, id="unhealthy workloads 31 seconds after the boot"),
    ],
)
def test_a_settle_timeout_does_not_halt_the_roll_out_before_the_boot_is_stable(
    uptime: float, owner: OwnerHealth, phase: Phase
) -> None:
    """A boot is stable when the host has run for 30 seconds. The settle timeout ends earlier, after 5 seconds."""
    just_seen = Mark(boot=BOOT, uptime=0.3)
    record = replace(RECORD, verify_started=just_seen, settle_started=just_seen)
    policy = a_policy(settle_policy=SettlePolicy.HALT, settle_timeout_seconds=5.0)
    assert settling(record, owners=(owner,), policy=policy, uptime=uptime).phase is phase


@pytest.mark.parametrize(("waited", "is_released"), [(59, False), (60, True)])
def test_the_node_keeps_its_claim_until_the_release_delay_is_over(waited: float, is_released: bool) -> None:
    decision = settling(replace(RECORD, settle_started=ago(waited)), policy=a_policy(lock_release_delay_seconds=60))
    assert (decision.phase is Phase.IDLE) is is_released


@pytest.mark.parametrize(
    ("uptime", "look"),
    [
        pytest.param(0.5, 5.0, id="half a second after the boot"),
        pytest.param(28.0, 2.0, id="two seconds before the boot is stable"),
        pytest.param(30.0, None, id="the boot is stable"),
    ],
)
def test_the_claim_stays_until_the_boot_is_stable(uptime: float, look: float | None) -> None:
    just_seen = Mark(boot=BOOT, uptime=min(uptime, 0.3))
    decision = settling(replace(RECORD, verify_started=just_seen, settle_started=just_seen), uptime=uptime)
    if look is None:
        assert (decision.phase, decision.reason.code) == (Phase.IDLE, Code.RELEASED)
        return
    assert (decision.phase, decision.reason.code, decision.look_again_seconds) == (
        Phase.SETTLING,
        Code.SETTLING,
        pytest.approx(look),
    )
    # The agent may write the expected time of the release (`due`) into its claim. The claim must stay in the lock.
    if WriteLock in kinds(decision):
        assert the_lock(decision).holders == ("n1",)


def test_a_host_that_boots_again_is_verified_again_under_the_same_claim() -> None:
    record = replace(RECORD, verify_started=Mark(boot=BOOT, uptime=0.3), settle_started=Mark(boot=BOOT, uptime=1.0))
    decision = settling(record, uptime=4.0, boot_id="boot-2")
    assert (decision.phase, kinds(decision)) == (Phase.VERIFYING, [PatchNode])
    again = the_record(decision)
    assert (again.claim, again.verify_started, again.settle_started) == ("c1", Mark(boot="boot-2", uptime=4.0), None)


@pytest.mark.parametrize("need", [YES, UNKNOWN_NEED])
def test_a_node_that_may_need_another_reboot_keeps_its_count_of_reboots(need: Any) -> None:
    decision = settling(need=need)
    assert (decision.phase, decision.reason.code, kinds(decision)) == (
        Phase.WAITING,
        Code.RELEASED,
        [WriteLock, PatchNode],
    )
    record = the_record(decision)
    assert (record.claim, record.reboots_for_need, record.need_since) == ("", 1, RECORD.need_since)
    assert (the_patch(decision).taints is not None) is (need is YES)


def test_a_reboot_loop_halts_the_roll_out() -> None:
    decision = settling(replace(RECORD, reboots_for_need=2), need=YES)
    assert (decision.phase, decision.reason.code) == (Phase.FAILED, Code.REBOOT_LOOP)


def test_the_node_drops_a_claim_that_the_lock_no_longer_contains() -> None:
    decision = settling(lock=held(an_entry("n2", "c2")))
    assert (decision.phase, kinds(decision)) == (Phase.IDLE, [PatchNode])


def test_a_claim_missing_from_a_recreated_lock_is_restored() -> None:
    reading = replace(a_reading(LockContent()), daemonset_uid="recreated")
    decision = settling(lock=reading)
    assert decision.reason.code is Code.ENTRY_PUT_BACK


@pytest.mark.parametrize(("lock", "code"), [(Unknown("503"), Code.LOCK_UNKNOWN), ("garbage", Code.LOCK_GARBAGE)])
def test_a_node_keeps_its_claim_while_the_lock_is_unreadable(lock: Any, code: Code) -> None:
    decision = settling(lock=lock)
    assert (decision.phase, decision.reason.code) == (Phase.SETTLING, code)


def test_a_claim_is_released_even_in_a_paused_lock() -> None:
    decision = settling(lock=held(an_entry(), is_paused=True))
    assert decision.phase is Phase.IDLE
    assert the_lock(decision).is_paused


def due(decision: Decision) -> list[str]:
    return [the_lock(decision).entries[0].due] if WriteLock in kinds(decision) else []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param(
            {"policy": a_policy(lock_release_delay_seconds=60)},
            ["2026-03-04T12:00:55Z"],
            id="the release is expected after the release delay",
        ),
        pytest.param(
            {"policy": a_policy(stable_boot_seconds=UPTIME + 20)},
            ["2026-03-04T12:00:20Z"],
            id="the release is expected when the boot is stable",
        ),
        pytest.param(
            {"owners": (an_owner(ready=1),)},
            ["2026-03-04T12:00:00Z"],
            id="the release is expected now, because workloads may settle at any moment",
        ),
        pytest.param(
            {"policy": a_policy(stable_boot_seconds=UPTIME + 20), "clock_skew_seconds": 5.0},
            ["2026-03-04T12:00:15Z"],
            id="the host's clock is five seconds ahead",
        ),
        pytest.param(
            {
                "policy": a_policy(stable_boot_seconds=UPTIME + 20),
                "lock": held(an_entry(due="2026-03-04T12:00:18Z")),
            },
            [],
            id="the lock already contains nearly the same release time",
        ),
        pytest.param(
            {"policy": a_policy(stable_boot_seconds=UPTIME + 20), "lock": held(an_entry(due="2026-03-04T12:00:05Z"))},
            ["2026-03-04T12:00:20Z"],
            id="the lock contains a much earlier release time",
        ),
        pytest.param(
            {"owners": (an_owner(ready=1),), "lock": held(an_entry(due="2026-03-04T11:00:00Z"))},
            [],
            id="the release time in the lock has passed",
        ),
    ],
)
def test_a_settling_node_writes_its_expected_release_time_into_the_lock(
    changes: dict[str, Any], said: list[str]
) -> None:
    decision = settling(**changes)
    assert decision.phase is Phase.SETTLING
    assert due(decision) == said


def test_a_claim_that_is_released_at_once_gets_no_expected_release_time() -> None:
    decision = settling()
    assert (decision.phase, the_lock(decision).entries) == (Phase.IDLE, ())


@pytest.mark.parametrize(
    ("now", "waiters", "kept"),
    [
        pytest.param((an_owner(ready=1),), (N2,), (an_owner(),), id="the workload has not recovered"),
        pytest.param((an_owner(),), (N2,), (), id="the workload has recovered"),
        pytest.param((an_owner(ready=1),), (), (), id="the roll-out is over"),
        pytest.param((an_owner(ready=1),), Unknown("503"), (an_owner(),), id="the waiting nodes are unknown"),
    ],
)
def test_the_lock_keeps_how_healthy_a_workload_was_that_has_not_recovered(now: Any, waiters: Any, kept: Any) -> None:
    """With --settle-policy=continue, the next node's baseline must not begin with the worse state."""
    record = replace(RECORD, settle_started=ago(601))
    policy = a_policy(settle_policy=SettlePolicy.CONTINUE)
    content = the_lock(settling(record, owners=now, waiters=waiters, policy=policy))
    assert content.unsettled == kept
    assert notation.parse(notation.render(content)) == content
