"""The lines of a record: JSON, one value each. The first is the RecordHeader.

A Call is written after the machine has answered it; before it stand the pages and the extenders' answers that the call
has read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from zlib import crc32

import msgspec

from scheduler_core.running.commands import Bind, Command, DeleteVictim, LookAtPod, PatchVolume, WriteStatus
from scheduler_core.running.failures import WriteOutcome
from scheduler_core.running.waiting.permits import PermitDecision

FORMAT: Final = 1
ANSWERED: Final[Mapping[str, type]] = {
    each.__name__: each for each in (Bind, WriteStatus, DeleteVictim, PatchVolume, LookAtPod)
}


class RecordError(ValueError):
    """Not a record, or a damaged one."""


class RecordLine(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="do", omit_defaults=True, forbid_unknown_fields=True
):
    """What the machine read or what it was told."""


class RecordHeader(RecordLine, frozen=True, kw_only=True, tag="record"):
    """`config`: the KubeSchedulerConfiguration. `origin`: when the machine's clock showed 0, in seconds since the
    epoch."""

    format: int
    library: str
    kube_version: str
    awaits: tuple[str, ...]
    config: dict[str, Any] | None = None
    origin: float | None = None


class ListedPage(RecordLine, frozen=True, kw_only=True, tag="page"):
    """`is_text`: the API server's bytes; else a mapping."""

    list: int
    body: msgspec.Raw
    is_text: bool = False


class PagesEnd(RecordLine, frozen=True, kw_only=True, tag="pages end"):
    """`problem`: why the next page could not be read."""

    list: int
    problem: str = ""


class ExtenderAnswer(RecordLine, frozen=True, kw_only=True, tag="extender"):
    """`extender`: its place in the configuration."""

    extender: int
    body: bytes = b""
    problem: str = ""


class Call(RecordLine, frozen=True, kw_only=True):
    """`at`: the machine's `now`. `decided`: what Permit plugins decided before it. `commands`: their checksum, 0 if
    there are none. `raised`: the machine raised an error."""

    at: float
    commands: int = 0
    decided: tuple[PermitDecision, ...] = ()
    raised: bool = False


class Take(Call, frozen=True, kw_only=True, tag="take"):
    event: msgspec.Raw
    is_text: bool = False


class TakeList(Call, frozen=True, kw_only=True, tag="list"):
    kind: str
    list: int


class Next(Call, frozen=True, kw_only=True, tag="next"):
    """`waiting`: the lists whose next page was not there."""

    waiting: tuple[int, ...] = ()


class OutcomeTold(Call, frozen=True, kw_only=True, tag="answered"):
    name: str
    command: msgspec.Raw
    outcome: WriteOutcome


class TickTold(Call, frozen=True, kw_only=True, tag="tick"):
    pass


class Allow(Call, frozen=True, kw_only=True, tag="allow"):
    uid: str
    plugin: str


class Reject(Call, frozen=True, kw_only=True, tag="reject"):
    uid: str
    plugin: str
    message: str


AnyCall = Take | TakeList | Next | OutcomeTold | TickTold | Allow | Reject
AnyLine = RecordHeader | ListedPage | PagesEnd | ExtenderAnswer | AnyCall

_LINES: Final = msgspec.json.Decoder(AnyLine)


def write_line(line: AnyLine) -> bytes:
    return msgspec.json.encode(line) + b"\n"


def read_line(text: bytes) -> AnyLine:
    """Raises RecordError."""
    if not text.endswith(b"\n"):
        raise RecordError("the line is cut off: the record was not written to its end")
    try:
        line: AnyLine = _LINES.decode(text)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as trouble:
        raise RecordError(f"not a line of a record: {trouble}") from trouble
    return line


def raw(written: bytes | Mapping[str, Any]) -> msgspec.Raw:
    """As JSON without a line feed. Raises MsgspecError if bytes are no JSON."""
    return msgspec.Raw(
        msgspec.json.format(written, indent=-1) if isinstance(written, bytes) else msgspec.json.encode(written)
    )


def of_raw(written: msgspec.Raw, *, is_text: bool) -> Any:
    return bytes(written) if is_text else msgspec.json.decode(written)


def command_line(at: float, command: Command) -> bytes:
    fields = msgspec.structs.asdict(command)
    return msgspec.json.encode({"at": float(at), "command": type(command).__name__, **fields}) + b"\n"


def checksum(at: float, commands: tuple[Command, ...]) -> int:
    """0 without commands."""
    return crc32(b"".join(command_line(at, each) for each in commands)) if commands else 0
