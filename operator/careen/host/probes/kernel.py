"""The probe `kernel`: yes if a newer kernel of the running kernel's kind is installed.

Installed: `/boot/vmlinuz-RELEASE` or `/lib/modules/RELEASE/vmlinuz` exists. Of one kind: the releases have the same
words in the same order, so an `-rt` kernel does not replace a `-generic` one.
"""

from __future__ import annotations

import os
import re
from itertools import islice
from pathlib import Path

from careen.core.facts.observation import Need
from careen.host.paths import under_root
from careen.host.probes import HostFacts
from careen.host.probes.said import no, unknown, yes

_MOST_ENTRIES = 1_000
_IMAGE = "vmlinuz"
_PART = re.compile(r"(\d+)|([A-Za-z]+)")


def look(host: HostFacts) -> Need:
    """Unknown if the folders cannot be listed or have no kernel of this kind: they are then perhaps not the host's."""
    try:
        found = {*_in_boot(host.root), *_beside_modules(host.root)}
    except OSError as error:
        return unknown(f"the installed kernels cannot be listed: {error}")
    kind = _words(host.release)
    alike = sorted((each for each in found if _words(each) == kind), key=_numbers)
    if not alike:
        return unknown(
            f"no installed kernel of the same kind as the running kernel {host.release} was found in /boot and "
            "/lib/modules"
        )
    newest = alike[-1]
    if _numbers(newest) > _numbers(host.release):
        return yes(f"kernel {newest} is installed, but kernel {host.release} is running")
    return no(f"no newer kernel than the running kernel {host.release} is installed")


def _in_boot(root: Path) -> list[str]:
    names = (entry.name for entry in _entries(root, "/boot"))
    return [name.removeprefix(f"{_IMAGE}-") for name in names if name.startswith(f"{_IMAGE}-")]


def _beside_modules(root: Path) -> list[str]:
    return [entry.name for entry in _entries(root, "/lib/modules") if os.path.lexists(entry / _IMAGE)]


def _entries(root: Path, folder: str) -> list[Path]:
    """[] if the folder does not exist."""
    try:
        return list(islice(under_root(root, f"{folder}/any").parent.iterdir(), _MOST_ENTRIES))
    except FileNotFoundError:
        return []


def _words(release: str) -> tuple[str, ...]:
    """The words that show the kernel's kind, such as `generic`, `amd64`, `el` or `rt`."""
    return tuple(word for _, word in _PART.findall(release) if word)


def _numbers(release: str) -> tuple[tuple[int, int], ...]:
    """A sort key: an older release has a smaller one. A word is smaller than a number, so that 553.el8 is older than
    553.5.1.el8."""
    return tuple((1, int(number[:18])) if number else (0, 0) for number, _ in _PART.findall(release))
