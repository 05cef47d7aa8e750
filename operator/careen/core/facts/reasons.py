"""Every reason code that people see in events, logs, metrics, annotations and commands, with its meaning and remedy.

`docs/reasons.md` is generated from here. The text here explains the code in general; the sentence of a decision names
the pods and nodes."""

from __future__ import annotations

from enum import StrEnum

from scheduler_core.values import Value


class Code(StrEnum):
    """A reason's name. The values are stored in annotations and metrics: never rename one."""

    # Where the node is on its way.
    NO_NEED = "no-need"
    TAINT_SPREAD = "taint-spread"
    NEED_SEEN = "need-seen"
    NEED_GONE = "need-gone"
    HOME = "home"
    REFUSED = "refused"
    WAITING_FOR_TURN = "waiting-for-turn"
    TAKING_CLAIM = "taking-claim"
    GIVING_BACK = "giving-back"
    DRAIN_STARTED = "drain-started"
    DRAINING = "draining"
    DRAINED = "drained"
    MAINTENANCE = "maintenance"
    HANDED_BACK = "handed-back"
    REBOOT_ANNOUNCED = "reboot-announced"
    REBOOT_ASKED = "reboot-asked"
    REBOOTED = "rebooted"
    VERIFYING = "verifying"
    GIVEN_BACK = "given-back"
    SETTLING = "settling"
    RELEASED = "released"
    RETRY = "retry"

    # Gates' refusals.
    HELD = "held"
    PAUSED = "paused"
    HALTED = "halted"
    FOREIGN_COORDINATOR = "foreign-coordinator"
    NEED_UNKNOWN = "need-unknown"
    PACKAGE_MANAGER = "package-manager"
    BEING_REMOVED = "being-removed"
    CLOCK_SKEW = "clock-skew"
    REBOOT_IMPOSSIBLE = "reboot-impossible"
    SETTINGS_UNUSABLE = "settings-unusable"
    LOOP_LIMIT = "loop-limit"
    GATE_ANNOTATION = "gate-annotation"
    OUTSIDE_WINDOW = "outside-window"
    NO_WINDOW = "no-window"
    MINIMUM_INTERVAL = "minimum-interval"
    CLUSTER_INTERVAL = "cluster-interval"
    CORDONED = "cordoned"
    LIMIT_REACHED = "limit-reached"
    NODES_DOWN = "nodes-down"
    BUDGET_SPENT = "budget-spent"
    ZONE_AT_WORK = "zone-at-work"
    QUORUM = "quorum"
    BLOCKING_POD = "blocking-pod"
    BOUND_POD = "bound-pod"
    ALERT = "alert"
    ALERTS_UNKNOWN = "alerts-unknown"
    CONTROL_PLANE_NOT_READY = "control-plane-not-ready"
    READYZ_UNKNOWN = "readyz-unknown"
    HEALTH_QUERY = "health-query"
    HEALTH_UNKNOWN = "health-unknown"
    FORECAST_REFUSES = "forecast-refuses"
    FORECAST_UNKNOWN = "forecast-unknown"
    EVICTION_REFUSED = "eviction-refused"
    EVICTIONS_UNKNOWN = "evictions-unknown"
    SURPLUS = "surplus"

    # Unknown facts that stop a step.
    NODE_UNKNOWN = "node-unknown"
    NODE_GONE = "node-gone"
    BOOT_ID_UNKNOWN = "boot-id-unknown"
    LOCK_UNKNOWN = "lock-unknown"
    LOCK_GARBAGE = "lock-garbage"
    FLEET_UNKNOWN = "fleet-unknown"
    PODS_UNKNOWN = "pods-unknown"
    OWNERS_UNKNOWN = "owners-unknown"
    PROGRESS_UNREADABLE = "progress-unreadable"

    # Things found and mended.
    ENTRY_PUT_BACK = "entry-put-back"
    ENTRY_ADOPTED = "entry-adopted"
    ENTRY_RELEASED = "entry-released"
    GHOST_FREED = "ghost-freed"
    HOLDER_OVERDUE = "holder-overdue"
    CORDON_LIFTED = "cordon-lifted"
    UNCORDONED_BY_HAND = "uncordoned-by-hand"
    UNLOCKED_BY_HAND = "unlocked-by-hand"
    FORCED = "forced"
    LATE_REFUSAL = "late-refusal"

    # Failures.
    DRAIN_TIMEOUT = "drain-timeout"
    REBOOT_COMMAND_FAILED = "reboot-command-failed"
    REBOOT_NOT_HAPPENED = "reboot-not-happened"
    NEVER_READY = "never-ready"
    SETTLE_TIMEOUT = "settle-timeout"
    REBOOT_LOOP = "reboot-loop"
    TURN_BROKEN = "turn-broken"


