"""The ordered list of gates (the conditions that must be met before a node may begin its drain or its reboot): cheap
and certain gates first, the expensive forecast and dry run last. A new gate needs a file in this folder and a line in
this list."""

from __future__ import annotations

from careen.core.decision import Refusal
from careen.core.facts.phases import Evidence
from careen.core.gates import (
    alerts,
    blocking_pods,
    blocking_pods_elsewhere,
    bound_pods,
    budgets,
    cluster_interval,
    control_plane,
    drain_forecast,
    dry_run,
    foreign_coordinator,
    foreign_cordon,
    gate_annotations,
    halt,
    health_queries,
    hold,
    host_state,
    loop_limit,
    maintenance_window,
    minimum_interval,
    reboot_way,
    settings,
)
from careen.core.gates.question import Cost, Gate, When
from careen.core.situation import Situation

GATES: tuple[Gate, ...] = (
    hold.GATE,  # the decision of a person comes before everything else
    halt.GATE,  # needs only the lock
    host_state.GATE,  # without a known need there is nothing to ask the others for
    settings.GATE,  # needs only the agent's own settings
    reboot_way.GATE,  # a small command on the host, at most once every few minutes
    loop_limit.GATE,  # a need that survives reboots will survive the next one too
    gate_annotations.GATE,  # needs only the Node, and the DaemonSet that contains the lock
    maintenance_window.GATE,  # needs only the Node and the clock
    minimum_interval.GATE,  # needs only the Node and the clock
    foreign_cordon.GATE,  # needs only the Node and the clock
    blocking_pods.GATE,  # one list of this node's pods, and only when selectors are configured
    cluster_interval.GATE,  # needs only the Node, the lock and the clock; only the next node in line asks this gate
    foreign_coordinator.GATE,  # one or two reads; only the next node in line asks this gate
    blocking_pods_elsewhere.GATE,  # a list for each entry, picked by labels, and only when one is configured
    bound_pods.GATE,  # one list of this node's pods, and the owners of those that no scheduler placed
    budgets.GATE,  # one list of all nodes; only the next node in line asks this gate
    control_plane.GATE,  # one read, and only by a control-plane node
    alerts.GATE,  # another server, which may be slow
    health_queries.GATE,  # the same server, a few questions
    drain_forecast.GATE,  # a child process and lists of the whole cluster
    dry_run.GATE,  # one request per pod, and only once the claim is held
)


def asked(when: When, cost: Cost | None = None) -> tuple[Gate, ...]:
    """Return the gates that an agent evaluates at the point `when` on the way to a reboot, in the order of `GATES`. If
    `cost` is given, return only the gates of that cost."""
    return tuple(gate for gate in GATES if when in gate.when and cost in {None, gate.cost})


def missing(situation: Situation, gates: tuple[Gate, ...]) -> frozenset[Evidence]:
    """Return the kinds of facts that these gates need and that the agent has not tried to read in this round of its
    loop."""
    needed = frozenset().union(*(gate.needs(situation.policy) for gate in gates)) if gates else frozenset()
    return frozenset(evidence for evidence in needed if situation.seen.lacks(evidence))


def refusals(situation: Situation, gates: tuple[Gate, ...], when: When) -> tuple[Refusal, ...]:
    """Return the refusals of these gates, in order; empty if no gate refuses."""
    return tuple(refusal for gate in gates if (refusal := gate.ask(situation, when)) is not None)
