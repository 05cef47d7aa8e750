"""Which closed budgets of a snapshot may open during a drain (`understood.py` has the rule)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from scheduler_core.model.disruption_budget import DisruptionBudget
from scheduler_core.model.pod import Pod
from scheduler_core.simulation.evicted.understood import why_it_may_open
from scheduler_core.snapshot.snapshot import Snapshot


class OpeningBudgets:
    """Answers `why_it_may_open` for the pods of a snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def __call__(self, pod: Pod, budget: DisruptionBudget) -> str:
        owner = pod.owner
        return why_it_may_open(
            budget,
            owner_kind=owner.kind if owner else "",
            owner_api_version=owner.api_version if owner else "",
            template=self._template(pod),
        )

    def _template(self, pod: Pod) -> Mapping[str, str]:
        """The labels of the template. If the controller is not in the snapshot, those that all its pods have."""
        owner, objects = pod.owner, self._snapshot.objects
        if owner is None:
            return pod.labels
        if owner.kind == "Job":
            job = objects.jobs.get(f"{pod.namespace}/{owner.name}")
            if job is not None:
                return dict(job.template_labels)
        for each in objects.owners.get(pod.namespace, ()):
            if (each.kind, each.name) == (owner.kind, owner.name):
                return dict(each.template_labels)
        pods = (each for each in self._snapshot.placed_pods if each.owner == owner and each.namespace == pod.namespace)
        return shared(pod.labels, (each.labels for each in pods))


def shared(labels: Mapping[str, str], others: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """The labels that all of them have with the same value."""
    common = dict(labels)
    for each in others:
        common = {key: value for key, value in common.items() if each.get(key) == value}
    return common
