"""The marks on one Node, and the patch that removes those with a proof (`core/node/`); the others are reported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import field

from careen.core.actions import PatchNode
from careen.core.cleanup.values import CleanupMark, Extent
from careen.core.facts import keys
from careen.core.facts.observation import NodeView, SignedNode
from careen.core.facts.phases import Phase
from careen.core.facts.progress import Progress, UnreadableProgress, boot_id_of
from careen.core.lock.content import Entry
from careen.core.node import cordons, marks, own_taint
from careen.core.node.autoscalers import taken_back
from careen.core.node.changed_labels import before_the_drain, changed_by_reboots, original
from careen.core.node.marks import Kind, Proof
from scheduler_core.values import Value

_REMOVED = "removed"
_IS_OBEYED = "running agents obey this annotation; the cleanup removes it when no agent runs"
_KUREDS_OWN = "nothing proves that careen wrote this annotation; --kured removes kured's annotations"
_UNKNOWN = "this release does not write this key; --unknown removes keys of other releases"


class NodeLeftovers(Value, kw_only=True):
    """The marks on a Node to remove, and those that look like careen's but stay."""

    node: NodeView
    goes: tuple[CleanupMark, ...] = ()
    stays: tuple[CleanupMark, ...] = ()
    rebooting: str = ""  # why the host may be rebooting; empty: it is not
    labels: Mapping[str, str | None] = field(default_factory=dict)
    """The new values of the labels in `goes`; None removes a label."""
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    """The earlier values of annotations in `goes`; the others are removed."""

    @property
    def patch(self) -> PatchNode | None:
        """One patch with all removals, guarded by the resourceVersion that was read; None without any."""
        if not self.goes:
            return None
        return PatchNode(
            purpose="cleanup",
            resource_version=self.node.resource_version,
            labels=self.labels,
            annotations={
                mark.name: self.annotations.get(mark.name) for mark in self.goes if mark.kind is Kind.ANNOTATION
            },
            taints=own_taint.without(self.node, frozenset(mark.name for mark in self.goes if mark.kind is Kind.TAINT)),
            unschedulable=False if any(mark.kind is Kind.CORDON for mark in self.goes) else None,
        )


def leftovers(signed: SignedNode, extent: Extent, entry: Entry | None = None) -> NodeLeftovers:
    """The marks on this Node, whose claim in the lock is `entry`."""
    node, record = signed.node, signed.node.record
    known = record if isinstance(record, Progress) else Progress()
    wanted = _labels(signed, known, extent)
    found = (
        *_taints(node, known, extent),
        *_cordon(node, known, extent, entry),
        *_of_labels(signed, wanted, extent),
        *_annotations(signed, extent),
    )
    return NodeLeftovers(
        node=node,
        goes=tuple(mark for mark in found if mark.afterwards),
        stays=tuple(mark for mark in found if not mark.afterwards),
        rebooting=_rebooting(node, record, entry),
        labels=wanted,
        annotations=taken_back(node.annotations),
    )


# ---- the reboot ----


def _rebooting(node: NodeView, record: Progress | UnreadableProgress, entry: Entry | None) -> str:
    """Why the host may be rebooting: the record says that a reboot follows, and the kubelet reports no new boot; ""
    if it is not."""
    if isinstance(record, UnreadableProgress):
        return f"{record.why}, so the node may be rebooting"
    if record.phase:
        is_asked = record.phase == Phase.REBOOTING or (
            record.phase == Phase.FAILED and record.announced is not None and not record.is_releasing
        )
        boot = record.boot_left
    else:
        is_asked = node.annotations.get(keys.PHASE) == Phase.REBOOTING and node.unschedulable
        boot = entry.boot if entry else ""
    is_back = bool(boot and node.boot_id and node.boot_id != boot_id_of(boot))
    return (
        "the agent recorded that the reboot is next, and the Node has not reported a new boot"
        if is_asked and not is_back
        else ""
    )


# ---- taint and cordon ----


def _taints(node: NodeView, record: Progress, extent: Extent) -> Iterator[CleanupMark]:
    ours = own_taint.by_name(node, extent.policy) | own_taint.proven(node, extent.policy)
    ours |= {record.taint_key} | extent.also
    for taint in node.taints:
        mark = CleanupMark(kind=Kind.TAINT, name=taint.key, now=f"{taint.value or ''}:{taint.effect}".removeprefix(":"))
        is_careens = taint.key.startswith(keys.PREFIX)
        if taint.effect == keys.TAINT_EFFECT and (
            taint.key in ours or (is_careens and not taint.value and extent.with_unknown)
        ):
            yield _going(mark)
        elif is_careens:
            yield _staying(
                mark,
                "careen did not set this taint: careen's taints have the effect PreferNoSchedule and no value"
                if taint.effect != keys.TAINT_EFFECT or taint.value
                else _UNKNOWN,
            )


