"""Connections of urllib3 with deadlines, and network errors in sentences about the server, without the library's names
and objects. Whether the server may have received the request is told by the classes in `errors.py`.

urllib3's own limit holds for each read, so an answer that drips would never exceed it.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import ssl
from collections.abc import Callable
from functools import partial
from http.client import HTTPException, IncompleteRead, RemoteDisconnected
from typing import Any

from urllib3 import exceptions
from urllib3.connection import HTTPConnection

from scheduler_core.extenders.timed_http import TimedResponse, connected

# The sentences about the peer: the server, or the proxy on the way to the server.
_UNKNOWN_NAME = "{peer} cannot be found: no name server of this host resolves its name"
_HUNG_UP = "{peer} closed the connection before it answered"
_TOO_SLOW = "{peer} did not accept the connection in time"
_BY_NUMBER = {
    errno.ECONNREFUSED: "{peer} refused the connection",
    errno.ECONNRESET: _HUNG_UP,
    errno.EPIPE: _HUNG_UP,
    errno.EHOSTUNREACH: "{peer} cannot be reached: there is no route to the host",
    errno.ENETUNREACH: "{peer} cannot be reached: no network leads to the host",
    errno.ETIMEDOUT: _TOO_SLOW,
}
_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE")
_OF_FILES = (errno.EACCES, errno.EISDIR, errno.ENOENT, errno.ENOTDIR)
_LOGIN = re.compile(r"(?<=://)[^/?#]*@")


def timed(kind: Any, connect: Callable[[Any], socket.socket], ends: Callable[[Any], float]) -> Any:
    """The class `kind` of connections with deadlines: `connect` opens a connection, `ends` says before each of its
    answers until when (of `time.monotonic`)."""
    own: dict[str, Any] = {"response_class": property(lambda each: partial(TimedResponse, ends=ends(each)))}
    if kind._new_conn is HTTPConnection._new_conn:  # not through a SOCKS proxy
        own["_new_conn"] = lambda each: connect(each)  # noqa: PLW0108 - a bound method would not get the connection
    return type(kind.__name__, (kind,), own)


def opened(connection: Any, ends: float) -> socket.socket:
    """The socket of the connection. Raises urllib3's errors."""
    host = connection._dns_host
    options = connection.socket_options or ()
    try:
        return connected(host, connection.port, seconds=connection.timeout, ends=ends, options=options)
    except socket.gaierror as error:
        raise exceptions.NameResolutionError(host, connection, error) from error
    except TimeoutError as error:
        raise exceptions.ConnectTimeoutError(connection, f"{host} did not answer in time") from error
    except OSError as error:
        raise exceptions.NewConnectionError(connection, f"{host} cannot be reached: {error}") from error


def description(error: BaseException, server: str) -> str:
    """Such as `https://10.0.0.1:6443 refused the connection`."""
    server = _LOGIN.sub("", server)
    if any(isinstance(each, exceptions.ProxyError) for each in _chain(error)):
        return _sentence(error, f"the proxy on the way to {server}")
    return _sentence(error, server or "the empty address")


def is_network_error(error: BaseException) -> bool:
    """OSErrors, which those of `requests` are too, and urllib3's errors."""
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


def _sentence(error: BaseException, peer: str) -> str:
    """Prefers the errors of the operating system and of TLS to the client library's."""
    chain = _chain(error)
    if sentence := _of_a_file(chain, peer):
        return sentence
    of_the_system = (_of_the_system(each, peer) for each in chain)
    of_the_library = (_of_the_library(each, peer) for each in reversed(chain))
    found = (sentence for sentence in (*of_the_system, *of_the_library, _of_the_proxy(chain, peer)) if sentence)
    return next(found, f"{peer} gave no usable answer")


def _of_a_file(chain: list[BaseException], peer: str) -> str:
    """About a certificate file that cannot be read, otherwise "". A NewConnectionError may contain OSErrors with the
    same numbers that no file caused."""
    if any(isinstance(each, exceptions.NewConnectionError) for each in chain):
        return ""
    numbers = [each.errno for each in chain if isinstance(each, OSError) and not isinstance(each, ssl.SSLError)]
    why = next((os.strerror(each) for each in numbers if each in _OF_FILES), "")
    return f"{peer} was not queried: a certificate or its key cannot be read: {_lowered(why)}" if why else ""


def _of_the_proxy(chain: list[BaseException], peer: str) -> str:
    """The proxy's HTTP status if it refused a tunnel, otherwise "". http.client has it only in the text of an
    OSError."""
    statuses = (re.search(r"Tunnel connection failed: (.+)", str(each)) for each in chain if type(each) is OSError)
    return next((f"{peer} refused to connect: {found[1]}" for found in statuses if found), "")


def _of_the_system(error: BaseException, peer: str) -> str:
    if isinstance(error, ssl.SSLError):
        return _of_tls(error, peer)
    if isinstance(error, socket.gaierror):
        return _UNKNOWN_NAME.format(peer=peer)
    if isinstance(error, RemoteDisconnected):
        return _HUNG_UP.format(peer=peer)
    if isinstance(error, IncompleteRead):
        return f"{peer} sent an incomplete answer"
    if isinstance(error, HTTPException):
        return f"{peer} does not answer with HTTP"
    if isinstance(error, OSError) and error.errno:
        if error.errno in _BY_NUMBER:
            return _BY_NUMBER[error.errno].format(peer=peer)
        return f"{peer} cannot be reached: {_lowered(os.strerror(error.errno))}"
    return ""


def _of_the_library(error: BaseException, peer: str) -> str:
    if isinstance(error, exceptions.LocationValueError):
        return f"{peer} is not the address of a server"
    if isinstance(error, exceptions.NameResolutionError):
        return _UNKNOWN_NAME.format(peer=peer)
    if isinstance(error, exceptions.ConnectTimeoutError):
        return _TOO_SLOW.format(peer=peer)
    if isinstance(error, exceptions.ReadTimeoutError | TimeoutError):
        return f"{peer} did not answer in time"
    return ""


def _of_tls(error: ssl.SSLError, peer: str) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{peer} shows a certificate that is not trusted: {_lowered(error.verify_message)}"
    reason = getattr(error, "reason", None)  # OpenSSL's errors have one
    if reason == "NO_CERTIFICATE_OR_CRL_FOUND":
        return f"{peer} was not queried: the file of trusted certificates contains no certificate"
    if reason is None and "PEM lib" in str(error):
        # For an unreadable client certificate or key, the library is `SSL`.
        is_trusted = getattr(error, "library", None) == "X509"
        if is_trusted:
            return f"{peer} was not queried: the file of trusted certificates cannot be used"
        return f"{peer} was not queried: the file of the client certificate or of its key cannot be used"
    if reason in _NO_TLS:
        return f"{peer} does not speak TLS on this port"
    alert = (reason or "no reason given").replace("_", " ").lower()
    return f"{peer} ended the TLS handshake: {alert}"


def _chain(error: BaseException) -> list[BaseException]:
    """The error and its causes, innermost first."""
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
