"""Tests which events help a refused pod, with a table for each plugin. The tests call the hints as the queue does,
through the plugin's registration."""

from dataclasses import replace
from typing import Any

import pytest

from scheduler_core.config.configuration import Configuration
from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.cycle import Scheduler
from scheduler_core.model.labels import (
    LabelSelector,
    NodeAffinityRules,
    NodeSelector,
    NodeSelectorTerm,
    Requirement,
)
from scheduler_core.model.node import Node
from scheduler_core.model.pod import (
    Container,
    HostPort,
    LegacyDisk,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodResourceClaim,
    PodSpec,
    PodVolume,
    TopologySpreadConstraint,
)
from scheduler_core.model.requests import RequestRules
from scheduler_core.model.storage.devices import DeviceClass, ResourceClaim
from scheduler_core.model.storage.volumes import (
    CSIDriver,
    CSINode,
    CSINodeDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    TopologyRequirement,
    VolumeAttachment,
)
from scheduler_core.model.taints import Taint, Toleration
from scheduler_core.plugins import IN_TREE
from scheduler_core.queue.events import EVERY_EVENT, Action, ClusterEvent, EventHint, Resource, always
from scheduler_core.queue.hints import default_hints, registered_hints

NOW = KubeVersion.parse("1.36")
GIB = 2**30


def hints(profile: dict[str, Any] | None = None, version: KubeVersion = NOW) -> Any:
    return default_hints(Configuration.from_mapping({"profiles": [profile or {}]}).profiles[0], version, RequestRules())


def helps(plugin: str, pod: Pod, resource: Resource, action: Action, old: Any, new: Any, **settings: Any) -> bool:
    """Whether one of the plugin's queueing hints says that the event may help this pod, which the plugin refused."""
    event = ClusterEvent(resource, action)
    return any(hint.event.matches(event) and hint.helps(pod, old, new) for hint in hints(**settings)[plugin])


def a_pod(name: str = "waiting", **fields: Any) -> Pod:
    spec = {key: fields.pop(key) for key in list(fields) if key in PodSpec.__dataclass_fields__}
    return Pod(name=name, uid=f"uid-{name}", spec=PodSpec(**spec), **fields)


def a_node(**fields: Any) -> Node:
    return Node(**{"name": "n1", "allocatable": {"cpu": 4000, "memory": 8 * GIB, "pods": 110}, **fields})


def asking(**nanos: int) -> tuple[Container, ...]:
    return (
        Container(
            name="c",
            requests={name.replace("__", "/").replace("_dot_", "."): amount * 10**9 for name, amount in nanos.items()},
        ),
    )


GONE = a_pod("gone", node_name="n1")
WAITING = a_pod()
NODE_ADD, NODE_LABEL, NODE_TAINT, NODE_ALLOCATABLE = (
    Action.ADD,
    Action.UPDATE_NODE_LABEL,
    Action.UPDATE_NODE_TAINT,
    Action.UPDATE_NODE_ALLOCATABLE,
)


# ---- rules about the node itself ----


ON_SSD = a_pod(node_selector=(("disk", "ssd"),))
IN_POOL = a_pod(
    node_affinity=NodeAffinityRules(
        required=NodeSelector((NodeSelectorTerm(expressions=(Requirement("pool", "In", ("a",)),)),))
    )
)
SSD, HDD = a_node(labels={"disk": "ssd"}), a_node(labels={"disk": "hdd"})
ADDED = {
    "pluginConfig": [
        {
            "name": "NodeAffinity",
            "args": {
                "addedAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "ok", "operator": "Exists"}]}]
                    }
                }
            },
        }
    ]
}


@pytest.mark.parametrize(
    ("pod", "action", "old", "new", "profile", "expected"),
    [
        (ON_SSD, NODE_ADD, None, SSD, {}, True),
        (ON_SSD, NODE_ADD, None, HDD, {}, False),
        (ON_SSD, NODE_LABEL, HDD, SSD, {}, True),
        (ON_SSD, NODE_LABEL, SSD, replace(SSD, labels={"disk": "ssd", "x": "y"}), {}, False),
        (ON_SSD, NODE_TAINT, HDD, SSD, {}, False),
        (IN_POOL, NODE_ADD, None, a_node(labels={"pool": "a"}), {}, True),
        (IN_POOL, NODE_ADD, None, a_node(labels={"pool": "b"}), {}, False),
        (ON_SSD, NODE_ADD, None, SSD, ADDED, False),
        (ON_SSD, NODE_ADD, None, a_node(labels={"disk": "ssd", "ok": ""}), ADDED, True),
    ],
)
def test_a_pod_that_was_refused_because_of_node_affinity_waits_for_a_node_whose_labels_begin_to_match(
    pod: Pod, action: Action, old: Any, new: Any, profile: dict[str, Any], expected: bool
) -> None:
    assert helps("NodeAffinity", pod, Resource.NODE, action, old, new, profile=profile) is expected


TAINTED = a_node(taints=(Taint("gpu", "", "NoSchedule"),))
SOFT = a_node(taints=(Taint("gpu", "", "PreferNoSchedule"),))


