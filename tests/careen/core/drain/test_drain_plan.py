"""The drain plan: the pods that the agent evicts now, the pods that it evicts later, and the pods that stay on the
node."""

from __future__ import annotations

from collections import ChainMap
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from careen.core.drain import drain_plan
from careen.core.facts import keys
from careen.core.facts.memory import (
    EvictAnswer,
    EvictionMemory,
    Memory,
    after_evicting_new_pods,
    after_eviction,
)
from careen.core.facts.observation import PodView
from careen.core.facts.policy import BoundPods, DrainPolicy
from careen.core.facts.selectors import Selector
from scheduler_core.model.pod import OwnerReference, Pod, PodSpec
from scheduler_core.simulation.evicted import replacements
from scheduler_core.simulation.evicted.replacements import eviction_order
from scheduler_core.snapshot.loading import load_objects
from tests.careen.core.builders import NOW, UPTIME, a_daemon_pod, a_pod, with_parts


def plan(*pods: PodView, memory: Memory | None = None, **policy: Any) -> drain_plan.DrainPlan:
    return drain_plan.plan(pods, DrainPolicy(**policy), memory or Memory(), uptime=UPTIME, now=NOW)


def asked(
    name: str, *, attempts: int = 1, wait: float = 5.0, answer: EvictAnswer = EvictAnswer.BUDGET, detail: str = ""
) -> Memory:
    return with_parts(
        Memory(),
        drain__evictions={
            f"uid-{name}": EvictionMemory(attempts=attempts, not_before=UPTIME + wait, answer=answer, detail=detail)
        },
    )


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(a_daemon_pod(), id="a DaemonSet's pod"),
        pytest.param(a_pod(is_mirror=True, owner_kind="Node"), id="a static pod"),
        pytest.param(a_pod(phase="Succeeded"), id="a finished pod"),
        pytest.param(a_pod(phase="Failed"), id="a failed pod"),
    ],
)
def test_the_drain_evicts_no_static_finished_or_daemonset_pods(pod: PodView) -> None:
    assert plan(pod).staying == (pod,)
    assert plan(pod).is_done


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(a_pod(), id="a controller's pod"),
        pytest.param(a_pod(owner_kind="", owner_name="", owner_uid=""), id="a pod without a controller"),
        pytest.param(a_pod(has_empty_dir=True), id="a pod with an emptyDir"),
        pytest.param(a_pod(phase="Pending"), id="a pending pod"),
        pytest.param(a_pod(phase="Unknown"), id="a pod in an unknown phase"),
    ],
)
def test_the_drain_evicts_pods_with_and_without_a_controller(pod: PodView) -> None:
    assert plan(pod).now == (pod,)
    assert not plan(pod).is_done


def test_the_drain_selector_limits_the_evicted_pods() -> None:
    chosen, other = a_pod("a", labels={"app": "web"}), a_pod("b")
    found = plan(chosen, other, selector=Selector.parse("app=web"))
    assert (found.now, found.staying) == ((chosen,), (other,))


def test_the_back_off_after_a_refused_eviction_delays_no_other_pod() -> None:
    found = plan(a_pod("a"), a_pod("b"), memory=asked("a"))
    assert ([pod.name for pod in found.now], [pod.name for pod in found.later]) == (["b"], ["a"])


def test_a_refused_eviction_is_repeated_after_its_back_off() -> None:
    assert [pod.name for pod in plan(a_pod("a"), memory=asked("a", wait=0.0)).now] == ["a"]


def test_a_recreated_pod_of_the_same_name_has_its_own_back_off() -> None:
    assert [pod.uid for pod in plan(a_pod("a", uid="new"), memory=asked("a")).now] == ["new"]


def test_the_agent_decides_again_when_the_first_back_off_ends() -> None:
    assert plan(a_pod("a"), memory=asked("a", wait=1.5)).look_again_seconds == 1.5
    assert plan(a_pod("a"), memory=asked("a", wait=50.0)).look_again_seconds == 2.0


