"""How a decision is put on the Node: one merge patch holds label, record, sentence and refusals, so they never
disagree.

Every step ends in one of four ways: `want` more evidence, `stay`, `move`, or `undo`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

from msgspec import field

from careen.core import autoscalers, own_taint
from careen.core.actions import Action, PatchNode, PostEvent, WriteLock
from careen.core.decision import Decision, Reason, Refusal
from careen.core.facts import keys
from careen.core.facts.memory import Memory, Told
from careen.core.facts.observation import NodeView, SelfTest, Taint
from careen.core.facts.phases import Evidence, Phase, is_allowed
from careen.core.facts.policy import Policy
from careen.core.facts.progress import Progress, to_annotation
from careen.core.facts.reasons import REASONS, Code
from careen.core.facts.times import from_rfc3339, rfc3339
from careen.core.facts.untrusted import json_of, short
from careen.core.lock import content as lock
from careen.core.lock import order
from careen.core.lock.content import LockContent
from careen.core.people import asked
from careen.core.plain_text import one_line
from careen.core.situation import Situation
from scheduler_core.simulation.forecast import Forecast, Outcome, PodForecast
from scheduler_core.values import Value

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

SOON_SECONDS = 0.0  # after an own write: the next step follows at once
PASSING_SECONDS = 3.0  # what has passed by then is not worth a request, nor an event
RETELL_SECONDS = 15.0  # a sentence that only changes its numbers is rewritten at most this often
_SHOWN_PODS = 110  # a full node by the kubelet's default; 256 KiB of annotations are the limit
_SHOWN_NODES = 20  # equally good nodes shown per pod
_QUIET = frozenset(
    {
        Code.TAKING_CLAIM,
        Code.GIVING_BACK,
        Code.REBOOT_ANNOUNCED,
        Code.HOME,
        Code.NO_NEED,
        Code.DRAINED,
        Code.TAINT_SPREAD,
    }
)


class NodeChange(Value, kw_only=True):
    """What a patch changes besides the record: everything defaults to leaving it as it is."""

    labels: Mapping[str, str | None] = field(default_factory=dict)
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    taints: tuple[Taint, ...] | None = None
    unschedulable: bool | None = None


NO_CHANGE = NodeChange()


def want(situation: Situation, *evidence: Evidence, memory: Memory | None = None) -> Decision:
    """Ask the shell for evidence before anything is decided."""
    return Decision(
        phase=situation.phase,
        reason=Reason(code=Code.TAKING_CLAIM, sentence="more has to be known first"),
        memory=memory or situation.memory,
        look_again_seconds=0.0,
        wants=frozenset(evidence),
    )


def stay(
    situation: Situation,
    code: Code,
    sentence: str,
    *,
    look: float,
    actions: Iterable[Action] = (),
    refusals: tuple[Refusal, ...] = (),
    memory: Memory | None = None,
    label: str | None = None,
    is_silent: bool = False,
    annotations: Mapping[str, str | None] | None = None,
) -> Decision:
    """Remain in the phase; tell the Node when what it says would be out of date. `is_silent` leaves the Node alone."""
    sentence, before = one_line(sentence), memory or situation.memory
    refusals = with_since(situation, refusals)
    patch = (
        None
        if is_silent
        else _telling(replace(situation, memory=before), Reason(code=code, sentence=sentence), refusals, label)
    )
    if patch and annotations:
        patch = replace(patch, annotations={**patch.annotations, **annotations})
    is_told = patch is not None or is_silent or situation.phase is Phase.IDLE
    after = _having_said(before, code) if is_told else before
    return Decision(
        phase=situation.phase,
        reason=Reason(code=code, sentence=sentence),
        look_again_seconds=look,
        refusals=refusals,
        memory=_told_at(after, situation.seen.uptime) if patch else after,
        actions=(
            *actions,
            *([patch] if patch else []),
            *(_event(situation, before, code, sentence) if is_told else ()),
        ),
    )


def move(
    situation: Situation,
    phase: Phase,
    code: Code,
    sentence: str,
    *,
    progress: Progress,
    look: float = SOON_SECONDS,
    change: NodeChange = NO_CHANGE,
    refusals: tuple[Refusal, ...] = (),
    then: Iterable[Action] = (),
    first: Iterable[Action] = (),
    send_before: float | None = None,
    memory: Memory | None = None,
    label: str | None = None,
) -> Decision:
    """Write the record for a phase (another one, or the same with a changed record) in one patch, with what
    else changes."""
    assert is_allowed(situation.phase, phase), f"no move {situation.phase} → {phase}"
    sentence, before = one_line(sentence), memory or situation.memory
    refusals = with_since(situation, refusals)
    patch = PatchNode(
        purpose=f"{phase}: {code}",
        resource_version=situation.node.resource_version,
        taints=change.taints,
        unschedulable=change.unschedulable,
        send_before=send_before,
        adds_taint=change.taints is not None and not set(change.taints) <= set(situation.node.taints),
        labels={keys.REBOOT_LABEL: label or LABEL[phase], **change.labels},
        annotations={
            **_said(situation, phase, sentence),
            **_ready_since(situation, label),
            keys.REFUSALS: _refusals_json(refusals),
            keys.PROGRESS: to_annotation(replace(progress, phase=phase.value)),
            **_kept_settings(situation, progress),
            **_warning(situation),
            **change.annotations,
        },
    )
    return Decision(
        phase=phase,
        reason=Reason(code=code, sentence=sentence),
        look_again_seconds=look,
        refusals=refusals,
        memory=_told_at(_having_said(before, code), situation.seen.uptime),
        actions=(*first, patch, *then, *_event(situation, before, code, sentence)),
    )


def _kept_settings(situation: Situation, progress: Progress) -> dict[str, str | None]:
    """The settings that the record's claim rests on, in the record's own patch; they go with the claim."""
    stands = situation.node.annotations.get(keys.SETTINGS)
    wanted = (situation.policy.kept_settings or None) if progress.claim else None
    return {} if stands == wanted else {keys.SETTINGS: wanted}


def _warning(situation: Situation) -> dict[str, str | None]:
    """What the reboot would lose, as far as this turn asked for it; nothing where the Node says so already."""
    test = situation.seen.self_test
    if not isinstance(test, SelfTest) or (test.warning or None) == situation.node.annotations.get(keys.WARNING):
        return {}
    return {keys.WARNING: test.warning or None}


def annotations_of_a_need(policy: Policy) -> tuple[str, ...]:
    """What a node carries only while it wants a reboot: removed when it comes home, an earlier agent's leftover
    on an idle one."""
    kured = (keys.KURED_IN_PROGRESS,) if policy.annotate_nodes else ()
    return (*keys.OF_A_NEED, keys.RETRY, *kured)


def go_home(
    situation: Situation,
    code: Code,
    sentence: str,
    *,
    first: Iterable[Action] = (),
    then: Iterable[Action] = (),
    annotations: Mapping[str, str | None] | None = None,
) -> Decision:
    """Remove everything of ours from the Node: nothing is claimed and the need is over."""
    assert is_allowed(situation.phase, Phase.IDLE)
    ours = annotations_of_a_need(situation.policy)
    patch = PatchNode(
        purpose=f"{Phase.IDLE}: {code}",
        resource_version=situation.node.resource_version,
        labels={keys.REBOOT_LABEL: None},
        annotations={
            **{key: None for key in ours if key in situation.node.annotations},
            **autoscalers.taken_back(situation.node.annotations),
            **asked.done_with(situation),
            **(annotations or {}),
        },
        taints=without_our_taint(situation),
    )
    return Decision(
        phase=Phase.IDLE,
        reason=Reason(code=code, sentence=sentence),
        look_again_seconds=5.0,
        memory=Memory(
            node_uid=situation.node.uid,
            is_reconciled=situation.memory.is_reconciled,
            lock_due=situation.memory.lock_due,
            agents=situation.memory.agents,
            told=Told(code=code.value),
        ),
        actions=(*first, patch, *then, *_event(situation, situation.memory, code, sentence)),
    )


def undo(
    situation: Situation,
    phase: Phase,
    code: Code,
    sentence: str,
    *,
    progress: Progress | None = None,
    then: Iterable[Action] = (),
    refusals: tuple[Refusal, ...] = (),
    memory: Memory | None = None,
    annotations: Mapping[str, str | None] | None = None,
    label: str | None = None,
) -> Decision:
    """Give everything back in one patch (cordon, labels, and the taint where the need is gone), then the claim.

    The patch comes first and changes the Node's version, so that a cordon or an announcement still under way
    can no longer land. The claim id stays on the Node until the entry has left the lock."""
    record = replace(
        progress or situation.progress,
        is_giving_back=True,
        is_cordoned_by_us=False,
        prior_unschedulable=False,
        prior_labels={},
        owners=(),
        drain_started=None,
        drain_started_at="",
        drained=None,
        displaced=0,
    )
    return move(
        situation,
        phase,
        code,
        sentence,
        progress=record,
        refusals=refusals,
        memory=memory,
        label=label,
        change=as_before(situation, annotations=annotations),
        then=(*removal(situation), *then),
    )


def removal(situation: Situation) -> tuple[WriteLock, ...]:
    """The write that takes our entry out of the lock, if the lock is understood and has it."""
    content = situation.lock
    if not isinstance(content, LockContent) or situation.own_entry is None:
        return ()
    return (
        write_lock(
            situation, "give the claim back", lock.remove(content, situation.node.name, situation.progress.claim)
        ),
    )


def write_lock(situation: Situation, purpose: str, content: LockContent) -> WriteLock:
    """The compare-and-swap from the content that was read to this one."""
    reading = situation.reading
    return WriteLock(
        purpose=purpose,
        expected_resource_version=reading.resource_version,
        daemonset_uid=reading.daemonset_uid,
        content=lock.render(content),
    )


def as_before(
    situation: Situation,
    *,
    labels: Mapping[str, str | None] | None = None,
    annotations: Mapping[str, str | None] | None = None,
    taints: tuple[Taint, ...] | None = None,
) -> NodeChange:
    """What puts the Node back as it was before its drain: the cordon, the labels and what keeps autoscalers away;
    `labels`, `annotations` and `taints` besides."""
    return NodeChange(
        labels={**prior_labels(situation), **(labels or {})},
        unschedulable=prior_cordon(situation),
        annotations={**autoscalers.taken_back(situation.node.annotations), **(annotations or {})},
        taints=taints,
    )


def prior_cordon(situation: Situation) -> bool | None:
    """`unschedulable` as it was before us; None (leave it) when the cordon is not ours."""
    progress = situation.progress
    return False if progress.is_cordoned_by_us and situation.node.unschedulable else None


def prior_labels(situation: Situation) -> dict[str, str | None]:
    """The labels that we changed, as they were; one that somebody changed since is left alone."""
    ours = situation.policy.pre_reboot_labels
    now = situation.node.labels
    return {
        key: prior
        for key, prior in situation.progress.prior_labels.items()
        if key not in ours or now.get(key) == ours[key]
    }


def without_our_taint(situation: Situation) -> tuple[Taint, ...] | None:
    """The Node's taints without ours; None (leave them) when none is ours."""
    return own_taint.without(
        situation.node, own_taint.keys_of_ours(situation.node, situation.progress, situation.policy)
    )


