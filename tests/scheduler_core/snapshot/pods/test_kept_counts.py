"""How often the pods of a table are counted, if several snapshots derive from it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

import pytest

from scheduler_core.model.node import Node
from scheduler_core.model.pod import Pod
from scheduler_core.snapshot.columns import Columns
from scheduler_core.snapshot.pods import placements
from scheduler_core.snapshot.pods.change_log import Changes
from scheduler_core.snapshot.pods.pod_table import PodTable
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value

_counted: list[int] = []


class _PodTally(Value):
    """The number of placed pods."""

    reads_every_pod: ClassVar[bool] = True

    def count(self, columns: Columns, table: PodTable) -> int:
        _counted.append(len(table.pods))
        return len(table.pods)

    def after(self, value: int, changes: Changes, columns: Columns, table: PodTable) -> int:
        return value + sum(change.sign for change in changes)

    def basis(self, columns: Columns) -> Hashable:
        return None

    def over(self, value: int, rows: int) -> int:
        return value


class _IndexedTally(_PodTally):
    reads_every_pod: ClassVar[bool] = False


def test_a_count_that_only_follows_the_log_is_made_once_and_one_for_branches_is_kept_from_the_second_on() -> None:
    _counted.clear()
    base = Snapshot.of([Node(name="n")], [Pod(name="there", node_name="n")])
    line = base
    for number in range(3):
        line = line.with_pod_placed(Pod(name=f"line-{number}"), "n")
        assert line.tally(_PodTally()) == 2 + number
    assert len(_counted) == 1
    for number in range(4):
        assert base.with_pod_placed(Pod(name=f"branch-{number}"), "n").tally(_PodTally()) == 2
    assert len(_counted) == 2


def test_a_new_table_keeps_the_counts_that_read_every_pod_and_brings_no_other_up_to_date(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(placements, "_CHANGES_PER_TABLE", 4)
    _counted.clear()
    line = Snapshot.of([Node(name="n")], [Pod(name="there", node_name="n")])
    for tally in (_PodTally(), _IndexedTally()):
        line.tally(tally)
    assert _counted == [1, 1]
    for number in range(5):
        line = line.with_pod_placed(Pod(name=f"p{number}"), "n")
    assert len(line.placements.table.pods) == 5  # a new table, and the change after it
    assert [line.tally(_PodTally()), line.tally(_IndexedTally())] == [6, 6]
    assert _counted == [1, 1, 5]
