"""Checks the rules that every simulated roll-out must keep. The checks use the API server's journal of writes, the
hosts' log and the simulation's records of agent processes, but no code of careen."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from drydock.checker import judge
from drydock.checker.evidence import HostEvent, RolloutTrace, Write, agent_node, events, is_cordoned, is_ready

if TYPE_CHECKING:
    from tests.careen.chaos.fleet.world import World


def verdict(
    world: World, *, but: Collection[str] = (), taint_seconds: float = 10.0, answer_seconds: float = 0.0
) -> list[str]:
    """Return one sentence for every broken rule. `but` contains the names of the rules that are not checked, because
    faults or people in this roll-out break these rules."""
    evidence = RolloutTrace(
        writes=_writes(world),
        host_log=tuple(world.fleet.log),
        concurrency=world.shape.concurrency,
        taint_seconds=taint_seconds,
        answer_seconds=answer_seconds,
    )
    found = [
        f"{broken.rule.name}: {broken.breaches[0].at:.2f}: {broken.breaches[0].sentence}"
        for broken in judge(evidence)
        if broken.rule.name not in but
    ]
    found += [f"broken: {each}" for each in world.broken]
    if "broken-turns" not in but:
        found += [
            f"broken: a round of the agent's loop on {node} ended with an unexpected exception"
            for node in world.agents.broken_turns()
        ]
    found += _groups(world, evidence)
    found += _reboots(world, evidence)
    found += _ends(world)
    found += _asked_twice(world)
    found += _given_back_early(evidence)
    if "reported" not in but:
        found += _unreported(world)
    if "once" not in but:
        found += _once(world)
    return found


def _writes(world: World) -> tuple[Write, ...]:
    return tuple(
        Write(
            at=change.at,
            actor=change.actor,
            verb=change.verb,
            plural=change.storage[1],
            key=change.key,
            before=change.before.content if change.before else {},
            after=change.after.content if change.after else {},
        )
        for change in world.server.store.journal
    )


def _groups(world: World, evidence: RolloutTrace) -> Iterator[str]:
    """Check that careen never takes down more nodes of a group (for example a zone) at once than the group's limit
    allows."""
    down: set[str] = set()
    for event in events(evidence):
        name = event.host if isinstance(event, HostEvent) else event.key[1]
        if isinstance(event, HostEvent):
            if event.what in ("asked", "down"):
                down.add(name)
        elif isinstance(event, Write) and event.plural == "nodes":
            if event.cordons and agent_node(event.actor):
                down.add(name)
            elif not event.after or (
                not is_cordoned(event.after) and is_ready(event.after) and not _is_rebooting(evidence, name, event.at)
            ):
                down.discard(name)
        counted = Counter(group for each in down for group in world.shape.groups(each))
        limits = {group: limit for each in down for group, limit in world.shape.groups(each).items()}
        for group, count in counted.items():
            if count > limits[group]:
                yield (
                    f"budgets: {event.at:.2f}: {count} of {group} were down at once, the limit is "
                    f"{limits[group]} ({', '.join(sorted(down))})"
                )
                return


def _is_rebooting(evidence: RolloutTrace, name: str, at: float) -> bool:
    log = [event for event in evidence.host_log if event.host == name and event.at <= at and event.what != "need"]
    return bool(log) and log[-1].what in ("asked", "down")


def _ends(world: World) -> Iterator[str]:
    """Check that the lock is empty at the end of the roll-out, and that every Node has the same labels, annotations,
    taints and cordon as at the beginning. Changes by people and the reports of finished reboots are allowed."""
    for name, before in world.initial.items():
        after = world.server.get("nodes", name)
        if after is None:
            yield f"end: the Node {name} is gone"
            continue
        expected, found = _marks(before), _marks(after)
        if name in world.persons.cordons:
            expected["cordon"] = True
        if name in world.persons.wiped:
            # Without the record, an agent cannot always prove that careen set a label, or a taint whose key was
            # configured only for some time. So these may stay. A taint in the domain careen.dev must not stay.
            found["taints"] = [
                taint for taint in found["taints"] if taint["key"] == "theirs" or taint["key"].startswith("careen.dev/")
            ]
            found["labels"] = {key: value for key, value in found["labels"].items() if key != "pool"}
        if found != expected:
            yield f"end: {name} carries {_differences(expected, found)}"
    if world.lock().get("locks"):
        yield f"end: the lock still has claims of {[row.get('nodeID') for row in world.lock()['locks']]}"


_STAY = ("careen.dev/last-reboot", "careen.dev/history")  # stay on the Node after its reboot


def _marks(node: dict[str, Any]) -> dict[str, Any]:
    metadata, spec = node["metadata"], node["spec"]
    annotations = {key: value for key, value in (metadata.get("annotations") or {}).items() if key not in _STAY}
    return {
        "labels": metadata.get("labels") or {},
        "annotations": annotations,
        "taints": spec.get("taints") or [],
        "cordon": bool(spec.get("unschedulable")),
    }


def _differences(expected: dict[str, Any], found: dict[str, Any]) -> str:
    return "; ".join(
        f"{kind} {found[kind]!r} instead of {expected[kind]!r}" for kind in expected if expected[kind] != found[kind]
    )


def _once(world: World) -> Iterator[str]:
    for name in world.shape.names:
        needs = sum(1 for event in world.fleet.log if event.host == name and event.what == "need")
        boots = sum(1 for event in world.fleet.log if event.host == name and event.what == "booted")
        if needs != boots:
            yield f"once: {name} rebooted {boots} times, but needed a reboot {needs} times"


_ANNOUNCED_SECONDS = 8.0
"""For so many seconds after an agent process has recorded on the Node that a reboot follows, only this process may ask
the host to reboot."""


def _asked_twice(world: World) -> Iterator[str]:
    """Check that no host gets a second reboot request during the same boot within eight seconds, because the first
    request may still take effect. A first request that the host ignored does not count."""
    before: dict[str, HostEvent] = {}
    for event in world.fleet.log:
        if event.what == "ignored":
            before.pop(event.host, None)
        if event.what != "asked":
            continue
        last = before.get(event.host)
        if last is not None and last.boot_id == event.boot_id and event.at - last.at < _ANNOUNCED_SECONDS:
            yield f"asked: {event.at:.2f}: {event.host} was asked twice to reboot within {event.at - last.at:.2f} s"
        before[event.host] = event


def _given_back_early(evidence: RolloutTrace) -> Iterator[str]:
    """Check that no agent removes a node's claim from the lock after the node's host was asked to reboot and before it
    has booted. The check skips a node whose Node was deleted or whose claim was removed by a person."""
    under_way: set[str] = set()
    holders: set[str] = set()
    for event in events(evidence):
        if isinstance(event, HostEvent):
            if event.what == "asked":
                under_way.add(event.host)
            elif event.what in ("booted", "ignored"):
                under_way.discard(event.host)
        elif event.plural == "nodes" and not event.after:
            under_way.discard(event.key[1])
        elif event.plural == "daemonsets":
            before, holders = holders, _holders(event.after)
            for name in (before - holders) & under_way:
                under_way.discard(name)
                if agent_node(event.actor):
                    yield (
                        f"early: {event.at:.2f}: the agent of {agent_node(event.actor)} removed the claim of {name} "
                        "after the request to reboot its host and before the boot"
                    )


def _unreported(world: World) -> Iterator[str]:
    """Check that after each requested reboot an Event reports that the node released its claim. The check skips a
    reboot if the node's agent was killed after the boot."""
    for name in world.shape.names:
        boots = [event.at for event in world.fleet.log if event.host == name and event.what == "booted"]
        asked = [event.at for event in world.fleet.log if event.host == name and event.what == "asked"]
        # The Event counts if it comes after the first boot that follows the request, and before the next request. In
        # this time the host may boot again, because it may lose power.
        ends = {at: min((each for each in asked if each > at), default=world.now) for at in boots}
        for at in [next((at for at in boots if at > each), None) for each in asked]:
            if at is None:
                continue
            until = ends[at]
            is_killed = any(
                node == name and at < died <= until for died, node in world.agents.deaths if died < world.now
            )
            is_reported = any(
                sent.node == name and sent.reason == "Released" and at < sent.at <= until
                for sent in world.agents.sent_events
            )
            if not is_reported and not is_killed:
                yield f"reported: no Event reports that {name} released its claim after the boot at {at:.2f}"


