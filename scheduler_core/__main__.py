"""The command line: `python -m scheduler_core judge` and `replay`."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from scheduler_core import __version__

# Cases that a process receives at once: small cases are judged faster than they are passed one by one.
_CASES_AT_A_TIME = 8


def main(arguments: list[str] | None = None) -> int:
    """judge: one case per line on standard input (a cluster and the pods to place, as JSON); one line of JSON with its
    decisions on standard output, in the same order. Exit code 2 if a line was not a valid case.

    replay: the commands, or the decisions, of a recorded scheduler. Exit code 2 if the record or a configuration cannot
    be used, 1 if this version commands something else than the one that wrote the record, or has no decision to show.
    """
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
    replay = commands.add_parser(
        "replay",
        help="prints what a recorded scheduler commanded, or how it decided",
        description="Prints the commands of a recorded scheduler, one line of JSON each, and compares them with the "
        "record.",
    )
    replay.add_argument("file", metavar="FILE", type=Path, help="the record")
    replay.add_argument(
        "--until", metavar="T", type=_time, help="stop after this time: seconds as in the record, or an RFC 3339 time"
    )
    replay.add_argument(
        "--at",
        metavar="POD",
        default="",
        help="print the decisions about this pod (namespace/name), no commands",
    )
    replay.add_argument(
        "--explain", action="store_true", help="with --at: print each node's verdict and scores of the last decision"
    )
    replay.add_argument(
        "--with-config",
        metavar="FILE",
        type=Path,
        help="print each decision beside the one of this KubeSchedulerConfiguration, about the same pod in the same "
        "cluster",
    )
    options = parser.parse_args(arguments)
    if options.command == "replay":
        if options.explain and not options.at:
            parser.error("--explain needs --at POD")
        return _replay(options)
    if options.processes < 1:
        parser.error("--processes must be at least 1")
    return _judge(sys.stdin, sys.stdout, options.processes)


class _Epoch(float):
    """Seconds since the epoch, not of the record's clock."""


def _time(text: str) -> float:
    from scheduler_core.model.manifests.fields import seconds

    try:
        return float(text)
    except ValueError:
        if not text.upper().endswith("Z") and text[-6:-5] not in ("+", "-"):
            raise ValueError("without a time zone, nobody knows when that was") from None
        return _Epoch(seconds(text, "--until") or 0)


def _replay(options: argparse.Namespace) -> int:
    from scheduler_core.config.fields import ConfigurationError
    from scheduler_core.running.record.lines import RecordError
    from scheduler_core.running.record.replay import DeviationError

    try:
        with options.file.open("rb") as record:
            _print_replay(record, options, sys.stdout.buffer)
    except (RecordError, ConfigurationError, ValueError, OSError) as trouble:
        print(f"replay {options.file}: {trouble}", file=sys.stderr)
        return 2
    except (DeviationError, LookupError) as trouble:
        print(f"replay {options.file}: {trouble}", file=sys.stderr)
        return 1
    return 0


def _print_replay(record: BinaryIO, options: argparse.Namespace, out: BinaryIO) -> None:
    from scheduler_core.running.record.replay import Replay
    from scheduler_core.running.record.report import Reporter

    config = None if options.with_config is None else _configuration(options.with_config)
    reporter = Reporter(pod=options.at, is_explained=options.explain, config=config)
    replay = Replay(record, on_attempt=reporter.see)
    until = options.until
    if isinstance(until, _Epoch):
        if replay.header.origin is None:
            raise ValueError("--until: the record does not say what time it was; use its own seconds")
        until = until - replay.header.origin
    out.writelines(reporter.lines(replay, until))
    out.flush()


def _configuration(path: Path) -> dict[str, Any]:
    """JSON, or YAML if PyYAML is installed. Raises ValueError."""
    import msgspec

    text = path.read_bytes()
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError:
        pass
    try:
        return msgspec.yaml.decode(text, type=dict[str, Any])
    except ImportError:
        raise ValueError(f"{path}: not JSON; to read YAML, install PyYAML") from None
    except msgspec.MsgspecError as trouble:
        raise ValueError(f"{path}: neither JSON nor YAML: {trouble}") from trouble


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
