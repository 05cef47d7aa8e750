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
    before = [paragraph(verdict(plan), width=width), paragraph(headline(plan), width=width)]
    if plan.unblocks:
        before += [
            "",
            "What would unblock most:",
            *(paragraph(each, indent="  ", width=width) for each in bought(plan.unblocks)),
        ]
    if found := risks(plan):
        told = [paragraph(f"- {risk.what}. {risk.remedy}", indent="  ", width=width) for risk in found[:SHOWN]]
        before += ["", "At risk:", *told]
        if len(found) > SHOWN:
            before.append(f"  - and {count_of(len(found) - SHOWN, 'more risk')} (-o json)")
    after = ["", *(paragraph(sentence, width=width) for sentence in summary(plan)[1:])]
    if plan.others:
        after += ["", comparison_text(plan, width=width)]
    notes = [paragraph(f"Note: {note}.", width=width) for note in plan.notes]
    after += notes
    rows = [_row(plan, visit) for visit in timeline.visits]
    header = ["NODE", f"START ({plan.zone})", "END", "MOVES", "NOTE"]
    text = table(header, rows, width=width).split("\n") if rows else []
    room = max(3, SCREEN - height_of(before) - height_of(after) - 2)
    if len(text) > room + 1:
        shown = rows[: room - 1]
        text = table(header, [[*row[:-1], one_line(row[-1], _SHORT_NOTE)] for row in shown]).split("\n")
        text.append(f"… and {count_of(len(rows) - len(shown), 'more visit')} of nodes: -o json or --report=FILE.html")
    lines = [*before, *(["", *text] if text else []), *after]
    return "\n".join(lines)


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
