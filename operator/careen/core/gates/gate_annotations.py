"""This gate refuses to let the node begin its drain or its reboot while an annotation `careen.dev/gate.NAME` is on the
Node. If the annotation is on careen's DaemonSet, the gate refuses for every node.

Other programs set the annotation before work that a reboot would interrupt (a backup, a migration, a failover) and
remove it afterwards. Its value is the reason. Each program uses another NAME, so several gate annotations can be on a
Node at the same time. A node can have only one hold (the annotation by which a person keeps the node from rebooting).
"""

from __future__ import annotations

from collections.abc import Mapping

from careen.core.decision import Refusal
from careen.core.facts import keys
from careen.core.facts.observation import LockReading, NodeView
from careen.core.facts.reasons import Code
from careen.core.facts.untrusted import short
from careen.core.gates.question import ALWAYS, Cost, Gate, When, nothing
from careen.core.situation import Situation

_LONGEST_REASON = 100
_MOST_REASONS = 6


def ask(situation: Situation, _when: When) -> Refusal | None:
    """Return a refusal if there are gate annotations. The refusal names all of them, the annotations of the
    Node first."""
    reading = situation.seen.lock
    return refusal_of(situation.node, reading.gates if isinstance(reading, LockReading) else {})


def refusal_of(node: NodeView, of_cluster: Mapping[str, str]) -> Refusal | None:
    """Return the refusal for the gate annotations of the Node and of the DaemonSet (`of_cluster`). Return None if there
    are none."""
    gates = [
        *((f"gate {name}", reason) for name, reason in _described(gates_among(node.annotations))),
        *((f"gate {name} for the whole cluster", reason) for name, reason in _described(of_cluster)),
    ]
    if not gates:
        return None
    clauses = [f"{gate}: {reason}" if reason else f"{gate} gives no reason" for gate, reason in gates[:_MOST_REASONS]]
    if further_gates := ", ".join(gate for gate, _ in gates[_MOST_REASONS:]):
        clauses.append(f"and {further_gates}")
    return Refusal(gate=GATE.name, code=Code.GATE_ANNOTATION, sentence="; ".join(clauses))


def gates_among(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return the annotations whose keys have the form `careen.dev/gate.NAME`, with their whole keys."""
    return {key: value for key, value in annotations.items() if key.startswith(keys.GATE_PREFIX)}


def _described(gates: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the name and the reason of each gate annotation, sorted by name. The reason is empty if the annotation
    gives none."""
    return [
        (short(key.removeprefix(keys.GATE_PREFIX), _LONGEST_REASON), short(value.strip(), _LONGEST_REASON))
        for key, value in sorted(gates.items())
    ]


GATE = Gate(
    name="gate-annotations",
    ask=ask,
    when=ALWAYS,
    cost=Cost.CHEAP,
    needs=nothing,
)
