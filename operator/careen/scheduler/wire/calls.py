"""Each command of the machine as requests, and each answer as an outcome. Pure."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from careen.cluster.wire.errors import retry_after_seconds
from careen.scheduler.wire.lanes import HttpAnswer, HttpCall
from scheduler_core.cache.events import version_number
from scheduler_core.running.commands import Answered, Bind, DeleteVictim, LookAtPod, PatchVolume, WriteStatus
from scheduler_core.running.failures import LOST, WriteOutcome

STRATEGIC: Final = "application/strategic-merge-patch+json"
_NOT_SENT: Final = WriteOutcome(code=429, is_complete=False, retry_after_seconds=1.0)
"""The machine sends the command again, as after 429: the server has not seen it."""

_ENCODER: Final = msgspec.json.Encoder()


class _Meta(msgspec.Struct, gc=False, rename="camel"):
    uid: str = ""
    resource_version: str = ""


class _Spec(msgspec.Struct, gc=False, rename="camel"):
    node_name: str = ""


class _Body(msgspec.Struct, gc=False, rename="camel"):
    """An object, or a Status, whose `status` is a text."""

    kind: str = ""
    message: str = ""
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: Any = None


_BODY: Final = msgspec.json.Decoder(_Body)


def calls(command: Answered, at: str) -> tuple[HttpCall, ...]:
    """In their order; the next is sent only if the one before succeeded. `at`: the time as RFC 3339."""
    if isinstance(command, Bind):
        return (_bind(command),)
    if isinstance(command, WriteStatus):
        return (_patch(f"{_pod(command.pod)}/status", _status_patch(command, at)),)
    if isinstance(command, DeleteVictim):
        return (
            _patch(f"{_pod(command.pod)}/status", _disruption(command, at)),
            HttpCall(method="DELETE", path=_pod(command.pod), body=_json({"preconditions": {"uid": command.uid}})),
        )
    if isinstance(command, LookAtPod):
        return (HttpCall(method="GET", path=_pod(command.pod)),)
    return (_patch(_volume(command), _volume_patch(command)),)


def outcome(command: Answered, answer: HttpAnswer) -> WriteOutcome:
    """Of the last call that was answered."""
    if not answer.status:
        return LOST if answer.was_sent else _NOT_SENT
    body = _read(answer.body)
    is_success = 200 <= answer.status < 300
    return WriteOutcome(
        code=answer.status,
        is_complete=is_success and body is not None and _is_expected(command, body),
        retry_after_seconds=retry_after_seconds(answer.retry_after) or 0.0,
        version=None if body is None else version_number(body.metadata.resource_version),
        message="" if is_success or body is None else body.message,
        found_uid=body.metadata.uid if body is not None and isinstance(command, LookAtPod) else "",
        found_node=body.spec.node_name if body is not None and isinstance(command, LookAtPod) else "",
    )


def why_refused(answer: HttpAnswer) -> str:
    body = _read(answer.body)
    return "" if body is None else body.message


def _is_expected(command: Answered, body: _Body) -> bool:
    if isinstance(command, Bind):
        return _is_success(body)
    if isinstance(command, PatchVolume):
        return body.kind == command.kind and bool(body.metadata.uid)
    if isinstance(command, DeleteVictim) and body.kind == "Status":
        return _is_success(body)
    return body.kind == "Pod" and bool(body.metadata.uid)


def _is_success(body: _Body) -> bool:
    return body.kind == "Status" and bool(body.status == "Success")


# ---- bodies ----


def _bind(command: Bind) -> HttpCall:
    namespace, _, name = command.pod.partition("/")
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"namespace": namespace, "name": name, "uid": command.uid},
        "target": {"kind": "Node", "name": command.node},
    }
    return HttpCall(method="POST", path=f"{_pod(command.pod)}/binding", body=_json(body))


def _status_patch(command: WriteStatus, at: str) -> object:
    meta: dict[str, str] = {"uid": command.uid}
    if command.version is not None:
        meta["resourceVersion"] = str(command.version)
    status: dict[str, object] = {}
    if command.reason:
        refused = {"type": "PodScheduled", "status": "False", "reason": command.reason, "message": command.message}
        status["conditions"] = [{**refused, "lastTransitionTime": at} if command.changes_condition else refused]
    if command.nominated_node is not None:
        status["nominatedNodeName"] = command.nominated_node or None
    return {"metadata": meta, "status": status}


def _disruption(command: DeleteVictim, at: str) -> object:
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": command.message,
        "lastTransitionTime": at,
    }
    return {"metadata": {"uid": command.uid}, "status": {"conditions": [condition]}}


def _volume_patch(command: PatchVolume) -> object:
    meta: dict[str, object] = {"annotations": dict(command.annotations)} if command.annotations else {}
    if command.version is not None:
        meta["resourceVersion"] = str(command.version)
    patch: dict[str, object] = {"metadata": meta}
    if command.claim:
        namespace, _, name = command.claim.partition("/")
        reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        patch["spec"] = {
            "claimRef": {**reference, "namespace": namespace, "name": name, "uid": command.claim_uid},
        }
    return patch


# ---- small ----


def _pod(key: str) -> str:
    namespace, _, name = key.partition("/")
    return f"/api/v1/namespaces/{namespace}/pods/{name}"


def _volume(command: PatchVolume) -> str:
    if command.kind == "PersistentVolume":
        return f"/api/v1/persistentvolumes/{command.key}"
    namespace, _, name = command.key.partition("/")
    return f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}"


def _patch(path: str, body: object) -> HttpCall:
    return HttpCall(method="PATCH", path=path, body=_json(body), content_type=STRATEGIC)


def _json(body: object) -> bytes:
    return _ENCODER.encode(body)


def _read(body: bytes) -> _Body | None:
    try:
        return _BODY.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
