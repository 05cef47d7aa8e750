"""Pods of controllers whose kinds careen does not know: StrimziPodSet (Kafka), CloneSet and StatefulSet (OpenKruise),
Workflow (Argo)."""

from __future__ import annotations

from drydock.controllers.control_loop import Controller
from drydock.controllers.ownership import PODS, is_active
from drydock.server.store import Content
from drydock.server.verbs import DeleteOptions, EvictionWebhook, Verbs
from drydock.zoo.citizen import (
    NAMESPACE,
    Citizen,
    Habitat,
    Stopwatch,
    budget,
    create_pod,
    is_up,
    owner,
    pod_named,
    pods_of_the_zoo,
    serves,
    template,
    write_pod_status,
)


def strimzi(
    habitat: Habitat, *, is_broken: bool = False, may_be_away: int = 1, webhooks: tuple[EvictionWebhook, ...] = ()
) -> Citizen:
    """One broker for each node, with stable names. Its operator keeps a budget that lets one broker go, computed as
    minAvailable: kinds without a scale subresource permit nothing else. With `is_broken`, a broker that was replaced
    never becomes ready."""
    size = len(habitat.nodes)
    made: set[str] = set()

    def reconcile(verbs: Verbs) -> None:
        brokers = pods_of_the_zoo(verbs, app="kafka")
        if len(brokers) == size and all(serves(pod) for pod in brokers):
            _roll_one(verbs, brokers)
        for number in range(size):
            name = f"kafka-{number}"
            if pod_named(verbs, name) is None:
                image = "registry.example/kafka:broken" if is_broken and name in made else ""
                made.add(name)
                create_pod(
                    verbs,
                    name,
                    template("kafka", image=image),
                    actor="strimzi",
                    controller=_SET,
                    labels={"strimzi.io/kind": "Kafka", "strimzi.io/cluster": "events"},
                )

    return Citizen(
        name="broken-strimzi" if is_broken else "strimzi",
        objects=(budget("kafka", {"app": "kafka"}, controller=_SET, minAvailable=size - may_be_away),),
        controllers=(Controller(name="strimzi", watches=("pods",), reconcile=reconcile),),
        webhooks=webhooks,
    )


def _roll_one(verbs: Verbs, brokers: list[Content]) -> None:
    """Restarts a broker that the drain cleaner has marked, while all brokers are in sync."""
    for pod in brokers:
        if "strimzi.io/manual-rolling-update" in (pod["metadata"].get("annotations") or {}):
            verbs.delete(PODS, NAMESPACE, pod["metadata"]["name"], DeleteOptions(), actor="strimzi")
            return


def clone_set(habitat: Habitat, *, shrinks: bool = False) -> Citizen:
    """Two pods for each node, with names of their own, and a budget that the set's controller does not own. With
    `shrinks`, an autoscaler halves the set when the first node goes down."""
    size = 2 * len(habitat.nodes)
    controller = owner("apps.kruise.io/v1alpha1", "CloneSet", "clones")
    serial = [0]

    wanted = [size]

    def reconcile(verbs: Verbs) -> None:
        if shrinks and not all(is_up(verbs, node) for node in habitat.nodes):
            wanted[0] = len(habitat.nodes)
        standing = [pod for pod in pods_of_the_zoo(verbs, app="clones") if is_active(pod)]
        for pod in standing[wanted[0] :]:
            verbs.delete(PODS, NAMESPACE, pod["metadata"]["name"], DeleteOptions(), actor="kruise")
        for _ in range(wanted[0] - len(standing)):
            serial[0] += 1
            create_pod(verbs, f"clones-{serial[0]}", template("clones"), actor="kruise", controller=controller)

    return Citizen(
        name="shrinking-clone-set" if shrinks else "clone-set",
        objects=() if shrinks else (budget("clones", {"app": "clones"}, minAvailable=size - 2),),
        controllers=(Controller(name="kruise", watches=("pods", "nodes"), reconcile=reconcile),),
    )


def advanced_stateful_set(habitat: Habitat, *, is_gone: bool = False) -> Citizen:
    """OpenKruise's StatefulSet: a known kind of another API group. With `is_gone`, its operator does not run: nobody
    creates a pod again."""
    size = len(habitat.nodes)
    controller = owner("apps.kruise.io/v1beta1", "StatefulSet", "ledgers")
    made: set[str] = set()

    def reconcile(verbs: Verbs) -> None:
        for number in range(size):
            name = f"ledgers-{number}"
            if pod_named(verbs, name) is None and not (is_gone and name in made):
                made.add(name)
                create_pod(verbs, name, template("ledgers"), actor="kruise", controller=controller)

    return Citizen(
        name="kruise-without-operator" if is_gone else "kruise",
        controllers=(Controller(name="kruise", watches=("pods",), reconcile=reconcile),),
    )


def spark(habitat: Habitat, *, seconds: float = 400.0) -> Citizen:
    """A pod of work that asks not to be disturbed. It ends after some time."""
    begun = Stopwatch()
    finished: list[str] = []

    def reconcile(verbs: Verbs) -> float | None:
        waited = begun.seconds(verbs, "job", holds=True)
        driver = pod_named(verbs, "driver")
        if driver is None and not finished:
            controller = owner("sparkoperator.k8s.io/v1beta2", "SparkApplication", "sums")
            annotations = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
            pods = template("driver", restartPolicy="Never")
            create_pod(
                verbs,
                "driver",
                pods,
                actor="spark",
                controller=controller,
                annotations=annotations,
                nodeName=habitat.nodes[0],
            )
        elif driver is not None and is_active(driver) and waited >= habitat.seconds(seconds):
            finished.append("driver")
            write_pod_status(verbs, driver, {"phase": "Succeeded", "conditions": []}, actor="system:kubelet")
        return None if finished else habitat.resync

    return Citizen(name="spark", controllers=(Controller(name="spark", watches=("pods",), reconcile=reconcile),))


def tikv(habitat: Habitat) -> Citizen:
    """Each pod has an owner of its own, of a kind without a scale subresource, and a budget that needs one: the
    disruption controller cannot compute it, so it never lets a pod go.

    Sources: pingcap/tidb-operator#4221, kubevirt/kubevirt#18063."""

    def reconcile(verbs: Verbs) -> None:
        for number in range(len(habitat.nodes)):
            name = f"tikv-{number}"
            if pod_named(verbs, name) is None:
                controller = owner("core.pingcap.com/v1alpha1", "TiKV", name)
                create_pod(verbs, name, template("tikv"), actor="tidb-operator", controller=controller)

    return Citizen(
        name="tikv",
        objects=(budget("tikv", {"app": "tikv"}, maxUnavailable=1),),
        controllers=(Controller(name="tidb-operator", watches=("pods",), reconcile=reconcile),),
    )


def workflow(habitat: Habitat) -> Citizen:
    """One pod of work on each node. The operator does not create it again."""
    begun: list[str] = []

    def reconcile(verbs: Verbs) -> None:
        for number in range(len(begun), len(habitat.nodes)):
            begun.append(f"build-{number}")
            controller = owner("argoproj.io/v1alpha1", "Workflow", begun[-1])
            pods = template("build", restartPolicy="Never")
            create_pod(verbs, begun[-1], pods, actor="argo-workflows", controller=controller)

    return Citizen(
        name="workflow",
        controllers=(Controller(name="argo-workflows", watches=("pods",), reconcile=reconcile),),
    )


_SET = owner("core.strimzi.io/v1beta2", "StrimziPodSet", "events-kafka")
