from __future__ import annotations

from careen.core.cleanup.values import CleanupMark, LockKind
from careen.core.node.marks import Kind
from careen.report.cleanup_report import Cleaned, Cleanup, cleanup_json, cleanup_text

TAINT = CleanupMark(kind=Kind.TAINT, name="careen.dev/reboot", now="PreferNoSchedule", afterwards="removed")
FORECAST = CleanupMark(kind=Kind.ANNOTATION, name="careen.dev/forecast", now="x" * 5_000, afterwards="removed")
KUREDS = CleanupMark(kind=LockKind.CLAIM, name="n1", because="the claim is kured's; --kured removes it")
LOCK = "DaemonSet careen/careen"


def a_cleanup(*nodes: Cleaned, lock: Cleaned | None = None, is_applied: bool = False, refused: str = "") -> Cleanup:
    return Cleanup(nodes=nodes, lock=lock or Cleaned(name=LOCK), is_applied=is_applied, refused=refused)


def test_careen_cleanup_prints_removed_and_kept_marks_in_separate_tables() -> None:
    text = cleanup_text(
        a_cleanup(Cleaned(name="n1", goes=(TAINT,)), lock=Cleaned(name=LOCK, stays=(KUREDS,))), width=None
    )
    assert [line.split() for line in text.splitlines() if line] == [
        ["ON", "WHAT", "NAME", "NOW", "AFTERWARDS"],
        ["n1", "taint", "careen.dev/reboot", "PreferNoSchedule", "removed"],
        ["ON", "WHAT", "NAME", "NOW", "STAYS", "BECAUSE"],
        [*LOCK.split(), "claim", "n1", "-", "the", "claim", "is", "kured's;", "--kured", "removes", "it"],
        [
            "This",
            "was",
            "a",
            "dry",
            "run:",
            *["careen", "cleanup", "--yes", "would", "remove", "1", "mark", "from", "1", "Node."],
        ],
    ]


def test_a_long_annotation_is_cut_in_the_table_and_complete_in_json() -> None:
    cleanup = a_cleanup(Cleaned(name="n1", goes=(FORECAST,)))
    assert max(map(len, cleanup_text(cleanup, width=None).splitlines())) < 200
    assert cleanup_json(cleanup)["nodes"][0]["goes"][0]["now"] == FORECAST.now


def test_the_last_line_of_cleanup_reports_the_result() -> None:
    done, bad = Cleaned(name="n1", goes=(TAINT,), is_done=True), Cleaned(name="n2", goes=(TAINT,), trouble="denied")
    last = {
        name: cleanup_text(cleanup, width=None).splitlines()[-1]
        for name, cleanup in {
            "nothing": a_cleanup(),
            "refused": a_cleanup(done, refused="n3 is rebooting"),
            "done": a_cleanup(done, lock=Cleaned(name=LOCK, goes=(KUREDS,), is_done=True), is_applied=True),
            "in part": a_cleanup(done, bad, is_applied=True),
        }.items()
    }
    assert last == {
        "nothing": "There are no marks of careen to remove.",
        "refused": "careen cleanup changed nothing: n3 is rebooting",
        "done": "careen cleanup removed 2 marks from 1 Node and the lock.",
        "in part": "careen cleanup removed 1 mark from 1 Node. 1 object could not be cleaned: n2.",
    }
