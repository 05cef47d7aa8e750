"""Binds a pod to its chosen node: Reserve, Permit, PreBind, Bind, PostBind; Unreserve if one of them fails.

Source: RunReservePluginsReserve … RunPostBindPlugins in pkg/scheduler/framework/runtime/framework.go and bindingCycle
in pkg/scheduler/schedule_one.go, v1.36. This module has no clock: if a Permit plugin makes the pod wait, the caller
must wait.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.plugin_set import PluginSet
from scheduler_core.framework.verdict import SUCCESS, Verdict, VerdictCode, error
from scheduler_core.model.pod import Pod
from scheduler_core.plugin_contract import check_verdict
from scheduler_core.values import Value


class Stage(StrEnum):
    RESERVED = "Reserve"
    PERMITTED = "Permit"
    PREPARED = "PreBind"
    BOUND = "Bind"


@dataclass(frozen=True, slots=True, kw_only=True)
class BindingProgress:
    """`stage` is the last extension point that ran. A verdict other than SUCCESS or WAIT means that the binding failed
    there and all reservations were released. `waiting_for`: the Permit plugins that returned WAIT."""

    stage: Stage
    verdict: Verdict = SUCCESS
    waiting_for: tuple[str, ...] = ()

    @property
    def waits(self) -> bool:
        """Whether a Permit plugin makes the pod wait. The reservations then remain, and the caller calls
        `BindingCycle.bind` when the pod may continue."""
        return self.verdict.code is VerdictCode.WAIT


ExtenderBind = Callable[[Pod, str], Verdict | None]
"""Lets an extender bind the pod. Returns None if no extender binds this pod (extenders.chain.ExtenderChain.bind)."""


def _no_extender(_pod: Pod, _node_name: str) -> None:
    return None


class BindingCycle(Value):
    """One profile's plugins from Reserve to PostBind. Has no state: plugins keep theirs in the CycleState."""

    plugins: PluginSet
    extender_bind: ExtenderBind = _no_extender

    def __repr__(self) -> str:
        return f"<BindingCycle plugins={len(self.plugins.plugins)}>"

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> BindingProgress:
        """Reserve and Permit."""
        verdict = self._reserve(state, pod, node_name)
        if not verdict.is_success:
            return self._stopped(Stage.RESERVED, verdict, state, pod, node_name)
        waiting_for: list[str] = []
        verdict = self._permit(state, pod, node_name, waiting_for)
        if not verdict.is_success and verdict.code is not VerdictCode.WAIT:
            return self._stopped(Stage.PERMITTED, verdict, state, pod, node_name)
        return BindingProgress(stage=Stage.PERMITTED, verdict=verdict, waiting_for=tuple(waiting_for))

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> BindingProgress:
        """PreBind, Bind and PostBind; only after `reserve` has succeeded."""
        for plugin in self.plugins.at("preBind"):
            verdict: Verdict = plugin.pre_bind(state, pod, node_name)
            check_verdict(plugin.name, "pre_bind", verdict)
            if not verdict.is_success and not verdict.is_skip:
                return self._stopped(Stage.PREPARED, blamed(verdict, plugin.name, "PreBind"), state, pod, node_name)
        verdict = self._bind(state, pod, node_name)
        if not verdict.is_success:
            return self._stopped(Stage.BOUND, verdict, state, pod, node_name)
        for plugin in self.plugins.at("postBind"):
            plugin.post_bind(state, pod, node_name)
        return BindingProgress(stage=Stage.BOUND)

    def give_up(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Unreserve of all plugins in reverse order, as in kube-scheduler even of plugins that reserved nothing. Raises
        the first exception of a plugin when all were called."""
        bugs: list[Exception] = []
        for plugin in reversed(self.plugins.at("reserve")):
            try:
                plugin.unreserve(state, pod, node_name)
            except Exception as bug:  # the others must still release what they hold
                bugs.append(bug)
        if bugs:
            raise bugs[0]

    def _reserve(self, state: CycleState, pod: Pod, node_name: str) -> Verdict:
        for plugin in self.plugins.at("reserve"):
            verdict: Verdict = plugin.reserve(state, pod, node_name)
            check_verdict(plugin.name, "reserve", verdict)
            if not verdict.is_success:
                return blamed(verdict, plugin.name, "Reserve")
        return SUCCESS

    def _permit(self, state: CycleState, pod: Pod, node_name: str, waiting_for: list[str]) -> Verdict:
        """Adds the plugins that return WAIT to `waiting_for`."""
        for plugin in self.plugins.at("permit"):
            verdict: Verdict = plugin.permit(state, pod, node_name)
            check_verdict(plugin.name, "permit", verdict)
            if verdict.code is VerdictCode.WAIT:
                waiting_for.append(plugin.name)
            elif not verdict.is_success:
                return blamed(verdict, plugin.name, "Permit")
        if not waiting_for:
            return SUCCESS
        why = f'one or more plugins asked to wait and no plugin rejected pod "{pod.name}"'
        return Verdict(VerdictCode.WAIT, (why,), waiting_for[0])

    def _bind(self, state: CycleState, pod: Pod, node_name: str) -> Verdict:
        by_extender = self.extender_bind(pod, node_name)
        if by_extender is not None:
            return by_extender
        for plugin in self.plugins.at("bind"):
            verdict: Verdict = plugin.bind(state, pod, node_name)
            check_verdict(plugin.name, "bind", verdict)
            if not verdict.is_skip:
                return blamed(verdict, plugin.name, "Bind")
        return error("all bind plugins skipped the pod")

    def _stopped(self, stage: Stage, verdict: Verdict, state: CycleState, pod: Pod, node_name: str) -> BindingProgress:
        self.give_up(state, pod, node_name)
        return BindingProgress(stage=stage, verdict=verdict)


def blamed(verdict: Verdict, plugin: str, point: str) -> Verdict:
    """A verdict that is neither a success nor a refusal becomes an error of the plugin."""
    if verdict.is_success or verdict.is_rejection:
        return verdict.by(plugin)
    return Verdict(VerdictCode.ERROR, (f'running {point} plugin "{plugin}": {verdict.message}',), plugin)
