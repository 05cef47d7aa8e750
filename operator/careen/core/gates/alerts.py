"""The gate `alerts` refuses to let the node begin its drain or its reboot while an alert is active, or while the alert
source gives no usable response."""

from __future__ import annotations

from careen.core.decision import Refusal
from careen.core.facts.observation import Alert, NotAsked, Unknown
from careen.core.facts.phases import Evidence
from careen.core.facts.policy import AlertPolicy, Policy
from careen.core.facts.reasons import Code
from careen.core.gates.question import ALWAYS, Cost, Gate, Unforeseen, When
from careen.core.situation import Situation
from scheduler_core.sentences import first_few

# The prefix of all alerts in manifests/alerts. An alert about a reboot that is overdue must not block that reboot.
OWN_ALERTS = "Careen"


def needs(policy: Policy) -> frozenset[Evidence]:
    """Return the facts that the gate needs: the active alerts, if an alert source is configured."""
    return frozenset({Evidence.ALERTS}) if policy.alerts else frozenset()


def ask(situation: Situation, _when: When) -> Refusal | None:
    """Return a refusal if an active alert blocks a reboot (see `blocks`), or if the active alerts are unknown."""
    policy, active = situation.policy.alerts, situation.seen.alerts
    if policy is None:
        return None
    if isinstance(active, (Unknown, NotAsked)):
        return _no(
            Code.ALERTS_UNKNOWN,
            f"careen cannot tell which alerts are active: {active.why}",
        )
    names = sorted({alert.name for alert in active if blocks(alert, policy)})
    if not names:
        return None
    return _no(Code.ALERT, f"these alerts are active: {first_few(names)}")


def blocks(alert: Alert, policy: AlertPolicy) -> bool:
    """Whether this alert blocks a reboot. An alert of careen's own rules blocks only if `match_only` is set and the
    configured filter matches the alert."""
    if policy.firing_only and alert.state != "firing":
        return False
    matches = policy.filter_regexp is not None and bool(policy.filter_regexp.search(alert.name))
    return matches if policy.match_only else not matches and not alert.name.startswith(OWN_ALERTS)


def _no(code: Code, sentence: str) -> Refusal:
    return Refusal(gate=GATE.name, code=code, sentence=sentence)


GATE = Gate(
    name="alerts",
    ask=ask,
    when=ALWAYS,
    cost=Cost.COSTLY,
    needs=needs,
    foresight=Unforeseen("alerts"),
)
