"""Every reason code that people see in events, logs, metrics, annotations and commands, with its meaning and remedy.

`docs/reasons.md` is generated from these texts. The texts explain a code in general; the sentence of an agent's
decision names the pods and nodes concerned."""

from __future__ import annotations

from enum import StrEnum

from scheduler_core.values import Value


class Code(StrEnum):
    """The code of a reason. The values are stored in annotations and metrics: never rename one."""

    # How far a node is on the way to its reboot and back into service.
    NO_NEED = "no-need"
    TAINT_SPREAD = "taint-spread"
    NEED_SEEN = "need-seen"
    NEED_GONE = "need-gone"
    HOME = "home"
    REFUSED = "refused"
    WAITING_FOR_TURN = "waiting-for-turn"
    TAKING_CLAIM = "taking-claim"
    RELEASING = "giving-back"
    DRAIN_STARTED = "drain-started"
    DRAINING = "draining"
    DRAINED = "drained"
    MAINTENANCE = "maintenance"
    MAINTENANCE_ENDED = "handed-back"
    REBOOT_ANNOUNCED = "reboot-announced"
    REBOOT_ASKED = "reboot-asked"
    REBOOTED = "rebooted"
    VERIFYING = "verifying"
    BACK_IN_SERVICE = "given-back"
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


_ITSELF = "Nothing to do: careen continues by itself."

