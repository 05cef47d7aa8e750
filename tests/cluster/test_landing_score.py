"""Tests how forecasts are scored: how many pods were placed on a forecast node. The tests need no cluster."""

from __future__ import annotations

import pytest

from scheduler_core.simulation.forecast import Forecast, Outcome, PodForecast
from tests.cluster.harness.measures.accuracy import disorder, score
from tests.cluster.harness.measures.drains import Drain, PodEvent


def moves(name: str, *nodes: str, app: str = "web", kind: str = "ReplicaSet") -> PodForecast:
    return PodForecast(
        namespace="v", name=name, uid=name, outcome=Outcome.MOVES, sentence="", landing=nodes, owner=f"{kind} v/{app}"
    )


def a_drain(
    pods: list[PodForecast],
    *happened: str,
    kind: str = "ReplicaSet",
    budgeted: frozenset[str] = frozenset(),
    lacking: dict[str, int] | None = None,
) -> Drain:
    """Return a drain with the events in `happened`, in this order. An event is "evicted POD OWNER", "created POD OWNER"
    or "bound POD OWNER NODE", for example "bound b web n2". The owner is a Job if its name begins with `job`. The owner
    `-` means that the pod has no owner.
    """
    events = []
    for version, text in enumerate(happened):
        what, name, app, *node = text.split()
        owner = "" if app == "-" else f"{'Job' if app.startswith('job') else kind} v/{app}"
        events.append(
            PodEvent(
                version=version,
                at=0.0,
                kind=what,
                uid=name,
                title=f"v/{name}",
                owner=owner,
                node=node[0] if node else "n1" if what == "evicted" else "",
            )
        )
    return Drain(
        node="n1",
        pages=[],
        forecast=Forecast(node="n1", made_at="", pods=tuple(pods)),
        events=events,
        budgeted=budgeted,
        lacking=lacking or {},
    )


IN_ORDER = ("evicted a web", "created c web", "bound c web n2", "evicted b web", "created d web", "bound d web n3")


def test_replacements_are_matched_with_the_forecasts_of_their_owner() -> None:
    made = score(a_drain([moves("a", "n3"), moves("b", "n2", "n4")], *IN_ORDER))
    assert (made.pods, made.inside, made.single, made.single_equal, made.mean_size, made.misses) == (
        2,
        2,
        1,
        1,
        1.5,
        [],
    )
    assert (made.drains_in_order, made.single_in_order, made.single_equal_in_order) == (1, 1, 1)


def test_a_replacement_on_a_node_that_was_not_forecast_counts_as_a_miss() -> None:
    made = score(a_drain([moves("a", "n2"), moves("b", "n2")], *IN_ORDER))
    assert (made.pods, made.inside, made.single_equal) == (2, 1, 1)
    (miss,) = made.misses
    assert (miss.said, miss.went, miss.reason) == ((("n2",), ("n2",)), ("n2", "n3"), "not explained")


def test_a_replacement_of_another_owner_does_not_count_as_a_hit() -> None:
    made = score(
        a_drain(
            [moves("a", "n2", app="api")],
            "evicted a api",
            "created c web",
            "bound c web n2",
            "created d api",
            "bound d api n5",
        )
    )
    assert (made.pods, made.inside) == (1, 0)


def test_a_pod_that_is_not_replaced_during_the_drain_does_not_count_as_a_miss() -> None:
    made = score(a_drain([moves("a", "n2", kind="Job")], "evicted a web", kind="Job"))
    assert (made.pods, made.superseded, made.misses) == (0, 1, [])


def test_a_replacement_that_an_earlier_drain_caused_is_not_scored() -> None:
    """Pods of one Job were evicted in this drain and in an earlier drain. The only replacement belongs to the earlier
    drain.
    """
    happened = ("evicted a job", "created c job", "bound c job n7")
    late, both = (
        score(a_drain([moves("a", "n2", app="job", kind="Job")], *happened, *more, lacking={"Job v/job": 1}))
        for more in ((), ("created d job", "bound d job n2"))
    )
    assert (late.pods, late.superseded, late.misses) == (0, 1, [])
    assert (both.pods, both.inside, both.superseded) == (1, 1, 0)
    assert late.drains_in_order == both.drains_in_order == 0


