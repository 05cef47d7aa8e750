"""`careen config`: each setting's effective value and where it comes from."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec

from careen.agent.clock import SystemClock
from careen.agent.live_settings import KEY, parse
from careen.agent.settings import SETTINGS, Settings, flag
from careen.agent.settings_sources import BadSettings, Resolved, resolve
from careen.cli.agent import agent as agent_command
from careen.cli.agent_options import agent_options, given_flags
from careen.cli.connection import output_option, show
from careen.cluster import objects
from careen.cluster.api import ApiServer
from careen.cluster.client import CannotReachCluster, connect
from careen.cluster.errors import ClusterError, NotFound
from careen.report.tables import paragraph, table

# What says where to look, and nothing about how agents work.
_WHERE = {"kubeconfig", "ds_namespace", "ds_name", "config_map", "node_id"}
_ANY_NODE = "(each node's own)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Launch:
    """How agents are started: their command line and environment, and who says so."""

    flags: Mapping[str, Sequence[str]]
    environment: Mapping[str, str]
    where: str


@click.command(context_settings={"max_content_width": 120})
@click.option("--here", is_flag=True, help="The settings that an agent started here, with these flags and this environment, would have; otherwise those of the cluster's agents, as their DaemonSet starts them.")
@output_option
@agent_options
def config(*, here: bool, output: str, **values: Any) -> None:
    """Each setting's effective value and where it comes from.

    Without settings on the command line: those of the cluster's agents, from their DaemonSet and ConfigMap. With some, or
    with --here: those that an agent started here would have; the ConfigMap counts if --kubeconfig is given.
    """
    flags = given_flags(values)
    try:
        resolved, notes = asyncio.run(_resolved(flags, here=here or bool(set(flags) - _WHERE)))
    except BadSettings as error:
        raise click.UsageError("\n".join(error.problems)) from error
    except CannotReachCluster as error:
        raise click.UsageError(f"{error}; or give --here") from error
    except ClusterError as error:
        raise click.ClickException(f"the cluster's settings cannot be read: {error}; with --here no cluster is asked") from error
    show(output, text=lambda width: _text(resolved, notes, width), value=lambda: _json(resolved, notes))


async def _resolved(flags: Mapping[str, Sequence[str]], *, here: bool) -> tuple[Resolved, tuple[str, ...]]:
    basics = resolve(flags={**flags, "node_id": flags.get("node_id", (_ANY_NODE,))}, environment=os.environ, is_whole=False).settings
    api = _api(basics, here=here)
    if here or api is None:
        launch = _Launch(flags=flags, environment=dict(os.environ), where="this command line and environment")
    else:
        launch = await _launch_of_daemonset(api, basics)
    data = await _config_map(api, basics) if api else {}
    title = f"{basics.ds_namespace}/{basics.config_map}"
    whole_flags = launch.flags if "node_id" in launch.flags or "CAREEN_NODE_ID" in launch.environment or "KURED_NODE_ID" in launch.environment else {**launch.flags, "node_id": (_ANY_NODE,)}
    resolved = resolve(flags=whole_flags, environment=launch.environment, config_map=parse(data.get(KEY, ""), title), config_map_name=title)
    asked = f"ConfigMap {title}" if api else "no ConfigMap, because no cluster was asked"
    return resolved, (f"flags and environment from {launch.where}; {asked}", *resolved.notes)


def _api(basics: Settings, *, here: bool) -> ApiServer | None:
    """The cluster to ask; None with --here and no kubeconfig. Raises `CannotReachCluster`."""
    kubeconfig = basics.kubeconfig or os.environ.get("KUBECONFIG", "")
    own = Path.home() / ".kube" / "config"
    if here and not basics.kubeconfig:
        return None
    path = Path(kubeconfig) if kubeconfig else own if own.exists() else None
    return ApiServer(connect(path, part="cli"), SystemClock(), chance=lambda: 0.0)


async def _config_map(api: ApiServer, basics: Settings) -> Mapping[str, str]:
    if not basics.config_map:
        return {}
    try:
        found = await api.get(f"/api/v1/namespaces/{basics.ds_namespace}/configmaps/{basics.config_map}", objects.ConfigMap)
    except NotFound:
        return {}
    return found.data or {}


class _Variable(msgspec.Struct, frozen=True):
    name: str
    value: str | None = None


class _Container(msgspec.Struct, frozen=True):
    command: list[str] = []
    args: list[str] = []
    env: list[_Variable] = []


class _PodSpec(msgspec.Struct, frozen=True):
    containers: list[_Container] = []


class _Template(msgspec.Struct, frozen=True):
    spec: _PodSpec = _PodSpec()


class _Spec(msgspec.Struct, frozen=True):
    template: _Template = _Template()


class _DaemonSet(msgspec.Struct, frozen=True):
    spec: _Spec = _Spec()


async def _launch_of_daemonset(api: ApiServer, basics: Settings) -> _Launch:
    title = f"DaemonSet {basics.ds_namespace}/{basics.ds_name}"
    found = await api.get(f"/apis/apps/v1/namespaces/{basics.ds_namespace}/daemonsets/{basics.ds_name}", _DaemonSet)
    for container in found.spec.template.spec.containers:
        words = [*container.command, *container.args]
        if "agent" in words:
            arguments = words[words.index("agent") + 1 :]
            context = agent_command.make_context("agent", arguments, resilient_parsing=False)
            environment = {each.name: _ANY_NODE if each.value is None else each.value for each in container.env}
            return _Launch(flags=given_flags(context.params), environment=environment, where=title)
    raise click.ClickException(f"{title} has no container that runs `careen agent`; name the agents' DaemonSet with --ds-namespace and --ds-name")


def _rows(resolved: Resolved) -> list[tuple[str, str, str]]:
    return [(flag(name), setting.kind.shown(getattr(resolved.settings, name)), resolved.origins[name].where) for name, setting in SETTINGS.items()]


def _text(resolved: Resolved, notes: Sequence[str], width: int | None) -> str:
    lines = "\n".join(paragraph(note, width=width) for note in notes)
    return f"{table(('SETTING', 'VALUE', 'SOURCE'), _rows(resolved), width=width)}\n\n{lines}"


def _json(resolved: Resolved, notes: Sequence[str]) -> dict[str, Any]:
    return {
        "settings": {
            name: {"value": value, "source": resolved.origins[name.replace("-", "_")].source.value, "where": where} for name, value, where in _rows(resolved)
        },
        "notes": list(notes),
    }
