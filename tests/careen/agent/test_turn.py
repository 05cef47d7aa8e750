"""One turn: observe, decide, apply, remember. In these tests, functions of the test make the decisions.
test_way_home.py runs the real decisions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from careen.agent import turn
from careen.agent.turn import NeverDecided, Reconciler
from careen.cluster.wire.errors import Unclear
from careen.cluster.wire.transport import Request
from careen.core.actions import (
    AskReboot,
    ConfirmClaim,
    Evict,
    EvictPod,
    Notify,
    Occasion,
    PatchNode,
    PostEvent,
    WriteLock,
)
from careen.core.decision import Decision, Reason
from careen.core.facts.observation import NodeView
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.policy import Policy
from careen.core.facts.progress import Progress, to_annotation
from careen.core.facts.reasons import Code
from careen.core.lock.reading import LockReading
from careen.core.observation import Observation
from tests.careen.agent.conftest import Shell
from tests.careen.core.builders import with_parts

POLICY = Policy(node_name="n1")
Decide = Callable[[Observation, Policy], Decision]


def decision(seen: Observation, **more: object) -> Decision:
    base = Decision(
        phase=Phase.IDLE, reason=Reason(code=Code.NO_NEED, sentence="."), memory=seen.memory, look_again_seconds=5.0
    )
    return replace(base, **more)  # type: ignore[arg-type]


def think(monkeypatch: pytest.MonkeyPatch, *steps: Decide) -> list[Observation]:
    """Replace `decide` by these functions: the first call uses the first function, and so on, and all further calls use
    the last function. Return a list that collects the observation of each call."""
    shown: list[Observation] = []

    def decide(seen: Observation, policy: Policy) -> Decision:
        shown.append(seen)
        return steps[min(len(shown), len(steps)) - 1](seen, policy)

    monkeypatch.setattr(turn, "decide", decide)
    return shown


def patch(seen: Observation, **annotations: str) -> PatchNode:
    assert isinstance(seen.node, NodeView)
    return PatchNode(purpose="say so", resource_version=seen.node.resource_version, annotations=annotations)


async def test_the_agent_reads_the_facts_that_a_decision_requests_and_decides_again(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.put_node("n1")
    shown = think(
        monkeypatch, lambda seen, _: decision(seen, wants=frozenset({Evidence.LOCK})), lambda seen, _: decision(seen)
    )
    await Reconciler(shell.observer(), shell.hands).turn(POLICY)
    assert [isinstance(seen.lock, LockReading) for seen in shown] == [False, True]


async def test_the_actions_of_a_decision_that_requests_more_facts_are_not_carried_out(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.put_node("n1")
    think(
        monkeypatch,
        lambda seen, _: decision(seen, wants=frozenset({Evidence.LOCK}), actions=(patch(seen, a="1"),)),
        lambda seen, _: decision(seen),
    )
    await Reconciler(shell.observer(), shell.hands).turn(POLICY)
    assert "PATCH /api/v1/nodes/n1" not in shell.requests


async def test_a_decision_that_requests_the_same_fact_again_and_again_raises_an_error(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.put_node("n1")
    think(monkeypatch, lambda seen, _: decision(seen, wants=frozenset({Evidence.BOOT_ID})))
    with pytest.raises(NeverDecided, match="boot-id"):
        await Reconciler(shell.observer(), shell.hands).turn(POLICY)


async def test_the_agent_remembers_what_a_decision_stored_even_if_the_first_action_fails(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.put_node("n1")
    think(
        monkeypatch,
        lambda seen, _: decision(seen, memory=with_parts(seen.memory, line__key="kept"), actions=(patch(seen, a="1"),)),
    )
    shell.wire.before = lambda request: Unclear("down") if request.method == "PATCH" else None
    reconciler = Reconciler(shell.observer(), shell.hands)
    result = await reconciler.turn(POLICY)
    assert result.stop is not None
    assert reconciler.memory.line.key == "kept"


async def test_the_agent_does_not_remember_an_unsent_event_as_sent(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.put_node("n1")
    told = PostEvent(code=Code.RELEASED, sentence="given back", is_warning=False)
    think(
        monkeypatch,
        lambda seen, _: decision(
            seen,
            memory=with_parts(seen.memory, reported__code="released", reported__at=9.0),
            actions=(patch(seen, a="1"), told),
        ),
    )
    shell.wire.before = lambda request: Unclear("down") if request.method == "PATCH" else None
    reconciler = Reconciler(shell.observer(), shell.hands)
    result = await reconciler.turn(POLICY)
    assert (reconciler.memory.reported.code, reconciler.memory.reported.at, result.is_reported) == ("", 0.0, False)
    shell.wire.before = lambda _: None
    result = await reconciler.turn(POLICY)
    assert (reconciler.memory.reported.code, reconciler.memory.reported.at, result.is_reported) == (
        "released",
        9.0,
        True,
    )


async def test_a_successful_write_is_reported_even_if_the_next_write_conflicts(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next turn finds the result of the first write on the Node and would not report this write."""
    shell.put_node("n1")
    told, message = (
        PostEvent(code=Code.HELD, sentence="undone", is_warning=False),
        Notify(occasion=Occasion.FAILED, sentence="failed"),
    )
    stale = WriteLock(purpose="give back", expected_resource_version="1", daemonset_uid="other", content="")
    think(
        monkeypatch,
        lambda seen, _: decision(
            seen,
            memory=with_parts(seen.memory, reported__code="held"),
            actions=(patch(seen, a="1"), stale, message, told),
        ),
        lambda seen, _: decision(seen),
    )
    reconciler = Reconciler(shell.observer(), shell.hands)
    result = await reconciler.turn(POLICY)
    assert result.stop is not None
    assert (result.is_reported, reconciler.memory.reported.code, shell.told) == (True, "held", [message])


