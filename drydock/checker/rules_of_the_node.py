"""Rules about Nodes and their pods: how many are down, who may change what, and what remains at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from math import inf
from typing import Any

from drydock.checker.journal import (
    TAINT,
    AgentEvent,
    Entry,
    Fact,
    HostEvent,
    Journal,
    Object,
    Write,
    annotations_of,
    claims_in,
    in_service,
    is_cordoned,
    labels_of,
    taints_of,
)
from drydock.checker.rule import Breach, rule
from drydock.checker.rules_of_the_lock import CONFIRMED_SECONDS

# The fleet is read at most this long before the cordon; an agent could not know of a node that went down later.
_COUNTED_BEFORE_SECONDS = 10.0
# Annotations that a person sets and the agent removes after it has served them.
_CONSUMED = ("careen.dev/retry", "careen.dev/recheck", "careen.dev/reboot-now")
# Annotations that stay on a Node after its reboot.
_STAY = ("careen.dev/last-reboot", "careen.dev/history", "careen.dev/learned-queries", "careen.dev/drain-memory")
_OURS = "careen.dev/"
_ZONE = "topology.kubernetes.io/zone"


# How many are down -----------------------------------------------------------------------------------------------


class _Down:
    """The nodes that agents have taken down, followed entry by entry: cordoned by an agent or rebooting, until the node
    is in service again. A deleted Node does not count, unless its host is rebooting."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._nodes: dict[str, Object] = {}
        self._rebooting: set[str] = set()

    def follow(self, entry: Entry) -> None:
        if isinstance(entry, HostEvent):
            name = entry.host
            if entry.what in ("asked", "down"):
                self._rebooting.add(name)
                self.names.add(name)
            elif entry.what in ("ready", "refused", "ignored", "lost"):
                self._rebooting.discard(name)
        elif isinstance(entry, Write) and entry.plural == "nodes":
            name = entry.name
            self._nodes[name] = entry.after
            if _is_cordon_by_agent(entry):
                self.names.add(name)
        else:
            return
        node = self._nodes.get(name)
        if name not in self._rebooting and node is not None and (not node or in_service(node)):
            self.names.discard(name)


def _is_cordon_by_agent(entry: Entry) -> bool:
    return isinstance(entry, Write) and entry.cordons and bool(entry.agent)


@rule("nodes-down", "at most the allowed number of nodes is down at once")
def nodes_down(journal: Journal) -> Iterator[Breach]:
    """When an agent cordons its node, nodes that are down for other reasons count too."""
    ours = _Down()
    down_since: dict[str, float] = {}
    for entry in journal.entries:
        ours.follow(entry)
        if isinstance(entry, AgentEvent) or (isinstance(entry, Write) and entry.plural != "nodes"):
            continue
        if isinstance(entry, Write):
            if not entry.after or in_service(entry.after):
                down_since.pop(entry.name, None)
            else:
                down_since.setdefault(entry.name, entry.at)
        if len(ours.names) > journal.concurrency:
            yield Breach(
                at=entry.at,
                sentence=f"{', '.join(sorted(ours.names))} were down at once; the limit is {journal.concurrency}",
            )
        others = {
            name
            for name, since in down_since.items()
            if name not in ours.names and entry.at - since > _COUNTED_BEFORE_SECONDS
        }
        if (
            isinstance(entry, Write)
            and _is_cordon_by_agent(entry)
            and len(ours.names) + len(others) > journal.concurrency
        ):
            yield Breach(
                at=entry.at,
                sentence=f"{entry.name} was cordoned while {', '.join(sorted(others | ours.names - {entry.name}))} "
                f"were down; the limit is {journal.concurrency}",
            )


@rule("budgets", "at most the allowed number of nodes of a group is down at once", Fact.GROUPS)
def budgets(journal: Journal) -> Iterator[Breach]:
    ours = _Down()
    for entry in journal.entries:
        ours.follow(entry)
        counted = Counter(group for name in ours.names for group in journal.groups.get(name, ()))
        limits = {group: limit for name in ours.names for group, limit in journal.groups.get(name, {}).items()}
        for group, count in counted.items():
            if count > limits[group]:
                yield Breach(
                    at=entry.at,
                    sentence=f"{count} of {group} were down at once, the limit is {limits[group]} "
                    f"({', '.join(sorted(ours.names))})",
                )


@rule("one-zone", "with --order=zone, nodes of one zone only are down at once")
def one_zone(journal: Journal) -> Iterator[Breach]:
    if not journal.is_by_zone:
        return
    ours = _Down()
    zones: dict[str, str] = {}
    for entry in journal.entries:
        ours.follow(entry)
        if isinstance(entry, Write) and entry.plural == "nodes" and entry.after:
            zones[entry.name] = labels_of(entry.after).get(_ZONE, "")
        if len({zones.get(name, "") for name in ours.names}) > 1:
            yield Breach(at=entry.at, sentence=f"{', '.join(sorted(ours.names))} were down at once, in two zones")


