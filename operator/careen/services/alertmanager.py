"""The active alerts of an Alertmanager (API v2), without silenced and inhibited ones. The core decides which of them
forbid a reboot."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from careen.core.facts.observation import Alert, Unknown
from careen.services.prometheus import AlertSource
from careen.services.wire import starts
from careen.services.wire.asking import Access, TooEarly, UnusableAnswer, answer_of, headers_of, read_json

if TYPE_CHECKING:
    from requests import Session

PATH = "/api/v2/alerts"
# The server leaves out silenced and inhibited alerts; the states of the others are checked once more.
WANTED = {"active": "true", "silenced": "false", "inhibited": "false", "unprocessed": "true"}


class Alertmanager:
    """Of several Alertmanagers in a cluster one is enough, because each has all alerts and silences."""

    def __init__(self, url: str, *, timeout_seconds: float, access: Access | None = None) -> None:
        self._url = url.rstrip("/")
        self._timeout_seconds = timeout_seconds
        self._access = access or Access()

    async def active_alerts(self) -> tuple[Alert, ...] | Unknown:
        """One query, in a thread, with a deadline for all of it."""
        return await answer_of("Alertmanager", self._url, self._timeout_seconds, self._alerts)

    def _alerts(self, session: Session) -> tuple[Alert, ...]:
        found, access = _alerts_of(msgspec.json.decode(self._read(session))), self._access
        session.verify = access.ca_file or True
        with starts.asking(session, self._url, self._timeout_seconds, headers=headers_of(access)) as get:
            start = starts.of_alertmanager(get)
        if start.why:
            raise TooEarly(start.why)
        return found

    def _read(self, session: Session) -> bytes:
        content, _ = read_json(
            session,
            "GET",
            f"{self._url}{PATH}",
            self._access,
            if_rejected=f": {self._what_was_shown()}",
            params=WANTED,
        )
        return content

    def _what_was_shown(self) -> str:
        file = self._access.token_file
        return (
            f"careen sent the token in {file}" if file else "careen sent no credentials; give --alertmanager-token-file"
        )


class Several:
    """Several sources of alerts as one. If any is unknown, all are."""

    def __init__(self, sources: Sequence[AlertSource]) -> None:
        self._sources = tuple(sources)

    async def active_alerts(self) -> tuple[Alert, ...] | Unknown:
        """All at the same time. An alert of two sources is returned twice."""
        answers = await asyncio.gather(*(source.active_alerts() for source in self._sources))
        for answer in answers:
            if isinstance(answer, Unknown):
                return answer
        return tuple(alert for answer in answers if not isinstance(answer, Unknown) for alert in answer)


def _alerts_of(rows: Any) -> tuple[Alert, ...]:
    """Raises `UnusableAnswer`, KeyError or TypeError if any item is not an alert: a skipped one could be the alert that
    forbids the reboot."""
    if not isinstance(rows, list):
        raise UnusableAnswer("the answer is not a list of alerts")
    found = [_alert(row) for row in rows]
    return tuple(
        sorted((each for each in found if each is not None), key=lambda each: (each.name, sorted(each.labels.items())))
    )


def _alert(row: Mapping[str, Any]) -> Alert | None:
    labels, status = row["labels"], row["status"]
    if not isinstance(labels, dict) or not all(isinstance(each, str) for each in labels.values()):
        raise UnusableAnswer("the labels of an alert are not strings")
    if status["state"] == "suppressed" or status.get("silencedBy") or status.get("inhibitedBy"):
        return None
    if status["state"] not in ("active", "unprocessed"):
        raise UnusableAnswer("an alert has none of the states of Alertmanager's API")
    # An alert that Alertmanager has not processed yet may turn out to be silenced. It counts as active.
    own = {key: value for key, value in labels.items() if key != "alertname"}
    return Alert(name=labels.get("alertname", "an alert has no name"), state="firing", labels=own)
