"""The API's field names of every kind that scheduling reads, to find misspelt ones.

From the models of the kubernetes client for 1.32 to 1.37, the union of all; test_known_fields.py writes the table anew
from the installed client and compares. Only a strict reader parses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from scheduler_core.model.manifests.strict.known_values import wrong_value


class UnknownField(NamedTuple):
    """`path`: as in spec.containers[0].imagee. `known`: the fields that exist at that place."""

    path: str
    known: tuple[str, ...]


class WrongValue(NamedTuple):
    """`problem`: what is wrong with the value of `path`."""

    path: str
    problem: str


def first_mistake(kind: str, manifest: Mapping[str, Any], *, values: bool = True) -> UnknownField | WrongValue | None:
    """The first field that no supported release has, or, with `values`, whose value no API server accepts. Fields with
    null count as well; the content of maps, such as labels and requests, does not."""
    return _search(manifest, kind, "", values)


def _search(value: Any, type_name: str, path: str, values: bool) -> UnknownField | WrongValue | None:
    fields = _types()[type_name]
    for name, inner in value.items():
        inner_type = fields.get(name)
        if inner_type is None:
            return UnknownField(f"{path}{name}", tuple(fields))
        if not inner_type or inner is None:
            continue
        if isinstance(inner, Mapping):
            found = _search(inner, inner_type, f"{path}{name}.", values)
            if found is not None:
                return found
        elif isinstance(inner, list | tuple):
            for index, item in enumerate(inner):
                if isinstance(item, Mapping):
                    found = _search(item, inner_type, f"{path}{name}[{index}].", values)
                    if found is not None:
                        return found
    wrong = wrong_value(type_name, value) if values else None
    return None if wrong is None else WrongValue(f"{path}{wrong[0]}", wrong[1])


@cache
def _types() -> Mapping[str, Mapping[str, str]]:
    lines = TABLE.replace("\n  ", " ").strip().splitlines()
    split = (line.partition(": ") for line in lines)
    return {name: dict(_field(each) for each in fields.split()) for name, _, fields in split}


def _field(written: str) -> tuple[str, str]:
    name, _, inner = written.partition(":")
    return name, inner


# Type, a colon, its fields; after a field and a colon the type of its value or of its items.
TABLE: Final = """
AWSElasticBlockStoreVolumeSource: fsType partition readOnly volumeID
Affinity: nodeAffinity:NodeAffinity podAffinity:PodAffinity podAntiAffinity:PodAntiAffinity
AllocatedDeviceStatus: conditions:Condition data device driver networkData:NetworkDeviceData pool shareID
AllocationResult: allocationTimestamp devices:DeviceAllocationResult nodeSelector:NodeSelector
AppArmorProfile: localhostProfile type
AttachedVolume: devicePath name
AzureDiskVolumeSource: cachingMode diskName diskURI fsType kind readOnly
AzureFilePersistentVolumeSource: readOnly secretName secretNamespace shareName
AzureFileVolumeSource: readOnly secretName shareName
CELDeviceSelector: expression
CSIDriver: apiVersion kind metadata:ObjectMeta spec:CSIDriverSpec
CSIDriverSpec: attachRequired fsGroupPolicy nodeAllocatableUpdatePeriodSeconds podInfoOnMount
  preventPodSchedulingIfMissing requiresRepublish seLinuxMount serviceAccountTokenInSecrets storageCapacity
  tokenRequests:TokenRequest volumeLifecycleModes
CSINode: apiVersion kind metadata:ObjectMeta spec:CSINodeSpec status:CSINodeStatus
CSINodeDriver: allocatable:VolumeNodeResources name nodeID topologyKeys
CSINodeSpec: drivers:CSINodeDriver
CSINodeStatus: storageHealth:StorageHealth
CSIPersistentVolumeSource: controllerExpandSecretRef:SecretReference controllerPublishSecretRef:SecretReference driver
  fsType nodeExpandSecretRef:SecretReference nodePublishSecretRef:SecretReference nodeStageSecretRef:SecretReference
  readOnly volumeAttributes volumeHandle
CSIStorageCapacity: apiVersion capacity kind maximumVolumeSize metadata:ObjectMeta nodeTopology:LabelSelector
  storageClassName
