"""Builds values for the tests of decisions. Every argument has a default, so a test states only the facts on which its
result depends.

By default, the node n1 waits for its reboot, its host needs a reboot, the lock is free, and no gate refuses the
reboot."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from careen.core.actions import Action, Evict, PatchNode, WriteLock
from careen.core.decide import decide
from careen.core.decision import Decision
from careen.core.facts import keys
from careen.core.facts.memory import LineWatch, Memory
from careen.core.facts.observation import (
    Chance,
    DryRunAnswer,
    Evictable,
    Fleet,
    Holders,
    Need,
    NeedAnswer,
    NodeView,
    PodView,
    SelfTest,
)
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.policy import Policy
from careen.core.facts.progress import Mark, OwnerHealth, Progress, from_annotation, to_annotation
from careen.core.lock import notation
from careen.core.lock.clearance import hand_over_key
from careen.core.lock.content import Entry, LockContent
from careen.core.lock.pauses import GATHER_SECONDS
from careen.core.lock.reading import LockReading
from careen.core.observation import Observation
from careen.core.outcomes import LABEL
from careen.core.situation import Notebook, Situation
from scheduler_core.simulation.forecast import Forecast

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)  # a Wednesday
UPTIME = 10_000.0
BOOT = "boot-1"
DAEMONSET = "ds-uid"
LOCK_OBJECT = f"{DAEMONSET}/{keys.LOCK_ANNOTATION}"

YES = Need(answer=NeedAnswer.YES)
NO = Need(answer=NeedAnswer.NO)
UNKNOWN_NEED = Need(answer=NeedAnswer.UNKNOWN, detail="permission denied")


def ago(seconds: float, boot: str = BOOT) -> Mark:
    """Return a `Mark` with this boot id and the uptime `UPTIME - seconds`. `UPTIME` is the host's uptime in the default
    observation."""
    return Mark(boot=boot, uptime=UPTIME - seconds)


def a_node(name: str = "n1", **changes: Any) -> NodeView:
    """Return a Node that is ready and schedulable, has the boot id `boot-1`, and has no label, annotation or taint of
    careen."""
    given = {"name": name, "uid": f"uid-{name}", "resource_version": "7", "boot_id": BOOT, **changes}
    return NodeView(**given)


def a_marked_node(progress: Progress, **changes: Any) -> NodeView:
    """Return a Node whose annotation contains this progress, with the label and the other annotations of its phase. The
    Node is cordoned if the progress says so."""
    name = changes.pop("name", "n1")
    phase = Phase(progress.phase)
    label = changes.pop("label", LABEL[phase])
    annotations = {keys.PROGRESS: to_annotation(progress), keys.PHASE: phase.value, **changes.pop("annotations", {})}
    return a_node(
        name,
        labels={keys.REBOOT_LABEL: label, **changes.pop("labels", {})} if label else changes.pop("labels", {}),
        annotations=annotations,
        unschedulable=changes.pop("unschedulable", progress.is_cordoned_by_us or progress.prior_unschedulable),
        **changes,
    )


def a_progress(phase: Phase, **changes: Any) -> Progress:
    """Return a typical progress of a node in this phase. In every phase after Waiting, the progress contains a claim.
    In the phases in which the node is cordoned, the progress says that careen set the cordon."""
    given: dict[str, Any] = {"phase": phase.value, "need_since": "2026-03-04T11:00:00Z"}
    if phase not in {Phase.IDLE, Phase.WAITING}:
        given |= {"claim": "c1", "lock": LOCK_OBJECT, "boot_left": BOOT, "claimed": ago(60)}
    if phase in {Phase.DRAINING, Phase.MAINTENANCE, Phase.REBOOTING, Phase.VERIFYING}:
        given |= {"is_cordoned_by_us": True, "drain_started": ago(30), "drain_started_at": "2026-03-04T11:59:30Z"}
    if phase is Phase.REBOOTING:
        given |= {"announcement": 1, "announced": ago(20)}
    if phase in {Phase.VERIFYING, Phase.SETTLING}:
        given |= {"boot_left": "boot-0", "verify_started": ago(10)}
    if phase is Phase.SETTLING:
        given |= {"settle_started": ago(5)}
    return Progress(**given | changes)


def an_entry(node: str = "n1", claim: str = "c1", **changes: Any) -> Entry:
    """Return a claim (an entry of the lock) as careen writes it. By default, the claim says that the lock may contain
    only one claim."""
    return Entry(
        **{
            "node": node,
            "id": claim,
            "uid": f"uid-{node}",
            "boot": BOOT,
            "created": "2026-03-04T11:59:00Z",
            "limit": 1,
            "zone": "",
        }
        | changes
    )


def a_reading(content: LockContent | str | None) -> LockReading:
    """Return the result of a read of the lock with this content."""
    text = notation.render(content) if isinstance(content, LockContent) else content
    return LockReading.of(text, resource_version="42", daemonset_uid=DAEMONSET)


def held(*entries: Entry, **changes: Any) -> LockContent:
    """Return the content of a lock that contains these claims."""
    return LockContent(entries=entries, max_owners=1, **changes)


def a_pod(name: str = "web-1", **changes: Any) -> PodView:
    """Return a running pod of a ReplicaSet."""
    given = {
        "namespace": "shop",
        "name": name,
        "uid": f"uid-{name}",
        "owner_kind": "ReplicaSet",
        "owner_name": "web",
        "owner_uid": "rs-web",
    }
    return PodView(**{**given, **changes})


def a_daemon_pod(name: str = "proxy-1", **changes: Any) -> PodView:
    """Return a running pod of a DaemonSet."""
    given = {"namespace": "kube-system", "owner_kind": "DaemonSet", "owner_name": "proxy", "owner_uid": "ds-proxy"}
    return a_pod(name, **given | changes)


def an_owner(name: str = "web", **changes: Any) -> OwnerHealth:
    """Return a healthy ReplicaSet with three replicas."""
    given = {
        "kind": "ReplicaSet",
        "namespace": "shop",
        "name": name,
        "uid": f"rs-{name}",
        "generation": 1,
        "replicas": 3,
        "ready": 3,
    }
    return OwnerHealth(**{**given, **changes})


def a_fleet(*nodes: NodeView, age: float = 0.0) -> Fleet:
    """Return these Nodes as a list that the agent read `age` seconds before the observation."""
    return Fleet(nodes=nodes, read_at_uptime=UPTIME - age)


def a_policy(**changes: Any) -> Policy:
    """Return the default policy for node n1, with the fields in `changes` replaced."""
    return Policy(**{"node_name": "n1", **changes})


def an_observation(node: NodeView | Any = None, **changes: Any) -> Observation:
    """Return an observation in which every fact is known, even a costly one, and allows the reboot. The agent reads
    nothing more before it decides."""
    node = a_node() if node is None else node
    given: dict[str, Any] = {
        "now": NOW,
        "uptime": UPTIME,
        "chance": Chance(claim_id="fresh", jitter=0.5),
        "memory": remembering(),
        "clock_skew_seconds": 0.0,
        "node": node,
        "boot_id": BOOT,
        "need": YES,
        "lock": LockContent(),
        "peers": (),
        "waiters": (),
        "crowd": None,
        "pods": (),
        "fleet": a_fleet(*([node] if isinstance(node, NodeView) else [])),
        "alerts": (),
        "readyz": (),
        "foreign": (),
        "owners": (),
        "volumes": (),
        "forecast": Forecast(node="n1", made_at="2026-03-04T12:00:00Z"),
        "evictability": {},
        "holders": Holders(),
        "self_test": SelfTest(),
    }
    given |= changes
    if isinstance(given["lock"], LockContent | str) or given["lock"] is None:
        given["lock"] = a_reading(given["lock"])
    if "evictability" not in changes and isinstance(given["pods"], tuple):
        given["evictability"] = {pod.uid: DryRunAnswer(answer=Evictable.ALLOWED) for pod in given["pods"]}
    return Observation(**given)


def a_situation(node: NodeView | None = None, policy: Policy | None = None, **changes: Any) -> Situation:
    """Return the situation (observation, policy and progress of the node) that each gate and each step takes as its
    argument."""
    seen = an_observation(node, **changes)
    assert isinstance(seen.node, NodeView)
    progress = from_annotation(seen.node.annotations.get(keys.PROGRESS))
    assert isinstance(progress, Progress)
    return Situation(
        seen=seen, policy=policy or a_policy(), node=seen.node, progress=progress, notebook=Notebook(seen.memory)
    )


def decided(
    progress: Progress | None = None, policy: Policy | None = None, node: dict[str, Any] | None = None, **changes: Any
) -> Decision:
    """Return the agent's decision for a node whose annotation contains this progress. Without `progress`, the node has
    no label, annotation or taint of careen."""
    view = a_marked_node(progress, **(node or {})) if progress else a_node(**(node or {}))
    if progress and progress.claim and "lock" not in changes and not progress.is_releasing:
        changes["lock"] = held(an_entry(claim=progress.claim, boot=progress.boot_left, failed=progress.failed))
    return decide(an_observation(view, **changes), policy or a_policy())


def deciding_without(evidence: Evidence, **changes: Any) -> dict[str, Any]:
    """Return keyword arguments of `an_observation` in which facts of this kind have not been read."""
    from careen.core.facts.observation import NOT_ASKED

    return {evidence.value.replace("-", "_"): NOT_ASKED, **changes}


def the_patch(decision: Decision) -> PatchNode:
    """Return the patch of the Node. The decision must contain exactly one such patch."""
    (found,) = [action for action in decision.actions if isinstance(action, PatchNode)]
    return found


def the_record(decision: Decision) -> Progress:
    """Return the record (the annotation in which careen stores the progress of a reboot) that the decision's patch
    writes."""
    text = the_patch(decision).annotations[keys.PROGRESS]
    found = from_annotation(text)
    assert isinstance(found, Progress)
    return found


def the_lock(decision: Decision) -> LockContent:
    """Return the content of the lock that the decision writes."""
    (found,) = [action for action in decision.actions if isinstance(action, WriteLock)]
    content = notation.parse(found.content)
    assert isinstance(content, LockContent)
    return content


def kinds(decision: Decision) -> list[type[Action]]:
    """Return the types of the decision's actions, without Events and messages to people."""
    from careen.core.actions import Notify, PostEvent

    return [type(action) for action in decision.actions if not isinstance(action, PostEvent | Notify)]


def evicted(decision: Decision) -> list[str]:
    """Return the names of the pods that the decision evicts."""
    return [pod.name for action in decision.actions if isinstance(action, Evict) for pod in action.pods]


def remembering(**changes: Any) -> Memory:
    """Return the memory of an agent process that has already compared the lock with its Node, counted the pods of its
    node, and found the lock empty."""
    memory = Memory(
        node_uid="uid-n1",
        is_reconciled=True,
        moves_counted_at=UPTIME,
        line=LineWatch(key=hand_over_key(LockContent()), since=UPTIME - GATHER_SECONDS),
    )
    return with_parts(memory, **changes)


def with_parts(memory: Memory, **changes: Any) -> Memory:
    """Return the agent's memory with these fields changed. For example, `line__since=1.0` changes the field `since` of
    the group `line`."""
    for name, value in changes.items():
        group, _, part = name.partition("__")
        changed = replace(getattr(memory, group), **{part: value}) if part else value
        memory = replace(memory, **{group: changed})
    return memory


UNREADABLE_ROWS = {  # of the lock
    "a number": 5,
    "null": None,
    "a text": "n2",
    "a list": [],
    "nothing": {},
    "no name": {"id": "c2"},
    "an empty name": {"nodeID": ""},
    "a number as the node's name": {"nodeID": 7},
    "a path as the node's name": {"nodeID": "../pods"},
    "two dots": {"nodeID": ".."},
    "a long name": {"nodeID": "n" * 300},
}
