"""Finds the marks that careen left on one Node, and builds the patch that removes the marks that are provably careen's.

The proof is careen's record on the Node, the name of the mark's key, or the author of a field in
`metadata.managedFields`. Marks without a proof stay and are reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import field

from careen.core.actions import PatchNode
from careen.core.autoscalers import taken_back
from careen.core.cleanup.labels import changed_by_reboots, original
from careen.core.cleanup.marks import KUREDS, LABELS, RECORDS, WORDS, CleanupMark, Extent, Kind
from careen.core.cordons import foreign_author, is_cordon_proven
from careen.core.facts import keys
from careen.core.facts.observation import NodeView, SignedNode, Taint
from careen.core.facts.phases import Phase
from careen.core.facts.progress import Progress, UnreadableProgress, boot_id_of
from careen.core.lock.content import Entry
from careen.core.own_taint import without
from scheduler_core.values import Value

_REMOVED = "removed"
_IS_OBEYED = "running agents obey this annotation; the cleanup removes it when no agent runs"


class NodeLeftovers(Value, kw_only=True):
    """What a cleanup finds on a Node: the marks to remove, and the marks that look like careen's but stay. `rebooting`
    says why the host may be rebooting; it is empty if the host is not rebooting."""

    node: NodeView
    goes: tuple[CleanupMark, ...] = ()
    stays: tuple[CleanupMark, ...] = ()
    rebooting: str = ""
    labels: Mapping[str, str | None] = field(default_factory=dict)
    """The new values of the labels that the cleanup changes; None removes a label."""
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    """The annotations that the cleanup restores, with their earlier values. The cleanup removes all other annotations
    in `goes`."""

    @property
    def patch(self) -> PatchNode | None:
        """Return one patch with all removals, guarded by the resourceVersion that was read; None if there is nothing to
        remove."""
        if not self.goes:
            return None
        return PatchNode(
            purpose="cleanup",
            resource_version=self.node.resource_version,
            labels=self.labels,
            annotations={
                mark.name: self.annotations.get(mark.name) for mark in self.goes if mark.kind is Kind.ANNOTATION
            },
            taints=without(self.node, frozenset(mark.name for mark in self.goes if mark.kind is Kind.TAINT)),
            unschedulable=False if any(mark.kind is Kind.CORDON for mark in self.goes) else None,
        )


def leftovers(signed: SignedNode, extent: Extent, entry: Entry | None = None) -> NodeLeftovers:
    """Find the marks that careen left on this Node. `entry` is the claim of this node in the lock; None if the lock has
    no claim of this node."""
    node, record = signed.node, signed.node.record
    known = record if isinstance(record, Progress) else Progress()
    wanted = _labels(signed, known, extent)
    marks = (
        *_taints(node, known, extent),
        *_cordon(node, known, extent, entry),
        *_of_labels(signed, wanted, extent),
        *_annotations(signed, extent),
    )
    return NodeLeftovers(
        node=node,
        goes=tuple(mark for mark in marks if mark.afterwards),
        stays=tuple(mark for mark in marks if not mark.afterwards),
        rebooting=_rebooting(node, record, entry),
        labels=wanted,
        annotations=taken_back(node.annotations),
    )


# ---- the reboot ----


def _rebooting(node: NodeView, record: Progress | UnreadableProgress, entry: Entry | None) -> str:
    """Return why the host may be rebooting: the Node's record says that a reboot follows, and the kubelet reports no
    new boot. Return an empty text if the host is not rebooting."""
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
    """Yield a mark for each taint that the cleanup removes, and for each taint that stays although its key begins with
    `careen.dev/`. The cleanup removes a soft taint if one of these conditions is true:

    * A person named the taint's key.
    * The Node's record contains the taint's key.
    * The managed fields prove that careen set the taint.
    * The key begins with `careen.dev/`, the taint has no value, and the key is the default key or the key in the
      agents' settings.
    * With --unknown: the key begins with `careen.dev/`, and the taint has no value.
    """
    proven = _proven_taint(node, extent)
    for taint in node.taints:
        mark = CleanupMark(kind=Kind.TAINT, name=taint.key, now=f"{taint.value or ''}:{taint.effect}".removeprefix(":"))
        is_soft = taint.effect == keys.TAINT_EFFECT
        is_ours = taint.key in {record.taint_key, proven, *extent.also} or _is_ours_by_name(taint, extent)
        if is_soft and is_ours:
            yield _going(mark)
        elif taint.key.startswith(keys.PREFIX):
            yield _staying(
                mark,
                "careen did not set this taint: careen's taints have the effect PreferNoSchedule and no value"
                if not _is_plain(taint)
                else _UNKNOWN,
            )


def _is_plain(taint: Taint) -> bool:
    return taint.effect == keys.TAINT_EFFECT and not taint.value


def _is_ours_by_name(taint: Taint, extent: Extent) -> bool:
    configured = extent.policy.taint_key if extent.policy else None
    is_known = taint.key in {keys.DEFAULT_TAINT_KEY, configured} or extent.with_unknown
    return taint.key.startswith(keys.PREFIX) and not taint.value and is_known


def _proven_taint(node: NodeView, extent: Extent) -> str | None:
    """Return the key of the soft taint that careen provably set: careen's taint patch was the last change of the list
    of taints. Return None if the managed fields do not prove this."""
    if node.tainted_by != (keys.TAINT_MANAGER,):
        return None
    if extent.policy is not None:
        return extent.policy.taint_key
    soft = [taint.key for taint in node.taints if taint.effect == keys.TAINT_EFFECT]
    return soft[0] if len(soft) == 1 else None


def _cordon(node: NodeView, record: Progress, extent: Extent, entry: Entry | None) -> Iterator[CleanupMark]:
    if not node.unschedulable:
        return
    mark = CleanupMark(kind=Kind.CORDON, now="cordoned")
    if _is_cordon_ours(node, record, entry) or (extent.with_kureds and _is_cordon_kureds(entry)):
        yield _going(mark, "lifted")
    elif entry or record.phase:
        yield _staying(mark, f"the node was cordoned by {foreign_author(node)}")


def _is_cordon_ours(node: NodeView, record: Progress, entry: Entry | None) -> bool:
    """Whether careen set the cordon. The managed fields decide, because a person may have cordoned the node after the
    record was written. If the API server reports no managed fields, the record on the Node or the claim in the lock
    decides."""
    if node.cordoned_by:
        return is_cordon_proven(node)
    is_at_work = node.labels.get(keys.REBOOT_LABEL) == "in-progress"
    is_lost = not record.phase and entry is not None and bool(entry.id) and not entry.cordoned and is_at_work
    return record.is_cordoned_by_us or is_lost


def _is_cordon_kureds(entry: Entry | None) -> bool:
    """Whether the cordon is kured's. kured would remove this cordon, because kured's lock says that the node was not
    cordoned when kured took the lock."""
    return entry is not None and not entry.id and not entry.unread and not entry.cordoned


# ---- labels ----


def _labels(signed: SignedNode, record: Progress, extent: Extent) -> dict[str, str | None]:
    """Return the labels of the Node that the cleanup changes, with their new values. The value None removes a label."""
    now = signed.node.labels
    wanted: dict[str, str | None] = {}
    for key in now:
        is_unknown = key.startswith(keys.PREFIX) and extent.with_unknown
        if key in LABELS or key in extent.also or is_unknown:
            wanted[key] = None
    rebooted = changed_by_reboots(signed.node)
    for key, change in rebooted.items():
        if now.get(key) == change.to and _may_be_alone(signed.labels_by.get(key)):
            wanted[key] = change.was
    for key, prior in record.prior_labels.items():
        if _is_as_careen_set_it(signed, key, extent):
            wanted[key] = original(prior, rebooted.get(key))
    return {key: value for key, value in wanted.items() if now.get(key) != value}


def _is_as_careen_set_it(signed: SignedNode, key: str, extent: Extent) -> bool:
    """Whether the label still has the value that careen set, judged by the values of --pre-reboot-node-labels and by
    the managed fields."""
    ours = extent.policy.pre_reboot_labels if extent.policy else {}
    authors = signed.labels_by.get(key)
    return (key not in ours or signed.node.labels.get(key) == ours[key]) and _may_be_alone(authors)


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
        elif key in extent.also or key in RECORDS or key in back:
            yield _going(mark)
        elif key in WORDS:
            yield _going(mark) if not extent.agents else _staying(mark, _IS_OBEYED)
        elif key in KUREDS:
            yield _going(mark) if _may_take_kureds(signed, key, extent) else _staying(mark, _KUREDS_OWN)
        elif key.startswith(keys.PREFIX):
            yield _going(mark) if extent.with_unknown else _staying(mark, _UNKNOWN)


def _may_take_kureds(signed: SignedNode, key: str, extent: Extent) -> bool:
    """Whether the cleanup may remove an annotation whose key is one of kured's: a person asked to remove kured's
    annotations, or careen wrote this annotation. The managed fields show who wrote the annotation. Without managed
    fields the agents' settings decide."""
    authors = signed.annotations_by.get(key)
    is_configured = extent.policy is not None and extent.policy.annotate_nodes
    return extent.with_kureds or _is_alone(authors) or (authors is None and is_configured)


_KUREDS_OWN = "nothing proves that careen wrote this annotation; --kured removes kured's annotations"
_UNKNOWN = "this release does not write this key; --unknown removes keys of other releases"


def _is_alone(authors: tuple[str, ...] | None) -> bool:
    """Whether all of these field managers are careen's agents."""
    return bool(authors) and set(authors or ()) <= {keys.FIELD_MANAGER, keys.TAINT_MANAGER}


def _may_be_alone(authors: tuple[str, ...] | None) -> bool:
    """Whether all of these field managers are careen's agents, or the API server reports no field managers."""
    return authors is None or _is_alone(authors)


def _going(mark: CleanupMark, afterwards: str = _REMOVED) -> CleanupMark:
    return CleanupMark(kind=mark.kind, name=mark.name, now=mark.now, afterwards=afterwards)


def _staying(mark: CleanupMark, because: str) -> CleanupMark:
    return CleanupMark(kind=mark.kind, name=mark.name, now=mark.now, because=because)
