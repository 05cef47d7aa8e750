"""One API object cannot be read: which one, which field, and why."""

from __future__ import annotations


class ManifestError(ValueError):
    """An object cannot be read. It is left out; the caller continues with the others.

    `kind`, `key` ("namespace/name" or the name) and `field` (the API's path, such as
    spec.containers[0].resources.requests.cpu) identify the place.
    """

    def __init__(self, *, kind: str, key: str, field: str, problem: str) -> None:
        text = f"{kind} {key}: {field}: {problem}" if field else f"{kind} {key}: {problem}"
        super().__init__(text.encode(errors="backslashreplace").decode())  # an unpaired surrogate cannot be printed
        self.kind = kind
        self.key = key
        self.field = field
        self.problem = problem


def object_key(namespace: str | None, name: str) -> str:
    """As the manifest says it: a pod without a namespace is not in "default" yet."""
    return f"{namespace}/{name}" if namespace else name


def nameless(kind: str) -> ManifestError:
    return ManifestError(kind=kind, key="without a name", field="metadata.name", problem="an object needs a name")


class FieldError(ValueError):
    """A value of the right type cannot be read. A caller that knows the object raises ManifestError instead."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem
