"""`careen forecast NODE…`: where each pod of the nodes would land if they were drained now. The agent uses the same
code."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import field

from careen.agent.clock import SystemClock
from careen.agent.forecast.forecaster import Limits, Mistake, forecast_together
from careen.agent.forecast.order import NodesToAdd
from careen.cli.support.files import text_of, try_to_read
from careen.cli.support.options import (
    Connection,
    connection_options,
    dump_option,
    output_option,
    scheduler_config_option,
    show,
)
from careen.cli.support.screen import BadInput
from careen.core.drain import drain_memory
from careen.core.drain.drain_memory import DrainMemory
from careen.core.facts.observation import Unknown
from careen.report.forecast_report import NOT_KNOWN, exit_code_of_all, forecasts_json, forecasts_text
from scheduler_core.simulation.forecast import Forecast
from scheduler_core.values import Value

if TYPE_CHECKING:
    from careen.cli.support.connection import Cluster
    from careen.core.facts.policy import Policy

# For a person's computer, without an agent in the same container.
MEMORY_BYTES = 8 * 2**30

Answer = tuple[Forecast, ...] | Unknown | Mistake


class _Result(Value, kw_only=True):
    """The forecasts, when they were made, the agents' policy, and what the nodes remember of their slow pods."""

    answer: Answer
    now: datetime
    policy: Policy | None = None  # not known
    note: str = ""
    memories: Mapping[str, DrainMemory] = field(default_factory=dict)  # by node


class NotMade(click.ClickException):
    """The forecast could not be made, although the command line is correct."""

    exit_code = NOT_KNOWN

    def __init__(self, why: str) -> None:
        super().__init__(f"the forecast could not be made: {why}")


MOST = 1000
_ENDINGS = (".yaml", ".yml", ".json")
_PRICE = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?", re.ASCII)


