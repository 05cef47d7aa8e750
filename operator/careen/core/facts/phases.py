"""The phases of a node, the moves between them, and the evidence that each phase needs.

These tables list every change of phase; `docs/phases.md` is generated from them. The decisions of each phase are in
`steps/`."""

from __future__ import annotations

from enum import StrEnum

from scheduler_core.values import Value


class Phase(StrEnum):
    """A phase says what has already happened to the node, not what will. The values are stored on Nodes: never rename
    one."""

    IDLE = "Idle"
    WAITING = "Waiting"
    CLAIMING = "Claiming"
    DRAINING = "Draining"
    MAINTENANCE = "Maintenance"
    REBOOTING = "Rebooting"
    VERIFYING = "Verifying"
    SETTLING = "Settling"
    FAILED = "Failed"


class Evidence(StrEnum):
    """One kind of fact about the world. The shell asks for it only if the phase or the decision wants it.

    The comments give the cost of each, and how consistent it has to be.
    """

    NODE = "node"  # one GET of the own Node, consistent
    BOOT_ID = "boot-id"  # a file on the host
    NEED = "need"  # the sentinel: a file check, or a command
    SELF_TEST = (
        "self-test"  # objections to a reboot: the agent tests the host every few minutes and remembers the result
    )
    LOCK = "lock"  # one GET of the DaemonSet, consistent (no resourceVersion in the request)
    PEERS = "peers"  # Nodes labelled in-progress or failed, consistent list, read after the lock
    HOLDERS = "holders"  # the Nodes the lock names, each by a consistent GET made after the lock was read
    WAITERS = "waiters"  # Nodes labelled ready or required, one list; may be a little old
    CROWD = "crowd"  # how many Nodes are labelled ready or required, counted to a hundred: one short list
    FLEET = "fleet"  # all Nodes, with the instant at which the list was requested
    PODS = "pods"  # pods bound to this node
    BLOCKERS = "blockers"  # pods of the whole cluster that forbid reboots of this node: a list for each namespace
    DISRUPTIONS = "disruptions"  # how many evictions each disruption budget allows: one list
    ALERTS = "alerts"  # active alerts of the alert source
    QUERIES = "queries"  # the answers to the health queries
    READYZ = "readyz"  # the API server's own checks, etcd among them: one GET, for a control-plane node only
    FOREIGN = "foreign"  # another reboot coordinator's DaemonSets and live locks
    FORECAST = "forecast"  # where each pod would land: a child process and whole-cluster lists
    EVICTABILITY = "evictability"  # a dry-run eviction for each pod of the drain plan
    OWNERS = "owners"  # health of the controllers of this node's pods, or of those in the progress


class PhaseRow(Value, kw_only=True):
    """A row of the phase table: what has happened, the evidence of every turn, the greatest age of the Node."""

    phase: Phase
    has_happened: str
    evidence: frozenset[Evidence]
    node_max_age_seconds: float


_HERE = frozenset({Evidence.NODE, Evidence.BOOT_ID, Evidence.NEED})

PHASES: tuple[PhaseRow, ...] = (
    PhaseRow(
        phase=Phase.IDLE,
        has_happened="No need; nothing of ours is on the node.",
        evidence=_HERE,
        # an idle node makes one GET of itself in five minutes; a write from an old reading gets a conflict
        node_max_age_seconds=300,
    ),
    PhaseRow(
        phase=Phase.WAITING,
        has_happened="The node carries the soft taint, the label and the refusals.",
        evidence=_HERE | {Evidence.LOCK},
        # the next in line read the lock at least every 3 s; a hold that the agent has not seen makes the claim's patch
        # fail with a conflict
        node_max_age_seconds=30,
    ),
    PhaseRow(
        phase=Phase.CLAIMING,
        has_happened="A claim id stands on the Node, perhaps already in the lock.",
        evidence=_HERE | {Evidence.LOCK},
        node_max_age_seconds=0,
    ),
    PhaseRow(
        phase=Phase.DRAINING,
        has_happened="Prior cordon, labels, taint ownership and boot id are recorded and the node is "
        "cordoned, in one patch; evictions are under way.",
        evidence=_HERE | {Evidence.LOCK, Evidence.PODS},
        node_max_age_seconds=0,
    ),
    PhaseRow(
        phase=Phase.MAINTENANCE,
        has_happened="The node is drained and kept down under its claim, because a person asked for it; no reboot is "
        "wanted.",
        evidence=_HERE | {Evidence.LOCK},
        # the phase lasts for hours, and a person who hands the node back waits at most this long
        node_max_age_seconds=10,
    ),
    PhaseRow(
        phase=Phase.REBOOTING,
        has_happened="The reboot was announced on the node, then asked of the host.",
        evidence=_HERE | {Evidence.LOCK},
        node_max_age_seconds=0,
    ),
    PhaseRow(
        phase=Phase.VERIFYING,
        has_happened="The node runs a new boot; it has not yet been given back.",
        evidence=_HERE | {Evidence.LOCK, Evidence.PODS},
        node_max_age_seconds=0,
    ),
    PhaseRow(
        phase=Phase.SETTLING,
        has_happened="The node is back in service; the displaced workloads may not be.",
        evidence=_HERE | {Evidence.LOCK, Evidence.OWNERS},
        node_max_age_seconds=0,
    ),
    PhaseRow(
        phase=Phase.FAILED,
        has_happened="A reason code and what to do about it are on the node.",
        evidence=_HERE | {Evidence.LOCK},
        node_max_age_seconds=0,
    ),
)

