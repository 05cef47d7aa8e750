"""Serves a long-running command's metrics and probes."""

from __future__ import annotations

from collections.abc import Callable

from careen.agent.telemetry.http_server import Heartbeat, HttpServer
from careen.cli.support.files import why
from careen.cli.support.screen import BadInput, say


def serve_metrics(
    host: str, port: int | None, *, heartbeat: Heartbeat, exposition: Callable[[], bytes]
) -> HttpServer | None:
    """None without a port. Exit code 2 if the server cannot listen there."""
    if port is None:
        return None
    try:
        server = HttpServer(host, port, heartbeat=heartbeat, exposition=exposition)
    except OSError as error:
        raise BadInput(f"--metrics-port {port} cannot be used: {why(error)}") from error
    say(f"careen serves /metrics, /healthz and /readyz on port {server.port}", err=True)
    return server
