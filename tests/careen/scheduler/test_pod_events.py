"""Equal Events become one series."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from careen.scheduler.pod_events import SERIES_SECONDS, PodEvents
from careen.scheduler.wire.lanes import HttpCall
from scheduler_core.running.commands import PostPodEvent

AT = datetime(2026, 11, 27, 10, tzinfo=UTC)


def an_event(note: str = "0/3 nodes are available") -> PostPodEvent:
    return PostPodEvent(
        pod="shop/web-1",
        uid="u1",
        profile="careen-scheduler",
        is_warning=True,
        reason="FailedScheduling",
        action="Scheduling",
        note=note,
    )


def body(call: HttpCall) -> Any:
    assert call.body is not None
    return json.loads(call.body)


def test_the_first_event_is_created() -> None:
    call = PodEvents("s1").call(an_event(), 0.0, AT)
    assert (call.method, call.path) == ("POST", "/apis/events.k8s.io/v1/namespaces/shop/events")
    assert (body(call)["type"], body(call)["reportingController"]) == ("Warning", "careen-scheduler")
    assert body(call)["regarding"]["uid"] == "u1"


def test_an_equal_event_counts_up_the_series_of_the_first() -> None:
    events = PodEvents("s1")
    name = body(events.call(an_event(), 0.0, AT))["metadata"]["name"]
    for count in (2, 3):
        call = events.call(an_event(), float(count), AT)
        assert (call.method, call.path.rsplit("/", 1)[1]) == ("PATCH", name)
        assert body(call)["series"]["count"] == count


def test_another_text_or_a_late_one_is_a_new_event_with_another_name() -> None:
    events = PodEvents("s1")
    names = {
        body(events.call(event, now, AT))["metadata"]["name"]
        for event, now in ((an_event(), 0.0), (an_event("other"), 1.0), (an_event(), SERIES_SECONDS + 1.0))
    }
    assert len(names) == 3


def test_a_long_note_is_cut_to_what_the_api_accepts() -> None:
    note = body(PodEvents("s1").call(an_event("x" * 5000), 0.0, AT))["note"]
    assert (len(note), note[-4:]) == (1024, " ...")
