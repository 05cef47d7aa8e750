"""What each answer means for the write that it answers: one table.

A command whose effect is unknown is never taken as failed: until somebody has looked, its pod keeps its room on the
node.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from scheduler_core.running.commands import Bind, DeleteVictim, PatchVolume, Write, WriteStatus
from scheduler_core.values import Value


class WriteOutcome(Value, kw_only=True):
    """`code`: the HTTP status; 0 without an answer. `is_complete`: the body is the expected object; an answer such as
    `200 {}` is not. `version`: the object's resourceVersion in the answer.

    `found_uid` and `found_node`: of the pod in the answer to a LookAtPod.
    """

    code: int
    is_complete: bool = True
    retry_after_seconds: float = 0
    version: int | None = None
    message: str = ""
    found_uid: str = ""
    found_node: str = ""

    @property
    def why(self) -> str:
        """Of a refusal."""
        return self.message or f"the API server answered {self.code}"


LOST: Final = WriteOutcome(code=0, is_complete=False)


class Meaning(Enum):
    DONE = "done"
    UNKNOWN = "it may have happened"
    BUSY = "it did not happen, and may be sent again later"
    GONE = "the object does not exist"
    CONFLICT = "the object is not what the command expected"
    REFUSED = "it did not happen, and would not if it were sent again"


class Reaction(Enum):
    FINISH = "the step is done"
    LOOK = "wait for the watch, then look at the pod"
    SEND_AGAIN = "send the same command again after a pause"
    BACK_OFF = "release the room on the node, say why, try again after the back-off"
    GIVE_UP = "leave it; the next attempt does what is still needed"


def meaning(outcome: WriteOutcome) -> Meaning:
    if outcome.code == 429:
        return Meaning.BUSY
    if outcome.code == 404:
        return Meaning.GONE
    if outcome.code == 409:
        return Meaning.CONFLICT
    if 400 <= outcome.code < 500 and outcome.code != 408:
        return Meaning.REFUSED
    if 200 <= outcome.code < 300 and outcome.is_complete:
        return Meaning.DONE
    return Meaning.UNKNOWN


REACTIONS: Final[Mapping[type[Write], Mapping[Meaning, Reaction]]] = {
    Bind: {
        Meaning.DONE: Reaction.FINISH,
        Meaning.UNKNOWN: Reaction.LOOK,
        Meaning.BUSY: Reaction.SEND_AGAIN,
        Meaning.GONE: Reaction.BACK_OFF,
        Meaning.CONFLICT: Reaction.BACK_OFF,
        Meaning.REFUSED: Reaction.BACK_OFF,
    },
    WriteStatus: {
        Meaning.DONE: Reaction.FINISH,
        Meaning.UNKNOWN: Reaction.GIVE_UP,
        Meaning.BUSY: Reaction.SEND_AGAIN,
        Meaning.GONE: Reaction.GIVE_UP,
        Meaning.CONFLICT: Reaction.GIVE_UP,
        Meaning.REFUSED: Reaction.GIVE_UP,
    },
    DeleteVictim: {
        Meaning.DONE: Reaction.FINISH,
        Meaning.UNKNOWN: Reaction.GIVE_UP,
        Meaning.BUSY: Reaction.SEND_AGAIN,
        Meaning.GONE: Reaction.FINISH,
        Meaning.CONFLICT: Reaction.FINISH,
        Meaning.REFUSED: Reaction.GIVE_UP,
    },
    PatchVolume: {
        Meaning.DONE: Reaction.FINISH,
        Meaning.UNKNOWN: Reaction.BACK_OFF,
        Meaning.BUSY: Reaction.SEND_AGAIN,
        Meaning.GONE: Reaction.BACK_OFF,
        Meaning.CONFLICT: Reaction.BACK_OFF,
        Meaning.REFUSED: Reaction.BACK_OFF,
    },
}


def reaction(command: Write, outcome: WriteOutcome) -> Reaction:
    return REACTIONS[type(command)][meaning(outcome)]
