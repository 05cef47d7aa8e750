"""Tests the messages about network errors, with exceptions that the tests construct. `tests/careen/cli/test_errors.py`
causes the same exceptions with real sockets."""

from __future__ import annotations

import errno
import socket
import ssl
from pathlib import Path

import pytest
from urllib3 import exceptions

from careen.cluster.wire.network_errors import description, was_surely_not_sent

URL = "https://10.0.0.1:6443"


def caused(error: Exception, by: BaseException) -> Exception:
    error.__cause__ = by
    return error


def new_connection(by: BaseException) -> Exception:
    return caused(exceptions.NewConnectionError(None, "x"), by)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "words", "is_not_sent"),
    [
        (new_connection(OSError(errno.ECONNREFUSED, "x")), f"{URL} refused the connection", True),
        (
            new_connection(OSError(errno.EHOSTUNREACH, "x")),
            f"{URL} cannot be reached: there is no route to the host",
            True,
        ),
        (new_connection(OSError(errno.EACCES, "x")), f"{URL} cannot be reached: permission denied", True),
        (
            new_connection(socket.gaierror(-2, "x")),
            f"{URL} cannot be found: no name server of this host resolves its name",
            True,
        ),
        (exceptions.ConnectTimeoutError(), f"{URL} did not accept the connection in time", True),
        (exceptions.LocationParseError("x"), f"{URL} is not the address of a server", True),
        (exceptions.ReadTimeoutError(None, "", "x"), f"{URL} did not answer in time", False),  # type: ignore[arg-type]
        (
            exceptions.ProtocolError("aborted", ConnectionResetError(errno.ECONNRESET, "x")),
            f"{URL} closed the connection before it answered",
            False,
        ),
        (
            exceptions.ProtocolError("broken", exceptions.IncompleteRead(3, 97)),
            f"{URL} sent an incomplete answer",
            False,
        ),
        (
            exceptions.ProtocolError("aborted", IsADirectoryError(errno.EISDIR, "x")),
            f"{URL} was not queried: a certificate or its key cannot be read: is a directory",
            False,
        ),
        (
            exceptions.SSLError(PermissionError(errno.EACCES, "x")),
            f"{URL} was not queried: a certificate or its key cannot be read: permission denied",
            False,
        ),
        (ssl.SSLWantReadError(ssl.SSL_ERROR_WANT_READ, "x"), f"{URL} ended the TLS handshake: no reason given", False),
        (
            exceptions.SSLError(ssl.SSLError(1, "[SSL] x (_ssl.c:1)")),
            f"{URL} ended the TLS handshake: no reason given",
            False,
        ),
        (exceptions.HTTPError("<urllib3 at 0x7f>"), f"{URL} gave no usable answer", False),
        (OSError("x"), f"{URL} gave no usable answer", False),
    ],
)
def test_each_network_error_has_a_cause_and_says_whether_the_request_was_sent(
    error: Exception, words: str, is_not_sent: bool
) -> None:
    assert description(error, URL) == words
    assert was_surely_not_sent(error) is is_not_sent


def test_the_message_says_that_the_proxy_failed() -> None:
    error = exceptions.ProxyError("x", OSError(errno.ECONNREFUSED, "x"))
    assert description(error, URL) == f"the proxy on the way to {URL} refused the connection"
    assert was_surely_not_sent(error)


def test_the_message_shows_the_status_of_a_proxy_that_refuses_the_tunnel() -> None:
    error = exceptions.MaxRetryError(
        None,  # type: ignore[arg-type]
        URL,
        exceptions.ProxyError("x", OSError("Tunnel connection failed: 403 Forbidden")),
    )
    assert description(error, URL) == f"the proxy on the way to {URL} refused to connect: 403 Forbidden"


def test_the_message_says_that_a_file_contains_no_trusted_certificate(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate\n")
    with pytest.raises(ssl.SSLError) as raised:
        ssl.create_default_context().load_verify_locations(tmp_path / "ca.pem")
    assert (
        description(exceptions.SSLError(raised.value), URL)
        == f"{URL} was not queried: the file of trusted certificates contains no certificate"
    )


def test_a_damaged_trusted_certificate_is_not_reported_as_a_client_certificate(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n")
    with pytest.raises(ssl.SSLError) as raised:
        ssl.create_default_context().load_verify_locations(tmp_path / "ca.pem")
    assert (
        description(exceptions.SSLError(raised.value), URL)
        == f"{URL} was not queried: the file of trusted certificates cannot be used"
    )


def test_the_message_says_that_a_file_contains_no_client_certificate(tmp_path: Path) -> None:
    (tmp_path / "client.pem").write_text("no certificate\n")
    with pytest.raises(ssl.SSLError) as raised:
        ssl.create_default_context().load_cert_chain(tmp_path / "client.pem")
    assert (
        description(exceptions.SSLError(raised.value), URL)
        == f"{URL} was not queried: the file of the client certificate or of its key cannot be used"
    )


@pytest.mark.parametrize(("server", "shown"), [("https://me:secret@h", "https://h"), ("", "the empty address")])
def test_a_network_error_does_not_show_a_login_in_the_url(server: str, shown: str) -> None:
    assert description(exceptions.ConnectTimeoutError(), server).startswith(shown)


def test_an_exception_that_is_its_own_cause_can_be_described() -> None:
    one, other = OSError("a"), OSError("b")
    one.__cause__, other.__cause__ = other, one
    assert description(one, URL) == f"{URL} gave no usable answer"
