"""Refuses while an alert is active, or while the alert source gives no usable response."""

from __future__ import annotations

from careen.core.facts.observation import Alert, NotAsked, Unknown
from careen.core.facts.phases import Evidence
from careen.core.facts.policy import AlertPolicy
from careen.core.facts.reasons import Code
from careen.core.gates.question import Cost, No, gate
from careen.core.situation import Situation
from scheduler_core.sentences import first_few

# The prefix of all alerts in manifests/alerts. An alert about a reboot that is overdue must not block that reboot.
OWN_ALERTS = "Careen"


@gate(
    "alerts",
    cost=Cost.COSTLY,
    needs=lambda policy: {Evidence.ALERTS} if policy.alerts else set(),
)
def alerts(situation: Situation) -> No | None:
    policy, active = situation.policy.alerts, situation.seen.alerts
    if policy is None:
        return None
    if isinstance(active, (Unknown, NotAsked)):
        return No(Code.ALERTS_UNKNOWN, f"careen cannot tell which alerts are active: {active.why}")
    names = sorted({alert.name for alert in active if blocks(alert, policy)})
    return No(Code.ALERT, f"these alerts are active: {first_few(names)}") if names else None


def blocks(alert: Alert, policy: AlertPolicy) -> bool:
    """Whether this alert blocks a reboot. An alert of careen's own rules does so only with `match_only` and a matching
    filter."""
    if policy.firing_only and alert.state != "firing":
        return False
    matches = policy.filter_regexp is not None and bool(policy.filter_regexp.search(alert.name))
    return matches if policy.match_only else not matches and not alert.name.startswith(OWN_ALERTS)
