"""PreBind of VolumeBinding in steps: the volumes and claims of the plan are written one after another, then the pod
waits until its claims are bound.

A failure takes nothing back that was written, as in kube-scheduler: a claim keeps its selected node until the
provisioner removes it, so the next attempt goes to the same node. Source: BindPodVolumes and checkBindings in
pkg/scheduler/framework/plugins/volumebinding/binder.go, v1.36.
"""

from __future__ import annotations

from typing import Final

from scheduler_core.framework.verdict import SUCCESS, Verdict, VerdictCode, error
from scheduler_core.model.node import Node
from scheduler_core.model.storage.csi_migration import required_nodes
from scheduler_core.model.storage.volumes import PersistentVolume, PersistentVolumeClaim
from scheduler_core.plugins.volume_binding import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    VolumePlan,
)
from scheduler_core.running.commands import PatchVolume
from scheduler_core.running.failures import Reaction, WriteOutcome
from scheduler_core.running.parts import Parts, PodOnItsWay, VolumeToBind
from scheduler_core.running.writes import volume_target

VOLUME, CLAIM = "PersistentVolume", "PersistentVolumeClaim"
_WAIT: Final = Verdict(VerdictCode.WAIT)


def reserve(parts: Parts, binding: PodOnItsWay) -> None:
    """Keeps what Reserve has planned, and shows it to the cycles of other pods."""
    plan = binding.state.find(VolumePlan) or VolumePlan()
    planned = [(VOLUME, volume.name, volume) for volume in plan.volumes]
    planned += [(CLAIM, claim.key, claim) for claim in plan.claims]  # type: ignore[misc]
    for kind, key, wanted in planned:
        version = parts.cache.version(kind, key)
        binding.volumes.append(VolumeToBind(kind=kind, key=key, wanted=wanted, version=version))
        if not _is_as_wanted(parts.cache.find(kind, key), wanted):
            parts.cache.assume_object(kind, key, wanted)


def bind(parts: Parts, binding: PodOnItsWay, timeout_seconds: float, now: float) -> Verdict:
    """WAIT until everything is written and bound."""
    if not binding.volumes:
        return SUCCESS
    if now - binding.since >= timeout_seconds:
        return error("binding volumes: context deadline exceeded")
    for each in binding.volumes:
        if each.seen_from is not None:
            continue
        held = parts.cache.find(each.kind, each.key)
        if held is None:
            return error(f"binding volumes: {each.kind} {each.key} no longer exists")
        each.seen_from = 0 if _is_as_wanted(held, each.wanted) else _written_for_another(parts, each)
        if each.seen_from is not None:
            continue
        if each.version is None:
            return error(f"binding volumes: the resourceVersion of {each.kind} {each.key} is not a number")
        if not parts.writes.is_busy(volume_target(each.kind, each.key)):  # else another pod writes it
            _ask(parts, binding, each)
        return _WAIT
    return _bound(parts, binding)


def answered(binding: PodOnItsWay, patch: PatchVolume, what: Reaction, outcome: WriteOutcome) -> str:
    """Why PreBind has failed; "" if it goes on."""
    each = next((each for each in binding.volumes if each.number == patch.number), None)
    if each is None or what is Reaction.SEND_AGAIN:
        return ""
    if what is Reaction.FINISH:
        each.seen_from = outcome.version or (each.version or 0) + 1
        return ""
    return f"{patch.kind} {patch.key}: {outcome.message or f'the API server answered {outcome.code}'}"


def concerns(binding: PodOnItsWay, kind: str, key: str, claim: str) -> bool:
    """Whether the pod waits for this object. `claim`: the volume's; "" if none."""
    return any((each.kind == kind and each.key == key) or _claim_of(each) == claim for each in binding.volumes)


def release(parts: Parts, binding: PodOnItsWay) -> None:
    """What is not written yet never will be. A write in flight is left to the watch."""
    for each in binding.volumes:
        parts.cache.forget_object(each.kind, each.key, each.wanted)
        if each.number and each.seen_from is None:
            parts.writes.withdraw(volume_target(each.kind, each.key), PatchVolume)
    binding.volumes.clear()


