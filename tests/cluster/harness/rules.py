"""Judges a story by the rules of `drydock.checker`: its journal comes from the API server's audit log, and from the
machines."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from drydock.checker import judge
from drydock.checker.journal import AgentEvent, Entry, Fact, HostEvent, Journal, Write, boot_id_of, in_order, is_ready
from tests.cluster.harness.api import Object
from tests.cluster.harness.audit_log import AuditReader
from tests.cluster.harness.cluster import Identity
from tests.cluster.harness.machines.hosts import Host
from tests.cluster.harness.observer import NodeSeen

BLUR = 0.5
"""The watches of nodes, pods and lock are separate connections, so events within these seconds have no order."""
OURS = "careen.dev/"
# What may stay on an idle node: the record of the last reboot. `hold` and `reboot-now` belong to people.
STAYS = (
    "careen.dev/last-reboot",
    "careen.dev/history",
    "careen.dev/learned-queries",
    "careen.dev/drain-memory",
    "careen.dev/hold",
    "careen.dev/reboot-now",
)


def journal_of(
    audit: Iterable[Mapping[str, Any]],
    hosts: Mapping[str, Host],
    identity: Identity,
    *,
    concurrency: int,
    known: Iterable[tuple[str, Object]] = (),
    groups: Mapping[str, Mapping[str, int]] | None = None,
) -> Journal:
    """`known` are objects from before the log, each with its plural. Nobody but the agents may take the hosts down,
    except hosts that the story leaves out of `hosts`."""
    reader = AuditReader(identity.user)
    items = list(known)
    for plural, item in items:
        reader.remember(plural, item)
    journal = Journal(
        entries=in_order((_seen(plural, item) for plural, item in items), reader.entries(audit)),
        concurrency=concurrency,
        knows={Fact.EVENTS, Fact.EXITS, *([Fact.GROUPS] if groups else [])},
        alone=hosts.keys(),
        daemon_set=(identity.namespace, identity.daemonset),
        groups=groups or {},
    )
    return journal.with_entries(entry for host in hosts.values() for entry in _of(host, journal))


def _seen(plural: str, item: Object) -> Write:
    metadata = item["metadata"]
    key = metadata.get("namespace", ""), metadata["name"]
    return Write(at=0.0, actor="", verb="create", plural=plural, key=key, before={}, after=item)


def _of(host: Host, journal: Journal) -> Iterator[Entry]:
    for reboot in host.reboots:
        what = "asked" if reboot.by_agent else "lost"
        yield HostEvent(at=reboot.asked_at, host=host.name, what=what, boot_id=reboot.boot_left)
        if reboot.ready_at is not None:
            # By the log: an agent may act on this write before whoever recorded the reboot knows of it.
            written = (write for write in journal.writes("nodes", host.name) if write.at >= reboot.asked_at)
            told = (one.at for one in written if is_ready(one.after) and boot_id_of(one.after) == reboot.boot)
            at = next(told, reboot.ready_at)
            for what in ("booted", "ready"):
                yield HostEvent(at=at, host=host.name, what=what, boot_id=reboot.boot)
    for at, code in host.crashes:
        yield AgentEvent(at=at, node=host.name, what="exited", reason=str(code))


def broken(journal: Journal, *, since: float = 0.0, but: Collection[str] = ()) -> list[str]:
    """A sentence for each breach since then of a rule that is not in `but`."""
    return [
        f"{each.rule.name}: {breach.at:.1f}: {breach.sentence}"
        for each in judge(journal).broken
        if each.rule.name not in but
        for breach in each.breaches
        if breach.at >= since or each.rule.name == "exits"
    ]


def not_cleaned_up(state: NodeSeen | None, *, cordoned: bool = False) -> list[str]:
    """Why an idle node is not as it should be: marks of careen, or a cordon other than `cordoned`."""
    if state is None:
        return ["the node is gone"]
    left = [key for key in (*state.labels, *state.annotations) if key.startswith(OURS) and key not in STAYS]
    left += [f"{key}:{effect}" for key, effect in state.taints if key.startswith(OURS)]
    sentences = [f"{state.name} still carries {', '.join(sorted(left))}"] if left else []
    if state.unschedulable != cordoned:
        sentences.append(f"{state.name} is {'not ' if cordoned else ''}cordoned")
    return sentences
