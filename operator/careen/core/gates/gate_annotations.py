"""Refuses while an annotation `careen.dev/gate.NAME` is on the Node, or on careen's DaemonSet (for every node).

Other programs set the annotation before work that a reboot would interrupt (a backup, a migration, a failover) and
remove it afterwards. Its value is the reason. Each program uses another NAME, so a Node can have several of them, but
only one hold.
"""

from __future__ import annotations

from collections.abc import Mapping

from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.reasons import Code
from careen.core.facts.untrusted import short
from careen.core.gates.question import Cost, No, gate
from careen.core.lock.reading import LockReading
from careen.core.situation import Situation

_LONGEST_REASON = 100
_MOST_REASONS = 6
ON_THE_DAEMON_SET = " on the DaemonSet"


@gate("gate-annotations", cost=Cost.CHEAP)
def gate_annotations(situation: Situation) -> No | None:
    reading = situation.seen.lock
    return annotated(situation.node, reading.gates if isinstance(reading, LockReading) else {})


def annotated(node: NodeView, of_cluster: Mapping[str, str]) -> No | None:
    """The gate's answer to the gate annotations of the Node and of the DaemonSet (`of_cluster`)."""
    gates = [
        *((f"gate {name}", reason) for name, reason in _described(gates_among(node.annotations))),
        *((f"gate {name} for the whole cluster", reason) for name, reason in _described(of_cluster)),
    ]
    if not gates:
        return None
    clauses = [
        f"{title}: {reason}" if reason else f"{title} gives no reason" for title, reason in gates[:_MOST_REASONS]
    ]
    if further_gates := ", ".join(title for title, _ in gates[_MOST_REASONS:]):
        clauses.append(f"and {further_gates}")
    about = (
        *(f"annotation {key}" for key in sorted(gates_among(node.annotations))),
        *(f"annotation {key}{ON_THE_DAEMON_SET}" for key in sorted(of_cluster)),
    )
    return No(Code.GATE_ANNOTATION, "; ".join(clauses), about=about)


def gates_among(annotations: Mapping[str, str]) -> dict[str, str]:
    """The annotations whose keys have the form `careen.dev/gate.NAME`, with their whole keys."""
    return {key: value for key, value in annotations.items() if key.startswith(keys.GATE_PREFIX)}


def _described(gates: Mapping[str, str]) -> list[tuple[str, str]]:
    """The name and the reason ("" if none is given) of each gate annotation, sorted by name."""
    return [
        (short(key.removeprefix(keys.GATE_PREFIX), _LONGEST_REASON), short(value.strip(), _LONGEST_REASON))
        for key, value in sorted(gates.items())
    ]
