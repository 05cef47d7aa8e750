"""Merge patch (RFC 7396) and JSON patch (RFC 6902): the patch forms that know nothing of kinds.

The third form, which knows how lists of Kubernetes objects merge, is `strategic_merge.py`.
"""

from __future__ import annotations

import copy
from typing import Any

from drydock.server.api_errors import bad_request, unprocessable


def merge_patch(target: Any, patch: Any) -> Any:
    """The patched document; the target is left as it was."""
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
    """The patched document; a failed `test` or a path that is not there is 422, as the real server answers."""
    if not isinstance(operations, list):
        raise bad_request("a JSON patch is a list of operations")
    document = copy.deepcopy(target)
    for operation in operations:
        document = _apply(document, operation)
    return document


def _apply(document: Any, operation: Any) -> Any:
    if not isinstance(operation, dict) or "op" not in operation or "path" not in operation:
        raise bad_request(f"not a JSON patch operation: {operation!r}")
    path = _steps(operation["path"])
    match operation["op"]:
        case "test":
            if _read(document, path, missing=None) != operation.get("value"):
                raise unprocessable(
                    "the server rejected our request due to an error in our request: testing value "
                    f"{operation['path']} failed"
                )
            return document
        case "add":
            return _write(document, path, copy.deepcopy(operation.get("value")), insert=True)
        case "replace":
            _read(document, path)
            return _write(document, path, copy.deepcopy(operation.get("value")), insert=False)
        case "remove":
            _read(document, path)
            return _remove(document, path)
        case "move":
            value = _read(document, _steps(operation["from"]))
            return _write(_remove(document, _steps(operation["from"])), path, value, insert=True)
        case "copy":
            return _write(document, path, copy.deepcopy(_read(document, _steps(operation["from"]))), insert=True)
        case other:
            raise bad_request(f"unknown JSON patch operation {other!r}")


def _steps(pointer: str) -> list[str]:
    if pointer == "":
        return []
    if not pointer.startswith("/"):
        raise bad_request(f"a JSON pointer starts with /: {pointer!r}")
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer[1:].split("/")]


class _Missing:
    """Asked for a path that is not there; a value of its own because null may be a path's content."""


_REFUSE = _Missing()


def _read(document: Any, path: list[str], missing: Any = _REFUSE) -> Any:
    here = document
    for step in path:
        if isinstance(here, dict) and step in here:
            here = here[step]
        elif isinstance(here, list) and step.isdigit() and int(step) < len(here):
            here = here[int(step)]
        elif missing is _REFUSE:
            raise unprocessable(
                f"the server rejected our request due to an error in our request: no value at /{'/'.join(path)}"
            )
        else:
            return missing
    return here


def _write(document: Any, path: list[str], value: Any, *, insert: bool) -> Any:
    if not path:
        return value
    parent, last = _read(document, path[:-1]), path[-1]
    if isinstance(parent, dict):
        parent[last] = value
    elif isinstance(parent, list):
        _write_in_list(parent, last, value, insert=insert)
    else:
        raise unprocessable(f"nothing can be written below /{'/'.join(path[:-1])}")
    return document


def _write_in_list(items: list[Any], step: str, value: Any, *, insert: bool) -> None:
    if step == "-":
        items.append(value)
    elif step.isdigit() and int(step) <= len(items):
        if insert:
            items.insert(int(step), value)
        else:
            items[int(step)] = value
    else:
        raise unprocessable(f"{step!r} is no place in a list of {len(items)}")


def _remove(document: Any, path: list[str]) -> Any:
    parent, last = _read(document, path[:-1]), path[-1]
    if isinstance(parent, list):
        del parent[int(last)]
    else:
        del parent[last]
    return document
