"""Maintenance: the node stays drained under its claim because a person asked for that. Then the agent puts it back into
service without a reboot, or verifies it after a reboot by hand."""

from __future__ import annotations

from dataclasses import replace

from careen.core.decision import Decision
from careen.core.facts import keys
from careen.core.facts.observation import NeedAnswer, PersonRequest, Wish
from careen.core.facts.phases import Phase
from careen.core.facts.progress import Mark
from careen.core.facts.reasons import Code
from careen.core.facts.times import rfc3339, span
from careen.core.people import asked
from careen.core.situation import Situation
from careen.core.steps.shared import failing, working
from careen.core.writing import NodeChange, Status, Stay, Transition, move, stay

LOOK_SECONDS = 10.0  # the phase lasts for hours; a person who hands the node back waits at most this long
_BY_HAND = "another client uncordoned the node: that ends its maintenance"


def begin(situation: Situation, request: PersonRequest) -> Decision:
    """Enter the phase with a drained node. The agent announces no reboot and does not ask the host for one."""
    return move(
        situation,
        Status(Code.MAINTENANCE, kept_sentence(situation, request)),
        Transition(
            Phase.MAINTENANCE,
            # No start instant: the report of a reboot by hand must not include the time of the maintenance.
            replace(situation.progress, drained=situation.mark(), drain_started_at=""),
            look=LOOK_SECONDS,
        ),
    )


def decide(situation: Situation) -> Decision:
    """Keep the node down. Put it back into service when the request ends or a person uncordons the node."""
    if (found := working.put_back(situation)) is not None:
        return found
    request = asked.kept(situation)
    if situation.progress.is_cordoned_by_us and not situation.node.unschedulable:
        return _hand_back(situation, Code.UNCORDONED_BY_HAND, _BY_HAND, {keys.REQUEST: None})
    if request is not None:
        return _since_handed_back(situation, Status(Code.MAINTENANCE, kept_sentence(situation, request)), None)
    if not situation.node.ready:
        return _wait_until_ready(situation)
    return _hand_back(
        situation, Code.HANDED_BACK, "the node was handed back, without a reboot", asked.done_with(situation)
    )


def after_boot(situation: Situation) -> Decision | None:
    """Decide on a new boot while a person keeps the node down: the claim continues. Return None if no person keeps the
    node down, because the node then verifies the boot."""
    if asked.kept(situation) is None:
        return None
    if situation.phase is Phase.MAINTENANCE:
        return decide(situation)
    if situation.phase not in {Phase.CLAIMING, Phase.DRAINING} or situation.progress.is_giving_back:
        return None
    progress = situation.progress
    return move(
        situation,
        Status(
            Code.REBOOTED,
            f"the node runs boot {situation.boot}, but nobody asked for a reboot: the maintenance goes on",
        ),
        Transition(
            situation.phase,
            replace(
                progress,
                boot_left=situation.boot,
                claimed=situation.mark() if progress.claimed else None,
                drain_started=situation.mark() if progress.drain_started else None,
                drained=None,
            ),
        ),
    )


def kept_sentence(situation: Situation, request: PersonRequest) -> str:
    """Return the sentence that people see during the phase. It does not change while the phase lasts."""
    word = "drain" if request.wish is Wish.DRAIN else "maintenance"
    why = f": {request.reason}" if request.reason else ""
    end = f"until {rfc3339(request.until)}, or " if request.until else ""
    return f"drained and kept down{why}; {end}until `careen {word} {situation.node.name} --end`"


def _wait_until_ready(situation: Situation) -> Decision:
    """Keep the claim while the node becomes ready. Halt the roll-out if that takes longer than it may after a
    reboot."""
    began = situation.progress.settle_started
    waited = situation.elapsed(began) or 0.0
    if waited > situation.policy.verify_timeout_seconds:
        sentence = f"the node is not ready, {span(round(waited))} after it was handed back"
        return failing.halted(situation, Code.NEVER_READY, sentence, progress=situation.progress)
    status = Status(Code.HANDED_BACK, "handed back, but the node is not ready yet")
    return _since_handed_back(situation, status, began or situation.mark())


def _since_handed_back(situation: Situation, status: Status, began: Mark | None) -> Decision:
    """Stay in the phase, and record `began`, the instant since which the node waits to become ready. None means that it
    does not wait."""
    if situation.progress.settle_started == began:
        return stay(situation, status, Stay(look=LOOK_SECONDS))
    record = replace(situation.progress, settle_started=began)
    return move(situation, status, Transition(Phase.MAINTENANCE, record, look=LOOK_SECONDS))


def _hand_back(situation: Situation, code: Code, sentence: str, annotations: dict[str, str | None]) -> Decision:
    """Restore cordon and labels in one patch, and remove the taint unless the host itself needs a reboot. The node then
    releases its claim once the displaced workloads are as healthy as before."""
    goes_on = situation.seen.need.answer is NeedAnswer.YES and situation.seen.need.request is None
    record, change = working.handed_back(situation, NodeChange(annotations=annotations), keeps_taint=goes_on)
    return move(situation, Status(code, sentence), Transition(Phase.SETTLING, record, change=change))
