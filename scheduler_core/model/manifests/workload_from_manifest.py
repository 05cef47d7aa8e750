"""The pods that a workload would create, with their owner, so that default spreading counts them together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from scheduler_core.arguments import expect_flags
from scheduler_core.model.manifests import wire
from scheduler_core.model.manifests.error import FieldError, ManifestError
from scheduler_core.model.manifests.fields import label_selector
from scheduler_core.model.manifests.from_manifest import Manifest, convert, manifest_key, pod_from_manifest
from scheduler_core.model.manifests.strict.checks import check_fields, check_workload
from scheduler_core.model.pod import Pod
from scheduler_core.values import Value, replace_value

_MOST: Final = 150_000  # the pods of the largest cluster that Kubernetes supports


class _Template(wire.Wire, frozen=True):
    metadata: wire.WireMeta | None = None
    spec: wire.WirePodSpec | None = None


class _ClaimTemplate(wire.Wire, frozen=True):
    metadata: wire.WireMeta = wire.WireMeta()
    spec: dict[str, Any] | None = None


class _Spec(wire.Wire, frozen=True):
    replicas: int | None = None
    parallelism: int | None = None
    completions: int | None = None
    selector: wire.WireSelector | None = None
    template: _Template | None = None
    volume_claim_templates: tuple[_ClaimTemplate, ...] | None = None


class _JobTemplate(wire.Wire, frozen=True):
    spec: _Spec | None = None


class _WorkloadSpec(_Spec, frozen=True):
    job_template: _JobTemplate | None = None


class _Workload(wire.Wire, frozen=True):
    metadata: wire.WireMeta = wire.WireMeta()
    spec: _WorkloadSpec | None = None


class WorkloadPods(Value, kw_only=True):
    """`pods` have no node. `objects`: the controller in the API's form, and the claims that a StatefulSet makes for
    these pods; default spreading finds the owner of a pod only if `load_objects` gets them together with the
    cluster."""

    pods: tuple[Pod, ...]
    objects: tuple[Mapping[str, Any], ...]


def workload_from_manifest(manifest: Manifest, *, count: int | None = None, strict: bool = True) -> WorkloadPods:
    """The pods of a Deployment, ReplicaSet, StatefulSet, DaemonSet, Job or CronJob (one run): `count` of them, by
    default as many as the spec says (1 if it does not). A missing selector becomes the template's labels. Raises
    ManifestError for another kind and for what cannot be read, ValueError for a `count` that is no number of pods."""
    expect_flags(strict=strict)
    if count is not None and (type(count) is not int or not 0 <= count <= _MOST):
        raise ValueError(f"count is {count!r}, expected a whole number from 0 to {_MOST}")
    key = manifest_key(manifest)
    kind = check_workload(manifest, key)
    if strict:
        check_fields(kind, manifest, key)
    try:
        return _pods(kind, manifest, convert(manifest, kind, _Workload), count=count)
    except FieldError as trouble:
        raise ManifestError(kind=kind, key=key, field=trouble.field, problem=trouble.problem) from None


def _pods(kind: str, manifest: Manifest, written: _Workload, *, count: int | None) -> WorkloadPods:
    name, namespace = written.metadata.name, written.metadata.namespace or "default"
    if not name:
        raise FieldError("metadata.name", "an object needs a name")
    where, spec, raw = "spec", written.spec or _Spec(), manifest.get("spec") or {}
    if kind == "CronJob":
        inner = written.spec.job_template if written.spec else None
        where, spec = "spec.jobTemplate.spec", (inner.spec if inner else None) or _Spec()
        raw = (raw.get("jobTemplate") or {}).get("spec") or {}
    number = _number(where, spec) if count is None else count
    template = spec.template
    if template is None or template.spec is None or not template.spec.containers:
        problem = "a workload needs a template of its pods: write metadata.labels and spec.containers in it"
        raise FieldError(f"{where}.template", problem)
    controller = _controller(kind, where, manifest, spec, raw)
    reference = {
        "apiVersion": controller["apiVersion"],
        "kind": controller["kind"],
        "name": name,
        "uid": written.metadata.uid or name,
        "controller": True,
    }
    meta = {"labels": {}, **(raw["template"].get("metadata") or {}), "namespace": namespace}
    base = {"metadata": {**meta, "ownerReferences": [reference]}, "spec": raw["template"]["spec"]}

    def pod(each: int, parts: Mapping[str, Any] = base) -> Pod:
        identity = {**parts["metadata"], "name": f"{name}-{each}"}
        try:
            return pod_from_manifest({**parts, "metadata": identity}, strict=False)  # checked with the workload
        except ManifestError as error:
            raise FieldError(f"{where}.template.{error.field}", error.problem) from error

    first = pod(0)
    if kind != "StatefulSet":
        copies = (first if each == 0 else replace_value(first, name=f"{name}-{each}") for each in range(number))
        return WorkloadPods(pods=tuple(copies), objects=(controller,))
    claims = [_claim_template(where, index, each, raw) for index, each in enumerate(spec.volume_claim_templates or ())]
    pods = tuple(
        pod(each, _with_identity(base, f"{name}-{each}", [made for made, _ in claims])) for each in range(number)
    )
    made = [
        {**claim, "metadata": {**claim["metadata"], "name": f"{volume}-{each.name}", "namespace": namespace}}
        for each in pods
        for volume, claim in claims
    ]
    return WorkloadPods(pods=pods, objects=(controller, *made))


def _number(where: str, spec: _Spec) -> int:
    """A Job runs at most as many pods as it must complete."""
    if spec.replicas is not None:
        field, number = "replicas", spec.replicas
    elif spec.completions is not None and spec.completions < (spec.parallelism or 1):
        field, number = "completions", spec.completions
    else:
        field, number = "parallelism", 1 if spec.parallelism is None else spec.parallelism
    if not 0 <= number <= _MOST:
        raise FieldError(f"{where}.{field}", f"{number} is no number of pods: expected 0 to {_MOST}")
    return number


def _controller(kind: str, where: str, manifest: Manifest, spec: _Spec, raw: Manifest) -> dict[str, Any]:
    """The object that the pods name as their controller: of a Deployment its ReplicaSet, of a CronJob its Job."""
    owner = {"Deployment": "ReplicaSet", "CronJob": "Job"}.get(kind, kind)
    version = "batch/v1" if owner == "Job" else "apps/v1"
    kept = (
        {key: raw[key] for key in ("replicas", "selector", "template") if key in raw} if kind == "Deployment" else raw
    )
    labels = spec.template.metadata.labels if spec.template and spec.template.metadata else None
    if owner != "Job" and spec.selector is None and labels:
        kept = {**kept, "selector": {"matchLabels": dict(labels)}}
    elif owner != "Job" and spec.selector is not None:
        selector = label_selector(spec.selector)
        if not selector.matches(labels or {}):
            problem = selector.problem or f"does not match the labels of the template: {dict(labels or {})}"
            raise FieldError(f"{where}.selector", problem)
    metadata = {key: value for key, value in manifest["metadata"].items() if key != "ownerReferences"}
    return {"apiVersion": version, "kind": owner, "metadata": metadata, "spec": kept}


def _claim_template(where: str, index: int, written: _ClaimTemplate, raw: Manifest) -> tuple[str, dict[str, Any]]:
    if not written.metadata.name:
        field = f"{where}.volumeClaimTemplates[{index}].metadata.name"
        raise FieldError(field, "an object needs a name")
    claim = raw["volumeClaimTemplates"][index]
    spec = claim.get("spec") or {}
    kept = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": dict(claim["metadata"]), "spec": spec}
    return written.metadata.name, kept


def _with_identity(base: Mapping[str, Any], name: str, volumes: list[str]) -> Mapping[str, Any]:
    """With the label and the claims that the StatefulSet controller gives the pod of this name. Its claim replaces a
    volume of the same name."""
    labels = {**(base["metadata"]["labels"] or {}), "statefulset.kubernetes.io/pod-name": name}
    others = [each for each in base["spec"].get("volumes") or () if each.get("name") not in volumes]
    claimed = [{"name": each, "persistentVolumeClaim": {"claimName": f"{each}-{name}"}} for each in volumes]
    return {
        "metadata": {**base["metadata"], "labels": labels},
        "spec": {**base["spec"], "volumes": [*others, *claimed]},
    }
