"""Plays every citizen's story and prints the table: `make zoo`."""

from __future__ import annotations

import argparse
import logging

from tests.careen.chaos.citizens.stories import STORIES
from tests.careen.chaos.citizens.story import CitizenStory

_HEAD = ("citizen", "drains", "reboots", "evictions", "forecast", "longest unready", "verdict")


def main() -> int:
    """Exit code 1 if a story does not end as docs/operators.md says."""
    parser = argparse.ArgumentParser(prog="python -m tests.careen.chaos.citizens", description=__doc__)
    parser.add_argument("names", nargs="*", help="stories; none means all")
    names = parser.parse_args().names
    logging.disable(logging.CRITICAL)
    rows, wrong = [_HEAD], list[str]()
    for story in STORIES:
        if not names or story.name in names:
            row, found = _row(story)
            rows.append(row)
            more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
            wrong += [f"{story.name}: {found[0]}{more}"] if found else []
    widths = [max(len(row[index]) for row in rows) for index in range(len(_HEAD))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    print("\n".join(["", *wrong]) if wrong else "")
    return 1 if wrong else 0


def _row(story: CitizenStory) -> tuple[tuple[str, ...], list[str]]:
    played = story.play()
    figures, wrong = played.figures, story.verdict(played)
    seconds, app = figures.unready
    cells = (
        str(figures.drains.total()),
        str(figures.reboots.total()),
        str(figures.evictions),
        str(figures.forecast),
        f"{seconds:.0f} s ({app})",
        "as documented" if not wrong else "DIFFERS",
    )
    return (story.name, *cells), wrong


if __name__ == "__main__":
    raise SystemExit(main())