def with_our_taint(situation: Situation) -> tuple[tuple[Taint, ...] | None, str]:
    """The Node's taints with ours (None: leave them), and the key under which one is ours then (empty: none is)."""
    node, wanted = situation.node, situation.policy.taint_key
    ours = own_taint.keys_of_ours(node, situation.progress, situation.policy)
    kept = own_taint.without(node, ours - {wanted})
    taints = node.taints if kept is None else kept
    if wanted is None:
        return kept, ""
    if own_taint.our_taint(node, wanted) is not None:
        return kept, wanted if wanted in ours else ""
    return (*taints, Taint(key=wanted, effect=keys.TAINT_EFFECT)), wanted


def forecast_annotation(situation: Situation) -> dict[str, str | None]:
    """The forecast in short, for people and for the comparison afterwards: counts, and where the moving pods
    may land."""
    forecast = situation.seen.forecast
    if not isinstance(forecast, Forecast):
        return {}
    moving = forecast.with_outcome(Outcome.MOVES)[:_SHOWN_PODS]
    short = {
        "at": forecast.made_at,
        "counts": {outcome.value: count for outcome, count in forecast.counts.items()},
        "pods": {pod.title: _shown(pod) for pod in moving},
    }
    shares = {pod.title: [round(share, 3) for share in pod.shares[:_SHOWN_NODES]] for pod in moving if pod.shares}
    if shares:
        short["shares"] = shares
    return {keys.FORECAST: json.dumps(short, separators=(",", ":"))}


