"""A row for each node, with a bar for each step under its claim. All rows share one time line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from careen.core.facts.times import duration
from careen.report.page.axis import Axis, Tick
from careen.report.page.markup import escape
from careen.report.plan.values import Plan, instant
from scheduler_core.simulation.timeline import Step, Visit

# Not only the colour distinguishes the steps: they come in this order, each bar has a label, and settling is hatched.
_COLOURS = {Step.HELD_BACK: "#8a8f98", Step.DRAINING: "#d97706", Step.REBOOTING: "#2563eb", Step.SETTLING: "#16a34a"}
_MEANS = {
    Step.HELD_BACK: "the node has a claim, but is not cordoned yet",
    Step.DRAINING: "the node is cordoned, and its pods move away",
    Step.REBOOTING: "the node reboots and is not back in service yet",
    Step.SETTLING: "the node is back in service, and workloads recover",
}


def rows(plan: Plan, axis: Axis) -> str:
    """Legend, time line and rows, as HTML. The first claim has the first row."""
    by_node: dict[str, list[Visit]] = defaultdict(list)
    for visit in plan.timeline.visits:
        by_node[visit.node].append(visit)
    lines = "\n".join(_row(plan, axis, node, own) for node, own in by_node.items())
    return f'<div class="legend">{_legend(plan)}</div>\n<div class="rows">\n{_axis_row(plan, axis)}\n{lines}\n</div>'


def _legend(plan: Plan) -> str:
    taken = {span.step for visit in plan.timeline.visits for span in visit.spans}
    return "".join(
        f'<span><i class="{_css(step)}" style="background-color:{colour}"></i>{escape(step.value)}: '
        f"{escape(_MEANS[step])}</span>"
        for step, colour in _COLOURS.items()
        if step in taken
    )


def _axis_row(plan: Plan, axis: Axis) -> str:
    labels = "".join(_tick(tick) for tick in axis.ticks(plan.zone))
    return f'<div class="row axis"><span class="name dim">Node</span><div class="track">{labels}</div></div>'


def _tick(tick: Tick) -> str:
    """A label near the right edge stands left of its time, so that it fits on a phone."""
    css = f"tick{' minor' if tick.is_minor else ''}{' late' if tick.percent > 75 else ''}"
    return f'<span class="{css}" style="left:{tick.percent}%">{escape(tick.label)}</span>'


def _row(plan: Plan, axis: Axis, node: str, visits: Sequence[Visit]) -> str:
    bars = "".join(_bars(plan, axis, visit) for visit in visits)
    cuts = "".join(f'<span class="cut" style="left:{place}%"></span>' for place in axis.cuts)
    return f'<div class="row"><span class="name">{escape(node)}</span><div class="track">{cuts}{bars}</div></div>'


def _bars(plan: Plan, axis: Axis, visit: Visit) -> str:
    text = ""
    for span in visit.spans:
        left, right = axis.percent(span.start), axis.percent(span.end)
        title = (
            f"{visit.node}: {span.step.value} from {instant(plan, span.start)}, for "
            f"{duration(span.end - span.start)}{f' ({visit.undone})' if visit.undone else ''}"
        )
        text += (
            f'<span class="bar {_css(span.step)}" '
            f'style="left:{left}%;width:{round(right - left, 3)}%;background-color:{_COLOURS[span.step]}" '
            f'title="{escape(title)}" role="img" aria-label="{escape(title)}"></span>'
        )
    return text


def _css(step: Step) -> str:
    return step.value.replace(" ", "-")
