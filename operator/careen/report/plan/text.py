"""The plan for a terminal."""

from __future__ import annotations

from careen.core.facts.policy import Order
from careen.core.facts.times import duration
from careen.core.plain_text import one_line
from careen.report.plan.causes import bought
from careen.report.plan.risks import risks
from careen.report.plan.sentences import SHOWN, headline, summary, verdict
from careen.report.plan.values import Plan, comparison, seconds_text, widths, without_zone
from careen.report.tables import height_of, paragraph, table
from scheduler_core.sentences import count_of
from scheduler_core.simulation.timeline import Timeline, Visit

SCREEN = 40
"""So many lines a plan has at most; -o json and --report have all of it."""


def plan_text(plan: Plan, *, width: int | None = None) -> str:
    """The plan for a terminal: the verdict, what hinders most, the nodes, as far as a screen has room for them."""
    timeline = plan.timeline
    if not timeline.nodes:
        return paragraph("No node of the plan needs a reboot: there is nothing to plan.", width=width)
    rows = [_row(plan, visit) for visit in timeline.visits]
    header = ["NODE", f"START ({plan.zone})", "END", "MOVES", "NOTE"]
    text = table(header, rows, width=width).split("\n") if rows else []
    for brief in _BRIEF:
        before, after = _before(plan, width, brief), _after(plan, width, brief)
        room = SCREEN - height_of(before) - height_of(after) - 2
        if room >= min(len(text), _LEAST_ROWS):
            break
    if len(text) > max(3, room) + 1:
        shown = rows[: max(3, room) - 1]
        left = _SHORT_NOTE if width is None else max(10, min(_SHORT_NOTE, width - len(text[0]) + len("NOTE")))
        text = table(header, [[*row[:-1], one_line(row[-1], left)] for row in shown]).split("\n")
        text.append(f"… and {count_of(len(rows) - len(shown), 'more visit')} of nodes: -o json or --report=FILE.html")
    return "\n".join([*before, *(["", *text] if text else []), *after])


_LEAST_ROWS = 6
_BRIEF = range(4)
"""What a narrow terminal has no room for: 1: notes, 2: all risks but the worst, 3: all figures but the first two."""


def _before(plan: Plan, width: int | None, brief: int) -> list[str]:
    lines = [paragraph(verdict(plan), width=width), paragraph(headline(plan), width=width)]
    if plan.unblocks:
        buys = (paragraph(each, indent="  ", width=width) for each in bought(plan.unblocks))
        lines += ["", "What would unblock most:", *buys]
    if found := risks(plan):
        most = SHOWN if brief < 2 else 1
        told = [paragraph(f"- {risk.what}. {risk.remedy}", indent="  ", width=width) for risk in found[:most]]
        lines += ["", "At risk:", *told]
        if len(found) > most:
            lines.append(paragraph(f"- and {count_of(len(found) - most, 'more risk')} (-o json)", indent="  "))
    return lines


def _after(plan: Plan, width: int | None, brief: int) -> list[str]:
    figures = summary(plan)[1:]
    lines = ["", *(paragraph(each, width=width) for each in (figures if brief < 3 else figures[:2]))]
    if plan.others:
        lines += ["", comparison_text(plan, width=width)]
    if brief and len(plan.notes) > 1:
        told = f"{count_of(len(plan.notes), 'note')} on what the plan assumes: -o json or --report=FILE.html"
        return [*lines, paragraph(told, width=width)]
    return [*lines, *(paragraph(f"Note: {note}.", width=width) for note in plan.notes)]


_SHORT_NOTE = 60


def comparison_text(plan: Plan, *, width: int | None = None) -> str:
    """The roll-out's figures in each order, and with each number of nodes at once, as tables."""
    columns = ["REBOOTS", "TAKES", "MOVES", "DOUBLE", "PENDING", "NOTE"]
    orders = [[line.value, *_shown_figures(each), order_note(plan, line)] for line, each in comparison(plan)]
    tables = [table(["ORDER", *columns], orders, width=width)]
    if plan.at_once:
        rows = [[str(most), *_shown_figures(each), width_note(plan, most)] for most, each in widths(plan)]
        tables.append(table(["AT ONCE", *columns], rows, width=width))
    return "\n\n".join(tables)


def order_note(plan: Plan, line: Order) -> str:
    """Who uses this order: the agents now, everybody by default, or whoever opts in."""
    if line is plan.agents_line:
        return "the agents' order"
    return "the default" if line is Order.OLDEST else "opt-in"


def width_note(plan: Plan, most: int) -> str:
    """Whether the plan, and the agents, have this --concurrency."""
    return "this plan" if most == plan.concurrency else ""


def _shown_figures(timeline: Timeline) -> list[str]:
    return [
        str(len(timeline.reboots)),
        duration(timeline.ends - timeline.begins),
        str(len(timeline.moves)),
        str(timeline.double_moves),
        seconds_text(timeline.pending_seconds),
    ]


def visit_note(plan: Plan, visit: Visit) -> str:
    """Why a drain is undone, and which pods wait: `2 pods without room, 1 pod waits until the node is back`."""
    waiting = [
        wait for wait in plan.timeline.waits if wait.node == visit.node and visit.start <= wait.since <= visit.end
    ]
    pending = sum(1 for wait in waiting if not wait.returns)
    returning = len(waiting) - pending
    parts = [f"undone: {visit.undone}"] if visit.undone else []
    parts += [f"{count_of(pending, 'pod')} without room"] if pending else []
    wait = "waits" if returning == 1 else "wait"
    parts += [f"{count_of(returning, 'pod')} {wait} until the node is back"] if returning else []
    return ", ".join(parts)


def _row(plan: Plan, visit: Visit) -> list[str]:
    return [
        visit.node,
        without_zone(plan, visit.start),
        f"{visit.end.astimezone(plan.zone):%H:%M:%S}",
        str(visit.moves),
        visit_note(plan, visit),
    ]
