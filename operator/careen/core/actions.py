"""Every action that an agent can take. The docstring of an action says what the agent must do. An action can be
repeated without harm, or it carries a resourceVersion, so that the API server rejects the repetition.

The agent applies the actions of a decision in order. It stops at the first action whose success is not certain. After
an unclear result (timeout, lost connection, 5xx) the API server may still carry out the write. So the next round of the
agent's loop (observe, decide, apply) reads the objects again, and its writes carry the resourceVersions of that read.
If both the unclear write and the new write reach the API server, the second one gets a conflict.
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
    """Patch the agent's own Node with one JSON merge patch, guarded by its resourceVersion: the API server applies all
    of the patch or nothing. A conflict (409) ends this round of the agent's loop.

    `None` as the value of a label or annotation removes the key. `taints` is the whole list, because a merge patch
    replaces lists; None leaves the taints as they are.

    The agent must not send the patch once the host's uptime in seconds has reached `send_before`. If `adds_taint` is
    set, the agent sends the patch under the field manager `keys.TAINT_MANAGER`, which later proves that careen set the
    taint.
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
    """Replace the value of the lock annotation on the DaemonSet by `content`, provided that the DaemonSet still has the
    UID and resourceVersion that the agent read in this round of its loop. If `content` is None, remove the annotation.
    """

    purpose: str
    expected_resource_version: str
    daemonset_uid: str
    content: str | None


class ConfirmClaim(Value, kw_only=True):
    """Read the lock again with a consistent read. End this round of the agent's loop if the lock is paused or no longer
    contains the claim with the id `claim` of this node (`lock.confirms`)."""

    claim: str
    node: str


class EvictPod(Value, kw_only=True):
    """One pod to evict, identified by its UID. If `grace_seconds` is None, the pod's own grace period applies.

    For a pod that was created after the cordon, `new_pod_owner` is the UID of its owner (`drain_plan.owner_of`),
    because the agent counts the evictions of such pods by owner. For any other pod `new_pod_owner` is empty.
    """

    namespace: str
    name: str
    uid: str
    grace_seconds: int | None = None
    new_pod_owner: str = ""


class Evict(Value, kw_only=True):
    """Request the evictions of these pods, `parallel` at a time, each with the pod's UID as a precondition. If an
    eviction fails, the agent goes on with the next action.

    The agent adds each response of the API server to its memory with `memory.after_eviction`. After a timeout the agent
    may send the same request again: the UID in the request keeps a new pod of the same name from being evicted.
    """

    pods: tuple[EvictPod, ...]
    parallel: int


class AskReboot(Value, kw_only=True):
    """Ask the host to reboot, at most `within_seconds` after the API server's response to ConfirmClaim. After that time
    the agent ends this round of its loop and does not ask.

    The agent must not ask the host once the host's uptime in seconds has reached `send_before`. By then another agent
    process on this node may have concluded that this process is dead, and may have taken over the reboot.

    The agent calls `memory.before_reboot_asked` before it asks, and `memory.after_reboot_asked` with the result of the
    reboot command.
    """

    within_seconds: float
    send_before: float | None = None


class SilenceAlerts(Value):
    """Ask Alertmanager to silence this node's alerts, with a deadline of a few seconds. If the request fails, the agent
    goes on with the next action."""


class PostEvent(Value, kw_only=True):
    """Post a Kubernetes Event on the agent's own Node. If the request fails, the agent goes on with the next action."""

    code: Code
    sentence: str
    is_warning: bool

    def __post_init__(self) -> None:
        force_setattr(self, "sentence", one_line(self.sentence))


class Occasion(StrEnum):
    """An occasion on which careen sends a message to people. kured also sends messages on the first three of these
    occasions."""

    DRAIN = "drain"
    REBOOT = "reboot"
    UNCORDON = "uncordon"
    FAILED = "failed"  # the agent has undone everything and will try again
    BLOCKED = "blocked"  # a gate has refused a node for too long
    HALTED = "halted"  # no other node may start, or none can
    DONE = "done"  # the last node is back in service, and no node waits


class Notify(Value, kw_only=True):
    """Send a message to people in the background, without delaying the next action. During one claim the agent sends at
    most one message for each occasion."""

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