@rule(
    "out-of-service",
    "of the nodes that only agents take down, at most the allowed number is cordoned or not ready at once",
)
def out_of_service(journal: Journal) -> Iterator[Breach]:
    down: set[str] = set()
    for write in journal.writes("nodes"):
        if not write.after or in_service(write.after):
            down.discard(write.name)
        elif write.name in journal.alone:
            down.add(write.name)
        if len(down) > journal.concurrency:
            yield Breach(
                at=write.at,
                sentence=f"{', '.join(sorted(down))} were out of service at once; the limit is {journal.concurrency}",
            )


# What is true when a host is asked to reboot ----------------------------------------------------------------------


@rule("cordoned", "no host is asked to reboot unless its node is cordoned")
def cordoned(journal: Journal) -> Iterator[Breach]:
    last: dict[str, float] = {}
    now: set[str] = set()
    for entry in journal.entries:
        if isinstance(entry, Write) and entry.plural == "nodes":
            if is_cordoned(entry.after):
                now.add(entry.name)
            elif entry.name in now:
                now.discard(entry.name)
                last[entry.name] = entry.at
        elif (
            isinstance(entry, HostEvent)
            and entry.what == "asked"
            and entry.host not in now
            and entry.at - last.get(entry.host, -inf) > CONFIRMED_SECONDS
        ):
            yield Breach(at=entry.at, sentence=f"{entry.host} was asked to reboot without a cordon")


@rule("drained", "no node reboots before it is drained")
def drained(journal: Journal) -> Iterator[Breach]:
    """Pods of DaemonSets, static pods and finished pods may be left."""
    pods: dict[tuple[str, str], Object] = {}
    for entry in journal.entries:
        if isinstance(entry, Write):
            if entry.plural == "pods":
                pods[entry.key] = entry.after
        elif isinstance(entry, HostEvent) and entry.what == "asked":
            left = sorted(
                "/".join(key)
                for key, pod in pods.items()
                if (pod.get("spec") or {}).get("nodeName") == entry.host and _must_go(pod)
            )
            if left:
                yield Breach(
                    at=entry.at,
                    sentence=f"{entry.host} was asked to reboot, but the node still had these pods: {', '.join(left)}",
                )


def _must_go(pod: Object) -> bool:
    metadata = pod["metadata"]
    is_daemon = any(o.get("controller") and o["kind"] == "DaemonSet" for o in metadata.get("ownerReferences") or ())
    is_static = "kubernetes.io/config.mirror" in (metadata.get("annotations") or {})
    is_finished = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return not is_daemon and not is_static and not is_finished


@rule("hold", "agents neither cordon nor reboot a node that a person has put on hold")
def hold(journal: Journal) -> Iterator[Breach]:
    held: set[str] = set()
    for entry in journal.entries:
        if isinstance(entry, HostEvent):
            if entry.what == "asked" and entry.host in held:
                yield Breach(
                    at=entry.at,
                    sentence=f"{entry.host} was asked to reboot, although a person had put the node on hold",
                )
        elif isinstance(entry, Write) and entry.plural == "nodes":
            name = entry.name
            if _is_cordon_by_agent(entry) and name in held:
                yield Breach(at=entry.at, sentence=f"{name} was cordoned, although a person had put the node on hold")
            held = held | {name} if "careen.dev/hold" in annotations_of(entry.after) else held - {name}


# Who may change what ----------------------------------------------------------------------------------------------


@rule("foreign", "agents keep cordons, taints, labels and annotations that other clients have set")
def foreign(journal: Journal) -> Iterator[Breach]:
    setters: dict[tuple[str, str], Write | None] = {}
    for write in journal.writes("nodes"):
        before, after = _names_of_marks(write.before), _names_of_marks(write.after)
        for mark in sorted(before - after):
            setter = setters.pop((write.name, mark), None)
            if write.agent and write.after and not (setter and setter.agent):
                yield Breach(
                    at=write.at,
                    sentence=f"the agent of {write.agent} removed {mark} from {write.name}, although "
                    f"{setter.actor if setter else 'another client'} had set {mark}",
                )
        for mark in after - before:
            setters[write.name, mark] = write


def _names_of_marks(node: Object) -> set[str]:
    marks = {f"taint {key}={value}:{effect}" for key, effect, value in taints_of(node)}
    marks |= {f"label {key}" for key in labels_of(node)}
    marks |= {f"annotation {key}" for key in annotations_of(node) if key not in _CONSUMED}
    return marks | ({"the cordon"} if is_cordoned(node) else set())


