"""What a step may end with. One merge patch of the Node holds label, record, sentence and refusals, so that these
always agree: `stay` (in the phase), `move` (to another), `undo` (the drain), `go_home` (to Idle)."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import field

from careen.core.actions import Action, AskReboot, PatchNode, PostEvent, WriteLock
from careen.core.decision import Decision, Reason, Refusal, ended_json, refusals_json, stored_refusals, with_since
from careen.core.drain import baseline
from careen.core.facts import keys
from careen.core.facts.memory import Memory, Reported
from careen.core.facts.observation import NodeView
from careen.core.facts.phases import Evidence, Phase, is_allowed
from careen.core.facts.progress import Progress, to_annotation
from careen.core.facts.reasons import Code
from careen.core.facts.times import rfc3339
from careen.core.lock import changes, notation, order
from careen.core.lock.content import LockContent
from careen.core.node.restoring import NO_CHANGE, NodeChange, as_before, as_idle
from careen.core.people import requests
from careen.core.plain_text import one_line
from careen.core.situation import Situation, known
from scheduler_core.values import Value
from scheduler_core.values import replace_value as replace

LABEL = {
    Phase.IDLE: None,
    Phase.WAITING: "required",
    Phase.CLAIMING: "in-progress",
    Phase.DRAINING: "in-progress",
    Phase.MAINTENANCE: "in-progress",
    Phase.REBOOTING: "in-progress",
    Phase.VERIFYING: "in-progress",
    Phase.SETTLING: "in-progress",
    Phase.FAILED: "failed",
}

SOON_SECONDS = 0.0  # after a write of our own the next turn follows at once
PASSING_SECONDS = 3.0  # a state that ends sooner is not worth a request or an Event
RETELL_SECONDS = 15.0  # the agent rewrites a sentence of the same code at most this often
QUIET = frozenset({Code.TAKING_CLAIM, Code.RELEASING, Code.HOME, Code.NO_NEED, Code.TAINT_SPREAD})
"""Codes without an Event: the next code tells their step."""


class Status(Value):
    """What people see of a decision: annotations and label of the Node, and an Event."""

    code: Code
    sentence: str
    refusals: tuple[Refusal, ...] = ()
    label: str | None = None  # the value of the reboot label; None: the phase's
    is_silent: bool = False  # the Node's annotations do not change; only allowed with `stay`


class Stay(Value, kw_only=True):
    """What the agent does while the node stays in its phase."""

    look: float  # seconds until the next turn
    actions: tuple[Action, ...] = ()  # before the Node's own patch
    annotations: Mapping[str, str | None] = field(default_factory=dict)  # added to the Node's patch, if there is one


class Transition(Value):
    """Another phase, or a new record in the same phase."""

    phase: Phase
    progress: Progress
    change: NodeChange = NO_CHANGE
    first: tuple[Action, ...] = ()  # before the Node's patch
    then: tuple[Action, ...] = ()  # after it
    look: float = SOON_SECONDS


def waiting_label(node: NodeView) -> str:
    """The label of a waiting node, as it is."""
    return order.READY if node.labels.get(keys.REBOOT_LABEL) == order.READY else "required"


def want(situation: Situation, kinds: frozenset[Evidence]) -> Decision:
    """A provisional decision: the agent reads these facts and decides again."""
    return Decision(
        phase=situation.phase,
        reason=Reason(code=Code.TAKING_CLAIM, sentence="the agent must read more facts before it decides"),
        memory=situation.memory,
        look_again_seconds=0.0,
        wants=kinds,
    )


def stay(situation: Situation, status: Status, how: Stay) -> Decision:
    """Stay in the phase. The Node is patched only if careen's annotations or label on it are out of date."""
    status = _completed(situation, status)
    patch = None if status.is_silent else _telling(situation, status)
    if patch and how.annotations:
        patch = replace(patch, annotations={**patch.annotations, **how.annotations})
    is_told = patch is not None or status.is_silent or situation.phase is Phase.IDLE
    after = _with_event(situation.memory, status.code) if is_told else situation.memory
    return Decision(
        phase=situation.phase,
        reason=Reason(code=status.code, sentence=status.sentence),
        look_again_seconds=how.look,
        refusals=status.refusals,
        memory=_written_at(after, situation.seen.uptime) if patch else after,
        actions=(*how.actions, *([patch] if patch else []), *(_event(situation, status) if is_told else ())),
    )


