"""Pods anywhere in the cluster that forbid reboots (--blocking-pods)."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote

from careen.cluster import objects
from careen.cluster.pods import PODS
from careen.cluster.wire.api import ClusterApi
from careen.core.facts.observation import PlacedPod
from careen.core.facts.policy import BlockingPods, BlockingScope

_AT_REST = ("Succeeded", "Failed", "Unknown")  # kured's field selector (pkg/blockers/kubernetespod.go)


async def list_blocking_pods(api: ClusterApi, rules: Iterable[BlockingPods]) -> tuple[PlacedPod, ...]:
    """The pods that entries with a wider scope than the node select: one list for each entry, or for each namespace
    that it names. The server picks them by their labels. Raises `ClusterError`."""
    found: list[PlacedPod] = []
    for rule in rules:
        if rule.scope is not BlockingScope.NODE:
            for path in _paths(rule):
                pods = await api.items(path, objects.Pod, query={"labelSelector": rule.selector.text})
                found += (_placed(pod, rule) for pod in pods if _blocks(pod, rule))
    return tuple(found)


def _paths(rule: BlockingPods) -> tuple[str, ...]:
    named = tuple(f"/api/v1/namespaces/{quote(namespace, safe='')}/pods" for namespace in rule.namespaces)
    return named or (PODS,)


def _blocks(pod: objects.Pod, rule: BlockingPods) -> bool:
    view = objects.pod_view(pod)
    return view.phase not in _AT_REST and rule.matches(view.namespace, view.labels)


def _placed(pod: objects.Pod, rule: BlockingPods) -> PlacedPod:
    return PlacedPod(title=objects.pod_view(pod).title, node=pod.spec.node_name or "", rule=rule.name)
