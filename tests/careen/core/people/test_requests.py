"""A person's request for a reboot, a drain or a maintenance, in an annotation of the Node. The tests show how careen
parses the request, when it makes a reboot necessary, and when it is fulfilled or expired."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from careen.core.actions import PostEvent
from careen.core.facts import keys
from careen.core.facts.observation import NeedAnswer, PersonRequest, RequestKind, Unknown
from careen.core.facts.phases import Phase
from careen.core.facts.progress import Progress
from careen.core.facts.reasons import Code
from careen.core.gates.maintenance_window import is_waived
from careen.core.people.requests import RequestState, as_need, request_of, state_of, to_annotation
from tests.careen.core.builders import BOOT, NO, NOW, UNKNOWN_NEED, YES, a_node, an_observation, decided, the_patch

WHOLE = PersonRequest(
    kind=RequestKind.REBOOT, reason="new kernel", at=NOW, until=NOW + timedelta(hours=1), boot="boot-1", is_now=True
)
KEEP = PersonRequest(kind=RequestKind.MAINTENANCE, reason="disk swap")


def asking(text: str | PersonRequest) -> Any:
    return a_node(annotations={keys.REQUEST: text if isinstance(text, str) else to_annotation(text)})


@pytest.mark.parametrize(
    "request_",
    [WHOLE, KEEP, PersonRequest(kind=RequestKind.DRAIN), PersonRequest(kind=RequestKind.REBOOT, reason='ü…"')],
)
def test_a_persons_request_is_unchanged_after_writing_and_reading(request_: PersonRequest) -> None:
    assert request_of(asking(request_)) == request_


@pytest.mark.parametrize("word", ["reboot", "drain", "maintenance", " maintenance\n"])
def test_a_persons_request_may_be_a_single_word(word: str) -> None:
    assert request_of(asking(word)) == PersonRequest(kind=RequestKind(word.strip()))


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
def test_an_invalid_request_of_a_person_is_ignored(text: str) -> None:
    assert request_of(asking(text)) is None
    assert as_need(an_observation(asking(text), need=NO), asking(text), Progress()).need == NO


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
def test_an_invalid_field_of_a_persons_request_is_ignored_or_read_as_text(more: dict[str, Any]) -> None:
    import json

    found = request_of(asking(json.dumps({"want": "drain", **more})))
    assert found is not None
    assert (found.kind, found.until, found.at, found.is_now) == (RequestKind.DRAIN, None, None, False)


@pytest.mark.parametrize(
    ("request_", "boot", "becomes"),
    [
        (KEEP, BOOT, RequestState.PENDING),
        (PersonRequest(kind=RequestKind.DRAIN, until=NOW), BOOT, RequestState.EXPIRED),
        (PersonRequest(kind=RequestKind.DRAIN, until=NOW + timedelta(seconds=1)), BOOT, RequestState.PENDING),
        (PersonRequest(kind=RequestKind.REBOOT, boot=BOOT), BOOT, RequestState.PENDING),
        (PersonRequest(kind=RequestKind.REBOOT, boot=BOOT), "boot-2", RequestState.MET),
        (PersonRequest(kind=RequestKind.REBOOT, boot=BOOT), "", RequestState.PENDING),
        (PersonRequest(kind=RequestKind.REBOOT), "boot-2", RequestState.PENDING),
        (PersonRequest(kind=RequestKind.MAINTENANCE, boot=BOOT), "boot-2", RequestState.PENDING),
        (PersonRequest(kind=RequestKind.REBOOT, boot=BOOT, until=NOW), "boot-2", RequestState.EXPIRED),
    ],
)
def test_a_persons_request_stays_valid_until_it_is_fulfilled_or_expires(
    request_: PersonRequest, boot: str, becomes: RequestState
) -> None:
    assert state_of(request_, now=NOW, boot=boot) is becomes


@pytest.mark.parametrize("need", [NO, YES, UNKNOWN_NEED])
@pytest.mark.parametrize("phase", ["", Phase.IDLE, Phase.WAITING, Phase.CLAIMING, Phase.DRAINING, Phase.MAINTENANCE])
def test_a_persons_request_is_a_reason_to_drain_the_node_whatever_the_host_reports(need: Any, phase: str) -> None:
    found = as_need(an_observation(asking(KEEP), need=need), asking(KEEP), Progress(phase=phase)).need
    assert (found.answer, found.request) == (NeedAnswer.YES, KEEP)
    assert found.detail == "a person asked for maintenance: disk swap"


@pytest.mark.parametrize("phase", [Phase.REBOOTING, Phase.VERIFYING, Phase.SETTLING])
def test_during_a_reboot_a_persons_request_causes_no_further_reboot(phase: Phase) -> None:
    assert as_need(an_observation(asking(KEEP), need=NO), asking(KEEP), Progress(phase=phase)).need == NO


def test_a_reboot_requested_by_a_person_stays_necessary_until_the_host_boots() -> None:
    """An agent may restart after it has announced the reboot and before it asks the host. The restarted agent must not
    treat the person's request as withdrawn."""
    node = asking(PersonRequest(kind=RequestKind.REBOOT))
    found = as_need(an_observation(node, need=NO), node, Progress(phase=Phase.REBOOTING)).need
    assert found.answer is NeedAnswer.YES
    assert as_need(an_observation(node, need=NO), node, Progress(phase=Phase.VERIFYING)).need == NO


