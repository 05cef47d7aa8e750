"""Turns what a step has decided into a `Decision` with its writes: one merge patch of the Node holds label, record,
sentence and refusals, so that these always agree.

A step is the function that decides for a node in its phase. Nearly every step ends with one of these functions: `want`
(read more facts first), `stay` (in the phase), `move` (to another phase), `undo` (the drain), `go_home` (to the phase
Idle).
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from msgspec import field

from careen.core import autoscalers, own_taint
from careen.core.actions import Action, PatchNode, PostEvent, WriteLock
from careen.core.decision import Decision, Reason, Refusal
from careen.core.facts import keys
from careen.core.facts.memory import Memory, Reported
from careen.core.facts.observation import NodeView, SelfTest, Taint
from careen.core.facts.phases import Evidence, Phase, is_allowed
from careen.core.facts.policy import Policy
from careen.core.facts.progress import Progress, to_annotation
from careen.core.facts.reasons import REASONS, Code
from careen.core.facts.times import from_rfc3339, rfc3339
from careen.core.facts.untrusted import json_of, number, short
from careen.core.lock import content as lock
from careen.core.lock import order
from careen.core.lock.content import LockContent
from careen.core.people import asked
from careen.core.plain_text import one_line
from careen.core.situation import Situation
from scheduler_core.simulation.forecast import Forecast, Outcome, PodForecast
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

SOON_SECONDS = 0.0  # after a write of our own the next step follows at once
PASSING_SECONDS = 3.0  # a state that ends sooner is not worth a request or an Event
RETELL_SECONDS = 15.0  # the agent rewrites a sentence of the same code at most this often
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


class Status(Value):
    """What people see of a decision: in annotations and in the label on the Node, and in an Event."""

    code: Code
    sentence: str
    refusals: tuple[Refusal, ...] = ()
    label: str | None = None  # the value of the reboot label; None: the phase's
    is_silent: bool = False  # the Node's annotations do not change; only allowed with `stay`


class Stay(Value, kw_only=True):
    """What the agent does while the node stays in its phase."""

    look: float  # seconds until the next round of the agent's loop
    actions: tuple[Action, ...] = ()  # before the Node's own patch
    annotations: Mapping[str, str | None] = field(default_factory=dict)  # added to the Node's patch, if there is one


class NodeChange(Value, kw_only=True):
    """What a patch changes on the Node besides careen's record. A field with its default value changes nothing."""

    labels: Mapping[str, str | None] = field(default_factory=dict)
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    taints: tuple[Taint, ...] | None = None
    unschedulable: bool | None = None
    send_before: float | None = None  # the agent must not send the patch after this uptime


NO_CHANGE = NodeChange()


class Transition(Value):
    """A change to another phase, or a new record for the same phase: the record to write on the Node, the actions
    before that write (`first`), and the actions after that write (`then`)."""

    phase: Phase
    progress: Progress
    change: NodeChange = NO_CHANGE
    first: tuple[Action, ...] = ()  # before the Node's patch
    then: tuple[Action, ...] = ()  # after it
    look: float = SOON_SECONDS


def want(situation: Situation, *evidence: Evidence) -> Decision:
    """Return a provisional decision that names the kinds of facts which the agent has not read yet. The agent reads
    these facts and decides again."""
    return Decision(
        phase=situation.phase,
        reason=Reason(code=Code.TAKING_CLAIM, sentence="the agent must read more facts before it decides"),
        memory=situation.memory,
        look_again_seconds=0.0,
        wants=frozenset(evidence),
    )


def stay(situation: Situation, status: Status, how: Stay) -> Decision:
    """Return the decision that the node stays in its phase. The agent patches the Node only if careen's annotations or
    label on it are out of date."""
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
    """Return the decision to move the node to a phase, or to change its record in the same phase. One patch writes the
    record and all other changes of the Node."""
    assert is_allowed(situation.phase, to.phase), (
        f"the table MOVES does not allow the change from {situation.phase} to {to.phase}"
    )
    status = _completed(situation, status)
    return Decision(
        phase=to.phase,
        reason=Reason(code=status.code, sentence=status.sentence),
        look_again_seconds=to.look,
        refusals=status.refusals,
        memory=_written_at(_with_event(situation.memory, status.code), situation.seen.uptime),
        actions=(*to.first, _patch(situation, status, to), *to.then, *_event(situation, status)),
    )


def _completed(situation: Situation, status: Status) -> Status:
    """Return the status for display: the sentence is on one line, and each refusal has the instant since which its gate
    has refused."""
    return replace(status, sentence=one_line(status.sentence), refusals=with_since(situation, status.refusals))


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
            keys.REFUSALS: _refusals_json(status.refusals),
            keys.PROGRESS: to_annotation(replace(to.progress, phase=phase.value)),
            **_kept_settings(situation, to.progress),
            **_warning(situation),
            **change.annotations,
        },
    )


