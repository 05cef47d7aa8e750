"""Queries of servers other than the API server: credentials from files, a deadline, and one form of the reason if there
is no answer."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from careen.core.facts.observation import Unknown
from careen.core.facts.times import span
from scheduler_core.values import Value

T = TypeVar("T")

_LONGEST_WHY = 300


class Access(Value, kw_only=True):
    """Credentials and trusted certificates. Files are read for each query, because secrets rotate."""

    token_file: str = ""  # a bearer token
    username: str = ""  # with the password: basic authentication
    password_file: str = ""
    ca_file: str = ""  # whose certificates are trusted, instead of the system's
    certificate_file: str = ""  # our own; with its key in the same file if `key_file` is empty
    key_file: str = ""


class CannotAsk(Exception):
    """A credential cannot be read; the message says why. No request was sent."""


class CredentialsRejected(Exception):
    """The server rejected the credentials (401) or does not permit the query (403)."""


REJECTIONS = (401, 403)


async def answer_of(server: str, url: str, timeout_seconds: float, question: Callable[[], T]) -> T | Unknown:
    """What `question` returns, called once in a thread; unknown with the reason if it raises or takes too long.

    The client's own deadline is `timeout_seconds` and applies to each read; the whole query has twice that. `server` is
    the product's name for the reason, which shows `url` without the login in it."""
    shown = f"{server} at {without_login(url)}"
    try:
        async with asyncio.timeout(2 * timeout_seconds):
            return await asyncio.to_thread(question)
    except TimeoutError:
        return Unknown(f"{shown} did not answer within {span(2 * timeout_seconds)}")
    except CannotAsk as error:
        return Unknown(f"{shown} was not asked: {error}")
    except CredentialsRejected as error:
        return Unknown(f"{shown} refuses these credentials ({error})")
    except Exception as error:
        # Clients raise many kinds of errors: those of requests, KeyError for status=error with 200, JSONDecodeError for
        # a login proxy's page. After any of them the answer is unknown.
        why = f"{type(error).__name__}: {error}".replace(url, without_login(url))
        return Unknown(f"{shown} gave no usable answer: {why[:_LONGEST_WHY]}")


def without_login(url: str) -> str:
    """The address without a name and password in it."""
    return re.sub(r"(?<=://)[^/?#]*@", "", url)


def secret_in(file: str) -> str:
    """The one line of the file. Raises `CannotAsk`; no message contains the file's content."""
    try:
        text = Path(file).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise CannotAsk(f"{file} cannot be read: {error.strerror}") from error
    except ValueError:
        raise CannotAsk(f"{file} is no text") from None
    if not text or not text.isprintable() or not text.isascii():
        raise CannotAsk(f"{file} does not hold one line of letters, digits and signs")
    return text
