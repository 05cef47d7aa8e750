"""Helpers for tests of plugins. They return the verdicts of one plugin, or the result of the default profile, for a pod
in a cluster made with builders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from scheduler_core import Scheduler, Snapshot
from scheduler_core.config.configuration import Configuration
from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.verdict import Verdict
from scheduler_core.plugins import IN_TREE
from scheduler_core.snapshot.loading import load_objects
from scheduler_core.snapshot.node_list import NodeList


def cluster(*parts: Any, objects: Iterable[Mapping[str, Any]] = ()) -> Snapshot:
    """Returns a snapshot of the objects that the builders in `parts` describe, and of further API objects."""
    flat = [each for part in parts for each in (part if isinstance(part, list) else [part])]
    snapshot = load_objects([*(each.manifest for each in flat), *objects])
    assert snapshot.problems == ()
    return snapshot


def plugin(name: str, args: Mapping[str, Any] | None = None, version: str = "1.36") -> Any:
    """Returns a plugin. Its arguments are written as in a scheduler configuration."""
    release = KubeVersion.parse(version)
    config = (
        [{"name": name, "args": {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": f"{name}Args", **args}}]
        if args
        else []
    )
    configuration = Configuration.from_mapping(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": "default-scheduler", "pluginConfig": config}],
        },
        release,
    )
    return IN_TREE[name](configuration.profiles[0].plugin_args(name, release), release)


def filtered(subject: Any, pod: Any, snapshot: Snapshot) -> dict[str, str]:
    """Maps each node to the plugin's verdict: "" for a pass, or the reasons of the refusal. Returns {"*": …} if
    PreFilter refuses every node. Checks that a call for all nodes, if the plugin has one, gives the same verdicts."""
    state, nodes = CycleState(), NodeList(snapshot)
    if hasattr(subject, "pre_filter"):
        result = subject.pre_filter(state, pod.build(), nodes)
        if not result.verdict.is_success:
            return {"*": result.verdict.message or result.verdict.code.value}
    verdicts = [subject.filter(state, pod.build(), info) for info in nodes]
    refusals = subject.filter_all(state, pod.build(), nodes) if hasattr(subject, "filter_all") else None
    if refusals is not None:
        assert [refusals.verdict(int(code)) for code in refusals.codes] == verdicts
    return dict(zip(nodes.names, map(said, verdicts), strict=True))


def said(verdict: Verdict) -> str:
    """Returns the reasons of the verdict, or an empty text if the verdict is a success. A leading "!" means that
    evicting other pods would not help.
    """
    return "" if verdict.is_success else ("" if verdict.code == "Unschedulable" else "!") + verdict.message


def scored(subject: Any, pod: Any, snapshot: Snapshot, names: Iterable[str] | None = None) -> dict[str, int] | None:
    """Maps each node in `names` (default: all nodes) to its normalized score. Returns None if the plugin skips the
    pod."""
    rows = np.array([snapshot.row(name) for name in (snapshot.node_names if names is None else names)], dtype=np.intp)
    state, nodes, value = CycleState(), NodeList(snapshot, rows), pod.build()
    if hasattr(subject, "pre_score") and not subject.pre_score(state, value, nodes).is_success:
        return None
    scores = np.array([subject.score(state, value, info) for info in nodes], dtype=np.int64)
    if hasattr(subject, "normalize"):
        scores = subject.normalize(state, value, nodes, scores)
    return dict(zip(nodes.names, scores.tolist(), strict=True))


def raw_scores(subject: Any, pod: Any, snapshot: Snapshot) -> dict[str, int]:
    """Maps each node to its score before normalization."""
    state, nodes, value = CycleState(), NodeList(snapshot), pod.build()
    assert subject.pre_score(state, value, nodes).is_success
    return {info.name: subject.score(state, value, info) for info in nodes}


def decided(pod: Any, snapshot: Snapshot, version: str = "1.36") -> Any:
    """Returns the result of a whole scheduling cycle for the pod, with the default profile."""
    return Scheduler(kube_version=version).schedule(snapshot, pod.build())
