"""A storm as data: the simulated fleet, the events that disturb it, and their times. A storm is drawn from a seed, or
read from the file of kept storms."""

from __future__ import annotations

from typing import Any

import msgspec

from careen.core.facts.policy import Budget, BudgetKind
from tests.careen.chaos.fleet.agents import Fault
from tests.careen.chaos.fleet.world import Shape


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """One event of a storm, `at` seconds after its beginning. `what` is `need` (the node's host begins to need a
    reboot), the name of a function of `people.py` or `operations.py`, or the name of a `Fault`. A fault hits the next
    suitable request of the node's agent."""

    at: float
    node: str
    what: str
    of: str = ""  # which requests a fault waits for: a name of `draw.REQUESTS`
    seed: int = 0  # of the act's own random choices

    @property
    def is_fault(self) -> bool:
        return self.what in Fault.__members__

    def text(self) -> str:
        if self.is_fault:
            return f"{self.at:7.2f} {self.node}: the next {self.of or 'request'}: {Fault[self.what].value}"
        return f"{self.at:7.2f} {self.node}: {self.what}"


class Story(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that determines what happens in a storm."""

    seed: int
    weather: str
    nodes: int
    zones: int = 0
    control_planes: int = 0
    concurrency: int = 1
    page_size: int = 0
    has_real_forecast: bool = False
    older: tuple[str, ...] = ()
    crashing_daemons: tuple[str, ...] = ()
    zoo: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()
    was_wrong: str = ""  # of a kept story: the defect that it found

    @property
    def shape(self) -> Shape:
        return Shape(
            nodes=self.nodes,
            zones=self.zones,
            control_planes=self.control_planes,
            concurrency=self.concurrency,
            zone_limit=1 if self.zones else 0,
            budgets=(Budget(kind=BudgetKind.ZONE, limit=1),) if self.zones else (),
            is_town=True,
            page_size=self.page_size,
            has_real_forecast=self.has_real_forecast,
            zoo=self.zoo,
        )

    def text(self) -> str:
        """Return the storm as text for a person who reads about a failure."""
        head = {
            name: value
            for name, value in msgspec.to_builtins(self).items()
            if name not in ("events", "was_wrong", "seed", "weather")
        }
        return "\n".join([f"seed {self.seed}, {self.weather}: {head}", *(event.text() for event in self.events)])


def to_line(story: Story) -> str:
    return msgspec.json.encode(story).decode()


def from_line(line: str | bytes) -> Story:
    return msgspec.json.decode(line, type=Story)


def with_events(story: Story, events: Any) -> Story:
    return msgspec.structs.replace(story, events=tuple(events))
