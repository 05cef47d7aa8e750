"""Which of careen's writes stick: an admission webhook may alter a write that the API server accepts, and a controller
may take it back a second later.

A mark that does not stick is written again after a pause that grows. If decisions rest on it (`node/marks.py`), the
gate `writes` refuses meanwhile, and no patch that needs the mark is sent. Any other mark counts meanwhile as kept, so
that the node goes on without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from careen.core.actions import Evict, Notify, PatchNode, PostEvent, WriteLock
from careen.core.decision import Decision, Reason
from careen.core.facts import keys
from careen.core.facts.memory import Loss, Losses, Memory, WrittenMark
from careen.core.facts.observation import NodeView, Taint
from careen.core.facts.phases import Phase
from careen.core.facts.progress import Progress, UnreadableProgress, phase_of
from careen.core.facts.reasons import Code
from careen.core.lock import notation
from careen.core.lock.content import LockContent
from careen.core.lock.reading import LockReading
from careen.core.node import marks
from careen.core.node.marks import Kind, Proof
from scheduler_core.values import Value
from scheduler_core.values import replace_value as replace

FIRST_PAUSE_SECONDS = 2.0
GROWTH = 2.0
LONGEST_PAUSE_SECONDS = 300.0
REVERT_SECONDS = 600.0  # a change that comes later is a person's; a GitOps controller reconciles every few minutes
FORGET_SECONDS = 900.0  # after the end of the pause: longer than any pause, so a lasting trouble keeps its count
CORDON = str(Kind.CORDON)
LOCK = "this node's claim in the lock"
RECORD = f"{Kind.ANNOTATION} {keys.PROGRESS}"
_LONGEST_LOOK_SECONDS = 5.0  # a hold or a vanished need must take effect meanwhile
_OURS = frozenset({keys.FIELD_MANAGER, keys.TAINT_MANAGER})
_SET = "set"  # the value of a cordon or a soft taint


class Wish(Value):
    """One mark as a patch wants it; `value` None: absent."""

    kind: Kind
    key: str
    value: str | None

    @property
    def title(self) -> str:
        """For people, and as a key."""
        return f"{self.kind} {self.key}" if self.key else str(self.kind)


def wishes(patch: PatchNode) -> tuple[Wish, ...]:
    """Every mark that the patch sets or removes, except removed taints: the patch has only the remaining list."""
    return (
        *(Wish(Kind.LABEL, key, value) for key, value in patch.labels.items()),
        *(Wish(Kind.ANNOTATION, key, value) for key, value in patch.annotations.items()),
        *(Wish(Kind.TAINT, taint.key, _SET) for taint in _soft(patch.taints or ())),
        *(() if patch.unschedulable is None else (Wish(Kind.CORDON, "", _SET if patch.unschedulable else None),)),
    )


def lacking(patch: PatchNode, after: NodeView) -> tuple[Wish, ...]:
    """The marks of the patch that the Node lacks after it. A taint or an annotation that somebody else added meanwhile
    is no such mark, except a soft taint that is not in the patch's list."""
    missing = tuple(wish for wish in wishes(patch) if present(after, wish) != wish.value)
    if patch.taints is None:
        return missing
    left = {taint.key for taint in _soft(patch.taints)}
    extra = {taint.key for taint in _soft(after.taints)} - left
    return (*missing, *(Wish(Kind.TAINT, key, None) for key in sorted(extra)))


def present(node: NodeView, wish: Wish) -> str | None:
    """What the Node has in place of this mark; None: nothing."""
    match wish.kind:
        case Kind.LABEL:
            return node.labels.get(wish.key)
        case Kind.ANNOTATION:
            return node.annotations.get(wish.key)
        case Kind.TAINT:
            return _SET if any(taint.key == wish.key for taint in _soft(node.taints)) else None
        case Kind.CORDON:
            return _SET if node.unschedulable else None


def _soft(taints: Iterable[Taint]) -> tuple[Taint, ...]:
    return tuple(taint for taint in taints if taint.effect == keys.TAINT_EFFECT)


