"""Tests that every mutant still applies to the source. This check is fast, so each test run finds outdated mutants.
`make mutants` runs the mutants.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from tests.mutants.catalogue import CATALOGUE
from tests.mutants.mutant import Mutant, NoLongerApplies, codes, unknown_names

PARTS = ("core/", "agent/apply.py", "agent/observe.py", "cluster/", "scheduler_core/queue/", "scheduler_core/running/")
SAMPLE = Mutant(
    "Releasing a claim removes all entries of the node",
    "core/lock/changes.py:remove",
    "(each.node == node and each.id == claim)",
    "(each.node == node)",
)


def test_every_mutant_applies_and_uses_only_known_names() -> None:
    wrong = []
    for mutant in CATALOGUE:
        try:
            before, after = codes(mutant)
        except NoLongerApplies as error:
            wrong.append(f"{mutant.name}: {error}")
            continue
        # The code replaces that of an existing function, so its closure must stay the same.
        assert before.co_freevars == after.co_freevars, mutant.name
        assert unknown_names(mutant) == set(), mutant.name
    assert wrong == [], "correct or remove these mutants in tests/mutants/catalogue"


def test_the_catalogue_has_enough_mutants_with_unique_names() -> None:
    assert [name for name, count in Counter(mutant.name for mutant in CATALOGUE).items() if count > 1] == []
    assert len(CATALOGUE) >= 150
    assert [mutant.at for mutant in CATALOGUE if not mutant.at.startswith(PARTS)] == []


def test_a_mutant_still_applies_to_a_reformatted_function() -> None:
    over_lines = replace(SAMPLE, old="(  each.node\n  ==  node and  # a comment\n each.id == claim,\n)")
    # `over_lines` has a comma after `claim`, but the function has no comma there.
    with pytest.raises(NoLongerApplies):
        codes(over_lines)
    assert codes(replace(SAMPLE, old="( each.node\n ==  node and  # a comment\n each.id == claim\n)"))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"at": "core/lock/content.py:gone"}, "there is no such function"),
        ({"at": "core/lock/gone.py:remove"}, "there is no such function"),
        ({"old": "each.id == claims"}, "0 times"),
        ({"old": "each"}, "4 times"),
        ({"new": "(each.node == "}, "not valid Python"),
        ({"new": "(each.node == node and (each.id == claim))"}, "does the same"),
    ],
)
def test_the_error_says_why_a_mutant_no_longer_applies(changes: dict[str, str], why: str) -> None:
    with pytest.raises(NoLongerApplies, match=why):
        codes(replace(SAMPLE, **changes))
