"""Prints the requirements from which a lock file is made: `lock_input.py run` for requirements.lock, `build` for
requirements-build.lock.

The script prints the requirements of both distributions of this repository, but not the two distributions themselves:
on a package index, another party could own the names of these distributions.
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
    """Returns the requirements of `kind`, "run" or "build", without repetitions, in the order in which they are
    written."""
    lists = [
        project["project"]["dependencies"] if kind == "run" else project["build-system"]["requires"]
        for project in PROJECTS
    ]
    return [each for each in dict.fromkeys(chain.from_iterable(lists)) if _name(each) not in OURS]


def _name(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].replace("-", "_")


if __name__ == "__main__":
    sys.stdout.write("".join(f"{each}\n" for each in wanted(sys.argv[1])))
