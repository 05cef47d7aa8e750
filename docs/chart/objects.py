"""The objects that the chart's templates read: what kustomize builds from manifests/, with placeholders for names.

The templates adjust them to the chart's values and define none a second time, so the chart cannot drift from kustomize:
a rule added to manifests/rbac.yaml is in the chart after `make docs`.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import jsonpatch
import yaml

MANIFESTS = Path(__file__).resolve().parents[2] / "manifests"
HEAD = """\
# Written by `make docs` from the manifests beside this chart; edit those, not this file.
#
# base: the objects of every installation. agents: the DaemonSet without a component, and with each component.
# annotations: the annotations that each component adds to the DaemonSet. components: the objects that each component
# adds. The templates replace %NAME%, %ACCOUNT% and %NAMESPACE%.
"""

Object = dict[str, Any]


def file() -> str:
    """The text of files/objects.yaml."""
    return HEAD + yaml.dump(_with_places(parts()), Dumper=_Dumper, sort_keys=False, width=4096, allow_unicode=True)


def components() -> list[str]:
    """The names of the chart's switches: the folders of manifests/ with a kustomize component."""
    return sorted(each.parent.name for each in MANIFESTS.glob("*/kustomization.yaml"))


def parts() -> dict[str, Any]:
    """The base, the DaemonSet with and without each component, its annotations, and the objects that each component
    adds."""
    base = _labelled(_resources(MANIFESTS))
    agent = _agent(base)
    found: dict[str, Any] = {
        "base": [each for each in base if each is not agent],
        "agents": {"default": agent},
        "annotations": {},
        "components": {},
    }
    for name in components():
        added, changed = _with_component(copy.deepcopy(agent), MANIFESTS / name)
        found["components"][name] = added
        annotations = changed["metadata"].pop("annotations", {})
        if annotations:
            found["annotations"][name] = annotations
        if changed != agent:
            found["agents"][name] = changed
    return found


def _agent(objects: list[Object]) -> Object:
    (agent,) = (each for each in objects if each["kind"] == "DaemonSet")
    return agent


def _resources(folder: Path) -> list[Object]:
    return [
        each
        for name in _kustomization(folder).get("resources", ())
        for each in yaml.safe_load_all((folder / name).read_text())
        if each
    ]


def _kustomization(folder: Path) -> Object:
    found: Object = yaml.safe_load((folder / "kustomization.yaml").read_text())
    return found


def _labelled(objects: list[Object]) -> list[Object]:
    """Adds the labels of manifests/kustomization.yaml to each object; like kustomize, not to pod templates."""
    labels = _kustomization(MANIFESTS)["labels"]
    for each in objects:
        for row in labels:
            each["metadata"].setdefault("labels", {}).update(row["pairs"])
    return objects


def _with_component(agent: Object, folder: Path) -> tuple[list[Object], Object]:
    """The objects that the component adds, and the DaemonSet after its patches. JSON patches and strategic merge
    patches only: the components have no others."""
    for patch in _kustomization(folder).get("patches", ()):
        text = (folder / patch["path"]).read_text() if "path" in patch else patch["patch"]
        content = yaml.safe_load(text)
        if isinstance(content, list):
            agent = jsonpatch.apply_patch(agent, content)
        else:
            _merge(agent, content)
    return _resources(folder), agent


def _merge(into: Object, patch: Object) -> None:
    """A strategic merge: maps merge by key, and lists of items with a name by that name."""
    for key, value in patch.items():
        old = into.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            _merge(old, value)
        elif isinstance(old, list) and isinstance(value, list):
            by_name = {each["name"]: each for each in old}
            for each in value:
                _merge(by_name[each["name"]], each) if each["name"] in by_name else old.append(each)
        else:
            into[key] = value


def _with_places(found: dict[str, Any]) -> dict[str, Any]:
    every = [
        *found["base"],
        *found["agents"].values(),
        *(each for part in found["components"].values() for each in part),
    ]
    own = found["agents"]["default"]["metadata"]["name"]
    names = {each["metadata"]["name"] for each in every if each["metadata"]["name"].startswith(own)}
    placed: dict[str, Any] = _placed(found, own=own, names=names, key="")
    return placed


def _placed(value: Any, *, own: str, names: set[str], key: str) -> Any:
    """Replaces the name `own` and those in `names` by placeholders, for which Helm puts the release's names."""
    if isinstance(value, dict):
        is_account = value.get("kind") == "ServiceAccount"
        placed = {
            name: each
            if "/" in name
            else _placed(each, own=own, names=names, key="account" if is_account and name == "name" else name)
            for name, each in value.items()
        }
        if is_account and value.get("metadata", {}).get("name") == own:
            placed["metadata"]["name"] = "%ACCOUNT%"
        if value.get("kind") == "Namespace":
            placed["metadata"]["name"] = "%NAMESPACE%"
        return placed
    if isinstance(value, list):
        return [_placed(each, own=own, names=names, key=key) for each in value]
    if key == "namespace" and value == own:
        return "%NAMESPACE%"
    if key in ("account", "serviceAccountName") and value == own:
        return "%ACCOUNT%"
    if value in names:
        return f"%NAME%{value.removeprefix(own)}"
    return value.replace(f"--ds-name={own}", "--ds-name=%NAME%") if isinstance(value, str) else value


class _Dumper(yaml.SafeDumper):
    """Writes texts with several lines as YAML blocks, and repeated values in full instead of as aliases."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the base class's signature
        return True


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)
