"""kube-scheduler's integration tests with careen's scheduler: what is changed in their sources, and what their output
says. `make test-scheduler-peers` runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scheduler_peers.module import change, waiting
from tests.scheduler_peers.outcomes import stories
from tests.scheduler_peers.page import PAGE, kept, page
from tests.scheduler_peers.stories import listed

OUTPUT = """\
=== RUN   TestAffinity
EXTERNAL SCHEDULER log=1-1.log gates=
=== RUN   TestAffinity/fits
    util.go:12: I1127 10:00:00.000000] a line of the log
=== RUN   TestAffinity/fits_not
    filters_test.go:70: the pod was not scheduled
    filters_test.go:71: and one more
--- FAIL: TestAffinity (3.10s)
    --- PASS: TestAffinity/fits (1.00s)
    --- FAIL: TestAffinity/fits_not (2.00s)
=== RUN   TestPlugin
    util.go:630: IMPOSSIBLE: plugins in Go: token-filter
--- SKIP: TestPlugin (0.50s)
=== RUN   TestInformer
--- PASS: TestInformer (0.50s)
=== RUN   TestGate
EXTERNAL SCHEDULER log=1-2.log gates=GenericWorkload=true
EXTERNAL SCHEDULER failed: exit status 2
--- FAIL: TestGate (0.50s)
=== RUN   TestLater
    later_test.go:9: not on this system
--- SKIP: TestLater (0.00s)
=== RUN   TestEndless
EXTERNAL SCHEDULER log=1-3.log gates=
panic: test timed out after 1h0m0s
"""


def test_a_story_passes_only_if_the_program_scheduled_in_it() -> None:
    found = {each.name: (each.outcome, each.why) for each in stories("filters", OUTPUT.splitlines())}
    assert found == {
        "TestAffinity/fits": ("passed", ""),
        "TestAffinity/fits_not": ("failed", "the pod was not scheduled"),
        "TestPlugin": ("impossible", "plugins in Go: token-filter"),
        "TestInformer": ("impossible", "starts no scheduler"),
        "TestGate": ("failed", "the program ended: exit status 2"),
        "TestLater": ("skipped", "not on this system"),
        "TestEndless": ("failed", "panic: test timed out after 1h0m0s"),
    }


def test_a_story_has_the_log_and_the_feature_gates_of_the_program_of_its_test() -> None:
    found = {each.name: (each.log, each.gates) for each in stories("filters", OUTPUT.splitlines())}
    assert found["TestAffinity/fits"] == ("1-1.log", "")
    assert found["TestGate"] == ("1-2.log", "GenericWorkload=true")


TESTS = """package filters

func TestPlain(t *testing.T) {
	for _, tt := range tests {
		helper(t)
	}
}

func TestQueue(t *testing.T) {
	inside(t)
}

func TestShared(t *testing.T) {
	queueing.RunTest(t)
}

func TestMain(m *testing.M) {
}

func helper(t *testing.T) {
	testCtx.Scheduler.Run(ctx)
}

func inside(t *testing.T) {
	testCtx.Scheduler.ScheduleOne(ctx)
}
"""
PARENT = """package queueing

func RunTest(t *testing.T) {
	testutils.NextPodOrDie(t, testCtx)
}
"""


def test_a_test_that_drives_the_go_process_itself_is_impossible_also_through_a_helper(tmp_path: Path) -> None:
    package = tmp_path / "queueing" / "hints"
    package.mkdir(parents=True)
    (package / "hints_test.go").write_text(TESTS)
    (package.parent / "queue.go").write_text(PARENT)
    assert listed(package) == {
        "TestPlain": "",
        "TestQueue": "calls ScheduleOne of the Go process",
        "TestShared": "takes pods from the queue of the Go process",
    }


def test_a_test_waits_until_the_program_has_listed_everything() -> None:
    assert waiting("\tgo testCtx.Scheduler.Run(testCtx.Ctx)\n") == (
        "\tgo testCtx.Scheduler.Run(testCtx.Ctx)\n\ttestCtx.Scheduler.Started()\n"
    )
    assert waiting("\tgo controller.Run(ctx, 5)\n") == "\tgo controller.Run(ctx, 5)\n"


def test_a_release_whose_sources_have_changed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text("replace k8s.io/api => ./staging/src/k8s.io/api\n")
    scheduler = tmp_path / "pkg/scheduler/scheduler.go"
    scheduler.parent.mkdir(parents=True)
    scheduler.write_text("package scheduler\n")
    with pytest.raises(ValueError, match=r"scheduler\.go of this release has no"):
        change(tmp_path, "v0.36.3")
    assert (tmp_path / "go.mod").read_text() == "replace k8s.io/api => k8s.io/api v0.36.3\n"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(kept())
