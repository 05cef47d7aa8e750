"""Prepares the drain of the next node in line: makes a forecast, and a dry-run eviction of each pod that a drain would
evict. Meanwhile another node (the holder) still holds its claim, until its displaced workloads are healthy.

So the forecast and the dry runs take no time between the release of a claim and the next drain. The preparation decides
nothing: before the node takes a claim, its agent reads the lock and the Nodes and evaluates the gates again. The agent
uses the prepared forecast and dry runs only if they are at most a few seconds old, and if Nodes, holders, pods and
budgets have not changed. Otherwise the agent discards the preparation and writes the reason on the Node.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from hashlib import blake2b

from careen.core.decision import Decision
from careen.core.drain import drain_plan
from careen.core.facts import keys
from careen.core.facts.memory import Prepared
from careen.core.facts.observation import Fleet, NodeView, PodView
from careen.core.facts.phases import Evidence
from careen.core.facts.policy import ForecastPolicy, Policy
from careen.core.facts.reasons import Code
from careen.core.facts.times import from_rfc3339, span
from careen.core.gates.drain_forecast import drain_forecast
from careen.core.gates.dry_run import ALLOWED, dry_run
from careen.core.gates.question import When
from careen.core.lock import pauses
from careen.core.lock.content import Entry, LockContent, free_slots
from careen.core.situation import Situation
from careen.core.writing import Status, Stay, stay, want
from scheduler_core.simulation.forecast import Forecast

AHEAD_SECONDS = 5.0  # before the claim is due: a forecast of a large cluster takes about as long
AGAIN_SECONDS = 10.0  # until the node prepares again for the same holder; doubles each time
AGAIN_LIMIT_SECONDS = 60.0
# While another node's claim is younger than this, the next node keeps a process ready for its forecast. If the other
# node takes longer, it does not matter that the start of the process takes a second.
YOUNG_SECONDS = 120.0
AROUND_DUE_SECONDS = 20.0

# The node controller adds and removes it a moment after the cordon, and the cordon itself is compared.
_FOLLOWS_THE_CORDON = "node.kubernetes.io/unschedulable"
_RESTS_ON = (Evidence.FLEET, Evidence.PODS, Evidence.DISRUPTIONS)


def decide(situation: Situation, content: LockContent) -> Decision | None:
    """Return the decision to prepare this node's drain, if the node comes next and another node is about to release its
    claim. Return None otherwise."""
    leaving = _leaving(situation, content)
    if not leaving or not _is_due(situation, content):
        return None
    # Read the Nodes, pods and disruption budgets before the forecast and the dry runs are made. If one of these facts
    # changes in the meantime, `why_not` finds the change.
    if unread := _lacking(situation, _RESTS_ON) or _lacking(situation, _made_of(situation.policy)):
        return want(situation, *unread)
    memory = replace(situation.memory, prepared=_prepared(situation, content, leaving))
    return stay(
        situation.with_memory(memory),
        Status(Code.WAITING_FOR_TURN, "the node is next in line and prepares its drain", is_silent=True),
        Stay(look=pauses.FIRST_LOOK_SECONDS),
    )


def is_near(situation: Situation, content: LockContent) -> bool:
    """Whether this node may soon begin its drain. Only then does the agent start the process that computes forecasts in
    advance, because that process uses memory."""
    if situation.policy.forecast is ForecastPolicy.OFF or not _is_next(situation, content):
        return False
    return any(_is_young(situation, entry) or _is_leaving(situation, entry) for entry in content.entries)


def _is_young(situation: Situation, entry: Entry) -> bool:
    claimed = from_rfc3339(entry.created)
    return claimed is not None and 0 <= (situation.server_now - claimed).total_seconds() < YOUNG_SECONDS


def _is_leaving(situation: Situation, entry: Entry) -> bool:
    """Whether the node with this claim is about to release it: the expected instant of the release, which the claim
    contains, is less than `AROUND_DUE_SECONDS` in the past or in the future. A node far past that instant may keep its
    claim for an hour."""
    due = from_rfc3339(entry.due)
    return due is not None and abs((due - situation.server_now).total_seconds()) < AROUND_DUE_SECONDS


def lacking(situation: Situation) -> tuple[Evidence, ...]:
    """Return the kinds of facts that the agent must still read in this round of its loop before it may use the
    preparation. Return nothing if there is no valid preparation."""
    return _lacking(situation, _RESTS_ON) if why_not(situation) == "" else ()


def used(situation: Situation) -> Situation:
    """Return the situation with the forecast and the dry runs that the agent prepared, if they are still valid. A
    forecast or dry run of this round of the agent's loop is kept. Before the call, the agent must have read the facts
    that `lacking` names."""
    prepared, seen = situation.memory.prepared, situation.seen
    if prepared is None or why_not(situation):
        return situation
    if seen.lacks(Evidence.FORECAST) and prepared.forecast is not None:
        seen = replace(seen, forecast=prepared.forecast)
    if seen.lacks(Evidence.EVICTABILITY):
        seen = replace(seen, evictability=dict.fromkeys(prepared.rehearsed, ALLOWED))
    return replace(situation, seen=seen)


def annotation(situation: Situation) -> dict[str, str | None]:
    """Return the annotation that says whether the prepared forecast and dry runs were used. Without a preparation,
    return the removal of an older annotation, if there is one."""
    prepared, why = situation.memory.prepared, why_not(situation)
    if prepared is None:
        return {keys.PREPARED: None} if keys.PREPARED in situation.node.annotations else {}
    if why:
        return {keys.PREPARED: f"the forecast and the dry runs were thrown away: {why}"}
    age = span(round(situation.seen.uptime - prepared.at))
    return {keys.PREPARED: f"the forecast and the dry runs that were made {age} earlier were used"}


def why_not(situation: Situation) -> str | None:
    """Return why the prepared forecast and dry runs are not valid. The function checks only facts that the agent has
    read in this round of its loop. Return an empty text if there is no such reason, and None if there is no
    preparation."""
    prepared, content = situation.memory.prepared, situation.lock
    if prepared is None:
        return None
    holders = _others(situation, content) if isinstance(content, LockContent) else prepared.holders
    return (
        prepared.refused
        or _why_old(situation, prepared)
        or _why_others(prepared.holders, holders)
        or _why_nodes(situation, prepared)
        or _why_pods(situation, prepared)
        or _why_budgets(situation, prepared)
    )


def _leaving(situation: Situation, content: LockContent) -> frozenset[str]:
    """Return the names of the nodes that are about to release their claims. Return no names if this node is not the one
    that may take a claim next."""
    if not _is_next(situation, content):
        return frozenset()
    return frozenset(
        entry.node
        for entry in content.entries
        if (due := from_rfc3339(entry.due)) is not None
        and (due - situation.server_now).total_seconds() <= AHEAD_SECONDS
    )


def _is_next(situation: Situation, content: LockContent) -> bool:
    """Whether this node is first in the line and may take a claim as soon as another node releases one."""
    is_first = content.line.names[:1] == (situation.node.name,)
    is_full = free_slots(content, situation.policy.concurrency) == 0
    return is_first and is_full and not (content.is_paused or content.failed)


def _is_due(situation: Situation, content: LockContent) -> bool:
    prepared = situation.memory.prepared
    if prepared is None or prepared.found != _others(situation, content):
        return True
    pause = min(AGAIN_SECONDS * 2.0 ** min(prepared.times - 1, 10), AGAIN_LIMIT_SECONDS)
    return situation.seen.uptime - prepared.at >= pause


def _made_of(policy: Policy) -> tuple[Evidence, ...]:
    is_asked = policy.forecast is not ForecastPolicy.OFF
    return (Evidence.FORECAST, Evidence.EVICTABILITY) if is_asked else (Evidence.EVICTABILITY,)


def _lacking(situation: Situation, evidence: Collection[Evidence]) -> tuple[Evidence, ...]:
    return tuple(kind for kind in evidence if situation.seen.lacks(kind))


def _prepared(situation: Situation, content: LockContent, leaving: frozenset[str]) -> Prepared:
    seen, before, others = situation.seen, situation.memory.prepared, _others(situation, content)
    fleet, pods = seen.fleet, _to_evict(situation)
    is_again = before is not None and before.found == others
    return Prepared(
        at=fleet.read_at_uptime if isinstance(fleet, Fleet) else seen.uptime,
        times=before.times + 1 if before is not None and is_again else 1,
        found=others,
        # With several holders, prepare for the first release alone.
        holders=tuple(name for name in others if name not in leaving),
        nodes=_marks(fleet.nodes) if isinstance(fleet, Fleet) else {},
        disruptions=_of_these(seen.disruptions, pods) if isinstance(seen.disruptions, Mapping) else {},
        forecast=seen.forecast if isinstance(seen.forecast, Forecast) else None,
        rehearsed=frozenset(pod.uid for pod in pods),
        refused=_refused(situation),
    )


def _refused(situation: Situation) -> str:
    """Return why this node could not begin its drain now: a fact could not be read, or a gate refuses because of the
    forecast or the dry runs. The preparation is then never used. Return an empty text if the node could begin its
    drain."""
    unknown = [kind for kind in _RESTS_ON if not situation.seen.knows(kind)]
    if unknown:
        unknown_fact = unknown[0]
        return f"the {unknown_fact} could not be read"
    for gate in (drain_forecast, dry_run):
        if refused := gate.ask(situation, When.CLAIMED):
            return refused.sentence
    return ""


def _why_old(situation: Situation, prepared: Prepared) -> str:
    age = situation.seen.uptime - prepared.at
    return f"the preparation is {span(round(age))} old" if age > situation.policy.forecast_max_age_seconds else ""


def _why_others(before: tuple[str, ...], now: tuple[str, ...]) -> str:
    if new_holder := min({*now} - {*before}, default=""):
        return f"{new_holder} holds a claim"
    if former_holder := min({*before} - {*now}, default=""):
        return f"{former_holder} holds no claim any more"
    return ""


def _why_nodes(situation: Situation, prepared: Prepared) -> str:
    fleet = situation.seen.fleet
    if not isinstance(fleet, Fleet):
        return "" if situation.seen.lacks(Evidence.FLEET) else "the Nodes could not be read"
    return _change(prepared.nodes, _marks(fleet.nodes), "the Node")


def _why_pods(situation: Situation, prepared: Prepared) -> str:
    if not isinstance(situation.seen.pods, tuple):
        return "" if situation.seen.lacks(Evidence.PODS) else "the pods of this node could not be read"
    came = [pod.title for pod in _to_evict(situation) if pod.uid not in prepared.rehearsed]
    return f"the pod {came[0]} is new on this node" if came else ""


def _why_budgets(situation: Situation, prepared: Prepared) -> str:
    allowed = situation.seen.disruptions
    if not isinstance(allowed, Mapping):
        return "" if situation.seen.lacks(Evidence.DISRUPTIONS) else "the disruption budgets could not be read"
    pods = _to_evict(situation)
    return _change(_of_these(prepared.disruptions, pods), _of_these(allowed, pods), "the disruption budget")


def _change(before: Mapping[str, object], now: Mapping[str, object], what: str) -> str:
    """Compare the two mappings by name, and return a phrase about the first difference, such as `the Node n2 has
    changed`. Return an empty text if the mappings are equal. `what` is the kind of item, such as `the Node`."""
    changed = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    if not changed:
        return ""
    name = changed[0]
    if name not in before:
        return f"{what} {name} is new"
    return f"{what} {name} is gone" if name not in now else f"{what} {name} has changed"


def _marks(nodes: Collection[NodeView]) -> dict[str, str]:
    return {node.name: _mark(node) for node in nodes}


def _mark(node: NodeView) -> str:
    """Return a digest of the facts about a Node that decide whether pods may move to the node. The digest leaves out
    the label that careen itself changes on nodes that wait for their reboots or are being rebooted."""
    labels = sorted((key, value) for key, value in node.labels.items() if key != keys.REBOOT_LABEL)
    taints = [(each.key, each.effect, each.value) for each in node.taints if each.key != _FOLLOWS_THE_CORDON]
    looked_at = (node.uid, node.ready, node.unschedulable, labels, taints)
    return blake2b(repr(looked_at).encode(), digest_size=8).hexdigest()


def _of_these(allowed: Mapping[str, int], pods: Collection[PodView]) -> dict[str, int]:
    """Return how many evictions each disruption budget in the pods' namespaces allows, by `namespace/name`. The result
    has all budgets of these namespaces, because only the API server decides which budget covers which pod."""
    namespaces = {pod.namespace for pod in pods}
    return {name: count for name, count in allowed.items() if name.partition("/")[0] in namespaces}


def _to_evict(situation: Situation) -> tuple[PodView, ...]:
    pods = situation.seen.pods
    return drain_plan.to_evict(pods, situation.policy.drain) if isinstance(pods, tuple) else ()


def _others(situation: Situation, content: LockContent) -> tuple[str, ...]:
    return tuple(sorted(name for name in content.holders if name != situation.node.name))
