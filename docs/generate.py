"""Writes the pages that are drawn from the code: phases.md and reasons.md. `make docs` runs it; a test holds them fresh."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from careen.core.phases import MOVES, PHASES, Phase
from careen.core.reasons import REASONS, Code, event_reason

DOCS = Path(__file__).resolve().parent
NOTE = "<!-- Written by `make docs` from {source}; edit that file, not this one. -->\n"

# The way of a node that meets no obstacle, for the picture; every other move is in the table below it.
ROAD = (Phase.IDLE, Phase.WAITING, Phase.CLAIMING, Phase.DRAINING, Phase.REBOOTING, Phase.VERIFYING, Phase.SETTLING, Phase.IDLE)


def phases_page() -> str:
    """The phases, a picture of the moves between them, and the reason of each move."""
    lines = [
        NOTE.format(source="operator/careen/core/phases.py"),
        "# A node's way",
        "",
        "A phase says what has already happened. It stands on the Node as the annotation `careen.dev/phase`.",
        "",
        "| phase | has already happened | looked at in every turn |",
        "|---|---|---|",
        *(f"| {row.phase} | {row.has_happened} | {', '.join(sorted(row.evidence))} |" for row in PHASES),
        "",
        "```mermaid",
        "stateDiagram-v2",
        f"    [*] --> {Phase.IDLE}",
        *(f"    {before} --> {after}" for before, after in MOVES),
        "```",
        "",
        "Without obstacles: " + " → ".join(ROAD) + ".",
        "",
        "| from | to | why |",
        "|---|---|---|",
        *(f"| {before} | {after} | {why} |" for (before, after), why in MOVES.items()),
    ]
    return "\n".join(lines) + "\n"


def reasons_page() -> str:
    """Every reason code: what it means and what would change it."""
    lines = [
        NOTE.format(source="operator/careen/core/reasons.py"),
        "# Why is my node not rebooting?",
        "",
        "`careen why NODE` answers for one node, in one command: every gate that refuses, since when, and what would",
        "change it. This page explains each code. Codes stand in annotations, logs and metrics; Events carry them in the",
        "form of the second column. **!** marks what deserves a person's attention.",
        "",
        "| code | Event | what it means | what to do |",
        "|---|---|---|---|",
        *(_reason_row(code) for code in Code),
    ]
    return "\n".join(lines) + "\n"


def _reason_row(code: Code) -> str:
    text = REASONS[code]
    return f"| `{code}`{' **!**' if text.is_warning else ''} | {event_reason(code)} | {text.meaning} | {text.remedy} |"


PAGES: dict[str, Callable[[], str]] = {"phases.md": phases_page, "reasons.md": reasons_page}


def main() -> None:
    """Writes every page."""
    for name, page in PAGES.items():
        (DOCS / name).write_text(page())


if __name__ == "__main__":
    main()