@pytest.mark.parametrize(
    ("action", "old", "new", "expected"),
    [
        (NODE_ADD, None, a_node(), True),
        (NODE_ADD, None, TAINTED, False),
        (NODE_ADD, None, SOFT, True),
        (NODE_TAINT, TAINTED, a_node(), True),
        (NODE_TAINT, TAINTED, SOFT, True),
        (NODE_TAINT, a_node(), SOFT, False),
    ],
)
def test_a_pod_that_was_refused_because_of_a_taint_waits_for_a_node_without_this_taint(
    action: Action, old: Any, new: Any, expected: bool
) -> None:
    assert helps("TaintToleration", WAITING, Resource.NODE, action, old, new) is expected


def test_a_new_toleration_helps_only_the_pod_that_got_it() -> None:
    tolerant = replace(WAITING, spec=PodSpec(tolerations=(Toleration(operator="Exists"),)))
    for plugin in ("TaintToleration", "NodeUnschedulable"):
        assert helps(plugin, WAITING, Resource.UNSCHEDULED_POD, Action.UPDATE_POD_TOLERATION, WAITING, tolerant)
        assert not helps(
            plugin, a_pod("other"), Resource.UNSCHEDULED_POD, Action.UPDATE_POD_TOLERATION, WAITING, tolerant
        )


def test_a_toleration_of_another_taint_does_not_help_against_a_cordon() -> None:
    other = replace(WAITING, spec=PodSpec(tolerations=(Toleration(key="gpu", operator="Exists"),)))
    assert not helps(
        "NodeUnschedulable", WAITING, Resource.UNSCHEDULED_POD, Action.UPDATE_POD_TOLERATION, WAITING, other
    )


CORDONED = a_node(unschedulable=True)


@pytest.mark.parametrize(
    ("action", "old", "new", "expected"),
    [
        (NODE_ADD, None, a_node(), True),
        (NODE_ADD, None, CORDONED, False),
        (NODE_TAINT, CORDONED, a_node(), True),
        (NODE_TAINT, a_node(), CORDONED, False),
        (NODE_TAINT, a_node(), a_node(), False),
    ],
)
def test_a_pod_that_was_refused_because_of_a_cordon_waits_for_a_node_without_a_cordon(
    action: Action, old: Any, new: Any, expected: bool
) -> None:
    assert helps("NodeUnschedulable", WAITING, Resource.NODE, action, old, new) is expected


def test_the_node_name_plugin_waits_only_for_new_nodes() -> None:
    assert helps("NodeName", WAITING, Resource.NODE, NODE_ADD, None, a_node())
    assert not helps("NodeName", WAITING, Resource.NODE, NODE_LABEL, a_node(), a_node())


def test_a_pod_without_a_suitable_node_is_woken_if_the_declared_features_of_a_node_change() -> None:
    restarting = replace(WAITING, spec=PodSpec(containers=(Container(name="c", may_restart_all=True),)))
    assert helps(
        "NodeDeclaredFeatures",
        WAITING,
        Resource.NODE,
        Action.UPDATE_NODE_DECLARED_FEATURE,
        a_node(),
        a_node(declared_features=frozenset({"X"})),
    )
    assert not helps(
        "NodeDeclaredFeatures", WAITING, Resource.NODE, NODE_LABEL, a_node(), a_node(declared_features=frozenset({"X"}))
    )
    assert helps("NodeDeclaredFeatures", WAITING, Resource.UNSCHEDULED_POD, Action.UPDATE, restarting, WAITING)
    assert not helps(
        "NodeDeclaredFeatures",
        WAITING,
        Resource.UNSCHEDULED_POD,
        Action.UPDATE,
        WAITING,
        replace(WAITING, labels={"a": "b"}),
    )


# ---- room ----

HUNGRY = a_pod(containers=asking(cpu=2))
GREEDY = a_pod(containers=asking(example_dot_com__gpu=1))


@pytest.mark.parametrize(
    ("pod", "action", "old", "new", "expected"),
    [
        pytest.param(HUNGRY, NODE_ADD, None, a_node(), True, id="a node with enough cpu is added"),
        pytest.param(
            HUNGRY,
            NODE_ADD,
            None,
            a_node(allocatable={"cpu": 1000, "pods": 110}),
            False,
            id="a node with too little cpu is added",
        ),
        pytest.param(
            HUNGRY, NODE_ADD, None, a_node(allocatable={"cpu": 4000}), False, id="a node that allows no pods is added"
        ),
        pytest.param(
            HUNGRY,
            NODE_ALLOCATABLE,
            a_node(),
            a_node(allocatable={"cpu": 5000, "pods": 110}),
            True,
            id="a node gets more of the requested resource",
        ),
        pytest.param(
            HUNGRY,
            NODE_ALLOCATABLE,
            a_node(),
            a_node(allocatable={"cpu": 4000, "memory": 9 * GIB, "pods": 110}),
            False,
            id="a node gets more of another resource",
        ),
        pytest.param(
            HUNGRY,
            NODE_ALLOCATABLE,
            a_node(),
            a_node(allocatable={"cpu": 4000, "pods": 111}),
            True,
            id="the node allows more pods",
        ),
        pytest.param(
            GREEDY,
            NODE_ALLOCATABLE,
            a_node(),
            a_node(allocatable={"cpu": 4000, "pods": 110, "example.com/gpu": 1}),
            True,
            id="the node offers the requested device",
        ),
        pytest.param(HUNGRY, NODE_LABEL, HDD, SSD, False, id="the labels of a node change"),
    ],
)
def test_a_pod_without_room_waits_for_a_node_with_more_resources(
    pod: Pod, action: Action, old: Any, new: Any, expected: bool
) -> None:
    assert helps("NodeResourcesFit", pod, Resource.NODE, action, old, new) is expected


