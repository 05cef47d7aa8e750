"""Every setting of an agent: its meaning, its unit, how to switch it off, and the reason for its default.

kured's 43 flags keep their names, types, defaults and meanings (kured 1.23); where a meaning differs, the setting's
text says so. `sources.py` defines the sources of values; `policy.py` builds the core's `Policy`.
"""

# ruff: noqa: RUF009 - the two wrappers of dataclasses.field are called once per field, as field itself would be

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import UTC, time, tzinfo
from typing import TYPE_CHECKING, Any

from careen.core.actions import Occasion
from careen.core.facts import keys
from careen.core.facts.policy import Budget
from careen.core.facts.selectors import Selector
from careen.host import boot_id
from careen.host.probes import PROBES, SENTINEL
from careen.services.notification_urls import Target
from careen.services.wire.asking import RequestHeader
from careen.settings import kinds
from careen.settings.go_regexp import GoRegexp
from careen.settings.lists import kinds as list_kinds
from careen.settings.lists import silence_matchers
from scheduler_core.values import Value

if TYPE_CHECKING:
    from careen.settings.lists.blocking_pods import ConfiguredBlocker
    from careen.settings.lists.health_queries import ConfiguredQuery
    from careen.settings.lists.windows import ConfiguredWindow


class Setting(Value, kw_only=True):
    """One setting: its kind, its meaning and how it may be set."""

    kind: kinds.ValueKind
    help: str
    is_kureds: bool
    """One of kured's 43 settings, which the agent also reads from KURED_<NAME>."""
    is_live: bool
    """Whether a change in the ConfigMap takes effect at once. Otherwise the agent must restart."""
    bootstrap: bool
    """Whether the agent needs it to find and read the ConfigMap, which cannot set it then."""


def _kured(default: Any, kind: kinds.ValueKind, text: str, *, live: bool = True, bootstrap: bool = False) -> Any:
    return field(
        default=default,
        metadata={"setting": Setting(kind=kind, help=text, is_kureds=True, is_live=live, bootstrap=bootstrap)},
    )


