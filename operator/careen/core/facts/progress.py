"""The record of a node: versioned JSON in an annotation that only the node's own agent writes. It says how far claim,
drain and reboot have come, and survives the agent's process and the reboot.

The types of the fields define what the annotation may hold. A value of another type, an unknown field or a newer
version makes the record unreadable. Then the agent leaves claim, cordon and labels as they are, and says on the Node
what a person can do.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, field

from careen.core.facts.phases import UNDER_CLAIM, Phase
from careen.core.facts.untrusted import json_of, short, shown, whole
from scheduler_core.values import Value

VERSION = 1

Uptime = Annotated[float, Meta(ge=0, le=1e10)]  # three hundred years; a sum with it is still exact to the second
Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]  # the API's replicas are int32
Count32 = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Generation = Annotated[int, Meta(ge=0, le=2**63 - 1)]


SOFT_REBOOTS = "+soft-reboots="
"""The separator between a boot id and the number of soft reboots since that boot (--reboot-proof=soft-reboots)."""


def boot_id_of(boot: str) -> str:
    """The boot id as the kernel and the kubelet report it, without careen's counter (`+soft-reboots=2`)."""
    return boot.partition(SOFT_REBOOTS)[0]


def is_same_boot(one: str, other: str) -> bool:
    """Whether both texts name the same boot. A counter of soft reboots counts only if both have one: a person may have
    changed --reboot-proof under the claim, and that proves no reboot."""
    if boot_id_of(one) != boot_id_of(other):
        return False
    return one == other or not (SOFT_REBOOTS in one and SOFT_REBOOTS in other)


class Mark(Value, kw_only=True):
    """An instant on the host's own clock: `uptime` seconds since the boot whose id is `boot`."""

    boot: str
    uptime: Uptime


class Announcement(Mark, kw_only=True, rename={"is_asked": "asked"}):
    """Recorded right before an agent process asks the host to reboot. An older release, which knows only `Mark`, reads
    it as a `Mark`."""

    by: str = ""  # a random id: only the process that drew it may ask the host
    kernel: str = ""  # the release that the reboot leaves, for the report
    is_asked: bool = False  # a process of this node has recorded that it asked the host


class OwnerHealth(Value, kw_only=True):
    """The health of a controller of displaced pods, or of a DaemonSet with a pod on the node. A controller that no
    longer exists has none."""

    kind: str
    namespace: str
    name: str
    uid: str
    generation: Generation
    replicas: Count
    ready: Count
    bound_to: str = ""  # the node that its pod template names, usually empty; not part of the record
    parent: str = ""  # the UID of its own controller, such as a ReplicaSet's Deployment
    selector: str = ""  # selects its pods, and perhaps others, in a list request
    containers: Count32 = (
        0  # of a row about one pod: `PodView.containers`; of a workload: the part of `ready` that is lent
    )
    alive: Count = 0  # of a count of pods: those that neither terminate nor have finished; not part of the record

    @property
    def title(self) -> str:
        """`Kind namespace/name`, for sentences."""
        return f"{self.kind} {self.pod}"

    @property
    def pod(self) -> str:
        """`namespace/name`: the title of a row about a static pod."""
        return f"{self.namespace}/{self.name}"


class Progress(Value, kw_only=True, tag_field="version", tag=VERSION, forbid_unknown_fields=True):
    """The fields of the record. What has not happened yet is "" or None."""

    phase: str = ""  # a phase's value; empty: Idle

    # The need.
    need_since: str = ""  # RFC 3339
    tainted_at: str = ""  # RFC 3339: the lead time begins here
    taint_key: str = ""  # the key of our taint; empty: we set none
    reboots_for_need: Count = 0  # confirmed reboots since the need was first seen

    # The claim.
    claim: str = ""  # claim id
    lock: str = ""  # which lock object the claim is for
    # Everything is undone; next the entry leaves the lock, then the claim leaves the Node.
    is_releasing: bool = field(default=False, name="is_giving_back")
    claimed: Mark | None = None
    boot_left: str = ""  # the boot that the reboot under this claim ends

    # The drain.
    is_cordoned_by_us: bool = False
    prior_unschedulable: bool = False
    prior_labels: Mapping[str, str | None] = field(
        default_factory=dict
    )  # of the keys that --pre-reboot-node-labels changed
    prior_readiness: tuple[str, ...] = ()  # keys of NodeReadinessRule taints that the node had before the cordon
    owners: tuple[OwnerHealth, ...] = ()  # controllers of displaced pods, with their health before the drain
    drain_started: Mark | None = None
    drain_started_at: str = ""  # RFC 3339, for the report of the reboot
    drained: Mark | None = None
    displaced: Count = 0  # pods to be evicted when the drain began
    volumes: Count = 0  # attached to the node then

    # The reboot.
    announcement: Count = 0  # number of the last announcement under this claim
    announced: Announcement | None = None  # the last one
    is_forced: bool = False  # announced although pods were still on the node: --force-reboot
    tries: Count = 0  # reboot commands that failed for this need, and drains undone by a late refusal

    # Afterwards.
    verify_started: Mark | None = None
    settle_started: Mark | None = None

    # A failure.
    failed: str = ""  # reason code
    failed_at: Mark | None = None
    failures: Count = 0  # in a row, for the back-off


