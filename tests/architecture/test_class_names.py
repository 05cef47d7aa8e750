"""Tests that no two public classes share a name, so that one word has one meaning."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.architecture.source_tree import PACKAGES, ROOT

# Kubernetes' own kinds. careen reads few of their fields from API answers (`careen/cluster/objects.py`); the scheduler
# library parses all that scheduling needs. Each mirrors the kind, so each keeps its name.
KUBERNETES_KINDS = {
    "Container",
    "DisruptionBudget",
    "Node",
    "OwnerReference",
    "Pod",
    "PodSpec",
    "Taint",
    "Toleration",
}


def homes_of_classes() -> dict[str, list[str]]:
    """Map each public class name at the top level of a module to the files that define it."""
    homes: dict[str, list[str]] = defaultdict(list)
    for folder in (*PACKAGES.values(), ROOT / "bench"):
        for path in sorted(folder.rglob("*.py")):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    homes[node.name].append(str(path.relative_to(ROOT)))
    return homes


def test_no_two_public_classes_share_a_name() -> None:
    shared = {name: files for name, files in homes_of_classes().items() if len(files) > 1}
    assert {name: files for name, files in shared.items() if name not in KUBERNETES_KINDS} == {}
    assert KUBERNETES_KINDS - set(shared) == set(), "exceptions that are no longer needed"
