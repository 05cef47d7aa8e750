"""A large roll-out as one picture: over time, how many nodes of each zone are done and how many pods move. SVG inside
the page; it loads nothing."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo

from careen.core.facts.times import duration
from careen.report.page.axis import Axis
from careen.report.page.markup import escape
from scheduler_core.sentences import count_of
from scheduler_core.simulation.timeline import Timeline

FROM_NODES = 50
"""From this number of nodes on, the page begins with the picture, and a click shows the rows of single nodes."""

MOST_ZONES = 8  # a reader cannot distinguish more stripes; the smallest zones become "others"
BINS = 60
_WIDTH, _DONE, _MOVES, _GAP = 1000, 200, 80, 34
_COLOURS = ("#2563eb", "#d97706", "#16a34a", "#9333ea", "#0891b2", "#be123c", "#65a30d", "#475569")


def overview(timeline: Timeline, axis: Axis, zone_of: Mapping[str, str], clock: tzinfo) -> str:
    """The picture and its legend, as HTML. `zone_of` is "" for a node without a zone."""
    zones = _zones(timeline, zone_of)
    done = _done_by_zone(timeline, zones)
    moves = _moves_by_bin(timeline, axis)
    height = _DONE + _GAP + _MOVES + _GAP
    rebooted = count_of(len(timeline.reboots), "rebooted node")
    title = f"the roll-out over time, with {rebooted} and {count_of(len(timeline.moves), 'pod move')}"
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(title)}">',
        *_areas(done, axis, total=max(1, len(timeline.nodes))),
        *_bars(moves),
        *_closings(timeline, axis),
        *_ticks(axis, clock, height),
        _text(4, 14, f"rebooted nodes (of {len(timeline.nodes)})"),
        _text(
            4, _DONE + _GAP - 6, f"pod moves (at most {max(moves, default=0)} within {duration(axis.length / BINS)})"
        ),
        "</svg>",
    ]
    return f'{_legend(done)}\n<div class="whole">{"".join(parts)}</div>'


def _zones(timeline: Timeline, zone_of: Mapping[str, str]) -> dict[str, str]:
    """The stripe of each node, the coloured area of its zone: "no zone" without one, "others" for the smallest of more
    than `MOST_ZONES` zones, and only "nodes" if all are in one zone."""
    sizes = Counter(zone_of.get(node, "") for node in timeline.nodes)
    if len(sizes) == 1:
        return dict.fromkeys(timeline.nodes, "nodes")
    ranked = sorted(sizes, key=lambda zone: (-sizes[zone], zone))
    kept = set(ranked if len(ranked) <= MOST_ZONES else ranked[: MOST_ZONES - 1])
    return {
        node: (zone_of.get(node, "") or "no zone") if zone_of.get(node, "") in kept else "others"
        for node in timeline.nodes
    }


def _done_by_zone(timeline: Timeline, zones: Mapping[str, str]) -> dict[str, list[datetime]]:
    """When one more node of each stripe is done."""
    found: dict[str, list[datetime]] = defaultdict(list)
    for visit in timeline.reboots:
        found[zones.get(visit.node, "nodes")].append(visit.end)
    return {zone: sorted(found[zone]) for zone in sorted(found)}


def _moves_by_bin(timeline: Timeline, axis: Axis) -> list[int]:
    counts = [0] * BINS
    for move in timeline.moves:
        counts[min(BINS - 1, int(axis.percent(move.at) * BINS / 100))] += 1
    return counts


def _areas(done: Mapping[str, Sequence[datetime]], axis: Axis, *, total: int) -> list[str]:
    """Stripes one on top of another; each grows by a step when a node is done."""
    instants = sorted({at for ends in done.values() for at in ends})
    below = [0] * len(instants)
    areas = []
    for colour, (zone, ends) in zip(_COLOURS, done.items(), strict=False):
        above = [count + bisect_right(ends, at) for count, at in zip(below, instants, strict=True)]
        upper = _stair(instants, above, axis, total)
        lower = _stair(instants, below, axis, total)
        points = " ".join([*upper, *reversed(lower)])
        areas.append(f'<polygon points="{points}" fill="{colour}"><title>{escape(zone)}</title></polygon>')
        below = above
    return areas


def _stair(instants: Sequence[datetime], counts: Sequence[int], axis: Axis, total: int) -> list[str]:
    points, before = [f"0,{_DONE}"], float(_DONE)
    for at, count in zip(instants, counts, strict=True):
        x, y = round(axis.percent(at) * _WIDTH / 100, 1), round(_DONE * (1 - count / total), 1)
        points += [f"{x},{before}", f"{x},{y}"]
        before = y
    return [*points, f"{_WIDTH},{before}"]


def _bars(counts: Sequence[int]) -> list[str]:
    most, width, foot = max(max(counts, default=0), 1), _WIDTH / BINS, _DONE + _GAP + _MOVES
    return [
        f'<rect x="{round(place * width + 1, 1)}" y="{round(foot - _MOVES * count / most, 1)}" '
        f'width="{round(width - 2, 1)}" height="{round(_MOVES * count / most, 1)}" class="moving">'
        f"<title>{count_of(count, 'pod move')}</title></rect>"
        for place, count in enumerate(counts)
        if count
    ]


def _closings(timeline: Timeline, axis: Axis) -> list[str]:
    """A dotted line where a window ends before all nodes are done."""
    places = [(axis.percent(closing.at) * _WIDTH / 100, closing.left) for closing in timeline.closings]
    return [
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{_DONE + _GAP + _MOVES}" class="closing">'
        f"<title>the window ends with {count_of(left, 'node')} still to reboot</title></line>"
        for x, left in places
    ]


def _ticks(axis: Axis, clock: tzinfo, height: int) -> list[str]:
    drawn = []
    for tick in axis.ticks(clock):
        x = tick.percent * _WIDTH / 100
        drawn.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height - 18}" class="grid"/>')
        drawn.append(_text(x - 4 if tick.percent > 75 else x + 4, height - 6, tick.label, at_end=tick.percent > 75))
    return drawn


def _text(x: float, y: float, words: str, *, at_end: bool = False) -> str:
    anchor = ' text-anchor="end"' if at_end else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{anchor}>{escape(words)}</text>'


def _legend(done: Mapping[str, Sequence[datetime]]) -> str:
    entries = "".join(
        f'<span><i style="background-color:{colour}"></i>{escape(zone)}: {count_of(len(ends), "node")}</span>'
        for colour, (zone, ends) in zip(_COLOURS, done.items(), strict=False)
    )
    return f'<div class="legend">{entries}</div>'
