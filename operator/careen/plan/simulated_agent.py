"""Takes the turns of one simulated agent: `core/decide.py` decides, and the decision changes copies of the agent's
Node, of its memory and of the lock.

A plan knows the nodes, the lock, the clock and, once it is made, the forecast of the drain. Every other fact is given
as all-clear, and `unforeseen` lists it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from careen.core.actions import PatchNode, WriteLock
from careen.core.decide import decide
from careen.core.decision import Decision
from careen.core.facts import keys
from careen.core.facts.memory import HolderCheck, Memory
from careen.core.facts.observation import (
    Chance,
    DryRunAnswer,
    Evictable,
    Fleet,
    Need,
    NeedAnswer,
    NodeView,
    PodView,
    SelfTest,
    Unknown,
)
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.policy import BlockingScope, Policy
from careen.core.facts.progress import Mark, OwnerHealth, Progress, to_annotation
from careen.core.gates import GATES
from careen.core.lock import notation
from careen.core.lock.content import LockContent
from careen.core.lock.reading import LockReading
from careen.core.observation import Observation
from scheduler_core.simulation.forecast import Forecast, Outcome, PodForecast
from scheduler_core.values import Value, replace_value

ALL_CLEAR: Final[Mapping[Evidence, tuple[object, str]]] = {
    Evidence.SELF_TEST: (SelfTest(), "hosts that cannot reboot"),
    Evidence.FOREIGN: ((), "other reboot coordinators"),
    Evidence.BLOCKERS: ((), "pods that block the reboots of a group or of the cluster (--blocking-pods)"),
    Evidence.READYZ: ((), "API servers that are not ready"),
    Evidence.ALERTS: ((), "alerts"),
    Evidence.VOLUMES: ((), "volumes that stay attached"),
    Evidence.QUERIES: ({}, "the health queries"),
}
"""What a plan gives for the evidence that it cannot know, and what it therefore does not foresee."""

_NEVER_HAPPENS: Final = (
    "nodes that fail",
    "hosts that cannot be read, hosts with a wrong clock, package managers at work on hosts",
    "settings that become unusable",
    "hosts that ask for another reboot after a reboot",
)

_MOST_TURNS: Final = 10  # from the line to the cordon, an agent needs three
_OF_THE_DRAIN: Final = frozenset({Evidence.FORECAST, Evidence.EVICTABILITY})
_RESTS: Final = frozenset({Phase.DRAINING, Phase.REBOOTING, Phase.IDLE})
_OLD_BOOT, _NEW_BOOT, _NEVER = "old", "new", float("inf")


class SimulatedAgent(Value, kw_only=True):
    """A simulated agent: the Node as the agent left it, and the memory of its process."""

    node: NodeView
    memory: Memory
    boot: str = _OLD_BOOT

    @classmethod
    def waiting(cls, node: NodeView) -> SimulatedAgent:
        """With a memory in which the pods are counted and no check of the holders is due, because the plan itself does
        both."""
        check = HolderCheck(at=_NEVER, holders_not_before=_NEVER)
        return cls(node=node, memory=Memory(node_uid=node.uid, moves_counted_at=_NEVER, holder_check=check))

    @property
    def record(self) -> Progress:
        """The agent's record on the Node, which is always readable: the plan has written the first one."""
        assert isinstance(self.node.written, Progress)
        return self.node.written

    def settled(self) -> SimulatedAgent:
        """The agent's new process after the reboot, once the workloads are healthy: a plan foresees no failure between
        the reboot and the release of the claim."""
        settling = replace_value(self.record, phase=Phase.SETTLING, verify_started=Mark(boot=_NEW_BOOT, uptime=0.0))
        annotations = {**self.node.annotations, keys.PROGRESS: to_annotation(settling)}
        node = replace_value(self.node, annotations=annotations)
        return SimulatedAgent(node=node, memory=Memory(node_uid=node.uid), boot=_NEW_BOOT)


class Stand(Value, kw_only=True):
    """What the turns of one instant led to. `claimed` is the agent when it had taken its claim in these turns."""

    agent: SimulatedAgent
    content: LockContent
    decision: Decision
    claimed: SimulatedAgent | None = None


def unforeseen(policy: Policy) -> tuple[str, ...]:
    """What the plan gives as all-clear; each text completes the sentence "a plan does not foresee …"."""
    wanted = {kind for gate in GATES for kind in gate.needs(policy)}
    is_blocked = policy.blocking_pod_selectors or any(
        each.scope is BlockingScope.NODE and not each.is_lost for each in policy.blocking_pods
    )
    pods = "pods that block the reboot of their node (--blocking-pod-selector, --blocking-pods)"
    told = (what for kind, (_, what) in ALL_CLEAR.items() if kind in wanted)
    return (*_NEVER_HAPPENS, *((pods,) if is_blocked else ()), *told)


def simulated(policy: Policy) -> Policy:
    """The policy of the simulated agents: without the pauses, which are durations of the simulation, and without rules
    about facts that a plan cannot know. Forecasts already leave out the pods that --drain-pod-selector leaves out."""
    return replace_value(
        policy,
        drain=replace_value(policy.drain, selector=None, delay_seconds=0.0),
        taint_key=None,
        protect_from_autoscalers=False,
        reboot_delay_seconds=0.0,
        lock_release_delay_seconds=0.0,
        stable_boot_seconds=0.0,
        health_queries=(),
        blocking_pods=tuple(each for each in policy.blocking_pods if each.is_lost),
        blocking_pod_selectors=(),
        settings_problem="",
    )


