"""What happens to an object before it is stored: defaults, identity, generation, validation.

Of kube-apiserver's strategies and defaulting functions (`pkg/registry/**/strategy.go`, `pkg/apis/**/defaults.go`), the
part on which agents, controllers, kubectl and the demo's scheduler rely.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from drydock.server.api_errors import MODIFIED_MEANWHILE, conflict, invalid
from drydock.server.kinds.resources import ResourceType

Object = dict[str, Any]

_LABEL_VALUE = re.compile(r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$")
_QUALIFIED_NAME = re.compile(r"^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$")
_SUBDOMAIN = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
_ANNOTATION_BYTES_LIMIT = 256 * 1024
_TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
# Kinds whose names may hold colons and upper case (`system:node`), or anything a path segment may hold.
_FREE_NAMES = ("roles", "rolebindings", "clusterroles", "clusterrolebindings")

# Kinds whose metadata.generation counts changes of spec. Pods have it since 1.33, a budget always had it.
_COUNTED = frozenset(
    {
        "deployments",
        "replicasets",
        "statefulsets",
        "daemonsets",
        "poddisruptionbudgets",
        "replicationcontrollers",
        "jobs",
        "cronjobs",
        "pods",
    }
)

# Required numbers of a status: the real server writes their zeros, and typed clients refuse an object without them.
_ZERO_STATUS: dict[str, tuple[str, ...]] = {
    "daemonsets": ("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady"),
    "statefulsets": ("replicas", "availableReplicas"),
    "replicasets": ("replicas",),
    "replicationcontrollers": ("replicas",),
    "poddisruptionbudgets": ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"),
}


def as_written(resource: ResourceType, obj: Object) -> Object:
    """Adds what Go always writes, even if empty: structs that are not pointers, and the numbers of a status."""
    if not resource.has_status:
        return obj
    zeros = dict.fromkeys(_ZERO_STATUS.get(resource.plural, ()), 0)
    return {**obj, "spec": obj.get("spec") or {}, "status": {**zeros, **(obj.get("status") or {})}}


def prepared_for_create(resource: ResourceType, obj: Object) -> Object:
    """With defaults, and without the fields that a client may not set."""
    result = {**obj, "apiVersion": resource.api_version, "kind": resource.kind}
    if resource.has_status and not resource.keeps_status_on_create:
        result.pop("status", None)
    result = _defaulted(resource, result)
    if resource.plural in _COUNTED:
        result["metadata"] = {**result["metadata"], "generation": 1}
    return as_written(resource, _without_empties(resource, result))


def prepared_for_update(resource: ResourceType, old: Mapping[str, Any], new: Object, subresource: str) -> Object:
    """What a PUT or PATCH of the object or of its status stores."""
    result = {**new, "apiVersion": resource.api_version, "kind": resource.kind}
    if subresource == "status":
        # Only status moves; the real server also takes metadata of a Node's or Pod's status write, which nothing here
        # uses.
        result = {
            **old,
            "status": new.get("status", {}),
            "metadata": {**old["metadata"], "resourceVersion": new["metadata"].get("resourceVersion", "")},
        }
    elif resource.has_status:
        result.pop("status", None)
        if "status" in old:
            result["status"] = old["status"]
    result = _defaulted(resource, result) if subresource != "status" else result
    result["metadata"] = _kept_identity(resource, old, result)
    return as_written(resource, _without_empties(resource, result))


def _without_empties(resource: ResourceType, obj: Object) -> Object:
    """Removes what Go's `omitempty` leaves out if empty: `labels`, `annotations`, `finalizers`, `ownerReferences`,
    and of a Node's spec `taints` and `unschedulable`. Clients would notice: the real server never sends a Node with
    `unschedulable: false`."""
    metadata = {
        k: v
        for k, v in obj["metadata"].items()
        if v or k not in ("labels", "annotations", "finalizers", "ownerReferences")
    }
    if resource.plural != "nodes":
        return {**obj, "metadata": metadata}
    return {
        **obj,
        "metadata": metadata,
        "spec": {k: v for k, v in (obj.get("spec") or {}).items() if v or k not in ("taints", "unschedulable")},
    }


def _kept_identity(resource: ResourceType, old: Mapping[str, Any], new: Mapping[str, Any]) -> Object:
    before, after = old["metadata"], dict(new["metadata"])
    if after.get("uid") not in (None, "", before["uid"]):
        raise conflict(
            resource,
            before["name"],
            f"Precondition failed: UID in precondition: {after['uid']}, UID in object meta: {before['uid']}",
        )
    for field in (
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "generateName",
    ):
        if field in before:
            after[field] = before[field]
        else:
            after.pop(field, None)
    if resource.plural in _COUNTED and new.get("spec") != old.get("spec"):
        after["generation"] = before.get("generation", 1) + 1
    return after


def _defaulted(resource: ResourceType, obj: Object) -> Object:
    match resource.plural:
        case "pods":
            spec = pod_spec_defaults(obj.get("spec") or {})
            return {**obj, "spec": spec, "status": obj.get("status") or {"phase": "Pending", "qosClass": "Burstable"}}
        case "namespaces":
            labels = {
                **(obj["metadata"].get("labels") or {}),
                "kubernetes.io/metadata.name": obj["metadata"].get("name", ""),
            }
            return {
                **obj,
                "metadata": {**obj["metadata"], "labels": labels},
                "spec": obj.get("spec") or {"finalizers": ["kubernetes"]},
                "status": obj.get("status") or {"phase": "Active"},
            }
        case "deployments" | "replicasets" | "statefulsets" | "daemonsets":
            return {**obj, "spec": _workload_defaults(resource.plural, obj.get("spec") or {})}
        case "nodes":
            return {**obj, "spec": obj.get("spec") or {}, "status": obj.get("status") or {}}
        case "services":
            return {**obj, "spec": {"type": "ClusterIP", "sessionAffinity": "None", **(obj.get("spec") or {})}}
        case _:
            return obj


def pod_spec_defaults(spec: Mapping[str, Any]) -> Object:
    defaults: Object = {
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
        "securityContext": {},
        "enableServiceLinks": True,
    }
    return {**defaults, **spec}


def _workload_defaults(plural: str, spec: Mapping[str, Any]) -> Object:
    result = dict(spec)
    template = dict(result.get("template") or {})
    template["spec"] = pod_spec_defaults(template.get("spec") or {})
    result["template"] = {"metadata": {}, **template}
    if plural != "daemonsets":
        result.setdefault("replicas", 1)
    if plural in ("deployments", "statefulsets", "daemonsets"):
        result.setdefault("revisionHistoryLimit", 10)
    match plural:
        case "deployments":
            result.setdefault("progressDeadlineSeconds", 600)
            result.setdefault(
                "strategy", {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}
            )
        case "statefulsets":
            result.setdefault("podManagementPolicy", "OrderedReady")
            result.setdefault("updateStrategy", {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}})
        case "daemonsets":
            result.setdefault(
                "updateStrategy", {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
            )
    return result


# A pod's spec is fixed once it exists, but for these (pkg/apis/core/validation ValidatePodUpdate); nodeName is set by a
# binding, never by an update, and tolerations may only be added.
_POD_MUTABLE = frozenset(
    {
        "activeDeadlineSeconds",
        "terminationGracePeriodSeconds",
        "tolerations",
        "schedulingGates",
        "containers",
        "initContainers",
    }
)


def refuse_if_invalid(resource: ResourceType, new: Mapping[str, Any], old: Mapping[str, Any] | None) -> None:
    """Raises the real server's 422, which names every wrong field."""
    metadata = new["metadata"]
    causes = [*_metadata_faults(resource, metadata), *(_taint_faults(new) if resource.plural == "nodes" else [])]
    if resource.plural == "pods" and old is not None:
        before, after = pod_spec_defaults(old.get("spec", {})), pod_spec_defaults(new.get("spec", {}))
        causes += [
            (f"spec.{field}", "pod updates may change only a few fields")
            for field in sorted({*before, *after})
            if field not in _POD_MUTABLE and before.get(field) != after.get(field)
        ]
    if resource.plural in ("deployments", "replicasets", "statefulsets", "daemonsets"):
        causes += _selector_faults(new, old)
    if causes:
        raise invalid(resource, str(metadata.get("name", "")), causes)


