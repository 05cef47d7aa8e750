"""The record of a node: versioned JSON in one annotation of the Node. The agent records in it how far the node's claim,
drain and reboot have come. The record must survive the agent's process and the reboot. Only the node's own agent writes
the record.

The types of the fields define what the annotation may hold. A value of another type or an unknown field makes the
record unreadable. A record of a newer release of careen is unreadable too. While the record is unreadable, the agent
does not change the node's claim, cordon and labels, and writes on the Node what a person can do.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, field

from careen.core.facts.phases import Phase
from careen.core.facts.untrusted import json_of, short, shown, whole
from scheduler_core.values import Value

VERSION = 1

Uptime = Annotated[float, Meta(ge=0, le=1e10)]  # three hundred years; a sum with it is still exact to the second
Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]  # the API's replicas are int32
Generation = Annotated[int, Meta(ge=0, le=2**63 - 1)]


SOFT_REBOOTS = "+soft-reboots="
"""The separator between a boot id and the number of soft reboots since that boot (--reboot-proof=soft-reboots)."""


def boot_id_of(boot: str) -> str:
    """Return the boot id as the kernel and the kubelet report it, without the counter of soft reboots
    (`+soft-reboots=2`) that careen may have appended."""
    return boot.partition(SOFT_REBOOTS)[0]


def is_same_boot(one: str, other: str) -> bool:
    """Whether both texts name the same boot of the host. The boot ids must be equal. If both texts have a counter of
    soft reboots, the counters must be equal too. If only one of the texts has a counter, the counter is ignored: a
    person may have changed --reboot-proof while the node held its claim, and a change of this setting does not prove a
    reboot."""
    if boot_id_of(one) != boot_id_of(other):
        return False
    return one == other or not (SOFT_REBOOTS in one and SOFT_REBOOTS in other)


class Mark(Value, kw_only=True):
    """An instant on the host's own clock: `uptime` is in seconds since the host's boot, whose id is `boot`."""

    boot: str
    uptime: Uptime


class Announcement(Mark, kw_only=True, rename={"is_asked": "asked"}):
    """What an agent process records on the Node right before it asks the host to reboot: the instant, a random id, and
    later whether a process has asked the host. An older release of careen, which knows only `Mark`, reads an
    announcement as a `Mark`."""

    by: str = ""  # a random id: only the process that drew it may ask the host
    is_asked: bool = False  # a process of this node has recorded that it asked the host


class OwnerHealth(Value, kw_only=True):
    """The health of a controller that owns pods which the drain evicts, or of a DaemonSet with a pod on the node: how
    many replicas the controller wants and how many are ready. A controller that no longer exists has no `OwnerHealth`.
    """

    kind: str
    namespace: str
    name: str
    uid: str
    generation: Generation
    replicas: Count
    ready: Count
    bound_to: str = ""  # the node that its pod template names, usually empty; not part of the record

    @property
    def title(self) -> str:
        """The controller as `Kind namespace/name`, for sentences."""
        return f"{self.kind} {self.namespace}/{self.name}"


class Progress(Value, kw_only=True, tag_field="version", tag=VERSION, forbid_unknown_fields=True):
    """The fields of careen's record on the Node. A field that records an event is an empty string or None until the
    event has happened."""

    phase: str = ""  # a phase's value; empty: Idle

    # The need.
    need_since: str = ""  # RFC 3339
    tainted_at: str = ""  # RFC 3339: the lead time begins here
    taint_key: str = ""  # the key of our taint; empty: we set none
    reboots_for_need: Count = 0  # confirmed reboots since the need was first seen

    # The claim.
    claim: str = ""  # claim id
    lock: str = ""  # which lock object the claim is for
    is_giving_back: bool = False  # everything is undone; next the entry leaves the lock, then the claim leaves the Node
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

    # The reboot.
    announcement: Count = 0  # number of the last announcement under this claim
    announced: Announcement | None = None  # the last one
    is_forced: bool = False  # announced although pods were still on the node: --force-reboot
    tries: Count = 0  # reboot commands that failed for this need

    # Afterwards.
    verify_started: Mark | None = None
    settle_started: Mark | None = None

    # A failure.
    failed: str = ""  # reason code
    failed_at: Mark | None = None
    failures: Count = 0  # in a row, for the back-off


_EMPTY = Progress()


class UnreadableProgress(Value):
    """The annotation with the record exists on the Node but cannot be understood; `why` is a sentence."""

    why: str


def to_annotation(progress: Progress) -> str:
    """Return the record as short JSON, without fields that have their default value."""
    record: dict[str, Any] = {"version": VERSION}
    for name in Progress.__struct_fields__:
        value = getattr(progress, name)
        if value != getattr(_EMPTY, name):
            record[name] = _plain(value)
    return json.dumps(record, separators=(",", ":"), sort_keys=True)


def from_annotation(text: str | None) -> Progress | UnreadableProgress:
    """Return the record that the annotation's text contains, or why it cannot be understood; an empty record if there
    is no annotation."""
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
    """Return the record. If the record's fields contradict each other in a way that this release never writes, return
    UnreadableProgress."""
    why = "" if isinstance(written, UnreadableProgress) else _contradiction(written)
    return UnreadableProgress(why) if why else written


_PHASES = frozenset(Phase)


def is_phase(text: str) -> bool:
    """Whether the text is the name of a phase that this release knows, or is empty, because a new record has no phase
    yet."""
    return not text or text in _PHASES


def phase_of(progress: Progress) -> Phase:
    """Return the node's phase according to the record; Idle if the record has no phase."""
    return Phase(progress.phase) if progress.phase else Phase.IDLE


