"""Overdue nodes: nodes that hold a claim and stay in a phase for too long (`careen.core.lock.overdue`,
`careen.core.steps.shared.holder_checks`). The tests show which nodes are marked in the lock as overdue, which agent
marks them, and which message it writes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from careen.core.actions import Notify, Occasion, PostEvent, WriteLock
from careen.core.decision import Decision
from careen.core.facts import keys
from careen.core.facts.memory import Crowd
from careen.core.facts.observation import NOT_ASKED, Holders, NodeView, Unknown
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.policy import Policy
from careen.core.facts.reasons import Code
from careen.core.facts.times import rfc3339
from careen.core.lock import changes, notation, overdue
from careen.core.lock.content import Entry, LockContent, Overdue
from careen.core.lock.line import Line
from careen.core.steps.shared import holder_checks
from careen.rollout.troubles import not_ready
from tests.careen.core.builders import (
    NO,
    NOW,
    UPTIME,
    a_marked_node,
    a_node,
    a_policy,
    a_progress,
    an_entry,
    decided,
    held,
    kinds,
    remembering,
    the_lock,
    the_patch,
)


def at(seconds_ago: float) -> str:
    return rfc3339(NOW - timedelta(seconds=seconds_ago))


def holder(phase: Phase, seconds: float, **changes: Any) -> NodeView:
    """Return the Node n9, which has been in this phase for this number of seconds."""
    progress = a_progress(
        phase, **({"claim": "c1", "boot_left": "b", "is_releasing": True} if phase is Phase.WAITING else {})
    )
    return a_marked_node(progress, name="n9", annotations={keys.SINCE: at(seconds)}, **changes)


ENTRY = an_entry("n9", created=at(100_000))


def mark(node: NodeView | None, entry: Entry = ENTRY, policy: Policy | None = None) -> Overdue | None:
    holders = Holders(nodes=(node,)) if node else Holders(absent=frozenset({"n9"}))
    return overdue.marked(held(entry), holders, policy or a_policy(), now=NOW).entries[0].overdue


@pytest.mark.parametrize(
    ("phase", "changes", "usual"),
    [
        (Phase.REBOOTING, {}, 300),
        (Phase.REBOOTING, {"reboot_deadline_seconds": 3600}, 1200),
        (Phase.VERIFYING, {}, 1200),
        (Phase.SETTLING, {}, 900),
        (Phase.SETTLING, {"lock_release_delay_seconds": 1800}, 2100),
        (Phase.CLAIMING, {}, 300),
        (Phase.WAITING, {}, 900),
        (Phase.FAILED, {"settle_timeout_seconds": 60}, 360),
        (Phase.DRAINING, {}, 3900),
        (Phase.DRAINING, {"reboot_delay_seconds": 60}, 3960),
    ],
)
def test_a_node_with_a_claim_is_overdue_after_the_configured_time_of_its_phase(
    phase: Phase, changes: dict[str, Any], usual: float
) -> None:
    policy = a_policy(**changes)
    assert mark(holder(phase, usual), policy=policy) is None
    assert mark(holder(phase, usual + 1), policy=policy) == Overdue(phase=phase.value, since=at(usual + 1))


def test_the_expected_time_of_a_drain_includes_the_configured_delay_and_timeout() -> None:
    policy = replace(a_policy(), drain=replace(a_policy().drain, delay_seconds=100, timeout_seconds=600))
    assert [overdue.usual_seconds(phase, policy) for phase in (Phase.CLAIMING, Phase.DRAINING)] == [400, 900]


@pytest.mark.parametrize("phase", ["", "x" * 200_000, "Elsewhere"])
def test_an_overdue_node_in_an_unknown_phase_is_marked_with_the_phase_idle(phase: str) -> None:
    node = holder(Phase.REBOOTING, 9000)
    found = mark(replace(node, annotations={**node.annotations, keys.PHASE: phase}))
    assert found == Overdue(phase=Phase.IDLE.value, since=at(9000))
    assert not found.is_gone


def test_an_agent_with_longer_deadlines_keeps_the_overdue_mark_that_another_agent_set() -> None:
    marked = replace(ENTRY, overdue=Overdue(phase="Rebooting", since=at(400)))
    patient = a_policy(reboot_deadline_seconds=3600)
    assert mark(holder(Phase.REBOOTING, 400), policy=patient) is None
    assert mark(holder(Phase.REBOOTING, 400), marked, patient) == marked.overdue
    assert mark(holder(Phase.REBOOTING, 100), marked, patient) is None


def test_an_overdue_node_that_enters_its_next_phase_loses_the_overdue_mark() -> None:
    marked = replace(ENTRY, overdue=Overdue(phase="Rebooting", since=at(400)))
    assert mark(holder(Phase.VERIFYING, 5), marked) is None


@pytest.mark.parametrize("changes", [{"failed": "never-ready"}, {"id": ""}])
def test_claims_of_failed_nodes_and_of_kured_are_never_overdue(changes: dict[str, Any]) -> None:
    assert mark(holder(Phase.REBOOTING, 9000), replace(ENTRY, **changes)) is None


def test_a_claim_loses_its_overdue_mark_when_its_node_fails() -> None:
    marked = held(replace(ENTRY, overdue=Overdue(phase="Rebooting", since=at(400))))
    assert changes.mark_failed(marked, "n9", "c1", "reboot-not-happened").entries[0].overdue is None


@pytest.mark.parametrize("since", ["", "yesterday", "2026-12-01T00:00:00Z", "2999-01-01T00:00:00Z"])
def test_if_the_start_of_the_phase_is_unreadable_the_start_of_the_claim_is_used(since: str) -> None:
    node = a_marked_node(a_progress(Phase.REBOOTING), name="n9", annotations={keys.SINCE: since})
    assert mark(node, replace(ENTRY, created=at(400))) == Overdue(phase="Rebooting", since=at(400))
    assert mark(node, replace(ENTRY, created=since)) is None


@pytest.mark.parametrize("node", [None, a_node("n9", uid="another")])
def test_a_missing_or_recreated_node_is_overdue_as_soon_as_an_agent_notices(
    node: NodeView | None,
) -> None:
    assert mark(node) == Overdue(phase="", since=at(0))
    marked = replace(ENTRY, overdue=Overdue(phase="", since=at(50)))
    assert mark(node, marked) == marked.overdue


def test_a_claim_whose_node_was_not_read_keeps_its_overdue_mark() -> None:
    content = held(replace(ENTRY, overdue=Overdue(phase="Rebooting", since=at(400))))
    assert overdue.marked(content, Holders(), a_policy(), now=NOW) == content


# ---- in the lock ----


def test_an_overdue_mark_is_unchanged_after_writing_and_reading_the_lock() -> None:
    content = held(replace(ENTRY, overdue=Overdue(phase="Rebooting", since=at(400))))
    assert notation.parse(notation.render(content)) == content


@pytest.mark.parametrize(
    "mark_text",
    [
        '"x"',
        "[]",
        "{}",
        "7",
        '{"phase":"Rebooting"}',
        '{"phase":7,"since":"2026-03-04T11:59:00Z"}',
        '{"phase":"Rebooting","since":"noon"}',
        '{"phase":"Rebooting","since":"0001-01-01T00:00:00+23:59"}',
        '{"phase":"Rebooting","since":"9999-12-31T23:59:59-23:59"}',
        '{"phase":"' + "x" * 99 + '","since":"2026-03-04T11:59:00Z"}',
        '{"phase":"Rebooting","since":"2026-03-04T11:59:00.' + "0" * 99 + 'Z"}',
    ],
)
def test_a_claim_with_an_unreadable_overdue_mark_still_occupies_the_lock(mark_text: str) -> None:
    text = '{"nodeID":"n9","locks":[{"nodeID":"n9","id":"c1","overdue":' + mark_text + "}]}"
    content = notation.parse(text)
    assert isinstance(content, LockContent)
    assert [(entry.node, entry.overdue) for entry in content.entries] == [("n9", None)]


# ---- actions and messages of a waiting node ----

RECORD = a_progress(Phase.WAITING)


def waiting(content: LockContent, **changes: Any) -> Decision:
    node = {"labels": {keys.REBOOT_LABEL: "ready"}, "annotations": {keys.MOVES: "0"}, "taints": ()}
    return decided(RECORD, node=node, lock=content, **{"policy": a_policy(taint_key=None), **changes})


LINE = held(ENTRY, line=Line(names=("n1", "n2"), at=at(600)))
REBOOTING = holder(Phase.REBOOTING, 480)


def test_the_first_node_in_line_marks_an_overdue_reboot_and_posts_an_event() -> None:
    decision = waiting(LINE, holders=Holders(nodes=(REBOOTING,)))
    assert the_lock(decision).entries == (replace(ENTRY, overdue=Overdue(phase="Rebooting", since=at(480))),)
    assert the_lock(decision).line.names == LINE.line.names
    event = next(action for action in decision.actions if isinstance(action, PostEvent))
    assert (event.code, event.is_warning) == (Code.HOLDER_OVERDUE, True)
    assert event.sentence == "overdue: n9 was asked to reboot at 2026-03-04 11:52 UTC and has not come back"


def test_the_roll_out_is_reported_as_halted_when_all_claims_are_overdue() -> None:
    def told(content: LockContent, concurrency: int = 1) -> list[tuple[Occasion, str]]:
        policy = a_policy(concurrency=concurrency, taint_key=None)
        decision = waiting(content, policy=policy, holders=Holders(nodes=(REBOOTING,)))
        kinds = [type(action) for action in decision.actions]
        assert Notify not in kinds or kinds.index(WriteLock) < kinds.index(Notify), (
            "the agent sends the message after it writes the mark, because the write may fail"
        )
        return [(each.occasion, each.sentence) for each in decision.actions if isinstance(each, Notify)]

    sentence = f"the roll-out waits for overdue nodes: {SENTENCE}"
    assert told(LINE) == [(Occasion.HALTED, sentence)]
    assert told(MARKED) == [], "the mark exists already"
    two = replace(LINE, max_owners=2, entries=(replace(ENTRY, limit=2), an_entry("n8", "c8", limit=2)))
    assert told(two, concurrency=2) == [], "another holder makes progress"
    marked = Overdue(phase="Rebooting", since=at(480))
    both = replace(LINE, entries=(replace(ENTRY, overdue=marked), replace(an_entry("n8", "c8"), overdue=marked)))
    released = waiting(both, holders=Holders(nodes=(REBOOTING, AT_WORK)))
    assert [entry.overdue is None for entry in the_lock(released).entries] == [False, True]
    assert Notify not in map(type, released.actions), "no holder became overdue"


MARKED = held(
    replace(ENTRY, overdue=Overdue(phase="Rebooting", since=at(480))), line=Line(names=("n2", "n1"), at=at(600))
)
QUIET = remembering(holder_check__at=UPTIME + 30)
SENTENCE = "n9 was asked to reboot at 2026-03-04 11:52 UTC and has not come back"


def test_each_waiting_node_shows_which_node_is_overdue_and_since_when() -> None:
    decision = waiting(MARKED, memory=QUIET, waiters=())
    assert decision.reason.sentence == f"no gate refuses so far; the node waits for overdue nodes: {SENTENCE}"
    assert the_patch(decision).annotations[keys.REASON] == decision.reason.sentence


def test_the_message_about_an_overdue_node_does_not_change_while_the_node_is_overdue() -> None:
    first, later = (
        waiting(MARKED, memory=QUIET, waiters=(), now=NOW + timedelta(seconds=seconds)) for seconds in (0, 3000)
    )
    assert first.reason.sentence == later.reason.sentence


@pytest.mark.parametrize(
    "changes",
    [
        {
            "policy": a_policy(taint_key=None, concurrency=3),
            "memory": remembering(holder_check__at=UPTIME + 30, line__key="x"),
        },
        {"policy": replace(a_policy(taint_key=None), window=replace(a_policy().window, days=frozenset()))},
    ],
)
def test_a_node_that_waits_for_another_reason_also_shows_the_overdue_node(changes: dict[str, Any]) -> None:
    content = replace(
        MARKED, entries=(replace(MARKED.entries[0], limit=2),), line=replace(MARKED.line, names=("n2", "n3", "n1"))
    )
    decision = waiting(content, **{"memory": QUIET, "waiters": (), **changes})
    assert decision.reason.sentence.endswith(f"; overdue: {SENTENCE}")


def test_a_node_outside_its_window_also_checks_for_overdue_nodes() -> None:
    """The maintenance window is closed, so the line in the lock is empty. The agent of n1, which waits for the window,
    still marks the overdue node n9 in the lock."""
    shut = replace(a_policy(taint_key=None), window=replace(a_policy().window, days=frozenset()))
    decision = waiting(
        replace(LINE, line=replace(LINE.line, names=())), policy=shut, holders=Holders(nodes=(REBOOTING,))
    )
    assert the_lock(decision).entries[0].overdue == Overdue(phase="Rebooting", since=at(480))


def test_an_overdue_node_is_marked_even_while_the_lock_has_room_for_another_claim() -> None:
    content = held(replace(ENTRY, limit=2), line=Line(names=("n2", "n3", "n1"), at=at(600)))
    decision = waiting(
        content,
        policy=a_policy(taint_key=None, concurrency=2),
        holders=Holders(nodes=(REBOOTING,)),
        memory=remembering(),
    )
    assert the_lock(decision).entries[0].overdue == Overdue(phase="Rebooting", since=at(480))


def test_a_waiting_node_removes_the_overdue_mark_of_a_node_that_makes_progress() -> None:
    decision = waiting(
        replace(MARKED, line=replace(MARKED.line, names=("n1",))), holders=Holders(nodes=(holder(Phase.VERIFYING, 3),))
    )
    assert the_lock(decision).entries[0].overdue is None
    assert not any(action.is_warning for action in decision.actions if isinstance(action, PostEvent))


def test_in_a_paused_lock_no_node_is_marked_as_overdue() -> None:
    assert WriteLock not in kinds(waiting(changes.pause(LINE, "", 1), holders=Holders(nodes=(REBOOTING,))))


def test_an_agent_remembers_an_overdue_node_until_the_node_recovers() -> None:
    memory = waiting(MARKED, memory=QUIET, waiters=()).memory
    assert memory.holder_check.overdue == (("n9", at(480)),)
    assert (
        decided(RECORD, lock=Unknown("503"), memory=memory).memory.holder_check.overdue == memory.holder_check.overdue
    )
    assert waiting(LINE, memory=memory, waiters=()).memory.holder_check.overdue == ()
    assert waiting(MARKED, memory=memory, need=NO).memory.holder_check.overdue == ()


AT_WORK = a_marked_node(a_progress(Phase.DRAINING, claim="c8"), name="n8", annotations={keys.SINCE: at(5)})


def test_other_claims_do_not_change_the_message_about_an_overdue_node() -> None:
    alone = replace(MARKED, max_owners=2, entries=(replace(MARKED.entries[0], limit=2),))
    beside = replace(alone, entries=(*alone.entries, an_entry("n8", "c8", limit=2)))
    told = {
        waiting(
            content, policy=a_policy(concurrency=2, taint_key=None), holders=Holders(nodes=(REBOOTING, AT_WORK))
        ).reason.sentence
        for content in (alone, beside)
    }
    assert len(told) == 1


# ---- an idle node if no node waits ----


def idle(content: LockContent, **changes: Any) -> Decision:
    return decided(need=NO, lock=content, **{"memory": remembering(is_reconciled=False), **changes})


ALONE = replace(LINE, line=replace(LINE.line, names=(), at=""))
ALONE_MARKED = replace(MARKED, line=replace(MARKED.line, names=(), at=""))


def test_an_idle_node_marks_an_overdue_node_if_no_node_waits() -> None:
    assert idle(ALONE).memory.holder_check.overdue == ()
    decision = idle(ALONE, holders=Holders(nodes=(REBOOTING,)))
    assert the_lock(decision) == ALONE_MARKED
    assert [action.code for action in decision.actions if isinstance(action, PostEvent)] == [Code.HOLDER_OVERDUE]


@pytest.mark.parametrize(("agents", "pause"), [(3, 60), (360, 60), (5000, 5000 / 6)])
def test_all_idle_nodes_together_check_an_overdue_node_at_most_six_times_a_second(agents: int, pause: float) -> None:
    """Checks must be frequent enough that the metric of the overdue node disappears soon after the node recovers. A
    node that is dead for a long time must not cost the API server many requests."""
    remembered = replace(remembering(is_reconciled=False), agents=agents)
    knows = idle(ALONE_MARKED, holders=Holders(nodes=(REBOOTING,)), memory=remembered)
    assert (knows.memory.holder_check.overdue, knows.memory.lock_due) == ((("n9", at(480)),), UPTIME + pause)
    over = idle(LockContent(), memory=knows.memory, uptime=UPTIME + pause + 1)
    assert over.memory.holder_check.overdue == ()
    assert over.memory.lock_due == UPTIME + pause + 1 + max(1200, 60 * agents)


@pytest.mark.parametrize(("agents", "pause"), [(None, 30), (30, 30), (200, 200), (5000, 5000)])
def test_all_agents_together_check_for_overdue_nodes_once_a_second_if_no_node_waits(
    agents: int | None, pause: float
) -> None:
    """With one check per second in total, a fleet of any size notices a dead node equally soon. The age of the dead
    node's claim does not matter."""
    assert holder_checks.pause_seconds("n1", LockContent(), agents) == pause
    young = replace(ENTRY, created=at(holder_checks.LOOK_SECONDS + 1))
    memory = replace(remembering(), agents=agents)
    assert idle(held(young), memory=replace(memory, is_reconciled=False), holders=NOT_ASKED).wants >= {Evidence.HOLDERS}