@pytest.mark.parametrize(
    ("waits", "look"),
    [((1.0, 1.4), 1.4), ((1.0, 1.6), 1.0), ((0.2, 0.7, 1.1), 0.7)],
)
def test_the_agent_makes_one_decision_for_all_back_offs_that_end_within_half_a_second(
    waits: tuple[float, ...], look: float
) -> None:
    """The half second begins when the first back-off ends. The agent decides again when the last back-off within this
    half second ends. For example, if two back-offs end in 1.0 and 1.4 seconds, the agent decides in 1.4 seconds."""
    names = [f"p{number}" for number, _ in enumerate(waits)]
    refused = [asked(name, wait=wait).drain.evictions for name, wait in zip(names, waits, strict=True)]
    memory = with_parts(Memory(), drain__evictions=dict(ChainMap(*map(dict, refused))))
    found = plan(*(a_pod(name) for name in names), memory=memory)
    assert found.look_again_seconds == pytest.approx(look)


def terminating(since: float, **changes: Any) -> PodView:
    return a_pod("a", deletion_timestamp=NOW - timedelta(seconds=since), **changes)


@pytest.mark.parametrize(
    ("asked_ago", "look"),
    [
        pytest.param(0, 0.5, id="evicted a moment ago"),
        pytest.param(2, 0.5, id="evicted two seconds ago"),
        pytest.param(4, 1.0, id="evicted four seconds ago"),
        pytest.param(9, 2.0, id="a pod that terminates slowly"),
        pytest.param(-5, 0.5, id="the agent's clock is behind, so the eviction seems to be in the future"),
    ],
)
def test_terminating_pods_are_checked_often_at_first(asked_ago: float, look: float) -> None:
    assert plan(terminating(asked_ago - 30, deletion_grace_seconds=30.0)).look_again_seconds == look


def test_the_drain_waits_for_a_terminating_pod_without_a_second_eviction() -> None:
    found = plan(terminating(0))
    assert (found.ending, found.now, found.is_done) == ((terminating(0),), (), False)


@pytest.mark.parametrize(
    ("skip", "since", "is_done"), [(0, 10_000, False), (60, 59, False), (60, 60, False), (60, 61, True)]
)
def test_the_drain_ignores_pods_that_terminate_longer_than_skip_wait_for_delete_timeout(
    skip: float, since: float, is_done: bool
) -> None:
    assert plan(terminating(since), skip_wait_for_delete_seconds=skip).is_done is is_done


def test_pods_are_evicted_by_ascending_priority_and_then_by_name() -> None:
    found = plan(a_pod("b"), a_pod("z", priority=-1), a_pod("a"), a_pod("c", priority=100))
    assert [pod.name for pod in found.now] == ["z", "a", "b", "c"]


def test_a_configured_grace_period_replaces_the_pods_grace_period() -> None:
    found = plan(a_pod("a"))
    assert [request.grace_seconds for request in drain_plan.requests(found, DrainPolicy())] == [None]
    assert [
        (request.uid, request.grace_seconds) for request in drain_plan.requests(found, DrainPolicy(grace_seconds=0))
    ] == [("uid-a", 0)]


def test_dry_run_evictions_are_sent_only_for_pods_that_the_drain_evicts() -> None:
    pods = (a_pod("a"), a_daemon_pod(), terminating(0))
    assert [pod.name for pod in drain_plan.to_evict(pods, DrainPolicy())] == ["a"]


CORDONED = NOW - timedelta(seconds=60)


def new_pod(name: str = "new", *, after: float = 30.0, **changes: Any) -> PodView:
    return a_pod(name, created_at=CORDONED + timedelta(seconds=after), **changes)


def plan_since(*pods: PodView, memory: Memory | None = None) -> drain_plan.DrainPlan:
    return drain_plan.plan(pods, DrainPolicy(), memory or Memory(), uptime=UPTIME, now=NOW, cordoned_at=CORDONED)


@pytest.mark.parametrize(
    ("pod", "stays"),
    [
        pytest.param(
            new_pod(tolerates_cordon=True), True, id="a pod that tolerates the cordon and was created after it"
        ),
        pytest.param(
            new_pod(tolerates_cordon=True, after=-30),
            False,
            id="a pod that tolerates the cordon and was created before it",
        ),
        pytest.param(
            new_pod(tolerates_cordon=True, after=1),
            False,
            id="a pod that tolerates the cordon and was created a second after it",
        ),
        pytest.param(new_pod(), False, id="a new pod that does not tolerate the cordon"),
        pytest.param(new_pod(came_bound=True), True, id="a pod that its owner bound to this node after the cordon"),
        pytest.param(
            new_pod(came_bound=True, after=-30),
            False,
            id="a pod that its owner bound to this node before the cordon",
        ),
        pytest.param(new_pod(came_bound=False), False, id="a pod that a scheduler placed on this node"),
        pytest.param(
            new_pod(came_bound=True, owner_kind="", owner_name="", owner_uid=""),
            False,
            id="a person bound the pod to this node, and the pod has no controller",
        ),
        pytest.param(
            new_pod(tolerates_cordon=True, owner_kind="", owner_name="", owner_uid=""),
            False,
            id="a pod that no controller recreates",
        ),
        pytest.param(a_pod(tolerates_cordon=True), False, id="a pod without a known creation time"),
    ],
)
def test_the_drain_evicts_no_pods_that_would_return_to_the_cordoned_node(pod: PodView, stays: bool) -> None:
    found = plan_since(pod)
    assert (found.staying, found.now) == (((pod,), ()) if stays else ((), (pod,)))


