"""Reads the calls that kube-scheduler's own unit tests made, and groups them into questions.

A file begins with a line `RECORDED TIME`. Then follows the output of test binaries with -test.v, whose plugins write
each call as a line `PEER {…}`.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

Call = dict[str, Any]

_RUN = re.compile(r"=== (?:RUN|NAME|CONT)\s+(\S+)")
# Only this PostFilter plugin is asked; the others are fakes of the tests.
_PREEMPTION = "DefaultPreemption"
_SINGLE = frozenset(
    {"Filter", "PreFilter", "Hint", "PostFilter", "SelectVictimsOnNode", "SelectCandidate", "schedulePod"}
)
# What a call has of the run of the test, and not of its question.
_OF_THE_RUN = frozenset({"instance", "recordedAt"})


class Question(NamedTuple):
    """One row of a test: one call, or all calls of Score and the last of NormalizeScore for a pod."""

    test: str
    plugin: str
    kind: str
    calls: tuple[Call, ...]


def questions(path: Path) -> Iterator[Question]:
    """Equal questions are one."""
    seen: set[str] = set()
    for question in _grouped(list(_calls(path))):
        first = {name: value for name, value in question.calls[0].items() if name not in _OF_THE_RUN}
        key = json.dumps(first, sort_keys=True)
        if key not in seen:
            seen.add(key)
            yield question


def _calls(path: Path) -> Iterator[Call]:
    test = recorded_at = ""
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith("PEER "):
                yield {**json.loads(line[5:]), "test": test, "recordedAt": recorded_at}
            elif line.startswith("RECORDED "):
                recorded_at = line.split()[1]
            elif match := _RUN.match(line):
                test = match[1]


def _grouped(calls: list[Call]) -> Iterator[Question]:
    scores: dict[tuple[Any, ...], list[Call]] = {}
    for call in calls:
        kind, plugin = call.get("kind"), call.get("pluginName", "")
        if "unwritable" in call or (kind == "PostFilter" and plugin != _PREEMPTION):
            continue
        if kind in _SINGLE:
            yield Question(call["test"], plugin or "scheduler", kind, (call,))
        elif kind in ("Score", "NormalizeScore"):
            key = (call["test"], plugin, call.get("instance"), json.dumps(call.get("pod")))
            scores.setdefault(key, []).append(call)
    for (test, plugin, *_), several in scores.items():
        raw = [call for call in several if call["kind"] == "Score"]
        normalized = [call for call in several if call["kind"] == "NormalizeScore"][-1:]
        if raw:
            yield Question(test, plugin, "Score", (*raw, *normalized))