@pytest.mark.parametrize(
    ("memory", "looks"),
    [
        pytest.param({}, False, id="the next check is planned in more than an hour"),
        pytest.param({"crowd": Crowd(count=3, until=UPTIME + 1)}, True, id="a recent count found few waiting nodes"),
        pytest.param({"crowd": Crowd(count=3, until=UPTIME)}, False, id="the count of waiting nodes is out of date"),
        pytest.param(
            {"crowd": Crowd(count=3, until=UPTIME + 1), "holder_check__at": UPTIME + 30},
            False,
            id="few nodes wait, but the next check is planned in 30 seconds",
        ),
    ],
)
def test_an_idle_node_checks_earlier_for_overdue_nodes_if_few_nodes_wait(memory: dict[str, Any], looks: bool) -> None:
    given = remembering(**{"agents": 5000, "holder_check__at": UPTIME + 4000, "is_reconciled": False, **memory})
    old = replace(ENTRY, created=at(600))
    assert (Evidence.HOLDERS in idle(held(old), memory=given, holders=NOT_ASKED).wants) is looks


def test_an_idle_node_that_checks_an_overdue_node_lists_no_waiting_nodes() -> None:
    in_line = replace(MARKED, line=replace(MARKED.line, names=("n1", "n7"), at=at(600)))
    decision = idle(in_line, waiters=NOT_ASKED, holders=Holders(nodes=(REBOOTING,)))
    assert decision.wants == frozenset()
    assert the_lock(decision).line.names == ("n7",)