def test_the_drain_evicts_recreated_pods_at_growing_intervals() -> None:
    """Some schedulers place a recreated pod on the cordoned node again within a second. The drain must not evict such a
    pod every second."""
    uptime, memory, rounds = UPTIME, Memory(), []
    for second in range(240):
        pods = (new_pod(f"a{second}"), new_pod(f"b{second}"))
        found = drain_plan.plan(pods, DrainPolicy(), memory, uptime=uptime + second, now=NOW, cordoned_at=CORDONED)
        assert found.now in ((), pods)
        if found.staying:
            break
        memory = after_evicting_new_pods(
            memory, drain_plan.owners_of_new_pods(found), uptime=uptime + second, jitter=0.5
        )
        rounds += [second] if found.now else []
    assert rounds == [0, 2, 5, 11, 23, 47]
    assert (second, found.staying, found.is_done) == (48, pods, True), (
        "after six evictions a recreated pod no longer delays the reboot"
    )


@pytest.mark.parametrize(
    ("bound_pods", "pod", "stays"),
    [
        pytest.param(BoundPods.STAY, a_pod(came_bound=True), True, id="a pod that its owner bound to the node"),
        pytest.param(BoundPods.STAY, a_pod(came_bound=False), False, id="a pod that a scheduler placed on this node"),
        pytest.param(BoundPods.STAY, a_pod(), False, id="a pod that an unknown client placed"),
        pytest.param(
            BoundPods.STAY,
            a_pod(came_bound=True, owner_kind="", owner_uid=""),
            False,
            id="a pod that no controller recreates",
        ),
        pytest.param(BoundPods.REFUSE, a_pod(came_bound=True), False, id="the default setting lets no pod stay"),
    ],
)
def test_a_pod_that_its_owner_bound_to_the_node_stays_only_if_a_setting_says_so(
    bound_pods: BoundPods, pod: PodView, stays: bool
) -> None:
    assert bool(plan(pod, bound_pods=bound_pods).staying) is stays
    assert drain_plan.to_evict((pod,), DrainPolicy(bound_pods=bound_pods)) == (() if stays else (pod,))


def test_a_pod_that_was_not_here_at_the_first_look_is_new_also_within_the_difference_of_the_clocks() -> None:
    pod = new_pod(after=0, tolerates_cordon=True)
    first = with_parts(Memory(), drain__first=frozenset({"uid-other"}))
    assert (plan_since(pod).returning, plan_since(pod, memory=first).returning) == ((), (pod,))
    here = with_parts(Memory(), drain__first=frozenset({pod.uid}))
    assert plan_since(pod, memory=here).now == (pod,)


def test_the_back_off_after_an_eviction_applies_only_to_new_pods_of_the_same_owner() -> None:
    memory = after_evicting_new_pods(Memory(), ["rs-web"], uptime=UPTIME, jitter=0.5)
    found = plan_since(new_pod("new"), new_pod("old", after=-30), new_pod("other", owner_uid="rs-other"), memory=memory)
    assert ([pod.name for pod in found.now], [pod.name for pod in found.later]) == (["old", "other"], ["new"])
    assert drain_plan.owners_of_new_pods(found) == {"rs-other"}
    assert found.look_again_seconds == 1.0
    assert plan_since(new_pod("new"), memory=memory).look_again_seconds == 1.5


