"""The next steps that a small fleet can take: a turn, one action of a turn, a fault, an act of a person, or time.

In a turn, production's `decide` gets all facts as they are at one instant. Each write of a turn is a separate step, so
steps of other agents come between. A write may be lost, take effect late, or be its sender's last action. Steps that
are due at one time come in every order. Time advances when no agent can act. An agent's next turn begins exactly when
it chose, unless a fault delays it.

The rules are checked step by step and not over a journal: the search merges the ways that lead to one state."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Any, NamedTuple

from careen.core.actions import Action, AskReboot, ConfirmClaim, Evict, PatchNode, WriteLock
from careen.core.decide import decide
from careen.core.facts import keys
from careen.core.facts import memory as memories
from careen.core.facts.memory import Memory, RebootOutcome
from careen.core.facts.observation import Chance, Gone, Holders, Need, NeedAnswer, NodeView, SelfTest
from careen.core.facts.observation import (
    Fleet as FleetReading,
)
from careen.core.facts.phases import ROW, Evidence, Phase
from careen.core.facts.policy import Policy
from careen.core.lock import changes, notation
from careen.core.lock import content as lock
from careen.core.lock.reading import LockReading
from careen.core.observation import Observation
from careen.core.people import asleep
from scheduler_core.simulation.forecast import Forecast
from tests.careen.explored.state import (
    NEVER,
    Agent,
    Host,
    Late,
    Node,
    State,
    Tables,
    boot_id,
    content_of,
    merged,
    put,
)

START = datetime(2026, 1, 5, tzinfo=UTC)
LOCK_UID = "ds-1"
_ORDER = list(Evidence)

# Durations of a host and its kubelet in seconds; short, so that deadlines end soon.
GOES_DOWN_SECONDS = 5
IS_DOWN_SECONDS = 5
RESTART_SECONDS = 5
PAUSED_SECONDS = 20
ABSENT_SECONDS = 15
DEADLINE_SECONDS = 40
LATE_SECONDS = 60  # kube-apiserver gives up on a write
FROZEN_SECONDS = (10, 60)  # longer than a list of nodes lasts; longer than any announcement does
CONFIRMED_SECONDS = 5
"""How old an agent's last reading of the lock may be when it asks its host to reboot."""
GRID_SECONDS = 5
"""An agent's sleep ends at a multiple of these, so that several agents act at the same time."""
IDLE_SECONDS = 30
"""Between two turns of an idle agent. Checks of the sentinel in between are not simulated."""


class Kind(IntEnum):
    """A kind of fault; its value is its index in `State.left`."""

    LOST = 0  # the write is lost, and nothing was done
    ANSWER_LOST = 1  # the write was done, the answer is lost
    LATE = 2  # the sender gives up, and the write lands at any later moment if its version is still current
    CRASH = 3  # the process dies before its next action
    STALE = 4  # the turn uses the lock from before its last change
    FROZEN = 5  # the process is suspended between a decision and its next action
    PAUSED = 6  # a person pauses the lock, and resumes it in a while
    DELETED = 7  # a person deletes the Node; its kubelet registers it again
    SCRAPPED = 8  # machine and Node are removed for good


class BrokenRule(Exception):
    """The text names the rule."""


@dataclass(frozen=True, kw_only=True)
class Bounds:
    agents: int = 3
    concurrency: int = 1
    faults: int = 1
    """In one run, of all kinds together."""
    kinds: tuple[Kind, ...] = tuple(Kind)
    delays: int | None = None
    """How often in one run the others may overtake an agent that could continue; None: every order."""
    seconds: int = 600
    """By then every node must be idle again."""

    def __str__(self) -> str:
        kinds = (
            "of any kind" if self.kinds == tuple(Kind) else f"({', '.join(kind.name.lower() for kind in self.kinds)})"
        )
        orders = "every order" if self.delays is None else f"at most {_number(self.delays, 'delay')}"
        faults = f"at most {_number(self.faults, 'fault')} {kinds}" if self.faults else "no faults"
        return f"{self.agents} agents, concurrency {self.concurrency}, {faults}, {orders}"


class Step(NamedTuple):
    what: str
    after: State


