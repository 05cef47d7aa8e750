"""The result of one scheduling cycle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property

import numpy as np

from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.diagnosis import Diagnosis, Verdicts
from scheduler_core.framework.extension_points import Nomination
from scheduler_core.framework.scoring.scorer import ScoreTable
from scheduler_core.framework.verdict import Verdict, VerdictCode
from scheduler_core.model.pod import Pod
from scheduler_core.sampling import Rows
from scheduler_core.sentences import html_table
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value, replace_value


@cache
def _nothing() -> Diagnosis:
    return Diagnosis(nodes=NodeList(Snapshot.of([])))


class NodeSample(Value):
    """The pod fits on `feasible` nodes, but the real scheduler stops when it has found `looked_at` of them."""

    looked_at: int
    feasible: int


class CycleResult(Value, dict=True):
    """The result of one pod's cycle. Results for single nodes are computed when they are read.

    `node` is None if the pod fits nowhere now. `best_rows`: the rows with the highest total score; `names`: every
    node's name, by row. `sentence`: the scheduler's message if no node fits or a plugin failed. `error`: the message
    if a plugin failed. `sample` is set if the real scheduler stops before it has found every node that fits; it may
    then choose a node outside `best_rows`.
    """

    pod: Pod
    diagnosis: Diagnosis
    node: str | None = None
    best_rows: Sequence[int] | Rows = ()
    names: Sequence[str] = ()
    table: ScoreTable | None = None
    nomination: Nomination | None = None
    sentence: str = ""
    error: str = ""
    state: CycleState | None = None
    sample: NodeSample | None = None
    evaluated: int | None = None  # the number of nodes that the search checked; None without a `Search`
    next_start: int | None = None  # the position in the node list where the next search starts

    def __repr__(self) -> str:
        where = repr(self.node) if self.node else f"None, sentence={self.sentence!r}"
        return f"<CycleResult pod={self.pod.key!r} node={where}>"

    def _repr_html_(self) -> str:
        """For notebooks: every node's verdict and total, the highest first."""
        scores, rows = self.scores, []
        for name, verdict in self.statuses.items():
            total = scores[name].total if name in scores else None
            rows.append((name, "" if total is None else total, verdict.plugin, verdict.message or "fits"))
        rows.sort(key=lambda row: (-row[1] if isinstance(row[1], int) else 1, row[0]))
        return html_table(("node", "total", "plugin", "verdict"), rows)

    def without_evidence(self) -> CycleResult:
        """Without the nodes' verdicts and scores and the plugins' state, so that callers can keep many results in
        little memory."""
        return replace_value(self, diagnosis=_nothing(), table=None, state=None)

    @cached_property
    def best(self) -> tuple[str, ...]:
        """All nodes with the highest total score, sorted. The real scheduler may choose among them at random."""
        return tuple(sorted([self.names[row] for row in self.best_rows]))

    @property
    def prefilter(self) -> Verdict | None:
        """The verdict with which PreFilter refused every node, or None."""
        return self.diagnosis.prefilter

    @property
    def statuses(self) -> Mapping[str, Verdict]:
        """Every node's verdict."""
        return Verdicts(self.diagnosis)

    @property
    def preemption(self) -> Nomination | None:
        """Where preemption makes room, and the victims; None if preemption does not help or was not tried."""
        return self.nomination if self.nomination is not None and self.nomination.node else None

    @cached_property
    def unknown(self) -> str:
        """Why the verdict on some node is Unknown, that is, a decision that this library does not reproduce; "" if none
        is. If it is not empty, `node` is unreliable, even if it is None."""
        verdict = self.diagnosis.first_of(VerdictCode.UNKNOWN)
        return verdict.message if verdict else ""

    @property
    def scores(self) -> Mapping[str, NodeScores]:
        """Each scored node's scores. Empty if fewer than two nodes passed the filters: no node is then scored."""
        return {} if self.table is None else ScoresByName(self.table)

    @property
    def highest_total(self) -> int | None:
        """The total score of the nodes in `best`; None if no node was scored."""
        return None if self.table is None else int(self.table.total.max())

    @property
    def runner_up(self) -> tuple[str, int] | None:
        """The node with the highest total below that of `best`, the first by name if several have it, and this total.
        None if no node was scored, or if every scored node is in `best`."""
        if self.table is None:
            return None
        total = self.table.total
        others = np.flatnonzero(total != total.max())
        if not len(others):
            return None
        second = total[others].max()
        names = self.table.nodes.columns.names
        return min(names[row] for row in self.table.nodes.rows[others[total[others] == second]]), int(second)


class NodeScores(Value):
    """The weighted scores of one node, and their sum."""

    total: int
    by_plugin: Mapping[str, int]


class ScoresByName(Mapping[str, NodeScores]):
    def __init__(self, table: ScoreTable) -> None:
        self._table = table
        self._place = {name: place for place, name in enumerate(table.nodes.names)}

    def __getitem__(self, node_name: str) -> NodeScores:
        place = self._place[node_name]
        return NodeScores(
            int(self._table.total[place]), {name: int(scores[place]) for name, scores in self._table.by_plugin.items()}
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._place)

    def __len__(self) -> int:
        return len(self._place)