class NodesWanted(click.ParamType[NodesToAdd]):
    """`TEMPLATE=N` or `TEMPLATE=N@PRICE`, such as `node-07=2` or `node.yaml=2@0.4`: N more nodes like that Node or
    manifest. Otherwise exit code 2."""

    name = "nodes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> NodesToAdd:
        if isinstance(value, NodesToAdd):
            return value
        template, sign, asked = str(value).rpartition("=")
        number, at, price = asked.partition("@")
        if not sign or not template:
            self.fail(f"{value!r} is not of the form TEMPLATE=N, such as node-07=2", param, ctx)
        if not (number.isascii() and number.isdecimal()) or len(number) > 9 or not 1 <= int(number) <= MOST:
            self.fail(f"{number!r} is not a number of nodes from 1 to {MOST}", param, ctx)
        cost = self._price(price, param, ctx) if at else 1.0
        if "/" not in template and not template.endswith(_ENDINGS):
            return NodesToAdd(int(number), name=template, price=cost)
        return NodesToAdd(int(number), manifest=self._manifest(Path(template), param, ctx), price=cost)

    def _price(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if not _PRICE.fullmatch(text):
            self.fail(f"{text!r} is not a price such as 0.4", param, ctx)
        return float(text)

    def _manifest(self, path: Path, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, Any]:
        from careen.settings import yaml_text

        try:
            written = yaml_text.load(text_of(path, "--with-nodes"))
        except yaml_text.BadYaml as error:
            self.fail(f"{path}: {error}", param, ctx)
        if not isinstance(written, dict) or written.get("kind") != "Node" or written.get("apiVersion") != "v1":
            self.fail(f"the file {path} contains no Node (apiVersion: v1, kind: Node)", param, ctx)
        manifest: dict[str, Any] = json.loads(json.dumps(written, default=str))  # YAML has dates, JSON writes them
        return manifest


@click.command()
@click.argument("nodes", nargs=-1, required=True, metavar="NODE...")
@dump_option
@scheduler_config_option()
@click.option(
    "--with-nodes",
    type=NodesWanted(),
    multiple=True,
    metavar="TEMPLATE=N[@PRICE]",
    help="Also show how many of the pods that find no room would fit on N more nodes like TEMPLATE, and how many such "
    "nodes are needed for all of these pods. TEMPLATE is the name of a Node, or a file with a Node (the path contains "
    "/ or ends in .yaml, .yml or .json). Given several times, it shows what the nodes do together, and the cheapest "
    "ones that are enough; without prices, the fewest.",
)
@click.option(
    "--timeout",
    type=click.IntRange(min=1),
    default=120,
    show_default=True,
    metavar="SECONDS",
    help="The time limit for reading the cluster and for the simulation.",
)
@output_option
@connection_options
def forecast(
    connection: Connection,
    *,
    nodes: tuple[str, ...],
    dump: Path | None,
    scheduler_config: Path | None,
    with_nodes: tuple[NodesToAdd, ...],
    timeout: int,
    output: str,
) -> None:
    """Forecast where each pod of the NODEs would land if they were drained now. It changes nothing.

    Several nodes are drained together, as with a concurrency above 1: no pod lands on another of these nodes.

    Exit code 0: every pod moves, stays, returns or is lost, as the output says. 3: a pod would find no room, or may not
    be evicted. 4: a pod cannot be predicted, or the forecast could not be made. --with-nodes does not change the exit
    code."""
    names = tuple(dict.fromkeys(nodes))
    text = text_of(scheduler_config, "--scheduler-config") if scheduler_config else ""
    if dump:
        try_to_read(dump, "--from")
    # A local file may name other files; the agents' ConfigMap must not name files of this computer.
    limits = Limits(
        seconds=timeout,
        memory_bytes=MEMORY_BYTES,
        scheduler_config=text,
        may_name_files=bool(text),
        more_nodes=with_nodes,
        suggests_nodes=not with_nodes,
    )
    asked = asyncio.run(_from_dump(names, dump, limits)) if dump else _ask(connection, names, limits)
    made = asked.answer
    if isinstance(made, Mistake) and (dump or scheduler_config or with_nodes):
        # The simulation gets the text without the file's name.
        raise BadInput(made.why.replace("--scheduler-config", f"--scheduler-config {scheduler_config}", 1))
    if isinstance(made, Mistake | Unknown):
        raise NotMade(made.why)
    if asked.note and not scheduler_config:
        made = tuple(replace(each, notes=(*each.notes, asked.note)) for each in made)
    show(
        output,
        text=lambda width: forecasts_text(made, asked.now, asked.policy, width=width, memories=asked.memories),
        value=lambda: forecasts_json(made, asked.policy, asked.memories),
    )
    raise click.exceptions.Exit(exit_code_of_all(made))


def _ask(connection: Connection, names: tuple[str, ...], limits: Limits) -> _Result:
    try:
        return connection.ask(lambda cluster: _from_cluster(cluster, names, limits))
    except click.ClickException as error:
        if error.exit_code != click.ClickException.exit_code:
            raise
        raise NotMade(error.message) from error


async def _from_cluster(cluster: Cluster, names: tuple[str, ...], limits: Limits) -> _Result:
    # The client takes longer to load than the rest of the command, and a dump does not need it.
    from careen.cli.support.agents_settings import agents_of
    from careen.cli.support.connection import read_node_or_fail

    memories = {name: drain_memory.of(await read_node_or_fail(cluster, name)) for name in names}
    agents = await agents_of(cluster)
    selector = agents.settings.drain_pod_selector if agents.settings else None
    limits = replace(
        limits,
        scheduler_config=limits.scheduler_config or agents.scheduler_config,
        drain_pod_selector=selector,
        slow_pod_selectors=agents.settings.slow_pod_selector if agents.settings else (),
    )
    answer = await forecast_together(names, limits, kubeconfig=cluster.kubeconfig, context=cluster.context)
    return _Result(answer=answer, now=cluster.clock.now(), policy=agents.policy, note=agents.note, memories=memories)


async def _from_dump(names: tuple[str, ...], dump: Path, limits: Limits) -> _Result:
    answer = await forecast_together(names, limits, dump=str(dump.resolve()))
    return _Result(answer=answer, now=SystemClock().now())
