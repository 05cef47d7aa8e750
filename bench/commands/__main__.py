"""Measures the cost of commands that people run, such as `careen status`: user and system time of the command's
process, with a cluster of 100 Nodes.

python -m bench.commands [--times 7]

The API server runs in the bench's process and is not counted. The bench reports the least time of several runs, because
other work on the machine only adds time. The table also shows the time of a Python process that does nothing.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from careen.core.facts import keys
from careen.report.tables import table
from drydock.server.testing import RunningServer, server_in_thread

RESULTS = Path(__file__).with_name("results.md")
NODES = 100
MOST_SECONDS = 0.3  # for a person who runs them repeatedly during an incident
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
    print(table(HEADER, rows))
    RESULTS.write_text(page(rows, times), encoding="utf-8")
    late = [" ".join(words) for words, seconds in found.items() if seconds > MOST_SECONDS]
    if late:
        raise SystemExit(f"these commands took more than {MOST_SECONDS} s: {', '.join(late)}")


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


def page(rows: Sequence[tuple[str, str]], times: int) -> str:
    lines = "\n".join(f"| `{command}` | {seconds} |" for command, seconds in rows)
    return f"""# What a command costs

`make bench-commands`, Python {platform.python_version()}, a cluster of {NODES} Nodes: user and system time of the whole
process, the least of {times} runs. The bench fails if a command takes more than {MOST_SECONDS} s.

| command | seconds of processor time |
|---|---:|
{lines}
"""


if __name__ == "__main__":
    main()
