"""The stories of docs/operations.md in a fleet of 200 nodes: what the commands print in the first two minutes.

python -m bench.first_minutes [STORY…]

The fleet runs on virtual time with the agents' production code. Then its objects go to a server, with their times moved
so that they end now, and the commands ask this server. The page has the first lines of each command, and how long the
command took.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.first_minutes.stories import STORIES, MinutesStory, play
from careen.core.facts.times import rfc3339
from drydock.server.testing import RunningServer, server_in_thread

RESULTS = Path(__file__).with_name("results.md")
_INSTANT = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)")
_SPOKEN = re.compile(r"20\d\d-\d\d-\d\d \d\d:\d\d UTC")
_KINDS = ("namespaces", "nodes", "pods", "daemonsets", "replicasets", "statefulsets", "poddisruptionbudgets", "events")
COLUMNS = 120
_SHOWN = 16  # lines of each command on the page
_WIDEST = 320


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stories", nargs="*", choices=[*[each.name for each in STORIES], []], metavar="STORY")
    chosen = parser.parse_args().stories
    parts = [_HEAD]
    for each in STORIES:
        if not chosen or each.name in chosen:
            parts.append(_page(each))
            print(parts[-1], flush=True)
    if not chosen:
        RESULTS.write_text("\n".join(parts), encoding="utf-8")


_HEAD = """# The first two minutes

`make bench-minutes`: each story of [operations.md](../../docs/operations.md#the-first-two-minutes) in a fleet of 200
nodes, three reboots at a time, played by the agents' production code on virtual time. Below is what the commands
printed: the first lines, and the time that each command took.
"""


def _page(story: MinutesStory) -> str:
    objects, ended, holder = play(story, _KINDS)
    with tempfile.TemporaryDirectory() as folder, server_in_thread() as server:
        _seed(server, objects, ended)
        kubeconfig = str(server.write_kubeconfig(Path(folder) / "kubeconfig"))
        shown = [
            _asked([holder if each == "HOLDER" else each for each in words], kubeconfig) for words in story.commands
        ]
    return f"## {story.what}\n\n" + "\n".join(shown)


def _seed(server: RunningServer, objects: Sequence[dict[str, Any]], ended: datetime) -> None:
    shift = datetime.now(UTC) - ended
    for each in objects:
        moved = _INSTANT.sub(lambda found: _later(found[0], shift), json.dumps(each))
        moved = _SPOKEN.sub(lambda found: _spoken_later(found[0], shift), moved)
        server.seed(json.loads(moved))


def _later(text: str, shift: timedelta) -> str:
    return rfc3339(datetime.fromisoformat(text) + shift)


def _spoken_later(text: str, shift: timedelta) -> str:
    return f"{datetime.strptime(text, '%Y-%m-%d %H:%M UTC').replace(tzinfo=UTC) + shift:%Y-%m-%d %H:%M UTC}"


def _asked(words: Sequence[str], kubeconfig: str) -> str:
    began = time.perf_counter()
    ran = subprocess.run(
        [sys.executable, "-m", "careen", *words, "--kubeconfig", kubeconfig],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": str(COLUMNS)},
        check=False,
    )
    took = time.perf_counter() - began
    text = (ran.stdout + ran.stderr).rstrip()
    lines = text.split("\n")
    shown = "\n".join([line[:_WIDEST] for line in lines[:_SHOWN]])
    more = f"\n… {len(lines) - _SHOWN} more lines" if len(lines) > _SHOWN else ""
    head = f"`careen {' '.join(words)}`: exit code {ran.returncode}, {took:.1f} s, {len(lines)} lines"
    return f"{head}\n\n```console\n{shown}{more}\n```\n"


if __name__ == "__main__":
    main()