def running(cpu: int, name: str = "other", **fields: Any) -> Pod:
    return a_pod(name, containers=asking(cpu=cpu), **{"node_name": "n1", **fields})


@pytest.mark.parametrize(
    ("action", "old", "new", "expected"),
    [
        pytest.param(Action.DELETE, GONE, None, True, id="a bound pod is deleted"),
        pytest.param(
            Action.DELETE, a_pod("gone", nominated_node_name="n1"), None, True, id="a nominated pod is deleted"
        ),
        pytest.param(Action.DELETE, a_pod("gone"), None, False, id="a pending pod is deleted"),
        pytest.param(
            Action.UPDATE_POD_SCALE_DOWN, running(2), running(1), True, id="a bound pod lowers its cpu request"
        ),
        pytest.param(
            Action.UPDATE_POD_SCALE_DOWN, running(2), running(2), False, id="a bound pod keeps its cpu request"
        ),
        pytest.param(
            Action.UPDATE_POD_SCALE_DOWN,
            running(2, node_name=""),
            running(1, node_name=""),
            False,
            id="another pending pod lowers its cpu request",
        ),
        pytest.param(Action.UPDATE_POD_SCALE_DOWN, HUNGRY, HUNGRY, True, id="the waiting pod itself is scaled down"),
        pytest.param(Action.ADD, None, GONE, False, id="a pod is bound"),
    ],
)
def test_a_pod_without_room_waits_until_a_pod_is_removed_or_lowers_its_request(
    action: Action, old: Any, new: Any, expected: bool
) -> None:
    assert helps("NodeResourcesFit", HUNGRY, Resource.ASSIGNED_POD, action, old, new) is expected


def test_a_smaller_request_causes_no_event_in_releases_without_in_place_resize() -> None:
    assert not helps(
        "NodeResourcesFit",
        HUNGRY,
        Resource.ASSIGNED_POD,
        Action.UPDATE_POD_SCALE_DOWN,
        running(2),
        running(1),
        version=KubeVersion.parse("1.32"),
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, DeviceClass(name="c", extended_resource_name="example.com/gpu"), True),
        (None, DeviceClass(name="c", extended_resource_name="example.com/other"), False),
        (DeviceClass(name="c"), DeviceClass(name="c", extended_resource_name="example.com/gpu"), True),
        (
            DeviceClass(name="c", extended_resource_name="example.com/gpu"),
            DeviceClass(name="c", extended_resource_name="example.com/gpu"),
            False,
        ),
    ],
)
def test_a_pod_waits_for_a_device_class_that_offers_its_resource(old: Any, new: Any, expected: bool) -> None:
    assert (
        helps("NodeResourcesFit", GREEDY, Resource.DEVICE_CLASS, Action.ADD if old is None else Action.UPDATE, old, new)
        is expected
    )


def listening(port: int, ip: str = "0.0.0.0", **fields: Any) -> Pod:
    return a_pod(
        fields.pop("name", "waiting"),
        containers=(Container(name="c", host_ports=(HostPort(ip, "TCP", port),)),),
        **fields,
    )


@pytest.mark.parametrize(
    ("gone", "expected"),
    [
        (listening(80, name="gone", node_name="n1"), True),
        (listening(81, name="gone", node_name="n1"), False),
        (listening(80, "10.0.0.1", name="gone", node_name="n1"), True),
        (listening(80, name="gone"), False),
        (GONE, False),
    ],
)
def test_a_pod_waits_for_the_pod_that_uses_its_host_port(gone: Pod, expected: bool) -> None:
    assert helps("NodePorts", listening(80), Resource.ASSIGNED_POD, Action.DELETE, gone, None) is expected


# ---- other pods ----

APP = LabelSelector((Requirement("app", "In", ("x",)),))
TERM = PodAffinityTerm(
    topology_key="zone", selector=APP, namespaces=frozenset({"default"}), namespace_selector=LabelSelector(None)
)
WANTS = a_pod(pod_affinity=PodAffinity(required=(TERM,)))
AVOIDS = a_pod(pod_anti_affinity=PodAffinity(required=(TERM,)))
X, Y = a_pod("x", labels={"app": "x"}, node_name="n1"), a_pod("x", labels={"app": "y"}, node_name="n1")
AVOIDED_BY = a_pod("x", pod_anti_affinity=PodAffinity(required=(TERM,)), node_name="n1")


