"""The keys of labels, annotations and taints that careen and kured set on Nodes and DaemonSets. `node/marks.py` says
who removes each; `progress.py`, `lock/content.py` and `steps/` explain the values."""

from __future__ import annotations

PREFIX = "careen.dev/"

# Labels and annotations of a Node. Only the node's own agent writes them, except those that a person may set.
REBOOT_LABEL = "careen.dev/reboot"  # required, ready, in-progress, failed
PHASE = "careen.dev/phase"  # for reading; `progress` decides
REASON = "careen.dev/reason"  # one sentence, for reading
SINCE = "careen.dev/since"  # RFC 3339: since when the node is in its phase, for reading
REFUSALS = "careen.dev/refusals"  # JSON list of gate, code, sentence, since
REFUSED = "careen.dev/refused"  # JSON: for how many seconds each code has refused this need; goes into the history
PROGRESS = "careen.dev/progress"  # versioned JSON: the record that must survive the reboot
# Versioned JSON: the settings under which the node took its claim, as long as it has one. An agent that cannot read its
# settings continues with these.
SETTINGS = "careen.dev/settings"
WARNING = "careen.dev/warning"  # one sentence: the self-test's warning of what the reboot would lose; for reading
FORECAST = "careen.dev/forecast"  # JSON: when it was made, how many pods have each outcome, where pods may run
PREPARED = "careen.dev/prepared"  # one sentence: whether the node could use what it had prepared; for reading
AND_OTHERS = "…"  # in the forecast, after a pod's nodes: others are possible
MOVES = "careen.dev/moves"  # how many pods a drain would evict, by the last count
MOVES_IN_ZONE = "careen.dev/moves-in-zone"  # how many of these must stay in the zone; without it: none
KNOWN_AT_THE_CLAIM = "careen.dev/known-at-the-claim"  # JSON: what alerts and queries said at the cordon
LEARNED_QUERIES = "careen.dev/learned-queries"  # JSON: the health queries that this node's drains turn bad
SET_ANNOTATIONS = "careen.dev/set-annotations"  # JSON: earlier values of the autoscalers' annotations that careen set
# RFC 3339: when the reboot label became `ready`. From this instant a restarted agent measures how long it has waited.
READY_SINCE = "careen.dev/ready-since"
LAST_REBOOT = "careen.dev/last-reboot"  # JSON: when, how long, both boot ids, lead time, moves

NEED = "careen.dev/need"  # one sentence: why the node needs the reboot; goes into the history
# JSON: how the budgets and webhooks of slow pods opened, and which drains were undone because of them.
DRAIN_MEMORY = "careen.dev/drain-memory"
HISTORY = "careen.dev/history"  # JSON: the last five reboots, newest first: when, why, how long, moves

HOLD = "careen.dev/hold"  # set by a person: reason, optionally until=RFC3339
# Set by a person: until=RFC3339 waives windows, the minimum interval and --reboot-cordoned=false.
REBOOT_NOW = "careen.dev/reboot-now"
# Set by a person (`careen reboot`, `drain`, `maintenance`): a request in JSON. The agent removes it when it is met or
# over; a person removes it to hand the node back.
REQUEST = "careen.dev/request"
# careen.dev/gate.NAME=reason, on a Node or on the lock's DaemonSet: other programs set and remove it.
GATE_PREFIX = "careen.dev/gate."
RECHECK = "careen.dev/recheck"  # set by a person (`careen recheck NODE`): RFC 3339; the agent removes it
RETRY = "careen.dev/retry"  # set by a person (`careen retry NODE`): RFC 3339; the agent removes it

# Kured's annotations. With --annotate-nodes careen writes them too, because dashboards read them.
KURED_IN_PROGRESS = "weave.works/kured-reboot-in-progress"
KURED_MOST_RECENT = "weave.works/kured-most-recent-reboot-needed"

# On the DaemonSet. The default is kured's key, so that both programs use one lock.
LOCK_ANNOTATION = "weave.works/kured-node-lock"

# Keys of autoscalers. A node that reboots looks empty to an autoscaler, which would remove it without these.
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
# With any value: cloud providers take the node out of their load balancers.
EXCLUDE_FROM_BALANCERS = "node.kubernetes.io/exclude-from-external-load-balancers"

DEFAULT_TAINT_KEY = "careen.dev/reboot"
TAINT_EFFECT = "PreferNoSchedule"

ZONE = "topology.kubernetes.io/zone"
ZONE_BETA = "failure-domain.beta.kubernetes.io/zone"
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
MASTER = "node-role.kubernetes.io/master"  # before Kubernetes 1.24

UNSCHEDULABLE = "node.kubernetes.io/unschedulable"  # the taint that Kubernetes adds for a cordon
MIRROR_POD = "kubernetes.io/config.mirror"

# The field manager of an agent's changes to its Node. Never rename it: it proves which cordons are ours.
FIELD_MANAGER = "careen-agent"

# The field manager of the patches that add careen's soft taint and change no other taint. Never rename it.
TAINT_MANAGER = "careen-taint"
