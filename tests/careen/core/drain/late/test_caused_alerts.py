"""Which alerts a drain caused, by the labels that kube-prometheus' and Ceph's rules give their alerts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from careen.core.drain.late import known_at_the_claim
from careen.core.drain.late.caused_alerts import caused
from careen.core.facts import keys
from careen.core.facts.observation import Alert, PodView
from careen.core.facts.phases import Phase
from careen.core.facts.policy import AlertPolicy
from careen.core.situation import Situation
from tests.careen.core.builders import a_marked_node, a_pod, a_policy, a_progress, a_situation, an_owner

PODS = (
    a_pod("web-7f9c-abcde", owner_name="web-7f9c", labels={"pod-template-hash": "7f9c"}),
    a_pod("plain-x2x2x", owner_name="plain"),
    a_pod("api-6b6b-x2x2x", owner_name="api-6b6b"),
    a_pod("db-0", owner_kind="StatefulSet", owner_name="db"),
    a_pod("backup-123-zzzzz", owner_kind="Job", owner_name="backup-123"),
    a_pod("kafka-2", owner_kind="StrimziPodSet", owner_name="kafka"),
    a_pod("virt-launcher-vm1-q", owner_kind="VirtualMachineInstance", owner_name="vm1"),
    a_pod("bare", owner_kind="", owner_name=""),
)
DAEMON = an_owner("node-exporter", kind="DaemonSet", namespace="monitoring", replicas=1, ready=1)
POLICY = a_policy(alerts=AlertPolicy())
# The labels of the target kube-state-metrics in kube-prometheus-stack.
KSM = {
    "job": "kube-state-metrics",
    "container": "kube-state-metrics",
    "endpoint": "http",
    "instance": "10.244.7.9:8080",
    "service": "kube-state-metrics",
    "pod": "kube-prometheus-stack-kube-state-metrics-5d8f-x",
}
EXPORTER = {"job": "node-exporter", "namespace": "monitoring", "service": "node-exporter", "container": "node-exporter"}


def kept(at_the_claim: tuple[Alert, ...] = (), pods: tuple[PodView, ...] = PODS) -> Mapping[str, str | None]:
    """Return the annotation that the cordon of the node would write."""
    claiming = a_situation(a_marked_node(a_progress(Phase.CLAIMING)), POLICY, alerts=at_the_claim)
    return known_at_the_claim.annotation(claiming, pods)


def drained(annotations: Mapping[str, Any]) -> Situation:
    node = a_marked_node(
        a_progress(Phase.DRAINING, owners=(DAEMON,)),
        annotations=annotations,
        addresses=("10.0.0.7", "fd00::7", "n1.internal"),
    )
    return a_situation(node, POLICY)


def is_caused(alert: Alert, annotations: Mapping[str, str | None] | None = None) -> bool:
    return caused(drained(kept() if annotations is None else annotations), (alert,)) == (alert,)


OURS: dict[str, dict[str, str]] = {
    "a Deployment, as KubeDeploymentReplicasMismatch": {"namespace": "shop", "deployment": "web"},
    "a Deployment, with the labels of kube-state-metrics": {**KSM, "namespace": "shop", "deployment": "web"},
    "a ReplicaSet of the Deployment": {"namespace": "shop", "replicaset": "web-7f9c"},
    "another ReplicaSet of the Deployment": {"namespace": "shop", "replicaset": "web-8a8a"},
    "a ReplicaSet without a Deployment": {"deployment": "plain"},
    "the Deployment of a ReplicaSet whose pods lack the label with the hash": {
        "namespace": "shop",
        "deployment": "api",
    },
    "the autoscaler of such a Deployment": {"namespace": "shop", "horizontalpodautoscaler": "api"},
    "a StatefulSet, as KubeStatefulSetReplicasMismatch": {"namespace": "shop", "statefulset": "db"},
    "a Job, as KubeJobFailed": {"namespace": "shop", "job_name": "backup-123", **KSM},
    "the CronJob of a Job": {"namespace": "shop", "cronjob": "backup"},
    "an evicted pod, as KubePodNotReady": {"namespace": "shop", "pod": "web-7f9c-abcde"},
    "the pod's replacement": {"namespace": "shop", "pod": "web-7f9c-fghij"},
    "a pod of a StatefulSet": {"namespace": "shop", "pod": "db-0", "uid": "new"},
    "a pod of an unknown controller": {"namespace": "shop", "pod": "kafka-2"},
    "a pod that is not named after its controller": {"namespace": "shop", "pod": "virt-launcher-vm1-q"},
    "a pod without a controller": {"namespace": "shop", "pod": "bare"},
    "a container of an evicted pod": {
        **KSM,
        "namespace": "shop",
        "pod": "web-7f9c-fghij",
        "container": "app",
        "reason": "ImagePullBackOff",
    },
    "the Node, as KubeNodeUnschedulable": {"node": "n1"},
    "the Node, with the labels of kube-state-metrics": {**KSM, "node": "n1", "namespace": "monitoring"},
    "a pod and its Node": {"namespace": "shop", "pod": "db-0", "node": "n1"},
    "the Node's address with a port": {"instance": "10.0.0.7:9100", "job": "node"},
    "the Node's IPv6 address with a port": {"instance": "[fd00::7]:9100"},
    "the Node's IPv6 address": {"instance": "fd00::7"},
    "the Node's name as instance": {"instance": "n1"},
    "the Node's host name": {"hostname": "n1.internal"},
    "the exporter on this node": {**EXPORTER, "instance": "10.0.0.7:9100", "pod": "node-exporter-aaaaa"},
    "an autoscaler, as KubeHpaMaxedOut": {"namespace": "shop", "horizontalpodautoscaler": "web"},
    "a budget, as PodDisruptionBudgetAtLimit": {"namespace": "shop", "poddisruptionbudget": "db"},
    "a Service, as TargetDown": {"job": "kafka", "namespace": "shop", "service": "kafka"},
    "labels that Prometheus renamed": {
        "namespace": "monitoring",
        "pod": "ksm-1",
        "exported_namespace": "shop",
        "exported_pod": "db-0",
    },
}
FOREIGN: dict[str, dict[str, str]] = {
    "no label, as Watchdog": {},
    "a cluster only, as CephHealthWarning": {"cluster": "rook", "severity": "warning"},
    "a job only, as etcdMembersDown": {"job": "etcd"},
    "a Service of others, as TargetDown": {"job": "node-exporter", "namespace": "monitoring", "service": "coredns"},
    "the exporters' Service": EXPORTER,
    "another Node": {"node": "n2"},
    "another Node, and a Deployment of ours": {"node": "n2", "namespace": "shop", "deployment": "web"},
    "another Node whose name begins with ours": {"node": "n10"},
    "another address": {"instance": "10.0.0.70:9100"},
    "another node's exporter": {**EXPORTER, "instance": "10.0.0.8:9100", "pod": "node-exporter-bbbbb"},
    "another Deployment": {"namespace": "shop", "deployment": "cart"},
    "a Deployment of the same name elsewhere": {"namespace": "test", "deployment": "web"},
    "a ReplicaSet of another Deployment": {"namespace": "shop", "replicaset": "web-frontend-7f9c"},
    "another CronJob": {"namespace": "shop", "cronjob": "backup-123"},
    "a Deployment named like a StatefulSet": {"namespace": "shop", "deployment": "db"},
    "a Deployment of ours and a pod of others": {"namespace": "shop", "deployment": "web", "pod": "cart-1-1"},
    "another pod": {"namespace": "shop", "pod": "web-frontend-7f9c-abcde"},
    "another pod without a controller": {"namespace": "shop", "pod": "bare-2"},
    "a DaemonSet, which no drain evicts": {"namespace": "monitoring", "daemonset": "node-exporter"},
    "a static pod on this node": {"job": "etcd", "instance": "10.0.0.7:2379", "pod": "etcd-n1"},
    "a volume": {"namespace": "shop", "persistentvolumeclaim": "data-db-0", "node": "n1"},
    "the exporter's address only": {key: KSM[key] for key in ("job", "instance")},
}


@pytest.mark.parametrize("labels", OURS.values(), ids=OURS.keys())
def test_an_alert_is_ours_if_its_labels_name_this_node_or_what_its_drain_displaces(labels: dict[str, str]) -> None:
    assert is_caused(Alert(name="KubeSomething", labels={**labels, "severity": "warning"}))


@pytest.mark.parametrize("labels", FOREIGN.values(), ids=FOREIGN.keys())
def test_an_alert_is_foreign_if_a_label_names_something_else_or_none_names_an_object(labels: dict[str, str]) -> None:
    assert not is_caused(Alert(name="KubeSomething", labels={**labels, "severity": "warning"}))


WEB = {"namespace": "shop", "deployment": "web"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Alert(name="A", labels=WEB), Alert(name="A", labels=WEB)),
        (Alert(name="A", state="pending", labels=WEB), Alert(name="A", labels=WEB)),
        (
            Alert(name="A", labels={"namespace": "shop", "pod": "db-0", "uid": "old"}),
            Alert(name="A", labels={"namespace": "shop", "pod": "db-0", "uid": "new"}),
        ),
        (
            Alert(name="A", labels={"namespace": "shop", "pod": "web-7f9c-abcde"}),
            Alert(name="A", labels={"namespace": "shop", "pod": "web-7f9c-fghij"}),
        ),
    ],
    ids=["the same", "it was pending", "the pod has another uid", "the pod was replaced"],
)
def test_an_alert_that_was_active_at_the_claim_is_foreign(before: Alert, after: Alert) -> None:
    assert is_caused(after)
    assert not is_caused(after, kept((before,)))
    assert is_caused(after, kept((Alert(name="B", labels=before.labels),)))


def test_without_what_was_known_at_the_claim_every_alert_is_foreign() -> None:
    alert = Alert(name="A", labels=WEB)
    assert not is_caused(alert, {})
    assert not is_caused(alert, {keys.KNOWN_AT_THE_CLAIM: "not JSON"})
    of_another_claim = str(kept()[keys.KNOWN_AT_THE_CLAIM]).replace('"c1"', '"c0"')
    assert not is_caused(alert, {keys.KNOWN_AT_THE_CLAIM: of_another_claim})


def test_more_alerts_at_the_claim_than_the_annotation_holds_make_every_alert_foreign() -> None:
    few, many = (tuple(Alert(name=f"A{number}") for number in range(count)) for count in (280, 310))
    assert is_caused(Alert(name="B", labels=WEB), kept(few))
    assert not is_caused(Alert(name="B", labels=WEB), kept(many))


def test_more_displaced_pods_than_the_annotation_holds_make_their_alerts_foreign() -> None:
    pods = tuple(a_pod(f"a-long-name-{number}-x", owner_name=f"a-long-name-{number}") for number in range(200))
    assert not is_caused(Alert(name="A", labels={"pod": "a-long-name-1-x"}), kept(pods=pods))
    assert is_caused(Alert(name="A", labels={"node": "n1"}), kept(pods=pods))


def test_what_is_kept_needs_at_most_four_kilobytes() -> None:
    alerts = tuple(Alert(name=f"A{number}") for number in range(290))
    pods = tuple(a_pod(f"a-name-{number}-x", owner_name=f"a-name-{number}") for number in range(90))
    text = kept(alerts, pods)[keys.KNOWN_AT_THE_CLAIM]
    assert text is not None
    assert 2800 < len(text) <= 4096