def test_an_idle_node_posts_no_event_when_it_removes_an_overdue_mark() -> None:
    decision = idle(ALONE_MARKED, holders=Holders(nodes=(holder(Phase.VERIFYING, 3),)))
    assert the_lock(decision).entries[0].overdue is None
    assert PostEvent not in {type(action) for action in decision.actions}


# ---- the absence of a Node, watched by short-lived processes ----


def absent(marked_ago: float, **changes: Any) -> Decision:
    content = held(
        replace(ENTRY, overdue=Overdue(phase="", since=at(marked_ago))), line=Line(names=("n1",), at=at(600))
    )
    return waiting(content, holders=Holders(absent=frozenset({"n9"})), **changes)


def test_a_restarted_agent_reads_from_the_lock_how_long_a_node_has_been_missing() -> None:
    assert WriteLock not in kinds(absent(899))
    assert the_lock(absent(901)).entries == ()


def test_without_the_api_servers_time_no_claim_of_a_missing_node_is_removed() -> None:
    assert the_lock(absent(901, clock_skew_seconds=Unknown("not told yet"))).holders == ("n9",)
    assert WriteLock not in kinds(absent(901, clock_skew_seconds=60.0))


def test_without_the_api_servers_time_no_node_is_marked_as_overdue() -> None:
    decision = waiting(
        replace(LINE, line=replace(LINE.line, names=("n2",))),
        holders=Holders(nodes=(REBOOTING,)),
        clock_skew_seconds=Unknown("not told yet"),
    )
    assert WriteLock not in kinds(decision)


