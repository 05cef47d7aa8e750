"""The state of a small simulated fleet at one instant, as a hashable value, so that the search visits no state twice.

Tables store each agent memory, pending action and Node once. A state contains only their numbers in these tables."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Generic, NamedTuple, TypeVar

from careen.core.actions import Action
from careen.core.facts import keys
from careen.core.facts.memory import Memory
from careen.core.facts.observation import NodeView, Taint
from careen.core.facts.progress import Progress, from_annotation
from careen.core.lock import notation
from careen.core.lock.content import LockContent

T = TypeVar("T")
NEVER = 10**9
Pairs = tuple[tuple[str, str], ...]


class Table(Generic[T]):
    """Assigns a number to each value. Values with the same `repr` get the same number. The hash of a value is not used,
    because some values contain mappings, which have no hash."""

    def __init__(self) -> None:
        self._values: list[T] = []
        self._numbers: dict[str, int] = {}

    def __getitem__(self, number: int) -> T:
        return self._values[number]

    def number(self, value: T) -> int:
        text = repr(value)
        found = self._numbers.get(text)
        if found is None:
            found = self._numbers[text] = len(self._values)
            self._values.append(value)
        return found


class Node(NamedTuple):
    """A Node object with the fields that the exploration needs."""

    name: str
    uid: str
    version: int
    labels: Pairs = ()
    annotations: Pairs = ()
    taints: tuple[Taint, ...] = ()
    is_cordoned: bool = False
    is_ready: bool = True
    boot: int = 1

    @property
    def progress(self) -> Progress:
        found = from_annotation(dict(self.annotations).get(keys.PROGRESS))
        assert isinstance(found, Progress)
        return found

    @property
    def is_clean(self) -> bool:
        """Whether the Node has no cordon, no taint and no label of careen."""
        return not self.is_cordoned and not self.taints and keys.REBOOT_LABEL not in dict(self.labels)


class Host(NamedTuple):
    """A simulated machine. `next_at` is the time at which it goes down or comes up next."""

    boot: int = 1
    booted_at: int = 0
    is_up: bool = True
    needs: bool = True
    next_at: int = NEVER
    asked_at: int = -NEVER
    """The time of the last reboot request to the host."""
    reboots: int = 0
    is_scrapped: bool = False


class Agent(NamedTuple):
    """The agent process of one node."""

    memory: int
    due: int = 0
    acts: tuple[int, ...] = ()
    """The remaining actions of the agent's decision."""
    look: int = 0
    confirmed_at: int = -NEVER
    is_up: bool = True
    is_overtaken: bool = False
    """Whether this agent is delayed, so that every other agent that is due acts first."""


class Late(NamedTuple):
    """A write that may still take effect, although the agent that sent it no longer waits for the response."""

    sender: int
    act: int
    until: int


class State(NamedTuple):
    """Everything that determines the possible next steps."""

    now: int
    nodes: tuple[int | None, ...]
    gone_since: tuple[int, ...]
    back_at: tuple[int, ...]
    """For each node, the time at which its deleted Node is registered again."""
    hosts: tuple[Host, ...]
    agents: tuple[Agent, ...]
    lock: str | None
    lock_version: int
    lock_before: str | None
    """The content of the lock before its last change. An agent with a stale reading sees this content."""
    held_at: tuple[int, ...]
    """For each node, the time at which its claim left the lock. The value is -NEVER (before every time) if the claim is
    still in the lock or never was there."""
    late: tuple[Late, ...]
    paused_at: int
    """The time at which a person paused the lock."""
    left: tuple[int, ...]
    """How many faults of each kind may still happen. The last number is the limit for all kinds together."""
    delays: int
    """How many delays the bounds still allow."""


class Tables:
    """The tables of values to which a state refers by number."""

    def __init__(self) -> None:
        self.memories: Table[Memory] = Table()
        self.acts: Table[Action] = Table()
        self.nodes: Table[Node] = Table()
        self._views: dict[int, NodeView] = {}

    def view(self, number: int) -> NodeView:
        """Return the Node as an agent reads it."""
        if number not in self._views:
            self._views[number] = _view(self.nodes[number])
        return self._views[number]


@functools.lru_cache(maxsize=100_000)
def content_of(text: str | None) -> LockContent:
    found = notation.parse(text)
    assert isinstance(found, LockContent), found
    return found


def merged(before: Pairs, change: Mapping[str, str | None]) -> Pairs:
    after = {**dict(before), **change}
    return tuple(sorted((key, value) for key, value in after.items() if value is not None))


def put(items: tuple[T, ...], index: int, item: T) -> tuple[T, ...]:
    return (*items[:index], item, *items[index + 1 :])


def boot_id(name: str, boot: int) -> str:
    return f"{name}-{boot}"


def _view(node: Node) -> NodeView:
    return NodeView(
        name=node.name,
        uid=node.uid,
        resource_version=str(node.version),
        labels=dict(node.labels),
        annotations=dict(node.annotations),
        taints=node.taints,
        unschedulable=node.is_cordoned,
        ready=node.is_ready,
        boot_id=boot_id(node.name, node.boot),
        cordoned_by=(keys.FIELD_MANAGER,) if node.is_cordoned else (),
    )
