"""Query, headers and body of a request. Each invalid one is a 400."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import yaml
from aiohttp import web

from drydock.server import api_errors
from drydock.server.requests.info import RequestInfo
from drydock.server.requests.protobuf_body import CONTENT_TYPE as PROTOBUF
from drydock.server.requests.protobuf_body import decode_body
from drydock.server.requests.selectors import Matches, object_selector
from drydock.server.verbs import DeleteOptions
from drydock.server.watch_stream import WatchRequest

# A real server adds up to as much again at random; here runs are meant to repeat.
_DEFAULT_WATCH_SECONDS = 1800.0


async def body_of(request: web.Request) -> dict[str, Any]:
    """The object in a body of any supported format; empty without a body."""
    raw = await request.read()
    if not raw:
        return {}
    if request.content_type == PROTOBUF:
        return decode_body(raw)
    content = yaml.safe_load(raw) if request.content_type == "application/yaml" else decoded(raw)
    if not isinstance(content, dict):
        raise api_errors.bad_request("the body of the request is not a JSON object")
    return content


def decoded(raw: bytes) -> Any:
    """The JSON value in the body, which may be a list: a JSON patch is one."""
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError as error:
        raise api_errors.bad_request(f"the body of the request is not JSON: {error}") from error


def wants_table(request: web.Request) -> bool:
    """Whether kubectl's Accept header has Table before plain JSON."""
    return "as=Table" in request.headers.get("Accept", "")


def is_dry_run(query: Mapping[str, str]) -> bool:
    """Raises 400 for a value other than `All`."""
    value = query.get("dryRun", "")
    if value not in ("", "All"):
        raise api_errors.bad_request(f'dryRun: Invalid value: "{value}": supported values: "All"')
    return value == "All"


def number(query: Mapping[str, str], name: str) -> int:
    text = query.get(name, "") or "0"
    if not text.isdigit():
        raise api_errors.bad_request(f"{name}: Invalid value: {text!r}: must be a whole number")
    return int(text)


def selected(query: Mapping[str, str], info: RequestInfo) -> Matches | None:
    """Label and field selector of the query as one predicate; None if both are empty."""
    return object_selector(query.get("labelSelector", ""), query.get("fieldSelector", ""), info.resource.storage)


def delete_options(body: Mapping[str, Any], query: Mapping[str, str]) -> DeleteOptions:
    """The DeleteOptions of the body; those of the query win."""
    given = dict(body)
    if "gracePeriodSeconds" in query:
        given["gracePeriodSeconds"] = number(query, "gracePeriodSeconds")
    if "propagationPolicy" in query:
        given["propagationPolicy"] = query["propagationPolicy"]
    return DeleteOptions.from_body(given, dry_run=is_dry_run(query))


def watch_request(query: Mapping[str, str], info: RequestInfo) -> WatchRequest:
    version = query.get("resourceVersion", "")
    if version and not version.isdigit():
        raise api_errors.bad_request(
            f'resourceVersion: Invalid value: "{version}": strconv.ParseUint: parsing "{version}": invalid syntax'
        )
    return WatchRequest(
        resource=info.resource,
        namespace=info.namespace,
        name=info.name,
        selected=selected(query, info),
        from_version=int(version) if version not in ("", "0") else None,
        initial_events=query.get("sendInitialEvents") == "true",
        bookmarks=query.get("allowWatchBookmarks") in ("true", "1"),
        timeout_seconds=float(number(query, "timeoutSeconds") or _DEFAULT_WATCH_SECONDS),
    )