def _reboots(world: World, evidence: RolloutTrace) -> Iterator[str]:
    """Check each request to reboot a host. Within the last 5.5 seconds before the request, the node must have had a
    claim in the lock. If the node has a hold (an annotation that forbids the reboot), the hold must be younger than 5.5
    seconds."""
    held: dict[str, float] = {}
    holders: set[str] = set()
    holds: dict[str, float] = {}
    for event in events(evidence):
        for name in holders:
            held[name] = event.at
        if isinstance(event, HostEvent):
            if event.what == "asked":
                yield from _asked(event, held, holds)
        elif event.plural == "daemonsets":
            holders = _holders(event.after)
        elif event.plural == "nodes":
            if "careen.dev/hold" in ((event.after.get("metadata") or {}).get("annotations") or {}):
                holds.setdefault(event.key[1], event.at)
            else:
                holds.pop(event.key[1], None)


_CONFIRMED_SECONDS = 5.5
"""How old an agent's last read of the lock and the Node may be when the agent asks the host to reboot."""


def _asked(event: HostEvent, held: Mapping[str, float], holds: Mapping[str, float]) -> Iterator[str]:
    if event.at - held.get(event.host, -1e9) > _CONFIRMED_SECONDS:
        yield f"reboot: {event.at:.2f}: {event.host} was asked to reboot without a claim"
    if event.at - holds.get(event.host, 1e9) > _CONFIRMED_SECONDS:
        yield f"reboot: {event.at:.2f}: {event.host} was asked to reboot although a person had put the node on hold"


def _holders(daemon_set: Mapping[str, Any]) -> set[str]:
    text = ((daemon_set.get("metadata") or {}).get("annotations") or {}).get("weave.works/kured-node-lock", "{}")
    try:
        return {row["nodeID"] for row in json.loads(text).get("locks") or ()}
    except ValueError:
        return set()