def _metadata_faults(resource: ResourceType, metadata: Mapping[str, Any]) -> list[tuple[str, str]]:
    faults: list[tuple[str, str]] = []
    name = metadata.get("name", "")
    if resource.plural not in _FREE_NAMES and not (
        isinstance(name, str) and len(name) <= 253 and _SUBDOMAIN.match(name)
    ):
        faults.append(
            (
                "metadata.name",
                (
                    f'Invalid value: "{name}": a lowercase RFC 1123 subdomain must consist of lower case '
                    'alphanumeric characters, "-" or "."'
                ),
            )
        )
    labels = metadata.get("labels") or {}
    for key, value in labels.items():
        if not _is_qualified(key):
            faults.append(("metadata.labels", f'Invalid value: "{key}": not a qualified name'))
        if not isinstance(value, str) or len(value) > 63 or not _LABEL_VALUE.match(value):
            faults.append(
                (
                    "metadata.labels",
                    (
                        f'Invalid value: "{value}": a valid label must be an empty string or consist of '
                        'alphanumeric characters, "-", "_" or "."'
                    ),
                )
            )
    annotations = metadata.get("annotations") or {}
    for key, value in annotations.items():
        if not _is_qualified(key.lower()):
            faults.append(("metadata.annotations", f'Invalid value: "{key}": not a qualified name'))
        if not isinstance(value, str):
            faults.append((f"metadata.annotations[{key}]", f"must be a string, not {type(value).__name__}"))
    if sum(len(k) + len(v) for k, v in annotations.items() if isinstance(v, str)) > _ANNOTATION_BYTES_LIMIT:
        faults.append(("metadata.annotations", f"Too long: may not be more than {_ANNOTATION_BYTES_LIMIT} bytes"))
    return faults