CSIVolumeSource: driver fsType nodePublishSecretRef:LocalObjectReference readOnly volumeAttributes
Capabilities: add drop
CapacityRequirements: requests
CephFSPersistentVolumeSource: monitors path readOnly secretFile secretRef:SecretReference user
CephFSVolumeSource: monitors path readOnly secretFile secretRef:LocalObjectReference user
CinderPersistentVolumeSource: fsType readOnly secretRef:SecretReference volumeID
CinderVolumeSource: fsType readOnly secretRef:LocalObjectReference volumeID
ClientIPConfig: timeoutSeconds
ClusterTrustBundleProjection: labelSelector:LabelSelector name optional path signerName user
Condition: lastTransitionTime message observedGeneration reason status type
ConfigMapEnvSource: name optional
ConfigMapKeySelector: key name optional
ConfigMapNodeConfigSource: kubeletConfigKey name namespace resourceVersion uid
ConfigMapProjection: items:KeyToPath name optional
ConfigMapVolumeSource: defaultMode defaultUser items:KeyToPath name optional
Container: args command env:EnvVar envFrom:EnvFromSource image imagePullPolicy lifecycle:Lifecycle livenessProbe:Probe
  name ports:ContainerPort readinessProbe:Probe resizePolicy:ContainerResizePolicy resources:ResourceRequirements
  restartPolicy restartPolicyRules:ContainerRestartRule securityContext:SecurityContext startupProbe:Probe stdin
  stdinOnce terminationMessagePath terminationMessagePolicy tty volumeDevices:VolumeDevice volumeMounts:VolumeMount
  workingDir
ContainerExtendedResourceRequest: containerName requestName resourceName
ContainerImage: names sizeBytes
ContainerPort: containerPort hostIP hostPort name protocol
ContainerResizePolicy: resourceName restartPolicy
ContainerResourceClaim: name request
ContainerRestartRule: action exitCodes:ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes: operator values
ContainerState: running:ContainerStateRunning terminated:ContainerStateTerminated waiting:ContainerStateWaiting
ContainerStateRunning: startedAt
ContainerStateTerminated: containerID exitCode finishedAt message reason signal startedAt
ContainerStateWaiting: message reason
ContainerStatus: allocatedResources allocatedResourcesStatus:ResourceStatus containerID image imageID
  lastState:ContainerState name ready resources:ResourceRequirements restartCount started state:ContainerState
  stopSignal user:ContainerUser volumeMounts:VolumeMountStatus
ContainerUser: linux:LinuxContainerUser
CronJob: apiVersion kind metadata:ObjectMeta spec:CronJobSpec status:CronJobStatus
CronJobSpec: concurrencyPolicy failedJobsHistoryLimit jobTemplate:JobTemplateSpec schedule startingDeadlineSeconds
  successfulJobsHistoryLimit suspend timeZone
CronJobStatus: active:ObjectReference lastScheduleTime lastSuccessfulTime
DaemonEndpoint: Port
DaemonSet: apiVersion kind metadata:ObjectMeta spec:DaemonSetSpec status:DaemonSetStatus
DaemonSetCondition: lastTransitionTime message reason status type
DaemonSetSpec: minReadySeconds revisionHistoryLimit selector:LabelSelector template:PodTemplateSpec
  updateStrategy:DaemonSetUpdateStrategy
DaemonSetStatus: collisionCount conditions:DaemonSetCondition currentNumberScheduled desiredNumberScheduled
  numberAvailable numberMisscheduled numberReady numberUnavailable observedGeneration updatedNumberScheduled
DaemonSetUpdateStrategy: rollingUpdate:RollingUpdateDaemonSet type
Deployment: apiVersion kind metadata:ObjectMeta spec:DeploymentSpec status:DeploymentStatus
DeploymentCondition: lastTransitionTime lastUpdateTime message reason status type
DeploymentSpec: minReadySeconds paused progressDeadlineSeconds replicas revisionHistoryLimit selector:LabelSelector
  strategy:DeploymentStrategy template:PodTemplateSpec
DeploymentStatus: availableReplicas collisionCount conditions:DeploymentCondition observedGeneration readyReplicas
  replicas terminatingReplicas unavailableReplicas updatedReplicas
DeploymentStrategy: rollingUpdate:RollingUpdateDeployment type
DeviceAllocationConfiguration: opaque:OpaqueDeviceConfiguration requests source
DeviceAllocationResult: config:DeviceAllocationConfiguration results:DeviceRequestAllocationResult
DeviceClaim: config:DeviceClaimConfiguration constraints:DeviceConstraint requests:DeviceRequest
DeviceClaimConfiguration: opaque:OpaqueDeviceConfiguration requests
DeviceClass: apiVersion kind metadata:ObjectMeta spec:DeviceClassSpec
DeviceClassConfiguration: opaque:OpaqueDeviceConfiguration
DeviceClassSpec: config:DeviceClassConfiguration extendedResourceName selectors:DeviceSelector
DeviceConstraint: distinctAttribute matchAttribute requests
DeviceDerivedAttribute: expression name
DeviceRequest: adminAccess allocationMode capacity:CapacityRequirements count derivedAttributes:DeviceDerivedAttribute
  deviceClassName exactly:ExactDeviceRequest firstAvailable:DeviceSubRequest name selectors:DeviceSelector
  tolerations:DeviceToleration
DeviceRequestAllocationResult: adminAccess bindingConditions bindingFailureConditions consumedCapacity device driver
  pool request shareID skipNodeOperations tolerations:DeviceToleration
DeviceSelector: cel:CELDeviceSelector
DeviceSubRequest: allocationMode capacity:CapacityRequirements count derivedAttributes:DeviceDerivedAttribute
  deviceClassName name selectors:DeviceSelector tolerations:DeviceToleration
DeviceToleration: effect key operator tolerationSeconds value
DownwardAPIProjection: items:DownwardAPIVolumeFile
DownwardAPIVolumeFile: fieldRef:ObjectFieldSelector mode path resourceFieldRef:ResourceFieldSelector user
DownwardAPIVolumeSource: defaultMode defaultUser items:DownwardAPIVolumeFile
EmptyDirVolumeSource: medium mode sizeLimit
EnvFromSource: configMapRef:ConfigMapEnvSource prefix secretRef:SecretEnvSource
EnvVar: name value valueFrom:EnvVarSource
EnvVarSource: configMapKeyRef:ConfigMapKeySelector fieldRef:ObjectFieldSelector fileKeyRef:FileKeySelector
  resourceFieldRef:ResourceFieldSelector secretKeyRef:SecretKeySelector
EphemeralContainer: args command env:EnvVar envFrom:EnvFromSource image imagePullPolicy lifecycle:Lifecycle
  livenessProbe:Probe name ports:ContainerPort readinessProbe:Probe resizePolicy:ContainerResizePolicy
  resources:ResourceRequirements restartPolicy restartPolicyRules:ContainerRestartRule securityContext:SecurityContext
  startupProbe:Probe stdin stdinOnce targetContainerName terminationMessagePath terminationMessagePolicy tty
  volumeDevices:VolumeDevice volumeMounts:VolumeMount workingDir
EphemeralVolumeSource: volumeClaimTemplate:PersistentVolumeClaimTemplate
EvictionResponder: name priority
ExactDeviceRequest: adminAccess allocationMode capacity:CapacityRequirements count
  derivedAttributes:DeviceDerivedAttribute deviceClassName selectors:DeviceSelector tolerations:DeviceToleration
ExecAction: command
FCVolumeSource: fsType lun readOnly targetWWNs wwids
FileKeySelector: key optional path volumeName
FlexPersistentVolumeSource: driver fsType options readOnly secretRef:SecretReference
FlexVolumeSource: driver fsType options readOnly secretRef:LocalObjectReference
FlockerVolumeSource: datasetName datasetUUID
GCEPersistentDiskVolumeSource: fsType partition pdName readOnly
GRPCAction: mode port service
GitRepoVolumeSource: directory repository revision
GlusterfsPersistentVolumeSource: endpoints endpointsNamespace path readOnly
GlusterfsVolumeSource: endpoints path readOnly
HTTPGetAction: host httpHeaders:HTTPHeader path port protocol scheme
HTTPHeader: name value
HostAlias: hostnames ip
HostIP: ip
HostPathVolumeSource: path type
ISCSIPersistentVolumeSource: chapAuthDiscovery chapAuthSession fsType initiatorName iqn iscsiInterface lun portals
  readOnly secretRef:SecretReference targetPortal
ISCSIVolumeSource: chapAuthDiscovery chapAuthSession fsType initiatorName iqn iscsiInterface lun portals readOnly
  secretRef:LocalObjectReference targetPortal
ImageVolumeSource: pullPolicy reference
ImageVolumeStatus: imageRef
Job: apiVersion kind metadata:ObjectMeta spec:JobSpec status:JobStatus
JobCondition: lastProbeTime lastTransitionTime message reason status type
JobSchedulingConfiguration: disruptionMode:WorkloadPodGroupDisruptionMode resourceClaims:WorkloadPodGroupResourceClaim
  schedulingConstraints:WorkloadPodGroupSchedulingConstraints schedulingPolicy:WorkloadPodGroupSchedulingPolicy