def _shown(pod: PodForecast) -> list[str]:
    """The nodes; a last sign says that there may be others, so that nobody takes a landing elsewhere for a miss."""
    is_whole = len(pod.landing) <= _SHOWN_NODES and not pod.is_cut
    return [*pod.landing[:_SHOWN_NODES], *(() if is_whole else (keys.AND_OTHERS,))]


def with_since(situation: Situation, refusals: tuple[Refusal, ...]) -> tuple[Refusal, ...]:
    """The refusals, each with the instant since when the same gate has said the same code."""
    before = {(each.gate, each.code): each.since for each in stored_refusals(situation.node)}
    return tuple(
        replace(each, since=each.since or before.get((each.gate, each.code)) or situation.seen.now) for each in refusals
    )


def stored_refusals(node: NodeView) -> tuple[Refusal, ...]:
    """The refusals that the Node carries; what cannot be read is left out, it is for people only."""
    rows = json_of(node.annotations.get(keys.REFUSALS))
    return (
        tuple(refusal for row in rows[:_MOST_REFUSALS] if (refusal := _refusal(row))) if isinstance(rows, list) else ()
    )


def _refusal(row: object) -> Refusal | None:
    match row:
        case {"gate": str(gate), "code": str(code), "sentence": str(sentence), **more} if code in _CODES:
            since, remedy = from_rfc3339(more.get("since")), short(str(more.get("remedy") or ""))
            return Refusal(gate=gate, code=Code(code), sentence=short(sentence), since=since, remedy=remedy)
        case _:
            return None


