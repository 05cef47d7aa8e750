"""The stories. Each claim is a sentence of docs/operators.md."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from careen.core.facts.policy import AlertPolicy, HealthQuery
from drydock.zoo.citizen import NAMESPACE
from drydock.zoo.monitoring import Monitoring
from tests.careen.chaos.citizens.neighbours import NEIGHBOURS
from tests.careen.chaos.citizens.prometheus import add_prometheus
from tests.careen.chaos.citizens.reports import REPORTS
from tests.careen.chaos.citizens.story import (
    FEW_ALERTS,
    CitizenStory,
    Played,
    Wanted,
    all_reboot,
    both,
    breaks,
    halts_after_the_first,
    refuses_before_the_cordon,
    says,
)
from tests.careen.chaos.fleet.agents import START
from tests.careen.chaos.fleet.world import Shape, World

CEPH = HealthQuery(
    name="ceph",
    query="ceph_health_status",
    comparison="==",
    bound=0,
    late_comparison="<=",
    late_bound=1,
    fresh_seconds=120.0,
)
NOTHING = AlertPolicy(filter_regexp=re.compile("^NothingAtAll$"), match_only=True)
_CONTROL_PLANE = Shape(nodes=3, control_planes=3)


def _with_prometheus(change: Callable[[Monitoring], None] = lambda _: None) -> Callable[[World], None]:
    return lambda world: change(add_prometheus(world))


def _long_drains_with_prometheus(world: World) -> None:
    """A drain lasts longer than half a minute, so the rules see the pods that cannot return to their node."""
    add_prometheus(world)
    apps = world.fleet.workloads.apps
    apps["web"] = replace(apps["web"], ends_within=(40.0, 50.0))


def _lacks_a_store(monitoring: Monitoring) -> None:
    monitoring.lacks_a_store = True


def _needs_a_tenant(monitoring: Monitoring) -> None:
    monitoring.tenant = "platform"


def _keep_boot_ids(world: World) -> None:
    for host in world.fleet.hosts.values():
        host.keeps_boot_id = True


def _begin_in_1970(world: World) -> None:
    """The clock of a host without a battery is wrong for a minute after each boot."""

    def set_back(host: Any) -> None:
        clock = world.agents.clocks[host.name]
        clock.skew_seconds = -(START.timestamp() + world.now)
        world.at(60.0, lambda: setattr(clock, "skew_seconds", 0.0))

    world.fleet.on_boot.append(set_back)


def daemons_are_back(app: str) -> Wanted:
    """No agent uncordons its node before the node's pod of the DaemonSet is ready again."""

    def wanted(played: Played) -> list[str]:
        return [
            f"{node} was uncordoned at {at:.0f} s without a ready {app} pod"
            for at, node in _uncordons(played.world)
            if not _was_ready(played.world, f"{app}-{node}", at)
        ]

    return wanted


def _uncordons(world: World) -> list[tuple[float, str]]:
    booted = {event.host: event.at for event in reversed(world.fleet.log) if event.what == "booted"}
    return [
        (change.at, change.key[1])
        for change in world.server.store.journal
        if change.storage[1] == "nodes"
        and change.before is not None
        and change.after is not None
        and change.before.content["spec"].get("unschedulable")
        and not change.after.content["spec"].get("unschedulable")
        and booted.get(change.key[1], float("inf")) <= change.at
    ]


def _was_ready(world: World, pod: str, at: float) -> bool:
    last = next(
        (
            change
            for change in reversed(world.server.store.journal)
            if change.storage[1] == "pods" and change.key == (NAMESPACE, pod) and change.at <= at
        ),
        None,
    )
    conditions = last.after.content["status"].get("conditions") or () if last and last.after else ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def nothing_is_attached(played: Played) -> list[str]:
    """When an agent asks its host to reboot, the Node has no attached volume."""
    wrong = []
    for event in played.world.fleet.log:
        if event.what == "asked":
            last = next(
                change.after.content
                for change in reversed(played.world.server.store.journal)
                if change.storage[1] == "nodes"
                and change.key[1] == event.host
                and change.at <= event.at
                and change.after is not None
            )
            if volumes := last["status"].get("volumesAttached"):
                wrong.append(f"{event.host} was asked to reboot with {len(volumes)} attached volumes")
    return wrong


