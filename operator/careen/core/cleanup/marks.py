"""Every key that careen writes, by where it stands, and what somebody who cleans up has said besides.

A test holds the lists complete: each name of `facts/keys.py` in careen's or kured's domain stands in one of them.
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
    """What a mark is."""

    LABEL = "label"
    ANNOTATION = "annotation"
    TAINT = "taint"
    CORDON = "cordon"
    CLAIM = "claim"
    LINE = "line"
    PAUSE = "pause"


class CleanupMark(Value, kw_only=True):
    """One thing on a Node or in the lock: what it says now, and what becomes of it.

    A mark that goes has `afterwards`, a word such as `removed`; one that stays has `because`, a clause."""

    kind: Kind
    name: str = ""
    now: str = ""
    afterwards: str = ""
    because: str = ""


class Extent(Value, kw_only=True):
    """How far a cleanup goes. The first three are a person's word, the others the cluster's."""

    with_kureds: bool = False
    """Also what kured left: its annotations, its claims and their cordons."""
    with_unknown: bool = False
    """Also keys of careen's domain that this release does not write, and claims that cannot be read whole."""
    also: frozenset[str] = frozenset()
    """Also labels, annotations and soft taints under these keys."""
    policy: Policy | None = None
    """What the agents obey; None when it cannot be read any more."""
    agents: int = 0
    """How many agents run. A hold that they obey stays."""
    pods: int = 0
    """How many pods the DaemonSet has, careen's or kured's. A pause that they obey stays."""
