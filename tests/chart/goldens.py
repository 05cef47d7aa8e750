"""Compares and writes the golden files of the chart. A golden file lists the fields in which a values file changes the
default rendering, one field on each line.

The golden files leave out the objects of the components, because another test compares those objects with kustomize's
output. So a change of manifests/ changes no golden file. `make chart-goldens` writes the files again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from docs.chart import objects
from tests.chart.helm import Objects, rendered, without_helms_labels

HERE = Path(__file__).parent
FILES = sorted((HERE / "values").glob("*.yaml"))
ADDED = {(each["kind"], each["metadata"]["name"]) for part in objects.parts()["components"].values() for each in part}


def golden(values: Path) -> Path:
    return HERE / "goldens" / f"{values.stem}.txt"


def difference(home: Path, values: Path) -> str:
    """Return the fields that differ from the default rendering, sorted. A line with `-` has the default value, and a
    line with `+` has the value of this rendering.
    """
    content = yaml.safe_load(values.read_text())
    before, after = flat(rendered(home)), flat(rendered(home, values=content))
    return (
        "\n".join(
            f"{sign} {field}: {found[field]}"
            for field in sorted(before.keys() | after.keys())
            for sign, found in (("-", before), ("+", after))
            if field in found and before.get(field) != after.get(field)
        )
        + "\n"
    )


def flat(found: Objects) -> dict[str, str]:
    """Return the text of every field of every object, by the path of the field."""
    return {
        f"{kind}/{name} {path}": text
        for (kind, name), each in without_helms_labels(found).items()
        for path, text in (
            [("is", "as in manifests/")] if kind == "Namespace" or (kind, name) in ADDED else _fields(each, "")
        )
    }


def _fields(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from _fields(each, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value and all(isinstance(each, dict) and "name" in each for each in value):
        for each in value:
            yield from _fields(each, f"{path}[{each['name']}]")
    elif isinstance(value, str) and "\n" in value:
        # The settings file: commented-out lines do not count.
        yield path, repr([line for line in value.splitlines() if line.strip() and not line.startswith("#")])
    else:
        yield path, repr(value)


def main() -> None:
    """Write every golden file."""
    with tempfile.TemporaryDirectory() as home:
        for each in FILES:
            golden(each).parent.mkdir(exist_ok=True)
            golden(each).write_text(difference(Path(home), each))


if __name__ == "__main__":
    main()
