"""Compares roll-outs of several agents over the same clusters: tables, a plot, and whether differences are
significant. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean, median

WIDTH, HEIGHT, MARGIN = 340, 250, 46
SEEDS_APART = 6  # points of equal height would hide each other
INKS = ("#1b6ab3", "#b3441b", "#3d8b37", "#8a5aa8", "#7a6a2f", "#444444")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One roll-out of the cluster of `seed`. `agent` is the program on every node, for example kured, or careen
    without the soft taint. Times are in seconds."""

    agent: str
    seed: int
    asking: int  # how many nodes need a reboot
    finished: bool
    pods: int
    moves: int
    floor: int | None  # the least possible number of moves; None if some nodes need no reboot
    repeat: int
    pending: float
    unscheduled: float
    tainted: int  # nodes that carried the soft taint before their cordon
    lead: tuple[float, float, float] | None  # of those nodes: least, median, greatest; None when there was none
    wall: float
    requests: int
    most_down: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A row of the table; `of` gives its value for one roll-out."""

    name: str
    of: Callable[[Run], float | None]
    digits: int = 0


FIGURES = (
    Figure(name="pods moved", of=lambda run: run.moves),
    Figure(
        name="additional pod moves, compared with the least possible number",
        of=lambda run: None if run.floor is None else run.moves - run.floor,
    ),
    Figure(name="repeat moves (a pod moves again)", of=lambda run: run.repeat),
    Figure(name="pending time of all pods, s", of=lambda run: run.pending),
    Figure(name="unscheduled time of all pods, s", of=lambda run: run.unscheduled, digits=1),
    Figure(name="nodes tainted before their cordon", of=lambda run: run.tainted),
    Figure(
        name="lead time (taint to cordon), s: median of the nodes", of=lambda run: run.lead[1] if run.lead else None
    ),
    Figure(name="most nodes down at once", of=lambda run: run.most_down),
    Figure(name="wall, s", of=lambda run: run.wall),
    Figure(name="API requests", of=lambda run: run.requests),
)
PANELS = (
    Figure(name="pods moved", of=lambda run: run.moves),
    Figure(name="repeat moves", of=lambda run: run.repeat),
    Figure(name="pending time in seconds", of=lambda run: run.pending),
    Figure(name="lead time in seconds", of=lambda run: run.lead[1] if run.lead else None),
)


def tables(runs: Sequence[Run], agents: Mapping[str, str], nodes: int) -> str:
    """Markdown with one section for each number of nodes that need a reboot, out of `nodes`. `agents` maps agents to
    the headings of their columns, in order."""
    parts = []
    for asking in scenarios(runs):
        title = f"All {nodes} nodes reboot" if asking == nodes else f"{asking} of the {nodes} nodes reboot"
        parts.append(f"### {title}\n\n{_tables([run for run in runs if run.asking == asking], agents)}")
    return "\n\n".join(parts)


def scenarios(runs: Sequence[Run]) -> list[int]:
    """The different values of `asking`, the largest first."""
    return sorted({run.asking for run in runs}, reverse=True)


def _tables(runs: Sequence[Run], agents: Mapping[str, str]) -> str:
    """A table of all figures, one of the repeat moves (a pod is moved a second time) by seed, and the comparisons.
    Without agents that have no runs, and figures that have no values."""
    shown = {key: heading for key, heading in agents.items() if any(run.agent == key for run in runs)}
    seeds = sorted({run.seed for run in runs})
    rows = [["least / median / greatest", *shown.values()]]
    had = [figure for figure in FIGURES if any(figure.of(run) is not None for run in runs)]
    rows += [[figure.name, *(_spread(figure, _of(runs, key)) for key in shown)] for figure in had]
    by_seed = [["repeat moves (a pod moves again), by seed", *shown.values()]]
    by_seed += [[str(seed), *(_one(runs, key, seed) for key in shown)] for seed in seeds]
    return "\n".join([*_markdown(rows), "", *_markdown(by_seed), "", *comparisons(runs, shown)])


def comparisons(runs: Sequence[Run], agents: Mapping[str, str]) -> list[str]:
    """One line for each agent after the first, compared with the first seed by seed."""
    first, *others = agents
    return [_compared(runs, first, other, agents) for other in others]


def _compared(runs: Sequence[Run], one: str, other: str, agents: Mapping[str, str]) -> str:
    pairs = differences(runs, one, other)
    by_seed = ", ".join(f"{pair:+d}" for pair in pairs)
    return (
        f'* Repeat moves of "{agents[one]}" minus repeat moves of "{agents[other]}", for each seed: {by_seed}; on '
        f"average {fmean(pairs):+.1f}. If the two agents were equally good, chance alone would give such an average in "
        f"{chance_of(pairs):.0%} of cases."
    )


def differences(runs: Sequence[Run], one: str, other: str) -> list[int]:
    """For each seed that both agents have run, the repeat moves of `one` minus those of `other`."""
    repeat = {(run.agent, run.seed): run.repeat for run in runs}
    seeds = sorted({run.seed for run in runs})
    return [
        repeat[one, seed] - repeat[other, seed] for seed in seeds if (one, seed) in repeat and (other, seed) in repeat
    ]


def chance_of(pairs: Sequence[int]) -> float:
    """The probability that random signs alone give a mean at least as far from zero. Exact: every combination of signs
    counts.

    With n pairs it is never below 2 / 2**n, so five pairs cannot show less than 6 %.
    """
    seen = abs(sum(pairs))
    drawn = [
        abs(sum(sign * pair for sign, pair in zip(signs, pairs, strict=True)))
        for signs in product((1, -1), repeat=len(pairs))
    ]
    return sum(each >= seen for each in drawn) / len(drawn)


def plot(runs: Sequence[Run], agents: Mapping[str, str]) -> str:
    """An SVG with a row per figure and a panel per number of nodes that need a reboot. A panel has a column per
    agent, a line per seed and a bar at the median. Axes begin at zero and agree within a row."""
    shown = {key: heading for key, heading in agents.items() if any(run.agent == key for run in runs)}
    seeds, asked = sorted({run.seed for run in runs}), scenarios(runs)
    width, height = len(asked) * WIDTH, len(PANELS) * HEIGHT + 30
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
            'font-size="11">'
        ),
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for row, figure in enumerate(PANELS):
        top = _round_up(max((value for run in runs if (value := figure.of(run)) is not None), default=1.0))
        for column, asking in enumerate(asked):
            parts.append(f'<g transform="translate({column * WIDTH},{row * HEIGHT})">')
            some = [run for run in runs if run.asking == asking]
            parts += [
                *_panel(figure, f"{figure.name} ({asking} nodes reboot)", some, agents=shown, seeds=seeds, top=top),
                "</g>",
            ]
    for place, seed in enumerate(seeds):
        x = MARGIN + place * 60
        parts.append(
            f'<circle cx="{x}" cy="{height - 18}" r="4" fill="{_ink(place)}"/><text x="{x + 8}" '
            f'y="{height - 14}">seed {seed}</text>'
        )
    parts.append(f'<text x="{MARGIN + len(seeds) * 60}" y="{height - 14}">bar: median</text>')
    return "\n".join([*parts, "</svg>", ""])


def _panel(
    figure: Figure, title: str, runs: Sequence[Run], *, agents: Mapping[str, str], seeds: Sequence[int], top: float
) -> list[str]:
    values = {(run.agent, run.seed): value for run in runs if (value := figure.of(run)) is not None}

    def place(column: int, value: float, number: float = (len(seeds) - 1) / 2) -> tuple[float, float]:
        across = (column + 0.5) / len(agents)
        aside = (number - (len(seeds) - 1) / 2) * SEEDS_APART
        return MARGIN + across * (WIDTH - 1.5 * MARGIN) + aside, HEIGHT - MARGIN - value / top * (HEIGHT - 1.8 * MARGIN)

    parts = [f'<text x="{MARGIN}" y="22" font-size="13">{title}</text>']
    for step in range(5):
        _, y = place(0, top * step / 4)
        parts.append(f'<line x1="{MARGIN}" y1="{y:.1f}" x2="{WIDTH - MARGIN / 2}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{MARGIN - 6}" y="{y + 4:.1f}" text-anchor="end">{top * step / 4:g}</text>')
    for number, seed in enumerate(seeds):
        points = [
            place(column, values[key, seed], number) for column, key in enumerate(agents) if (key, seed) in values
        ]
        parts.append(
            f'<polyline fill="none" stroke="{_ink(number)}" stroke-opacity="0.35" '
            f'points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'
        )
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{_ink(number)}"/>' for x, y in points]
    for column, (key, heading) in enumerate(agents.items()):
        x, _ = place(column, 0)
        for line, words in enumerate(heading.split(", ")):
            parts.append(
                f'<text x="{x:.1f}" y="{HEIGHT - MARGIN + 16 + 13 * line}" text-anchor="middle">{words}</text>'
            )
        mine = [value for (agent, _), value in values.items() if agent == key]
        if not mine:
            parts.append(f'<text x="{x:.1f}" y="{HEIGHT - MARGIN - 6}" text-anchor="middle" fill="#777">none</text>')
            continue
        _, y = place(column, median(mine))
        parts.append(
            f'<line x1="{x - 18:.1f}" y1="{y:.1f}" x2="{x + 18:.1f}" y2="{y:.1f}" stroke="black" stroke-width="2"/>'
        )
    return parts


def _round_up(value: float) -> float:
    """To a multiple of 4 up to 40, of 40 up to 400, and so on, so that a quarter of the axis is a round number: 13
    becomes 16, 105 becomes 120."""
    step = 4
    while step * 10 < value:
        step *= 10
    return next(step * times for times in range(1, 12) if step * times >= value)


def _ink(number: int) -> str:
    return INKS[number % len(INKS)]


def _of(runs: Sequence[Run], agent: str) -> list[Run]:
    return [run for run in runs if run.agent == agent]


def _one(runs: Sequence[Run], agent: str, seed: int) -> str:
    return next((str(run.repeat) for run in _of(runs, agent) if run.seed == seed), "–")


def _spread(figure: Figure, runs: Sequence[Run]) -> str:
    values = [value for run in runs if (value := figure.of(run)) is not None]
    if not values:
        return "–"
    return " / ".join(f"{value:,.{figure.digits}f}" for value in (min(values), median(values), max(values)))


def _markdown(rows: Sequence[Sequence[str]]) -> list[str]:
    head, *rest = (f"| {' | '.join(row)} |" for row in rows)
    return [head, f"|{'---|' * len(rows[0])}", *rest]
