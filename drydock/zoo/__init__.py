"""Small imitations of the operators, webhooks and servers that users have beside careen.

Each citizen uses only objects, a clock and chance, so the demo's cluster and the tests' virtual world run the same
code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from drydock.zoo.after_boot import AfterBoot, graceful_shutdown, guard_pods, static_etcd
from drydock.zoo.ceph import rook_ceph
from drydock.zoo.citizen import Citizen, Habitat
from drydock.zoo.databases import cloudnative_pg, elasticsearch, scylla, zalando_postgres
from drydock.zoo.eviction_webhooks import (
    gatekeeper,
    kubevirt,
    legacy_drain_cleaner,
    pod_graceful_drain,
    strimzi_drain_cleaner,
)
from drydock.zoo.foreign_sets import advanced_stateful_set, clone_set, spark, strimzi, tikv, workflow
from drydock.zoo.in_motion import (
    argo_rollouts,
    descheduler,
    device_plugin,
    hpa,
    keda,
    prometheus_operator,
    roll_out,
    typha,
    vault,
)
from drydock.zoo.monitoring import prometheus_pod
from drydock.zoo.node_owners import argo_cd, cilium, cloud_controller, cluster_autoscaler, uncordoner
from drydock.zoo.storage import longhorn, portworx
from drydock.zoo.volumes import late_volumes, long_goodbye, redpanda, stuck_pods

Settler = Callable[[Habitat], Citizen]

CITIZENS: Mapping[str, Settler] = {
    "longhorn": longhorn,
    "cloudnative-pg": cloudnative_pg,
    "zalando-postgres": zalando_postgres,
    "kubevirt": kubevirt,
    "pod-graceful-drain": pod_graceful_drain,
    "rook-ceph": rook_ceph,
    "hpa": hpa,
    "roll-out": roll_out,
    "bad-roll-out": partial(roll_out, is_good=False),
    "strimzi": strimzi,
    "broken-strimzi": partial(strimzi, is_broken=True),
    "strimzi-drain-cleaner": partial(strimzi, webhooks=(strimzi_drain_cleaner,)),
    "strimzi-legacy-drain-cleaner": partial(strimzi, may_be_away=0, webhooks=(legacy_drain_cleaner,)),
    "clone-set": clone_set,
    "kruise": advanced_stateful_set,
    "kruise-without-operator": partial(advanced_stateful_set, is_gone=True),
    "workflow": workflow,
    "elasticsearch": elasticsearch,
    "vault": vault,
    "cloudnative-pg-local": partial(cloudnative_pg, is_local=True),
    "kubevirt-pinned": partial(kubevirt, can_migrate=False),
    "portworx": portworx,
    "typha": typha,
    "openshift-guards": guard_pods,
    "moving-prometheus": prometheus_pod,
    "gpu-driver-manager": uncordoner,
    "uncordoner": partial(uncordoner, most=1000),
    "cilium": cilium,
    "static-etcd": static_etcd,
    "graceful-shutdown-failed": partial(graceful_shutdown, how=AfterBoot.FAILED),
    "graceful-shutdown-late": partial(graceful_shutdown, how=AfterBoot.LATE),
    "graceful-shutdown-missing": partial(graceful_shutdown, how=AfterBoot.MISSING),
    "late-volumes": late_volumes,
    "stuck-pods": stuck_pods,
    "cloud-controller": cloud_controller,
    "argo-cd": argo_cd,
    "tikv": tikv,
    "scylla": scylla,
    "cassandra-racks": partial(scylla, per_node=2),
    "redpanda": redpanda,
    "long-goodbye": long_goodbye,
    "gatekeeper": gatekeeper,
    "stuck-webhook": partial(gatekeeper, is_stuck=True),
    "longhorn-single": partial(longhorn, is_single=True),
    "graceful-shutdown-completed": partial(graceful_shutdown, how=AfterBoot.COMPLETED),
    "cluster-autoscaler": cluster_autoscaler,
    "keda": keda,
    "shrinking-clone-set": partial(clone_set, shrinks=True),
    "prometheus-operator": prometheus_operator,
    "argo-rollouts": argo_rollouts,
    "bad-argo-rollouts": partial(argo_rollouts, is_good=False),
    "descheduler": descheduler,
    "device-plugin": device_plugin,
    "spark": spark,
}

IN_THE_DEMO = (
    "longhorn",
    "cloudnative-pg",
    "zalando-postgres",
    "kubevirt",
    "strimzi-drain-cleaner",
    "pod-graceful-drain",
    "rook-ceph",
    "hpa",
    "clone-set",
    "static-etcd",
    "graceful-shutdown-late",
    "late-volumes",
)

# Citizens that leave a roll-out of many faults a way home, whatever people and machines do.
IN_STORMS = (
    "pod-graceful-drain",
    "hpa",
    "strimzi",
    "clone-set",
    "static-etcd",
    "graceful-shutdown-failed",
    "graceful-shutdown-missing",
    "graceful-shutdown-late",
    "late-volumes",
    "roll-out",
    "rook-ceph",
    "longhorn",
    "cloudnative-pg",
    "zalando-postgres",
    "kubevirt",
    "strimzi-drain-cleaner",
)
