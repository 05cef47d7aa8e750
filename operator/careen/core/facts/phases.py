"""The phases of a node, the moves between them, and the evidence that each phase needs. `docs/phases.md` is generated
from the tables PHASES and MOVES; the decisions are in `steps/`."""

from __future__ import annotations

from enum import StrEnum

from scheduler_core.values import Value


class Phase(StrEnum):
    """The values are stored on Nodes: never rename one."""

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
    """One kind of fact, read only if the node's phase or a decision needs it. The comments give the cost of a read, and
    how consistent it has to be."""

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
    FORECAST = "forecast"  # on which node each pod would run: a child process and whole-cluster lists
    EVICTABILITY = "evictability"  # a dry-run eviction for each pod of the drain plan
    OWNERS = "owners"  # health of the controllers of this node's pods, or of those in the progress
    VOLUMES = "volumes"  # VolumeAttachments of this node: a list of the cluster's, only if the node had volumes


class PhaseRow(Value, kw_only=True):
    """What has happened to a node in the phase, what its agent reads in every turn, and how old its copy of the Node
    may be."""

    phase: Phase
    has_happened: str
    evidence: frozenset[Evidence]
    node_max_age_seconds: float


_HERE = frozenset({Evidence.NODE, Evidence.BOOT_ID, Evidence.NEED})

PHASES: tuple[PhaseRow, ...] = (
    PhaseRow(
        phase=Phase.IDLE,
        has_happened="The host needs no reboot; the node has no marks of careen.",
        evidence=_HERE,
        # an idle node makes one GET of itself in five minutes; a write from an old reading gets a conflict
        node_max_age_seconds=300,
    ),
    PhaseRow(
        phase=Phase.WAITING,
        has_happened="The node has the soft taint and careen's label, and its annotations list the gates that refuse.",
        evidence=_HERE | {Evidence.LOCK},
        # The agents of the first nodes in line read the lock every few seconds. They need not read their Nodes as
        # often: if a person has set a hold in the meantime, the patch that takes the claim fails with a conflict.
        node_max_age_seconds=30,
    ),
    PhaseRow(
        phase=Phase.CLAIMING,
        has_happened="The agent wrote a claim id on the Node; the lock may already have the claim.",
        evidence=_HERE | {Evidence.LOCK},
        node_max_age_seconds=0,
    ),
    PhaseRow(
        phase=Phase.DRAINING,
        has_happened="One patch recorded the node's state before the drain (cordon, labels, taint, boot id) and "
        "cordoned the node; evictions are under way.",
        evidence=_HERE | {Evidence.LOCK, Evidence.PODS},
        node_max_age_seconds=0,
    ),
    PhaseRow(
        phase=Phase.MAINTENANCE,
        has_happened="The node is drained and cordoned and keeps its claim, because a person asked for that, with or "
        "without need for a reboot.",
        evidence=_HERE | {Evidence.LOCK},
        # the phase lasts for hours, and after --end a person waits at most this long
        node_max_age_seconds=10,
    ),
    PhaseRow(
        phase=Phase.REBOOTING,
        has_happened="The agent recorded on the Node that the reboot is next, then asked the host to reboot.",
        evidence=_HERE | {Evidence.LOCK},
        node_max_age_seconds=0,
    ),
    PhaseRow(
        phase=Phase.VERIFYING,
        has_happened="The host has rebooted; the node is not yet back in service.",
        evidence=_HERE | {Evidence.LOCK, Evidence.PODS},
        node_max_age_seconds=0,
    ),
    PhaseRow(
        phase=Phase.SETTLING,
        has_happened="The node is back in service; workloads whose pods were evicted may still be unhealthy.",
        evidence=_HERE | {Evidence.LOCK, Evidence.OWNERS},
        node_max_age_seconds=0,
    ),
    PhaseRow(
        phase=Phase.FAILED,
        has_happened="The drain, reboot or check failed; annotations on the Node say why.",
        evidence=_HERE | {Evidence.LOCK},
        node_max_age_seconds=0,
    ),
)

ROW: dict[Phase, PhaseRow] = {row.phase: row for row in PHASES}

