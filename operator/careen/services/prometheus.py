"""Active alerts of a Prometheus, or why they are not known. The only importer of prometheus-api-client.

Imported when it is first asked: most agents of a fleet never ask. Which alerts forbid a reboot is decided in the core.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from careen.core.facts.observation import Alert, Unknown
from scheduler_core.values import Value

QUERY = 'ALERTS{alertstate=~"pending|firing"}'


class AlertSource(Protocol):
    """Where alerts come from."""

    async def active_alerts(self) -> tuple[Alert, ...] | Unknown:
        """Every pending or firing alert; unknown whenever that cannot be told."""
        ...


class Access(Value, kw_only=True):
    """What a Prometheus wants to see before it answers. Files are read anew for each question: secrets rotate."""

    token_file: str = ""  # a bearer token
    username: str = ""  # with the password: basic authentication
    password_file: str = ""
    ca_file: str = ""  # whose certificates are trusted, instead of the system's
    certificate_file: str = ""  # our own; with its key in the same file if `key_file` is empty
    key_file: str = ""


class Prometheus:
    """One Prometheus, or anything that speaks its query API (Thanos, VictoriaMetrics)."""

    def __init__(self, url: str, *, timeout_seconds: float, access: Access | None = None) -> None:
        self._url = url.rstrip("/")
        self._shown = without_login(self._url)
        self._timeout_seconds = timeout_seconds
        self._access = access or Access()

    async def active_alerts(self) -> tuple[Alert, ...] | Unknown:
        """Asks once, in a thread, with a deadline of its own besides the client's."""
        try:
            async with asyncio.timeout(2 * self._timeout_seconds):
                rows = await asyncio.to_thread(self._query)
            return tuple(
                sorted(
                    (_alert(row) for row in rows),
                    key=lambda alert: (alert.name, alert.state, sorted(alert.labels.items())),
                )
            )
        except TimeoutError:
            return Unknown(f"Prometheus at {self._shown} did not answer within {2 * self._timeout_seconds:g} s")
        except _NotAsked as error:
            return Unknown(f"Prometheus at {self._shown} was not asked: {error}")
        except _Rejected as error:
            return Unknown(f"Prometheus at {self._shown} refuses these credentials ({error})")
        except Exception as error:
            # The client lets through whatever goes wrong below it: requests' errors, KeyError for status=error
            # with 200, JSONDecodeError for the page of a login proxy. Whatever it is, the alerts are not known.
            why = f"{type(error).__name__}: {error}".replace(self._url, self._shown)
            return Unknown(f"Prometheus at {self._shown} gave no usable answer: {why[:_LONGEST_WHY]}")

    def _query(self) -> list[Mapping[str, Any]]:
        from prometheus_api_client import PrometheusConnect
        from requests import Session
        from urllib3.util.retry import Retry

        access, statuses = self._access, list[int]()
        headers, login = self._credentials()
        with Session() as session:
            session.verify = access.ca_file or True
            session.cert = (
                (access.certificate_file, access.key_file) if access.key_file else access.certificate_file or None
            )
            session.hooks["response"].append(lambda answer, **_: statuses.append(answer.status_code))
            # Its default of three retries with back-off turns a deadline of one second into ten.
            client = PrometheusConnect(
                url=self._url,
                timeout=self._timeout_seconds,
                retry=Retry(0),
                session=session,
                headers=headers,
                auth=login,
            )
            try:
                rows: list[Mapping[str, Any]] = client.custom_query(QUERY)
            except Exception as error:
                if statuses and statuses[-1] in _REJECTIONS:
                    raise _Rejected(f"status {statuses[-1]}: {self._what_was_shown()}") from error
                raise
        if not isinstance(rows, list):
            raise TypeError("its result is no list")  # an empty object is not an empty list of alerts
        return rows

    def _credentials(self) -> tuple[dict[str, str] | None, tuple[str, str] | None]:
        """The header of a token, or a login; neither where none is wanted."""
        access = self._access
        if access.token_file:
            return {"Authorization": f"Bearer {_secret_in(access.token_file)}"}, None
        return None, (access.username, _secret_in(access.password_file)) if access.username else None

    def _what_was_shown(self) -> str:
        access = self._access
        if access.token_file:
            return f"the token in {access.token_file}"
        if access.username:
            return f"{access.username} with the password in {access.password_file}"
        return "there were none; give --prometheus-token-file or --prometheus-username"


class _NotAsked(Exception):
    """What has to be shown cannot be read; the sentence says why."""


class _Rejected(Exception):
    """The server knows us not, or does not let us ask."""


_REJECTIONS = (401, 403)
_LONGEST_WHY = 300


def without_login(url: str) -> str:
    """The address without a name and password in it."""
    return re.sub(r"(?<=://)[^/?#]*@", "", url)


def _secret_in(file: str) -> str:
    """The one line of the file. Its content is told by no error."""
    try:
        text = Path(file).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise _NotAsked(f"{file} cannot be read: {error.strerror}") from error
    except ValueError:
        raise _NotAsked(f"{file} is no text") from None
    if not text or not text.isprintable() or not text.isascii():
        raise _NotAsked(f"{file} does not hold one line of letters, digits and signs")
    return text


def _alert(row: Mapping[str, Any]) -> Alert:
    labels = {str(key): str(value) for key, value in row["metric"].items()}
    # `__name__` is ALERTS itself; the alert's own labels are what people filter by.
    own = {key: value for key, value in labels.items() if key not in ("__name__", "alertname", "alertstate")}
    return Alert(name=labels["alertname"], state=labels["alertstate"], labels=own)