def _kept_settings(situation: Situation, progress: Progress) -> dict[str, str | None]:
    """Return the change of the annotation that stores the settings under which the node took its claim. The patch that
    writes the record contains this change. If the record has no claim, the change removes the annotation. Return an
    empty mapping if the Node needs no change."""
    stands = situation.node.annotations.get(keys.SETTINGS)
    wanted = (situation.policy.kept_settings or None) if progress.claim else None
    return {} if stands == wanted else {keys.SETTINGS: wanted}


def _warning(situation: Situation) -> dict[str, str | None]:
    """Return the annotation with the self-test's warning that a reboot of the host would lose something. If there is no
    warning, return the removal of this annotation. Return nothing if the agent has no result of the self-test in this
    round of its loop, or if the Node already has the right annotation."""
    test = situation.seen.self_test
    if not isinstance(test, SelfTest) or (test.warning or None) == situation.node.annotations.get(keys.WARNING):
        return {}
    return {keys.WARNING: test.warning or None}


def annotations_of_a_need(policy: Policy) -> tuple[str, ...]:
    """Return the keys of the annotations that a Node has only while the node needs a reboot. The agent removes these
    annotations when the node moves to the phase Idle. If an idle node has such an annotation, an earlier agent process
    left it behind."""
    kured = (keys.KURED_IN_PROGRESS,) if policy.annotate_nodes else ()
    return (*keys.OF_A_NEED, keys.RETRY, *kured)


def go_home(
    situation: Situation,
    status: Status,
    *,
    first: tuple[Action, ...] = (),
    then: tuple[Action, ...] = (),
    annotations: Mapping[str, str | None] | None = None,
) -> Decision:
    """Return the decision to move the node to the phase Idle. The patch removes careen's label, soft taint and record
    from the Node, and all other annotations about the need of a reboot. `first` has the actions before that patch, and
    `then` has the actions after it."""
    assert is_allowed(situation.phase, Phase.IDLE)
    ours = annotations_of_a_need(situation.policy)
    patch = PatchNode(
        purpose=f"{Phase.IDLE}: {status.code}",
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
        reason=Reason(code=status.code, sentence=status.sentence),
        look_again_seconds=5.0,
        memory=Memory(
            node_uid=situation.node.uid,
            is_reconciled=situation.memory.is_reconciled,
            lock_due=situation.memory.lock_due,
            agents=situation.memory.agents,
            reported=Reported(code=status.code.value),
        ),
        actions=(*first, patch, *then, *_event(situation, status)),
    )


def undo(situation: Situation, status: Status, to: Transition) -> Decision:
    """Return the decision to undo in one patch what careen changed on the Node for the drain (cordon, labels, the
    annotations for autoscalers), then release the claim. The soft taint stays on the Node, unless `to.change` contains
    another list of taints.

    After the release of the claim, a late request of this agent to cordon the node, or to record that a reboot follows,
    must fail. So the patch comes before the release: the patch changes the Node's resourceVersion, and the late request
    gets a conflict. The claim id stays on the Node until the claim is no longer in the lock.
    """
    record = replace(
        to.progress,
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
        status,
        replace(to, progress=record, change=as_before(situation, to.change), then=(*removal(situation), *to.then)),
    )


def removal(situation: Situation) -> tuple[WriteLock, ...]:
    """Return the write that removes this node's claim from the lock. Return nothing if the lock has no such claim or
    cannot be understood."""
    content = situation.lock
    if not isinstance(content, LockContent) or situation.own_entry is None:
        return ()
    left = lock.remove(content, situation.node.name, situation.progress.claim)
    if situation.policy.cluster_interval_seconds and situation.progress.verify_started:
        left = lock.released(left, rfc3339(situation.server_now))
    return (write_lock(situation, "release the claim", left),)


def write_lock(situation: Situation, purpose: str, content: LockContent) -> WriteLock:
    """Return the action that writes this content into the lock, provided that the lock has not changed since the agent
    read it in this round of its loop."""
    reading = situation.reading
    return WriteLock(
        purpose=purpose,
        expected_resource_version=reading.resource_version,
        daemonset_uid=reading.daemonset_uid,
        content=lock.render(content),
    )


def as_before(situation: Situation, besides: NodeChange = NO_CHANGE) -> NodeChange:
    """Return the change that restores the cordon, the labels and the autoscalers' annotations that the Node had before
    careen's drain. The result also contains the changes in `besides`, except a change of the cordon."""
    return replace(
        besides,
        labels={**prior_labels(situation), **besides.labels},
        annotations={**autoscalers.taken_back(situation.node.annotations), **besides.annotations},
        unschedulable=prior_cordon(situation),
    )


def prior_cordon(situation: Situation) -> bool | None:
    """Return the value of the Node's `unschedulable` from before careen's cordon. Return None (no change) if careen did
    not cordon the node, or the node is not cordoned now."""
    progress = situation.progress
    return False if progress.is_cordoned_by_us and situation.node.unschedulable else None


