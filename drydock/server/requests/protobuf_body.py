"""Decodes the protobuf bodies that kubectl sends instead of JSON, without a schema compiler.

Field numbers are from `generated.proto` of apimachinery meta/v1, policy/v1, core/v1 and authorization/v1. After four
magic bytes, the body is a message `Unknown` of `runtime/generated.proto`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import Any

from drydock.server.api_errors import ApiError, bad_request

CONTENT_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

Fields = dict[int, list[Any]]


def decode_body(body: bytes) -> dict[str, Any]:
    """The object in JSON form. Raises ApiError 400 for an invalid body, 415 for a kind that is not decoded, such as
    a Pod."""
    if not body.startswith(_MAGIC):
        raise bad_request("a protobuf body must begin with k8s\\x00")
    envelope = _fields(body[len(_MAGIC) :])
    type_meta = _fields(_first_bytes(envelope, 1))
    kind = _text(type_meta, 2)
    raw = _fields(_first_bytes(envelope, 2))
    readers: dict[str, Callable[[Fields], dict[str, Any]]] = {
        "Eviction": lambda fields: {
            "metadata": _metadata(fields),
            "deleteOptions": _delete_options(_message(fields, 2)),
        },
        "DeleteOptions": _delete_options,
        "Namespace": lambda fields: {"metadata": _metadata(fields)},
        "ConfigMap": lambda fields: {"metadata": _metadata(fields), "data": _string_map(fields, 2)},
        "Secret": lambda fields: {
            "metadata": _metadata(fields),
            "data": _bytes_map(fields, 2),
            "type": _text(fields, 3),
        },
        "SelfSubjectAccessReview": lambda fields: {"metadata": {}, "spec": _review_spec(_message(fields, 2))},
    }
    if kind not in readers:
        raise ApiError(
            415,
            "UnsupportedMediaType",
            f"the server reads protobuf only for {', '.join(sorted(readers))}, not for {kind!r}: send JSON",
        )
    return {"apiVersion": _text(type_meta, 1), "kind": kind, **readers[kind](raw)}


def _metadata(fields: Fields) -> dict[str, Any]:
    metadata = _message(fields, 1)
    named = {
        "name": _text(metadata, 1),
        "generateName": _text(metadata, 2),
        "namespace": _text(metadata, 3),
        "labels": _string_map(metadata, 11),
        "annotations": _string_map(metadata, 12),
    }
    return {key: value for key, value in named.items() if value}


def _string_map(fields: Fields, number: int) -> dict[str, str]:
    entries = [_fields(entry) for entry in fields.get(number, [])]
    return {_text(entry, 1): _text(entry, 2) for entry in entries}


def _bytes_map(fields: Fields, number: int) -> dict[str, str]:
    """The values in base64, as in JSON."""
    entries = [_fields(entry) for entry in fields.get(number, [])]
    return {_text(entry, 1): b64encode(_first_bytes(entry, 2)).decode() for entry in entries}


def _review_spec(spec: Fields) -> dict[str, Any]:
    if 1 in spec:
        asked = _message(spec, 1)
        names = {1: "namespace", 2: "verb", 3: "group", 4: "version", 5: "resource", 6: "subresource", 7: "name"}
        return {"resourceAttributes": {name: _text(asked, number) for number, name in names.items() if number in asked}}
    return {"nonResourceAttributes": {"path": _text(_message(spec, 2), 1), "verb": _text(_message(spec, 2), 2)}}


def _delete_options(fields: Fields) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if 1 in fields:
        options["gracePeriodSeconds"] = _signed(fields[1][0])
    if 2 in fields:
        preconditions = _message(fields, 2)
        options["preconditions"] = {"uid": _text(preconditions, 1), "resourceVersion": _text(preconditions, 2)}
    if 4 in fields:
        options["propagationPolicy"] = _text(fields, 4)
    if 5 in fields:
        options["dryRun"] = [value.decode() for value in fields[5]]
    return options


def _message(fields: Fields, number: int) -> Fields:
    return _fields(_first_bytes(fields, number))


def _signed(value: int) -> int:
    """A negative int64, in protobuf the 64-bit two's complement; kubectl's `--grace-period=-1` needs it."""
    return value - (1 << 64) if value >= 1 << 63 else value


def _first_bytes(fields: Fields, number: int) -> bytes:
    value = fields.get(number, [b""])[0]
    return value if isinstance(value, bytes) else b""


def _text(fields: Fields, number: int) -> str:
    return _first_bytes(fields, number).decode()


def _fields(data: bytes) -> Fields:
    found: Fields = {}
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        value: Any
        if wire == _VARINT:
            value, at = _varint(data, at)
        elif wire == _BYTES:
            length, at = _varint(data, at)
            value, at = data[at : at + length], at + length
        elif wire in (_FIXED32, _FIXED64):
            length = 4 if wire == _FIXED32 else 8
            value, at = data[at : at + length], at + length
        else:
            raise bad_request(f"protobuf wire type {wire} is not used by Kubernetes")
        if at > len(data):
            raise bad_request("the protobuf body is cut short")
        found.setdefault(number, []).append(value)
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data):
            raise bad_request("the protobuf body is cut short")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
