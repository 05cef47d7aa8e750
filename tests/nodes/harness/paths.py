"""Paths of the build results of `make test-nodes`, and of the machines of one run."""

from __future__ import annotations

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
NODES = REPOSITORY / "tests" / "nodes"
CACHE = REPOSITORY / ".cache" / "nodes"
PROGRAMS = CACHE / "bin"
CONTROL_PLANE = REPOSITORY / ".cache" / "bin" / "controlplane"
MACHINE_ROOT = CACHE / "machine"
IMAGE_STORE = CACHE / "store"  # containerd's, with the images in it
