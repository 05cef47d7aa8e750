"""Measures what it costs to read a pod as JSON and as protobuf into the structures from which scheduler_core makes its
pods.

    pip install protobuf
    python -m bench.cache.formats [--pods 3000]

The pods are those of the scheduler's bench, in both formats as an API server writes them. msgspec reads JSON. Google's
package (upb, in C) reads protobuf, with messages that have only the fields that scheduling reads. The bench copies the
parsed messages into the same structures as the JSON, and checks that JSON and protobuf give equal structures. The
figures are processor time of one thread, the best of five rounds.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from bench.scheduler import cluster
from scheduler_core.model.manifests import wire

Json = dict[str, Any]
ROUNDS = 5
TEXT, BYTES, FLAG, NUMBER, AMOUNT, TIME = "string", "bytes", "bool", "int64", "Quantity", "Time"

# Field numbers of k8s.io/api (core/v1, meta/v1 generated.proto, v1.36). "[]" marks a repeated field, "{}" a map from
# strings. A "-" before a number: written, and not read by scheduling.
MESSAGES: Mapping[str, Mapping[str, tuple[int, str]]] = {
    "Quantity": {"string": (1, TEXT)},
    "Time": {"seconds": (1, NUMBER)},
    "Pod": {"metadata": (1, "Meta"), "spec": (2, "Spec"), "status": (3, "Status")},
    "Meta": {
        "name": (1, TEXT),
        "generateName": (-2, TEXT),
        "namespace": (3, TEXT),
        "uid": (5, TEXT),
        "resourceVersion": (6, TEXT),
        "creationTimestamp": (-8, TIME),
        "deletionTimestamp": (9, TIME),
        "labels": (11, "{}" + TEXT),
        "annotations": (12, "{}" + TEXT),
        "ownerReferences": (13, "[]Owner"),
        "managedFields": (-17, "[]Managed"),
    },
    "Owner": {
        "kind": (1, TEXT),
        "name": (3, TEXT),
        "uid": (4, TEXT),
        "apiVersion": (5, TEXT),
        "controller": (6, FLAG),
        "blockOwnerDeletion": (-7, FLAG),
    },
    "Managed": {
        "manager": (1, TEXT),
        "operation": (2, TEXT),
        "apiVersion": (3, TEXT),
        "time": (4, TIME),
        "fieldsType": (6, TEXT),
        "fieldsV1": (7, "Fields"),
    },
    "Fields": {"raw": (1, BYTES)},
    "Spec": {
        "volumes": (1, "[]Volume"),
        "containers": (2, "[]Container"),
        "restartPolicy": (-3, TEXT),
        "terminationGracePeriodSeconds": (-4, NUMBER),
        "dnsPolicy": (-6, TEXT),
        "serviceAccountName": (-8, TEXT),
        "nodeName": (10, TEXT),
        "affinity": (18, "Affinity"),
        "schedulerName": (19, TEXT),
        "tolerations": (22, "[]Toleration"),
        "priority": (25, NUMBER),
        "enableServiceLinks": (-30, FLAG),
        "preemptionPolicy": (31, TEXT),
        "topologySpreadConstraints": (33, "[]Spread"),
    },
    "Volume": {"name": (1, TEXT), "volumeSource": (-2, BYTES)},
    "Container": {
        "name": (1, TEXT),
        "image": (2, TEXT),
        "env": (-7, "[]Env"),
        "resources": (8, "Resources"),
        "volumeMounts": (-9, "[]Mount"),
        "readinessProbe": (-11, BYTES),
        "terminationMessagePath": (-13, TEXT),
        "imagePullPolicy": (-14, TEXT),
        "terminationMessagePolicy": (-20, TEXT),
    },
    "Env": {"name": (1, TEXT), "value": (2, TEXT)},
    "Mount": {"name": (1, TEXT), "readOnly": (2, FLAG), "mountPath": (3, TEXT)},
    "Resources": {"limits": (1, "{}" + AMOUNT), "requests": (2, "{}" + AMOUNT)},
    "Affinity": {"podAffinity": (2, "PodAffinity"), "podAntiAffinity": (3, "PodAffinity")},
    "PodAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": (1, "[]Term"),
        "preferredDuringSchedulingIgnoredDuringExecution": (2, "[]Weighted"),
    },
    "Weighted": {"weight": (1, NUMBER), "podAffinityTerm": (2, "Term")},
    "Term": {"labelSelector": (1, "Selector"), "topologyKey": (3, TEXT)},
    "Selector": {"matchLabels": (1, "{}" + TEXT)},
    "Toleration": {
        "key": (1, TEXT),
        "operator": (2, TEXT),
        "value": (3, TEXT),
        "effect": (4, TEXT),
        "tolerationSeconds": (-5, NUMBER),
    },
    "Spread": {
        "maxSkew": (1, NUMBER),
        "topologyKey": (2, TEXT),
        "whenUnsatisfiable": (3, TEXT),
        "labelSelector": (4, "Selector"),
    },
    "Status": {
        "phase": (1, TEXT),
        "conditions": (2, "[]Condition"),
        "hostIP": (-5, TEXT),
        "podIP": (-6, TEXT),
        "startTime": (7, TIME),
        "containerStatuses": (8, "[]ContainerStatus"),
        "qosClass": (-9, TEXT),
    },
    "Condition": {
        "type": (1, TEXT),
        "status": (2, TEXT),
        "lastTransitionTime": (-4, TIME),
        "reason": (5, TEXT),
    },
    "ContainerStatus": {
        "name": (1, TEXT),
        "state": (-2, BYTES),
        "ready": (-4, FLAG),
        "restartCount": (-5, NUMBER),
        "image": (-6, TEXT),
        "imageID": (-7, TEXT),
        "containerID": (-8, TEXT),
        "started": (-9, FLAG),
        "allocatedResources": (10, "{}" + AMOUNT),
        "resources": (11, "Resources"),
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=3000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "careen-bench-cache")
    given = parser.parse_args()
    try:
        whole, read = _class(only_read=False), _class(only_read=True)
    except ImportError:
        sys.exit("The package protobuf is not installed: pip install protobuf")
    pods = list(_pods(given.folder, given.pods))
    texts = [json.dumps(pod, separators=(",", ":")).encode() for pod in pods]
    binaries = [_filled(whole(), "Pod", pod).SerializeToString() for pod in pods]
    decoder = msgspec.json.Decoder(wire.WirePod)
    assert [_without_time(decoder.decode(text)) for text in texts] == [_pod(read.FromString(each)) for each in binaries]
    rows = [
        ("JSON, decoded into structures by msgspec", texts, decoder.decode),
        ("protobuf, only parsed", binaries, read.FromString),
        ("protobuf, parsed and copied into structures", binaries, lambda each: _pod(read.FromString(each))),
    ]
    print(f"# JSON and protobuf\n\n`python -m bench.cache.formats --pods {given.pods}`\n")
    print("| format | bytes a pod | microseconds a pod |\n|---|---|---|")
    for name, bodies, decode in rows:
        size = sum(map(len, bodies)) / len(bodies)
        print(f"| {name} | {size:,.0f} | {_microseconds(bodies, decode):.1f} |")


def _pods(folder: Path, count: int) -> Iterator[Json]:
    place = folder / "100-1"
    cluster.write(place, nodes=100, seed=1)
    number = 0
    for page in sorted(place.glob("4-pods-*.json")):
        for pod in json.loads(page.read_bytes())["items"]:
            if number < count:
                yield pod
            number += 1


def _microseconds(bodies: list[bytes], decode: Callable[[bytes], object]) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        for body in bodies:
            decode(body)
        best = min(best, time.process_time() - began)
    return best / len(bodies) * 1e6


# ---- protobuf ----


PACKAGE = "bench"


def _class(*, only_read: bool) -> Any:
    """The protobuf class of a Pod, built from `MESSAGES`."""
    descriptor_pb2 = importlib.import_module("google.protobuf.descriptor_pb2")
    descriptor_pool = importlib.import_module("google.protobuf.descriptor_pool")
    message_factory = importlib.import_module("google.protobuf.message_factory")
    file = descriptor_pb2.FileDescriptorProto(name="pod.proto", package=PACKAGE, syntax="proto2")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            if number > 0 or not only_read:
                _field(message, field, abs(number), _kind(message, field, kind), is_repeated=kind[:2] in ("[]", "{}"))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.Pod"))


def _kind(message: Any, field: str, kind: str) -> str:
    """The protobuf type of the field's elements. For a map, adds the type of its entries to the message."""
    if not kind.startswith("{}"):
        return kind.removeprefix("[]")
    entry = message.nested_type.add(name=f"{field.capitalize()}Entry")
    entry.options.map_entry = True
    _field(entry, "key", 1, TEXT)
    _field(entry, "value", 2, kind.removeprefix("{}"))
    return f"{message.name}.{entry.name}"


