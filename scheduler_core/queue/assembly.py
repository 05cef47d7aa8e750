"""A scheduler's queue, with its order, PreEnqueue plugins, hints and back-off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scheduler_core.arguments import checked
from scheduler_core.cycle import Scheduler
from scheduler_core.framework.plugin_set import PluginSet
from scheduler_core.model.pod import Pod
from scheduler_core.plugins.default_preemption import DefaultPreemption
from scheduler_core.plugins.priority_sort import PrioritySort
from scheduler_core.queue.active import QueueOrder
from scheduler_core.queue.backoff import BackoffPolicy
from scheduler_core.queue.hints import registered_hints
from scheduler_core.queue.queued_pod import QueuedPod
from scheduler_core.queue.scheduling_queue import Gatekeeper, ProfileInQueue, QueueRules, SchedulingQueue
from scheduler_core.values import replace_value


@checked
def queue_for(
    scheduler: Scheduler,
    *,
    is_preempting: Callable[[Pod], bool] | None = None,
    sort_failed: Callable[[str, Exception], None] | None = None,
    gate_failed: Callable[[str, Exception], None] | None = None,
) -> SchedulingQueue:
    """An empty queue for the pods of all the scheduler's profiles, which share one QueueSort plugin.

    `is_preempting`: evictions for this pod are in progress, so DefaultPreemption keeps it out of the active queue.
    `sort_failed`: called once, when the QueueSort plugin (by its name) raises for the first time.
    `gate_failed`: the same for each PreEnqueue plugin.
    """
    profiles = {}
    for profile in scheduler.configuration.profiles:
        plugins = scheduler.runners[profile.scheduler_name].plugins
        used = (
            plugins.plugins[name]
            for name in dict.fromkeys(name for names in plugins.by_point.values() for name in names)
        )
        hints = registered_hints(
            used, profile, scheduler.kube_version, scheduler.rules, has_extenders=bool(scheduler.extenders)
        )
        waits = is_preempting if scheduler.kube_version.async_preemption else None
        profiles[profile.scheduler_name] = ProfileInQueue(gatekeepers=_gatekeepers(plugins, waits), hints=hints)
    (sorter,) = scheduler.runners[scheduler.configuration.profiles[0].scheduler_name].plugins.at("queueSort")
    policy = BackoffPolicy(
        initial_seconds=scheduler.configuration.pod_initial_backoff_seconds,
        max_seconds=scheduler.configuration.pod_max_backoff_seconds,
        aligned=scheduler.kube_version.pops_from_backoff,
        counts_attempts=scheduler.kube_version.attempts_lengthen_backoff,
    )
    rules = QueueRules(
        hears_gating_plugin_only=scheduler.kube_version.only_the_gating_plugin_is_heard,
        nominates_gated=scheduler.kube_version.gated_pods_are_nominated,
        flushes_gated=scheduler.kube_version.gated_pods_are_flushed,
    )
    return SchedulingQueue(_order(sorter, sort_failed), profiles, policy=policy, rules=rules, gate_failed=gate_failed)


def _order(sorter: Any, failed: Callable[[str, Exception], None] | None) -> QueueOrder:
    """By priority for two pods for which the plugin raises: inside a heap nobody could catch that."""
    if isinstance(sorter, PrioritySort):
        return sorter.less
    has_failed = False

    def goes_before(one: QueuedPod, other: QueuedPod) -> bool:
        nonlocal has_failed
        try:
            return bool(sorter.less(one, other))
        except Exception as bug:
            if failed is not None and not has_failed:
                failed(sorter.name, bug)
            has_failed = True
            return PrioritySort().less(one, other)

    return goes_before


def _gatekeepers(plugins: PluginSet, is_preempting: Callable[[Pod], bool] | None) -> tuple[Gatekeeper, ...]:
    found: list[Gatekeeper] = list(plugins.at("preEnqueue"))
    if is_preempting is None:
        return tuple(found)
    return tuple(_asking(plugin, is_preempting) for plugin in found)


def _asking(plugin: Gatekeeper, is_preempting: Callable[[Pod], bool]) -> Any:
    return replace_value(plugin, is_preempting=is_preempting) if isinstance(plugin, DefaultPreemption) else plugin
