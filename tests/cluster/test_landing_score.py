"""The judge of forecasts finds what is there to find; it needs no cluster."""

from __future__ import annotations

import pytest

from scheduler_core.simulation.forecast import Forecast, Outcome, PodForecast
from tests.cluster.harness.accuracy import disorder, score
from tests.cluster.harness.drains import Drain, PodEvent


def moves(name: str, *nodes: str, app: str = "web", kind: str = "ReplicaSet") -> PodForecast:
    return PodForecast(namespace="v", name=name, uid=name, outcome=Outcome.MOVES, sentence="", landing=nodes, owner=f"{kind} v/{app}")


def a_drain(pods: list[PodForecast], *happened: str, kind: str = "ReplicaSet", budgeted: frozenset[str] = frozenset()) -> Drain:
    """`happened`: "evicted a web", "created b web", "bound b web n2", in order."""
    events = []
    for version, text in enumerate(happened):
        what, name, app, *node = text.split()
        events.append(PodEvent(
            version=version, at=0.0, kind=what, uid=name, title=f"v/{name}", owner=f"{kind} v/{app}", node=node[0] if node else "n1" if what == "evicted" else "",
        ))
    return Drain(node="n1", pages=[], forecast=Forecast(node="n1", made_at="", pods=tuple(pods)), events=events, budgeted=budgeted)


IN_ORDER = ("evicted a web", "created c web", "bound c web n2", "evicted b web", "created d web", "bound d web n3")


def test_landings_are_matched_owner_by_owner() -> None:
    made = score(a_drain([moves("a", "n3"), moves("b", "n2", "n4")], *IN_ORDER))
    assert (made.pods, made.inside, made.single, made.single_equal, made.mean_size, made.misses) == (2, 2, 1, 1, 1.5, [])
    assert (made.drains_in_order, made.single_in_order, made.single_equal_in_order) == (1, 1, 1)


def test_a_landing_elsewhere_is_a_miss_with_both_sides() -> None:
    made = score(a_drain([moves("a", "n2"), moves("b", "n2")], *IN_ORDER))
    assert (made.pods, made.inside, made.single_equal) == (2, 1, 1)
    (miss,) = made.misses
    assert (miss.said, miss.went, miss.reason) == ((("n2",), ("n2",)), ("n2", "n3"), "not explained")


def test_a_replacement_of_another_owner_makes_nothing_come_true() -> None:
    made = score(a_drain([moves("a", "n2", app="api")], "evicted a api", "created c web", "bound c web n2", "created d api", "bound d api n5"))
    assert (made.pods, made.inside) == (1, 0)


def test_a_pod_that_was_not_replaced_in_time_is_superseded_and_no_miss() -> None:
    made = score(a_drain([moves("a", "n2", kind="Job")], "evicted a web", kind="Job"))
    assert (made.pods, made.superseded, made.misses) == (0, 1, [])


def test_a_replacement_without_a_node_is_a_miss_and_seen_as_pending() -> None:
    made = score(a_drain([moves("a", "n2")], "evicted a web", "created c web"))
    assert (made.pods, made.inside, made.pending_seen, len(made.misses)) == (1, 0, 1, 1)


@pytest.mark.parametrize(("happened", "why"), [
    pytest.param(IN_ORDER, "", id="each has its node before the next goes"),
    pytest.param(("evicted b web", "created d web", "bound d web n3", "evicted a web"), "v/a was evicted after v/b", id="asked in another order"),
    pytest.param(("created x job", *IN_ORDER), "v/x came, which this drain did not displace", id="a pod of another drain came"),
    pytest.param(("evicted a web", "created c web", "evicted b web", "bound c web n2"), "v/c had no node yet when v/b was evicted", id="the scheduler was slower"),
])
def test_whether_the_order_was_kept(happened: tuple[str, ...], why: str) -> None:
    assert disorder(a_drain([moves("a", "n2"), moves("b", "n3")], *happened)) == why


def test_a_pod_under_a_budget_may_come_in_a_later_round() -> None:
    late = ("evicted b web", "created d web", "bound d web n3", "evicted a web")
    assert disorder(a_drain([moves("a", "n2"), moves("b", "n3")], *late, budgeted=frozenset({"v/a"}))) == ""
