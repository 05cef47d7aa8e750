"""Keeps autoscalers from removing a rebooting node, and recognises a node that one, or another client, is removing.

The earlier values of the changed annotations are in an annotation of their own and not in the record, so they survive
the loss of the record, and an agent of an earlier release that writes it.
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
    """The annotations that keep autoscalers away, and the one with their earlier values; empty if the Node has them
    all."""
    before = {key: node.annotations.get(key) for key, value in PROTECTION.items() if node.annotations.get(key) != value}
    if not before:
        return {}
    known = object_of(node.annotations.get(keys.SET_ANNOTATIONS))
    told = json.dumps({**{key: known[key] for key in PROTECTION if key in known}, **before}, sort_keys=True)
    return {**{key: PROTECTION[key] for key in before}, keys.SET_ANNOTATIONS: told}


def taken_back(annotations: Mapping[str, Any]) -> dict[str, str | None]:
    """The change that undoes `protected`, except for annotations that another client has changed since."""
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
    """The autoscaler that is removing this node, by its taints, or whoever deletes the Node; "" if nobody does.

    `DeletionCandidateOfClusterAutoscaler` does not count: the cluster autoscaler often sets it and removes it again.
    """
    if node.is_being_deleted:
        return "a client that deletes the Node"
    for taint in node.taints:
        if taint.effect not in _KEEPS_PODS_OUT:
            continue
        if taint.key == _TO_BE_DELETED:
            return "the cluster autoscaler"
        if taint.key == _DISRUPTED or (taint.key == _DISRUPTION and taint.value == _DISRUPTING):
            return "Karpenter"
    return ""


def left_alone(node: NodeView) -> str:
    """Why careen does not reboot a node that somebody is removing; "" if nobody is."""
    if node.is_being_deleted:
        return "the Node is being deleted, so careen leaves the node alone"
    autoscaler = removed_by(node)
    return f"{autoscaler} is removing this node, so careen leaves the node alone" if autoscaler else ""
