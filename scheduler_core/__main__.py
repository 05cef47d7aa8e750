"""The command line: `python -m scheduler_core judge`."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import TextIO

from scheduler_core import __version__

# Cases that a process receives at once: small cases are judged faster than they are passed one by one.
_CASES_AT_A_TIME = 8


def main(arguments: list[str] | None = None) -> int:
    """One case per line on standard input (a cluster and the pods to place, as JSON); one line of JSON with its
    decisions on standard output, in the same order. Exit code 2 if a line was not a valid case."""
    parser = argparse.ArgumentParser(
        prog="python -m scheduler_core", description="Makes kube-scheduler's decisions without a cluster."
    )
    parser.add_argument("--version", action="version", version=f"scheduler_core, version {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    judge = commands.add_parser("judge", help="reads one case per line and writes one line of decisions for each case")
    judge.add_argument(
        "--processes",
        type=int,
        default=os.cpu_count() or 1,
        help="number of Python processes (default: one per core)",
    )
    options = parser.parse_args(arguments)
    if options.processes < 1:
        parser.error("--processes must be at least 1")
    return _judge(sys.stdin, sys.stdout, options.processes)


def _judge(cases: TextIO, answers: TextIO, processes: int) -> int:
    worst = 0
    lines = (line for line in cases if line.strip())
    for number, (answer, problem) in enumerate(_answered(lines, processes), start=1):
        if problem:
            print(f"case {number}: {problem}", file=sys.stderr)
            worst = 2
        else:
            answers.write(answer + "\n")
    return worst


def _answered(lines: Iterator[str], processes: int) -> Iterator[tuple[str, str]]:
    if processes == 1:
        yield from map(answer_line, lines)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(answer_line, lines, chunksize=_CASES_AT_A_TIME)


def answer_line(line: str) -> tuple[str, str]:
    """The decisions as a line of JSON and "", or "" and the error."""
    from scheduler_core.config.fields import ConfigurationError
    from scheduler_core.judge.answer import judge
    from scheduler_core.judge.cases import CaseError, read_case, write_answers

    try:
        case = read_case(line)
        return write_answers(case.id, judge(case)), ""
    except (CaseError, ConfigurationError, ValueError) as trouble:
        return "", str(trouble)
    except Exception as failure:  # A bug in one case must not lose the answers to the others.
        return "", "internal error, please report it: " + "".join(traceback.format_exception(failure)[-2:]).strip()


if __name__ == "__main__":
    sys.exit(main())
