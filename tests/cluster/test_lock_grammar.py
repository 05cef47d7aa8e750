"""A differential fuzz: the policies of manifests/admission on the real API server against careen's own reading of the
lock, in both directions, and what the policies cost for the largest lock. tests/careen/core/lock/test_one_grammar.py
does the same with a translation of the policies, for many more texts.
"""

from __future__ import annotations

import json
import os
from random import Random
from typing import Any

import pytest

from careen.core.lock import notation
from careen.core.lock.content import Garbage, LockContent
from tests.careen.core.lock import lock_policy
from tests.careen.core.lock.hostile_locks import broken_lock, hostile_lock
from tests.careen.core.lock.test_one_grammar import KUREDS, filled, honest_writes
from tests.cluster.harness.api import ApiError
from tests.cluster.harness.cluster import CAREEN, LOCK_ANNOTATION
from tests.cluster.harness.guards import Guarded, annotated, evict, path_of, refusal
from tests.cluster.harness.workloads import bare_pod

pytestmark = pytest.mark.cluster

TEXTS = int(os.environ.get("LOCK_TEXTS", "250"))
OTHERS = json.dumps({"nodeID": "", "locks": [{"nodeID": name} for name in ("n01", "n02", "n00.a")]})
BUDGET = 10_000_000  # apiserver's RuntimeCELCostBudget


def answer(scene: Guarded, text: str | None) -> str:
    """The refusal of this text as the new lock, with the token of n00; "" if it is let in."""
    return refusal(lambda: scene.agent.patch(f"{CAREEN.path}?dryRun=All", annotated(**{LOCK_ANNOTATION: text})))


@pytest.mark.exploit
def test_a_token_can_write_no_text_that_the_agents_read_differently(scene: Guarded) -> None:
    """The policy sees less: an owner in a text that it lets in, which it does not know. The texts replace a lock in
    which the other nodes have claims, so the policy refuses neither these claims nor that of n00."""
    assert scene.own == "n00"
    scene.story.write_lock(OTHERS)
    for seed in range(TEXTS):
        text = hostile_lock(Random(seed)) if seed % 2 else broken_lock(Random(seed), KUREDS.values())
        said = answer(scene, text)
        assert lock_policy.refusal(OTHERS, text, "n00") in said, (seed, text, said)
        assert bool(said) == bool(lock_policy.refusal(OTHERS, text, "n00")), (seed, text, said)
        if said:
            continue
        content = notation.parse(text)
        assert isinstance(content, LockContent), (seed, text)
        assert not content.is_paused, (seed, text)
        assert set(content.nodes) <= {"n00", "n01", "n02", "n00.a"}, (seed, text)
    scene.story.write_lock(None)


def test_the_policy_lets_an_agent_write_over_any_text_that_it_can_read(scene: Guarded) -> None:
    """The policy sees more: an owner or a pause that the agent does not see, so that the API server refuses what an
    honest agent writes."""
    for seed in range(TEXTS, 2 * TEXTS):
        text = hostile_lock(Random(seed))
        scene.story.write_lock(text)
        content = notation.parse(text)
        cleared = answer(scene, None)
        assert bool(cleared) == bool(lock_policy.refusal(text, None, "n00")), (seed, text, cleared)
        if isinstance(content, LockContent):
            assert bool(cleared) == content.is_paused, (seed, text, cleared)
            for wanted in honest_writes(content):
                assert answer(scene, notation.render(wanted)) == "", (seed, text, notation.render(wanted))
    scene.story.write_lock(None)


