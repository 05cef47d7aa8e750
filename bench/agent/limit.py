"""Which memory limit of the container is enough for an awake agent and the child of its forecast: the real agent in a
cgroup of that limit, beside 100 nodes and 3,000 pods. Needs root.

    python -m bench.agent.limit [--limits 160 128 96 64]

The agent sees the cgroup as a container does. The kernel would kill the whole cgroup beyond the limit.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from bench.agent.__main__ import NODE, an_agent, compile_as_the_image, seed, wait_for_port
from bench.agent.memory_group import memory_group
from bench.scheduler import cluster
from drydock.server.kinds.resources import BY_KIND
from drydock.server.testing import RunningServer, server_in_thread

NODES = 100
_SECONDS = 120.0


def fill(server: RunningServer, folder: Path) -> None:
    """The bench's agent runs on the first of the nodes."""
    seed(server)
    for page in sorted(folder.glob("*.json")):
        text = page.read_text().replace(f'"{cluster.node_name(0)}"', f'"{NODE}"')
        listed = json.loads(text)
        key = listed["apiVersion"], listed["kind"].removesuffix("List")
        if key in BY_KIND:
            server.seed(*({**item, "apiVersion": key[0], "kind": key[1]} for item in listed["items"]))


def forecast_under(limit_mib: int, clusters: Path) -> str:
    """A row: the limit, whether the forecast was made, what was used at most."""
    with server_in_thread() as server, tempfile.TemporaryDirectory() as name, memory_group(limit_mib) as group:
        if group is None:
            raise SystemExit("no cgroup can be made: this bench needs root and cgroups that it may write")
        folder = Path(name)
        fill(server, clusters)
        (folder / "var/run").mkdir(parents=True)
        (folder / "var/run/reboot-required").touch()
        with an_agent(
            server, folder, "--sleep=off", "--forecast=refuse", "--count-cordoned=false", group=group
        ) as process:
            port, until, said = wait_for_port(folder / "agent.log"), time.monotonic() + _SECONDS, ""
            while not said and time.monotonic() < until and process.poll() is None:
                time.sleep(0.2)
                said = _forecast_of(port)
            ended = process.poll()
            node = server.get("nodes", NODE) or {}
            refusals = (node["metadata"].get("annotations") or {}).get("careen.dev/refusals", "")
            why = re.search(r"the simulation[^\"]*|[^\"]*memory[^\"]*", refusals)
            most = group.most_mib()
    told = f"the agent ended with {ended}" if ended is not None else (said or "none in two minutes")
    return f"| {limit_mib} | {told} | {most:.0f} | {why[0] if why and said != 'made' else ''} |"


def _forecast_of(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        text = answer.read().decode()
    found = re.search(r'careen_forecasts_total\{[^}]*result="(\w+)"\} [1-9]', text)
    return found[1] if found else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limits", type=int, nargs="+", default=[160, 128, 96, 64])
    given = parser.parse_args()
    print(shlex.join([Path(sys.executable).name, "-m", "bench.agent.limit", *sys.argv[1:]]), end="\n\n")
    with tempfile.TemporaryDirectory() as bytecode, tempfile.TemporaryDirectory() as clusters:
        os.environ.update(compile_as_the_image(Path(bytecode)))
        cluster.write(Path(clusters), nodes=NODES, seed=1)
        print("| limit, MiB | forecast | cgroup at most, MiB | what the agent says |\n|---|---|---|---|", flush=True)
        for limit in given.limits:
            print(forecast_under(limit, Path(clusters)), flush=True)


if __name__ == "__main__":
    main()