STORIES: tuple[CitizenStory, ...] = (
    CitizenStory(
        name="longhorn",
        citizens=("longhorn",),
        claim="Each node is drained once, and reboots when Longhorn has let its instance manager go.",
        wanted=all_reboot(),
        seconds=3600.0,
    ),
    CitizenStory(
        name="rook",
        citizens=("rook-ceph",),
        claim="Without a health query, Rook's budgets alone keep a second failure domain up while Ceph recovers.",
        wanted=all_reboot(),
    ),
    CitizenStory(
        name="rook-with-its-health",
        citizens=("rook-ceph",),
        claim="With the query on Ceph's health every node reboots, and no node is drained more than twice.",
        wanted=all_reboot(most_drains=2),
        settings={"health_queries": (CEPH,), "alerts": NOTHING},
        prepare=_with_prometheus(),
        seconds=7200.0,
    ),
    CitizenStory(
        name="cloudnative-pg",
        citizens=("cloudnative-pg",),
        claim="The agent cordons the node of the primary, waits for the switchover, and evicts the former primary.",
        wanted=all_reboot(),
        seconds=3600.0,
    ),
    CitizenStory(
        name="zalando",
        citizens=("zalando-postgres",),
        claim="The budget's selector, not the StatefulSet, shows that the Zalando operator decides.",
        wanted=all_reboot(),
        seconds=3600.0,
    ),
    CitizenStory(
        name="kubevirt",
        citizens=("kubevirt",),
        claim="The first real eviction starts the migration, and the agent asks again until the machine has moved.",
        wanted=all_reboot(),
        seconds=3600.0,
    ),
    CitizenStory(
        name="strimzi",
        citizens=("strimzi",),
        claim="careen counts the brokers of a StrimziPodSet like the pods of a StatefulSet.",
        wanted=all_reboot(),
    ),
    CitizenStory(
        name="strimzi-drain-cleaner",
        citizens=("strimzi-drain-cleaner",),
        claim="With the drain cleaner, the agent asks for each broker until the Strimzi operator has moved it.",
        wanted=all_reboot(),
        seconds=3600.0,
    ),
    CitizenStory(
        name="broken-strimzi",
        citizens=("broken-strimzi",),
        claim="If a broker does not become ready again, no other node goes down, and the reason names its owner.",
        wanted=halts_after_the_first("events-kafka"),
    ),
    CitizenStory(
        name="clone-set",
        citizens=("clone-set",),
        claim="Pods of any other controller are found again by the UID of their owner.",
        wanted=all_reboot(),
    ),
    CitizenStory(
        name="pod-graceful-drain",
        citizens=("pod-graceful-drain",),
        claim="A webhook may answer that a pod was evicted and delete it later; the drain waits for the pod to go.",
        wanted=all_reboot(),
    ),
    CitizenStory(
        name="etcd",
        citizens=("static-etcd",),
        claim="One control-plane node goes down at a time, and the static pods stay.",
        wanted=all_reboot(),
        shape=_CONTROL_PLANE,
    ),
    CitizenStory(
        name="broken-etcd",
        citizens=("static-etcd",),
        claim="If etcd's static pod does not become ready after the boot, no other control-plane node goes down.",
        wanted=halts_after_the_first("etcd"),
        shape=_CONTROL_PLANE,
        prepare=breaks("etcd"),
    ),
    CitizenStory(
        name="kube-prometheus",
        citizens=("hpa", "clone-set", "rook-ceph"),
        claim="With kube-prometheus' default rules every node reboots, and no node is drained more than twice.",
        wanted=all_reboot(most_drains=2),
        settings={"alerts": FEW_ALERTS},
        prepare=_long_drains_with_prometheus,
        seconds=7200.0,
    ),
    CitizenStory(
        name="kube-prometheus-and-ceph",
        citizens=("hpa", "clone-set", "rook-ceph", "longhorn"),
        claim="With the rules and the query on Ceph's health together it is the same.",
        wanted=all_reboot(most_drains=2),
        settings={"alerts": FEW_ALERTS, "health_queries": (CEPH,)},
        prepare=_long_drains_with_prometheus,
        seconds=7200.0,
    ),
    CitizenStory(
        name="thanos",
        citizens=(),
        claim="An answer of Thanos without one of its stores is unknown, so no node goes down.",
        wanted=refuses_before_the_cordon("cannot tell which alerts are active"),
        settings={"alerts": FEW_ALERTS},
        prepare=_with_prometheus(_lacks_a_store),
        seconds=600.0,
    ),
    CitizenStory(
        name="mimir",
        citizens=(),
        claim="Mimir refuses a query without a tenant; then the alerts are unknown, and no node goes down.",
        wanted=refuses_before_the_cordon("cannot tell which alerts are active"),
        settings={"alerts": FEW_ALERTS},
        prepare=_with_prometheus(_needs_a_tenant),
        seconds=600.0,
    ),
    CitizenStory(
        name="hpa",
        citizens=("hpa",),
        claim="While the autoscaler changes the replicas, nodes reboot one after another.",
        wanted=all_reboot(),
    ),
    CitizenStory(
        name="hpa-hides-nothing",
        citizens=("hpa",),
        claim="An autoscaler that raises the replicas does not hide pods that did not become ready again.",
        wanted=halts_after_the_first("api"),
        prepare=breaks("api"),
    ),
    CitizenStory(
        name="roll-out",
        citizens=("roll-out",),
        claim="A good roll-out that begins in the middle does not stop the reboots.",
        wanted=all_reboot(),
    ),
    CitizenStory(
        name="bad-roll-out",
        citizens=("bad-roll-out",),
        claim="A bad roll-out that begins in the middle halts them, because all ReplicaSets of a Deployment count.",
        wanted=halts_after_the_first("site"),
    ),
    *(
        CitizenStory(
            name=f"graceful-shutdown-{how}",
            citizens=(f"graceful-shutdown-{how}",),
            claim="DaemonSet pods that are Failed, missing or late after the boot are waited for before the uncordon.",
            wanted=both(all_reboot(), daemons_are_back("cni")),
        )
        for how in ("failed", "missing", "late")
    ),
    CitizenStory(
        name="late-volumes",
        citizens=("late-volumes",),
        claim="Before the reboot the agent waits until the volumes of evicted pods are detached.",
        wanted=both(all_reboot(), nothing_is_attached),
    ),
    CitizenStory(
        name="stuck-pods",
        citizens=("stuck-pods",),
        claim="A pod that terminates for too long refuses before the cordon, and the reason names its finalizer.",
        wanted=refuses_before_the_cordon("report", "reports.example/upload"),
    ),
    CitizenStory(
        name="argo-cd",
        citizens=("argo-cd",),
        claim="Even if Argo CD removes the lock again and again, no two nodes go down together.",
        wanted=all_reboot(),
    ),
    CitizenStory(
        name="cloud-controller",
        citizens=("cloud-controller",),
        claim="A Node that a cloud controller deletes while its host boots comes back without careen's marks.",
        wanted=all_reboot(),
    ),
    CitizenStory(
        name="same-boot-id",
        citizens=(),
        claim="If the boot id stays the same after an evident reboot, the reason names that as the cause.",
        wanted=says("boot id", "LXC"),
        prepare=_keep_boot_ids,
        settings={"reboot_deadline_seconds": 600},
    ),
    CitizenStory(
        name="no-clock",
        citizens=(),
        claim="A host whose clock starts in 1970 reboots like any other.",
        wanted=all_reboot(),
        prepare=_begin_in_1970,
    ),
    *NEIGHBOURS,
    *REPORTS,
)
