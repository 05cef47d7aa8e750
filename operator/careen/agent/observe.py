"""Reads the evidence that a decision asks for, and no other. What cannot be read becomes `Unknown`.

What is read, how often and in which order is decided in `core/facts/phases.py` and `core/steps/`.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from careen.agent.few_at_a_time import all_or_none
from careen.agent.need_watch import NeedWatch
from careen.agent.self_test import SelfTests
from careen.cluster.agents_nodes import AgentsNodes
from careen.cluster.evictions import Evicted, allowed_disruptions, closed_budgets, evict
from careen.cluster.foreign import find_foreign
from careen.cluster.lock_store import LockStore
from careen.cluster.nodes import count_nodes, list_nodes, read_node
from careen.cluster.pods import list_blocking_pods, list_pods_on, owners_of, read_owners
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.errors import ClusterError
from careen.cluster.workloads import health
from careen.core.actions import EvictPod
from careen.core.drain import baseline, drain_plan
from careen.core.facts import keys
from careen.core.facts.memory import EvictAnswer, Memory
from careen.core.facts.observation import (
    Asked,
    Chance,
    DryRunAnswer,
    Evictable,
    Fleet,
    Gone,
    Holders,
    NeedAnswer,
    NodeView,
    NotAsked,
    Unknown,
)
from careen.core.facts.phases import ROW, Evidence, Phase
from careen.core.facts.policy import Policy
from careen.core.facts.progress import OwnerHealth, Progress
from careen.core.facts.times import from_rfc3339
from careen.core.lock.content import LockContent
from careen.core.lock.reading import LockReading
from careen.core.observation import Observation
from careen.core.people import requests
from careen.host.node_host import Host
from careen.settings import matching
from scheduler_core.simulation.forecast import Forecast
from scheduler_core.values import Value

if TYPE_CHECKING:
    from careen.services.prometheus import AlertSource, MetricSource

T = TypeVar("T")


# Turns that advance a node follow each other within milliseconds. So a turn may use the Node and the lock as the last
# turn left them. A write based on an outdated Node does no harm: it carries the Node's version and conflicts. But an
# eviction carries no version, and a hold must take effect; so the copies must not be older than this.
_ANSWER_SECONDS = 1.0

# Installing another coordinator takes longer. So right after the claim, the answer from right before it counts. Before
# the reboot the agent always asks again.
_FOREIGN_SECONDS = 2.0

DRY_RUNS_SECONDS = 60.0
"""After this time no further dry-run eviction begins. Otherwise a node with 110 pods and a webhook that takes 8 s would
keep its claim for a quarter of an hour."""
# Dry runs move nothing, so their order is free; half of the client's threads stay available.
_DRY_RUNS_AT_ONCE = 4


class Forecaster(Protocol):
    """Simulates the drain of a node."""

    async def forecast(self, node: str) -> Forecast | Unknown:
        """Where each pod of the drained node would land, or why that is unknown."""
        ...


class Senses(Value, kw_only=True):
    """What an `Observer` needs. `alerts` and `metrics` are called for each read, because the URLs can change while the
    agent runs."""

    node_name: str
    daemonset_namespace: str
    daemonset_name: str
    api: ClusterApi
    host: Host
    need: NeedWatch
    self_tests: SelfTests
    lock: LockStore
    forecaster: Forecaster
    alerts: Callable[[], AlertSource | None]
    metrics: Callable[[], MetricSource | None] = lambda: None
    chance: Callable[[], float]


class Observer:
    """Collects the facts for a decision. Keeps the last reading of the own Node: an idle agent need not read it in each
    turn."""

    def __init__(self, senses: Senses) -> None:
        self._senses = senses
        self._nodes = AgentsNodes(
            senses.api, own=senses.node_name, namespace=senses.daemonset_namespace, daemonset=senses.daemonset_name
        )
        self._node: NodeView | None = None
        self._node_read_at = 0.0
        self._is_answer = False
        self._known_lock: tuple[LockReading, float] | None = None
        self._known_foreign: tuple[dict[str, Any], float] | None = None
        self._passes_lock_on = False
        self._gather: dict[Evidence, Callable[[Observation, Policy], Awaitable[dict[str, Any]]]] = {
            Evidence.NODE: self._fresh_node,
            Evidence.BOOT_ID: self._boot_id,
            Evidence.NEED: self._need,
            Evidence.SELF_TEST: self._self_test,
            Evidence.LOCK: self._lock,
            Evidence.PEERS: self._peers,
            Evidence.HOLDERS: self._holders,
            Evidence.WAITERS: self._waiters,
            Evidence.CROWD: self._crowd,
            Evidence.FLEET: self._fleet,
            Evidence.PODS: self._pods,
            Evidence.DISRUPTIONS: self._disruptions,
            Evidence.ALERTS: self._alerts,
            Evidence.BLOCKERS: self._blockers,
            Evidence.QUERIES: self._queries,
            Evidence.READYZ: self._readyz,
            Evidence.FOREIGN: self._foreign,
            Evidence.FORECAST: self._forecast,
            Evidence.EVICTABILITY: self._evictability,
            Evidence.OWNERS: self._owners,
            Evidence.VOLUMES: self._volumes,
        }

    async def begin(self, memory: Memory, phase: Phase, policy: Policy) -> Observation:
        """What each turn begins with: the own Node, the boot id, the need, and the evidence of the recorded phase
        (`core/facts/phases.py`).

        `phase`, the phase after the last turn, determines how old the copy of the Node may be.
        """
        senses = self._senses
        need = await senses.need.read()
        # After a new need the Node is read again, because the taint's patch would otherwise conflict.
        is_news = phase is Phase.IDLE and need.answer is not NeedAnswer.NO
        node = await self._own_node(0.0 if is_news else self._node_max_age_seconds(phase))
        if requests.asks_for_recheck(node):
            senses.need.forget()  # the request is removed in this turn; the next one runs the commands
        skew = senses.api.clock_skew_seconds
        seen = Observation(
            now=senses.api.clock.now(),
            uptime=senses.host.uptime(),
            chance=Chance(claim_id=secrets.token_hex(8), jitter=senses.chance()),
            memory=memory,
            clock_skew_seconds=Unknown("the API server has not sent its time yet") if skew is None else skew,
            node=node,
            boot_id=senses.host.read_boot_id(),
            need=need,
        )
        kinds, passed_on = ROW[_recorded_phase(node)].evidence - _GIVEN, self._lock_passed_on()
        if passed_on is not None and Evidence.LOCK in kinds:
            kinds, seen = kinds - {Evidence.LOCK}, replace(seen, lock=passed_on)
        return await self.add(seen, kinds, policy)

    async def add(self, seen: Observation, wanted: Iterable[Evidence], policy: Policy) -> Observation:
        """Adds these kinds of evidence in the order of the enumeration `Evidence`: the lock before its holders."""
        kinds = set(wanted)
        # One list of all Nodes includes the holders; like a read of the holders, it follows the read of the lock.
        reads_all = {Evidence.PEERS, Evidence.FLEET} <= kinds
        for evidence in sorted(kinds - ({Evidence.PEERS} if reads_all else set()), key=list(Evidence).index):
            seen = replace(seen, **await self._gather[evidence](seen, policy))
        if reads_all:
            seen = replace(seen, peers=_peers_among(seen.fleet))
        skew = self._senses.api.clock_skew_seconds
        return replace(
            seen,
            now=self._senses.api.clock.now(),
            uptime=self._senses.host.uptime(),
            owners_at=self._senses.host.uptime() if Evidence.OWNERS in kinds else seen.owners_at,
            clock_skew_seconds=seen.clock_skew_seconds if skew is None else skew,
        )

    def saw_node(self, node: NodeView | None, written_at: float) -> None:
        """Stores the Node from the response to the agent's write, and when the write began. None: the next turn reads
        the Node."""
        self._node, self._node_read_at, self._is_answer = node, written_at, node is not None

    def saw_lock(self, reading: LockReading, written_at: float) -> None:
        """Stores the lock from the response to the agent's write, and when the write began. The stored Node stays
        valid."""
        self._known_lock, self._is_answer = (reading, written_at), self._node is not None

    def moves_on(self) -> None:
        """This turn wrote something: the next follows within milliseconds and need not read the lock."""
        self._passes_lock_on = True

    def _lock_passed_on(self) -> LockReading | None:
        """The lock as the last turn read or wrote it; None if that was too long ago. Before a cordon or a reboot the
        lock is always read."""
        passes, self._passes_lock_on = self._passes_lock_on, False
        if self._known_lock is None or not passes:
            return None
        reading, known_at = self._known_lock
        return reading if self._senses.api.clock.monotonic() - known_at < _ANSWER_SECONDS else None

    def _node_max_age_seconds(self, phase: Phase) -> float:
        """If the last turn wrote the Node, the response to the write may replace a new read."""
        allowed = max(ROW[phase].node_max_age_seconds, _ANSWER_SECONDS if self._is_answer else 0.0)
        self._is_answer = False
        return allowed

    async def _own_node(self, max_age_seconds: float) -> NodeView | Gone | Unknown:
        now = self._senses.api.clock.monotonic()
        if self._node is not None and now - self._node_read_at < max_age_seconds:
            return self._node
        node = await _known(read_node(self._senses.api, self._senses.node_name))
        # The age counts from the request.
        self._node, self._node_read_at = (node if isinstance(node, NodeView) else None), now
        return node

    async def _fresh_node(self, _seen: Observation, _policy: Policy) -> dict[str, Any]:
        return {"node": await self._own_node(0.0)}

    async def _boot_id(self, _seen: Observation, _policy: Policy) -> dict[str, Any]:
        return {"boot_id": self._senses.host.read_boot_id()}

    async def _need(self, _seen: Observation, _policy: Policy) -> dict[str, Any]:
        return {"need": await self._senses.need.read()}

    async def _self_test(self, _seen: Observation, _policy: Policy) -> dict[str, Any]:
        return {"self_test": await self._senses.self_tests.read()}

    async def _lock(self, _seen: Observation, _policy: Policy) -> dict[str, Any]:
        asked_at = self._senses.api.clock.monotonic()
        reading = await _known(self._senses.lock.read())
        self._known_lock = None if isinstance(reading, Unknown) else (reading, asked_at)
        return {"lock": reading}

    async def _peers(self, _seen: Observation, _policy: Policy) -> dict[str, Any]:
        return {"peers": await _known(self._nodes.read(reboot_label=_OF_PEERS))}

    async def _waiters(self, _seen: Observation, _policy: Policy) -> dict[str, Any]:
        return {"waiters": await _known(self._nodes.read(reboot_label=("ready", "required")))}

    async def _crowd(self, _seen: Observation, _policy: Policy) -> dict[str, Any]:
        counted = count_nodes(self._senses.api, reboot_label=("ready", "required"), most=_MOST_COUNTED)
        return {"crowd": await _known(counted)}

    async def _holders(self, seen: Observation, policy: Policy) -> dict[str, Any]:
        """Reads the holders' Nodes, always after the lock: an earlier read would not prove that a holder's Node is
        gone."""
        if isinstance(seen.lock, NotAsked):
            seen = replace(seen, **await self._lock(seen, policy))
        content = seen.lock.content if isinstance(seen.lock, LockReading) else None
        if not isinstance(content, LockContent):
            return {
                "lock": seen.lock,
                "holders": Unknown("the content of the lock is unknown, so it is also unknown which nodes hold claims"),
            }
        return {"lock": seen.lock, "holders": await _known(self._read_holders(content.nodes))}

    async def _read_holders(self, names: Iterable[str]) -> Holders:
        wanted = list(names)
        if len(wanted) > _SINGLE_READS and self._nodes.may_be_listed:
            every = {node.name: node for node in await list_nodes(self._senses.api)}
            return Holders(
                nodes=tuple(every[name] for name in wanted if name in every), absent=frozenset(wanted) - every.keys()
            )
        found = await asyncio.gather(*(read_node(self._senses.api, name) for name in wanted))
        return Holders(
            nodes=tuple(node for node in found if isinstance(node, NodeView)),
            absent=frozenset(name for name, node in zip(wanted, found, strict=True) if isinstance(node, Gone)),
        )

    async def _fleet(self, _seen: Observation, _policy: Policy) -> dict[str, Any]:
        asked_at = self._senses.host.uptime()
        nodes = await _known(self._nodes.read())
        return {"fleet": nodes if isinstance(nodes, Unknown) else Fleet(nodes=nodes, read_at_uptime=asked_at)}

    async def _pods(self, _seen: Observation, _policy: Policy) -> dict[str, Any]:
        return {"pods": await _known(list_pods_on(self._senses.api, self._senses.node_name))}

    async def _disruptions(self, _seen: Observation, _policy: Policy) -> dict[str, Any]:
        return {"disruptions": await _known(allowed_disruptions(self._senses.api))}

    async def _alerts(self, _seen: Observation, policy: Policy) -> dict[str, Any]:
        source = self._senses.alerts()
        found = () if source is None else await source.active_alerts()
        return {"alerts": await matching.of_alerts(found, policy.alerts)}

    async def _blockers(self, _seen: Observation, policy: Policy) -> dict[str, Any]:
        return {"blockers": await _known(list_blocking_pods(self._senses.api, policy.blocking_pods))}

    async def _queries(self, _seen: Observation, policy: Policy) -> dict[str, Any]:
        if not policy.health_queries:
            return {"queries": {}}
        source = self._senses.metrics()
        if source is None:
            return {"queries": Unknown("no Prometheus is configured: --prometheus-url is missing")}
        answers = await asyncio.gather(
            *(source.samples(each.query, fresh_seconds=each.fresh_seconds) for each in policy.health_queries)
        )
        return {"queries": await matching.of_samples(answers, policy.health_queries)}

    async def _readyz(self, seen: Observation, _policy: Policy) -> dict[str, Any]:
        if not isinstance(seen.node, NodeView) or not seen.node.is_control_plane:
            return {"readyz": ()}
        from careen.services.api_readiness import failing_checks  # only nodes of the control plane ask

        return {"readyz": await _known(failing_checks(self._senses.api))}

    async def _foreign(self, seen: Observation, _policy: Policy) -> dict[str, Any]:
        senses, asked_at = self._senses, self._senses.api.clock.monotonic()
        if self._known_foreign is not None and _recorded_phase(seen.node) is Phase.CLAIMING:
            found, known_at = self._known_foreign
            if asked_at - known_at < _FOREIGN_SECONDS:
                return found
        answer = await _known(
            find_foreign(senses.api, namespace=senses.daemonset_namespace, name=senses.daemonset_name)
        )
        found = {"foreign": answer}
        self._known_foreign = None if isinstance(answer, Unknown) else (found, asked_at)
        return found

    async def _forecast(self, _seen: Observation, _policy: Policy) -> dict[str, Any]:
        return {"forecast": await self._senses.forecaster.forecast(self._senses.node_name)}

    async def _evictability(self, seen: Observation, policy: Policy) -> dict[str, Any]:
        """Dry-run evictions of all pods that a drain would evict, a few at a time; unknown for a pod that was not tried
        in time."""
        seen = await self._with_pods(seen, policy)
        if not isinstance(seen.pods, tuple):
            return {"pods": seen.pods, "evictability": Unknown("the pods of this node are not known")}
        pods = drain_plan.to_evict(seen.pods, policy.drain)
        clock, waiting = self._senses.api.clock, iter(pods)
        until = clock.monotonic() + DRY_RUNS_SECONDS
        answers = {pod.uid: _NOT_TRIED for pod in pods}

        async def one_after_another() -> None:
            for pod in waiting:
                request = EvictPod(
                    namespace=pod.namespace, name=pod.name, uid=pod.uid, grace_seconds=policy.drain.grace_seconds
                )
                answers[pod.uid] = _dry_run(await evict(self._senses.api, request, dry_run=True))
                if clock.monotonic() >= until:
                    return

        few = min(max(policy.drain.parallel, _DRY_RUNS_AT_ONCE), len(pods))
        await all_or_none(one_after_another() for _ in range(few))
        closed = [pod for pod in pods if answers[pod.uid].answer is Evictable.BUDGET]
        if closed and not isinstance(why := await _known(closed_budgets(self._senses.api, closed)), Unknown):
            answers |= {uid: replace(answers[uid], closed=each) for uid, each in why.items()}
        return {"pods": seen.pods, "evictability": answers}

    async def _owners(self, seen: Observation, policy: Policy) -> dict[str, Any]:
        """The health of the controllers that matter now: before the claim, those that may have bound their pods to this
        node without a scheduler; until the node is empty, those of the pods to evict; then those in the record, also
        after the drain's undo; after the boot, the record's DaemonSets."""
        record, phase = seen.node.written if isinstance(seen.node, NodeView) else None, _recorded_phase(seen.node)
        has_baseline = phase not in _BEFORE_THE_DRAIN or (isinstance(record, Progress) and bool(record.owners))
        if has_baseline and phase is not Phase.DRAINING and isinstance(record, Progress):
            return {"owners": await _known(self._recorded_owners(seen, record, phase))}
        seen = await self._with_pods(seen, policy)
        if not isinstance(seen.pods, tuple):
            return {"pods": seen.pods, "owners": Unknown("the pods of this node are not known")}
        if phase not in (Phase.CLAIMING, Phase.DRAINING):
            suspects = owners_of(drain_plan.may_be_bound(seen.pods, policy.drain))
            return {"pods": seen.pods, "owners": await _known(read_owners(self._senses.api, suspects))}
        return {
            "pods": seen.pods,
            "owners": await _known(health.read_now(self._senses.api, drain_plan.to_evict(seen.pods, policy.drain))),
        }

    async def _recorded_owners(self, seen: Observation, record: Progress, phase: Phase) -> tuple[OwnerHealth, ...]:
        if phase is Phase.VERIFYING and isinstance(node := seen.node, NodeView):
            from careen.cluster.workloads.daemon_sets import read_daemon_sets  # rare, and it loads the manifests

            return await read_daemon_sets(self._senses.api, baseline.daemon_sets(record.owners), node)
        since = from_rfc3339(record.drain_started_at)
        return await health.read_again(self._senses.api, baseline.compared(record.owners), since=since)

    async def _volumes(self, seen: Observation, policy: Policy) -> dict[str, Any]:
        from careen.cluster.workloads.volumes import read_attached  # most agents never ask

        seen = await self._with_pods(seen, policy)
        if not isinstance(seen.pods, tuple):
            return {"pods": seen.pods, "volumes": Unknown("the pods of this node are not known")}
        attached = read_attached(self._senses.api, self._senses.node_name, staying=seen.pods)
        return {"pods": seen.pods, "volumes": await _known(attached)}

    async def _with_pods(self, seen: Observation, policy: Policy) -> Observation:
        return replace(seen, **await self._pods(seen, policy)) if isinstance(seen.pods, NotAsked) else seen


# With more holders one list is cheaper; whatever the lock contains, no turn sends thousands of requests.
_SINGLE_READS = 20
_MOST_COUNTED = 100  # waiting Nodes on the one page that the agent requests; a greater number stays unknown
_BEFORE_THE_DRAIN = frozenset({Phase.IDLE, Phase.WAITING, Phase.CLAIMING})
_GIVEN = frozenset({Evidence.NODE, Evidence.BOOT_ID, Evidence.NEED})
_OF_PEERS = ("in-progress", "failed")


def _peers_among(fleet: Asked[Fleet]) -> Asked[tuple[NodeView, ...]]:
    if not isinstance(fleet, Fleet):
        return fleet
    return tuple(node for node in fleet.nodes if node.labels.get(keys.REBOOT_LABEL) in _OF_PEERS)


def _recorded_phase(node: NodeView | Gone | Unknown) -> Phase:
    """Idle if the record is unreadable: nothing more is collected in Idle, and `careen.core` reports the record."""
    record = node.written if isinstance(node, NodeView) else None
    try:
        return Phase(record.phase) if isinstance(record, Progress) and record.phase else Phase.IDLE
    except ValueError:
        return Phase.IDLE


async def _known(question: Awaitable[T]) -> T | Unknown:
    """The answer, or `Unknown` with the error."""
    try:
        return await question
    except ClusterError as error:
        return Unknown(str(error))


_EVICTABLE = {
    EvictAnswer.ACCEPTED: Evictable.ALLOWED,
    EvictAnswer.GONE: Evictable.GONE,
    EvictAnswer.BUDGET: Evictable.BUDGET,
    EvictAnswer.DENIED: Evictable.DENIED,
    EvictAnswer.BARRED: Evictable.BARRED,
    EvictAnswer.UNCLEAR: Evictable.UNKNOWN,
}


_NOT_TRIED = DryRunAnswer(
    answer=Evictable.UNKNOWN,
    detail=f"this eviction was not tried, because earlier dry runs took longer than {DRY_RUNS_SECONDS:.0f} s",
)


def _dry_run(evicted: Evicted) -> DryRunAnswer:
    return DryRunAnswer(answer=_EVICTABLE[evicted.answer], detail=evicted.detail)
