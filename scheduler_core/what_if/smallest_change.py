"""The smallest changes after which a pending pod would find a node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from scheduler_core.cycle import Scheduler
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.runner import NOBODY, Nominated, Runner
from scheduler_core.framework.verdict import Verdict, VerdictCode
from scheduler_core.model.node import UNSCHEDULABLE_TAINT_KEY
from scheduler_core.model.pod import Pod
from scheduler_core.model.requests import incoming_requests
from scheduler_core.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from scheduler_core.model.taints import tolerated
from scheduler_core.sentences import count_of
from scheduler_core.snapshot.node_info import NodeInfo
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.snapshot.snapshot import Snapshot
from scheduler_core.values import Value
from scheduler_core.what_if.more_nodes import nodes_needed
from scheduler_core.what_if.node_template import like_node

_MOST_NODES: Final = 2_000
"""Nodes whose refusals are read in full. In a larger cluster, those with the most room of each kind of refusal."""
_MOST_SHAPES: Final = 6
_MOST_NEW_NODES: Final = 10


class HelpfulChange(Value, kw_only=True, rename="camel"):
    """What lets the pod run on this node: all of `orders`, each in the imperative. `shortage`: of the amounts to free,
    the largest part of what the node can allocate."""

    node: str
    orders: tuple[str, ...]
    shortage: float = 0.0


class NewNodes(Value, kw_only=True, rename="camel"):
    """`count` new nodes like `like` give `pods` pods of this kind a node each."""

    like: str
    count: int
    pods: int


def smallest_changes(
    scheduler: Scheduler, snapshot: Snapshot, pod: Pod, most: int = 3, *, nominated: Nominated = NOBODY
) -> tuple[HelpfulChange, ...]:
    """For each kind of change its best node; first those with the fewest orders, then with the least to free. Empty for
    a pod that a plugin refuses before it looks at nodes. `nominated`: as in `Scheduler.schedule`; these pods keep their
    room."""
    runner, state = scheduler.runner(pod), CycleState()
    prepared = runner.pre_filter(state, pod, NodeList(snapshot, None, scheduler.rules))
    if prepared.refusal:
        return ()
    best: dict[tuple[str, ...], HelpfulChange] = {}
    for info, verdicts in _refused(scheduler, runner, state, snapshot, pod, nominated=nominated):
        orders = [_order(pod, info, scheduler, name, verdict) for name, verdict in verdicts.items()]
        if not orders or None in orders:
            continue
        change = HelpfulChange(
            node=info.name,
            orders=tuple(dict.fromkeys(order for order in orders if order)),
            shortage=max(_shortage(pod, info, scheduler), default=0.0),
        )
        kind = tuple(verdicts)
        if kind not in best or _size(change) < _size(best[kind]):
            best[kind] = change
    return tuple(sorted(best.values(), key=_size)[:most])


def new_nodes_that_help(scheduler: Scheduler, snapshot: Snapshot, pod: Pod) -> NewNodes | None:
    """The fewest new nodes like an existing one that give a node to this pod and to all others of its kind, those with
    the same specification that are pending. None if no node of the cluster is of a kind that helps."""
    alike = [each for each in snapshot.pending if each.spec == pod.spec and each.namespace == pod.namespace]
    pods = alike if any(each.key == pod.key for each in alike) else [*alike, pod]
    found: list[NewNodes] = []
    for name in _shapes(snapshot)[:_MOST_SHAPES]:
        needed = nodes_needed(scheduler, snapshot, pods, like_node(snapshot, name), _MOST_NEW_NODES)
        if needed.is_enough and needed.best.count:
            found.append(NewNodes(like=name, count=needed.best.count, pods=len(pods)))
    return min(found, key=lambda each: each.count, default=None)  # of equally many, the smallest shape


def _shapes(snapshot: Snapshot) -> list[str]:
    """One node of each size, set of taints and pool; the smallest first."""
    first: dict[object, str] = {}
    for node in snapshot.nodes:
        labels = tuple(sorted((key, value) for key, value in node.labels.items() if key not in _OWN_LABELS))
        first.setdefault((tuple(sorted(node.allocatable.items())), node.taints, labels), node.name)
    return sorted(first.values(), key=lambda name: (*_amounts(snapshot, name), name))


_OWN_LABELS: Final = frozenset({"kubernetes.io/hostname", "topology.kubernetes.io/zone"})


def _amounts(snapshot: Snapshot, name: str) -> tuple[int, int]:
    allocatable = snapshot.node(name).allocatable
    return allocatable.get(CPU, 0), allocatable.get(MEMORY, 0)


# ---- one node ----


def _refused(
    scheduler: Scheduler, runner: Runner, state: CycleState, snapshot: Snapshot, pod: Pod, *, nominated: Nominated
) -> Iterator[tuple[NodeInfo, Mapping[str, Verdict]]]:
    """The nodes with the refusals of all plugins."""
    infos: list[NodeInfo] = list(NodeList(snapshot, None, scheduler.rules))
    if len(infos) > _MOST_NODES:
        infos = sorted(infos, key=lambda info: max(_shortage(pod, info, scheduler), default=0.0))[:_MOST_NODES]
    for alone in infos:
        trial, info = runner.with_nominated(state, pod, alone, nominated.get(alone.name, ()))
        verdicts = runner.every_verdict(trial, pod, info)
        yield info, {name: verdict for name, verdict in verdicts.items() if not verdict.is_success}


def _size(change: HelpfulChange) -> tuple[int, float, str]:
    return len(change.orders), change.shortage, change.node


def _order(pod: Pod, info: NodeInfo, scheduler: Scheduler, plugin: str, verdict: Verdict) -> str | None:
    """None if no change of the node or the pod is known that the plugin would accept."""
    order = _ORDERS.get(plugin)
    return None if order is None else order(pod, info, scheduler, verdict)


def _free(pod: Pod, info: NodeInfo, scheduler: Scheduler, verdict: Verdict) -> str | None:
    del verdict
    short = _short(pod, info, scheduler)
    if info.allowed_pods < 1 or any(wanted > allocatable for wanted, _, allocatable in short.values()):
        return None  # however empty it is
    parts = [_amount(name, lack) for name, (_, lack, _) in short.items()]
    if len(info.pods) >= info.allowed_pods:
        parts.append("the place of one pod")
    return f"free {' and '.join(parts)} on {info.name}" if parts else None


def _short(pod: Pod, info: NodeInfo, scheduler: Scheduler) -> dict[str, tuple[int, int, int]]:
    """By resource: what the pod requests, what is missing, and what the node can allocate."""
    found = {}
    requests = incoming_requests(pod.spec, scheduler.rules)
    plain = {CPU: requests.cpu, MEMORY: requests.memory, EPHEMERAL_STORAGE: requests.ephemeral_storage}
    for name, wanted in {**plain, **requests.scalars}.items():
        allocatable = info.node.allocatable.get(name, 0)
        lack = wanted - (allocatable - info.requested.get(name, 0))
        if wanted and lack > 0:
            found[name] = (wanted, lack, allocatable)
    return found


def _shortage(pod: Pod, info: NodeInfo, scheduler: Scheduler) -> list[float]:
    return [lack / max(1, allocatable) for _, lack, allocatable in _short(pod, info, scheduler).values()]


def _tolerate(pod: Pod, info: NodeInfo, scheduler: Scheduler, verdict: Verdict) -> str:
    del scheduler, verdict
    refusing = [
        taint for taint in info.node.taints if taint.keeps_pods_away and not tolerated(taint, pod.spec.tolerations)
    ]
    is_cordoned = any(taint.key == UNSCHEDULABLE_TAINT_KEY for taint in refusing)
    others = [taint for taint in refusing if taint.key != UNSCHEDULABLE_TAINT_KEY]
    troubles = [taint.key.rpartition("/")[2] for taint in others if taint.key.startswith(_NODE_TROUBLES)]
    taints = [
        f"{each.key}{'=' if each.value else ''}{each.value}:{each.effect}"
        for each in others
        if not each.key.startswith(_NODE_TROUBLES)
    ]
    orders = [f"tolerate {' and '.join(taints)} of {info.name}"] if taints else []
    orders += [f"mend {info.name}, which is {' and '.join(troubles)}"] if troubles else []
    orders += [_uncordon(info)] if is_cordoned and not (orders and info.node.unschedulable) else []
    return " and ".join(orders)  # NodeUnschedulable says the cordon of an unschedulable node


_NODE_TROUBLES: Final = "node.kubernetes.io/"


def _uncordon(info: NodeInfo) -> str:
    return f"uncordon {info.name}"


def _label(pod: Pod, info: NodeInfo, scheduler: Scheduler, verdict: Verdict) -> str:
    del scheduler, verdict
    missing = [f"{key}={value}" for key, value in pod.spec.node_selector if info.node.labels.get(key) != value]
    if missing and pod.spec.node_affinity is None:
        return f"label {info.name} {' '.join(missing)}, or drop this from the pod's nodeSelector"
    return f"let the pod's nodeSelector or node affinity accept {info.name}"


def _ports(pod: Pod, info: NodeInfo, scheduler: Scheduler, verdict: Verdict) -> str:
    del scheduler, verdict
    ports = sorted({str(port.port) for port in pod.spec.host_ports} & {str(port.port) for port in info.used_ports})
    return f"free the host port{'s' * (len(ports) > 1)} {', '.join(ports)} on {info.name}"


def _spread(pod: Pod, info: NodeInfo, scheduler: Scheduler, verdict: Verdict) -> str | None:
    del scheduler
    if verdict.code is VerdictCode.UNSCHEDULABLE:
        return f"allow a larger maxSkew, or let more of the counted pods end elsewhere, for {info.name}"
    keys = {each.topology_key for each in pod.spec.topology_spread if each.when_unsatisfiable == "DoNotSchedule"}
    missing = sorted(keys - info.node.labels.keys())
    # In a domain with other nodes the skew may be too large.
    return f"label {info.name} with {' and '.join(missing)}, a value of its own" if missing else None


_Order = Callable[[Pod, NodeInfo, Scheduler, Verdict], str | None]
_ORDERS: Final[Mapping[str, _Order]] = {
    "NodeResourcesFit": _free,
    "TaintToleration": _tolerate,
    "NodeUnschedulable": lambda _pod, info, _scheduler, _verdict: _uncordon(info),
    "NodeAffinity": _label,
    "NodePorts": _ports,
    "PodTopologySpread": _spread,
    "InterPodAffinity": lambda _pod, info, _scheduler, verdict: (
        f"relax the affinity rules between pods for {info.name}: {verdict.message}"
    ),
}


def _amount(name: str, amount: int) -> str:
    if name == CPU:
        return f"{amount}m cpu"
    if name in (MEMORY, EPHEMERAL_STORAGE) or name.startswith("hugepages-"):
        return f"{-(-amount // 2**20)}Mi {name}"
    return count_of(amount, name) if "/" not in name else f"{amount} {name}"
