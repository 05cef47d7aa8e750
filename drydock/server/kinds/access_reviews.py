"""Authentication and authorization: tokens, access reviews, and refusals that name the missing right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from drydock.server.api_errors import ApiError
from drydock.server.requests.info import RequestInfo

ANONYMOUS = "system:anonymous"

# user, verb, group, resource (with /subresource), namespace, name -> allowed
Authorizer = Callable[[str, str, str, str, str, str], bool]


def allow_everything(_user: str, _verb: str, _group: str, _resource: str, _namespace: str, _name: str) -> bool:
    return True


def user_of(authorization: str, users: Mapping[str, str]) -> str:
    """The user of an Authorization header; the anonymous user without a token. Raises 401 for an unknown token."""
    if not authorization:
        return ANONYMOUS
    token = authorization.removeprefix("Bearer ").strip()
    if not users:
        return token or ANONYMOUS
    if token not in users:
        raise ApiError(401, "Unauthorized", "Unauthorized")
    return users[token]


def refuse_unless_allowed(authorizer: Authorizer, user: str, info: RequestInfo) -> None:
    resource = info.resource
    asked = f"{resource.plural}/{info.subresource}" if info.subresource else resource.plural
    if authorizer(user, info.verb, resource.group, asked, info.namespace, info.name):
        return
    where = f' in the namespace "{info.namespace}"' if info.namespace else " at the cluster scope"
    named = f' "{info.name}"' if info.name else ""
    message = (
        f'{resource.qualified}{named} is forbidden: User "{user}" cannot {info.verb} resource "{asked}" '
        f'in API group "{resource.group}"{where}'
    )
    raise ApiError(
        403, "Forbidden", message, details={"name": info.name, "group": resource.group, "kind": resource.plural}
    )


def answer_review(kind: str, body: Mapping[str, Any], user: str, authorizer: Authorizer) -> dict[str, Any]:
    """The review with its status filled in. Raises 422 if it does not say which access to check."""
    if kind == "SelfSubjectReview":
        return {**body, "status": {"userInfo": {"username": user, "groups": ["system:authenticated"]}}}
    spec = body.get("spec") or {}
    asked = spec.get("resourceAttributes")
    if asked is None:
        if "nonResourceAttributes" in spec:
            return {**body, "status": {"allowed": True}}
        raise ApiError(
            422,
            "Invalid",
            "SelfSubjectAccessReview is invalid: spec: exactly one of nonResourceAttributes or "
            "resourceAttributes must be specified",
        )
    resource = asked.get("resource", "")
    if asked.get("subresource"):
        resource = f"{resource}/{asked['subresource']}"
    allowed = authorizer(
        user, asked.get("verb", ""), asked.get("group", ""), resource, asked.get("namespace", ""), asked.get("name", "")
    )
    status: dict[str, Any] = {"allowed": allowed}
    if not allowed:
        status["reason"] = f"no RBAC rule allows {user} to {asked.get('verb', '')} {resource}"
    return {**body, "status": status}
