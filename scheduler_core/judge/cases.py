"""Reads a case from a line of JSON, and writes the decisions as a line.

A case has `id`, `objects` (the whole cluster as API objects), `pods` ("namespace/name" of the pending pods to judge),
and optionally `config` (a KubeSchedulerConfiguration) and `kubeVersion`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import field

from scheduler_core.config.configuration import Configuration
from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.values import Value


class CaseError(ValueError):
    """Not a valid case; the message says what is missing. No pod of it was judged."""


class _CaseLine(msgspec.Struct, rename="camel"):
    id: str
    objects: list[dict[str, Any]]
    pods: list[str]
    config: dict[str, Any] | None = None
    kube_version: str = "1.36"


class Case(Value, kw_only=True):
    """A frozen cluster, and the pods to judge, each alone: all of them are removed from the cluster first."""

    id: str
    objects: Sequence[Mapping[str, Any]]
    pods: tuple[str, ...]
    configuration: Configuration = field(default_factory=Configuration)
    kube_version: KubeVersion


def read_case(line: str | bytes) -> Case:
    """Raises CaseError for invalid JSON, ConfigurationError for an invalid configuration."""
    try:
        written = msgspec.json.decode(line, type=_CaseLine)
    except msgspec.DecodeError as trouble:
        raise CaseError(f"the line is not a valid case: {trouble}") from trouble
    version = KubeVersion.parse(written.kube_version)
    configuration = Configuration() if written.config is None else Configuration.from_mapping(written.config, version)
    return Case(
        id=written.id,
        objects=written.objects,
        pods=tuple(written.pods),
        configuration=configuration,
        kube_version=version,
    )


def write_answers(case_id: str, answers: Mapping[str, Mapping[str, Any]]) -> str:
    return json.dumps({"id": case_id, "answers": answers}, separators=(",", ":"))