@pytest.mark.parametrize(
    ("pod", "action", "old", "new", "expected"),
    [
        pytest.param(WANTS, Action.ADD, None, X, True, id="a pod that the affinity selects is added"),
        pytest.param(WANTS, Action.ADD, None, Y, False, id="another pod is added"),
        pytest.param(
            WANTS,
            Action.ADD,
            None,
            replace(X, node_name=""),
            False,
            id="a pod that the affinity selects is added but pending",
        ),
        pytest.param(WANTS, Action.DELETE, X, None, False, id="a pod that the affinity selects is deleted"),
        pytest.param(AVOIDS, Action.DELETE, X, None, True, id="a pod that the anti-affinity selects is deleted"),
        pytest.param(AVOIDS, Action.DELETE, Y, None, False, id="another pod is deleted"),
        pytest.param(
            replace(WAITING, labels={"app": "x"}),
            Action.DELETE,
            AVOIDED_BY,
            None,
            True,
            id="a pod with anti-affinity to the waiting pod is deleted",
        ),
        pytest.param(
            WAITING, Action.DELETE, AVOIDED_BY, None, False, id="a pod with anti-affinity to other pods is deleted"
        ),
        pytest.param(WANTS, Action.UPDATE_POD_LABEL, Y, X, True, id="a pod gets the labels that the affinity selects"),
        pytest.param(
            AVOIDS, Action.UPDATE_POD_LABEL, X, Y, True, id="a pod loses the labels that the anti-affinity selects"
        ),
        pytest.param(
            WANTS, Action.UPDATE_POD_LABEL, X, Y, False, id="a pod loses the labels that the affinity selects"
        ),
        pytest.param(
            WANTS, Action.UPDATE_POD_LABEL, WANTS, WANTS, True, id="the labels of the waiting pod itself change"
        ),
    ],
)
def test_a_pod_with_affinity_waits_for_added_or_deleted_pods(
    pod: Pod, action: Action, old: Any, new: Any, expected: bool
) -> None:
    assert helps("InterPodAffinity", pod, Resource.ASSIGNED_POD, action, old, new) is expected


FAR = PodAffinityTerm(
    topology_key="zone",
    selector=LabelSelector((Requirement("tier", "In", ("far",)),)),
    namespaces=frozenset({"default"}),
    namespace_selector=LabelSelector(None),
)
AVOIDS_BOTH = a_pod(pod_anti_affinity=PodAffinity(required=(TERM, FAR)))
X_AND_FAR = replace(X, labels={"app": "x", "tier": "far"})


@pytest.mark.parametrize(("release", "expected"), [("1.36", False), ("1.37", True)])
def test_a_pod_with_several_anti_affinity_terms_waits_for_pods_of_any_of_them_since_1_37(
    release: str, expected: bool
) -> None:
    version = KubeVersion.parse(release)

    def told(pod: Pod, action: Action, old: Pod, new: Pod | None) -> bool:
        return helps("InterPodAffinity", pod, Resource.ASSIGNED_POD, action, old, new, version=version)

    assert told(AVOIDS_BOTH, Action.DELETE, X, None) is expected
    assert told(AVOIDS_BOTH, Action.DELETE, X_AND_FAR, None) is True
    assert told(AVOIDS_BOTH, Action.DELETE, Y, None) is False
    assert told(AVOIDS_BOTH, Action.UPDATE_POD_LABEL, X, Y) is expected
    assert told(AVOIDS_BOTH, Action.UPDATE_POD_LABEL, X_AND_FAR, X) is not expected
    leaving = replace(AVOIDS_BOTH, name="leaving", node_name="n1")
    assert told(replace(WAITING, labels={"app": "x"}), Action.DELETE, leaving, None) is expected


@pytest.mark.parametrize(("release", "expected"), [("1.35", False), ("1.36", True)])
def test_since_1_36_a_pod_with_affinity_waits_for_nominated_pods_its_own_labels_and_pods_that_avoid_it(
    release: str, expected: bool
) -> None:
    version = KubeVersion.parse(release)

    def told(pod: Pod, action: Action, old: Pod | None, new: Pod | None) -> bool:
        return helps("InterPodAffinity", pod, Resource.UNSCHEDULED_POD, action, old, new, version=version)

    nominated = replace(X, node_name="", nominated_node_name="n1")
    assert told(WANTS, Action.ADD, None, nominated) is expected
    assert told(WANTS, Action.ADD, None, X) is True
    assert told(WANTS, Action.UPDATE_POD_LABEL, WANTS, WANTS) is expected
    assert told(replace(WAITING, labels={"app": "x"}), Action.DELETE, AVOIDED_BY, None) is expected


ZONED, OTHER_ZONE = a_node(labels={"zone": "a"}), a_node(labels={"zone": "b"})


@pytest.mark.parametrize(
    ("release", "pod", "old", "new", "expected"),
    [
        ("1.32", WANTS, ZONED, ZONED, True),
        ("1.32", AVOIDS, ZONED, ZONED, True),
        ("1.32", AVOIDS, ZONED, a_node(), False),
        ("1.32", AVOIDS, None, a_node(), False),
        ("1.33", WANTS, ZONED, ZONED, False),
        ("1.33", AVOIDS, ZONED, ZONED, False),
        ("1.33", AVOIDS, ZONED, a_node(), True),
    ],
)
def test_until_1_32_any_change_of_the_labels_of_a_node_with_the_topology_key_helps(
    release: str, pod: Pod, old: Any, new: Any, expected: bool
) -> None:
    action = NODE_ADD if old is None else NODE_LABEL
    version = KubeVersion.parse(release)
    assert helps("InterPodAffinity", pod, Resource.NODE, action, old, new, version=version) is expected


