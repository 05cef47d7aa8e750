"""Simulates a cluster of a few nodes in memory. The simulation is realistic enough to run production's function
`decide` for several agents together, with random faults.

At each API call, other agents may run, the caller may die, the response may be lost, and a write may take effect late.
The rules are checked against the true state of the simulated cluster, not against the agents' reports."""

from __future__ import annotations

import functools
import heapq
import itertools
import random
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from careen.core.actions import AskReboot, ConfirmClaim, Evict, PatchNode, WriteLock
from careen.core.decide import decide
from careen.core.decision import Decision
from careen.core.drain.drain_plan import to_evict
from careen.core.facts import keys
from careen.core.facts import memory as memories
from careen.core.facts.memory import EvictAnswer, Memory, RebootOutcome
from careen.core.facts.observation import (
    Chance,
    DryRunAnswer,
    Evictable,
    Fleet,
    Gone,
    Holders,
    Need,
    NeedAnswer,
    NodeView,
    PodView,
    SelfTest,
    Taint,
    Unknown,
)
from careen.core.facts.phases import ROW, Evidence, Phase
from careen.core.facts.policy import Order, Policy
from careen.core.facts.progress import OwnerHealth, Progress, from_annotation
from careen.core.lock import changes, notation
from careen.core.lock import content as lock
from careen.core.lock.content import LockContent
from careen.core.lock.reading import LockReading
from careen.core.observation import Observation
from scheduler_core.simulation.forecast import Forecast

EPOCH = datetime(2026, 1, 5, tzinfo=UTC)
FAULTS = ("lost answer", "lost write", "late write", "crash", "unreadable")


class BrokenRuleError(AssertionError):
    """The error for a broken rule of the design. Its message names the rule."""


@dataclass
class Host:
    """A simulated machine: state such as its boot and its need for a reboot, which no API object shows."""

    boot: int = 1
    booted_at: float = 0.0
    is_up: bool = True
    need: bool = False
    need_survives: int = 0  # the need remains after this many reboots
    reboot_behaviour: str = "works"  # works, fails, silent
    goes_down_within: float = 4.0  # how long a shutdown takes at most
    ends_boot: int = 0  # the boot that an accepted reboot request is about to end
    taken: tuple[int, float, Agent] | None = (
        None  # boot, time and process of the last reboot request that the host accepted
    )


@dataclass
class Node:
    """A Node object, and two facts that no API object shows: who cordoned the node, and since when it is down."""

    view: NodeView
    cordoned_by: str = ""  # "careen", "person" or ""
    down_since: float | None = None  # when it went down for a reason other than careen


@dataclass
class Agent:
    """One agent process of one node."""

    node: str
    memory: Memory = field(default_factory=Memory)
    turn: Generator[float, None, None] | None = None
    serial: int = 0


