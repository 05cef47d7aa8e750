"""The stories of less frequent neighbours. Each claim is a sentence of docs/operators.md."""

from __future__ import annotations

from dataclasses import replace

from tests.careen.chaos.citizens.prometheus import add_prometheus
from tests.careen.chaos.citizens.story import (
    FEW_ALERTS,
    CitizenStory,
    all_reboot,
    both,
    breaks,
    halts_after_the_first,
    never_reboots,
    says,
)
from tests.careen.chaos.fleet.world import Shape, World


def _prometheus_in_a_pod(world: World) -> None:
    add_prometheus(world).pod = "prometheus-0"


def _long_drains(world: World) -> None:
    apps = world.fleet.workloads.apps
    apps["web"] = replace(apps["web"], ends_within=(40.0, 50.0))


def _alerts_of_rook(world: World) -> None:
    add_prometheus(world).has_rules_of_rook = True
    _long_drains(world)


NEIGHBOURS: tuple[CitizenStory, ...] = (
    CitizenStory(
        name="portworx",
        citizens=("portworx",),
        claim="A pod that its operator binds to the node and creates again at once is evicted once, and then stays.",
        wanted=all_reboot(but=("drained",)),
    ),
    CitizenStory(
        name="elasticsearch",
        citizens=("elasticsearch",),
        claim="While the cluster is yellow, the next node is cordoned and waits until the budget lets its pod go.",
        wanted=all_reboot(),
        seconds=3600.0,
    ),
    CitizenStory(
        name="cloudnative-pg-local",
        citizens=("cloudnative-pg-local",),
        claim="An instance whose volume exists on one node only waits for its node, and the next node waits for it.",
        wanted=all_reboot(),
        seconds=3600.0,
    ),
    CitizenStory(
        name="kubevirt-pinned",
        citizens=("kubevirt-pinned",),
        claim="A machine that cannot migrate costs at most three drains a day, and the reason names the machine.",
        wanted=never_reboots("Eviction triggered evacuation of VMI", "the next try is at"),
        shape=Shape(nodes=1),
        seconds=9000.0,
    ),
    CitizenStory(
        name="strimzi-legacy-drain-cleaner",
        citizens=("strimzi-legacy-drain-cleaner",),
        claim="A drain cleaner that only marks the broker, and leaves the refusal to a budget of zero, works as well.",
        wanted=all_reboot(),
        seconds=3600.0,
    ),
    CitizenStory(
        name="kruise",
        citizens=("kruise",),
        claim="A StatefulSet of another API group is a controller of its own kind.",
        wanted=all_reboot(),
    ),
    CitizenStory(
        name="kruise-without-operator",
        citizens=("kruise-without-operator",),
        claim="If an operator does not run, so that nobody creates its pod again, no other node goes down.",
        wanted=halts_after_the_first("StatefulSet.apps.kruise.io zoo/ledgers"),
    ),
    CitizenStory(
        name="workflow",
        citizens=("workflow",),
        claim="No node waits for the return of a pod that does a piece of work, such as a workflow's.",
        wanted=all_reboot(but=("settled", "service")),
    ),
    CitizenStory(
        name="vault",
        citizens=("vault",),
        claim="If a pod of Vault stays sealed after it moved, no other node goes down.",
        wanted=halts_after_the_first("StatefulSet zoo/vault"),
        prepare=breaks("vault"),
    ),
    CitizenStory(
        name="openshift-guards",
        citizens=("openshift-guards",),
        claim="A guard is evicted within its budget, and its operator creates it again when the node is back.",
        wanted=all_reboot(),
    ),
    CitizenStory(
        name="typha",
        citizens=("typha",),
        claim="A pod that tolerates everything returns to the cordoned node: it is evicted once, and then stays.",
        wanted=all_reboot(but=("drained",)),
    ),
    CitizenStory(
        name="cilium",
        citizens=("cilium",),
        claim="A node that the network taints after its boot counts as no place for pods until the taint is gone.",
        wanted=all_reboot(),
    ),
    CitizenStory(
        name="moving-prometheus",
        citizens=("moving-prometheus",),
        claim="If the drain moves the only Prometheus, the drained node waits until Prometheus knows its alerts again.",
        wanted=all_reboot(),
        settings={"alerts": FEW_ALERTS, "unknown_patience_seconds": 300},
        prepare=_prometheus_in_a_pod,
        seconds=7200.0,
    ),
    CitizenStory(
        name="rook-with-its-alerts",
        citizens=("rook-ceph",),
        claim="An alert that names no object of the drain is waited for, and costs at most three drains a day.",
        wanted=both(all_reboot(most_drains=3), says("waits up to 10m: these alerts are active: CephHealthWarning")),
        settings={"alerts": FEW_ALERTS},
        prepare=_alerts_of_rook,
        seconds=15000.0,
    ),
    CitizenStory(
        name="gpu-driver-manager",
        citizens=("gpu-driver-manager",),
        claim="A controller that uncordons the node during the drain costs this drain, and the node tries again.",
        wanted=all_reboot(most_drains=2),
        prepare=_long_drains,
    ),
    CitizenStory(
        name="uncordoner",
        citizens=("uncordoner",),
        claim="A controller that uncordons the node after every cordon costs at most three drains a day.",
        wanted=never_reboots("another client uncordoned the node", "the next try is at"),
        prepare=_long_drains,
        seconds=7200.0,
    ),
)