@pytest.mark.parametrize(("release", "expected"), [("1.32", False), ("1.33", True)])
def test_since_1_33_a_deleted_nominated_pod_leaves_room(release: str, expected: bool) -> None:
    version = KubeVersion.parse(release)
    for plugin, pod, gone in (
        ("NodeResourcesFit", HUNGRY, a_pod("gone", nominated_node_name="n1")),
        ("NodePorts", listening(80), listening(80, name="gone", nominated_node_name="n1")),
        ("NodeVolumeLimits", CLAIMING, replace(CLAIMING, name="gone", nominated_node_name="n1")),
    ):
        told = helps(plugin, pod, Resource.ASSIGNED_POD, Action.DELETE, gone, None, version=version)
        assert told is expected, plugin


@pytest.mark.parametrize(("release", "expected"), [("1.32", False), ("1.33", True)])
def test_since_1_33_limits_and_attachments_are_looked_at(release: str, expected: bool) -> None:
    version = KubeVersion.parse(release)

    def told(resource: Resource, action: Action, old: Any, new: Any) -> bool:
        return helps("NodeVolumeLimits", WAITING, resource, action, old, new, version=version)

    one, two = (CSINode(name="n1", drivers=(CSINodeDriver(name="d", allocatable_count=n),)) for n in (1, 2))
    attachment = VolumeAttachment(name="a", attacher="d", node_name="n1")
    assert told(Resource.CSI_NODE, Action.UPDATE, one, two) is expected
    assert told(Resource.VOLUME_ATTACHMENT, Action.DELETE, attachment, None) is not expected


@pytest.mark.parametrize(
    ("pod", "old", "new", "expected"),
    [
        (WANTS, None, ZONED, True),
        (WANTS, None, a_node(), False),
        (WANTS, a_node(), ZONED, True),
        (WANTS, ZONED, OTHER_ZONE, True),
        (WANTS, ZONED, a_node(), False),
        (AVOIDS, None, a_node(), True),
        (AVOIDS, ZONED, a_node(), True),
        (AVOIDS, ZONED, OTHER_ZONE, True),
        (AVOIDS, ZONED, ZONED, False),
    ],
)
def test_a_pod_with_affinity_waits_for_nodes_in_new_topology_domains(
    pod: Pod, old: Any, new: Any, expected: bool
) -> None:
    assert helps("InterPodAffinity", pod, Resource.NODE, NODE_ADD if old is None else NODE_LABEL, old, new) is expected


def spread(*, honors_taints: bool = False, **fields: Any) -> Pod:
    return a_pod(
        topology_spread=(
            TopologySpreadConstraint(
                max_skew=1, topology_key="zone", selector=APP, honors_taints=honors_taints, **fields
            ),
        )
    )


@pytest.mark.parametrize(("release", "expected"), [("1.35", False), ("1.36", True)])
def test_since_1_36_a_nominated_pod_counts_for_a_spread(release: str, expected: bool) -> None:
    nominated = replace(X, node_name="", nominated_node_name="n1")
    event = (Resource.UNSCHEDULED_POD, Action.DELETE, nominated, None)
    assert helps("PodTopologySpread", spread(), *event, version=KubeVersion.parse(release)) is expected


@pytest.mark.parametrize(
    ("pod", "action", "old", "new", "expected"),
    [
        pytest.param(spread(), Action.ADD, None, X, True, id="a pod that the spread constraint selects is added"),
        pytest.param(spread(), Action.DELETE, X, None, True, id="a pod that the spread constraint selects is deleted"),
        pytest.param(
            spread(), Action.DELETE, Y, None, False, id="a pod that the spread constraint does not select is deleted"
        ),
        pytest.param(
            spread(),
            Action.DELETE,
            replace(X, namespace="other"),
            None,
            False,
            id="a matching pod of another namespace is deleted",
        ),
        pytest.param(
            spread(),
            Action.UPDATE_POD_LABEL,
            X,
            Y,
            True,
            id="a pod loses the labels that the spread constraint selects",
        ),
        pytest.param(
            spread(),
            Action.UPDATE_POD_LABEL,
            X,
            replace(X, labels={"app": "x", "z": "z"}),
            False,
            id="a pod that the spread constraint selects gets an unrelated label",
        ),
        pytest.param(
            spread(when_unsatisfiable="ScheduleAnyway"),
            Action.DELETE,
            X,
            None,
            False,
            id="a selected pod is deleted, but the spread constraint is ScheduleAnyway",
        ),
        pytest.param(
            WAITING,
            Action.DELETE,
            X,
            None,
            True,
            id="the waiting pod has only the default spread constraints, and a pod of the same namespace is deleted",
        ),
    ],
)
def test_a_pod_with_spread_constraints_waits_for_changes_of_the_selected_pods(
    pod: Pod, action: Action, old: Any, new: Any, expected: bool
) -> None:
    assert helps("PodTopologySpread", pod, Resource.ASSIGNED_POD, action, old, new) is expected


