"""What the machine asks its shell to do. A closed set.

The shell answers every Write and Look once, by `Machine.answered`, with what it knows of the outcome. It does not
answer PostPodEvent, Note and Count, and may drop PostPodEvent when they pile up.
"""

from __future__ import annotations

from scheduler_core.extenders.asked_ahead import ExtenderCall
from scheduler_core.values import Value


class Bind(Value, kw_only=True):
    """POST a Binding of this pod (with its uid) to the node."""

    number: int
    pod: str
    uid: str
    node: str


class WriteStatus(Value, kw_only=True):
    """PATCH the pod's status, with uid and `version` (resourceVersion) as preconditions; without the version if it is
    None.

    `reason` and `message` are those of the condition PodScheduled=False; no condition if `reason` is empty.
    `changes_condition`: its status was not False before; otherwise its lastTransitionTime stays. `nominated_node`: None
    leaves the field as it is, empty clears it.
    """

    number: int
    pod: str
    uid: str
    reason: str = ""
    message: str = ""
    nominated_node: str | None = None
    version: int | None = None
    changes_condition: bool = False


class DeleteVictim(Value, kw_only=True):
    """Write the condition DisruptionTarget (PreemptionByScheduler, `message`), then DELETE the pod with its uid as
    precondition."""

    number: int
    pod: str
    uid: str
    message: str
    preemptor: str


class PatchVolume(Value, kw_only=True):
    """PATCH a PersistentVolumeClaim or PersistentVolume, with its `version` as precondition: add the annotations; bind
    the volume to the claim ("namespace/name" and uid) if `claim` is not empty."""

    number: int
    kind: str
    key: str
    pod_uid: str
    version: int | None
    annotations: tuple[tuple[str, str], ...]
    claim: str = ""
    claim_uid: str = ""


class LookAtPod(Value, kw_only=True):
    """GET the pod: nobody knows whether it was bound."""

    number: int
    pod: str
    uid: str


class AskExtender(Value, kw_only=True):
    """Call the extender, and give its answer to `Machine.told`."""

    number: int
    call: ExtenderCall


class PostPodEvent(Value, kw_only=True):
    """An Event about a pod, by the controller with this schedulerName. A repeated one becomes a series."""

    pod: str
    uid: str
    profile: str
    is_warning: bool
    reason: str
    action: str
    note: str


class Note(Value, kw_only=True):
    """A line of the log. `evaluated` and `feasible`: numbers of nodes; None if the line does not say them."""

    verbosity: int
    text: str
    pod: str = ""
    node: str = ""
    evaluated: int | None = None
    feasible: int | None = None
    why: str = ""


class Count(Value, kw_only=True):
    """A metric's increment, or an observation of a histogram, with the value of its label."""

    metric: str
    label: str = ""
    amount: float = 1


Write = Bind | WriteStatus | DeleteVictim | PatchVolume
Command = Write | LookAtPod | AskExtender | PostPodEvent | Note | Count
Commands = tuple[Command, ...]
Answered = Write | LookAtPod
