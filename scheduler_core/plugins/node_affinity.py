"""Refuses nodes that the pod's nodeSelector, its required node affinity, or the profile's added affinity does not
select. Prefers nodes that preferred terms select."""

from __future__ import annotations

from collections.abc import Hashable
from functools import reduce
from typing import Any, ClassVar, Final

import numpy as np

from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.extension_points import PreFilterResult, Scores
from scheduler_core.framework.refusals import Refusals
from scheduler_core.framework.scoring.normalizing import normalize_to_hundred
from scheduler_core.framework.verdict import SKIP, SUCCESS, Verdict, error, unresolvable
from scheduler_core.model.labels import (
    Answering,
    NodeAffinityRules,
    NodeSelector,
    NodeSelectorTerm,
    OneNode,
    PreferredNodeTerm,
    chosen,
)
from scheduler_core.model.pod import Pod, PodSpec
from scheduler_core.snapshot.node_info import NodeInfo
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.values import Value

_NOT_ADDED: Final = unresolvable("node(s) didn't match scheduler-enforced node affinity")
_NOT_CHOSEN: Final = unresolvable("node(s) didn't match Pod's node affinity/selector")
_CONFLICT: Final = unresolvable("pod affinity terms conflict")


class _Rule(Value):
    node_selector: tuple[tuple[str, str], ...]
    required: NodeSelector | None
    refusal: Verdict


class NodeAffinity(Value):
    """A node must match both the pod's own rules and `added`, the addedAffinity of the profile."""

    added: NodeAffinityRules | None = None
    name: ClassVar[str] = "NodeAffinity"
    filters_by_spec: ClassVar[bool] = True
    prepares_by_spec: ClassVar[bool] = True

    def skips(self, spec: PodSpec) -> bool:
        return _required(spec) is None and not spec.node_selector and self._added_required is None

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeList) -> PreFilterResult:  # noqa: ARG002
        if self.skips(pod.spec):
            return PreFilterResult(SKIP)
        required = _required(pod.spec)
        if required is None or not required.terms:
            return PreFilterResult()
        names = _named_nodes(required)
        if names is None:
            return PreFilterResult()
        return PreFilterResult(SUCCESS, names) if names else PreFilterResult(_CONFLICT)

    @property
    def _added_required(self) -> NodeSelector | None:
        return None if self.added is None else self.added.required

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Verdict:  # noqa: ARG002
        node = OneNode(node_info.node.labels, node_info.name)
        for rule in self._rules(pod):
            if not chosen(node, rule.node_selector, rule.required):
                return rule.refusal
        return SUCCESS

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeList) -> Refusals:  # noqa: ARG002
        labels, rules = nodes.columns.labels, self._rules(pod)
        codes = np.zeros(len(nodes), dtype=np.intp)
        for code in range(len(rules), 0, -1):  # backwards, because the first rule that refuses a node gives the verdict
            rule = rules[code - 1]
            codes[~nodes.take(labels.selected(rule.node_selector, rule.required))] = code
        return Refusals(codes, {code: rule.refusal for code, rule in enumerate(rules, 1)})

    def _rules(self, pod: Pod) -> tuple[_Rule, ...]:
        """In the order in which kube-scheduler checks them."""
        own = _Rule(pod.spec.node_selector, _required(pod.spec), _NOT_CHOSEN)
        return (own,) if self._added_required is None else (_Rule((), self._added_required, _NOT_ADDED), own)

    def node_key(self, pod: Pod) -> Hashable:
        return pod.spec.node_selector, pod.spec.node_affinity

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeList) -> Verdict:  # noqa: ARG002
        own = pod.spec.node_affinity
        if not (own and own.preferred) and not (self.added and self.added.preferred):
            return SKIP
        problem = next((p.term.problem for p in self._preferred(pod) if p.term.problem), "")
        return error(problem) if problem else SUCCESS

    def _preferred(self, pod: Pod) -> tuple[PreferredNodeTerm, ...]:
        own = pod.spec.node_affinity
        terms = (own.preferred if own else ()) + (self.added.preferred if self.added else ())
        return tuple(p for p in terms if p.weight and not p.term.is_empty)

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:  # noqa: ARG002
        points: int = self._points(pod, OneNode(node_info.node.labels, node_info.name))
        return points

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeList) -> Scores:  # noqa: ARG002
        scores: Scores = np.zeros(len(nodes.columns), dtype=np.int64)
        return nodes.take(scores + self._points(pod, nodes.columns.labels))

    def _points(self, pod: Pod, nodes: Answering[Any]) -> Any:
        return sum(preferred.weight * preferred.term.chosen(nodes) for preferred in self._preferred(pod))

    def normalize(self, state: CycleState, pod: Pod, nodes: NodeList, scores: Scores) -> Scores:  # noqa: ARG002
        return normalize_to_hundred(scores)


def _required(spec: PodSpec) -> NodeSelector | None:
    return None if spec.node_affinity is None else spec.node_affinity.required


def _named_nodes(required: NodeSelector) -> frozenset[str] | None:
    """None unless every term selects nodes by name (metadata.name)."""
    union: frozenset[str] = frozenset()
    for term in required.terms:
        names = _names_in_term(term)
        if names is None:
            return None
        union |= names
    return union


def _names_in_term(term: NodeSelectorTerm) -> frozenset[str] | None:
    named = [frozenset(f.values) for f in term.fields if f.key == "metadata.name" and f.operator == "In"]
    return reduce(frozenset.intersection, named) if named else None
