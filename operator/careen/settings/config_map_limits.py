"""What the ConfigMap may not say by itself: whoever may edit it would be root on every host.

The agent runs commands, opens files and sends secrets as root. Those settings come from the DaemonSet, whose editors
can run anything on the hosts anyway, unless a switch on the DaemonSet lets the ConfigMap set them.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from careen.services import notification_urls
from careen.settings import kinds, scheduler_config
from careen.settings.tree import SETTINGS, Settings, flag, variable


class Power(StrEnum):
    """What a setting gives to whoever may write it, by the name of the switch that lets the ConfigMap have it."""

    COMMANDS = "config_map_may_run_commands"
    FILES = "config_map_may_name_files"


# How commands run, which probes run some, and which signal PID 1 gets: SIGRTMIN+4 powers the host off.
_COMMANDS = frozenset({"host_exec", "reboot_probes", "reboot_proof", "reboot_signal"})
# Its files are looked for and not opened, but for a list of packages under a name of its own: whoever names another one
# learns whether it exists, or asks for a reboot.
_LOOKED_FOR = frozenset({"reboot_sentinel"})
_SENT_TO = {
    "prometheus_url": ("prometheus_token_file", "prometheus_password_file", "prometheus_client_certificate_file"),
    "alertmanager_url": ("alertmanager_token_file",),
}

_WHY = {
    Power.COMMANDS: "it decides what runs as root on every host",
    Power.FILES: "it decides which file the agent opens as root on every host",
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
"""By field name: a new command or path is among them unless it is named above."""


def refusal(name: str, texts: Sequence[str], settings: Settings) -> str:
    """Why the ConfigMap may not set this, and what to do instead; empty where it may.

    `settings`: the switches, and the secrets that would be sent.
    """
    power, why = _needed(name, texts, settings)
    if power is None or getattr(settings, power):
        return ""
    return (
        f"is refused: {why}; give --{flag(name)} or {variable(name, 'CAREEN')} on the DaemonSet, or let the "
        f"ConfigMap set it with --{flag(power)} there"
    )


def _needed(name: str, texts: Sequence[str], settings: Settings) -> tuple[Power | None, str]:
    if name in _SENT_TO:
        secret = next((each for each in _SENT_TO[name] if getattr(settings, each)), "")
        return (Power.FILES, f"what --{flag(secret)} names would be sent there") if secret else (None, "")
    if name == "scheduler_config" and all(not text or scheduler_config.is_key(text) for text in map(str.strip, texts)):
        return None, ""  # nothing, or a key of the ConfigMap itself
    if name == "notify_url" and any(notification_urls.is_native(text) for text in texts):
        return Power.FILES, "apprise opens files as root where a URL of its own names them"
    power = POWERS.get(name)
    return power, _WHY[power] if power else ""
