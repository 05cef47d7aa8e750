"""The process that computes one forecast: `python -m careen.agent.forecast.child`, request on stdin, result on stdout.

It keeps numpy and a whole cluster's lists out of the agent, which runs on every node all day. It limits its own memory
and raises its OOM score, so that the kernel kills it before the agent.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import json
import os
import random
import re
import resource
import signal
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from careen.agent.forecast.container_memory import UNTOUCHED_BYTES, room
from careen.agent.forecast.order import AHEAD, ForecastRequest
from careen.cluster.wire.lean_imports import load_lean_client, without_collections

if TYPE_CHECKING:
    from scheduler_core.config.configuration import Configuration
    from scheduler_core.cycle import Scheduler
    from scheduler_core.simulation.evicted.replacements import StaysBecause
    from scheduler_core.simulation.searches import Likely
    from scheduler_core.snapshot.snapshot import Snapshot  # only here: the agent must not load numpy

# One thread is enough for rows of integers, and each more would cost address space and memory.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


WAITS_SECONDS = 180  # for the request; longer than the agent keeps the process

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_STACK_BYTES = 512 * 2**10
_NEEDED = (
    "asyncio",
    "careen.agent.clock",
    "careen.cluster.snapshot_reader",
    "careen.cluster.whole_cluster",
    "careen.cluster.wire.api",
    "careen.cluster.wire.client",
    "scheduler_core.config.kube_version",
    "scheduler_core.simulation.drain",
    "scheduler_core.simulation.evicted.replacements",
    "scheduler_core.snapshot.dump",
)


def main() -> int:
    """Prints `{"forecasts": […]}`, `{"unknown": sentence}`, or for an invalid request `{"mistake": sentence}`."""
    if sys.argv[1:2] == [AHEAD]:
        _get_ready(int(sys.argv[2]))
    order = ForecastRequest.from_json(sys.stdin.read())
    signal.alarm(0)
    left = room()
    _be_small(order.memory_bytes if left is None else min(order.memory_bytes, left.left_bytes + UNTOUCHED_BYTES))
    answer: dict[str, Any]
    try:
        answer = _answer(order)
    except Exception as error:
        answer = {"unknown": f"the simulation failed: {type(error).__name__}: {error}"}
        if _is_want_of_memory(error):
            answer = {"unknown": order.wants_more_memory(left)}
    json.dump(answer, sys.stdout)
    return 0


def _get_ready(memory_bytes: int) -> None:
    """Loads all modules while the process waits for its request. It ends by itself if none comes in time or if the
    agent ends."""
    signal.alarm(WAITS_SECONDS)
    _die_with_parent()
    _go_first()
    # Only the soft limit. The request sets the hard one, which may be higher: a person may raise --forecast-memory
    # while the process waits.
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    load_lean_client()
    with without_collections():
        for name in _NEEDED:
            import_module(name)


def _is_want_of_memory(error: BaseException | None) -> bool:
    """If memory runs out while a library loads, the error is an ImportError with the loader's message."""
    if error is None:
        return False
    return (
        isinstance(error, MemoryError)
        or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
        or "failed to map segment" in str(error)
        or "can't start new thread" in str(error)
        or _is_want_of_memory(error.__cause__ or error.__context__)
    )


def _be_small(memory_bytes: int) -> None:
    # The one thread needs no 8 MiB of stack, which would count towards the limit.
    threading.stack_size(_STACK_BYTES)
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    _die_with_parent()
    _go_first()


def _go_first() -> None:
    """At the container's memory limit the kernel kills this process, not the agent."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def _die_with_parent() -> None:
    """The kernel ends this process with the agent. Linux only; elsewhere it ends at its deadline."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _answer(order: ForecastRequest) -> dict[str, Any]:
    from scheduler_core.cycle import Scheduler
    from scheduler_core.model.manifests.fields import clock_at
    from scheduler_core.simulation.drain import simulate_drain
    from scheduler_core.simulation.evicted.replacements import moves_all
    from scheduler_core.simulation.forecast import Outcome
    from scheduler_core.snapshot.dump import UnreadableDumpError

    try:
        snapshot, release, made_at, learnt = _from_dump(order.dump) if order.dump else (*_from_cluster(order), None)
    except UnreadableDumpError as error:
        return {"mistake": f"--from {order.dump}: {error}"}
    if order.dump and (absent := [name for name in order.nodes if name not in snapshot.columns.row_of]):
        return {
            "mistake": f"--from {order.dump}: there is no Node {absent[0]!r} among the {len(snapshot.nodes)} Nodes "
            "of this dump"
        }
    version, note = supported(release)
    try:
        configuration = _configuration(order) if order.scheduler_config else None
    except _NoConfigurationError as error:
        return {"mistake": f"--scheduler-config is not a KubeSchedulerConfiguration: {error}"}
    if order.slow_pod_selectors:
        snapshot = _with_listed(snapshot, order.slow_pod_selectors)
    stays = _rule_of(order.drain_pod_selector) if order.drain_pod_selector else moves_all
    scheduler = Scheduler(configuration, version, clock=clock_at(made_at))
    made = simulate_drain(
        snapshot,
        order.nodes,
        made_at=made_at,
        configuration=configuration,
        kube_version=version,
        searches=_learnt_searches(learnt, snapshot, scheduler),
        stays=stays,
    )
    more: dict[str, Any] = {}
    is_stuck = any(forecast.count(Outcome.PENDING) for forecast in made)
    if order.more_nodes or (order.suggests_nodes and is_stuck):
        from careen.agent.forecast.nodes_asked import NoTemplateError, nodes_asked

        try:
            more = nodes_asked(order, snapshot, scheduler, stays)
        except NoTemplateError as error:
            return {"mistake": f"--with-nodes: {error}"}
    unread = [
        f"the forecast leaves out an object that could not be read: {problem}" for problem in snapshot.problems[:5]
    ]
    mappings = [forecast.to_mapping() for forecast in made]
    for mapping in mappings:
        mapping["notes"] = [*mapping["notes"], *more.get("notes", ()), *([note] if note else []), *unread]
        mapping |= {key: value for key, value in more.items() if key != "notes"}
    return {"forecasts": mappings}


