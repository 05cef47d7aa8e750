"""The parts of a KubeSchedulerConfiguration that concern the process: leader election, client, addresses.

What upstream has and this scheduler cannot obey is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from careen.scheduler import OUR_NAME
from careen.scheduler.lease import LeaseSettings
from scheduler_core.config.configuration import DEFAULT_SCHEDULER_NAME, Configuration
from scheduler_core.config.fields import ConfigurationError, Section
from scheduler_core.values import Value

_LEASE_SECONDS_END: Final = 2**31  # leaseDurationSeconds of a Lease is an int32
_OBJECT_NAME: Final = re.compile(r"(?!.{254})[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
BY_DEFAULT: Final[Mapping[str, Any]] = {"profiles": [{"schedulerName": OUR_NAME}]}
"""The configuration of a process without one: a profile with the default plugins."""


class ProcessSettings(Value, kw_only=True):
    """`qps` 0: no limit of this client; the API server's priority and fairness limits it."""

    lease: LeaseSettings
    kubeconfig: str = ""
    qps: float = 0.0
    burst: int = 100


def process_settings(mapping: Mapping[str, Any], configuration: Configuration) -> ProcessSettings:
    """Raises ConfigurationError with all problems, each beginning with the path of its field."""
    written = Section(values=mapping, path="", problems=[])
    client = written.section("clientConnection")
    settings = ProcessSettings(
        lease=_lease(written.section("leaderElection"), configuration),
        kubeconfig=client.text("kubeconfig"),
        qps=max(0.0, _number(client, "qps")),
        burst=client.integer("burst", 100) or 100,
    )
    if settings.burst < 0:
        client.refuse("burst", f"{settings.burst}: must not be negative")
    for name in ("acceptContentTypes", "contentType"):
        if client.text(name, "application/json") not in ("", "application/json"):
            client.refuse(name, "this scheduler reads and writes application/json only; remove the field")
    client.refuse_unknown()
    if written.flag("enableProfiling"):
        written.refuse("enableProfiling", "this scheduler serves no profiles; remove the field or write false")
    if written.flag("enableContentionProfiling"):
        written.refuse("enableContentionProfiling", "this scheduler has no locks to profile; remove the field")
    if not written.flag("delayCacheUntilActive", default=True):
        written.refuse(
            "delayCacheUntilActive", "this scheduler lists when it holds the Lease; remove the field or write true"
        )
    for name in ("healthzBindAddress", "metricsBindAddress"):
        if written.text(name):
            written.refuse(name, "give --metrics-host and --metrics-port instead")
    if written.problems:
        raise ConfigurationError(written.problems)
    return settings


def doubt(configuration: Configuration, settings: ProcessSettings) -> str:
    """That kube-scheduler may schedule the same pods at the same time; "" if it cannot."""
    lease = settings.lease
    is_kube_schedulers = lease.is_wanted and (lease.namespace, lease.name) == ("kube-system", "kube-scheduler")
    if is_kube_schedulers or configuration.profile(DEFAULT_SCHEDULER_NAME) is None:
        return ""
    return (
        f"the profile {DEFAULT_SCHEDULER_NAME} is kube-scheduler's, and this process does not take kube-scheduler's "
        "Lease kube-system/kube-scheduler: if kube-scheduler runs, both bind the same pods"
    )


def _lease(section: Section, configuration: Configuration) -> LeaseSettings:
    # The scheduler of default-scheduler's pods takes kube-scheduler's own Lease, so that the two never work at once.
    serves_default = configuration.profile(DEFAULT_SCHEDULER_NAME) is not None
    settings = LeaseSettings(
        is_wanted=section.flag("leaderElect", default=True),
        lease_seconds=section.duration_seconds("leaseDuration", 15.0),
        renew_seconds=section.duration_seconds("renewDeadline", 10.0),
        retry_seconds=section.duration_seconds("retryPeriod", 2.0),
        namespace=section.text("resourceNamespace") or "kube-system",
        name=section.text("resourceName") or ("kube-scheduler" if serves_default else OUR_NAME),
    )
    for field, name in (("resourceNamespace", settings.namespace), ("resourceName", settings.name)):
        if not _OBJECT_NAME.fullmatch(name):  # it becomes a part of a path
            section.refuse(field, f"{name!r} is not a name of Kubernetes: lower-case letters, digits, '-' and '.'")
    if section.text("resourceLock", "leases") != "leases":
        section.refuse("resourceLock", "only leases are supported")
    if not 1 <= settings.lease_seconds < _LEASE_SECONDS_END:
        why = f"{settings.lease_seconds:g}s: must be at least 1s and less than {_LEASE_SECONDS_END}s"
        section.refuse("leaseDuration", why)
    if settings.lease_seconds <= settings.renew_seconds:
        section.refuse("leaseDuration", f"{settings.lease_seconds:g}s: must be longer than renewDeadline")
    if settings.renew_seconds <= settings.retry_seconds * 1.2:
        section.refuse("renewDeadline", f"{settings.renew_seconds:g}s: must be longer than 1.2 × retryPeriod")
    if settings.retry_seconds <= 0:
        section.refuse("retryPeriod", "must be greater than zero")
    section.refuse_unknown()
    return settings


def _number(section: Section, name: str) -> float:
    value = section.raw(name)
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float):
        section.refuse(name, "the value must be a number")
        return 0.0
    return float(value)
