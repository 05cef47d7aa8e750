"""The gate that refuses a reboot if a dry-run eviction was refused or has no result. Before the cordon, the agent sends
a dry-run eviction for each pod that the drain would evict."""

from __future__ import annotations

from typing import Any

import pytest

from careen.core.facts.observation import NOT_ASKED, DryRunAnswer, Evictable, Unknown
from careen.core.facts.policy import DrainPolicy
from careen.core.facts.reasons import Code
from careen.core.gates.dry_run import dry_run
from careen.core.gates.question import When
from tests.careen.core.builders import a_daemon_pod, a_pod, a_policy, a_situation

PODS = (a_pod("a"), a_daemon_pod())


def answers(answer: Evictable) -> dict[str, DryRunAnswer]:
    return {"uid-a": DryRunAnswer(answer=answer, detail="words")}


@pytest.mark.parametrize(
    ("evictability", "drain", "expected"),
    [
        (answers(Evictable.ALLOWED), {}, None),
        (answers(Evictable.GONE), {}, None),
        (answers(Evictable.BUDGET), {}, Code.EVICTION_REFUSED),
        (answers(Evictable.DENIED), {}, Code.EVICTION_REFUSED),
        (answers(Evictable.UNKNOWN), {}, Code.EVICTIONS_UNKNOWN),
        ({}, {}, Code.EVICTIONS_UNKNOWN),
        (Unknown("503"), {}, Code.EVICTIONS_UNKNOWN),
        (NOT_ASKED, {}, Code.EVICTIONS_UNKNOWN),
        (answers(Evictable.DENIED), {"force_reboot": True}, None),
        (answers(Evictable.BUDGET), {"force_reboot": True}, Code.EVICTION_REFUSED),
        (answers(Evictable.BUDGET), {"force_reboot": True, "force_past_budgets": True}, None),
        (answers(Evictable.BARRED), {}, Code.EVICTION_REFUSED),
        (answers(Evictable.BARRED), {"force_reboot": True}, Code.EVICTION_REFUSED),
    ],
)
def test_one_refused_dry_run_eviction_refuses_the_reboot(
    evictability: Any, drain: dict[str, Any], expected: Code | None
) -> None:
    situation = a_situation(policy=a_policy(drain=DrainPolicy(**drain)), pods=PODS, evictability=evictability)
    refused = dry_run.ask(situation, When.CLAIMED)
    assert (refused.code if refused else None) is expected


def test_an_unknown_list_of_pods_refuses_the_reboot() -> None:
    refused = dry_run.ask(a_situation(pods=Unknown("503")), When.CLAIMED)
    assert refused is not None
    assert refused.code is Code.PODS_UNKNOWN


def test_a_refused_dry_run_is_reported_instead_of_an_unanswered_dry_run() -> None:
    given = {
        "uid-a": DryRunAnswer(answer=Evictable.UNKNOWN),
        "uid-b": DryRunAnswer(answer=Evictable.DENIED, detail="words"),
    }
    refused = dry_run.ask(a_situation(pods=(a_pod("a"), a_pod("b")), evictability=given), When.CLAIMED)
    assert refused is not None
    assert (refused.code, refused.sentence) == (
        Code.EVICTION_REFUSED,
        "these dry-run evictions were refused: shop/b (words)",
    )


def test_the_refusal_of_the_dry_run_quotes_the_servers_message() -> None:
    refused = dry_run.ask(a_situation(pods=PODS, evictability=answers(Evictable.BUDGET)), When.CLAIMED)
    assert refused is not None
    assert refused.sentence == "these dry-run evictions were refused: shop/a (words)"
