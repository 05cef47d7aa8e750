"""Tests the metrics that `careen shadow` exports. This command compares each decision of the cluster's scheduler with
the decision of scheduler_core."""

from __future__ import annotations

from careen.agent.telemetry.shadow_metrics import ShadowMetrics, Traffic
from careen.shadow.outcomes import AgreementReason, Compared
from careen.shadow.tally import RunCounts

TRAFFIC = Traffic(events=5, bytes=700, lists=17, troubled=1, waiting=2, nodes=20, pods=300)


def test_a_scrape_returns_the_current_counts() -> None:
    tally = RunCounts()
    metrics = ShadowMetrics(tally, lambda: TRAFFIC)
    before = metrics.exposition().decode()
    assert "careen_shadow_agreement " not in before
    assert "careen_shadow_pods_total{" not in before
    tally.add(Compared(pod="a/b", profile="default-scheduler", at="", reason=AgreementReason.FIRST, node="n1"))
    tally.add(Compared(pod="a/c", profile="gang", at="", reason=AgreementReason.OTHER_SCHEDULER, node="n1"))
    text = metrics.exposition().decode()
    assert 'careen_shadow_pods_total{outcome="agreed",profile="default-scheduler",reason="first"} 1.0' in text
    assert 'careen_shadow_pods_total{outcome="cannot-say",profile="gang",reason="other-scheduler"} 1.0' in text
    for line in (
        "careen_shadow_agreement 1.0",
        "careen_shadow_other_configuration 0.0",
        "careen_shadow_events_total 5.0",
        "careen_shadow_event_bytes_total 700.0",
        "careen_shadow_lists_total 17.0",
        "careen_shadow_troubled_kinds 1.0",
        "careen_shadow_waiting 2.0",
        "careen_shadow_nodes 20.0",
        "careen_shadow_pods_in_memory 300.0",
    ):
        assert f"\n{line}\n" in text
