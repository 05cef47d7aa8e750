"""Lists the keys of all labels, annotations and taints that careen writes, one list for each kind. Also defines how
much a cleanup removes.

A test keeps the lists complete: each key of `facts/keys.py` in careen's or kured's domain is in one of the lists.
"""

from __future__ import annotations

from enum import StrEnum

from careen.core.facts import keys
from careen.core.facts.policy import Policy
from scheduler_core.values import Value

LABELS = (keys.REBOOT_LABEL,)

RECORDS = (*keys.OF_A_NEED, keys.LAST_REBOOT, keys.HISTORY)
"""Keys of annotations that only the agent of a node writes on its Node."""

WORDS = (keys.HOLD, keys.REBOOT_NOW, keys.REQUEST, keys.RETRY)
"""Keys of annotations that a person sets on a Node, with or without careen's commands."""

KUREDS = (keys.KURED_IN_PROGRESS, keys.KURED_MOST_RECENT)
"""Keys of annotations that kured writes on a Node. careen writes them too with --annotate-nodes."""

TAINTS = (keys.DEFAULT_TAINT_KEY,)

ON_THE_DAEMONSET = (keys.LOCK_ANNOTATION,)


class Kind(StrEnum):
    """The kinds of marks that careen leaves on Nodes and in the lock."""

    LABEL = "label"
    ANNOTATION = "annotation"
    TAINT = "taint"
    CORDON = "cordon"
    CLAIM = "claim"
    LINE = "line"
    PAUSE = "pause"


class CleanupMark(Value, kw_only=True):
    """One mark on a Node or in the lock: its present value, and what the cleanup does with it.

    A mark that the cleanup removes or restores has `afterwards`, such as `removed`. A mark that stays has `because`, a
    clause with the reason."""

    kind: Kind
    name: str = ""
    now: str = ""
    afterwards: str = ""
    because: str = ""


class Extent(Value, kw_only=True):
    """How much a cleanup removes. A person who runs `careen cleanup` chooses the first three fields; the command reads
    the other fields from the cluster."""

    with_kureds: bool = False
    """Whether the cleanup also removes kured's leftovers: annotations, claims, and the cordons of nodes with such
    claims."""
    with_unknown: bool = False
    """Whether the cleanup also removes unreadable claims, and keys of careen's domain that this release does not
    write."""
    also: frozenset[str] = frozenset()
    """Further keys: the cleanup also removes labels, annotations and soft taints with these keys."""
    policy: Policy | None = None
    """The agents' policy; None if it can no longer be read."""
    agents: int = 0
    """How many agents run. While agents run, a hold (an annotation by which a person keeps a node from rebooting) stays
    on its Node, because the agents obey holds."""
    pods: int = 0
    """How many pods the DaemonSet has, careen's or kured's. While there are pods, a pause of the lock stays, because
    the pods obey the pause."""