def test_a_replacement_that_stays_pending_counts_as_a_miss() -> None:
    made = score(a_drain([moves("a", "n2")], "evicted a web", "created c web"))
    assert (made.pods, made.inside, made.pending_seen, len(made.misses)) == (1, 0, 1, 1)


@pytest.mark.parametrize(
    ("happened", "why"),
    [
        pytest.param(IN_ORDER, "", id="each replacement is bound before the next eviction"),
        pytest.param(
            ("evicted b web", "created d web", "bound d web n3", "evicted a web"),
            "v/a was evicted after v/b",
            id="pods were evicted in another order than forecast",
        ),
        pytest.param(
            ("created x job", *IN_ORDER),
            "v/x was created, but replaces no pod of this drain",
            id="a replacement of a pod of another drain appeared",
        ),
        pytest.param(
            ("evicted a web", "created c web", "evicted b web", "bound c web n2"),
            "v/c had no node yet when v/b was evicted",
            id="the scheduler bound a replacement only after the next eviction",
        ),
    ],
)
def test_the_score_says_whether_evictions_followed_the_forecast_order(happened: tuple[str, ...], why: str) -> None:
    assert disorder(a_drain([moves("a", "n2"), moves("b", "n3")], *happened)) == why


JOBS_LAST = (
    "evicted a job1",
    "evicted b web",
    "created c web",
    "bound c web n2",
    "evicted e job2",
    "created d job1",
    "bound d job1 n3",
    "created f job2",
)


@pytest.mark.parametrize(
    ("happened", "lacking", "why"),
    [
        pytest.param(JOBS_LAST, {}, "", id="replacements of Jobs' pods are created last"),
        pytest.param(
            JOBS_LAST,
            {"Job v/job1": 1},
            "v/d was created, but replaces no pod of this drain",
            id="a Job still lacked a pod because of an earlier drain",
        ),
        pytest.param(
            JOBS_LAST, {"Job v/job3": 1}, "", id="a Job lacked a pod, but the drain evicted no pod of this Job"
        ),
        pytest.param(
            ("evicted a job1", "created c job1", "evicted b web"),
            {},
            "v/c was created before v/b was evicted",
            id="a Job replaced a pod before the drain had evicted all pods",
        ),
        pytest.param(
            ("evicted a job1", "evicted b web", "created d job1", "created c web"),
            {},
            "v/d was created before a replacement of v/b",
            id="a Job replaced a pod sooner than a ReplicaSet did",
        ),
        pytest.param(
            ("evicted a job1", "evicted e job2", "created f job2", "created d job1"),
            {},
            "",
            id="the order among Jobs is not checked",
        ),
        pytest.param(("evicted a job1", "evicted b -", "created d job1"), {}, "", id="a bare pod is not recreated"),
        pytest.param(
            ("evicted a job1", "created d job1", "evicted x web n5", "created y web"),
            {},
            "",
            id="pods preempted by a replacement are not part of the drain",
        ),
    ],
)
def test_the_score_reports_that_a_job_replaced_a_pod_at_an_unexpected_time(
    happened: tuple[str, ...], lacking: dict[str, int], why: str
) -> None:
    assert disorder(a_drain([moves(name, "n2") for name in "abe"], *happened, lacking=lacking)) == why


def test_a_pod_under_a_disruption_budget_may_be_evicted_later_than_forecast() -> None:
    late = ("evicted b web", "created d web", "bound d web n3", "evicted a web")
    assert disorder(a_drain([moves("a", "n2"), moves("b", "n3")], *late, budgeted=frozenset({"v/a"}))) == ""
