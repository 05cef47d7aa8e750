"""Tests merge patch and JSON patch with tables, which contain the examples of RFC 7396 and RFC 6902."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drydock.server.api_errors import ApiError
from drydock.server.requests.patches import json_patch, merge_patch

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch_follows_rfc_7396(target: Any, patch: Any, expected: Any) -> None:
    assert merge_patch(target, patch) == expected


@given(json_values, json_values)
def test_a_merge_patch_does_not_modify_its_target_and_is_idempotent(target: Any, patch: Any) -> None:
    before = copy.deepcopy(target)
    once = merge_patch(target, patch)
    assert target == before
    assert merge_patch(once, patch) == once


@pytest.mark.parametrize(
    ("target", "operations", "expected"),
    [
        ({"a": 1}, [{"op": "add", "path": "/b", "value": 2}], {"a": 1, "b": 2}),
        ({"a": [1, 3]}, [{"op": "add", "path": "/a/1", "value": 2}], {"a": [1, 2, 3]}),
        ({"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}], {"a": [1, 2]}),
        ({"a": [1, 2]}, [{"op": "remove", "path": "/a/0"}], {"a": [2]}),
        ({"a": 1}, [{"op": "replace", "path": "/a", "value": {"b": 2}}], {"a": {"b": 2}}),
        ({"a": [1, 2]}, [{"op": "replace", "path": "/a/1", "value": 3}], {"a": [1, 3]}),
        ({"a": {"b": 1}}, [{"op": "move", "from": "/a/b", "path": "/c"}], {"a": {}, "c": 1}),
        ({"a": {"b": 1}}, [{"op": "copy", "from": "/a", "path": "/c"}], {"a": {"b": 1}, "c": {"b": 1}}),
        ({"a/b": {"m~n": 1}}, [{"op": "replace", "path": "/a~1b/m~0n", "value": 2}], {"a/b": {"m~n": 2}}),
        ({"a": 1}, [{"op": "test", "path": "/a", "value": 1}, {"op": "remove", "path": "/a"}], {}),
        ({}, [{"op": "test", "path": "/a", "value": None}], {}),
        ({"a": {}}, [{"op": "test", "path": "/a/b"}], {"a": {}}),
        ({}, [{"op": "add", "path": "/a"}], {"a": None}),
    ],
)
def test_json_patch_follows_rfc_6902(target: Any, operations: Any, expected: Any) -> None:
    before = copy.deepcopy(target)
    assert json_patch(target, operations) == expected
    assert target == before


@pytest.mark.parametrize(
    ("operations", "code"),
    [
        ([{"op": "test", "path": "/a", "value": 2}], 422),
        ([{"op": "remove", "path": "/missing"}], 422),
        ([{"op": "replace", "path": "/missing", "value": 1}], 422),
        ([{"op": "add", "path": "/missing/deeper", "value": 1}], 422),
        ([{"op": "add", "path": "/list/9", "value": 1}], 422),
        ([{"op": "add", "path": "/a/b", "value": 1}], 422),
        ([{"op": "jump", "path": "/a"}], 400),
        ([{"path": "/a"}], 400),
        (["jump"], 400),
        ([{"op": "move", "path": "/a"}], 422),
        ([{"op": "test", "path": "/a", "value": True}], 422),
        ([{"op": "test", "path": "/list/-", "value": None}], 422),
        ([{"op": "test", "path": "/missing/deeper", "value": None}], 422),
        ([{"op": "test", "path": "", "value": None}], 422),
        ([{"op": "add", "path": "a", "value": 1}], 400),
        ({"a": 1}, 400),
    ],
)
def test_a_json_patch_that_cannot_be_applied_is_refused(operations: Any, code: int) -> None:
    with pytest.raises(ApiError) as refusal:
        json_patch({"a": 1, "list": []}, operations)
    assert refusal.value.code == code
