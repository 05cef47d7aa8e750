"""The API server's refusals in the real server's words: an HTTP code, a reason and a `Status` object.

Clients decide by `reason` and `details.causes`; both follow apimachinery's `api/errors/errors.go`.
"""

from __future__ import annotations

from typing import Any

from drydock.server.kinds.resources import ResourceType


class ApiError(Exception):
    """A refusal. `status()` is the body of the response; `headers` are added to its headers."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details or {}
        self.headers = headers or {}

    def status(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        if self.details:
            body["details"] = self.details
        return body


def _details(resource: ResourceType, name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "group": resource.group, "kind": resource.plural, **more}


def not_found(resource: ResourceType, name: str) -> ApiError:
    return ApiError(404, "NotFound", f'{resource.qualified} "{name}" not found', details=_details(resource, name))


def unknown_path(path: str) -> ApiError:
    return ApiError(
        404,
        "NotFound",
        "the server could not find the requested resource",
        details={"causes": [{"reason": "UnexpectedServerResponse", "message": f"404 page not found: {path}"}]},
    )


def already_exists(resource: ResourceType, name: str) -> ApiError:
    return ApiError(
        409, "AlreadyExists", f'{resource.qualified} "{name}" already exists', details=_details(resource, name)
    )


def conflict(resource: ResourceType, name: str, why: str) -> ApiError:
    return ApiError(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {resource.qualified} "{name}": {why}',
        details=_details(resource, name),
    )


MODIFIED_MEANWHILE = "the object has been modified; please apply your changes to the latest version and try again"


def invalid(resource: ResourceType, name: str, causes: list[tuple[str, str]]) -> ApiError:
    """A 422. Each of `causes` is a field and what is wrong with it."""
    sentence = ", ".join(f"{where}: {what}" for where, what in causes)
    listed = [{"reason": "FieldValueInvalid", "field": where, "message": what} for where, what in causes]
    details = {"name": name, "group": resource.group, "kind": resource.kind, "causes": listed}
    return ApiError(422, "Invalid", f'{resource.kind} "{name}" is invalid: {sentence}', details=details)


def unprocessable(message: str) -> ApiError:
    return ApiError(422, "Invalid", message)


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def forbidden(resource: ResourceType, name: str, why: str) -> ApiError:
    return ApiError(
        403, "Forbidden", f'{resource.qualified} "{name}" is forbidden: {why}', details=_details(resource, name)
    )


def method_not_allowed(method: str) -> ApiError:
    return ApiError(405, "MethodNotAllowed", f"the server does not allow {method} on the requested resource")


def unsupported_media_type(content_type: str, known: tuple[str, ...]) -> ApiError:
    return ApiError(
        415,
        "UnsupportedMediaType",
        f"the body of the request was in an unknown format - accepted media types include: {', '.join(known)} "
        f"(got {content_type!r})",
    )


def too_many_requests(
    message: str, *, retry_after_seconds: int | None, causes: list[dict[str, str]] | None = None
) -> ApiError:
    details: dict[str, Any] = {}
    if retry_after_seconds:
        details["retryAfterSeconds"] = retry_after_seconds
    if causes:
        details["causes"] = causes
    headers = {"Retry-After": str(retry_after_seconds)} if retry_after_seconds else {}
    return ApiError(429, "TooManyRequests", message, details=details, headers=headers)


def denied(webhook: str, why: str, *, code: int) -> ApiError:
    """A webhook's refusal. The server passes its code on, and no reason (apiserver webhook/errors/statuserror.go)."""
    return ApiError(code, "", f'admission webhook "{webhook}" denied the request: {why}')


def internal_error(message: str) -> ApiError:
    return ApiError(500, "InternalError", f"Internal error occurred: {message}")


def expired(message: str) -> ApiError:
    """A 410: the requested history is gone, so the client must list again."""
    return ApiError(410, "Expired", message)
