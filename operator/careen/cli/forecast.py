"""`careen forecast NODE`: where each pod of a node would land if it were drained now, by the road the agent takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import click

from careen.agent.forecast import ChildForecaster, Limits
from careen.agent.metrics import Metrics
from careen.agent.settings_policy import policy_of
from careen.agent.settings_sources import BadSettings
from careen.cli.agents_settings import settings_of_agents
from careen.cli.connection import Cluster, cluster_command, output_option, read_node_or_fail, show
from careen.cluster.errors import ClusterError
from careen.core.observation import Unknown
from careen.core.policy import Policy
from careen.report.forecast_report import NOT_KNOWN, exit_code, forecast_json, forecast_text

# On somebody's own computer, and not beside an agent in a container.
MEMORY_BYTES = 8 * 2**30


@click.command()
@click.argument("node")
@click.option("--scheduler-config", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE", help="The KubeSchedulerConfiguration of the cluster's scheduler; otherwise the default profile.")
@click.option("--timeout", type=click.IntRange(min=1), default=120, show_default=True, metavar="SECONDS", help="How long reading the cluster and simulating may take.")
@output_option
@cluster_command
async def forecast(cluster: Cluster, *, node: str, scheduler_config: Path | None, timeout: int, output: str) -> None:
    """Where each pod of NODE would land if it were drained now. Nothing is changed.

    Exit code 0: every pod would find a place, or stays, returns or is lost as told. 3: a pod would find no room, or may not be
    evicted. 4: a pod cannot be predicted, or the forecast could not be made.
    """
    await read_node_or_fail(cluster, node)
    agents = await _agents(cluster)
    text = scheduler_config.read_text() if scheduler_config else agents.scheduler_config
    limits = Limits(seconds=timeout, memory_bytes=MEMORY_BYTES, scheduler_config=text)
    forecaster = ChildForecaster(kubeconfig=cluster.kubeconfig, context=cluster.context, limits=lambda: limits, clock=cluster.clock, metrics=Metrics(node))
    made = await forecaster.forecast(node)
    if isinstance(made, Unknown):
        click.echo(f"Error: the forecast could not be made: {made.why}", err=True)
        raise click.exceptions.Exit(NOT_KNOWN)
    if agents.note and not scheduler_config:
        made = replace(made, notes=(*made.notes, agents.note))
    now = cluster.clock.now()
    show(output, text=lambda width: forecast_text(made, now, agents.policy, width=width), value=lambda: forecast_json(made, agents.policy))
    raise click.exceptions.Exit(exit_code(made))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Agents:
    """What the cluster's agents would make of a forecast; `policy` None when that could not be read, and why is the note."""

    policy: Policy | None = None
    scheduler_config: str = ""
    note: str = ""


async def _agents(cluster: Cluster) -> _Agents:
    try:
        resolved, data = await settings_of_agents(cluster.api, namespace=cluster.namespace, name=cluster.name)
    except (ClusterError, BadSettings, click.ClickException) as error:
        return _Agents(note=f"the agents' settings could not be read, so the defaults stand in: {error}")
    policy, where = policy_of(resolved.settings), resolved.settings.scheduler_config
    key = where.removeprefix("configmap:")
    if not where:
        return _Agents(policy=policy)
    if key != where and key in data:
        return _Agents(policy=policy, scheduler_config=data[key])
    return _Agents(policy=policy, note=f"the agents use the scheduler's configuration in {where}, which is not at hand here: give it with --scheduler-config")
