"""Draws a small SVG without any library: milliseconds per pod over nodes, both axes logarithmic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

WIDTH, HEIGHT, MARGIN = 640, 400, 60
INKS = ("#b3441b", "#1b6ab3", "#3d8b37")
Line = Sequence[tuple[float, float]]


def plot(title: str, lines: Mapping[str, Line]) -> str:
    """One line for each name. Points are (nodes, milliseconds), all above zero."""
    xs = [x for line in lines.values() for x, _ in line]
    ys = [y for line in lines.values() for _, y in line]
    left, right = math.floor(math.log10(min(xs))), math.ceil(math.log10(max(xs)))
    low, high = math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)))

    def place(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - left) / max(1, right - left)
        up = (math.log10(y) - low) / max(1, high - low)
        return MARGIN + across * (WIDTH - 2 * MARGIN), HEIGHT - MARGIN - up * (HEIGHT - 2 * MARGIN)

    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
            'font-size="12">'
        ),
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{WIDTH / 2}" y="24" text-anchor="middle" font-size="14">{title}</text>',
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 14}" text-anchor="middle">nodes</text>',
        f'<text x="16" y="{MARGIN - 16}">ms a pod</text>',
    ]
    for power in range(left, right + 1):
        x, bottom = place(10.0**power, 10.0**low)
        parts += [
            f'<line x1="{x:.1f}" y1="{MARGIN}" x2="{x:.1f}" y2="{bottom:.1f}" stroke="#ddd"/>',
            f'<text x="{x:.1f}" y="{bottom + 18:.1f}" text-anchor="middle">{10**power:,}</text>',
        ]
    for power in range(low, high + 1):
        x, y = place(10.0**left, 10.0**power)
        parts += [
            f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{WIDTH - MARGIN}" y2="{y:.1f}" stroke="#ddd"/>',
            f'<text x="{x - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>',
        ]
    for ink, (name, line) in zip(INKS, lines.items(), strict=False):
        points = [place(x, y) for x, y in line]
        parts.append(
            f'<polyline fill="none" stroke="{ink}" stroke-width="2" '
            f'points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'
        )
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{ink}"/>' for x, y in points]
        parts.append(
            f'<text x="{points[-1][0] - 6:.1f}" y="{points[-1][1] - 8:.1f}" text-anchor="end" '
            f'fill="{ink}">{name}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])