def _ours(default: Any, kind: kinds.ValueKind, text: str, *, live: bool = True, bootstrap: bool = False) -> Any:
    return field(
        default=default,
        metadata={"setting": Setting(kind=kind, help=text, is_kureds=False, is_live=live, bootstrap=bootstrap)},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The value of every setting. Durations are in seconds."""

    # Who and where
    node_id: str = _kured(
        "", kinds.NAME, "Name of the Node that this agent serves. Required.", live=False, bootstrap=True
    )
    kubeconfig: str = _ours(
        "", kinds.PATH, "Kubeconfig file; empty: the pod's service account.", live=False, bootstrap=True
    )
    ds_namespace: str = _kured(
        "kube-system",
        kinds.NAMESPACE,
        "Namespace of the DaemonSet that carries the lock, and of the ConfigMap.",
        live=False,
        bootstrap=True,
    )
    ds_name: str = _kured(
        "kured",
        kinds.NEEDED_NAME,
        "Name of the agents' DaemonSet, which carries the lock.",
        live=False,
        bootstrap=True,
    )
    config_map: str = _ours(
        "careen",
        kinds.NAME,
        "Name of the ConfigMap with the settings. The key config.yaml contains each setting under its flag's name. "
        "Changes take effect while the agent runs; empty: no ConfigMap.",
        live=False,
        bootstrap=True,
    )
    config_map_may_run_commands: bool = _ours(
        False,
        kinds.SWITCH,
        "Whether the ConfigMap may set the commands that run as root on every host, and the signal to PID 1; "
        "false: only flags and environment may set them.",
        live=False,
        bootstrap=True,
    )
    config_map_may_name_files: bool = _ours(
        False,
        kinds.SWITCH,
        "Whether the ConfigMap may name the files that the agent opens as root, and may choose the servers "
        "(Prometheus, Alertmanager) to which the agent sends secrets; false: only flags and environment may do so.",
        live=False,
        bootstrap=True,
    )

    # Does the host want a reboot
    reboot_probes: tuple[str, ...] = _ours(
        (SENTINEL,),
        kinds.PROBE_NAMES,
        f"Probes that can report the need for a reboot: {', '.join(PROBES)}. docs/probes.md describes them.",
        live=False,
    )
    reboot_sentinel: tuple[str, ...] = _kured(
        ("/var/run/reboot-required",),
        kinds.PATHS,
        "File whose existence means that the host needs a reboot; repeatable (kured has one such file). Checked every "
        "2 s. If the file cannot be read, it is unknown whether the host needs a reboot.",
        live=False,
    )
    reboot_packages: GoRegexp | None = _ours(
        None,
        kinds.REGEXP,
        "Regular expression for package names. A sentinel file requests a reboot only if the list "
        "reboot-required.pkgs beside the file (Debian, Ubuntu) has a matching package; empty: every sentinel file "
        "requests a reboot. Without the list it is unknown whether the host needs a reboot.",
        live=False,
    )
    reboot_max_uptime: float = _ours(
        0.0,
        kinds.DURATION,
        "How long a host may run before the probe uptime reports that the host needs a reboot; 0: the probe is off.",
        live=False,
    )
    reboot_sentinel_command: str = _kured(
        "",
        kinds.COMMAND,
        "Command that replaces the sentinel file. Exit code 0 means that the host needs a reboot, 1 that it "
        "does not; other codes mean unknown.",
        live=False,
    )
    period: float = _kured(
        3600.0,
        kinds.DURATION,
        "How often the sentinel command runs. The agent's other work does not wait for the command; kured's does.",
    )
    sentinel_timeout: float = _ours(
        60.0,
        kinds.DEADLINE,
        "How long the check of the sentinel may take; after that it is unknown whether the host needs a reboot.",
        live=False,
    )
    host_root: str = _ours(
        "",
        kinds.PATH,
        "Where the host's file system is mounted: a prefix for the paths of the sentinel and of the host "
        "lock; empty: the agent's own file system.",
        live=False,
    )
    host_exec: str = _ours(
        "nsenter",
        kinds.word("nsenter", "direct"),
        "How the agent runs commands on the host. nsenter enters PID 1's mount namespace; direct is for an "
        "agent outside a container.",
        live=False,
    )
    host_lock_dir: str = _ours(
        "/run/careen",
        kinds.PATH,
        "Folder on the host for a file lock that keeps a second agent of the same node from working; empty: no lock.",
        live=False,
    )
    boot_id_file: str = _ours(boot_id.DEFAULT_FILE, kinds.PATH, "File with the host's boot id.", live=False)

    # How it reboots
    reboot_method: str = _kured(
        "command",
        kinds.word("command", "signal"),
        "How the agent reboots the host: with a command, or with a signal to PID 1. The signal bypasses "
        "systemd-logind, so a kubelet with shutdownGracePeriod does not notice the shutdown.",
        live=False,
    )
    reboot_command: str = _kured(
        "/bin/systemctl reboot", kinds.COMMAND, "The command for --reboot-method=command.", live=False
    )
    reboot_signal: int = _kured(
        39,
        kinds.whole_number(1, 64),
        "The signal for --reboot-method=signal; 39 is SIGRTMIN+5, systemd's reboot.",
        live=False,
    )
    reboot_timeout: float = _ours(
        60.0, kinds.DEADLINE, "How long the reboot command may run before its outcome is unknown.", live=False
    )
    reboot_proof: str = _ours(
        "boot-id",
        kinds.word("boot-id", "soft-reboots"),
        "What proves a reboot. boot-id: only a new boot id. soft-reboots: a new boot id or a higher count of soft "
        "reboots in systemd (for --reboot-command='systemctl soft-reboot').",
        live=False,
    )
    reboot_delay: float = _kured(
        0.0, kinds.DURATION, "Pause between drain and reboot. After the pause the agent checks the gates again."
    )
    reboot_deadline: float = _ours(
        900.0,
        kinds.DEADLINE,
        "How long the host may take from the reboot's announcement on the Node until it has a new boot id. "
        "The firmware of a large server takes ten minutes.",
    )
    verify_timeout: float = _ours(
        900.0, kinds.DEADLINE, "How long the node and its DaemonSet pods may take to become ready after the boot."
    )
    reboot_loop_limit: int = _ours(
        1,
        kinds.whole_number(0),
        "How many more times a node may reboot if the first reboot did not remove the need for a reboot. If the last "
        "of these reboots does not remove the need either, the roll-out halts.",
    )

    # The order of the nodes
    concurrency: int = _kured(
        1,
        kinds.AT_ONCE,
        "How many nodes may be down at the same time. Nodes that are down for other reasons than careen count too.",
    )
    order: str = _ours(
        "oldest",
        kinds.word("oldest", "zone", "fewest-moves"),
        "Order of the nodes: oldest, zone or fewest-moves. With --order=oldest, the node that has needed a reboot for "
        "longest goes first; among needs of the same hour, the node whose drain makes the fewest pods move twice. One "
        "node at a time finishes zone after zone; with --concurrency above 1, zones take turns. With --order=zone, "
        "careen never works in two zones at the same time. With --order=fewest-moves, the node that has the fewest "
        "pods to evict goes first, and each agent counts the pods of its own node.",
    )
    budget: tuple[Budget, ...] = _ours(
        (),
        kinds.BUDGETS,
        "Limit on the nodes of a group that are down at once; repeatable: zone=1, control-plane=1 (always in "
        "force), topology:example.com/rack=1, selector:app=db=1. A share of the group is rounded down, but is"
        " at least one node: zone=25%.",
    )
    count_cordoned: bool = _ours(
        True,
        kinds.SWITCH,
        "Whether a node counts as down if another client cordoned it. With --concurrency=1 such a node stops "
        "the roll-out; false: only nodes that are not ready count as down.",
    )
    reboot_cordoned: bool = _ours(
        True,
        kinds.SWITCH,
        "Whether to drain and reboot a node that another client cordoned, and leave it cordoned, as kured "
        "does; false: the cordon keeps the node from rebooting.",
    )
    lock_annotation: str = _kured(
        keys.LOCK_ANNOTATION,
        kinds.ANNOTATION,
        "Key of the annotation that contains the lock. The annotation is on the agents' DaemonSet.",
        live=False,
    )
    lock_ttl: float = _kured(
        0.0,
        kinds.DURATION,
        "Time alone never frees a claim: an agent frees a claim when the Node of its holder proves that no drain or "
        "reboot uses the claim. The claim of a missing Node waits for this time, or for --reboot-deadline if that is "
        "longer.",
    )
    lock_release_delay: float = _kured(
        0.0,
        kinds.DURATION,
        "Pause between a node's return to service and the release of its claim; no pause after an undone drain.",
    )
    prefer_no_schedule_taint: str = _kured(
        keys.DEFAULT_TAINT_KEY,
        kinds.KEY,
        "Key of the soft taint that a node gets as soon as it needs a reboot; empty: no taint. (kured's "
        "default is off.)",
    )
    minimum_interval: float = _ours(0.0, kinds.DURATION, "Minimum time between two reboots of a node; 0: none.")
    cluster_minimum_interval: float = _ours(
        0.0,
        kinds.DURATION,
        "Minimum time between the end of one reboot and the start of the next reboot anywhere in the cluster; 0: "
        "none. With an interval, nodes reboot one at a time, regardless of --concurrency.",
    )

    # Other controllers of nodes
    protect_from_autoscalers: bool = _ours(
        True,
        kinds.SWITCH,
        "Whether careen sets the annotations scale-down-disabled (cluster autoscaler) and do-not-disrupt "
        "(Karpenter) on a node from its claim to its return to service; false: careen does not touch them.",
    )
    load_balancer_settle: float = _ours(
        0.0,
        kinds.DURATION,
        "Pause between the cordon and the first eviction, in which load balancers remove the node. With the cordon, "
        "the node gets the label node.kubernetes.io/exclude-from-external-load-balancers; 0: no pause and no "
        "label.",
    )

    # Draining
    drain_delay: float = _kured(0.0, kinds.DURATION, "Pause between the claim and the cordon.")
    drain_timeout: float = _kured(0.0, kinds.DURATION, "How long a drain may take before it is undone; 0: no limit.")
    drain_grace_period: int = _kured(
        -1, kinds.whole_number(-1), "Grace period of evicted pods in seconds; -1: each pod's own; 0: no grace period."
    )
    drain_pod_selector: Selector | None = _kured(
        None,
        kinds.SELECTOR,
        "Evict only pods that match this label selector; the other pods still run when the node reboots.",
    )
    slow_pod_selector: tuple[Selector, ...] = _ours(
        (),
        kinds.SELECTORS,
        "Label selector of pods whose disruption budget opens only during a drain, although its numbers say never. "
        "careen recognises most such pods itself. Repeatable; in the environment, one selector per line.",
    )
    pods_bound_to_node: str = _ours(
        "refuse",
        kinds.word("refuse", "stay"),
        "What to do about pods that would return to the node after an eviction, because their owner's template names "
        "the node (spec.nodeName). refuse: do not drain; stay: leave such pods on the node, like DaemonSet pods.",
    )
    drain_parallel: int = _ours(
        1,
        kinds.whole_number(1, 100),
        "How many evictions may be in progress at once. The forecast assumes that pods are evicted one by one.",
    )
    skip_wait_for_delete_timeout: int = _kured(
        0,
        kinds.whole_number(0),
        "Do not wait for pods that have been terminating for more than this number of seconds; 0: always wait.",
    )
    force_reboot: bool = _kured(
        False,
        kinds.SWITCH,
        "Reboot even if --drain-timeout passed before the node was empty, but never if the cordon failed.",
    )
    force_reboot_past_budgets: bool = _ours(
        False, kinds.SWITCH, "With --force-reboot: reboot even while a disruption budget keeps a pod on the node."
    )
    late_policy: str = _ours(
        "undo",
        kinds.word("undo", "reboot"),
        "What to do if a gate refuses after the drain has finished, and not because of the drain: wait for a while and "
        "then undo everything, or reboot anyway.",
    )
    settle_policy: str = _ours(
        "halt",
        kinds.word("halt", "continue"),
        "What to do if --settle-timeout passes before displaced workloads are as healthy as before the drain: halt the "
        "roll-out, or continue it.",
    )
    settle_timeout: float = _ours(
        600.0,
        kinds.DURATION,
        "How long displaced workloads may take to become as healthy as before the drain; 0 (only with "
        "--settle-policy=continue): the node does not wait for them.",
    )
    unknown_patience: float = _ours(
        600.0, kinds.DURATION, "How long a draining node waits for an unknown fact before it undoes the drain."
    )
    failure_backoff: float = _ours(
        60.0,
        kinds.DURATION,
        "Pause after a failed drain or reboot, before the agent tries again; five times as long if the reboot command "
        "failed. The pause doubles with each failure in a row, up to an hour.",
    )

    # Gates
    reboot_days: tuple[int, ...] = _kured(
        tuple(range(7)), kinds.DAYS, "Days on which a reboot may begin; empty: never."
    )
    start_time: time = _kured(time(0, 0), kinds.TIME, "Time of day from which a reboot may begin.")
    end_time: time = _kured(
        time(23, 59, 59),
        kinds.TIME,
        "Time of day until which a reboot may begin. If it is earlier than the start, the window ends on the next day.",
    )
    time_zone: tzinfo = _kured(UTC, kinds.ZONE, "Time zone of days and times; Local: the agent's time zone.")
    windows: tuple[ConfiguredWindow, ...] = _ours(
        (),
        list_kinds.WINDOWS,
        "Maintenance windows for groups of nodes, a list of mappings: name; days, start and end, or cron and "
        "duration; time-zone (default: --time-zone); nodes (a label selector); exclude (dates, FIRST..LAST). "
        "A node may reboot in any window that selects the node. --reboot-days, --start-time and --end-time then "
        "apply to the nodes that no window selects; without these flags, such a node does not reboot.",
    )
    blocking_pod_selector: tuple[Selector, ...] = _kured(
        (),
        kinds.SELECTORS,
        "Label selector. The reboot is forbidden while a running pod on the node matches the selector. Repeatable; "
        "in the environment, one selector per line.",
    )
    blocking_pods: tuple[ConfiguredBlocker, ...] = _ours(
        (),
        list_kinds.BLOCKING_PODS,
        "Pods that forbid reboots, a list of mappings: name; pods (a label selector); namespaces (default: "
        "all); scope (node: the node that they run on; group: every node with the same value of the label "
        "`group`; cluster: every node); longest (an alert fires if such a pod forbids a reboot for longer; "
        "default: never). Instead of, or besides, `pods`: annotations (KEY=VALUE; the pod has one of them). Instead of "
        "both: lost: true (the pods of the node that nothing would create again after the drain).",
    )
    protected_pods: str = _ours(
        "refuse",
        kinds.word("refuse", "evict"),
        "What to do about pods that ask autoscalers not to disturb them: "
        'cluster-autoscaler.kubernetes.io/safe-to-evict: "false", or karpenter.sh/do-not-disrupt: "true". refuse: such '
        "a pod forbids the reboot of its node, and an alert fires after 24h; evict: drain it like other pods. "
        "--blocking-pods can name more annotations.",
    )
    prometheus_url: str = _kured(
        "",
        kinds.URL,
        "Prometheus server whose active alerts forbid a reboot; empty: none. A server that does not answer "
        "also forbids the reboot.",
    )
    prometheus_timeout: float = _ours(10.0, kinds.DEADLINE, "How long Prometheus may take to answer.")
    prometheus_token_file: str = _ours(
        "",
        kinds.PATH,
        "File with a bearer token for Prometheus, read again for each query because tokens rotate; empty: none.",
    )
    prometheus_username: str = _ours("", kinds.TEXT, "User name for Prometheus' basic authentication; empty: none.")
    prometheus_password_file: str = _ours(
        "", kinds.PATH, "File with the password for --prometheus-username, read again for each query."
    )
    prometheus_ca_file: str = _ours(
        "",
        kinds.PATH,
        "File with the CA certificates that verify Prometheus' certificate; empty: the image's certificates.",
    )
    prometheus_client_certificate_file: str = _ours(
        "", kinds.PATH, "File with the client certificate that the agent presents to Prometheus; empty: none."
    )
    prometheus_client_key_file: str = _ours(
        "", kinds.PATH, "File with the key of the client certificate; empty: the certificate's file contains the key."
    )
    prometheus_headers: tuple[RequestHeader, ...] = _ours(
        (),
        list_kinds.HEADERS,
        "Header of each request to Prometheus, such as a tenant (X-Scope-OrgID: team-a); repeatable. With @ and a path "
        "(X-Api-Key: @/FILE) the value is in that file, which is read again for each query. In the environment, one "
        "header per line.",
    )
    alertmanager_url: str = _ours(
        "",
        kinds.URL,
        "Alertmanager (API v2) whose active alerts forbid a reboot, except silenced and inhibited alerts; "
        "empty: none. A server that does not answer also forbids the reboot. With --prometheus-url, the alerts of "
        "both servers forbid reboots; Prometheus does not know silences.",
    )
    alertmanager_token_file: str = _ours(
        "", kinds.PATH, "File with a bearer token for Alertmanager, read again for each query; empty: none."
    )
    alertmanager_ca_file: str = _ours(
        "",
        kinds.PATH,
        "File with the CA certificates that verify Alertmanager's certificate; empty: the image's certificates.",
    )
    alertmanager_headers: tuple[RequestHeader, ...] = _ours(
        (), list_kinds.HEADERS, "Header of each request to Alertmanager, as in --prometheus-headers; repeatable."
    )
    alertmanager_silence: float = _ours(
        0.0,
        kinds.DURATION,
        "Duration of the silence that the agent creates in --alertmanager-url for the node's alerts before it"
        " reboots the node, 1m to 24h. The agent extends it while the node is down and ends it when the node "
        "is back; 0: no silence.",
    )
    alertmanager_silence_matchers: tuple[silence_matchers.Matchers, ...] = _ours(
        silence_matchers.DEFAULT,
        list_kinds.SILENCES,
        "Matchers of one silence, which select the alerts to silence; repeatable. $NODE is the node's name. "
        "In the environment, one silence per line.",
    )
    health_queries: tuple[ConfiguredQuery, ...] = _ours(
        (),
        list_kinds.HEALTH_QUERIES,
        "Queries for --prometheus-url, a list of mappings: name; query (PromQL; $NODE is the node's name); "
        'holds (the condition for each sample: "== 0", "< 0.9"); late (the condition that is enough for a node that is '
        'already drained: "<= 1"); fresh (the greatest age of a sample, default 5m); labels (matchers; samples that do '
        "not match are ignored). A sample that does not meet the condition forbids the reboot. An error, an old sample "
        "or no sample at all forbids the reboot too.",
    )
    alert_filter_regexp: GoRegexp | None = _kured(
        None,
        kinds.REGEXP,
        "Regular expression for the names of alerts to ignore. careen's own alerts, Careen…, are always ignored.",
    )
    alert_filter_match_only: bool = _kured(
        False, kinds.SWITCH, "Reverses --alert-filter-regexp: only alerts that match forbid a reboot."
    )
    alert_firing_only: bool = _kured(False, kinds.SWITCH, "Only firing alerts forbid a reboot; pending alerts do not.")
    forecast: str = _ours(
        "refuse",
        kinds.word("refuse", "warn", "off"),
        "What to do about a bad forecast of where the node's pods would land. refuse: do not drain; warn: "
        "only report it; off: make no forecast.",
    )
    forecast_pending_allowed: int = _ours(
        0, kinds.whole_number(0), "A forecast is bad if more than this number of pods find no room."
    )
    forecast_unknown_allowed: int = _ours(
        0,
        kinds.whole_number(0),
        "A forecast is bad if more than this number of pods are unpredictable, for example because of another "
        "scheduler or unallocated devices.",
    )
    forecast_patience: float = _ours(
        3600.0, kinds.DURATION, "How long the forecast may refuse a reboot before the agent posts a warning."
    )
    forecast_timeout: float = _ours(
        60.0, kinds.DEADLINE, "How long the simulation may take before the forecast is unknown."
    )
    forecast_memory: int = _ours(
        512 * 2**20, kinds.MEMORY, "Memory limit of the simulation's process; the container's limit must allow for it."
    )
    scheduler_config: str = _ours(
        "",
        kinds.SCHEDULER_CONFIG,
        "KubeSchedulerConfiguration of the cluster's scheduler: a file, or configmap:KEY for a key of the "
        "ConfigMap; empty: the default profile.",
        live=False,
    )

    # What people see
    annotate_nodes: bool = _kured(False, kinds.SWITCH, "Also write the two annotations of kured on the Node.")
    pre_reboot_node_labels: tuple[tuple[str, str], ...] = _kured(
        (), kinds.LABELS, "Labels that a node gets with the cordon. Their earlier values are restored afterwards."
    )
    post_reboot_node_labels: tuple[tuple[str, str], ...] = _kured(
        (), kinds.LABELS, "Labels that a node gets when it is back in service."
    )
    notify_url: tuple[Target, ...] = _kured(
        (),
        kinds.MESSAGE_URLS,
        "Receivers of messages to people: shoutrrr URLs (repeatable; in kured: a single URL), apprise URLs, and URLs "
        "of Microsoft Teams workflows. The URLs contain secrets, so it is better to give them in the "
        "environment, from a Secret, one URL per line.",
    )
    notify_url_file: tuple[str, ...] = _ours(
        (),
        kinds.PATHS,
        "Files with notification URLs, one per line, or folders of such files, like a mounted Secret; read "
        "again for each message.",
    )
    slack_hook_url: Target | None = _kured(
        None,
        kinds.SLACK_HOOK,
        "Address of a Slack webhook (deprecated by kured); used only without --notify-url and --notify-url-file.",
    )
    notify_timeout: float = _ours(
        15.0,
        kinds.DEADLINE,
        "The time limit for sending one message. The agent's other work does not wait for the message.",
    )
    slack_username: str = _kured(
        "kured", kinds.TEXT, "Accepted from kured, without effect; kured never used it either."
    )
    slack_channel: str = _kured("", kinds.TEXT, "Accepted from kured, without effect; kured never used it either.")
    message_template_drain: str = _kured(
        "Draining node %s",
        kinds.TEMPLATE,
        "Message when a drain begins; %s is the node's name.",
    )
    message_template_reboot: str = _kured("Rebooting node %s", kinds.TEMPLATE, "Message when a node reboots.")
    message_template_uncordon: str = _kured(
        "Node %s rebooted & uncordoned successfully!", kinds.TEMPLATE, "Message when a node is back in service."
    )
    message_template_blocked: str = _ours(
        "", kinds.TEMPLATE, "Message when a gate has held a node back for too long; empty: careen's default text."
    )
    message_template_halted: str = _ours(
        "", kinds.TEMPLATE, "Message when the roll-out halts; empty: careen's default text."
    )
    message_template_done: str = _ours(
        "",
        kinds.TEMPLATE_OF_FIGURES,
        "Message when the last node is back in service and no node waits for a reboot; empty: careen's default text.",
    )
    notify_on: tuple[str, ...] = _ours(
        tuple(each.value for each in Occasion),
        kinds.OCCASIONS,
        "Occasions on which people get a message; empty: none.",
    )
    notify_blocked_after: float = _ours(
        86400.0,
        kinds.DURATION,
        "How long a gate may hold a node back before people get a message, which is repeated after a week; 0:"
        " never. Closed windows and waiting in line are ignored.",
    )
    cluster_name: str = _ours("", kinds.TEXT, "The text that replaces {cluster} in message templates.")
    metrics_host: str = _kured(
        "",
        kinds.LISTEN_HOST,
        "Address on which the agent serves /metrics, /healthz and /readyz; empty: all addresses of IPv6 and IPv4.",
        live=False,
        bootstrap=True,
    )
    metrics_port: int = _kured(
        8080,
        kinds.whole_number(0, 65535),
        "Port on which the agent serves /metrics, /healthz and /readyz; 0: any free port, which the agent logs. (If "
        "the port is taken, kured exits; careen's agent continues and reports the problem.)",
        live=False,
        bootstrap=True,
    )
    sleep: str = _ours(
        "auto",
        kinds.word("auto", "off"),
        "Whether an agent that has nothing to do replaces itself by a small program, which needs a fifth of the memory "
        "and wakes the agent. auto: if the next look is at least five minutes away. While it sleeps, a change of the "
        "ConfigMap takes effect within five minutes; `careen recheck` wakes it at once.",
        live=False,
    )
    log_format: str = _kured(
        "text", kinds.word("text", "json"), "Format of each line of the log.", live=False, bootstrap=True
    )
    log_level: str = _ours(
        "info",
        kinds.word("debug", "info", "warning", "error"),
        "The lowest level that is logged.",
        live=False,
        bootstrap=True,
    )


def flag(name: str) -> str:
    """On the command line and in the ConfigMap: `drain_delay` becomes `drain-delay`."""
    return name.replace("_", "-")


SETTINGS: dict[str, Setting] = {each.name: each.metadata["setting"] for each in fields(Settings)}
"""By field name, in the order of the tree."""

LISTS_OF_MAPPINGS = frozenset(flag(name) for name, setting in SETTINGS.items() if setting.kind.is_mapping)
"""Those that are lists of mappings, as written in the ConfigMap."""

DEFAULTS: dict[str, Any] = {each.name: each.default for each in fields(Settings)}


def variable(name: str, prefix: str) -> str:
    """`drain_delay` becomes `CAREEN_DRAIN_DELAY`."""
    return f"{prefix}_{name.upper()}"
