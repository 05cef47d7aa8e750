"""Every reason code that people see in events, logs, metrics, annotations and commands, with its meaning and remedy.

`docs/reasons.md` is generated from these texts. They explain a code in general; the sentence of a decision names the
pods and nodes concerned."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

_Row = tuple[str, str, str, bool]

_NOTHING = "Nothing to do."
_ITSELF = "Nothing to do: careen continues by itself."
_RIGHTS = "Look at the API server and the agent's rights."


def _news(code: str, meaning: str, remedy: str) -> _Row:
    return code, meaning, remedy, False


def _warning(code: str, meaning: str, remedy: str) -> _Row:
    return code, meaning, remedy, True


class Code(StrEnum):
    """The codes, each with its meaning, what a person can do (NODE stands for the node's name), and whether its Event
    is a warning. The codes are stored in annotations and metrics: never rename one."""

    meaning: str
    remedy: str
    is_warning: bool

    def __new__(cls, code: str, meaning: str = "", remedy: str = "", is_warning: bool = False) -> Self:
        made = str.__new__(cls, code)
        made._value_, made.meaning, made.remedy, made.is_warning = code, meaning, remedy, is_warning
        return made

    # How far a node is on the way to its reboot and back into service.
    NO_NEED = _news("no-need", "The host does not ask for a reboot.", _NOTHING)
    TAINT_SPREAD = _news(
        "taint-spread",
        "The host asks for a reboot; with more than 500 nodes, the agents spread their taints over a minute.",
        _ITSELF,
    )
    NEED_SEEN = _news("need-seen", "The host asks for a reboot; the node has the soft taint and waits.", _ITSELF)
    NEED_GONE = _news(
        "need-gone",
        "The host no longer asks for a reboot, or a person's request is withdrawn or over; the agent removes careen's "
        "marks from the node.",
        _ITSELF,
    )
    HOME = _news("home", "No mark of careen is left on the node.", _NOTHING)
    REQUEST_UNKNOWN = _warning(
        "request-unknown",
        "The agent does not understand the annotation careen.dev/request, and removes it.",
        "Run `careen reboot NODE`, `careen drain NODE` or `careen maintenance NODE`, or write one of these words.",
    )
    REFUSED = _news(
        "refused", "At least one gate refuses the reboot.", "`careen why NODE` lists each refusal with its own remedy."
    )
    WAITING_FOR_TURN = _news(
        "waiting-for-turn",
        "No gate refuses so far, but other nodes come first, the lock is full, or the first node of a roll-out waits a "
        "few seconds for other nodes to become ready.",
        "Nothing to do, or raise --concurrency.",
    )
    TAKING_CLAIM = _news(
        "taking-claim", "The node is next in line: it takes a claim in the lock and asks all gates again.", _ITSELF
    )
    RELEASING = _news("giving-back", "The agent removes the claim of this node from the lock.", _ITSELF)
    DRAIN_STARTED = _news(
        "drain-started", "The node holds a claim, is cordoned, and its pods are being evicted.", _ITSELF
    )
    DRAINING = _news(
        "draining", "Pods are still leaving the node.", "If this lasts, look at the pods that the message names."
    )
    DETACHING = _news(
        "detaching",
        "The node is drained, but volumes of evicted pods are still attached to it: it reboots when they are detached, "
        "after five minutes at the latest.",
        "If this lasts, look at the VolumeAttachments of the node and at the CSI driver.",
    )
    DRAINED = _news("drained", "The node is empty; the agent asks the gates a last time.", _ITSELF)
    MAINTENANCE = _news(
        "maintenance",
        "A person keeps the node down: the node is drained and cordoned, and keeps its claim.",
        "Run `careen maintenance NODE --end` or `careen drain NODE --end`, remove the annotation careen.dev/request, "
        "or wait until the request expires.",
    )
    MAINTENANCE_ENDED = _news(
        "handed-back", "The node is back in service: a person ended the maintenance, or its time is over.", _ITSELF
    )
    REBOOT_ANNOUNCED = _news(
        "reboot-announced",
        "The agent recorded that the reboot is next; it confirms its claim and asks the host to reboot.",
        _ITSELF,
    )
    REBOOT_ASKED = _news("reboot-asked", "The host was asked to reboot and is not back yet.", _ITSELF)
    REBOOTED = _news("rebooted", "The host has rebooted: it has a new boot id.", _ITSELF)
    VERIFYING = _news(
        "verifying",
        "The host has rebooted, but the node, its DaemonSet pods or its static pods are not ready yet.",
        "Look at the kubelet and the DaemonSet pods that the message names.",
    )
    BACK_IN_SERVICE = _news(
        "given-back", "The node is in service again: it and its own DaemonSet pods are ready.", _ITSELF
    )
    SETTLING = _news(
        "settling",
        "The node is back; workloads are less healthy than before the drain, or --lock-release-delay is not over.",
        "If this lasts, look at the workloads that the message names.",
    )
    RELEASED = _news("released", "The agent released the claim; the next node may take a claim.", _NOTHING)
    RETRY = _news("retry", "A person asked for a retry.", _ITSELF)
    RECHECK = _news("recheck", "A person asked the agent to look at everything again at once.", _ITSELF)

    # Gates' refusals.
    HELD = _news(
        "held",
        "A person keeps this node from rebooting.",
        "Run `careen unhold NODE`, or remove the annotation careen.dev/hold, or wait until its `until` has passed.",
    )
    PAUSED = _news("paused", "A person paused the lock: no reboot may start.", "Run `careen lock resume`.")
    HALTED = _news(
        "halted",
        "Another node failed and keeps its claim, so the roll-out halts: the next node would probably fail too.",
        "Run `careen why` for the node that the message names, repair that node, then run `careen retry` for it; or "
        "release its claim with `careen lock release`.",
    )
    FOREIGN_COORDINATOR = _warning(
        "foreign-coordinator",
        "Another reboot coordinator works in this cluster; it and careen do not see each other's claims.",
        "Remove the DaemonSet of that coordinator, or careen's.",
    )
    NEED_UNKNOWN = _warning(
        "need-unknown",
        "The agent cannot tell whether the host asks for a reboot.",
        "Make the sentinel's path or command readable for the agent.",
    )
    PACKAGE_MANAGER = _news(
        "package-manager", "A package manager works on the host.", "Wait until the package manager is done."
    )
    BEING_REMOVED = _news(
        "being-removed",
        "The cluster autoscaler or Karpenter is removing the node, so careen leaves the node alone.",
        "Nothing to do. If the autoscaler removes its taint, the node waits for its reboot again.",
    )
    CLOCK_SKEW = _warning(
        "clock-skew",
        "The host's clock differs too much from the API server's.",
        "Correct the clock of the host or of the API server.",
    )
    REBOOT_IMPOSSIBLE = _warning(
        "reboot-impossible",
        "The agent's self-test shows that the host could not be rebooted.",
        "Correct what the message names: --reboot-command, --reboot-signal, or the agent's rights on the host. The "
        "agent tests again within ten minutes, and at once after a restart.",
    )
    SETTINGS_UNUSABLE = _warning(
        "settings-unusable",
        "The agent could not use its settings when it started; it finishes its claim with the older settings and "
        "takes no new claim.",
        "Correct the ConfigMap or the flags that the message names. If the ConfigMap was removed on purpose, "
        "restart the agent.",
    )
    LOOP_LIMIT = _warning(
        "loop-limit",
        "The host still asks for a reboot after as many reboots as the settings allow.",
        "Find out why the host still asks for a reboot, then run `careen retry NODE`.",
    )
    GATE_ANNOTATION = _news(
        "gate-annotation",
        "An annotation careen.dev/gate.NAME of another program keeps the node, or the whole cluster, from rebooting.",
        "careen continues when the annotations are gone. To remove a leftover annotation, run `kubectl annotate node "
        "NODE careen.dev/gate.NAME-`, or do the same on the lock's DaemonSet.",
    )
    OUTSIDE_WINDOW = _news(
        "outside-window",
        "No maintenance window of this node is open.",
        "Wait until a window opens, change the windows (--reboot-days, --start-time, --end-time, --windows), or "
        "annotate the Node with careen.dev/reboot-now.",
    )
    NO_WINDOW = _warning(
        "no-window",
        "--windows has windows for other nodes, but no window selects this node, so the node will not reboot.",
        "Add a window for NODE or for all nodes to --windows, or annotate the Node with careen.dev/reboot-now.",
    )
    MINIMUM_INTERVAL = _news(
        "minimum-interval",
        "The last reboot of this node is too recent.",
        "Wait, or annotate the Node with careen.dev/reboot-now.",
    )
    CLUSTER_INTERVAL = _news(
        "cluster-interval",
        "Another node of the cluster is rebooting, or has rebooted too recently.",
        "Wait, change --cluster-minimum-interval, or annotate the Node with careen.dev/reboot-now.",
    )
    CORDONED = _news(
        "cordoned",
        "A person or another program cordoned this node, and --reboot-cordoned=false leaves such nodes alone.",
        "Run `kubectl uncordon NODE`, annotate the Node with careen.dev/reboot-now, or set --reboot-cordoned=true.",
    )
    LIMIT_REACHED = _news(
        "limit-reached", "As many nodes hold a claim as the limit allows.", "Wait, or raise --concurrency."
    )
    NODES_DOWN = _news(
        "nodes-down",
        "Other nodes are down; with this node the limit would be exceeded.",
        "Bring the named nodes back (`kubectl uncordon` the cordoned ones), raise --concurrency, "
        "or set --count-cordoned=false.",
    )
    BUDGET_SPENT = _news(
        "budget-spent",
        "A budget for a group of nodes is used up.",
        "Wait, bring the named nodes back, or change the budget.",
    )
    ZONE_AT_WORK = _news(
        "zone-at-work",
        "Nodes of another zone are rebooting, and --order=zone finishes a zone before it begins the next.",
        "Wait until the named nodes are done, or choose another --order.",
    )
    QUORUM = _warning(
        "quorum",
        "Without this node the control plane would lose its quorum.",
        "Bring the other control-plane nodes that are down back into service.",
    )
    BLOCKING_POD = _news(
        "blocking-pod",
        "A pod on this node, or a pod on another node that --blocking-pods selects, forbids the reboot of this node.",
        "Wait until the named pod is done, or change --blocking-pod-selector or --blocking-pods.",
    )
    PROTECTED_POD = _news(
        "protected-pod",
        "A pod on this node asks autoscalers not to disturb it, and a reboot would.",
        "Wait until the named pods have finished, or move them yourself; --protected-pods=evict lets drains evict such "
        "pods.",
    )
    LOST_POD = _news(
        "lost-pod",
        "A pod on this node would be lost: nothing would create it again, or its Job would fail for good.",
        "Wait until the named pods have finished, delete them, or change the entry of --blocking-pods with `lost`.",
    )
    BOUND_POD = _news(
        "bound-pod",
        "A pod's owner names this node in its template (spec.nodeName), so the pod comes back after each eviction.",
        "Remove spec.nodeName from the template that the message names, or leave such pods on the node with "
        "--pods-bound-to-node=stay. If you use a node affinity instead, the pod waits for the node.",
    )
    STUCK_POD = _warning(
        "stuck-pod",
        "A pod on this node has been terminating for longer than its grace period, so a drain would never end.",
        "Find out why the pod does not end: repair the controller that should remove the named finalizer, or look at "
        "the kubelet. Or let drains not wait for such pods with --skip-wait-for-delete-timeout.",
    )
    ALERT = _news("alert", "An alert is active.", "Resolve the named alert, or ignore it with --alert-filter-regexp.")
    ALERTS_UNKNOWN = _warning(
        "alerts-unknown",
        "The alert source gave no usable answer.",
        "Check the alert source: without its answer no node begins its reboot.",
    )
    CONTROL_PLANE_NOT_READY = _warning(
        "control-plane-not-ready",
        "The API server says that it is not ready, or that its etcd is not: no control-plane node goes down.",
        "Look at the checks that the message names: `kubectl get --raw '/readyz?verbose'`.",
    )
    READYZ_UNKNOWN = _news(
        "readyz-unknown",
        "The agent cannot tell whether the API server and etcd are ready: no control-plane node goes down.",
        "Look at `kubectl get --raw '/readyz?verbose'`; the ClusterRole system:public-info-viewer permits it to "
        "every account.",
    )
    HEALTH_QUERY = _news(
        "health-query",
        "A condition of --health-queries does not hold.",
        "Look into the value that the query measures, or change the query's condition.",
    )
    HEALTH_QUERY_LEARNED = _news(
        "health-query-learned",
        "A health query was bad while this node was drained and good again afterwards, so it does not refuse this "
        "node's reboot after the next drain.",
        "Give the query the field `late`, so that no other node has to learn it.",
    )
    HEALTH_UNKNOWN = _news(
        "health-unknown",
        "A health query has no usable answer: an error, no sample, or a sample that is too old.",
        "Run the query in Prometheus; check its targets, --prometheus-url, and the query's `fresh` and `labels`.",
    )
    FORECAST_REFUSES = _news(
        "forecast-refuses",
        "Pods of this node would stay pending, or can never be evicted.",
        "For a pod that can never be evicted, edit the named budget or add a replica. For a pod without room, add "
        "capacity (`careen forecast NODE --with-nodes NODE=1` says how many more nodes would help), or accept it with "
        "--forecast-pending-allowed.",
    )
    FORECAST_UNKNOWN = _warning(
        "forecast-unknown",
        "The agent could not make the forecast.",
        "The message names the cause; with --forecast=warn careen continues without a forecast.",
    )
    EVICTION_REFUSED = _news(
        "eviction-refused",
        "A dry-run eviction was refused, so no pod was moved.",
        "Edit the named budget or webhook, or wait until the workload is healthy. If an operator owns the budget, use "
        "the operator's own setting for drains, or `careen retry NODE`.",
    )
    UNDONE_DRAINS = _warning(
        "undone-drains",
        "Three drains of the node were undone within a day, so it is not drained again before the day is over.",
        "Look at the reasons of the undone drains in the node's Events. `careen retry NODE` tries again at once.",
    )
    EVICTIONS_UNKNOWN = _warning(
        "evictions-unknown", "The agent could not make the dry-run evictions, so no pod was moved.", _RIGHTS
    )
    SURPLUS = _warning(
        "surplus",
        "Other nodes are rebooting, and their claims are not in this lock.",
        "Wait until the other nodes have rebooted.",
    )

    # Unknown facts that stop a step.
    NODE_UNKNOWN = _warning("node-unknown", "The agent cannot read its own Node.", _RIGHTS)
    NODE_GONE = _warning(
        "node-gone",
        "The agent's Node does not exist.",
        "Nothing to do if the Node was deleted on purpose; otherwise let the kubelet register it.",
    )
    BOOT_ID_UNKNOWN = _warning(
        "boot-id-unknown", "The agent cannot read the host's boot id.", "Make --boot-id-file readable for the agent."
    )
    LOCK_UNKNOWN = _warning(
        "lock-unknown",
        "The lock cannot be read.",
        "Check the lock's DaemonSet (--ds-namespace, --ds-name) and the agent's rights.",
    )
    LOCK_GARBAGE = _warning(
        "lock-garbage",
        "The lock's content cannot be understood; no reboot may start.",
        "Run `careen lock show`, then correct or remove the lock's annotation.",
    )
    STORE_RESTORED = _warning(
        "store-restored",
        "A resourceVersion went back, as after a restore of etcd from a backup: the lock and the records may be older "
        "than what happened. The agent does nothing until the lock is paused, and pauses it.",
        "Check that every node is in service. Six minutes after the restore, when each agent has noticed it, run "
        "`careen lock resume`; see `operations.md`. If the lock is not paused, first run `careen lock pause`.",
    )
    WRITE_NOT_KEPT = _warning(
        "write-not-kept",
        "The API server accepts what the agent writes on the Node or into the lock, but it does not stay there.",
        "Find the admission webhook, the policy or the controller that removes or changes what the message names "
        "(`kubectl get node NODE --show-managed-fields -o yaml` shows field managers), and exempt careen's keys.",
    )
    FLEET_UNKNOWN = _warning("fleet-unknown", "The agent cannot tell which nodes are down.", _RIGHTS)
    PODS_UNKNOWN = _warning("pods-unknown", "The pods of this node cannot be listed.", _RIGHTS)
    OWNERS_UNKNOWN = _warning("owners-unknown", "The health of the displaced workloads cannot be read.", _RIGHTS)
    PROGRESS_UNREADABLE = _warning(
        "progress-unreadable",
        "The record on the Node cannot be understood; perhaps a newer release wrote it.",
        "Run the release that wrote the record; or check that the node is in service and run `kubectl annotate node "
        "NODE careen.dev/progress-`: careen then removes the cordon and taints that are provably its own.",
    )

    # Things found and mended.
    ENTRY_PUT_BACK = _warning(
        "entry-put-back",
        "The node's claim was missing from the lock during its drain or reboot; the agent put it back.",
        "Nothing to do. To stop a drain, use `careen hold NODE`: the removal of the claim does not stop it.",
    )
    ENTRY_ADOPTED = _warning(
        "entry-adopted",
        "The lock held a claim of this node, but the Node had no record of the claim; the agent continues the claim.",
        _ITSELF,
    )
    ENTRY_RELEASED = _news(
        "entry-released",
        "The lock held a claim of this node, but no drain or reboot was under way; the agent removed the claim.",
        _NOTHING,
    )
    STALE_CLAIM_FREED = _news(
        "ghost-freed",
        "A claim in the lock provably belonged to no node any more; an agent removed the claim.",
        _NOTHING,
    )
    HOLDER_OVERDUE = _warning(
        "holder-overdue",
        "A node holds its claim for longer than its phase usually takes; other nodes wait for it.",
        "Look at the host that the message names, and at its agent; `careen lock show` shows the node's phase. If "
        "that agent runs, it reports the failure and its cause when the time for the phase is over.",
    )
    CORDON_LIFTED = _warning(
        "cordon-lifted",
        "The node had a cordon of careen without a claim or a record; the agent removed the cordon.",
        "Nothing to do. `careen hold NODE` keeps a node from rebooting.",
    )
    UNCORDONED_BY_HAND = _warning(
        "uncordoned-by-hand",
        "A person or another program uncordoned the node during the drain; the node stays in service.",
        "careen tries the reboot again after a pause. If the node must not reboot, run `careen hold NODE`.",
    )
    UNLOCKED_BY_HAND = _news(
        "unlocked-by-hand",
        "A person removed the failed node's claim from the lock; the roll-out continues without this node.",
        "Remove the cause of the failure, then run `careen retry NODE`.",
    )
    FORCED = _warning(
        "forced",
        "The drain did not finish, and --force-reboot lets the node reboot undrained.",
        "Switch --force-reboot off if nodes must not reboot undrained.",
    )
    LATE_REFUSAL = _warning(
        "late-refusal",
        "A gate refused after the drain, and not because of the drain: the agent undid the drain and releases the "
        "claim.",
        "Look at what the message names. careen tries the reboot again after a pause, three times in all, or at once "
        "with `careen retry NODE`. After a closed window it only waits for the next one.",
    )

    # Failures.
    DRAIN_TIMEOUT = _warning(
        "drain-timeout",
        "The drain took longer than --drain-timeout, or gave way to an older claim; the agent undid it and releases "
        "its claim.",
        "Look at the pods that the message names. careen tries the reboot again after a pause, or at "
        "once with `careen retry NODE`.",
    )
    SLOW_PODS = _warning(
        "slow-pods",
        "Pods whose disruption budget or webhook had to open during the drain did not leave in time; the agent undid "
        "the drain and releases the claim.",
        "Look at the operator that owns the budget or webhook, and at its setting for drains. careen tries again after "
        "a pause that grows to a day, or at once with `careen retry NODE`.",
    )
    REBOOT_COMMAND_FAILED = _warning(
        "reboot-command-failed",
        "The host refused to reboot; the agent undid the drain and releases the claim.",
        "Correct --reboot-command or the agent's rights on the host, then run `careen retry NODE`.",
    )
    REBOOT_NOT_HAPPENED = _warning(
        "reboot-not-happened",
        "The host was asked to reboot, but still runs the same boot after the reboot deadline; the roll-out halts.",
        "Look at the host; `careen retry NODE` tries the reboot again.",
    )
    SAME_BOOT_ID = _warning(
        "same-boot-id",
        "The host rebooted by other signs, but has the same boot id, so nothing proves the reboot; the roll-out halts. "
        "A container such as LXC shares the boot id of its machine; a device without a source of randomness may repeat "
        "its own.",
        "`careen retry NODE` goes on if the host no longer asks for a reboot. Do not run careen on nodes that are "
        "containers: reboot their machine. Give a device a random seed or a hardware generator (rngd).",
    )
    NEVER_READY = _warning(
        "never-ready",
        "The node rebooted or ended its maintenance, but did not become ready in time; the roll-out halts.",
        "Look at the kubelet and the DaemonSet pods, then run `careen retry NODE`.",
    )
    SETTLE_TIMEOUT = _warning(
        "settle-timeout",
        "When the settle time ended, displaced workloads were not as healthy as before the drain; the roll-out halts.",
        "Repair the named workloads, or check them again with `careen retry NODE`.",
    )
    REBOOT_LOOP = _warning(
        "reboot-loop",
        "The host asks for a reboot again right after a confirmed reboot; the roll-out halts.",
        "Find out why the host still asks for a reboot, then run `careen retry NODE`.",
    )
    TURN_BROKEN = _warning(
        "turn-broken",
        "The agent's loop failed several times with an exception, which is a bug of careen; the agent undid the drain "
        "and releases the claim.",
        "Report the error that the agent's log has under `a turn failed`. careen tries the "
        "reboot again after a pause, or at once with `careen retry NODE`.",
    )


def event_reason(code: Code) -> str:
    """The code in the form of an Event's reason: `drain-timeout` becomes `DrainTimeout`."""
    return "".join(part.capitalize() for part in code.value.split("-"))
