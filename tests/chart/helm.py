"""Runs helm for the tests with an empty home folder. The binary is in `.cache/bin`, where `make test-chart` and `make
test-cluster` build it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.architecture.source_tree import ROOT
from tests.patience import run

PROGRAM = ROOT / ".cache" / "bin" / "helm"
CHART = ROOT / "manifests" / "chart"

Key = tuple[str, str]
Objects = dict[Key, dict[str, Any]]

HELMS_LABELS = (
    "helm.sh/chart",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/version",
    "app.kubernetes.io/managed-by",
)


def helm(home: Path, *words: str, kubeconfig: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run helm once, with `home` as the folder for helm's own files. Several runs may share the folder."""
    assert PROGRAM.exists(), f"no {PROGRAM}: run `make test-chart` or `make test-cluster`, which build it"
    own = {f"HELM_{kind}_HOME": str(home / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
    cluster = {"KUBECONFIG": str(kubeconfig)} if kubeconfig else {}
    return run([PROGRAM, *words], env={"PATH": os.environ["PATH"], "HOME": str(home), **own, **cluster})


def template(
    home: Path, *words: str, values: dict[str, Any] | None = None, release: str = "careen", namespace: str = "careen"
) -> subprocess.CompletedProcess[str]:
    file = home / "values.yaml"
    file.write_text(json.dumps(values or {}))  # as YAML, Helm would read the text 1e9 as a number
    return helm(home, "template", release, str(CHART), "--namespace", namespace, "--values", str(file), *words)


def rendered(home: Path, *words: str, **how: Any) -> Objects:
    """Return the rendered objects. Fails if helm refuses the values."""
    done = template(home, *words, **how)
    assert done.returncode == 0, done.stderr
    return by_name(done.stdout)


def by_name(text: str) -> Objects:
    found = [each for each in yaml.safe_load_all(text) if each]
    named = {(each["kind"], each["metadata"]["name"]): each for each in found}
    assert len(named) == len(found), "two objects have the same kind and name"
    return named


def without_helms_labels(objects: Objects) -> Objects:
    """Remove helm's labels from the objects and return the objects, because kustomize does not set these labels."""
    for each in objects.values():
        labels = each["metadata"].get("labels", {})
        for name in HELMS_LABELS:
            labels.pop(name, None)
        if not labels:
            each["metadata"].pop("labels", None)
    return objects


def the(kind: str, objects: Objects) -> dict[str, Any]:
    """Return the only object of this kind, apart from the ConfigMap of the dashboard."""
    (found,) = (each for (of, name), each in objects.items() if of == kind and name != "careen-dashboard")
    return found


def agent_of(objects: Objects) -> dict[str, Any]:
    """Return the agent's container in the DaemonSet."""
    container: dict[str, Any] = the("DaemonSet", objects)["spec"]["template"]["spec"]["containers"][0]
    return container


def flags_of(objects: Objects) -> dict[str, list[str]]:
    """Return the values in the container's arguments, by the field name of the setting."""
    found: dict[str, list[str]] = {}
    for argument in agent_of(objects)["args"][1:]:
        name, equals, value = argument.removeprefix("--").partition("=")
        assert equals, argument
        found.setdefault(name.replace("-", "_"), []).append(value)
    return found


def lines_of(objects: Objects) -> dict[str, Any]:
    """Return the settings in the ConfigMap."""
    return yaml.safe_load(the("ConfigMap", objects)["data"]["config.yaml"]) or {}


def said(done: subprocess.CompletedProcess[str]) -> str:
    """Return helm's reason for the refusal as one line. Fails if helm succeeded."""
    assert done.returncode != 0, done.stdout[-2000:]
    return re.sub(r"\s+", " ", done.stderr)
