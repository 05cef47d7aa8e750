"""Each argument of each public function and method, replaced by each of some wrong values: a value of another type is
either answered or refused in words of the library, never by an error from inside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from inspect import Parameter, isclass, signature
from io import BytesIO
from typing import Any

import pytest
from msgspec import DecodeError

import scheduler_core
from scheduler_core import (
    SUCCESS,
    ClusterCache,
    Configuration,
    DumpWriter,
    Forecast,
    Header,
    KubeVersion,
    Machine,
    NodeOffer,
    Outcome,
    PageReader,
    Scheduler,
    SearchEstimate,
    Snapshot,
    Sync,
    Timeline,
    like_node,
    load_objects,
    queue_for,
    simulate_drain,
)
from scheduler_core.testing.builders import a_node, a_pod, manifests

WRONG: tuple[object, ...] = (None, 3, 1.5, "x", b"x", {}, [], object(), [3], ["x"], {3: 3}, [None])
SNAPSHOT = load_objects(manifests(a_node("n1"), a_node("n2"), a_pod("p").on("n1")))
SCHEDULER, POD, NODE = Scheduler(), a_pod("q").build(), a_node("z").build()
TEMPLATE = like_node(SNAPSHOT, "n1")
AT = datetime(2026, 1, 5, tzinfo=UTC)

# A right value for each parameter without a default, by its name.
RIGHT: dict[str, Any] = {
    "begins": AT,
    "count": 1,
    "event": {"type": "ADDED", "object": a_node("n3").manifest},
    "header": Header(kube_version="1.36", taken_at=""),
    "key": "default/p",
    "keys": ["default/p"],
    "kind": "Pod",
    "leaving": [SNAPSHOT.pod("default/p")],
    "coming": [],
    "mapping": {},
    "major": 1,
    "minor": 36,
    "kube_version": "1.36",
    "taken_at": "",
    "name": "n1",
    "manifest": a_pod("m").manifest,
    "most": 3,
    "new": NODE,
    "now": 1.0,
    "number": 1,
    "message": "m",
    "node": NODE,
    "node_name": "n1",
    "node_names": ["n1"],
    "nodes": [NODE],
    "objects": [],
    "offers": [NodeOffer(template=TEMPLATE)],
    "old": NODE,
    "orphans": (),
    "out": BytesIO(),
    "outcome": Outcome.PENDING,
    "page": b'{"kind": "PodList", "apiVersion": "v1", "items": []}',
    "pages": [],
    "plugin": "Odd",
    "pod": POD,
    "pods": [POD],
    "profile": SCHEDULER.configuration.profiles[0],
    "result": SCHEDULER.schedule(SNAPSHOT, POD),
    "resource": "cpu",
    "row": 0,
    "scheduler": SCHEDULER,
    "scheduler_name": "default-scheduler",
    "searched": 3,
    "searches": [None],
    "snapshot": SNAPSHOT,
    "sync": Sync("Pod", []),
    "template": TEMPLATE,
    "text": "1.36",
    "uid": "u",
}
RIGHT_FOR = {"pod_changes": {**RIGHT, "old": POD, "new": POD}}


def failed_cycle() -> dict[str, Any]:
    """The arguments of `handle_failed_cycle`: the pod has been popped from the queue."""
    queue = queue_for(SCHEDULER)
    queue.add(POD, 0.0)
    return {"queue": queue, "queued": queue.pop(), "result": SCHEDULER.schedule(SNAPSHOT, POD), "now": 1.0}


# Each object whose methods are called, made anew for each call.
OBJECTS: dict[str, Callable[[], Any]] = {
    "ClusterCache": ClusterCache,
    "Configuration": Configuration,
    "DumpWriter": lambda: DumpWriter(RIGHT["header"], BytesIO()),
    "Forecast": lambda: Forecast(node="n1", made_at=""),
    "KubeVersion": lambda: KubeVersion(major=1, minor=36),
    "Node": lambda: NODE,
    "Machine": lambda: Machine(SCHEDULER),
    "PageReader": PageReader,
    "Pod": lambda: POD,
    "Scheduler": lambda: SCHEDULER,
    "SearchEstimate": lambda: SearchEstimate.unknown(SNAPSHOT, SCHEDULER),
    "Snapshot": lambda: SNAPSHOT,
    "Timeline": lambda: Timeline(begins=AT, ends=AT, nodes=("n1",)),
    "Utilisation": SNAPSHOT.utilisation,
    "Verdict": lambda: SUCCESS,
}


# The simulation, the plugins and the shell call these with values that the library has given them.
INSIDE = {
    ("ClusterCache", "apply_read"),
    ("ClusterCache", "assume_object"),
    ("ClusterCache", "forget_object"),
    ("Machine", "answered"),
    ("Machine", "told"),
    ("Scheduler", "extender_refusals"),
    ("Scheduler", "with_extender_scores"),
    ("Snapshot", "remember"),
    ("Snapshot", "tally"),
    ("Snapshot", "with_others"),
}
# Made by the library, not by its users, or without a rule of its own: only the methods of these are called.
NOT_MADE = frozenset(
    {
        "BindingCycle",
        "CycleResult",
        "Dump",
        "Forecast",
        "MoreNodes",
        "Node",
        "NodeMix",
        "NodesNeeded",
        "Obstacle",
        "Outcome",
        "Pod",
        "PodForecast",
        "Removable",
        "Rules",
        "SearchEstimate",
        "Snapshot",
        "Timeline",
        "Utilisation",
        "Verdict",
    }
)


def calls() -> Iterator[tuple[str, str]]:
    """A public function or class, and a method; "" for the function or the constructor itself."""
    for name in scheduler_core.__all__:
        public = getattr(scheduler_core, name)
        if isclass(public) and not issubclass(public, BaseException):
            if name not in NOT_MADE:
                yield name, ""
            for method in dir(public) if name in OBJECTS else ():
                if not method.startswith("_") and callable(getattr(public, method)) and (name, method) not in INSIDE:
                    yield name, method
        elif callable(public) and not isclass(public):
            yield name, ""


def called(name: str, method: str) -> Any:
    return getattr(OBJECTS[name](), method) if method else getattr(scheduler_core, name)


def parameters(name: str, method: str) -> list[Parameter]:
    kinds = (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)
    return [each for each in signature(called(name, method)).parameters.values() if each.kind not in kinds]


QUESTIONS = [(name, method, each.name) for name, method in calls() for each in parameters(name, method)]


def ask(name: str, method: str, parameter: str, given: object) -> object:
    needed = [each.name for each in parameters(name, method) if each.default is Parameter.empty]
    known = failed_cycle() if name == "handle_failed_cycle" else RIGHT_FOR.get(name, RIGHT)
    right = {each: known[each] for each in needed if each != parameter}
    answer = called(name, method)(**right, **{parameter: given})
    return list(answer) if isinstance(answer, Iterator) else answer


def is_in_our_words(error: Exception) -> bool:
    """An error of one of our classes, a text that is no JSON, a file that does not exist, or advice."""
    ours = type(error).__module__.startswith("scheduler_core")
    told = ("expected", "pass ", "write it", "no node has the resource")
    return ours or isinstance(error, OSError | DecodeError) or any(each in str(error) for each in told)


@pytest.mark.parametrize(("name", "method", "parameter"), QUESTIONS)
def test_no_argument_lets_an_error_of_the_inside_out(name: str, method: str, parameter: str) -> None:
    for given in WRONG:
        try:
            ask(name, method, parameter, given)
        except Exception as error:
            if not is_in_our_words(error):
                raise AssertionError(f"{name}.{method}({parameter}={given!r}) raised {error!r}") from error


FLAGS = [
    (name, method, each.name)
    for name, method in calls()
    for each in parameters(name, method)
    if each.annotation in ("bool", bool)
]


@pytest.mark.parametrize(("name", "method", "parameter"), FLAGS)
def test_a_flag_takes_only_true_and_false(name: str, method: str, parameter: str) -> None:
    for given in ("no", 0, None):
        with pytest.raises(TypeError, match=f"{parameter} is a .*expected True or False"):
            ask(name, method, parameter, given)


def test_the_strict_flag_of_from_manifests_takes_only_true_and_false() -> None:
    given: Any = "no"
    with pytest.raises(TypeError, match="strict is a str 'no', expected True or False"):
        Snapshot.from_manifests({}, strict=given)


@pytest.mark.parametrize("pods", [[3], iter([3])])
def test_the_values_of_an_iterator_are_looked_at_too(pods: Any) -> None:
    with pytest.raises(TypeError, match="leaving has a int, expected only values of Pod"):
        SNAPSHOT.with_pods_moved(pods, [])


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (lambda: Configuration(parallelism=0), "parallelism: 0: should be an integer value greater than zero"),
        (lambda: Configuration(pod_initial_backoff_seconds=0), "podInitialBackoffSeconds: 0: must be greater than 0"),
        (lambda: Configuration(pod_max_backoff_seconds=-1), "podMaxBackoffSeconds: -1: must be greater than or equal"),
        (lambda: Configuration(percentage_of_nodes_to_score=101), r"101: not in valid range \[0-100\]"),
        (lambda: Configuration(profiles=()), "profiles: needs one profile at least"),
        (lambda: simulate_drain(SNAPSHOT, ["n1"], made_at="yesterday"), "made_at is 'yesterday', expected a time"),
    ],
)
def test_a_value_made_by_hand_is_held_to_the_rules_of_a_file(made: Callable[[], object], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        made()
