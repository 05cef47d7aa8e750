"""What a person asks of a node, as it stands on the Node: understood, heard as a need, met, over."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from careen.core.facts import keys
from careen.core.facts.observation import NeedAnswer, Request, Unknown, Wish
from careen.core.facts.phases import Phase
from careen.core.facts.progress import Progress
from careen.core.gates.maintenance_window import is_waived
from careen.core.people.asked import Standing, heard, request_of, standing, to_annotation
from tests.careen.core.builders import BOOT, NO, NOW, UNKNOWN_NEED, YES, a_node, an_observation

WHOLE = Request(
    wish=Wish.REBOOT, reason="new kernel", at=NOW, until=NOW + timedelta(hours=1), boot="boot-1", is_now=True
)
KEEP = Request(wish=Wish.MAINTENANCE, reason="disk swap")


def asking(text: str | Request) -> Any:
    return a_node(annotations={keys.REQUEST: text if isinstance(text, str) else to_annotation(text)})


@pytest.mark.parametrize("request_", [WHOLE, KEEP, Request(wish=Wish.DRAIN), Request(wish=Wish.REBOOT, reason='ü…"')])
def test_what_is_written_is_read_again(request_: Request) -> None:
    assert request_of(asking(request_)) == request_


@pytest.mark.parametrize("word", ["reboot", "drain", "maintenance", " maintenance\n"])
def test_one_word_is_enough_for_whoever_writes_it_by_hand(word: str) -> None:
    assert request_of(asking(word)) == Request(wish=Wish(word.strip()))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "{}",
        "[]",
        "null",
        '{"want":7}',
        '{"want":["reboot"]}',
        '{"want":{}}',
        '{"want":"reboots"}',
        '{"want":"reboot"',
        "\x1b[31mreboot",
        "x" * 300000,
        '{"want":null,"boot":"b"}',
    ],
)
def test_nonsense_asks_for_nothing(text: str) -> None:
    assert request_of(asking(text)) is None
    assert heard(an_observation(asking(text), need=NO), asking(text), Progress()).need == NO


@pytest.mark.parametrize(
    "more",
    [
        {"until": "never"},
        {"until": 7},
        {"at": []},
        {"reason": None},
        {"reason": {"a": 1}},
        {"boot": None},
        {"now": "yes"},
    ],
)
def test_a_field_that_is_no_such_thing_is_taken_as_not_given_or_as_words(more: dict[str, Any]) -> None:
    import json

    found = request_of(asking(json.dumps({"want": "drain", **more})))
    assert found is not None
    assert (found.wish, found.until, found.at, found.is_now) == (Wish.DRAIN, None, None, False)


@pytest.mark.parametrize(
    ("request_", "boot", "becomes"),
    [
        (KEEP, BOOT, Standing.STANDS),
        (Request(wish=Wish.DRAIN, until=NOW), BOOT, Standing.OVER),
        (Request(wish=Wish.DRAIN, until=NOW + timedelta(seconds=1)), BOOT, Standing.STANDS),
        (Request(wish=Wish.REBOOT, boot=BOOT), BOOT, Standing.STANDS),
        (Request(wish=Wish.REBOOT, boot=BOOT), "boot-2", Standing.MET),
        (Request(wish=Wish.REBOOT, boot=BOOT), "", Standing.STANDS),
        (Request(wish=Wish.REBOOT), "boot-2", Standing.STANDS),
        (Request(wish=Wish.MAINTENANCE, boot=BOOT), "boot-2", Standing.STANDS),
        (Request(wish=Wish.REBOOT, boot=BOOT, until=NOW), "boot-2", Standing.OVER),
    ],
)
def test_a_request_stands_until_it_is_met_or_over(request_: Request, boot: str, becomes: Standing) -> None:
    assert standing(request_, now=NOW, boot=boot) is becomes


@pytest.mark.parametrize("need", [NO, YES, UNKNOWN_NEED])
@pytest.mark.parametrize("phase", ["", Phase.IDLE, Phase.WAITING, Phase.CLAIMING, Phase.DRAINING, Phase.MAINTENANCE])
def test_it_is_a_need_whatever_the_host_says(need: Any, phase: str) -> None:
    found = heard(an_observation(asking(KEEP), need=need), asking(KEEP), Progress(phase=phase)).need
    assert (found.answer, found.request) == (NeedAnswer.YES, KEEP)
    assert found.detail == "a person asked for maintenance: disk swap"


@pytest.mark.parametrize("phase", [Phase.REBOOTING, Phase.VERIFYING, Phase.SETTLING])
def test_once_a_reboot_is_under_way_only_the_host_says_whether_one_more_is_needed(phase: Phase) -> None:
    assert heard(an_observation(asking(KEEP), need=NO), asking(KEEP), Progress(phase=phase)).need == NO


def test_a_reboot_that_a_person_asked_for_is_a_need_until_the_host_boots() -> None:
    """Else an agent that restarts between announcing and asking would take it for called off."""
    node = asking(Request(wish=Wish.REBOOT))
    found = heard(an_observation(node, need=NO), node, Progress(phase=Phase.REBOOTING)).need
    assert found.answer is NeedAnswer.YES
    assert heard(an_observation(node, need=NO), node, Progress(phase=Phase.VERIFYING)).need == NO


def test_a_reboot_is_not_met_by_the_count_of_soft_reboots_alone() -> None:
    wish = Request(wish=Wish.REBOOT, boot="boot-1")
    assert standing(wish, now=NOW, boot="boot-1+soft-reboots=0") is Standing.STANDS
    assert standing(wish, now=NOW, boot="boot-2+soft-reboots=0") is Standing.MET


def test_a_loop_ends_by_the_hosts_word() -> None:
    looping = Progress(phase=Phase.FAILED, failed="reboot-loop")
    assert heard(an_observation(asking(KEEP), need=NO), asking(KEEP), looping).need == NO


def test_what_is_met_is_no_need_and_a_boot_id_that_cannot_be_read_meets_nothing() -> None:
    wish = asking(Request(wish=Wish.REBOOT, boot="boot-0"))
    assert heard(an_observation(wish, need=NO), wish, Progress()).need == NO
    unread = an_observation(wish, need=NO, boot_id=Unknown("no such file"))
    assert heard(unread, wish, Progress()).need.answer is NeedAnswer.YES


def test_a_package_manager_at_work_is_not_forgotten() -> None:
    from dataclasses import replace

    busy = replace(NO, package_manager="dpkg")
    assert heard(an_observation(asking(KEEP), need=busy), asking(KEEP), Progress()).need.package_manager == "dpkg"


@pytest.mark.parametrize(("request_", "waived"), [(WHOLE, True), (KEEP, False)])
def test_now_waives_what_reboot_now_waives(request_: Request, waived: bool) -> None:
    assert is_waived(asking(request_), NOW) is waived
