"""The counts of placed pods that plugins need: requested resources, pods that a query selects, host ports, affinity
terms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, ClassVar, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from scheduler_core.model.pod import HostPort, Pod
from scheduler_core.model.requests import RequestRules, Requests, of_running_requests
from scheduler_core.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from scheduler_core.snapshot.columns import MOST_COUNTED, Columns, resized
from scheduler_core.snapshot.node_labels import Topology
from scheduler_core.snapshot.pods.affinity_groups import IncomingPod, Kind
from scheduler_core.snapshot.pods.change_log import Changes
from scheduler_core.snapshot.pods.changing_usage import ChangingUsage
from scheduler_core.snapshot.pods.pod_classes import PodQuery
from scheduler_core.snapshot.pods.pod_table import PodTable
from scheduler_core.values import Value

Ints = NDArray[np.int64]
Counts = NDArray[np.signedinteger[Any]]
"""Kept for each application, in large clusters some ten kilobytes each: in 16 bits if they are `_SMALL`."""
# Half of what 16 bits hold: a cycle adds and removes pods in copies of its own, such as the victims of preemption.
_SMALL: Final = 2**14
Place = TypeVar("Place", bound=Hashable)


class UsageTally(Value):
    """Sums the requests of the pods on each node, computed by `rules`."""

    rules: RequestRules
    reads_every_pod: ClassVar[bool] = True

    def count(self, columns: Columns, table: PodTable) -> ChangingUsage:
        lines: list[Ints] = []
        code_of: dict[tuple[int, int], int] = {}
        codes, names = np.empty(len(table.pods), dtype=np.intp), columns.resource_names
        for index, pod in enumerate(table.pods):
            # Equal specs are the same object, and so are equal resize states.
            kind = (id(pod.spec), id(pod.resize))
            code = code_of.get(kind)
            if code is None:
                code = code_of[kind] = len(lines)
                lines.append(_usage_line(pod, self.rules, names))
            codes[index] = code
        sums = np.zeros((len(columns.resources) + 3, len(columns)), dtype=np.int64)
        if lines:
            matrix = np.array(lines, dtype=np.int64)
            for line, amounts in enumerate(matrix.T):
                if amounts.any():
                    np.add.at(sums[line], table.rows, amounts[codes])
        return ChangingUsage.of_sums(sums)

    def after(
        self,
        value: ChangingUsage,
        changes: Changes,
        columns: Columns,
        table: PodTable,  # noqa: ARG002 - the protocol's
    ) -> ChangingUsage:
        pods: dict[tuple[int, int, int], Pod] = {}
        numbers: dict[tuple[int, int, int], int] = {}
        for change in changes.counted():
            pod = change.pod
            kind = (change.row, id(pod.spec), id(pod.resize))
            numbers[kind] = numbers.get(kind, 0) + change.sign
            pods[kind] = pod
        names, rules = columns.resource_names, self.rules
        more = [
            (kind[0], line if number == 1 else number * line)
            for kind, number in numbers.items()
            if number
            for line in (_usage_line(pods[kind], rules, names),)
        ]
        return value.plus(more) if more else value

    def basis(self, columns: Columns) -> Hashable:
        return columns.resource_names

    def over(self, value: ChangingUsage, rows: int) -> ChangingUsage:
        return value.resized(resized(value.usage.sums, rows))


@of_running_requests
def _usage_line(requests: Requests, names: tuple[str, ...]) -> Ints:
    """What a pod adds to its node's column of `Usage.sums`: its requests for `names`, those for cpu and memory that
    scores use (with defaults for containers without a request), and 1 for the pod."""
    amounts = {
        CPU: requests.cpu,
        MEMORY: requests.memory,
        EPHEMERAL_STORAGE: requests.ephemeral_storage,
        **requests.scalars,
    }
    return np.array(
        [min(amounts.get(name, 0), MOST_COUNTED) for name in names]
        + [requests.nonzero_cpu, requests.nonzero_memory, 1],
        dtype=np.int64,
    )


class QueryTally(Value):
    """Counts, on each node, the pods that the query selects."""

    query: PodQuery
    reads_every_pod: ClassVar[bool] = False

    def count(self, columns: Columns, table: PodTable) -> Counts:
        _, numbers = table.kinds.chosen(self.query)
        return _compact(np.bincount(table.rows_of_classes(numbers), minlength=len(columns)))

    def after(self, value: Counts, changes: Changes, columns: Columns, table: PodTable) -> Counts:  # noqa: ARG002
        numbers, _ = table.kinds.chosen(self.query)
        relevant = changes.of_classes(numbers)
        if not relevant:
            return value
        counts = _copy_for(value, len(relevant))
        for change in relevant:
            counts[change.row] += change.sign
        return counts

    def basis(self, columns: Columns) -> Hashable:  # noqa: ARG002
        return None

    def over(self, value: Counts, rows: int) -> Counts:
        return resized(value, rows)


class DomainTally(Value):
    """Counts, in each domain of the topology key, the pods that the query selects. The last element is for nodes
    without the key."""

    query: PodQuery
    key: str
    reads_every_pod: ClassVar[bool] = False

    def count(self, columns: Columns, table: PodTable) -> Counts:
        _, numbers = table.kinds.chosen(self.query)
        topology = columns.labels.topology(self.key)
        codes = topology.codes[table.rows_of_classes(numbers)]
        return _compact(np.bincount(codes, minlength=topology.missing + 1))

    def after(self, value: Counts, changes: Changes, columns: Columns, table: PodTable) -> Counts:
        numbers, _ = table.kinds.chosen(self.query)
        left = _net((change.row, change.sign) for change in changes.of_classes(numbers))
        if not left:
            return value
        counts = _copy_for(value, sum(abs(number) for _, number in left))
        codes = columns.labels.topology(self.key).codes
        for row, number in left:
            counts[codes[row]] += number
        return counts

    def basis(self, columns: Columns) -> Hashable:
        return columns.labels.identity

    def over(self, value: Counts, rows: int) -> Counts:  # noqa: ARG002
        return value


class HostPortTally(Value):
    """Counts, on each node, the pods that use a host port; one count for each port in use."""

    reads_every_pod: ClassVar[bool] = True

    def count(self, columns: Columns, table: PodTable) -> Mapping[HostPort, Ints]:
        ports: dict[HostPort, Ints] = {}
        for pod, row in zip(table.pods, table.rows, strict=True):
            for port in pod.spec.host_ports:
                if port not in ports:
                    ports[port] = np.zeros(len(columns), dtype=np.int64)
                ports[port][row] += 1
        return ports

    def after(
        self,
        value: Mapping[HostPort, Ints],
        changes: Changes,
        columns: Columns,
        table: PodTable,  # noqa: ARG002 - the protocol's
    ) -> Mapping[HostPort, Ints]:
        relevant = [(change, port) for change in changes.counted() for port in change.pod.spec.host_ports]
        ports, rows = dict(value), max(len(columns), *(1 + change.row for change, _ in relevant), 0)
        for change, port in relevant:
            ports[port] = ports[port].copy() if port in ports else np.zeros(rows, dtype=np.int64)
            ports[port][change.row] += change.sign
        return ports

    def basis(self, columns: Columns) -> Hashable:  # noqa: ARG002
        return None

    def over(self, value: Mapping[HostPort, Ints], rows: int) -> Mapping[HostPort, Ints]:
        return {port: resized(users, rows) for port, users in value.items() if users.any()}


HOST_PORTS: Final = HostPortTally()


class Pull(Value, eq=False):
    """The affinity terms of placed pods that select an incoming pod, for one topology key: in each domain, the sum
    of their `weights` and their number (`terms`). The last elements are for nodes without the key."""

    weights: Counts
    terms: Counts

    def compact(self) -> Pull:
        return Pull(_compact(self.weights), _compact(self.terms))

    def copy_for(self, more: int) -> Pull:
        """Has room for so much more weight."""
        return Pull(_copy_for(self.weights, more), _copy_for(self.terms, more))

    def add(self, at: int | slice, weight: int, terms: int | NDArray[np.intp]) -> None:
        """Adds, to each of the domains `at`, `terms` matching terms of this weight. In place, so only before the
        object is shared."""
        self.weights[at] += weight * terms
        self.terms[at] += terms


PullsByKey = Mapping[tuple[Kind, str], Pull]


class PullTally(Value):
    """The affinity terms of placed pods that select an incoming pod: for each kind of term and topology key, their
    number and weights in each domain. `AffinityGroups.pulls_on` gives the weights."""

    incoming: IncomingPod
    reads_every_pod: ClassVar[bool] = False

    def count(self, columns: Columns, table: PodTable) -> PullsByKey:
        pulls: dict[tuple[Kind, str], Pull] = {}
        for group, terms in table.affinities.pulls_on(self.incoming).items():
            rows = table.rows_of_group(group)
            for kind, key, weight in terms if len(rows) else ():
                topology = columns.labels.topology(key)
                counts = np.bincount(topology.codes[rows], minlength=topology.missing + 1)
                _at(pulls, kind, topology).add(slice(None), weight, counts)
        return {at: pull.compact() for at, pull in pulls.items()}

    def after(self, value: PullsByKey, changes: Changes, columns: Columns, table: PodTable) -> PullsByKey:
        matched = table.affinities.pulls_on(self.incoming)
        relevant = changes.of_groups(matched.keys()) if matched else ()
        left = _net(((change.row, change.group), change.sign) for change in relevant)
        if not left:
            return value
        more: Counter[tuple[Kind, str]] = Counter()
        for (_, group), number in left:
            for kind, key, weight in matched[group]:
                more[kind, key] += abs(number) * max(1, abs(weight))
        pulls = {at: pull.copy_for(more[at]) if at in more else pull for at, pull in value.items()}
        for (row, group), number in left:
            for kind, key, weight in matched[group]:
                topology = columns.labels.topology(key)
                _at(pulls, kind, topology).add(int(topology.codes[row]), weight, number)
        return pulls

    def basis(self, columns: Columns) -> Hashable:
        return columns.labels.identity

    def over(self, value: PullsByKey, rows: int) -> PullsByKey:  # noqa: ARG002
        return value


def _compact(counts: Counts) -> Counts:
    return counts.astype(np.int16 if _largest(counts) < _SMALL else np.int32)


def _copy_for(counts: Counts, more: int) -> Counts:
    """A copy in which each element may grow or shrink by `more`."""
    fits = counts.dtype != np.int16 or _largest(counts) + more < _SMALL
    return counts.copy() if fits else counts.astype(np.int32)


def _largest(counts: Counts) -> int:
    return int(np.maximum.reduce(np.abs(counts), initial=0))


def _net(changes: Iterable[tuple[Place, int]]) -> list[tuple[Place, int]]:
    """The sums per place that are not 0.

    Most changes cancel: a pod that begins to terminate, or is replaced under another name, is removed and added; before
    a node is removed, all its pods are.
    """
    sums: dict[Place, int] = {}
    for place, number in changes:
        sums[place] = sums.get(place, 0) + number
    return [(place, number) for place, number in sums.items() if number]


def _at(pulls: dict[tuple[Kind, str], Pull], kind: Kind, topology: Topology) -> Pull:
    at = (kind, topology.key)
    if at not in pulls:
        pulls[at] = Pull(*np.zeros((2, topology.missing + 1), dtype=np.int32))
    return pulls[at]
