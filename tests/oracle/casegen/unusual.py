"""Topics about fields that other cases hardly set: statuses of containers that differ from the spec, disks of migrated
plugins, images as volumes, victims that have not started, taints with numbers, host ports of sidecars, claims with
conditions."""

from __future__ import annotations

from typing import Any

from tests.oracle.casegen import vocabulary as word
from tests.oracle.casegen.case import Case, asked, of, requests_of
from tests.oracle.casegen.claims import device_class
from tests.oracle.casegen.draw import Draw
from tests.oracle.casegen.nodes import IMAGES
from tests.oracle.casegen.vocabulary import GPU
from tests.oracle.casegen.volumes import DRIVER

# Kind of an in-tree disk -> its plugin, and the CSI driver that replaced it.
_PLUGINS = {
    "awsElasticBlockStore": ("kubernetes.io/aws-ebs", "ebs.csi.aws.com"),
    "gcePersistentDisk": ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
    "azureDisk": ("kubernetes.io/azure-disk", "disk.csi.azure.com"),
    "cinder": ("kubernetes.io/cinder", "cinder.csi.openstack.org"),
    "portworxVolume": ("kubernetes.io/portworx-volume", "pxd.portworx.com"),
}
_DRIVERS = (DRIVER, *(driver for _, driver in _PLUGINS.values()))


# ---- statuses ----


def statuses(d: Draw, case: Case) -> None:
    """Statuses with resources that differ from the spec in every way: of running and of pending pods, of containers,
    sidecars, init containers and unknown names, with and without amounts of the whole pod."""
    for pod in of(case, "Pod"):
        spec, status = pod["spec"], pod["status"]
        if d.maybe(0.3):
            spec["overhead"] = {"cpu": "150m", "memory": "96Mi"} | ({GPU: "1"} if d.maybe(0.1) else {})
        if d.maybe(0.4):
            spec["resources"] = {d.often(("requests",), ("limits",)): _amounts(d, ("cpu", "memory", "hugepages-2Mi"))}
        if d.maybe(0.75):
            _report_containers(d, spec, status)
        if d.maybe(0.4):
            status["allocatedResources"] = _amounts(d, ("cpu", "memory", "hugepages-2Mi", "ephemeral-storage"))
        if d.maybe(0.4):
            status["resources"] = {"requests": _amounts(d, ("cpu", "memory", "hugepages-2Mi"))} if d.maybe(0.85) else {}
        for kind in ("PodResizeInProgress", "PodResizePending"):
            if d.maybe(0.25):
                status.setdefault("conditions", []).append(_condition(d, kind))


def _condition(d: Draw, kind: str) -> dict[str, Any]:
    return {
        "type": kind,
        "status": d.often(("True",), ("False",), 0.2),
        "reason": d.choice(("Infeasible", "Deferred", "Error", "")),
        "lastTransitionTime": "2026-01-01T01:30:00Z",
    }


def _report_containers(d: Draw, spec: dict[str, Any], status: dict[str, Any]) -> None:
    for field, where in (("containers", "containerStatuses"), ("initContainers", "initContainerStatuses")):
        names = [one["name"] for one in spec.get(field, [])] + (["nobody"] if d.maybe(0.1) else [])
        seen = [_container_status(d, name) for name in names if d.maybe(0.8)]
        if seen:
            status[where] = seen


def _container_status(d: Draw, name: str) -> dict[str, Any]:
    one: dict[str, Any] = {"name": name, "image": "x", "imageID": "", "ready": True, "restartCount": 0}
    names = ("cpu", "memory", "ephemeral-storage", GPU)
    if d.maybe(0.8):
        one["resources"] = {"requests": _amounts(d, names)} if d.maybe(0.85) else {}
    if d.maybe(0.7):
        one["allocatedResources"] = _amounts(d, names)
    return one


