"""Tests what a running scheduler says about a pod without a node: its place in the queue and the next try."""

from __future__ import annotations

import json
from typing import Any

from careen.report.explain_report import why_pending_text
from careen.scheduler.why_pending import WhyPending, event_words, of_machine, why_pending
from scheduler_core import Scheduler, load_objects
from scheduler_core.cache.events import Sync
from scheduler_core.config.configuration import Configuration
from scheduler_core.framework.verdict import Verdict, VerdictCode
from scheduler_core.queue.events import Action, ClusterEvent, EventHint, Resource
from scheduler_core.running.commands import Bind
from scheduler_core.running.failures import WriteOutcome
from scheduler_core.running.machine import Machine

Json = dict[str, Any]


def node(name: str, cpu: str = "4") -> Json:
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": amounts}}


def pod(name: str, cpu: str = "1", priority: int = 0, **spec: Any) -> Json:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    meta = {"name": name, "namespace": "shop", "uid": name, "resourceVersion": "5"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"schedulerName": "default-scheduler", "containers": [container], "priority": priority, **spec},
        "status": {"phase": "Pending"},
    }


def running(*items: Json) -> Machine:
    """With these objects listed, and no pod tried yet."""
    machine = Machine(Scheduler())
    for kind in ("Node", "Pod"):
        page = {"kind": f"{kind}List", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}}
        page["items"] = [each for each in items if each["kind"] == kind]
        machine.take(Sync(kind, [json.dumps(page).encode()]), 0.0)
        while machine.is_listing(kind):
            machine._apply_slice(0.0)
    return machine


def asked(machine: Machine, name: str, now: float = 1.0) -> WhyPending:
    found = of_machine(machine, f"shop/{name}", now)
    assert found is not None
    return found


def test_a_pod_that_was_not_tried_is_next_in_the_queue_and_told_where_it_fits() -> None:
    why = asked(running(node("n1"), pod("web")), "web")
    assert (why.fits_on, why.next_try.queue, why.groups) == ("n1", "next in the queue", ())


def test_a_refused_pod_waits_for_the_events_of_the_plugins_that_refused_it() -> None:
    machine = running(node("n1"), node("n2"), pod("large", cpu="6"))
    machine.next(1.0)
    why = asked(machine, "large", 11.0)
    assert [(each.plugin, each.count, each.nodes) for each in why.groups] == [("NodeResourcesFit", 2, ("n1", "n2"))]
    assert (why.next_try.queue, why.next_try.seconds, why.next_try.attempts) == ("waiting for an event", 290.0, 1)
    assert "Node: added, allocatable changed, taints changed" in why.next_try.events
    text = why_pending_text(why)
    assert text.startswith("The pod shop/large has no node: 0/2 nodes are available: 2 Insufficient cpu.")
    assert "Nothing is known that would help." in text
    assert "It is waiting for an event, tried 1 time.\nIt is tried again in 4m50s at the latest." in text


def test_a_pod_that_an_event_may_help_says_the_end_of_its_back_off() -> None:
    machine = running(node("n1"), pod("large", cpu="6"), pod("other", cpu="4"))
    machine.next(1.0)
    machine.next(1.0)
    machine.take(json.dumps({"type": "ADDED", "object": node("n2", cpu="6")}).encode(), 1.5)
    why = asked(machine, "large", 1.5)
    assert (why.next_try.queue, why.fits_on) == ("in back-off", "n2")
    assert why.next_try.seconds is not None
    assert 0.0 < why.next_try.seconds <= 1.0


def test_a_pod_that_fits_and_whose_last_attempt_failed_is_told_the_error() -> None:
    failed = pod("web")
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulerError",
        "message": "binding rejected: no",
    }
    failed["status"]["conditions"] = [condition]
    assert why_pending_text(asked(running(node("n1"), failed), "web")).startswith(
        "The pod shop/web has no node. It fits on n1 now. Its last attempt failed: binding rejected: no\n"
    )
    condition["reason"] = "Unschedulable"  # the cluster has changed since
    assert asked(running(node("n1"), failed), "web").sentence == ""


def test_a_pod_whose_binding_is_under_way_is_on_its_way() -> None:
    machine = running(node("n1"), pod("web"))
    (bind,) = (each for each in machine.next(1.0) if isinstance(each, Bind))
    assert why_pending_text(asked(machine, "web")) == (
        "The pod shop/web is on its way to n1: the binding is under way."
    )
    machine.answered(bind, WriteOutcome(code=201, is_complete=True), 1.1)


