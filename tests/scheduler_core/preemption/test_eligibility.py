"""Tests whether a pod may preempt other pods."""

from dataclasses import replace

import pytest

from scheduler_core.framework.verdict import Verdict, unresolvable, unschedulable
from scheduler_core.model.pod import Pod, PodSpec
from scheduler_core.preemption.eligibility import is_preemptible_by, why_ineligible

POD = Pod(name="p", spec=PodSpec(priority=10))
NOMINATED = replace(POD, nominated_node_name="n1")
NEVER = Pod(name="p", spec=PodSpec(priority=10, preemption_policy="Never"))
VICTIM = Pod(name="v", spec=PodSpec(priority=1), terminating=True, preempted_by_scheduler=True)
BUSY = unschedulable("Insufficient cpu")
WAITS = "not eligible due to a terminating pod on the nominated node."


@pytest.mark.parametrize(
    ("pod", "verdict", "there", "obstacle"),
    [
        pytest.param(POD, None, (), "", id="a pod without a nominated node may preempt"),
        pytest.param(
            NEVER,
            None,
            (),
            "not eligible due to preemptionPolicy=Never.",
            id="a pod with preemptionPolicy Never may not preempt",
        ),
        pytest.param(
            replace(NEVER, nominated_node_name="n1"),
            BUSY,
            (VICTIM,),
            "not eligible due to preemptionPolicy=Never.",
            id="a pod with preemptionPolicy Never is refused because of the policy even while a victim terminates",
        ),
        pytest.param(NOMINATED, BUSY, (), "", id="a nominated pod whose victims are gone may preempt"),
        pytest.param(NOMINATED, BUSY, (VICTIM,), WAITS, id="a nominated pod waits while a victim terminates"),
        pytest.param(
            NOMINATED,
            unresolvable("tainted"),
            (VICTIM,),
            "",
            id="a pod may preempt if its nominated node became unresolvable",
        ),
        pytest.param(NOMINATED, None, (), "", id="a pod may preempt if its nominated node was deleted"),
        pytest.param(POD, BUSY, (VICTIM,), "", id="a pod without a nominated node waits for no victim"),
        pytest.param(
            NOMINATED,
            BUSY,
            (replace(VICTIM, preempted_by_scheduler=False),),
            "",
            id="a pod that terminates for another reason is no victim",
        ),
        pytest.param(
            NOMINATED,
            BUSY,
            (replace(VICTIM, terminating=False),),
            "",
            id="a nominated pod may preempt while no victim terminates",
        ),
        pytest.param(
            NOMINATED,
            BUSY,
            (replace(VICTIM, spec=PodSpec(priority=10)),),
            "",
            id="a terminating pod of equal priority is no victim",
        ),
    ],
)
def test_preemption_is_forbidden_for_the_same_reasons_as_in_kube_scheduler(
    pod: Pod, verdict: Verdict | None, there: tuple[Pod, ...], obstacle: str
) -> None:
    assert why_ineligible(pod, verdict, there) == obstacle


@pytest.mark.parametrize(("priority", "expected"), [(9, True), (10, False), (11, False), (-1, True)])
def test_only_pods_of_lower_priority_can_be_preempted(priority: int, expected: bool) -> None:
    assert is_preemptible_by(Pod(name="v", spec=PodSpec(priority=priority)), POD) is expected
