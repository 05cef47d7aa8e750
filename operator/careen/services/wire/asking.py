"""Queries to servers other than the API server: credentials from files, a bounded transport (`bounded.py`), and one
form of failure."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from careen.core.facts.observation import Unknown
from careen.core.facts.times import span
from careen.core.facts.untrusted import LONGEST_TEXT
from careen.core.plain_text import one_line
from scheduler_core.values import Value

if TYPE_CHECKING:
    from requests import Session

T = TypeVar("T")

_LOG = logging.getLogger("careen.services")
_LONGEST_WHY = 300
_LONGEST_ANSWER = 120
_OF_TENANTS = re.compile(r"\borg[ -]?id\b|tenant", re.IGNORECASE)
_HEADERS = "--alertmanager-headers"  # `read_json` asks only Alertmanager


class RequestHeader(Value):
    """A header of each request, such as a tenant; its value is in a file if there is one."""

    name: str
    value: str = ""
    file: str = ""


class Access(Value, kw_only=True):
    """Credentials and trusted certificates. The files are read for each query, because secrets change."""

    token_file: str = ""  # a bearer token
    headers: tuple[RequestHeader, ...] = ()
    username: str = ""  # with the password: basic authentication
    password_file: str = ""
    ca_file: str = ""  # whose certificates are trusted, instead of the system's
    certificate_file: str = ""  # the agent's own; with its key in the same file if `key_file` is empty
    key_file: str = ""


class CannotAsk(Exception):
    """A credential cannot be read; the message says why. No request was sent."""


class UnusableAnswer(ValueError):
    """The message says why."""


class TooEarly(Exception):
    """The server answers, but cannot know everything yet; the message is the predicate of a sentence about it."""


class CredentialsRejected(Exception):
    """The server rejected the credentials (401) or does not permit the query (403)."""


REJECTIONS = (401, 403)
_SAID: dict[type[Exception], str] = {
    CannotAsk: "was not queried: {}",
    CredentialsRejected: "refuses the credentials of careen ({})",
    TooEarly: "{}",
    UnusableAnswer: "gave no usable answer: {}",
}


async def answer_of(server: str, url: str, timeout_seconds: float, question: Callable[[Session], T]) -> T | Unknown:
    """Calls `question` once in a thread. Unknown, with `server`, `url` without its login and the reason, if it raises
    an error or takes longer than twice `timeout_seconds`.

    `timeout_seconds` is the deadline of the connection and of each read; a question may consist of several requests.
    So all of it gets twice the time, and the session that `question` gets ends its thread at that deadline.
    """
    shown = f"{server} at {without_login(url)}"

    def asked() -> T:
        from careen.services.wire import bounded  # requests: most agents of a fleet never ask

        with bounded.session(timeout_seconds, 2 * timeout_seconds) as session:
            try:
                return question(session)
            except bounded.Unbounded as error:
                raise UnusableAnswer(str(error)) from error

    try:
        async with asyncio.timeout(2 * timeout_seconds):
            return await asyncio.to_thread(asked)
    except TimeoutError:
        return Unknown(f"{shown} did not answer within {span(2 * timeout_seconds)}")
    except tuple(_SAID) as error:
        return Unknown(f"{shown} {_SAID[type(error)].format(str(error)[:_LONGEST_WHY])}")
    except Exception as error:
        # Clients raise many kinds of errors: KeyError for status=error with 200, JSONDecodeError for a login proxy's
        # page. After any of them the answer is unknown.
        _LOG.debug("%s: %s: %s", shown, type(error).__name__, str(error).replace(url, without_login(url)))
        from careen.cluster.wire import network_errors

        if type(error) is OSError:  # a file of certificates that requests cannot find
            return Unknown(f"{shown} was not queried: {error}"[:_LONGEST_WHY])
        if network_errors.is_network_error(error):
            return Unknown(f"{server} at {network_errors.description(error, url)}"[:_LONGEST_WHY])
        return Unknown(f"{shown} gave no usable answer: the answer does not have the expected structure")


def read_json(
    session: Session, method: str, url: str, access: Access, *, if_rejected: str, **arguments: Any
) -> tuple[bytes, Mapping[str, str]]:
    """The undecoded JSON and the headers of an answer with status 200 to one request with the token of `access`.
    `arguments` go to requests.

    Raises `CannotAsk` if the token cannot be read, `CredentialsRejected` if the server rejects it, `UnusableAnswer` for
    any other status, and the errors of requests and urllib3 if the connection fails. `answer_of` handles them all.
    """
    headers = {"Accept": "application/json", **headers_of(access)}
    answer = session.request(method, url, headers=headers, verify=access.ca_file or True, **arguments)
    if answer.status_code in REJECTIONS:
        raise CredentialsRejected(
            f"status {answer.status_code}{no_tenant(answer.content, access, _HEADERS) or if_rejected}"
        )
    if answer.status_code != 200:
        raise UnusableAnswer(status(answer.status_code))
    return answer.content, answer.headers


def headers_of(access: Access) -> dict[str, str]:
    """The headers with the token and those of the settings. Raises `CannotAsk`."""
    found = {each.name: secret_in(each.file) if each.file else each.value for each in access.headers}
    return found | ({"Authorization": f"Bearer {secret_in(access.token_file)}"} if access.token_file else {})


def no_tenant(content: bytes, access: Access, setting: str) -> str:
    """What to do if the server refuses a request because it names no tenant, as Mimir and Cortex do ("no org id"), or a
    wrong one; "" if the answer does not speak of tenants."""
    said = one_line(content[:LONGEST_TEXT].decode(errors="replace").strip(), _LONGEST_ANSWER)
    if not _OF_TENANTS.search(said):
        return ""
    sent = ", ".join(each.name for each in access.headers)
    what = f"careen sent {sent}" if sent else f"give the tenant with {setting}='X-Scope-OrgID: TENANT'"
    return f": {said}; {what}"


def status(code: int) -> str:
    """For messages."""
    follows = "; careen follows no redirect, so give the URL that it leads to" if 300 <= code < 400 else ""
    return f"status {code}{follows}"


def without_login(url: str) -> str:
    """Without user name and password."""
    return re.sub(r"(?<=://)[^/?#]*@", "", url)


def secret_in(file: str) -> str:
    """The file's only line. Raises `CannotAsk` without the file's content."""
    try:
        text = Path(file).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise CannotAsk(f"{file} cannot be read: {error.strerror}") from error
    except ValueError:
        raise CannotAsk(f"{file} is not text") from None
    if not text or not text.isprintable() or not text.isascii():
        raise CannotAsk(f"{file} must contain one line of printable ASCII characters")
    return text
