"""Numbers, amounts and lists of names in sentences and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


def first_few(names: Sequence[str], most: int = 3, *, separator: str = ", ") -> str:
    """ "a, b, c and 4 more"; "" for an empty list."""
    shown = separator.join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def count_of(number: int, singular: str, plural: str | None = None) -> str:
    """`1 node` or `3 nodes`."""
    return f"{number} {singular if number == 1 else plural or singular + 's'}"


def none_available(nodes: int, reasons: Mapping[str, int]) -> str:
    """`0/3 nodes are available: 1 Insufficient cpu, 2 Too many pods.`, as kube-scheduler says it. `reasons`: why a node
    refuses the pod, with the number of such nodes."""
    return f"0/{nodes} nodes are available: {', '.join(sorted(f'{count} {why}' for why, count in reasons.items()))}."


def amounts(resources: Mapping[str, int]) -> str:
    """`cpu=500m memory=1Gi nvidia.com/gpu=2`: cpu in millis, all others in whole units."""
    return " ".join(f"{name}={_amount(name, amount)}" for name, amount in resources.items())


def _amount(name: str, amount: int) -> str:
    if name == "cpu":
        return f"{amount // 1000}" if amount % 1000 == 0 else f"{amount}m"
    if name in ("memory", "ephemeral-storage") or name.startswith("hugepages-"):
        for unit, size in (("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
            if amount and amount % size == 0:
                return f"{amount // size}{unit}"
    return str(amount)


_SHOWN_ROWS = 200  # more make a notebook slow


def html_table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """For `_repr_html_`: the first rows as a table, every text escaped, and how many rows are left out."""
    every = list(rows)
    lines = [_html_row("th", headers), *(_html_row("td", row) for row in every[:_SHOWN_ROWS])]
    left = f"<p>and {len(every) - _SHOWN_ROWS} more</p>" if len(every) > _SHOWN_ROWS else ""
    return f"<table>{''.join(lines)}</table>{left}"


def _html_row(tag: str, cells: Iterable[object]) -> str:
    from html import escape  # seldom needed, and not cheap to load

    return f"<tr>{''.join(f'<{tag}>{escape(str(each))}</{tag}>' for each in cells)}</tr>"
