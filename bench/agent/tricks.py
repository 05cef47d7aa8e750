"""Measures what each trick of `cluster/wire/lean_imports.py` saves. Runs the agent's imports with all tricks, then with
one trick switched off at a time.

    python -m bench.agent.tricks [--times 5]

For each case, the bench starts several processes that only do the agent's imports. It reports their median private
memory and their least processor time. The savings of single tricks do not add up: if two tricks leave out the same
module, the module is loaded only when the two tricks are off.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.agent.__main__ import memory_of
from careen.cluster.wire.lean_imports import TRICKS

RESULTS = Path(__file__).with_name("tricks.md")
# As `careen agent` does, with a pause at the end in which the memory is read.
IMPORTS = """
import sys, time
import careen.cli
from careen.cluster.wire import lean_imports
lean_imports.switched_off.update(sys.argv[1:])
with lean_imports.lean_start():
    import careen.cli.agent
lean_imports.load_lean_client()
lean_imports.load_lean_metrics()
with lean_imports.without_collections():
    import careen.agent.startup.wiring
    from careen.cluster.wire.client import user_agent
user_agent("agent")
lean_imports.load_lean_kopf()
print(time.process_time(), flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True)
class AgentCost:
    """One process after its imports."""

    private_kib: float
    seconds: float


def cost_without(*tricks: str, times: int) -> AgentCost:
    """The median memory and the least time of several processes that import without these tricks. Other work on the
    machine only adds time, hence the least."""
    found = [_measure(*tricks) for _ in range(times)]
    return AgentCost(statistics.median(each.private_kib for each in found), min(each.seconds for each in found))


def _measure(*tricks: str) -> AgentCost:
    # Different string hashes give dictionaries of different sizes.
    process = subprocess.Popen(
        [sys.executable, "-c", IMPORTS, *tricks],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )
    with process:
        assert process.stdout is not None
        said = process.stdout.readline()
        if not said:
            raise SystemExit(f"the imports failed with these tricks switched off: {', '.join(tricks) or 'none'}")
        cost = AgentCost(memory_of(process.pid).private * 1024, float(said))
        process.communicate()
    return cost


def rows(times: int) -> Iterator[str]:
    """One line of the table per trick, as soon as it is measured."""
    _measure()  # writes the bytecode that is missing
    lean, whole = cost_without(times=times), cost_without(*TRICKS, times=times)
    yield "| trick that is switched off | private memory, KiB | processor time, ms | what the trick does |"
    yield "|---|---|---|---|"
    yield f"| nothing | {lean.private_kib:.0f} | {1000 * lean.seconds:.0f} | |"
    yield _row("everything", lean, whole, "")
    for name, what in TRICKS.items():
        yield _row(f"`{name}`", lean, cost_without(name, times=times), what)


def _row(name: str, lean: AgentCost, cost: AgentCost, what: str) -> str:
    more, longer = cost.private_kib - lean.private_kib, 1000 * (cost.seconds - lean.seconds)
    return f"| {name} | {more:+.0f} | {longer:+.0f} | {what} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=5)
    arguments = parser.parse_args()
    head = f"""# What each trick of the agent's imports saves

`make bench-tricks`, Python {platform.python_version()}: the median memory and the least time of
{arguments.times} processes. [results.md](results.md) has the memory that the agent still needs. The tricks are in
`operator/careen/cluster/wire/lean_imports.py`. Tricks overlap: a module that two tricks leave out is loaded only if
both tricks are switched off."""
    lines = [head, ""]
    for line in rows(arguments.times):
        print(line, flush=True)
        lines.append(line)
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
