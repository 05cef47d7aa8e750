"""Measures an image: its base, careen's own layers, and the download to a node. `make image-size` runs `size.py IMAGE
BASE`.

Both arguments are folders with an OCI image. A megabyte is 10⁶ bytes. Uncompressed is what a node stores, as `docker
images` shows it; compressed is what the registry sends. careen's own layers are those that the base does not have.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

_SMALLEST = 1.0  # megabytes: packages below it are summed up


def main(image: Path, base: Path) -> int:
    """Prints the sizes of the base, of careen's own layers and of the whole image, and the largest packages."""
    of_the_base = {diff for diff, _, _ in layers(base)}
    shared = [layer for layer in layers(image) if layer[0] in of_the_base]
    ours = [layer for layer in layers(image) if layer[0] not in of_the_base]
    assert len(shared) == len(of_the_base), "the image was not built on this base image"
    say("base", shared)
    say("our own layers", ours)
    say("image", shared + ours)
    weights = Counter[str]()
    for _, blob, _ in ours:
        weights.update(packages(blob))
    print()
    small = 0.0
    for name, size in weights.most_common():
        if size / 1e6 >= _SMALLEST:
            print(f"{size / 1e6:8.1f} MB  {name}")
        else:
            small += size
    print(f"{small / 1e6:8.1f} MB  everything else")
    return 0


def layers(layout: Path) -> list[tuple[str, Path, int]]:
    """From the bottom up: the digest of the content, the compressed file, the size on a node."""
    index = _json(layout / "index.json")
    manifest = _json(_blob(layout, index["manifests"][0]["digest"]))
    diffs = _json(_blob(layout, manifest["config"]["digest"]))["rootfs"]["diff_ids"]
    blobs = [_blob(layout, each["digest"]) for each in manifest["layers"]]
    return [(diff, blob, _unpacked(blob)) for diff, blob in zip(diffs, blobs, strict=True)]


def say(what: str, some: list[tuple[str, Path, int]]) -> None:
    """Prints a line: `what`, the layers' size on a node, their compressed size, and their number."""
    unpacked = sum(size for _, _, size in some) / 1e6
    packed = sum(blob.stat().st_size for _, blob, _ in some) / 1e6
    print(f"{what + ':':<16}{unpacked:6.1f} MB, compressed {packed:5.1f} MB, {len(some)} layers")


def packages(blob: Path) -> Counter[str]:
    """Bytes of a layer's files by package: a folder in site-packages; other files count under their first two
    folders."""
    found = Counter[str]()
    with tarfile.open(blob, "r:gz") as archive:
        for member in archive:
            inside = re.search(r"site-packages/([^/]+)", member.name)
            name = inside[1] if inside else "/" + "/".join(member.name.split("/")[:3])
            found["*.dist-info" if name.endswith(".dist-info") else name] += member.size
    return found


def _unpacked(blob: Path) -> int:
    with gzip.open(blob) as content:
        return sum(len(block) for block in iter(lambda: content.read(1 << 20), b""))


def _blob(layout: Path, digest: str) -> Path:
    return layout / "blobs" / digest.replace(":", "/")


def _json(path: Path) -> Any:
    return json.loads(path.read_text())


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