def _field(message: Any, name: str, number: int, kind: str, *, is_repeated: bool = False) -> None:
    field = message.field.add(name=name, number=number)
    field.label = field.LABEL_REPEATED if is_repeated else field.LABEL_OPTIONAL
    if kind in (TEXT, BYTES, FLAG, NUMBER):
        field.type = getattr(field, f"TYPE_{kind.upper()}")
    else:
        field.type, field.type_name = field.TYPE_MESSAGE, f".{PACKAGE}.{kind}"


def _filled(message: Any, name: str, written: Mapping[str, Any]) -> Any:
    """Fills the message from the JSON object. What has no table in `MESSAGES` is written as JSON text, which is
    longer than protobuf."""
    if name == "Volume":
        written = {"name": written["name"], "volumeSource": {k: v for k, v in written.items() if k != "name"}}
    for field, (_, kind) in MESSAGES[name].items():
        if written.get(field) is not None:
            _fill(message, field, kind, written[field])
    return message


def _fill(message: Any, field: str, kind: str, value: Any) -> None:
    if kind.startswith("[]"):
        for each in value:
            _filled(getattr(message, field).add(), kind[2:], each)
    elif kind == "{}" + TEXT:
        getattr(message, field).update(value)
    elif kind == "{}" + AMOUNT:
        for key, each in value.items():
            getattr(message, field)[key].string = each
    elif kind == TIME:
        getattr(message, field).seconds = 1_767_225_600
    elif kind == "Fields":
        message.fieldsV1.raw = _as_json(value)
    elif kind in MESSAGES:
        getattr(message, field).SetInParent()
        _filled(getattr(message, field), kind, value)
    else:
        setattr(message, field, _as_json(value) if kind == BYTES else value)


