"""One story of a citizen: the cluster, the settings, and what must be true at its end."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from careen.core.facts.policy import AlertPolicy
from tests.careen.chaos.citizens.figures import Figures, figures_of
from tests.careen.chaos.fleet.virtual_time import run_virtually
from tests.careen.chaos.fleet.world import Shape, World

REASON = "careen.dev/reason"
FEW_ALERTS = AlertPolicy(filter_regexp=re.compile("^(Watchdog|InfoInhibitor)$"))


@dataclass(frozen=True, kw_only=True)
class Played:
    """A story at its end. `reasons` are the reasons that each node's agent has ever written."""

    world: World
    figures: Figures
    reasons: dict[str, set[str]]

    def says(self, *texts: str) -> bool:
        """Whether some node's reason contains all texts."""
        return any(all(text in reason for text in texts) for said in self.reasons.values() for reason in said)


Wanted = Callable[[Played], list[str]]
"""Returns a sentence for everything that is not as it should be."""


@dataclass(frozen=True, kw_only=True)
class CitizenStory:
    """`claim` is a sentence of docs/operators.md."""

    name: str
    citizens: tuple[str, ...]
    claim: str
    wanted: Wanted
    shape: Shape = field(default_factory=lambda: Shape(nodes=3))
    settings: Mapping[str, Any] = field(default_factory=dict)
    prepare: Callable[[World], None] = lambda _: None
    seconds: float = 1800.0

    def play(self) -> Played:
        return run_virtually(self._play())

    async def _play(self) -> Played:
        shape = replace(self.shape, zoo=self.citizens, has_real_forecast=True)

        def prepare(world: World) -> None:
            world.settings = {name: dict(self.settings) for name in shape.names}
            self.prepare(world)

        world = World(shape, prepare=prepare)
        await world.all_need_a_reboot()
        await world.until_home(self.seconds)
        world.stop()
        await asyncio.sleep(0)
        return Played(world=world, figures=figures_of(world), reasons=_reasons(world))

    def verdict(self, played: Played) -> list[str]:
        """What is wrong, with the rules of the checker that are about safety."""
        return self.wanted(played)


def _reasons(world: World) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {name: set() for name in world.shape.names}
    for change in world.server.store.journal:
        if change.storage[1] == "nodes" and change.after is not None:
            annotations = change.after.content["metadata"].get("annotations") or {}
            if REASON in annotations:
                found.setdefault(change.key[1], set()).add(annotations[REASON])
    return found


def breaks(app: str) -> Callable[[World], None]:
    """Prepares a world in which new pods with this label `app` never become ready."""
    return lambda world: world.zoo.broken.add(app)


# What a story may want --------------------------------------------------------------------------------------


def all_reboot(most_drains: int = 1, *, but: Collection[str] = ()) -> Wanted:
    """Every node reboots once, within so many drains, no rule that is not in `but` breaks, and evictions keep to the
    forecast."""

    def wanted(played: Played) -> list[str]:
        figures, names = played.figures, played.world.shape.names
        wrong = [f"{name} rebooted {figures.reboots[name]} times" for name in names if figures.reboots[name] != 1]
        wrong += [f"{name} was drained {count} times" for name, count in figures.drains.items() if count > most_drains]
        most = figures.forecast * (1 + max(0, figures.undone))
        if figures.evictions > most:
            wrong.append(f"{figures.evictions} evictions, but the forecasts listed {figures.forecast} pods")
        return wrong + played.world.verdict(but=but)

    return wanted


def never_reboots(*said: str, most_drains: int = 3) -> Wanted:
    """No node reboots, each is drained at most so many times, and a reason says why. Only the rules that want reboots
    break."""

    def wanted(played: Played) -> list[str]:
        figures = played.figures
        wrong = [f"{name} rebooted" for name, count in figures.reboots.items() if count]
        wrong += [f"{name} was drained {count} times" for name, count in figures.drains.items() if count > most_drains]
        wrong += [] if played.says(*said) else [f"no reason names {' and '.join(said)}"]
        return wrong + played.world.verdict(but=("once", "finished", "tidy", "end"))

    return wanted


def halts_after_the_first(*said: str) -> Wanted:
    """One node reboots, its agent says why the next ones wait, and no other node drains."""

    def wanted(played: Played) -> list[str]:
        figures = played.figures
        wrong = [] if figures.reboots.total() == 1 else [f"{figures.reboots.total()} nodes rebooted"]
        if len(figures.drains) > 1:
            wrong.append(f"{len(figures.drains)} nodes were drained")
        return wrong if played.says(*said) else [*wrong, f"no reason names {' and '.join(said)}"]

    return wanted


def refuses_before_the_cordon(*said: str, node: str = "n1") -> Wanted:
    """The node is never cordoned, and its reason says why."""

    def wanted(played: Played) -> list[str]:
        wrong = [f"{node} was drained"] if played.figures.drains[node] else []
        named = any(all(text in reason for text in said) for reason in played.reasons[node])
        return wrong if named else [*wrong, f"no reason of {node} names {' and '.join(said)}"]

    return wanted


def both(*parts: Wanted) -> Wanted:
    return lambda played: [each for part in parts for each in part(played)]


def says(*texts: str) -> Wanted:
    return lambda played: [] if played.says(*texts) else [f"no reason names {' and '.join(texts)}"]