def test_a_missing_nodes_claim_stays_if_the_claim_is_younger_than_its_overdue_mark() -> None:
    young = replace(ENTRY, created=at(100), overdue=Overdue(phase="", since=at(5000)))
    content = held(young, line=Line(names=("n1",), at=at(600)))
    assert WriteLock not in kinds(waiting(content, holders=Holders(absent=frozenset({"n9"}))))


def test_a_holder_that_has_not_been_ready_for_minutes_outside_its_reboot_is_overdue() -> None:
    """Long before the deadline of its drain: a dead host never reports that the drain takes too long."""
    drains = holder(Phase.DRAINING, 600)
    for seconds, is_marked in ((170, False), (190, True)):
        dead = replace(drains, ready=False, ready_since=NOW - timedelta(seconds=seconds))
        assert mark(dead) == (Overdue(phase="NotReady", since=at(seconds)) if is_marked else None), seconds
    entry = replace(ENTRY, overdue=Overdue(phase="NotReady", since="2026-03-04T11:56:00Z"))
    assert overdue.sentences((entry,)) == "n9 has been NotReady since 2026-03-04 11:56 UTC, outside its reboot"
    assert mark(drains, entry) is None


@pytest.mark.parametrize("phase", [Phase.REBOOTING, Phase.VERIFYING, Phase.MAINTENANCE])
def test_a_holder_may_be_not_ready_during_its_reboot_and_its_maintenance(phase: Phase) -> None:
    assert mark(replace(holder(phase, 200), ready=False, ready_since=NOW - timedelta(seconds=199))) is None


@pytest.mark.parametrize("phase", [Phase.CLAIMING, Phase.DRAINING, Phase.SETTLING, Phase.WAITING, Phase.FAILED])
def test_a_holder_in_any_other_phase_may_not(phase: Phase) -> None:
    """Waiting and Failed release the claim of an undone drain."""
    dead = replace(holder(phase, 200), ready=False, ready_since=NOW - timedelta(seconds=199))
    assert mark(dead) == Overdue(phase="NotReady", since=at(199))
    assert not_ready(dead, NOW) == "n9 has been NotReady for 3m19s, outside its reboot"
