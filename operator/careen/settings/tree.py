"""Every setting of an agent: its meaning, unit, off-switch, and the reason for its default.

Names, types, defaults and meanings of kured's 43 flags are kured's (1.23); the text says where a meaning differs.
`sources.py` defines the sources of values; `policy.py` builds the core's `Policy` from them."""

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
    """The properties of a setting other than its value."""

    kind: kinds.ValueKind
    help: str
    is_kureds: bool
    """Whether it is one of kured's 43: the agent reads those from KURED_<NAME> too."""
    is_live: bool
    """Whether a change in the ConfigMap takes effect at once; other settings need a restart of the agent."""
    bootstrap: bool
    """Whether the agent needs it before it can read the ConfigMap, which therefore cannot set it."""


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
    """The effective value of every setting. Durations are seconds."""

    # Who and where
    node_id: str = _kured("", kinds.NAME, "Name of the Node this agent serves. Required.", live=False, bootstrap=True)
    kubeconfig: str = _ours(
        "", kinds.PATH, "Kubeconfig file; empty: the service account files of the pod.", live=False, bootstrap=True
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
        "Name of the DaemonSet that carries the lock: the agents' own.",
        live=False,
        bootstrap=True,
    )
    config_map: str = _ours(
        "careen",
        kinds.NAME,
        "ConfigMap with settings (key config.yaml, the flags' names), followed live; empty: none.",
        live=False,
        bootstrap=True,
    )
    config_map_may_run_commands: bool = _ours(
        False,
        kinds.SWITCH,
        "The ConfigMap may set the commands that run as root on every host, and the signal to PID 1; false: only "
        "flags and environment may.",
        live=False,
        bootstrap=True,
    )
    config_map_may_name_files: bool = _ours(
        False,
        kinds.SWITCH,
        "The ConfigMap may name files that the agent opens as root, and the Prometheus that secrets are sent to; "
        "false: only flags and environment may.",
        live=False,
        bootstrap=True,
    )

    # Does the host want a reboot
    reboot_probes: tuple[str, ...] = _ours(
        (SENTINEL,),
        kinds.PROBE_NAMES,
        f"Probes, each of which can ask for a reboot: {', '.join(PROBES)}. docs/probes.md describes them.",
        live=False,
    )
    reboot_sentinel: tuple[str, ...] = _kured(
        ("/var/run/reboot-required",),
        kinds.PATHS,
        "File whose existence asks for a reboot, repeatable (kured: one); looked at every 2 s. Unreadable is unknown, "
        "never no.",
        live=False,
    )
    reboot_packages: GoRegexp | None = _ours(
        None,
        kinds.REGEXP,
        "The sentinel counts only if the list reboot-required.pkgs beside it (Debian, Ubuntu) has a package that "
        "matches; empty: always. Without the list the need is unknown.",
        live=False,
    )
    reboot_max_uptime: float = _ours(
        0.0,
        kinds.DURATION,
        "How long a host may run before the probe uptime asks for a reboot; 0: that probe is not used.",
        live=False,
    )
    reboot_sentinel_command: str = _kured(
        "",
        kinds.COMMAND,
        "Command instead of the file: exit code 0 asks for a reboot, 1 does not, others are unknown.",
        live=False,
    )
    period: float = _kured(
        3600.0,
        kinds.DURATION,
        "How often the sentinel command runs. Nothing else waits for it (in kured the whole loop does).",
    )
    sentinel_timeout: float = _ours(
        60.0, kinds.DEADLINE, "How long the sentinel may take before it counts as unknown.", live=False
    )
    host_root: str = _ours(
        "",
        kinds.PATH,
        "Where the host's file system is mounted: a prefix for the sentinel and the host lock; empty: it is our own.",
        live=False,
    )
    host_exec: str = _ours(
        "nsenter",
        kinds.word("nsenter", "direct"),
        "How commands reach the host: nsenter into PID 1's mount namespace, or direct for an agent outside a "
        "container.",
        live=False,
    )
    host_lock_dir: str = _ours(
        "/run/careen",
        kinds.PATH,
        "Folder on the host for a file lock that keeps a second agent of the node from working; empty: none.",
        live=False,
    )
    boot_id_file: str = _ours(boot_id.DEFAULT_FILE, kinds.PATH, "File with the host's boot id.", live=False)

    # How it reboots
    reboot_method: str = _kured(
        "command",
        kinds.word("command", "signal"),
        "Reboot by command, or by a signal to PID 1. The signal goes past systemd-logind: a kubelet with "
        "shutdownGracePeriod does not see the shutdown.",
        live=False,
    )
    reboot_command: str = _kured("/bin/systemctl reboot", kinds.COMMAND, "The command of method command.", live=False)
    reboot_signal: int = _kured(
        39, kinds.whole_number(1, 64), "The signal of method signal; 39 is SIGRTMIN+5, systemd's reboot.", live=False
    )
    reboot_timeout: float = _ours(
        60.0, kinds.DEADLINE, "How long the reboot command may run before its outcome counts as unclear.", live=False
    )
    reboot_proof: str = _ours(
        "boot-id",
        kinds.word("boot-id", "soft-reboots"),
        "What proves a reboot: another boot id, or with soft-reboots also one more soft reboot as systemd counts them "
        "(for --reboot-command='systemctl soft-reboot').",
        live=False,
    )
    reboot_delay: float = _kured(
        0.0, kinds.DURATION, "Pause between drain and reboot; the gates are asked again after it."
    )
    reboot_deadline: float = _ours(
        900.0,
        kinds.DEADLINE,
        "How long after the announcement a new boot must show; firmware of a large server takes ten minutes.",
    )
    verify_timeout: float = _ours(
        900.0, kinds.DEADLINE, "How long after the boot the node and its DaemonSet pods have to become ready."
    )
    reboot_loop_limit: int = _ours(
        1,
        kinds.whole_number(0),
        "How often the same need may repeat after a confirmed reboot before the roll-out halts.",
    )

    # The order of the nodes
    concurrency: int = _kured(
        1,
        kinds.AT_ONCE,
        "How many nodes may be down at once because of us; nodes down for other reasons count.",
    )
    order: str = _ours(
        "oldest",
        kinds.word("oldest", "zone", "fewest-moves"),
        "Order of the nodes. oldest: the oldest need first, with needs of the same hour the fewest pods first, and a "
        "started zone before the next; zone: never two zones at once; fewest-moves: the fewest pods to evict first, "
        "by each node's own count.",
    )
    budget: tuple[Budget, ...] = _ours(
        (),
        kinds.BUDGETS,
        "Limit for a group of nodes, repeatable: zone=1, control-plane=1 (always in force), "
        "topology:example.com/rack=1, selector:app=db=1; or a share of the group, rounded down but one at least: "
        "zone=25%.",
    )
    count_cordoned: bool = _ours(
        True,
        kinds.SWITCH,
        "A node with a cordon that is not careen's counts as down: with --concurrency=1 it stops the roll-out; "
        "false: only nodes that are not ready do.",
    )
    reboot_cordoned: bool = _ours(
        True,
        kinds.SWITCH,
        "Drain and reboot also a node with a cordon that is not careen's, and leave it cordoned, as kured does; "
        "false: the cordon keeps it from rebooting.",
    )
    lock_annotation: str = _kured(
        keys.LOCK_ANNOTATION, kinds.ANNOTATION, "Annotation of the DaemonSet that carries the lock.", live=False
    )
    lock_ttl: float = _kured(
        0.0,
        kinds.DURATION,
        "Accepted from kured. Time alone never frees a claim in careen: a node frees one when it reads the holder's "
        "Node and that proves that the claim has no holder.",
    )
    lock_release_delay: float = _kured(
        0.0,
        kinds.DURATION,
        "Pause between the node being back in service and the release of its claim; never after an undone drain.",
    )
    prefer_no_schedule_taint: str = _kured(
        keys.DEFAULT_TAINT_KEY,
        kinds.KEY,
        "Key of the soft taint set as soon as a reboot is needed; empty: no taint. (kured: off)",
    )
    minimum_interval: float = _ours(0.0, kinds.DURATION, "Least time between two reboots of a node; 0: none.")
    cluster_minimum_interval: float = _ours(
        0.0,
        kinds.DURATION,
        "Least time between the end of one reboot and the start of the next anywhere in the cluster; 0: none. With it "
        "nodes go one at a time, whatever --concurrency.",
    )

    # Other controllers of nodes
    protect_from_autoscalers: bool = _ours(
        True,
        kinds.SWITCH,
        "From its claim to its return to service a node carries scale-down-disabled of the cluster autoscaler and "
        "do-not-disrupt of Karpenter; false: careen does not touch these annotations.",
    )
    load_balancer_settle: float = _ours(
        0.0,
        kinds.DURATION,
        "How long load balancers have between the cordon and the first eviction: with it the node carries the label "
        "node.kubernetes.io/exclude-from-external-load-balancers; 0: neither.",
    )

    # Draining
    drain_delay: float = _kured(0.0, kinds.DURATION, "Pause between the claim and the cordon.")
    drain_timeout: float = _kured(0.0, kinds.DURATION, "How long a drain may take before it is undone; 0: no limit.")
    drain_grace_period: int = _kured(
        -1, kinds.whole_number(-1), "Grace seconds of evicted pods; -1: each pod's own, 0: at once."
    )
    drain_pod_selector: Selector | None = _kured(
        None, kinds.SELECTOR, "Evict only pods that match; the others still run when the node reboots."
    )
    pods_bound_to_node: str = _ours(
        "refuse",
        kinds.word("refuse", "stay"),
        "Pods whose owner's template names this node (spec.nodeName), so that they come back whenever they "
        "are evicted: refuse to drain, or leave the pods that were created so on the node, as DaemonSet pods are.",
    )
    drain_parallel: int = _ours(
        1,
        kinds.whole_number(1, 100),
        "How many evictions are under way at once. Only with 1 they keep the order that the forecast assumes.",
    )
    skip_wait_for_delete_timeout: int = _kured(
        0,
        kinds.whole_number(0),
        "Do not wait for pods that have been terminating for more than so many seconds; 0: always wait.",
    )
    force_reboot: bool = _kured(
        False,
        kinds.SWITCH,
        "Reboot even if --drain-timeout passed before the node was empty; never if the cordon failed.",
    )
    force_reboot_past_budgets: bool = _ours(
        False, kinds.SWITCH, "With --force-reboot: also when a disruption budget still keeps a pod on the node."
    )
    late_policy: str = _ours(
        "undo",
        kinds.word("undo", "reboot"),
        "The reaction to a refusal after the drain has finished: undo everything, or reboot all the same.",
    )
    settle_policy: str = _ours(
        "halt",
        kinds.word("halt", "continue"),
        "The reaction if displaced workloads are not as healthy as before in time: halt the roll-out, or go on.",
    )
    settle_timeout: float = _ours(
        600.0,
        kinds.DURATION,
        "How long displaced workloads have to become as healthy as before; 0 (only with --settle-policy=continue): "
        "the node does not wait for them.",
    )
    unknown_patience: float = _ours(
        600.0, kinds.DURATION, "How long a draining node waits for an unknown fact before the drain is undone."
    )
    failure_backoff: float = _ours(
        60.0,
        kinds.DURATION,
        "Pause after a failure that was undone, five times as long after a reboot command that failed; "
        "doubles with each in a row, up to an hour.",
    )

    # Gates
    reboot_days: tuple[int, ...] = _kured(
        tuple(range(7)), kinds.DAYS, "Days on which a reboot may begin; empty: never."
    )
    start_time: time = _kured(time(0, 0), kinds.TIME, "From this time of the day.")
    end_time: time = _kured(
        time(23, 59, 59), kinds.TIME, "Until this time of the day; earlier than the start: past midnight."
    )
    time_zone: tzinfo = _kured(UTC, kinds.ZONE, "Zone of days and times; Local: the agent's.")
    windows: tuple[ConfiguredWindow, ...] = _ours(
        (),
        list_kinds.WINDOWS,
        "Maintenance windows for groups of nodes, a list of mappings: name; days, start and end, or cron and duration; "
        "time-zone (default: --time-zone), nodes (a label selector), exclude (dates, FIRST..LAST). A node may reboot "
        "in any window that selects it. --reboot-days, --start-time and --end-time are then for the nodes that none "
        "selects; without those, such a node does not reboot.",
    )
    blocking_pod_selector: tuple[Selector, ...] = _kured(
        (),
        kinds.SELECTORS,
        "A running pod of the node that matches forbids the reboot; repeatable. In the environment: one per line.",
    )
    blocking_pods: tuple[ConfiguredBlocker, ...] = _ours(
        (),
        list_kinds.BLOCKING_PODS,
        "Pods that forbid reboots, a list of mappings: name, pods (a label selector), namespaces (default: all), scope "
        "(node: only of the node that they run on; group: of every node with the same value of the label `group`; "
        "cluster: of every node), longest (after this time an alert tells; default: never).",
    )
    prometheus_url: str = _kured(
        "", kinds.URL, "Prometheus whose active alerts forbid a reboot; empty: not asked. No answer forbids it, too."
    )
    prometheus_timeout: float = _ours(10.0, kinds.DEADLINE, "How long Prometheus may take.")
    prometheus_token_file: str = _ours(
        "",
        kinds.PATH,
        "File with a bearer token for Prometheus, read for each question, so that it may rotate; empty: none.",
    )
    prometheus_username: str = _ours("", kinds.TEXT, "Name for Prometheus' basic authentication; empty: none.")
    prometheus_password_file: str = _ours(
        "", kinds.PATH, "File with the password that goes with the name, read for each question."
    )
    prometheus_ca_file: str = _ours(
        "", kinds.PATH, "File with the certificates that Prometheus' own is checked against; empty: those of the image."
    )
    prometheus_client_certificate_file: str = _ours(
        "", kinds.PATH, "File with the certificate that the agent shows to Prometheus; empty: none."
    )
    prometheus_client_key_file: str = _ours(
        "", kinds.PATH, "File with its key; empty: it stands in the certificate's file."
    )
    alertmanager_url: str = _ours(
        "",
        kinds.URL,
        "Alertmanager (API v2) whose active alerts forbid a reboot, without those that are silenced or inhibited; "
        "empty: not asked. No answer forbids it, too. Beside --prometheus-url both count; that one knows no silences.",
    )
    alertmanager_token_file: str = _ours(
        "", kinds.PATH, "File with a bearer token for Alertmanager, read for each question; empty: none."
    )
    alertmanager_ca_file: str = _ours(
        "",
        kinds.PATH,
        "File with the certificates that Alertmanager's own is checked against; empty: those of the image.",
    )
    alertmanager_silence: float = _ours(
        0.0,
        kinds.DURATION,
        "How long a silence of the node's alerts lasts that the agent creates in --alertmanager-url before it reboots "
        "the node, 1m to 24h. It is extended while the node is down, and ended when the node is back; 0: none.",
    )
    alertmanager_silence_matchers: tuple[silence_matchers.Matchers, ...] = _ours(
        silence_matchers.DEFAULT,
        list_kinds.SILENCES,
        "Which alerts are silenced: matchers of one silence, repeatable; $NODE is the node's name. In the environment: "
        "one per line.",
    )
    health_queries: tuple[ConfiguredQuery, ...] = _ours(
        (),
        list_kinds.HEALTH_QUERIES,
        "Questions to --prometheus-url, a list of mappings: name, query (PromQL; $NODE is the node's name), holds "
        '(what each sample must be: "== 0", "< 0.9"), fresh (the oldest sample that counts, default 5m), labels '
        "(matchers; other samples do not count). An error, no sample or an old one forbids the reboot, too.",
    )
    alert_filter_regexp: GoRegexp | None = _kured(
        None, kinds.REGEXP, "Alert names to ignore; careen's own, Careen…, are ignored anyway."
    )
    alert_filter_match_only: bool = _kured(
        False, kinds.SWITCH, "The other way round: only alerts that match forbid a reboot."
    )
    alert_firing_only: bool = _kured(False, kinds.SWITCH, "Pending alerts do not count.")
    forecast: str = _ours(
        "refuse",
        kinds.word("refuse", "warn", "off"),
        "The reaction to a bad forecast of where the node's pods would land: refuse to drain, only warn, or make none.",
    )
    forecast_pending_allowed: int = _ours(0, kinds.whole_number(0), "How many pods may have no place to go.")
    forecast_unknown_allowed: int = _ours(
        0, kinds.whole_number(0), "How many pods may be unpredictable (other schedulers, unallocated devices)."
    )
    forecast_patience: float = _ours(
        3600.0, kinds.DURATION, "How long the forecast may refuse before the agent reports that as a warning."
    )
    forecast_timeout: float = _ours(
        60.0, kinds.DEADLINE, "How long the simulation may take before the forecast counts as unknown."
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
    annotate_nodes: bool = _kured(False, kinds.SWITCH, "Set kured's two annotations as well.")
    pre_reboot_node_labels: tuple[tuple[str, str], ...] = _kured(
        (), kinds.LABELS, "Labels set with the cordon, and restored afterwards."
    )
    post_reboot_node_labels: tuple[tuple[str, str], ...] = _kured(
        (), kinds.LABELS, "Labels set when the node is back in service."
    )
    notify_url: tuple[Target, ...] = _kured(
        (),
        kinds.MESSAGE_URLS,
        "Where messages to people go: shoutrrr URLs (repeatable; kured: one), apprise URLs, and URLs of workflows of "
        "Microsoft Teams. They hold secrets: better in the environment, from a Secret, one per line.",
    )
    notify_url_file: tuple[str, ...] = _ours(
        (),
        kinds.PATHS,
        "Files with such URLs, one on each line, or folders of them, as a Secret is mounted; read for each message.",
    )
    slack_hook_url: Target | None = _kured(
        None,
        kinds.SLACK_HOOK,
        "Address of a Slack webhook (deprecated by kured); counts only without --notify-url and --notify-url-file.",
    )
    notify_timeout: float = _ours(
        15.0, kinds.DEADLINE, "How long sending a message may take; nothing else waits for it."
    )
    slack_username: str = _kured("kured", kinds.TEXT, "Accepted from kured, which never used it.")
    slack_channel: str = _kured("", kinds.TEXT, "Accepted from kured, which never used it.")
    message_template_drain: str = _kured(
        "Draining node %s",
        kinds.TEMPLATE,
        "Message when a drain begins; %s is the node.",
    )
    message_template_reboot: str = _kured("Rebooting node %s", kinds.TEMPLATE, "Message when a node reboots.")
    message_template_uncordon: str = _kured(
        "Node %s rebooted & uncordoned successfully!", kinds.TEMPLATE, "Message when a node is back."
    )
    message_template_blocked: str = _ours(
        "", kinds.TEMPLATE, "Message when a node has been held back for too long; empty: in careen's own words."
    )
    message_template_halted: str = _ours(
        "", kinds.TEMPLATE, "Message when the roll-out halts; empty: in careen's own words."
    )
    message_template_done: str = _ours(
        "",
        kinds.TEMPLATE_OF_FIGURES,
        "Message when the last node is back and no node waits; empty: in careen's own words.",
    )
    notify_on: tuple[str, ...] = _ours(
        tuple(each.value for each in Occasion),
        kinds.OCCASIONS,
        "Occasions for messages to people; empty: none.",
    )
    notify_blocked_after: float = _ours(
        86400.0,
        kinds.DURATION,
        "How long a gate may hold a node back before people are told, and told again a week later; 0: never. Closed "
        "windows and waiting in line do not count.",
    )
    cluster_name: str = _ours("", kinds.TEXT, "What {cluster} in message templates stands for.")
    metrics_host: str = _kured(
        "",
        kinds.LISTEN_HOST,
        "Address of /metrics, /healthz and /readyz; empty: all, of IPv6 and IPv4.",
        live=False,
        bootstrap=True,
    )
    metrics_port: int = _kured(
        8080,
        kinds.whole_number(0, 65535),
        "Port of the same; 0: any free one, named in the log. (kured dies if it is taken; here the agent goes "
        "on and says so.)",
        live=False,
        bootstrap=True,
    )
    log_format: str = _kured(
        "text", kinds.word("text", "json"), "Format of every line of the log.", live=False, bootstrap=True
    )
    log_level: str = _ours(
        "info", kinds.word("debug", "info", "warning", "error"), "How much is logged.", live=False, bootstrap=True
    )


def flag(name: str) -> str:
    """`drain_delay` → `drain-delay`: the name on the command line and in the ConfigMap."""
    return name.replace("_", "-")


SETTINGS: dict[str, Setting] = {each.name: each.metadata["setting"] for each in fields(Settings)}
"""By field name, in the order of the tree."""

LISTS_OF_MAPPINGS = frozenset(flag(name) for name, setting in SETTINGS.items() if setting.kind.is_mapping)
"""Names in the ConfigMap of the settings that are lists of mappings."""

DEFAULTS: dict[str, Any] = {each.name: each.default for each in fields(Settings)}


def variable(name: str, prefix: str) -> str:
    """`drain_delay` → `CAREEN_DRAIN_DELAY`."""
    return f"{prefix}_{name.upper()}"
