"""docs/peer-tables.md: counts by plugin, and every row that is not equal with its reason."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator

from tests.scheduler_core.peer_tables.results import Outcome, Row

_INTRO = """\
<!-- Written by `make docs` from tests/scheduler_core/peer_tables; edit that, not this page. -->
# kube-scheduler's own unit tests as questions

Every call that the unit tests of kube-scheduler's plugins make is recorded with its answer: the pod, the nodes, the
other objects, the plugin's arguments. scheduler_core gets the same questions; equal ones count once.
`tests/scheduler_core/peer_tables` has the calls of {recorded} (Apache-2.0, the test data of kubernetes/kubernetes), and
`make test` judges them.

```console
$ .venv/bin/python -m tests.scheduler_core.peer_tables
{summary}
```

Of {total:,} rows, **{equal:,} are equal** and {different} different.

* {impossible} are impossible: they have no form as API objects, or need what the library leaves out on purpose
  ([README](../scheduler_core/README.md)).
* {explained} are explained: the answers differ, but not because of a decision.
* {later} are equal to the library's answer for a later release, whose gate the row switches on.

PreFilter's Success and Skip count as equal.

The rows of *queue* are the calls of `scheduling_queue_test.go`: each has the whole queue before and after it, and what
hints and PreEnqueue plugins answered. Equal: the same pods with the same counters in the same part of the queue, the
same events kept for pods in flight, the same nominations, the same pod popped.
"""
_HEADINGS = {
    Outcome.DIFFERENT: "## Different",
    Outcome.LATER: "## Equal for a later release",
    Outcome.EXPLAINED: "## Explained",
    Outcome.IMPOSSIBLE: "## Impossible",
}


def page(found: Iterable[Row]) -> str:
    rows = list(found)
    counts = Counter(row.outcome for row in rows)
    intro = _INTRO.format(
        recorded="1.36.3",
        summary=summary(rows),
        total=len(rows),
        equal=counts[Outcome.EQUAL],
        different=counts[Outcome.DIFFERENT],
        impossible=counts[Outcome.IMPOSSIBLE],
        explained=counts[Outcome.EXPLAINED],
        later=counts[Outcome.LATER],
    )
    return "\n".join([intro, *_table(rows), *(line for each in _HEADINGS for line in _section(each, rows))])


def summary(rows: list[Row]) -> str:
    """One line with the number of rows by outcome."""
    counts = Counter(row.outcome for row in rows)
    return f"{len(rows):,} rows: " + ", ".join(f"{counts[outcome]:,} {outcome}" for outcome in Outcome)


def _table(rows: list[Row]) -> Iterator[str]:
    yield "| plugin | point | rows | " + " | ".join(Outcome) + " |"
    yield "|---|---|" + "--:|" * (len(Outcome) + 1)
    by_place: dict[tuple[str, str], Counter[Outcome]] = {}
    for row in rows:
        by_place.setdefault((row.question.plugin, row.question.kind), Counter())[row.outcome] += 1
    by_place = dict(sorted(by_place.items()))
    by_place["all", ""] = sum(by_place.values(), Counter())
    for (plugin, kind), counts in by_place.items():
        numbers = [counts.total(), *(counts[outcome] or "" for outcome in Outcome)]
        yield f"| {plugin} | {kind} | {' | '.join(map(str, numbers))} |"
    yield ""


def _section(outcome: Outcome, rows: list[Row]) -> Iterator[str]:
    """The rows by reason; names in a reason are left out, so that one reason has all its rows."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.outcome is outcome:
            reason = re.sub(r"'[^']*'|\"[^\"]*\"|\[[0-9]+\]", "…", row.why)
            by_reason.setdefault((f"{row.question.plugin} {row.question.kind}", reason), []).append(row.question.test)
    if not by_reason:
        return
    yield _HEADINGS[outcome]
    yield ""
    for (place, reason), tests in sorted(by_reason.items()):
        listed = ", ".join(f"{test} ({count})" if count > 1 else test for test, count in Counter(tests).items())
        text = f"* **{place}**: {reason}. {listed}"
        yield textwrap.fill(text, 150, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    yield ""
