"""`careen watch`: the roll-out on a terminal, refreshed until it is interrupted."""

from __future__ import annotations

import asyncio
import shutil
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from careen.cli.serving.looks import Looks
from careen.cli.support.options import cluster_command
from careen.cli.support.screen import say
from careen.report.live.rollout_document import RolloutScene
from careen.report.live.screen import ScreenLine, Style, screen, sentence_line

if TYPE_CHECKING:
    from rich.text import Text

    from careen.cli.support.connection import Cluster

_COLOURS = {
    Style.TITLE: "bold",
    Style.GOOD: "bold green",
    Style.BAD: "bold red",
    Style.PLAIN: "",
    Style.DIM: "dim",
}


@click.command()
@click.option("--plain", is_flag=True, help="Print a line whenever something changes, as in a pipe.")
@click.option("--once", is_flag=True, help="Look once, and end.")
@cluster_command
async def watch(cluster: Cluster, *, plain: bool, once: bool) -> None:
    """Show the roll-out on this terminal: how far it is, the nodes at work with their expected ends, and what holds
    nodes back. In a pipe, print a line whenever the first sentence changes. NO_COLOR switches the colours off.

    The command reads the cluster every 3 s (every 20 s with 5,000 nodes) until it is interrupted, and changes nothing.
    """
    with suppress(asyncio.CancelledError):
        await (lines(cluster, once=once) if plain or not sys.stdout.isatty() else _screens(cluster, once=once))


async def lines(cluster: Cluster, *, once: bool = False) -> None:
    """A line whenever the verdict changes other than by its ages."""
    looks, before = Looks(cluster), [""]
    while True:
        seen = await looks.look()
        line = sentence_line(RolloutScene.of(seen))
        words = [word for word in line.split(" ")[1:] if word.isdigit() or not word[:1].isdigit()]
        if words != before:
            before = words
            say(line)
            sys.stdout.flush()
        if once:
            return
        await asyncio.sleep(seen.refresh_seconds)


async def _screens(cluster: Cluster, *, once: bool) -> None:
    from rich.console import Console
    from rich.live import Live

    looks = Looks(cluster)
    with Live(console=Console(highlight=False), screen=not once, auto_refresh=False) as live:
        while True:
            seen = await looks.look()
            columns, rows = shutil.get_terminal_size((80, 24))
            live.update(_drawn(screen(RolloutScene.of(seen), width=columns, height=rows)), refresh=True)
            if once:
                return
            await asyncio.sleep(seen.refresh_seconds)


def _drawn(lines: list[ScreenLine]) -> Text:
    """Rich's Text takes no markup from its content."""
    from rich.text import Text

    drawn = Text(no_wrap=True, overflow="ellipsis")
    for number, line in enumerate(lines):
        drawn.append(("\n" if number else "") + line.text, style=_COLOURS[line.style])
    return drawn