def test_force_reboot_takes_effect_after_three_rounds_of_accepted_evictions() -> None:
    """After each round, a controller creates new pods on the node. A round in which the results of the evictions are
    unclear is not counted."""
    policy, memory, deaf = DrainPolicy(force_reboot=True), Memory(), Memory()
    for rounds in range(1, 4):
        memory = after_evicting_new_pods(memory, ["rs-web"], uptime=UPTIME, jitter=0.5)
        deaf = after_evicting_new_pods(deaf, ["rs-web"], uptime=UPTIME, jitter=0.5)
        for name in (f"a{rounds}", f"b{rounds}"):
            memory = answered(memory, name, EvictAnswer.ACCEPTED, new_pod_owner="rs-web")
            deaf = answered(deaf, name, EvictAnswer.UNCLEAR, new_pod_owner="rs-web")
        coming = plan_since(new_pod(f"new{rounds}"), memory=memory)
        assert drain_plan.is_force_earned(coming, policy, memory) is (rounds == 3)
        assert not drain_plan.is_force_earned(coming, policy, deaf)
        assert drain_plan.is_hopeless(coming, policy, deaf) is (rounds == 3)
    assert not drain_plan.is_force_earned(plan_since(new_pod("old", after=-30), memory=memory), policy, memory)


def test_the_eviction_request_of_a_recreated_pod_contains_its_owner() -> None:
    found = drain_plan.requests(plan_since(new_pod("new"), new_pod("old", after=-30)), DrainPolicy())
    assert {pod.name: pod.new_pod_owner for pod in found} == {"new": "rs-web", "old": ""}


def answered(memory: Memory, name: str, *answers: EvictAnswer, new_pod_owner: str = "") -> Memory:
    for answer in answers:
        memory = after_eviction(
            memory, pod_uid=f"uid-{name}", answer=answer, uptime=UPTIME, jitter=0.5, new_pod_owner=new_pod_owner
        )
    return memory


YES, LOST, PDB, BARRED = EvictAnswer.ACCEPTED, EvictAnswer.UNCLEAR, EvictAnswer.BUDGET, EvictAnswer.BARRED


@pytest.mark.parametrize(
    ("answers", "is_earned", "is_hopeless"),
    [
        pytest.param((EvictAnswer.DENIED,) * 3, True, True, id="a webhook refused three evictions"),
        pytest.param((YES,) * 3, True, True, id="three accepted evictions, but the pod still exists"),
        pytest.param((LOST,) * 2, False, False, id="two evictions with an inconclusive result"),
        pytest.param(
            (LOST,) * 99,
            False,
            True,
            id="99 evictions with an inconclusive result",
        ),
        pytest.param((BARRED,) * 99, False, True, id="the agent lacks the permission to evict"),
        pytest.param(
            (YES, YES, LOST, LOST, LOST),
            False,
            True,
            id="two evictions with a conclusive result, then three with an inconclusive result",
        ),
        pytest.param(
            (LOST, LOST, LOST, YES, YES),
            False,
            False,
            id="three evictions with an inconclusive result, then two with a conclusive result",
        ),
        pytest.param(
            (LOST, LOST, LOST, YES, YES, YES),
            True,
            True,
            id="three evictions with an inconclusive result, then three with a conclusive result",
        ),
        pytest.param((PDB, PDB, PDB), False, True, id="a disruption budget refuses three evictions"),
        pytest.param(
            (PDB, PDB, PDB, LOST), False, True, id="a disruption budget refuses three evictions, then an answer is lost"
        ),
        pytest.param(
            (PDB, PDB, PDB, YES), True, True, id="a disruption budget refuses three evictions and allows the fourth"
        ),
    ],
)
def test_a_forced_reboot_requires_three_evictions_that_the_server_accepted_or_refused(
    answers: tuple[EvictAnswer, ...], is_earned: bool, is_hopeless: bool
) -> None:
    policy, memory = DrainPolicy(force_reboot=True), answered(Memory(), "a", *answers)
    found = plan(a_pod("a"), memory=memory)
    assert drain_plan.is_force_earned(found, policy, memory) is is_earned
    assert drain_plan.is_hopeless(found, policy, memory) is is_hopeless
    assert memory.drain.evictions["uid-a"].attempts == len(answers), (
        "the memory must contain the number of all attempts"
    )


FORCE = {"force_reboot": True}


