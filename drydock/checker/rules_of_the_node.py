"""Rules about Nodes and pods: how many nodes are down, who may change which fields, and which marks remain at the
end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from drydock.checker.evidence import (
    TAINT,
    Breach,
    HostEvent,
    RolloutTrace,
    Write,
    agent_node,
    claims_in,
    events,
    is_cordoned,
    is_ready,
    taints_of,
    writes_to,
)

# The fleet is read at most this long before the cordon; an agent could not know of a node that went down later.
_COUNTED_BEFORE_SECONDS = 10.0
# Annotations that a person sets and the agent removes after it has served them.
_CONSUMED = ("careen.dev/retry", "careen.dev/reboot-now")


def never_more_nodes_down_than_allowed(evidence: RolloutTrace) -> Iterator[Breach]:
    """Checks that the number of nodes that reboot or that an agent has cordoned never exceeds the concurrency. When an
    agent cordons a node, the check also counts nodes that are down for other reasons."""
    ours: set[str] = set()
    down_since: dict[str, float] = {}
    nodes: dict[str, Mapping[str, Any]] = {}
    rebooting: set[str] = set()
    for event in events(evidence):
        if isinstance(event, HostEvent):
            name = event.host
            if event.what in ("asked", "down"):
                rebooting.add(name)
                ours.add(name)
            elif event.what == "ready":
                rebooting.discard(name)
        elif event.plural == "nodes":
            name = event.key[1]
            _follow_node(event, nodes, down_since, ours)
        else:
            continue
        # A deleted Node is not counted, unless its host is rebooting.
        if (
            name not in rebooting
            and name in nodes
            and (not nodes[name] or (not is_cordoned(nodes[name]) and is_ready(nodes[name])))
        ):
            ours.discard(name)
        if len(ours) > evidence.concurrency:
            yield Breach(
                at=event.at,
                sentence=f"{', '.join(sorted(ours))} were down at once; the limit is {evidence.concurrency}",
            )
        others = {n for n, since in down_since.items() if n not in ours and event.at - since > _COUNTED_BEFORE_SECONDS}
        if _is_cordon_by_agent(event) and len(ours) + len(others) > evidence.concurrency:
            yield Breach(
                at=event.at,
                sentence=f"{name} was cordoned while {', '.join(sorted(others | ours - {name}))} were down; "
                f"the limit is {evidence.concurrency}",
            )


def _follow_node(
    write: Write, nodes: dict[str, Mapping[str, Any]], down_since: dict[str, float], ours: set[str]
) -> None:
    name = write.key[1]
    nodes[name] = write.after
    if _is_cordon_by_agent(write):
        ours.add(name)
    if not write.after or (is_ready(write.after) and not is_cordoned(write.after)):
        down_since.pop(name, None)
    else:
        down_since.setdefault(name, write.at)


def _is_cordon_by_agent(event: Write | HostEvent) -> bool:
    return isinstance(event, Write) and event.cordons and bool(agent_node(event.actor))


def no_reboot_of_a_node_that_is_not_drained(evidence: RolloutTrace) -> Iterator[Breach]:
    """Checks that, when the host is asked to reboot, only DaemonSet pods, static pods and finished pods are on the
    node."""
    pods: dict[tuple[str, str], Mapping[str, Any]] = {}
    for event in events(evidence):
        if isinstance(event, Write):
            if event.plural == "pods":
                pods[event.key] = event.after
        elif event.what == "asked":
            left = sorted(
                "/".join(key)
                for key, pod in pods.items()
                if (pod.get("spec") or {}).get("nodeName") == event.host and _must_go(pod)
            )
            if left:
                yield Breach(
                    at=event.at,
                    sentence=f"{event.host} was asked to reboot, but the node still had these pods: {', '.join(left)}",
                )


def _must_go(pod: Mapping[str, Any]) -> bool:
    metadata = pod["metadata"]
    is_daemon = any(o.get("controller") and o["kind"] == "DaemonSet" for o in metadata.get("ownerReferences") or ())
    is_static = "kubernetes.io/config.mirror" in (metadata.get("annotations") or {})
    return not is_daemon and not is_static and pod["status"].get("phase") not in ("Succeeded", "Failed")


def what_others_set_stays(evidence: RolloutTrace) -> Iterator[Breach]:
    """Checks that agents remove only those cordons, taints, labels and annotations that agents have set."""
    setters: dict[tuple[str, str], str] = {}
    for write in writes_to(evidence, "nodes"):
        name, before, after = write.key[1], _marks(write.before), _marks(write.after)
        for mark in before - after:
            setter = setters.pop((name, mark), "")
            if agent_node(write.actor) and write.after and not agent_node(setter):
                yield Breach(
                    at=write.at,
                    sentence=f"the agent of {agent_node(write.actor)} removed {mark} from {name}, although "
                    f"{setter or 'another client'} had set {mark}",
                )
        for mark in after - before:
            setters[name, mark] = write.actor


def _marks(node: Mapping[str, Any]) -> set[str]:
    metadata = node.get("metadata") or {}
    marks = {f"taint {key}={value}:{effect}" for key, effect, value in taints_of(node)}
    marks |= {f"label {key}" for key in metadata.get("labels") or {}}
    marks |= {f"annotation {key}" for key in metadata.get("annotations") or {} if key not in _CONSUMED}
    return marks | ({"the cordon"} if is_cordoned(node) else set())


def agents_write_their_own_node_only(evidence: RolloutTrace) -> Iterator[Breach]:
    for write in evidence.writes:
        agent = agent_node(write.actor)
        if agent and write.plural == "nodes" and write.key[1] != agent:
            yield Breach(at=write.at, sentence=f"the agent of {agent} wrote the Node {write.key[1]}")
        if agent and write.plural == "pods" and (write.before.get("spec") or {}).get("nodeName", "") != agent:
            yield Breach(
                at=write.at,
                sentence=f"the agent of {agent} changed the pod {'/'.join(write.key)}, which is on another node",
            )


def pods_leave_by_eviction(evidence: RolloutTrace) -> Iterator[Breach]:
    """Checks that agents never delete pods but evict them, because a deletion would not check disruption budgets."""
    for write in writes_to(evidence, "pods"):
        if agent_node(write.actor) and write.verb == "delete":
            yield Breach(
                at=write.at,
                sentence=f"the agent of {agent_node(write.actor)} deleted the pod {'/'.join(write.key)} "
                "instead of evicting it",
            )


def held_nodes_are_left_alone(evidence: RolloutTrace) -> Iterator[Breach]:
    """Checks that no agent cordons a node or asks its host to reboot while a person has put the node on hold by an
    annotation."""
    held: set[str] = set()
    for event in events(evidence):
        if isinstance(event, HostEvent):
            if event.what == "asked" and event.host in held:
                yield Breach(
                    at=event.at,
                    sentence=f"{event.host} was asked to reboot, although a person had put the node on hold",
                )
        elif event.plural == "nodes":
            name = event.key[1]
            if _is_cordon_by_agent(event) and name in held:
                yield Breach(at=event.at, sentence=f"{name} was cordoned, although a person had put the node on hold")
            annotations = (event.after.get("metadata") or {}).get("annotations") or {}
            held = held | {name} if "careen.dev/hold" in annotations else held - {name}


def waiting_nodes_say_why(evidence: RolloutTrace) -> Iterator[Breach]:
    """Checks that a node with careen's label also has annotations with its phase, the reason and the time."""
    for write in writes_to(evidence, "nodes"):
        metadata = write.after.get("metadata") or {}
        annotations = metadata.get("annotations") or {}
        missing = [
            key for key in ("careen.dev/phase", "careen.dev/reason", "careen.dev/since") if not annotations.get(key)
        ]
        if agent_node(write.actor) and (metadata.get("labels") or {}).get("careen.dev/reboot") and missing:
            yield Breach(
                at=write.at,
                sentence=f"{write.key[1]} has the label careen.dev/reboot, but lacks the annotations "
                f"{', '.join(missing)}",
            )


