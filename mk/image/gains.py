"""Measures how much smaller each removal in the Dockerfile makes the image: `make image-gains`. Uses the packages
installed here.

A removal saves the size of the removed files and of their bytecode. A megabyte is 10⁶ bytes.
"""

from __future__ import annotations

import marshal
import re
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

_HEADER = 16  # bytes before the code in a .pyc


def main() -> int:
    """A row for each line of the Dockerfile's removed paths and one for the type stubs, the largest first, with the
    sum at the end."""
    site = Path(sysconfig.get_paths()["purelib"])
    rows = {line: sum(map(weight, files(site, line))) for line in removals()}
    rows["*.pyi files in any folder"] = sum(path.stat().st_size for path in installed(site) if path.suffix == ".pyi")
    print("| removed from site-packages | MB |\n|---|---|")
    for line, size in sorted(rows.items(), key=lambda row: -row[1]):
        print(f"| `{line}` | {size / 1e6:.1f} |")
    print(f"| all | {sum(rows.values()) / 1e6:.1f} |")
    return 0


def removals() -> list[str]:
    """The arguments of `rm -rf` in the Dockerfile, line by line; a line has one or more patterns."""
    dockerfile = (Path(__file__).resolve().parents[2] / "Dockerfile").read_text()
    (text,) = re.findall(r"site-packages && rm -rf((?: \\\n {6}[^\\\n]*[^\\\s])+)", dockerfile)
    return re.findall(r"^ {6}([^\\\n]*[^\\\s])", text, re.MULTILINE)


def installed(site: Path) -> Iterator[Path]:
    """The files of the locked packages: those that only the tests need are not in the image."""
    lock = (Path(__file__).resolve().parents[2] / "requirements.lock").read_text()
    names = {name.replace("-", "_").lower() for name in re.findall(r"^([\w.-]+)==", lock, re.MULTILINE)}
    for top in site.iterdir():
        if top.name.lower() in names:
            yield from (path for path in top.rglob("*") if path.is_file())


def files(site: Path, line: str) -> Iterator[Path]:
    """The files that the shell would remove for this line of the Dockerfile's `rm`."""
    for pattern in line.split():
        for top in site.glob(pattern.rstrip("/")):
            if top.is_dir():
                yield from (path for path in top.rglob("*") if path.is_file())
            elif not pattern.endswith("/"):
                yield top


def weight(path: Path) -> int:
    """Bytes of the file and, for a Python source, of its bytecode. 0 for a bytecode file, which counts with its
    source."""
    if path.suffix == ".pyc":
        return 0
    size = path.stat().st_size
    if path.suffix != ".py":
        return size
    try:
        code = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError):  # templates and tests of what must not compile
        return size
    return size + _HEADER + len(marshal.dumps(code))


if __name__ == "__main__":
    sys.exit(main())
