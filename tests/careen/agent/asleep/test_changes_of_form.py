"""The real agent with a tenth of a core: no probe fails because it changes its form. `make bench-changes` makes a
thousand changes."""

from __future__ import annotations

from bench.agent.changes import measure


def test_no_probe_fails_in_twenty_changes_of_form_with_a_tenth_of_a_core() -> None:
    found, how = measure(changes=20, agents=4, share=0.1)
    assert [each.failed for each in found] == [[]] * 4, how
    assert [each.number for each in found] == [5] * 4
    assert min(len(each.probes) for each in found) > 20
