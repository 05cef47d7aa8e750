"""Every key that careen writes, by the kind of its place, and the extent of a cleanup.

A test keeps the lists complete: each key of `facts/keys.py` in careen's or kured's domain is in one of them.
"""

from __future__ import annotations

from enum import StrEnum

from careen.core.facts import keys
from careen.core.facts.policy import Policy
from scheduler_core.values import Value

LABELS = (keys.REBOOT_LABEL,)

RECORDS = (*keys.OF_A_NEED, keys.LAST_REBOOT, keys.HISTORY)
"""Annotations of a Node that its agent writes."""

WORDS = (keys.HOLD, keys.REBOOT_NOW, keys.REQUEST, keys.RETRY)
"""Annotations of a Node that a person sets, with careen's commands or without."""

KUREDS = (keys.KURED_IN_PROGRESS, keys.KURED_MOST_RECENT)
"""Annotations of a Node that kured writes, and careen with --annotate-nodes."""

TAINTS = (keys.DEFAULT_TAINT_KEY,)

ON_THE_DAEMONSET = (keys.LOCK_ANNOTATION,)


class Kind(StrEnum):
    """The kinds of marks."""

    LABEL = "label"
    ANNOTATION = "annotation"
    TAINT = "taint"
    CORDON = "cordon"
    CLAIM = "claim"
    LINE = "line"
    PAUSE = "pause"


class CleanupMark(Value, kw_only=True):
    """One mark on a Node or in the lock: its present value, and what the cleanup does with it.

    A mark that the cleanup removes or restores has `afterwards`, such as `removed`; one that stays has `because`, a
    clause."""

    kind: Kind
    name: str = ""
    now: str = ""
    afterwards: str = ""
    because: str = ""


class Extent(Value, kw_only=True):
    """How far a cleanup goes. A person chooses the first three fields; the others come from the cluster."""

    with_kureds: bool = False
    """Also kured's leftovers: its annotations, its claims and their cordons."""
    with_unknown: bool = False
    """Also keys of careen's domain that this release does not write, and claims that cannot be read whole."""
    also: frozenset[str] = frozenset()
    """Also labels, annotations and soft taints with these keys."""
    policy: Policy | None = None
    """The agents' policy; None if it can no longer be read."""
    agents: int = 0
    """How many agents run. A hold that they obey stays."""
    pods: int = 0
    """How many pods the DaemonSet has, careen's or kured's. A pause that they obey stays."""
