"""What a pod requests: containers, sidecars, init containers, pod-level resources, overhead, and resizes in progress.

Source: component-helpers/resource/helpers.go (PodRequests, v1.36 and v1.37) and its use in
pkg/scheduler/framework/types.go (CalculateResource).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial, wraps
from typing import Concatenate, Final, ParamSpec, TypeVar

from msgspec import field

from scheduler_core.model.kept_with_spec import kept_with_spec
from scheduler_core.model.pod import Container, ContainerResize, Pod, PodResize, PodSpec
from scheduler_core.model.quantity import NANOS_PER_MILLI, NANOS_PER_UNIT
from scheduler_core.model.resources import (
    CPU,
    DEFAULT_CPU_MILLIS,
    DEFAULT_MEMORY_BYTES,
    EPHEMERAL_STORAGE,
    MEMORY,
    is_scalar,
    whole_amounts,
)
from scheduler_core.values import Value

Nanos = Mapping[str, int]
Result = TypeVar("Result")
Others = ParamSpec("Others")

_BOTH_DEFAULTS: Final = {CPU: DEFAULT_CPU_MILLIS * NANOS_PER_MILLI, MEMORY: DEFAULT_MEMORY_BYTES * NANOS_PER_UNIT}


class RequestRules(Value, kw_only=True):
    """Which requests count in a Kubernetes release, by its feature gates. The defaults are those of 1.36."""

    status_resources: bool = True
    pod_level: bool = True
    pod_level_resize: bool = True
    whole_sums: bool = False


CURRENT_RULES: Final = RequestRules()


class Requests(Value, kw_only=True):
    """Cpu in millis, other resources in whole units. `scalars`: all but cpu, memory and ephemeral storage, sorted by
    name.

    `nonzero_cpu` and `nonzero_memory` count 100m and 200Mi for each container without a request; only scores use them.
    """

    cpu: int = 0
    memory: int = 0
    ephemeral_storage: int = 0
    scalars: Mapping[str, int] = field(default_factory=dict)
    nonzero_cpu: int = 0
    nonzero_memory: int = 0

    def amount(self, resource: str) -> int:
        """The exact request, or 0."""
        if resource == CPU:
            return self.cpu
        if resource == MEMORY:
            return self.memory
        return self.ephemeral_storage if resource == EPHEMERAL_STORAGE else self.scalars.get(resource, 0)

    @property
    def is_nothing(self) -> bool:
        """A request of 0 is ignored for cpu, memory and ephemeral storage, but not for any other resource."""
        return not (self.cpu or self.memory or self.ephemeral_storage or self.scalars)


@kept_with_spec
def incoming_requests(spec: PodSpec, rules: RequestRules) -> Requests:
    """Of a pod that is not yet on a node. Ignores a resize."""
    return _requests(spec, None, rules)


def running_requests(pod: Pod, rules: RequestRules) -> Requests:
    """Of a pod on a node. During an in-place resize the largest of three amounts: wanted (spec), actuated and allocated
    (status).

    With `whole_sums` and pod-level amounts in the status, the overhead counts twice, because the kubelet's amounts
    already contain it.
    """
    if pod.resize is None or not rules.status_resources:
        return incoming_requests(pod.spec, rules)
    return _requests(pod.spec, pod.resize, rules)


def of_running_requests(
    work_out: Callable[Concatenate[Requests, Others], Result],
) -> Callable[Concatenate[Pod, RequestRules, Others], Result]:
    """Turns a function of requests into one of a pod on a node. The result is kept with the spec, but for a pod whose
    status has amounts too."""

    @kept_with_spec
    def of_spec(spec: PodSpec, rules: RequestRules, /, *others: Others.args, **named: Others.kwargs) -> Result:
        return work_out(incoming_requests(spec, rules), *others, **named)

    @wraps(work_out)
    def of_pod(pod: Pod, rules: RequestRules, /, *others: Others.args, **named: Others.kwargs) -> Result:
        if pod.resize is None:
            return of_spec(pod.spec, rules, *others, **named)
        return work_out(running_requests(pod, rules), *others, **named)

    return of_pod


@kept_with_spec
def scored_requests(spec: PodSpec) -> Mapping[str, int]:
    """What the score of NodeResourcesFit counts for the incoming pod, with default amounts for a container without
    requests.

    Like the scheduler (noderesources/fit.go, v1.36), it ignores the pod-level resources of the incoming pod, although
    those of existing pods count.
    """
    return whole_amounts(_sum(spec, None, RequestRules(pod_level=False), _BOTH_DEFAULTS))


def _requests(spec: PodSpec, resize: PodResize | None, rules: RequestRules) -> Requests:
    nanos = _sum(spec, resize, rules, {})
    amounts = whole_amounts(nanos)
    missing = _defaults_that_apply(spec, rules, nanos)
    nonzero = whole_amounts(_sum(spec, resize, rules, missing)) if missing else amounts
    return Requests(
        cpu=amounts.get(CPU, 0),
        memory=amounts.get(MEMORY, 0),
        ephemeral_storage=amounts.get(EPHEMERAL_STORAGE, 0),
        scalars={name: amount for name, amount in sorted(amounts.items()) if is_scalar(name)},
        nonzero_cpu=nonzero.get(CPU, 0),
        nonzero_memory=nonzero.get(MEMORY, 0),
    )


def _defaults_that_apply(spec: PodSpec, rules: RequestRules, sums: Nanos) -> Nanos:
    # With pod-level requests a default is used only for a resource that neither the pod nor any container names.
    if rules.pod_level and _pod_level(spec):
        return {name: amount for name, amount in _BOTH_DEFAULTS.items() if name not in sums}
    return _BOTH_DEFAULTS


def _sum(spec: PodSpec, resize: PodResize | None, rules: RequestRules, defaults: Nanos) -> dict[str, int]:
    if resize is not None and rules.whole_sums:
        total = _largest_sum(spec, resize, rules, defaults)
    else:
        own = partial(_of_container, resize=resize, defaults=defaults)
        total = _containers(spec, own, lambda c: own(c) if c.restarts_always else _with_defaults(c.requests, defaults))
    if rules.pod_level:
        total.update(_effective_pod_level(spec, resize, rules))
    return _plus(total, spec.overhead)


def _largest_sum(spec: PodSpec, resize: PodResize, rules: RequestRules, defaults: Nanos) -> dict[str, int]:
    """Since 1.37 (AggregateContainerRequests): the largest of the sums over all containers of what the spec wants, what
    is allocated and what is actuated. Pod-level amounts in the status replace the last two."""
    sums: list[Nanos] = []
    if not resize.is_infeasible:
        wanted = partial(_of_container, resize=None, defaults=defaults)
        sums.append(_containers(spec, wanted, wanted))
    whole = resize.pod_level
    if rules.pod_level_resize and whole is not None and whole.allocated is not None and whole.actuated is not None:
        sums += [whole.actuated, whole.allocated]
    else:
        for is_actuated in (True, False):
            reported = partial(_reported, resize=resize, defaults=defaults, is_actuated=is_actuated)
            sums.append(_containers(spec, reported, reported))
    return _largest(sums)


def _reported(container: Container, *, resize: PodResize, defaults: Nanos, is_actuated: bool) -> Nanos:
    state = resize.containers.get(container.name)
    own = None if state is None else state.allocated
    if is_actuated and state is not None and state.actuated is not None:
        own = state.actuated
    if own is None:
        own = {} if resize.is_infeasible else container.requests
    return _with_defaults(own, defaults)


def _containers(
    spec: PodSpec, of_container: Callable[[Container], Nanos], of_init_container: Callable[[Container], Nanos]
) -> dict[str, int]:
    """For each resource the larger of two amounts: the sum over containers and sidecars, and the most that an init
    container needs together with the sidecars started before it."""
    running: dict[str, int] = {}
    for container in spec.containers:
        running = _plus(running, of_container(container))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.init_containers:
        own = of_init_container(container)
        step = _plus(sidecars, own)
        if container.restarts_always:
            running, sidecars = _plus(running, own), step
        peak = _largest((peak, step))
    return _largest((running, peak))


def _of_container(container: Container, *, resize: PodResize | None, defaults: Nanos) -> Nanos:
    """Until 1.36: the largest of the container's three amounts."""
    own = container.requests
    state = None if resize is None else resize.containers.get(container.name)
    if state is not None and state.has_resources:
        own = _effective(own, state, infeasible=resize is not None and resize.is_infeasible)
    return _with_defaults(own, defaults)


