"""The cluster's agents' policy and their configuration of the scheduler, for forecasts and plans."""

from __future__ import annotations

import click

from careen.cli.support.agents_settings import settings_of_agents
from careen.cli.support.connection import Cluster
from careen.cluster.wire.errors import ClusterError
from careen.core.facts.policy import Policy
from careen.settings.policy import policy_of
from careen.settings.sources import BadSettings
from careen.settings.tree import Settings
from scheduler_core.values import Value


class Agents(Value, kw_only=True):
    """`settings` is None if they could not be read; the note has the reason."""

    settings: Settings | None = None
    scheduler_config: str = ""
    note: str = ""

    @property
    def policy(self) -> Policy | None:
        """The agents' policy, as far as it is known."""
        return policy_of(self.settings) if self.settings else None


async def agents_of(cluster: Cluster) -> Agents:
    """Never fails: a failed read becomes a note in the report."""
    try:
        resolved, data = await settings_of_agents(cluster.api, namespace=cluster.namespace, name=cluster.name)
    except (ClusterError, BadSettings, click.ClickException) as error:
        return Agents(note=f"the agents' settings could not be read, so the defaults stand in: {error}")
    where = resolved.settings.scheduler_config
    key = where.removeprefix("configmap:")
    if not where:
        return Agents(settings=resolved.settings)
    if key != where and key in data:
        return Agents(settings=resolved.settings, scheduler_config=data[key])
    return Agents(
        settings=resolved.settings,
        note=f"the agents use the scheduler's configuration in {where}, which is not at hand here: give it "
        "with --scheduler-config",
    )
