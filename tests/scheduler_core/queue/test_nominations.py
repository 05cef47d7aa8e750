"""Tests the list of the pods that are nominated for each node."""

from dataclasses import replace

from scheduler_core.model.pod import Pod
from scheduler_core.queue.nominations import Nominations

POD = Pod(name="a", uid="1")


def test_a_nomination_comes_from_the_pods_status_or_from_the_scheduler() -> None:
    nominations = Nominations()
    nominations.add(replace(POD, nominated_node_name="n1"))
    assert nominations.node_of(POD) == "n1"
    nominations.add(POD, "n2")
    assert (nominations.on("n1"), nominations.on("n2"), nominations.node_of(POD)) == ((), (POD,), "n2")


def test_a_pod_without_a_nominated_node_name_is_not_nominated() -> None:
    nominations = Nominations()
    nominations.add(POD)
    assert nominations.all == ()


def test_adding_a_pod_with_an_empty_nominated_node_removes_the_nomination() -> None:
    nominations = Nominations()
    nominations.add(replace(POD, nominated_node_name="n1"))
    nominations.add(replace(POD, nominated_node_name="n1"), "")
    assert nominations.all == ()


def test_an_update_that_leaves_nominated_node_name_unchanged_keeps_the_nomination() -> None:
    nominations = Nominations()
    nominations.add(POD, "n1")
    newer = replace(POD, labels={"x": "y"})
    nominations.update(POD, newer)
    assert nominations.all == ((newer, "n1"),)


def test_an_update_may_change_the_nominated_node() -> None:
    nominations = Nominations()
    nominations.add(POD, "n1")
    nominations.update(POD, replace(POD, nominated_node_name="n2"))
    assert nominations.node_of(POD) == "n2"
    nominations.update(replace(POD, nominated_node_name="n2"), POD)
    assert nominations.node_of(POD) is None


def test_nominated_pods_of_a_node_keep_their_order() -> None:
    nominations = Nominations()
    pods = [Pod(name=name, uid=name) for name in "cab"]
    for pod in pods:
        nominations.add(pod, "n1")
    nominations.remove(pods[1])
    assert nominations.on("n1") == (pods[0], pods[2])


def test_the_pods_of_each_node_are_found_together_and_a_node_without_them_is_not() -> None:
    nominations = Nominations()
    pods = [Pod(name=name, uid=name) for name in "cab"]
    for pod, node in zip(pods, ("n1", "n2", "n1"), strict=True):
        nominations.add(pod, node)
    nominations.remove(pods[1])
    assert nominations.by_node == {"n1": (pods[0], pods[2])}


def test_what_a_cycle_was_given_does_not_change_afterwards() -> None:
    nominations = Nominations()
    nominations.add(POD, "n1")
    given = nominations.by_node
    nominations.add(POD, "n2")
    assert (given, nominations.by_node) == ({"n1": (POD,)}, {"n2": (POD,)})
