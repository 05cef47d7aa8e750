"""Rules about claims, their release, and the pause of the lock."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from drydock.checker.journal import (
    AgentEvent,
    HostEvent,
    Journal,
    Write,
    annotations_of,
    boot_id_of,
    claim_on,
    claims_in,
    doubles_in,
    failed_in,
    is_cordoned,
    is_paused,
    is_ready,
)
from drydock.checker.rule import Breach, rule

CONFIRMED_SECONDS = 5.5
"""How old an agent's last read of lock and Node may be when it asks the host to reboot."""
_HALTED_SECONDS = 15.0
"""How long a mark of failure stands before every agent must have read it: the facts behind a cordon may be ten seconds
old, and its request takes a while."""


@rule("claims", "at most the allowed number of nodes holds the lock at once")
def claims(journal: Journal) -> Iterator[Breach]:
    for write, _, after in journal.lock_writes():
        if len(after) > journal.concurrency:
            yield Breach(
                at=write.at,
                sentence=f"{', '.join(sorted(after))} hold the lock at once; the limit is {journal.concurrency}",
            )


@rule("double", "no agent writes two claims of one node into the lock")
def double(journal: Journal) -> Iterator[Breach]:
    for write in filter(journal.is_lock, journal.writes("daemonsets")):
        if write.agent and (twice := doubles_in(write.after) - doubles_in(write.before)):
            yield Breach(
                at=write.at,
                sentence=f"the agent of {write.agent} wrote two claims of {', '.join(sorted(twice))} into the lock",
            )


@rule("theft", "no agent removes another node from the lock while that node still holds the lock")
def theft(journal: Journal) -> Iterator[Breach]:
    for write, before, after in journal.lock_writes():
        taken = [node for node, claim in before.items() if after.get(node) != claim and write.agent not in ("", node)]
        for node in taken:
            there = journal.node_at(node, write.at)  # a Node that does not exist holds nothing
            if there and claim_on(there) == before[node]:
                yield Breach(
                    at=write.at,
                    sentence=f"the agent of {write.agent} removed {node} from the lock, "
                    f"although {node} still held the lock",
                )


@rule(
    "release",
    "an agent releases the lock only after its node has rebooted, or after the agent has removed its own cordon",
)
def release(journal: Journal) -> Iterator[Breach]:
    since: dict[str, float] = {}
    for write, before, after in journal.lock_writes():
        for node in after.keys() - before.keys():
            since[node] = write.at
        for node in released_nodes(write, before, after):
            if (sentence := _unsafe_release(journal, node, since.get(node, 0.0), write.at)) is not None:
                yield Breach(at=write.at, sentence=sentence)


def released_nodes(write: Write, before: dict[str, str], after: dict[str, str]) -> set[str]:
    """The nodes whose claims an agent released; not those whose claims a person removed."""
    return set(before) - set(after) if write.agent else set()


def _unsafe_release(journal: Journal, name: str, claimed_at: float, released_at: float) -> str | None:
    node = journal.node_at(name, released_at)
    log = [each for each in journal.hosts(host=name) if claimed_at <= each.at <= released_at]
    if not any(each.what == "asked" for each in log):
        cordons = [write for write in journal.writes("nodes", name) if write.at <= released_at and write.cordons]
        if is_cordoned(node) and cordons and cordons[-1].agent == name:
            return (
                f"{name} was removed from the lock, although the node had not rebooted and still had the cordon of its "
                "agent"
            )
        if name in journal.alone and node and not is_ready(node):
            return f"{name} was removed from the lock before the Node was Ready"
        return None
    if log[-1].what not in ("booted", "ready"):
        return f"{name} was removed from the lock before the node rebooted"
    if not is_ready(node) or boot_id_of(node) != log[-1].boot_id:
        return f"{name} was removed from the lock before the Node was Ready with its new boot id"
    return None


@rule("early", "no agent removes a claim between the request to reboot and the boot")
def early(journal: Journal) -> Iterator[Breach]:
    under_way: set[str] = set()
    holders: set[str] = set()
    for entry in journal.entries:
        if isinstance(entry, HostEvent):
            if entry.what == "asked":
                under_way.add(entry.host)
            elif entry.what in ("booted", "refused", "ignored"):
                under_way.discard(entry.host)
        elif isinstance(entry, Write) and entry.plural == "nodes" and not entry.after:
            under_way.discard(entry.name)
        elif isinstance(entry, Write) and journal.is_lock(entry):
            now = claims_in(entry.after)
            # An unreadable lock ends no claim: every agent waits until a person has put it right.
            before, holders = holders, holders if now is None else set(now)
            for name in (before - holders) & under_way:
                under_way.discard(name)
                if entry.agent:
                    yield Breach(
                        at=entry.at,
                        sentence=f"the agent of {entry.agent} removed the claim of {name} after the request to reboot "
                        "its host and before the boot",
                    )


