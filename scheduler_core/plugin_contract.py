"""Refuses what a plugin returns instead of a verdict or a score: a mistake in the plugin, not a decision."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import TracebackType
from typing import Any, Final, TypeVar

import numpy as np

from scheduler_core.framework.diagnosis import Round
from scheduler_core.framework.extension_points import Nomination, PostFilterResult, PreFilterResult, Scores
from scheduler_core.framework.refusals import Refusals
from scheduler_core.framework.verdict import SKIP, SUCCESS, Verdict

_Result = TypeVar("_Result")

_VERDICT: Final = 'a Verdict: SUCCESS, or a refusal such as unschedulable("why")'


class PluginContractError(TypeError):
    """A plugin's method returned a value of the wrong type. The message names plugin and method, and what to return."""

    def __init__(self, plugin: str, method: str, given: object, wanted: str) -> None:
        super().__init__(f'plugin "{plugin}": {method} returned {_shown(given)}; it must return {wanted}')
        self.plugin = plugin


class TooSlowError(Exception):
    """A call of the plugin did not end in time. `problem`: such as "has not answered for 10 s"."""

    def __init__(self, plugin: str, problem: str) -> None:
        super().__init__(f"plugin {plugin} {problem}")
        self.plugin = plugin


def plugin_that_raised(plugins: Mapping[str, object], trace: TracebackType | None) -> str:
    """The plugin whose method, or whose verdicts, the exception left last; "" if it came from elsewhere."""
    found = ""
    names = {id(plugin): name for name, plugin in plugins.items()}
    while trace is not None:
        owner = trace.tb_frame.f_locals.get("self")
        found = owner.plugin if isinstance(owner, Round) else names.get(id(owner), found)
        trace = trace.tb_next
    return found


def check_verdicts(plugin: str, method: str, verdicts: Iterable[object]) -> None:
    for each in verdicts:
        if each is not SUCCESS:
            check_verdict(plugin, method, each)


def check_verdict(plugin: str, method: str, given: object) -> None:
    if given is SUCCESS or given is SKIP:
        return
    if not isinstance(given, Verdict):
        raise PluginContractError(plugin, method, given, _VERDICT)
    if not given.is_well_formed:
        raise PluginContractError(plugin, method, given, f"{_VERDICT}; its code is a VerdictCode, its reasons texts")


def check_pre_filter(plugin: str, given: object) -> None:
    result = of_type(plugin, "pre_filter", given, PreFilterResult)
    check_verdict(plugin, "pre_filter", result.verdict)
    if result.node_names is not None and not isinstance(result.node_names, AbstractSet):
        wanted = "a PreFilterResult whose node_names are None or a frozenset of names"
        raise PluginContractError(plugin, "pre_filter", result.node_names, wanted)


def check_post_filter(plugin: str, given: object) -> None:
    result = of_type(plugin, "post_filter", given, PostFilterResult)
    check_verdict(plugin, "post_filter", result.verdict)
    if result.nomination is not None:
        of_type(plugin, "post_filter", result.nomination, Nomination)


def check_refusals(plugin: str, given: object, count: int) -> None:
    """Of a filter for all nodes: one code for each."""
    codes: object = of_type(plugin, "filter_all", given, Refusals).codes
    if not isinstance(codes, np.ndarray) or codes.dtype.kind not in "biu" or codes.shape != (count,):
        raise PluginContractError(plugin, "filter_all", codes, f"a Refusals with an array of {count} codes")


def of_type(plugin: str, method: str, given: object, wanted: type[_Result]) -> _Result:
    """The result, for extension points whose results have a class of their own."""
    if not isinstance(given, wanted):
        raise PluginContractError(plugin, method, given, f"a {wanted.__name__}")
    return given


def scores_of_each(plugin: str, given: Sequence[object]) -> Scores:
    """The scores of single nodes as an array. A fraction would be cut off without a word, so it is refused."""
    if not set(map(type, given)) <= {int}:
        wrong = [s for s in given if isinstance(s, bool) or not isinstance(s, int | np.integer)]
        if wrong:
            raise PluginContractError(plugin, "score", wrong[0], "a whole number (int)")
    try:
        return np.array(given, dtype=np.int64)
    except OverflowError:
        raise PluginContractError(plugin, "score", max(given, key=_size), "a number of 64 bits") from None


def check_scores(plugin: str, method: str, given: object, count: int) -> None:
    """Of an all-nodes form: one whole number for each node."""
    if not isinstance(given, np.ndarray) or given.dtype.kind not in "iu" or given.shape != (count,):
        raise PluginContractError(plugin, method, given, f"an array of {count} whole numbers (numpy.int64)")


def _size(score: Any) -> int:
    return abs(int(score))


def _shown(given: object) -> str:
    if isinstance(given, np.ndarray):
        return f"an array of {given.dtype} with the shape {given.shape}"
    return f"the {type(given).__name__} {given!r}" if given is not None else "None"
