"""Which settings the ConfigMap must not set: with them, its editor could become root on every host, because the agent
runs commands, opens files and sends secrets as root.

The DaemonSet may set them, because its editor can run anything on the hosts anyway. One of its flags can let the
ConfigMap set them too.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from careen.services import notification_urls
from careen.settings import kinds, scheduler_config
from careen.settings.lists import request_headers
from careen.settings.tree import SETTINGS, Settings, flag, variable


class Power(StrEnum):
    """The kinds of dangerous settings. Each value is the flag that allows them in the ConfigMap."""

    COMMANDS = "config_map_may_run_commands"
    FILES = "config_map_may_name_files"


# How commands run, which probes run some, and which signal PID 1 gets: SIGRTMIN+4 powers the host off.
_COMMANDS = frozenset({"host_exec", "reboot_probes", "reboot_proof", "reboot_signal"})
# The agent checks whether these files exist, and opens none but the list of packages beside them, whose name is fixed.
# Whoever names another file only learns whether it exists, or asks for a reboot.
_LOOKED_FOR = frozenset({"reboot_sentinel"})
_SENT_TO = {
    "prometheus_url": (
        "prometheus_token_file",
        "prometheus_password_file",
        "prometheus_client_certificate_file",
        "prometheus_headers",
    ),
    "alertmanager_url": ("alertmanager_token_file", "alertmanager_headers"),
}
_HEADERS = frozenset({"prometheus_headers", "alertmanager_headers"})

_WHY = {
    Power.COMMANDS: "the setting decides what runs as root on every host",
    Power.FILES: "the setting decides which file the agent opens as root on every host",
}


def _power(name: str) -> Power | None:
    kind = SETTINGS[name].kind
    if kind is kinds.COMMAND or name in _COMMANDS:
        return Power.COMMANDS
    if kind in (kinds.PATH, kinds.PATHS, kinds.SCHEDULER_CONFIG) and name not in _LOOKED_FOR:
        return Power.FILES
    return None


POWERS: dict[str, Power] = {
    name: power for name, setting in SETTINGS.items() if not setting.bootstrap and (power := _power(name)) is not None
}
"""The dangerous settings by field name, each with the flag that allows it. A new command or path is included
automatically."""


def refusal(name: str, texts: Sequence[str], settings: Settings) -> str:
    """Why the ConfigMap must not set this, and what to do instead; "" if it may.

    A flag such as --config-map-may-run-commands allows all of one kind (see `Power`). If `settings` have a secret for a
    server, the ConfigMap must not set that server's URL, because the agent would send the secret there.
    """
    power, why = _needed(name, texts, settings)
    if not why or (power is not None and getattr(settings, power)):
        return ""
    return (
        f"the setting {flag(name)} is not allowed in the ConfigMap: {why}; set --{flag(name)} or "
        f"{variable(name, 'CAREEN')} on the DaemonSet"
    ) + (f", or add --{flag(power)} to the DaemonSet to allow the setting in the ConfigMap" if power else "")


def _needed(name: str, texts: Sequence[str], settings: Settings) -> tuple[Power | None, str]:
    if name in _SENT_TO:
        secret = next((each for each in _SENT_TO[name] if _has_secret(each, getattr(settings, each))), "")
        return (
            (Power.FILES, f"the agent would send the secret in --{flag(secret)} to the server in {flag(name)}")
            if secret
            else (None, "")
        )
    if name == "scheduler_config" and all(not text or scheduler_config.is_key(text) for text in map(str.strip, texts)):
        return None, ""  # empty, or a key of the ConfigMap itself
    if name == "notify_url" and any(notification_urls.is_native(text) for text in texts):
        return Power.FILES, "a URL in apprise's format can name a file, and apprise would open that file as root"
    if name == "notify_url" and any(notification_urls.shapes_a_request(text) for text in texts):
        return None, (
            "a generic URL there may have no login and only the parameters template and disabletls, because every "
            "agent sends the request whose method, headers, body or query the others choose"
        )
    if name in _HEADERS:
        return _needed_for_headers(texts)
    power = POWERS.get(name)
    return power, _WHY[power] if power else ""


def _has_secret(name: str, value: Any) -> bool:
    return any(map(request_headers.may_be_secret, value)) if name in _HEADERS else bool(value)


def _needed_for_headers(texts: Sequence[str]) -> tuple[Power | None, str]:
    """Only a tenant is allowed; what is no header gets another message."""
    for text in (line for each in texts for line in kinds.one_per_line(each)):
        try:
            found = request_headers.header(text)
        except ValueError:
            continue
        if found.file:
            return Power.FILES, _WHY[Power.FILES]
        if request_headers.may_be_secret(found):
            return None, (
                f"only the tenant of a request may be set there ({', '.join(request_headers.TENANTS)}), because every "
                "agent sends these headers"
            )
    return None, ""
