"""The agent serves metrics, health and readiness over HTTP."""

from __future__ import annotations

import errno
import platform
import socket
import struct
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from careen.agent.telemetry import http_server
from careen.agent.telemetry.http_server import Heartbeat, HttpServer
from tests.careen.virtual_shell import VirtualClock
from tests.patience import LONG_SECONDS, wait_until


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def heartbeat(clock: VirtualClock) -> Heartbeat:
    return Heartbeat(clock.monotonic)


@pytest.fixture
def server(heartbeat: Heartbeat) -> Iterator[HttpServer]:
    made = HttpServer("127.0.0.1", 0, heartbeat=heartbeat, exposition=lambda: b"metric 1\n")
    yield made
    made.close()


def get(server: HttpServer, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}") as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_the_server_serves_metrics(server: HttpServer) -> None:
    assert get(server, "/metrics") == (200, "metric 1\n")
    assert get(server, "/")[0] == 404


def test_the_health_probe_fails_when_the_loop_makes_no_progress(
    server: HttpServer, heartbeat: Heartbeat, clock: VirtualClock
) -> None:
    heartbeat.expect_within(30, "a turn")
    clock.seconds = 30
    assert get(server, "/healthz") == (200, "a turn\n")
    clock.seconds = 45
    assert get(server, "/healthz") == (503, "a turn: the agent's next heartbeat is 15s overdue\n")
    heartbeat.expect_within(5, "waiting")
    assert get(server, "/healthz") == (200, "waiting\n")


def test_the_readiness_probe_fails_without_a_complete_loop_round_in_the_last_minute(
    server: HttpServer, heartbeat: Heartbeat, clock: VirtualClock
) -> None:
    assert get(server, "/readyz")[0] == 503
    heartbeat.ready()
    assert get(server, "/readyz")[0] == 200
    clock.seconds = 61
    assert get(server, "/readyz")[0] == 503


def test_a_metrics_port_in_use_raises_an_error(server: HttpServer, heartbeat: Heartbeat) -> None:
    with pytest.raises(OSError, match="in use"):
        HttpServer("127.0.0.1", server.port, heartbeat=heartbeat, exposition=lambda: b"")


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
FROM_V4, FROM_V6 = "127.0.0.1", pytest.param("[::1]", marks=needs_ipv6)


def listen(heartbeat: Heartbeat, host: str) -> HttpServer:
    return HttpServer(host, 0, heartbeat=heartbeat, exposition=lambda: b"metric 1\n")