@rule("claim", "no node reboots unless it holds the lock")
def claim(journal: Journal) -> Iterator[Breach]:
    """If the claim has an id, the Node's record must have the same."""
    holders: dict[str, str] = {}
    recorded: dict[str, str] = {}
    lock = {id(write): after for write, _, after in journal.lock_writes()}
    for entry in journal.entries:
        if isinstance(entry, HostEvent):
            if entry.what == "asked" and (
                entry.host not in holders or holders[entry.host] not in ("", recorded.get(entry.host, ""))
            ):
                yield Breach(
                    at=entry.at,
                    sentence=f"{entry.host} was asked to reboot, but the lock had no valid claim of this node; "
                    "the lock had claims of: "
                    f"{', '.join(sorted(holders)) or 'no node'}",
                )
        elif id(entry) in lock:
            holders = lock[id(entry)]
        elif (
            isinstance(entry, Write)
            and entry.plural == "nodes"
            # A person may remove the record; the agent that asks has read it before.
            and (entry.agent or not entry.after or claim_on(entry.after))
        ):
            recorded[entry.name] = claim_on(entry.after)


@rule("reboot", "no host is asked to reboot after its node has lost its claim or a person has put it on hold")
def reboot(journal: Journal) -> Iterator[Breach]:
    """Weaker than `claim` and `hold`, so that it holds where people change lock and Nodes at any moment: claim and hold
    may be as old as the agent's last reading of them."""
    held: dict[str, float] = {}
    holders: set[str] = set()
    holds: dict[str, float] = {}
    for entry in journal.entries:
        if isinstance(entry, AgentEvent):
            continue
        held.update(dict.fromkeys(holders, entry.at))
        if isinstance(entry, HostEvent):
            if entry.what == "asked" and entry.at - held.get(entry.host, -inf) > CONFIRMED_SECONDS:
                yield Breach(at=entry.at, sentence=f"{entry.host} was asked to reboot without a claim")
            if entry.what == "asked" and entry.at - holds.get(entry.host, inf) > CONFIRMED_SECONDS:
                yield Breach(
                    at=entry.at,
                    sentence=f"{entry.host} was asked to reboot although a person had put the node on hold",
                )
        elif journal.is_lock(entry):
            holders = set(claims_in(entry.after) or ())
        elif entry.plural == "nodes":
            if "careen.dev/hold" in annotations_of(entry.after):
                holds.setdefault(entry.name, entry.at)
            else:
                holds.pop(entry.name, None)


@rule("pause", "no agent ends a pause of the lock, or asks its host to reboot during one")
def pause(journal: Journal) -> Iterator[Breach]:
    since: float | None = None
    for entry in journal.entries:
        if isinstance(entry, Write) and journal.is_lock(entry):
            if entry.agent and is_paused(entry.before) and not is_paused(entry.after):
                yield Breach(at=entry.at, sentence=f"the agent of {entry.agent} ended a pause of the lock")
            since = (entry.at if since is None else since) if is_paused(entry.after) else None
        elif (
            isinstance(entry, HostEvent)
            and entry.what == "asked"
            and since is not None
            and entry.at - since > CONFIRMED_SECONDS
        ):
            yield Breach(at=entry.at, sentence=f"{entry.host} was asked to reboot although the lock was paused")


@rule("halt", "no agent cordons its node while another node has failed and keeps its claim")
def halt(journal: Journal) -> Iterator[Breach]:
    since: dict[str, float] = {}
    failed: dict[str, str] = {}
    for entry in journal.entries:
        if not isinstance(entry, Write):
            continue
        if journal.is_lock(entry):
            failed = failed_in(entry.after)
            since = {claim: since.get(claim, entry.at) for claim in failed}
        elif entry.cordons and entry.agent:
            late = entry.at - _HALTED_SECONDS - journal.answer_seconds
            stopped = sorted(node for claim, node in failed.items() if node != entry.name and since[claim] < late)
            if stopped:
                yield Breach(
                    at=entry.at,
                    sentence=f"{entry.name} was cordoned although {', '.join(stopped)} had failed and kept its claim",
                )
