"""How much memory a snapshot takes if one tenant writes 46 KiB of different affinity into each of 1,200 pods.

`python -m bench.forecast.tenant` prints the JSON's size, what the process grew by, and what was left out.
"""

from __future__ import annotations

import json
import resource
from typing import Any

from scheduler_core.snapshot.loading import PageReader

_PODS, _PAGE, _TERMS = 1200, 100, 270
_MIB = 1 << 20


def main() -> None:
    reader, size, before = PageReader(), 0, _peak_bytes()
    for first in range(0, _PODS, _PAGE):
        items = [_pod(number) for number in range(first, first + _PAGE)]
        page = json.dumps({"kind": "PodList", "apiVersion": "v1", "items": items}, separators=(",", ":")).encode()
        size += len(page)
        reader.add(page)
    snapshot = reader.snapshot()
    print(f"{size / _MIB:.0f} MiB of JSON; the process grew by {(_peak_bytes() - before) / _MIB:.0f} MiB")
    print(*snapshot.problems, sep="\n")


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _pod(number: int) -> dict[str, Any]:
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
        for term in range(_TERMS)
    ]
    return {
        "metadata": {"name": f"p{number}", "namespace": "tenant", "uid": f"u{number}", "labels": {"a": str(number)}},
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1m"}}}],
            "affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}},
        },
        "status": {"phase": "Running"},
    }


if __name__ == "__main__":
    main()