def _with_defaults(own: Nanos, defaults: Nanos) -> Nanos:
    return {**defaults, **own} if defaults else own


def _effective_pod_level(spec: PodSpec, resize: PodResize | None, rules: RequestRules) -> Nanos:
    wanted = _pod_level(spec)
    if not wanted or resize is None or resize.pod_level is None or not rules.pod_level_resize:
        return wanted
    effective = _effective(spec.pod_level_requests or {}, resize.pod_level, infeasible=resize.is_infeasible)
    if rules.whole_sums:
        return _counted_pod_level(effective)
    return {name: effective.get(name, 0) for name in wanted}


def _pod_level(spec: PodSpec) -> Nanos:
    return _counted_pod_level(spec.pod_level_requests or {})


def _counted_pod_level(amounts: Nanos) -> Nanos:
    return {name: amount for name, amount in amounts.items() if name in (CPU, MEMORY) or name.startswith("hugepages-")}


def _effective(wanted: Nanos, state: ContainerResize, *, infeasible: bool) -> Nanos:
    reported = (state.actuated or {}, state.allocated or {})
    return _largest(reported if infeasible else (wanted, *reported))


def _plus(one: Nanos, other: Nanos) -> dict[str, int]:
    total = dict(one)
    for name, amount in other.items():
        total[name] = total.get(name, 0) + amount
    return total


def _largest(several: Iterable[Nanos]) -> dict[str, int]:
    result: dict[str, int] = {}
    for amounts in several:
        for name, amount in amounts.items():
            if name not in result or amount > result[name]:
                result[name] = amount
    return result