JobSpec: activeDeadlineSeconds backoffLimit backoffLimitPerIndex completionMode completions managedBy manualSelector
  maxFailedIndexes parallelism podFailurePolicy:PodFailurePolicy podReplacementPolicy
  scheduling:JobSchedulingConfiguration selector:LabelSelector successPolicy:SuccessPolicy suspend
  template:PodTemplateSpec ttlSecondsAfterFinished
JobStatus: active completedIndexes completionTime conditions:JobCondition failed failedIndexes ready startTime succeeded
  terminating uncountedTerminatedPods:UncountedTerminatedPods
JobTemplateSpec: metadata:ObjectMeta spec:JobSpec
KeyToPath: key mode path user
LabelSelector: matchExpressions:LabelSelectorRequirement matchLabels
LabelSelectorRequirement: key operator values
Lifecycle: postStart:LifecycleHandler preStop:LifecycleHandler stopSignal
LifecycleHandler: exec:ExecAction httpGet:HTTPGetAction sleep:SleepAction tcpSocket:TCPSocketAction
LinuxContainerUser: gid supplementalGroups uid
LoadBalancerIngress: hostname ip ipMode ports:PortStatus
LoadBalancerStatus: ingress:LoadBalancerIngress
LocalObjectReference: name
LocalVolumeSource: fsType path
ManagedFieldsEntry: apiVersion fieldsType fieldsV1 manager operation subresource time
ModifyVolumeStatus: status targetVolumeAttributesClassName
NFSVolumeSource: path readOnly server
Namespace: apiVersion kind metadata:ObjectMeta spec:NamespaceSpec status:NamespaceStatus
NamespaceCondition: lastTransitionTime message reason status type
NamespaceSpec: finalizers
NamespaceStatus: conditions:NamespaceCondition phase
NetworkDeviceData: hardwareAddress interfaceName ips
Node: apiVersion kind metadata:ObjectMeta spec:NodeSpec status:NodeStatus
NodeAddress: address type
NodeAffinity: preferredDuringSchedulingIgnoredDuringExecution:PreferredSchedulingTerm
  requiredDuringSchedulingIgnoredDuringExecution:NodeSelector
NodeAllocatableMappedResources: name quantity
NodeAllocatableOverheadResources: name perContainer perPod
NodeAllocatableResourceClaimStatus: containers mapping:NodeAllocatableMappedResources
  overhead:NodeAllocatableOverheadResources resourceClaimName resources
NodeCondition: lastHeartbeatTime lastTransitionTime message reason status type
NodeConfigSource: configMap:ConfigMapNodeConfigSource
NodeConfigStatus: active:NodeConfigSource assigned:NodeConfigSource error lastKnownGood:NodeConfigSource
NodeDaemonEndpoints: kubeletEndpoint:DaemonEndpoint
NodeFeatures: supplementalGroupsPolicy
NodePodPreemptionPolicy: disableResizePreemption
NodeRuntimeHandler: features:NodeRuntimeHandlerFeatures name
NodeRuntimeHandlerFeatures: recursiveReadOnlyMounts userNamespaces
NodeSelector: nodeSelectorTerms:NodeSelectorTerm
NodeSelectorRequirement: key operator values
NodeSelectorTerm: matchExpressions:NodeSelectorRequirement matchFields:NodeSelectorRequirement
NodeSpec: configSource:NodeConfigSource externalID podCIDR podCIDRs podPreemptionPolicy:NodePodPreemptionPolicy
  providerID taints:Taint unschedulable
NodeStatus: addresses:NodeAddress allocatable capacity conditions:NodeCondition config:NodeConfigStatus
  daemonEndpoints:NodeDaemonEndpoints declaredFeatures features:NodeFeatures images:ContainerImage
  nodeInfo:NodeSystemInfo phase runtimeHandlers:NodeRuntimeHandler volumesAttached:AttachedVolume volumesInUse
NodeSwapStatus: capacity
NodeSystemInfo: architecture bootID containerRuntimeVersion kernelVersion kubeProxyVersion kubeletVersion machineID
  operatingSystem osImage runningInUserNamespace swap:NodeSwapStatus systemUUID
