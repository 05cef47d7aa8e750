"""The state of a small fleet as a hashable value, so that the search visits no state twice. Tables store each memory,
pending action and Node once; a state has their numbers."""

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
    """Numbers values by their `repr`: some contain mappings, which have no hash."""

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
        return not self.is_cordoned and not self.taints and keys.REBOOT_LABEL not in dict(self.labels)


class Host(NamedTuple):
    """`next_at` is the time at which the machine goes down or comes up next."""

    boot: int = 1
    booted_at: int = 0
    is_up: bool = True
    needs: bool = True
    next_at: int = NEVER
    asked_at: int = -NEVER
    reboots: int = 0
    is_scrapped: bool = False


class Agent(NamedTuple):
    memory: int
    due: int = 0
    acts: tuple[int, ...] = ()
    """What is left of its decision."""
    look: int = 0
    confirmed_at: int = -NEVER
    is_up: bool = True
    is_overtaken: bool = False
    """Every other agent that is due acts first."""
    is_asleep: bool = False
    """It makes no turn until `due`, unless its Node goes or comes."""


class Late(NamedTuple):
    """A write that may still take effect, although its sender has given up."""

    sender: int
    act: int
    until: int


class State(NamedTuple):
    now: int
    nodes: tuple[int | None, ...]
    gone_since: tuple[int, ...]
    back_at: tuple[int, ...]
    """When each deleted Node is registered again."""
    hosts: tuple[Host, ...]
    agents: tuple[Agent, ...]
    lock: str | None
    lock_version: int
    lock_before: str | None
    """The lock before its last change, as a stale reading shows it."""
    held_at: tuple[int, ...]
    """When each node's claim left the lock; -NEVER if it is there or never was."""
    late: tuple[Late, ...]
    paused_at: int
    left: tuple[int, ...]
    """How many faults of each kind may still happen, and last how many of all kinds together."""
    delays: int


class Tables:
    def __init__(self) -> None:
        self.memories: Table[Memory] = Table()
        self.acts: Table[Action] = Table()
        self.nodes: Table[Node] = Table()
        self._views: dict[int, NodeView] = {}

    def view(self, number: int) -> NodeView:
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
