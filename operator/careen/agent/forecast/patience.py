"""Warns that the forecast gate has refused for longer than `--forecast-patience`: a person must make room for the
node's pods."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from careen.core.decision import Refusal
from careen.core.facts.phases import Phase
from careen.core.facts.reasons import Code

_OF_THE_FORECAST = frozenset({Code.FORECAST_REFUSES, Code.FORECAST_UNKNOWN, Code.EVICTION_REFUSED})

# While the node takes a claim and asks again, the Node does not show the refusal; only a longer absence means that it
# is over.
_GAP = timedelta(minutes=10)


class ForecastPatience:
    """Reports a refusal of the forecast gate once, when it lasts longer than `--forecast-patience`."""

    def __init__(self, patience_seconds: Callable[[], float]) -> None:
        self._patience_seconds = patience_seconds
        self._since: datetime | None = None
        self._seen_at: datetime | None = None
        self._told_since: datetime | None = None

    def look(
        self, refusals: tuple[Refusal, ...], now: datetime, phase: Phase | None = Phase.WAITING
    ) -> tuple[bool, str]:
        """Whether the refusal lasts for longer than `--forecast-patience`, and the sentence to report now; "" if there
        is none or it was reported before."""
        standing = next((each for each in refusals if each.code in _OF_THE_FORECAST and each.since is not None), None)
        if self._is_over(phase, now):
            self._since = self._seen_at = None
        if standing is not None and standing.since is not None:
            self._since, self._seen_at = min(self._since or standing.since, standing.since), now
        if self._since is None or now - self._since <= timedelta(seconds=self._patience_seconds()):
            return False, ""
        if standing is None or self._since == self._told_since:
            return True, ""
        self._told_since = self._since
        since = f"{self._since:%Y-%m-%d %H:%M} UTC"
        return True, f"the forecast has refused the reboot of this node since {since}: {standing.sentence}"

    @property
    def since(self) -> datetime | None:
        """When the last reported refusal began; None before the first report."""
        return self._told_since

    def _is_over(self, phase: Phase | None, now: datetime) -> bool:
        """The node no longer waits for its reboot, or the gate has not refused for a while."""
        is_waiting = phase in (Phase.WAITING, Phase.CLAIMING, None)
        return not is_waiting or (self._seen_at is not None and now - self._seen_at > _GAP)