ObjectFieldSelector: apiVersion fieldPath
ObjectMeta: annotations creationTimestamp deletionGracePeriodSeconds deletionTimestamp finalizers generateName
  generation labels managedFields:ManagedFieldsEntry name namespace ownerReferences:OwnerReference resourceVersion
  selfLink uid
ObjectReference: apiVersion fieldPath kind name namespace resourceVersion uid
OpaqueDeviceConfiguration: driver parameters
OwnerReference: apiVersion blockOwnerDeletion controller kind name uid
PersistentVolume: apiVersion kind metadata:ObjectMeta spec:PersistentVolumeSpec status:PersistentVolumeStatus
PersistentVolumeClaim: apiVersion kind metadata:ObjectMeta spec:PersistentVolumeClaimSpec
  status:PersistentVolumeClaimStatus
PersistentVolumeClaimCondition: lastProbeTime lastTransitionTime message reason status type
PersistentVolumeClaimSpec: accessModes dataSource:TypedLocalObjectReference dataSourceRef:TypedObjectReference
  resources:VolumeResourceRequirements selector:LabelSelector storageClassName volumeAttributesClassName volumeMode
  volumeName
PersistentVolumeClaimStatus: accessModes allocatedResourceStatuses allocatedResources capacity
  conditions:PersistentVolumeClaimCondition currentVolumeAttributesClassName healthStatus:VolumeHealthStatus
  modifyVolumeStatus:ModifyVolumeStatus phase
PersistentVolumeClaimTemplate: metadata:ObjectMeta spec:PersistentVolumeClaimSpec
PersistentVolumeClaimVolumeSource: claimName readOnly
PersistentVolumeSpec: accessModes awsElasticBlockStore:AWSElasticBlockStoreVolumeSource azureDisk:AzureDiskVolumeSource
  azureFile:AzureFilePersistentVolumeSource capacity cephfs:CephFSPersistentVolumeSource
  cinder:CinderPersistentVolumeSource claimRef:ObjectReference csi:CSIPersistentVolumeSource fc:FCVolumeSource
  flexVolume:FlexPersistentVolumeSource flocker:FlockerVolumeSource gcePersistentDisk:GCEPersistentDiskVolumeSource
  glusterfs:GlusterfsPersistentVolumeSource hostPath:HostPathVolumeSource iscsi:ISCSIPersistentVolumeSource
  local:LocalVolumeSource mountOptions nfs:NFSVolumeSource nodeAffinity:VolumeNodeAffinity persistentVolumeReclaimPolicy
  photonPersistentDisk:PhotonPersistentDiskVolumeSource portworxVolume:PortworxVolumeSource quobyte:QuobyteVolumeSource
  rbd:RBDPersistentVolumeSource scaleIO:ScaleIOPersistentVolumeSource storageClassName
  storageos:StorageOSPersistentVolumeSource volumeAttributesClassName volumeMode
  vsphereVolume:VsphereVirtualDiskVolumeSource
PersistentVolumeStatus: lastPhaseTransitionTime message phase reason
PhotonPersistentDiskVolumeSource: fsType pdID
Pod: apiVersion kind metadata:ObjectMeta spec:PodSpec status:PodStatus
PodAffinity: preferredDuringSchedulingIgnoredDuringExecution:WeightedPodAffinityTerm
  requiredDuringSchedulingIgnoredDuringExecution:PodAffinityTerm
PodAffinityTerm: labelSelector:LabelSelector matchLabelKeys mismatchLabelKeys namespaceSelector:LabelSelector namespaces
  topologyKey
PodAntiAffinity: preferredDuringSchedulingIgnoredDuringExecution:WeightedPodAffinityTerm
  requiredDuringSchedulingIgnoredDuringExecution:PodAffinityTerm
PodCertificateProjection: certificateChainPath credentialBundlePath keyPath keyType maxExpirationSeconds signerName user
  userAnnotations
PodCondition: lastProbeTime lastTransitionTime message observedGeneration reason status type
PodDNSConfig: nameservers options:PodDNSConfigOption searches
PodDNSConfigOption: name value
PodDisruptionBudget: apiVersion kind metadata:ObjectMeta spec:PodDisruptionBudgetSpec status:PodDisruptionBudgetStatus
PodDisruptionBudgetSpec: maxUnavailable minAvailable selector:LabelSelector unhealthyPodEvictionPolicy
PodDisruptionBudgetStatus: conditions:Condition currentHealthy desiredHealthy disruptedPods disruptionsAllowed
  expectedPods observedGeneration
