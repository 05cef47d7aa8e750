"""The plan as one self-contained page for phones, screens and paper, without server, scripts, fonts or images.

Its content security policy forbids the browser to load anything, so a name that contains markup can do no harm.
"""

from __future__ import annotations

from datetime import timedelta

from careen.core.facts.times import duration
from careen.report.page.axis import Axis
from careen.report.page.markup import escape, folded, paragraph, section, table, with_code
from careen.report.page.overview import FROM_NODES, overview
from careen.report.page.rows import rows
from careen.report.page.style import STYLE
from careen.report.plan.causes import bought
from careen.report.plan.risks import risks
from careen.report.plan.sentences import facts, headline, summary
from careen.report.plan.text import order_note, visit_note, width_note
from careen.report.plan.values import Plan, comparison, instant, waited, widths
from scheduler_core.sentences import count_of
from scheduler_core.simulation.timeline import Move, Timeline


def plan_html(plan: Plan) -> str:
    """The whole page."""
    parts = [
        _top(plan),
        _unblocks(plan),
        _risks(plan),
        _timeline(plan),
        _comparison(plan),
        _at_once(plan),
        _nodes(plan),
        _waits(plan),
        _moves(plan),
        _notes(plan),
    ]
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(headline(plan))}</title>",
            f"<style>{STYLE}</style>",
            "</head>",
            "<body>",
            *(part for part in parts if part),
            "</body>",
            "</html>",
            "",
        ]
    )


# ---- the sections ----


def _top(plan: Plan) -> str:
    return "\n".join(
        [
            "<header>",
            "<h1>careen plan</h1>",
            paragraph(headline(plan)),
            *(paragraph(sentence) for sentence in summary(plan)),
            "</header>",
        ]
    )


def _unblocks(plan: Plan) -> str:
    if not plan.unblocks:
        return ""
    items = "".join(f"<li>{escape(each)}</li>" for each in bought(plan.unblocks))
    return section("unblocks", "What would unblock most", f"<ol>{items}</ol>")


def _risks(plan: Plan) -> str:
    found = risks(plan)
    items = "".join(f"<li><b>{escape(risk.what)}.</b> {with_code(risk.remedy)}</li>" for risk in found)
    inside = (
        f"<ul>{items}</ul>"
        if found
        else paragraph(
            "The simulation sees no risk: every node reboots in one window, and every pod that can move finds room."
        )
    )
    return section("risk", "Risks and remedies", inside)


def _timeline(plan: Plan) -> str:
    timeline = plan.timeline
    if not timeline.visits:
        return ""
    axis = Axis.of(timeline.visits)
    cut = "Each dotted line marks a pause that is left out, because no node held a claim."
    parts = [paragraph(cut, "dim")] if axis.cuts else []
    parts += (
        [overview(timeline, axis, plan.zone_of, plan.zone), folded("The time line of each node", rows(plan, axis))]
        if len(timeline.nodes) >= FROM_NODES
        else [rows(plan, axis)]
    )
    return section("timeline", "Timeline", "\n".join(parts))


def _comparison(plan: Plan) -> str:
    if not plan.others:
        return ""
    orders = [[line.value, *_figures(each), order_note(plan, line)] for line, each in comparison(plan)]
    return section(
        "orders",
        "The same roll-out in each order of the nodes",
        table(["Order", *_FIGURES, "Note"], orders),
    )


def _at_once(plan: Plan) -> str:
    if not plan.at_once:
        return ""
    rows = [[most, *_figures(each), width_note(plan, most)] for most, each in widths(plan)]
    title = "The same roll-out with more and fewer nodes at once"
    return section("at-once", title, table(["At once (--concurrency)", *_FIGURES, "Note"], rows))


_FIGURES = ("Reboots", "Takes", "Moves", "Double moves", "Pending")


def _figures(timeline: Timeline) -> list[object]:
    return [
        len(timeline.reboots),
        duration(timeline.ends - timeline.begins),
        len(timeline.moves),
        timeline.double_moves,
        duration(timedelta(seconds=timeline.pending_seconds)),
    ]


def _nodes(plan: Plan) -> str:
    found = [
        [visit.node, instant(plan, visit.start), instant(plan, visit.end), visit.moves, visit_note(plan, visit)]
        for visit in plan.timeline.visits
    ]
    if not found:
        return ""
    shown = table(["Node", "Start", "End", "Moves", "Note"], found)
    is_long = len(plan.timeline.nodes) >= FROM_NODES
    return section(
        "nodes", "Nodes in the order of their reboots", folded(count_of(len(found), "row"), shown) if is_long else shown
    )


def _waits(plan: Plan) -> str:
    timeline = plan.timeline
    found = [
        [
            wait.pod,
            wait.node,
            instant(plan, wait.since),
            waited(timeline, wait),
            "only this node can hold the pod" if wait.returns else wait.why,
        ]
        for wait in sorted(timeline.waits, key=lambda wait: (wait.returns, -wait.seconds(timeline.ends)))
    ]
    return (
        section("waits", "Pods without a node", table(["Pod", "Drained from", "Since", "How long", "Why"], found))
        if found
        else ""
    )


def _moves(plan: Plan) -> str:
    times = plan.timeline.moves_by_pod
    by_node: dict[str, list[Move]] = {visit.node: [] for visit in plan.timeline.visits}  # in the order of the table
    for move in plan.timeline.moves:
        by_node.setdefault(move.source, []).append(move)
    if not plan.timeline.moves:
        return ""
    again = [[pod, count] for pod, count in times.most_common() if count > 1]
    often = f"<h3>Pods moved more than once</h3>{table(['Pod', 'Moves'], again)}" if again else ""
    columns = ["Pod", "To", "Equally good", "Note"]
    details = "\n".join(
        folded(f"{node}: {count_of(len(own), 'move')}", table(columns, [_move(move) for move in own]))
        for node, own in by_node.items()
        if own
    )
    shown = folded("Pod moves from each node", details) if len(plan.timeline.nodes) >= FROM_NODES else details
    return section("moves", "Moves", often + shown)


def _notes(plan: Plan) -> str:
    notes = "".join(f"<li>{escape(note)}</li>" for note in plan.notes)
    parts = [f"<ul>{notes}</ul>"] if notes else []
    if plan.origin:
        parts.append(table(["Made from", ""], [list(row) for row in facts(plan)]))
        settings = [[name, value] for name, value in plan.origin.settings.items()]
        parts.append(folded("Settings that the plan follows", table(["Setting", "Value"], settings)))
    return section("notes", "How the plan was made", "\n".join(parts)) if parts else ""


def _move(move: Move) -> list[object]:
    return [
        move.pod,
        move.target,
        move.choices if move.choices > 1 else "",
        "a displaced pod preempted this pod" if move.is_preempted else "",
    ]
