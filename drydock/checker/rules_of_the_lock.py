"""Rules about claims: their number, their holders, and when agents release them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from drydock.checker.evidence import (
    Breach,
    HostEvent,
    RolloutTrace,
    agent_node,
    boot_id_of,
    claim_on,
    events,
    is_cordoned,
    is_ready,
    lock_writes,
    released_nodes,
    writes_to,
)


def never_more_claims_than_allowed(evidence: RolloutTrace) -> Iterator[Breach]:
    for write, _, after in lock_writes(evidence):
        if len(after) > evidence.concurrency:
            yield Breach(
                at=write.at,
                sentence=f"{', '.join(sorted(after))} hold the lock at once; the limit is {evidence.concurrency}",
            )


def no_claim_is_stolen(evidence: RolloutTrace) -> Iterator[Breach]:
    """Checks that no agent removes another node's claim while the annotation of that node still contains the id of the
    claim."""
    for write, before, after in lock_writes(evidence):
        taken = [
            node
            for node, claim in before.items()
            if after.get(node) != claim and agent_node(write.actor) not in ("", node)
        ]
        for node in taken:
            if claim_on(_node_at(evidence, node, write.at)) == before[node]:
                yield Breach(
                    at=write.at,
                    sentence=f"the agent of {agent_node(write.actor)} removed {node} from the lock, "
                    f"although {node} still held the lock",
                )


def claims_are_released_only_when_it_is_safe(evidence: RolloutTrace) -> Iterator[Breach]:
    """Checks the moment when an agent releases a claim. If an agent has asked the host to reboot, the host must have
    rebooted, and the Node must be Ready with the new boot id. If no agent has asked the host to reboot, the node's
    agent must have removed the cordon that it set."""
    since: dict[str, float] = {}
    for write, before, after in lock_writes(evidence):
        for node in after.keys() - before.keys():
            since[node] = write.at
        for node in released_nodes(write, before, after):
            if (sentence := _unsafe_release(evidence, node, since.get(node, 0.0), write.at)) is not None:
                yield Breach(at=write.at, sentence=sentence)


def _unsafe_release(evidence: RolloutTrace, name: str, claimed_at: float, released_at: float) -> str | None:
    node = _node_at(evidence, name, released_at)
    log = [e for e in evidence.host_log if e.host == name and claimed_at <= e.at <= released_at]
    if not any(e.what == "asked" for e in log):
        if is_cordoned(node) and agent_node(_cordoner(evidence, name, released_at)) == name:
            return (
                f"{name} was removed from the lock, although the node had not rebooted and still had the cordon of its "
                "agent"
            )
        return None
    if log[-1].what not in ("booted", "ready"):
        return f"{name} was removed from the lock before the node rebooted"
    if not is_ready(node) or boot_id_of(node) != log[-1].boot_id:
        return f"{name} was removed from the lock before the Node was Ready with its new boot id"
    return None


def _node_at(evidence: RolloutTrace, name: str, at: float) -> Mapping[str, Any]:
    found: Mapping[str, Any] = {}
    for write in writes_to(evidence, "nodes"):
        if write.key[1] == name and write.at <= at:
            found = write.after
    return found


def _cordoner(evidence: RolloutTrace, name: str, at: float) -> str:
    """Returns the last client that cordoned the node before this time, or an empty text if no client cordoned it."""
    cordons = [
        write for write in writes_to(evidence, "nodes") if write.key[1] == name and write.at <= at and write.cordons
    ]
    return cordons[-1].actor if cordons else ""


def no_reboot_without_its_own_claim(evidence: RolloutTrace) -> Iterator[Breach]:
    """Checks that, when the host is asked to reboot, the lock contains the node's claim. If this claim has an id, the
    Node's annotation must have the same id."""
    holders: dict[str, str] = {}
    claims: dict[str, str] = {}
    lock = {id(write): after for write, _, after in lock_writes(evidence)}
    for event in events(evidence):
        if isinstance(event, HostEvent):
            if event.what == "asked" and (
                event.host not in holders or holders[event.host] not in ("", claims.get(event.host, ""))
            ):
                yield Breach(
                    at=event.at,
                    sentence=f"{event.host} was asked to reboot, but the lock had no valid claim of this node; "
                    "the lock had claims of: "
                    f"{', '.join(sorted(holders)) or 'no node'}",
                )
        elif id(event) in lock:
            holders = lock[id(event)]
        elif event.plural == "nodes":
            claims[event.key[1]] = claim_on(event.after)
