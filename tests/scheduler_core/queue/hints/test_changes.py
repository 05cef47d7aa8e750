"""Tests which events an update of a pod or a node causes."""

from dataclasses import replace
from typing import Any

import pytest

from scheduler_core.model.node import Node
from scheduler_core.model.pod import Container, Pod, PodSpec
from scheduler_core.model.taints import Taint, Toleration
from scheduler_core.queue.events import Action, Resource
from scheduler_core.queue.hints.changes import node_changes, pod_changes

GATED = PodSpec(scheduling_gates=("g",))


def asking(**requests: int) -> PodSpec:
    return PodSpec(
        containers=(Container(name="c", requests={name: amount * 10**9 for name, amount in requests.items()}),)
    )


@pytest.mark.parametrize(
    ("old", "new", "actions"),
    [
        pytest.param({}, {"labels": {"a": "b"}}, [Action.UPDATE_POD_LABEL], id="changed labels cause a label event"),
        pytest.param(
            {"spec": asking(cpu=2)},
            {"spec": asking(cpu=1)},
            [Action.UPDATE_POD_SCALE_DOWN],
            id="smaller requests cause a scale-down event",
        ),
        pytest.param(
            {"spec": asking(cpu=1)},
            {"spec": asking(cpu=2)},
            [Action.UPDATE],
            id="larger requests cause only the general update event",
        ),
        pytest.param(
            {"spec": asking(cpu=1, memory=1)},
            {"spec": asking(cpu=2)},
            [Action.UPDATE_POD_SCALE_DOWN],
            id="a removed memory request causes a scale-down event even if the cpu request grows",
        ),
        pytest.param(
            {"spec": GATED},
            {"spec": PodSpec()},
            [Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED],
            id="the removal of all scheduling gates causes the event for eliminated gates",
        ),
        pytest.param(
            {"spec": PodSpec(scheduling_gates=("g", "h"))},
            {"spec": GATED},
            [Action.UPDATE],
            id="the removal of one of two scheduling gates causes only the general update event",
        ),
        pytest.param(
            {},
            {"spec": PodSpec(tolerations=(Toleration(key="a"),))},
            [Action.UPDATE_POD_TOLERATION],
            id="a new toleration causes a toleration event",
        ),
        pytest.param(
            {},
            {"generated_claims": (("a", "b"),)},
            [Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM],
            id="newly generated claims cause a claim event",
        ),
        pytest.param(
            {}, {"terminating": True}, [Action.UPDATE], id="a deletion timestamp causes only the general update event"
        ),
        pytest.param(
            {"spec": asking(cpu=2)},
            {"spec": asking(cpu=1), "labels": {"a": "b"}},
            [Action.UPDATE_POD_LABEL, Action.UPDATE_POD_SCALE_DOWN],
            id="an update with two changes causes two events",
        ),
    ],
)
def test_the_changed_fields_of_a_pod_decide_which_events_follow(
    old: dict[str, Any], new: dict[str, Any], actions: list[Action]
) -> None:
    before, after = Pod(name="p", **old), Pod(name="p", **new)
    assert [event.action for event in pod_changes(before, after)] == actions


@pytest.mark.parametrize(("node", "resource"), [("", Resource.UNSCHEDULED_POD), ("n", Resource.ASSIGNED_POD)])
def test_updates_of_bound_and_unbound_pods_cause_different_events(node: str, resource: Resource) -> None:
    (event,) = pod_changes(Pod(name="p"), Pod(name="p", node_name=node))
    assert event.resource is resource


NODE = Node(name="n", labels={"a": "b"}, allocatable={"cpu": 1})


@pytest.mark.parametrize(
    ("old", "new", "actions"),
    [
        (NODE, NODE, []),
        (NODE, replace(NODE, unschedulable=True), []),
        (replace(NODE, unschedulable=True), NODE, [Action.UPDATE_NODE_TAINT]),
        (NODE, replace(NODE, taints=(Taint("k", "", "NoSchedule"),)), [Action.UPDATE_NODE_TAINT]),
        (NODE, replace(NODE, labels={}), [Action.UPDATE_NODE_LABEL]),
        (NODE, replace(NODE, allocatable={"cpu": 2}), [Action.UPDATE_NODE_ALLOCATABLE]),
        (NODE, replace(NODE, annotations={"x": "y"}), [Action.UPDATE_NODE_ANNOTATION]),
        (NODE, replace(NODE, declared_features=frozenset({"F"})), [Action.UPDATE_NODE_DECLARED_FEATURE]),
        (
            NODE,
            replace(NODE, labels={}, allocatable={"cpu": 2}),
            [Action.UPDATE_NODE_ALLOCATABLE, Action.UPDATE_NODE_LABEL],
        ),
    ],
)
def test_the_changed_fields_of_a_node_decide_which_events_follow(old: Node, new: Node, actions: list[Action]) -> None:
    assert [event.action for event in node_changes(old, new)] == actions
