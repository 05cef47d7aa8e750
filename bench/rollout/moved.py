"""Measures how often pods move in roll-outs by careen and by kured, each with and without the soft taint: `make
bench-moved`.

All agents reboot the same generated clusters, one cluster for each seed. Each roll-out has its own control plane.
careen's roll-outs run two at a time: one seed with the taint, and the same seed without it. kured's roll-outs run five
at a time, because kured waits for a minute after each boot. The results are kept in bench/rollout/moved.json, a row for
each roll-out; `--draw` writes the tables and the plot of docs/less-moved.md again from this file.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.rollout.comparison import Run, plot, tables
from bench.rollout.sample import NODES, sample

HERE = Path(__file__).parent
RESULTS = HERE / "moved.json"
PAGE = HERE.parents[1] / "docs" / "less-moved.md"
PLOT = PAGE.with_suffix(".svg")
BEGIN, END = "<!-- begin: written by make bench-moved -->", "<!-- end: written by make bench-moved -->"

# Ten programs that start at once on a few cores would exceed their start timeouts.
_SECONDS_BETWEEN_STARTS = 25.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """An agent with its flags. At most `AT_ONCE` roll-outs of a group run in parallel."""

    key: str
    heading: str
    group: str
    flags: str = ""


# In the order of the columns.
VARIANTS = (
    Variant(key="careen", heading="careen", group="careen"),
    Variant(key="careen-untainted", heading="careen, no taint", group="careen", flags="--prefer-no-schedule-taint="),
    Variant(key="kured", heading="kured, with taint", group="kured"),
    Variant(
        key="kured-untainted",
        heading="kured, no taint, period 1m",
        group="kured",
        flags="--prefer-no-schedule-taint= --period=1m",
    ),
)
AT_ONCE = {"careen": 2, "kured": 5}
HEADINGS = {variant.key: variant.heading for variant in VARIANTS}


def main() -> int:
    options = _options()
    if not options.draw:
        kept = _Kept(options.results)
        wanted = [
            variant
            for variant in VARIANTS
            if variant.key in options.agents and (options.kured or variant.group != "kured")
        ]
        if not options.kured:
            print("the tables have no columns for kured, because KURED_BIN names no kured program")
        for asking in options.asking:
            _roll_out_all(wanted, options.seeds, asking, options.kured, kept)
    runs = read(options.results)
    print(tables(runs, HEADINGS, NODES))
    if options.results == RESULTS:
        draw(runs)
    return 0 if all(run.finished for run in runs) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.rollout.moved", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--kured", type=Path, help="path of a kured program; without it, the bench leaves out the columns of kured"
    )
    parser.add_argument(
        "--agents", nargs="+", choices=HEADINGS, default=list(HEADINGS), help="measure only these agents"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--asking", type=int, nargs="+", default=[NODES, 8], help="how many of the nodes need a reboot")
    parser.add_argument(
        "--results",
        type=Path,
        default=RESULTS,
        help="file in which the bench replaces the rows of the measured agents and seeds",
    )
    parser.add_argument(
        "--draw", action="store_true", help="measure nothing; write the tables and the plot of docs/less-moved.md"
    )
    return parser.parse_args()


def read(path: Path) -> list[Run]:
    """The stored results, in the order of agents and seeds."""
    rows = json.loads(path.read_text()) if path.exists() else []
    runs = [Run(**{**row, "lead": tuple(row["lead"]) if row["lead"] else None}) for row in rows]
    return sorted(runs, key=lambda run: (-run.asking, list(HEADINGS).index(run.agent), run.seed))


def draw(runs: Sequence[Run]) -> None:
    """Writes the table and the plot into the documentation."""
    PAGE.write_text(with_tables(PAGE.read_text(), runs))
    PLOT.write_text(plot(runs, HEADINGS))


def with_tables(page: str, runs: Sequence[Run]) -> str:
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{tables(runs, HEADINGS, NODES)}\n\n{END}{after}"


class _Kept:
    """The file of results. A roll-out's row is written as soon as it ends, in place of one with the same agent, seed
    and number of nodes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    def add(self, run: Run) -> None:
        with self._lock:
            others = [each for each in read(self._path) if _trial(each) != _trial(run)]
            self._path.write_text(json.dumps([asdict(each) for each in [*others, run]], indent=1) + "\n")


def _trial(run: Run) -> tuple[str, int, int]:
    return run.agent, run.seed, run.asking


def _roll_out_all(
    variants: Iterable[Variant], seeds: Sequence[int], asking: int, kured: Path | None, kept: _Kept
) -> None:
    groups: dict[str, list[Variant]] = {}
    for variant in variants:
        groups.setdefault(variant.group, []).append(variant)
    pools = {group: ThreadPoolExecutor(AT_ONCE[group]) for group in groups}
    starting = threading.Lock()
    for group, members in groups.items():
        # careen: both variants of a seed beside each other. kured: all seeds of a variant, which take equally long.
        order = (
            [(seed, variant) for seed in seeds for variant in members]
            if group == "careen"
            else [(seed, variant) for variant in members for seed in seeds]
        )
        for seed, variant in order:
            pools[group].submit(_roll_out, variant, seed, asking, kured=kured, kept=kept, starting=starting)
    for pool in pools.values():
        pool.shutdown()


def _roll_out(
    variant: Variant, seed: int, asking: int, *, kured: Path | None, kept: _Kept, starting: threading.Lock
) -> None:
    with starting:
        time.sleep(_SECONDS_BETWEEN_STARTS)
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [
            sys.executable,
            "-m",
            "bench.rollout",
            "--seed",
            str(seed),
            "--asking",
            str(asking),
            "--json",
            file.name,
            f"--flags={variant.flags}",
        ]
        command += ["--kured", str(kured)] if variant.group == "kured" else []
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        text = Path(file.name).read_text()
    if not text:
        print(
            f"{variant.heading}, seed {seed}, {asking} nodes: the roll-out gave no figures\n{ran.stderr}",
            file=sys.stderr,
            flush=True,
        )
        return
    run = run_of(variant.key, seed, asking, json.loads(text)[0])
    kept.add(run)
    print(
        f"{variant.heading}, seed {seed}, {asking} nodes: {run.moves} pod moves in {run.wall:.0f} s; in {run.repeat} "
        "of these moves, a pod moved again",
        flush=True,
    )


def run_of(agent: str, seed: int, asking: int, result: dict[str, Any]) -> Run:
    """The row for the output of `python -m bench.rollout --json`."""
    rollout = result["rollout"]
    moves, lead = rollout["moves"], rollout["lead"]
    return Run(
        agent=agent,
        seed=seed,
        asking=asking,
        finished=result["finished"],
        pods=sample(seed).pods,
        moves=moves["total"],
        floor=moves["floor"] if asking == NODES else None,
        repeat=moves["repeat"],
        pending=round(moves["pending_seconds"], 1),
        unscheduled=round(moves["unscheduled_seconds"], 2),
        tainted=rollout["tainted"],
        lead=(round(lead["least"], 1), round(lead["median"], 1), round(lead["greatest"], 1)) if lead else None,
        wall=round(rollout["wall"], 1),
        requests=result["requests"]["total"],
        most_down=rollout["most_down"],
    )


if __name__ == "__main__":
    sys.exit(main())
