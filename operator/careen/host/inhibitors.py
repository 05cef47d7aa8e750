"""The inhibitors of a shutdown, from the files of systemd-logind.

The only alternative is D-Bus, which an agent with few rights cannot reach. logind calls the files private, but their
format has not changed since 2012 (`inhibitor_save` in systemd's src/login/logind-inhibit.c). Unreadable files are
skipped.
"""

from __future__ import annotations

import os
import re
import stat
from itertools import islice
from pathlib import Path

from careen.host.paths import under_root
from scheduler_core.values import Value

# The second applies if the host's /run is mounted as /var/run, because the sentinel is in that folder.
FOLDERS = ("/run/systemd/inhibit", "/var/run/systemd/inhibit")
_MOST_FILES = 1_000
_MOST_BYTES = 16 * 1024
_LINE = re.compile(r"^(WHAT|WHO|MODE)=(.*)$", re.MULTILINE)


class Inhibitor(Value):
    """`who` is a program, `mode` is delay, block or block-weak."""

    who: str
    mode: str


def of_shutdown(root: Path) -> tuple[Inhibitor, ...]:
    """Sorted by name; none if the files cannot be read."""
    for folder in FOLDERS:
        try:
            with os.scandir(under_root(root, folder)) as listing:
                entries = list(islice(listing, _MOST_FILES))
        except OSError:
            continue
        found = {each for entry in entries if (each := _read(Path(entry.path))) is not None}
        return tuple(sorted(found, key=lambda each: (each.who, each.mode)))
    return ()


def _read(file: Path) -> Inhibitor | None:
    try:
        # Beside each file is a pipe, `<id>.ref`, which must not be opened: when it closes, logind removes the
        # inhibitor.
        if not stat.S_ISREG(file.lstat().st_mode):
            return None
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            text = os.read(descriptor, _MOST_BYTES).decode("utf-8", "replace")
        finally:
            os.close(descriptor)
    except OSError:
        return None
    said = {key: value.strip().strip("\"'") for key, value in _LINE.findall(text)}
    if "shutdown" not in said.get("WHAT", "").split(":") or not said.get("WHO"):
        return None
    return Inhibitor(who=said["WHO"][:100], mode=said.get("MODE", "block")[:20])
