"""Merge patch (RFC 7396) and JSON patch (RFC 6902), the patch formats that are independent of kinds.

The third format, whose merging of lists depends on the kind, is in `strategic_merge.py`.
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
    """The patched document; the target is not modified."""
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
    """The patched document; the target is not modified.

    An invalid JSON patch is 400; a failed `test` or a missing path is 422, as in the real server."""
    if not isinstance(operations, list):
        raise bad_request("a JSON patch is a list of operations")
    try:
        patch = _Patch([_with_value(each) for each in operations])
    except (JsonPatchException, JsonPointerException) as error:
        raise bad_request(f"not a JSON patch: {error}") from None
    try:
        return patch.apply(target)
    except (JsonPatchException, JsonPointerException) as error:
        raise unprocessable(f"the server rejected our request due to an error in our request: {error}") from None


def _with_value(operation: Any) -> Any:
    """The server's library treats a missing value as null; jsonpatch refuses it."""
    return {"value": None, **operation} if isinstance(operation, dict) else operation


class _Test(TestOperation):
    """The server's library treats a missing member as null; in jsonpatch the test fails."""

    def apply(self, obj: Any) -> Any:
        with suppress(JsonPointerException):
            parent, member = self.pointer.to_last(obj)
            if self.operation["value"] is None and isinstance(parent, dict) and member not in {None, *parent}:
                return obj
        return super().apply(obj)


class _Patch(JsonPatch):
    operations = MappingProxyType({**JsonPatch.operations, "test": _Test})