class ReasonText(Value):
    """The meaning of a code, what a person can do about it, and whether its Event is a warning."""

    meaning: str
    remedy: str
    is_warning: bool = False


_ITSELF = "Nothing to do: it goes on by itself."

REASONS: dict[Code, ReasonText] = {
    Code.NO_NEED: ReasonText("The host does not ask for a reboot.", "Nothing to do."),
    Code.TAINT_SPREAD: ReasonText(
        "The host asks for a reboot; in a fleet of more than 500 nodes the taints are spread over a minute.", _ITSELF
    ),
    Code.NEED_SEEN: ReasonText("The host asks for a reboot; the node is tainted softly and waits.", _ITSELF),
    Code.NEED_GONE: ReasonText("The host no longer asks for a reboot; what careen had set is being removed.", _ITSELF),
    Code.HOME: ReasonText("Nothing of careen is left on the node.", "Nothing to do."),
    Code.REFUSED: ReasonText(
        "At least one gate refuses; each refusal is listed with its own remedy.", "See the refusals: `careen why NODE`."
    ),
    Code.WAITING_FOR_TURN: ReasonText(
        "The gates pass; other nodes come first, the lock is full, or others get a few seconds to ask as well "
        "before the first goes.",
        "Nothing to do, or raise --concurrency.",
    ),
    Code.TAKING_CLAIM: ReasonText(
        "It is the node's turn: it takes a claim in the lock and asks everything once more.", _ITSELF
    ),
    Code.GIVING_BACK: ReasonText("Everything is undone; the claim is being taken out of the lock.", _ITSELF),
    Code.DRAIN_STARTED: ReasonText("The node holds a claim, is cordoned, and its pods are being evicted.", _ITSELF),
    Code.DRAINING: ReasonText("Pods are still leaving the node.", "Look at the pods the sentence names, if it lasts."),
    Code.DRAINED: ReasonText("The node is empty; the gates are asked a last time.", _ITSELF),
    Code.REBOOT_ANNOUNCED: ReasonText(
        "The reboot is written on the node; the claim is confirmed and the host is asked.", _ITSELF
    ),
    Code.MAINTENANCE: ReasonText(
        "A person keeps the node down: it is drained, cordoned, and holds its claim.",
        "`careen maintenance NODE --end` or `careen drain NODE --end`, or remove the annotation careen.dev/request; or "
        "the end that was given.",
    ),
    Code.HANDED_BACK: ReasonText("A person or the end of the request gave the node back to service.", _ITSELF),
    Code.REBOOT_ASKED: ReasonText("The host was asked to reboot and has not come back yet.", _ITSELF),
    Code.REBOOTED: ReasonText("The node runs a new boot.", _ITSELF),
    Code.VERIFYING: ReasonText(
        "The new boot is not proven well yet: the node or its own DaemonSet pods are not ready.",
        "Look at the kubelet and the DaemonSet pods that the sentence names.",
    ),
    Code.GIVEN_BACK: ReasonText("The node is proven well and in service again.", _ITSELF),
    Code.SETTLING: ReasonText(
        "The node is back; displaced workloads are not yet as healthy as before, or the release delay runs.",
        "Look at the workloads that the sentence names, if it lasts.",
    ),
    Code.RELEASED: ReasonText("The claim is given back; the next node may go.", "Nothing to do."),
    Code.RETRY: ReasonText("A person asked for another try.", _ITSELF),
    Code.HELD: ReasonText(
        "A person holds this node.",
        "`careen unhold NODE`, or remove the annotation careen.dev/hold, or wait for its `until`.",
    ),
    Code.PAUSED: ReasonText("The lock is held by hand (`manual`): no node may start.", "`careen lock resume`."),
    Code.HALTED: ReasonText(
        "Another node failed and keeps its claim, so the roll-out halts: the next node would only do the same.",
        "`careen why` the node that the sentence names, mend it and `careen retry` it; or give its claim up "
        "with `careen lock release`.",
    ),
    Code.FOREIGN_COORDINATOR: ReasonText(
        "Another reboot coordinator works in this cluster; two would not see each other's claims.",
        "Remove the other one's DaemonSet, or this one's.",
        is_warning=True,
    ),
    Code.NEED_UNKNOWN: ReasonText(
        "The agent cannot tell whether the host asks for a reboot.",
        "Make the sentinel's path or command readable for the agent.",
        is_warning=True,
    ),
    Code.PACKAGE_MANAGER: ReasonText("A package manager is at work on the host.", "Wait until it is done."),
    Code.BEING_REMOVED: ReasonText(
        "The cluster autoscaler or Karpenter is removing the node: it is left alone, and waits for nothing.",
        "Nothing to do: should the taint of the autoscaler go, the node waits for its reboot again.",
    ),
    Code.CLOCK_SKEW: ReasonText(
        "The host's clock is far off the API server's.",
        "Mend the clock of the host or of the API server.",
        is_warning=True,
    ),
    Code.REBOOT_IMPOSSIBLE: ReasonText(
        "The agent's self-test shows that the host could not be rebooted.",
        "Mend what the sentence names: --reboot-command, --reboot-signal, or the agent's rights on the host. "
        "It is tried again within ten minutes, "
        "and at once by an agent that is started anew.",
        is_warning=True,
    ),
    Code.SETTINGS_UNUSABLE: ReasonText(
        "The agent could not use its settings when it started; it finishes its claim with older ones and "
        "begins no new one.",
        "Mend the ConfigMap or the flags that the sentence names; if none is meant any more, start the agent anew.",
        is_warning=True,
    ),
    Code.LOOP_LIMIT: ReasonText(
        "The host still asks for a reboot after as many reboots as allowed.",
        "Find out what keeps asking, then `careen retry NODE`.",
        is_warning=True,
    ),
    Code.GATE_ANNOTATION: ReasonText(
        "Another program keeps the node, or the cluster, from rebooting with an annotation careen.dev/gate.NAME.",
        "It goes on when the annotations are gone. One that was left behind: `kubectl annotate node NODE "
        "careen.dev/gate.NAME-`, or the same on the lock's DaemonSet.",
    ),
    Code.OUTSIDE_WINDOW: ReasonText(
        "Now is outside the maintenance windows of this node.",
        "Wait, change --reboot-days, --start-time, --end-time or --windows, or set careen.dev/reboot-now.",
    ),
    Code.NO_WINDOW: ReasonText(
        "--windows has windows for other nodes, and none that selects this one: it will not reboot.",
        "Add a window to --windows whose `nodes` select NODE, or one without `nodes`; or set careen.dev/reboot-now.",
        is_warning=True,
    ),
    Code.MINIMUM_INTERVAL: ReasonText(
        "The last reboot of this node is too recent.", "Wait, or set careen.dev/reboot-now."
    ),
    Code.CLUSTER_INTERVAL: ReasonText(
        "Another node of the cluster reboots, or has rebooted too recently.",
        "Wait, change --cluster-minimum-interval, or set careen.dev/reboot-now.",
    ),
    Code.CORDONED: ReasonText(
        "Somebody else cordoned this node, and --reboot-cordoned=false leaves such nodes alone.",
        "`kubectl uncordon NODE`, or set careen.dev/reboot-now, or --reboot-cordoned=true.",
    ),
    Code.LIMIT_REACHED: ReasonText("As many nodes hold a claim as the limit allows.", "Wait, or raise --concurrency."),
    Code.NODES_DOWN: ReasonText(
        "Nodes are down for other reasons; with one more the limit would be exceeded.",
        "Bring the named nodes back (`kubectl uncordon` those that somebody cordoned), raise --concurrency, "
        "or set --count-cordoned=false.",
    ),
    Code.BUDGET_SPENT: ReasonText(
        "A budget for a group of nodes is used up.", "Wait, bring the named nodes back, or change the budget."
    ),
    Code.ZONE_AT_WORK: ReasonText(
        "Nodes of another zone are at work, and --order=zone finishes a zone before it begins the next.",
        "Wait until the named nodes are done, or choose another --order.",
    ),
    Code.QUORUM: ReasonText(
        "Without this node the control plane would lose its quorum.",
        "Bring the named control-plane nodes back.",
        is_warning=True,
    ),
    Code.BLOCKING_POD: ReasonText(
        "A pod that forbids interruption runs here, or, with a wider scope in --blocking-pods, on another node.",
        "Wait until the named pod is done, or change --blocking-pod-selector or --blocking-pods.",
    ),
    Code.BOUND_POD: ReasonText(
        "A pod's owner names this node in its template (spec.nodeName): whenever the pod is evicted it comes "
        "back here.",
        "Take spec.nodeName out of the template that the sentence names (a node affinity lets the pod wait), "
        "or leave such pods on the node with --pods-bound-to-node=stay.",
    ),
    Code.ALERT: ReasonText(
        "An alert is active.", "Resolve the named alert, or leave it out with --alert-filter-regexp."
    ),
    Code.ALERTS_UNKNOWN: ReasonText(
        "The alert source gave no usable answer.",
        "Make the alert source answer; unknown never means yes.",
        is_warning=True,
    ),
    Code.CONTROL_PLANE_NOT_READY: ReasonText(
        "The API server says that it is not ready, or that its etcd is not: no control-plane node goes down.",
        "Look at the checks that the sentence names: `kubectl get --raw '/readyz?verbose'`.",
        is_warning=True,
    ),
    Code.READYZ_UNKNOWN: ReasonText(
        "The agent cannot tell whether the API server and etcd are ready: no control-plane node goes down.",
        "Ask the same: `kubectl get --raw '/readyz?verbose'`. Every account may, through the ClusterRole "
        "system:public-info-viewer.",
    ),
    Code.HEALTH_QUERY: ReasonText(
        "A condition of --health-queries does not hold.", "Look at what the query measures, or change its condition."
    ),
    Code.HEALTH_UNKNOWN: ReasonText(
        "A health query has no usable answer: an error, no sample, or one that is too old.",
        "Ask Prometheus the same query; look at its targets, at --prometheus-url, and at the query's `fresh` and "
        "`labels`.",
    ),
    Code.FORECAST_REFUSES: ReasonText(
        "Pods would not find room, or can never be evicted.",
        "Add capacity, edit the named budget, or let it go with --forecast-pending-allowed or --forecast=warn. "
        "`careen forecast NODE --with-nodes NODE=1` says how many more nodes would help.",
    ),
    Code.FORECAST_UNKNOWN: ReasonText(
        "The forecast could not be made.", "See the sentence; --forecast=warn goes on without it.", is_warning=True
    ),
    Code.EVICTION_REFUSED: ReasonText(
        "A dry-run eviction was refused, so nothing was moved.",
        "Edit the named budget or webhook, or wait until the workload is healthy.",
    ),
    Code.EVICTIONS_UNKNOWN: ReasonText(
        "The evictions could not be tried, so nothing was moved.",
        "Look at the API server and the agent's rights.",
        is_warning=True,
    ),
    Code.SURPLUS: ReasonText(
        "Other nodes work under claims that this lock does not show.", "Wait until they are done.", is_warning=True
    ),
    Code.NODE_UNKNOWN: ReasonText(
        "The agent cannot read its own Node.", "Look at the API server and the agent's rights.", is_warning=True
    ),
    Code.NODE_GONE: ReasonText(
        "The agent's Node does not exist.",
        "Nothing, if it was deleted on purpose; else let the kubelet register it.",
        is_warning=True,
    ),
    Code.BOOT_ID_UNKNOWN: ReasonText(
        "The agent cannot read the host's boot id.", "Make --boot-id-file readable for the agent.", is_warning=True
    ),
    Code.LOCK_UNKNOWN: ReasonText(
        "The lock cannot be read.",
        "Look at the DaemonSet named by --ds-namespace and --ds-name and the agent's rights.",
        is_warning=True,
    ),
    Code.LOCK_GARBAGE: ReasonText(
        "The lock's content cannot be understood; no node may start.",
        "`careen lock show`, then mend or clear the annotation.",
        is_warning=True,
    ),
    Code.FLEET_UNKNOWN: ReasonText(
        "The agent cannot tell which nodes are down.", "Look at the API server and the agent's rights.", is_warning=True
    ),
    Code.PODS_UNKNOWN: ReasonText(
        "The pods of this node cannot be listed.", "Look at the API server and the agent's rights.", is_warning=True
    ),
    Code.OWNERS_UNKNOWN: ReasonText(
        "The health of the displaced workloads cannot be read.",
        "Look at the API server and the agent's rights.",
        is_warning=True,
    ),
    Code.PROGRESS_UNREADABLE: ReasonText(
        "The record on the Node cannot be understood, perhaps written by a newer release.",
        "Run the newer release again, or, once the node is seen to be in service, `kubectl annotate node NODE "
        "careen.dev/progress-`: careen then puts back what it can prove to be its own.",
        is_warning=True,
    ),
    Code.ENTRY_PUT_BACK: ReasonText(
        "The working node's claim was missing from the lock and was put back.",
        "If somebody unlocked by hand: a working node keeps its claim. `careen hold NODE` stops it.",
        is_warning=True,
    ),
    Code.ENTRY_ADOPTED: ReasonText(
        "The lock held a claim of this node without a record on the Node; the node took it up.",
        _ITSELF,
        is_warning=True,
    ),
    Code.ENTRY_RELEASED: ReasonText(
        "The lock held a claim of this node, but the Node shows no work under it; the claim was removed.",
        "Nothing to do.",
    ),
    Code.GHOST_FREED: ReasonText(
        "A claim was proven to have no holder and was removed from the lock.", "Nothing to do."
    ),
    Code.HOLDER_OVERDUE: ReasonText(
        "A node holds its claim for longer than its phase usually takes; the others wait for it.",
        "Look at the host that the sentence names, and at its agent; `careen lock show` has its phase. If its "
        "agent runs, it fails and says so once its own deadline is over.",
        is_warning=True,
    ),
    Code.CORDON_LIFTED: ReasonText(
        "The node carried a cordon that careen had set, without a claim or a record of one; it was removed.",
        "Nothing to do. `careen hold NODE` keeps a node from rebooting.",
        is_warning=True,
    ),
    Code.UNCORDONED_BY_HAND: ReasonText(
        "Somebody uncordoned the node during the drain; it stays in service.",
        "It is tried again after a pause: hold the node if it must not reboot.",
        is_warning=True,
    ),
    Code.UNLOCKED_BY_HAND: ReasonText(
        "Somebody took the failed node's claim out of the lock; the roll-out goes on without it.",
        "`careen retry NODE` when the cause is mended.",
    ),
    Code.FORCED: ReasonText(
        "The drain did not finish, and --force-reboot lets the node reboot undrained.",
        "Switch --force-reboot off if that is not wanted.",
        is_warning=True,
    ),
    Code.LATE_REFUSAL: ReasonText(
        "A gate refuses although the node is drained; --late-policy decides.",
        "See the refusals: `careen why NODE`.",
        is_warning=True,
    ),
    Code.DRAIN_TIMEOUT: ReasonText(
        "The drain took longer than --drain-timeout; everything is undone.",
        "Look at the pods that the sentence names. It is tried again after a pause, or at once with `careen "
        "retry NODE`.",
        is_warning=True,
    ),
    Code.REBOOT_COMMAND_FAILED: ReasonText(
        "The host refused to reboot; everything is undone.",
        "Mend --reboot-command or the agent's rights on the host, then `careen retry NODE`.",
        is_warning=True,
    ),
    Code.REBOOT_NOT_HAPPENED: ReasonText(
        "The host was asked to reboot and runs the same boot after the deadline; the roll-out halts.",
        "Look at the host; `careen retry NODE` tries again.",
        is_warning=True,
    ),
    Code.NEVER_READY: ReasonText(
        "The node rebooted or was handed back, but did not become ready in time; the roll-out halts.",
        "Look at the kubelet and the DaemonSet pods, then `careen retry NODE`.",
        is_warning=True,
    ),
    Code.SETTLE_TIMEOUT: ReasonText(
        "Displaced workloads are not as healthy as before; the roll-out halts.",
        "Bring the named workloads back, or `careen retry NODE` to look again.",
        is_warning=True,
    ),
    Code.REBOOT_LOOP: ReasonText(
        "The host asks for a reboot again right after a confirmed one; the roll-out halts.",
        "Find out what keeps asking, then `careen retry NODE`.",
        is_warning=True,
    ),
    Code.TURN_BROKEN: ReasonText(
        "The agent's turns broke, which is a bug of careen; what had begun is undone and the claim is given back.",
        "Report what the agent's log says under `a turn broke`. It is tried again after a pause, or at once "
        "with `careen retry NODE`.",
        is_warning=True,
    ),
}

assert set(REASONS) == set(Code)


def event_reason(code: Code) -> str:
    """The code as an Event's reason: drain-timeout → DrainTimeout."""
    return "".join(part.capitalize() for part in code.value.split("-"))
