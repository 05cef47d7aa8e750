"""`python -m tests.scheduler_core.peer_tables` writes docs/peer-tables.md again and prints the counts and the rows
that differ without a known reason."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.scheduler_core.peer_tables.page import page, summary
from tests.scheduler_core.peer_tables.queue_rows import queue_rows
from tests.scheduler_core.peer_tables.results import RECORDINGS, Outcome, Row, rows

PAGE = Path(__file__).resolve().parents[3] / "docs" / "peer-tables.md"


def judged() -> dict[str, list[Row]]:
    """The rows by release."""
    return {version: [*rows(version), *queue_rows(version)] for version in RECORDINGS}


def main() -> None:
    """Exit code 1 if a row differs without a known reason."""
    found = judged()
    PAGE.write_text(page(found), encoding="utf-8")
    print("\n".join(summary(found)))
    unknown = [row for each in found.values() for row in each if row.outcome is Outcome.DIFFERENT and not row.why]
    for row in unknown:
        print(f"{row.question.test} {row.question.plugin} {row.question.kind}\n  {json.dumps(row.answers)}")
    sys.exit(bool(unknown))


if __name__ == "__main__":
    main()
