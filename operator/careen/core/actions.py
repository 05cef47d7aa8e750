"""Every action of an agent; its docstring is the agent's task. An action can be repeated without harm, or carries a
resourceVersion, so that the API server rejects the repetition.

The agent applies the actions of a decision in order and stops at the first whose success is not certain. After an
unclear result (timeout, lost connection, 5xx) the API server may still carry out the write. So the next turn reads the
objects again, and its writes carry the resourceVersions of that read: if both writes arrive, the second gets a
conflict.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import field
from msgspec.structs import force_setattr

from careen.core.facts.observation import Taint
from careen.core.facts.reasons import Code
from careen.core.plain_text import annotation, one_line
from scheduler_core.values import Value


class PatchNode(Value, kw_only=True):
    """Patch the own Node with one JSON merge patch, guarded by its resourceVersion: all of it or nothing. A conflict
    (409) ends the turn.

    `None` removes a label or annotation. `taints` is the whole list, because a merge patch replaces lists; None leaves
    it.

    The agent must not send the patch once the host's uptime has reached `send_before`. With `adds_taint`, it sends the
    patch under the field manager `keys.TAINT_MANAGER`, which later proves that careen set the taint.
    """

    purpose: str
    resource_version: str
    labels: Mapping[str, str | None] = field(default_factory=dict)
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    taints: tuple[Taint, ...] | None = None
    unschedulable: bool | None = None
    send_before: float | None = None
    adds_taint: bool = False

    def __post_init__(self) -> None:
        fit = {key: None if value is None else annotation(value) for key, value in self.annotations.items()}
        force_setattr(self, "annotations", fit)


class WriteLock(Value, kw_only=True):
    """Replace the lock annotation, or remove it if `content` is None, provided that the DaemonSet still has the UID and
    resourceVersion that were read in this turn."""

    purpose: str
    expected_resource_version: str
    daemonset_uid: str
    content: str | None


class ConfirmClaim(Value, kw_only=True):
    """Read the lock again, consistently. The turn ends if the lock is paused or has no such claim of this node
    (`lock.confirms`)."""

    claim: str
    node: str


class EvictPod(Value, kw_only=True):
    """One pod to evict, identified by its UID. Without `grace_seconds`, the pod's own grace period applies.

    `new_pod_owner` is set for a pod created after the cordon: the agent counts the evictions of such pods by owner
    (`PodView.owner_or_own_uid`).
    """

    namespace: str
    name: str
    uid: str
    grace_seconds: int | None = None
    new_pod_owner: str = ""


class Evict(Value, kw_only=True):
    """Evict these pods, `parallel` at a time, each with its UID as a precondition. A failure does not stop the next
    action.

    Each answer goes into the memory (`memory.after_eviction`). After a timeout the agent may send the same request
    again: the UID keeps a new pod of the same name from being evicted.
    """

    pods: tuple[EvictPod, ...]
    parallel: int


class AskReboot(Value, kw_only=True):
    """Ask the host to reboot, at most `within_seconds` after the answer to ConfirmClaim; later the turn ends instead.

    The agent must not ask once the host's uptime has reached `send_before`: by then another agent process on this node
    may have concluded that this one is dead, and may have taken over the reboot.

    `memory.before_reboot_asked` comes before the question, `memory.after_reboot_asked` after it, with its result.
    """

    within_seconds: float
    send_before: float | None = None


class SilenceAlerts(Value):
    """Ask Alertmanager to silence this node's alerts, with a deadline of a few seconds. A failure does not stop the
    next action."""


class PostEvent(Value, kw_only=True):
    """Post an Event on the own Node. A failure does not stop the next action."""

    code: Code
    sentence: str
    is_warning: bool

    def __post_init__(self) -> None:
        force_setattr(self, "sentence", one_line(self.sentence))


class Occasion(StrEnum):
    """An occasion for a message to people; kured has the first three."""

    DRAIN = "drain"
    REBOOT = "reboot"
    UNCORDON = "uncordon"
    FAILED = "failed"  # the agent has undone everything and will try again
    BLOCKED = "blocked"  # a gate has refused a node for too long
    HALTED = "halted"  # no other node may start, or none can
    DONE = "done"  # the last node is back in service, and no node waits


class Notify(Value, kw_only=True):
    """Send a message in the background. During one claim there is at most one message for each occasion."""

    occasion: Occasion
    sentence: str
    claim: str = ""
    reason: str = ""  # why the node reboots, or what failed
    seconds: float | None = None  # duration so far; None if unknown
    forecast: str = ""  # one line: on which nodes the pods would run

    def __post_init__(self) -> None:
        for name in ("sentence", "reason", "forecast"):
            force_setattr(self, name, one_line(getattr(self, name)))


Action = PatchNode | WriteLock | ConfirmClaim | Evict | AskReboot | SilenceAlerts | PostEvent | Notify
