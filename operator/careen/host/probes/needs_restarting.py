"""The probe `needs-restarting`: Red Hat's `needs-restarting -r` from yum-utils, DNF 4's plugins or DNF 5.

All three exit with 1 if a reboot is needed, and with 0 if not, but also with 1 if they fail. So the printed sentence
counts, and the exit code must agree with it.
"""

from __future__ import annotations

import re

from careen.core.facts.observation import Need
from careen.host.commands import Exited, Outcome
from careen.host.probes.said import IN_ENGLISH, a_few, no, nothing, yes

_COMMAND = "needs-restarting -r"
ARGV = (*IN_ENGLISH, *_COMMAND.split())

_IS_REQUIRED = re.compile(r"^Reboot is required\b", re.MULTILINE)
_IS_NOT = re.compile(r"^Reboot (?:should not be|is probably not) necessary\b", re.MULTILINE)
_PACKAGE = re.compile(r"^ {2}(?:\* )?(\S+)(?: -> \S+)?$", re.MULTILINE)


def judge(outcome: Outcome) -> Need:
    """Yes with the packages that need the reboot."""
    match outcome:
        case Exited(code=1, output=output) if _IS_REQUIRED.search(output):
            names = list(dict.fromkeys(_PACKAGE.findall(output)))
            return yes(f"`{_COMMAND}` says that a reboot is required{f', for {a_few(names)}' if names else ''}")
        case Exited(code=0, output=output) if _IS_NOT.search(output):
            return no(f"`{_COMMAND}` says that no reboot is necessary")
    return nothing(_COMMAND, outcome)
