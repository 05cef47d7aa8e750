"""docs/peer-tables.md: counts by plugin, and every row that is not equal with its reason."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping

from tests.oracle.releases import RELEASES
from tests.scheduler_core.peer_tables.results import Outcome, Row

_INTRO = """\
<!-- Written by `make docs` from tests/scheduler_core/peer_tables; edit that, not this page. -->
# kube-scheduler's own unit tests as questions

Every call that the unit tests of kube-scheduler's plugins make is recorded with its answer: the pod, the nodes, the
other objects, the plugin's arguments. scheduler_core gets the same questions; equal ones count once.
`tests/scheduler_core/peer_tables` has the calls of {recorded} (Apache-2.0, the test data of kubernetes/kubernetes), and
`make test` judges them. `make peer-tables KUBE=1.37` records a release's calls again: it instruments a copy of its Go
module, and runs the unit tests of plugins, preemption, whole cycles and the queue.

```console
$ .venv/bin/python -m tests.scheduler_core.peer_tables
{summary}
```

* *impossible*: the row has no form as API objects, or needs what the library leaves out on purpose
  ([README](../scheduler_core/README.md)).
* *explained*: the answers differ, but not because of a decision.
* *a later gate*: equal to the library's answer for a later release, whose gate the row switches on.

PreFilter's Success and Skip count as equal.

The rows of *queue* are the calls of `scheduling_queue_test.go`: each has the whole queue before and after it, and what
hints and PreEnqueue plugins answered. Equal: the same pods with the same counters in the same part of the queue, the
same events kept for pods in flight, the same nominations, the same pod popped.

*schedulePod* is a whole cycle. For a pod that fits, equal means that kube-scheduler's node is one of the best and that
as many nodes fit; else the same verdicts and the same sentence. Cycles whose profile has a fake plugin with a state of
its own (`Fake…`), and clusters of more than 20 kB, are not recorded.
"""
_HEADINGS = {
    Outcome.DIFFERENT: "### Different",
    Outcome.LATER: "### Equal for a later release",
    Outcome.EXPLAINED: "### Explained",
    Outcome.IMPOSSIBLE: "### Impossible",
}


def page(by_release: Mapping[str, list[Row]]) -> str:
    recorded = " and ".join(RELEASES[version] for version in by_release)
    lines = [_INTRO.format(recorded=recorded, summary="\n".join(summary(by_release)))]
    for version, rows in by_release.items():
        lines += [f"## {RELEASES[version]}", "", *_table(rows)]
        lines += [line for each in _HEADINGS for line in _section(each, rows)]
    return "\n".join(lines)


def summary(by_release: Mapping[str, list[Row]]) -> list[str]:
    """One line for each release with the number of rows by outcome."""
    return [f"{RELEASES[version]}: {_counted(rows)}" for version, rows in by_release.items()]


def _counted(rows: list[Row]) -> str:
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
