"""The events of a simulated roll-out."""

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
    """The events so far: reboots, moves of pods, waits of pods."""

    visits: list[Visit] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    slow: list[str] = field(default_factory=list)
    reboots: int = 0
    _met: dict[tuple[str, str], tuple[float, set[str]]] = field(default_factory=dict)  # by rule and subject

    def add_visit(self, visit: Visit) -> None:
        self.visits.append(visit)
        self.reboots += not visit.undone

    def hindered(self, met: Met, seconds: float = 0.0) -> None:
        """Records the nodes that may not go on now, each with its obstacle, and the `seconds` in which the lock held
        fewer claims than it may because of that."""
        for rule, subject in {(obstacle.rule, obstacle.subject) for _, obstacle in met}:
            total, names = self._met.setdefault((rule, subject), (0.0, set()))
            names.update(name for name, each in met if (each.rule, each.subject) == (rule, subject))
            self._met[rule, subject] = (total + seconds, names)

    @property
    def hindrances(self) -> tuple[Hindrance, ...]:
        """Why nodes had to wait; the reason that cost the most time comes first."""
        found = (
            Hindrance(rule=rule, subject=subject, seconds=seconds, nodes=tuple(sorted(names)))
            for (rule, subject), (seconds, names) in self._met.items()
        )
        return tuple(sorted(found, key=lambda each: (-each.seconds, each.rule, each.subject)))

    @property
    def rebooted(self) -> dict[str, datetime]:
        """When each rebooted node released its claim."""
        return {visit.node: visit.end for visit in self.visits if not visit.undone}

    def closings(self, rules: Rules, nodes: Iterable[str], begins: datetime, ends: datetime) -> tuple[Closing, ...]:
        """The ends of windows, until the end of the roll-out, at which some nodes had not rebooted, and how many."""
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