# ---- what is known after a write or a read ----


def after_patch(losses: Losses, patch: PatchNode, before: NodeView | None, after: NodeView, *, uptime: float) -> Losses:
    """After an accepted patch whose answer was `after`. `before` is the Node on which the patch is based."""
    found, written = dict(losses.marks), dict(losses.written)
    missing = lacking(patch, after)
    removed = _removed_taints(patch, before)
    for wish in missing:
        found[wish.title] = _lost(losses, wish, after, uptime, stops=stops(wish, patch), is_reverted=False)
        written.pop(wish.title, None)
    for wish in {*wishes(patch), *removed} - set(missing):
        if (known := found.get(wish.title)) is not None and not known.is_reverted:
            del found[wish.title]
        is_change = before is None or present(before, wish) != wish.value
        if is_change and _is_ours_alone(wish):
            written[wish.title] = WrittenMark(value=wish.value, at=uptime, stops=stops(wish, patch))
    return _pruned(replace(losses, marks=found, written=written), uptime)


def after_lock_write(losses: Losses, wanted: WriteLock, node: str, *, is_kept: bool, uptime: float) -> Losses:
    """After an accepted write of the lock. `is_kept`: the answer contains it."""
    marks_now, written = dict(losses.marks), dict(losses.written)
    if is_kept:
        if LOCK in marks_now and not marks_now[LOCK].is_reverted:
            del marks_now[LOCK]
        claim = _own_claim(notation.parse(wanted.content), node)
        written[LOCK] = WrittenMark(value=claim or None, at=uptime, stops=True)
    else:
        marks_now[LOCK] = _counted(losses.marks.get(LOCK), uptime, is_reverted=False)
        written.pop(LOCK, None)
    return replace(losses, marks=marks_now, written=written)


def after_read(losses: Losses, node: NodeView, lock: object, *, uptime: float) -> Losses:
    """After a turn's reads: what another client took back since this process wrote it."""
    if not losses.written and not losses.marks:
        return losses
    found, written = dict(losses.marks), dict(losses.written)
    for title, mark in losses.written.items():
        if title == LOCK:
            is_gone = isinstance(lock, LockReading) and _is_taken_back(lock, node.name, mark.value)
            loss = _counted(losses.marks.get(LOCK), uptime, is_reverted=True)
        else:
            wish = _wish_of(title, mark.value)
            is_gone = present(node, wish) != mark.value
            loss = _lost(losses, wish, node, uptime, stops=mark.stops, is_reverted=True)
        if is_gone or uptime - mark.at > REVERT_SECONDS:
            del written[title]
        if is_gone and uptime - mark.at <= REVERT_SECONDS:
            found[title] = loss
    return _pruned(replace(losses, marks=found, written=written), uptime)


def _wish_of(title: str, value: str | None) -> Wish:
    kind, _, key = title.partition(" ")
    return Wish(Kind(kind), key, value)


def _removed_taints(patch: PatchNode, before: NodeView | None) -> tuple[Wish, ...]:
    if patch.taints is None or before is None:
        return ()
    left = {taint.key for taint in _soft(patch.taints)}
    return tuple(Wish(Kind.TAINT, taint.key, None) for taint in _soft(before.taints) if taint.key not in left)


def _is_ours_alone(wish: Wish) -> bool:
    """Whether only careen should change the mark afterwards: not what people write too, and not the absence of a
    cordon."""
    if wish.kind is Kind.CORDON:
        return wish.value is not None
    row = marks.ANNOTATIONS.get(wish.key) if wish.kind is Kind.ANNOTATION else None
    return row is None or row.proof is not Proof.PERSON


def stops(wish: Wish, patch: PatchNode) -> bool:
    """Whether decisions rest on this mark."""
    return marks.is_relied_on(wish.kind, wish.key, at_the_cordon=patch.unschedulable is True)


def _lost(losses: Losses, wish: Wish, node: NodeView, uptime: float, *, stops: bool, is_reverted: bool) -> Loss:
    counted = _counted(losses.marks.get(wish.title), uptime, is_reverted=is_reverted)
    return replace(counted, wanted=wish.value, found=present(node, wish), stops=stops, by=_managers(node, wish))


