"""The `Policy` of the settings, which the decisions of `careen.core` follow."""

from __future__ import annotations

from dataclasses import replace

from careen.core.facts import keys
from careen.core.facts.policy import (
    AlertPolicy,
    BoundPods,
    DrainPolicy,
    ForecastPolicy,
    LatePolicy,
    Order,
    Policy,
    SettlePolicy,
)
from careen.core.facts.windows import NamedWindow, Window
from careen.settings.tree import Settings


def policy_of(settings: Settings) -> Policy:
    """The same settings always give the same policy."""
    return Policy(
        node_name=settings.node_id,
        concurrency=settings.concurrency,
        order=Order(settings.order),
        daemonset_namespace=settings.ds_namespace,
        daemonset_name=settings.ds_name,
        taint_key=settings.prefer_no_schedule_taint or None,
        annotate_nodes=settings.annotate_nodes,
        silences_alerts=settings.alertmanager_silence > 0,
        window=Window(
            days=frozenset(settings.reboot_days),
            start=settings.start_time,
            end=settings.end_time,
            zone=settings.time_zone,
        ),
        windows=_windows(settings),
        minimum_interval_seconds=settings.minimum_interval,
        cluster_interval_seconds=settings.cluster_minimum_interval,
        count_cordoned=settings.count_cordoned,
        reboot_cordoned=settings.reboot_cordoned,
        budgets=settings.budget,
        blocking_pod_selectors=settings.blocking_pod_selector,
        blocking_pods=tuple(each.rule for each in settings.blocking_pods),
        protects_pods=settings.protected_pods == "refuse",
        health_queries=tuple(each.of_node(settings.node_id) for each in settings.health_queries),
        alerts=_alerts(settings),
        forecast=ForecastPolicy(settings.forecast),
        forecast_pending_allowed=settings.forecast_pending_allowed,
        forecast_unknown_allowed=settings.forecast_unknown_allowed,
        drain=_drain(settings),
        reboot_delay_seconds=settings.reboot_delay,
        reboot_command_seconds=settings.reboot_timeout,
        reboot_deadline_seconds=settings.reboot_deadline,
        reboot_loop_limit=settings.reboot_loop_limit,
        verify_timeout_seconds=settings.verify_timeout,
        late_policy=LatePolicy(settings.late_policy),
        settle_policy=SettlePolicy(settings.settle_policy),
        settle_timeout_seconds=settings.settle_timeout,
        lock_release_delay_seconds=settings.lock_release_delay,
        lock_ttl_seconds=settings.lock_ttl,
        protect_from_autoscalers=settings.protect_from_autoscalers,
        balancer_settle_seconds=settings.load_balancer_settle,
        pre_reboot_labels={**_out_of_balancers(settings), **dict(settings.pre_reboot_node_labels)},
        post_reboot_labels=dict(settings.post_reboot_node_labels),
        failure_backoff_seconds=settings.failure_backoff,
        unknown_patience_seconds=settings.unknown_patience,
    )


def _out_of_balancers(settings: Settings) -> dict[str, str]:
    """The label that excludes the node from load balancers, if the setting is on. It comes with the cordon, and its
    earlier value is restored later."""
    return {keys.EXCLUDE_FROM_BALANCERS: "true"} if settings.load_balancer_settle else {}


def _windows(settings: Settings) -> tuple[NamedWindow, ...]:
    return tuple(
        each.window
        if each.has_zone
        else replace(each.window, opens=replace(each.window.opens, zone=settings.time_zone))
        for each in settings.windows
    )


def _alerts(settings: Settings) -> AlertPolicy | None:
    if not settings.prometheus_url and not settings.alertmanager_url:
        return None
    return AlertPolicy(
        filter_regexp=settings.alert_filter_regexp,
        match_only=settings.alert_filter_match_only,
        firing_only=settings.alert_firing_only,
    )


def _drain(settings: Settings) -> DrainPolicy:
    return DrainPolicy(
        delay_seconds=settings.drain_delay,
        timeout_seconds=settings.drain_timeout,
        grace_seconds=None if settings.drain_grace_period < 0 else settings.drain_grace_period,
        selector=settings.drain_pod_selector,
        slow_selectors=settings.slow_pod_selector,
        skip_wait_for_delete_seconds=float(settings.skip_wait_for_delete_timeout),
        force_reboot=settings.force_reboot,
        force_past_budgets=settings.force_reboot_past_budgets,
        bound_pods=BoundPods(settings.pods_bound_to_node),
        parallel=settings.drain_parallel,
    )
