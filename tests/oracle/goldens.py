"""Writes tests/goldens: cases that together reach every plugin and every reason, with the results of the oracle (a
program with kube-scheduler's own code).

The cases are generated from a seed. Of the 4,000 small cases, the first 260 are kept. A later small case is kept only
if one of its features occurs in fewer than four of the cases kept before. All large cases (more than 100 nodes) and all
pointed cases (about one topic each) are kept.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.oracle import configurations, judges, quantities
from tests.oracle.casegen.cases import case, large_case
from tests.oracle.casegen.pointed import pointed_case

PLAIN = 260  # small cases at the beginning, which are all kept
CANDIDATES = 4000  # searched for rare features
WANTED = 4  # cases that should have each feature
CONFIGURATIONS = 1200
LARGE = (101, 150, 400, 1000, 2500)
POINTED = 144  # nine of each topic


def main() -> None:
    """Generates cases, runs the oracle, chooses cases and writes them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=2026)
    options = parser.parse_args()
    cases = [case(options.seed, number) for number in range(CANDIDATES)]
    answers = judges.ask((options.oracle, "judge"), cases)
    chosen = _chosen(cases, answers)
    large = [large_case(options.seed, number, size) for number, size in enumerate(LARGE)]
    pointed = [pointed_case(options.seed, number) for number in range(POINTED)]
    options.out.mkdir(parents=True, exist_ok=True)
    for name, some in (("small", chosen), ("large", large), ("pointed", pointed)):
        replies = answers if name == "small" else judges.ask((options.oracle, "judge"), some)
        _write(options.out / f"{name}.jsonl.gz", some)
        _write(
            options.out / f"{name}-answers.jsonl.gz", [{"id": one["id"], "answers": replies[one["id"]]} for one in some]
        )
        print(f"{name}: {len(some)} cases, {sum(len(one['pods']) for one in some)} decisions")
    written = configurations.configurations(options.seed, CONFIGURATIONS)
    _write(
        options.out / "configurations.jsonl.gz",
        zip(written, configurations.read_by(options.oracle, written), strict=True),
    )
    _write(options.out / "quantities.jsonl.gz", quantities.read_by(options.oracle))


def _chosen(cases: list[dict[str, Any]], answers: dict[str, Any]) -> list[dict[str, Any]]:
    seen: collections.Counter[str] = collections.Counter()
    chosen = []
    for number, one in enumerate(cases):
        traits = set(traits_of(one, answers[one["id"]]))
        if number < PLAIN or any(seen[trait] < WANTED for trait in traits):
            seen.update(traits)
            chosen.append(one)
    return chosen


def traits_of(one: dict[str, Any], answers: dict[str, Any]) -> Iterator[str]:
    """Returns the features of a case: the refusals (by plugin, code and text), the plugins that gave scores, and the
    arguments that are set."""
    for answer in answers.values():
        for field in ("preenqueue", "prefilter"):
            if field in answer:
                yield from _refusals(field, answer[field])
        for verdict in answer.get("nodes", {}).values():
            yield from _refusals("filter", verdict)
        for score in answer.get("scores", {}).values():
            yield from (f"score {plugin}" for plugin, points in score["plugins"].items() if points)
        after = re.search(r"\. ((no new|still not|deallocation|preemption:).*|not found)$", answer.get("fit_error", ""))
        if after:
            yield "sentence " + re.sub(r"\d+ ", "", after.group(1))[:40]
        if answer.get("preemptions"):
            outcomes = "one possible outcome" if len(answer["preemptions"]) == 1 else "several possible outcomes"
            yield f"preemption with {outcomes}"
        if "error" in answer:
            yield "error " + re.sub(r'"[^"]*"|\S*/\S*|\d+', "…", answer["error"])[:60]
    yield from _configured(one)


def _configured(one: dict[str, Any]) -> Iterator[str]:
    for profile in one.get("config", {}).get("profiles", []):
        for entry in profile.get("pluginConfig", []):
            yield from (
                f"argument {entry['name']}.{argument}"
                for argument in entry["args"]
                if argument not in ("apiVersion", "kind")
            )
        yield from (f"plugins {point}.{what}" for point, sets in profile.get("plugins", {}).items() for what in sets)


def _refusals(point: str, verdict: dict[str, Any]) -> Iterator[str]:
    for reason in verdict.get("reasons", []):
        yield f"{point} {verdict.get('plugin')} {verdict['code']} {generic(reason)}"


def generic(reason: str) -> str:
    """Replaces the names of objects in the reason by "…"."""
    reason = re.sub(r'"[^"]*"', '"…"', reason)
    return re.sub(r"\b(default|shop|ops|nowhere)/\S+|\bnew\d\S*|\[.*\]", "…", reason)


def _write(path: Path, lines: Iterable[Any]) -> None:
    text = "".join(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


if __name__ == "__main__":
    main()