def move(situation: Situation, status: Status, to: Transition) -> Decision:
    """Move to a phase, or write a new record in the same phase, with all other changes of the Node in one patch."""
    assert is_allowed(situation.phase, to.phase), (
        f"the table MOVES does not allow the change from {situation.phase} to {to.phase}"
    )
    status = _completed(situation, status)
    event = _event(situation, status)
    is_last = any(isinstance(each, AskReboot) for each in to.then)  # afterwards the host may be gone at any moment
    after = (*event, *to.then) if is_last else (*to.then, *event)
    return Decision(
        phase=to.phase,
        reason=Reason(code=status.code, sentence=status.sentence),
        look_again_seconds=to.look,
        refusals=status.refusals,
        memory=_written_at(_with_event(situation.memory, status.code), situation.seen.uptime),
        actions=(*to.first, _patch(situation, status, to), *after),
    )


def _completed(situation: Situation, status: Status) -> Status:
    refusals = with_since(status.refusals, situation.node, situation.seen.now)
    return replace(status, sentence=one_line(status.sentence), refusals=refusals)


def _patch(situation: Situation, status: Status, to: Transition) -> PatchNode:
    change, phase = to.change, to.phase
    return PatchNode(
        purpose=f"{phase}: {status.code}",
        resource_version=situation.node.resource_version,
        taints=change.taints,
        unschedulable=change.unschedulable,
        send_before=change.send_before,
        adds_taint=change.taints is not None and not set(change.taints) <= set(situation.node.taints),
        labels={keys.REBOOT_LABEL: status.label or LABEL[phase], **change.labels},
        annotations={
            **_said(situation, phase, status.sentence),
            **_ready_since(situation, status.label),
            keys.REFUSALS: refusals_json(status.refusals),
            **_refused(situation, status),
            keys.PROGRESS: to_annotation(replace(to.progress, phase=phase.value)),
            **_kept_settings(situation, to.progress),
            **_warning(situation),
            **change.annotations,
        },
    )


def _kept_settings(situation: Situation, progress: Progress) -> dict[str, str | None]:
    """The settings under which the node took its claim, stored as long as the record has the claim."""
    stands = situation.node.annotations.get(keys.SETTINGS)
    wanted = (situation.policy.kept_settings or None) if progress.claim else None
    return {} if stands == wanted else {keys.SETTINGS: wanted}


def _refused(situation: Situation, status: Status) -> dict[str, str | None]:
    """How long each code has refused, if a refusal ends with this patch."""
    told = ended_json(status.refusals, situation.node, situation.seen.now)
    return {keys.REFUSED: told} if told else {}


def _warning(situation: Situation) -> dict[str, str | None]:
    """The self-test's warning that a reboot would lose something, or its removal; {} without a result or a change."""
    test = known(situation.seen.self_test)
    if test is None or (test.warning or None) == situation.node.annotations.get(keys.WARNING):
        return {}
    return {keys.WARNING: test.warning or None}


def go_home(
    situation: Situation,
    status: Status,
    *,
    first: tuple[Action, ...] = (),
    then: tuple[Action, ...] = (),
    annotations: Mapping[str, str | None] | None = None,
) -> Decision:
    """Move to Idle. The patch removes careen's label, soft taint, record and all annotations of a need. `first` comes
    before that patch, `then` after it."""
    assert is_allowed(situation.phase, Phase.IDLE)
    change = as_idle(situation.node, situation.progress, situation.policy)
    patch = PatchNode(
        purpose=f"{Phase.IDLE}: {status.code}",
        resource_version=situation.node.resource_version,
        labels=change.labels,
        annotations={**change.annotations, **requests.removal(situation), **(annotations or {})},
        taints=change.taints,
    )
    return Decision(
        phase=Phase.IDLE,
        reason=Reason(code=status.code, sentence=status.sentence),
        look_again_seconds=5.0,
        memory=Memory(
            node_uid=situation.node.uid,
            is_reconciled=situation.memory.is_reconciled,
            lock_due=situation.memory.lock_due,
            agents=situation.memory.agents,
            losses=situation.memory.losses,
            reported=Reported(code=status.code.value),
        ),
        actions=(*first, patch, *then, *_event(situation, status)),
    )


def undo(situation: Situation, status: Status, to: Transition) -> Decision:
    """Undo the drain in one patch (cordon, labels, the annotations for autoscalers), then release the claim: at once if
    nothing was displaced, otherwise when the displaced workloads are healthy (`steps/shared/release.py`). The soft
    taint stays, unless `to.change` has another list of taints.

    The patch comes before the release: it changes the Node's resourceVersion, so a late request of this agent to cordon
    the node or to announce a reboot gets a conflict. The claim id stays on the Node until it has left the lock.
    """
    settles = bool(baseline.compared(to.progress.owners)) and situation.policy.settle_timeout_seconds > 0
    record = replace(
        to.progress,
        is_releasing=True,
        is_cordoned_by_us=False,
        prior_unschedulable=False,
        prior_labels={},
        owners=to.progress.owners if settles else (),
        settle_started=situation.mark() if settles else None,
        drain_started=None,
        drain_started_at=to.progress.drain_started_at if settles else "",
        drained=None,
        displaced=0,
    )
    return move(
        situation,
        status,
        replace(
            to,
            progress=record,
            change=as_before(situation.node, situation.progress, situation.policy, to.change),
            then=(*(() if settles else removal(situation)), *to.then),
        ),
    )


