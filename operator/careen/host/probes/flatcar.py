"""The probe `flatcar`: yes if Flatcar's update engine has written an update that waits for the next boot."""

from __future__ import annotations

import re

from careen.core.facts.observation import Need
from careen.host.commands import Exited, Outcome
from careen.host.probes.said import no, nothing, yes

_COMMAND = "update_engine_client -status"
ARGV = tuple(_COMMAND.split())

_STATE = re.compile(r"^CURRENT_OP=(UPDATE_STATUS_[A-Z_]+)$", re.MULTILINE)
_VERSION = re.compile(r"^NEW_VERSION=(\d[0-9A-Za-z.+-]{0,50})$", re.MULTILINE)
_WAITS = "UPDATE_STATUS_UPDATED_NEED_REBOOT"


def judge(outcome: Outcome) -> Need:
    """Yes only in the state in which an update waits for the next boot."""
    if isinstance(outcome, Exited) and outcome.code == 0 and (state := _STATE.search(outcome.output)):
        version = _VERSION.search(outcome.output)
        if state[1] != _WAITS:
            return no(f"the update engine is in state {state[1]}")
        update = f"version {version[1]}" if version else "an update"
        return yes(f"the update engine has written {update} and waits for a reboot")
    return nothing(_COMMAND, outcome)
