"""A scheduler's queue, with its order, PreEnqueue plugins, hints and back-off."""

from __future__ import annotations

from scheduler_core.cycle import Scheduler
from scheduler_core.queue.backoff import BackoffPolicy
from scheduler_core.queue.hints import registered_hints
from scheduler_core.queue.scheduling_queue import ProfileInQueue, SchedulingQueue


def queue_for(scheduler: Scheduler) -> SchedulingQueue:
    """An empty queue for the pods of all the scheduler's profiles, which share one QueueSort plugin."""
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
        profiles[profile.scheduler_name] = ProfileInQueue(gatekeepers=plugins.at("preEnqueue"), hints=hints)
    (sorter,) = scheduler.runners[scheduler.configuration.profiles[0].scheduler_name].plugins.at("queueSort")
    policy = BackoffPolicy(
        initial_seconds=scheduler.configuration.pod_initial_backoff_seconds,
        max_seconds=scheduler.configuration.pod_max_backoff_seconds,
        aligned=scheduler.kube_version.pops_from_backoff,
    )
    return SchedulingQueue(sorter.less, profiles, policy=policy)
