"""Silences of an Alertmanager (API v2) for the alerts of one node.

Each has an end, so it ends even if the agent can no longer reach Alertmanager. The agent recognises its own by creator
and comment, so it need not remember them across a reboot. Source: api/v2/openapi.yaml of Alertmanager.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from careen.core.facts.observation import Unknown
from careen.core.facts.times import from_rfc3339, rfc3339
from careen.services.wire.asking import Access, UnusableAnswer, answer_of, read_json

if TYPE_CHECKING:
    from requests import Session

CREATED_BY = "careen"
_PATH = "/api/v2/silences"
_LIVE = ("active", "pending")
_ID = re.compile(r"[A-Za-z0-9-]{1,100}")


class Silences:
    """This node's silences in one Alertmanager."""

    def __init__(
        self,
        url: str,
        *,
        node: str,
        cluster: str = "",
        matchers: Sequence[list[dict[str, Any]]],
        timeout_seconds: float,
        access: Access | None = None,
    ) -> None:
        """Each item of `matchers` is the list of one silence, as in the API."""
        self._url = url.rstrip("/")
        self._node = f"{node} of {cluster}" if cluster else node
        self._matchers = tuple(matchers)
        self._timeout_seconds = timeout_seconds
        self._access = access or Access()

    async def begin(self, seconds: float, *, now: datetime) -> str | Unknown:
        """Creates or extends a silence for each set of matchers. `Unknown` if it is not certain that all exist."""
        return await answer_of(
            "Alertmanager", self._url, self._timeout_seconds, lambda session: self._begin(session, seconds, now)
        )

    async def end(self) -> str | Unknown:
        """Ends all silences of careen for this node. `Unknown` if it is not certain that all have ended."""
        return await answer_of("Alertmanager", self._url, self._timeout_seconds, self._end)

    @property
    def _comment(self) -> str:
        return f"Node {self._node} is being rebooted"

    def _begin(self, session: Session, seconds: float, now: datetime) -> str:
        standing, server_now = self._standing(session)
        now = server_now or now
        ends = now + timedelta(seconds=seconds)
        for wanted in self._matchers:
            known = next((row for row in standing if _same(row.get("matchers"), wanted)), None)
            if known is not None and (from_rfc3339(str(known.get("endsAt"))) or now) >= ends:
                continue
            starts = str(known["startsAt"]) if known else rfc3339(now)
            self._put(session, wanted, starts=starts, ends=rfc3339(ends), known=known)
        return ""

    def _put(
        self,
        session: Session,
        wanted: list[dict[str, Any]],
        *,
        starts: str,
        ends: str,
        known: Mapping[str, Any] | None,
    ) -> None:
        silence = {
            "matchers": wanted,
            "startsAt": starts,
            "endsAt": ends,
            "createdBy": CREATED_BY,
            "comment": self._comment,
            **({"id": known["id"]} if known else {}),
        }
        content, _ = self._ask(session, "POST", _PATH, silence)
        answer = msgspec.json.decode(content)
        if not isinstance(answer, dict) or not isinstance(answer.get("silenceID"), str) or not answer["silenceID"]:
            raise UnusableAnswer("the answer does not contain the id of the new silence")

    def _end(self, session: Session) -> str:
        standing, _ = self._standing(session)
        for row in standing:
            self._ask(session, "DELETE", f"/api/v2/silence/{row['id']}")
        return ""

    def _standing(self, session: Session) -> tuple[list[dict[str, Any]], datetime | None]:
        """This node's active silences, and the server's clock, by which they end."""
        content, date = self._ask(session, "GET", _PATH)
        rows = msgspec.json.decode(content)
        if not isinstance(rows, list):
            raise UnusableAnswer("the answer is not a list of silences")
        return [row for row in rows if self._is_ours(row)], date

    def _is_ours(self, row: Any) -> bool:
        """Created by this node's agent and not expired. Raises an error if a needed field is missing: the row could be
        this node's silence, so it must not be skipped."""
        is_live = row["status"]["state"] in _LIVE
        is_ours = row["createdBy"] == CREATED_BY and row["comment"] == self._comment
        if is_live and is_ours and not (isinstance(row["id"], str) and _ID.fullmatch(row["id"])):
            raise UnusableAnswer("a silence has no valid id")
        return is_live and is_ours

    def _ask(self, session: Session, method: str, path: str, body: Any = None) -> tuple[bytes, datetime | None]:
        content, headers = read_json(
            session,
            method,
            f"{self._url}{path}",
            self._access,
            if_rejected="; the agent needs write access to create a silence",
            json=body,
        )
        return content, _date(headers.get("Date", ""))


def _same(one: Any, wanted: list[dict[str, Any]]) -> bool:
    """In any order, because Alertmanager sorts them. `isEqual` may be missing, as in older releases."""
    if not isinstance(one, list) or not all(isinstance(each, dict) for each in one):
        return False
    keys = ("name", "value", "isRegex")

    def plain(rows: list[dict[str, Any]]) -> list[tuple[str, ...]]:
        return sorted((*(str(row.get(key)) for key in keys), str(row.get("isEqual", True))) for row in rows)

    return plain(one) == plain(wanted)


def _date(header: str) -> datetime | None:
    from email.utils import parsedate_to_datetime  # few agents have silences

    try:
        at = parsedate_to_datetime(header)
    except (ValueError, TypeError):
        return None
    return at.astimezone(UTC) if at.tzinfo is not None else None
