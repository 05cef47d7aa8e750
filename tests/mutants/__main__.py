"""`python -m tests.mutants`: checks that at least one test fails for each mistake in the catalogue.

A mutant is the code with one of these mistakes. A test detects a mutant if the test fails. If no test can or
should detect a mutant, the catalogue gives the reason.

The exit code is 1 in three cases. First, no test detects a mutant, and the catalogue gives no reason. Second, a test
detects a mutant, although the catalogue gives a reason. Third, a mutant no longer applies to the source.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.mutants.catalogue import CATALOGUE
from tests.mutants.mutant import ROOT, Mutant, NoLongerApplies, codes
from tests.mutants.reach import LEFT_OUT, RECORD, TESTED_WITH, TESTS
from tests.mutants.report import table, verdict
from tests.mutants.runner import Limits, MutantRunner, Outcome

RESULTS = ROOT / "tests" / "mutants" / "results.md"


def main(arguments: Sequence[str] | None = None, catalogue: Sequence[Mutant] = CATALOGUE) -> int:
    given = _options(arguments)
    wanted = [mutant for mutant in catalogue if _is_wanted(mutant, given.only)]
    if given.list:
        print("\n".join(f"{mutant.at}  {mutant.name}" for mutant in wanted))
        return 0
    gone = {mutant: why for mutant in wanted if (why := _why_it_does_not_apply(mutant))}
    for mutant, why in gone.items():
        print(f"no longer applies: {mutant.name}: {why}", flush=True)
    made, outcomes, began = [mutant for mutant in wanted if mutant not in gone], {}, time.monotonic()

    def report(mutant: Mutant, outcome: Outcome) -> None:
        outcomes[mutant] = outcome
        print(f"[{len(outcomes)}/{len(made)}] {verdict(mutant, outcome)}", flush=True)

    limits = Limits(
        processes=given.processes,
        most_seconds=given.most_seconds,
        least_seconds=given.least_seconds,
        idle_seconds=given.idle_seconds,
    )
    runner = MutantRunner(made, limits, record=given.record, report=report)
    flags = ["-qq", "-s", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist"]
    tests = [str(TESTS / part) for part in given.tests or TESTED_WITH] + [
        f"--ignore={TESTS / part}" for part in LEFT_OUT
    ]
    code = pytest.main([*flags, "-m", "not cluster and not image", *tests], plugins=[runner])
    if len(outcomes) < len(made):
        print(f"the tests could not be run: pytest's exit code is {int(code)}", file=sys.stderr)
        return 2
    return _summed_up(outcomes, gone, time.monotonic() - began, is_whole=not (given.only or given.tests))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        help="run only mutants whose place or name contains this text; * is any text",
    )
    parser.add_argument(
        "--tests", action="append", help="run only these tests of tests/, for example careen/core/lock; repeatable"
    )
    parser.add_argument("--list", action="store_true", help="list the mutants and run nothing")
    parser.add_argument("--processes", type=int, default=Limits().processes)
    parser.add_argument("--most-seconds", type=float, default=Limits().most_seconds)
    parser.add_argument("--least-seconds", type=float, default=Limits().least_seconds)
    parser.add_argument("--idle-seconds", type=float, default=Limits().idle_seconds)
    parser.add_argument(
        "--record", type=Path, default=RECORD, help="the file that stores which tests reach which lines"
    )
    return parser.parse_args(arguments)


def _is_wanted(mutant: Mutant, patterns: list[str]) -> bool:
    text = f"{mutant.at} {mutant.name}"
    return not patterns or any(each in text or fnmatch.fnmatch(text, f"*{each}*") for each in patterns)


def _why_it_does_not_apply(mutant: Mutant) -> str:
    try:
        codes(mutant)
    except NoLongerApplies as error:
        return str(error)
    return ""


def _summed_up(outcomes: dict[Mutant, Outcome], gone: dict[Mutant, str], seconds: float, *, is_whole: bool) -> int:
    count = Counter((bool(outcome.killed_by), bool(mutant.survives)) for mutant, outcome in outcomes.items())
    killed = count[True, False] + count[True, True]
    print(
        f"Mutants killed by a test: {killed} of {len(outcomes)}, in {seconds:.0f} s.\n"
        f"Mutants that survive: {count[False, True]} with a reason in the catalogue, "
        f"{count[False, False]} without a reason.\n"
        f"Mutants killed despite a reason in the catalogue: {count[True, True]}. No longer apply: {len(gone)}."
    )
    for mutant, outcome in outcomes.items():
        if bool(outcome.killed_by) == bool(mutant.survives):
            print(f"  {verdict(mutant, outcome)}")
    is_well = not (count[False, False] or count[True, True] or gone)
    if is_whole and is_well:
        RESULTS.write_text(table(outcomes, seconds))
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
