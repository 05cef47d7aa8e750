"""A world whose machines are recorded: one record for each process."""

from __future__ import annotations

from typing import Any

import msgspec

from scheduler_core.cache.events import Sync
from scheduler_core.running.commands import Command
from scheduler_core.running.machine import Machine
from scheduler_core.running.record.lines import command_line
from scheduler_core.running.record.recorder import RecordedMachine, Recorder
from scheduler_core.running.record.replay import Replay
from tests.scheduler_core.running.world import KINDS, World


class RecordedWorld(World):
    def __init__(self, recorder: Recorder | None = None, *, config: Any = None, **settings: Any) -> None:
        self.records: list[list[bytes]] = []
        self.commanded: list[list[bytes]] = []
        self.recorder = recorder or Recorder(self.keep)
        self.config = config
        super().__init__(**settings)

    def keep(self, line: bytes) -> None:
        self.records[-1].append(line)

    def new_machine(self) -> Machine:
        self.records.append([])
        self.commanded.append([])
        return RecordedMachine(
            self.scheduler, self.recorder, config=self.config, permits=self.permits, origin=1_795_000_000.0
        )

    def collect(self, commands: tuple[Command, ...]) -> None:
        self.commanded[-1] += [command_line(self.now, each) for each in commands]
        super().collect(commands)

    def relist(self) -> None:
        """As a live feed does: as bytes, a page at a time, while other work goes on."""
        self.backlog.clear()
        for kind in KINDS:
            items = self.listing(kind)["items"]
            pages = [msgspec.json.encode({"items": part}) for part in (items[:2], items[2:])]
            self.collect(self.machine.take(Sync(kind, iter(pages)), self.now))
        while any(map(self.machine.is_listing, KINDS)):
            self.run(1)


def replayed(record: list[bytes], **settings: Any) -> list[bytes]:
    return [command_line(told.at, each) for told in Replay(record, **settings).calls() for each in told.commands]
