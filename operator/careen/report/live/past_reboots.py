"""The report of past reboots, for people who must prove that they patched: as JSON and as a page without script."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.times import duration, rfc3339
from careen.core.steps.shared.history import Reboot, reboots_of
from careen.report.live.planned import Planned
from careen.report.live.rollout_document import Seen
from careen.report.page.markup import escape, paragraph, section, table
from scheduler_core.sentences import count_of
from scheduler_core.values import Value


class PastReboot(Value, kw_only=True):
    """One reboot of a node, and the moves that a plan had for it."""

    node: str
    reboot: Reboot
    planned_moves: int | None

    @property
    def stood(self) -> timedelta | None:
        """How long the need stood until the node was back in service."""
        since = self.reboot.need_since
        return None if since is None else max(timedelta(), self.reboot.at - since)


class OpenNeed(Value):
    """A node that still needs its reboot."""

    node: str
    since: datetime | None


def past_reboots(seen: Seen, planned: Planned, *, days: int) -> list[PastReboot]:
    """Newest first. Each Node records its last five reboots."""
    begins = seen.at - timedelta(days=days)
    found = [
        PastReboot(node=node.name, reboot=reboot, planned_moves=_planned_moves(node, reboot, planned))
        for node in seen.nodes
        for reboot in reboots_of(node)
        if reboot.at >= begins
    ]
    return sorted(found, key=lambda each: (-each.reboot.at.timestamp(), each.node))


def _planned_moves(node: NodeView, reboot: Reboot, planned: Planned) -> int | None:
    """The agent's own forecast before the drain; otherwise the plan, if the reboot came after it."""
    if reboot.forecast_moves is not None:
        return reboot.forecast_moves
    return planned.moves.get(node.name) if planned.made_at and reboot.at >= planned.made_at else None


def open_needs(seen: Seen) -> list[OpenNeed]:
    """The nodes that still need a reboot, the oldest need first."""
    found = [OpenNeed(node.name, node.need_since) for node in seen.nodes if keys.REBOOT_LABEL in node.labels]
    return sorted(found, key=lambda each: (each.since or seen.at, each.node))


def reboot_report_json(seen: Seen, planned: Planned, *, days: int) -> dict[str, Any]:
    """Durations in seconds; null for what was not recorded."""
    rows = past_reboots(seen, planned, days=days)
    rebooted = {each.node for each in rows}
    return {
        "version": 1,
        "at": rfc3339(seen.at),
        "from": rfc3339(seen.at - timedelta(days=days)),
        "server": seen.server,
        "nodes": len(seen.nodes),
        "rebooted": len(rebooted),
        "notRebooted": sorted(node.name for node in seen.nodes if node.name not in rebooted),
        "stillNeeded": [{"node": each.node, "since": each.since} for each in open_needs(seen)],
        "reboots": [_row_json(each) for each in rows],
    }


def _row_json(row: PastReboot) -> dict[str, Any]:
    reboot, stood = row.reboot, row.stood
    return {
        "node": row.node,
        "at": reboot.at,
        "why": reboot.why,
        "needSince": reboot.need_since,
        "needStoodSeconds": round(stood.total_seconds()) if stood is not None else None,
        "seconds": reboot.seconds,
        "moves": reboot.moves,
        "plannedMoves": row.planned_moves,
        "kernelBefore": reboot.kernel_left,
        "kernelAfter": reboot.kernel,
        "refusedSeconds": dict(reboot.refused) or None,
    }


_HEADER = ("Node", "Back at (UTC)", "Why", "Need stood", "Took", "Moved", "Planned", "Kernel", "Refused")


def reboot_report_html(seen: Seen, planned: Planned, *, days: int) -> str:
    """A page of its own, without script; its style sheet comes from the server of the live page."""
    rows = past_reboots(seen, planned, days=days)
    title = f"Reboots of the last {count_of(days, 'day')}"
    waiting = open_needs(seen)
    parts = [
        "<header>",
        '<nav aria-label="Pages"><a href="./">The roll-out now</a></nav>',
        f"<h1>{escape(title)}</h1>",
        *(paragraph(sentence) for sentence in summary(seen, rows, waiting)),
        "</header>",
        "<main>",
        section("reboots", "Reboots", _scrolled("Reboots", table(_HEADER, [_cells(each) for each in rows])))
        if rows
        else section("reboots", "Reboots", paragraph("No Node has a record of a reboot in this time.")),
        section("open", "Still needed", _scrolled("Still needed", table(("Node", "Since"), _open_rows(seen, waiting))))
        if waiting
        else "",
        "</main>",
    ]
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)} · careen</title>",
            '<link rel="icon" href="icon.svg" type="image/svg+xml">',
            '<link rel="stylesheet" href="live.css">',
            "</head>",
            "<body>",
            *(part for part in parts if part),
            "</body>",
            "</html>",
            "",
        ]
    )


def summary(seen: Seen, rows: Sequence[PastReboot], waiting: Sequence[OpenNeed]) -> list[str]:
    """The figures, one sentence each."""
    rebooted = {each.node for each in rows}
    counted = f"{len(rebooted)} of {count_of(len(seen.nodes), 'node')} rebooted, {count_of(len(rows), 'time')} in all"
    read_at = f"{seen.at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    sentences = [f"{counted}, as recorded on the Nodes at {read_at}; each Node keeps its last five reboots."]
    if stood := sorted(each.stood for each in rows if each.stood is not None):
        sentences.append(
            f"A need stood for {duration(stood[len(stood) // 2])} in the median, and for {duration(stood[-1])} at most."
        )
    compared = [each for each in rows if each.planned_moves is not None and each.reboot.moves is not None]
    if compared:
        real = sum(each.reboot.moves or 0 for each in compared)
        wanted = sum(each.planned_moves or 0 for each in compared)
        sentences.append(
            f"{count_of(real, 'pod')} moved where {wanted} were planned ({count_of(len(compared), 'reboot')})."
        )
    sentences.append(
        f"{count_of(len(waiting), 'node')} still {'needs' if len(waiting) == 1 else 'need'} a reboot."
        if waiting
        else "No node needs a reboot now."
    )
    return sentences


def _cells(row: PastReboot) -> list[str]:
    reboot = row.reboot
    kernels = reboot.kernel
    if reboot.kernel_left and reboot.kernel_left != reboot.kernel:
        kernels = f"{reboot.kernel_left} → {reboot.kernel or 'unknown'}"
    refused = ", ".join(f"{code} {duration(timedelta(seconds=seconds))}" for code, seconds in reboot.refused.items())
    return [
        row.node,
        f"{reboot.at.astimezone(UTC):%Y-%m-%d %H:%M:%S}",
        reboot.why or "-",
        "-" if row.stood is None else duration(row.stood),
        "-" if reboot.seconds is None else duration(timedelta(seconds=reboot.seconds)),
        "-" if reboot.moves is None else str(reboot.moves),
        "-" if row.planned_moves is None else str(row.planned_moves),
        kernels or "-",
        refused or "-",
    ]


def _open_rows(seen: Seen, waiting: Sequence[OpenNeed]) -> list[list[str]]:
    return [[each.node, "-" if each.since is None else duration(seen.at - each.since)] for each in waiting]


def _scrolled(title: str, inside: str) -> str:
    """A table that is wider than a phone must be reachable by keyboard."""
    return inside.replace(
        '<div class="wide">', f'<div class="wide" tabindex="0" role="region" aria-label="{escape(title)}">', 1
    )
