"""Prints the requirements from which a lock file is made: `lock_input.py run` for requirements.lock, `build` for
requirements-build.lock.

They are those of this repository's two distributions, without the two themselves: on an index, another party could own
their names.
"""

from __future__ import annotations

import re
import sys
import tomllib
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECTS = [tomllib.loads((ROOT / path).read_text()) for path in ("pyproject.toml", "scheduler_core/pyproject.toml")]
OURS = {project["project"]["name"] for project in PROJECTS}


def wanted(kind: str) -> list[str]:
    """The requirements of `kind`, "run" or "build", without repetitions, in the written order."""
    lists = [
        project["project"]["dependencies"] if kind == "run" else project["build-system"]["requires"]
        for project in PROJECTS
    ]
    return [each for each in dict.fromkeys(chain.from_iterable(lists)) if _name(each) not in OURS]


def _name(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].replace("-", "_")


if __name__ == "__main__":
    sys.stdout.write("".join(f"{each}\n" for each in wanted(sys.argv[1])))
