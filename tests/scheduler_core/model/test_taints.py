from __future__ import annotations

import pytest

from scheduler_core.model.taints import Taint, Toleration, count_unpreferred, first_untolerated

T = Taint("dedicated", "db", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "covers"),
    [
        (Toleration("dedicated", "Equal", "db", "NoSchedule"), True),
        (Toleration("dedicated", "", "db"), True),
        (Toleration("dedicated", "Equal", "web"), False),
        (Toleration("dedicated", "Exists"), True),
        (Toleration("", "Exists"), True),
        (Toleration("other", "Exists"), False),
        (Toleration("dedicated", "Exists", "", "NoExecute"), False),
        (Toleration("", "Equal", "db"), True),
        (Toleration("", "", ""), False),
        (Toleration("dedicated", "Gt", "1"), False),
        (Toleration("dedicated", "Nonsense", "db"), False),
    ],
)
def test_a_toleration_matches_taints_as_in_kubernetes(toleration: Toleration, covers: bool) -> None:
    assert toleration.tolerates(T) is covers


def test_only_no_schedule_and_no_execute_taints_refuse_a_pod() -> None:
    soft, hard = Taint("a", "", "PreferNoSchedule"), Taint("b", "", "NoExecute")
    assert first_untolerated((soft, hard), ()) == hard
    assert first_untolerated((soft,), ()) is None
    assert first_untolerated((hard,), (Toleration("b", "Exists"),)) is None


def test_only_untolerated_prefer_no_schedule_taints_are_counted() -> None:
    taints = (Taint("a", "", "PreferNoSchedule"), Taint("b", "", "PreferNoSchedule"), Taint("c", "", "NoSchedule"))
    assert count_unpreferred(taints, ()) == 2
    assert count_unpreferred(taints, (Toleration("a", "Exists"),)) == 1
    assert count_unpreferred(taints, (Toleration("a", "Exists", "", "NoSchedule"),)) == 2
    assert count_unpreferred(taints, (Toleration("", "Exists", "", "PreferNoSchedule"),)) == 0