def _cordon(node: NodeView, record: Progress, extent: Extent, entry: Entry | None) -> Iterator[CleanupMark]:
    if not node.unschedulable:
        return
    mark = CleanupMark(kind=Kind.CORDON, now="cordoned")
    if _is_cordon_ours(node, record, entry) or (extent.with_kureds and _is_cordon_kureds(entry)):
        yield _going(mark, "lifted")
    elif entry or record.phase:
        yield _staying(mark, f"the node was cordoned by {cordons.foreign_author(node)}")


def _is_cordon_ours(node: NodeView, record: Progress, entry: Entry | None) -> bool:
    """The managed fields win over the record: a person may have cordoned the node after it was written."""
    if record.is_cordoned_by_us and not node.cordoned_by:
        return True
    if not record.phase and entry is not None and entry.id:
        return cordons.is_ours_under_claim(node, was_cordoned=entry.cordoned)
    return cordons.is_cordon_proven(node)


def _is_cordon_kureds(entry: Entry | None) -> bool:
    """Whether kured would lift this cordon: its lock says that the node was not cordoned before."""
    return entry is not None and not entry.id and not entry.unread and not entry.cordoned


# ---- labels ----


def _labels(signed: SignedNode, record: Progress, extent: Extent) -> dict[str, str | None]:
    """The labels that the cleanup changes, with their new values; None removes a label."""
    now, ours = signed.node.labels, extent.policy.pre_reboot_labels if extent.policy else {}
    wanted: dict[str, str | None] = {}
    for key in now:
        is_unknown = key.startswith(keys.PREFIX) and extent.with_unknown
        if key in marks.LABELS or key in extent.also or is_unknown:
            wanted[key] = None
    rebooted = changed_by_reboots(signed.node)
    for key, change in rebooted.items():
        if now.get(key) == change.to and _may_be_ours(signed, key):
            wanted[key] = change.was
    for key, prior in before_the_drain(signed.node, record, ours).items():
        if _may_be_ours(signed, key):
            wanted[key] = original(prior, rebooted.get(key))
    return {key: value for key, value in wanted.items() if now.get(key) != value}


def _may_be_ours(signed: SignedNode, label: str) -> bool:
    authors = signed.labels_by.get(label)
    return authors is None or marks.are_ours(authors)


def _of_labels(signed: SignedNode, wanted: Mapping[str, str | None], extent: Extent) -> Iterator[CleanupMark]:
    policy = extent.policy
    configured = {**policy.pre_reboot_labels, **policy.post_reboot_labels} if policy else {}
    now = signed.node.labels
    for key in sorted({*now, *wanted}):
        mark = CleanupMark(kind=Kind.LABEL, name=key, now=now.get(key, ""))
        if key in wanted:
            earlier_value = wanted[key]
            yield _going(mark, _REMOVED if earlier_value is None else f"set back to {earlier_value}")
        elif key in configured and configured[key] == now[key]:
            yield _staying(
                mark, f"a setting names this label, but another program may have set it; --key {key} removes it"
            )
        elif key.startswith(keys.PREFIX):
            yield _staying(mark, _UNKNOWN)


# ---- annotations ----


def _annotations(signed: SignedNode, extent: Extent) -> Iterator[CleanupMark]:
    back = taken_back(signed.node.annotations)
    for key, value in sorted(signed.node.annotations.items()):
        mark = CleanupMark(kind=Kind.ANNOTATION, name=key, now=value)
        if (earlier_value := back.get(key)) is not None:
            yield _going(mark, f"set back to {earlier_value}")
        elif key in extent.also or key in back:
            yield _going(mark)
        elif (because := _why_it_stays(signed, key, extent)) is not None:
            yield _staying(mark, because) if because else _going(mark)


def _why_it_stays(signed: SignedNode, key: str, extent: Extent) -> str | None:
    """Why the annotation stays; "" if it goes, None if it is not careen's."""
    match marks.ANNOTATIONS[key].proof if key in marks.ANNOTATIONS else None:
        case Proof.KEY:
            return ""
        case Proof.PERSON:
            return _IS_OBEYED if extent.agents else ""
        case Proof.AUTHOR:
            is_ours = marks.is_kureds_key_ours(extent.policy, signed.annotations_by.get(key))
            return "" if is_ours or extent.with_kureds else _KUREDS_OWN
        case None if key.startswith(keys.PREFIX):
            return "" if extent.with_unknown else _UNKNOWN
        case _:
            return None


def _going(mark: CleanupMark, afterwards: str = _REMOVED) -> CleanupMark:
    return CleanupMark(kind=mark.kind, name=mark.name, now=mark.now, afterwards=afterwards)


def _staying(mark: CleanupMark, because: str) -> CleanupMark:
    return CleanupMark(kind=mark.kind, name=mark.name, now=mark.now, because=because)
