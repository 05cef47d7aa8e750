"""Why no node fits: each node's verdict, how many nodes got each refusal, and the scheduler's message.

The message follows FitError in pkg/scheduler/framework/types.go, v1.36.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np
from msgspec import field
from numpy.typing import NDArray

from scheduler_core.framework.refusals import Refusals
from scheduler_core.framework.verdict import SUCCESS, Verdict, VerdictCode
from scheduler_core.sentences import none_available
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.values import Value, replace_value


class Round(Value, eq=False):
    """One plugin's filter. `refusals` has a code for every node that the search checked. `refused`: the nodes that this
    plugin was the first to refuse, as positions in the list of checked nodes."""

    plugin: str
    refused: NDArray[np.intp]
    refusals: Refusals

    def verdict(self, position: int) -> Verdict:
        return self.of_code(self.refusals.codes[position]).by(self.plugin)

    def of_code(self, code: np.integer) -> Verdict:
        """Without the plugin. `plugin_that_raised` finds it by `self` in this frame."""
        verdict = self.refusals.verdict(int(code))
        if not (isinstance(verdict, Verdict) and verdict.is_well_formed):
            wanted = "a Verdict, whose code is a VerdictCode and whose reasons are texts"
            given = f"a Refusals with {verdict!r} for code {code}"
            raise TypeError(f'plugin "{self.plugin}": filter_all returned {given}; it must be {wanted}')
        return verdict

    def has(self, code: VerdictCode) -> bool:
        """Whether this plugin refused a node with this code."""
        return self.refusals.may_be(code) and any(verdict.code is code for verdict, _ in self.counted())

    def counted(self) -> Iterator[tuple[Verdict, int]]:
        """Each distinct verdict of this plugin, with its number of nodes."""
        codes, counts = np.unique(self.refusals.codes[self.refused], return_counts=True)
        for code, count in zip(codes, counts, strict=True):
            yield self.of_code(code).by(self.plugin), int(count)


class Diagnosis(Value, eq=False, kw_only=True, dict=True):
    """The verdict of every node, as arrays of codes; a Verdict is built when it is read."""

    nodes: NodeList
    prefilter: Verdict | None = None  # refuses all nodes at once
    inside: NDArray[np.intp] | None = None  # the rows that a PreFilter result names; None: all
    outside: Verdict | None = None  # the verdict on all other rows
    asked_by: tuple[str, ...] = ()  # the plugins that chose `inside`
    rounds: tuple[Round, ...] = ()
    sieved: NDArray[np.intp] | None = None  # the rows that passed the filters, if already known
    replaced: Mapping[int, Verdict] = field(default_factory=dict)
    """Verdicts by row (the node's position in the snapshot). They come from nominated pods and from extenders, and
    replace the verdicts of the filters."""

    def with_replaced(self, verdicts: Mapping[int, Verdict]) -> Diagnosis:
        """These verdicts, by row, replace those of the filters."""
        return replace_value(self, replaced={**self.replaced, **verdicts}) if verdicts else self

    @property
    def searched(self) -> NDArray[np.intp]:
        """The rows that the filters checked."""
        return self.nodes.rows if self.inside is None else self.inside

    def verdict(self, row: int) -> Verdict:
        """SUCCESS if the node passed."""
        if self.prefilter is not None:
            return self.prefilter
        if row in self.replaced:
            return self.replaced[row]
        code = int(self._who[row])
        if code >= 0:
            return self.rounds[code].verdict(int(self._where[row]))
        return self.outside if code == _OUTSIDE and self.outside is not None else SUCCESS

    @cached_property
    def _who(self) -> NDArray[np.int16]:
        """By row: the position in `rounds` of the first plugin that refused the node; negative if none did (`_PASSED`)
        or the filters did not check it (`_OUTSIDE`)."""
        who = np.full(len(self.nodes.columns), _OUTSIDE, dtype=np.int16)
        who[self.searched] = _PASSED
        for number, each in enumerate(self.rounds):
            who[self.searched[each.refused]] = number
        return who

    @cached_property
    def _where(self) -> NDArray[np.intp]:
        """By row: its position in `searched`."""
        where = np.zeros(len(self.nodes.columns), dtype=np.intp)
        where[self.searched] = np.arange(len(self.searched))
        return where

    @property
    def passed(self) -> NDArray[np.intp]:
        """The rows that passed every filter, in the snapshot's order."""
        if self.prefilter is not None:
            return self.searched[:0]
        if self.sieved is not None and not self.replaced:
            return self.sieved
        passed = np.full(len(self.nodes.columns), self.inside is None)
        if self.inside is not None:
            passed[self.inside] = True
        for each in self.rounds:
            passed[self.searched[each.refused]] = False
        for row, verdict in self.replaced.items():
            passed[row] = verdict.is_success
        return np.flatnonzero(passed)

    @property
    def rows_that_may_be_helped(self) -> NDArray[np.intp]:
        """The rows refused with Unschedulable: only there evictions may help."""
        size = len(self.nodes.columns)
        if self.prefilter is not None:
            return np.arange(size if self.prefilter.code is VerdictCode.UNSCHEDULABLE else 0)
        found = np.zeros(size, dtype=bool)
        for each in self.rounds:
            helped = [
                code
                for code in np.unique(each.refusals.codes[each.refused])
                if each.of_code(code).code is VerdictCode.UNSCHEDULABLE
            ]
            rows = self.searched[each.refused]
            found[rows[np.isin(each.refusals.codes[each.refused], helped)]] = True
        for row, verdict in self.replaced.items():
            found[row] = verdict.code is VerdictCode.UNSCHEDULABLE
        return np.flatnonzero(found)

    def first_of(self, code: VerdictCode) -> Verdict | None:
        said = (self.prefilter, self.outside, *self.replaced.values())
        # Every cycle calls this method and few find a verdict; counting all verdicts would cost as much as a filter.
        if not (
            any(verdict is not None and verdict.code is code for verdict in said)
            or any(each.has(code) for each in self.rounds)
        ):
            return None
        return next((verdict for verdict in self.verdict_counts() if verdict.code is code), None)

    def verdict_counts(self) -> Counter[Verdict]:
        """Each distinct refusal, with its number of nodes."""
        return self._verdict_counts

    @cached_property
    def _verdict_counts(self) -> Counter[Verdict]:
        counts: Counter[Verdict] = Counter()
        if self.prefilter is not None:
            counts[self.prefilter] = len(self.nodes.columns)
            return counts
        for each in self.rounds:
            for verdict, count in each.counted():
                counts[verdict] += count
        if self.outside is not None:
            counts[self.outside] += len(self.nodes.columns) - len(self.searched)
        if self.replaced:
            rows = np.fromiter(self.replaced, dtype=np.intp, count=len(self.replaced))
            who, where = self._who[rows], self._where[rows]
            for number, each in enumerate(self.rounds):
                replaced = replace_value(each, refused=where[who == number])
                for verdict, number_of_nodes in replaced.counted():  # two codes may have equal verdicts
                    counts[verdict] -= number_of_nodes
            counts.update(each for each in self.replaced.values() if not each.is_success)
        return +counts

    def refusing_plugins(self) -> frozenset[str]:
        """The plugins that refused a node, except for now (PENDING). The pod is tried again after an event for which
        one of them registered: those that chose the nodes to search refused the others, or nodes that do not exist."""
        counts = self.verdict_counts()
        said = {verdict.plugin for verdict in counts if verdict.plugin and verdict.code is not VerdictCode.PENDING}
        return frozenset(said.union(self.asked_by))

    def pending_plugins(self) -> frozenset[str]:
        return frozenset(
            verdict.plugin
            for verdict in self.verdict_counts()
            if verdict.plugin and verdict.code is VerdictCode.PENDING
        )

    def sentence(self, after: str = "") -> str:
        """`0/N nodes are available: 3 Insufficient cpu, …`, then `after`, the message of PostFilter."""
        nodes = len(self.nodes.columns)
        head = f"0/{nodes} nodes are available:"
        if self.prefilter is not None:
            head += f" {self.prefilter.message}." if self.prefilter.message else ""
        else:
            reasons: Counter[str] = Counter()
            for verdict, count in self.verdict_counts().items():
                for reason in verdict.reasons:
                    reasons[reason] += count
            if reasons:
                head = none_available(nodes, reasons)
        return f"{head} {after}" if after else head


_PASSED = -1
_OUTSIDE = -2


class Verdicts(Mapping[str, Verdict]):
    """By node name; built when read."""

    def __init__(self, diagnosis: Diagnosis) -> None:
        self._diagnosis = diagnosis
        self._columns = diagnosis.nodes.columns

    def __getitem__(self, node_name: str) -> Verdict:
        return self._diagnosis.verdict(self._columns.row_of[node_name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns.names)

    def __len__(self) -> int:
        return len(self._columns)
