"""Stands in for the agent around the sleeper: `stub_agent.py OPERATOR FOLDER`. It starts in milliseconds, because it
imports only what the real agent imports before its libraries.

The first process sleeps with FOLDER/handover.json. A woken one writes what it got into FOLDER/woken.json and waits for
SIGTERM; with `again` in the handover it sleeps again at once.
"""

import json
import os
import resource
import signal
import sys
import threading
import time
from pathlib import Path

resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))  # a test lowers it
sys.path.insert(0, sys.argv[1])
folder = Path(sys.argv[2])
STOPS = {signal.SIGTERM, signal.SIGINT}
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))

from careen.agent.asleep import bed, doorkeeper, sleeper  # noqa: E402

if (folder / "sleeper.py").exists():
    bed._program = lambda: str(folder / "sleeper.py")  # with other pauses


def open_files() -> dict[int, str]:
    found = {}
    for each in Path("/proc/self/fd").iterdir():
        try:
            found[int(each.name)] = str(each.readlink())
        except OSError:  # of the listing itself
            continue
    return found


def sleep(content: dict) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    time.sleep(0.01)  # a signal that another thread takes now would be lost
    bed.Bed(content).lie_down()


was_woken = sleeper.VARIABLE in os.environ
is_first = not was_woken and not (folder / "asleep").exists()
doorkeeper.open_door()
signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()  # the agent has such threads too
if is_first:
    (folder / "asleep").touch()
    sleep(json.loads((folder / "handover.json").read_text()))
woken = doorkeeper.woken()
content = dict(woken.handover) if woken is not None else {}
if content.get("again"):
    listener = woken.doorkeeper.leave()
    sleep({**content, "listener": listener.fileno(), "turns": content.get("turns", 0) + 1})
record = {
    "handover": content or None,
    "files": open_files(),
    "command": sys.orig_argv[1:],
    "wall_clock": time.time(),
    "environment": sorted(name for name in os.environ if name.startswith("CAREEN_")),
}
(folder / "part").write_text(json.dumps(record))
(folder / "part").rename(folder / "woken.json")
while True:
    signal.pause()
