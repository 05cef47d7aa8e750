"""Tests that a plan predicts when an agent acts next: the agent begins the next round of its loop at the predicted time
or earlier."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from careen.core.decision import Refusal, refusals_json
from careen.core.facts import keys
from careen.core.facts.observation import Alert, Chance, Unknown
from careen.core.facts.phases import Phase
from careen.core.facts.policy import AlertPolicy, Policy, SettlePolicy
from careen.core.facts.progress import Progress
from careen.core.facts.reasons import Code
from careen.core.facts.times import rfc3339
from careen.core.facts.windows import Window
from careen.core.lock.content import Garbage, LockContent
from careen.core.lock.line import Line
from careen.plan.next_turn import NextTurn, next_turn
from tests.careen.core.builders import (
    NO,
    NOW,
    UNKNOWN_NEED,
    a_marked_node,
    a_pod,
    a_policy,
    a_progress,
    ago,
    an_entry,
    an_owner,
    decided,
    held,
    remembering,
)

FULL = held(an_entry("n9", "c9"), line=Line(names=("n2", "n3", "n4", "n1"), waiting=4))


def predicted_from_annotations(
    progress: Progress,
    lock: LockContent | Garbage | Unknown | None = None,
    since: float = 0.0,
    refused: str = "",
    code: Code = Code.ALERT,
    label: str = "",
    agents: int | None = None,
    **policy: Any,
) -> NextTurn:
    refusals = (Refusal(gate=refused, code=code, sentence="x"),) if refused else ()
    annotations = {keys.SINCE: rfc3339(NOW - timedelta(seconds=since)), keys.REFUSALS: refusals_json(refusals) or "[]"}
    node = a_marked_node(progress, annotations=annotations, **({"label": label} if label else {}))
    return next_turn(
        node, progress, lock if lock is not None else LockContent(), a_policy(**policy), NOW, agents=agents
    )


def untainted(**changes: Any) -> Policy:
    """Return a policy that sets no taint on waiting nodes, so that the agent has no taint to restore."""
    return a_policy(taint_key=None, **changes)


SITUATIONS: list[tuple[str, Progress, dict[str, Any]]] = [
    ("no reboot needed", a_progress(Phase.IDLE), {"need": NO}),
    ("outside the window", a_progress(Phase.WAITING), {"policy": untainted(window=Window(days=frozenset()))}),
    (
        "outside the window, in a large fleet",
        a_progress(Phase.WAITING),
        {"policy": untainted(window=Window(days=frozenset())), "memory": remembering(agents=900)},
    ),
    (
        "it is unknown whether a reboot is needed",
        a_progress(Phase.WAITING),
        {"need": UNKNOWN_NEED, "policy": untainted()},
    ),
    ("unreadable lock", a_progress(Phase.WAITING), {"lock": "{", "policy": untainted()}),
    (
        "many nodes wait",
        a_progress(Phase.WAITING),
        {
            "policy": untainted(window=Window(days=frozenset())),
            "lock": held(an_entry("n9"), line=Line(names=("n2",), waiting=600)),
        },
    ),
    (
        "the node is the last of the next nodes in the lock",
        a_progress(Phase.WAITING),
        {"lock": FULL, "node": {"label": "ready"}, "policy": untainted()},
    ),
    (
        "the node is not among the next nodes in the lock",
        a_progress(Phase.WAITING),
        {
            "lock": held(an_entry("n9"), line=Line(names=tuple(f"m{i}" for i in range(20)), waiting=600)),
            "node": {"label": "ready"},
            "policy": untainted(),
        },
    ),
    (
        "an alert",
        a_progress(Phase.WAITING),
        {"alerts": (Alert(name="A"),), "policy": untainted(alerts=AlertPolicy()), "node": {"label": "ready"}},
    ),
    (
        "a lasting alert",
        a_progress(Phase.WAITING),
        {
            "alerts": (Alert(name="A"),),
            "policy": untainted(alerts=AlertPolicy()),
            "node": {"label": "ready"},
            "memory": remembering(costly__refusals=9),
        },
    ),
    (
        "a drain delay",
        a_progress(Phase.CLAIMING),
        {"policy": a_policy(drain=a_policy().drain.__class__(delay_seconds=600))},
    ),
    ("draining", a_progress(Phase.DRAINING), {"pods": (a_pod(),)}),
    ("rebooting", a_progress(Phase.REBOOTING), {}),
    ("verifying", a_progress(Phase.VERIFYING), {"node": {"ready": False}}),
    (
        "settling for long",
        a_progress(Phase.SETTLING, owners=(an_owner(),), settle_started=ago(100)),
        {"owners": (an_owner(ready=0),)},
    ),
    (
        "the release delay",
        a_progress(Phase.SETTLING),
        {"policy": a_policy(lock_release_delay_seconds=600, settle_policy=SettlePolicy.CONTINUE)},
    ),
    (
        "the node failed, so the roll-out halts",
        a_progress(Phase.FAILED, failed="never-ready", boot_left="boot-0", verify_started=ago(1)),
        {},
    ),
]


@pytest.mark.parametrize("jitter", [0.0, 0.999])
@pytest.mark.parametrize(("progress", "changes"), [row[1:] for row in SITUATIONS], ids=[row[0] for row in SITUATIONS])
def test_the_agent_acts_again_no_later_than_predicted(
    progress: Progress, changes: dict[str, Any], jitter: float
) -> None:
    decision = decided(progress, chance=Chance(claim_id="fresh", jitter=jitter), **changes)
    assert not decision.wants, "the decision needs no more evidence"
    assert decision.look_again_seconds > 0, "the node waits"
    refused = decision.refusals[0].gate if decision.refusals else ""
    label = changes.get("node", {}).get("label", "")
    given = changes.get("lock", LockContent())
    lock = given if isinstance(given, LockContent) else Garbage("x")
    code = decision.refusals[0].code if decision.refusals else Code.ALERT
    said = predicted_from_annotations(
        progress, lock, refused=refused, code=code, label=label, agents=decision.memory.agents
    )
    assert decision.look_again_seconds <= said.seconds
    assert not said.is_retry


@pytest.mark.parametrize(
    ("failures", "since", "left"), [(1, 0, 60), (1, 13, 47), (3, 40, 200), (1, 70, 0), (30, 0, 3600)]
)
def test_the_time_of_a_retry_is_predicted_to_the_second(failures: int, since: float, left: float) -> None:
    said = predicted_from_annotations(Progress(phase="Failed", failed="drain-timeout", failures=failures), since=since)
    assert (said.seconds, said.is_retry) == (left, True)


@pytest.mark.parametrize(("failed_ago", "is_due"), [(46, False), (61, True)])
def test_the_agent_retries_at_the_predicted_time(failed_ago: float, is_due: bool) -> None:
    progress = a_progress(
        Phase.FAILED,
        claim="",
        boot_left="",
        lock="",
        claimed=None,
        failed="drain-timeout",
        failures=1,
        failed_at=ago(failed_ago),
    )
    assert (predicted_from_annotations(progress, since=failed_ago).seconds == 0) is is_due
    assert (decided(progress).phase is Phase.WAITING) is is_due


@pytest.mark.parametrize(
    "progress",
    [Progress(phase="Failed", failed="reboot-command-failed", tries=3), Progress(phase="Failed", failed="reboot-loop")],
)
def test_no_retry_is_predicted_if_only_a_person_can_start_the_retry(progress: Progress) -> None:
    assert not predicted_from_annotations(progress).is_retry


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (NextTurn(seconds=47.3, is_retry=True), "the node's agent retries the reboot in 47s"),
        (NextTurn(seconds=0.4, is_retry=True), "the node's agent retries the reboot now"),
        (NextTurn(seconds=30), "the node's agent decides again within 30s"),
    ],
)
def test_the_next_action_of_the_agent_is_printed_with_the_remaining_time(said: NextTurn, sentence: str) -> None:
    assert said.sentence == sentence
