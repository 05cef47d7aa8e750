"""The phase Maintenance: the node stays drained and keeps its claim, because a person asked for that. When the request
ends, the node returns to service without a reboot. If a person rebooted the host, the agent first verifies the new
boot."""

from __future__ import annotations

from careen.core.decision import Decision
from careen.core.drain import slow_pods
from careen.core.facts import keys
from careen.core.facts.observation import NeedAnswer, PersonRequest, RequestKind
from careen.core.facts.phases import Phase
from careen.core.facts.progress import Mark
from careen.core.facts.reasons import Code
from careen.core.facts.times import rfc3339, span
from careen.core.node.restoring import NodeChange
from careen.core.outcomes import Status, Stay, Transition, move, stay
from careen.core.people import requests
from careen.core.situation import Situation
from careen.core.steps.shared import failing, working
from scheduler_core.values import replace_value as replace

LOOK_SECONDS = 10.0  # the phase lasts for hours; a person who hands the node back waits at most this long
_BY_HAND = "another client uncordoned the node, which ends its maintenance"


def begin(situation: Situation, request: PersonRequest) -> Decision:
    """Keep a drained node down instead of its reboot."""
    return move(
        situation,
        Status(Code.MAINTENANCE, kept_sentence(situation, request)),
        Transition(
            Phase.MAINTENANCE,
            # No start instant: the report of a reboot by hand must not include the time of the maintenance.
            replace(situation.progress, drained=situation.mark(), drain_started_at=""),
            change=NodeChange(annotations=slow_pods.after_success(situation)),
            look=LOOK_SECONDS,
        ),
    )


def decide(situation: Situation) -> Decision:
    """Keep the node down until the person's request ends or a person uncordons the node."""
    if found := working.put_back(situation):
        return found
    request = requests.to_keep_down(situation)
    if situation.progress.is_cordoned_by_us and not situation.node.unschedulable:
        return _return_to_service(situation, Code.UNCORDONED_BY_HAND, _BY_HAND, {keys.REQUEST: None})
    if request is not None:
        return _since_maintenance(situation, Status(Code.MAINTENANCE, kept_sentence(situation, request)), None)
    if not situation.node.ready:
        return _wait_until_ready(situation)
    return _return_to_service(
        situation, Code.MAINTENANCE_ENDED, "the maintenance ended without a reboot", requests.removal(situation)
    )


def after_boot(situation: Situation) -> Decision | None:
    """A new boot while a person keeps the node down: the claim continues. None if the boot has to be verified."""
    if requests.to_keep_down(situation) is None:
        return None
    if situation.phase is Phase.MAINTENANCE:
        return decide(situation)
    if situation.phase not in {Phase.CLAIMING, Phase.DRAINING} or situation.progress.is_releasing:
        return None
    progress = situation.progress
    return move(
        situation,
        Status(
            Code.REBOOTED,
            f"the host rebooted (boot {situation.boot}) without a request of careen: the maintenance continues",
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
    """What people see meanwhile. The sentence changes only if the person's request changes."""
    subcommand = "drain" if request.kind is RequestKind.DRAIN else "maintenance"
    command = f"`careen {subcommand} {situation.node.name} --end`"
    reason = f": {request.reason}" if request.reason else ""
    if not request.until:
        return f"the node is drained and stays down until {command}{reason}"
    return f"the node is drained and stays down until {rfc3339(request.until)} or until {command}{reason}"


def _wait_until_ready(situation: Situation) -> Decision:
    """Keep the claim while the node becomes ready; after --verify-timeout fail and keep it."""
    began = situation.progress.settle_started
    waited = situation.elapsed(began) or 0.0
    if waited > situation.policy.verify_timeout_seconds:
        sentence = f"the node is not ready, {span(round(waited))} after its maintenance ended"
        return failing.halted(situation, Code.NEVER_READY, sentence, progress=situation.progress)
    status = Status(Code.MAINTENANCE_ENDED, "the maintenance ended, but the node is not ready yet")
    return _since_maintenance(situation, status, began or situation.mark())


def _since_maintenance(situation: Situation, status: Status, began: Mark | None) -> Decision:
    """Stay, and record since when the agent waits for a ready node; None while it does not wait."""
    if situation.progress.settle_started == began:
        return stay(situation, status, Stay(look=LOOK_SECONDS))
    record = replace(situation.progress, settle_started=began)
    return move(situation, status, Transition(Phase.MAINTENANCE, record, look=LOOK_SECONDS))


def _return_to_service(situation: Situation, code: Code, sentence: str, annotations: dict[str, str | None]) -> Decision:
    """One patch restores cordon and labels, and removes the soft taint unless the host itself needs a reboot."""
    goes_on = situation.seen.need.answer is NeedAnswer.YES and situation.seen.need.request is None
    record, change = working.back_in_service(situation, NodeChange(annotations=annotations), keeps_taint=goes_on)
    return move(situation, Status(code, sentence), Transition(Phase.SETTLING, record, change=change))