# Every allowed move with the reason for it. Staying is always allowed and not listed.
MOVES: dict[tuple[Phase, Phase], str] = {
    (Phase.IDLE, Phase.WAITING): "the host needs a reboot: one patch writes the taint, the label and the annotations",
    (Phase.WAITING, Phase.IDLE): "the host no longer needs a reboot, or an autoscaler removes the node: the agent "
    "removes careen's marks",
    (Phase.WAITING, Phase.CLAIMING): "the gates pass and this node is next in line: its agent writes a claim id on "
    "the Node",
    (
        Phase.CLAIMING,
        Phase.WAITING,
    ): "the lock has too many claims, a gate refuses on fresh data, or the host no longer needs a reboot: the agent "
    "removes the claim from the lock, then from the Node",
    (
        Phase.CLAIMING,
        Phase.DRAINING,
    ): "the lock has the claim and every gate passes on fresh data: one patch writes the record and cordons the node",
    (Phase.CLAIMING, Phase.FAILED): "the agent's loop failed several times in a row: the agent releases the claim and "
    "waits before it tries again",
    (
        Phase.DRAINING,
        Phase.REBOOTING,
    ): "the node is empty, or --force-reboot applies: the agent records that the reboot is next, then asks the host to "
    "reboot",
    (Phase.DRAINING, Phase.MAINTENANCE): "the node is empty, and a person asked to keep it down",
    (
        Phase.MAINTENANCE,
        Phase.SETTLING,
    ): "a person ended the maintenance or uncordoned the node, or the time of the maintenance is over: one patch "
    "restores cordon and taint",
    (Phase.MAINTENANCE, Phase.VERIFYING): "the maintenance ended, and a person had rebooted the host meanwhile",
    (
        Phase.MAINTENANCE,
        Phase.FAILED,
    ): "the maintenance ended, and the node is not Ready within --verify-timeout: the agent keeps the claim, so the "
    "roll-out halts",
    (
        Phase.DRAINING,
        Phase.WAITING,
    ): "a person puts a hold on the node or pauses the lock, an autoscaler removes the node, the maintenance window "
    "closes, or the host no longer needs a reboot: the agent undoes the drain, then releases the claim",
    (
        Phase.DRAINING,
        Phase.FAILED,
    ): "the drain took too long, a gate refused for too long after the drain, or the agent's loop failed several times "
    "in a row: the agent undoes the drain, releases the claim and waits before it tries again",
    (
        Phase.REBOOTING,
        Phase.WAITING,
    ): "before the agent asked the host to reboot, a person put a hold on the node, or the host no longer needed a "
    "reboot: the agent undoes the drain, then releases the claim",
    (
        Phase.REBOOTING,
        Phase.FAILED,
    ): "the reboot command failed, or a gate refused for too long before the agent asked the host (the agent undoes "
    "the drain and releases the claim), or the host did not reboot before the reboot deadline (the agent keeps the "
    "claim)",
    (
        Phase.VERIFYING,
        Phase.SETTLING,
    ): "the node is Ready with the new boot id, and its DaemonSet pods and static pods are as ready as before: one "
    "patch uncordons the node (a cordon from before the drain stays) and removes the taint",
    (
        Phase.VERIFYING,
        Phase.FAILED,
    ): "the node is not Ready within --verify-timeout, or it is in a reboot loop: the agent keeps the claim, so the "
    "roll-out halts",
    (
        Phase.SETTLING,
        Phase.IDLE,
    ): "the displaced workloads are as healthy as before, the boot is 30 seconds old and --lock-release-delay is over: "
    "the agent releases the claim",
    (
        Phase.SETTLING,
        Phase.WAITING,
    ): "the agent releases the claim, but the host asks for a reboot again: the reboots so far count towards "
    "--reboot-loop-limit",
    (
        Phase.SETTLING,
        Phase.FAILED,
    ): "the displaced workloads are not healthy in time, or the node is in a reboot loop: the agent keeps the claim, "
    "so the roll-out halts",
    (Phase.FAILED, Phase.IDLE): "the node holds no claim, and the host no longer needs a reboot",
    (Phase.FAILED, Phase.WAITING): "the back-off is over, or a person asked for a retry",
    (Phase.FAILED, Phase.VERIFYING): "the host rebooted after the failure, or a person asked careen to check the "
    "reboot again",
    (
        Phase.FAILED,
        Phase.SETTLING,
    ): "the displaced workloads became healthy after all, or the node became Ready after its maintenance",
    # The host runs a new boot while the node holds a claim; possible in every phase.
    (
        Phase.IDLE,
        Phase.REBOOTING,
    ): "somebody removed the agent's record from the Node before the reboot: the agent keeps the claim until the host "
    "has rebooted",
    (
        Phase.WAITING,
        Phase.REBOOTING,
    ): "somebody removed the agent's record from the Node before the reboot, and the node was waiting again: the "
    "agent keeps the claim until the host has rebooted",
    (
        Phase.IDLE,
        Phase.VERIFYING,
    ): "the lock has a claim of this node from before its last boot, and the Node has no record of the claim: the "
    "agent continues the claim",
    (Phase.WAITING, Phase.VERIFYING): "the host rebooted while the agent was releasing the claim",
    (Phase.CLAIMING, Phase.VERIFYING): "the host rebooted while the node held the claim",
    (Phase.DRAINING, Phase.VERIFYING): "the host rebooted while the node held the claim",
    (Phase.REBOOTING, Phase.VERIFYING): "the host has rebooted: it has another boot id",
    (Phase.SETTLING, Phase.VERIFYING): "the host rebooted again while the node held the claim",
}

WORKING = frozenset({Phase.DRAINING, Phase.MAINTENANCE, Phase.REBOOTING, Phase.VERIFYING})
"""The phases in which careen has taken the node out of service."""
UNDER_CLAIM = frozenset({Phase.CLAIMING, *WORKING, Phase.SETTLING})
"""The phases that a node may be in only with a claim that it does not release."""


def is_allowed(before: Phase, after: Phase) -> bool:
    """Whether MOVES has this move, or the phase stays the same."""
    return before == after or (before, after) in MOVES
