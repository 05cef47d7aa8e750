"""What an event or a list changed in the cache."""

from __future__ import annotations

from typing import Any

from scheduler_core.values import Value


class Change(Value, kw_only=True):
    """One object before and after it changed, as the API server has it; None if it does not exist. A pod that has
    finished does not exist, nor does an object that cannot be read.

    `assumed`: the node on which `ClusterCache.assume` had put the pod, which now is bound, deleted or still pending;
    "" if none.
    """

    kind: str
    key: str
    old: Any
    new: Any
    assumed: str = ""


Changes = tuple[Change, ...]
