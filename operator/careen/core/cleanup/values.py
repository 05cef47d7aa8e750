"""What a cleanup finds, and how much it removes."""

from __future__ import annotations

from enum import StrEnum

from careen.core.facts.policy import Policy
from careen.core.node.marks import Kind
from scheduler_core.values import Value


class LockKind(StrEnum):
    """What careen leaves in the lock."""

    CLAIM = "claim"
    LINE = "line"
    PAUSE = "pause"


class CleanupMark(Value, kw_only=True):
    """One mark on a Node or in the lock, with its present value: either `afterwards`, such as `removed`, or `because`,
    the reason why it stays."""

    kind: Kind | LockKind
    name: str = ""
    now: str = ""
    afterwards: str = ""
    because: str = ""


class Extent(Value, kw_only=True):
    """How much a cleanup removes: the first three fields are a person's choice, the others are facts of the cluster."""

    with_kureds: bool = False
    """Also kured's leftovers: annotations, claims, and the cordons of nodes with such claims."""
    with_unknown: bool = False
    """Also unreadable claims, and keys of careen's domain that this release does not write."""
    also: frozenset[str] = frozenset()
    """Also labels, annotations and soft taints with these keys."""
    policy: Policy | None = None
    """The agents' policy; None if it can no longer be read."""
    agents: int = 0
    """How many agents run: they obey holds, so holds stay."""
    pods: int = 0
    """How many pods the DaemonSet has, careen's or kured's: they obey a pause of the lock, so it stays."""
