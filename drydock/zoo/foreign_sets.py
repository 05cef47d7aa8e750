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
    budget,
    create_pod,
    owner,
    pod_named,
    pods_of_the_zoo,
    serves,
    template,
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
        brokers = [pod for pod in pods_of_the_zoo(verbs) if pod["metadata"]["labels"].get("app") == "kafka"]
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


def clone_set(habitat: Habitat) -> Citizen:
    """Two pods for each node, with names of their own, and a budget that the set's controller does not own."""
    size = 2 * len(habitat.nodes)
    controller = owner("apps.kruise.io/v1alpha1", "CloneSet", "clones")
    serial = [0]

    def reconcile(verbs: Verbs) -> None:
        standing = [
            pod for pod in pods_of_the_zoo(verbs) if pod["metadata"]["labels"].get("app") == "clones" and is_active(pod)
        ]
        for _ in range(size - len(standing)):
            serial[0] += 1
            create_pod(verbs, f"clones-{serial[0]}", template("clones"), actor="kruise", controller=controller)

    return Citizen(
        name="clone-set",
        objects=(budget("clones", {"app": "clones"}, minAvailable=size - 2),),
        controllers=(Controller(name="kruise", watches=("pods",), reconcile=reconcile),),
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