def removal(situation: Situation) -> tuple[WriteLock, ...]:
    """The write that removes this node's claim from the lock; () if the lock has no such claim or is not understood.
    The lock keeps how healthy the workloads were that an undone drain displaced and that have not recovered."""
    if situation.content is None or situation.own_entry is None:
        return ()
    left = without_own_claim(situation, situation.content)
    if situation.progress.is_releasing and (rows := baseline.due(situation)):
        left = replace(left, unsettled=baseline.still_owed(left.unsettled, rows, known(situation.seen.owners)))
    return (write_lock(situation, "release the claim", left),)


def without_own_claim(situation: Situation, content: LockContent) -> LockContent:
    """The lock without this node's claim, with the instant of the release if --cluster-interval needs it."""
    left = changes.remove(content, situation.node.name, situation.progress.claim)
    if situation.policy.cluster_interval_seconds and situation.progress.verify_started:
        left = changes.released(left, rfc3339(situation.server_now))
    return left


def write_lock(situation: Situation, purpose: str, content: LockContent) -> WriteLock:
    """Write this content, unless the lock has changed since this turn read it."""
    reading = situation.reading
    return WriteLock(
        purpose=purpose,
        expected_resource_version=reading.resource_version,
        daemonset_uid=reading.daemonset_uid,
        content=notation.render(content),
    )


def _said(situation: Situation, phase: Phase, sentence: str) -> dict[str, str | None]:
    stands = situation.node.annotations.get(keys.PHASE) == phase.value
    since = situation.node.annotations.get(keys.SINCE) if stands else None
    return {keys.PHASE: phase.value, keys.REASON: sentence, keys.SINCE: since or rfc3339(situation.seen.now)}


def _telling(situation: Situation, status: Status) -> PatchNode | None:
    node, phase, code, sentence = situation.node, situation.phase, status.code, status.sentence
    if phase is Phase.IDLE:
        return None  # an idle node carries nothing of ours, not even a sentence
    wanted = status.label or LABEL[phase]
    stored = stored_refusals(node)
    warning = _warning(situation)
    is_news = (
        bool(warning)
        or node.labels.get(keys.REBOOT_LABEL) != wanted
        or ({(each.gate, each.code) for each in stored} != {(each.gate, each.code) for each in status.refusals})
    )
    told = situation.memory.reported
    age = situation.seen.uptime - told.at
    pause = RETELL_SECONDS if told.code == code.value else 0.0 if code.is_warning else PASSING_SECONDS
    if not is_news and (node.annotations.get(keys.REASON) == sentence or age < pause):
        return None
    return PatchNode(
        purpose=f"{phase}: {code}",
        resource_version=node.resource_version,
        labels={keys.REBOOT_LABEL: wanted},
        annotations={
            **_said(situation, phase, sentence),
            **_ready_since(situation, wanted),
            keys.REFUSALS: refusals_json(status.refusals),
            **_refused(situation, status),
            **warning,
        },
    )


def _ready_since(situation: Situation, label: str | None) -> dict[str, str | None]:
    """The present instant, if this patch changes careen's label to `ready`."""
    is_news = label == order.READY and situation.node.labels.get(keys.REBOOT_LABEL) != order.READY
    return {keys.READY_SINCE: rfc3339(situation.seen.now)} if is_news else {}


def _written_at(memory: Memory, uptime: float) -> Memory:
    return replace(memory, reported=replace(memory.reported, at=uptime))


def _with_event(memory: Memory, code: Code) -> Memory:
    if code is Code.NO_NEED:
        return replace(memory, reported=replace(memory.reported, code=""))  # so that the next code gets an Event again
    return memory if code in QUIET else replace(memory, reported=replace(memory.reported, code=code.value))


def _event(situation: Situation, status: Status) -> tuple[PostEvent, ...]:
    code, sentence = status.code, status.sentence
    is_old = situation.memory.reported.code == code.value or situation.node.annotations.get(keys.REASON) == sentence
    if code in QUIET or is_old:
        return ()
    return (PostEvent(code=code, sentence=sentence, is_warning=code.is_warning),)
