"""The fields of the kinds that scheduling reads, from the models of the kubernetes client.

`python -m tests.scheduler_core.model.manifests.strict.api_fields` prints the table of known_fields.py.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import Any, Final

from kubernetes.client import models

from scheduler_core.model.manifests.object_reader import ObjectReader

Types = dict[str, dict[str, str]]

KINDS: Final = frozenset({*ObjectReader().kinds, "Deployment", "DaemonSet", "CronJob"})

# Fields that 1.32 to 1.36 had and the installed client, which is of 1.37, has not.
GONE: Final[Types] = {
    "PodSpec": {"workloadRef": "WorkloadReference"},  # 1.35
    "WorkloadReference": {"name": "", "podGroup": "", "podGroupReplicaKey": ""},
    "NodeAllocatableResourceClaimStatus": {"resources": ""},  # 1.36
}


def api_fields() -> Types:
    """Each type's fields with the type of their value, "" if it has no fields of its own. The versions of a type are
    one type."""
    found: Types = {name: dict(fields) for name, fields in GONE.items()}
    left = [name for name in dir(models) if _type_name(name) in KINDS and _is_model(name)]
    seen: set[str] = set()
    while left:
        name = left.pop()
        if name not in seen:
            seen.add(name)
            for field, inner in _fields(name):
                known = found.setdefault(_type_name(name), {})
                known[field] = known.get(field) or (_type_name(inner) if inner else "")
                left += [inner] if inner else []
    return found


def _fields(name: str) -> Iterator[tuple[str, str]]:
    model: Any = getattr(models, name)
    for attribute, written in model.openapi_types.items():
        inner = re.sub(r"^[Ll]ist\[(.*)\]$", r"\1", written)
        yield model.attribute_map[attribute], inner if _is_model(inner) else ""


def _is_model(name: str) -> bool:
    return hasattr(getattr(models, name, None), "openapi_types")


def _type_name(model: str) -> str:
    if model == "CoreV1ResourceClaim":  # of a container; the kind has the same name
        return "ContainerResourceClaim"
    return re.sub(r"^(Core|Resource|Storage)?V[0-9]+((alpha|beta)[0-9]+)?", "", model)


def as_table(types: Types) -> str:
    lines = (
        f"{name}: " + " ".join(f"{field}:{inner}" if inner else field for field, inner in sorted(fields.items()))
        for name, fields in sorted(types.items())
    )
    return "\n".join(textwrap.fill(line, 120, subsequent_indent="  ", break_on_hyphens=False) for line in lines)


if __name__ == "__main__":
    print(as_table(api_fields()))
