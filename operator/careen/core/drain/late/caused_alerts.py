"""Whether this node's drain caused an alert, by the labels that Prometheus' usual rules give alerts.

An alert is ours if it was not active at the claim, has at least one label that names an object, and each such label
names this Node, or a pod that the drain displaces, its controller or its Deployment. Labels of the scraped target
(`instance`, `service`, and `pod` of an exporter) name an object only if no other label does: kube-state-metrics reports
about objects elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from careen.core.drain.late import known_at_the_claim
from careen.core.drain.late.known_at_the_claim import Known, is_pod_of
from careen.core.facts.observation import Alert, NodeView
from careen.core.situation import Situation

_NODES = ("node", "nodename", "hostname", "kubernetes_node", "kubernetes_io_hostname")
_HOSTNAME = "kubernetes.io/hostname"
# The kinds whose names the label may have. Budgets and autoscalers usually have the names of what they select.
_KINDS: Mapping[str, frozenset[str]] = {
    "deployment": frozenset({"Deployment", "ReplicaSet"}),
    "replicaset": frozenset({"ReplicaSet", "Deployment"}),
    "statefulset": frozenset({"StatefulSet"}),
    "replicationcontroller": frozenset({"ReplicationController"}),
    "job_name": frozenset({"Job"}),
    "cronjob": frozenset({"Job"}),
}
_LIKE_THEIR_WORKLOAD = ("workload", "horizontalpodautoscaler", "hpa", "poddisruptionbudget")
# Objects that no drain changes, or that careen does not know.
_OTHERS = ("daemonset", "persistentvolumeclaim", "persistentvolume", "volumename", "resourcequota", "ingress")
_STATE_METRICS = "kube-state-metrics"


def caused(situation: Situation, alerts: Iterable[Alert]) -> tuple[Alert, ...]:
    """Those alerts that this node's drain caused."""
    kept = known_at_the_claim.of(situation)
    return tuple(
        alert
        for alert in alerts
        if not kept.has(alert) and _names_only_ours(situation, kept, _of_the_metric(alert.labels))
    )


def _of_the_metric(labels: Mapping[str, str]) -> Mapping[str, str]:
    """Prometheus renames a metric's label to `exported_…` where it clashes with one of the target."""
    own = {key.removeprefix("exported_"): value for key, value in labels.items() if key.startswith("exported_")}
    return {**labels, **own}


def _names_only_ours(situation: Situation, kept: Known, labels: Mapping[str, str]) -> bool:
    node, space = situation.node, labels.get("namespace")
    verdicts = [_is_node(node, labels[key]) for key in _NODES if labels.get(key)]
    is_here = any(verdicts)
    verdicts += [_is_displaced(kept, space, key, labels[key]) for key in _KINDS if labels.get(key)]
    verdicts += [_is_named_like(kept, space, labels[key]) for key in _LIKE_THEIR_WORKLOAD if labels.get(key)]
    verdicts += [False for key in _OTHERS if labels.get(key)]
    pod, instance, service = (labels.get(key, "") for key in ("pod", "instance", "service"))
    if pod and not (verdicts and _is_exporter(labels, pod)):
        is_here = is_here or _is_node(node, instance)
        verdicts.append(_is_displaced_pod(kept, space, pod) or (is_here and _is_daemon(situation, space, pod)))
    if not verdicts and instance:
        verdicts.append(_is_node(node, instance))
    if not verdicts and service:
        verdicts.append(_is_named_like(kept, space, service))
    return bool(verdicts) and all(verdicts)


def _is_node(node: NodeView, value: str) -> bool:
    """Whether the text is a name or an address of this Node, with or without a port."""
    host = value.rpartition(":")[0] if value.rpartition(":")[2].isdigit() and value.count(":") == 1 else value
    if value.startswith("["):
        host = value[1:].partition("]")[0]
    return host in {node.name, node.labels.get(_HOSTNAME), *node.addresses} - {None, ""}


def _is_displaced(kept: Known, space: str | None, label: str, value: str) -> bool:
    return any(kind in _KINDS[label] and _may_be(kind, name, label, value) for kind, name in kept.names(space))


def _may_be(kind: str, name: str, label: str, value: str) -> bool:
    """Whether a controller is what the label names, or its owner or its ReplicaSet: the name of a ReplicaSet or of a
    CronJob's Job is its owner's with one more part."""
    if (kind, label) == ("Deployment", "replicaset"):
        return value.rpartition("-")[0] == name
    if label == "cronjob":
        return name.rpartition("-")[0] == value
    return name == value or ((kind, label) == ("ReplicaSet", "deployment") and name.rpartition("-")[0] == value)


def _is_named_like(kept: Known, space: str | None, value: str) -> bool:
    return any(
        value in (name, name.rpartition("-")[0] if kind == "ReplicaSet" else name)
        for kind, name in kept.names(space)
        if kind != "Pod"
    )


def _is_displaced_pod(kept: Known, space: str | None, pod: str) -> bool:
    return any(is_pod_of(kind, name, pod) for kind, name in kept.names(space))


def _is_daemon(situation: Situation, space: str | None, pod: str) -> bool:
    """Whether the pod may be one of a DaemonSet on this node, such as the exporter that reports about the node."""
    return any(
        row.kind == "DaemonSet" and space in (None, row.namespace) and is_pod_of(row.kind, row.name, pod)
        for row in situation.progress.owners
    )


def _is_exporter(labels: Mapping[str, str], pod: str) -> bool:
    """Whether the label `pod` names the pod that was scraped."""
    service = labels.get("service", "")
    named = (labels.get("job", ""), labels.get("container", ""), service)
    return any(_STATE_METRICS in each for each in named) or bool(service and pod.startswith(f"{service}-"))