def _amounts(d: Draw, names: tuple[str, ...]) -> dict[str, str]:
    values = {
        "cpu": ("0", "100m", "500m", "1", "2500m"),
        "memory": ("0", "64Mi", "1Gi", "3G"),
        "hugepages-2Mi": ("2Mi", "64Mi"),
        "ephemeral-storage": ("0", "1Gi"),
        GPU: ("0", "1", "2"),
    }
    return {name: d.choice(values[name]) for name in names if d.maybe(0.8 if name in ("cpu", "memory") else 0.3)}


# ---- disks ----


def disks(d: Draw, case: Case) -> None:
    """In-tree disks of every migrated kind, inline, bound and to be provisioned, on nodes that name some plugins as
    migrated; drivers that must be installed; volumes that are attached."""
    plugins = [plugin for plugin, _ in _PLUGINS.values()]
    for csi_node in of(case, "CSINode"):
        csi_node["spec"]["drivers"] = [
            {"name": driver, "nodeID": "x", "topologyKeys": []}
            | ({"allocatable": {"count": d.choice((0, 1, 2, 3))}} if d.maybe(0.85) else {})
            for driver in d.some(_DRIVERS, 5)
        ]
        named = d.choice((plugins, plugins, d.some(plugins, 3), [""], None))
        csi_node["metadata"].pop("annotations", None)
        if named is not None:
            csi_node["metadata"]["annotations"] = {"storage.alpha.kubernetes.io/migrated-plugins": ",".join(named)}
    for volume in of(case, "PersistentVolume"):
        if "csi" in volume["spec"] and d.maybe(0.5):
            _take_in_tree(d, volume)
    for pod in of(case, "Pod"):
        if d.maybe(0.4):
            pod["spec"].setdefault("volumes", []).append({"name": "inline", **_disk(d, f"disk{d.randint(1, 6)}")})
    for storage_class in of(case, "StorageClass"):
        if storage_class["provisioner"] == DRIVER and d.maybe(0.4):
            storage_class["provisioner"] = d.choice(plugins)
    case["objects"] += _attachments(d, case)
    for driver in d.some(_DRIVERS, 3):
        spec: dict[str, Any] = {} if d.maybe(0.3) else {"preventPodSchedulingIfMissing": d.maybe(0.7)}
        case["objects"].append(
            {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": driver}, "spec": spec}
        )


def _take_in_tree(d: Draw, volume: dict[str, Any]) -> None:
    del volume["spec"]["csi"]
    volume["spec"] |= _disk(d, volume["metadata"]["name"])
    if "gcePersistentDisk" in volume["spec"]:  # several zones must have names like us-east1-b
        volume["spec"].pop("nodeAffinity", None)
        volume["metadata"].pop("labels", None)


def _attachments(d: Draw, case: Case) -> list[dict[str, Any]]:
    volumes = [volume["metadata"]["name"] for volume in of(case, "PersistentVolume")]
    return [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "VolumeAttachment",
            "metadata": {"name": f"more-{node['metadata']['name']}-{number}"},
            "spec": {
                "attacher": d.choice(_DRIVERS),
                "nodeName": node["metadata"]["name"],
                "source": {"persistentVolumeName": d.choice(volumes)},
            },
            "status": {"attached": d.maybe(0.8)},
        }
        for node in of(case, "Node")
        for number in range(d.choice((0, 0, 1, 2)) if volumes else 0)
    ]


def _disk(d: Draw, name: str) -> dict[str, Any]:
    kind = d.choice((*_PLUGINS, "azureFile", "vsphereVolume"))
    fields: dict[str, Any] = {
        "awsElasticBlockStore": {"volumeID": d.choice((f"vol-{name}", f"aws://za/vol-{name}"))},
        "gcePersistentDisk": {"pdName": name},
        "azureDisk": {"diskName": name, "diskURI": f"/disks/{name}", "kind": "Managed"},
        "cinder": {"volumeID": name},
        "portworxVolume": {"volumeID": name},
        "azureFile": {"secretName": "s", "shareName": name},
        "vsphereVolume": {"volumePath": name},
    }[kind]
    return {kind: fields}


