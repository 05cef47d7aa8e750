"""Tests that minimising a case keeps only the objects and fields that cause the difference."""

from __future__ import annotations

from typing import Any

from tests.oracle.minimise import minimise


def manifest(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default", "labels": {"a": "b"}},
        "spec": spec,
    }


CASE = {
    "id": "big",
    "objects": [
        *(manifest("Node", f"n{i}", taints=[{"key": "k", "effect": "NoSchedule"}]) for i in range(9)),
        *(manifest("Pod", f"run{i}", nodeName=f"n{i}") for i in range(9)),
        manifest("Pod", "asked", priority=5, tolerations=[]),
        manifest("Pod", "other"),
    ],
    "pods": ["default/asked", "default/other"],
    "config": {"profiles": [{"schedulerName": "default-scheduler"}]},
}


def differs_with_two_objects(batch: list[dict[str, Any]]) -> list[bool]:
    """Reports a difference for each case that contains both the pod run7 and a tainted node n3."""
    return [
        any(o["metadata"]["name"] == "n3" and o["spec"].get("taints") for o in case["objects"])
        and any(o["metadata"]["name"] == "run7" for o in case["objects"])
        for case in batch
    ]


def test_minimising_keeps_only_the_objects_that_cause_the_difference() -> None:
    small = minimise(CASE, "default/asked", differs_with_two_objects)
    assert [o["metadata"]["name"] for o in small["objects"]] == ["n3", "run7", "asked"]
    assert small["pods"] == ["default/asked"]
    assert "config" not in small
    assert small["id"] == "big"


def test_minimising_removes_fields_that_do_not_cause_the_difference() -> None:
    node, placed, asked = minimise(CASE, "default/asked", differs_with_two_objects)["objects"]
    assert node["metadata"] == {"name": "n3", "namespace": "default"}
    assert node["spec"] == {"taints": [{"key": "k"}]}
    assert placed["spec"] == {"nodeName": "n7"}
    assert asked["spec"] == {}


def test_minimising_does_not_change_the_given_case() -> None:
    before = repr(CASE)
    minimise(CASE, "default/asked", differs_with_two_objects)
    assert repr(CASE) == before
