"""Pods that ask autoscalers not to disturb them."""

from __future__ import annotations

from collections.abc import Mapping

RESTING: tuple[tuple[str, str], ...] = (
    ("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"),  # cluster autoscaler
    ("karpenter.sh/do-not-disrupt", "true"),  # Karpenter
    ("karpenter.sh/do-not-evict", "true"),  # Karpenter before v1beta1
)
"""The annotations and their values."""
_TEXTS = tuple((key, value, f"{key}={value}") for key, value in RESTING)


def wants_rest(annotations: Mapping[str, str]) -> str:
    """The first of these annotations, such as `karpenter.sh/do-not-disrupt=true`; "" without one."""
    return next((text for key, value, text in _TEXTS if annotations.get(key) == value), "")