PodExtendedResourceClaimStatus: requestMappings:ContainerExtendedResourceRequest resourceClaimName
PodFailurePolicy: rules:PodFailurePolicyRule
PodFailurePolicyOnExitCodesRequirement: containerName operator values
PodFailurePolicyOnPodConditionsPattern: status type
PodFailurePolicyRule: action onExitCodes:PodFailurePolicyOnExitCodesRequirement
  onPodConditions:PodFailurePolicyOnPodConditionsPattern
PodIP: ip
PodOS: name
PodReadinessGate: conditionType
PodResourceClaim: name resourceClaimName resourceClaimTemplateName
PodResourceClaimStatus: name resourceClaimName
PodSchedulingGate: name
PodSchedulingGroup: podGroupName
PodSecurityContext: appArmorProfile:AppArmorProfile fsGroup fsGroupChangePolicy runAsGroup runAsNonRoot runAsUser
  seLinuxChangePolicy seLinuxOptions:SELinuxOptions seccompProfile:SeccompProfile supplementalGroups
  supplementalGroupsPolicy sysctls:Sysctl windowsOptions:WindowsSecurityContextOptions
PodSpec: activeDeadlineSeconds affinity:Affinity automountServiceAccountToken containers:Container
  dnsConfig:PodDNSConfig dnsPolicy enableServiceLinks ephemeralContainers:EphemeralContainer
  evictionResponders:EvictionResponder hostAliases:HostAlias hostIPC hostNetwork hostPID hostUsers hostname
  hostnameOverride imagePullSecrets:LocalObjectReference initContainers:Container nodeName nodeSelector os:PodOS
  overhead preemptionPolicy priority priorityClassName readinessGates:PodReadinessGate resourceClaims:PodResourceClaim
  resources:ResourceRequirements restartPolicy runtimeClassName schedulerName schedulingGates:PodSchedulingGate
  schedulingGroup:PodSchedulingGroup securityContext:PodSecurityContext serviceAccount serviceAccountName
  setHostnameAsFQDN shareProcessNamespace subdomain terminationGracePeriodSeconds tolerations:Toleration
  topologySpreadConstraints:TopologySpreadConstraint volumes:Volume workloadRef:WorkloadReference
PodStatus: allocatedResources conditions:PodCondition containerStatuses:ContainerStatus
  ephemeralContainerStatuses:ContainerStatus extendedResourceClaimStatus:PodExtendedResourceClaimStatus hostIP
  hostIPs:HostIP initContainerStatuses:ContainerStatus message
  nodeAllocatableResourceClaimStatuses:NodeAllocatableResourceClaimStatus nominatedNodeName observedGeneration phase
  podIP podIPs:PodIP qosClass reason resize resourceClaimStatuses:PodResourceClaimStatus resources:ResourceRequirements
  startTime volumeHealth:PodVolumeHealth
PodTemplateSpec: metadata:ObjectMeta spec:PodSpec
PodVolumeHealth: healthConditions:VolumeHealthCondition lastTransitionTime name
PortStatus: error port protocol
PortworxVolumeSource: fsType readOnly volumeID
PreferredSchedulingTerm: preference:NodeSelectorTerm weight
Probe: exec:ExecAction failureThreshold grpc:GRPCAction httpGet:HTTPGetAction initialDelaySeconds periodSeconds
  successThreshold tcpSocket:TCPSocketAction terminationGracePeriodSeconds timeoutSeconds
ProjectedVolumeSource: defaultMode defaultUser sources:VolumeProjection
QuobyteVolumeSource: group readOnly registry tenant user volume
RBDPersistentVolumeSource: fsType image keyring monitors pool readOnly secretRef:SecretReference user
RBDVolumeSource: fsType image keyring monitors pool readOnly secretRef:LocalObjectReference user
ReplicaSet: apiVersion kind metadata:ObjectMeta spec:ReplicaSetSpec status:ReplicaSetStatus
ReplicaSetCondition: lastTransitionTime message reason status type
ReplicaSetSpec: minReadySeconds replicas selector:LabelSelector template:PodTemplateSpec
ReplicaSetStatus: availableReplicas conditions:ReplicaSetCondition fullyLabeledReplicas observedGeneration readyReplicas
  replicas terminatingReplicas
ReplicationController: apiVersion kind metadata:ObjectMeta spec:ReplicationControllerSpec
  status:ReplicationControllerStatus
