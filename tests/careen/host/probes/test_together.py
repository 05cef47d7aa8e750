"""Tests the combined result of several probes, with a table of all pairs of results."""

from __future__ import annotations

from itertools import product

import pytest

from careen.core.facts.observation import Need, NeedAnswer
from careen.host.probes.said import a_few, together

YES, NO, UNKNOWN = NeedAnswer.YES, NeedAnswer.NO, NeedAnswer.UNKNOWN


@pytest.mark.parametrize(("first", "second"), list(product(NeedAnswer, NeedAnswer)))
def test_the_host_needs_a_reboot_if_any_probe_says_yes(first: NeedAnswer, second: NeedAnswer) -> None:
    pair = {first, second}
    expected = YES if YES in pair else UNKNOWN if UNKNOWN in pair else NO
    assert together([Need(answer=first), Need(answer=second)]).answer is expected


def test_if_one_probe_says_yes_the_reason_also_lists_the_probes_with_unknown_results() -> None:
    said = together(
        [
            Need(answer=YES, detail="probe a says yes"),
            Need(answer=UNKNOWN, detail="probe b hangs"),
            Need(answer=NO, detail="c"),
        ]
    )
    assert said.detail == "probe a says yes; besides, probe b hangs"


def test_the_combined_result_of_a_single_probe_is_the_probes_result() -> None:
    for answer in NeedAnswer:
        need = Need(answer=answer, detail="x", package_manager="dpkg")
        assert together([need]) == need


def test_without_probes_the_need_for_a_reboot_is_unknown() -> None:
    assert together([]).answer is UNKNOWN


def test_the_combined_result_names_a_running_package_manager_that_only_one_probe_found() -> None:
    assert together([Need(answer=YES), Need(answer=NO, package_manager="rpm")]).package_manager == "rpm"


def test_a_long_list_of_packages_is_cut_and_the_remaining_packages_are_counted() -> None:
    assert a_few(["a", "b"]) == "a, b"
    assert a_few(list("abcdefg")) == "a, b, c, d, e and 2 more"
