"""One API object cannot be read: which one, which field, and why."""

from __future__ import annotations


class ManifestError(ValueError):
    """An object cannot be read. It is left out; the caller continues with the others.

    `kind`, `key` ("namespace/name" or the name) and `field` (the API's path, such as
    spec.containers[0].resources.requests.cpu) identify the place.
    """

    leaves_out = "an object that could not be read"

    def __init__(self, *, kind: str, key: str, field: str, problem: str) -> None:
        super().__init__(f"{kind} {key}: {field}: {problem}" if field else f"{kind} {key}: {problem}")
        self.kind = kind
        self.key = key
        self.field = field
        self.problem = problem


class RulesLeftOut(ManifestError):
    """The objects are there, but some of them without what they say about their places."""

    leaves_out = "rules of pods"


class FieldError(ValueError):
    """A value of the right type cannot be read. A caller that knows the object raises ManifestError instead."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem
