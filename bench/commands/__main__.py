"""Measures the cost of commands that people run, such as `careen status`: user and system time of the command's
process, with a cluster of 100 Nodes; and what it costs to look at 5,000 Nodes in a roll-out, once and again.

python -m bench.commands [--times 7]

The API server runs in the bench's process and is not counted. The bench reports the least time of several runs, because
other work on the machine only adds time. The table also shows the time of a Python process that does nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.commands.refresh import TIMES
from careen.core.facts import keys
from careen.report.tables import table
from drydock.server.testing import RunningServer, server_in_thread
from tests.careen.live_fleet import roll_out

RESULTS = Path(__file__).with_name("results.md")
NODES = 100
MOST_SECONDS = 0.3  # for a person who runs them repeatedly during an incident
FLEET = 5000
MOST_FLEET_SECONDS = 0.3
MOST_REFRESH_SECONDS = 0.4
MOST_LINES = 40
COMMANDS = (("status",), ("why", "n001"), ("lock", "show"), ("hold", "n002", "--reason", "bench"))
HEADER = ("COMMAND", "SECONDS OF PROCESSOR TIME")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=7)
    times = parser.parse_args().times
    with tempfile.TemporaryDirectory() as folder, server_in_thread() as server:
        fill(server)
        kubeconfig = server.write_kubeconfig(Path(folder) / "kubeconfig")
        found = {("python", "-c", "pass"): cost([sys.executable, "-c", "pass"], times)}
        for words in COMMANDS:
            found[("careen", *words)] = cost(
                [sys.executable, "-m", "careen", *words, "--kubeconfig", str(kubeconfig)], times
            )
    rows = [(" ".join(words), f"{seconds:.2f}") for words, seconds in found.items()]
    fleet, requests, too_dear = looking(times)
    print(table(HEADER, [*rows, *fleet]))
    print(requests)
    RESULTS.write_text(page(rows, times, fleet, requests), encoding="utf-8")
    late = [" ".join(words) for words, seconds in found.items() if seconds > MOST_SECONDS]
    if late:
        raise SystemExit(f"these commands took more than {MOST_SECONDS} s: {', '.join(late)}")
    if too_dear:
        raise SystemExit("; ".join(too_dear))


def looking(times: int) -> tuple[list[tuple[str, str]], str, list[str]]:
    """What a look at a large fleet costs, the requests of a refresh as a sentence, and the bars that it breaks."""
    with tempfile.TemporaryDirectory() as folder, server_in_thread() as server:
        server.seed(*roll_out(FLEET, datetime.now(UTC), blocked=FLEET // 5))
        kubeconfig = str(server.write_kubeconfig(Path(folder) / "kubeconfig"))
        status = [sys.executable, "-m", "careen", "status", "--kubeconfig", kubeconfig]
        lines = subprocess.run(status, capture_output=True, text=True, check=True).stdout.count("\n")
        began = time.perf_counter()
        subprocess.run(status, stdout=subprocess.DEVNULL, check=True)
        wall = time.perf_counter() - began
        once = cost(status, min(times, 3))
        before = len(server.api.requests)
        refresh = [sys.executable, "-m", "bench.commands.refresh", kubeconfig]
        seconds = json.loads(subprocess.run(refresh, capture_output=True, text=True, check=True).stdout)
        asked = Counter((each.verb, each.resource) for each in list(server.api.requests)[before:])
    rows = [
        (f"careen status, {FLEET:,} Nodes ({lines} lines; {wall:.1f} s by the clock)", f"{once:.2f}"),
        ("a refresh of careen serve", f"{seconds['page']:.2f}"),
        ("a refresh of careen watch", f"{seconds['watch']:.2f}"),
    ]
    told = ", ".join(f"{verb} {what} {number / (1 + TIMES):.1f}" for (verb, what), number in sorted(asked.items()))
    broken = [f"careen status printed {lines} lines"] if lines > MOST_LINES else []
    broken += [f"careen status took {once:.2f} s"] if once > MOST_FLEET_SECONDS else []
    broken += [f"a refresh ({name}) took {each:.2f} s" for name, each in seconds.items() if each > MOST_REFRESH_SECONDS]
    return rows, f"Requests of a refresh: {told}", broken


def fill(server: RunningServer) -> None:
    """Stores 100 waiting Nodes, and the DaemonSet with the lock."""
    for number in range(NODES):
        annotations = {keys.PHASE: "Waiting", keys.SINCE: "2026-03-04T12:00:00Z", keys.REASON: "other nodes go first"}
        name = f"n{number:03}"
        server.seed({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "annotations": annotations}})
    labels = {"name": "careen"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "agent", "args": ["agent"]}]}}
    server.seed(
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "careen", "namespace": "careen"},
            "spec": {"selector": {"matchLabels": labels}, "template": template},
        }
    )


def cost(command: Sequence[str], times: int) -> float:
    """The least processor seconds of several runs of the command, with the processes that it starts."""
    return min(_once(command) for _ in range(times + 1))  # one more, for the bytecode that is missing


def _once(command: Sequence[str]) -> float:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with exit code {process.returncode}")
    return used.ru_utime + used.ru_stime


def page(rows: Sequence[tuple[str, str]], times: int, fleet: Sequence[tuple[str, str]], requests: str) -> str:
    looks = "\n".join(f"| {what} | {seconds} |" for what, seconds in fleet)
    lines = "\n".join(f"| `{command}` | {seconds} |" for command, seconds in rows)
    return f"""# What a command costs

`make bench-commands`, Python {platform.python_version()}, a cluster of {NODES} Nodes: user and system time of the whole
process, the least of {times} runs. The bench fails if a command takes more than {MOST_SECONDS} s.

| command | seconds of processor time |
|---|---:|
{lines}

{FLEET:,} Nodes in the middle of a roll-out, a fifth of them held back. A refresh is the work after the start of the
process; the bench fails if one takes more than {MOST_REFRESH_SECONDS} s, or if `careen status` takes more than
{MOST_FLEET_SECONDS} s or {MOST_LINES} lines.

| look | seconds of processor time |
|---|---:|
{looks}

{requests}.
"""


if __name__ == "__main__":
    main()
