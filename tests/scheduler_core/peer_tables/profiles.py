"""Schedulers with only the plugins of a call."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from scheduler_core import Configuration, Scheduler
from scheduler_core.config.fields import ConfigurationError
from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.framework.verdict import SUCCESS, unresolvable, unschedulable
from scheduler_core.model.manifests.fields import clock_at
from tests.scheduler_core.peer_tables.calls import Call
from tests.scheduler_core.peer_tables.objects import ImpossibleError

API = "kubescheduler.config.k8s.io/v1"
_REFUSES = unschedulable("Nodes failed the fake plugin")
# The plugins without state of pkg/scheduler/testing/framework/fake_plugins.go.
_FAKES: Mapping[str, Mapping[str, Any]] = {
    "TrueFilter": {"filter": lambda _state, _pod, _node: SUCCESS},
    "FalseFilter": {"filter": lambda _state, _pod, _node: _REFUSES},
    "MatchFilter": {"filter": lambda _state, pod, node: SUCCESS if pod.name == node.name else _REFUSES},
}
_FAKE_FACTORIES = {
    name: (lambda _args, _version, name=name, methods=methods: SimpleNamespace(name=name, **methods))
    for name, methods in _FAKES.items()
}
_OWN_POINTS = ("multiPoint", "placementGenerate", "placementScore", "podGroupPostFilter", "preEnqueue", "permit")


def with_plugin(call: Call, points: tuple[str, ...], version: str, only: frozenset[str] | None = None) -> Scheduler:
    """A scheduler with the call's plugin at these points; with `only`, every other node is refused."""
    name, args = call["pluginName"], call.get("args")
    if isinstance(args, str):
        raise ImpossibleError(f"arguments {args[:60]}")
    chosen = {point: [{"name": name}] for point in points}
    factories: dict[str, Any] = {}
    if only is not None:

        def is_one_of_them(_state: object, _pod: object, node: Any) -> Any:
            return SUCCESS if node.name in only else unresolvable("not in this test")

        chosen["filter"] = [{"name": "OnlyThese"}]
        factories["OnlyThese"] = lambda _args, _version: SimpleNamespace(name="OnlyThese", filter=is_one_of_them)
    return _scheduler(call, chosen, {name: args} if args else {}, version, factories)


def with_profile(call: Call, version: str, *extra: str) -> Scheduler:
    """A scheduler with all plugins that the test's profile lists; `extra` plugins as PostFilter."""
    points: dict[str, list[dict[str, Any]]] = {}
    for written, chosen in (call.get("plugins") or {}).items():
        point = written[0].lower() + written[1:]
        if chosen and chosen.get("Enabled") and point not in _OWN_POINTS:
            enabled = [{"name": p["Name"], "weight": p.get("Weight") or 0} for p in chosen["Enabled"]]
            # This plugin of a test does nothing by itself.
            points[point] = [each for each in enabled if each["name"] != "test-plugin"]
    points.update({"postFilter": [{"name": name} for name in extra]} if extra else {})
    args = call["args"] if extra and isinstance(call.get("args"), dict) else {}
    return _scheduler(call, points, {extra[0]: args} if args else {}, version, _FAKE_FACTORIES)


def with_args(call: Call, version: str) -> Scheduler:
    """A scheduler without filters whose profile has the arguments of the call's plugin."""
    args = {call["pluginName"]: call["args"]} if isinstance(call.get("args"), dict) else {}
    return _scheduler(call, {"filter": []}, args, version, {})


def _scheduler(
    call: Call, points: Mapping[str, Any], args: Mapping[str, Any], version: str, factories: Mapping[str, Any]
) -> Scheduler:
    plugins = {
        "multiPoint": {"disabled": [{"name": "*"}]},
        **{point: {"enabled": chosen} for point, chosen in points.items()},
        "queueSort": {"enabled": [{"name": "PrioritySort"}]},
        "bind": {"enabled": [{"name": "DefaultBinder"}]},
    }
    config = [
        {"name": name, "args": {**_known_args(given, version), "kind": f"{name}Args", "apiVersion": API}}
        for name, given in args.items()
        if _known_args(given, version)
    ]
    try:
        configuration = Configuration.from_mapping(
            {
                "apiVersion": API,
                "kind": "KubeSchedulerConfiguration",
                "percentageOfNodesToScore": 100,
                "profiles": [{"plugins": plugins, "pluginConfig": config}],
            },
            KubeVersion.parse(version),
        )
        return Scheduler(configuration, version, plugins=factories, clock=clock_at(call["recordedAt"]))
    except ConfigurationError as trouble:
        raise ImpossibleError(f"configuration: {trouble}") from trouble


def _known_args(args: Mapping[str, Any], version: str) -> dict[str, Any]:
    """VolumeBinding's shape comes with a gate that is off until 1.37."""
    return {name: value for name, value in args.items() if value is not None and (name != "shape" or version == "1.37")}