# ---- images ----


def images(d: Draw, case: Case) -> None:
    for pod in asked(case):
        spec = pod["spec"]
        for container in (*spec["containers"], *spec.get("initContainers", [])):
            container["image"] = d.often(tuple(IMAGES), ("nobody/has-this:v1", "registry.example/plain"), 0.1)
        spec.setdefault("volumes", []).extend(
            {"name": f"image{i}", "image": {"reference": d.choice((*IMAGES, "registry.example/plain"))}}
            for i in range(d.choice((0, 1, 2, 4)))
        )


# ---- victims ----


def victims(d: Draw, case: Case) -> None:
    """Many small pods on few nodes, which often have not started or started together, and budgets that overlap."""
    nodes = [node["metadata"]["name"] for node in of(case, "Node")]
    case["objects"] = [
        each
        for each in case["objects"]
        if each["kind"] != "PodDisruptionBudget" and not (each["kind"] == "Pod" and each["spec"].get("nodeName"))
    ]
    for node in of(case, "Node"):
        node["status"]["allocatable"] |= {"cpu": "4", "memory": "64Gi", "pods": "110"}
    for name in nodes:
        count = d.choice((4, 11, 13, 26))
        for i in range(count):
            namespace = d.often(("default",), word.NAMESPACES, 0.2)
            status: dict[str, Any] = {"phase": "Running"}
            if d.maybe(0.6):
                status["startTime"] = f"2026-01-01T01:0{d.randint(0, 3)}:00Z"
            case["objects"].append(
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {
                        "name": f"small-{name}-{i}",
                        "namespace": namespace,
                        "uid": f"small-{name}-{i}",
                        "labels": word.pod_labels(d),
                    },
                    "spec": {
                        "nodeName": name,
                        "priority": d.choice((-10, 0, 0, 0, 5)),
                        "containers": [
                            {
                                "name": "c",
                                "image": "x",
                                "resources": {"requests": {"cpu": f"{4000 // count - d.choice((0, 0, 5))}m"}},
                            }
                        ],
                    },
                    "status": status,
                }
            )
    for i in range(d.choice((0, 1, 1))):
        case["objects"].append(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": f"pdb{i}", "namespace": "default"},
                "spec": {"selector": word.label_selector(d) or {}},
                "status": {
                    "disruptionsAllowed": d.choice((0, 1, 3)),
                    "currentHealthy": 3,
                    "desiredHealthy": 2,
                    "expectedPods": 3,
                },
            }
        )
    for pod in asked(case):
        pod["spec"]["priority"] = d.choice((1, 100, 100))
        pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": d.choice(("5m", "500m", "1", "3"))}}


# ---- taints ----


def taints(d: Draw, case: Case) -> None:
    """Taints and tolerations with numbers and unusual operators, and spread that honors taints."""
    for node in of(case, "Node"):
        if d.maybe(0.6):
            node["spec"]["taints"] = [
                {"key": key, "effect": d.choice(("NoSchedule", "PreferNoSchedule", "NoExecute"))}
                | ({"value": d.choice(("", "1", "5", "-2", "05", "x"))} if d.maybe(0.8) else {})
                for key in d.some(("level", "spot", "dedicated"), 2)
            ]
        node["spec"]["unschedulable"] = d.maybe(0.1)
    for pod in of(case, "Pod"):
        pod["spec"]["tolerations"] = [
            {
                "key": d.choice(("level", "spot", "dedicated", "node.kubernetes.io/unschedulable")),
                "operator": d.choice(("Exists", "Equal", "Gt", "Lt", "Gt", "")),
                "value": d.choice(("", "1", "3", "5", "x", "-1")),
            }
            | ({"effect": d.choice(("NoSchedule", "PreferNoSchedule", "NoExecute", ""))} if d.maybe(0.6) else {})
            for _ in range(d.randint(0, 3))
        ]
        for constraint in pod["spec"].get("topologySpreadConstraints", []):
            constraint["nodeTaintsPolicy"] = d.choice(("Honor", "Honor", "Ignore"))


