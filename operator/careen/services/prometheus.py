"""Active alerts and samples of queries from a Prometheus, or why they are unknown.

Only this module imports prometheus-api-client, at the first query, because most agents never need it. The core decides
which alerts forbid a reboot.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from careen.core.facts.observation import Alert, Sample, Unknown
from careen.core.facts.untrusted import LONGEST_TEXT, object_of
from careen.core.plain_text import one_line
from careen.services.wire import starts
from careen.services.wire.asking import (
    REJECTIONS,
    Access,
    CredentialsRejected,
    TooEarly,
    UnusableAnswer,
    answer_of,
    headers_of,
    no_tenant,
    secret_in,
    status,
)
from scheduler_core.sentences import first_few
from scheduler_core.values import Value, replace_value

if TYPE_CHECKING:
    from requests import Session

T = TypeVar("T")

_LONGEST_WHY = 200

FIRED_BEFORE = 'max_over_time(ALERTS{alertstate="firing"}[1h])'
QUERY = 'ALERTS{alertstate=~"pending|firing"}'


class AlertSource(Protocol):
    """A source of alerts."""

    async def active_alerts(self) -> tuple[Alert, ...] | Unknown:
        """Every pending or firing alert."""
        ...


class MetricSource(Protocol):
    """A server that answers health queries."""

    async def samples(self, query: str, *, fresh_seconds: float) -> tuple[Sample, ...] | Unknown:
        """Every sample of the answer."""
        ...


class Prometheus:
    """One Prometheus, or another server with its query API (Thanos, Mimir, VictoriaMetrics)."""

    def __init__(self, url: str, *, timeout_seconds: float, access: Access | None = None) -> None:
        self._url = url.rstrip("/")
        self._timeout_seconds = timeout_seconds
        self._access = access or Access()

    async def active_alerts(self) -> tuple[Alert, ...] | Unknown:
        """One query, in a thread, with a deadline for all of it."""
        return await self._asked(self._alerts)

    async def samples(self, query: str, *, fresh_seconds: float) -> tuple[Sample, ...] | Unknown:
        """An instant query's samples, with their ages.

        The response has the time of the query, not of the sample. So `timestamp(query)` is queried too: the time of the
        last sample if the query is a single series. For an expression, `lookback_delta` limits the age; a server that
        does not know it ignores it.
        """
        return await self._asked(lambda session: self._samples(session, query, fresh_seconds))

    async def _asked(self, question: Callable[[Session], T]) -> T | Unknown:
        return await answer_of("Prometheus", self._url, self._timeout_seconds, question)

    def _alerts(self, session: Session) -> tuple[Alert, ...]:
        """A server that has just started reports an alert that fired before as pending again, for up to ten minutes
        (`--rules.alert.for-grace-period`): such an alert counts as firing."""
        alerts = [_alert(row) for row in self._query(session, QUERY)]
        if self._start(session, with_rules=True).is_recent and any(each.state == "pending" for each in alerts):
            fired = {_series(_alert(row)) for row in self._query(session, FIRED_BEFORE)}
            alerts = [replace_value(each, state="firing") if _series(each) in fired else each for each in alerts]
        return tuple(sorted(alerts, key=lambda alert: (alert.name, alert.state, sorted(alert.labels.items()))))

    def _start(self, session: Session, *, with_rules: bool) -> starts.ServerStart:
        """Asked after the query, so that a start between the two is noticed. Raises `TooEarly`."""
        headers, login = self._credentials()
        with starts.asking(session, self._url, self._timeout_seconds, headers=headers, auth=login) as get:
            found = starts.of_prometheus(get, self._url, with_rules=with_rules)
        if found.why:
            raise TooEarly(found.why)
        return found

    def _samples(self, session: Session, query: str, fresh_seconds: float) -> tuple[Sample, ...]:
        look_back = {"lookback_delta": f"{fresh_seconds:g}s"}
        values = [_reading(row) for row in self._query(session, query, look_back)]
        # On lines of their own: a comment at the end of the query would swallow the bracket.
        taken = {
            _identity(labels): (at, value)
            for labels, at, value in map(_reading, self._query(session, f"timestamp(\n{query}\n)", look_back))
        }
        self._start(session, with_rules=False)
        return tuple(
            Sample(value=value, labels=labels, evaluated_at=at, age_seconds=_age(taken.get(_identity(labels))))
            for labels, at, value in values
        )

    def _query(
        self, session: Session, query: str, parameters: Mapping[str, str] | None = None
    ) -> list[Mapping[str, Any]]:
        from prometheus_api_client import PrometheusConnect

        access, answers = self._access, list[Any]()
        headers, login = self._credentials()
        session.verify = access.ca_file or True
        session.cert = (
            (access.certificate_file, access.key_file) if access.key_file else access.certificate_file or None
        )
        session.hooks["response"] = [lambda answer, **_: answers.append(answer)]
        client = PrometheusConnect(
            url=self._url, timeout=self._timeout_seconds, session=session, headers=headers, auth=login
        )
        try:
            rows: list[Mapping[str, Any]] = client.custom_query(query, params=dict(parameters or {}))
        except Exception as error:
            code = answers[-1].status_code if answers else 200
            if code in REJECTIONS:
                tenant = no_tenant(answers[-1].content, access, "--prometheus-headers")
                raise CredentialsRejected(f"status {code}{tenant or f': {self._what_was_shown()}'}") from error
            if code != 200:
                raise UnusableAnswer(f"{status(code)}{_explained(answers[-1].content)}") from error
            raise
        if not isinstance(rows, list):
            raise UnusableAnswer(
                "the result of the query is not a list"
            )  # an empty object is not an empty list of alerts
        if why := _why_partial(answers[-1].content):
            raise UnusableAnswer(why)
        return rows

    def _credentials(self) -> tuple[dict[str, str] | None, tuple[str, str] | None]:
        """The headers, and user name and password; None if not configured."""
        access = self._access
        has_login = access.username and not access.token_file
        return headers_of(access) or None, (access.username, secret_in(access.password_file)) if has_login else None

    def _what_was_shown(self) -> str:
        access = self._access
        if access.token_file:
            return f"careen sent the token in {access.token_file}"
        if access.username:
            return f"careen sent the user name {access.username} with the password in {access.password_file}"
        return "careen sent no credentials; give --prometheus-token-file or --prometheus-username"


def _alert(row: Mapping[str, Any]) -> Alert:
    labels = {str(key): str(value) for key, value in row["metric"].items()}
    # `__name__` is always ALERTS; people filter by the alert's own labels.
    own = {key: value for key, value in labels.items() if key not in ("__name__", "alertname", "alertstate")}
    return Alert(name=labels["alertname"], state=labels["alertstate"], labels=own)


def _series(alert: Alert) -> tuple[str, tuple[tuple[str, str], ...]]:
    return alert.name, _identity(alert.labels)


def _reading(row: Mapping[str, Any]) -> tuple[dict[str, str], float, float]:
    """Labels, time and value. An invalid row raises an error, so that the whole response is unknown."""
    at, value = row["value"]
    return {str(key): str(text) for key, text in row["metric"].items()}, float(at), float(value)


def _identity(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((key, value) for key, value in labels.items() if key != "__name__"))


class _Remarks(Value, rename="camel"):
    """What a server says about its answer besides the result."""

    warnings: list[str] | None = None
    is_partial: bool | None = None


def _why_partial(content: bytes) -> str:
    """Why the result may lack series; "" if it is whole. Before its release 3, Prometheus gave its `infos`, which are
    about the query and not about the data, among the warnings."""
    remarks = msgspec.json.decode(content, type=_Remarks)
    warnings = [each for each in remarks.warnings or () if not each.startswith("PromQL info")]
    if warnings:
        said = first_few([one_line(each, _LONGEST_WHY) for each in warnings], 1)
        return f"the server warns about its answer, which may be incomplete: {said}"
    return "the answer is partial, because a part of the storage did not answer" if remarks.is_partial else ""


def _explained(content: bytes) -> str:
    """`: ` and the server's reason for refusing the query; "" without one."""
    why = object_of(content[:LONGEST_TEXT].decode(errors="replace")).get("error")
    return f": {one_line(why, _LONGEST_WHY)}" if isinstance(why, str) and why else ""


def _age(taken: tuple[float, float] | None) -> float:
    """By the server's clock; infinite without a timestamp."""
    return math.inf if taken is None else taken[0] - taken[1]
