"""What the output of a Go test program says about each of its stories."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from scheduler_core.values import Value

_TURN: Final = re.compile(r"^=== (?:RUN|NAME|CONT)\s+(.+)$")
_END: Final = re.compile(r"^\s*--- (PASS|FAIL|SKIP): (.+) \(([0-9.]+)s\)$")
_TOLD: Final = re.compile(r"^\s+(\w+\.go:\d+: .*)$")
_LOG: Final = re.compile(r"^\w+\.go:\d+: [IWE]\d{4} ")
_STARTED: Final = re.compile(r"^EXTERNAL SCHEDULER log=(\S+) gates=(.*)$")
_FAILED: Final = "EXTERNAL SCHEDULER failed: "
_IMPOSSIBLE: Final = "IMPOSSIBLE: "


class Story(Value, kw_only=True):
    """A test without subtests, or a subtest of one. `why`: what the test said first, if it did not pass."""

    package: str
    name: str
    outcome: str
    """passed, failed, impossible, or skipped: the test does not want to run here."""
    why: str = ""
    gates: str = ""
    """Feature gates of the test that are not as in the release."""
    log: str = ""
    """Of the program."""


def stories(package: str, lines: Iterable[str]) -> list[Story]:
    """Of a program that ran with -test.v."""
    return list(_judged(package, list(lines)))


def _judged(package: str, lines: list[str]) -> Iterator[Story]:
    told: dict[str, list[str]] = {}
    started: dict[str, tuple[str, str]] = {}
    ended: dict[str, str] = {}
    now = ""
    for line in map(str.rstrip, lines):
        if match := _TURN.match(line):
            now = match[1]
            told.setdefault(now, [])
        elif match := _END.match(line):
            ended[match[2]] = match[1]
        elif match := _STARTED.match(line):
            started[now] = (match[1], match[2])
        elif line.startswith(_FAILED):
            told.setdefault(now, []).append(f"the program ended: {line.removeprefix(_FAILED)}")
        elif line.startswith("panic: "):
            told.setdefault(now, []).append(line)
        elif (match := _TOLD.match(line)) and not _LOG.match(match[1]):
            told.setdefault(now, []).append(match[1])
    for name, said in told.items():
        if not any(other.startswith(f"{name}/") for other in told):
            yield _story(package, name, ended=ended.get(name, ""), told=said, started=started)


def _story(package: str, name: str, *, ended: str, told: list[str], started: dict[str, tuple[str, str]]) -> Story:
    log, gates = next((started[each] for each in _with_parents(name) if each in started), ("", ""))
    said = [re.sub(r"^\w+\.go:\d+: ", "", each) for each in told]
    impossible = next((each.removeprefix(_IMPOSSIBLE) for each in said if each.startswith(_IMPOSSIBLE)), "")
    first = next(iter(said), "")
    if impossible:
        outcome, first = "impossible", impossible
    elif ended == "PASS":
        outcome, first = ("passed", "") if log else ("impossible", "starts no scheduler")
    elif ended == "SKIP":
        outcome = "skipped"
    else:
        outcome, first = "failed", first or "did not end"
    return Story(package=package, name=name, outcome=outcome, why=first, gates=gates, log=log)


def _with_parents(name: str) -> Iterator[str]:
    parts = name.split("/")
    for length in range(len(parts), 0, -1):
        yield "/".join(parts[:length])
