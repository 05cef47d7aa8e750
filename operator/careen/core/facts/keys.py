"""Names under which careen, and kured before it, keep things on Nodes and DaemonSets.

What the values mean is said where they are read and written: `progress.py`, `lock.py`, `steps/`.
"""

from __future__ import annotations

PREFIX = "careen.dev/"

# Labels and annotations of a Node. Only the node's own agent writes them, except those that a person may set.
REBOOT_LABEL = "careen.dev/reboot"  # required, ready, in-progress, failed
PHASE = "careen.dev/phase"  # for reading; `progress` decides
REASON = "careen.dev/reason"  # one sentence, for reading
SINCE = "careen.dev/since"  # RFC 3339: since when the phase stands, for reading
REFUSALS = "careen.dev/refusals"  # JSON list of gate, code, sentence, since
PROGRESS = "careen.dev/progress"  # versioned JSON: what has to survive the reboot
SETTINGS = (
    "careen.dev/settings"  # versioned JSON, with a claim: what a start that cannot read its settings goes on with
)
WARNING = "careen.dev/warning"  # one sentence: what the reboot would lose, as the agent's self-test found; for reading
FORECAST = "careen.dev/forecast"  # short JSON: counts, landing nodes, at
PREPARED = "careen.dev/prepared"  # one sentence: whether what was made ahead of the turn counted; for reading
AND_OTHERS = "…"  # in the forecast, behind the nodes of a pod: others are possible
MOVES = "careen.dev/moves"  # how many pods a drain would evict, as counted last
SET_ANNOTATIONS = "careen.dev/set-annotations"  # JSON: what stood under the keys of autoscalers before careen's values
READY_SINCE = (
    "careen.dev/ready-since"  # RFC 3339: since when the label says ready; the gathering outlives a process by it
)
LAST_REBOOT = "careen.dev/last-reboot"  # JSON: when, how long, both boot ids, lead time, moves

NEED = "careen.dev/need"  # one sentence: what asked for the reboot; goes into the history
HISTORY = "careen.dev/history"  # JSON: the last five reboots, the newest first: when, why, how long, moves

HOLD = "careen.dev/hold"  # a person's: reason, optionally until=RFC3339
# a person's: until=RFC3339 waives windows, the minimum interval and --reboot-cordoned=false
REBOOT_NOW = "careen.dev/reboot-now"
# a person's (`careen reboot`, `drain`, `maintenance`): JSON, what is asked of the node; the agent removes it when it is
# met or over, and a person to hand the node back
REQUEST = "careen.dev/request"
RETRY = "careen.dev/retry"  # a person's (`careen retry NODE`): RFC 3339; the agent removes it

# Kured's two, kept behind --annotate-nodes because dashboards read them.
KURED_IN_PROGRESS = "weave.works/kured-reboot-in-progress"
KURED_MOST_RECENT = "weave.works/kured-most-recent-reboot-needed"

# On the DaemonSet: kured's key by default, so that both read one lock.
LOCK_ANNOTATION = "weave.works/kured-node-lock"

# Autoscalers' own. While a node goes down and comes back it looks empty to them, and they would remove it.
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
# Any value: cloud providers take the node out of what they balance.
EXCLUDE_FROM_BALANCERS = "node.kubernetes.io/exclude-from-external-load-balancers"

DEFAULT_TAINT_KEY = "careen.dev/reboot"
TAINT_EFFECT = "PreferNoSchedule"

ZONE = "topology.kubernetes.io/zone"
ZONE_BETA = "failure-domain.beta.kubernetes.io/zone"
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
MASTER = "node-role.kubernetes.io/master"  # before Kubernetes 1.24

UNSCHEDULABLE = "node.kubernetes.io/unschedulable"  # the taint that stands for a cordon
MIRROR_POD = "kubernetes.io/config.mirror"

# The field manager under which an agent changes its Node. Not to be renamed: it proves which cordons are ours.
FIELD_MANAGER = "careen-agent"

# The one under which it adds its soft taint, and changes no other taints. Not to be renamed either.
TAINT_MANAGER = "careen-taint"

OF_A_NEED = (
    PHASE,
    REASON,
    SINCE,
    NEED,
    REFUSALS,
    PROGRESS,
    SETTINGS,
    WARNING,
    FORECAST,
    PREPARED,
    MOVES,
    READY_SINCE,
    SET_ANNOTATIONS,
)
"""Annotations that an agent writes while its node wants a reboot."""