@dataclass
class World:
    """The simulated cluster. The seed determines its random choices, so that a run can be repeated."""

    seed: int
    policy: Callable[[str], Policy]
    names: tuple[str, ...]
    fault_rate: float = 0.05
    now: float = 0.0
    versions: Any = field(default_factory=lambda: itertools.count(1))
    nodes: dict[str, Node | None] = field(default_factory=dict)
    hosts: dict[str, Host] = field(default_factory=dict)
    agents: list[Agent] = field(default_factory=list)
    pods: dict[str, tuple[str, PodView]] = field(default_factory=dict)  # uid → (node, pod)
    daemonset_uid: str = "ds-1"
    daemonset_version: int = 1
    annotation: str | None = None
    events: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    reboots: dict[str, int] = field(default_factory=dict)
    peak: int = 0
    last_held: dict[str, float] = field(default_factory=dict)  # when the lock last contained a node's claim
    persons_cordons: set[str] = field(default_factory=set)
    halted_since: dict[str, float] = field(default_factory=dict)  # claim id → when the lock first showed its failure
    touched_by_person: set[str] = field(default_factory=set)  # nodes whose lock entry or Node a person took away
    # Nodes whose record a person removed. Only the record says which labels careen changed, and their values before.
    wiped: set[str] = field(default_factory=set)
    skews: dict[str, float] = field(default_factory=dict)
    on_phase: Callable[[str, str], None] = lambda _name, _phase: None  # called when a node's record enters a phase

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.serial = itertools.count(1)
        for name in self.names:
            self.hosts[name] = Host()
            self.skews[name] = self.random.uniform(-50, 50)
            self.add_node(name)
            self.start_agent(name, self.random.uniform(0, 3))
            for app in ("web", "db"):
                self.add_pod(app, name)
            self.add_pod("agent", name, kind="DaemonSet")

    # -- time
    # ------------------------------------------------------------------------------------------------------------------

    def at(self, delay: float, event: Callable[[], None]) -> None:
        heapq.heappush(self.events, (self.now + delay, next(self.serial), event))

    def run(self, until: float) -> None:
        while self.events and self.events[0][0] <= until:
            self.now, _, event = heapq.heappop(self.events)
            event()
            self.check()
        self.now = until

    def say(self, text: str) -> None:
        self.log.append(f"{self.now:8.1f} {text}")

    def fault(self, kind: str) -> bool:
        return self.random.random() < self.fault_rate * (0.2 if kind == "crash" else 1.0)

    # -- objects
    # ----------------------------------------------------------------------------------------------------------------

    def add_node(self, name: str) -> None:
        labels = {keys.ZONE: f"z{self.names.index(name) % 2}"}
        self.nodes[name] = Node(
            NodeView(
                name=name,
                uid=f"uid-{next(self.versions)}",
                resource_version=str(next(self.versions)),
                labels=labels,
                boot_id=f"{name}-{self.hosts[name].boot}",
                ready=self.hosts[name].is_up,
                taints=(Taint(key="theirs", effect="PreferNoSchedule"),),
            )
        )

    def add_pod(self, app: str, node: str, kind: str = "ReplicaSet") -> None:
        serial = next(self.serial)
        pod = PodView(
            namespace="shop",
            name=f"{app}-{serial}",
            uid=f"pod-{serial}",
            owner_kind=kind,
            owner_name=app,
            owner_uid=f"rs-{app}",
            spreads_over_zones=app == "web",
        )
        self.pods[pod.uid] = (node, pod)

    def write_node(self, name: str, **changes: Any) -> None:
        node = self.nodes[name]
        assert node is not None
        node.view = replace(node.view, resource_version=str(next(self.versions)), **changes)

    def progress(self, name: str) -> Progress:
        node = self.nodes[name]
        found = from_annotation(node.view.annotations.get(keys.PROGRESS)) if node else Progress()
        assert isinstance(found, Progress)
        return found

    def content(self) -> LockContent:
        return _content(self.annotation)

    def write_lock(self, text: str | None) -> None:
        self.annotation = text
        self.daemonset_version = next(self.versions)
        self.note_holders()

    def note_holders(self) -> None:
        for name in self.content().holders:
            self.last_held[name] = self.now

    # -- people
    # -----------------------------------------------------------------------------------------------------------------

    def person_cordons(self, name: str) -> None:
        node = self.nodes[name]
        # While the record says that careen cordoned the node, careen would treat a person's cordon as its own.
        if node is not None and not node.view.unschedulable and not self.progress(name).is_cordoned_by_us:
            self.say(f"a person cordons {name}")
            self.write_node(name, unschedulable=True, cordoned_by=("kubectl-cordon",))
            node.cordoned_by, node.down_since = "person", self.now
            self.persons_cordons.add(name)

    def person_uncordons(self, name: str) -> None:
        node = self.nodes[name]
        if node is not None and node.view.unschedulable:
            self.say(f"a person uncordons {name}")
            self.write_node(name, unschedulable=False, cordoned_by=())
            node.cordoned_by, node.down_since = "", None
            self.persons_cordons.discard(name)

    def annotate(self, name: str, key: str, value: str | None) -> None:
        node = self.nodes[name]
        if node is not None:
            self.say(f"a person sets {key}={value} on {name}")
            annotations = {k: v for k, v in node.view.annotations.items() if k != key}
            self.write_node(name, annotations=annotations if value is None else {**annotations, key: value})

    def wipe_record(self, name: str) -> None:
        """Remove the record of the node's progress, as `kubectl annotate node NAME careen.dev/progress-` does."""
        self.wiped.add(name)
        self.annotate(name, keys.PROGRESS, None)

    def unlock(self, name: str) -> None:
        self.say(f"a person releases the claim of {name}")
        self.touched_by_person.add(name)
        self.write_lock(notation.render(changes.release_by_hand(self.content(), name)))

    def pause(self, *, on: bool) -> None:
        self.say("a person pauses" if on else "a person resumes")
        self.write_lock(
            notation.render(changes.pause(self.content(), "people", 2) if on else changes.resume(self.content()))
        )

    def recreate_daemonset(self) -> None:
        self.say("the DaemonSet is recreated")
        self.daemonset_uid = f"ds-{next(self.versions)}"
        self.write_lock(None)

    def delete_node(self, name: str) -> None:
        self.say(f"Node {name} is deleted")
        self.nodes[name] = None
        self.persons_cordons.discard(name)
        self.touched_by_person.add(name)
        self.at(self.random.uniform(1, 60), lambda: self.recreate_node(name))

    def recreate_node(self, name: str) -> None:
        if self.nodes[name] is None:
            self.say(f"Node {name} is created again")
            self.add_node(name)

    # -- hosts
    # ------------------------------------------------------------------------------------------------------------------

    def ask_reboot(self, agent: Agent) -> RebootOutcome:
        name = agent.node
        host = self.hosts[name]
        self.check_reboot(name)
        self.check_asked_once(name)
        if host.reboot_behaviour == "fails":
            return RebootOutcome.FAILED
        host.taken = (host.boot, self.now, agent)
        if host.reboot_behaviour == "works":
            boot = host.ends_boot = host.boot
            self.at(self.random.uniform(0, host.goes_down_within), lambda: self.go_down(name, boot))
        return RebootOutcome.ACCEPTED

    def go_down(self, name: str, boot: int) -> None:
        host = self.hosts[name]
        if not host.is_up or host.boot != boot:
            return
        self.say(f"{name} goes down")
        host.is_up = False
        self.agents = [agent for agent in self.agents if agent.node != name]
        if self.nodes[name] is not None:
            self.write_node(name, ready=False)
        self.at(self.random.uniform(2, 20), lambda: self.come_up(name))

    def come_up(self, name: str) -> None:
        host = self.hosts[name]
        host.boot, host.booted_at, host.is_up = host.boot + 1, self.now, True
        self.reboots[name] = self.reboots.get(name, 0) + 1
        if host.need_survives:
            host.need_survives -= 1
        else:
            host.need = False
        self.say(f"{name} runs boot {host.boot}")
        self.start_agent(name, self.random.uniform(0, 2))
        self.at(self.random.uniform(0, 6), lambda: self.report_ready(name, host.boot))

    def report_ready(self, name: str, boot: int) -> None:
        if self.nodes[name] is not None and self.hosts[name].boot == boot:
            self.write_node(name, ready=True, boot_id=f"{name}-{boot}")

    # -- agents
    # -----------------------------------------------------------------------------------------------------------------

    def start_agent(self, name: str, delay: float) -> None:
        agent = Agent(node=name)
        self.agents.append(agent)
        self.at(delay, lambda: self.step(agent))

    def kill_agent(self, name: str) -> None:
        self.say(f"the agent of {name} is killed")
        self.agents = [agent for agent in self.agents if agent.node != name]
        if self.hosts[name].is_up:
            self.start_agent(name, self.random.uniform(0.2, 15))

    def step(self, agent: Agent) -> None:
        """Run one agent up to its next API call or to the next round of its loop."""
        if agent not in self.agents:
            return
        if self.fault("crash"):
            self.say(f"the agent of {agent.node} dies")
            self.agents.remove(agent)
            self.start_agent(agent.node, self.random.uniform(0.5, 5))
            return
        if agent.turn is None:
            agent.turn = self.take_turn(agent)
        try:
            pause = next(agent.turn)
        except StopIteration:
            agent.turn, pause = None, 1.0
        self.at(max(pause, 0.005), lambda: self.step(agent))

    def take_turn(self, agent: Agent) -> Generator[float, None, None]:
        name, policy = agent.node, self.policy(agent.node)
        seen: dict[Evidence, Any] = {}
        node = self.nodes[name]
        progress = self.progress(name) if node else Progress()
        phase = Phase(progress.phase) if progress.phase else Phase.IDLE
        for kind in sorted(ROW[phase].evidence, key=_ORDER.index):
            yield self.latency()
            seen[kind] = self.observe(agent, kind, seen)
        for _ in range(12):
            decision = decide(self.observation(agent, seen), policy)
            if not decision.wants:
                break
            for kind in sorted(decision.wants, key=_ORDER.index):
                yield self.latency()
                seen[kind] = self.observe(agent, kind, seen)
        else:
            raise BrokenRuleError(f"the agent of {name} never stops asking for evidence: {decision.wants}")
        agent.memory = decision.memory
        yield from self.apply(agent, decision)
        yield decision.look_again_seconds

    def latency(self) -> float:
        """Return the seconds that one request takes. Most requests are short, and a few last almost as long as the
        agent waits for a response."""
        return 12.0 if self.fault("crash") else self.random.choice([0.01, 0.01, 0.02, 0.3])

    def observation(self, agent: Agent, seen: dict[Evidence, Any]) -> Observation:
        host, skew = self.hosts[agent.node], self.skews[agent.node]
        agent.serial += 1
        known = {kind.value.replace("-", "_"): value for kind, value in seen.items()}
        return Observation(
            **{
                "now": EPOCH + timedelta(seconds=self.now + skew),
                "uptime": self.now - host.booted_at,
                "memory": agent.memory,
                "chance": Chance(claim_id=f"c{next(self.serial)}", jitter=self.random.random()),
                "clock_skew_seconds": skew,
                "node": Unknown("not read"),
                "boot_id": Unknown("not read"),
                "need": Need(answer=NeedAnswer.UNKNOWN),
                **known,
            }
        )

    # a flat list of cases
    def observe(self, agent: Agent, kind: Evidence, seen: dict[Evidence, Any]) -> Any:  # noqa: C901
        name, host = agent.node, self.hosts[agent.node]
        views = [node.view for node in self.nodes.values() if node is not None]
        if kind is Evidence.BOOT_ID:
            return f"{name}-{host.boot}"
        if kind is Evidence.NEED:
            return Need(
                answer=NeedAnswer.UNKNOWN
                if self.fault("unreadable")
                else NeedAnswer.YES
                if host.need
                else NeedAnswer.NO
            )
        if self.fault("unreadable"):
            return Unknown("503")
        node = self.nodes[name]
        if kind is Evidence.NODE:
            return node.view if node is not None else Gone()
        if kind is Evidence.LOCK:
            return LockReading.of(
                self.annotation, resource_version=str(self.daemonset_version), daemonset_uid=self.daemonset_uid
            )
        if kind is Evidence.PEERS:
            return tuple(view for view in views if view.labels.get(keys.REBOOT_LABEL) in {"in-progress", "failed"})
        if kind is Evidence.WAITERS:
            return tuple(view for view in views if view.labels.get(keys.REBOOT_LABEL) in {"required", "ready"})
        if kind is Evidence.FLEET:
            return Fleet(
                nodes=tuple(views), read_at_uptime=self.now - host.booted_at - self.random.choice([0, 0, 0.3, 2])
            )
        if kind is Evidence.HOLDERS:
            content = seen[Evidence.LOCK].content if isinstance(seen.get(Evidence.LOCK), LockReading) else LockContent()
            assert isinstance(content, LockContent)
            found = [view for view in views if view.name in content.holders]
            return Holders(nodes=tuple(found), absent=frozenset(content.holders) - {view.name for view in found})
        pods = tuple(pod for where, pod in self.pods.values() if where == name)
        if kind is Evidence.PODS:
            return pods
        if kind is Evidence.EVICTABILITY:
            refused = self.random.random() < self.fault_rate
            answer = DryRunAnswer(answer=Evictable.BUDGET if refused else Evictable.ALLOWED)
            return {pod.uid: answer for pod in to_evict(pods, self.policy(name).drain)}
        if kind is Evidence.DISRUPTIONS:
            return {"shop/any": self.random.randrange(2)}
        if kind is Evidence.OWNERS:
            return tuple(
                OwnerHealth(
                    kind="ReplicaSet",
                    namespace="shop",
                    name=app,
                    uid=f"rs-{app}",
                    generation=1,
                    replicas=len(self.names),
                    ready=sum(
                        1
                        for _, pod in self.pods.values()
                        if pod.owner_uid == f"rs-{app}" and pod.is_ready and not pod.is_terminating
                    ),
                )
                for app in ("web", "db")
            )
        if kind is Evidence.FORECAST:
            return Forecast(node=name, made_at="2026-01-05T00:00:00Z")
        if kind is Evidence.SELF_TEST:
            return SelfTest()
        assert kind in {Evidence.FOREIGN, Evidence.READYZ}, kind
        return ()

    # a flat list of cases
    def apply(self, agent: Agent, decision: Decision) -> Generator[float, None, None]:  # noqa: C901
        confirmed_at: float | None = None
        for action in decision.actions:
            if isinstance(action, PatchNode | WriteLock | ConfirmClaim | AskReboot | Evict):
                yield self.latency()
            if isinstance(action, PatchNode):
                uptime = self.now - self.hosts[agent.node].booted_at
                if action.send_before is not None and uptime > action.send_before:
                    return
                if not self.send(lambda action=action: self.land_patch(agent.node, action)):
                    return
                self.say(f"{agent.node}: {action.purpose} ({decision.reason.sentence})")
            elif isinstance(action, WriteLock):
                if not self.send(lambda action=action: self.land_lock(agent.node, action)):
                    return
                self.say(f"{agent.node}: lock: {action.purpose}")
            elif isinstance(action, ConfirmClaim):
                reading = LockReading.of(
                    self.annotation,
                    resource_version=str(self.daemonset_version),
                    daemonset_uid=self.daemonset_uid,
                )
                if self.fault("unreadable") or not lock.confirms(reading.content, action.node, action.claim):
                    return
                confirmed_at = self.now
            elif isinstance(action, Evict):
                for pod in action.pods:
                    self.evict(agent, pod.uid)
            elif isinstance(action, AskReboot):
                yield self.random.choice([0.0, 0.0, 0.0, 7.0])
                if confirmed_at is None or self.now - confirmed_at > action.within_seconds:
                    return
                if action.send_before is not None and self.now - self.hosts[agent.node].booted_at >= action.send_before:
                    return
                agent.memory = memories.before_reboot_asked(agent.memory)
                self.say(f"the agent of {agent.node} asks the host to reboot")
                agent.memory = memories.after_reboot_asked(agent.memory, self.ask_reboot(agent))

    def send(self, land: Callable[[], bool]) -> bool:
        """Send a write and return whether it certainly took effect. A late write takes effect within four seconds if
        its resource version is still current."""
        if self.fault("lost write"):
            return False
        if self.fault("late write"):
            self.at(self.random.uniform(0, 4), lambda: self.swallow(land))
            return False
        landed = land()
        return landed and not self.fault("lost answer")

    def swallow(self, land: Callable[[], bool]) -> None:
        land()

    def land_patch(self, name: str, action: PatchNode) -> bool:
        node = self.nodes[name]
        if node is None or node.view.resource_version != action.resource_version:
            return False
        before = node.view
        if action.unschedulable is True and not before.unschedulable:
            self.check_cordon(name)
            node.cordoned_by = "careen"
        if action.unschedulable is False and before.unschedulable:
            self.require(node.cordoned_by == "careen", f"rule 4: {name} removed a person's cordon")
            node.cordoned_by = ""
        self.write_node(
            name,
            labels=_merged(before.labels, action.labels),
            annotations=_merged(before.annotations, action.annotations),
            taints=before.taints if action.taints is None else action.taints,
            unschedulable=before.unschedulable if action.unschedulable is None else action.unschedulable,
            cordoned_by=_cordoned_by(before, action.unschedulable),
        )
        if action.annotations.get(keys.PHASE) != before.annotations.get(keys.PHASE):
            self.on_phase(name, self.progress(name).phase)
        return True

    def land_lock(self, name: str, action: WriteLock) -> bool:
        if (
            str(self.daemonset_version) != action.expected_resource_version
            or self.daemonset_uid != action.daemonset_uid
        ):
            return False
        before = self.content()
        after = notation.parse(action.content)
        assert isinstance(after, LockContent)
        for entry in before.entries:
            if not after.entries_of(entry.node):  # the node is out of the lock, without another claim
                self.check_removal(name, entry)
            if not entry.failed and (marked := after.entry(entry.node, entry.id)) is not None and marked.failed:
                self.halted_since[entry.id] = self.now
        self.write_lock(action.content)
        return True

    def evict(self, agent: Agent, uid: str) -> None:
        found = self.pods.get(uid)
        answer = (
            EvictAnswer.GONE
            if found is None
            else EvictAnswer.BUDGET
            if self.random.random() < 0.2
            else EvictAnswer.ACCEPTED
        )
        if found is not None and answer is EvictAnswer.ACCEPTED:
            where, pod = found
            self.pods[uid] = (where, replace(pod, deletion_timestamp=EPOCH + timedelta(seconds=self.now + 3)))
            self.at(self.random.uniform(0.1, 5), lambda: self.pod_ends(uid))
        agent.memory = memories.after_eviction(
            agent.memory,
            pod_uid=uid,
            answer=answer,
            uptime=self.now - self.hosts[agent.node].booted_at,
            jitter=self.random.random(),
        )

    def pod_ends(self, uid: str) -> None:
        found = self.pods.pop(uid, None)
        if found is not None:
            self.at(self.random.uniform(0.1, 3), lambda: self.place(found[1].owner_name))

    def place(self, app: str) -> None:
        open_nodes = [
            name
            for name, node in self.nodes.items()
            if node is not None and not node.view.unschedulable and self.hosts[name].is_up
        ]
        if open_nodes:
            self.add_pod(app, self.random.choice(sorted(open_nodes)))
        else:
            self.at(5, lambda: self.place(app))

    # -- rules
    # ------------------------------------------------------------------------------------------------------------------

    def require(self, holds: bool, text: str) -> None:
        if not holds:
            raise BrokenRuleError("\n".join([f"seed {self.seed}: {text}", *self.log[-60:]]))

    def down_because_of_us(self) -> set[str]:
        down = {name for name, node in self.nodes.items() if node is not None and node.cordoned_by == "careen"}
        return down | {name for name, host in self.hosts.items() if not host.is_up}

    def check(self) -> None:
        if down := self.down_because_of_us():
            self.check_down(down)
        self.note_holders()

    def check_down(self, down: set[str]) -> None:
        self.peak = max(self.peak, len(down))
        most = self.policy(self.names[0]).concurrency
        self.require(len(down) <= most, f"rule 1: the nodes {sorted(down)} are down, but the limit is {most}")
        zones = {self.names.index(name) % 2 for name in down}
        is_by_zone = self.policy(self.names[0]).order is Order.ZONE
        self.require(
            not is_by_zone or len(zones) <= 1, f"rule of --order=zone: two zones are down at once: {sorted(down)}"
        )

    def check_cordon(self, name: str) -> None:
        """Check two rules when careen cordons a node. First rule: no more nodes may be down than the concurrency limit
        allows. A node that went down without careen counts only if it went down more than 15 seconds ago. Second rule:
        no other node may hold a claim that is marked as failed. A mark counts only if it is more than 15 seconds old.
        The agent may not know of later events yet."""
        long_down = {
            other
            for other, node in self.nodes.items()
            if node is not None
            and other != name
            and node.down_since is not None
            and self.now - node.down_since > 10 + 4 + 1
        }
        down = long_down | self.down_because_of_us() | {name}
        most = self.policy(name).concurrency
        self.require(len(down) <= most, f"rule 1: the node {name} is cordoned while the nodes {sorted(down)} are down")
        # The facts behind the cordon may be ten seconds old, and its request may take a while.
        halted = [
            entry.node
            for entry in self.content().failed
            if entry.node != name and self.now - self.halted_since.get(entry.id, self.now) > 10 + 4 + 1
        ]
        self.require(
            not halted, f"rule of the halt: {name} is cordoned although the nodes {halted} failed and keep their claims"
        )

    def check_reboot(self, name: str) -> None:
        self.require(self.now - self.last_held.get(name, -1e9) <= 5, f"rule 2: the node {name} reboots without a claim")
        left = [pod for where, pod in self.pods.values() if where == name and pod.owner_kind != "DaemonSet"]
        node = self.nodes[name]
        is_cordoned = node is not None and node.view.unschedulable
        self.require(
            not left or not is_cordoned or self.policy(name).drain.force_reboot,
            f"rule 2: the node {name} reboots although it still runs the pods {[pod.name for pod in left]}",
        )

    def check_asked_once(self, name: str) -> None:
        """Check a reboot request to a host that has already accepted a request in this boot. Before the reboot
        deadline, no process may ask again while the process that sent the first request is alive. After its death,
        another process cannot know of the request and may ask."""
        host = self.hosts[name]
        if host.taken is None or host.taken[0] != host.boot or host.taken[2] not in self.agents:
            return
        age = self.now - host.taken[1]
        self.require(
            age > self.policy(name).reboot_deadline_seconds,
            f"one request per reboot: the host of {name} is asked again {age:.1f} s after it accepted a request",
        )

    def check_removal(self, by: str, entry: lock.Entry) -> None:
        name, node, host = entry.node, self.nodes[entry.node], self.hosts[entry.node]
        if name in self.touched_by_person:
            return
        if by != name:
            if name in self.wiped and entry.boot != f"{name}-{host.boot}":
                # The agent of `by` may have read the Node while the record was missing. The host has already rebooted
                # and stays up, so the removal of the claim does no harm.
                return
            self.require(
                node is None or self.progress(name).claim != entry.id,
                f"rule 5: the agent of {by} removed the claim of {name}",
            )
            return
        if entry.boot == f"{name}-{host.boot}":
            self.require(
                node is None or node.cordoned_by != "careen",
                f"rule 3: the node {name} released its claim while the node still had careen's cordon",
            )
            self.require(
                host.ends_boot != host.boot, f"rule 3: the node {name} released its claim while its host goes down"
            )
        else:
            self.require(
                node is not None and node.view.ready, f"rule 3: the node {name} released its claim before it was ready"
            )

    def is_at_rest(self) -> bool:
        is_asked = any(host.need for host in self.hosts.values())
        return not is_asked and not self.content().entries and not any(self.progress(name).phase for name in self.nodes)

    def check_quiet(self) -> None:
        """Check the cluster after the last change. No host may need a reboot. careen's cordons, taints, labels and
        claims must be gone. Cordons and taints of other clients must be unchanged."""
        for name, node in self.nodes.items():
            assert node is not None
            view = node.view
            self.require(
                not self.hosts[name].need, f"liveness: the host of {name} still needs a reboot: {view.annotations}"
            )
            self.require(node.cordoned_by != "careen", f"rule 4: the node {name} still has careen's cordon")
            self.require(
                (name in self.persons_cordons) == view.unschedulable,
                f"rule 4: the cordon of {name} is not as the person left it",
            )
            self.require(
                view.taints == (Taint(key="theirs", effect="PreferNoSchedule"),),
                f"rule 4: the node {name} has other taints than before: {view.taints}",
            )
            self.require(
                keys.REBOOT_LABEL not in view.labels,
                f"rule 4: the node {name} still has careen's label: {view.annotations}",
            )
            self.require(
                name in self.wiped or view.labels.get("pool", "") != "maintenance",
                f"rule 4: the node {name} has other labels than before: {view.labels}",
            )
        self.require(not self.content().entries, f"rule 5: the lock still has claims: {self.content().entries}")


_ORDER = list(Evidence)


@functools.lru_cache  # called at every event, usually with an unchanged result
def _content(annotation: str | None) -> LockContent:
    found = notation.parse(annotation)
    assert isinstance(found, LockContent), found
    return found


def _cordoned_by(before: NodeView, unschedulable: bool | None) -> tuple[str, ...]:
    """Return the field managers that own the cordon after a write, as the API server would record them."""
    if unschedulable is None or unschedulable is before.unschedulable:
        return before.cordoned_by
    return (keys.FIELD_MANAGER,) if unschedulable else ()


def _merged(before: Any, change: Any) -> dict[str, str]:
    after = {**before, **change}
    return {key: value for key, value in after.items() if value is not None}
