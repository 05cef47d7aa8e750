"""The JSON of the extender calls (filter, prioritize, preempt, bind). No I/O.

Keys are the names of Go's struct fields: the real types have no JSON tags. Responses are read case-insensitively, as Go
reads them. Source: k8s.io/kube-scheduler/extender/v1/types.go, v0.36.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec
from msgspec import field

from scheduler_core.model.pod import Pod
from scheduler_core.preemption.victims import Victims
from scheduler_core.values import Value

HIGHEST_EXTENDER_SCORE: Final = 10

Manifest = Mapping[str, Any]


class ExtenderError(Exception):
    """The extender could not be called, or its response is invalid. An ignorable extender is then skipped; with any
    other, the cycle fails."""


class ExtenderTransport(Protocol):
    """Sends one request to one extender; over HTTP in transport.py."""

    def post(self, verb: str, body: bytes) -> bytes:
        """POST <prefix>/<verb>: the body of a 200 response. Raises ExtenderError for any other response, and if it
        comes too late."""


class FilterAnswer(Value, kw_only=True):
    """`passed` is in the extender's order. `refused` and `refused_for_good` have the extender's reasons."""

    passed: tuple[str, ...]
    refused: Mapping[str, str] = field(default_factory=dict)
    refused_for_good: Mapping[str, str] = field(default_factory=dict)


# ---- requests ----


def nodes_request(pod: Manifest, *, names: Sequence[str], nodes: Sequence[Manifest] | None) -> bytes:
    """For filter and prioritize: whole nodes, or only names for a cache-capable extender (`nodes` is None)."""
    node_list = None if nodes is None else {"metadata": {}, "items": list(nodes)}
    return msgspec.json.encode({"Pod": pod, "Nodes": node_list, "NodeNames": list(names) if nodes is None else None})


def preemption_request(pod: Manifest, candidates: Mapping[str, Victims], pods: Mapping[str, Manifest] | None) -> bytes:
    """For preempt: victims as whole pods if `pods` (uid → manifest) is given, otherwise only their uids."""
    if pods is None:
        meta = {
            node: {"Pods": [{"UID": pod.uid} for pod in victims.pods], "NumPDBViolations": victims.budget_violations}
            for node, victims in candidates.items()
        }
        return msgspec.json.encode({"Pod": pod, "NodeNameToVictims": None, "NodeNameToMetaVictims": meta})
    whole = {
        node: {"Pods": [pods[pod.uid] for pod in victims.pods], "NumPDBViolations": victims.budget_violations}
        for node, victims in candidates.items()
    }
    return msgspec.json.encode({"Pod": pod, "NodeNameToVictims": whole, "NodeNameToMetaVictims": None})


def binding_request(pod: Pod, node_name: str) -> bytes:
    return msgspec.json.encode(
        {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid, "Node": node_name}
    )


# ---- answers ----


def read_filter_answer(body: bytes, *, asked: Sequence[str], by_name: bool) -> FilterAnswer:
    """No node passes if the response has neither nodes nor names. Raises ExtenderError for an unknown name."""
    answer = _fields(body, "filter result")
    if answer.get("error"):
        raise ExtenderError(str(answer["error"]))
    passed: list[str] = []
    if by_name and answer.get("nodenames") is not None:
        passed = [_text(name, "NodeNames") for name in _list(answer["nodenames"], "NodeNames")]
    elif answer.get("nodes") is not None:
        items = _mapping(answer["nodes"], "Nodes").get("items") or []
        passed = [
            _text(
                _mapping(_mapping(item, "Nodes.items").get("metadata") or {}, "Nodes.items.metadata").get("name"),
                "Nodes.items.metadata.name",
            )
            for item in _list(items, "Nodes.items")
        ]
    known = set(asked)
    stranger = next((name for name in passed if name not in known), None)
    if stranger is not None:
        raise ExtenderError(f'claims a filtered node "{stranger}" which is not found in the input node list')
    return FilterAnswer(
        passed=tuple(passed),
        refused=_messages(answer, "failednodes"),
        refused_for_good=_messages(answer, "failedandunresolvablenodes"),
    )


def read_priorities(body: bytes) -> list[tuple[str, int]]:
    """Pairs of node name and score. Scores should be 0 to 10, but as in the real scheduler the range is not checked."""
    pairs = []
    for entry in _list(_decode(body), "host priorities"):
        fields = {key.lower(): value for key, value in _mapping(entry, "host priority").items()}
        score = fields.get("score", 0)
        if isinstance(score, bool) or not isinstance(score, int):
            raise ExtenderError(f"host priority of {fields.get('host')!r}: the score must be an integer, not {score!r}")
        pairs.append((_text(fields.get("host", ""), "Host"), score))
    return pairs


def read_preemption_answer(body: bytes, pods_on: Mapping[str, Sequence[Pod]]) -> dict[str, Victims]:
    """The candidate nodes that the extender accepts. Victims are found by uid among the pods of the node."""
    remaining: dict[str, Victims] = {}
    named = _fields(body, "preemption result").get("nodenametometavictims") or {}
    for node, meta in _mapping(named, "NodeNameToMetaVictims").items():
        if node not in pods_on:
            raise ExtenderError(f'nodeinfo not found for node name "{node}"')
        fields = {key.lower(): value for key, value in _mapping(meta or {}, "MetaVictims").items()}
        by_uid = {pod.uid: pod for pod in pods_on[node]}
        victims: list[Pod] = []
        for entry in _list(fields.get("pods") or [], "MetaVictims.Pods"):
            uid = next((value for key, value in _mapping(entry, "MetaPod").items() if key.lower() == "uid"), "")
            if not isinstance(uid, str) or uid not in by_uid:
                raise ExtenderError(
                    f"claims to preempt pod (UID: {uid}) on node: {node}, but the pod is not found on that node"
                )
            victims.append(by_uid[uid])
        violations = fields.get("numpdbviolations") or 0
        if not isinstance(violations, int):
            raise ExtenderError(f"MetaVictims.NumPDBViolations: expected an integer, got {type(violations).__name__}")
        remaining[node] = Victims(pods=tuple(victims), budget_violations=violations)
    return remaining


def read_binding_answer(body: bytes) -> None:
    """Raises ExtenderError with the extender's message if the pod was not bound."""
    problem = _fields(body, "binding result").get("error")
    if problem:
        raise ExtenderError(str(problem))


def _fields(body: bytes, what: str) -> dict[str, Any]:
    return {key.lower(): value for key, value in _mapping(_decode(body), what).items()}


def _decode(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise ExtenderError(f"the answer is not JSON: {problem}") from problem


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ExtenderError(f"{what}: expected a JSON object, got {type(value).__name__}")
    return value


def _list(value: Any, what: str) -> Sequence[Any]:
    if not isinstance(value, list):
        raise ExtenderError(f"{what}: expected a JSON array, got {type(value).__name__}")
    return value


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise ExtenderError(f"{what}: expected a string, got {type(value).__name__}")
    return value


def _messages(answer: Mapping[str, Any], name: str) -> dict[str, str]:
    return {node: str(message) for node, message in _mapping(answer.get(name) or {}, name).items()}
