"""Refuses while an alert is active, or while the alert source gives no usable response. Before the reboot it passes the
alerts that the node's own drain caused: they end after the reboot, or keep the next node from its claim."""

from __future__ import annotations

from careen.core.drain.late import caused_alerts
from careen.core.facts.observation import Alert, NotAsked, Unknown
from careen.core.facts.phases import Evidence
from careen.core.facts.policy import AlertPolicy
from careen.core.facts.reasons import Code
from careen.core.gates.question import Cost, No, When, gate
from careen.core.situation import Situation, known
from scheduler_core.sentences import first_few

# The prefix of all alerts in manifests/alerts. An alert about a reboot that is overdue must not block that reboot.
OWN_ALERTS = "Careen"


@gate(
    "alerts",
    cost=Cost.COSTLY,
    needs=lambda policy: {Evidence.ALERTS} if policy.alerts else set(),
)
def alerts(situation: Situation, when: When) -> No | None:
    policy, active = situation.policy.alerts, situation.seen.alerts
    if policy is None:
        return None
    if isinstance(active, (Unknown, NotAsked)):
        return No(Code.ALERTS_UNKNOWN, f"careen cannot tell which alerts are active: {active.why}")
    blocking = [alert for alert in active if blocks(alert, policy)]
    if when is When.BEFORE_REBOOT:
        ours = caused_alerts.caused(situation, blocking)
        blocking = [alert for alert in blocking if alert not in ours]
    names = sorted({alert.name for alert in blocking})
    if not names:
        return None
    about = tuple(f"alert {name}" for name in names)
    return No(Code.ALERT, f"these alerts are active: {first_few(names)}", about=about)


def passed_late(situation: Situation) -> str:
    """A clause that names the alerts which the drain caused; "" without any."""
    policy, active = situation.policy.alerts, known(situation.seen.alerts) or ()
    blocking = [alert for alert in active if policy is not None and blocks(alert, policy)]
    names = sorted({alert.name for alert in caused_alerts.caused(situation, blocking)})
    return f"the drain caused these alerts: {first_few(names)}" if names else ""


def blocks(alert: Alert, policy: AlertPolicy) -> bool:
    """Whether this alert blocks a reboot. An alert of careen's own rules does so only with `match_only` and a matching
    filter."""
    if policy.firing_only and alert.state != "firing":
        return False
    matches = alert.is_matched
    if matches is None:
        matches = policy.filter_regexp is not None and bool(policy.filter_regexp.search(alert.name))
    return matches if policy.match_only else not matches and not alert.name.startswith(OWN_ALERTS)
