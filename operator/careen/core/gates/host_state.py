"""Refuses while it is unknown whether the host needs a reboot or which boot it runs, while its clock is wrong, and
while a package manager works on it."""

from __future__ import annotations

from careen.core.facts.observation import NeedAnswer, Unknown
from careen.core.facts.reasons import Code
from careen.core.facts.times import span
from careen.core.gates.question import Cost, No, gate
from careen.core.situation import Situation


@gate(
    "host-state",
    cost=Cost.CHEAP,
)
def host_state(situation: Situation) -> No | None:
    need, boot, skew = situation.seen.need, situation.seen.boot_id, situation.seen.clock_skew_seconds
    if need.answer is NeedAnswer.UNKNOWN:
        return No(Code.NEED_UNKNOWN, f"careen cannot tell whether the host asks for a reboot: {need.detail}")
    if isinstance(boot, Unknown):
        return No(Code.BOOT_ID_UNKNOWN, f"the boot id cannot be read: {boot.why}")
    if isinstance(skew, Unknown):
        return No(Code.CLOCK_SKEW, f"the host's clock cannot be compared with the API server's clock: {skew.why}")
    if abs(skew) > situation.policy.clock_skew_limit_seconds:
        direction = "ahead of" if skew > 0 else "behind"
        return No(Code.CLOCK_SKEW, f"the host's clock is {span(round(abs(skew)))} {direction} the API server's")
    return No(Code.PACKAGE_MANAGER, f"{need.package_manager} is at work on the host") if need.package_manager else None
