"""The gates once more, with the node drained: what a refusal means then.

A person's word undoes the drain. A fact that is not known stops it for a while, then undoes it. Every other refusal follows --late-policy.
"""

from __future__ import annotations

from dataclasses import replace

from careen.core.decision import Decision, Refusal
from careen.core.gates import asked, hold, host_state, missing
from careen.core.gates.question import When
from careen.core.phases import Phase
from careen.core.policy import LatePolicy
from careen.core.reasons import Code
from careen.core.situation import Situation
from careen.core.writing import stay, undo, want

_LOOK_SECONDS = 2.0


def decide(situation: Situation) -> Decision | None:
    """None when the reboot may go on."""
    for gate in asked(When.BEFORE_REBOOT):
        if lacking := missing(situation, (gate,)):
            return want(situation, *lacking)
        refused = gate.ask(situation, When.BEFORE_REBOOT)
        if refused is None:
            continue
        if gate is host_state.GATE or refused.code is Code.LOCK_UNKNOWN:
            return wait_patiently(situation, refused)
        if gate is hold.GATE or situation.policy.late_policy is LatePolicy.UNDO:
            return undo(situation, Phase.WAITING, _code(refused, is_word=gate is hold.GATE), f"{refused.sentence}: the drain is undone", refusals=(refused,))
    return None


def wait_patiently(situation: Situation, refused: Refusal) -> Decision:
    """Nothing moves until the fact is known; beyond the patience everything is undone."""
    since = situation.memory.unknown_since
    since = situation.seen.uptime if since is None else since
    if situation.seen.uptime - since > situation.policy.unknown_patience_seconds:
        return undo(
            situation, Phase.WAITING, refused.code, f"{refused.sentence}; for too long: the drain is undone", refusals=(refused,),
            memory=replace(situation.memory, unknown_since=None),
        )
    return stay(
        situation, refused.code, refused.sentence, look=_LOOK_SECONDS, refusals=(refused,), memory=replace(situation.memory, unknown_since=since),
    )


def _code(refused: Refusal, *, is_word: bool) -> Code:
    return refused.code if is_word else Code.LATE_REFUSAL
