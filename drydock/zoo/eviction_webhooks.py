"""Webhooks that answer evictions themselves: they refuse and begin to move the pod at the first real eviction, or they
answer that the pod was evicted and delete it later.

Sources: KubeVirt `pkg/virt-api/webhooks/validating-webhook/admitters/pod-eviction-admitter.go`; Strimzi Drain Cleaner;
pod-graceful-drain, which turns the eviction into a dry run.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from drydock.controllers.control_loop import Controller
from drydock.controllers.ownership import PODS, is_active, is_going
from drydock.server.api_errors import denied, internal_error
from drydock.server.kinds.object_rules import Object
from drydock.server.store import Content
from drydock.server.verbs import DeleteOptions, Verbs, rfc3339
from drydock.zoo.citizen import (
    NAMESPACE,
    Citizen,
    Habitat,
    Stopwatch,
    budget,
    change_pod,
    create_pod,
    owner,
    pods_of_the_zoo,
    serves,
    template,
    workload,
)

_EVACUATE = "kubevirt.io/evacuate"
_MIGRATION_SECONDS = 20.0
_DELETE_AT = "pod-graceful-drain/delete-at"
_DELAY_SECONDS = 20.0


def _note(pod: Content, key: str) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(key, ""))


def kubevirt(habitat: Habitat, *, can_migrate: bool = True) -> Citizen:
    """One virtual machine for each node. The first real eviction starts its migration, and every eviction is refused
    until the machine runs elsewhere. Without `can_migrate`, a machine never does."""
    machines = [f"vm-{number}" for number in range(1, len(habitat.nodes) + 1)]
    controller = _Virtualisation(habitat, machines, can_migrate=can_migrate)
    return Citizen(
        name="kubevirt" if can_migrate else "kubevirt-pinned",
        objects=tuple(
            budget(
                f"kubevirt-disruption-budget-{name}",
                {"kubevirt.io/domain": name},
                controller=_machine(name),
                minAvailable=1,
            )
            for name in machines
        ),
        controllers=(Controller(name="virt-controller", watches=("pods", "nodes"), reconcile=controller.reconcile),),
        webhooks=(_refuse_and_migrate,),
    )


def _machine(name: str) -> Object:
    return owner("kubevirt.io/v1", "VirtualMachineInstance", name)


def _refuse_and_migrate(verbs: Verbs, pod: Content, options: DeleteOptions) -> DeleteOptions:
    labels = pod["metadata"].get("labels") or {}
    if labels.get("kubevirt.io") != "virt-launcher" or not is_active(pod):
        return options
    if not options.dry_run and not _note(pod, _EVACUATE):
        change_pod(verbs, pod, "annotations", {_EVACUATE: verbs.now()}, actor="virt-api")
    machine = f'"{pod["metadata"]["namespace"]}/{labels["kubevirt.io/domain"]}"'
    raise denied(
        "virt-launcher-eviction-interceptor.kubevirt.io", f"Eviction triggered evacuation of VMI {machine}", code=429
    )


class _Virtualisation:
    def __init__(self, habitat: Habitat, machines: list[str], *, can_migrate: bool) -> None:
        self._habitat = habitat
        self._machines = machines
        self._can_migrate = can_migrate
        self._serial = 0
        self._copied_for = Stopwatch()

    def reconcile(self, verbs: Verbs) -> float | None:
        launchers = [
            pod for pod in pods_of_the_zoo(verbs) if pod["metadata"]["labels"].get("kubevirt.io") == "virt-launcher"
        ]
        is_migrating = False
        for name in self._machines:
            own = [pod for pod in launchers if pod["metadata"]["labels"]["kubevirt.io/domain"] == name]
            running = [pod for pod in own if is_active(pod)]
            marked = [pod for pod in running if _note(pod, _EVACUATE)]
            is_migrating = is_migrating or bool(marked)
            if not running or (self._can_migrate and len(running) == len(marked)):
                self._launch(verbs, name)
            self._migrate(verbs, marked, [pod for pod in running if pod not in marked])
        return self._habitat.resync if is_migrating else None

    def _launch(self, verbs: Verbs, name: str) -> None:
        self._serial += 1
        labels = {"kubevirt.io": "virt-launcher", "kubevirt.io/domain": name}
        create_pod(
            verbs,
            f"virt-launcher-{name}-{self._serial}",
            template("virt-launcher"),
            actor="virt-controller",
            controller=_machine(name),
            labels=labels,
        )

    def _migrate(self, verbs: Verbs, sources: list[Content], targets: list[Content]) -> None:
        """The memory is copied once the target runs; then the source ends, as virt-launcher does."""
        for source in sources:
            is_copying = any(serves(target) for target in targets)
            seconds = self._copied_for.seconds(verbs, source["metadata"]["uid"], holds=is_copying)
            if is_copying and seconds >= self._habitat.seconds(_MIGRATION_SECONDS):
                name = source["metadata"]["name"]
                verbs.delete(PODS, NAMESPACE, name, DeleteOptions(), actor="virt-controller")


def strimzi_drain_cleaner(verbs: Verbs, pod: Content, options: DeleteOptions) -> DeleteOptions:
    """Marks the pod of a Kafka cluster for a restart by its operator, and refuses."""
    if (pod["metadata"].get("labels") or {}).get("strimzi.io/kind") != "Kafka" or not is_active(pod):
        return options
    if not options.dry_run:
        change_pod(verbs, pod, "annotations", {"strimzi.io/manual-rolling-update": "true"}, actor="drain-cleaner")
    raise denied("strimzi-drain-cleaner.strimzi.io", "The pod will be rolled by the Strimzi Cluster Operator", code=500)


def legacy_drain_cleaner(verbs: Verbs, pod: Content, options: DeleteOptions) -> DeleteOptions:
    """Marks the pod and allows its eviction, which the budget refuses (STRIMZI_DENY_EVICTION=false)."""
    is_broker = (pod["metadata"].get("labels") or {}).get("strimzi.io/kind") == "Kafka" and is_active(pod)
    if is_broker and not options.dry_run:
        change_pod(verbs, pod, "annotations", {"strimzi.io/manual-rolling-update": "true"}, actor="drain-cleaner")
    return options


def gatekeeper(habitat: Habitat, *, is_stuck: bool = False) -> Citizen:
    """A webhook of which one pod runs, and without which the API server refuses evictions (`failurePolicy: Fail`): it
    is away while its own pod moves. With `is_stuck` its pod runs and never answers (strimzi/drain-cleaner#58)."""

    def intercept(verbs: Verbs, _: Content, options: DeleteOptions) -> DeleteOptions:
        if is_stuck:
            raise internal_error(f'{_NOT_CALLED}: Post "https://gatekeeper.zoo.svc:443/": context deadline exceeded')
        if not any(serves(each) for each in pods_of_the_zoo(verbs, app="gatekeeper")):
            raise internal_error(f'{_NOT_CALLED}: no endpoints available for service "gatekeeper"')
        return options

    return Citizen(
        name="stuck-webhook" if is_stuck else "gatekeeper",
        objects=(workload("Deployment", "gatekeeper", 1), workload("Deployment", "shop", 2 * len(habitat.nodes))),
        webhooks=(intercept,),
    )


_NOT_CALLED = 'failed calling webhook "validation.gatekeeper.sh": failed to call webhook'


def pod_graceful_drain(habitat: Habitat) -> Citizen:
    """The server answers 201 to an eviction, and the pod is deleted later, when load balancers have forgotten it."""

    def intercept(verbs: Verbs, pod: Content, options: DeleteOptions) -> DeleteOptions:
        if options.dry_run or (pod["metadata"].get("labels") or {}).get("app") != "front" or is_going(pod):
            return options
        if not _note(pod, _DELETE_AT):
            due = rfc3339(datetime.fromtimestamp(verbs.wall_clock().timestamp() + delay, verbs.wall_clock().tzinfo))
            change_pod(verbs, pod, "annotations", {_DELETE_AT: due}, actor="pod-graceful-drain")
        return replace(options, dry_run=True)

    def reconcile(verbs: Verbs) -> float | None:
        draining = [pod for pod in pods_of_the_zoo(verbs) if _note(pod, _DELETE_AT) and not is_going(pod)]
        for pod in draining:
            if datetime.fromisoformat(_note(pod, _DELETE_AT)) <= verbs.wall_clock():
                verbs.delete(PODS, NAMESPACE, pod["metadata"]["name"], DeleteOptions(), actor="pod-graceful-drain")
        return habitat.resync if draining else None

    delay = habitat.seconds(_DELAY_SECONDS)
    return Citizen(
        name="pod-graceful-drain",
        objects=(
            workload("Deployment", "front", len(habitat.nodes)),
            budget("front", {"app": "front"}, maxUnavailable=1),
        ),
        controllers=(Controller(name="pod-graceful-drain", watches=("pods",), reconcile=reconcile),),
        webhooks=(intercept,),
    )