def test_a_reboot_request_stays_valid_if_only_a_counter_is_appended_to_the_boot_id() -> None:
    """The request contains the boot id `boot-1`, as the kubelet reports it. With --reboot-proof=soft-reboots, the agent
    appends the number of soft reboots to the boot id. `boot-1+soft-reboots=0` is the same boot, so the request stays
    valid. `boot-2+soft-reboots=0` is a new boot, so the request is met."""
    wish = PersonRequest(kind=RequestKind.REBOOT, boot="boot-1")
    assert state_of(wish, now=NOW, boot="boot-1+soft-reboots=0") is RequestState.PENDING
    assert state_of(wish, now=NOW, boot="boot-2+soft-reboots=0") is RequestState.MET


def test_after_a_reboot_loop_a_persons_request_causes_no_further_reboot() -> None:
    looping = Progress(phase=Phase.FAILED, failed="reboot-loop")
    assert as_need(an_observation(asking(KEEP), need=NO), asking(KEEP), looping).need == NO


def test_only_a_readable_new_boot_id_fulfils_a_reboot_request() -> None:
    wish = asking(PersonRequest(kind=RequestKind.REBOOT, boot="boot-0"))
    assert as_need(an_observation(wish, need=NO), wish, Progress()).need == NO
    unread = an_observation(wish, need=NO, boot_id=Unknown("no such file"))
    assert as_need(unread, wish, Progress()).need.answer is NeedAnswer.YES


def test_a_running_package_manager_is_reported_despite_a_reboot_request() -> None:
    from dataclasses import replace

    busy = replace(NO, package_manager="dpkg")
    assert as_need(an_observation(asking(KEEP), need=busy), asking(KEEP), Progress()).need.package_manager == "dpkg"


@pytest.mark.parametrize(("request_", "waived"), [(WHOLE, True), (KEEP, False)])
def test_a_persons_request_with_now_set_to_true_waives_the_maintenance_window(
    request_: PersonRequest, waived: bool
) -> None:
    assert is_waived(asking(request_), NOW) is waived


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rebot", "does not understand rebot; it understands reboot, drain, maintenance"),
        ('{"want":"sleep"}', "does not understand {"),
        (" ", "does not understand an empty text"),
    ],
)
def test_a_request_that_cannot_be_understood_is_named_when_it_is_removed(text: str, said: str) -> None:
    decision = decided(node={"annotations": {keys.REQUEST: text}}, need=NO)
    assert said in decision.reason.sentence
    assert the_patch(decision).annotations[keys.REQUEST] is None


def test_an_event_warns_about_a_request_that_cannot_be_understood() -> None:
    decision = decided(node={"annotations": {keys.REQUEST: "rebot"}}, need=NO)
    (event,) = [action for action in decision.actions if isinstance(action, PostEvent)]
    assert (event.code, event.is_warning) == (Code.REQUEST_UNKNOWN, True)
    assert event.sentence == decision.reason.sentence
