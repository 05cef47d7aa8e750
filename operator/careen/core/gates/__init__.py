"""The ordered list of gates: cheap and certain ones first, the expensive forecast and dry run last. A new gate is a
file in this folder and a line in this list."""

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
    lost_pods,
    maintenance_window,
    minimum_interval,
    protected_pods,
    reboot_way,
    settings,
    stuck_pods,
    undone_drains,
    writes,
)
from careen.core.gates.question import Cost, Gate, When
from careen.core.situation import Situation

GATES: tuple[Gate, ...] = (
    hold.hold,  # a person's word comes first
    halt.halt,  # needs only the lock
    host_state.host_state,  # without a known need the others have no question
    settings.settings,  # needs only the agent's own settings
    writes.writes,  # needs only what this process wrote before
    reboot_way.reboot_way,  # a small command on the host, at most once every few minutes
    loop_limit.loop_limit,  # a need that survives reboots will survive the next one too
    gate_annotations.gate_annotations,  # needs only the Node and the lock's DaemonSet
    maintenance_window.maintenance_window,  # needs only the Node and the clock
    minimum_interval.minimum_interval,  # needs only the Node and the clock
    foreign_cordon.foreign_cordon,  # needs only the Node and the clock
    blocking_pods.blocking_pods,  # one list of this node's pods, if selectors are configured
    cluster_interval.cluster_interval,  # needs only the Node, the lock and the clock
    foreign_coordinator.foreign_coordinator,  # one or two reads
    blocking_pods_elsewhere.blocking_pods_elsewhere,  # a list for each configured entry, picked by labels
    undone_drains.undone_drains,  # needs only the Node, and a node that it refuses need not ask the rest
    protected_pods.protected_pods,  # the same list of this node's pods as the next gate
    bound_pods.bound_pods,  # one list of this node's pods, and the owners of those that no scheduler placed
    stuck_pods.stuck_pods,  # the same list of pods
    budgets.budgets,  # one list of all nodes
    control_plane.control_plane,  # one read, and only by a control-plane node
    alerts.alerts,  # another server, which may be slow
    health_queries.health_queries,  # the same server, a few questions
    lost_pods.lost_pods,  # the same forecast as the next gate, if an entry of --blocking-pods asks for it
    drain_forecast.drain_forecast,  # a child process and lists of the whole cluster
    dry_run.dry_run,  # one request per pod, and only once the claim is held
)
COSTLY = frozenset(gate.name for gate in GATES if gate.cost is Cost.COSTLY)


def asked(when: When, cost: Cost | None = None) -> tuple[Gate, ...]:
    """The gates to ask at this point; only those of this cost, if given."""
    return tuple(gate for gate in GATES if when in gate.when and cost in {None, gate.cost})


def missing(situation: Situation, gates: tuple[Gate, ...]) -> frozenset[Evidence]:
    """The evidence that these gates need and this turn has not tried to read."""
    needed = frozenset().union(*(gate.needs(situation.policy) for gate in gates)) if gates else frozenset()
    return frozenset(evidence for evidence in needed if situation.seen.lacks(evidence))


def refusals(situation: Situation, gates: tuple[Gate, ...], when: When) -> tuple[Refusal, ...]:
    """The refusals of these gates, in order."""
    return tuple(refusal for gate in gates if (refusal := gate.ask(situation, when)) is not None)
