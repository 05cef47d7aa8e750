"""Checks the rules that must hold in every test with nodes and agents. Reads the records of the observer and of the
hosts. The functions are pure and share no code with careen.

Each function returns one sentence for each broken rule. The watches of nodes, pods and lock are separate connections,
so events within `BLUR` seconds have no order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tests.cluster.harness.machines.hosts import Host
from tests.cluster.harness.measures.figures import Span, down_spans, holding_spans, most_at_once
from tests.cluster.harness.observer import NodeSeen, Seen

BLUR = 0.5
OURS = "careen.dev/"
# What may stay on an idle node: the record of the last reboot. `hold` and `reboot-now` belong to people.
STAYS = ("careen.dev/last-reboot", "careen.dev/history", "careen.dev/hold", "careen.dev/reboot-now")


def broken(
    seen: Seen, hosts: Mapping[str, Host], *, concurrency: int, end: float, lock_was_lost: bool = False
) -> list[str]:
    """Check all rules that must hold in every test with nodes and agents.

    A test that removes the lock sets `lock_was_lost`, because a claim may then be missing although no agent released
    it.
    """
    return [
        *too_many_down(seen, hosts, concurrency, end),
        *rebooted_without_right(seen, hosts, end),
        *(() if lock_was_lost else claim_released_too_early(seen, hosts, end)),
        *(
            f"the agent of {host.name} exited by itself (time, exit code): {host.crashes}"
            for host in hosts.values()
            if host.crashes
        ),
    ]


def too_many_down(seen: Seen, names: Iterable[str], limit: int, end: float) -> list[str]:
    """Check that at most `limit` of these nodes are cordoned or not ready at once."""
    spans = {name: down_spans(_history(seen, name), end) for name in names}
    most = most_at_once(span for found in spans.values() for span in found)
    if most <= limit:
        return []
    listing = ", ".join(
        f"{name} {span.start:.1f}–{span.end:.1f}" for name, found in sorted(spans.items()) for span in found
    )
    return [f"{most} nodes were down at once, the limit is {limit}: {listing}"]


def rebooted_without_right(seen: Seen, hosts: Mapping[str, Host], end: float) -> list[str]:
    """Check for each reboot by an agent that the lock had a claim of the node, that the node was cordoned, and that no
    pod was left on the node. Pods of DaemonSets, static pods, finished pods and pods without a controller may be left.
    """
    found = []
    for name, host in hosts.items():
        history = _history(seen, name)
        for reboot in host.reboots:
            if not reboot.by_agent:
                continue
            at = reboot.asked_at
            if not _within(holding_spans(seen.locks, name, end), at):
                found.append(f"{name} rebooted at {at:.1f} without a claim in the lock")
            if not any(one.unschedulable for one in _around(history, at)):
                found.append(f"{name} rebooted at {at:.1f} without a cordon")
            left = [
                life.name
                for life in seen.pods.values()
                if life.node == name
                and life.owner
                and not life.from_daemonset
                and not life.is_static
                and not life.finished
                and (life.scheduled_at or end) < at - BLUR
                and (life.gone_at is None or life.gone_at > at + BLUR)
            ]
            if left:
                found.append(f"{name} rebooted at {at:.1f} with {', '.join(sorted(left))} on it")
    return found


def claim_released_too_early(seen: Seen, hosts: Mapping[str, Host], end: float) -> list[str]:
    """Check each claim that left the lock. At that time, the node must be Ready, and every reboot that was requested
    under the claim must be complete."""
    found = []
    for name, host in hosts.items():
        history = _history(seen, name)
        for span in holding_spans(seen.locks, name, end):
            if span.end >= end:
                continue
            asked = [reboot for reboot in host.reboots if span.start - BLUR <= reboot.asked_at <= span.end + BLUR]
            if asked and (asked[-1].ready_at is None or asked[-1].ready_at > span.end + BLUR):
                found.append(
                    f"{name} released its claim at {span.end:.1f}, before it returned from the reboot requested at "
                    f"{asked[-1].asked_at:.1f}"
                )
            if not any(one.ready for one in _around(history, span.end)):
                found.append(f"{name} released its claim at {span.end:.1f} without being Ready")
    return found


def not_cleaned_up(state: NodeSeen | None, *, cordoned: bool = False) -> list[str]:
    """Check that an idle node has no mark (label, annotation or taint) of careen. With `cordoned`, the node must be
    cordoned; without it, the node must not be cordoned."""
    if state is None:
        return ["the node is gone"]
    left = [key for key in (*state.labels, *state.annotations) if key.startswith(OURS) and key not in STAYS]
    left += [f"{key}:{effect}" for key, effect in state.taints if key.startswith(OURS)]
    sentences = [f"{state.name} still carries {', '.join(sorted(left))}"] if left else []
    if state.unschedulable != cordoned:
        sentences.append(f"{state.name} is {'not ' if cordoned else ''}cordoned")
    return sentences


def _history(seen: Seen, name: str) -> list[NodeSeen]:
    return [one for one in seen.nodes if one.name == name]


def _within(spans: Sequence[Span], at: float) -> bool:
    return any(span.start - BLUR <= at <= span.end + BLUR for span in spans)


def _around(history: Sequence[NodeSeen], at: float) -> list[NodeSeen]:
    """Return the states that the node had within BLUR seconds of this time."""
    before = [one for one in history if one.at <= at - BLUR][-1:]
    return before + [one for one in history if at - BLUR < one.at <= at + BLUR]