def is_served(server: HttpServer, address: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{address}:{server.port}/metrics", timeout=LONG_SECONDS) as response:
            return bool(response.status == 200)
    except urllib.error.URLError:
        return False


@pytest.mark.parametrize("address", [FROM_V4, FROM_V6])
def test_the_server_answers_ipv4_and_ipv6_probes_by_default(heartbeat: Heartbeat, address: str) -> None:
    """The kubelet of an IPv6-only cluster can only probe over IPv6."""
    server = listen(heartbeat, "")
    try:
        assert is_served(server, address)
    finally:
        server.close()


@pytest.mark.parametrize(
    ("host", "by", "not_by"),
    [
        ("127.0.0.1", "127.0.0.1", "[::1]"),
        ("0.0.0.0", "127.0.0.1", "[::1]"),
        ("localhost", "127.0.0.1", "127.0.0.2"),
        pytest.param("::1", "[::1]", "127.0.0.1", marks=needs_ipv6),
        pytest.param("[::1]", "[::1]", "127.0.0.1", marks=needs_ipv6),
        pytest.param("[::]", "127.0.0.1", "127.0.0.1.invalid", marks=needs_ipv6),
    ],
)
def test_the_server_listens_on_the_given_address(heartbeat: Heartbeat, host: str, by: str, not_by: str) -> None:
    server = listen(heartbeat, host)
    try:
        assert is_served(server, by)
        assert not is_served(server, not_by)
    finally:
        server.close()


@pytest.mark.parametrize("number", [errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL])
def test_the_server_uses_ipv4_on_a_host_without_ipv6(
    heartbeat: Heartbeat, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    bind = http_server.BoundedServer.server_bind

    def refuse(server: http_server.BoundedServer) -> None:
        if server.address_family is socket.AF_INET6:
            raise OSError(number, "no IPv6 here")
        bind(server)

    monkeypatch.setattr(http_server.BoundedServer, "server_bind", refuse)
    server = listen(heartbeat, "")
    try:
        assert is_served(server, "127.0.0.1")
    finally:
        server.close()


def test_a_metrics_port_in_use_on_only_ipv4_or_only_ipv6_raises_an_error(heartbeat: Heartbeat) -> None:
    """Another program that uses the same port over IPv4 or IPv6 would get half of the kubelet's probes."""
    server = listen(heartbeat, "")
    try:
        with pytest.raises(OSError, match="in use"):
            HttpServer("", server.port, heartbeat=heartbeat, exposition=lambda: b"")
    finally:
        server.close()


@pytest.mark.parametrize("host", ["no-such-host.invalid", "[::1", "x" * 300])
def test_an_invalid_listen_host_is_refused_with_a_message(heartbeat: Heartbeat, host: str) -> None:
    with pytest.raises(OSError, match="neither an address nor a name that resolves"):
        listen(heartbeat, host)


def test_starting_the_server_makes_no_reverse_dns_lookup(heartbeat: Heartbeat, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's own HTTP server makes a reverse lookup when it starts, and hangs if the DNS does not answer."""
    monkeypatch.setattr(socket, "getfqdn", lambda *_: pytest.fail("asked"))
    listen(heartbeat, "").close()


def test_a_silent_client_does_not_delay_other_clients(server: HttpServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port)):
        assert get(server, "/metrics")[0] == 200


def test_an_agent_with_an_invalid_config_map_is_healthy_but_not_ready(server: HttpServer, heartbeat: Heartbeat) -> None:
    heartbeat.ready()
    heartbeat.hold_readiness("the ConfigMap is bad")
    assert (get(server, "/healthz")[0], get(server, "/readyz")[0]) == (200, 503)
    assert heartbeat.readiness() == (False, "the ConfigMap is bad")
    heartbeat.hold_readiness("")
    assert get(server, "/readyz")[0] == 200


# ---- untrusted clients of the port ----


@pytest.mark.parametrize("path", ["/metrics", "/healthz", "/nothing", "/%00"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_no_response_header_contains_a_version(server: HttpServer, method: str, path: str) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as stranger:
        stranger.sendall(f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        said = b"".join(iter(lambda: stranger.recv(4096), b"")).decode()
    assert "Server: careen\r\n" in said
    assert "python" not in said.lower()
    assert platform.python_version() not in said


def test_no_metric_contains_the_python_version() -> None:
    from careen.agent.telemetry.metrics import Metrics

    text = Metrics("n1").exposition().decode()
    assert "process_resident_memory_bytes" in text
    assert "python_info" not in text
    assert platform.python_version() not in text


def test_idle_connections_block_no_probe_and_use_few_threads(
    server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The server's limit on open connections must end the idle connections, and not the handler's timeout.
    monkeypatch.setattr(http_server._Handler, "timeout", LONG_SECONDS)
    before = threading.active_count()
    idle = []
    try:
        for _ in range(100):
            idle.append(socket.create_connection(("127.0.0.1", server.port)))
            idle[-1].sendall(b"GET /metrics HTTP/1.1\r\n")  # and never the rest of it
        wait_until(lambda: threading.active_count() <= before + 16, lambda: f"{threading.active_count()} threads")
        for _ in range(40):
            assert get(server, "/healthz")[0] == 200
        assert threading.active_count() <= before + 17
        assert sum(was_ended(each) for each in idle) >= 100 - 16
    finally:
        for each in idle:
            each.close()
    wait_until(lambda: threading.active_count() <= before, lambda: f"{threading.active_count()} threads")


def was_ended(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def test_a_client_that_disconnects_during_a_response_is_not_logged(
    heartbeat: Heartbeat, capfd: pytest.CaptureFixture[str]
) -> None:
    made = HttpServer("127.0.0.1", 0, heartbeat=heartbeat, exposition=lambda: b"x" * 50_000_000)
    try:
        with socket.create_connection(("127.0.0.1", made.port)) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, not an end
            client.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            client.recv(10)
        wait_until(lambda: not made._server._open)
    finally:
        made.close()
    assert "Traceback" not in capfd.readouterr().err


def test_an_exception_in_a_handler_is_logged(heartbeat: Heartbeat, capfd: pytest.CaptureFixture[str]) -> None:
    def broken() -> bytes:
        raise ZeroDivisionError

    made = HttpServer("127.0.0.1", 0, heartbeat=heartbeat, exposition=broken)
    try:
        with pytest.raises(OSError):  # noqa: PT011 - however urllib names a connection that ends
            get(made, "/metrics")
        wait_until(lambda: not made._server._open)
    finally:
        made.close()
    assert "ZeroDivisionError" in capfd.readouterr().err
