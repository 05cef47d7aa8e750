"""The stories of further public reports. Each claim is a sentence of docs/operators.md."""

from __future__ import annotations

from tests.careen.chaos.citizens.story import (
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
from tests.careen.chaos.fleet.world import Shape


def _stays_in_service(node: str, most_drains: int = 3) -> Wanted:
    """All nodes but one reboot, and that one is drained at most so many times."""

    def wanted(played: Played) -> list[str]:
        figures, names = played.figures, played.world.shape.names
        wrong = [f"{name} rebooted {figures.reboots[name]} times" for name in names if figures.reboots[name] != 1]
        drained = figures.drains[node]
        wrong = [each for each in wrong if each != f"{node} rebooted 0 times"]
        wrong += [f"{node} was drained {drained} times"] if drained > most_drains else []
        return wrong + played.world.verdict(but=("once", "finished", "tidy", "end"))

    return wanted


REPORTS: tuple[CitizenStory, ...] = (
    CitizenStory(
        name="longhorn-single",
        citizens=("longhorn-single",),
        claim="A node with the only replica of a volume costs at most three drains a day, and the others reboot.",
        wanted=both(_stays_in_service("n1"), says("instance-manager-n1", "the next try is at")),
        seconds=9000.0,
    ),
    CitizenStory(
        name="scylla",
        citizens=("scylla",),
        claim="A pod of a StatefulSet whose volume exists on one node only waits for its node.",
        wanted=all_reboot(),
    ),
    CitizenStory(
        name="cassandra-racks",
        citizens=("cassandra-racks",),
        claim="If a budget lets the second pod of a node go only when the first is back there, no drain begins.",
        wanted=refuses_before_the_cordon("scylla", "can return only to this node"),
        seconds=400.0,
    ),
    CitizenStory(
        name="redpanda",
        citizens=("redpanda",),
        claim="The drain waits for an operator that removes its finalizer long after the eviction.",
        wanted=all_reboot(),
    ),
    CitizenStory(
        name="tikv",
        citizens=("tikv",),
        claim="A budget that cannot be computed, because its pods' owners have no scale, refuses before the cordon.",
        wanted=refuses_before_the_cordon("zoo/tikv-", "disruption budget"),
        seconds=400.0,
    ),
    CitizenStory(
        name="gatekeeper",
        citizens=("gatekeeper",),
        claim="While the drain moves the only pod of a webhook, evictions fail; the agent asks again until they work.",
        wanted=all_reboot(),
    ),
    CitizenStory(
        name="stuck-webhook",
        citizens=("stuck-webhook",),
        claim="A webhook that never answers refuses before the cordon, and the reason contains the server's words.",
        wanted=refuses_before_the_cordon("failed calling webhook", "context deadline exceeded"),
        seconds=400.0,
    ),
    CitizenStory(
        name="graceful-shutdown-completed",
        citizens=("graceful-shutdown-completed",),
        claim="If a DaemonSet's pod stays Completed after the boot, the node stays cordoned and no other goes down.",
        wanted=halts_after_the_first("cni"),
    ),
    CitizenStory(
        name="keda",
        citizens=("keda",),
        claim="A Deployment that is scaled to zero while a node is down does not stop the reboots.",
        wanted=all_reboot(),
    ),
    CitizenStory(
        name="shrinking-clone-set",
        citizens=("shrinking-clone-set",),
        claim="If a set of a kind that careen cannot read gets fewer pods, a person has to release the claim.",
        wanted=halts_after_the_first("CloneSet zoo/clones (3 of 6 pods ready)"),
    ),
    CitizenStory(
        name="prometheus-operator",
        citizens=("prometheus-operator",),
        claim="A StatefulSet that its operator creates again under another UID counts as the same workload.",
        wanted=all_reboot(),
    ),
    CitizenStory(
        name="prometheus-operator-broken",
        citizens=("prometheus-operator",),
        claim="That hides nothing: if its pods do not become ready, no other node goes down.",
        wanted=halts_after_the_first("StatefulSet zoo/metrics"),
        prepare=breaks("metrics"),
    ),
    CitizenStory(
        name="argo-rollouts",
        citizens=("argo-rollouts",),
        claim="A roll-out of Argo Rollouts that begins in the middle does not stop the reboots.",
        wanted=all_reboot(),
    ),
    CitizenStory(
        name="bad-argo-rollouts",
        citizens=("bad-argo-rollouts",),
        claim="A bad one halts them, because all ReplicaSets of one owner count, whatever its kind.",
        wanted=halts_after_the_first("checkout"),
    ),
    CitizenStory(
        name="descheduler",
        citizens=("descheduler",),
        claim="A descheduler that evicts pods all the time does not stop the reboots.",
        wanted=all_reboot(),
    ),
    CitizenStory(
        name="device-plugin",
        citizens=("device-plugin",),
        claim="Pods that fail while a device plugin is missing after the boot do not count, and their successors do.",
        wanted=all_reboot(),
    ),
    CitizenStory(
        name="spark",
        citizens=("spark",),
        claim="A pod that asks not to be disturbed keeps its node in service until it ends; the others go first.",
        wanted=both(all_reboot(), says("zoo/driver", "safe-to-evict")),
    ),
    CitizenStory(
        name="long-goodbye",
        citizens=("long-goodbye",),
        claim="The drain waits for a pod that needs long to end, and the reason names it.",
        wanted=both(all_reboot(), says("zoo/calculation", "terminating")),
        seconds=3600.0,
    ),
    CitizenStory(
        name="cluster-autoscaler",
        citizens=("cluster-autoscaler",),
        claim="The claim of a Node that an autoscaler removes for good ends with its reboot deadline.",
        wanted=all_reboot(but=("release", "reported", "finished", "tidy", "end")),
        shape=Shape(nodes=4),
        seconds=400.0,
    ),
)