ReplicationControllerCondition: lastTransitionTime message reason status type
ReplicationControllerSpec: minReadySeconds replicas selector template:PodTemplateSpec
ReplicationControllerStatus: availableReplicas conditions:ReplicationControllerCondition fullyLabeledReplicas
  observedGeneration readyReplicas replicas
ResourceClaim: apiVersion kind metadata:ObjectMeta spec:ResourceClaimSpec status:ResourceClaimStatus
ResourceClaimConsumerReference: apiGroup name resource uid
ResourceClaimSpec: devices:DeviceClaim
ResourceClaimStatus: allocation:AllocationResult devices:AllocatedDeviceStatus
  reservedFor:ResourceClaimConsumerReference
ResourceFieldSelector: containerName divisor resource
ResourceHealth: health message resourceID
ResourceRequirements: claims:ContainerResourceClaim limits requests
ResourceStatus: name resources:ResourceHealth
RollingUpdateDaemonSet: maxSurge maxUnavailable
RollingUpdateDeployment: maxSurge maxUnavailable
RollingUpdateStatefulSetStrategy: maxUnavailable partition
SELinuxOptions: level role type user
ScaleIOPersistentVolumeSource: fsType gateway protectionDomain readOnly secretRef:SecretReference sslEnabled storageMode
  storagePool system volumeName
ScaleIOVolumeSource: fsType gateway protectionDomain readOnly secretRef:LocalObjectReference sslEnabled storageMode
  storagePool system volumeName
SeccompProfile: localhostProfile type
SecretEnvSource: name optional
SecretKeySelector: key name optional
SecretProjection: items:KeyToPath name optional
SecretReference: name namespace
SecretVolumeSource: defaultMode defaultUser items:KeyToPath optional secretName
SecurityContext: allowPrivilegeEscalation appArmorProfile:AppArmorProfile capabilities:Capabilities privileged procMount
  readOnlyRootFilesystem runAsGroup runAsNonRoot runAsUser seLinuxOptions:SELinuxOptions seccompProfile:SeccompProfile
  windowsOptions:WindowsSecurityContextOptions
Service: apiVersion kind metadata:ObjectMeta spec:ServiceSpec status:ServiceStatus
ServiceAccountTokenProjection: audience expirationSeconds path user
ServicePort: appProtocol name nodePort port protocol targetPort
ServiceSpec: allocateLoadBalancerNodePorts clusterIP clusterIPs externalIPs externalName externalTrafficPolicy
  healthCheckNodePort internalTrafficPolicy ipFamilies ipFamilyPolicy loadBalancerClass loadBalancerIP
  loadBalancerSourceRanges ports:ServicePort publishNotReadyAddresses selector sessionAffinity
  sessionAffinityConfig:SessionAffinityConfig trafficDistribution type
ServiceStatus: conditions:Condition loadBalancer:LoadBalancerStatus
SessionAffinityConfig: clientIP:ClientIPConfig
SleepAction: seconds
StatefulSet: apiVersion kind metadata:ObjectMeta spec:StatefulSetSpec status:StatefulSetStatus
StatefulSetCondition: lastTransitionTime message reason status type
StatefulSetOrdinals: start
StatefulSetPersistentVolumeClaimRetentionPolicy: whenDeleted whenScaled
StatefulSetSpec: minReadySeconds ordinals:StatefulSetOrdinals
  persistentVolumeClaimRetentionPolicy:StatefulSetPersistentVolumeClaimRetentionPolicy podManagementPolicy replicas
  revisionHistoryLimit selector:LabelSelector serviceName template:PodTemplateSpec
  updateStrategy:StatefulSetUpdateStrategy volumeClaimTemplates:PersistentVolumeClaim
StatefulSetStatus: availableReplicas collisionCount conditions:StatefulSetCondition currentReplicas currentRevision
  observedGeneration readyReplicas replicas updateRevision updatedReplicas
StatefulSetUpdateStrategy: rollingUpdate:RollingUpdateStatefulSetStrategy type
StorageClass: allowVolumeExpansion allowedTopologies:TopologySelectorTerm apiVersion kind metadata:ObjectMeta
  mountOptions parameters provisioner reclaimPolicy volumeBindingMode
