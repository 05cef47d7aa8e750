"""The plan as one page that needs nothing else: no script, no font, no image, no server. For a phone, a screen
and paper.

The page forbids itself to load anything, so that what stands in names and sentences stays text wherever the
file is opened."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from html import escape as _escaped_for_html

from careen.core.plain_text import one_line
from careen.report.plan_report import (
    Plan,
    comparison,
    headline,
    instant,
    order_note,
    risks,
    summary,
    visit_note,
    waited,
)
from careen.report.tables import count_of, duration
from scheduler_core.simulation.timeline import Move, Step, Visit
from scheduler_core.values import Value

_LONGEST_PAUSE = timedelta(minutes=30)  # longer ones in which nobody is at work are cut out of the time line

# Colour is never the only difference: the steps come in this order, each bar names itself, and settling is hatched.
_COLOURS = {Step.HELD_BACK: "#8a8f98", Step.DRAINING: "#d97706", Step.REBOOTING: "#2563eb", Step.SETTLING: "#16a34a"}
_MEANS = {
    Step.HELD_BACK: "claimed, not yet cordoned",
    Step.DRAINING: "cordoned, pods move away",
    Step.REBOOTING: "down, until it is given back",
    Step.SETTLING: "back in service, workloads recover",
}

_STYLE = """
:root{color-scheme:light dark;--ink:#1c1f24;--dim:#5b6270;--line:#d5d9e0;--soft:#f3f5f8;--bad:#b42318;--page:#fff}
@media (prefers-color-scheme:dark){:root{--ink:#e8eaee;--dim:#a3abb8;--line:#3a404b;--soft:#22262d;
--bad:#ff8a7a;--page:#15181d}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:75rem;padding:1rem;font:1rem/1.45 system-ui,sans-serif;color:var(--ink);
background:var(--page)}
h1{font-size:1.4rem;margin:.2rem 0}h2{font-size:1.15rem;margin:1.8rem 0 .5rem;border-bottom:1px solid var(--line)}
p{margin:.3rem 0}.dim{color:var(--dim)}ul{padding-left:1.2rem}li{margin:.35rem 0}.risk b{color:var(--bad)}
.legend{display:flex;flex-wrap:wrap;gap:.3rem 1.2rem;margin:.5rem 0}
.legend i{display:inline-block;width:1.6rem;height:.8rem;margin-right:.4rem;vertical-align:-1px}
.row{display:grid;grid-template-columns:minmax(6rem,14rem) 1fr;gap:.6rem;align-items:center;padding:.12rem 0;
break-inside:avoid}
.row:nth-child(even){background:var(--soft)}.name{overflow-wrap:anywhere;font-size:.85rem}
.track{position:relative;height:1rem;border-left:1px solid var(--line);border-right:1px solid var(--line)}
.axis .track{height:2.4rem;border:0;overflow:hidden}
.tick{position:absolute;top:0;bottom:0;border-left:1px solid var(--line);padding-left:.25rem;font-size:.72rem;
white-space:nowrap;color:var(--dim)}
.tick.late{border-left:0;border-right:1px solid var(--line);padding:0 .25rem 0 0;transform:translateX(-100%)}
.bar,.legend i{-webkit-print-color-adjust:exact;print-color-adjust:exact}
.bar{position:absolute;top:.1rem;bottom:.1rem;min-width:2px}
.settling{background-image:repeating-linear-gradient(45deg,#0000 0 3px,#fff6 3px 5px)}
.cut{position:absolute;top:0;bottom:0;border-left:2px dotted var(--dim)}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.88rem;width:100%}
th,td{text-align:left;vertical-align:top;padding:.2rem .6rem .2rem 0;border-bottom:1px solid var(--line);
overflow-wrap:break-word}
th,td:first-child,td.n{white-space:nowrap}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
details{margin:.2rem 0}summary{cursor:pointer}
@media (max-width:40rem){body{padding:.6rem}.row{grid-template-columns:1fr;gap:0}.axis .name{display:none}
.tick.minor{display:none}}
@media print{:root{color-scheme:light;--ink:#000;--dim:#444;--line:#bbb;--soft:#f3f5f8;--bad:#900;--page:#fff}
body{max-width:none;padding:0;font-size:9pt}h2{break-after:avoid}}
""".strip()


def plan_html(plan: Plan) -> str:
    """The whole page."""
    parts = [
        _top(plan),
        _risks(plan),
        _timeline(plan),
        _comparison(plan),
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
            f"<style>{_STYLE}</style>",
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
            _p(headline(plan)),
            *(_p(sentence) for sentence in summary(plan)),
            "</header>",
        ]
    )


def _risks(plan: Plan) -> str:
    found = risks(plan)
    items = "".join(f"<li><b>{escape(risk.what)}.</b> {_with_code(risk.remedy)}</li>" for risk in found)
    inside = (
        f"<ul>{items}</ul>"
        if found
        else _p(
            "Nothing that the simulation can see: every node reboots in one window and every pod that can "
            "move finds room."
        )
    )
    return _section("risk", "What is at risk, and what to do about it", inside)


def _timeline(plan: Plan) -> str:
    visits = plan.timeline.visits
    if not visits:
        return ""
    axis = _Axis.of(visits)
    legend = "".join(
        f'<span><i class="{_css(step)}" style="background-color:{colour}"></i>{escape(step.value)}: '
        f"{escape(_MEANS[step])}</span>"
        for step, colour in _COLOURS.items()
        if any(span.step is step for visit in visits for span in visit.spans)
    )
    by_node: dict[str, list[Visit]] = defaultdict(list)
    for visit in visits:
        by_node[visit.node].append(visit)
    cut = (
        _p("Pauses in which nobody is at work are cut out, at each dotted line.", "dim") if len(axis.pieces) > 1 else ""
    )
    rows = "\n".join(_row(plan, axis, node, own) for node, own in by_node.items())
    return _section(
        "timeline",
        "Timeline",
        f'<div class="legend">{legend}</div>{cut}\n<div class="rows">\n{_axis_row(plan, axis)}\n{rows}\n</div>',
    )


def _comparison(plan: Plan) -> str:
    if not plan.others:
        return ""
    rows = [
        [
            line.value,
            len(each.reboots),
            duration(each.ends - each.begins),
            len(each.moves),
            each.double_moves,
            duration(timedelta(seconds=each.pending_seconds)),
            order_note(plan, line),
        ]
        for line, each in comparison(plan)
    ]
    return _section(
        "orders",
        "Orders side by side",
        _table(["Order", "Reboots", "Takes", "Moves", "Double moves", "Pending", "Note"], rows),
    )


def _nodes(plan: Plan) -> str:
    rows = [
        [visit.node, instant(plan, visit.start), instant(plan, visit.end), visit.moves, visit_note(plan, visit)]
        for visit in plan.timeline.visits
    ]
    return _section("nodes", "Nodes in order", _table(["Node", "Start", "End", "Moves", "Note"], rows)) if rows else ""


def _waits(plan: Plan) -> str:
    timeline = plan.timeline
    rows = [
        [
            wait.pod,
            wait.node,
            instant(plan, wait.since),
            waited(timeline, wait),
            "only this node can hold it" if wait.returns else wait.why,
        ]
        for wait in sorted(timeline.waits, key=lambda wait: (wait.returns, -wait.seconds(timeline.ends)))
    ]
    return (
        _section("waits", "Pods that wait", _table(["Pod", "Drained from", "Since", "How long", "Why"], rows))
        if rows
        else ""
    )


def _moves(plan: Plan) -> str:
    times = plan.timeline.moves_by_pod
    by_node: dict[str, list[Move]] = defaultdict(list)
    for move in plan.timeline.moves:
        by_node[move.source].append(move)
    if not by_node:
        return ""
    again = [[pod, count] for pod, count in times.most_common() if count > 1]
    often = f"<h3>Moved more than once</h3>{_table(['Pod', 'Moves'], again)}" if again else ""
    columns = ["Pod", "To", "Equally good", "Note"]
    folded = "\n".join(
        f"<details><summary>{escape(node)}: {count_of(len(own), 'move')}</summary>"
        f"{_table(columns, [_move(move) for move in own])}</details>"
        for node, own in by_node.items()
    )
    return _section("moves", "Moves", often + folded)


def _notes(plan: Plan) -> str:
    return (
        _section(
            "notes", "How this was made", "<ul>" + "".join(f"<li>{escape(note)}</li>" for note in plan.notes) + "</ul>"
        )
        if plan.notes
        else ""
    )


# ---- the pieces ----


def escape(text: str) -> str:
    """Text for the page: neither markup nor characters that reorder or hide what stands beside them."""
    return _escaped_for_html(one_line(text))


class _Axis(Value):
    """The time line: stretches in which somebody is at work, side by side, without the long pauses between them."""

    pieces: tuple[tuple[datetime, datetime], ...]

    @classmethod
    def of(cls, visits: Sequence[Visit]) -> _Axis:
        pieces: list[tuple[datetime, datetime]] = []
        for visit in sorted(visits, key=lambda visit: visit.start):
            if pieces and visit.start - pieces[-1][1] <= _LONGEST_PAUSE:
                pieces[-1] = (pieces[-1][0], max(pieces[-1][1], visit.end))
            else:
                pieces.append((visit.start, visit.end))
        return cls(tuple(pieces))

    @property
    def length(self) -> timedelta:
        return sum((end - start for start, end in self.pieces), timedelta()) or timedelta(seconds=1)

    def percent(self, at: datetime) -> float:
        """Where the instant lies, 0 to 100; one in a pause lies at its cut."""
        before = sum((min(end, at) - start for start, end in self.pieces if start < at), timedelta())
        return round(100 * (before / self.length), 3)

    def ticks(self) -> list[tuple[datetime, bool]]:
        """Instants worth a label, and whether it begins a stretch."""
        step = next((each for each in _STEPS if self.length / each <= 8), _STEPS[-1])
        found: list[tuple[datetime, bool]] = []
        for start, end in self.pieces:
            found.append((start, True))
            at = start + step
            while at < end - step / 2:
                found.append((at, False))
                at += step
        return found


_STEPS = tuple(timedelta(minutes=minutes) for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 240, 480, 1440, 10_080))


def _axis_row(plan: Plan, axis: _Axis) -> str:
    labels = "".join(_tick(plan, at, axis.percent(at), is_first=is_first) for at, is_first in axis.ticks())
    return f'<div class="row axis"><span class="name dim">Node</span><div class="track">{labels}</div></div>'


def _tick(plan: Plan, at: datetime, left: float, *, is_first: bool) -> str:
    """A label near the right edge hangs to the left of its instant, so that a phone shows it whole."""
    css = f"tick{'' if is_first else ' minor'}{' late' if left > 75 else ''}"
    return f'<span class="{css}" style="left:{left}%">{escape(_label(plan, at, is_first=is_first))}</span>'


def _label(plan: Plan, at: datetime, *, is_first: bool) -> str:
    local = at.astimezone(plan.zone)
    return f"{local:%a %d %b %H:%M}" if is_first else f"{local:%H:%M}"


def _row(plan: Plan, axis: _Axis, node: str, visits: Sequence[Visit]) -> str:
    bars = "".join(_bars(plan, axis, visit) for visit in visits)
    cuts = "".join(f'<span class="cut" style="left:{axis.percent(start)}%"></span>' for start, _ in axis.pieces[1:])
    return f'<div class="row"><span class="name">{escape(node)}</span><div class="track">{cuts}{bars}</div></div>'


def _bars(plan: Plan, axis: _Axis, visit: Visit) -> str:
    text = ""
    for span in visit.spans:
        left, right = axis.percent(span.start), axis.percent(span.end)
        told = (
            f"{visit.node}: {span.step.value} {instant(plan, span.start)}, for "
            f"{duration(span.end - span.start)}{f' ({visit.undone})' if visit.undone else ''}"
        )
        text += (
            f'<span class="bar {_css(span.step)}" '
            f'style="left:{left}%;width:{round(right - left, 3)}%;background-color:{_COLOURS[span.step]}" '
            f'title="{escape(told)}" role="img" aria-label="{escape(told)}"></span>'
        )
    return text


def _css(step: Step) -> str:
    return step.value.replace(" ", "-")


def _move(move: Move) -> list[object]:
    return [
        move.pod,
        move.target,
        move.choices if move.choices > 1 else "",
        "preempted by a displaced pod" if move.is_preempted else "",
    ]


def _table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    def cell(tag: str, value: object, column: int) -> str:
        is_number = bool(rows) and isinstance(rows[0][column], int)
        return f"<{tag}{' class=n' if is_number else ''}>{escape(str(value))}</{tag}>"

    head = "".join(cell("th", name, column) for column, name in enumerate(header))
    body = "\n".join(
        "<tr>" + "".join(cell("td", value, column) for column, value in enumerate(row)) + "</tr>" for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>'


def _section(name: str, title: str, inside: str) -> str:
    return f'<section class="{name}">\n<h2>{escape(title)}</h2>\n{inside}\n</section>'


def _with_code(text: str) -> str:
    """Our own sentences, in which backticks mark commands."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _p(text: str, css: str = "") -> str:
    return f"<p{f' class={css}' if css else ''}>{escape(text)}</p>"
