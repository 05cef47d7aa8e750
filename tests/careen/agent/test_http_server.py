"""Metrics, health and readiness over HTTP."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from careen.agent.http_server import Heartbeat, HttpServer
from tests.careen.virtual_shell import VirtualClock


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
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}", timeout=10) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_metrics_are_served(server: HttpServer) -> None:
    assert get(server, "/metrics") == (200, "metric 1\n")
    assert get(server, "/")[0] == 404


def test_health_ends_when_the_loop_does_not_give_its_sign_in_time(server: HttpServer, heartbeat: Heartbeat, clock: VirtualClock) -> None:
    heartbeat.expect_within(30, "a turn")
    clock.seconds = 30
    assert get(server, "/healthz") == (200, "a turn\n")
    clock.seconds = 45
    assert get(server, "/healthz") == (503, "a turn: 15 s overdue\n")
    heartbeat.expect_within(5, "waiting")
    assert get(server, "/healthz") == (200, "waiting\n")


def test_ready_means_a_whole_turn_was_made_and_they_go_on(server: HttpServer, heartbeat: Heartbeat, clock: VirtualClock) -> None:
    assert get(server, "/readyz")[0] == 503
    heartbeat.ready()
    assert get(server, "/readyz")[0] == 200
    clock.seconds = 61
    assert get(server, "/readyz")[0] == 503


def test_a_taken_port_is_an_error_for_the_caller(server: HttpServer, heartbeat: Heartbeat) -> None:
    with pytest.raises(OSError, match="in use"):
        HttpServer("127.0.0.1", server.port, heartbeat=heartbeat, exposition=lambda: b"")


def test_a_client_that_says_nothing_does_not_keep_others_waiting(server: HttpServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port)):
        assert get(server, "/metrics")[0] == 200
