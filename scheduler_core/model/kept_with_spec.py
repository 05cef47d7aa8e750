"""Caches results computed from a pod's spec, as long as a pod uses the spec.

A cache with a limit on its size would keep the specs of deleted pods, and a process that follows a cluster reads many
specs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import ref

from scheduler_core.model.pod import PodSpec

Result = TypeVar("Result")
Others = ParamSpec("Others")


def kept_with_spec(
    work_out: Callable[Concatenate[PodSpec, Others], Result],
) -> Callable[Concatenate[PodSpec, Others], Result]:
    """A cache by the spec and the function's other arguments, which must be hashable."""
    # By the spec's id: a WeakKeyDictionary takes three times as long. The weak reference removes the entry of a lost
    # spec, before another object can get its id.
    kept: dict[int, tuple[ref[PodSpec], dict[Hashable, Result]]] = {}

    @wraps(work_out)
    def remembering(spec: PodSpec, /, *others: Any, **named: Any) -> Result:
        of_spec = kept.get(id(spec))
        if of_spec is None:
            number = id(spec)
            of_spec = kept[number] = (ref(spec, lambda _: kept.pop(number, None)), {})
        key = (others, *named.items()) if named else others
        results = of_spec[1]
        try:
            return results[key]
        except KeyError:
            result = results[key] = work_out(spec, *others, **named)
            return result

    return remembering
