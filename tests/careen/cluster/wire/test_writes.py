"""Tests write_guarded, which changes an object at most once and returns whether the change took effect, even if a
response is lost or late."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from careen.cluster.wire.errors import (
    ClusterError,
    Conflict,
    Forbidden,
    NotFound,
    NotSent,
    ServerFailed,
    TooManyRequests,
    Unclear,
)
from careen.cluster.wire.writes import Dropped, Landed, Rejected, Stale, StillUnclear, Written, write_guarded


async def test_a_write_without_a_resource_version_is_refused() -> None:
    """The server accepts a patch with an empty resourceVersion in any state of the object, so the patch could overwrite
    the changes of other clients."""
    thing = Thing(plan=[(None, True)])
    outcome: Written[str] = await write_guarded(
        version="", write=thing.write, read=thing.read, stands=lambda value: value == "new"
    )
    assert isinstance(outcome, StillUnclear)
    assert thing.writes == []


def refused(kind: type[Forbidden], code: int) -> ClusterError:
    return kind("PATCH /x", status=code, reason="", message="", retry_after_seconds=None)


CONFLICT = refused(Conflict, 409)  # type: ignore[arg-type]
LOST = Unclear("lost")
FAILED = refused(ServerFailed, 500)  # type: ignore[arg-type]


@dataclass
class Thing:
    """An object that has a version. For each write, `plan` says which error the client gets and whether the write
    changes the object."""

    plan: list[tuple[ClusterError | None, bool]]
    version: int = 1
    value: str = "old"
    writes: list[str] = field(default_factory=list)
    readable: bool = True
    others_write_after: int = 99
    """Another client changes the object right after the write with this number."""

    async def write(self, version: str) -> str:
        self.writes.append(version)
        error, happens = self.plan.pop(0)
        if error is None and version != str(self.version):
            raise CONFLICT
        if happens and version == str(self.version):
            self.version, self.value = self.version + 1, "new"
        if len(self.writes) == self.others_write_after:
            self.version, self.value = self.version + 1, "theirs"
        if error:
            raise error
        return self.value

    async def read(self) -> tuple[str, str]:
        if not self.readable:
            raise LOST
        return str(self.version), self.value

    async def put(self) -> Written[str]:
        return await write_guarded(version="1", write=self.write, read=self.read, stands=lambda value: value == "new")


OK = (None, True)

TABLE = [
    pytest.param(Thing([OK]), Landed("new"), ["1"], id="the server confirms the write"),
    pytest.param(Thing([(None, False)]), Dropped, ["1"], id="the answer lacks the change: admission dropped it"),
    pytest.param(Thing([(CONFLICT, False)]), Stale, ["1"], id="another client changed the object before the write"),
    pytest.param(Thing([(refused(NotFound, 404), False)]), Stale, ["1"], id="the object does not exist"),  # type: ignore[arg-type]
    pytest.param(Thing([(refused(Forbidden, 403), False)]), Rejected, ["1"], id="a right is missing"),
    pytest.param(
        Thing([(refused(TooManyRequests, 429), False)]), StillUnclear, ["1"], id="the server is busy for too long"
    ),  # type: ignore[arg-type]
    pytest.param(Thing([(NotSent("refused"), False)]), StillUnclear, ["1"], id="the connection is refused"),
    pytest.param(Thing([(LOST, True)]), Landed("new"), ["1"], id="the answer is lost, but the write took effect"),
    pytest.param(Thing([(FAILED, True)]), Landed("new"), ["1"], id="the answer is 500, but the write took effect"),
    pytest.param(
        Thing([(LOST, False), OK]),
        Landed("new"),
        ["1", "1"],
        id="the write was lost, so it is sent again with the same version",
    ),
    pytest.param(
        Thing([(LOST, False), (LOST, False), (LOST, False)]),
        StillUnclear,
        ["1", "1", "1"],
        id="the write is lost three times",
    ),
    pytest.param(
        Thing([(LOST, True)], readable=False),
        StillUnclear,
        ["1"],
        id="the answer is lost, and the object cannot be read",
    ),
    pytest.param(
        Thing([(LOST, False)], others_write_after=1),
        Stale,
        ["1"],
        id="the write is lost, and another client changes the object",
    ),
    pytest.param(
        Thing([(LOST, False), (CONFLICT, True)]),
        Landed("new"),
        ["1", "1"],
        id="the first write takes effect late, so the second write conflicts",
    ),
    pytest.param(
        Thing([(LOST, False), (CONFLICT, False)], others_write_after=2),
        Stale,
        ["1", "1"],
        id="the second write conflicts with a write by another client",
    ),
    pytest.param(
        Thing([(LOST, False), (refused(Forbidden, 403), False)], others_write_after=2),
        Stale,
        ["1", "1"],
        id="the first write is lost, and the second write is forbidden",
    ),
]


@pytest.mark.parametrize(("thing", "outcome", "writes"), TABLE)
async def test_write_guarded_says_whether_a_write_took_effect_failed_or_is_unclear(
    thing: Thing, outcome: object, writes: list[str]
) -> None:
    written = await thing.put()
    if isinstance(outcome, type):
        assert type(written) is outcome
    else:
        assert written == outcome
    assert thing.writes == writes


async def test_a_write_whose_answer_was_lost_returns_the_object_that_was_read_again() -> None:
    thing = Thing([(LOST, True)])
    written = await thing.put()
    assert isinstance(written, Landed)
    assert written.seen == thing.value == "new"
