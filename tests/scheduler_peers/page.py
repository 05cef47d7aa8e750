"""docs/scheduler-peers.md: how many stories of each test passed, and every story that did not, with its reason."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.scheduler_peers.explained import explained
from tests.scheduler_peers.outcomes import Story
from tests.scheduler_peers.run import RELEASE
from tests.scheduler_peers.stories import ROOT, VOLUMES

HERE: Final = Path(__file__).parent
PAGE: Final = HERE.parents[1] / "docs" / "scheduler-peers.md"
RESULTS: Final = HERE / "results.jsonl"
_OUTCOMES: Final = ("passed", "failed", "impossible", "skipped")
_INTRO: Final = f"""\
<!-- Written by `make docs` from tests/scheduler_peers; edit that, not this page. -->
# kube-scheduler's integration tests, scheduled by careen

```console
$ make test-scheduler-peers
{{summary}}
```

The tests are those of `{ROOT}` and `test/integration/{VOLUMES}` of Kubernetes {RELEASE}. Each starts an API server
and a scheduler, creates nodes and pods, and looks where the pods land. `make test-scheduler-peers` builds them from
the Go module in which `(*Scheduler).Run` is replaced: it starts `careen scheduler` with the test's profiles, against
the test's API server. A story is a test without subtests, or a subtest. `make test-scheduler-peers
PEERS=filters:TestInterPodAffinity` runs one test again. Packages that have only impossible tests are not built.

* *impossible*: no program outside the test can do it. The reason stands below.
* *skipped*: the test itself does not run here.
"""


def store(found: Iterable[Story]) -> None:
    rows = sorted((each.package, each.name, each.outcome, each.why, each.gates) for each in found)
    RESULTS.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def kept() -> list[Story]:
    if not RESULTS.exists():
        return []
    rows = [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]
    return [
        Story(package=package, name=name, outcome=outcome, why=why, gates=gates)
        for package, name, outcome, why, gates in rows
    ]


def summary(found: Sequence[Story]) -> str:
    counts = Counter(each.outcome for each in found)
    return f"{len(found)} stories: " + ", ".join(f"{counts[each]} {each}" for each in _OUTCOMES)


def page(found: Sequence[Story]) -> str:
    lines = [_INTRO.format(summary=summary(found)), *_table(found)]
    for outcome in ("failed", "impossible", "skipped"):
        lines += _section(outcome, found)
    return "\n".join(lines)


def _table(found: Sequence[Story]) -> Iterator[str]:
    yield "| package | test | stories | " + " | ".join(_OUTCOMES) + " |"
    yield "|---|---|" + "--:|" * (len(_OUTCOMES) + 1)
    by_test: dict[tuple[str, str], Counter[str]] = {}
    for each in found:
        by_test.setdefault((each.package, each.name.split("/")[0]), Counter())[each.outcome] += 1
    for (package, test), counts in [*sorted(by_test.items()), (("all", ""), Counter(each.outcome for each in found))]:
        numbers = [counts.total(), *(counts[outcome] or "" for outcome in _OUTCOMES)]
        yield f"| {package} | {test} | {' | '.join(map(str, numbers))} |"
    yield ""


def _section(outcome: str, found: Sequence[Story]) -> Iterator[str]:
    by_reason: dict[str, list[str]] = {}
    for each in found:
        if each.outcome == outcome:
            by_reason.setdefault(explained(each), []).append(each.name)
    if not by_reason:
        return
    yield f"## {outcome.capitalize()}"
    yield ""
    for reason, names in sorted(by_reason.items()):
        tests = Counter(each.split("/")[0] for each in names) if outcome == "impossible" else Counter(names)
        listed = ", ".join(f"`{test}` ({count})" if count > 1 else f"`{test}`" for test, count in tests.items())
        yield textwrap.fill(
            f"* {reason}: {listed}", 150, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
    yield ""


if __name__ == "__main__":
    PAGE.write_text(page(kept()), encoding="utf-8")
