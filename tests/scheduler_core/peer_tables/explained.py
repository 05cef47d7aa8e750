"""Rows whose answers differ without a difference in a decision: a pattern of the test's name, and why."""

from __future__ import annotations

import re
from typing import Final

_GATE_OFF: Final = "the row switches a gate off that is on by default"
_DEVICES: Final = "needs an allocation of devices; the library answers unknown in Filter"
_NO_PREFILTER: Final = "Filter without PreFilter"

REASONS: Final = (
    (r"PreFilterDisabled|TestNodeAffinity/|Error_getting_pre-filter_state", _NO_PREFILTER),
    (r"DRA_resource|Extended_resources|prioritized-list-scoring", _DEVICES),
    (r"Gt_|Lt_|_Gt|_Lt|Numeric_", "the gate TaintTolerationComparisonOperators is off by default"),
    (r"sidecar_containers_is_disabled|disable-inplace-pod|feature_gate_disabled|gate_disabled", _GATE_OFF),
    (r"SchedulingGroup|podgroup", "the gates of pod groups are off by default"),
    (
        r"deferred|DeferredResize|queue-on-same-node-scale-up",
        "the gate InPlacePodVerticalScalingSchedulerPreemption is off by default",
    ),
    (r"node-allocatable", "the gate DRANodeAllocatableResources is off by default"),
    (r"RemovePodHostScoped", "Filter after RemovePod, which the recording lacks"),
    (r"TestSchedulerWithVolumeBinding", "the test has a fake binder of volumes"),
    (r"deleted_PVC", "the zero time as the time of the deletion, which no API server stores"),
    (r"without_score_plugin", "without a score, the real search ends at the first node that fits"),
    (r"Resources_not_set", "the row leaves out the defaults of the arguments"),
    (r"invalid_(anti)?affinity_label_syntax", "an invalid selector; the library refuses it with its own words"),
    (r"TestCustom(Selection|Ordering)", "a Go function of the test chooses the victims"),
    (r"TestPlugin_and|with_TestPlugin", "a plugin of the test fails"),
    (r"different_start_time_for_all_pods", "start times below a second, which the API cannot store"),
    (
        r"^TestFilter/Node_|^TestEnqueueExtensionsPodUpdate|^TestIsSchedulableAfterTargetPodUpdate",
        "node features that the test made up",
    ),
    (r"inline_migratable_volume$", "a disk without an id, which no API server stores"),
    (
        r"no_storage_class|ephemeral_volume_missing|don.t_skip_Filter_when_the_pod_has_ephemeral",
        "words of a fake lister",
    ),
    (
        r"VolumeAttachments_towards|PreventPodSchedulingIfMissing_is_true",
        "objects that the recording lacks: an index of attachments, a fake of CSIDrivers",
    ),
)


# Rows in which the library decides otherwise. Empty is the aim.
DIFFERENT: Final[dict[str, str]] = {}

# The release that has a gate on which a row switches on.
LATER: Final = "1.37"


def explained(test: str) -> str:
    """Why the row differs; "" if nothing explains it."""
    return next((why for pattern, why in REASONS if re.search(pattern, test)), "")
