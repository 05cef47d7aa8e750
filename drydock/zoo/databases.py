"""Databases whose primary has a budget of zero and moves when its node is cordoned, and one whose budget follows its
health.

Sources: CloudNativePG `pkg/specs/poddisruptionbudget.go` and its switchover from unschedulable nodes; Zalando
postgres-operator `pkg/controller/node.go` (moveMasterPodsOffNode); ECK `pkg/controller/elasticsearch/pdb/reconcile.go`.
"""

from __future__ import annotations

from dataclasses import dataclass

from drydock.controllers.control_loop import Controller
from drydock.server.kinds.object_rules import Object
from drydock.server.store import Content
from drydock.server.verbs import Verbs
from drydock.zoo.citizen import (
    Citizen,
    Habitat,
    Stopwatch,
    budget,
    change_budget,
    change_pod,
    create_pod,
    is_cordoned,
    owner,
    pod_named,
    pods_of_the_zoo,
    serves,
    template,
    workload,
)
from drydock.zoo.volumes import local_volume, with_claim

_SWITCH_SECONDS = 5.0
_INSTANCES = 3
_REALLOCATION_SECONDS = 120.0


def cloudnative_pg(habitat: Habitat, *, is_local: bool = False) -> Citizen:
    """Pods and budgets belong to a Cluster, a kind of the operator's own. With `is_local`, each instance has a volume
    on its own node and can run nowhere else."""
    cluster = owner("postgresql.cnpg.io/v1", "Cluster", "pg")
    size = min(_INSTANCES, len(habitat.nodes))
    roles = _Roles(habitat, "pg", _Names("cnpg.io/instanceRole", "primary", "replica"), "cnpg")

    def reconcile(verbs: Verbs) -> float | None:
        for number in range(1, size + 1):
            if pod_named(verbs, f"pg-{number}") is None:
                labels = {"cnpg.io/cluster": "pg", "cnpg.io/instanceRole": "replica"}
                volumes = [with_claim(f"pg-{number}")] if is_local else []
                pods = template("pg", volumes=volumes)
                create_pod(verbs, f"pg-{number}", pods, actor="cnpg", controller=cluster, labels=labels)
        return roles.keep(verbs)

    local = [local_volume(f"pg-{number + 1}", node) for number, node in enumerate(habitat.nodes[:size])]
    return Citizen(
        name="cloudnative-pg-local" if is_local else "cloudnative-pg",
        objects=(
            *(manifest for both in (local if is_local else ()) for manifest in both),
            budget("pg-primary", {"cnpg.io/instanceRole": "primary"}, controller=cluster, minAvailable=1),
            budget("pg", {"cnpg.io/instanceRole": "replica"}, controller=cluster, minAvailable=max(0, size - 2)),
        ),
        controllers=(Controller(name="cnpg", watches=("pods", "nodes"), reconcile=reconcile),),
    )


def zalando_postgres(habitat: Habitat) -> Citizen:
    """Pods belong to a StatefulSet. Only the budget's selector shows that another controller decides."""
    roles = _Roles(habitat, "acid", _Names("spilo-role", "master", "replica"), "postgres-operator")
    size = min(_INSTANCES, len(habitat.nodes))
    pods = template("acid")
    return Citizen(
        name="zalando-postgres",
        objects=(
            workload("StatefulSet", "acid", size, pods, serviceName="acid", podManagementPolicy="Parallel"),
            budget("postgres-acid-pdb", {"app": "acid", "spilo-role": "master"}, minAvailable=1),
        ),
        controllers=(Controller(name="postgres-operator", watches=("pods", "nodes"), reconcile=roles.keep),),
    )