def _counted(before: Loss | None, uptime: float, *, is_reverted: bool) -> Loss:
    times = 1 if before is None or uptime > before.not_before + FORGET_SECONDS else before.times + 1
    # A person may take back a mark once, and a cache may be old: the first time costs no pause.
    doublings = times - 1 - is_reverted
    pause = min(FIRST_PAUSE_SECONDS * GROWTH ** min(doublings, 20), LONGEST_PAUSE_SECONDS) if doublings >= 0 else 0.0
    return Loss(
        times=times,
        at=uptime,
        not_before=uptime + pause,
        wanted="",
        found=None,
        is_reverted=is_reverted,
        stops=True,
    )


def _managers(node: NodeView, wish: Wish) -> tuple[str, ...]:
    by: Mapping[Kind, tuple[str, ...]] = {Kind.CORDON: node.cordoned_by, Kind.TAINT: node.tainted_by}
    return tuple(name for name in by.get(wish.kind, node.written_by.get(wish.key, ())) if name not in _OURS)


def _pruned(losses: Losses, uptime: float) -> Losses:
    left = {title: loss for title, loss in losses.marks.items() if uptime <= loss.not_before + FORGET_SECONDS}
    return replace(losses, marks=left)


def _own_claim(content: object, node: str) -> str:
    entries = content.entries_of(node) if isinstance(content, LockContent) else ()
    return entries[0].id if entries else ""


def _is_taken_back(reading: LockReading, node: str, claim: str | None) -> bool:
    """Whether the lock lacks the node's claim, or without a claim has one again."""
    content = reading.content
    if not isinstance(content, LockContent):
        return False
    return content.entry(node, claim) is None if claim else bool(content.entries_of(node))


# ---- what follows ----


def as_if_kept(node: NodeView, losses: Losses, *, uptime: float) -> NodeView:
    """The Node with the marks on which no decision rests as the agent wants them, while they are not written again."""
    for title, loss in losses.marks.items():
        if loss.stops or loss.not_before <= uptime:
            continue
        wish = _wish_of(title, loss.wanted)
        if wish.kind is Kind.LABEL:
            node = replace(node, labels=_with(node.labels, wish))
        if wish.kind is Kind.ANNOTATION:
            node = replace(node, annotations=_with(node.annotations, wish))
        if wish.kind is Kind.TAINT:
            others = tuple(taint for taint in node.taints if taint not in _soft(node.taints) or taint.key != wish.key)
            ours = (Taint(key=wish.key, effect=keys.TAINT_EFFECT),) if wish.value else ()
            node = replace(node, taints=(*others, *ours))
    return node


def _with(texts: Mapping[str, str], wish: Wish) -> dict[str, str]:
    others = {key: value for key, value in texts.items() if key != wish.key}
    return others if wish.value is None else {**others, wish.key: wish.value}


def put_back(before: Memory, node: NodeView) -> Decision | None:
    """Write the record of this process again if another client has put an older one in its place: no decision rests on
    a record of others. None if the record was removed, which people do, or if the managed fields name no other
    client."""
    loss = before.losses.marks.get(RECORD)
    found = node.annotations.get(keys.PROGRESS)
    if loss is None or not (loss.is_reverted and loss.by) or found is None or found != loss.found:
        return None
    if isinstance(node.record, UnreadableProgress):
        return None
    kept = replace(node, annotations=_with(node.annotations, Wish(Kind.ANNOTATION, keys.PROGRESS, loss.wanted))).record
    return Decision(
        phase=phase_of(kept) if isinstance(kept, Progress) else Phase.IDLE,
        reason=Reason(code=Code.WRITE_NOT_KEPT, sentence=sentence({RECORD: loss})),
        memory=before,
        look_again_seconds=0.0,
        actions=(
            PatchNode(
                purpose="write the record again that another client replaced",
                resource_version=node.resource_version,
                annotations={keys.PROGRESS: loss.wanted},
            ),
        ),
    )


