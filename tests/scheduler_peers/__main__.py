"""`python -m tests.scheduler_peers WORK CONTROLPLANE [PACKAGE[:PATTERN]]…`: runs kube-scheduler's integration tests
with `careen scheduler`, keeps what they said in results.jsonl, and writes docs/scheduler-peers.md again.

WORK gets the copy of the module, the programs and their logs. With packages, such as `filters` or
`filters:TestInterPodAffinity`, only these run; the results of the others stay.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.scheduler_peers.module import module_of
from tests.scheduler_peers.outcomes import Story, stories
from tests.scheduler_peers.page import PAGE, kept, page, store
from tests.scheduler_peers.run import RELEASE, SCHEDULER, Bench
from tests.scheduler_peers.stories import IN_GO, IN_PART, PACKAGES, listed, path_of


def main() -> None:
    work, controlplane = Path(sys.argv[1]).absolute(), Path(sys.argv[2])
    chosen = dict(_split(each) for each in sys.argv[3:]) or dict.fromkeys((*PACKAGES, *IN_GO), ".")
    module = module_of(RELEASE, work)
    bench = Bench(work, module, controlplane=controlplane)
    found: list[Story] = []
    for package, pattern in chosen.items():
        found += _told(bench, package, pattern)
    names = {(each.package, each.name.split("/")[0]) for each in found}
    others = [each for each in kept() if (each.package, each.name.split("/")[0]) not in names]
    store([*others, *found])
    PAGE.write_text(page(kept()), encoding="utf-8")
    failed = [each for each in found if each.outcome == "failed"]
    for each in failed:
        print(f"FAILED {each.package} {each.name}: {each.why} ({each.log})")
    passed = sum(each.outcome == "passed" for each in found)
    print(f"{len(found)} stories: {passed} passed, {len(failed)} failed")


def _told(bench: Bench, package: str, pattern: str) -> list[Story]:
    path = path_of(package)
    tests = listed(bench.module / path)
    if package in IN_GO:
        tests = dict.fromkeys(tests, IN_GO[package])
    wanted = {name: why for name, why in tests.items() if re.match(pattern, name)}
    found = [Story(package=package, name=name, outcome="impossible", why=why) for name, why in wanted.items() if why]
    asked = [name for name, why in wanted.items() if not why]
    if asked:
        print(f"{package}: {', '.join(asked)}", flush=True)
        out = bench.logs / f"{package.replace('/', '-')}.txt"
        options: tuple[str, ...] = ("-test.v", "-test.timeout=60m", f"-test.run=^({'|'.join(asked)})$")
        if package in IN_PART:
            left_out, listed_as, why = IN_PART[package]
            options += (f"-test.skip={left_out}",)
            found.append(Story(package=package, name=listed_as, outcome="impossible", why=why))
        bench.ran(path, bench.built(path), *options, out=out, scheduler=SCHEDULER)
        with out.open(encoding="utf-8", errors="replace") as lines:
            found += stories(package, lines)
    return found


def _split(word: str) -> tuple[str, str]:
    package, _, pattern = word.partition(":")
    return package, pattern or "."


if __name__ == "__main__":
    main()
