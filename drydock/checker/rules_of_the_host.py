"""Rules about hosts and the agents on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from drydock.checker.journal import (
    TAINT,
    AgentEvent,
    Fact,
    HostEvent,
    Journal,
    in_service,
    taints_of,
)
from drydock.checker.rule import Breach, rule

_ANNOUNCED_SECONDS = 8.0
"""For so long after an agent process has announced the reboot on the Node, only this process may ask the host."""


@rule("taint", "every node is tainted soon after its host needs a reboot", Fact.NEEDS)
def taint(journal: Journal) -> Iterator[Breach]:
    for need in journal.hosts("need"):
        times = [
            write.at
            for write in journal.writes("nodes", need.host)
            if write.agent == need.host
            and write.at >= need.at
            and TAINT in {(key, effect) for key, effect, _ in taints_of(write.after)}
        ]
        if times and times[0] - need.at > journal.taint_seconds:
            yield Breach(
                at=times[0],
                sentence=f"{need.host} was tainted {times[0] - need.at:.1f} s after its host began to need a reboot; "
                f"the limit is {journal.taint_seconds:.0f} s",
            )
        if not times and journal.end - need.at > journal.taint_seconds:
            yield Breach(
                at=journal.end,
                sentence=f"{need.host} was not tainted within {journal.end - need.at:.1f} s after its host began to "
                "need a reboot",
            )


@rule("loop", "no node reboots again unless its host needs another reboot", Fact.NEEDS)
def loop(journal: Journal) -> Iterator[Breach]:
    needs: Counter[str] = Counter()
    reboots: Counter[str] = Counter()
    for event in journal.hosts("need", "asked"):
        if event.what == "need":
            needs[event.host] += 1
        else:
            reboots[event.host] += 1
            if reboots[event.host] > needs[event.host]:
                yield Breach(
                    at=event.at,
                    sentence=f"{event.host} was asked {reboots[event.host]} times to reboot, but needed a reboot only "
                    f"{needs[event.host]} times",
                )


@rule("once", "every need leads to exactly one boot", Fact.NEEDS, Fact.END)
def once(journal: Journal) -> Iterator[Breach]:
    needs = Counter(event.host for event in journal.hosts("need"))
    boots = Counter(event.host for event in journal.hosts("booted"))
    for name in sorted({*needs, *boots}):
        if needs[name] != boots[name]:
            yield Breach(
                at=journal.end,
                sentence=f"{name} rebooted {boots[name]} times, but needed a reboot {needs[name]} times",
            )


@rule("asked", "no host is asked again to reboot while the first request may still take effect")
def asked(journal: Journal) -> Iterator[Breach]:
    """For eight seconds of the same boot nobody asks again, unless the host did nothing; and no agent before its reboot
    deadline, unless it has died or the command failed."""
    first: dict[str, HostEvent] = {}
    taken: dict[str, HostEvent] = {}
    for entry in journal.entries:
        if isinstance(entry, AgentEvent) and entry.what == "died":
            taken.pop(entry.node, None)
        if not isinstance(entry, HostEvent) or entry.what not in ("asked", "refused", "ignored"):
            continue
        if entry.what != "asked":
            first.pop(entry.host, None)
            if entry.what == "refused":
                taken.pop(entry.host, None)
            continue
        for last, seconds in (
            (taken.get(entry.host), journal.reboot_deadline_seconds),
            (first.get(entry.host), _ANNOUNCED_SECONDS),
        ):
            if last is not None and last.boot_id == entry.boot_id and entry.at - last.at < seconds:
                yield Breach(
                    at=entry.at, sentence=f"{entry.host} was asked twice to reboot within {entry.at - last.at:.2f} s"
                )
                break
        first[entry.host] = taken[entry.host] = entry


@rule("finished", "every node that needs a reboot reboots and returns to service", Fact.NEEDS, Fact.END)
def finished(journal: Journal) -> Iterator[Breach]:
    for need in journal.hosts("need"):
        if not any(event.at > need.at for event in journal.hosts("booted", host=need.host)):
            yield Breach(at=journal.end, sentence=f"{need.host} needed a reboot and never rebooted")
        elif not in_service(journal.node_at(need.host, journal.end)):
            yield Breach(
                at=journal.end, sentence=f"{need.host} rebooted, but the node is not back in service at the end"
            )


@rule(
    "reported",
    "an Event reports each release after a reboot that an agent asked for",
    Fact.EVENTS,
    Fact.DEATHS,
    Fact.END,
)
def reported(journal: Journal) -> Iterator[Breach]:
    """Skips a reboot if the agent was killed after the boot. After a halt a person's retry releases the claim."""
    deaths, sent = journal.agents("died"), journal.agents("sent")
    for name in sorted({event.host for event in journal.hosts("asked")}):
        boots = [event.at for event in journal.hosts("booted", host=name)]
        requests = [event.at for event in journal.hosts("asked", host=name)]
        for at in [next((at for at in boots if at > each), None) for each in requests]:
            if at is None:
                continue
            # The Event may follow a further boot, because the host may lose power; not the next request.
            until = min((each for each in requests if each > at), default=journal.end)
            is_killed = any(died.node == name and at < died.at <= until for died in deaths)
            is_reported = any(
                each.node == name and each.reason in ("Released", "Retry") and at < each.at <= until for each in sent
            )
            if not is_reported and not is_killed:
                yield Breach(
                    at=until, sentence=f"no Event reports that {name} released its claim after the boot at {at:.2f}"
                )


@rule("broken-turns", "no turn of an agent ends with an unexpected exception", Fact.TURNS)
def broken_turns(journal: Journal) -> Iterator[Breach]:
    for event in journal.agents("broke"):
        yield Breach(at=event.at, sentence=f"a turn of the agent of {event.node} ended with an unexpected exception")


@rule("exits", "no agent exits by itself", Fact.EXITS)
def exits(journal: Journal) -> Iterator[Breach]:
    for event in journal.agents("exited"):
        yield Breach(at=event.at, sentence=f"the agent of {event.node} exited by itself with code {event.reason}")
