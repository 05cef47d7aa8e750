"""`careen config`: each setting's value and whether a flag, a variable, the ConfigMap or the default sets it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from careen.agent.clock import SystemClock
from careen.cli.support import lock_place
from careen.cli.support.agent_options import agent_options, given_flags
from careen.cli.support.agents_settings import (
    ANY_NODE,
    Launch,
    config_map_data,
    launch_of_agents,
    settings_of,
    title_of,
)
from careen.cli.support.connection import transport_to
from careen.cli.support.options import output_option, show
from careen.cli.support.screen import BadInput, SeveralProblems
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.errors import ClusterError
from careen.report.tables import paragraph, table
from careen.settings.sources import BadSettings, Resolved, Source, resolve
from careen.settings.tree import SETTINGS, Settings, flag

# Settings that locate the cluster's objects and do not change how agents work.
_WHERE = {"kubeconfig", "ds_namespace", "ds_name", "config_map", "node_id"}


@click.command(context_settings={"max_content_width": 120})
@click.option(
    "--here",
    is_flag=True,
    help="Show the settings of an agent that would start on this computer with the flags and the environment of this "
    "command. Without --here, the command shows the settings of the cluster's agents.",
)
@output_option
@agent_options
def config(*, here: bool, output: str, **values: Any) -> None:
    """Show each setting's value and which source sets it.

    Without settings on the command line, it shows the settings of the cluster's agents, from their DaemonSet and
    ConfigMap. With settings on the command line, or with --here, it shows the settings of an agent that would start on
    this computer. It then reads the ConfigMap only if --kubeconfig is given."""
    flags = given_flags(values)
    try:
        resolved, notes = asyncio.run(_resolved(flags, here=here or bool(set(flags) - _WHERE)))
    except BadSettings as error:
        raise SeveralProblems(error.problems) from error
    except BadInput as error:
        raise BadInput(f"{error.message}; or give --here, so that the command reads no cluster") from error
    except ClusterError as error:
        raise click.ClickException(
            f"the cluster's settings cannot be read: {error}; with --here the command reads no cluster"
        ) from error
    show(output, text=lambda width: _text(resolved, notes, width), value=lambda: _json(resolved, notes))


async def _resolved(flags: Mapping[str, Sequence[str]], *, here: bool) -> tuple[Resolved, tuple[str, ...]]:
    resolved = resolve(
        flags={**flags, "node_id": flags.get("node_id", (ANY_NODE,))}, environment=os.environ, is_whole=False
    )
    basics = resolved.settings
    api = _api(basics, here=here)
    if api and not here:
        basics = await _found(api, resolved)
    if here or api is None:
        launch = Launch(flags=flags, environment=dict(os.environ), where="this command")
    else:
        launch = await launch_of_agents(api, basics)
    resolved = settings_of(launch, basics, await config_map_data(api, basics) if api else {})
    config_map = (
        f"the ConfigMap is {title_of(basics)}"
        if api
        else "this command did not read a cluster, so it knows no ConfigMap"
    )
    unread = [f"the value of {name} may come from a Secret, which this command does not read" for name in launch.unread]
    sources = f"the flags and the environment are those of {launch.where}; {config_map}"
    return resolved, (sources, *unread, *resolved.notes)


async def _found(api: ClusterApi, given: Resolved) -> Settings:
    """The settings with the agents' DaemonSet; one that is not given is searched for, as in the other commands."""
    settings = given.settings
    named = {
        name: None if given.origins[name].source is Source.DEFAULT else getattr(settings, name)
        for name in ("ds_namespace", "ds_name")
    }
    namespace, name = await lock_place.find(
        api, namespace=named["ds_namespace"], name=named["ds_name"], annotation=settings.lock_annotation
    )
    return replace(settings, ds_namespace=namespace, ds_name=name)


def _api(basics: Settings, *, here: bool) -> ClusterApi | None:
    """None with --here but without --kubeconfig: the command then reads no cluster. Ends the command if the kubeconfig
    cannot be read."""
    kubeconfig = basics.kubeconfig or os.environ.get("KUBECONFIG", "")
    own = Path.home() / ".kube" / "config"
    if here and not basics.kubeconfig:
        return None
    path = Path(kubeconfig) if kubeconfig else own if own.exists() else None
    return ClusterApi(transport_to(path, None), SystemClock(), chance=lambda: 0.0)


def _rows(resolved: Resolved) -> list[tuple[str, str, str]]:
    return [
        (flag(name), setting.kind.shown(getattr(resolved.settings, name)), resolved.origins[name].where)
        for name, setting in SETTINGS.items()
    ]


def _text(resolved: Resolved, notes: Sequence[str], width: int | None) -> str:
    lines = "\n".join(paragraph(note, width=width) for note in notes)
    return f"{table(('SETTING', 'VALUE', 'SOURCE'), _rows(resolved), width=width)}\n\n{lines}"


def _json(resolved: Resolved, notes: Sequence[str]) -> dict[str, Any]:
    return {
        "settings": {
            name: {"value": value, "source": resolved.origins[name.replace("-", "_")].source.value, "where": where}
            for name, value, where in _rows(resolved)
        },
        "notes": list(notes),
    }
