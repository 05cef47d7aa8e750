"""Applies merge patches (RFC 7396) and JSON patches (RFC 6902), which work in the same way for all kinds of objects.

Strategic merge patches are in `strategic_merge.py`, because they merge some lists by rules that depend on the kind.
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
    """Returns the patched document. Does not modify the target."""
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
    """Returns the patched document. Does not modify the target.

    An invalid JSON patch is a 400. A failed `test` or a missing path is a 422, as in the real server."""
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
    """Adds null as the value if the operation has none. The real server's library does the same, while jsonpatch would
    fail."""
    return {"value": None, **operation} if isinstance(operation, dict) else operation


class _Test(TestOperation):
    """A `test` operation. As in the real server's library, a missing member counts as null. In jsonpatch, a `test` of a
    missing member fails."""

    def apply(self, obj: Any) -> Any:
        with suppress(JsonPointerException):
            parent, member = self.pointer.to_last(obj)
            if self.operation["value"] is None and isinstance(parent, dict) and member not in {None, *parent}:
                return obj
        return super().apply(obj)


class _Patch(JsonPatch):
    operations = MappingProxyType({**JsonPatch.operations, "test": _Test})
