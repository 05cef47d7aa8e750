"""How a server beside the API server is asked: with credentials from files, within a deadline, and with one way to
say why there is no answer."""

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
    """What a server wants to see before it answers. Files are read anew for each question: secrets rotate."""

    token_file: str = ""  # a bearer token
    username: str = ""  # with the password: basic authentication
    password_file: str = ""
    ca_file: str = ""  # whose certificates are trusted, instead of the system's
    certificate_file: str = ""  # our own; with its key in the same file if `key_file` is empty
    key_file: str = ""


class CannotAsk(Exception):
    """What has to be shown cannot be read; the sentence says why. The server was not asked."""


class CredentialsRejected(Exception):
    """The server does not accept the credentials (401), or does not allow the question (403)."""


REJECTIONS = (401, 403)


async def answer_of(server: str, url: str, timeout_seconds: float, question: Callable[[], T]) -> T | Unknown:
    """What `question` returns, asked once in a thread; unknown, with the reason, whatever else becomes of it.

    The question has `timeout_seconds` for its own waits, and twice that in all: a client counts its deadline for each
    read. `server` is the product's name for the reason, which shows `url` without the login in it."""
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
        # Clients let through whatever goes wrong below them: requests' errors, KeyError for status=error with 200,
        # JSONDecodeError for the page of a login proxy. Whatever it is, the answer is not known.
        why = f"{type(error).__name__}: {error}".replace(url, without_login(url))
        return Unknown(f"{shown} gave no usable answer: {why[:_LONGEST_WHY]}")


def without_login(url: str) -> str:
    """The address without a name and password in it."""
    return re.sub(r"(?<=://)[^/?#]*@", "", url)


def secret_in(file: str) -> str:
    """The one line of the file. Raises `CannotAsk`; no error tells the content."""
    try:
        text = Path(file).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise CannotAsk(f"{file} cannot be read: {error.strerror}") from error
    except ValueError:
        raise CannotAsk(f"{file} is no text") from None
    if not text or not text.isprintable() or not text.isascii():
        raise CannotAsk(f"{file} does not hold one line of letters, digits and signs")
    return text
