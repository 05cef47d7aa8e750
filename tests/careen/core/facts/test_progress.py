"""The record: an annotation of the Node in which careen stores the progress of a reboot. A record that is written and
read again is unchanged. An invalid record is refused with a reason."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from careen.core.facts.progress import (
    Announcement,
    Mark,
    OwnerHealth,
    Progress,
    UnreadableProgress,
    from_annotation,
    to_annotation,
)

counts = st.integers(0, 2**31 - 1)
marks = st.builds(Mark, boot=st.text(), uptime=st.floats(0, 1e9).map(lambda seconds: round(seconds, 3)))
announcements = st.builds(
    Announcement, boot=st.text(), uptime=marks.map(lambda mark: mark.uptime), by=st.text(), is_asked=st.booleans()
)
owners = st.builds(
    OwnerHealth,
    kind=st.text(),
    namespace=st.text(),
    name=st.text(),
    uid=st.text(),
    generation=st.integers(0, 2**63 - 1),
    replicas=counts,
    ready=counts,
)
by_type: dict[object, st.SearchStrategy[object]] = {
    str: st.text(),
    int: counts,
    bool: st.booleans(),
    Mark | None: st.none() | marks,
    Announcement | None: st.none() | announcements,
    Mapping[str, str | None]: st.dictionaries(st.text(), st.none() | st.text()),
    tuple[OwnerHealth, ...]: st.lists(owners, max_size=3).map(tuple),
    tuple[str, ...]: st.lists(st.text(), max_size=3).map(tuple),
}
records = st.builds(Progress, **{name: by_type[hint] for name, hint in get_type_hints(Progress).items()})


@given(records)
def test_a_progress_record_is_unchanged_after_writing_and_reading(progress: Progress) -> None:
    assert from_annotation(to_annotation(progress)) == progress


def test_a_progress_record_omits_default_values() -> None:
    assert json.loads(to_annotation(Progress(phase="Waiting"))) == {"version": 1, "phase": "Waiting"}


def test_a_missing_progress_annotation_is_read_as_an_empty_record() -> None:
    assert from_annotation(None) == Progress()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"version":2}', "version 2; this release reads versions up to 1"),
        ('{"version":"1"}', "version '1'"),
        ("{}", "not JSON that careen wrote"),
        ("[]", "not JSON that careen wrote"),
        ("", "not JSON that careen wrote"),
        ('{"version":1,"colour":"red"}', "is not a record of version 1"),
        ('{"version":1,"claim":7}', "is not a record of version 1"),
        ('{"version":1,"tries":true}', "is not a record of version 1"),
        ('{"version":1,"claimed":{"boot":"b"}}', "is not a record of version 1"),
        ('{"version":1,"owners":[["a"]]}', "is not a record of version 1"),
        ('{"version":1,"prior_labels":3}', "is not a record of version 1"),
        ('{"version":1,"prior_labels":{"a":3}}', "is not a record of version 1"),
        ('{"version":1,"tries":1.0}', "is not a record of version 1"),
        ('{"version":1,"tries":-1}', "is not a record of version 1"),
        ('{"version":1,"tries":2147483648}', "is not a record of version 1"),
        ('{"version":1,"claimed":{"boot":"b","uptime":true}}', "is not a record of version 1"),
        ('{"version":1,"claimed":{"boot":"b","uptime":1e11}}', "is not a record of version 1"),
        ('{"version":1,"announced":{"boot":"b","uptime":1,"asked":1}}', "is not a record of version 1"),
        ('{"version":1,"owners":[["Job","shop","web","u",1,1,1,"d","app=a",7,"n1"]]}', "is not a record of version 1"),
        ('{"version":1,"owners":3}', "is not a record of version 1"),
        ('{"version":true}', "version True"),
        ('{"version":1.0}', "version 1.0"),
    ],
)
def test_an_invalid_progress_record_is_refused_with_a_reason(text: str, words: str) -> None:
    found = from_annotation(text)
    assert isinstance(found, UnreadableProgress)
    assert words in found.why


def test_an_older_release_can_read_the_announcement_in_a_progress_record() -> None:
    """The field `announced` says that a reboot follows. An older release refuses a record with an unknown top-level
    field, but ignores unknown fields inside `announced`. New fields are therefore written inside `announced`."""
    text = to_annotation(Progress(announced=Announcement(boot="b", uptime=1.5, by="x", is_asked=True)))
    assert json.loads(text) == {"version": 1, "announced": {"boot": "b", "uptime": 1.5, "by": "x", "asked": True}}
    assert from_annotation('{"version":1,"announced":{"boot":"b","uptime":1.5}}') == Progress(
        announced=Announcement(boot="b", uptime=1.5)
    )
