"""Protects a rebooting node from autoscalers, and recognises a node that an autoscaler is removing.

careen changes annotations that autoscalers read. A separate annotation on the Node keeps their earlier values. careen's
record on the Node (`facts/progress.py`) does not contain these values, so they survive if the record is lost, or if an
agent of an earlier release writes the record.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.untrusted import object_of

PROTECTION: Mapping[str, str] = {keys.SCALE_DOWN_DISABLED: "true", keys.DO_NOT_DISRUPT: "true"}
"""The annotations that keep the cluster autoscaler and Karpenter from removing a Node."""

_TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"  # cluster-autoscaler/utils/taints/taints.go
_DISRUPTED = "karpenter.sh/disrupted"  # Karpenter 1.0, pkg/apis/v1/taints.go
_DISRUPTION, _DISRUPTING = "karpenter.sh/disruption", "disrupting"  # Karpenter before 1.0
_KEEPS_PODS_OUT = frozenset({"NoSchedule", "NoExecute"})


def protected(node: NodeView) -> dict[str, str | None]:
    """Return the annotations that keep autoscalers from removing the Node, and one annotation that stores their earlier
    values. The agent sets these annotations when the node takes its claim. Return nothing if the Node already has the
    values that keep autoscalers away."""
    before = {key: node.annotations.get(key) for key, value in PROTECTION.items() if node.annotations.get(key) != value}
    if not before:
        return {}
    known = object_of(node.annotations.get(keys.SET_ANNOTATIONS))
    told = json.dumps({**{key: known[key] for key in PROTECTION if key in known}, **before}, sort_keys=True)
    return {**{key: PROTECTION[key] for key in before}, keys.SET_ANNOTATIONS: told}


def taken_back(annotations: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the changes of annotations that undo the changes which `protected` returned. Annotations that another
    client has changed since are left out."""
    text = annotations.get(keys.SET_ANNOTATIONS)
    if text is None:
        return {}
    before = object_of(text)
    back = {
        key: was
        for key, value in PROTECTION.items()
        if key in before and annotations.get(key) == value and ((was := before[key]) is None or isinstance(was, str))
    }
    return {**back, keys.SET_ANNOTATIONS: None}


def removed_by(node: NodeView) -> str:
    """Return the name of the autoscaler that is removing this node, according to the node's taints. Return an empty
    text if no autoscaler is removing the node.

    The taint `DeletionCandidateOfClusterAutoscaler` is ignored, because the cluster autoscaler often sets this taint
    and removes it again.
    """
    for taint in node.taints:
        if taint.effect not in _KEEPS_PODS_OUT:
            continue
        if taint.key == _TO_BE_DELETED:
            return "the cluster autoscaler"
        if taint.key == _DISRUPTED or (taint.key == _DISRUPTION and taint.value == _DISRUPTING):
            return "Karpenter"
    return ""


def left_alone(node: NodeView) -> str:
    """Return a sentence which says that an autoscaler is removing this node, and that careen therefore does not reboot
    the node. Return an empty text if no autoscaler is removing the node."""
    autoscaler = removed_by(node)
    return f"{autoscaler} is removing this node, so careen leaves the node alone" if autoscaler else ""
