"""Tests the checker of a roll-out: it reports nothing about correct behaviour, and each rule that a journal, or a rogue
agent of the demo, breaks."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from drydock.checker import RULES, judge
from drydock.checker.journal import LOCK_ANNOTATION, AgentEvent, Entry, Fact, HostEvent, Journal, Write, in_order
from drydock.controllers.ownership import PODS, controller_uid
from drydock.hosts.agent_processes import agent_user
from drydock.hosts.rogues import ROGUES
from drydock.rollout.rollout import Rollout, RolloutPlan, running_rollout
from drydock.rollout.timings import Timings
from drydock.server.api_errors import ApiError
from drydock.server.evictions import evict
from drydock.server.kinds.resources import resource_named
from drydock.server.verbs import DeleteOptions
from tests.patience import LONG_SECONDS

NODES, DAEMON_SETS = resource_named("nodes"), resource_named("daemonsets")
FAST = Timings(pod_start=0.05, pod_stop=0.03, shutdown=0.05, boot=0.1, kubelet_start=0.05, hold=0.5, persons_cordon=0.2)


def plan(**changes: Any) -> RolloutPlan:
    defaults: dict[str, Any] = {
        "nodes": 4,
        "seed": 1,
        "concurrency": 1,
        "patience_seconds": 0.5,
        "timings": FAST,
        "taint_seconds": 0.5,
        "has_agents": False,
    }
    return RolloutPlan(**{**defaults, **changes})


def test_the_demo_has_a_rogue_for_each_rule_that_one_agent_can_break_there_at_once() -> None:
    assert {rule.name for rule in RULES} - set(ROGUES) == {
        "one-zone",
        "out-of-service",
        "halt",
        "asked",
        "service",
        "effort",
        "reported",
        "broken-turns",
        "exits",
    }


@pytest.mark.parametrize("rule", ROGUES)
async def test_the_checker_reports_a_broken_rule_by_its_name(rule: str, tmp_path: Path) -> None:
    async with running_rollout(plan(broken_rule=rule), tmp_path) as rollout:
        await rollout.set_up()
        verdict = await rollout.run(lambda _progress: None)
    assert rule in [broken.rule.name for broken in verdict.broken]
    assert f"BROKEN: {', '.join(b.rule.name for b in verdict.broken)}" in verdict.sentence


# Good behaviour -------------------------------------------------------------------------------------------------


class ModelAgent:
    """A scripted agent that reboots one node correctly. The checker must report nothing about it."""

    def __init__(self, rollout: Rollout, name: str) -> None:
        self.cluster, self.name, self.user = rollout.cluster, name, agent_user(name)

    def patch_node(self, annotations: dict[str, str | None], **spec: Any) -> None:
        def edit(node: dict[str, Any]) -> dict[str, Any]:
            kept = {
                k: v for k, v in {**(node["metadata"].get("annotations") or {}), **annotations}.items() if v is not None
            }
            labels = dict(node["metadata"]["labels"])
            labels.pop("careen.dev/reboot", None)
            if annotations.get("careen.dev/phase"):
                labels["careen.dev/reboot"] = "required"
            return {
                **node,
                "metadata": {**node["metadata"], "labels": labels, "annotations": kept},
                "spec": {**node["spec"], **spec},
            }

        self.cluster.api.verbs.change(NODES, "", self.name, edit, actor=self.user)

    def say(self, phase: str, claim: str | None, **spec: Any) -> None:
        progress = None if claim is None else json.dumps({"version": 1, "claim": claim})
        self.patch_node(
            {
                "careen.dev/phase": phase,
                "careen.dev/reason": phase,
                "careen.dev/since": "now",
                "careen.dev/progress": progress,
            },
            **spec,
        )

    @property
    def other_taints(self) -> list[dict[str, Any]]:
        node = self.cluster.api.verbs.read(NODES, "", self.name).content
        return [t for t in node["spec"].get("taints") or [] if t["key"] != "careen.dev/reboot"]

    def taint(self) -> None:
        self.say(
            "Waiting", None, taints=[*self.other_taints, {"key": "careen.dev/reboot", "effect": "PreferNoSchedule"}]
        )

    def write_lock(self, rows: list[dict[str, str]]) -> None:
        def edit(daemon_set: dict[str, Any]) -> dict[str, Any]:
            return {
                **daemon_set,
                "metadata": {**daemon_set["metadata"], "annotations": {LOCK_ANNOTATION: json.dumps({"locks": rows})}},
            }

        self.cluster.api.verbs.change(DAEMON_SETS, "careen", "careen", edit, actor=self.user)

    async def reboot(self) -> None:
        self.say("Claiming", "id-1")
        self.write_lock([{"nodeID": self.name, "id": "id-1"}])
        self.say("Draining", "id-1", unschedulable=True)
        while self.evict_all():
            await asyncio.sleep(0.02)
        self.say("Rebooting", "id-1")
        host = self.cluster.hosts.by_name[self.name]
        boot = host.boot_id
        host.asked_file.touch()
        while host.boot_id == boot or not host.is_up:
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.1)
        self.say("Settling", "id-1", unschedulable=False, taints=self.other_taints)
        self.write_lock([])
        self.patch_node(dict.fromkeys(f"careen.dev/{part}" for part in ("phase", "reason", "since", "progress")))

    def evict_all(self) -> bool:
        left = [
            s
            for s in self.cluster.api.store.items(PODS.storage, "shop")
            if s.content["spec"].get("nodeName") == self.name
        ]
        for stored in left:
            if "deletionTimestamp" not in stored.content["metadata"] and controller_uid(stored.content):
                # An eviction that a budget refused with 429 is repeated in the next round.
                with contextlib.suppress(ApiError):
                    evict(self.cluster.api.verbs, *stored.key, DeleteOptions(), actor=self.user)
        return bool(left)


async def test_the_checker_reports_no_broken_rule_in_a_correct_roll_out(tmp_path: Path) -> None:
    """The functions `set_up` and `run` also simulate a person and another client: the person cordons a node and puts a
    node on hold, and the client sets a taint, a label and an annotation."""
    async with running_rollout(
        plan(patience_seconds=LONG_SECONDS, taint_seconds=LONG_SECONDS, concurrency=2), tmp_path
    ) as rollout:
        await rollout.set_up()
        agents = [ModelAgent(rollout, name) for name in rollout.cluster.hosts.by_name]

        async def carry_out() -> None:
            await asyncio.sleep(0.1)
            for agent in agents:
                agent.taint()
            # The held node reboots last, because its hold ends during the roll-out.
            for agent in sorted(agents, key=lambda a: a.name == "node-03"):
                while "careen.dev/hold" in (
                    rollout.cluster.api.verbs.read(NODES, "", agent.name).content["metadata"].get("annotations") or {}
                ):
                    await asyncio.sleep(0.1)
                await agent.reboot()
                await rollout.cluster.wait_until_settled(10)

        work = asyncio.create_task(carry_out())
        verdict = await rollout.run(lambda _progress: None)
        await work
    assert [(b.rule.name, b.breaches) for b in verdict.broken] == []
    assert (verdict.rebooted, verdict.nodes) == (4, 4)
    assert verdict.moved > 0
    # The scripted agents send no Events.
    assert verdict.unjudged == ("reported",)
    assert verdict.sentence.endswith("every judged rule held, not judged: reported")


# Each rule with a journal that breaks it ----------------------------------------------------------------------------


def a_write(at: float, plural: str, name: str, before: Any, after: Any, *, actor: str = "careen-agent-n1") -> Write:
    return Write(
        at=at,
        actor=actor,
        verb="patch",
        plural=plural,
        key=("careen" if plural == "daemonsets" else "", name),
        before=before,
        after=after,
    )


def a_node(
    *, cordoned: bool = False, ready: bool = True, boot: str = "b1", claim: str = "", **annotations: str
) -> dict[str, Any]:
    notes = {"careen.dev/progress": json.dumps({"claim": claim}), **annotations} if claim else dict(annotations)
    return {
        "metadata": {"annotations": notes},
        "spec": {"unschedulable": cordoned},
        "status": {
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            "nodeInfo": {"bootID": boot},
        },
    }


def a_lock(*rows: dict[str, str], **top: Any) -> dict[str, Any]:
    return {"metadata": {"annotations": {LOCK_ANNOTATION: json.dumps(top or {"locks": list(rows)})}}}


def a_journal(*entries: Entry, **changes: Any) -> Journal:
    given: dict[str, Any] = {
        "concurrency": 1,
        "knows": frozenset(Fact) - {Fact.END, Fact.BEGINNING},
        "until": 0.0,
        **changes,
    }
    return Journal(entries=in_order(entries), **given)


def broken(*entries: Entry, **changes: Any) -> list[str]:
    return [each.rule.name for each in judge(a_journal(*entries, **changes)).broken]


def a_host_event(at: float, what: str, boot: str = "b1", host: str = "n1") -> HostEvent:
    return HostEvent(at=at, host=host, what=what, boot_id=boot)


def an_agent_event(at: float, what: str, reason: str = "") -> AgentEvent:
    return AgentEvent(at=at, node="n1", what=what, reason=reason)


ROW = {"nodeID": "n1", "id": "c1"}


def a_web_pod(*, ready: bool = True) -> dict[str, Any]:
    owner = {"uid": "u1", "kind": "ReplicaSet", "name": "web", "controller": True}
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {"metadata": {"ownerReferences": [owner]}, "status": {"conditions": conditions}}


def changed(at: float, name: str, before: Any, after: Any, actor: str = "") -> Write:
    return a_write(at, "nodes", name, before, after, actor=actor or f"careen-agent-{name}")


def locked(at: float, before: Any, after: Any, actor: str = "careen-agent-n1") -> Write:
    return a_write(at, "daemonsets", "careen", before, after, actor=actor)


def a_pod_of(node: str) -> dict[str, Any]:
    return {**a_web_pod(), "spec": {"nodeName": node}}


def in_zone(zone: str, *, cordoned: bool = False) -> dict[str, Any]:
    node = a_node(cordoned=cordoned)
    node["metadata"]["labels"] = {"topology.kubernetes.io/zone": zone}
    return node


def paused() -> dict[str, Any]:
    return a_lock(nodeID="manual", locks=[])


def tainted() -> dict[str, Any]:
    return {**a_node(), "spec": {"taints": [{"key": "careen.dev/reboot", "effect": "PreferNoSchedule"}]}}


def labelled() -> dict[str, Any]:
    node = a_node()
    node["metadata"]["labels"] = {"careen.dev/reboot": "required"}
    return node


def reboot(*, boot: str = "b2") -> tuple[Entry, ...]:
    return (
        a_host_event(0, "need"),
        locked(1, {}, a_lock(ROW)),
        changed(2, "n1", a_node(), a_node(cordoned=True, claim="c1")),
        a_host_event(3, "asked"),
        a_host_event(4, "down"),
        a_host_event(5, "booted", boot),
        a_host_event(6, "ready", boot),
        changed(7, "n1", a_node(cordoned=True, claim="c1"), a_node(boot=boot, claim="c1")),
        locked(8, a_lock(ROW), a_lock()),
        an_agent_event(8.5, "sent", "Released"),
    )


def without(left_out: int) -> tuple[Entry, ...]:
    """A correct reboot without its entry at this second."""
    return tuple(entry for entry in reboot() if int(entry.at) != left_out)


TWO_CORDONS = (
    changed(1, "n1", in_zone("a"), in_zone("a", cordoned=True)),
    changed(2, "n2", in_zone("b"), in_zone("b", cordoned=True)),
)
OVER: dict[str, Any] = {"knows": frozenset(Fact), "until": 100.0}

BREAKING: dict[str, tuple[tuple[Entry, ...], dict[str, Any]]] = {
    "nodes-down": (TWO_CORDONS, {}),
    "budgets": (TWO_CORDONS, {"concurrency": 2, "groups": {"n1": {"zone": 1}, "n2": {"zone": 1}}}),
    "one-zone": (TWO_CORDONS, {"concurrency": 2, "is_by_zone": True}),
    "out-of-service": (
        (changed(1, "n1", a_node(), a_node(ready=False), "kubelet"), changed(2, "n2", {}, a_node(ready=False), "x")),
        {"alone": ("n1", "n2")},
    ),
    "claim": (without(1), {}),
    "reboot": ((*without(1), locked(-9, a_lock(ROW), a_lock(), "person")), {}),
    "cordoned": (without(2), {}),
    "drained": ((*reboot(), a_write(0, "pods", "web", {}, a_pod_of("n1"))), {}),
    "eviction": ((replace(a_write(0, "pods", "web", a_pod_of("n1"), {}), verb="delete"),), {}),
    "hold": (
        (
            changed(1, "n1", a_node(), a_node(**{"careen.dev/hold": "fan"}), "person"),
            changed(2, "n1", a_node(**{"careen.dev/hold": "fan"}), a_node(cordoned=True, **{"careen.dev/hold": "fan"})),
        ),
        {},
    ),
    "pause": ((locked(1, {}, paused(), "person"), locked(2, paused(), a_lock())), {}),
    "halt": (
        (
            locked(1, {}, a_lock({**ROW, "failed": "never-ready"})),
            changed(17, "n2", a_node(), a_node(cordoned=True)),
        ),
        {},
    ),
    "release": (without(7), {}),
    "early": ((*reboot(), locked(3.5, a_lock(ROW), a_lock(), "careen-agent-n2")), {}),
    "settled": (
        (
            *reboot(),
            a_write(-9, "pods", "web", {}, a_pod_of("n1")),
            replace(a_write(2.5, "pods", "web", a_pod_of("n1"), {}), verb="evict"),
        ),
        {},
    ),
    "service": (
        (
            *reboot(),
            a_write(-9, "pods", "web", {}, a_pod_of("n1")),
            replace(a_write(2.5, "pods", "web", a_pod_of("n1"), {}), verb="evict"),
            changed(30, "n2", a_node(), a_node(cordoned=True)),
        ),
        {},
    ),
    "effort": (
        (
            changed(1, "n1", a_node(), a_node(cordoned=True)),
            changed(2, "n1", a_node(cordoned=True), a_node()),
            changed(9, "n1", a_node(), a_node(cordoned=True)),
        ),
        {"pause_seconds": 20.0},
    ),
    "claims": ((locked(1, {}, a_lock(ROW, {"nodeID": "n2", "id": "c2"})),), {}),
    "double": ((locked(1, {}, a_lock(ROW, {**ROW, "id": "c2"})),), {}),
    "theft": (
        (
            changed(1, "n1", {}, a_node(claim="c1")),
            locked(2, {}, a_lock(ROW)),
            locked(3, a_lock(ROW), a_lock(), "careen-agent-n2"),
        ),
        {},
    ),
    "own-node": ((changed(1, "n2", a_node(), a_node(claim="c1"), "careen-agent-n1"),), {}),
    "foreign": (
        (
            changed(1, "n1", a_node(), a_node(cordoned=True), "person"),
            changed(2, "n1", a_node(cordoned=True), a_node()),
        ),
        {},
    ),
    "loop": (tuple(entry for entry in reboot() if entry.at), {}),
    "asked": ((*reboot(), a_host_event(3.5, "asked")), {}),
    "once": ((*reboot(), a_host_event(90, "lost"), a_host_event(91, "booted", "b3")), OVER),
    "taint": ((a_host_event(0, "need"),), {"until": 11.0}),
    "explained": ((changed(1, "n1", a_node(), labelled()),), {}),
    "reported": (without(8), OVER),
    "finished": ((a_host_event(0, "need"),), OVER),
    "broken-turns": ((an_agent_event(1, "broke"),), {}),
    "exits": ((an_agent_event(1, "exited", "1"),), {}),
    "tidy": ((changed(1, "n1", a_node(), tainted()),), OVER),
    "end": ((changed(1, "n1", a_node(), labelled()),), {**OVER, "initial": {"n1": a_node()}}),
}


def test_every_rule_has_a_journal_that_breaks_it() -> None:
    assert list(BREAKING) == [rule.name for rule in RULES]


@pytest.mark.parametrize("name", BREAKING)
def test_the_checker_reports_the_rule_that_a_journal_breaks(name: str) -> None:
    entries, changes = BREAKING[name]
    assert name in broken(*entries, **changes)


@pytest.mark.parametrize("began", [0.0, 1.8e9], ids=["virtual time", "seconds since 1970"])
def test_the_checker_reports_nothing_about_the_journal_of_a_correct_reboot(began: float) -> None:
    entries = (*reboot(), changed(0.5, "n1", a_node(), tainted()), changed(0.6, "n1", tainted(), a_node()))
    entries = tuple(replace(entry, at=began + entry.at) for entry in entries)
    over = {**OVER, "until": began + OVER["until"], "initial": {"n1": a_node(boot="b2", claim="c1")}, "alone": ("n1",)}
    assert broken(*entries, **over) == []


def test_a_rule_is_not_judged_and_says_so_if_the_world_cannot_tell_what_it_reads() -> None:
    found = judge(a_journal(a_host_event(0, "need"), until=99.0, knows=frozenset()))
    assert found.broken == ()
    assert found.unjudged["taint"] == "not judged: this world cannot tell when hosts begin to need a reboot"
    assert set(found.unjudged) == {rule.name for rule in RULES if rule.reads}


def test_each_exemption_of_a_rule_ends_with_its_seconds() -> None:
    mark = a_lock({**ROW, "failed": "never-ready"})
    for at, found in ((15.9, []), (16.1, ["halt"])):
        assert broken(locked(1, {}, mark), changed(at, "n2", a_node(), a_node(cordoned=True))) == found
    for at, found in ((6.4, []), (6.6, ["pause"])):
        pause = locked(1, {}, paused(), "person")
        entries = (*(each for each in reboot() if each.at < 3), a_host_event(at, "asked"))
        assert [name for name in broken(*entries, pause) if name == "pause"] == found
    for at, found in ((10.9, ["asked"]), (11.1, [])):
        entries = tuple(each for each in reboot() if each.at < 4)
        assert [name for name in broken(*entries, a_host_event(at, "asked")) if name == "asked"] == found


@pytest.mark.parametrize(
    ("between", "is_found"),
    [
        ((a_host_event(3, "ignored"),), True),
        ((a_host_event(3, "refused"),), False),
        ((a_host_event(3, "ignored"), an_agent_event(5, "died")), False),
    ],
    ids=["ignored", "refused", "the agent dies"],
)
def test_an_agent_that_lives_may_not_ask_again_before_its_reboot_deadline(
    between: tuple[Entry, ...], is_found: bool
) -> None:
    entries = (a_host_event(3, "asked"), *between, a_host_event(50, "asked"))
    assert ("asked" in broken(*entries, reboot_deadline_seconds=60.0)) is is_found
    assert "asked" not in broken(*entries, reboot_deadline_seconds=40.0)


# Cases at the edges of the rules ------------------------------------------------------------------------------------


def test_the_checker_reports_a_reboot_if_the_claim_ids_in_the_lock_and_on_the_node_differ() -> None:
    writes = (a_write(1, "daemonsets", "careen", {}, a_lock(ROW)), a_write(2, "nodes", "n1", {}, a_node(claim="c2")))
    assert "claim" in broken(*writes, *(a_host_event(0, "need"), a_host_event(3, "asked")))


def test_the_checker_accepts_a_claim_in_kureds_single_owner_format() -> None:
    lock = a_lock(nodeID="n1", TTL=0)
    log = (a_host_event(0, "need"), a_host_event(3, "asked"))
    cordon = a_write(2, "nodes", "n1", a_node(), a_node(cordoned=True))
    assert broken(a_write(1, "daemonsets", "careen", {}, lock), cordon, *log) == []


def test_the_release_of_a_claim_breaks_a_rule_if_the_node_still_reports_its_old_boot() -> None:
    log = (
        a_host_event(0, "need"),
        a_host_event(2, "asked"),
        a_host_event(3, "down"),
        a_host_event(4, "booted", "b2"),
        a_host_event(5, "ready", "b2"),
    )
    writes = (
        a_write(1, "daemonsets", "careen", {}, a_lock(ROW)),
        a_write(1.5, "nodes", "n1", a_node(), a_node(boot="b1", claim="c1", cordoned=True)),
        a_write(6, "daemonsets", "careen", a_lock(ROW), a_lock()),
    )
    assert broken(*writes, *log) == ["release"]


def test_a_claim_may_be_released_after_the_drain_is_undone() -> None:
    writes = (
        a_write(1, "daemonsets", "careen", {}, a_lock(ROW)),
        a_write(2, "nodes", "n1", a_node(), a_node(cordoned=True, claim="c1")),
        a_write(3, "nodes", "n1", a_node(cordoned=True, claim="c1"), a_node(claim="c1")),
        a_write(4, "daemonsets", "careen", a_lock(ROW), a_lock()),
    )
    assert broken(*writes) == []


def test_the_release_of_a_cordoned_nodes_claim_breaks_a_rule() -> None:
    writes = (
        a_write(1, "daemonsets", "careen", {}, a_lock(ROW)),
        a_write(2, "nodes", "n1", a_node(), a_node(cordoned=True, claim="c1")),
        a_write(4, "daemonsets", "careen", a_lock(ROW), a_lock()),
    )
    assert broken(*writes) == ["release"]


@pytest.mark.parametrize(("answer_seconds", "found"), [(0.0, ["settled"]), (12.0, [])])
def test_the_checker_allows_an_outdated_count_of_ready_pods_after_a_late_response(
    answer_seconds: float, found: list[str]
) -> None:
    """The rule `settled`: when n1 releases its claim, at least as many pods must be ready as the agent of n1 counted
    before the cordon. Of the 2 web pods, 1 pod is ready from 20 s to 25 s, 2 pods are ready at the cordon (30 s), and 1
    pod is ready at the release (60 s).

    The checker assumes that an agent counts the ready pods at most 2 s before the cordon, so after 28 s. Then 2 pods
    were ready, so the checker reports the release. If a response was 12 s late, the agent may have counted the pods up
    to 12 s earlier, so at any time after 16 s. From 20 s to 25 s, 1 pod was ready. The agent may have counted this 1
    pod, so the checker reports nothing.
    """
    pods = (
        a_write(1, "pods", "web-1", {}, a_web_pod()),
        a_write(1, "pods", "web-2", {}, a_web_pod()),
        a_write(20, "pods", "web-2", a_web_pod(), a_web_pod(ready=False)),
        a_write(25, "pods", "web-2", a_web_pod(ready=False), a_web_pod()),
    )
    reboot = (
        a_write(30, "nodes", "n1", a_node(), a_node(cordoned=True, claim="c1")),
        replace(a_write(31, "pods", "web-1", a_web_pod(), {}), verb="evict"),
        a_write(50, "nodes", "n1", a_node(cordoned=True, claim="c1"), a_node(boot="b2", claim="c1")),
        a_write(60, "daemonsets", "careen", a_lock(ROW), a_lock()),
    )
    booted = a_host_event(40, "booted", "b2")
    names = broken(*pods, *reboot, booted, answer_seconds=answer_seconds)
    assert [name for name in names if name == "settled"] == found


@pytest.mark.parametrize(("replicas", "found"), [(2, ["settled"]), (1, [])])
def test_a_workload_that_an_autoscaler_made_smaller_is_healthy_with_fewer_pods(replicas: int, found: list[str]) -> None:
    def wants(count: int) -> dict[str, Any]:
        return {"metadata": {"uid": "u1"}, "spec": {"replicas": count}}

    writes = (
        a_write(1, "replicasets", "web", {}, wants(2)),
        a_write(1, "pods", "web-1", {}, a_web_pod()),
        a_write(1, "pods", "web-2", {}, a_web_pod()),
        a_write(30, "nodes", "n1", a_node(), a_node(cordoned=True, claim="c1")),
        replace(a_write(31, "pods", "web-1", a_web_pod(), {}), verb="evict"),
        a_write(35, "replicasets", "web", wants(2), wants(replicas)),
        a_write(50, "nodes", "n1", a_node(cordoned=True, claim="c1"), a_node(boot="b2", claim="c1")),
        a_write(60, "daemonsets", "careen", a_lock(ROW), a_lock()),
    )
    names = broken(*writes, a_host_event(40, "booted", "b2"))
    assert [name for name in names if name == "settled"] == found


def test_an_agent_may_remove_another_nodes_claim_only_if_that_node_has_no_claim_annotation() -> None:
    lock = (
        a_write(2, "daemonsets", "careen", {}, a_lock(ROW)),
        a_write(3, "daemonsets", "careen", a_lock(ROW), a_lock(), actor="careen-agent-n2"),
    )
    assert broken(a_write(1, "nodes", "n1", {}, a_node(claim="c1")), *lock) == ["theft"]
    assert broken(a_write(1, "nodes", "n1", {}, a_node()), *lock) == []


@pytest.mark.parametrize(("nodes", "found"), [((), []), ((a_write(1, "nodes", "n1", {}, a_node()),), ["theft"])])
def test_a_claim_of_kureds_may_be_removed_if_its_node_does_not_exist(
    nodes: tuple[Entry, ...], found: list[str]
) -> None:
    """Such a claim has no id that the Node could lack."""
    lock = (
        a_write(2, "daemonsets", "careen", {}, a_lock({"nodeID": "n1"})),
        a_write(3, "daemonsets", "careen", a_lock({"nodeID": "n1"}), a_lock(), actor="careen-agent-n2"),
    )
    assert broken(*nodes, *lock) == found


def test_the_checker_counts_an_unready_node_as_down_after_a_delay() -> None:
    away = a_write(0, "nodes", "n2", a_node(), a_node(ready=False), actor="system:kubelet")
    assert broken(away, a_write(20, "nodes", "n1", a_node(), a_node(cordoned=True))) == ["nodes-down"]
    assert broken(away, a_write(5, "nodes", "n1", a_node(), a_node(cordoned=True))) == []
    assert broken(away, a_write(20, "nodes", "n1", a_node(), a_node(cordoned=True)), concurrency=2) == []


def test_removing_another_clients_taint_with_careens_key_breaks_a_rule() -> None:
    theirs = {**a_node(), "spec": {"taints": [{"key": "careen.dev/reboot", "effect": "NoSchedule"}]}}
    writes = (a_write(1, "nodes", "n1", a_node(), theirs, actor="person"), a_write(2, "nodes", "n1", theirs, a_node()))
    assert broken(*writes) == ["foreign"]


def test_the_checker_reports_a_missing_taint_even_if_no_write_follows() -> None:
    def judged(until: float) -> list[str]:
        return broken(a_host_event(0, "need"), until=until)

    assert judged(9.0) == []
    assert judged(11.0) == ["taint"]


@pytest.mark.parametrize("key", ["careen.dev/retry", "careen.dev/reboot-now"])
def test_an_agent_may_remove_the_annotation_of_a_request_that_it_has_fulfilled(key: str) -> None:
    asked = a_node()
    asked["metadata"]["annotations"][key] = "now"
    assert (
        broken(a_write(1, "nodes", "n1", a_node(), asked, actor="person"), a_write(2, "nodes", "n1", asked, a_node()))
        == []
    )


def test_the_documentation_lists_the_rules_of_the_checker_in_order() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "embedded-cluster.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert rows == [f"| `{rule.name}` | {rule.sentence} |" for rule in RULES]


@pytest.mark.parametrize(("lock", "is_early"), [("{}", False), ("no JSON", False), ('{"nodeID":""}', True), ("", True)])
def test_an_unreadable_lock_ends_no_claim_before_the_boot(lock: str, is_early: bool) -> None:
    mangled = {"metadata": {"annotations": {LOCK_ANNOTATION: lock}}}
    journal = a_journal(*reboot(), locked(3.5, a_lock(ROW), mangled, "careen-agent-n2"))
    assert ("early" in {each.rule.name for each in judge(journal).broken}) is is_early
