from __future__ import annotations

import pytest

from scheduler_core.model.labels import EVERYTHING, NOTHING, LabelSelector, Requirement
from scheduler_core.snapshot.pods.pod_classes import PodClasses, PodQuery
from scheduler_core.testing.builders import PodBuilder, a_pod


def selector(operator: str, *values: str, key: str = "app") -> LabelSelector:
    return LabelSelector((Requirement(key, operator, values),))


def pods() -> list[PodBuilder]:
    return [
        a_pod("0").labelled(app="web"),
        a_pod("1").labelled(app="db"),
        a_pod("2", "ops").labelled(app="web"),
        a_pod("3").labelled(app="web", tier="x"),
        a_pod("4"),
        a_pod("5").labelled(app="web").terminating(),
    ]


DEFAULT = frozenset({"default"})


@pytest.mark.parametrize(
    ("query", "chosen"),
    [
        (PodQuery(((DEFAULT, selector("In", "web")),)), [0, 3, 5]),
        (PodQuery(((DEFAULT, selector("In", "web")),), live_only=True), [0, 3]),
        (PodQuery(((None, selector("In", "web", "db")),)), [0, 1, 2, 3, 5]),
        (PodQuery(((DEFAULT, selector("NotIn", "web")),)), [1, 4]),
        (PodQuery(((None, selector("Exists", key="tier")),)), [3]),
        (PodQuery(((None, selector("DoesNotExist")),)), [4]),
        (PodQuery(((None, EVERYTHING),)), [0, 1, 2, 3, 4, 5]),
        (PodQuery(((DEFAULT, NOTHING),)), []),
        (PodQuery(((DEFAULT, selector("In", "web")), (None, selector("Exists", key="tier")))), [3]),
        (PodQuery(((frozenset(), EVERYTHING),)), []),
    ],
)
def test_a_query_selects_pod_classes_by_labels_and_namespace(query: PodQuery, chosen: list[int]) -> None:
    kinds = PodClasses()
    assert [kinds.number_of(pod.build()) for pod in pods()] == [0, 1, 2, 3, 4, 5]
    assert kinds.chosen(query) == (set(chosen), chosen)


def test_equal_pods_share_one_class_regardless_of_their_names() -> None:
    kinds = PodClasses()
    assert [kinds.number_of(a_pod(name).labelled(a="1", b="2").build()) for name in "xy"] == [0, 0]
    assert kinds.number_of(a_pod("z").with_labels({"b": "2", "a": "1"}).build()) == 0


def test_a_cached_result_includes_pod_classes_that_were_added_later() -> None:
    kinds, query = PodClasses(), PodQuery(((None, selector("In", "web")),))
    for number, pod in enumerate(pods()):
        kinds.number_of(pod.build())
        found, ordered = kinds.chosen(query)
        assert ordered == [n for n in (0, 2, 3, 5) if n <= number]
        assert found == set(ordered)


def test_equal_pod_queries_share_one_cached_result() -> None:
    one, other = (PodQuery(((DEFAULT, selector("In", "web")),)) for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    assert one != PodQuery(((DEFAULT, selector("In", "web")),), live_only=True)