# ---- ports ----


def ports(d: Draw, case: Case) -> None:
    """Host ports of containers, sidecars and init containers, on the host's network too."""
    for pod in of(case, "Pod"):
        pod["spec"]["hostNetwork"] = d.maybe(0.2)
        init = pod["spec"].setdefault("initContainers", [])
        if not init:
            init.append({"name": "i0", "image": "x", "resources": {}})
        for container in (*pod["spec"]["containers"], *init):
            if container in init and d.maybe(0.5):
                container["restartPolicy"] = "Always"
            if d.maybe(0.25):
                port = d.choice((8080, 8081, 9090))
                container["ports"] = [
                    {
                        "containerPort": port,
                        "hostPort": port,
                        "protocol": d.choice(("TCP", "UDP")),
                        "hostIP": d.choice(("", "0.0.0.0", "10.0.0.1", "127.0.0.1", "::")),
                    }
                ]


# ---- claims ----


def conditions(d: Draw, case: Case) -> None:
    """Allocated claims whose devices have binding conditions, and claims for extended resources that an earlier attempt
    left behind. No claim with conditions has a time, because a case has no clock."""
    for claim in of(case, "ResourceClaim"):
        if claim.get("status", {}).get("allocation"):
            _bind(d, claim["status"], [node["metadata"]["name"] for node in of(case, "Node")])
    case["objects"].append(device_class(GPU))
    for node in of(case, "Node"):
        node["status"]["allocatable"][GPU] = d.choice(("1", "4"))
    for pod in asked(case):
        if d.maybe(0.5):
            d.choice(requests_of(pod))[GPU] = d.choice(("0", "1", "2"))
        if d.maybe(0.4):
            case["objects"].append(_leftover(d, pod))


def _bind(d: Draw, status: dict[str, Any], nodes: list[str]) -> None:
    allocation = status["allocation"]
    for device in allocation["devices"]["results"]:
        if d.maybe(0.3):
            allocation["allocationTimestamp"] = "2026-01-01T00:00:00Z"
        else:
            device["bindingConditions"] = d.some(("Ready", "Attached"), 2)
            device["bindingFailureConditions"] = d.some(("Broken", "Lost"), 2)
        if d.maybe(0.6):
            place = {"driver": device["driver"], "pool": device["pool"], "device": d.often((device["device"],), ("x",))}
            kinds = d.some(("Ready", "Attached", "Broken"), 3)
            status["devices"] = [place | {"conditions": [_device_condition(d, kind) for kind in kinds]}]
    if d.maybe(0.2) and "nodeSelector" in allocation:
        field = {"key": "metadata.name", "operator": "In", "values": [d.choice(nodes)]}
        allocation["nodeSelector"]["nodeSelectorTerms"] = [{"matchFields": [field]}]


def _device_condition(d: Draw, kind: str) -> dict[str, Any]:
    return {
        "type": kind,
        "status": d.choice(("True", "True", "False")),
        "reason": "x",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


def _leftover(d: Draw, pod: dict[str, Any]) -> dict[str, Any]:
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    uid = d.often((pod["metadata"]["uid"],), ("another",), 0.2)
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": f"{name}-extended-resources-x",
            "namespace": namespace,
            "uid": f"leftover-{namespace}-{name}",
            "annotations": {"resource.kubernetes.io/extended-resource-claim": d.often(("true",), ("false",))},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": True}],
        },
        "spec": {"devices": {"requests": [{"name": "c-0", "exactly": {"deviceClassName": "gpu"}}]}},
        "status": {},
    }
