"""The parts of a KubeSchedulerConfiguration that concern the process."""

from __future__ import annotations

from typing import Any

import pytest

from careen.scheduler.settings import ProcessSettings, doubt, process_settings
from scheduler_core.config.configuration import Configuration
from scheduler_core.config.fields import ConfigurationError


def settings(**mapping: Any) -> ProcessSettings:
    return process_settings(mapping, Configuration.from_mapping(mapping))


def test_the_scheduler_of_the_default_profile_shares_kube_schedulers_lease() -> None:
    assert settings().lease.name == "kube-scheduler"
    assert settings(profiles=[{"schedulerName": "careen-scheduler"}]).lease.name == "careen-scheduler"


def test_an_empty_name_of_the_lease_is_the_default_name() -> None:
    read = settings(leaderElection={"resourceName": "", "resourceNamespace": ""})
    assert (read.lease.namespace, read.lease.name) == ("kube-system", "kube-scheduler")


def test_leader_election_and_client_are_obeyed() -> None:
    read = settings(
        leaderElection={
            "leaderElect": False,
            "leaseDuration": "30s",
            "resourceName": "mine",
            "resourceNamespace": "ns",
        },
        clientConnection={"qps": 50, "burst": 100, "kubeconfig": "/etc/k.conf"},
    )
    assert (read.lease.is_wanted, read.lease.lease_seconds, read.lease.name, read.lease.namespace) == (
        False,
        30.0,
        "mine",
        "ns",
    )
    assert (read.qps, read.burst, read.kubeconfig) == (50.0, 100, "/etc/k.conf")


@pytest.mark.parametrize("qps", [0, -1])
def test_without_a_limit_of_requests_the_api_server_limits_them(qps: float) -> None:
    assert settings(clientConnection={"qps": qps}).qps == 0.0


@pytest.mark.parametrize(
    ("mapping", "field"),
    [
        ({"leaderElection": {"leaseDuration": "5s"}}, "leaderElection.leaseDuration"),
        ({"leaderElection": {"renewDeadline": "2s"}}, "leaderElection.renewDeadline"),
        ({"leaderElection": {"retryPeriod": "0s"}}, "leaderElection.retryPeriod"),
        ({"leaderElection": {"resourceLock": "endpoints"}}, "leaderElection.resourceLock"),
        ({"leaderElection": {"resourceName": "../../pods/x"}}, "leaderElection.resourceName"),
        ({"leaderElection": {"resourceName": "a..b"}}, "leaderElection.resourceName"),
        ({"leaderElection": {"resourceNamespace": "Kube System"}}, "leaderElection.resourceNamespace"),
        ({"leaderElection": {"leaseduration": "5s"}}, "leaderElection.leaseduration"),
        ({"clientConnection": {"contentType": "application/vnd.kubernetes.protobuf"}}, "clientConnection.contentType"),
        ({"clientConnection": {"qps": "fast"}}, "clientConnection.qps"),
        ({"leaderElection": {"leaseDuration": "900ms"}}, "leaderElection.leaseDuration"),
        ({"leaderElection": {"leaseDuration": "600000h"}}, "leaderElection.leaseDuration"),
        ({"clientConnection": {"burst": -1}}, "clientConnection.burst"),
        ({"delayCacheUntilActive": False}, "delayCacheUntilActive"),
        ({"enableProfiling": True}, "enableProfiling"),
        ({"metricsBindAddress": "0.0.0.0:10251"}, "metricsBindAddress"),
    ],
)
def test_what_cannot_be_obeyed_is_refused_by_the_name_of_its_field(mapping: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        settings(**mapping)
    assert any(problem.startswith(f"{field}:") for problem in refused.value.problems)


@pytest.mark.parametrize(
    ("mapping", "may_collide"),
    [
        pytest.param({}, False, id="kube-scheduler's own Lease"),
        pytest.param({"leaderElection": {"resourceName": "scheduler.careen.dev"}}, True, id="another Lease"),
        pytest.param({"leaderElection": {"leaderElect": False}}, True, id="no Lease"),
        pytest.param(
            {"profiles": [{"schedulerName": "mine"}], "leaderElection": {"leaderElect": False}}, False, id="other pods"
        ),
    ],
)
def test_a_scheduler_of_default_pods_that_does_not_exclude_kube_scheduler_is_doubtful(
    mapping: dict[str, Any], may_collide: bool
) -> None:
    assert bool(doubt(Configuration.from_mapping(mapping), settings(**mapping))) is may_collide
