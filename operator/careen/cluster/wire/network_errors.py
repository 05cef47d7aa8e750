"""Describes network errors in sentences about the server, without the client library's names and objects.

The error's class in `errors.py` shows whether the server may have received the request; this file provides only the
sentence.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import ssl
from http.client import HTTPException, IncompleteRead, RemoteDisconnected

from urllib3 import exceptions

_UNKNOWN_NAME = "cannot be found: no name server here resolves its name"
_HUNG_UP = "closed the connection before it answered"
_BY_NUMBER = {
    errno.ECONNREFUSED: "refused the connection",
    errno.ECONNRESET: _HUNG_UP,
    errno.EPIPE: _HUNG_UP,
    errno.EHOSTUNREACH: "cannot be reached: there is no route to the host",
    errno.ENETUNREACH: "cannot be reached: no network leads to the host",
    errno.ETIMEDOUT: "did not accept the connection in time",
}
_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE")
_OF_FILES = (errno.EACCES, errno.EISDIR, errno.ENOENT, errno.ENOTDIR)
_LOGIN = re.compile(r"(?<=://)[^/?#]*@")


def description(error: BaseException, server: str) -> str:
    """Returns what went wrong with a request to this server, such as `https://10.0.0.1:6443 refused the connection`."""
    server = _LOGIN.sub("", server)
    if any(isinstance(each, exceptions.ProxyError) for each in _chain(error)):
        return f"the proxy on the way to {server} {_cause(error)}"
    return f"{server or 'the empty address'} {_cause(error)}"


def is_network_error(error: BaseException) -> bool:
    """Whether the connection raised the error: an OSError (the errors of the library `requests` are OSErrors too) or an
    error of urllib3."""
    return isinstance(error, OSError | exceptions.HTTPError)


def was_surely_not_sent(error: BaseException) -> bool:
    """Whether the connection failed before the request could be sent."""
    before = (
        exceptions.NewConnectionError,
        exceptions.ConnectTimeoutError,
        exceptions.ProxyError,
        exceptions.LocationValueError,
    )
    return isinstance(error, before) or any(isinstance(each, ssl.SSLCertVerificationError) for each in _chain(error))


def _cause(error: BaseException) -> str:
    """Returns a sentence about the cause of this error. Prefers the errors of the operating system and of TLS to those
    of the client library."""
    chain = _chain(error)
    if words := _of_a_file(chain):
        return words
    found = (*map(_of_the_system, chain), *map(_of_the_library, reversed(chain)))
    return next((words for words in found if words), _of_the_proxy(chain) or "gave no usable answer")


def _of_a_file(chain: list[BaseException]) -> str:
    """Returns a sentence if a certificate file cannot be read, otherwise an empty text. A failed connection causes
    OSErrors with the same numbers, but within a NewConnectionError."""
    if any(isinstance(each, exceptions.NewConnectionError) for each in chain):
        return ""
    numbers = [each.errno for each in chain if isinstance(each, OSError) and not isinstance(each, ssl.SSLError)]
    why = next((os.strerror(each) for each in numbers if each in _OF_FILES), "")
    return f"was not queried: a certificate or its key cannot be read: {_lowered(why)}" if why else ""


def _of_the_proxy(chain: list[BaseException]) -> str:
    """Returns a clause with the status with which the proxy refused to open a tunnel, otherwise an empty text.
    http.client reports the status only in the text of an OSError."""
    statuses = (re.search(r"Tunnel connection failed: (.+)", str(each)) for each in chain if type(each) is OSError)
    return next((f"refused to connect: {found[1]}" for found in statuses if found), "")


def _of_the_system(error: BaseException) -> str:
    if isinstance(error, ssl.SSLError):
        return _of_tls(error)
    if isinstance(error, socket.gaierror):
        return _UNKNOWN_NAME
    if isinstance(error, RemoteDisconnected):
        return _HUNG_UP
    if isinstance(error, IncompleteRead):
        return "sent an incomplete answer"
    if isinstance(error, HTTPException):
        return "does not answer with HTTP"
    if isinstance(error, OSError) and error.errno:
        return _BY_NUMBER.get(error.errno) or f"cannot be reached: {_lowered(os.strerror(error.errno))}"
    return ""


def _of_the_library(error: BaseException) -> str:
    if isinstance(error, exceptions.LocationValueError):
        return "is not the address of a server"
    if isinstance(error, exceptions.NameResolutionError):
        return _UNKNOWN_NAME
    if isinstance(error, exceptions.ConnectTimeoutError):
        return "did not accept the connection in time"
    if isinstance(error, exceptions.ReadTimeoutError | TimeoutError):
        return "did not answer in time"
    return ""


def _of_tls(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"shows a certificate that is not trusted: {_lowered(error.verify_message)}"
    reason = getattr(error, "reason", None)  # OpenSSL's errors have one
    if reason == "NO_CERTIFICATE_OR_CRL_FOUND":
        return "was not queried: the file of trusted certificates contains no certificate"
    if reason is None and "PEM lib" in str(error):
        is_trusted = getattr(error, "library", None) == "X509"  # `SSL`: the agent's own certificate
        if is_trusted:
            return "was not queried: the file of trusted certificates cannot be used"
        return "was not queried: the file of the client certificate or of its key cannot be used"
    if reason in _NO_TLS:
        return "does not speak TLS on this port"
    words = (reason or "no reason given").replace("_", " ").lower()
    return f"ended the TLS handshake: {words}"


def _chain(error: BaseException) -> list[BaseException]:
    """Returns the error and the errors that caused it, with the innermost cause first."""
    found: list[BaseException] = []
    waiting: list[BaseException] = [error]
    while waiting:
        each = waiting.pop()
        if all(each is not one for one in found):
            found.append(each)
            inner = (each.__cause__, each.__context__, *each.args, getattr(each, "reason", None))
            waiting += [one for one in inner if isinstance(one, BaseException)]
    return found[::-1]


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]