@pytest.mark.parametrize(
    ("policy", "memory", "expected"),
    [
        pytest.param({}, asked("a", attempts=9, answer=EvictAnswer.DENIED), False, id="--force-reboot is off"),
        pytest.param(FORCE, Memory(), False, id="the pod was never evicted"),
        pytest.param(
            FORCE, asked("a", attempts=2, answer=EvictAnswer.DENIED), False, id="a webhook refused two evictions"
        ),
        pytest.param(
            FORCE, asked("a", attempts=3, answer=EvictAnswer.DENIED), True, id="a webhook refused three evictions"
        ),
        pytest.param(FORCE, asked("a", attempts=99), False, id="a disruption budget refused 99 evictions"),
        pytest.param(
            {**FORCE, "force_past_budgets": True},
            asked("a", attempts=3),
            True,
            id="a disruption budget refuses, and --force-reboot-past-budgets is set",
        ),
    ],
)
def test_a_forced_reboot_requires_the_flag_force_reboot_and_three_accepted_or_refused_evictions(
    policy: dict[str, Any], memory: Memory, expected: bool
) -> None:
    """The API server must have accepted or refused three eviction requests for each pod that is left. If the last of
    these decisions was the refusal of a disruption budget, --force-reboot-past-budgets must be set too."""
    assert (
        drain_plan.is_force_earned(plan(a_pod("a"), memory=memory, **policy), DrainPolicy(**policy), memory) is expected
    )


def test_a_terminating_pod_does_not_prevent_a_forced_reboot() -> None:
    assert drain_plan.is_force_earned(plan(terminating(0)), DrainPolicy(force_reboot=True), Memory())


def test_the_message_shows_the_blocking_pods_and_the_servers_refusal() -> None:
    memory = asked("a", attempts=4, detail="Cannot evict pod as it would violate the pod's disruption budget.")
    found = plan(a_pod("a"), *(a_pod(f"b{number}") for number in range(4)), memory=memory)
    assert drain_plan.describe(found, memory) == "shop/b0, shop/b1, shop/b2 and 2 more"
    only = plan(a_pod("a"), memory=memory)
    assert (
        drain_plan.describe(only, memory)
        == "shop/a (Cannot evict pod as it would violate the pod's disruption budget.; 4 eviction requests)"
    )


def test_evictions_are_made_in_the_order_that_a_forecast_assumes() -> None:
    views = [
        a_pod(f"{name}-{kind}", owner_kind=kind, priority=priority)
        for kind in ("ReplicaSet", "StatefulSet", "Job", "")
        for name, priority in (("a", 9), ("b", 0), ("c", 9))
    ]
    forecast = sorted((as_scheduled(view) for view in views), key=eviction_order)
    assert [pod.name for pod in plan(*views).now] == [pod.name for pod in forecast]
    assert [pod.owner_kind for pod in plan(*views).now][-3:] == ["StatefulSet"] * 3


def as_scheduled(view: PodView) -> Pod:
    """Convert a pod from the agent's type to the forecast's type."""
    owner = OwnerReference("apps/v1", view.owner_kind, "x") if view.owner_kind else None
    return Pod(name=view.name, namespace=view.namespace, owner=owner, spec=PodSpec(priority=view.priority))


@given(
    owner=st.sampled_from(["", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "Node", "Custom"]),
    is_mirror=st.booleans(),
    labels=st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["db", "web"])),
    selector=st.sampled_from(["", "app=db", "app!=db", "!tier", "app in (db,web),tier"]),
)
def test_a_forecast_and_the_drain_leave_the_same_pods_on_the_node(
    owner: str, is_mirror: bool, labels: dict[str, str], selector: str
) -> None:
    policy = DrainPolicy(selector=Selector.parse(selector) if selector else None)
    view = a_pod(owner_kind=owner, is_mirror=is_mirror, labels=labels)
    reference = [{"apiVersion": "v1", "kind": owner, "name": "o", "uid": "o", "controller": True}] if owner else []
    manifest = {
        "kind": "Pod",
        "metadata": {
            "name": "p",
            "namespace": "shop",
            "uid": "p",
            "labels": labels,
            "ownerReferences": reference,
            "annotations": {keys.MIRROR_POD: "x"} if is_mirror else {},
        },
        "spec": {"nodeName": "n1"},
        "status": {"phase": "Running"},
    }
    (pod,) = load_objects(
        [{"kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"pods": "10"}}}, manifest]
    ).pods_on("n1")
    assert bool(drain_plan.why_it_stays(view, policy)) is bool(
        replacements.why_it_stays(pod, drain_plan.rule_of(policy))
    )
