"""Lets agents change their form again and again with a tenth of a core each, and probes them as the kubelet does, only
more often: does a probe fail?

    python -m bench.agent.changes [--changes 1000] [--agents 6] [--share 0.1]

Each is the real agent, which a change of its Node's labels wakes. Only the limit of six sleeps in an hour is off. A
probe fails if it has no answer 200 within the five seconds of the manifests. Exits with 1 if one failed.
"""

from __future__ import annotations

import argparse
import os
import shlex
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bench.agent.__main__ import an_agent, compile_as_the_image, is_sleeper, relabel, seed, wait_for_port
from bench.agent.throttle import share_of_a_core
from drydock.server.testing import RunningServer, server_in_thread

PROBE_TIMEOUT_SECONDS = 5.0  # manifests/daemonset.yaml
_PROBE_PAUSE_SECONDS = 0.2
_LOOK_SECONDS = 0.05

# The agent's own entry point, which asks for the limit after it has opened the door.
RESTLESS = """
from careen.agent.asleep import doorkeeper
import careen.__main__
def opened(open_door=doorkeeper.open_door):
    open_door()
    from careen.core.people import asleep
    asleep.MOST_SLEEPS = 10**9
doorkeeper.open_door = opened
careen.__main__.main()
"""


@dataclass
class ChangesOfForm:
    """What was seen of one agent."""

    number: int = 0
    probes: list[float] = field(default_factory=list)  # seconds
    failed: list[str] = field(default_factory=list)


def change_form(server: RunningServer, folder: Path, most: int, put: Callable[[int], None]) -> ChangesOfForm:
    """Starts an agent, and wakes it whenever it sleeps, until it has changed its form `most` times."""
    found, over = ChangesOfForm(), threading.Event()
    (folder / "run").mkdir(parents=True)
    flags = ("--sleep=auto", "--host-lock-dir=/run/careen")
    with an_agent(server, folder, *flags, entry=("-c", RESTLESS)) as process:
        put(process.pid)
        port = wait_for_port(folder / "agent.log")
        while not is_sleeper(process.pid):  # the start itself is no change
            time.sleep(_LOOK_SECONDS)
        prober = threading.Thread(target=_probe, args=(port, over, found), daemon=True)
        prober.start()
        was_asleep = True
        while found.number < most and process.poll() is None:
            if was_asleep:
                relabel(server, str(found.number))
            while is_sleeper(process.pid) is was_asleep and process.poll() is None:
                time.sleep(_LOOK_SECONDS)
            was_asleep, found.number = not was_asleep, found.number + 1
        if process.poll() is not None:
            found.failed.append(f"the agent ended: {(folder / 'agent.log').read_text()[-2000:]}")
        over.set()
        prober.join()
    return found


def _probe(port: int, over: threading.Event, found: ChangesOfForm) -> None:
    while not over.wait(_PROBE_PAUSE_SECONDS):
        for path in ("/healthz", "/readyz"):
            began = time.monotonic()
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PROBE_TIMEOUT_SECONDS):
                    found.probes.append(time.monotonic() - began)
            except OSError as error:
                found.failed.append(f"{path} after {time.monotonic() - began:.1f} s: {error}")


def measure(changes: int, agents: int, share: float) -> tuple[list[ChangesOfForm], str]:
    """All agents together make so many changes. Also how they were throttled."""
    found, ways = list[ChangesOfForm](), set[str]()

    def one(number: int) -> None:
        with (
            server_in_thread() as server,
            tempfile.TemporaryDirectory() as folder,
            share_of_a_core(share, f"careen-bench-{number}") as (way, put),
        ):
            ways.add(way)
            seed(server)
            found.append(change_form(server, Path(folder), -(-changes // agents), put))

    workers = [threading.Thread(target=one, args=(number,)) for number in range(agents)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    return found, ", ".join(ways)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--changes", type=int, default=1000)
    parser.add_argument("--agents", type=int, default=6)
    parser.add_argument("--share", type=float, default=0.1)
    given = parser.parse_args()
    print(shlex.join([Path(sys.executable).name, "-m", "bench.agent.changes", *sys.argv[1:]]))
    with tempfile.TemporaryDirectory() as bytecode:
        os.environ.update(compile_as_the_image(Path(bytecode)))
        began = time.monotonic()
        found, how = measure(given.changes, given.agents, given.share)
    probes, failed = [each for one in found for each in one.probes], [each for one in found for each in one.failed]
    print(f"changes of form                         {sum(each.number for each in found)}")
    print(f"agents, and the share of a core of each {given.agents}, {given.share:g} ({how})")
    print(f"seconds                                 {time.monotonic() - began:.0f}")
    print(f"probes, and how many failed             {len(probes) + len(failed)}, {len(failed)}")
    print(
        f"seconds of a probe                      {statistics.median(probes):.3f}, {max(probes):.2f} (median, longest)"
    )
    print(*failed[:10], sep="\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
