"""Calls the extenders one after another, each with the nodes that passed the previous one. Goes on after an error of an
ignorable extender.

Source: findNodesThatPassExtenders, prioritizeNodes and extendersBinding in pkg/scheduler/schedule_one.go, callExtenders
in pkg/scheduler/framework/preemption/preemption.go (v1.36). One difference: if an extender returns whole nodes, the
real scheduler continues with these node objects and ignores the pods that run on them. This library scores the nodes of
its own snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

from msgspec import field

from scheduler_core.config.configuration import ExtenderSettings
from scheduler_core.extenders.protocol import (
    HIGHEST_EXTENDER_SCORE,
    ExtenderError,
    ExtenderTransport,
    Manifest,
    binding_request,
    nodes_request,
    preemption_request,
    read_binding_answer,
    read_filter_answer,
    read_preemption_answer,
    read_priorities,
)
from scheduler_core.framework.verdict import SUCCESS, Verdict, error, unresolvable, unschedulable
from scheduler_core.model.manifests.to_manifest import node_to_manifest, pod_to_manifest
from scheduler_core.model.node import Node
from scheduler_core.model.pod import Pod
from scheduler_core.preemption.victims import Victims
from scheduler_core.values import Value

EXTENDER_NAME: Final = "Extender"
"""The name that refusals by extenders carry in place of a plugin's name. The queue looks up the events for a refused
pod under this name."""

_HIGHEST_NODE_SCORE = 100


class Renderer(Protocol):
    """Pods and nodes as the API objects that are sent to extenders."""

    def pod(self, pod: Pod) -> Manifest: ...
    def node(self, node: Node) -> Manifest: ...


class FromModel:
    """Objects with only the fields that the model keeps."""

    def pod(self, pod: Pod) -> Manifest:
        return pod_to_manifest(pod)

    def node(self, node: Node) -> Manifest:
        return node_to_manifest(node)


class Extender(Value):
    settings: ExtenderSettings
    transport: ExtenderTransport
    renderer: Renderer = field(default_factory=FromModel)

    @property
    def name(self) -> str:
        return self.settings.url_prefix

    def is_interested(self, pod: Pod) -> bool:
        """An extender that manages resources is called only for pods with a container that requests one of them."""
        managed = {resource.name for resource in self.settings.managed_resources}
        containers = (*pod.spec.containers, *pod.spec.init_containers)
        return not managed or any(
            name in managed for container in containers for name in (*container.requests, *container.limits)
        )

    def ask(self, verb: str, pod: Pod, nodes: Sequence[Node]) -> bytes:
        whole = None if self.settings.node_cache_capable else [self.renderer.node(node) for node in nodes]
        return self.transport.post(
            verb, nodes_request(self.renderer.pod(pod), names=[node.name for node in nodes], nodes=whole)
        )


class Survivors(Value, kw_only=True):
    """The nodes that passed every extender, in the order of the last one, and the refusals of all others.

    `problem`: the error of an extender that is not ignorable; the cycle fails with it.
    """

    nodes: tuple[Node, ...]
    refusals: Mapping[str, Verdict] = field(default_factory=dict)
    problem: Verdict | None = None


class ExtenderChain(Value):
    """The ignorable extenders come last."""

    extenders: tuple[Extender, ...] = ()

    @classmethod
    def connect(
        cls,
        settings: Iterable[ExtenderSettings],
        transport: Callable[[ExtenderSettings], ExtenderTransport],
        renderer: Renderer | None = None,
    ) -> ExtenderChain:
        """`transport` is usually `HttpTransport`."""
        return cls(tuple(Extender(each, transport(each), renderer or FromModel()) for each in settings))

    def __bool__(self) -> bool:
        return bool(self.extenders)

    @property
    def has_filters(self) -> bool:
        return any(extender.settings.filter_verb for extender in self.extenders)

    @property
    def has_prioritizers(self) -> bool:
        return any(extender.settings.prioritize_verb for extender in self.extenders)

    def filter(self, pod: Pod, nodes: Sequence[Node]) -> Survivors:
        """Stops when no node is left."""
        survivors = tuple(nodes)
        refusals: dict[str, Verdict] = {}
        for extender in self._interested(pod):
            if not survivors:
                break
            if not extender.settings.filter_verb:
                continue
            try:
                body = extender.ask(extender.settings.filter_verb, pod, survivors)
                answer = read_filter_answer(
                    body, asked=[node.name for node in survivors], by_name=extender.settings.node_cache_capable
                )
            except ExtenderError as problem:
                if extender.settings.ignorable:
                    continue
                return Survivors(nodes=(), refusals=refusals, problem=error(_said_by(extender, problem)))
            refusals |= {name: unschedulable(message).by(EXTENDER_NAME) for name, message in answer.refused.items()}
            refusals |= {
                name: unresolvable(message).by(EXTENDER_NAME) for name, message in answer.refused_for_good.items()
            }
            by_name = {node.name: node for node in survivors}
            survivors = tuple(by_name[name] for name in answer.passed)
        return Survivors(nodes=survivors, refusals=refusals)

    def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> dict[str, int]:
        """The sum of the extenders' weighted scores, which is added to a node's total. An extender that fails adds
        nothing.

        One that is called for this pod but has no prioritize verb gives every node 0 points, as in the real scheduler.
        There, each node with points from an extender, even 0, also draws a random number, and the highest number
        decides among nodes with the highest total.
        """
        totals: dict[str, int] = {}
        for extender in self._interested(pod):
            if not extender.settings.prioritize_verb:
                priorities, weight = [(node.name, 0) for node in nodes], 0
            else:
                weight = extender.settings.weight
                try:
                    priorities = read_priorities(extender.ask(extender.settings.prioritize_verb, pod, nodes))
                except ExtenderError:
                    continue
            for name, score in priorities:
                totals[name] = totals.get(name, 0) + score * weight * (_HIGHEST_NODE_SCORE // HIGHEST_EXTENDER_SCORE)
        return totals

    def narrow_preemption(
        self, pod: Pod, candidates: Mapping[str, Victims], pods_on: Mapping[str, Sequence[Pod]]
    ) -> dict[str, Victims] | Verdict:
        """The candidates that all extenders with a preempt verb accept, with their victims; the error of an extender
        that is not ignorable as a verdict.

        `pods_on`: every node's pods, because extenders return only the uids of the victims.
        """
        remaining = dict(candidates)
        for extender in self._interested(pod):
            if not extender.settings.preempt_verb:
                continue
            if not remaining:
                break
            try:
                answered = read_preemption_answer(self._ask_preemption(extender, pod, remaining), pods_on)
            except ExtenderError as problem:
                if extender.settings.ignorable:
                    continue
                return error(_said_by(extender, problem))
            empty = next((name for name, victims in answered.items() if not victims.pods), None)
            if empty is not None and not extender.settings.ignorable:
                return error(f'extender {extender.name}: expected at least one victim pod on node "{empty}"')
            remaining = {name: victims for name, victims in answered.items() if victims.pods}
        return remaining

    def bind(self, pod: Pod, node_name: str) -> Verdict | None:
        """None if no extender binds this pod: the Bind plugins must run."""
        for extender in self._interested(pod):
            if not extender.settings.bind_verb:
                continue
            try:
                read_binding_answer(
                    extender.transport.post(extender.settings.bind_verb, binding_request(pod, node_name))
                )
            except ExtenderError as problem:
                if extender.settings.ignorable:
                    continue
                return error(_said_by(extender, problem))
            return SUCCESS
        return None

    def _interested(self, pod: Pod) -> list[Extender]:
        return [extender for extender in self.extenders if extender.is_interested(pod)]

    @staticmethod
    def _ask_preemption(extender: Extender, pod: Pod, candidates: Mapping[str, Victims]) -> bytes:
        whole = None
        if not extender.settings.node_cache_capable:
            whole = {
                victim.uid: extender.renderer.pod(victim) for victims in candidates.values() for victim in victims.pods
            }
        return extender.transport.post(
            extender.settings.preempt_verb, preemption_request(extender.renderer.pod(pod), candidates, whole)
        )


def _said_by(extender: Extender, problem: ExtenderError) -> str:
    return f"extender {extender.name}: {problem}"