_EMPTY = Progress()


class UnreadableProgress(Value):
    """There is a record, but it cannot be understood; `why` is a sentence."""

    why: str


def to_annotation(progress: Progress) -> str:
    """The record as short JSON, without fields that have their default."""
    record: dict[str, Any] = {"version": VERSION}
    for name, stored_as in zip(Progress.__struct_fields__, Progress.__struct_encode_fields__, strict=True):
        value = getattr(progress, name)
        if value != getattr(_EMPTY, name):
            record[stored_as] = _plain(value)
    return json.dumps(record, separators=(",", ":"), sort_keys=True)


def from_annotation(text: str | None) -> Progress | UnreadableProgress:
    """The record in this text, or why it cannot be understood; an empty record for None."""
    if text is None:
        return _EMPTY
    record = json_of(text)
    if not isinstance(record, dict) or "version" not in record:
        return UnreadableProgress("the annotation careen.dev/progress is not JSON that careen wrote")
    version = record["version"]
    if whole(version, VERSION, 1) is None:
        return UnreadableProgress(
            f"the annotation careen.dev/progress has version {shown(version)}; this release reads versions up to "
            f"{VERSION}"
        )
    try:
        return msgspec.convert(_with_named_columns(record), Progress)
    except (ValueError, TypeError, OverflowError) as error:
        return UnreadableProgress(
            short(f"the annotation careen.dev/progress is not a record of version {version}: {error}")
        )


def consistent(written: Progress | UnreadableProgress) -> Progress | UnreadableProgress:
    """The record, or why its fields contradict each other as this release never writes them."""
    if written is _EMPTY:  # of most Nodes
        return written
    why = "" if isinstance(written, UnreadableProgress) else _contradiction(written)
    return UnreadableProgress(why) if why else written


_PHASES = frozenset(Phase)


def is_phase(text: str) -> bool:
    """Whether this release knows the phase; a new record has an empty one."""
    return not text or text in _PHASES


def phase_of(progress: Progress) -> Phase:
    """Idle if the record has no phase."""
    return Phase(progress.phase) if progress.phase else Phase.IDLE


def _contradiction(progress: Progress) -> str:
    """Why this release cannot have written the record; "" if it can."""
    if not is_phase(progress.phase):
        return (
            f"the annotation careen.dev/progress names the phase {progress.phase!r}, which this release does not know"
        )
    phase = progress.phase or Phase.IDLE  # as text: a member of `Phase` equals it, and this runs for every Node
    if bool(progress.claim) is not bool(progress.boot_left):
        return "the annotation careen.dev/progress must name a claim and the boot on which the claim began, or neither"
    if phase in UNDER_CLAIM and (not progress.claim or progress.is_releasing):
        return f"the annotation careen.dev/progress does not have the claim that the phase {phase} needs"
    if progress.claim and (phase == Phase.IDLE or (phase == Phase.WAITING and not progress.is_releasing)):
        return f"the annotation careen.dev/progress has a claim that the phase {phase} must not have"
    return ""


def _plain(value: Any) -> Any:
    if isinstance(value, Announcement):
        more = {**({"asked": True} if value.is_asked else {}), **({"kernel": value.kernel} if value.kernel else {})}
        return {"boot": value.boot, "by": value.by, "uptime": round(value.uptime, 3), **more}
    if isinstance(value, Mark):
        return {"boot": value.boot, "uptime": round(value.uptime, 3)}
    if isinstance(value, OwnerHealth):
        return _row(value)
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return dict(value) if isinstance(value, Mapping) else value


def rows_of(owners: Iterable[OwnerHealth]) -> list[list[str | int]]:
    """The owners as rows without names, to stay short."""
    return [_row(owner) for owner in owners]


def from_rows(rows: Any) -> tuple[OwnerHealth, ...]:
    """The owners of `rows_of`; () if the rows cannot be understood."""
    try:
        return msgspec.convert(_named(rows), tuple[OwnerHealth, ...])
    except (ValueError, TypeError, OverflowError):
        return ()


def _named(rows: Any) -> list[dict[str, Any]]:
    return [dict(zip(_OWNER_COLUMNS, row, strict=len(row) > len(_OWNER_COLUMNS))) for row in rows]


_OLD_COLUMNS = ("kind", "namespace", "name", "uid", "generation", "replicas", "ready")
_OWNER_COLUMNS = (*_OLD_COLUMNS, "parent", "selector", "containers")


def _row(owner: OwnerHealth) -> list[str | int]:
    """The columns, without those at the end that have their defaults: the releases before them read such a row."""
    row = [getattr(owner, column) for column in _OWNER_COLUMNS]
    while len(row) > len(_OLD_COLUMNS) and not row[-1]:
        row.pop()
    return row


def _with_named_columns(record: dict[str, Any]) -> dict[str, Any]:
    """The record's JSON with the entries of `owners` as objects. The annotation has them as rows without names, to stay
    short."""
    if "owners" not in record:
        return record
    return {**record, "owners": _named(record["owners"])}
