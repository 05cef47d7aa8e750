"""Which nodes are done in the roll-out that runs, or in the one that just ended."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from careen.core.facts.observation import NodeView
from careen.core.steps.shared.history import Reboot, reboots_of
from careen.rollout.model import RolloutView, State

# Nightly windows of two hours leave pauses of 22 hours inside of one roll-out.
_LONGEST_PAUSE = timedelta(hours=26)


def done_nodes(nodes: Sequence[NodeView], view: RolloutView) -> dict[str, Reboot]:
    """The last reboot of each node that is done. The model knows a roll-out as long as a need stands; afterwards, the
    roll-out that just ended is the reboots between which no pause was longer than one between windows."""
    last = {node.name: found[0] for node in nodes if (found := reboots_of(node))}
    if view.counts.open or view.counts.kept_down:
        return {each.name: last[each.name] for each in view.in_state(State.DONE) if each.name in last}
    begins = _began([each.at for each in last.values()], view.at)
    return {name: each for name, each in last.items() if begins is not None and each.at >= begins}


def _began(instants: Sequence[datetime], now: datetime) -> datetime | None:
    began = now
    for at in sorted(instants, reverse=True):
        if began - at > _LONGEST_PAUSE:
            break
        began = at
    return began if began in instants else None
