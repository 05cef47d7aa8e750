"""Answers those requests of an agent that do not concern objects. These requests ask for the server's version, its
readiness, and the agent's own rights."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from careen.cluster.access import REVIEWS, RULES
from careen.cluster.wire.transport import Request
from drydock.server.kinds.discovery import discovery_answer

_SOME_RULES: list[dict[str, Any]] = [
    {"verbs": ["get", "list", "watch", "patch", "create"], "apiGroups": ["", "apps"], "resources": ["*"]},
]
"""The rules that a review of the agent's rights returns. They are incomplete, as in a cluster with another authorizer
beside RBAC, so the agent asks for each other right in a separate request."""


def other_answer(request: Request) -> tuple[int, bytes] | None:
    """Return the HTTP status and the body of the response, or None if the request is for objects such as Nodes."""
    if request.path == "/readyz":
        return 200, b"ok"
    if request.path == "/version":
        return 200, msgspec.json.encode(discovery_answer(request.path))
    status = {
        RULES: {"resourceRules": _SOME_RULES, "nonResourceRules": [], "incomplete": True},
        REVIEWS: {"allowed": True},
    }.get(request.path)
    if status is None:
        return None
    return 201, msgspec.json.encode({**json.loads(request.body or b"{}"), "status": status})
