"""One POST request to an extender, with limits of time and size. The library does no other I/O; tests may replace this
transport.

Source: makeTransport and send in pkg/scheduler/extender.go, v1.36. Uses no proxy and follows no redirect.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from scheduler_core.config.configuration import ExtenderSettings, ExtenderTls
from scheduler_core.extenders.protocol import ExtenderError
from scheduler_core.extenders.timed_http import TimedResponse, TooLong, connected, whole

_MOST_BYTES = 16 * 2**20
"""And twice the size of the request: an answer contains nodes of the request, and reasons."""
_AT_ONCE = ((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),)


class HttpTransport:
    """Address, certificates, and the time limit of a whole call of one extender.

    The constructor reads the certificate files, and raises ExtenderError if one cannot be used.
    """

    def __init__(self, settings: ExtenderSettings) -> None:
        self._prefix = settings.url_prefix.rstrip("/")
        self._timeout_seconds = settings.timeout_seconds
        address = urlsplit(self._prefix)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise ExtenderError(f"extender {settings.url_prefix!r}: urlPrefix must be an http or https address")
        self._host, self._port, self._path = address.hostname, address.port, address.path
        self._tls = settings.tls or ExtenderTls()
        self._context = _trust(self._tls, has_to_be_https=settings.enable_https) if address.scheme == "https" else None

    def post(self, verb: str, body: bytes) -> bytes:
        url = f"{self._prefix}/{verb}"
        connection = self._connection(ends=time.monotonic() + self._timeout_seconds)
        try:
            connection.request("POST", f"{self._path}/{verb}", body, {"Content-Type": "application/json"})
            with connection.getresponse() as response:  # the response may outlive the connection
                answer = whole(response.read1, _MOST_BYTES + 2 * len(body))
            if response.length:
                raise ExtenderError(f"POST {url}: the answer ended early")
        except TimeoutError as problem:
            raise ExtenderError(f"POST {url}: no answer within {self._timeout_seconds:g} s") from problem
        except (OSError, http.client.HTTPException, TooLong) as problem:
            raise ExtenderError(f"POST {url}: {problem or type(problem).__name__}") from problem
        finally:
            connection.close()
        if response.status != http.client.OK:
            raise ExtenderError(f"failed {verb} with extender at URL {url}, code {response.status}")
        return answer

    def _connection(self, ends: float) -> _Connection:
        return _Connection(
            self._host, self._port, ends=ends, context=self._context, name=self._tls.server_name or self._host
        )


class _Connection(http.client.HTTPConnection):
    """For one request. Verifies the server's certificate for `name` instead of the address, which is often not in an
    extender's certificate."""

    def __init__(self, host: str, port: int | None, *, ends: float, context: ssl.SSLContext | None, name: str) -> None:
        super().__init__(host, port or (http.client.HTTP_PORT if context is None else http.client.HTTPS_PORT))
        self.response_class = partial(TimedResponse, ends=ends)  # type: ignore[assignment]
        self._ends = ends
        self._context = context
        self._name = name

    def connect(self) -> None:
        seconds = self._ends - time.monotonic()
        plain = connected(self.host, self.port, seconds=seconds, ends=self._ends, options=_AT_ONCE)
        try:
            plain.settimeout(max(self._ends - time.monotonic(), 0.001))  # of the whole handshake
            self.sock = plain if self._context is None else self._context.wrap_socket(plain, server_hostname=self._name)
        except BaseException:
            plain.close()
            raise


def _trust(tls: ExtenderTls, *, has_to_be_https: bool) -> ssl.SSLContext:
    has_authority = bool(tls.authority_file or tls.authority_pem)
    if tls.insecure and has_authority:
        raise ExtenderError("tlsConfig: a root certificate cannot be combined with insecure")
    context = ssl.create_default_context()
    # From 3.13 on Python refuses authorities without a key usage; Go, and so kube-scheduler, accepts them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    # kube-scheduler does not verify an HTTPS extender without a CA; set one to have it verified.
    if tls.insecure or (has_to_be_https and not has_authority):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.authority_pem:
        _load("caData", "", lambda: context.load_verify_locations(cadata=tls.authority_pem.decode()))
    elif tls.authority_file:
        _load("caFile", tls.authority_file, lambda: context.load_verify_locations(cafile=tls.authority_file))
    if (tls.certificate_pem or tls.certificate_file) and (tls.key_pem or tls.key_file):
        _load_client_certificate(context, tls)
    return context


def _load_client_certificate(context: ssl.SSLContext, tls: ExtenderTls) -> None:
    with (
        tempfile.TemporaryDirectory() as folder
    ):  # ssl reads a key only from files; the folder is readable only by this user and deleted at once.
        certificate = _as_file(Path(folder, "certificate"), tls.certificate_pem, tls.certificate_file)
        key = _as_file(Path(folder, "key"), tls.key_pem, tls.key_file)
        files = ", ".join(
            file
            for file in ("" if tls.certificate_pem else tls.certificate_file, "" if tls.key_pem else tls.key_file)
            if file
        )
        _load("client certificate", files, lambda: context.load_cert_chain(certificate, key))


def _as_file(path: Path, pem: bytes, file: str) -> str:
    if not pem:
        return file
    path.write_bytes(pem)
    return str(path)


def _load(what: str, files: str, load: Callable[[], object]) -> None:
    """Raises ExtenderError if a file cannot be used. The message does not depend on the cause: the author of the
    settings must not find out which files exist on this host."""
    try:
        load()
    except (OSError, ValueError) as problem:  # ssl.SSLError is an OSError
        if not files:
            raise ExtenderError(f"tlsConfig: {what} cannot be used: {problem}") from problem
        why = "the file is missing, is not readable, or has no matching PEM certificate or key"
        raise ExtenderError(f"tlsConfig: {what} {files} cannot be used: {why}") from None
