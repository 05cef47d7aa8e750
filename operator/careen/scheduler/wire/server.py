"""The API server's address, and how this process proves who it is."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from careen.cluster.wire.client import RELOAD_SECONDS, ServerAccess

CONNECT_SECONDS: Final = 5.0
_HEADERS_SECONDS: Final = 30.0  # a mounted token is renewed once an hour, long before it ends


class Server:
    """Where the API server is, and how this process proves who it is. Reads the files of a rotated token again."""

    def __init__(self, access: ServerAccess, *, agent: str, monotonic: Callable[[], float]) -> None:
        """Raises ValueError, with a sentence, for a connection that this client cannot make."""
        if access.proxy:
            raise ValueError("the scheduler does not connect through a proxy; remove proxy-url from the kubeconfig")
        parts = urlsplit(access.host)
        self._access = access
        self._agent = agent
        self._monotonic = monotonic
        self._headers, self._headers_at = b"", 0.0
        self._reloaded_at = monotonic()
        self.is_encrypted = parts.scheme != "http"
        self.host = parts.hostname or "localhost"
        self.port = parts.port or (443 if self.is_encrypted else 80)
        self.prefix = parts.path.rstrip("/")
        self.authority = parts.netloc.rpartition("@")[2]
        self.tls = _tls(access) if self.is_encrypted else None

    def refused(self) -> None:
        """After a 401: the credentials may have been rotated. Reads them again, but not more often than every
        `RELOAD_SECONDS`. New connections use them."""
        if self._monotonic() - self._reloaded_at < RELOAD_SECONDS:
            return
        self._reloaded_at = self._monotonic()
        self._access.reload()
        self.tls = _tls(self._access) if self.is_encrypted else None
        self._headers = b""

    def head(self, method: str, path: str, more: bytes = b"") -> bytes:
        """The request up to the empty line, which is included."""
        if not self._headers or self._monotonic() - self._headers_at > _HEADERS_SECONDS:
            self._headers, self._headers_at = self._common(), self._monotonic()
        return b"".join((f"{method} {self.prefix}{path} HTTP/1.1\r\n".encode(), self._headers, more, b"\r\n"))

    def _common(self) -> bytes:
        token = self._access.authorization()
        lines = [f"Host: {self.authority}", f"User-Agent: {self._agent}", "Accept: application/json"]
        if token:
            lines.append(f"Authorization: {token}")
        return "".join(f"{line}\r\n" for line in lines).encode()

    async def open(self, protocol: asyncio.Protocol) -> None:
        """Connects. Raises OSError or TimeoutError."""
        name = self._access.tls_server_name if self.is_encrypted else None
        async with asyncio.timeout(CONNECT_SECONDS):
            await asyncio.get_running_loop().create_connection(
                lambda: protocol, self.host, self.port, ssl=self.tls, server_hostname=name or None
            )


def _tls(access: ServerAccess) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=access.ca_file)
    if access.insecure:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if access.certificate_file:
        context.load_cert_chain(access.certificate_file, access.key_file)
    return context