ROW: dict[Phase, PhaseRow] = {row.phase: row for row in PHASES}

# Every allowed move with the reason for it. Staying is always allowed and not listed.
MOVES: dict[tuple[Phase, Phase], str] = {
    (Phase.IDLE, Phase.WAITING): "a need was seen: taint, label and refusals are written at once",
    (Phase.WAITING, Phase.IDLE): "the need is gone, or an autoscaler removes the node: everything of ours is removed",
    (Phase.WAITING, Phase.CLAIMING): "the gates pass and it is our turn: a claim id is written on the Node",
    (
        Phase.CLAIMING,
        Phase.WAITING,
    ): "a surplus of claims, a refusal on fresh data, or no need any more: the claim leaves the lock, then the Node",
    (
        Phase.CLAIMING,
        Phase.DRAINING,
    ): "the claim stands in the lock and every gate says yes on fresh data: recorded and cordoned in one patch",
    (Phase.CLAIMING, Phase.FAILED): "turn after turn of the agent broke: undone, the claim is given back, back-off",
    (
        Phase.DRAINING,
        Phase.REBOOTING,
    ): "the node is empty, or a force policy says go on: the reboot is announced, then asked",
    (Phase.DRAINING, Phase.MAINTENANCE): "the node is empty, and a person asked for it to be kept down",
    (
        Phase.MAINTENANCE,
        Phase.SETTLING,
    ): "handed back by a person, by its end or by an uncordon: cordon and taint are put back in one patch",
    (Phase.MAINTENANCE, Phase.VERIFYING): "handed back after somebody rebooted the machine",
    (
        Phase.MAINTENANCE,
        Phase.FAILED,
    ): "handed back, and not Ready within the deadline of --verify-timeout: the claim is kept, so the roll-out halts",
    (
        Phase.DRAINING,
        Phase.WAITING,
    ): "need gone, hold, pause, a person uncordoned, an autoscaler removes the node, or a late refusal: undone, then "
    "the claim is given back",
    (
        Phase.DRAINING,
        Phase.FAILED,
    ): "the drain took too long, or turn after turn of the agent broke: undone, the claim is given back, back-off",
    (
        Phase.REBOOTING,
        Phase.WAITING,
    ): "held or no longer needed before the host was asked: undone, then the claim is given back",
    (
        Phase.REBOOTING,
        Phase.FAILED,
    ): "the reboot command failed (undone, given back), or nothing happened within the deadline (claim kept)",
    (
        Phase.VERIFYING,
        Phase.SETTLING,
    ): "Ready with the new boot id, its own DaemonSet pods ready as before the drain: cordon restored and "
    "taint removed in one patch",
    (
        Phase.VERIFYING,
        Phase.FAILED,
    ): "not Ready within the deadline, or a reboot loop: the claim is kept, so the roll-out halts",
    (
        Phase.SETTLING,
        Phase.IDLE,
    ): "the displaced workloads are as well as before, the boot is 30 seconds old and the release delay is over: the "
    "claim is given back",
    (Phase.SETTLING, Phase.WAITING): "given back, but the host wants a reboot again: it counts as a repeat",
    (
        Phase.SETTLING,
        Phase.FAILED,
    ): "the displaced workloads did not come back in time, or a reboot loop: the claim is kept, so the roll-out halts",
    (Phase.FAILED, Phase.IDLE): "nothing is claimed and the need is gone",
    (Phase.FAILED, Phase.WAITING): "the back-off is over, or a person asked for a retry",
    (Phase.FAILED, Phase.VERIFYING): "a new boot id, or a person asked for a retry on the new boot",
    (
        Phase.FAILED,
        Phase.SETTLING,
    ): "the displaced workloads came back after all, or a node that was handed back became Ready",
    # A new boot id while a claim is held, whatever the phase.
    (
        Phase.IDLE,
        Phase.REBOOTING,
    ): "the record was removed after the reboot was announced: the claim is taken up until the boot",
    (Phase.WAITING, Phase.REBOOTING): "the same, found when the node waits already",
    (
        Phase.IDLE,
        Phase.VERIFYING,
    ): "the lock holds an entry of ours from another boot and the Node has no record: adopted",
    (Phase.WAITING, Phase.VERIFYING): "the host booted while the claim was being given back",
    (Phase.CLAIMING, Phase.VERIFYING): "the host booted while the claim was held",
    (Phase.DRAINING, Phase.VERIFYING): "the host booted while the claim was held",
    (Phase.REBOOTING, Phase.VERIFYING): "another boot id: the reboot happened",
    (Phase.SETTLING, Phase.VERIFYING): "the host booted again while the claim was held",
}

WORKING = frozenset({Phase.DRAINING, Phase.MAINTENANCE, Phase.REBOOTING, Phase.VERIFYING})
"""Phases in which careen has taken the node down."""


def is_allowed(before: Phase, after: Phase) -> bool:
    """Whether the table lists the move, or nothing moves."""
    return before == after or (before, after) in MOVES
