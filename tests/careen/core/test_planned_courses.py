"""The plans of generated clusters equal the recorded plans, because an optimisation must not change a plan. The first
records were made by an implementation without caches.

After an intended change of plans, the following command writes new records, and their diff shows the changed plans.

`python -m tests.careen.core.test_planned_courses`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from careen.core.facts.policy import Order
from tests.careen.core.planned_clusters import Scene, account, scene

RECORDS = Path(__file__).with_name("planned_courses.jsonl")
SEEDS = range(24)


def recorded() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RECORDS.read_text(encoding="ascii").splitlines()]


def record(seed: int, order: Order, cluster: Scene) -> dict[str, Any]:
    """Summarise a plan in one line: some figures, and a digest of the whole plan. The digest does not cover sentences,
    such as reasons."""
    made = account(cluster.plan(order))
    for wait in made["waits"]:
        del wait[-1]
    for left in made["left"]:
        del left[-1]
    for visit in made["visits"]:
        visit[-1] = bool(visit[-1])
    digest = hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()[:16]
    return {
        "seed": seed,
        "order": order.value,
        "visited": " ".join(visit[0] for visit in made["visits"]),
        "moves": len(made["moves"]),
        "waits": len(made["waits"]),
        "left": len(made["left"]),
        "ends": made["ends"],
        "digest": digest,
    }


def records(seed: int) -> Iterator[dict[str, Any]]:
    """Yield the summaries of the cluster's plans: one plan for each order in which nodes can reboot (`--order`)."""
    cluster = scene(seed)
    return (record(seed, order, cluster) for order in Order)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_generated_cluster_gives_the_recorded_plan(seed: int) -> None:
    assert list(records(seed)) == [each for each in recorded() if each["seed"] == seed]


def test_the_recorded_plans_have_moves_and_waiting_pods_and_nodes_that_cannot_reboot() -> None:
    """Some wrong optimisations change only plans in which pods move, pods wait for a node, or nodes cannot reboot."""
    told = recorded()
    assert {each["seed"] for each in told} == set(SEEDS)
    assert sum(each["moves"] for each in told) > 500
    assert min(sum(each["waits"] for each in told), sum(each["left"] for each in told)) > 10


if __name__ == "__main__":
    RECORDS.write_text("".join(json.dumps(each) + "\n" for seed in SEEDS for each in records(seed)), encoding="ascii")