def test_an_eviction_needs_a_claim_that_the_agents_see(scene: Guarded) -> None:
    scene.story.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    if scene.story.admin.find("/api/v1/namespaces/shop/pods/grammar") is None:
        scene.story.apply(bare_pod("grammar", scene.other))
    texts = [text for text in map(hostile_lock, map(Random, range(4_000))) if '"n00' in text]
    for text in texts[: max(10, TEXTS // 10)]:
        scene.story.write_lock(text)
        content = notation.parse(text)
        expected = lock_policy.may_evict(text, "n00")
        assert isinstance(content, Garbage) or expected == ("n00" in content.nodes)
        # The policy sees the lock a moment later. With `dryRun` only in its body, the eviction is one for the policy.
        scene.story.wait_for(
            "the eviction is let in" if expected else "the eviction is refused",
            lambda expected=expected: (not refusal(lambda: dry_eviction(scene))) == expected,  # type: ignore[misc]
        )
    scene.story.write_lock(None)


def dry_eviction(scene: Guarded) -> object:
    return evict(scene.agent, "shop", "grammar", dryRun=["All"])


def test_a_full_lock_leaves_half_of_the_cost_limit_and_any_lock_a_third(
    scene: Guarded, capsys: pytest.CaptureFixture[str]
) -> None:
    """With validations that only cost, added to the policy until the API server stops the evaluation: by how many fewer
    fit beside the policy's own than alone follows what the policy itself costs."""
    full = filled(30)
    before, after = notation.render(full), notation.render(honest_writes(full)[-1])
    people = json.dumps(
        {"nodeID": "", "locks": [{"nodeID": f"n{number:03}", "x": "y" * 228} for number in range(1_000)]},
        separators=(",", ":"),
    )
    figures = []
    for what, most, old, new in (
        ("the fullest lock", BUDGET / 2, before, after),
        ("a lock of 256 KB", BUDGET * 2 / 3, people, people[:-1] + ',"y":1}'),
    ):
        scene.story.write_lock(old)
        cost = cost_of(scene, new or "")
        figures.append(f"{what}: {len(old or '')} characters, cost {cost:,} of {BUDGET:,}")
        assert cost < most, figures
    scene.story.write_lock(None)
    with capsys.disabled():
        print("\n" + "\n".join(figures))


def any_answer(scene: Guarded, text: str) -> str:
    """As `answer`; if the cost limit stops the evaluation, the API server's status is not 403."""
    try:
        return answer(scene, text)
    except ApiError as error:
        return str(error)


def cost_of(scene: Guarded, text: str) -> int:
    """The cost of the policy careen-lock-only for this new lock, to about a twentieth of the limit."""
    spec = lock_policy.LOCK_ONLY
    alone = {**spec, "validations": []}
    fits_alone, fits_beside = (most_that_fit(scene, each, text) for each in (alone, spec))
    return round((fits_alone - fits_beside) / fits_alone * BUDGET)


def most_that_fit(scene: Guarded, spec: dict[str, Any], text: str) -> int:
    """How many validations that only cost the API server evaluates together with this policy."""
    low, high = 0, 384
    while high - low > 12:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(scene, spec, text, middle) else (low, middle)
    return low


def fits(scene: Guarded, spec: dict[str, Any], text: str, number: int) -> bool:
    """Whether the last validation of the policy, which refuses everything, is reached."""
    name, reached = f"tests-cost-{number}", "all validations were evaluated"
    costly = {"expression": "!variables.textAfter.matches('~~~~!')", "message": "never", "reason": "Forbidden"}
    padded = {
        **spec,
        "validations": [
            *spec["validations"],
            *[costly] * number,
            {"expression": "false", "message": reached, "reason": "Forbidden"},
        ],
    }
    bound = {
        "policyName": name,
        "paramRef": {"name": "careen", "namespace": "careen", "parameterNotFoundAction": "Allow"},
        "validationActions": ["Deny"],
    }
    made = [
        {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": content}
        for kind, content in (("ValidatingAdmissionPolicy", padded), ("ValidatingAdmissionPolicyBinding", bound))
    ]
    for each in made:
        scene.story.admin.create(path_of(each), each)
    try:
        said = scene.story.wait_for(
            "the API server evaluates the policy",
            lambda: (found := any_answer(scene, text)) and name in found and found,
        )
    finally:
        for each in made:
            scene.story.admin.delete(f"{path_of(each)}/{name}")
    assert reached in said or "cost" in said, said
    return reached in said