_CODES = frozenset(Code)
_MOST_REFUSALS = 50  # more than there are gates


def _refusals_json(refusals: tuple[Refusal, ...]) -> str | None:
    rows = [
        {
            "gate": each.gate,
            "code": each.code.value,
            "sentence": each.sentence,
            "since": rfc3339(each.since) if each.since else None,
            **({"remedy": each.remedy} if each.remedy else {}),
        }
        for each in refusals
    ]
    return json.dumps(rows, separators=(",", ":"), ensure_ascii=False) if rows else None


def _said(situation: Situation, phase: Phase, sentence: str) -> dict[str, str | None]:
    stands = situation.node.annotations.get(keys.PHASE) == phase.value
    since = situation.node.annotations.get(keys.SINCE) if stands else None
    return {keys.PHASE: phase.value, keys.REASON: sentence, keys.SINCE: since or rfc3339(situation.seen.now)}


def _telling(
    situation: Situation, reason: Reason, refusals: tuple[Refusal, ...], label: str | None
) -> PatchNode | None:
    node, phase, code, sentence = situation.node, situation.phase, reason.code, reason.sentence
    if phase is Phase.IDLE:
        return None  # nothing of ours is on an idle node, no sentence either
    wanted = label or LABEL[phase]
    stored = stored_refusals(node)
    warning = _warning(situation)
    is_news = (
        bool(warning)
        or node.labels.get(keys.REBOOT_LABEL) != wanted
        or ({(each.gate, each.code) for each in stored} != {(each.gate, each.code) for each in refusals})
    )
    told = situation.memory.told
    age = situation.seen.uptime - told.at
    pause = RETELL_SECONDS if told.code == code.value else 0.0 if REASONS[code].is_warning else PASSING_SECONDS
    if not is_news and (node.annotations.get(keys.REASON) == sentence or age < pause):
        return None
    return PatchNode(
        purpose=f"{phase}: {code}",
        resource_version=node.resource_version,
        labels={keys.REBOOT_LABEL: wanted},
        annotations={
            **_said(situation, phase, sentence),
            **_ready_since(situation, wanted),
            keys.REFUSALS: _refusals_json(refusals),
            **warning,
        },
    )


def _ready_since(situation: Situation, label: str | None) -> dict[str, str | None]:
    """The instant, when the node shows itself ready with this patch."""
    is_news = label == order.READY and situation.node.labels.get(keys.REBOOT_LABEL) != order.READY
    return {keys.READY_SINCE: rfc3339(situation.seen.now)} if is_news else {}


def _told_at(memory: Memory, uptime: float) -> Memory:
    return replace(memory, told=replace(memory.told, at=uptime))


def _having_said(memory: Memory, code: Code) -> Memory:
    if code is Code.NO_NEED:
        return replace(memory, told=replace(memory.told, code=""))  # what is said after that is news again
    return memory if code in _QUIET else replace(memory, told=replace(memory.told, code=code.value))


def _event(situation: Situation, memory: Memory, code: Code, sentence: str) -> tuple[PostEvent, ...]:
    if code in _QUIET or memory.told.code == code.value or situation.node.annotations.get(keys.REASON) == sentence:
        return ()
    return (PostEvent(code=code, sentence=sentence, is_warning=REASONS[code].is_warning),)