def prior_labels(situation: Situation) -> dict[str, str | None]:
    """Return the values that labels of the Node had before careen changed them for the drain. Labels that another
    client has changed since are left out."""
    ours = situation.policy.pre_reboot_labels
    now = situation.node.labels
    return {
        key: prior
        for key, prior in situation.progress.prior_labels.items()
        if key not in ours or now.get(key) == ours[key]
    }


def without_our_taint(situation: Situation) -> tuple[Taint, ...] | None:
    """Return the Node's list of taints without the soft taints that careen set. Return None (leave the list unchanged)
    if careen set no soft taint."""
    return own_taint.without(
        situation.node, own_taint.keys_of_ours(situation.node, situation.progress, situation.policy)
    )


def with_our_taint(situation: Situation) -> tuple[tuple[Taint, ...] | None, str]:
    """Return a pair: the list of the Node's taints with careen's soft taint, and the key of that taint.

    The list is None if the Node's taints do not have to change. The key is empty if careen wants no taint. The key is
    also empty if the Node already has a soft taint with the wanted key from another program.
    """
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
    """Return the annotation that summarises the forecast: the number of pods with each outcome, and the nodes on which
    the evicted pods may be placed. The annotation is for people. After the drain, careen compares the annotation with
    the nodes on which the new pods run."""
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
    """Return the names of the nodes on which the pod may be placed according to the forecast. If the list is
    incomplete, it ends with `AND_OTHERS`, so that a placement on another node is not treated as an error of the
    forecast."""
    is_whole = len(pod.landing) <= _SHOWN_NODES and not pod.is_cut
    return [*pod.landing[:_SHOWN_NODES], *(() if is_whole else (keys.AND_OTHERS,))]


def with_since(situation: Situation, refusals: tuple[Refusal, ...]) -> tuple[Refusal, ...]:
    """Return the refusals, each with the instant since which its gate has refused for the same reason."""
    before = {(each.gate, each.code): each.since for each in stored_refusals(situation.node)}
    return tuple(
        replace(each, since=each.since or before.get((each.gate, each.code)) or situation.seen.now) for each in refusals
    )


def stored_refusals(node: NodeView) -> tuple[Refusal, ...]:
    """Return the gates' refusals that are stored in the Node's annotation, except those that cannot be read."""
    rows = json_of(node.annotations.get(keys.REFUSALS))
    return (
        tuple(refusal for row in rows[:_MOST_REFUSALS] if (refusal := _refusal(row))) if isinstance(rows, list) else ()
    )


def _refusal(row: object) -> Refusal | None:
    match row:
        case {"gate": str(gate), "code": str(code), "sentence": str(sentence), **more} if code in _CODES:
            since, remedy = from_rfc3339(more.get("since")), short(str(more.get("remedy") or ""))
            longest = number(more.get("longest"), _LONGEST_SECONDS) or 0.0
            return Refusal(
                gate=gate,
                code=Code(code),
                sentence=short(sentence),
                since=since,
                remedy=remedy,
                is_of_cluster=more.get("ofCluster") is True,
                longest_seconds=longest,
            )
        case _:
            return None


_CODES = frozenset(Code)
_LONGEST_SECONDS = 10.0**10  # three hundred years
_MOST_REFUSALS = 50  # more than there are gates


def _refusals_json(refusals: tuple[Refusal, ...]) -> str | None:
    rows = [
        {
            "gate": each.gate,
            "code": each.code.value,
            "sentence": each.sentence,
            "since": rfc3339(each.since) if each.since else None,
            **({"remedy": each.remedy} if each.remedy else {}),
            **({"longest": each.longest_seconds} if each.longest_seconds else {}),
            **({"ofCluster": True} if each.is_of_cluster else {}),
        }
        for each in refusals
    ]
    return json.dumps(rows, separators=(",", ":"), ensure_ascii=False) if rows else None


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
            keys.REFUSALS: _refusals_json(status.refusals),
            **warning,
        },
    )


def _ready_since(situation: Situation, label: str | None) -> dict[str, str | None]:
    """Return the annotation that records the present instant, if this patch changes careen's label on the Node to
    `ready`. Return nothing if the label was `ready` before or gets another value."""
    is_news = label == order.READY and situation.node.labels.get(keys.REBOOT_LABEL) != order.READY
    return {keys.READY_SINCE: rfc3339(situation.seen.now)} if is_news else {}


def _written_at(memory: Memory, uptime: float) -> Memory:
    return replace(memory, reported=replace(memory.reported, at=uptime))


def _with_event(memory: Memory, code: Code) -> Memory:
    if code is Code.NO_NEED:
        return replace(memory, reported=replace(memory.reported, code=""))  # so that the next code gets an Event again
    return memory if code in _QUIET else replace(memory, reported=replace(memory.reported, code=code.value))


def _event(situation: Situation, status: Status) -> tuple[PostEvent, ...]:
    code, sentence = status.code, status.sentence
    is_old = situation.memory.reported.code == code.value or situation.node.annotations.get(keys.REASON) == sentence
    if code in _QUIET or is_old:
        return ()
    return (PostEvent(code=code, sentence=sentence, is_warning=REASONS[code].is_warning),)