def _rule_of(selector: str) -> StaysBecause:
    # without a selector, which few agents have, a drain considers all pods
    from careen.core.drain.drain_plan import rule_of
    from careen.core.facts.policy import DrainPolicy
    from careen.core.facts.selectors import Selector

    return rule_of(DrainPolicy(selector=Selector.parse(selector)))


def _with_listed(snapshot: Snapshot, selectors: Iterable[str]) -> Snapshot:
    from careen.core.drain.listed_budgets import with_listed
    from careen.core.facts.policy import DrainPolicy
    from careen.core.facts.selectors import Selector

    policy = DrainPolicy(slow_selectors=tuple(Selector.parse(each) for each in selectors))
    return snapshot.with_objects(budgets=with_listed(snapshot.objects.budgets, snapshot.placed_pods, policy))


def _learnt_searches(learnt: object, snapshot: Snapshot, scheduler: Scheduler) -> tuple[Likely, ...] | None:
    """The possible searches for the next pod, which `careen shadow` learned and stored in its dump; None if the dump
    has none."""
    if learnt is None:
        return None
    from scheduler_core.learning.stored_estimate import learnt_searches
    from scheduler_core.simulation.drain import most_searches

    return learnt_searches(learnt, snapshot, scheduler, most_searches(len(snapshot.nodes)))


def _from_dump(path: str) -> tuple[Snapshot, str, str, object]:
    from scheduler_core.snapshot.dump import read_dump

    with Path(path).open("rb") as file:
        dump = read_dump(file)
    return dump.snapshot, dump.header.kube_version, dump.header.taken_at, dump.learnt


def _from_cluster(order: ForecastRequest) -> tuple[Snapshot, str, str]:
    """The cluster, the server's release, and when the first list was requested."""
    import asyncio  # only needed to read a cluster, not a dump

    load_lean_client()
    from careen.agent.clock import SystemClock
    from careen.cluster.snapshot_reader import server_version
    from careen.cluster.whole_cluster import read_cluster
    from careen.cluster.wire.api import ClusterApi
    from careen.cluster.wire.client import ClientTransport, load_configuration, user_agent
    from careen.core.facts.times import rfc3339

    kubeconfig = Path(order.kubeconfig) if order.kubeconfig else None
    transport = ClientTransport(
        lambda: load_configuration(kubeconfig, context=order.context or None), agent=user_agent("forecast"), threads=1
    )
    clock = SystemClock()
    api = ClusterApi(transport, clock, chance=random.random)
    with asyncio.Runner() as runner:
        release = runner.run(server_version(api))
        made_at = rfc3339(clock.now())
        snapshot = runner.run(read_cluster(api))
    transport.close()
    return snapshot, release, made_at


def supported(version: str) -> tuple[str, str]:
    """The release whose scheduler is simulated, and a note if the cluster runs another ("" if not)."""
    from scheduler_core.config.kube_version import NEWEST, OLDEST, KubeVersion, UnsupportedKubeVersionError

    try:
        return str(KubeVersion.parse(version)), ""
    except UnsupportedKubeVersionError:
        named = re.match(r"v?(\d{1,4})\.(\d{1,4})", version or "")
        is_older = named is not None and (int(named[1]), int(named[2])) < OLDEST
        nearest = ".".join(map(str, OLDEST if is_older else NEWEST))
        return (
            nearest,
            f"the cluster runs {version or 'an unnamed release'}; the forecast assumes the scheduler of {nearest}",
        )


class _NoConfigurationError(Exception):
    """Not a valid KubeSchedulerConfiguration. Most such errors are found when the agent reads its settings; a very long
    text is checked only here."""


def _configuration(order: ForecastRequest) -> Configuration:
    from careen.settings import yaml_text
    from careen.settings.scheduler_config import one_line
    from scheduler_core.config.configuration import Configuration
    from scheduler_core.config.fields import ConfigurationError

    try:
        return Configuration.from_mapping(yaml_text.load(order.scheduler_config), may_name_files=order.may_name_files)
    except ConfigurationError as error:
        raise _NoConfigurationError(one_line(error)) from None
    except yaml_text.BadYaml as error:
        raise _NoConfigurationError(str(error)) from None
    except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError):
        raise _NoConfigurationError("the fields of the configuration do not have the expected structure") from None


def _run() -> NoReturn:
    # Most objects live until the process ends, so the cyclic collector would find nothing; a hundred thousand objects
    # in cycles are small compared with the limit.
    gc.set_threshold(100_000)
    code = main()
    # Exit without destructors: freeing numpy and the snapshot object by object takes a third of the imports' time.
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    _run()