def nothing_of_ours_is_left(evidence: RolloutTrace) -> Iterator[Breach]:
    """Checks that no taint, label, cordon or claim of an agent is left at the end."""
    if not evidence.is_complete:
        return
    nodes: dict[str, Write] = {w.key[1]: w for w in writes_to(evidence, "nodes") if w.after}
    cordoners: dict[str, str] = {}
    for write in writes_to(evidence, "nodes"):
        if write.cordons:
            cordoners[write.key[1]] = write.actor
    for name, write in sorted(nodes.items()):
        left = _left_on(write.after, cordoners.get(name, ""))
        if left:
            yield Breach(at=write.at, sentence=f"{name} still has {', '.join(left)} at the end")
    for write in list(writes_to(evidence, "daemonsets"))[::-1]:
        if write.key == evidence.daemon_set:
            if holders := claims_in(write.after):
                yield Breach(
                    at=write.at, sentence=f"the lock still has claims of {', '.join(sorted(holders))} at the end"
                )
            return


def _left_on(node: Mapping[str, Any], cordoner: str) -> list[str]:
    left = [f"the taint {key}:{effect}" for key, effect, _ in sorted(taints_of(node)) if (key, effect) == TAINT]
    if "careen.dev/reboot" in ((node.get("metadata") or {}).get("labels") or {}):
        left.append("the label careen.dev/reboot")
    if is_cordoned(node) and agent_node(cordoner):
        left.append("the cordon of the node's agent")
    return left
