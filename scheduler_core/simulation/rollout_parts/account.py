"""Records the events of a simulated roll-out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from scheduler_core.simulation.rollout_parts.rules import Rules
from scheduler_core.simulation.timeline import Closing, Hindrance, Move, Obstacle, Visit, Wait

_MOST_CLOSINGS = 400

Met = Sequence[tuple[str, Obstacle]]  # nodes, each with its obstacle


@dataclass(slots=True)
class Account:
    """The events of a simulated roll-out so far: reboots, moves of pods, and waits of pods."""

    visits: list[Visit] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    reboots: int = 0
    _met: dict[tuple[str, str], tuple[float, set[str]]] = field(default_factory=dict)  # by rule and subject

    def add_visit(self, visit: Visit) -> None:
        self.visits.append(visit)
        self.reboots += not visit.undone

    def hindered(self, met: Met, seconds: float = 0.0) -> None:
        """Records the nodes that may not begin their drain or their reboot now, each with the reason (the obstacle).
        `seconds` is how long the reboot lock held fewer claims than it may hold, because of these reasons."""
        for rule, subject in {(obstacle.rule, obstacle.subject) for _, obstacle in met}:
            total, names = self._met.setdefault((rule, subject), (0.0, set()))
            names.update(name for name, each in met if (each.rule, each.subject) == (rule, subject))
            self._met[rule, subject] = (total + seconds, names)

    @property
    def hindrances(self) -> tuple[Hindrance, ...]:
        """The reasons why nodes had to wait. The reason that cost the most time comes first."""
        found = (
            Hindrance(rule=rule, subject=subject, seconds=seconds, nodes=tuple(sorted(names)))
            for (rule, subject), (seconds, names) in self._met.items()
        )
        return tuple(sorted(found, key=lambda each: (-each.seconds, each.rule, each.subject)))

    @property
    def rebooted(self) -> dict[str, datetime]:
        """Maps each rebooted node to the time at which it released its claim on the reboot lock."""
        return {visit.node: visit.end for visit in self.visits if not visit.undone}

    def closings(self, rules: Rules, nodes: Iterable[str], begins: datetime, ends: datetime) -> tuple[Closing, ...]:
        """Returns the ends of maintenance windows at which some nodes had not rebooted, with the number of these nodes.
        Considers the windows until the end of the roll-out."""
        done, found = self.rebooted, list[Closing]()
        at = rules.next_closing(begins)
        while at is not None and len(found) < _MOST_CLOSINGS:
            left = sum(1 for name in nodes if name not in done or done[name] > at)
            if left == 0:
                break
            found.append(Closing(at=at, left=left))
            if at >= ends:
                break
            opening = rules.next_opening(at + timedelta(seconds=1))
            at = rules.next_closing(opening) if opening else None
        return tuple(found)
