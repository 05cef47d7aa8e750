"""What is in a case: `objects` are manifests, `pods` the keys of those that the schedulers are asked about."""

from __future__ import annotations

from typing import Any

Case = dict[str, Any]


def of(case: Case, kind: str) -> list[dict[str, Any]]:
    return [each for each in case["objects"] if each["kind"] == kind]


def asked(case: Case) -> list[dict[str, Any]]:
    return [
        pod for pod in of(case, "Pod") if f"{pod['metadata']['namespace']}/{pod['metadata']['name']}" in case["pods"]
    ]


def requests_of(pod: dict[str, Any]) -> list[dict[str, str]]:
    containers = [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]
    return [container.setdefault("resources", {}).setdefault("requests", {}) for container in containers]
