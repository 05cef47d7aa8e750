"""Tests that what is kept of a node never changes a decision about a later pod."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.cycle import Scheduler
from scheduler_core.framework.runner import Runner
from scheduler_core.model.pod import Pod
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.testing.builders import a_node, a_pod

NAMES = ("n1", "n2", "n3")
NODES = [a_node(name).offering(cpu="4", memory="4Gi", pods="10").manifest for name in NAMES]
CPUS = {"one": "1", "half": "2", "three": "3", "two": "2"}
PODS = {
    name: a_pod(name).requesting(cpu=cpu).with_priority(place).on(node)
    for place, ((name, cpu), node) in enumerate(zip(CPUS.items(), ("n1", "n3", "n2", "n1"), strict=True))
}
SNAPSHOT = load_objects([*NODES, *(pod.manifest for pod in PODS.values())])
WANTING = tuple(
    a_pod(name).requesting(cpu=cpu).with_priority(priority).build()
    for name, cpu, priority in (("low", "2", 5), ("high", "2", 50), ("large", "3", 50), ("vast", "5", 50))
)

pods = st.sampled_from([replace(pod, name=f"{pod.name}-{number}") for pod in WANTING for number in range(2)])
several = st.lists(pods, min_size=1, max_size=2, unique_by=lambda pod: pod.key).map(tuple)
nominations = st.dictionaries(st.sampled_from(NAMES), several)
changes = st.none() | st.tuples(st.sampled_from(list(CPUS)), st.sampled_from("123"))


@given(st.lists(st.tuples(pods, nominations, changes)))
def test_a_scheduler_that_keeps_answers_decides_as_one_that_has_none(
    asked: Sequence[tuple[Pod, dict[str, tuple[Pod, ...]], tuple[str, str] | None]],
) -> None:
    scheduler, snapshot = Scheduler(), SNAPSHOT
    for pod, nominated, change in asked:
        if change is not None:
            name, cpu = change
            snapshot = snapshot.with_pods_exchanged([(f"default/{name}", PODS[name].requesting(cpu=cpu).build())])
        kept, fresh = (each.schedule(snapshot, pod, nominated=nominated) for each in (scheduler, Scheduler()))
        assert (kept.node, kept.preemption, kept.sentence) == (fresh.node, fresh.preemption, fresh.sentence)
        assert kept.diagnosis.verdict_counts() == fresh.diagnosis.verdict_counts()


def test_a_node_is_filtered_again_beside_nominated_pods_only_after_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    filtered: list[str] = []
    filter_node = Runner.filter_node

    def noted(*args: object, **kwargs: object) -> object:
        filtered.append(args[3].name)  # type: ignore[attr-defined]
        return filter_node(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(Runner, "filter_node", noted)
    low, high, *_ = WANTING
    nominated = {"n1": (high,), "n3": (high,)}
    scheduler = Scheduler()
    for name in "ab":
        scheduler.schedule(SNAPSHOT, replace(low, name=name), nominated=nominated, preempts=False)
    assert filtered == ["n1", "n3"]
    scheduler.schedule(SNAPSHOT, low, nominated={**nominated, "n3": (replace(high, name="other"),)}, preempts=False)
    assert filtered == ["n1", "n3", "n3"]


def test_a_nominated_pod_does_not_stand_in_its_own_way_after_an_equal_pod() -> None:
    mine, equal = (replace(WANTING[1], name=name) for name in ("mine", "equal"))
    nominated = {"n3": (mine,)}
    scheduler = Scheduler()
    assert scheduler.schedule(SNAPSHOT, equal, nominated=nominated).node is None
    assert scheduler.schedule(SNAPSHOT, mine, nominated=nominated).node == "n3"
