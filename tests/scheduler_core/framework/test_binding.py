"""Tests how a pod is bound to its chosen node: the order of the plugins, and the release of reservations after a
failure."""

from dataclasses import dataclass, field

import pytest

from scheduler_core.framework.binding import BindingCycle, BindingProgress, Stage
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.plugin_set import METHOD_OF, PluginSet, serves
from scheduler_core.framework.verdict import SKIP, SUCCESS, Verdict, VerdictCode, error, unresolvable, unschedulable
from scheduler_core.model.pod import Pod

POD = Pod(name="p")
WAIT = Verdict(VerdictCode.WAIT)


@dataclass
class Spy:
    """A plugin for all extension points from Reserve to PostBind. It records its calls. The result of a call is
    in `answers`; the default is SUCCESS."""

    name: str
    calls: list[str]
    answers: dict[str, Verdict] = field(default_factory=dict)

    def _call(self, point: str) -> Verdict:
        self.calls.append(f"{self.name}.{point}")
        return self.answers.get(point, SUCCESS)

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Verdict:
        return self._call("reserve")

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self._call("unreserve")

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Verdict:
        return self._call("permit")

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Verdict:
        return self._call("pre_bind")

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Verdict:
        return self._call("bind")

    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self._call("post_bind")


def cycle_of(*plugins: Spy, **settings: object) -> BindingCycle:
    by_point = {point: tuple(plugin.name for plugin in plugins if serves(plugin, point)) for point in METHOD_OF}
    return BindingCycle(PluginSet({plugin.name: plugin for plugin in plugins}, by_point, {}), **settings)  # type: ignore[arg-type]


def run(cycle: BindingCycle) -> BindingProgress:
    state = CycleState()
    progress = cycle.reserve(state, POD, "n1")
    return cycle.bind(state, POD, "n1") if progress.verdict.is_success else progress


def spies(**answers: dict[str, Verdict]) -> tuple[list[str], Spy, Spy]:
    calls: list[str] = []
    return calls, Spy("A", calls, answers.get("a", {})), Spy("B", calls, answers.get("b", {}))


def test_all_extension_points_run_in_order_and_the_first_bind_plugin_binds() -> None:
    calls, a, b = spies()
    assert run(cycle_of(a, b)) == BindingProgress(stage=Stage.BOUND)
    assert calls == [
        "A.reserve",
        "B.reserve",
        "A.permit",
        "B.permit",
        "A.pre_bind",
        "B.pre_bind",
        "A.bind",
        "A.post_bind",
        "B.post_bind",
    ]


@pytest.mark.parametrize(
    ("point", "answer", "stage", "verdict"),
    [
        ("reserve", unschedulable("taken"), Stage.RESERVED, Verdict(VerdictCode.UNSCHEDULABLE, ("taken",), "B")),
        (
            "reserve",
            error("broken"),
            Stage.RESERVED,
            Verdict(VerdictCode.ERROR, ('running Reserve plugin "B": broken',), "B"),
        ),
        (
            "permit",
            unresolvable("no"),
            Stage.PERMITTED,
            Verdict(VerdictCode.UNSCHEDULABLE_AND_UNRESOLVABLE, ("no",), "B"),
        ),
        (
            "permit",
            error("broken"),
            Stage.PERMITTED,
            Verdict(VerdictCode.ERROR, ('running Permit plugin "B": broken',), "B"),
        ),
        (
            "pre_bind",
            error("no volume"),
            Stage.PREPARED,
            Verdict(VerdictCode.ERROR, ('running PreBind plugin "B": no volume',), "B"),
        ),
    ],
)
def test_a_failure_unreserves_the_plugins_in_reverse_order(
    point: str, answer: Verdict, stage: Stage, verdict: Verdict
) -> None:
    calls, a, b = spies(b={point: answer})
    assert run(cycle_of(a, b)) == BindingProgress(stage=stage, verdict=verdict)
    assert calls[-2:] == ["B.unreserve", "A.unreserve"]
    assert "A.bind" not in calls


def test_a_failed_binding_unreserves_every_plugin() -> None:
    calls, a, b = spies(a={"bind": error("conflict")})
    assert run(cycle_of(a, b)) == BindingProgress(
        stage=Stage.BOUND, verdict=Verdict(VerdictCode.ERROR, ('running Bind plugin "A": conflict',), "A")
    )
    assert calls[-3:] == ["A.bind", "B.unreserve", "A.unreserve"]


def test_the_next_bind_plugin_runs_if_a_bind_plugin_skips_the_pod() -> None:
    calls, a, b = spies(a={"bind": SKIP})
    assert run(cycle_of(a, b)).verdict == SUCCESS
    assert calls[6:] == ["A.bind", "B.bind", "A.post_bind", "B.post_bind"]


def test_a_binding_fails_if_every_bind_plugin_skips_the_pod() -> None:
    calls, a, b = spies(a={"bind": SKIP}, b={"bind": SKIP})
    assert run(cycle_of(a, b)).verdict == error("all bind plugins skipped the pod")
    assert calls[-2:] == ["B.unreserve", "A.unreserve"]


def test_a_pod_keeps_its_reservation_while_permit_makes_it_wait() -> None:
    calls, a, b = spies(a={"permit": WAIT})
    cycle = cycle_of(a, b)
    progress = cycle.reserve(CycleState(), POD, "n1")
    assert progress.waits
    assert progress.verdict.plugin == "A"
    assert calls == ["A.reserve", "B.reserve", "A.permit", "B.permit"]
    assert cycle.bind(CycleState(), POD, "n1") == BindingProgress(stage=Stage.BOUND)


def test_the_pod_is_refused_if_one_permit_plugin_waits_and_another_refuses() -> None:
    _, a, b = spies(a={"permit": WAIT}, b={"permit": unschedulable("no")})
    assert run(cycle_of(a, b)).verdict == Verdict(VerdictCode.UNSCHEDULABLE, ("no",), "B")


def test_an_extender_that_binds_runs_before_the_bind_plugins() -> None:
    calls, a, b = spies()
    bound: list[tuple[str, str]] = []

    def extender(pod: Pod, node_name: str) -> Verdict:
        bound.append((pod.key, node_name))
        return SUCCESS

    assert run(cycle_of(a, b, extender_bind=extender)).verdict == SUCCESS
    assert bound == [("default/p", "n1")]
    assert "A.bind" not in calls
    assert calls[-1] == "B.post_bind"


def test_a_plugin_may_skip_pre_bind() -> None:
    _, a, b = spies(a={"pre_bind": SKIP})
    assert run(cycle_of(a, b)) == BindingProgress(stage=Stage.BOUND)
