"""An agent with every feature at once, and the servers that it queries.

Prometheus has no alert and no sample, so a health query without a value refuses the reboot and the agent keeps waiting.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HEALTH_QUERIES = """
- {name: ceph, query: ceph_health_status, holds: "== 0", fresh: 2m}
- {name: disks, query: disk_free, holds: "> 0.1", labels: ['instance=~"$NODE:.*"']}
"""
BLOCKING_PODS = """
- {name: backup, pods: app=backup, namespaces: [shop], scope: cluster, longest: 2h}
- {name: ingest, pods: role=ingest, scope: group, group: example.com/pool}
"""
WINDOWS = """
- {name: always, start: "00:00", end: "23:59:59", exclude: [2020-12-24..2021-01-02]}
- {name: first-sunday, cron: "0 2 * * SUN#1", duration: 4h}
"""


def everything(folder: Path, server: str) -> tuple[str, ...]:
    """The agent's flags. `server` is the URL of Prometheus, Alertmanager and the webhook."""
    (folder / "var/run/needs-a-reboot").touch()
    return (
        "--reboot-sentinel=/var/run/reboot-required",
        "--reboot-sentinel=/var/run/needs-a-reboot",
        "--reboot-probes=sentinel,kernel,uptime",
        "--reboot-max-uptime=720h",
        "--concurrency=3",
        "--budget=zone=1",
        "--minimum-interval=1h",
        "--cluster-minimum-interval=1m",
        "--load-balancer-settle=10s",
        "--annotate-nodes=true",
        "--pre-reboot-node-labels=state=rebooting",
        "--post-reboot-node-labels=state=rebooted",
        f"--windows={WINDOWS}",
        f"--blocking-pods={BLOCKING_PODS}",
        "--blocking-pod-selector=reboot=never",
        f"--prometheus-url={server}",
        f"--health-queries={HEALTH_QUERIES}",
        f"--alertmanager-url={server}",
        "--alertmanager-silence=1h",
        f"--notify-url=json://{server.removeprefix('http://')}/hook",
        "--cluster-name=bench",
    )


class _NoAlerts(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        is_prometheus = self.path.startswith("/api/v1/")
        nothing = {"status": "success", "data": {"resultType": "vector", "result": []}} if is_prometheus else []
        self._answer(json.dumps(nothing).encode())

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.do_GET()

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def a_quiet_prometheus() -> Iterator[str]:
    """A server without alerts, samples and silences; yields its URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _NoAlerts)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