@rule("own-node", "an agent writes only its own Node and the pods on this node")
def own_node(journal: Journal) -> Iterator[Breach]:
    for write in journal.writes("nodes"):
        if write.agent and write.name != write.agent:
            yield Breach(at=write.at, sentence=f"the agent of {write.agent} wrote the Node {write.name}")
    for write in journal.writes("pods"):
        if write.agent and (write.before.get("spec") or {}).get("nodeName", "") != write.agent:
            yield Breach(
                at=write.at,
                sentence=f"the agent of {write.agent} changed the pod {'/'.join(write.key)}, which is on another node",
            )


@rule("eviction", "agents evict pods and never delete them, because only an eviction obeys disruption budgets")
def eviction(journal: Journal) -> Iterator[Breach]:
    for write in journal.writes("pods"):
        if write.agent and write.verb == "delete":
            yield Breach(
                at=write.at,
                sentence=f"the agent of {write.agent} deleted the pod {'/'.join(write.key)} instead of evicting it",
            )


@rule("explained", "every waiting node shows the reason why it waits")
def explained(journal: Journal) -> Iterator[Breach]:
    for write in journal.writes("nodes"):
        annotations = annotations_of(write.after)
        missing = [
            key for key in ("careen.dev/phase", "careen.dev/reason", "careen.dev/since") if not annotations.get(key)
        ]
        if write.agent and labels_of(write.after).get("careen.dev/reboot") and missing:
            yield Breach(
                at=write.at,
                sentence=f"{write.name} has the label careen.dev/reboot, but lacks the annotations "
                f"{', '.join(missing)}",
            )


# What remains at the end ------------------------------------------------------------------------------------------


@rule("tidy", "no taint, label, cordon or claim of careen is left at the end", Fact.END)
def tidy(journal: Journal) -> Iterator[Breach]:
    nodes = {write.name: write for write in journal.writes("nodes") if write.after}
    cordoners = {write.name: write.agent for write in journal.writes("nodes") if write.cordons}
    for name, write in sorted(nodes.items()):
        left = [
            f"the taint {key}:{effect}" for key, effect, _ in sorted(taints_of(write.after)) if (key, effect) == TAINT
        ]
        if "careen.dev/reboot" in labels_of(write.after):
            left.append("the label careen.dev/reboot")
        if is_cordoned(write.after) and cordoners.get(name):
            left.append("the cordon of the node's agent")
        if left:
            yield Breach(at=write.at, sentence=f"{name} still has {', '.join(left)} at the end")
    yield from _claims_left(journal)


def _claims_left(journal: Journal) -> Iterator[Breach]:
    writes = [write for write in journal.writes("daemonsets") if journal.is_lock(write)]
    if writes and (holders := claims_in(writes[-1].after)):
        yield Breach(at=writes[-1].at, sentence=f"the lock still has claims of {', '.join(sorted(holders))} at the end")


@rule("end", "at the end every Node carries what it carried before the agents started", Fact.END, Fact.BEGINNING)
def end(journal: Journal) -> Iterator[Breach]:
    """A person's last cordon stands. Where a person has removed the record, no agent can prove that a mark outside
    careen's domain is its own, so such a mark may stay."""
    cordons, wiped = _persons_cordons(journal), _wiped(journal)
    for name, before in journal.initial.items():
        after = journal.node_at(name, journal.end)
        if not after:
            yield Breach(at=journal.end, sentence=f"the Node {name} is gone")
            continue
        expected = {**_marks(before), "cordon": name in cordons}
        known = {*labels_of(before), *(key for key, _, _ in taints_of(before))}
        found = _marks(after, known if name in wiped else None)
        if found != expected:
            yield Breach(at=journal.end, sentence=f"{name} carries {_differences(expected, found)}")
    yield from _claims_left(journal)


def _persons_cordons(journal: Journal) -> set[str]:
    found: set[str] = set()
    for write in journal.writes("nodes"):
        if not write.agent and write.cordons:
            found.add(write.name)
        elif not write.agent and not is_cordoned(write.after):
            found.discard(write.name)
    return found


def _wiped(journal: Journal) -> set[str]:
    record = "careen.dev/progress"
    return {
        write.name
        for write in journal.writes("nodes")
        if not write.agent
        and write.after
        and record in annotations_of(write.before)
        and record not in annotations_of(write.after)
    }


def _marks(node: Object, known: set[str] | None = None) -> dict[str, Any]:
    def is_judged(key: str) -> bool:
        return known is None or key in known or key.startswith(_OURS)

    return {
        "labels": {key: value for key, value in labels_of(node).items() if is_judged(key)},
        "annotations": {key: value for key, value in annotations_of(node).items() if key not in _STAY},
        "taints": sorted(taint for taint in taints_of(node) if is_judged(taint[0])),
        "cordon": is_cordoned(node),
    }


def _differences(expected: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    return "; ".join(
        f"{kind} {found[kind]!r} instead of {expected[kind]!r}" for kind in expected if expected[kind] != found[kind]
    )
