"""The probe `zypper`: SUSE's `zypper needs-rebooting`, which checks the flag of libzypp's boot plugin. The probe `suse`
checks it without zypper."""

from __future__ import annotations

from careen.core.facts.observation import Need
from careen.host.commands import Exited, Outcome
from careen.host.probes.said import IN_ENGLISH, no, nothing, yes

_COMMAND = "zypper needs-rebooting"
ARGV = (*IN_ENGLISH, "zypper", "--non-interactive", "needs-rebooting")

_REBOOT_NEEDED = 102  # ZYPPER_EXIT_INF_REBOOT_NEEDED, zypper(8)


def judge(outcome: Outcome) -> Need:
    """The output is not read, because zypper has different codes for its answers and its failures."""
    match outcome:
        case Exited(code=code) if code == _REBOOT_NEEDED:
            return yes(f"`{_COMMAND}` exited with {code}: a core library or service was updated")
        case Exited(code=0):
            return no(f"`{_COMMAND}` exited with 0: no reboot is needed")
    return nothing(_COMMAND, outcome)