async def test_the_loop_round_after_a_write_of_the_lock_does_not_read_the_lock(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.put_node("n1", annotations={"careen.dev/progress": to_annotation(Progress(phase="Claiming", claim="c1"))})

    def write(seen: Observation, _: Policy) -> Decision:
        assert isinstance(seen.lock, LockReading)
        wanted = WriteLock(
            purpose="enter",
            expected_resource_version=seen.lock.resource_version,
            daemonset_uid=seen.lock.daemonset_uid,
            content="{}",
        )
        return decision(seen, phase=Phase.CLAIMING, actions=(wanted,))

    shown = think(monkeypatch, write, lambda seen, _: decision(seen, phase=Phase.CLAIMING))
    reconciler = Reconciler(shell.observer(), shell.hands)
    for _ in range(3):
        await reconciler.turn(POLICY)
    versions = [seen.lock.resource_version for seen in shown if isinstance(seen.lock, LockReading)]
    assert versions[0] != versions[1] == versions[2]
    lock_path = "/apis/apps/v1/namespaces/careen/daemonsets/careen"
    assert [each for each in shell.requests if each.endswith(lock_path)] == [
        f"GET {lock_path}",
        f"PATCH {lock_path}",
        f"GET {lock_path}",
    ]


async def test_a_reboot_is_not_reported_if_the_claim_is_not_confirmed(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.put_node("n1")
    message = Notify(occasion=Occasion.REBOOT, sentence="rebooting")
    think(
        monkeypatch,
        lambda seen, _: decision(
            seen, actions=(patch(seen, a="1"), ConfirmClaim(claim="c", node="n1"), message, AskReboot(within_seconds=5))
        ),
    )
    await Reconciler(shell.observer(), shell.hands).turn(POLICY)
    assert shell.told == []


async def test_the_loop_round_after_a_patch_does_not_read_the_node_again(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.put_node("n1")
    shown = think(
        monkeypatch, lambda seen, _: decision(seen, actions=(patch(seen, a="1"),)), lambda seen, _: decision(seen)
    )
    reconciler = Reconciler(shell.observer(), shell.hands)
    await reconciler.turn(POLICY)
    await reconciler.turn(POLICY)
    assert shell.requests == ["GET /api/v1/nodes/n1", "PATCH /api/v1/nodes/n1"]
    assert isinstance(shown[1].node, NodeView)
    assert shown[1].node.annotations["a"] == "1"


async def test_the_node_is_read_again_after_a_slow_patch(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other clients may change the Node before the response to the patch arrives. The response does not contain these
    changes."""
    shell.put_node("n1")
    think(
        monkeypatch,
        lambda seen, _: decision(seen, phase=Phase.DRAINING, actions=(patch(seen, a="1"),)),
        lambda seen, _: decision(seen),
    )
    reconciler = Reconciler(shell.observer(), shell.hands)

    def slowly(request: Request) -> None:
        shell.clock.seconds += 5.0 if request.method == "PATCH" else 0.0

    shell.wire.before = slowly
    await reconciler.turn(POLICY)
    await reconciler.turn(POLICY)
    assert shell.requests.count("GET /api/v1/nodes/n1") == 2


@pytest.mark.parametrize(("unschedulable", "reads"), [(True, 1), (False, 2)])
async def test_the_node_is_read_again_after_an_uncordon(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, unschedulable: bool, reads: int
) -> None:
    """The node controller removes its own taint after the uncordon, so the response to the patch is outdated at once. A
    write based on this response would conflict."""
    shell.put_node("n1")
    think(
        monkeypatch,
        lambda seen, _: decision(seen, actions=(replace(patch(seen, a="1"), unschedulable=unschedulable),)),
        lambda seen, _: decision(seen),
    )
    reconciler = Reconciler(shell.observer(), shell.hands)
    await reconciler.turn(POLICY)
    await reconciler.turn(POLICY)
    assert shell.requests.count("GET /api/v1/nodes/n1") == reads


@pytest.mark.parametrize(("budget", "look"), [(1, 1.0), (0, 0.75)])
async def test_the_next_loop_round_after_a_refused_eviction_waits_for_the_back_off(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, budget: int, look: float
) -> None:
    """The next turn begins after a second if the pod terminates, and after the back-off if the eviction was refused."""
    shell.put_node("n1")
    shell.put_pod("a", metadata={"uid": "a", "labels": {"app": "db"}})
    shell.server.seed(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "pdb", "namespace": "shop", "generation": 1},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "db"}}},
            "status": {"observedGeneration": 1, "disruptionsAllowed": budget},
        }
    )
    evict = Evict(pods=(EvictPod(namespace="shop", name="a", uid="a"),), parallel=2)
    think(monkeypatch, lambda seen, _: decision(seen, actions=(evict,)))
    result = await Reconciler(shell.observer(), replace(shell.hands, chance=lambda: 0.0)).turn(POLICY)
    assert result.decision.look_again_seconds == pytest.approx(look)


async def test_the_node_is_read_again_after_a_conflicting_patch(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.put_node("n1")
    think(monkeypatch, lambda seen, _: decision(seen, actions=(patch(seen, a="1"),)), lambda seen, _: decision(seen))
    reconciler = Reconciler(shell.observer(), shell.hands)
    shell.wire.before = lambda request: (
        shell.put_node("n1", labels={"changed": "1"}) and None if request.method == "PATCH" else None
    )
    result = await reconciler.turn(POLICY)
    assert result.stop is not None
    await reconciler.turn(POLICY)
    assert shell.requests.count("GET /api/v1/nodes/n1") == 2


async def test_the_agent_reports_the_last_known_phase_of_a_node_that_it_cannot_read(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the API server is down, metrics and log must not show Idle for a drained node."""
    shell.put_node("n1")
    think(
        monkeypatch,
        lambda seen, _: decision(seen, phase=Phase.DRAINING),
        lambda seen, _: decision(seen, phase=Phase.IDLE),
    )
    reconciler = Reconciler(shell.observer(), shell.hands)
    assert (await reconciler.turn(POLICY)).phase is Phase.DRAINING
    shell.wire.before = lambda _: Unclear("down")
    assert (await reconciler.turn(POLICY)).phase is Phase.DRAINING


async def test_the_agent_reports_the_old_phase_if_the_patch_of_the_node_failed(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.put_node("n1")
    think(
        monkeypatch,
        lambda seen, _: decision(seen, phase=Phase.WAITING),
        lambda seen, _: decision(seen, phase=Phase.CLAIMING, actions=(patch(seen, a="1"),)),
    )
    reconciler = Reconciler(shell.observer(), shell.hands)
    assert (await reconciler.turn(POLICY)).phase is Phase.WAITING
    shell.wire.before = lambda request: Unclear("down") if request.method == "PATCH" else None
    assert (await reconciler.turn(POLICY)).phase is Phase.WAITING