def _ask(parts: Parts, binding: PodOnItsWay, each: VolumeToBind) -> None:
    wanted, is_volume = each.wanted, isinstance(each.wanted, PersistentVolume)
    name = BOUND_BY_CONTROLLER if is_volume else SELECTED_NODE
    claim = wanted.claim if isinstance(wanted, PersistentVolume) else None
    each.number = parts.number()
    parts.writes.ask(
        PatchVolume(
            number=each.number,
            kind=each.kind,
            key=each.key,
            pod_uid=binding.pod.uid,
            version=each.version,
            annotations=((name, wanted.annotations[name]),) if name in wanted.annotations else (),
            claim="" if claim is None else claim.key,
            claim_uid="" if claim is None else claim.uid,
        )
    )


def _written_for_another(parts: Parts, each: VolumeToBind) -> int | None:
    """The version that the watch has not shown yet, if the same was written for another pod."""
    return next(
        (
            other.seen_from
            for binding in parts.bindings.values()
            for other in binding.volumes
            if (other.kind, other.key) == (each.kind, each.key)
            and other.seen_from
            and _is_as_wanted(other.wanted, each.wanted)
        ),
        None,
    )


def _is_as_wanted(
    held: PersistentVolume | PersistentVolumeClaim | None, wanted: PersistentVolume | PersistentVolumeClaim
) -> bool:
    if isinstance(held, PersistentVolume) and isinstance(wanted, PersistentVolume):
        return held.claim == wanted.claim
    return held is not None and held.annotations.get(SELECTED_NODE) == wanted.annotations.get(SELECTED_NODE)


def _claim_of(each: VolumeToBind) -> str:
    wanted = each.wanted
    if isinstance(wanted, PersistentVolumeClaim):
        return each.key
    return "" if wanted.claim is None else wanted.claim.key


# ---- what the watch shows ----


def _bound(parts: Parts, binding: PodOnItsWay) -> Verdict:
    node: Node | None = parts.cache.find("Node", binding.node)
    if node is None:
        return error(f'binding volumes: failed to get node "{binding.node}"')
    for each in binding.volumes:
        held, version = parts.cache.find(each.kind, each.key), parts.cache.version(each.kind, each.key)
        if held is None:
            return error(f"binding volumes: {each.kind} {each.key} no longer exists")
        if version is not None and version < (each.seen_from or 0):
            return _WAIT
        verdict = (
            _volume_bound(parts, each, held, node)
            if isinstance(held, PersistentVolume)
            else _claim_bound(parts, held, node)
        )
        if not verdict.is_success:
            return verdict
    return SUCCESS


def _volume_bound(parts: Parts, each: VolumeToBind, volume: PersistentVolume, node: Node) -> Verdict:
    problem = _unreachable(parts, volume, node)
    if problem:
        return error(problem)
    if volume.claim is None or not volume.claim.uid:
        return error(f'binding volumes: ClaimRef got reset for pv "{volume.name}"')
    claim: PersistentVolumeClaim | None = parts.cache.find(CLAIM, _claim_of(each))
    if claim is None:
        return error(f"binding volumes: {CLAIM} {_claim_of(each)} no longer exists")
    return SUCCESS if _is_bound(claim) else _WAIT


def _claim_bound(parts: Parts, claim: PersistentVolumeClaim, node: Node) -> Verdict:
    if claim.annotations.get(SELECTED_NODE) != node.name:  # removed by the provisioner when it cannot provision
        return error(f'binding volumes: provisioning failed for PVC "{claim.name}"')
    volume: PersistentVolume | None = parts.cache.find(VOLUME, claim.volume_name)
    if volume is None:  # there is none yet, or its event comes later
        return _WAIT
    problem = _unreachable(parts, volume, node)
    if problem:
        return error(problem)
    return SUCCESS if _is_bound(claim) else _WAIT


def _unreachable(parts: Parts, volume: PersistentVolume, node: Node) -> str:
    required = required_nodes(volume, parts.cache.find("CSINode", node.name))
    if required is None or required.matches(node.labels, ""):
        return ""
    return f'binding volumes: pv "{volume.name}" node affinity doesn\'t match node "{node.name}"'


def _is_bound(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.volume_name) and BIND_COMPLETED in claim.annotations
