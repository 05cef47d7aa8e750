"""A forecast that has refused for longer than `--forecast-patience` is told as a warning: a person has to make room."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from careen.core.decision import Refusal
from careen.core.reasons import Code

_OF_THE_FORECAST = frozenset({Code.FORECAST_REFUSES, Code.FORECAST_UNKNOWN, Code.EVICTION_REFUSED})


class ForecastPatience:
    """Tells each refusal once, from the moment it has stood for too long."""

    def __init__(self, patience_seconds: Callable[[], float]) -> None:
        self._patience_seconds = patience_seconds
        self._told_since: datetime | None = None

    def look(self, refusals: tuple[Refusal, ...], now: datetime) -> tuple[bool, str]:
        """Whether the patience is over, and the sentence to tell now; empty if there is none or it was told."""
        standing = [each for each in refusals if each.code in _OF_THE_FORECAST and each.since is not None]
        late = [each for each in standing if each.since and now - each.since > timedelta(seconds=self._patience_seconds())]
        if not late:
            return False, ""
        since, sentence = late[0].since, late[0].sentence
        if since == self._told_since:
            return True, ""
        self._told_since = since
        return True, f"no place for this node's pods since {since:%Y-%m-%d %H:%M} UTC: {sentence}"