def turns(agent: SimulatedAgent, content: LockContent, policy: Policy, facts: Mapping[str, Any]) -> Stand:
    """The agent's turns at one instant, until it waits: for a gate, for the drain, for the host or for a forecast.

    `facts` are those of `facts_at`, and also those of `facts_of` if the forecast was made.
    """
    claimed = None
    for _ in range(_MOST_TURNS):
        phase = agent.record.phase
        reading = LockReading(content=content, text=None, resource_version="", daemonset_uid="")
        need = Need(answer=NeedAnswer.YES if agent.boot == _OLD_BOOT else NeedAnswer.NO)
        seen = Observation(
            node=agent.node,
            memory=agent.memory,
            boot_id=agent.boot,
            need=need,
            lock=reading,
            chance=Chance(claim_id=agent.node.name, jitter=0.0),
            **facts,
        )
        decision = decide(seen, policy)
        if decision.wants:
            assert decision.wants <= _OF_THE_DRAIN - facts.keys(), f"a plan cannot tell {sorted(decision.wants)}"
            break
        agent, content = _applied(agent, content, decision)
        if decision.phase is Phase.CLAIMING and content.entries_of(agent.node.name):
            claimed = agent
        is_waiting = decision.phase == phase and decision.look_again_seconds > 0
        if decision.refusals or decision.phase in _RESTS or is_waiting:
            break
    return Stand(agent=agent, content=content, decision=decision, claimed=claimed)


def facts_at(at: datetime, fleet: Fleet) -> dict[str, Any]:
    """The facts of one instant that are the same for all agents, by the fields of an observation."""
    return {**_CONSTANT, "now": at, "uptime": fleet.read_at_uptime, "fleet": fleet}


def facts_of(forecast: Forecast, node: str) -> dict[str, Any]:
    """The facts about one node's drain that the forecast tells, by the fields of an observation."""
    return {
        "forecast": forecast,
        "pods": tuple(_pods(forecast)),
        "evictability": {pod.uid: _answer(pod) for pod in forecast.pods},
        "owners": tuple(_binding_owner(pod, node) for pod in forecast.pods if pod.is_bound),
    }


_CONSTANT: Final[Mapping[str, Any]] = {
    **{kind.value.replace("-", "_"): value for kind, (value, _) in ALL_CLEAR.items()},
    "clock_skew_seconds": 0.0,
    "peers": (),
    "waiters": Unknown("the plan itself names the next nodes"),
    "disruptions": {},
    "pods": (),
    "owners": (),
}


def _applied(agent: SimulatedAgent, content: LockContent, decision: Decision) -> tuple[SimulatedAgent, LockContent]:
    node = agent.node
    for action in decision.actions:
        if isinstance(action, PatchNode):
            node = _patched(node, action)
        elif isinstance(action, WriteLock):
            written = notation.parse(action.content)
            assert isinstance(written, LockContent)
            content = written
    return replace_value(agent, node=node, memory=decision.memory), content


def _patched(node: NodeView, patch: PatchNode) -> NodeView:
    is_cordoned = node.unschedulable if patch.unschedulable is None else patch.unschedulable
    return replace_value(
        node,
        labels=_merged(node.labels, patch.labels),
        annotations=_merged(node.annotations, patch.annotations),
        unschedulable=is_cordoned,
        cordoned_by=(keys.FIELD_MANAGER,) if is_cordoned and not node.unschedulable else node.cordoned_by,
    )


def _merged(before: Mapping[str, str], change: Mapping[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in {**before, **change}.items() if value is not None}


def _pods(forecast: Forecast) -> Iterator[PodView]:
    for pod in forecast.pods:
        if pod.is_bound:
            kind, _, _ = pod.owner.partition(" ")
            yield PodView(
                namespace=pod.namespace,
                name=pod.name,
                uid=pod.uid,
                owner_kind=kind,
                owner_uid=pod.owner,
                came_bound=True,
            )
        elif pod.outcome is not Outcome.STAYS:
            key, _, value = pod.wants_rest.partition("=")
            annotations = {key: value} if key else {}
            yield PodView(namespace=pod.namespace, name=pod.name, uid=pod.uid, annotations=annotations)


def _binding_owner(pod: PodForecast, node: str) -> OwnerHealth:
    """The controller that the forecast names as text, such as "ReplicaSet shop/cart-5d9"."""
    kind, _, rest = pod.owner.partition(" ")
    namespace, _, name = rest.partition("/")
    return OwnerHealth(
        kind=kind, namespace=namespace, name=name, uid=pod.owner, generation=0, replicas=0, ready=0, bound_to=node
    )


def _answer(pod: PodForecast) -> DryRunAnswer:
    if pod.outcome is Outcome.BLOCKED and pod.opens is None:
        return DryRunAnswer(answer=Evictable.BUDGET, detail=pod.sentence)
    return DryRunAnswer(answer=Evictable.ALLOWED)