def elasticsearch(habitat: Habitat) -> Citizen:
    """ECK's budget lets one pod go while the cluster is green, and none while it is yellow: until the shards of a pod
    that was away are allocated again."""
    size = len(habitat.nodes)
    cluster = owner("elasticsearch.k8s.elastic.co/v1", "Elasticsearch", "search")
    whole = Stopwatch()

    def reconcile(verbs: Verbs) -> float | None:
        members = pods_of_the_zoo(verbs, app="search-es")
        is_whole = sum(serves(pod) for pod in members) == size
        waited, needed = whole.seconds(verbs, "cluster", holds=is_whole), habitat.seconds(_REALLOCATION_SECONDS)
        is_green = is_whole and (waited >= needed or verbs.store.clock() < needed / 20)
        change_budget(verbs, "search-es-default", minAvailable=size - 1 if is_green else size, actor="elastic-operator")
        return None if is_green else habitat.resync

    return Citizen(
        name="elasticsearch",
        objects=(
            workload("StatefulSet", "search-es", size, serviceName="search-es", podManagementPolicy="Parallel"),
            budget("search-es-default", {"app": "search-es"}, controller=cluster, minAvailable=size - 1),
        ),
        controllers=(Controller(name="elastic-operator", watches=("pods",), reconcile=reconcile),),
    )


def scylla(habitat: Habitat, *, per_node: int = 1) -> Citizen:
    """A StatefulSet with a volume on each node, and a budget that lets one pod go. With two pods on a node, the second
    may go only when the first is back, and that one waits for the node (k8ssandra/cass-operator#824)."""
    homes = [node for node in habitat.nodes for _ in range(per_node)]
    local = [local_volume(f"data-scylla-{number}", node) for number, node in enumerate(homes)]
    claims = [{"metadata": {"name": "data"}, "spec": local[0][1]["spec"]}]
    return Citizen(
        name="scylla" if per_node == 1 else "cassandra-racks",
        objects=(
            *(manifest for both in local for manifest in both),
            workload(
                "StatefulSet",
                "scylla",
                len(homes),
                serviceName="scylla",
                podManagementPolicy="Parallel",
                volumeClaimTemplates=claims,
            ),
            budget("scylla", {"app": "scylla"}, maxUnavailable=1),
        ),
    )


@dataclass(frozen=True, slots=True)
class _Names:
    label: str
    primary: str
    replica: str


class _Roles:
    """Keeps the label of the role: one primary, on a node that is not cordoned if a ready replica is on one."""

    def __init__(self, habitat: Habitat, app: str, names: _Names, actor: str) -> None:
        self._habitat = habitat
        self._app = app
        self._names = names
        self._actor = actor
        self._unfit_for = Stopwatch()

    def keep(self, verbs: Verbs) -> float | None:
        members = pods_of_the_zoo(verbs, app=self._app)
        primary = next((pod for pod in members if self._role(pod) == self._names.primary), None)
        ready = [pod for pod in members if pod is not primary and serves(pod)]
        fit = [pod for pod in ready if not is_cordoned(verbs, pod["spec"]["nodeName"])]
        is_down = not serves(primary)
        is_unfit = is_down or is_cordoned(verbs, (primary or {})["spec"]["nodeName"])
        waited = self._unfit_for.seconds(verbs, "primary", holds=is_unfit)
        chosen = fit or (ready if is_down else [])
        if is_unfit and chosen and waited >= (self._habitat.seconds(_SWITCH_SECONDS) if primary else 0.0):
            self._move(verbs, primary, chosen[0])
        for pod in members:
            if pod["metadata"]["labels"].get(self._names.label) is None:
                change_pod(verbs, pod, "labels", self._as(self._names.replica), actor=self._actor)
        return self._habitat.resync if is_unfit else None

    def _role(self, pod: Content) -> str:
        return str(pod["metadata"]["labels"].get(self._names.label, ""))

    def _as(self, role: str) -> Object:
        return {self._names.label: role}

    def _move(self, verbs: Verbs, primary: Content | None, to: Content) -> None:
        if primary is not None:
            change_pod(verbs, primary, "labels", self._as(self._names.replica), actor=self._actor)
        change_pod(verbs, to, "labels", self._as(self._names.primary), actor=self._actor)
