"""Tests strategic merge patch: which lists are merged by name, which are replaced, and the directives that kubectl
sends.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from drydock.server.api_errors import ApiError
from drydock.server.requests.strategic_merge import strategic_merge_patch

A, B = {"name": "a", "image": "1"}, {"name": "b", "image": "1"}


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        pytest.param(
            {"containers": [A, B]},
            {"containers": [{"name": "b", "image": "2"}]},
            {"containers": [A, {"name": "b", "image": "2"}]},
            id="containers merge by name",
        ),
        pytest.param(
            {"containers": [A]}, {"containers": [B]}, {"containers": [A, B]}, id="a container with a new name is added"
        ),
        pytest.param(
            {"containers": [A, B]},
            {"containers": [{"name": "a", "$patch": "delete"}]},
            {"containers": [B]},
            id="a container can be deleted by name",
        ),
        pytest.param(
            {"containers": [A]},
            {"containers": [B, {"$patch": "replace"}]},
            {"containers": [B]},
            id="a list can be replaced",
        ),
        pytest.param(
            {"taints": [{"key": "a", "effect": "NoSchedule"}]},
            {"taints": [{"key": "b", "effect": "NoSchedule"}]},
            {"taints": [{"key": "b", "effect": "NoSchedule"}]},
            id="taints are replaced as a whole",
        ),
        pytest.param(
            {"tolerations": [{"key": "a"}]},
            {"tolerations": [{"key": "b"}]},
            {"tolerations": [{"key": "b"}]},
            id="tolerations are replaced as a whole",
        ),
        pytest.param(
            {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "True"}]},
            {"conditions": [{"type": "Ready", "status": "False"}]},
            {"conditions": [{"type": "Ready", "status": "False"}, {"type": "Other", "status": "True"}]},
            id="conditions merge by type",
        ),
        pytest.param(
            {"spec": {"ports": [{"port": 80, "name": "a"}]}},
            {"spec": {"ports": [{"port": 81}]}},
            {"spec": {"ports": [{"port": 80, "name": "a"}, {"port": 81}]}},
            id="a service's ports merge by port",
        ),
        pytest.param(
            {"finalizers": ["a"]}, {"finalizers": ["b", "a"]}, {"finalizers": ["a", "b"]}, id="finalizers are a set"
        ),
        pytest.param(
            {"finalizers": ["a", "b"]},
            {"$deleteFromPrimitiveList/finalizers": ["a"]},
            {"finalizers": ["b"]},
            id="the patch removes a finalizer by its value",
        ),
        pytest.param(
            {"env": [{"name": "A", "value": "1"}]},
            {"env": [{"name": "A", "value": None, "valueFrom": {"x": 1}}]},
            {"env": [{"name": "A", "valueFrom": {"x": 1}}]},
            id="null removes a field of a list entry",
        ),
        pytest.param(
            {"containers": [A, B]},
            {
                "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
                "containers": [{"name": "a", "image": "2"}],
            },
            {"containers": [B, {"name": "a", "image": "2"}]},
            id="a list gets the order of $setElementOrder",
        ),
        pytest.param(
            {"containers": [A, B]},
            {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]},
            {"containers": [B, A]},
            id="the patch changes only the order of a list",
        ),
        pytest.param(
            {"strategy": {"type": "RollingUpdate", "rollingUpdate": {}}},
            {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}},
            {"strategy": {"type": "Recreate"}},
            id="only the keys in $retainKeys remain",
        ),
        pytest.param(
            {"labels": {"a": "1", "b": "1"}},
            {"labels": {"$patch": "replace", "c": "1"}},
            {"labels": {"c": "1"}},
            id="a mapping can be replaced",
        ),
        pytest.param(
            {"labels": {"a": "1"}}, {"labels": {"$patch": "delete"}}, {"labels": {}}, id="a mapping can be emptied"
        ),
        pytest.param({"labels": {"a": "1"}}, {"labels": None}, {}, id="null removes a mapping"),
    ],
)
def test_a_strategic_merge_patch_merges_lists_and_obeys_directives(target: Any, patch: Any, expected: Any) -> None:
    before = copy.deepcopy(target)
    assert strategic_merge_patch(target, patch) == expected
    assert target == before


@pytest.mark.parametrize("patch", [["a list"], {"$patch": "explode"}, {"containers": [{"image": "nameless"}]}])
def test_an_invalid_strategic_merge_patch_is_refused(patch: Any) -> None:
    with pytest.raises(ApiError) as refusal:
        strategic_merge_patch({"containers": [A]}, patch)
    assert refusal.value.code == 400
