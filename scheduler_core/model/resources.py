"""Which resources the scheduler counts, and their amounts: cpu in millis, others in whole units.

Source: kube-scheduler pkg/scheduler/framework/types.go (Resource.Add) and pkg/apis/core/v1/helper
(IsScalarResourceName), v1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from scheduler_core.model.labels import is_label_key
from scheduler_core.model.quantity import nanos_to_millis, nanos_to_units

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"

# For scoring only, a container without a request counts as this much, so that pods without requests spread
# (pkg/scheduler/util/pod_resources.go).
DEFAULT_CPU_MILLIS: Final = 100
DEFAULT_MEMORY_BYTES: Final = 200 * 2**20

Amounts = Mapping[str, int]


@lru_cache(maxsize=4096)
def is_extended(name: str) -> bool:
    """A device or another countable resource outside the kubernetes.io domain."""
    return (
        "/" in name
        and "kubernetes.io/" not in name
        and not name.startswith("requests.")
        and is_label_key(f"requests.{name}")
    )


@lru_cache(maxsize=4096)
def is_scalar(name: str) -> bool:
    """Counted besides cpu, memory, ephemeral storage and pods: extended resources, huge pages, attachable volumes, and
    names in the kubernetes.io domain. The scheduler ignores unknown names without a prefix."""
    return is_extended(name) or name.startswith(("hugepages-", "attachable-volumes-")) or "kubernetes.io/" in name


def is_counted(name: str) -> bool:
    return name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar(name)


def whole_amounts(nanos: Mapping[str, int]) -> dict[str, int]:
    """From nano-units, rounded up. Leaves out resources that the scheduler ignores; keeps `pods`, a part of a node's
    capacity."""
    return {
        name: nanos_to_millis(amount) if name == CPU else nanos_to_units(amount)
        for name, amount in nanos.items()
        if name == PODS or is_counted(name)
    }