def in_the_way(losses: Losses, *, uptime: float) -> str:
    """What does not stick of that on which decisions rest, while it is not written again; "" if all of it sticks."""
    waiting = {title: loss for title, loss in losses.marks.items() if loss.stops and loss.not_before > uptime}
    return sentence(waiting) if waiting else ""


def sentence(marks_lost: Mapping[str, Loss]) -> str:
    """What does not stick, by whom, and how."""
    parts: dict[str, list[str]] = {}
    for title, loss in sorted(marks_lost.items()):
        who = f"{', '.join(loss.by)} changes" if loss.by else "another client changes"
        how = f"{who} it again" if loss.is_reverted else "admission alters the write"
        if not loss.is_reverted and loss.by:
            how += f" (field manager {', '.join(loss.by)})"
        parts.setdefault(how, []).append(title)
    said = "; ".join(f"{', '.join(titles)}: {how}" for how, titles in parts.items())
    return f"what the agent writes does not stick: {said}"


def held_back(decision: Decision, before: Memory, node: NodeView, phase: Phase, *, uptime: float) -> Decision:
    """The decision without the writes that would not stick, from the first of them on; with an Event about each new
    mark that does not stick. `before` is the memory without the decision, `phase` what the Node's record says."""
    losses = before.losses
    for number, action in enumerate(decision.actions):
        found = _forbids(action, node, losses, uptime)
        if found is not None:
            decision = _cut(decision, before, phase, number, found, uptime=uptime)
            break
    return _told(decision, losses, uptime)


def _forbids(action: object, node: NodeView, losses: Losses, uptime: float) -> tuple[str, Loss] | None:
    if isinstance(action, WriteLock):
        loss = losses.marks.get(LOCK)
        return (LOCK, loss) if loss is not None and loss.not_before > uptime else None
    if not isinstance(action, PatchNode):
        return None
    held = [
        (wish.title, loss)
        for wish in wishes(action)
        if (loss := losses.marks.get(wish.title)) is not None
        and loss.stops
        and loss.not_before > uptime
        and (loss.wanted is None) == (wish.value is None)
        and present(node, wish) != wish.value
    ]
    if action.unschedulable is False and node.unschedulable and not any(title == CORDON for title, _ in held):
        return None  # a node back in service is worth one more write, and it can be uncordoned only once
    return max(held, key=lambda each: each[1].not_before, default=None)


def _cut(
    decision: Decision, before: Memory, phase: Phase, number: int, found: tuple[str, Loss], *, uptime: float
) -> Decision:
    title, loss = found
    left, rest = decision.actions[:number], decision.actions[number:]
    look = min(loss.not_before - uptime, _LONGEST_LOOK_SECONDS)
    if any(isinstance(each, PatchNode) for each in left):  # the Node's patch goes; only the lock's write is held back
        reports = tuple(each for each in rest if isinstance(each, PostEvent | Notify))
        return replace(decision, actions=(*left, *reports), look_again_seconds=look)
    left = tuple(each for each in left if isinstance(each, Evict))
    return replace(
        decision,
        phase=phase,
        reason=Reason(code=Code.WRITE_NOT_KEPT, sentence=sentence({title: loss})),
        memory=replace(decision.memory, reported=before.reported) if left else before,
        actions=left,
        look_again_seconds=look,
    )


def _told(decision: Decision, losses: Losses, uptime: float) -> Decision:
    """With one Event about the marks that newly do not stick. A single change by another client gets none: it may be a
    person's."""
    old = {title: at for title, at in losses.told.items() if uptime - at < FORGET_SECONDS}
    news = {title: loss for title, loss in losses.marks.items() if title not in old and loss.times > loss.is_reverted}
    event = PostEvent(code=Code.WRITE_NOT_KEPT, sentence=sentence(news), is_warning=True) if news else None
    account = replace(losses, told={**old, **dict.fromkeys(news, uptime)})
    return replace(
        decision,
        actions=(*((event,) if event else ()), *decision.actions),
        memory=replace(decision.memory, losses=account),
    )
