"""Plugins that raise: the third time in a row, one that only scores is switched off, and any other stops the pod.

A filter is never switched off: pods would go to nodes that it would have refused.
"""

from __future__ import annotations

from typing import Final

from scheduler_core.cycle import Scheduler, with_runners
from scheduler_core.cycle_result import CycleResult
from scheduler_core.framework.cycle_state import CycleError
from scheduler_core.framework.plugin_set import METHOD_OF, PluginSet, serves
from scheduler_core.framework.runner import Runner
from scheduler_core.plugin_contract import PluginContractError, TooSlowError, plugin_that_raised

MOST_IN_A_ROW: Final = 3
_SCORING: Final = frozenset({"preScore", "score"})


class BrokenPlugins:
    """How often each plugin has raised in a row, by profile and name."""

    def __init__(self) -> None:
        self._raised: dict[tuple[str, str], int] = {}

    def raised(self, profile: str, plugin: str) -> bool:
        """Whether it was once too often."""
        count = self._raised[profile, plugin] = self._raised.get((profile, plugin), 0) + 1
        return count >= MOST_IN_A_ROW

    def worked(self, profile: str, result: CycleResult, runner: Runner) -> None:
        """A cycle has ended without an exception: the count of each plugin that it certainly asked begins anew."""
        for each in [each for each in self._raised if each[0] == profile]:
            if _was_asked(each[1], result, runner):
                del self._raised[each]


def _was_asked(name: str, result: CycleResult, runner: Runner) -> bool:
    """Of a cycle that found no node: whether it refused one, because an earlier filter may have refused all. PostFilter
    is only asked in such a cycle."""
    if only_scores(runner, name):
        return result.table is not None and name in result.table.by_plugin
    if serves(runner.plugins.plugins[name], "postFilter"):
        return result.node is None
    found = result.diagnosis
    return result.node is not None or name in found.refusing_plugins() | found.pending_plugins()


def failure(runner: Runner, bug: BaseException) -> tuple[str, str]:
    """The plugin that raised it ("" if unknown), and a sentence."""
    if isinstance(bug, CycleError | PluginContractError | TooSlowError):
        return bug.plugin, str(bug)
    plugin = plugin_that_raised(runner.plugins.plugins, bug.__traceback__)
    return plugin, f"plugin {plugin} failed: {bug!r}" if plugin else f"a plugin failed: {bug!r}"


def wrong_score(runner: Runner, result: CycleResult) -> CycleError | None:
    """The error of a plugin that only scores, with which the cycle ended."""
    refusal = result.diagnosis.prefilter if result.error else None
    if refusal is None or refusal.plugin not in runner.plugins.plugins or not only_scores(runner, refusal.plugin):
        return None
    return CycleError(refusal.plugin, result.error)


def only_scores(runner: Runner, name: str) -> bool:
    plugin = runner.plugins.plugins[name]
    return all(point in _SCORING for point in METHOD_OF if serves(plugin, point))


def without(scheduler: Scheduler, profile: str, name: str) -> Scheduler:
    """The same scheduler, whose profile does not score by this plugin."""
    plugins = scheduler.runners[profile].plugins
    by_point = {point: tuple(each for each in names if each != name) for point, names in plugins.by_point.items()}
    return with_runners(scheduler, {profile: Runner(PluginSet(plugins.plugins, by_point, plugins.weights))})
