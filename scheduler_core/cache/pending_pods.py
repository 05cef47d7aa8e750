"""The cached pods without a node. A snapshot of them costs nothing until somebody reads it."""

from __future__ import annotations

from weakref import WeakSet

from scheduler_core.model.pod import Pod


class PendingPods:
    """Changes of the pods are logged while a snapshot may still need them."""

    def __init__(self) -> None:
        self._pods: dict[str, tuple[int, Pod]] = {}  # with the number of the pod's arrival
        self._arrivals = 0
        self._log: list[tuple[str, tuple[int, Pod] | None]] = []  # what each change replaced
        self._unread: WeakSet[PendingThen] = WeakSet()

    def __contains__(self, key: str) -> bool:
        return key in self._pods

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, key: str) -> Pod | None:
        found = self._pods.get(key)
        return None if found is None else found[1]

    def put(self, pod: Pod) -> None:
        old = self._pods.get(pod.key)
        self._note(pod.key, old)
        if old is None:
            self._arrivals += 1
        self._pods[pod.key] = (self._arrivals if old is None else old[0], pod)

    def remove(self, key: str) -> None:
        self._note(key, self._pods.pop(key))

    def as_they_are(self) -> PendingThen:
        """The pods of now, also after later changes."""
        then = PendingThen(self, len(self._log))
        self._unread.add(then)
        return then

    def _note(self, key: str, old: tuple[int, Pod] | None) -> None:
        if not self._unread:
            self._log.clear()
            return
        self._log.append((key, old))
        if len(self._log) > len(self._pods) + _SHORT:
            for then in tuple(self._unread):
                then.pods()
            self._log.clear()

    def at(self, position: int, reader: PendingThen) -> tuple[Pod, ...]:
        """In the order of their arrival, without the changes that the log has from this position on."""
        self._unread.discard(reader)
        pods: dict[str, tuple[int, Pod] | None] = dict(self._pods)
        pods.update(reversed(self._log[position:]))
        return tuple(pod for _, pod in sorted(filter(None, pods.values()), key=lambda numbered: numbered[0]))


_SHORT = 256  # below, a log costs less memory than a snapshot


class PendingThen:
    """The pending pods of one snapshot."""

    __slots__ = ("__weakref__", "_found", "_owner", "_position")

    def __init__(self, owner: PendingPods, position: int) -> None:
        self._owner, self._position = owner, position
        self._found: tuple[Pod, ...] | None = None

    def pods(self) -> tuple[Pod, ...]:
        """Made when first read."""
        if self._found is None:
            self._found = self._owner.at(self._position, self)
        return self._found
