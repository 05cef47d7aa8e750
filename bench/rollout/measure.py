"""One roll-out on a new control plane, from the creation of the Nodes to the figures, which other modules print."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.rollout.memory import ProcessMemory, Sampler, agent_memory
from bench.rollout.placement import place_all
from bench.rollout.sample import NODES, SampleFleet
from tests.cluster.harness.cluster import KURED, Cluster, Identity, manifest_files
from tests.cluster.harness.machines.agents import by_template
from tests.cluster.harness.machines.control_plane import ControlPlane
from tests.cluster.harness.machines.hosts import Host
from tests.cluster.harness.measures.audit import Requests, requests_of
from tests.cluster.harness.measures.figures import Rollout, rollout


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The fleet and the agent of a roll-out."""

    sample: SampleFleet
    identity: Identity
    template: str  # the agent's command, as `by_template` takes it
    boot_seconds: float
    warm_up_seconds: float  # between the start of the agents and the first need
    limit_seconds: float  # then it is given up


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    finished: bool
    asked: int  # hosts
    rollout: Rollout
    requests: Requests
    idle: tuple[ProcessMemory, ...]  # an agent each, before the first need
    working: tuple[ProcessMemory, ...]  # of each agent with its child processes: the sample with the greatest RSS
    starting_seconds: float  # processor time of all agents and their children before the first need
    processor_seconds: float  # the same from then to the end
    crashes: int
    pending_at_the_end: int
    node_minutes: float


def measure(trial: Trial, plane: ControlPlane) -> Result:
    """Runs and measures the roll-out on an empty control plane."""
    cluster = Cluster(plane, trial.identity, plane.folder)
    try:
        hosts = _prepare(cluster, trial)
        return _roll_out(cluster, trial, hosts)
    finally:
        cluster.close()


def _prepare(cluster: Cluster, trial: Trial) -> list[Host]:
    """Creates nodes, agents and pods, and waits until the agents are idle."""
    identity, sample = trial.identity, trial.sample
    times = len(sample.places) / NODES  # all of them start on one machine
    for file in [Path(__file__).with_name("kured.yaml")] if identity is KURED else manifest_files():
        cluster.apply_file(file)
    command = by_template(cluster.plane, trial.template, namespace=identity.namespace, daemonset=identity.daemonset)
    hosts = [
        Host(name=name, zone=zone, folder=cluster.folder / "hosts" / name, boot_seconds=trial.boot_seconds)
        for name, zone in sample.places
    ]
    cluster.start_fleet(hosts, command)
    cluster.apply(*sample.daemons())
    if sample.seed:
        cluster.wait_for("every agent runs", cluster.agents_run, 120 * times)
        cluster.wait_for("the DaemonSets' pods are ready", cluster.pods_are_ready, 60 * times)
        place_all(cluster, sample.workloads(), sample.seed)
    else:
        cluster.apply(*sample.workloads())
        cluster.wait_for(f"{sample.pods} pods are ready", cluster.pods_are_ready, 180 * times)
    cluster.wait_for("every agent runs", cluster.agents_run, 120 * times)
    time.sleep(trial.warm_up_seconds)
    return hosts


def _roll_out(cluster: Cluster, trial: Trial, hosts: list[Host]) -> Result:
    idle = _known(agent_memory(host) for host in hosts)
    assert cluster.fleet is not None
    starting_seconds = cluster.fleet.processor_seconds()
    cluster.observer.forget()
    audit_from = cluster.plane.audit_log.stat().st_size
    sampler = Sampler({host.name: host for host in hosts})
    start = time.time()
    _ask(hosts, trial.sample.asks)
    asking = [host for host in hosts if host.name in trial.sample.asks]
    finished = _has_finished(cluster, asking, trial.limit_seconds)
    end = time.time()
    processor_seconds = cluster.fleet.processor_seconds() - starting_seconds
    sampler.close()
    time.sleep(2)  # the audit log is written a moment later
    asked = {name: start + after for name, after in trial.sample.asks.items()}
    return Result(
        finished=finished,
        asked=len(asked),
        rollout=rollout(cluster.observer.seen, {host.name: host.reboots for host in hosts}, start, end, asked=asked),
        requests=requests_of(cluster.plane.audit_events(audit_from), trial.identity.user),
        idle=idle,
        working=tuple(sampler.greatest.values()),
        starting_seconds=starting_seconds,
        processor_seconds=processor_seconds,
        crashes=sum(len(host.crashes) for host in hosts),
        pending_at_the_end=sum(not life.from_daemonset and life.ready_at is None for life in cluster.observer.pods()),
        node_minutes=len(hosts) * (end - start) / 60,
    )


def _ask(hosts: list[Host], asks: Mapping[str, float]) -> None:
    began = time.monotonic()
    for host in sorted((host for host in hosts if host.name in asks), key=lambda host: asks[host.name]):
        time.sleep(max(0.0, began + asks[host.name] - time.monotonic()))
        host.ask_for_reboot()


def _has_finished(cluster: Cluster, hosts: list[Host], limit_seconds: float) -> bool:
    try:
        return cluster.wait_for("the roll-out is over", lambda: _is_over(cluster, hosts), limit_seconds)
    except AssertionError as error:
        print(error, file=sys.stderr)
        return False


def _is_over(cluster: Cluster, hosts: list[Host]) -> bool:
    states = [cluster.observer.node(host.name) for host in hosts]
    return (
        all(host.reboots and host.up and not host.sentinel.exists() for host in hosts)
        and all(state is not None and not state.down for state in states)
        and not cluster.observer.lock_now().holders
    )


def _known(memories: Iterable[ProcessMemory | None]) -> tuple[ProcessMemory, ...]:
    return tuple(memory for memory in memories if memory is not None)
