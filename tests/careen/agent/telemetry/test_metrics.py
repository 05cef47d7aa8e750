"""Tests the metrics that the agent exports, under the names that the alerts use."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from careen.agent.telemetry.metrics import Metrics
from careen.core.decision import Refusal
from careen.core.facts.memory import EvictAnswer
from careen.core.facts.observation import Need, NeedAnswer, SelfTest
from careen.core.facts.phases import Phase
from careen.core.facts.reasons import Code


def lines(metrics: Metrics) -> list[str]:
    return metrics.exposition().decode().splitlines()


@pytest.mark.parametrize(
    ("answer", "required", "unknown"),
    [(NeedAnswer.YES, "1.0", "0.0"), (NeedAnswer.NO, "0.0", "0.0")],
)
def test_kureds_metric_shows_whether_the_node_needs_a_reboot(answer: NeedAnswer, required: str, unknown: str) -> None:
    metrics = Metrics("n1")
    metrics.show_need(Need(answer=answer))
    assert f'kured_reboot_required{{node="n1"}} {required}' in lines(metrics)
    assert f'careen_need_unknown{{node="n1"}} {unknown}' in lines(metrics)


def test_kureds_metric_keeps_its_value_while_the_need_for_a_reboot_is_unknown() -> None:
    metrics = Metrics("n1")
    metrics.show_need(Need(answer=NeedAnswer.YES))
    metrics.show_need(Need(answer=NeedAnswer.UNKNOWN))
    assert 'kured_reboot_required{node="n1"} 1.0' in lines(metrics)
    assert 'careen_need_unknown{node="n1"} 1.0' in lines(metrics)


def test_the_metrics_show_only_the_current_phase_and_its_start_time() -> None:
    metrics = Metrics("n1")
    metrics.show_phase(Phase.WAITING, at=100.0)
    metrics.show_phase(Phase.DRAINING, at=200.0)
    metrics.show_phase(Phase.DRAINING, at=300.0)
    assert [line for line in lines(metrics) if line.startswith("careen_phase{") and line.endswith(" 1.0")] == [
        'careen_phase{node="n1",phase="Draining"} 1.0'
    ]
    assert 'careen_phase_since_seconds{node="n1"} 200.0' in lines(metrics)


def test_the_metrics_of_a_restarted_agent_show_the_start_times_recorded_on_the_node() -> None:
    metrics = Metrics("n1")
    metrics.show_phase(Phase.DRAINING, at=200.0, recorded=100.0)
    metrics.show_need_since(50.0)
    assert 'careen_phase_since_seconds{node="n1"} 100.0' in lines(metrics)
    assert 'careen_need_since_seconds{node="n1"} 50.0' in lines(metrics)
    metrics.show_need_since(None)
    assert [line for line in lines(metrics) if line.startswith("careen_need_since_seconds{")] == []


def test_a_gate_that_no_longer_refuses_has_no_metric_series() -> None:
    metrics = Metrics("n1")
    metrics.show_refusals([Refusal(gate="hold", code=Code.HELD, sentence="")])
    metrics.show_refusals([Refusal(gate="alerts", code=Code.ALERT, sentence="")])
    assert [line for line in lines(metrics) if line.startswith("careen_refused{")] == [
        'careen_refused{code="alert",gate="alerts",node="n1"} 1.0'
    ]


def test_a_metric_shows_since_when_the_claim_of_another_node_is_overdue() -> None:
    metrics = Metrics("n1")
    metrics.show_overdue([("n9", "1970-01-01T00:01:00Z"), ("n8", "no instant")])
    assert [line for line in lines(metrics) if line.startswith("careen_overdue")] == [
        'careen_overdue_holder_timestamp_seconds{holder="n9",node="n1"} 60.0'
    ]
    metrics.show_overdue([])
    assert not [line for line in lines(metrics) if line.startswith("careen_overdue")]


def test_the_metrics_include_the_memory_of_the_process() -> None:
    assert any(line.startswith("process_resident_memory_bytes ") for line in lines(Metrics("n1")))


def test_the_metrics_show_when_a_gate_began_to_refuse() -> None:
    metrics = Metrics("n1")
    metrics.show_refusals(
        [Refusal(gate="hold", code=Code.HELD, sentence="", since=datetime(2026, 3, 4, 12, 0, tzinfo=UTC))]
    )
    (line,) = [line for line in lines(metrics) if line.startswith("careen_refused_since_seconds{")]
    assert float(line.split()[1]) == datetime(2026, 3, 4, 12, 0, tzinfo=UTC).timestamp()


def test_the_self_test_metric_always_includes_the_problems_found_at_the_start() -> None:
    metrics = Metrics("n1")
    metrics.show_self_test(SelfTest(obstacle="no program"), besides=1)
    assert 'careen_self_test_problems{node="n1"} 2.0' in lines(metrics)
    metrics.show_self_test(SelfTest(warning="unheard"))
    assert 'careen_self_test_problems{node="n1"} 1.0' in lines(metrics)
    assert 'careen_shutdown_unheard{node="n1"} 1.0' in lines(metrics)


def test_a_metric_shows_how_long_a_gate_may_refuse_before_an_alert() -> None:
    metrics = Metrics("n1")
    blocked = Refusal(gate="blocking-pods", code=Code.BLOCKING_POD, sentence="", longest_seconds=7200)
    metrics.show_refusals([blocked, Refusal(gate="alerts", code=Code.ALERT, sentence="")])
    assert [line for line in lines(metrics) if line.startswith("careen_refused_longest_seconds{")] == [
        'careen_refused_longest_seconds{code="blocking-pod",gate="blocking-pods",node="n1"} 7200.0'
    ]
    metrics.show_refusals([])
    assert not [line for line in lines(metrics) if line.startswith("careen_refused_longest_seconds{")]


@pytest.mark.parametrize(
    "series",
    [
        *(f'careen_evictions_total{{answer="{answer.value}",node="n1"}}' for answer in EvictAnswer),
        *(f'careen_reboots_asked_total{{node="n1",outcome="{name}"}}' for name in ("accepted", "failed", "unclear")),
        *(f'careen_turns_total{{end="{end}",node="n1"}}' for end in ("done", "stopped", "broken")),
        *(f'careen_forecasts_total{{node="n1",result="{result}"}}' for result in ("made", "unknown")),
        'careen_forecast_pods_total{node="n1",result="hit",sampled="false"}',
        'careen_forecast_pods_total{node="n1",result="superseded",sampled="true"}',
        'careen_forecast_first_total{node="n1",result="miss",sampled="false"}',
    ],
)
def test_a_counter_is_zero_before_its_first_event(series: str) -> None:
    """If a counter first appeared with the value 1, Prometheus would see no increase."""
    assert f"{series} 0.0" in lines(Metrics("n1"))
