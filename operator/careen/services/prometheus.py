"""Active alerts of a Prometheus, or why they are not known. The only importer of prometheus-api-client.

Imported when it is first asked: most agents of a fleet never ask. Which alerts forbid a reboot is decided in the core.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from careen.core.observation import Alert, Unknown

QUERY = 'ALERTS{alertstate=~"pending|firing"}'


class AlertSource(Protocol):
    """Where alerts come from."""

    async def active_alerts(self) -> tuple[Alert, ...] | Unknown:
        """Every pending or firing alert; unknown whenever that cannot be told."""
        ...


class Prometheus:
    """One Prometheus, or anything that speaks its query API (Thanos, VictoriaMetrics)."""

    def __init__(self, url: str, *, timeout_seconds: float) -> None:
        self._url = url.rstrip("/")
        self._timeout_seconds = timeout_seconds

    async def active_alerts(self) -> tuple[Alert, ...] | Unknown:
        """Asks once, in a thread, with a deadline of its own besides the client's."""
        try:
            async with asyncio.timeout(2 * self._timeout_seconds):
                rows = await asyncio.to_thread(self._query)
            return tuple(sorted((_alert(row) for row in rows), key=lambda alert: (alert.name, alert.state, sorted(alert.labels.items()))))
        except TimeoutError:
            return Unknown(f"Prometheus at {self._url} did not answer within {2 * self._timeout_seconds:g} s")
        except Exception as error:
            # The client lets through whatever goes wrong below it: requests' errors, KeyError for status=error with 200,
            # JSONDecodeError for the page of a login proxy. Whatever it is, the alerts are not known.
            return Unknown(f"Prometheus at {self._url} gave no usable answer: {type(error).__name__}: {error}")

    def _query(self) -> list[Mapping[str, Any]]:
        from prometheus_api_client import PrometheusConnect
        from urllib3.util.retry import Retry

        # Its default of three retries with back-off turns a deadline of one second into ten.
        client = PrometheusConnect(url=self._url, timeout=self._timeout_seconds, retry=Retry(0))
        rows: list[Mapping[str, Any]] = client.custom_query(QUERY)
        return rows


def _alert(row: Mapping[str, Any]) -> Alert:
    labels = {str(key): str(value) for key, value in row["metric"].items()}
    # `__name__` is ALERTS itself; the alert's own labels are what people filter by.
    own = {key: value for key, value in labels.items() if key not in ("__name__", "alertname", "alertstate")}
    return Alert(name=labels["alertname"], state=labels["alertstate"], labels=own)
