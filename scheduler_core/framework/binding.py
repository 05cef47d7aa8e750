"""From a chosen node to a bound pod: Reserve, Permit, PreBind, Bind, PostBind; what fails on the way is given back.

Source: RunReservePluginsReserve … RunPostBindPlugins in pkg/scheduler/framework/runtime/framework.go and
bindingCycle in pkg/scheduler/schedule_one.go, v1.36. Waiting (Permit) is the caller's: this module keeps no
time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.plugin_set import PluginSet
from scheduler_core.framework.verdict import SUCCESS, Code, Verdict, error
from scheduler_core.model.pod import Pod
from scheduler_core.values import Value


class Stage(StrEnum):
    """How far the pod came."""

    RESERVED = "Reserve"
    PERMITTED = "Permit"
    PREPARED = "PreBind"
    BOUND = "Bind"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """`stage` is the last point that was run. With a verdict other than SUCCESS or WAIT the pod stopped there
    and everything was given back."""

    stage: Stage
    verdict: Verdict = SUCCESS

    @property
    def waits(self) -> bool:
        """Whether a Permit plugin holds the pod back: the reservation stands, and `BindingCycle.bind` is to be
        called once it may go on."""
        return self.verdict.code is Code.WAIT


ExtenderBind = Callable[[Pod, str], Verdict | None]
"""Lets an extender bind the pod; None when none is responsible (see extenders.chain.ExtenderChain.bind)."""


def _no_extender(_pod: Pod, _node_name: str) -> None:
    return None


class BindingCycle(Value):
    """The plugins of one profile from Reserve on. It holds no state; notes are in the cycle's."""

    plugins: PluginSet
    extender_bind: ExtenderBind = _no_extender

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Progress:
        """Sets aside what the pod needs and asks whether it may be bound now."""
        for plugin in self.plugins.at("reserve"):
            verdict: Verdict = plugin.reserve(state, pod, node_name)
            if not verdict.is_success:
                return self._stopped(Stage.RESERVED, _blamed(verdict, plugin.name, "Reserve"), state, pod, node_name)
        waiting_for = ""
        for plugin in self.plugins.at("permit"):
            verdict = plugin.permit(state, pod, node_name)
            if verdict.code is Code.WAIT:
                waiting_for = waiting_for or plugin.name
            elif not verdict.is_success:
                return self._stopped(Stage.PERMITTED, _blamed(verdict, plugin.name, "Permit"), state, pod, node_name)
        if waiting_for:
            return Progress(
                stage=Stage.PERMITTED,
                verdict=Verdict(
                    Code.WAIT,
                    (f'one or more plugins asked to wait and no plugin rejected pod "{pod.name}"',),
                    waiting_for,
                ),
            )
        return Progress(stage=Stage.PERMITTED)

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Progress:
        """Does what must be done before binding, binds, and tells who wants to know. `reserve` must have gone
        well before."""
        for plugin in self.plugins.at("preBind"):
            verdict: Verdict = plugin.pre_bind(state, pod, node_name)
            if not verdict.is_success and not verdict.is_skip:
                return self._stopped(Stage.PREPARED, _blamed(verdict, plugin.name, "PreBind"), state, pod, node_name)
        verdict = self._bind(state, pod, node_name)
        if not verdict.is_success:
            return self._stopped(Stage.BOUND, verdict, state, pod, node_name)
        for plugin in self.plugins.at("postBind"):
            plugin.post_bind(state, pod, node_name)
        return Progress(stage=Stage.BOUND)

    def give_up(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Gives back what was reserved, last plugin first; plugins that reserved nothing are told as well, as ever."""
        for plugin in reversed(self.plugins.at("reserve")):
            plugin.unreserve(state, pod, node_name)

    def _bind(self, state: CycleState, pod: Pod, node_name: str) -> Verdict:
        by_extender = self.extender_bind(pod, node_name)
        if by_extender is not None:
            return by_extender
        for plugin in self.plugins.at("bind"):
            verdict: Verdict = plugin.bind(state, pod, node_name)
            if not verdict.is_skip:
                return _blamed(verdict, plugin.name, "Bind")
        return error("no bind plugin was responsible for the pod")

    def _stopped(self, stage: Stage, verdict: Verdict, state: CycleState, pod: Pod, node_name: str) -> Progress:
        self.give_up(state, pod, node_name)
        return Progress(stage=stage, verdict=verdict)


def _blamed(verdict: Verdict, plugin: str, point: str) -> Verdict:
    """A refusal under its plugin's name; anything else that is no success is an error of that plugin."""
    if verdict.is_success or verdict.is_rejection:
        return verdict.by(plugin)
    return Verdict(Code.ERROR, (f'running {point} plugin "{plugin}": {verdict.message}',), plugin)
