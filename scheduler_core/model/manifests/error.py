"""The error of one API object that cannot be read: which object, which field, and why."""

from __future__ import annotations


class ManifestError(ValueError):
    """An object cannot be read. The object is left out; the caller continues with the other objects.

    `kind`, `key` ("namespace/name" or the name) and `field` (the API's path, such as
    spec.containers[0].resources.requests.cpu) identify the place.
    """

    def __init__(self, *, kind: str, key: str, field: str, problem: str) -> None:
        super().__init__(f"{kind} {key}: {field}: {problem}" if field else f"{kind} {key}: {problem}")
        self.kind = kind
        self.key = key
        self.field = field
        self.problem = problem


class FieldError(ValueError):
    """A field's value has the right type but cannot be read. A caller that knows the object raises ManifestError
    instead, which names the object."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem
