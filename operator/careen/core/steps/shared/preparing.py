"""Prepares the drain of the next node in line, a forecast and a dry-run eviction of each pod, while the holder still
waits until its displaced workloads are healthy: so both take no time between the release and the next drain.

The preparation decides nothing: before the node takes a claim, its agent reads the lock and the Nodes and evaluates the
gates again. It uses the preparation only if that is at most a few seconds old, and Nodes, holders, pods and budgets
have not changed. Otherwise it discards the preparation and writes the reason on the Node.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from hashlib import blake2b

from careen.core.decision import Decision
from careen.core.drain import drain_plan, slow_pods
from careen.core.facts import keys
from careen.core.facts.memory import Prepared
from careen.core.facts.observation import NodeView, PodView, Unknown
from careen.core.facts.phases import Evidence
from careen.core.facts.policy import ForecastPolicy, Policy
from careen.core.facts.reasons import Code
from careen.core.facts.times import from_rfc3339, span
from careen.core.gates.drain_forecast import drain_forecast
from careen.core.gates.dry_run import ALLOWED, dry_run
from careen.core.gates.question import When
from careen.core.lock import pauses
from careen.core.lock.content import Entry, LockContent, free_slots
from careen.core.outcomes import Status, Stay, stay
from careen.core.situation import Situation, known
from scheduler_core.values import replace_value as replace

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
    """Prepare this node's drain, if it comes next and another node is about to release its claim."""
    leaving = _leaving(situation, content)
    if not leaving or not _is_due(situation):
        return None
    # Read these before the forecast and the dry runs are made: `why_not` then finds a change in the meantime.
    situation.need(*_RESTS_ON)
    situation.need(*_made_of(situation.policy))
    situation.remember(prepared=_prepared(situation, leaving))
    return stay(
        situation,
        Status(Code.WAITING_FOR_TURN, "the node is next in line and prepares its drain", is_silent=True),
        Stay(look=pauses.FIRST_LOOK_SECONDS),
    )


def is_near(situation: Situation, content: LockContent) -> bool:
    """Whether this node may soon begin its drain. Only then does the agent start the process that computes forecasts in
    advance: it uses memory."""
    if situation.policy.forecast is ForecastPolicy.OFF or not _is_next(situation, content):
        return False
    now = situation.server_now
    return any(_is_young(entry, now) or _is_leaving(entry, now) for entry in content.entries)


def _is_young(entry: Entry, now: datetime) -> bool:
    claimed = from_rfc3339(entry.created)
    return claimed is not None and 0 <= (now - claimed).total_seconds() < YOUNG_SECONDS


def _is_leaving(entry: Entry, now: datetime) -> bool:
    """Whether the claim's expected release is near, before or behind. A node far past it may keep its claim for an
    hour."""
    due = from_rfc3339(entry.due)
    return due is not None and abs((due - now).total_seconds()) < AROUND_DUE_SECONDS


def lacking(situation: Situation) -> tuple[Evidence, ...]:
    """The facts that the agent must still read before it may use a valid preparation."""
    return tuple(kind for kind in _RESTS_ON if situation.seen.lacks(kind)) if why_not(situation) == "" else ()


def used(situation: Situation) -> Situation:
    """The situation with the forecast and the dry runs of a valid preparation, but those of this turn go first. The
    caller has read what `lacking` names."""
    prepared, seen = situation.memory.prepared, situation.seen
    if prepared is None or why_not(situation):
        return situation
    if seen.lacks(Evidence.FORECAST) and prepared.forecast is not None:
        seen = replace(seen, forecast=prepared.forecast)
    if seen.lacks(Evidence.EVICTABILITY):
        seen = replace(seen, evictability=dict.fromkeys(prepared.rehearsed, ALLOWED))
    return replace(situation, seen=seen)


def annotation(situation: Situation) -> dict[str, str | None]:
    """The annotation that says whether the preparation was used, or its removal without a preparation."""
    prepared, why = situation.memory.prepared, why_not(situation)
    if prepared is None:
        return {keys.PREPARED: None} if keys.PREPARED in situation.node.annotations else {}
    if why:
        return {keys.PREPARED: f"the forecast and the dry runs were thrown away: {why}"}
    age = span(round(situation.seen.uptime - prepared.at))
    return {keys.PREPARED: f"the forecast and the dry runs that were made {age} earlier were used"}


def why_not(situation: Situation) -> str | None:
    """Why the preparation is stale, by this turn's facts; "" if valid, None if there is none."""
    prepared = situation.memory.prepared
    if prepared is None:
        return None
    holders = prepared.holders if situation.content is None else situation.other_holders
    return (
        prepared.refused
        or _why_old(situation, prepared)
        or _why_others(prepared.holders, holders)
        or _why_nodes(situation, prepared)
        or _why_pods(situation, prepared)
        or _why_budgets(situation, prepared)
    )


def _leaving(situation: Situation, content: LockContent) -> frozenset[str]:
    """The nodes that are about to release their claims, if this node may take the next one."""
    if not _is_next(situation, content):
        return frozenset()
    return frozenset(
        entry.node
        for entry in content.entries
        if (due := from_rfc3339(entry.due)) is not None
        and (due - situation.server_now).total_seconds() <= AHEAD_SECONDS
    )


def _is_next(situation: Situation, content: LockContent) -> bool:
    """Whether this node may take a claim as soon as another node releases one."""
    is_first = content.line.names[:1] == (situation.node.name,)
    is_full = free_slots(content, situation.policy.concurrency) == 0
    return is_first and is_full and not (content.is_paused or content.failed)


def _is_due(situation: Situation) -> bool:
    prepared = situation.memory.prepared
    if prepared is None or prepared.found != situation.other_holders:
        return True
    pause = min(AGAIN_SECONDS * 2.0 ** min(prepared.times - 1, 10), AGAIN_LIMIT_SECONDS)
    return situation.seen.uptime - prepared.at >= pause


def _made_of(policy: Policy) -> tuple[Evidence, ...]:
    is_asked = policy.forecast is not ForecastPolicy.OFF
    return (Evidence.FORECAST, Evidence.EVICTABILITY) if is_asked else (Evidence.EVICTABILITY,)


def _prepared(situation: Situation, leaving: frozenset[str]) -> Prepared:
    seen, before, others = situation.seen, situation.memory.prepared, situation.other_holders
    fleet, pods = known(seen.fleet), _to_evict(situation)
    is_again = before is not None and before.found == others
    return Prepared(
        at=seen.uptime if fleet is None else fleet.read_at_uptime,
        times=before.times + 1 if before is not None and is_again else 1,
        found=others,
        # With several holders, prepare for the first release alone.
        holders=tuple(name for name in others if name not in leaving),
        nodes={} if fleet is None else _marks(fleet.nodes),
        disruptions=_of_these(known(seen.disruptions) or {}, pods),
        forecast=known(seen.forecast),
        rehearsed=frozenset(pod.uid for pod in pods),
        refused=_refused(situation),
    )


def _refused(situation: Situation) -> str:
    """Why this node could not begin its drain now, so that the preparation is never used; "" if it could."""
    unknown = [kind for kind in _RESTS_ON if not situation.seen.knows(kind)]
    if unknown:
        unknown_fact = unknown[0]
        return f"the {unknown_fact} could not be read"
    for gate in (drain_forecast, dry_run):
        if refused := gate.ask(situation, When.CLAIMED):
            return refused.sentence
    if slow := slow_pods.found(situation):
        return f"the eviction of {slow[0].title} is refused now"  # the cordon records why: only a dry run knows
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
    if isinstance(situation.seen.fleet, Unknown):
        return "the Nodes could not be read"
    fleet = known(situation.seen.fleet)
    return "" if fleet is None else _change(prepared.nodes, _marks(fleet.nodes), "the Node")


def _why_pods(situation: Situation, prepared: Prepared) -> str:
    if isinstance(situation.seen.pods, Unknown):
        return "the pods of this node could not be read"
    came = [pod.title for pod in _to_evict(situation) if pod.uid not in prepared.rehearsed]
    return f"the pod {came[0]} is new on this node" if came else ""


def _why_budgets(situation: Situation, prepared: Prepared) -> str:
    if isinstance(situation.seen.disruptions, Unknown):
        return "the disruption budgets could not be read"
    allowed, pods = known(situation.seen.disruptions), _to_evict(situation)
    if allowed is None:
        return ""
    return _change(_of_these(prepared.disruptions, pods), _of_these(allowed, pods), "the disruption budget")


def _change(before: Mapping[str, object], now: Mapping[str, object], what: str) -> str:
    """A phrase about the first difference, such as `the Node n2 has changed`; "" without one."""
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
    """A digest of what decides whether pods may move to the node, without the label that careen itself changes."""
    labels = sorted((key, value) for key, value in node.labels.items() if key != keys.REBOOT_LABEL)
    taints = [(each.key, each.effect, each.value) for each in node.taints if each.key != _FOLLOWS_THE_CORDON]
    looked_at = (node.uid, node.ready, node.unschedulable, labels, taints)
    return blake2b(repr(looked_at).encode(), digest_size=8).hexdigest()


def _of_these(allowed: Mapping[str, int], pods: Collection[PodView]) -> dict[str, int]:
    """All budgets of the pods' namespaces: only the API server decides which budget covers which pod."""
    namespaces = {pod.namespace for pod in pods}
    return {name: count for name, count in allowed.items() if name.partition("/")[0] in namespaces}


def _to_evict(situation: Situation) -> tuple[PodView, ...]:
    return drain_plan.to_evict(known(situation.seen.pods) or (), situation.policy.drain)
