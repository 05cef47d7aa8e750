"""How much memory a snapshot takes if one tenant writes some 46 KiB of different text into each of 1,200 pods, on all
nodes.

`python -m bench.forecast.tenant` prints, for each field that a tenant may fill, the JSON's size, what a new process
grew by, what was left out, and whether the forecast of a node with such pods refuses. FIELD as an argument: that field
alone.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from careen.core.drain.forecast_objection import objection_to
from careen.core.facts.policy import Policy
from scheduler_core.simulation.drain import simulate_drain
from scheduler_core.simulation.forecast import Outcome
from scheduler_core.snapshot.left_out import left_out
from scheduler_core.snapshot.loading import PageReader

_PODS, _PAGE, _NODES = 1200, 100, 60
_MIB = 1 << 20


def main() -> None:
    for field in sys.argv[1:] or _FIELDS:
        if len(sys.argv) == 2:
            _measure(field)
        else:  # a process of its own: the peak of one never falls
            subprocess.run([sys.executable, "-m", "bench.forecast.tenant", field], check=True)


def _measure(field: str) -> None:
    reader, size, before = PageReader(), 0, _peak_bytes()
    reader.add(_list("Node", [_node(number) for number in range(_NODES)]))
    for first in range(0, _PODS, _PAGE):
        page = _list("Pod", [_pod(number, _FIELDS[field]) for number in range(first, first + _PAGE)])
        size += len(page)
        reader.add(page)
    snapshot = reader.snapshot()
    read = _peak_bytes() - before
    (forecast,) = simulate_drain(snapshot, ["n1"], made_at="2026-01-01T00:00:00Z")
    refusal = objection_to(forecast, Policy(node_name="n1")) or "no"
    print(
        f"{field}: {size / _MIB:.0f} MiB of JSON; the process grew by {read / _MIB:.0f} MiB, with a forecast by "
        f"{(_peak_bytes() - before) / _MIB:.0f}; of {len(forecast.pods)} pods on a node "
        f"{forecast.count(Outcome.UNKNOWN)} are unknown; refuses: {refusal}"
    )
    print(*left_out(snapshot), sep="\n", flush=True)


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _list(kind: str, items: list[dict[str, Any]]) -> bytes:
    return json.dumps({"kind": f"{kind}List", "apiVersion": "v1", "items": items}, separators=(",", ":")).encode()


def _node(number: int) -> dict[str, Any]:
    return {
        "metadata": {"name": f"n{number}", "labels": {"kubernetes.io/hostname": f"n{number}"}},
        "status": {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "110"}},
    }


def _pod(number: int, fill: Callable[[dict[str, Any], int], None]) -> dict[str, Any]:
    pod: dict[str, Any] = {
        "metadata": {
            "name": f"p{number}",
            "namespace": "tenant",
            "uid": f"u{number}",
            "labels": {"a": str(number)},
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}
            ],
        },
        "spec": {
            "nodeName": f"n{number % _NODES}",
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1m"}}}],
        },
        "status": {"phase": "Running"},
    }
    fill(pod, number)
    return pod


def _affinity(pod: dict[str, Any], number: int) -> None:
    preferred = [
        {
            "weight": 1,
            "podAffinityTerm": {
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {
                    "matchExpressions": [
                        {"key": f"k{number}-{term}", "operator": "In", "values": [f"v{number}-{term}"]}
                    ]
                },
            },
        }
        for term in range(270)
    ]
    pod["spec"]["affinity"] = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def _tolerations(pod: dict[str, Any], number: int) -> None:
    pod["spec"]["tolerations"] = [{"key": f"k{number}-{each}", "operator": "Exists"} for each in range(1000)]


def _containers(pod: dict[str, Any], number: int) -> None:
    pod["spec"]["containers"] = [
        {"name": f"c{number}-{each}", "image": f"i{number}-{each}", "resources": {"requests": {"cpu": "1m"}}}
        for each in range(550)
    ]


def _requests(pod: dict[str, Any], number: int) -> None:
    wanted = {f"example.com/r{number}-{each}": "0" for each in range(1600)}
    pod["spec"]["containers"][0]["resources"]["requests"] = wanted


def _volumes(pod: dict[str, Any], number: int) -> None:
    pod["spec"]["volumes"] = [
        {"name": f"v{number}-{each}", "persistentVolumeClaim": {"claimName": f"c{number}-{each}"}}
        for each in range(700)
    ]


def _labels(pod: dict[str, Any], number: int) -> None:
    pod["metadata"]["labels"] = {f"k{number}-{each}": f"v{number}-{each}-{'x' * 24}" for each in range(1000)}


def _owners(pod: dict[str, Any], number: int) -> None:
    pod["metadata"]["ownerReferences"] += [
        {"kind": "ConfigMap", "apiVersion": "v1", "name": f"{number}-{each}", "uid": f"{number}-{each}"}
        for each in range(600)
    ]


_FIELDS: dict[str, Callable[[dict[str, Any], int], None]] = {
    "affinity": _affinity,
    "tolerations": _tolerations,
    "containers": _containers,
    "requests": _requests,
    "volumes": _volumes,
    "labels": _labels,
    "owners": _owners,
}


if __name__ == "__main__":
    main()