StorageHealth: healthConditions:StorageHealthCondition name
StorageHealthCondition: accessMode lastTransitionTime message reason status volumeMode
StorageOSPersistentVolumeSource: fsType readOnly secretRef:ObjectReference volumeName volumeNamespace
StorageOSVolumeSource: fsType readOnly secretRef:LocalObjectReference volumeName volumeNamespace
SuccessPolicy: rules:SuccessPolicyRule
SuccessPolicyRule: succeededCount succeededIndexes
Sysctl: name value
TCPSocketAction: host port
Taint: effect key timeAdded value
TokenRequest: audience expirationSeconds
Toleration: effect key operator tolerationSeconds value
TopologyConstraint: key
TopologySelectorLabelRequirement: key values
TopologySelectorTerm: matchLabelExpressions:TopologySelectorLabelRequirement
TopologySpreadConstraint: labelSelector:LabelSelector matchLabelKeys maxSkew minDomains nodeAffinityPolicy
  nodeTaintsPolicy topologyKey whenUnsatisfiable
TypedLocalObjectReference: apiGroup kind name
TypedObjectReference: apiGroup kind name namespace
UncountedTerminatedPods: failed succeeded
Volume: awsElasticBlockStore:AWSElasticBlockStoreVolumeSource azureDisk:AzureDiskVolumeSource
  azureFile:AzureFileVolumeSource cephfs:CephFSVolumeSource cinder:CinderVolumeSource configMap:ConfigMapVolumeSource
  csi:CSIVolumeSource downwardAPI:DownwardAPIVolumeSource emptyDir:EmptyDirVolumeSource ephemeral:EphemeralVolumeSource
  fc:FCVolumeSource flexVolume:FlexVolumeSource flocker:FlockerVolumeSource
  gcePersistentDisk:GCEPersistentDiskVolumeSource gitRepo:GitRepoVolumeSource glusterfs:GlusterfsVolumeSource
  hostPath:HostPathVolumeSource image:ImageVolumeSource iscsi:ISCSIVolumeSource name nfs:NFSVolumeSource
  persistentVolumeClaim:PersistentVolumeClaimVolumeSource photonPersistentDisk:PhotonPersistentDiskVolumeSource
  portworxVolume:PortworxVolumeSource projected:ProjectedVolumeSource quobyte:QuobyteVolumeSource rbd:RBDVolumeSource
  scaleIO:ScaleIOVolumeSource secret:SecretVolumeSource storageos:StorageOSVolumeSource
  vsphereVolume:VsphereVirtualDiskVolumeSource
VolumeAttachment: apiVersion kind metadata:ObjectMeta spec:VolumeAttachmentSpec status:VolumeAttachmentStatus
VolumeAttachmentSource: inlineVolumeSpec:PersistentVolumeSpec persistentVolumeName
VolumeAttachmentSpec: attacher nodeName source:VolumeAttachmentSource
VolumeAttachmentStatus: attachError:VolumeError attached attachmentMetadata detachError:VolumeError
VolumeDevice: devicePath name
VolumeError: errorCode message time
VolumeHealthCondition: message reason status
VolumeHealthStatus: healthConditions:VolumeHealthCondition lastTransitionTime
VolumeMount: bindMountOptions mountPath mountPropagation name readOnly recursiveReadOnly subPath subPathExpr
VolumeMountStatus: mountPath name readOnly recursiveReadOnly volumeStatus:VolumeStatus
VolumeNodeAffinity: required:NodeSelector
VolumeNodeResources: count
VolumeProjection: clusterTrustBundle:ClusterTrustBundleProjection configMap:ConfigMapProjection
  downwardAPI:DownwardAPIProjection podCertificate:PodCertificateProjection secret:SecretProjection
  serviceAccountToken:ServiceAccountTokenProjection
VolumeResourceRequirements: limits requests
VolumeStatus: image:ImageVolumeStatus
VsphereVirtualDiskVolumeSource: fsType storagePolicyID storagePolicyName volumePath
WeightedPodAffinityTerm: podAffinityTerm:PodAffinityTerm weight
WindowsSecurityContextOptions: gmsaCredentialSpec gmsaCredentialSpecName hostProcess runAsUserName
WorkloadPodGroupDisruptionMode: all single
WorkloadPodGroupGangSchedulingPolicy: minCount
WorkloadPodGroupResourceClaim: name resourceClaimName resourceClaimTemplateName
WorkloadPodGroupSchedulingConstraints: topology:TopologyConstraint
WorkloadPodGroupSchedulingPolicy: basic gang:WorkloadPodGroupGangSchedulingPolicy
WorkloadReference: name podGroup podGroupReplicaKey
"""
