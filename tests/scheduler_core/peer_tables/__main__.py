"""`python -m tests.scheduler_core.peer_tables` writes docs/peer-tables.md again and prints the counts and the rows
that differ without a known reason."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.scheduler_core.peer_tables.page import page, summary
from tests.scheduler_core.peer_tables.queue_rows import queue_rows
from tests.scheduler_core.peer_tables.results import Outcome, rows

PAGE = Path(__file__).resolve().parents[3] / "docs" / "peer-tables.md"


def main() -> None:
    """Exit code 1 if a row differs without a known reason."""
    judged = [*rows("1.36"), *queue_rows()]
    PAGE.write_text(page(judged), encoding="utf-8")
    print(summary(judged))
    unknown = [row for row in judged if row.outcome is Outcome.DIFFERENT and not row.why]
    for row in unknown:
        print(f"{row.question.test} {row.question.plugin} {row.question.kind}\n  {json.dumps(row.answers)}")
    sys.exit(bool(unknown))


if __name__ == "__main__":
    main()
