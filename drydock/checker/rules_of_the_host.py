"""Rules about hosts. When a host needs a reboot, its node soon gets a taint, and the host reboots exactly once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from drydock.checker.evidence import (
    TAINT,
    Breach,
    RolloutTrace,
    agent_node,
    is_cordoned,
    is_ready,
    taints_of,
    writes_to,
)


def every_need_is_tainted_in_time(evidence: RolloutTrace) -> Iterator[Breach]:
    """Checks that, after a host begins to need a reboot, its node's agent taints the node within the time limit."""
    for need in (e for e in evidence.host_log if e.what == "need"):
        times = [
            w.at
            for w in writes_to(evidence, "nodes")
            if w.key[1] == need.host
            and agent_node(w.actor) == need.host
            and w.at >= need.at
            and TAINT in {(key, effect) for key, effect, _ in taints_of(w.after)}
        ]
        end = max((evidence.seen_until, *(w.at for w in evidence.writes)))
        if times and times[0] - need.at > evidence.taint_seconds:
            yield Breach(
                at=times[0],
                sentence=f"{need.host} was tainted {times[0] - need.at:.1f} s after its host began to need a reboot; "
                f"the limit is {evidence.taint_seconds:.0f} s",
            )
        if not times and end - need.at > evidence.taint_seconds:
            yield Breach(
                at=end,
                sentence=f"{need.host} was not tainted within {end - need.at:.1f} s after its host began to need a "
                "reboot",
            )


def one_reboot_for_each_need(evidence: RolloutTrace) -> Iterator[Breach]:
    needs: Counter[str] = Counter()
    reboots: Counter[str] = Counter()
    for event in evidence.host_log:
        if event.what == "need":
            needs[event.host] += 1
        if event.what == "asked":
            reboots[event.host] += 1
            if reboots[event.host] > needs[event.host]:
                yield Breach(
                    at=event.at,
                    sentence=f"{event.host} was asked {reboots[event.host]} times to reboot, but needed a reboot only "
                    f"{needs[event.host]} times",
                )


def every_node_returns_to_service(evidence: RolloutTrace) -> Iterator[Breach]:
    """Checks that, at the end, each host that needed a reboot has rebooted, and that its Node is ready and
    schedulable."""
    if not evidence.is_complete:
        return
    latest = {w.key[1]: w.after for w in writes_to(evidence, "nodes")}
    for need in (e for e in evidence.host_log if e.what == "need"):
        booted = [e for e in evidence.host_log if e.host == need.host and e.what == "booted" and e.at > need.at]
        end = max((evidence.seen_until, *(w.at for w in evidence.writes)))
        if not booted:
            yield Breach(at=end, sentence=f"{need.host} needed a reboot and never rebooted")
        elif not is_ready(latest.get(need.host, {})) or is_cordoned(latest.get(need.host, {})):
            yield Breach(at=end, sentence=f"{need.host} rebooted, but the node is not back in service at the end")