REASONS: dict[Code, ReasonText] = {
    Code.NO_NEED: ReasonText("The host does not ask for a reboot.", "Nothing to do."),
    Code.TAINT_SPREAD: ReasonText(
        "The host asks for a reboot; with more than 500 nodes, the agents spread their taints over a minute.", _ITSELF
    ),
    Code.NEED_SEEN: ReasonText("The host asks for a reboot; the node has the soft taint and waits.", _ITSELF),
    Code.NEED_GONE: ReasonText(
        "The host no longer asks for a reboot; the agent removes careen's marks from the node.", _ITSELF
    ),
    Code.HOME: ReasonText("No mark of careen is left on the node.", "Nothing to do."),
    Code.REFUSED: ReasonText(
        "At least one gate refuses the reboot.", "`careen why NODE` lists each refusal with its own remedy."
    ),
    Code.WAITING_FOR_TURN: ReasonText(
        "The gates pass, but other nodes come first, the lock is full, or the first node of a roll-out waits a few "
        "seconds for other nodes to become ready.",
        "Nothing to do, or raise --concurrency.",
    ),
    Code.TAKING_CLAIM: ReasonText(
        "The node is next in line: it takes a claim in the lock and asks all gates again.", _ITSELF
    ),
    Code.RELEASING: ReasonText("The agent removes the claim of this node from the lock.", _ITSELF),
    Code.DRAIN_STARTED: ReasonText("The node holds a claim, is cordoned, and its pods are being evicted.", _ITSELF),
    Code.DRAINING: ReasonText(
        "Pods are still leaving the node.", "If this lasts, look at the pods that the message names."
    ),
    Code.DRAINED: ReasonText("The node is empty; the agent asks the gates a last time.", _ITSELF),
    Code.REBOOT_ANNOUNCED: ReasonText(
        "The agent recorded that the reboot is next; it confirms its claim and asks the host to reboot.", _ITSELF
    ),
    Code.MAINTENANCE: ReasonText(
        "A person keeps the node down: the node is drained and cordoned, and keeps its claim.",
        "Run `careen maintenance NODE --end` or `careen drain NODE --end`, remove the annotation careen.dev/request, "
        "or wait until the request expires.",
    ),
    Code.MAINTENANCE_ENDED: ReasonText(
        "The node is back in service: a person ended the maintenance, or its time is over.", _ITSELF
    ),
    Code.REBOOT_ASKED: ReasonText("The host was asked to reboot and is not back yet.", _ITSELF),
    Code.REBOOTED: ReasonText("The host has rebooted: it has a new boot id.", _ITSELF),
    Code.VERIFYING: ReasonText(
        "The host has rebooted, but the node or its own DaemonSet pods are not ready yet.",
        "Look at the kubelet and the DaemonSet pods that the message names.",
    ),
    Code.BACK_IN_SERVICE: ReasonText("The node is in service again: it and its own DaemonSet pods are ready.", _ITSELF),
    Code.SETTLING: ReasonText(
        "The node is back; workloads are less healthy than before the drain, or --lock-release-delay is not over.",
        "If this lasts, look at the workloads that the message names.",
    ),
    Code.RELEASED: ReasonText("The agent released the claim; the next node may take a claim.", "Nothing to do."),
    Code.RETRY: ReasonText("A person asked for a retry.", _ITSELF),
    Code.HELD: ReasonText(
        "A person keeps this node from rebooting.",
        "Run `careen unhold NODE`, or remove the annotation careen.dev/hold, or wait until its `until` has passed.",
    ),
    Code.PAUSED: ReasonText("A person paused the lock: no reboot may start.", "Run `careen lock resume`."),
    Code.HALTED: ReasonText(
        "Another node failed and keeps its claim, so the roll-out halts: the next node would probably fail too.",
        "Run `careen why` for the node that the message names, repair that node, then run `careen retry` for it; or "
        "release its claim with `careen lock release`.",
    ),
    Code.FOREIGN_COORDINATOR: ReasonText(
        "Another reboot coordinator works in this cluster; it and careen do not see each other's claims.",
        "Remove the DaemonSet of that coordinator, or careen's.",
        is_warning=True,
    ),
    Code.NEED_UNKNOWN: ReasonText(
        "The agent cannot tell whether the host asks for a reboot.",
        "Make the sentinel's path or command readable for the agent.",
        is_warning=True,
    ),
    Code.PACKAGE_MANAGER: ReasonText("A package manager works on the host.", "Wait until the package manager is done."),
    Code.BEING_REMOVED: ReasonText(
        "The cluster autoscaler or Karpenter is removing the node, so careen leaves the node alone.",
        "Nothing to do. If the autoscaler removes its taint, the node waits for its reboot again.",
    ),
    Code.CLOCK_SKEW: ReasonText(
        "The host's clock differs too much from the API server's.",
        "Correct the clock of the host or of the API server.",
        is_warning=True,
    ),
    Code.REBOOT_IMPOSSIBLE: ReasonText(
        "The agent's self-test shows that the host could not be rebooted.",
        "Correct what the message names: --reboot-command, --reboot-signal, or the agent's rights on the host. The "
        "agent tests again within ten minutes, and at once after a restart.",
        is_warning=True,
    ),
    Code.SETTINGS_UNUSABLE: ReasonText(
        "The agent could not use its settings when it started; it finishes its claim with the older settings and "
        "takes no new claim.",
        "Correct the ConfigMap or the flags that the message names. If the ConfigMap was removed on purpose, "
        "restart the agent.",
        is_warning=True,
    ),
    Code.LOOP_LIMIT: ReasonText(
        "The host still asks for a reboot after as many reboots as the settings allow.",
        "Find out why the host still asks for a reboot, then run `careen retry NODE`.",
        is_warning=True,
    ),
    Code.GATE_ANNOTATION: ReasonText(
        "An annotation careen.dev/gate.NAME of another program keeps the node, or the whole cluster, from rebooting.",
        "careen continues when the annotations are gone. To remove a leftover annotation, run `kubectl annotate node "
        "NODE careen.dev/gate.NAME-`, or do the same on the lock's DaemonSet.",
    ),
    Code.OUTSIDE_WINDOW: ReasonText(
        "No maintenance window of this node is open.",
        "Wait until a window opens, change the windows (--reboot-days, --start-time, --end-time, --windows), or "
        "annotate the Node with careen.dev/reboot-now.",
    ),
    Code.NO_WINDOW: ReasonText(
        "--windows has windows for other nodes, but no window selects this node, so the node will not reboot.",
        "Add a window for NODE or for all nodes to --windows, or annotate the Node with careen.dev/reboot-now.",
        is_warning=True,
    ),
    Code.MINIMUM_INTERVAL: ReasonText(
        "The last reboot of this node is too recent.", "Wait, or annotate the Node with careen.dev/reboot-now."
    ),
    Code.CLUSTER_INTERVAL: ReasonText(
        "Another node of the cluster is rebooting, or has rebooted too recently.",
        "Wait, change --cluster-minimum-interval, or annotate the Node with careen.dev/reboot-now.",
    ),
    Code.CORDONED: ReasonText(
        "A person or another program cordoned this node, and --reboot-cordoned=false leaves such nodes alone.",
        "Run `kubectl uncordon NODE`, annotate the Node with careen.dev/reboot-now, or set --reboot-cordoned=true.",
    ),
    Code.LIMIT_REACHED: ReasonText("As many nodes hold a claim as the limit allows.", "Wait, or raise --concurrency."),
    Code.NODES_DOWN: ReasonText(
        "Other nodes are down; with this node the limit would be exceeded.",
        "Bring the named nodes back (`kubectl uncordon` the cordoned ones), raise --concurrency, "
        "or set --count-cordoned=false.",
    ),
    Code.BUDGET_SPENT: ReasonText(
        "A budget for a group of nodes is used up.", "Wait, bring the named nodes back, or change the budget."
    ),
    Code.ZONE_AT_WORK: ReasonText(
        "Nodes of another zone are rebooting, and --order=zone finishes a zone before it begins the next.",
        "Wait until the named nodes are done, or choose another --order.",
    ),
    Code.QUORUM: ReasonText(
        "Without this node the control plane would lose its quorum.",
        "Bring the other control-plane nodes that are down back into service.",
        is_warning=True,
    ),
    Code.BLOCKING_POD: ReasonText(
        "A pod on this node, or a pod on another node that --blocking-pods selects, forbids the reboot of this node.",
        "Wait until the named pod is done, or change --blocking-pod-selector or --blocking-pods.",
    ),
    Code.BOUND_POD: ReasonText(
        "A pod's owner names this node in its template (spec.nodeName), so the pod comes back after each eviction.",
        "Remove spec.nodeName from the template that the message names, or leave such pods on the node with "
        "--pods-bound-to-node=stay. If you use a node affinity instead, the pod waits for the node.",
    ),
    Code.ALERT: ReasonText("An alert is active.", "Resolve the named alert, or ignore it with --alert-filter-regexp."),
    Code.ALERTS_UNKNOWN: ReasonText(
        "The alert source gave no usable answer.",
        "Check the alert source: without its answer no node begins its reboot.",
        is_warning=True,
    ),
    Code.CONTROL_PLANE_NOT_READY: ReasonText(
        "The API server says that it is not ready, or that its etcd is not: no control-plane node goes down.",
        "Look at the checks that the message names: `kubectl get --raw '/readyz?verbose'`.",
        is_warning=True,
    ),
    Code.READYZ_UNKNOWN: ReasonText(
        "The agent cannot tell whether the API server and etcd are ready: no control-plane node goes down.",
        "Look at `kubectl get --raw '/readyz?verbose'`; the ClusterRole system:public-info-viewer permits it to "
        "every account.",
    ),
    Code.HEALTH_QUERY: ReasonText(
        "A condition of --health-queries does not hold.",
        "Look into the value that the query measures, or change the query's condition.",
    ),
    Code.HEALTH_UNKNOWN: ReasonText(
        "A health query has no usable answer: an error, no sample, or a sample that is too old.",
        "Run the query in Prometheus; check its targets, --prometheus-url, and the query's `fresh` and `labels`.",
    ),
    Code.FORECAST_REFUSES: ReasonText(
        "Pods of this node would stay pending, or can never be evicted.",
        "Add capacity, edit the named budget, or accept the result with --forecast-pending-allowed or "
        "--forecast=warn. `careen forecast NODE --with-nodes NODE=1` says how many more nodes would help.",
    ),
    Code.FORECAST_UNKNOWN: ReasonText(
        "The agent could not make the forecast.",
        "The message names the cause; with --forecast=warn careen continues without a forecast.",
        is_warning=True,
    ),
    Code.EVICTION_REFUSED: ReasonText(
        "A dry-run eviction was refused, so no pod was moved.",
        "Edit the named budget or webhook, or wait until the workload is healthy.",
    ),
    Code.EVICTIONS_UNKNOWN: ReasonText(
        "The agent could not make the dry-run evictions, so no pod was moved.",
        "Look at the API server and the agent's rights.",
        is_warning=True,
    ),
    Code.SURPLUS: ReasonText(
        "Other nodes are rebooting, and their claims are not in this lock.",
        "Wait until the other nodes have rebooted.",
        is_warning=True,
    ),
    Code.NODE_UNKNOWN: ReasonText(
        "The agent cannot read its own Node.", "Look at the API server and the agent's rights.", is_warning=True
    ),
    Code.NODE_GONE: ReasonText(
        "The agent's Node does not exist.",
        "Nothing to do if the Node was deleted on purpose; otherwise let the kubelet register it.",
        is_warning=True,
    ),
    Code.BOOT_ID_UNKNOWN: ReasonText(
        "The agent cannot read the host's boot id.", "Make --boot-id-file readable for the agent.", is_warning=True
    ),
    Code.LOCK_UNKNOWN: ReasonText(
        "The lock cannot be read.",
        "Check the lock's DaemonSet (--ds-namespace, --ds-name) and the agent's rights.",
        is_warning=True,
    ),
    Code.LOCK_GARBAGE: ReasonText(
        "The lock's content cannot be understood; no reboot may start.",
        "Run `careen lock show`, then correct or remove the lock's annotation.",
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
        "The record on the Node cannot be understood; perhaps a newer release wrote it.",
        "Run the release that wrote the record; or check that the node is in service and run `kubectl annotate node "
        "NODE careen.dev/progress-`: careen then removes the cordon and taints that are provably its own.",
        is_warning=True,
    ),
    Code.ENTRY_PUT_BACK: ReasonText(
        "The node's claim was missing from the lock during its drain or reboot; the agent put it back.",
        "Nothing to do. To stop a drain, use `careen hold NODE`: the removal of the claim does not stop it.",
        is_warning=True,
    ),
    Code.ENTRY_ADOPTED: ReasonText(
        "The lock held a claim of this node, but the Node had no record of the claim; the agent continues the claim.",
        _ITSELF,
        is_warning=True,
    ),
    Code.ENTRY_RELEASED: ReasonText(
        "The lock held a claim of this node, but no drain or reboot was under way; the agent removed the claim.",
        "Nothing to do.",
    ),
    Code.GHOST_FREED: ReasonText(
        "A claim in the lock provably belonged to no node any more; an agent removed the claim.", "Nothing to do."
    ),
    Code.HOLDER_OVERDUE: ReasonText(
        "A node holds its claim for longer than its phase usually takes; other nodes wait for it.",
        "Look at the host that the message names, and at its agent; `careen lock show` shows the node's phase. If "
        "that agent runs, it reports the failure and its cause when the time for the phase is over.",
        is_warning=True,
    ),
    Code.CORDON_LIFTED: ReasonText(
        "The node had a cordon of careen without a claim or a record; the agent removed the cordon.",
        "Nothing to do. `careen hold NODE` keeps a node from rebooting.",
        is_warning=True,
    ),
    Code.UNCORDONED_BY_HAND: ReasonText(
        "A person or another program uncordoned the node during the drain; the node stays in service.",
        "careen tries the reboot again after a pause. If the node must not reboot, run `careen hold NODE`.",
        is_warning=True,
    ),
    Code.UNLOCKED_BY_HAND: ReasonText(
        "A person removed the failed node's claim from the lock; the roll-out continues without this node.",
        "Remove the cause of the failure, then run `careen retry NODE`.",
    ),
    Code.FORCED: ReasonText(
        "The drain did not finish, and --force-reboot lets the node reboot undrained.",
        "Switch --force-reboot off if nodes must not reboot undrained.",
        is_warning=True,
    ),
    Code.LATE_REFUSAL: ReasonText(
        "A gate refuses after the drain; --late-policy decides whether the node reboots.",
        "`careen why NODE` lists the refusals.",
        is_warning=True,
    ),
    Code.DRAIN_TIMEOUT: ReasonText(
        "The drain took longer than --drain-timeout; the agent undid the drain and releases the claim.",
        "Look at the pods that the message names. careen tries the reboot again after a pause, or at "
        "once with `careen retry NODE`.",
        is_warning=True,
    ),
    Code.REBOOT_COMMAND_FAILED: ReasonText(
        "The host refused to reboot; the agent undid the drain and releases the claim.",
        "Correct --reboot-command or the agent's rights on the host, then run `careen retry NODE`.",
        is_warning=True,
    ),
    Code.REBOOT_NOT_HAPPENED: ReasonText(
        "The host was asked to reboot, but still runs the same boot after the reboot deadline; the roll-out halts.",
        "Look at the host; `careen retry NODE` tries the reboot again.",
        is_warning=True,
    ),
    Code.NEVER_READY: ReasonText(
        "The node rebooted or ended its maintenance, but did not become ready in time; the roll-out halts.",
        "Look at the kubelet and the DaemonSet pods, then run `careen retry NODE`.",
        is_warning=True,
    ),
    Code.SETTLE_TIMEOUT: ReasonText(
        "When the settle time ended, displaced workloads were not as healthy as before the drain; the roll-out halts.",
        "Repair the named workloads, or check them again with `careen retry NODE`.",
        is_warning=True,
    ),
    Code.REBOOT_LOOP: ReasonText(
        "The host asks for a reboot again right after a confirmed reboot; the roll-out halts.",
        "Find out why the host still asks for a reboot, then run `careen retry NODE`.",
        is_warning=True,
    ),
    Code.TURN_BROKEN: ReasonText(
        "The agent's loop failed several times with an exception, which is a bug of careen; the agent undid the drain "
        "and releases the claim.",
        "Report the error that the agent's log has under `a round of the agent's loop failed`. careen tries the "
        "reboot again after a pause, or at once with `careen retry NODE`.",
        is_warning=True,
    ),
}

assert set(REASONS) == set(Code)


def event_reason(code: Code) -> str:
    """Return the code in the form of an Event's reason: `drain-timeout` becomes `DrainTimeout`."""
    return "".join(part.capitalize() for part in code.value.split("-"))
