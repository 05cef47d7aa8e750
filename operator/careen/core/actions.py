"""The closed set of things an agent does. Each is idempotent or guarded by a version, and says what the shell owes.

The shell applies a decision's actions in order and stops at the first that did not surely succeed. An unclear
answer (time out, lost connection, 5xx) is not a failure: the write may land late. The next turn reads again,
and every write that follows carries the resourceVersion just read, so whichever lands first makes the other a
conflict."""

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
    """One JSON merge patch of the own Node, with `metadata.resourceVersion`: all of it lands, or nothing.

    `None` as a label's or annotation's value removes the key. `taints` is the whole list (a merge patch
    replaces lists); None leaves it. 409 stops the turn. `send_before` is an uptime after which the request must
    not be sent any more. A patch that `adds_taint` is sent under a name that proves it later."""

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
    """Compare-and-swap of the lock annotation on the DaemonSet (resourceVersion and UID as read); `content`
    None removes the key."""

    purpose: str
    expected_resource_version: str
    daemonset_uid: str
    content: str | None


class ConfirmClaim(Value, kw_only=True):
    """Read the lock once more, consistently, and stop unless `lock.confirms(…)` says that the claim
    stands and nothing is paused."""

    claim: str
    node: str


class EvictPod(Value, kw_only=True):
    """One pod to evict, by UID. `grace_seconds` None leaves the pod's own grace period.

    `comer_of`: by what pods that keep coming in spite of the cordon are counted (`drain_plan.owner_of`); empty
    for any other pod."""

    namespace: str
    name: str
    uid: str
    grace_seconds: int | None = None
    comer_of: str = ""


class Evict(Value, kw_only=True):
    """Ask for evictions, `parallel` at a time, each with a UID precondition; never stops the turn.

    Each answer is folded into the memory with `memory.after_eviction`. After a time out the same request may be
    sent again: the UID keeps it from hitting a successor of the same name."""

    pods: tuple[EvictPod, ...]
    parallel: int


class AskReboot(Value, kw_only=True):
    """Ask the host to reboot, only within `within_seconds` after ConfirmClaim's answer; else not at all and the
    turn ends.

    `send_before` is an uptime after which the host must not be asked any more: another process may have taken
    the announcer for dead.

    The shell calls `memory.before_reboot_asked` first and `memory.after_reboot_asked` with the answer.
    """

    within_seconds: float
    send_before: float | None = None


class SilenceAlerts(Value):
    """Ask Alertmanager for a silence of this node's alerts, within a few seconds; never stops the turn."""


class PostEvent(Value, kw_only=True):
    """A Kubernetes Event on the own Node; best effort, never stops the turn."""

    code: Code
    sentence: str
    is_warning: bool

    def __post_init__(self) -> None:
        force_setattr(self, "sentence", one_line(self.sentence))


class Occasion(StrEnum):
    """What people are told about: kured's three, and four more."""

    DRAIN = "drain"
    REBOOT = "reboot"
    UNCORDON = "uncordon"
    FAILED = "failed"  # everything is undone, and tried again
    BLOCKED = "blocked"  # a node has been held back for too long
    HALTED = "halted"  # nobody else may start, or nobody can
    DONE = "done"  # the last node is back, and nobody waits


class Notify(Value, kw_only=True):
    """A message to people; sent in the background, never holds up a turn. One occasion of one claim is told once."""

    occasion: Occasion
    sentence: str
    claim: str = ""
    reason: str = ""  # why the node reboots, or what went wrong
    seconds: float | None = None  # how long it has lasted; None when it is not known
    forecast: str = ""  # one line: where the pods go

    def __post_init__(self) -> None:
        for name in ("sentence", "reason", "forecast"):
            force_setattr(self, name, one_line(getattr(self, name)))


Action = PatchNode | WriteLock | ConfirmClaim | Evict | AskReboot | SilenceAlerts | PostEvent | Notify