def test_a_pod_with_scheduling_gates_names_them_and_no_node() -> None:
    why = asked(running(node("n1"), pod("held", schedulingGates=[{"name": "example.com/wait"}])), "held")
    assert why.sentence == "its scheduling gates example.com/wait are not removed"
    assert why.next_try.queue == "kept out by SchedulingGates: waiting for scheduling gates: [example.com/wait]"
    assert why.fits_on == ""


def test_a_pod_that_is_being_deleted_gets_no_node() -> None:
    dying = pod("dying")
    dying["metadata"]["deletionTimestamp"] = "2026-11-28T00:00:00Z"
    why = asked(running(node("n1"), dying), "dying")
    assert (why.fits_on, why.sentence) == ("", "it is being deleted; no scheduler gives it a node")


def test_what_only_careen_leaves_pending_is_no_reason_for_a_pod_of_another_scheduler() -> None:
    claims = [{"name": "gpu", "resourceClaimName": "gpu"}]
    snapshot = load_objects((node("n1"), pod("theirs", resourceClaims=claims)))
    why = why_pending(Scheduler(), snapshot, snapshot.pod("shop/theirs"), next_try=None)
    assert "this scheduler does not allocate devices" not in why.sentence
    ours = asked(running(node("n1"), pod("ours", resourceClaims=claims)), "ours")
    assert ours.sentence == "spec.resourceClaims: this scheduler does not allocate devices yet"


class Broken:
    name = "Broken"

    def filter(self, _state: Any, _pod: Any, _node_info: Any) -> Any:
        raise RuntimeError("no more disk")


def with_filter(plugin: Any, cpu: str) -> WhyPending:
    """Of a pod that requests `cpu` where four are free. The plugin is asked after the default filters."""
    profile = {"plugins": {"filter": {"enabled": [{"name": plugin.name}]}}}
    configuration = Configuration.from_mapping({"profiles": [profile]})
    scheduler = Scheduler(configuration, plugins={plugin.name: lambda _args, _version: plugin})
    snapshot = load_objects((node("n1"), pod("web", cpu=cpu)))
    return why_pending(scheduler, snapshot, snapshot.pod("shop/web"), next_try=None)


def test_a_plugin_that_raises_is_the_reason() -> None:
    assert with_filter(Broken(), "1").sentence == "plugin Broken failed: RuntimeError('no more disk')"


def test_a_plugin_that_only_the_search_for_changes_asks_does_not_hide_the_refusals() -> None:
    why = with_filter(Broken(), "6")
    assert [(each.plugin, each.count) for each in why.groups] == [("NodeResourcesFit", 1)]
    assert (why.changes, why.new_nodes) == ((), None)


def test_a_filter_that_waits_for_something_names_its_events() -> None:
    class Waits:
        name = "Waits"

        def events(self) -> Any:
            return (EventHint(ClusterEvent(Resource.STORAGE_CLASS, Action.ADD)),)

        def filter(self, _state: Any, _pod: Any, _node_info: Any) -> Any:
            return Verdict(VerdictCode.PENDING, ("a device is on its way",))

    assert with_filter(Waits(), "1").next_try.events == ("StorageClass: added",)


def test_preemption_names_the_victims_and_their_node() -> None:
    machine = running(node("n1"), pod("web", nodeName="n1", cpu="3"), pod("urgent", cpu="2", priority=10))
    why = asked(machine, "urgent")
    assert (why.preempts_on, why.evicts) == ("n1", ("shop/web",))
    assert "preemption evicts shop/web on n1" in why_pending_text(why)


def test_pods_of_other_schedulers_and_unknown_pods_are_unknown() -> None:
    machine = running(node("n1"), pod("theirs", schedulerName="somebody-else"))
    assert of_machine(machine, "shop/theirs", 1.0) is None
    assert of_machine(machine, "shop/nobody", 1.0) is None


def test_the_question_changes_nothing() -> None:
    machine, untouched = (running(node("n1"), pod("large", cpu="6"), pod("web")) for _ in range(2))
    asked(machine, "large")
    asked(machine, "web")
    assert [machine.next(2.0) for _ in range(3)] == [untouched.next(2.0) for _ in range(3)]


def test_events_of_one_kind_are_one_line() -> None:
    events = (
        ClusterEvent(Resource.NODE, Action.ADD),
        ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT),
        ClusterEvent(Resource.STORAGE_CLASS, Action.ADD | Action.UPDATE),
    )
    assert event_words(events) == ("Node: added, taints changed", "StorageClass: added, changed")