def _is_qualified(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= 253 and _SUBDOMAIN.match(prefix)):
        return False
    return len(name) <= 63 and bool(_QUALIFIED_NAME.match(name))


def _taint_faults(node: Mapping[str, Any]) -> list[tuple[str, str]]:
    faults: list[tuple[str, str]] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate((node.get("spec") or {}).get("taints") or []):
        where = f"spec.taints[{index}]"
        if taint.get("effect") not in _TAINT_EFFECTS:
            faults.append(
                (
                    f"{where}.effect",
                    f'Unsupported value: "{taint.get("effect")}": supported values: {", ".join(_TAINT_EFFECTS)}',
                )
            )
        if not _is_qualified(taint.get("key", "")):
            faults.append((f"{where}.key", f'Invalid value: "{taint.get("key", "")}": not a qualified name'))
        identity = (taint.get("key", ""), taint.get("effect", ""))
        if identity in seen:
            faults.append((where, "Duplicate value: taints must be unique by key and effect pair"))
        seen.add(identity)
    return faults


def _selector_faults(new: Mapping[str, Any], old: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    selector = new["spec"].get("selector")
    if not selector:
        return [("spec.selector", "Required value")]
    if old is not None and old["spec"].get("selector") != selector:
        return [("spec.selector", "Invalid value: field is immutable")]
    labels = (new["spec"]["template"].get("metadata") or {}).get("labels") or {}
    if any(labels.get(k) != v for k, v in (selector.get("matchLabels") or {}).items()):
        return [("spec.template.metadata.labels", "Invalid value: `selector` does not match template `labels`")]
    return []


def refuse_stale(resource: ResourceType, old: Mapping[str, Any], wanted_version: str) -> None:
    """Raises a 409 if the write has a resourceVersion that is not the newest."""
    if wanted_version and wanted_version != old["metadata"]["resourceVersion"]:
        raise conflict(resource, old["metadata"]["name"], MODIFIED_MEANWHILE)