class SmallFleet:
    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.names = tuple(f"n{number}" for number in range(1, bounds.agents + 1))
        self.tables = Tables()
        self.policies = tuple(_policy(name, bounds.concurrency) for name in self.names)
        self.decisions = 0
        self.is_guarded: Callable[[Action], bool] = lambda _: True
        """Whether the server refuses this write if the object has changed since the agent read it; for planted bugs."""
        self._turns: dict[tuple[Any, ...], tuple[int, tuple[int, ...], int, bool]] = {}

    def first(self) -> State:
        """Every host needs a reboot."""
        count = self.bounds.agents
        nodes = tuple(self.tables.nodes.number(Node(name=name, uid=f"uid-{name}", version=1)) for name in self.names)
        empty = self.tables.memories.number(Memory())
        allowed = [self.bounds.faults if kind in self.bounds.kinds else 0 for kind in Kind]
        return State(
            now=0,
            nodes=nodes,
            gone_since=(NEVER,) * count,
            back_at=(NEVER,) * count,
            hosts=(Host(),) * count,
            agents=(Agent(memory=empty),) * count,
            lock=None,
            lock_version=1,
            lock_before=None,
            held_at=(-NEVER,) * count,
            late=(),
            paused_at=NEVER,
            left=(*allowed, self.bounds.faults),
            delays=self.bounds.delays or 0,
        )

    # Possible steps ----------------------------------------------------------------------------------------------

    def steps(self, state: State) -> Iterator[Step]:
        """Raises `BrokenRule` if a step breaks a rule."""
        awake = [index for index in range(len(state.agents)) if self._is_awake(state, index)]
        if self.bounds.delays is None:
            for index in awake:
                yield from self._steps_of(state, index)
        elif awake:
            yield from self._in_turn(state, awake)
        yield from self._late_writes(state)
        yield from self._deeds(state)
        if not awake:
            yield self._tick(state)

    def is_home(self, state: State) -> bool:
        """Whether no host needs a reboot, no write is pending, the lock is empty, and every Node is clean."""
        return (
            not state.late
            and not any(not self._is_scrapped(state, entry.node) for entry in content_of(state.lock).entries)
            and not any(agent.acts for agent in state.agents)
            and all(
                host.is_scrapped or (host.is_up and not host.needs and host.next_at == NEVER) for host in state.hosts
            )
            and all(
                host.is_scrapped or (number is not None and self.tables.nodes[number].is_clean)
                for host, number in zip(state.hosts, state.nodes, strict=True)
            )
        )

    def _is_scrapped(self, state: State, name: str) -> bool:
        """While no other node waits, the claim of a scrapped node may stay in the lock."""
        return state.hosts[self.names.index(name)].is_scrapped

    def check_home(self, state: State) -> None:
        for name, host in zip(self.names, state.hosts, strict=True):
            if not host.is_scrapped and host.reboots != 1:
                raise BrokenRule(f"one reboot: the host of {name} rebooted {host.reboots} times instead of once")

    def _in_turn(self, state: State, awake: list[int]) -> Iterator[Step]:
        """The steps of the agent that acts next: one in the middle of a turn or else the first by name, an overtaken
        one last. Also a step that delays it, if the bounds still allow one."""
        index = min(awake, key=lambda each: (state.agents[each].is_overtaken, not state.agents[each].acts, each))
        agent = state.agents[index]
        if len(awake) > 1 and state.delays and not agent.is_overtaken:
            overtaken = agent._replace(is_overtaken=True)
            yield Step(
                f"{self.names[index]}: waits until the other agents that are due have acted",
                state._replace(agents=put(state.agents, index, overtaken), delays=state.delays - 1),
            )
        goes = state._replace(agents=put(state.agents, index, agent._replace(is_overtaken=False)))
        yield from self._steps_of(goes, index)

    def _is_awake(self, state: State, index: int) -> bool:
        agent = state.agents[index]
        return agent.is_up and state.hosts[index].is_up and agent.due <= state.now

    def _steps_of(self, state: State, index: int) -> Iterator[Step]:
        agent, name = state.agents[index], self.names[index]
        if (spent := _spend(state, Kind.CRASH)) is not None:
            yield Step(f"{name}: the process dies", self._crashed(spent, index))
        if not agent.acts:
            yield self._turn(state, index, is_stale=False)
            if state.lock_before != state.lock and (spent := _spend(state, Kind.STALE)) is not None:
                yield self._turn(spent, index, is_stale=True)
            return
        act = self.tables.acts[agent.acts[0]]
        yield Step(f"{name}: {_words(act)}", self._does(state, index, act))
        if (spent := _spend(state, Kind.FROZEN)) is not None:
            for seconds in FROZEN_SECONDS:
                frozen = agent._replace(due=state.now + seconds)
                yield Step(f"{name}: frozen for {seconds} s", spent._replace(agents=put(state.agents, index, frozen)))
        if isinstance(act, PatchNode | WriteLock):
            yield from self._spoilt(state, index, act)

    def _spoilt(self, state: State, index: int, act: PatchNode | WriteLock) -> Iterator[Step]:
        name, words = self.names[index], _words(act)
        if (spent := _spend(state, Kind.LOST)) is not None:
            yield Step(f"{name}: lost: {words}", self._ended(spent, index))
        if not self._is_current(state, index, act):
            return
        if (spent := _spend(state, Kind.ANSWER_LOST)) is not None:
            yield Step(f"{name}: answer lost: {words}", self._ended(self._land(spent, index, act), index))
        if (spent := _spend(state, Kind.LATE)) is not None:
            late = Late(index, state.agents[index].acts[0], state.now + LATE_SECONDS)
            yield Step(f"{name}: given up: {words}", self._ended(spent._replace(late=(*spent.late, late)), index))

    def _late_writes(self, state: State) -> Iterator[Step]:
        for late in state.late:
            act = self.tables.acts[late.act]
            without = state._replace(late=tuple(each for each in state.late if each != late))
            if self._is_current(state, late.sender, act):
                words = f"{self.names[late.sender]}: a delayed write takes effect: {_words(act)}"
                yield Step(words, self._land(without, late.sender, act))

    def _deeds(self, state: State) -> Iterator[Step]:
        if state.paused_at == NEVER and (spent := _spend(state, Kind.PAUSED)) is not None:
            paused = notation.render(changes.pause(content_of(state.lock), "people", self.bounds.concurrency))
            yield Step("a person pauses", _locked(spent, paused)._replace(paused_at=state.now))
        for index, name in enumerate(self.names):
            if state.agents[index].is_asleep and (spent := _spend(state, Kind.CRASH)) is not None:
                yield Step(f"{name}: the process dies asleep", self._crashed(spent, index))
            if state.nodes[index] is None:
                continue
            if (spent := _spend(state, Kind.DELETED)) is not None:
                deleted = self._deleted(spent, index)
                yield Step(
                    f"{name}: wakes, because its Node has gone"
                    if state.agents[index].is_asleep
                    else f"Node {name} is deleted",
                    deleted._replace(back_at=put(deleted.back_at, index, state.now + ABSENT_SECONDS)),
                )
            if (spent := _spend(state, Kind.SCRAPPED)) is not None:
                deleted = self._deleted(spent, index)
                host = Host(is_up=False, needs=False, is_scrapped=True)
                agent = deleted.agents[index]._replace(is_up=False, acts=(), due=NEVER)
                yield Step(
                    f"machine and Node {name} are gone for good",
                    deleted._replace(hosts=put(deleted.hosts, index, host), agents=put(deleted.agents, index, agent)),
                )

    def _deleted(self, state: State, index: int) -> State:
        state = state._replace(nodes=put(state.nodes, index, None), gone_since=put(state.gone_since, index, state.now))
        return self._woken(state, index)

    def _woken(self, state: State, index: int) -> State:
        """A sleeping agent wakes with what it kept."""
        agent = state.agents[index]
        if not agent.is_asleep:
            return state
        return state._replace(agents=put(state.agents, index, agent._replace(is_asleep=False, due=state.now)))

    # Time --------------------------------------------------------------------------------------------------------

    def _tick(self, state: State) -> Step:
        now = min(
            *(agent.due for agent, host in zip(state.agents, state.hosts, strict=True) if agent.is_up and host.is_up),
            *(host.next_at for host in state.hosts),
            *state.back_at,
            *(late.until for late in state.late),
            state.paused_at + PAUSED_SECONDS,
        )
        if now > self.bounds.seconds:
            raise BrokenRule(f"liveness: after {self.bounds.seconds} s some node is not idle again")
        state = state._replace(now=now, late=tuple(late for late in state.late if late.until > now))
        for index, host in enumerate(state.hosts):
            if host.next_at == now:
                state = self._down(state, index) if host.is_up else self._up(state, index)
            if state.back_at[index] == now:
                state = self._registered(state, index)
        if state.paused_at + PAUSED_SECONDS == now:
            state = _locked(state, notation.render(changes.resume(content_of(state.lock))))._replace(paused_at=NEVER)
        return Step(f"time advances to {now} s", state)

    def _down(self, state: State, index: int) -> State:
        host = state.hosts[index]._replace(is_up=False, next_at=state.now + IS_DOWN_SECONDS)
        agent = state.agents[index]._replace(acts=(), due=NEVER)
        state = state._replace(hosts=put(state.hosts, index, host), agents=put(state.agents, index, agent))
        return self._checked(self._changed(state, index, is_ready=False))

    def _up(self, state: State, index: int) -> State:
        host = state.hosts[index]
        booted = Host(boot=host.boot + 1, booted_at=state.now, needs=False, reboots=host.reboots + 1)
        state = state._replace(hosts=put(state.hosts, index, booted))
        state = self._crashed(state, index)
        return self._changed(state, index, is_ready=True, boot=booted.boot)

    def _registered(self, state: State, index: int) -> State:
        if state.nodes[index] is not None:
            return state
        host = state.hosts[index]
        node = Node(
            name=self.names[index],
            uid=f"uid-{self.names[index]}-{state.now}",
            version=state.now + 1000,
            is_ready=host.is_up,
            boot=host.boot,
        )
        state = state._replace(
            nodes=put(state.nodes, index, self.tables.nodes.number(node)),
            gone_since=put(state.gone_since, index, NEVER),
            back_at=put(state.back_at, index, NEVER),
        )
        return self._woken(state, index)

    def _crashed(self, state: State, index: int) -> State:
        agent = Agent(memory=self.tables.memories.number(Memory()), due=state.now + RESTART_SECONDS)
        return state._replace(agents=put(state.agents, index, agent))

    def _changed(self, state: State, index: int, **changes: Any) -> State:
        number = state.nodes[index]
        if number is None:
            return state
        node = self.tables.nodes[number]
        node = node._replace(version=node.version + 1, **changes)
        return state._replace(nodes=put(state.nodes, index, self.tables.nodes.number(node)))

    # A turn ------------------------------------------------------------------------------------------------------

    def _turn(self, state: State, index: int, *, is_stale: bool) -> Step:
        agent = state.agents[index]
        reading = (state.lock_before, state.lock_version - 1) if is_stale else (state.lock, state.lock_version)
        key = (index, state.now, state.nodes, reading, state.hosts[index], agent.memory)
        if key not in self._turns:
            self._turns[key] = self._decided(state, index, reading)
        memory, acts, look, sleeps = self._turns[key]
        due = state.now if acts else _on_grid(state.now + look)
        after = agent._replace(memory=memory, acts=acts, look=look, due=due, confirmed_at=-NEVER, is_asleep=sleeps)
        words = (
            f"{self.names[index]}: takes a turn{' (stale lock)' if is_stale else ''}{' and sleeps' if sleeps else ''}"
        )
        return Step(words, state._replace(agents=put(state.agents, index, after)))

    def _decided(
        self, state: State, index: int, reading: tuple[str | None, int]
    ) -> tuple[int, tuple[int, ...], int, bool]:
        """What the agent remembers, its actions, the seconds until its next turn, and whether it sleeps until then."""
        memory = self.tables.memories[state.agents[index].memory]
        number = state.nodes[index]
        phase = self.tables.nodes[number].progress.phase if number is not None else ""
        wanted, seen = set(ROW[Phase(phase) if phase else Phase.IDLE].evidence), {}  # type: ignore[var-annotated]
        for _ in range(12):
            for kind in sorted(wanted, key=_ORDER.index):
                seen[kind.value.replace("-", "_")] = self._observed(state, index, kind, reading)
            self.decisions += 1
            observation = self._observation(state, index, memory, seen)
            decision = decide(observation, self.policies[index])
            wanted = set(decision.wants)
            if not wanted:
                break
        else:
            raise BrokenRule(f"{self.names[index]} asks for ever: {decision.wants}")
        acts = tuple(
            self.tables.acts.number(act)
            for act in decision.actions
            if isinstance(act, PatchNode | WriteLock | ConfirmClaim | AskReboot)
        )
        assert not any(isinstance(act, Evict) for act in decision.actions), "there are no pods"
        is_at_rest = decision.phase is Phase.IDLE and not state.hosts[index].needs
        look = max(decision.look_again_seconds, IDLE_SECONDS if is_at_rest else 0.0)
        rest = asleep.may_sleep(observation, decision, decision.memory, slept=(), next_question=None)
        if isinstance(rest, asleep.Rest):
            return self.tables.memories.number(rest.memory), (), math.ceil(rest.until - observation.uptime), True
        return self.tables.memories.number(decision.memory), acts, math.ceil(look), False

    def _observation(self, state: State, index: int, memory: Memory, seen: dict[str, Any]) -> Observation:
        name = self.names[index]
        return Observation(
            **{
                "now": START + timedelta(seconds=state.now),
                "uptime": float(state.now - state.hosts[index].booted_at),
                "memory": memory,
                "chance": Chance(claim_id=f"{name}@{state.now}", jitter=0.5),
                "clock_skew_seconds": 0.0,
                **seen,
            }
        )

    # a flat list of cases
    def _observed(self, state: State, index: int, kind: Evidence, reading: tuple[str | None, int]) -> Any:  # noqa: C901
        host, number = state.hosts[index], state.nodes[index]
        views = {view.name: view for each in state.nodes if each is not None and (view := self.tables.view(each))}
        match kind:
            case Evidence.NODE:
                return Gone() if number is None else self.tables.view(number)
            case Evidence.BOOT_ID:
                return boot_id(self.names[index], host.boot)
            case Evidence.NEED:
                return Need(answer=NeedAnswer.YES if host.needs else NeedAnswer.NO)
            case Evidence.LOCK:
                return LockReading.of(reading[0], resource_version=str(reading[1]), daemonset_uid=LOCK_UID)
            case Evidence.PEERS:
                return _labelled(views, "in-progress", "failed")
            case Evidence.WAITERS:
                return _labelled(views, "required", "ready")
            case Evidence.CROWD:
                return len(_labelled(views, "required", "ready"))
            case Evidence.HOLDERS:
                holders = content_of(reading[0]).nodes
                found = tuple(views[name] for name in holders if name in views)
                return Holders(nodes=found, absent=frozenset(holders) - views.keys())
            case Evidence.FLEET:
                return FleetReading(nodes=tuple(views.values()), read_at_uptime=float(state.now - host.booted_at))
            case Evidence.FORECAST:
                return Forecast(node=self.names[index], made_at="2026-01-05T00:00:00Z")
            case Evidence.SELF_TEST:
                return SelfTest()
            case Evidence.EVICTABILITY | Evidence.DISRUPTIONS | Evidence.QUERIES:
                return {}
            case (
                Evidence.PODS
                | Evidence.OWNERS
                | Evidence.FOREIGN
                | Evidence.ALERTS
                | Evidence.READYZ
                | Evidence.VOLUMES
            ):
                return ()

    # An action ---------------------------------------------------------------------------------------------------

    def _does(self, state: State, index: int, act: Action) -> State:
        if isinstance(act, PatchNode | WriteLock):
            if not self._is_current(state, index, act) or self._is_too_late(state, index, act):
                return self._ended(state, index)
            return self._next(self._land(state, index, act), index)
        if isinstance(act, ConfirmClaim):
            seen = LockReading.of(state.lock, resource_version="", daemonset_uid=LOCK_UID)
            if not lock.confirms(seen.content, act.node, act.claim):
                return self._ended(state, index)
            return self._next(state, index, confirmed_at=state.now)
        assert isinstance(act, AskReboot)
        return self._asked(state, index, act)

    def _is_current(self, state: State, index: int, act: Action) -> bool:
        """Whether the object still has the version that the agent has read."""
        if isinstance(act, WriteLock):
            return str(state.lock_version) == act.expected_resource_version or not self.is_guarded(act)
        assert isinstance(act, PatchNode)
        number = state.nodes[index]
        return number is not None and (
            str(self.tables.nodes[number].version) == act.resource_version or not self.is_guarded(act)
        )

    def _is_too_late(self, state: State, index: int, act: Action) -> bool:
        uptime = state.now - state.hosts[index].booted_at
        return isinstance(act, PatchNode | AskReboot) and act.send_before is not None and uptime >= act.send_before

    def _asked(self, state: State, index: int, act: AskReboot) -> State:
        agent, host = state.agents[index], state.hosts[index]
        if state.now - agent.confirmed_at >= act.within_seconds or self._is_too_late(state, index, act):
            return self._ended(state, index)
        self._check_asked(state, index)
        memory = memories.before_reboot_asked(self.tables.memories[agent.memory])
        memory = memories.after_reboot_asked(memory, RebootOutcome.ACCEPTED)
        asked = host._replace(next_at=min(host.next_at, state.now + GOES_DOWN_SECONDS), asked_at=state.now)
        agent = agent._replace(memory=self.tables.memories.number(memory))
        state = state._replace(hosts=put(state.hosts, index, asked), agents=put(state.agents, index, agent))
        return self._next(self._checked(state), index)

    def _next(self, state: State, index: int, **changes: Any) -> State:
        """The agent has completed the first of its actions."""
        agent = state.agents[index]
        acts = agent.acts[1:]
        agent = agent._replace(acts=acts, due=state.now if acts else _on_grid(state.now + agent.look), **changes)
        return state._replace(agents=put(state.agents, index, agent))

    def _ended(self, state: State, index: int) -> State:
        """An action failed, or its result is unknown: the agent drops the rest of its decision."""
        agent = state.agents[index]._replace(acts=(), due=_on_grid(state.now + 1))
        return state._replace(agents=put(state.agents, index, agent))

    def _land(self, state: State, index: int, act: PatchNode | WriteLock) -> State:
        if isinstance(act, WriteLock):
            self._check_write(state, index, act)
            return _held(self._checked(_locked(state, act.content)), self.names)
        number = state.nodes[index]
        assert number is not None
        node = self.tables.nodes[number]
        return self._checked(
            self._changed(
                state,
                index,
                labels=merged(node.labels, act.labels),
                annotations=merged(node.annotations, act.annotations),
                taints=node.taints if act.taints is None else act.taints,
                is_cordoned=node.is_cordoned if act.unschedulable is None else act.unschedulable,
            )
        )

    # Rules -------------------------------------------------------------------------------------------------------

    def _checked(self, state: State) -> State:
        down = [
            name
            for name, number, host in zip(self.names, state.nodes, state.hosts, strict=True)
            if not host.is_scrapped
            and (
                not host.is_up
                or host.next_at != NEVER
                or (number is not None and self.tables.nodes[number].is_cordoned)
            )
        ]
        if len(down) > self.bounds.concurrency:
            raise BrokenRule(f"concurrency: the nodes {', '.join(down)} are down at once")
        return state

    def _check_asked(self, state: State, index: int) -> None:
        name, host, number = self.names[index], state.hosts[index], state.nodes[index]
        is_held = name in content_of(state.lock).holders
        if not is_held and state.now - state.held_at[index] > CONFIRMED_SECONDS:
            raise BrokenRule(f"claim: the node {name} reboots without a claim in the lock")
        if content_of(state.lock).is_paused and state.now - state.paused_at > CONFIRMED_SECONDS:
            raise BrokenRule(f"pause: the node {name} reboots although the lock is paused")
        if number is not None and not self.tables.nodes[number].is_cordoned:
            raise BrokenRule(f"cordon: the node {name} reboots and is not cordoned")
        if host.next_at != NEVER:
            raise BrokenRule(f"one reboot: the host of {name} goes down and is asked again to reboot")

    def _check_write(self, state: State, index: int, act: WriteLock) -> None:
        before, after = content_of(state.lock), content_of(act.content)
        if len(after.holders) != len(after.entries):
            raise BrokenRule(f"double: the agent of {self.names[index]} writes two claims of one node into the lock")
        if before.is_paused and not after.is_paused:
            raise BrokenRule(f"pause: the agent of {self.names[index]} ends a pause that a person set")
        for entry in before.entries:
            if not after.entries_of(entry.node):
                self._check_removal(state, index, entry)

    def _check_removal(self, state: State, index: int, entry: lock.Entry) -> None:
        """An agent removes its own node's claim only while the node is in service, and another's only if that node no
        longer uses it."""
        by, owner = self.names[index], self.names.index(entry.node)
        number, host = state.nodes[owner], state.hosts[owner]
        node = None if number is None else self.tables.nodes[number]
        if owner != index:
            is_absent = node is None and state.now - state.gone_since[owner] > self.policies[owner].absence_seconds
            if node is None and not is_absent:
                raise BrokenRule(
                    f"other's claim: the agent of {by} removes the claim of the deleted node {entry.node} too soon"
                )
            if node is not None and node.progress.claim == entry.id:
                raise BrokenRule(f"other's claim: the agent of {by} removes the valid claim of {entry.node}")
        elif entry.boot == boot_id(entry.node, host.boot):
            if node is not None and node.is_cordoned:
                raise BrokenRule(f"given back: the node {by} releases its claim while it is cordoned")
            if host.next_at != NEVER:
                raise BrokenRule(f"given back: the node {by} releases its claim while it goes down")
        elif node is not None and not node.is_ready:
            raise BrokenRule(f"given back: the node {by} releases its claim before it is ready")


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _policy(name: str, concurrency: int) -> Policy:
    return Policy(
        node_name=name,
        concurrency=concurrency,
        reboot_deadline_seconds=DEADLINE_SECONDS,
        verify_timeout_seconds=DEADLINE_SECONDS,
        settle_timeout_seconds=DEADLINE_SECONDS,
        failure_backoff_seconds=5,
        failure_backoff_limit_seconds=10,
        unknown_patience_seconds=30,
    )