def test_a_new_toleration_wakes_a_pod_only_if_its_spread_constraints_honour_taints() -> None:
    for honors in (True, False):
        pod = spread(honors_taints=honors)
        tolerant = replace(
            pod, spec=PodSpec(topology_spread=pod.spec.topology_spread, tolerations=(Toleration(operator="Exists"),))
        )
        assert (
            helps("PodTopologySpread", pod, Resource.UNSCHEDULED_POD, Action.UPDATE_POD_TOLERATION, pod, tolerant)
            is honors
        )


@pytest.mark.parametrize(
    ("action", "old", "new", "expected"),
    [
        (NODE_ADD, None, ZONED, True),
        (NODE_ADD, None, a_node(), False),
        (Action.DELETE, ZONED, None, True),
        (Action.DELETE, a_node(), None, False),
        (NODE_LABEL, ZONED, OTHER_ZONE, True),
        (NODE_LABEL, ZONED, a_node(), True),
        (NODE_LABEL, ZONED, replace(ZONED, labels={"zone": "a", "x": "y"}), False),
        (NODE_TAINT, ZONED, replace(ZONED, taints=TAINTED.taints), True),
        (NODE_TAINT, a_node(), TAINTED, False),
    ],
)
def test_a_pod_with_spread_constraints_waits_for_changes_of_topology_domains(
    action: Action, old: Any, new: Any, expected: bool
) -> None:
    assert helps("PodTopologySpread", spread(), Resource.NODE, action, old, new) is expected


# ---- storage ----

CLAIMING = a_pod(volumes=(PodVolume(name="data", claim_name="data"),))
EPHEMERAL = a_pod(volumes=(PodVolume(name="scratch", ephemeral=True),))
EBS = PodVolume(name="disk", legacy_disk=LegacyDisk(kind="awsElasticBlockStore", identity="vol-1"))
CLAIM = PersistentVolumeClaim(name="data", namespace="default")
PV = PersistentVolume(name="pv", labels={"topology.kubernetes.io/zone": "a"})
CAPACITY = CSIStorageCapacity(name="c", namespace="default", class_name="fast", capacity_nanos=10)


