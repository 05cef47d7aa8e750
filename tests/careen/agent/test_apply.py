"""The agent carries out the actions of a decision in order. It stops at the first action that failed or whose result is
unknown."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import force_setattr

from careen.agent.apply import EVICTIONS_SECONDS, ONE_BY_ONE_SECONDS, Applied, Applier
from careen.cluster.wire.errors import Unclear
from careen.cluster.wire.transport import Request
from careen.core.actions import (
    Action,
    AskReboot,
    ConfirmClaim,
    Evict,
    EvictPod,
    Notify,
    Occasion,
    PatchNode,
    PostEvent,
    SilenceAlerts,
    WriteLock,
)
from careen.core.facts.memory import EvictAnswer, Memory, NewPodsMemory, RebootMemory, RebootOutcome
from careen.core.facts.observation import Taint
from careen.core.facts.reasons import Code
from careen.host import reboot
from tests.careen.agent.conftest import KEY, Shell
from tests.careen.core.builders import with_parts

CONFIRM = ConfirmClaim(claim="c1", node="n1")
ASK = AskReboot(within_seconds=5.0)
ANNOUNCED = Memory(reboot=RebootMemory(claim="c1", announcement=1, outcome=RebootOutcome.NOT_ASKED))


def hold_lock(shell: Shell, content: str | None = None) -> None:
    held = {"nodeID": "n1", "locks": [{"nodeID": "n1", "id": "c1"}], "maxOwners": 1}
    shell.put_daemonset(annotations={KEY: content if content is not None else json.dumps(held)})


async def do(shell: Shell, *actions: Action, memory: Memory = ANNOUNCED) -> Applied:
    return await Applier(shell.hands, memory, node_uid="uid", remember=lambda _: None).apply(actions)


def patch(shell: Shell, **more: object) -> PatchNode:
    version = shell.put_node("n1")["metadata"]["resourceVersion"]
    return PatchNode(
        **{"purpose": "announce", "resource_version": version, "annotations": {"careen.dev/phase": "Rebooting"}, **more}
    )  # type: ignore[arg-type]


async def test_the_agent_announces_the_reboot_then_confirms_its_claim_then_requests_the_reboot(shell: Shell) -> None:
    hold_lock(shell)
    applied = await do(shell, patch(shell), CONFIRM, ASK)
    assert (applied.stop, shell.host.reboots) == (None, 1)
    assert shell.requests == ["PATCH /api/v1/nodes/n1", "GET /apis/apps/v1/namespaces/careen/daemonsets/careen"]
    assert applied.memory.reboot is not None
    assert applied.memory.reboot.outcome is RebootOutcome.ACCEPTED
    assert applied.node is not None
    assert applied.node.annotations["careen.dev/phase"] == "Rebooting"


async def test_a_node_that_changed_since_the_decision_is_not_rebooted(shell: Shell) -> None:
    hold_lock(shell)
    announce = patch(shell)
    shell.put_node("n1", annotations={"careen.dev/hold": "wait"})
    applied = await do(shell, announce, CONFIRM, ASK)
    assert applied.stop is not None
    assert "announce" in applied.stop.why
    assert shell.host.reboots == 0


@pytest.mark.parametrize(
    "content",
    [
        "",
        '{"nodeID":"n2","locks":[{"nodeID":"n2","id":"c9"}]}',
        '{"nodeID":"manual","locks":[{"nodeID":"n1","id":"c1"}]}',
        '{"nodeID":"n1","locks":[{"nodeID":"n1","id":"other"}]}',
        "garbage",
    ],
    ids=["no claim", "a claim of another node", "a pause", "another claim of this node", "an unreadable lock"],
)
async def test_a_node_without_its_own_claim_in_the_lock_is_not_rebooted(shell: Shell, content: str) -> None:
    hold_lock(shell, content)
    applied = await do(shell, patch(shell), CONFIRM, ASK)
    assert applied.stop is not None
    assert "claim" in applied.stop.why
    assert shell.host.reboots == 0


async def test_a_node_whose_claim_cannot_be_confirmed_is_not_rebooted(shell: Shell) -> None:
    hold_lock(shell)
    announce = patch(shell)
    shell.wire.after = lambda request: Unclear("down") if "daemonsets" in request.path else None
    applied = await do(shell, announce, CONFIRM, ASK)
    assert applied.stop is not None
    assert "the agent cannot check whether the lock still contains its claim" in applied.stop.why
    assert shell.host.reboots == 0


async def test_a_claim_that_was_confirmed_too_long_ago_does_not_permit_the_reboot(shell: Shell) -> None:
    """The agent confirms its claim by a read of the lock. The age of the confirmation begins at the start of the
    read, because another client may change the lock before the response arrives."""
    hold_lock(shell)
    announce = patch(shell)
    shell.wire.after = lambda request: (
        setattr(shell.clock, "seconds", shell.clock.seconds + 5) if "daemonsets" in request.path else None
    )  # type: ignore[func-returns-value]
    applied = await do(shell, announce, CONFIRM, ASK)
    assert applied.stop is not None
    assert "checked the claim in the lock too long ago" in applied.stop.why
    assert shell.host.reboots == 0


@pytest.mark.parametrize(("seconds", "reboots"), [(0.0, 0), (60.0, 1)])
async def test_an_agent_that_was_suspended_after_its_announcement_does_not_request_the_reboot(
    shell: Shell, seconds: float, reboots: int
) -> None:
    """The agent records on the Node that a reboot follows, and then its process is suspended. Meanwhile a second agent
    process of the node may have treated the first process as dead and asked the host to reboot."""
    hold_lock(shell)
    ask = AskReboot(within_seconds=5.0, send_before=shell.host.uptime() + seconds)
    assert ((await do(shell, CONFIRM, ask)).stop is None) is bool(reboots)
    assert shell.host.reboots == reboots


async def test_the_agent_counts_how_often_it_evicts_recreated_pods_of_an_owner(shell: Shell) -> None:
    shell.put_node("n1")
    pod = EvictPod(namespace="shop", name="a", uid="a", new_pod_owner="rs-web")
    shell.put_pod("a", metadata={"uid": "a"})
    memory = with_parts(Memory(), drain__new_pods={"rs-web": NewPodsMemory(rounds=1, not_before=0.0)})
    applied = await do(shell, Evict(pods=(pod,), parallel=1), memory=memory)
    assert applied.memory.drain.new_pods["rs-web"].judgements == 1


async def test_the_agent_requests_no_reboot_without_a_confirmation_of_its_claim(shell: Shell) -> None:
    assert (await do(shell, ASK)).stop is not None
    assert shell.host.reboots == 0


@pytest.mark.parametrize(
    ("answer", "outcome", "detail"),
    [
        (reboot.RebootRequested(), RebootOutcome.ACCEPTED, ""),
        (reboot.RebootRefused("no rights"), RebootOutcome.FAILED, "no rights"),
        (reboot.RebootUnclear("slow"), RebootOutcome.UNCLEAR, "slow"),
    ],
)
async def test_the_agent_remembers_how_the_host_answered_the_reboot_request(
    shell: Shell, answer: reboot.RebootAnswer, outcome: RebootOutcome, detail: str
) -> None:
    hold_lock(shell)
    shell.host.answer = answer
    memory = (await do(shell, CONFIRM, ASK)).memory
    assert memory.reboot is not None
    assert (memory.reboot.outcome, memory.reboot.detail) == (outcome, detail)


async def test_the_agent_remembers_a_reboot_request_before_it_sends_the_request(shell: Shell) -> None:
    """If the agent is interrupted while it asks the host to reboot, it must already remember that the host may
    reboot."""
    hold_lock(shell)
    remembered: list[Memory] = []
    asked = asyncio.Event()

    async def hang() -> reboot.RebootAnswer:
        asked.set()
        await asyncio.Event().wait()
        return reboot.RebootRequested()

    shell.host.ask_reboot = hang  # type: ignore[method-assign]
    task = asyncio.create_task(
        Applier(shell.hands, ANNOUNCED, node_uid="uid", remember=remembered.append).apply((CONFIRM, ASK))
    )
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert remembered[-1].reboot is not None
    assert remembered[-1].reboot.outcome is RebootOutcome.UNCLEAR


async def test_a_patch_is_not_sent_after_its_deadline(shell: Shell) -> None:
    cordon = patch(shell, send_before=shell.host.uptime())
    assert (await do(shell, cordon)).stop is not None
    assert shell.requests == []
    assert (await do(shell, patch(shell, send_before=shell.host.uptime() + 1))).stop is None


async def test_a_write_of_the_lock_fails_if_the_lock_has_a_new_resource_version(shell: Shell) -> None:
    hold_lock(shell, "")
    reading = await shell.lock.read()
    claim = WriteLock(
        purpose="take a claim",
        expected_resource_version=reading.resource_version,
        daemonset_uid=reading.daemonset_uid,
        content="mine",
    )
    assert (await do(shell, claim)).stop is None
    assert (await shell.lock.read()).text == "mine"
    stop = (await do(shell, claim)).stop
    assert stop is not None
    assert not stop.is_refusal


async def test_a_write_without_the_rbac_right_stops_the_remaining_actions(shell: Shell) -> None:
    announce = patch(shell)
    shell.server.api.authorizer = lambda user, verb, *_: verb != "patch"
    stop = (await do(shell, announce)).stop
    assert stop is not None
    assert stop.is_refusal
    assert "403" in stop.why
    hold_lock(shell)
    reading = await shell.lock.read()
    free = WriteLock(
        purpose="release",
        expected_resource_version=reading.resource_version,
        daemonset_uid=reading.daemonset_uid,
        content=None,
    )
    stop = (await do(shell, free)).stop
    assert stop is not None
    assert stop.is_refusal


async def test_the_read_time_of_a_node_is_the_time_of_the_request(
    shell: Shell,
) -> None:
    """After the agent has sent its request, a person may set a hold (an annotation that keeps the node from rebooting),
    or the node controller may change the Node. The response may contain neither change."""
    shell.wire.after = lambda _: setattr(shell.clock, "seconds", shell.clock.seconds + 7)  # type: ignore[func-returns-value]
    announce, began = patch(shell), shell.clock.monotonic()
    applied = await do(shell, announce)
    assert applied.node is not None
    assert applied.node_written_at == began
    for is_cordon in (True, False):
        applied = await do(shell, patch(shell, unschedulable=is_cordon))
        assert (applied.is_node_written, applied.node is not None) == (True, is_cordon)


async def test_evictions_are_sent_in_parallel_up_to_the_limit(shell: Shell) -> None:
    for name in ("a", "b", "c", "d", "e"):
        shell.put_pod(name, metadata={"uid": name})
    under_way = most = 0

    def before(_: object) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)

    def after(_: object) -> None:
        nonlocal under_way
        under_way -= 1

    shell.wire.before, shell.wire.after = before, after
    pods = tuple(EvictPod(namespace="shop", name=name, uid=name) for name in ("a", "b", "c", "d", "e", "gone"))
    applied = await do(shell, Evict(pods=pods, parallel=2), memory=Memory())
    assert applied.stop is None
    assert most == 2
    assert {uid: evicted.answer for uid, evicted in applied.memory.drain.evictions.items()} == dict.fromkeys(
        "abcde", EvictAnswer.ACCEPTED
    ) | {"gone": EvictAnswer.GONE}


async def test_serial_evictions_wait_until_each_replacement_is_scheduled(shell: Shell) -> None:
    asked: list[float] = []
    for name in "abc":
        shell.put_pod(name, metadata={"uid": name})
    shell.wire.before = lambda _: asked.append(shell.api.clock.monotonic())
    await do(
        shell,
        Evict(pods=tuple(EvictPod(namespace="shop", name=name, uid=name) for name in "abc"), parallel=1),
        memory=Memory(),
    )
    assert [round(later - earlier, 3) for earlier, later in pairwise(asked)] == [ONE_BY_ONE_SECONDS] * 2


async def test_if_a_webhook_is_slow_the_remaining_evictions_are_left_to_the_next_turn(shell: Shell) -> None:
    """Between two turns, the agent checks whether a person forbids the reboot (by a hold or a pause), and whether the
    node still needs it. If one turn evicted 110 pods at 8 s each, the turn would last a quarter of an hour."""
    names = [f"pod-{number:03}" for number in range(110)]
    for name in names:
        shell.put_pod(name, metadata={"uid": name})

    def slowly(_: object) -> None:
        shell.clock.seconds += 8.0

    shell.wire.before = slowly
    began = shell.clock.seconds
    applied = await do(
        shell,
        Evict(pods=tuple(EvictPod(namespace="shop", name=name, uid=name) for name in names), parallel=1),
        memory=Memory(),
    )
    assert applied.stop is None
    assert shell.clock.seconds - began < EVICTIONS_SECONDS + 8.0
    assert list(applied.memory.drain.evictions) == names[:2], (
        "the agent remembers exactly the evictions that it sent, in this order"
    )


@pytest.mark.parametrize("parallel", [1, 3])
async def test_an_eviction_that_raises_an_error_cancels_the_other_evictions(shell: Shell, parallel: int) -> None:
    for name in "abcdefgh":
        shell.put_pod(name, metadata={"uid": name})
    shell.wire.before = lambda request: KeyError("our bug") if "/pods/a/" in request.path else None
    with pytest.raises(KeyError):
        await do(
            shell,
            Evict(
                pods=tuple(EvictPod(namespace="shop", name=name, uid=name) for name in "abcdefgh"), parallel=parallel
            ),
            memory=Memory(),
        )
    asked = len(shell.requests)
    await asyncio.sleep(0.1)
    assert len(shell.requests) == asked <= parallel


async def test_a_refused_eviction_is_not_retried_before_its_retry_after_time(shell: Shell) -> None:
    shell.put_pod("a", metadata={"uid": "a", "labels": {"app": "db"}})
    shell.server.seed(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "pdb", "namespace": "shop", "generation": 2},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "db"}}},
            "status": {
                "observedGeneration": 1,
                "disruptionsAllowed": 0,
                "currentHealthy": 1,
                "desiredHealthy": 1,
                "expectedPods": 1,
            },
        }
    )
    asked_at = shell.host.uptime()
    memory = (
        await do(shell, Evict(pods=(EvictPod(namespace="shop", name="a", uid="a"),), parallel=1), memory=Memory())
    ).memory
    assert memory.drain.evictions["a"].answer is EvictAnswer.BUDGET
    assert memory.drain.evictions["a"].not_before == asked_at + 10, (
        "the server's Retry-After for a budget whose status is outdated"
    )


async def test_the_agent_silences_alerts_before_it_announces_the_reboot(shell: Shell) -> None:
    asked: list[int] = []

    async def silence() -> None:
        await asyncio.sleep(0)
        asked.append(len(shell.requests))

    hold_lock(shell)
    hands = replace(shell.hands, silence=silence)
    applier = Applier(hands, ANNOUNCED, node_uid="uid", remember=lambda _: None)
    applied = await applier.apply((SilenceAlerts(), patch(shell), CONFIRM, ASK))
    assert (applied.stop, shell.host.reboots) == (None, 1)
    assert asked == [0], "the agent requests the silence before it sends a request to the API server"


async def test_unanswered_events_and_messages_do_not_delay_the_agents_loop(shell: Shell) -> None:
    shell.server.seed({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
    told = PostEvent(code=Code.DRAIN_TIMEOUT, sentence="took too long", is_warning=True)
    message = Notify(occasion=Occasion.DRAIN, sentence="draining")
    shell.server.api.is_down = True
    assert (await do(shell, told, message)).stop is None
    assert shell.told == [message]
    await asyncio.gather(*shell.background)
    shell.server.api.is_down = False
    await do(shell, told)
    await asyncio.gather(*shell.background)
    events = [
        change.after.content
        for change in shell.server.store.journal
        if change.after is not None and change.after.content.get("kind") == "Event"
    ]
    assert [(event["reason"], event["type"], event["involvedObject"]["uid"]) for event in events] == [
        ("DrainTimeout", "Warning", "uid")
    ]


async def test_the_agent_forgets_the_node_that_it_read_if_a_patch_conflicts(shell: Shell) -> None:
    first = patch(shell)
    second = PatchNode(purpose="again", resource_version=first.resource_version, annotations={"x": "y"})
    applied = await do(shell, first, second)
    assert applied.stop is not None
    assert applied.node is None


def edit_answers(shell: Shell, edit: Callable[[dict[str, Any]], None]) -> None:
    """Let the API server store an edited form of each patch of the Node, as a mutating webhook does."""

    def before(request: Request) -> None:
        body = json.loads(request.body or b"{}")
        edit(body)
        force_setattr(request, "body", json.dumps(body).encode())

    shell.wire.before = lambda request: before(request) if request.method == "PATCH" else None  # type: ignore[func-returns-value]


async def test_a_record_that_admission_drops_from_the_announcement_prevents_the_reboot(shell: Shell) -> None:
    hold_lock(shell)
    edit_answers(shell, lambda body: body["metadata"]["annotations"].pop("careen.dev/progress"))
    announce = patch(shell, annotations={"careen.dev/progress": "announced", "careen.dev/phase": "Rebooting"})
    applied = await do(shell, announce, CONFIRM, ASK)
    assert applied.stop is not None
    assert "annotation careen.dev/progress" in applied.stop.why
    assert shell.host.reboots == 0
    assert applied.memory.losses.marks["annotation careen.dev/progress"].times == 1


async def test_a_soft_taint_that_admission_drops_does_not_stop_the_turn(shell: Shell) -> None:
    hold_lock(shell)
    edit_answers(shell, lambda body: body["spec"].pop("taints"))
    soft = Taint(key="careen.dev/reboot", effect="PreferNoSchedule")
    applied = await do(shell, patch(shell, taints=(soft,), unschedulable=True), CONFIRM, ASK)
    assert (applied.stop, shell.host.reboots) == (None, 1)
    assert set(applied.memory.losses.marks) == {"taint careen.dev/reboot"}


async def test_a_claim_that_admission_drops_is_not_taken(shell: Shell) -> None:
    hold_lock(shell, "")
    reading = await shell.lock.read()
    edit_answers(shell, lambda body: body["metadata"]["annotations"].update({KEY: ""}))
    take = WriteLock(
        purpose="take a claim",
        expected_resource_version=reading.resource_version,
        daemonset_uid=reading.daemonset_uid,
        content=json.dumps({"nodeID": "n1", "locks": [{"nodeID": "n1", "id": "c1"}], "maxOwners": 1}),
    )
    applied = await do(shell, take)
    assert applied.stop is not None
    assert applied.lock is None
    assert set(applied.memory.losses.marks) == {"this node's claim in the lock"}