def _on_grid(seconds: int) -> int:
    return -(-seconds // GRID_SECONDS) * GRID_SECONDS


def _labelled(views: dict[str, NodeView], *values: str) -> tuple[NodeView, ...]:
    return tuple(view for view in views.values() if view.labels.get(keys.REBOOT_LABEL) in values)


def _spend(state: State, kind: Kind) -> State | None:
    """The state with one more fault of this kind, None if the bounds allow no more."""
    if not state.left[kind] or not state.left[-1]:
        return None
    left = list(state.left)
    left[kind], left[-1] = left[kind] - 1, left[-1] - 1
    # Without a further fault of any kind, the numbers of the kinds become 0: states that differ only in them are equal.
    return state._replace(left=tuple(left) if left[-1] else (0,) * len(left))


def _locked(state: State, text: str | None) -> State:
    return state._replace(lock=text, lock_before=state.lock, lock_version=state.lock_version + 1)


def _held(state: State, names: tuple[str, ...]) -> State:
    holders = content_of(state.lock).holders
    before = content_of(state.lock_before).holders
    held = tuple(
        state.now if name in before and name not in holders else -NEVER if name in holders else at
        for name, at in zip(names, state.held_at, strict=True)
    )
    return state._replace(held_at=held)


def _words(act: Action) -> str:
    match act:
        case PatchNode() | WriteLock():
            return f"{'Node' if isinstance(act, PatchNode) else 'lock'}: {act.purpose}"
        case ConfirmClaim():
            return "confirms its claim"
        case AskReboot():
            return "asks the host to reboot"
        case _:
            return type(act).__name__
