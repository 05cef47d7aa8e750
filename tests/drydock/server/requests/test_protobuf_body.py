"""Tests protobuf bodies. The tests encode them by hand: field number and type, then the value."""

from __future__ import annotations

import pytest

from drydock.server.api_errors import ApiError
from drydock.server.requests.protobuf_body import decode_body


def text(number: int, value: str) -> bytes:
    return field(number, value.encode())


def field(number: int, value: bytes) -> bytes:
    assert len(value) < 128
    return bytes([number << 3 | 2, len(value)]) + value


def number(at: int, value: int) -> bytes:
    encoded = b""
    value &= (1 << 64) - 1
    while value > 0x7F:
        encoded += bytes([value & 0x7F | 0x80])
        value >>= 7
    return bytes([at << 3]) + encoded + bytes([value])


def envelope(kind: str, raw: bytes, version: str = "v1") -> bytes:
    return b"k8s\x00" + field(1, text(1, version) + text(2, kind)) + field(2, raw)


def test_an_eviction_in_protobuf_is_read_with_its_delete_options() -> None:
    options = number(1, 30) + field(2, text(1, "the-uid") + text(2, "42")) + text(5, "All")
    body = decode_body(
        envelope("Eviction", field(1, text(1, "web-1") + text(3, "shop")) + field(2, options), "policy/v1")
    )
    assert body == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "web-1", "namespace": "shop"},
        "deleteOptions": {
            "gracePeriodSeconds": 30,
            "preconditions": {"uid": "the-uid", "resourceVersion": "42"},
            "dryRun": ["All"],
        },
    }


def test_a_negative_integer_in_protobuf_is_read_correctly() -> None:
    assert decode_body(envelope("DeleteOptions", number(1, -1) + text(4, "Background"))) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "gracePeriodSeconds": -1,
        "propagationPolicy": "Background",
    }


def test_unknown_protobuf_fields_of_every_wire_type_are_skipped() -> None:
    strange = bytes([9 << 3 | 1]) + b"12345678" + bytes([10 << 3 | 5]) + b"1234" + number(11, 7) + text(12, "x")
    assert decode_body(envelope("DeleteOptions", strange + number(1, 5)))["gracePeriodSeconds"] == 5


def test_an_access_review_and_a_config_map_in_protobuf_are_read() -> None:
    review = decode_body(
        envelope(
            "SelfSubjectAccessReview", field(2, field(1, text(2, "list") + text(5, "nodes"))), "authorization.k8s.io/v1"
        )
    )
    assert review["spec"] == {"resourceAttributes": {"verb": "list", "resource": "nodes"}}
    config = decode_body(
        envelope(
            "ConfigMap",
            field(1, text(1, "careen") + field(11, text(1, "a") + text(2, "b")))
            + field(2, text(1, "period") + text(2, "5s")),
        )
    )
    assert (config["metadata"], config["data"]) == ({"name": "careen", "labels": {"a": "b"}}, {"period": "5s"})
    secret = decode_body(
        envelope("Secret", field(1, text(1, "s")) + field(2, text(1, "k") + text(2, "v")) + text(3, "Opaque"))
    )
    assert (secret["metadata"], secret["data"], secret["type"]) == ({"name": "s"}, {"k": "dg=="}, "Opaque")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"kind":"Pod"}', 400),
        (envelope("Pod", b""), 415),
        (b"k8s\x00" + bytes([1 << 3 | 2, 90]), 400),
        (b"k8s\x00" + bytes([0x80]), 400),
        (envelope("DeleteOptions", bytes([1 << 3 | 3])), 400),
    ],
)
def test_a_malformed_protobuf_body_is_refused(body: bytes, code: int) -> None:
    with pytest.raises(ApiError) as refusal:
        decode_body(body)
    assert refusal.value.code == code