@pytest.mark.parametrize(
    ("plugin", "pod", "resource", "action", "old", "new", "expected"),
    [
        (
            "VolumeRestrictions",
            CLAIMING,
            Resource.ASSIGNED_POD,
            Action.DELETE,
            replace(CLAIMING, name="o", node_name="n"),
            None,
            True,
        ),
        (
            "VolumeRestrictions",
            CLAIMING,
            Resource.ASSIGNED_POD,
            Action.DELETE,
            replace(CLAIMING, name="o", namespace="other", node_name="n"),
            None,
            False,
        ),
        (
            "VolumeRestrictions",
            a_pod(volumes=(EBS,)),
            Resource.ASSIGNED_POD,
            Action.DELETE,
            a_pod("o", volumes=(EBS,), node_name="n"),
            None,
            True,
        ),
        ("VolumeRestrictions", CLAIMING, Resource.ASSIGNED_POD, Action.DELETE, GONE, None, False),
        ("VolumeRestrictions", CLAIMING, Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, None, CLAIM, True),
        (
            "VolumeRestrictions",
            CLAIMING,
            Resource.PERSISTENT_VOLUME_CLAIM,
            Action.ADD,
            None,
            replace(CLAIM, name="other"),
            False,
        ),
        ("VolumeRestrictions", CLAIMING, Resource.NODE, NODE_ADD, None, a_node(), True),
        ("NodeVolumeLimits", CLAIMING, Resource.CSI_NODE, Action.ADD, None, CSINode(name="n1"), True),
        (
            "NodeVolumeLimits",
            CLAIMING,
            Resource.CSI_NODE,
            Action.UPDATE,
            CSINode(name="n1", drivers=(CSINodeDriver(name="d", allocatable_count=1),)),
            CSINode(name="n1", drivers=(CSINodeDriver(name="d", allocatable_count=2),)),
            True,
        ),
        (
            "NodeVolumeLimits",
            CLAIMING,
            Resource.CSI_NODE,
            Action.UPDATE,
            CSINode(name="n1", drivers=(CSINodeDriver(name="d", allocatable_count=2),)),
            CSINode(name="n1", drivers=(CSINodeDriver(name="d", allocatable_count=1),)),
            False,
        ),
        (
            "NodeVolumeLimits",
            CLAIMING,
            Resource.ASSIGNED_POD,
            Action.DELETE,
            replace(CLAIMING, node_name="n"),
            None,
            True,
        ),
        (
            "NodeVolumeLimits",
            CLAIMING,
            Resource.ASSIGNED_POD,
            Action.DELETE,
            a_pod("o", volumes=(EBS,), node_name="n"),
            None,
            True,
        ),
        ("NodeVolumeLimits", CLAIMING, Resource.ASSIGNED_POD, Action.DELETE, GONE, None, False),
        (
            "NodeVolumeLimits",
            EPHEMERAL,
            Resource.PERSISTENT_VOLUME_CLAIM,
            Action.ADD,
            None,
            replace(CLAIM, name="waiting-scratch"),
            True,
        ),
        (
            "NodeVolumeLimits",
            CLAIMING,
            Resource.VOLUME_ATTACHMENT,
            Action.DELETE,
            VolumeAttachment(name="a", attacher="d", node_name="n"),
            None,
            True,
        ),
        (
            "NodeVolumeLimits",
            a_pod(volumes=(EBS,)),
            Resource.VOLUME_ATTACHMENT,
            Action.DELETE,
            VolumeAttachment(name="a", attacher="ebs.csi.aws.com", node_name="n"),
            None,
            True,
        ),
        (
            "NodeVolumeLimits",
            a_pod(volumes=(EBS,)),
            Resource.VOLUME_ATTACHMENT,
            Action.DELETE,
            VolumeAttachment(name="a", attacher="other", node_name="n"),
            None,
            False,
        ),
        ("VolumeBinding", CLAIMING, Resource.STORAGE_CLASS, Action.ADD, None, StorageClass(name="fast"), True),
        (
            "VolumeBinding",
            CLAIMING,
            Resource.STORAGE_CLASS,
            Action.UPDATE,
            StorageClass(name="fast"),
            StorageClass(name="fast", allowed_topologies=((TopologyRequirement("zone", ("a",)),),)),
            True,
        ),
        (
            "VolumeBinding",
            CLAIMING,
            Resource.STORAGE_CLASS,
            Action.UPDATE,
            StorageClass(name="fast"),
            StorageClass(name="fast", provisioner="p"),
            False,
        ),
        (
            "VolumeBinding",
            EPHEMERAL,
            Resource.PERSISTENT_VOLUME_CLAIM,
            Action.UPDATE,
            CLAIM,
            replace(CLAIM, name="waiting-scratch"),
            True,
        ),
        (
            "VolumeBinding",
            CLAIMING,
            Resource.PERSISTENT_VOLUME_CLAIM,
            Action.UPDATE,
            CLAIM,
            replace(CLAIM, namespace="other"),
            False,
        ),
        ("VolumeBinding", CLAIMING, Resource.PERSISTENT_VOLUME, Action.UPDATE, PV, PV, True),
        ("VolumeBinding", CLAIMING, Resource.NODE, NODE_LABEL, a_node(), SSD, True),
        (
            "VolumeBinding",
            CLAIMING,
            Resource.CSI_NODE,
            Action.UPDATE,
            CSINode(name="n"),
            CSINode(name="n", annotations={"storage.alpha.kubernetes.io/migrated-plugins": "x"}),
            True,
        ),
        (
            "VolumeBinding",
            CLAIMING,
            Resource.CSI_NODE,
            Action.UPDATE,
            CSINode(name="n"),
            CSINode(name="n", annotations={"x": "y"}),
            False,
        ),
        (
            "VolumeBinding",
            a_pod(volumes=(PodVolume(name="v", csi_driver="d"),)),
            Resource.CSI_DRIVER,
            Action.UPDATE,
            CSIDriver(name="d", storage_capacity=True),
            CSIDriver(name="d"),
            True,
        ),
        (
            "VolumeBinding",
            a_pod(volumes=(PodVolume(name="v", csi_driver="d"),)),
            Resource.CSI_DRIVER,
            Action.UPDATE,
            CSIDriver(name="d"),
            CSIDriver(name="d", storage_capacity=True),
            False,
        ),
        (
            "VolumeBinding",
            CLAIMING,
            Resource.CSI_DRIVER,
            Action.UPDATE,
            CSIDriver(name="d", storage_capacity=True),
            CSIDriver(name="d"),
            False,
        ),
        ("VolumeBinding", CLAIMING, Resource.CSI_STORAGE_CAPACITY, Action.ADD, None, CAPACITY, True),
        (
            "VolumeBinding",
            CLAIMING,
            Resource.CSI_STORAGE_CAPACITY,
            Action.UPDATE,
            CAPACITY,
            replace(CAPACITY, capacity_nanos=11),
            True,
        ),
        (
            "VolumeBinding",
            CLAIMING,
            Resource.CSI_STORAGE_CAPACITY,
            Action.UPDATE,
            CAPACITY,
            replace(CAPACITY, maximum_volume_size_nanos=5),
            False,
        ),
        (
            "VolumeZone",
            CLAIMING,
            Resource.STORAGE_CLASS,
            Action.ADD,
            None,
            StorageClass(name="s", binding_mode="WaitForFirstConsumer"),
            True,
        ),
        (
            "VolumeZone",
            CLAIMING,
            Resource.STORAGE_CLASS,
            Action.ADD,
            None,
            StorageClass(name="s", binding_mode="Immediate"),
            False,
        ),
        ("VolumeZone", CLAIMING, Resource.PERSISTENT_VOLUME_CLAIM, Action.UPDATE, CLAIM, CLAIM, True),
        (
            "VolumeZone",
            EPHEMERAL,
            Resource.PERSISTENT_VOLUME_CLAIM,
            Action.UPDATE,
            CLAIM,
            replace(CLAIM, name="waiting-scratch"),
            False,
        ),
        ("VolumeZone", CLAIMING, Resource.PERSISTENT_VOLUME, Action.ADD, None, PV, True),
        (
            "VolumeZone",
            CLAIMING,
            Resource.PERSISTENT_VOLUME,
            Action.UPDATE,
            PV,
            replace(PV, labels={"topology.kubernetes.io/zone": "b"}),
            True,
        ),
        ("VolumeZone", CLAIMING, Resource.PERSISTENT_VOLUME, Action.UPDATE, PV, replace(PV, phase="Bound"), False),
    ],
)
def test_storage_plugins_wait_for_changes_of_the_pods_volumes(
    plugin: str, pod: Pod, resource: Resource, action: Action, old: Any, new: Any, expected: bool
) -> None:
    assert helps(plugin, pod, resource, action, old, new) is expected


