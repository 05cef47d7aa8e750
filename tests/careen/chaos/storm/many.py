"""Plays many storms (random faults and events in a simulated fleet), in one process for each core, and prints a
report."""

from __future__ import annotations

import argparse
import contextlib
import logging
import multiprocessing
import os
import signal
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

from tests.careen.chaos.storm import report
from tests.careen.chaos.storm.draw import story_of
from tests.careen.chaos.storm.play import Outcome, Tally, play
from tests.careen.chaos.storm.shrink import shrink

_MOST_FAILURES = 5
"""The run stops after so many failed storms. Further failures add no information, and shortening each of them takes
time."""
_PROGRESS_SECONDS = 30.0
_ENOUGH_TO_MISS_NOTHING = 500
_STORMS_A_PROCESS = 200
"""After this many storms a new process takes over, because libraries never free some of their memory."""


def main() -> int:
    """Play the storms that the command line requests. Returns exit code 1 if a rule broke or if not all storms were
    played. In a run of hundreds of storms, also returns 1 if some kind of event never occurred."""
    asked = _arguments()
    _be_quiet()
    if asked.seed is not None:
        return _one(asked.seed)
    total, failed = _all(range(asked.first, asked.first + asked.seeds), asked.jobs)
    print(report.totals(total))
    for outcome in failed:
        print("\n" + report.failure(outcome, shrink(outcome)), flush=True)
    missed = list(report.never(total)) if total.storms >= _ENOUGH_TO_MISS_NOTHING else []
    if missed:
        print(f"never happened: {', '.join(missed)}")
    if total.storms < asked.seeds:
        print(f"only {total.storms} of {asked.seeds} storms were played")
    return 1 if failed or missed or total.storms < asked.seeds else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.careen.chaos.storm", description="Storms on virtual time; see CONTRIBUTING.md."
    )
    parser.add_argument("--seeds", type=int, default=500, help="number of storms")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="number of processes")
    parser.add_argument("--seed", type=int, help="play only the storm of this seed, and print its story")
    return parser.parse_args()


def _one(seed: int) -> int:
    outcome = play(story_of(seed))
    print(report.totals(outcome.tally))
    print(report.failure(outcome, shrink(outcome)) if outcome.broken else outcome.story.text())
    return 1 if outcome.broken else 0


def _all(seeds: range, jobs: int) -> tuple[Tally, list[Outcome]]:
    """Play the storms of these seeds. Return the sum of the storms' figures, and the outcomes of the storms that broke
    a rule. Stops early if `_MOST_FAILURES` storms broke a rule, or on SIGINT or SIGTERM."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    total, failed = Tally(), list[Outcome]()
    with contextlib.suppress(KeyboardInterrupt), _telling_of_dead_processes():
        for outcome in _with_progress(_outcomes(seeds, jobs), len(seeds)):
            total.add(outcome.tally)
            if outcome.broken:
                failed.append(outcome)
            if len(failed) >= _MOST_FAILURES:
                print(f"{_MOST_FAILURES} storms broke a rule, so no more storms are played", flush=True)
                break
    return total, failed


def _with_progress(outcomes: Iterator[Outcome], number: int) -> Iterator[Outcome]:
    """Yield each outcome unchanged. Print the number of finished storms about every 30 seconds, and the first broken
    rule of each storm that broke a rule."""
    printed_at = time.monotonic()
    for done, outcome in enumerate(outcomes, start=1):
        if outcome.broken:
            print(f"seed {outcome.story.seed}: {outcome.broken[0]}", flush=True)
        if time.monotonic() - printed_at > _PROGRESS_SECONDS:
            printed_at = time.monotonic()
            print(f"{done} of {number} storms", flush=True)
        yield outcome


@contextlib.contextmanager
def _telling_of_dead_processes() -> Iterator[None]:
    try:
        yield
    except BrokenProcessPool:
        print("a process died in the middle of a storm, so no more storms are played", flush=True)


def _outcomes(seeds: range, jobs: int) -> Iterator[Outcome]:
    """Yield the outcome of each storm as soon as the storm ends. Each batch of storms gets a new pool of processes,
    because CPython's `max_tasks_per_child` can hang (gh-115634)."""
    some = jobs * _STORMS_A_PROCESS
    for first in range(0, len(seeds), some):
        pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _begin)
        try:
            for future in as_completed([pool.submit(_play_seed, seed) for seed in seeds[first : first + some]]):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _play_seed(seed: int) -> Outcome:
    outcome = play(story_of(seed))
    # The outcome is sent to the main process, which needs a trace only of a storm that broke a rule.
    return outcome if outcome.broken else Outcome(story_of(seed), [], outcome.tally)


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that reports
    _be_quiet()


def _be_quiet() -> None:
    """Suppress the logs of the simulated agents, because the trace of a storm contains the same errors. Treat warnings
    as errors, as pytest does."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("error")
