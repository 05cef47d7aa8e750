"""Tests the choice of the node for preemption. Each criterion decides only if all earlier criteria are equal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.model.pod import Pod, PodSpec
from scheduler_core.preemption.choice import choose_node
from scheduler_core.preemption.victims import Victims, most_important_first


def victims(*pods: tuple[int, float | None], violations: int = 0) -> Victims:
    built = [
        Pod(name=f"v{index}", spec=PodSpec(priority=priority), start_time=started)
        for index, (priority, started) in enumerate(pods)
    ]
    return Victims(pods=tuple(most_important_first(built)), budget_violations=violations)


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        pytest.param(
            victims((9, 0.0), (9, 0.0)),
            victims((1, 0.0), violations=1),
            id="a node without budget violations is better, even if its victims have higher priorities",
        ),
        pytest.param(
            victims((5, 0.0), (5, 0.0)), victims((6, 0.0)), id="a lower maximum priority of the victims is better"
        ),
        pytest.param(
            victims((5, 0.0), (1, 0.0)),
            victims((5, 0.0), (2, 0.0)),
            id="a smaller sum of the victims' priorities is better",
        ),
        pytest.param(
            victims((-5, 0.0)),
            victims((-5, 0.0), (-9, 0.0)),
            id="fewer victims are better, even if their sum of priorities is higher",
        ),
        pytest.param(victims((5, 20.0)), victims((5, 10.0)), id="a victim that started later is better"),
        pytest.param(
            victims((5, 20.0), (1, 0.0)),
            victims((5, 10.0), (1, 99.0)),
            id="only victims with the highest priority are compared by their start times",
        ),
        pytest.param(
            victims((5, 20.0), (5, 30.0)),
            victims((5, 10.0), (5, 99.0)),
            id="a node whose oldest victim started later is better",
        ),
        pytest.param(
            victims((5, None)), victims((5, 10.0)), id="a victim that has not started is treated as the youngest"
        ),
    ],
)
def test_preemption_chooses_the_node_by_the_first_criterion_in_which_the_nodes_differ(
    better: Victims, worse: Victims
) -> None:
    assert choose_node({"a": worse, "b": better}) == "b"
    assert choose_node({"a": better, "b": worse}) == "a"


def test_the_node_name_breaks_the_last_tie_of_preemption() -> None:
    assert choose_node({"n2": victims((1, 1.0)), "n1": victims((1, 1.0)), "n3": victims((1, 1.0))}) == "n1"


@given(
    st.dictionaries(
        st.text("abcd", min_size=1, max_size=3),
        st.lists(st.tuples(st.integers(-3, 3), st.sampled_from([None, 1.0, 2.0])), min_size=1, max_size=3),
        min_size=1,
    )
)
def test_the_order_of_preemption_candidates_does_not_matter(nodes: dict[str, list[tuple[int, float | None]]]) -> None:
    candidates = {name: victims(*pods) for name, pods in nodes.items()}
    assert choose_node(candidates) == choose_node(dict(reversed(candidates.items())))
