"""Formats the results of the mutants: one line for each mutant, and the Markdown page `results.md`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.mutants.mutant import LIBRARY, Mutant
from tests.mutants.runner import Outcome


def verdict(mutant: Mutant, outcome: Outcome) -> str:
    """Return one line about one mutant: whether it was killed, in which time, and by which test."""
    title = f"{mutant.at}  {mutant.name}"
    if outcome.killed_by:
        word = "KILLED, although the catalogue expects no test to fail," if mutant.survives else "killed"
        return f"{word} in {outcome.seconds:.1f} s: {title}  by {outcome.killed_by}"
    word = "survives, as expected," if mutant.survives else "SURVIVES"
    return f"{word} {outcome.tests_run} of {outcome.tests_reaching} tests, {outcome.seconds:.1f} s: {title}"


def table(outcomes: Mapping[Mutant, Outcome], seconds: float) -> str:
    """Return the results of all mutants as a Markdown page."""
    survivors = [mutant for mutant, outcome in outcomes.items() if not outcome.killed_by]
    parts = sorted({_part(mutant) for mutant in outcomes})
    rows = [
        f"| `{part}` | {sum(_part(each) == part for each in outcomes)} "
        f"| {sum(_part(each) == part for each in outcomes if outcomes[each].killed_by)} |"
        for part in parts
    ]
    reasons = [f"* `{mutant.at}`: {mutant.name}. {mutant.survives}" for mutant in survivors]
    return "\n".join(
        [
            "# How many mistakes the tests find",
            "",
            "Written by `make mutants`. A mutant is the code with one mistake that a person could make.",
            "Example: careen releases a claim without comparing the claim's id. A mutant is *killed* if a test fails.",
            "The names of the mutants are in `tests/mutants/catalogue/`.",
            "",
            _count(outcomes, survivors, seconds),
            "",
            "| part | mutants | killed |",
            "|---|---|---|",
            *rows,
            "",
            *(["The mutants that survive, and why:", "", *reasons, ""] if reasons else []),
        ]
    )


def _count(outcomes: Mapping[Mutant, Outcome], survivors: Sequence[Mutant], seconds: float) -> str:
    return (
        f"Mutants killed by a test: {len(outcomes) - len(survivors)} of {len(outcomes)}. Mutants that survive with "
        f"a reason in the catalogue: {len(survivors)}. The run took {seconds:.0f} s with two processes."
    )


def _part(mutant: Mutant) -> str:
    return (
        mutant.at.partition(":")[0].rpartition("/")[0]
        if mutant.at.startswith(("core/", "cluster/", LIBRARY))
        else (mutant.at.partition(":")[0])
    )