# ---- the pod itself ----

NAMED = a_pod(resource_claims=(PodResourceClaim(name="gpu", claim_name="gpu-1"),))
TEMPLATED = a_pod(resource_claims=(PodResourceClaim(name="gpu", template_name="t"),))
GPU = ResourceClaim(name="gpu-1", namespace="default")


@pytest.mark.parametrize(
    ("pod", "old", "new", "expected"),
    [
        (NAMED, None, GPU, True),
        (NAMED, None, replace(GPU, name="other"), False),
        (NAMED, GPU, replace(GPU, allocated=True), True),
        (NAMED, GPU, GPU, False),
        (NAMED, replace(GPU, name="other", allocated=True), replace(GPU, name="other"), True),
    ],
)
def test_dynamic_resources_wait_for_the_pods_claims_and_for_freed_devices(
    pod: Pod, old: Any, new: Any, expected: bool
) -> None:
    assert (
        helps("DynamicResources", pod, Resource.RESOURCE_CLAIM, Action.ADD if old is None else Action.UPDATE, old, new)
        is expected
    )


@pytest.mark.parametrize(
    ("version", "allocated", "expected"), [("1.36", True, False), ("1.37", True, True), ("1.37", False, False)]
)
def test_since_1_37_a_deleted_claim_frees_its_devices(version: str, allocated: bool, expected: bool) -> None:
    gone = replace(GPU, name="other", allocated=allocated)
    release = KubeVersion.parse(version)
    asked = (NAMED, Resource.RESOURCE_CLAIM, Action.DELETE, gone, None)
    assert helps("DynamicResources", *asked, version=release) is expected


def test_a_pod_with_claim_templates_is_woken_once_all_claims_exist() -> None:
    for generated, expected in (((), False), ((("gpu", "gpu-x"),), True)):
        changed = replace(TEMPLATED, generated_claims=generated)
        assert (
            helps(
                "DynamicResources",
                TEMPLATED,
                Resource.UNSCHEDULED_POD,
                Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM,
                TEMPLATED,
                changed,
            )
            is expected
        )


def test_only_an_update_of_the_pod_itself_removes_its_gates() -> None:
    gated = a_pod(scheduling_gates=("g",))
    assert helps(
        "SchedulingGates",
        gated,
        Resource.UNSCHEDULED_POD,
        Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
        gated,
        WAITING,
    )
    assert not helps(
        "SchedulingGates",
        gated,
        Resource.UNSCHEDULED_POD,
        Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
        gated,
        a_pod("other"),
    )


def test_preemption_registers_for_pod_deletions_but_no_deletion_wakes_a_pod() -> None:
    assert [hint.event for hint in hints()["DefaultPreemption"]] == [ClusterEvent(Resource.POD, Action.DELETE)]
    assert not helps("DefaultPreemption", WAITING, Resource.ASSIGNED_POD, Action.DELETE, GONE, None)
    assert hints(version=KubeVersion.parse("1.32"))["DefaultPreemption"] == ()


# ---- the table ----


def test_every_in_tree_plugin_that_can_refuse_a_pod_has_hints() -> None:
    only_orders_scores_or_binds = {"PrioritySort", "NodeResourcesBalancedAllocation", "ImageLocality", "DefaultBinder"}
    assert set(hints()) == set(IN_TREE) - only_orders_scores_or_binds


class Refuser:
    name = "Refuser"

    def filter(self) -> None: ...


class Scorer:
    name = "Scorer"

    def score(self) -> None: ...


class Selective(Refuser):
    name = "Selective"

    def events(self) -> tuple[EventHint, ...]:
        return (EventHint(ClusterEvent(Resource.NODE, Action.ADD)),)


def test_a_plugin_without_registered_events_gets_all_events() -> None:
    profile = Configuration().profiles[0]
    found = registered_hints(
        [Refuser(), Scorer(), Selective()], profile, NOW, RequestRules(), has_extenders=True
    ).by_plugin
    assert found == {
        "Extender": EVERY_EVENT,
        "Refuser": EVERY_EVENT,
        "Selective": (
            EventHint(ClusterEvent(Resource.NODE, Action.ADD)),
            EventHint(ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT)),
        ),
    }


def test_the_default_plugins_that_hear_of_new_nodes_also_hear_of_taints() -> None:
    used = Scheduler().runners["default-scheduler"].plugins.plugins.values()
    registered = registered_hints(used, Configuration().profiles[0], NOW, RequestRules())
    taints = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT)
    assert set(registered.asked_about(taints)) == set(registered.asked_about(ClusterEvent(Resource.NODE, Action.ADD)))
    assert registered.asked_about(taints)["NodeName"] == (always,)