def _as_json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _without_time(pod: wire.WirePod) -> wire.WirePod:
    """Without the start time, which is text in JSON and a number in protobuf."""
    return msgspec.structs.replace(pod, status=pod.status and msgspec.structs.replace(pod.status, start_time=None))


def _pod(pod: Any) -> wire.WirePod:
    meta, spec = pod.metadata, pod.spec
    return wire.WirePod(
        metadata=wire.WireMeta(
            name=meta.name,
            namespace=meta.namespace or None,
            uid=meta.uid,
            labels=dict(meta.labels) or None,
            owner_references=tuple(
                wire.WireOwner(each.apiVersion, each.kind, each.name, each.uid, each.controller)
                for each in meta.ownerReferences
            )
            or None,
        ),
        spec=wire.WirePodSpec(
            node_name=spec.nodeName,
            containers=tuple(
                wire.WireContainer(each.name, each.image, _resources(each.resources)) for each in spec.containers
            ),
            scheduler_name=spec.schedulerName,
            priority=spec.priority,
            preemption_policy=spec.preemptionPolicy,
            affinity=_affinity(spec.affinity) if spec.HasField("affinity") else None,
            tolerations=tuple(
                wire.WireToleration(each.key, each.operator, each.value, each.effect) for each in spec.tolerations
            ),
            topology_spread_constraints=tuple(
                wire.WireSpread(
                    max_skew=each.maxSkew,
                    topology_key=each.topologyKey,
                    when_unsatisfiable=each.whenUnsatisfiable,
                    label_selector=_selector(each.labelSelector),
                )
                for each in spec.topologySpreadConstraints
            )
            or None,
            volumes=tuple(wire.WireVolume(each.name) for each in spec.volumes),
        ),
        status=wire.WirePodStatus(
            phase=pod.status.phase,
            conditions=tuple(wire.WireCondition(each.type, each.status, each.reason) for each in pod.status.conditions),
            container_statuses=tuple(
                wire.WireContainerStatus(each.name, _resources(each.resources), _amounts(each.allocatedResources))
                for each in pod.status.containerStatuses
            ),
        ),
    )


def _resources(resources: Any) -> wire.WireResources:
    return wire.WireResources(_amounts(resources.requests), _amounts(resources.limits))


def _amounts(amounts: Any) -> dict[str, str | int | float]:
    return {name: each.string for name, each in amounts.items()}


def _selector(selector: Any) -> wire.WireSelector:
    return wire.WireSelector(match_labels=dict(selector.matchLabels))


def _affinity(affinity: Any) -> wire.WireAffinity:
    def terms(of: Any) -> wire.WirePodAffinity | None:
        required = tuple(map(_term, of.requiredDuringSchedulingIgnoredDuringExecution))
        preferred = tuple(
            wire.WireWeightedPodTerm(each.weight, _term(each.podAffinityTerm))
            for each in of.preferredDuringSchedulingIgnoredDuringExecution
        )
        return wire.WirePodAffinity(required or None, preferred or None) if required or preferred else None

    return wire.WireAffinity(
        pod_affinity=terms(affinity.podAffinity), pod_anti_affinity=terms(affinity.podAntiAffinity)
    )


def _term(term: Any) -> wire.WirePodTerm:
    return wire.WirePodTerm(topology_key=term.topologyKey, label_selector=_selector(term.labelSelector))


if __name__ == "__main__":
    main()
