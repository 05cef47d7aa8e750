"""Merge patches (RFC 7396) and JSON patches (RFC 6902), which work alike for all kinds.

Strategic merge patches, whose lists merge by kind, are in `strategic_merge.py`.
"""

from __future__ import annotations

import copy
from contextlib import suppress
from types import MappingProxyType
from typing import Any

from jsonpatch import JsonPatch, JsonPatchException, TestOperation
from jsonpointer import JsonPointerException

from drydock.server.api_errors import bad_request, unprocessable


def merge_patch(target: Any, patch: Any) -> Any:
    """The patched document; the target stays as it is."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def json_patch(target: Any, operations: Any) -> Any:
    """The patched document; the target stays as it is.

    An invalid patch is a 400; a failed `test` or a missing path is a 422, as in the real server.
    """
    if not isinstance(operations, list):
        raise bad_request("a JSON patch must be a list of operations")
    try:
        patch = _Patch([_with_value(each) for each in operations])
    except (JsonPatchException, JsonPointerException) as error:
        raise bad_request(f"the body is not a JSON patch: {error}") from None
    try:
        return patch.apply(target)
    except (JsonPatchException, JsonPointerException) as error:
        raise unprocessable(f"the server rejected our request due to an error in our request: {error}") from None


def _with_value(operation: Any) -> Any:
    """Adds null if the operation has no value, as the real server's library does; jsonpatch would fail."""
    return {"value": None, **operation} if isinstance(operation, dict) else operation


class _Test(TestOperation):
    """A missing member counts as null, as in the real server's library; in jsonpatch its `test` fails."""

    def apply(self, obj: Any) -> Any:
        with suppress(JsonPointerException):
            parent, member = self.pointer.to_last(obj)
            if self.operation["value"] is None and isinstance(parent, dict) and member not in {None, *parent}:
                return obj
        return super().apply(obj)


class _Patch(JsonPatch):
    operations = MappingProxyType({**JsonPatch.operations, "test": _Test})
