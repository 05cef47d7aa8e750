"""This gate refuses to let the node begin its drain or its reboot while it is unknown whether the host needs a reboot
or which boot the host runs, while the host's clock is wrong, and while a package manager works on the host."""

from __future__ import annotations

from careen.core.decision import Refusal
from careen.core.facts.observation import NeedAnswer, Unknown
from careen.core.facts.reasons import Code
from careen.core.facts.times import span
from careen.core.gates.question import ALWAYS, Cost, Gate, When, nothing
from careen.core.situation import Situation


def ask(situation: Situation, _when: When) -> Refusal | None:
    """Return a refusal for the first fact about the host that forbids a reboot. A fact that is unknown forbids a reboot
    too."""
    seen = situation.seen
    if seen.need.answer is NeedAnswer.UNKNOWN:
        return _no(Code.NEED_UNKNOWN, f"careen cannot tell whether the host asks for a reboot: {seen.need.detail}")
    if isinstance(seen.boot_id, Unknown):
        return _no(Code.BOOT_ID_UNKNOWN, f"the boot id cannot be read: {seen.boot_id.why}")
    if isinstance(seen.clock_skew_seconds, Unknown):
        return _no(
            Code.CLOCK_SKEW,
            f"the host's clock cannot be compared with the API server's clock: {seen.clock_skew_seconds.why}",
        )
    if abs(seen.clock_skew_seconds) > situation.policy.clock_skew_limit_seconds:
        direction = "ahead of" if seen.clock_skew_seconds > 0 else "behind"
        return _no(
            Code.CLOCK_SKEW,
            f"the host's clock is {span(round(abs(seen.clock_skew_seconds)))} {direction} the API server's",
        )
    if seen.need.package_manager:
        return _no(Code.PACKAGE_MANAGER, f"{seen.need.package_manager} is at work on the host")
    return None


def _no(code: Code, sentence: str) -> Refusal:
    return Refusal(gate=GATE.name, code=code, sentence=sentence)


GATE = Gate(
    name="host-state",
    ask=ask,
    when=ALWAYS,
    cost=Cost.CHEAP,
    needs=nothing,
)