_UNDER_CLAIM = frozenset(
    {Phase.CLAIMING, Phase.DRAINING, Phase.MAINTENANCE, Phase.REBOOTING, Phase.VERIFYING, Phase.SETTLING}
)


def _contradiction(progress: Progress) -> str:
    """Return why this release cannot have written the record, such as a phase that the release does not know. Return an
    empty text if the release may have written the record."""
    if not is_phase(progress.phase):
        return (
            f"the annotation careen.dev/progress names the phase {progress.phase!r}, which this release does not know"
        )
    phase = phase_of(progress)
    if bool(progress.claim) is not bool(progress.boot_left):
        return "the annotation careen.dev/progress must name a claim and the boot on which the claim began, or neither"
    if phase in _UNDER_CLAIM and (not progress.claim or progress.is_giving_back):
        return f"the annotation careen.dev/progress does not have the claim that the phase {phase} needs"
    if (phase is Phase.IDLE and progress.claim) or (
        phase is Phase.WAITING and progress.claim and not progress.is_giving_back
    ):
        return f"the annotation careen.dev/progress has a claim that the phase {phase} must not have"
    return ""


def _plain(value: Any) -> Any:
    if isinstance(value, Announcement):
        asked = {"asked": True} if value.is_asked else {}
        return {"boot": value.boot, "by": value.by, "uptime": round(value.uptime, 3), **asked}
    if isinstance(value, Mark):
        return {"boot": value.boot, "uptime": round(value.uptime, 3)}
    if isinstance(value, OwnerHealth):
        return [getattr(value, column) for column in _OWNER_COLUMNS]
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return dict(value) if isinstance(value, Mapping) else value


_OWNER_COLUMNS = ("kind", "namespace", "name", "uid", "generation", "replicas", "ready")


def _with_named_columns(record: dict[str, Any]) -> dict[str, Any]:
    """Return the record's JSON with each entry of `owners` as an object. The annotation stores each entry as a row of
    values without names, to keep the text short."""
    if "owners" not in record:
        return record
    return {**record, "owners": [dict(zip(_OWNER_COLUMNS, row, strict=True)) for row in record["owners"]]}
