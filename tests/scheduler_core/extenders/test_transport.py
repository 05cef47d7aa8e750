"""Tests one POST request to a real server: address, deadline, TLS."""

import ssl
from dataclasses import replace
from typing import Any

import pytest

from scheduler_core.config.configuration import ExtenderSettings, ExtenderTls
from scheduler_core.extenders.protocol import ExtenderError
from scheduler_core.extenders.transport import HttpTransport
from tests.scheduler_core.extenders.extender_server import ExtenderServer


def echo(body: Any) -> Any:
    return {"echo": body}


def transport(url: str, **settings: Any) -> HttpTransport:
    return HttpTransport(ExtenderSettings(url_prefix=url, **settings))


def test_a_request_is_posted_as_json_to_the_url_prefix_and_verb() -> None:
    with ExtenderServer({"filter": echo}).running() as server:
        assert transport(server.url + "//").post("filter", b'{"a": 1}') == b'{"echo": {"a": 1}}'
    assert server.requests == [("/scheduler/filter", "application/json", {"a": 1})]


@pytest.mark.parametrize("status", [201, 204, 302, 404, 500])
def test_a_response_without_status_200_is_an_error(status: int) -> None:
    with ExtenderServer({"filter": status}).running() as server, pytest.raises(ExtenderError) as problem:
        transport(server.url).post("filter", b"{}")
    assert str(problem.value) == f"failed filter with extender at URL {server.url}/filter, code {status}"


def test_an_unreachable_extender_is_an_error() -> None:
    with ExtenderServer({}).running() as server:
        url = server.url
    with pytest.raises(ExtenderError, match=f"POST {url}/filter: .*refused"):
        transport(url).post("filter", b"{}")


def test_a_response_after_the_deadline_is_an_error() -> None:
    with (
        ExtenderServer({"filter": echo}, delay_seconds=3).running() as server,
        pytest.raises(ExtenderError, match=r"no answer within 0\.1 s"),
    ):
        transport(server.url, timeout_seconds=0.1).post("filter", b"{}")


def test_a_response_body_that_is_not_complete_at_the_deadline_is_an_error() -> None:
    # The server sends one byte every 0.3 s, so no single read takes 0.7 s. Only a deadline for the whole response ends
    # the request early: all 55 bytes together take about 17 s.
    with (
        ExtenderServer({"filter": echo}, trickle_seconds=0.3).running() as server,
        pytest.raises(ExtenderError, match=r"no answer within 0\.7 s"),
    ):
        transport(server.url, timeout_seconds=0.7).post("filter", b'{"a": "a long long long long long long word"}')


@pytest.mark.parametrize("url", ["extender:80/x", "ftp://extender/x", "/scheduler", "http://"])
def test_a_non_http_url_is_refused_when_the_transport_is_created(url: str) -> None:
    with pytest.raises(ExtenderError, match="urlPrefix must be an http or https address"):
        transport(url)


# ---- TLS ----


def server_side(certificates: Any, *, asks_for_client: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.server, certificates.server_key)
    if asks_for_client:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(certificates.authority)
    return context


def test_a_server_certificate_is_checked_against_the_given_ca_and_name(certificates: Any) -> None:
    tls = ExtenderTls(authority_file=str(certificates.authority), server_name="extender.test")
    with ExtenderServer({"filter": echo}).running(server_side(certificates)) as server:
        assert transport(server.url, enable_https=True, tls=tls).post("filter", b"1") == b'{"echo": 1}'


def test_the_ca_may_be_given_inline(certificates: Any) -> None:
    tls = ExtenderTls(
        authority_pem=certificates.authority.read_bytes(), authority_file="/nowhere", server_name="extender.test"
    )
    with ExtenderServer({"filter": echo}).running(server_side(certificates)) as server:
        assert transport(server.url, enable_https=True, tls=tls).post("filter", b"1") == b'{"echo": 1}'


@pytest.mark.parametrize(
    ("tls", "why"),
    [
        pytest.param(
            lambda c: ExtenderTls(authority_file=str(c.authority)),
            "certificate is not valid for '127.0.0.1'|IP address mismatch",
            id="the certificate names another server",
        ),
        pytest.param(
            lambda c: ExtenderTls(authority_file=str(c.stranger), server_name="extender.test"),
            "certificate verify failed",
            id="the certificate is signed by an untrusted authority",
        ),
    ],
)
def test_an_untrusted_server_certificate_is_an_error(certificates: Any, tls: Any, why: str) -> None:
    with (
        ExtenderServer({"filter": echo}).running(server_side(certificates)) as server,
        pytest.raises(ExtenderError, match=why),
    ):
        transport(server.url, enable_https=True, tls=tls(certificates)).post("filter", b"1")
    assert server.requests == []


@pytest.mark.parametrize(
    ("settings", "is_verified"),
    [
        pytest.param({"enable_https": True}, False, id="with enableHTTPS alone, the server is not verified"),
        pytest.param(
            {"enable_https": True, "tls": ExtenderTls(insecure=True)},
            False,
            id="with insecure, the server is not verified",
        ),
        pytest.param(
            {"enable_https": False},
            True,
            id="with an https address alone, the server is verified against the system's root certificates",
        ),
    ],
)
def test_the_server_is_not_verified_if_enablehttps_is_set_without_a_ca(
    certificates: Any, settings: dict[str, Any], is_verified: bool
) -> None:
    """kube-scheduler behaves in the same way."""
    with ExtenderServer({"filter": echo}).running(server_side(certificates)) as server:
        asked = transport(server.url, **settings)
        if is_verified:
            with pytest.raises(ExtenderError, match="certificate verify failed"):
                asked.post("filter", b"1")
        else:
            assert asked.post("filter", b"1") == b'{"echo": 1}'


@pytest.mark.parametrize("as_text", [False, True])
def test_a_client_certificate_is_sent_if_the_server_requests_it(certificates: Any, as_text: bool) -> None:
    base = ExtenderTls(authority_file=str(certificates.authority), server_name="extender.test")
    if as_text:
        tls = replace(
            base, certificate_pem=certificates.client.read_bytes(), key_pem=certificates.client_key.read_bytes()
        )
    else:
        tls = replace(base, certificate_file=str(certificates.client), key_file=str(certificates.client_key))
    with ExtenderServer({"filter": echo}).running(server_side(certificates, asks_for_client=True)) as server:
        assert transport(server.url, enable_https=True, tls=tls).post("filter", b"1") == b'{"echo": 1}'
        with pytest.raises(ExtenderError):
            transport(server.url, enable_https=True, tls=base).post("filter", b"1")


def test_a_tls_configuration_with_ca_and_insecure_is_refused(certificates: Any) -> None:
    with pytest.raises(ExtenderError, match="a root certificate cannot be combined with insecure"):
        transport(
            "https://extender",
            enable_https=True,
            tls=ExtenderTls(insecure=True, authority_file=str(certificates.authority)),
        )


def test_the_error_contains_the_name_of_an_unreadable_certificate() -> None:
    with pytest.raises(ExtenderError, match=r"tlsConfig: caFile /nowhere/ca\.pem cannot be used"):
        transport("https://extender", enable_https=True, tls=ExtenderTls(authority_file="/nowhere/ca.pem"))
