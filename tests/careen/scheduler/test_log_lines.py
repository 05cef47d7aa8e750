from __future__ import annotations

from datetime import UTC, datetime

from careen.scheduler.log_lines import log_line
from scheduler_core.running.commands import Note

AT = datetime(2026, 11, 27, 10, 0, 0, 250_000, tzinfo=UTC)


def test_a_line_has_kube_schedulers_words_and_fields() -> None:
    note = Note(
        verbosity=2, text="Successfully bound pod to node", pod="shop/web-1", node="n1", evaluated=3, feasible=2
    )
    assert log_line(note, AT) == (
        'I1127 10:00:00.250000 "Successfully bound pod to node" pod="shop/web-1" node="n1" evaluatedNodes=3 '
        "feasibleNodes=2"
    )


def test_a_message_of_a_plugin_cannot_forge_a_second_line() -> None:
    line = log_line(Note(verbosity=2, text="Unable to schedule pod", pod="a/b", why='no"\nI1127 forged'), AT)
    assert "\n" not in line
    assert r"\"" in line
    said = log_line(Note(verbosity=0, text='Switched off: plugin "P"', pod="a/b"), AT)
    assert said == r'E1127 10:00:00.250000 "Switched off: plugin \"P\"" pod="a/b"'
