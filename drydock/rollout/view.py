"""Shows a running roll-out: as a live table on a terminal, elsewhere as one line per change."""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from drydock.rollout.progress_report import NodeLine, RolloutProgress

_REASON_WIDTH = 70


def line_printer(out: TextIO) -> Callable[[RolloutProgress], None]:
    """The function prints a line for each node whose phase, readiness or cordon changed since its last call."""
    last: dict[str, tuple[str, bool, bool]] = {}

    def show(progress: RolloutProgress) -> None:
        for node in progress.nodes:
            state = (node.phase, node.is_ready, node.is_cordoned)
            if last.get(node.name, ("Idle", True, False)) != state:
                print(
                    f"{progress.seconds:6.1f} s  {node.name}  {_state_words(node):<28}  "
                    f"{node.reason[:_REASON_WIDTH]}".rstrip(),
                    file=out,
                    flush=True,
                )
            last[node.name] = state

    return show


def _state_words(node: NodeLine) -> str:
    words = [node.phase]
    if not node.is_ready:
        words.append("down")
    if node.is_cordoned:
        words.append("cordoned")
    return ", ".join(words)


def live_table(console: Console) -> tuple[Live, Callable[[RolloutProgress], None]]:
    """A display to use as a context manager, and the function that puts the progress into its table."""
    live = Live(console=console, refresh_per_second=4)
    return live, lambda progress: live.update(table_of(progress))


def table_of(progress: RolloutProgress) -> Table:
    title = (
        f"{progress.rebooted} of {len(progress.nodes)} nodes rebooted after {progress.seconds:.0f} s, "
        f"{progress.moved} pods moved, {progress.moved_twice} of them twice"
    )
    table = Table(title=title, title_justify="left", expand=True, box=None, padding=(0, 1), header_style="bold")
    for name in ("node", "zone", "phase", "service"):
        table.add_column(name, no_wrap=True)
    for name in ("pods", "moved"):
        table.add_column(name, no_wrap=True, justify="right")
    table.add_column("forecast", max_width=28, no_wrap=True, overflow="ellipsis")
    table.add_column("reason", ratio=1, no_wrap=True, overflow="ellipsis")
    for node in progress.nodes:
        table.add_row(*map(Text, _cells(node)), style=_style(node))
    return table


def _cells(node: NodeLine) -> tuple[str, ...]:
    service = (
        "down"
        if not node.is_ready
        else "cordoned"
        if node.is_cordoned
        else "rebooted"
        if node.is_rebooted
        else "in service"
    )
    return (
        node.name,
        node.zone,
        node.phase,
        service,
        str(node.pods),
        str(node.moved or ""),
        node.forecast,
        node.reason,
    )


def _style(node: NodeLine) -> str:
    if node.phase == "Failed":
        return "red"
    if not node.is_ready or node.is_cordoned:
        return "yellow"
    return "green" if node.is_rebooted else "" if node.phase != "Idle" else "dim"
