"""Which settings and policy the cluster's agents use, found without an agent: flags and variables in their DaemonSet,
then their ConfigMap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click
import msgspec

from careen.cli.agent import agent as agent_command
from careen.cli.support.agent_options import given_flags
from careen.cli.support.connection import Cluster
from careen.cluster import objects
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.errors import ClusterError, NotFound
from careen.core.facts.policy import Policy
from careen.settings.live import KEY, parse
from careen.settings.policy import policy_of
from careen.settings.sources import BadSettings, Resolved, resolve
from careen.settings.tree import SETTINGS, Settings, variable
from scheduler_core.values import Value

ANY_NODE = "each-nodes-own"
"""A placeholder for values that the downward API sets differently in each pod."""


class Launch(Value, kw_only=True):
    """Flags and environment of the agents; `where` names their DaemonSet."""

    flags: Mapping[str, Sequence[str]]
    environment: Mapping[str, str]
    where: str
    unread: tuple[str, ...] = ()
    """The environment variables whose values come from a Secret. No command needs these values, and the caller may have
    no right to read the Secret."""


class _Field(msgspec.Struct, frozen=True, rename="camel"):
    field_path: str = ""


class _Origin(msgspec.Struct, frozen=True, rename="camel"):
    field_ref: _Field | None = None


class _Variable(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    value: str | None = None
    value_from: _Origin | None = None

    def in_pods_of(self, namespace: str) -> str:
        """The variable's value in the pods of a DaemonSet in this namespace."""
        if (
            self.value_from
            and self.value_from.field_ref
            and self.value_from.field_ref.field_path == "metadata.namespace"
        ):
            return namespace
        return ANY_NODE if self.value is None else self.value


class _Container(msgspec.Struct, frozen=True):
    command: list[str] = []
    args: list[str] = []
    env: list[_Variable] = []


class _PodSpec(msgspec.Struct, frozen=True):
    containers: list[_Container]


class _Template(msgspec.Struct, frozen=True):
    spec: _PodSpec


class _Spec(msgspec.Struct, frozen=True):
    template: _Template


class _DaemonSet(msgspec.Struct, frozen=True):
    spec: _Spec


async def settings_of_agents(api: ClusterApi, *, namespace: str, name: str) -> tuple[Resolved, Mapping[str, str]]:
    """The settings of this DaemonSet's agents, and the data of their ConfigMap.

    Raises `ClusterError` if the DaemonSet or the ConfigMap cannot be read; `BadSettings` or one of click's errors if no
    agent could start with these settings.
    """
    where = {"ds_namespace": (namespace,), "ds_name": (name,), "node_id": (ANY_NODE,)}
    launch = await launch_of_agents(api, resolve(flags=where, environment={}, is_whole=False).settings)
    basics = resolve(flags={**launch.flags, **where}, environment=launch.environment, is_whole=False).settings
    data = await config_map_data(api, basics)
    return settings_of(launch, basics, data), data


async def launch_of_agents(api: ClusterApi, basics: Settings) -> Launch:
    """How the DaemonSet that `basics` names starts its agents. Raises `ClusterError`. Ends the command if it starts no
    agent."""
    title = f"DaemonSet {basics.ds_namespace}/{basics.ds_name}"
    found = await api.get(f"/apis/apps/v1/namespaces/{basics.ds_namespace}/daemonsets/{basics.ds_name}", _DaemonSet)
    for container in found.spec.template.spec.containers:
        words = [*container.command, *container.args]
        if "agent" in words:
            arguments = words[words.index("agent") + 1 :]
            context = agent_command.make_context("agent", arguments, resilient_parsing=False)
            unread = tuple(each.name for each in container.env if each.value is None and each.name in _SECRETS)
            environment = {
                each.name: each.in_pods_of(basics.ds_namespace) for each in container.env if each.name not in unread
            }
            return Launch(flags=given_flags(context.params), environment=environment, where=title, unread=unread)
    raise click.ClickException(
        f"{title} has no container that runs `careen agent`; name the agents' DaemonSet with --ds-namespace "
        "and --ds-name"
    )


_SECRETS = {
    variable(name, prefix)
    for name, setting in SETTINGS.items()
    if setting.kind.is_secret
    for prefix in ("CAREEN", "KURED")
}


async def config_map_data(api: ClusterApi, basics: Settings) -> Mapping[str, str]:
    """The data of the ConfigMap that `basics` names; empty if there is none. Raises `ClusterError`."""
    if not basics.config_map:
        return {}
    try:
        found = await api.get(
            f"/api/v1/namespaces/{basics.ds_namespace}/configmaps/{basics.config_map}", objects.ConfigMap
        )
    except NotFound:
        return {}
    return found.data or {}


def settings_of(launch: Launch, basics: Settings, data: Mapping[str, str]) -> Resolved:
    """Raises `BadSettings` if an agent with these settings would not start."""
    names = {"CAREEN_NODE_ID", "KURED_NODE_ID"}
    is_named = "node_id" in launch.flags or names & set(launch.environment)
    flags = launch.flags if is_named else {**launch.flags, "node_id": (ANY_NODE,)}
    return resolve(
        flags=flags,
        environment=launch.environment,
        config_map=parse(data.get(KEY, ""), title_of(basics)),
        config_map_name=title_of(basics),
    )


def title_of(basics: Settings) -> str:
    """The ConfigMap, such as `careen/careen`."""
    return f"{basics.ds_namespace}/{basics.config_map}"


class Agents(Value, kw_only=True):
    """The agents' settings. If they could not be read, `settings` is None and the note says why."""

    settings: Settings | None = None
    scheduler_config: str = ""
    note: str = ""

    @property
    def policy(self) -> Policy | None:
        """None if the settings are not known."""
        return policy_of(self.settings) if self.settings else None


async def agents_of(cluster: Cluster) -> Agents:
    """Settings that cannot be read become a note for the report, not an error."""
    try:
        resolved, data = await settings_of_agents(cluster.api, namespace=cluster.namespace, name=cluster.name)
    except (ClusterError, BadSettings, click.ClickException) as error:
        return Agents(note=f"the agents' settings could not be read, so the defaults are used: {error}")
    where = resolved.settings.scheduler_config
    key = where.removeprefix("configmap:")
    if not where:
        return Agents(settings=resolved.settings)
    if key != where and key in data:
        return Agents(settings=resolved.settings, scheduler_config=data[key])
    return Agents(
        settings=resolved.settings,
        note=f"the agents use the scheduler's configuration in {where}, which this command cannot read: give the "
        "configuration with --scheduler-config",
    )
