"""Settings that contradict each other, and settings that are allowed but probably a mistake. `settings/sources.py` asks
when it has all sources; unknown and unreadable settings it finds itself."""

from __future__ import annotations

from careen.core.people import templates
from careen.services.wire.asking import without_login
from careen.settings.checks import probing
from careen.settings.tree import SETTINGS, Settings, flag


def contradictions(settings: Settings) -> list[str]:
    """One sentence for each contradiction."""
    found = missing_node_name(settings)
    if settings.reboot_method == "command" and not settings.reboot_command.strip():
        found.append(
            "--reboot-command is empty, but --reboot-method is command: give a command, or use --reboot-method=signal"
        )
    found += probing.contradictions(settings)
    if not settings.boot_id_file:
        found.append(
            "--boot-id-file is empty, so the agent could not find out whether the host rebooted: name the file, or "
            "leave the setting out"
        )
    if settings.alert_filter_match_only and settings.alert_filter_regexp is None:
        found.append(
            "--alert-filter-match-only needs --alert-filter-regexp: without it no alert could ever forbid a reboot"
        )
    if (settings.alert_filter_regexp or settings.alert_firing_only) and not (
        settings.prometheus_url or settings.alertmanager_url
    ):
        found.append(
            "--alert-filter-regexp and --alert-firing-only need --prometheus-url or --alertmanager-url, because "
            "they filter the alerts of these servers"
        )
    if settings.health_queries and not settings.prometheus_url:
        found.append("--health-queries needs --prometheus-url, because the queries go to Prometheus")
    found += _credentials(settings)
    if settings.scheduler_config.startswith("configmap:") and not settings.config_map:
        found.append("--scheduler-config names a key of the ConfigMap, but --config-map is empty")
    if settings.force_reboot_past_budgets and not settings.force_reboot:
        found.append("--force-reboot-past-budgets needs --force-reboot")
    if settings.settle_policy == "halt" and not settings.settle_timeout:
        found.append(
            "--settle-timeout=0 with --settle-policy=halt would halt the roll-out after every reboot: give a "
            "time, or --settle-policy=continue"
        )
    return found + _silence(settings) + _twice(settings)


def missing_node_name(settings: Settings) -> list[str]:
    """One problem if the agent does not know its Node, otherwise none."""
    if settings.node_id:
        return []
    return [
        "the agent does not know which Node it serves: give --node-id, or CAREEN_NODE_ID from the pod's spec.nodeName"
    ]


def remarks(settings: Settings) -> list[str]:
    """On settings that are allowed but probably a mistake."""
    found = probing.remarks(settings)
    if settings.force_reboot and not settings.drain_timeout:
        found.append(
            "--force-reboot does nothing without --drain-timeout: a drain without a time limit is never forced"
        )
    if not settings.reboot_days:
        found.append("--reboot-days is empty: no node will ever reboot")
    if (settings.notify_url or settings.notify_url_file) and settings.slack_hook_url:
        found.append("--slack-hook-url has no effect with --notify-url: as in kured, only --notify-url is used")
    found += [
        f"--{flag(name)} contains the field {{cluster}}, but --cluster-name is empty"
        for name in SETTINGS
        if name.startswith("message_template_")
        and not settings.cluster_name
        and "cluster" in templates.fields_of(getattr(settings, name))
    ]
    found += [f"--notify-url: {target.remark}" for target in settings.notify_url if target.remark]
    if settings.prometheus_url.startswith("http://") and (
        settings.prometheus_token_file or settings.prometheus_username
    ):
        found.append(
            "--prometheus-url is not encrypted: anyone who can read the network traffic learns the credentials"
        )
    if settings.alertmanager_url.startswith("http://") and settings.alertmanager_token_file:
        found.append("--alertmanager-url is not encrypted: anyone who can read the network traffic learns the token")
    if without_login(settings.prometheus_url) != settings.prometheus_url:
        found.append(
            "--prometheus-url contains a user name and a password: give them as --prometheus-username and "
            "--prometheus-password-file"
        )
    if settings.lock_ttl:
        found.append(
            "--lock-ttl alone frees no claim: an agent frees a claim when the Node of its holder proves that no drain "
            "or reboot uses the claim; --lock-ttl only delays the release of the claim of a missing Node, if it is "
            "longer than --reboot-deadline"
        )
    return found


def _credentials(settings: Settings) -> list[str]:
    """Credentials for Prometheus must be of one kind and complete."""
    found = []
    given = [
        name
        for name in SETTINGS
        if name.startswith("prometheus_")
        and name not in ("prometheus_url", "prometheus_timeout")
        and getattr(settings, name)
    ]
    if given and not settings.prometheus_url:
        found.append(f"--{flag(given[0])} needs --prometheus-url, because only requests to Prometheus use this setting")
    found += [
        f"--{flag(name)} needs --alertmanager-url, because only requests to Alertmanager use this setting"
        for name in ("alertmanager_token_file", "alertmanager_ca_file", "alertmanager_headers")
        if getattr(settings, name) and not settings.alertmanager_url
    ]
    if settings.prometheus_token_file and settings.prometheus_username:
        found.append("--prometheus-token-file and --prometheus-username are two kinds of credentials: keep one of them")
    if bool(settings.prometheus_username) is not bool(settings.prometheus_password_file):
        found.append("--prometheus-username and --prometheus-password-file belong together: give both")
    if settings.prometheus_client_key_file and not settings.prometheus_client_certificate_file:
        found.append("--prometheus-client-key-file needs --prometheus-client-certificate-file")
    return found


_SHORTEST_SILENCE, _LONGEST_SILENCE = 60.0, 86400.0


def _silence(settings: Settings) -> list[str]:
    seconds, found = settings.alertmanager_silence, list[str]()
    if seconds and not settings.alertmanager_url:
        found.append("--alertmanager-silence needs --alertmanager-url, because the agent creates silences there")
    if seconds and not settings.alertmanager_silence_matchers:
        found.append(
            "--alertmanager-silence needs --alertmanager-silence-matchers, because they select the alerts to silence"
        )
    if seconds and not _SHORTEST_SILENCE <= seconds <= _LONGEST_SILENCE:
        found.append(
            "--alertmanager-silence: expected 1m to 24h, or 0; the agent extends the silence while the node is down"
        )
    return found


def _twice(settings: Settings) -> list[str]:
    """What the settings contain twice, such as two entries with the same name."""
    found = []
    for name in ("pre_reboot_node_labels", "post_reboot_node_labels"):
        given = [key for key, _ in getattr(settings, name)]
        found += [
            f"--{flag(name)} sets the label `{key}` twice: keep one of them"
            for key in sorted({key for key in given if given.count(key) > 1})
        ]
    entries = {
        "windows": [each.window.name for each in settings.windows],
        "blocking_pods": [each.rule.name for each in settings.blocking_pods],
        "health_queries": [each.name for each in settings.health_queries],
    }
    found += [
        f"--{flag(setting)} has two entries named {name}: give each its own name"
        for setting, names in entries.items()
        for name in sorted({name for name in names if names.count(name) > 1})
    ]
    groups = [(each.kind, each.key, each.selector.text if each.selector else "") for each in settings.budget]
    if len(set(groups)) < len(groups):
        found.append("--budget has two limits for the same group: keep one of them")
    return found
