"""Generates storage: storage classes, PersistentVolumeClaims in every state, volumes, and CSI drivers with limits and
capacities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.oracle.casegen import vocabulary as word
from tests.oracle.casegen.draw import Draw, without_none
from tests.oracle.casegen.flavours import Flavour

DRIVER = "csi.example.com"
TRACKED = "tracked.example.com"  # the driver that publishes its capacities
CLASSES: dict[str, dict[str, Any]] = {
    "wait": {"provisioner": DRIVER, "volumeBindingMode": "WaitForFirstConsumer"},
    "now": {"provisioner": DRIVER, "volumeBindingMode": "Immediate"},
    "static": {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"},
    "zonal": {
        "provisioner": DRIVER,
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": word.ZONE, "values": ["za", "zb"]}]}],
    },
    "tracked": {"provisioner": TRACKED, "volumeBindingMode": "WaitForFirstConsumer"},
    "modeless": {"provisioner": DRIVER},
    "cloud": {"provisioner": "kubernetes.io/aws-ebs", "volumeBindingMode": "WaitForFirstConsumer"},
}
# State of a claim -> how often a pod's claim is in it.
STATES = {
    "bound": 40,
    "waiting": 10,
    "static": 14,
    "zonal": 6,
    "tracked": 10,
    "selected": 4,
    "unbound": 3,
    "missing": 2,
    "lost": 2,
    "leaving": 2,
    "orphaned": 3,
    "exclusive": 8,
    "halfbound": 2,
    "classless": 1,
    "unknown-class": 1,
    "modeless": 1,
    "in-tree": 5,
    "shared": 10,
    "nameless": 0,
}
BOUND = ("bound", "shared", "exclusive", "orphaned", "lost", "leaving", "halfbound", "in-tree")


@dataclass(frozen=True, slots=True)
class Owner:
    """The pod that uses a volume."""

    namespace: str
    pod: str
    uid: str
    placed: bool


class Storage:
    """All storage objects of one case. `volumes_for` adds the objects that the volumes of a pod need."""

    def __init__(self, d: Draw, nodes: list[dict[str, Any]], *, wanted: bool, odd: bool = False) -> None:
        """Creates the storage for `nodes`, which are the Node manifests of the case. If `wanted` is False, there are no
        storage classes. With `odd`, every state of a claim is equally likely."""
        self.odds = [1] * len(STATES) if odd else list(STATES.values())
        self.nodes = [node["metadata"]["name"] for node in nodes]
        self.objects: list[dict[str, Any]] = []
        self.numbers = iter(range(1, 100_000))
        self.claims: list[tuple[str, str]] = []  # namespace and name of claims that others may share
        if not wanted:
            return
        for name, fields in CLASSES.items():
            self._add("storage.k8s.io/v1", "StorageClass", {"name": name}, **fields)
        for i in range(d.randint(0, 5)):
            self._free_volume(d, f"free{i}")
        self._drivers(d)

    def volumes_for(
        self, d: Draw, flavour: Flavour, namespace: str, pod: str, uid: str, *, placed: bool
    ) -> list[dict[str, Any]]:
        """Returns the volumes of one pod. Adds their claims and PersistentVolumes to the case."""
        volumes = []
        if d.maybe(flavour.disks):
            volumes.append(_disk(d))
        if d.maybe(flavour.volumes):
            volumes += [
                self._claim_volume(d, Owner(namespace, pod, uid, placed)) for _ in range(d.choice((1, 1, 2, 3)))
            ]
        if d.maybe(0.03):
            volumes.append({"name": f"e{next(self.numbers)}", "emptyDir": {}})
        if d.maybe(0.02):
            volumes.append({"name": f"im{next(self.numbers)}", "image": {"reference": "registry.example/db:v1"}})
        return volumes

    def _claim_volume(self, d: Draw, owner: Owner) -> dict[str, Any]:
        number = next(self.numbers)
        if d.maybe(0.12):
            return self._ephemeral(d, owner, f"v{number}")
        state = (
            d.choices(list(STATES), self.odds)[0]
            if not owner.placed
            else d.choice(("bound", "bound", "shared", "exclusive", "waiting", "in-tree", "missing"))
        )
        if state == "shared" and self.claims:
            shared = [claim for ns, claim in self.claims if ns == owner.namespace]
            if shared:
                return _claim_source(f"v{number}", d.choice(shared))
        name = f"claim{number}"
        if state == "nameless":
            return _claim_source(f"v{number}", "")
        if state != "missing":
            self._claim(d, owner.namespace, name, state)
        return _claim_source(f"v{number}", name)

    def _ephemeral(self, d: Draw, owner: Owner, volume: str) -> dict[str, Any]:
        if owner.placed or not d.maybe(0.2):  # otherwise the controller has not made the claim yet
            reference = {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": owner.pod,
                "uid": owner.uid if owner.placed or d.maybe(0.85) else "another",
                "controller": True,
            }
            self._claim(d, owner.namespace, f"{owner.pod}-{volume}", d.choice(("bound", "waiting")), owners=[reference])
        return {
            "name": volume,
            "ephemeral": {
                "volumeClaimTemplate": {
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
                }
            },
        }

    def _claim(
        self, d: Draw, namespace: str, name: str, state: str, owners: list[dict[str, Any]] | None = None
    ) -> None:
        metadata: dict[str, Any] = {"name": name, "namespace": namespace, "uid": f"pvc-{namespace}-{name}"}
        if owners:
            metadata["ownerReferences"] = owners
        spec: dict[str, Any] = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": d.choice(("1Gi", "3Gi", "8Gi", "5Gi", "1500M"))}},
            "storageClassName": "wait",
        }
        status = {"phase": "Pending"}
        if state in BOUND:
            spec["volumeName"] = f"pv-{name}"
            status = {"phase": "Lost" if state == "lost" else "Bound"}
            if state not in ("orphaned", "lost"):
                self._bound_volume(d, namespace, name, in_tree=state == "in-tree")
        if state in BOUND and state != "halfbound":
            metadata["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        if state == "exclusive":
            spec["accessModes"] = ["ReadWriteOncePod"]
        if state == "leaving":
            metadata["deletionTimestamp"] = "2026-01-01T02:00:00Z"
        if state == "selected":
            metadata["annotations"] = {"volume.kubernetes.io/selected-node": d.choice(self.nodes)}
        _class_of(d, state, metadata, spec)
        self._add("v1", "PersistentVolumeClaim", metadata, spec=spec, status=status)
        self.claims.append((namespace, name))

    def _bound_volume(self, d: Draw, namespace: str, claim: str, *, in_tree: bool) -> None:
        name = f"pv-{claim}"
        source: dict[str, Any] = {"csi": {"driver": DRIVER, "volumeHandle": name if d.maybe(0.9) else "shared-handle"}}
        labels = {}
        if in_tree:
            source = d.choice(
                (
                    {"awsElasticBlockStore": {"volumeID": f"vol-{claim}"}},
                    {"gcePersistentDisk": {"pdName": claim}},
                    {"nfs": {"server": "s", "path": "/"}},
                )
            )
        # The scheduler cannot translate a GCE disk with the label "za__zb" to CSI: if the label has several zones, each
        # zone must have a name like us-east1-b.
        if "gcePersistentDisk" not in source and d.maybe(0.25):
            labels[d.often((word.ZONE,), (word.BETA_ZONE,), 0.3)] = d.choice((*word.ZONES, "za__zb"))
        if d.maybe(0.06):
            labels[d.choice((word.REGION, word.BETA_REGION))] = "r1"
        spec = {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "wait",
            "persistentVolumeReclaimPolicy": "Delete",
            "claimRef": {
                "kind": "PersistentVolumeClaim",
                "namespace": namespace,
                "name": claim,
                "uid": f"pvc-{namespace}-{claim}",
            },
            **source,
        }
        if d.maybe(0.5):
            spec["nodeAffinity"] = self._reach(d)
        self._add(
            "v1",
            "PersistentVolume",
            without_none({"name": name, "labels": labels or None}),
            spec=spec,
            status={"phase": "Bound"},
        )

    def _reach(self, d: Draw) -> dict[str, Any]:
        if d.maybe(0.5):
            expression = {"key": word.HOSTNAME, "operator": "In", "values": d.some(self.nodes, 3)}
        else:
            expression = {"key": word.ZONE, "operator": d.often(("In",), ("NotIn",)), "values": d.some(word.ZONES, 2)}
        terms = [{"matchExpressions": [expression]}]
        if d.maybe(0.1):
            terms.append({"matchExpressions": [{"key": "pool", "operator": "In", "values": ["a"]}]})
        return {"required": {"nodeSelectorTerms": terms}}

    def _free_volume(self, d: Draw, name: str) -> None:
        spec: dict[str, Any] = {
            "capacity": {"storage": d.choice(("1Gi", "5Gi", "10Gi", "4Gi"))},
            "accessModes": d.choice((["ReadWriteOnce"], ["ReadWriteOnce", "ReadOnlyMany"], ["ReadWriteMany"])),
            "storageClassName": d.often(("static",), ("wait", "zonal")),
            "csi": {"driver": DRIVER, "volumeHandle": name},
            "persistentVolumeReclaimPolicy": "Delete",
        }
        if d.maybe(0.6):
            spec["nodeAffinity"] = self._reach(d)
        if d.maybe(0.1):
            spec["volumeMode"] = "Block"
        if d.maybe(0.1):
            spec["volumeAttributesClassName"] = "gold"
        if d.maybe(0.1):
            spec["claimRef"] = {
                "kind": "PersistentVolumeClaim",
                "namespace": "default",
                "name": f"claim{d.randint(1, 9)}",
            }
        metadata: dict[str, Any] = {"name": name}
        if d.maybe(0.4):
            metadata["labels"] = {"kind": d.choice(("fast", "slow"))}
        self._add(
            "v1",
            "PersistentVolume",
            metadata,
            spec=spec,
            status={"phase": d.often(("Available",), ("Released", "Pending", "Failed"), 0.1)},
        )

    def _drivers(self, d: Draw) -> None:
        for node in self.nodes:
            if d.maybe(0.5):
                drivers = [
                    {
                        "name": DRIVER,
                        "nodeID": node,
                        "topologyKeys": [word.ZONE],
                        "allocatable": {"count": d.choice((1, 2, 3, 3))},
                    }
                ]
                if d.maybe(0.15):
                    del drivers[0]["allocatable"]
                metadata: dict[str, Any] = {"name": node}
                if d.maybe(0.5):
                    drivers.append(
                        {
                            "name": d.choice(("ebs.csi.aws.com", "pd.csi.storage.gke.io")),
                            "nodeID": node,
                            "topologyKeys": [],
                            "allocatable": {"count": d.choice((1, 1, 2))},
                        }
                    )
                    metadata["annotations"] = {
                        "storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs,kubernetes.io/gce-pd"
                    }
                self._add("storage.k8s.io/v1", "CSINode", metadata, spec={"drivers": drivers})
            if d.maybe(0.1):
                source = {"persistentVolumeName": d.choice(("free0", "free1", "elsewhere"))}
                self._add(
                    "storage.k8s.io/v1",
                    "VolumeAttachment",
                    {"name": f"attach-{node}"},
                    spec={"attacher": DRIVER, "nodeName": node, "source": source},
                    status={"attached": True},
                )
        if d.maybe(0.85):
            self._add("storage.k8s.io/v1", "CSIDriver", {"name": TRACKED}, spec={"storageCapacity": d.maybe(0.9)})
        for i in range(d.randint(0, 4)):
            reach = d.choice(
                (
                    {"matchLabels": {word.ZONE: d.choice(word.ZONES)}},
                    {"matchExpressions": [{"key": "rack", "operator": "In", "values": d.some(("r1", "r2", "r3"), 2)}]},
                    {},
                    None,
                )
            )
            sizes: dict[str, Any] = {"capacity": d.choice(("2Gi", "100Gi", "6Gi"))} if d.maybe(0.9) else {}
            if d.maybe(0.4):
                sizes["maximumVolumeSize"] = d.choice(("1Gi", "4Gi", "50Gi"))
            self._add(
                "storage.k8s.io/v1",
                "CSIStorageCapacity",
                {"name": f"capacity{i}", "namespace": "default"},
                storageClassName=d.often(("tracked",), ("wait",)),
                **without_none({"nodeTopology": reach}),
                **sizes,
            )

    def _add(self, api: str, kind: str, metadata: dict[str, Any], **fields: Any) -> None:
        self.objects.append({"apiVersion": api, "kind": kind, "metadata": metadata, **fields})


def _claim_source(volume: str, claim: str) -> dict[str, Any]:
    return {"name": volume, "persistentVolumeClaim": {"claimName": claim}}


def _class_of(d: Draw, state: str, metadata: dict[str, Any], spec: dict[str, Any]) -> None:
    if state in ("static", "zonal", "tracked", "modeless"):
        spec["storageClassName"] = state
        _choosy(d, spec)
    elif state in ("unbound", "unknown-class"):
        spec["storageClassName"] = {"unbound": "now", "unknown-class": "nobody"}[state]
    elif state == "classless":
        del spec["storageClassName"]
        if d.maybe(0.5):
            metadata["annotations"] = {"volume.beta.kubernetes.io/storage-class": "wait"}


def _choosy(d: Draw, spec: dict[str, Any]) -> None:
    if d.maybe(0.2):
        spec["selector"] = d.choice(
            ({"matchLabels": {"kind": "fast"}}, {"matchExpressions": [{"key": "kind", "operator": "Exists"}]})
        )
    if d.maybe(0.1):
        spec["volumeMode"] = "Block"
    if d.maybe(0.1):
        spec["accessModes"] = d.choice((["ReadOnlyMany"], ["ReadWriteMany"]))
    if d.maybe(0.1):
        spec["volumeAttributesClassName"] = "gold"


def _disk(d: Draw) -> dict[str, Any]:
    """Returns an in-tree disk of a kind that VolumeRestrictions checks."""
    read_only = d.maybe(0.4)
    return {
        "name": "disk",
        **d.choice(
            (
                {"gcePersistentDisk": {"pdName": d.choice(("disk1", "disk2")), "readOnly": read_only}},
                {"awsElasticBlockStore": {"volumeID": d.choice(("vol1", "vol2")), "readOnly": read_only}},
                {
                    "iscsi": {
                        "targetPortal": d.choice(("a", "b")),
                        "iqn": d.choice(("iqn.1", "iqn.2")),
                        "lun": d.randint(0, 1),
                        "readOnly": read_only,
                    }
                },
                {
                    "rbd": {
                        "monitors": d.some(("m1", "m2", "m3"), 2),
                        "pool": "p",
                        "image": d.choice(("i1", "i2")),
                        "readOnly": read_only,
                    }
                },
            )
        ),
    }
