"""The API's JSON, reduced to what scheduling reads. Decoding skips the rest, which is most of a pod.

from_manifest.py converts these structures to the model; storage and devices are in wire_storage.py. Attributes have the
API's field names, in snake_case. All structures are tuples or frozen structs: equal parts of different pods have the
same hash, and are converted once.
"""

from __future__ import annotations

from typing import Any

import msgspec

from scheduler_core.model.manifests.error import object_key

Pairs = dict[str, str]
Quantities = dict[str, str | int | float]


class Wire(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Names in the JSON are camelCase. Unknown fields are skipped. For fields that allow None, null means absent."""


class WireOwner(Wire, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class WireIdentity(Wire, frozen=True):
    """The metadata that differs between pods of one template."""

    name: str = ""
    namespace: str | None = None
    uid: str = ""
    annotations: Pairs | None = None
    deletion_timestamp: str | None = None

    @property
    def key(self) -> str:
        return object_key(self.namespace, self.name)


class WireMeta(WireIdentity, frozen=True):
    labels: Pairs | None = None
    owner_references: tuple[WireOwner, ...] | None = None


class WireNodeMeta(WireMeta, frozen=True):
    creation_timestamp: str | None = None


class WireExpression(Wire, frozen=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class WireSelector(Wire, frozen=True):
    match_labels: Pairs | None = None
    match_expressions: tuple[WireExpression, ...] | None = None


class WireNodeTerm(Wire, frozen=True):
    match_expressions: tuple[WireExpression, ...] | None = None
    match_fields: tuple[WireExpression, ...] | None = None


class WireNodeSelector(Wire, frozen=True):
    node_selector_terms: tuple[WireNodeTerm, ...] | None = None


class WirePreferredNodeTerm(Wire, frozen=True):
    weight: int = 0
    preference: WireNodeTerm = WireNodeTerm()


class WireNodeAffinity(Wire, frozen=True):
    required: WireNodeSelector | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[WirePreferredNodeTerm, ...] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class WirePodTerm(Wire, frozen=True):
    label_selector: WireSelector | None = None
    namespaces: tuple[str, ...] | None = None
    topology_key: str = ""
    namespace_selector: WireSelector | None = None


class WireWeightedPodTerm(Wire, frozen=True):
    weight: int = 0
    pod_affinity_term: WirePodTerm = WirePodTerm()


class WirePodAffinity(Wire, frozen=True):
    required: tuple[WirePodTerm, ...] | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[WireWeightedPodTerm, ...] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class WireAffinity(Wire, frozen=True):
    node_affinity: WireNodeAffinity | None = None
    pod_affinity: WirePodAffinity | None = None
    pod_anti_affinity: WirePodAffinity | None = None


class WireSpread(Wire, frozen=True):
    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: WireSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] | None = None


class WireToleration(Wire, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class WireResources(Wire, frozen=True):
    requests: Quantities | None = None
    limits: Quantities | None = None


class WirePort(Wire, frozen=True):
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = ""


class WireRestartRule(Wire, frozen=True):
    action: str = ""


class WireContainer(Wire, frozen=True):
    name: str = ""
    image: str = ""
    resources: WireResources | None = None
    ports: tuple[WirePort, ...] | None = None
    restart_policy: str | None = None
    restart_policy_rules: tuple[WireRestartRule, ...] | None = None


class WireClaimSource(Wire, frozen=True):
    claim_name: str = ""
    read_only: bool = False


class WireDisk(Wire, frozen=True):
    """The fields of all kinds of in-tree disks; each kind uses a few of them."""

    pd_name: str = ""
    volume_id: str = msgspec.field(default="", name="volumeID")
    iqn: str = ""
    disk_name: str = ""
    disk_uri: str = msgspec.field(default="", name="diskURI")
    volume_path: str = ""
    share_name: str = ""
    read_only: bool | None = None
    monitors: tuple[str, ...] | None = None
    pool: str = ""
    image: str = ""
    lun: int = 0
    partition: int = 0


class WireCsiSource(Wire, frozen=True):
    driver: str = ""


class WireImageSource(Wire, frozen=True):
    reference: str = ""


class WireNamedSource(Wire, frozen=True):
    """Only its presence is read."""


class WireVolume(Wire, frozen=True):
    name: str = ""
    persistent_volume_claim: WireClaimSource | None = None
    ephemeral: WireNamedSource | None = None
    csi: WireCsiSource | None = None
    image: WireImageSource | None = None
    empty_dir: WireNamedSource | None = None
    gce_persistent_disk: WireDisk | None = msgspec.field(default=None, name="gcePersistentDisk")
    aws_elastic_block_store: WireDisk | None = msgspec.field(default=None, name="awsElasticBlockStore")
    iscsi: WireDisk | None = None
    rbd: WireDisk | None = None
    azure_disk: WireDisk | None = None
    azure_file: WireDisk | None = None
    cinder: WireDisk | None = None
    vsphere_volume: WireDisk | None = None
    portworx_volume: WireDisk | None = None


class WireGate(Wire, frozen=True):
    name: str = ""


class WirePodClaim(Wire, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class WirePodSpec(Wire, frozen=True):
    node_name: str = ""
    containers: tuple[WireContainer, ...] | None = None
    init_containers: tuple[WireContainer, ...] | None = None
    overhead: Quantities | None = None
    resources: WireResources | None = None
    scheduler_name: str = "default-scheduler"
    priority: int | None = None
    preemption_policy: str | None = None
    node_selector: Pairs | None = None
    affinity: WireAffinity | None = None
    tolerations: tuple[WireToleration, ...] | None = None
    topology_spread_constraints: tuple[WireSpread, ...] | None = None
    volumes: tuple[WireVolume, ...] | None = None
    scheduling_gates: tuple[WireGate, ...] | None = None
    resource_claims: tuple[WirePodClaim, ...] | None = None
    host_network: bool | None = None
    host_users: bool | None = None
    scheduling_group: Any = None
    workload_ref: Any = None


class WireCondition(Wire, frozen=True):
    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None


class WireContainerStatus(Wire, frozen=True):
    name: str = ""
    resources: WireResources | None = None
    allocated_resources: Quantities | None = None


class WireClaimStatus(Wire, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None


class WirePodStatus(Wire, frozen=True):
    phase: str = ""
    nominated_node_name: str | None = None
    start_time: str | None = None
    conditions: tuple[WireCondition, ...] | None = None
    container_statuses: tuple[WireContainerStatus, ...] | None = None
    init_container_statuses: tuple[WireContainerStatus, ...] | None = None
    resources: WireResources | None = None
    allocated_resources: Quantities | None = None
    resource_claim_statuses: tuple[WireClaimStatus, ...] | None = None


class WirePod(Wire, frozen=True):
    metadata: WireMeta = WireMeta()
    spec: WirePodSpec = WirePodSpec()
    status: WirePodStatus | None = None


class WireTaint(Wire, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class WireImage(Wire, frozen=True):
    names: tuple[str, ...] | None = None
    size_bytes: int = 0


class WireNodeSpec(Wire, frozen=True):
    unschedulable: bool | None = None
    taints: tuple[WireTaint, ...] | None = None


class WireNodeStatus(Wire, frozen=True):
    allocatable: Quantities | None = None
    images: tuple[WireImage, ...] | None = None
    declared_features: tuple[str, ...] | None = None


class WireNode(Wire, frozen=True):
    metadata: WireNodeMeta = WireNodeMeta()
    spec: WireNodeSpec | None = None
    status: WireNodeStatus | None = None


class WireTemplateSpec(Wire, frozen=True):
    node_name: str = ""


class WireTemplateMeta(Wire, frozen=True):
    labels: Pairs | None = None


class WireTemplate(Wire, frozen=True):
    metadata: WireTemplateMeta | None = None
    spec: WireTemplateSpec | None = None


class WireSelectorSpec(Wire, frozen=True):
    """The spec of a ReplicaSet or StatefulSet."""

    selector: WireSelector | None = None
    replicas: int | None = None
    template: WireTemplate | None = None


class WireSelectingController(Wire, frozen=True):
    metadata: WireMeta = WireMeta()
    spec: WireSelectorSpec | None = None


class WireLabelledSpec(Wire, frozen=True):
    """The spec of a Service or ReplicationController."""

    selector: Pairs | None = None
    replicas: int | None = None
    template: WireTemplate | None = None


class WireLabelSelecting(Wire, frozen=True):
    metadata: WireMeta = WireMeta()
    spec: WireLabelledSpec | None = None


class WireExitCodes(Wire, frozen=True):
    operator: str = ""
    values: tuple[int, ...] | None = None


class WirePodConditionPattern(Wire, frozen=True):
    type: str = ""
    status: str = ""


class WireFailureRule(Wire, frozen=True):
    action: str = ""
    on_exit_codes: WireExitCodes | None = None
    on_pod_conditions: tuple[WirePodConditionPattern, ...] | None = None


class WireFailurePolicy(Wire, frozen=True):
    rules: tuple[WireFailureRule, ...] | None = None


class WireJobSpec(Wire, frozen=True):
    parallelism: int | None = None
    completions: int | None = None
    backoff_limit: int | None = None
    backoff_limit_per_index: int | None = None
    max_failed_indexes: int | None = None
    pod_failure_policy: WireFailurePolicy | None = None
    suspend: bool | None = None
    managed_by: str | None = None
    template: WireTemplate | None = None


class WireJobStatus(Wire, frozen=True):
    failed: int | None = None
    failed_indexes: str | None = None
    succeeded: int | None = None
    conditions: tuple[WireCondition, ...] | None = None


class WireJob(Wire, frozen=True):
    metadata: WireMeta = WireMeta()
    spec: WireJobSpec | None = None
    status: WireJobStatus | None = None


class WireBudgetSpec(Wire, frozen=True):
    selector: WireSelector | None = None
    max_unavailable: int | str | None = None
    min_available: int | str | None = None
    unhealthy_pod_eviction_policy: str | None = None


class WireBudgetStatus(Wire, frozen=True):
    disruptions_allowed: int = 0
    disrupted_pods: dict[str, Any] | None = None
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0


class WireBudgetMeta(WireMeta, frozen=True):
    generation: int = 0


class WireBudget(Wire, frozen=True):
    metadata: WireBudgetMeta = WireBudgetMeta()
    spec: WireBudgetSpec | None = None
    status: WireBudgetStatus | None = None


class WireNamespace(Wire, frozen=True):
    metadata: WireMeta = WireMeta()
