"""The pods that a workload would create, with their owner, so that default spreading counts them together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from scheduler_core.model.manifests.error import ManifestError
from scheduler_core.model.manifests.from_manifest import Manifest, manifest_key, pod_from_manifest
from scheduler_core.model.pod import Pod
from scheduler_core.values import Value

# The field with the number of pods at once; a DaemonSet's number depends on the nodes.
_NUMBER: Final = {"Deployment": "replicas", "StatefulSet": "replicas", "Job": "parallelism", "DaemonSet": ""}


class WorkloadPods(Value, kw_only=True):
    """`pods` have no node. `objects`: the controllers in the API's form; default spreading finds the owner of a pod
    only if `load_objects` gets them together with the cluster."""

    pods: tuple[Pod, ...]
    objects: tuple[Mapping[str, Any], ...]


def workload_from_manifest(manifest: Manifest, *, count: int | None = None, strict: bool = True) -> WorkloadPods:
    """The pods of a Deployment, StatefulSet, DaemonSet, Job or CronJob (one run): `count` of them, by default as many
    as the spec says (1 if it does not). Raises ManifestError for another kind, or if the pod cannot be read."""
    if not isinstance(manifest, Mapping):
        raise TypeError(f"workload_from_manifest takes a mapping, got a {type(manifest).__name__}: parse it first")
    kind, metadata, spec = manifest.get("kind"), manifest.get("metadata") or {}, manifest.get("spec") or {}
    if kind == "CronJob":
        kind, spec = "Job", (spec.get("jobTemplate") or {}).get("spec") or {}
    if kind not in _NUMBER:
        problem = f"expected one of {', '.join(_NUMBER)} or CronJob, got {manifest.get('kind')!r}"
        raise ManifestError(kind="workload", key=manifest_key(manifest), field="kind", problem=problem)
    template, name = spec.get("template") or {}, metadata.get("name") or "workload"
    version, owner = ("batch/v1" if kind == "Job" else "apps/v1"), kind
    labels = dict((template.get("metadata") or {}).get("labels") or {})
    controller = {**manifest, "apiVersion": version, "kind": owner, "spec": spec}
    if kind == "Deployment":  # its ReplicaSet owns the pods
        owner = "ReplicaSet"
        kept = {key: spec[key] for key in ("replicas", "selector", "template") if key in spec}
        controller = {"apiVersion": version, "kind": owner, "metadata": metadata, "spec": kept}
    reference = {
        "apiVersion": version,
        "kind": owner,
        "name": name,
        "uid": metadata.get("uid") or name,
        "controller": True,
    }
    number = spec.get(_NUMBER[kind], 1) if count is None else count
    pods = tuple(
        pod_from_manifest(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": f"{name}-{each}",
                    "namespace": metadata.get("namespace") or "default",
                    "labels": labels
                    if kind != "StatefulSet"
                    else {**labels, "statefulset.kubernetes.io/pod-name": f"{name}-{each}"},
                    "ownerReferences": [reference],
                },
                "spec": template.get("spec") or {},
            },
            strict=strict,
        )
        for each in range(number)
    )
    return WorkloadPods(pods=pods, objects=(controller,))
