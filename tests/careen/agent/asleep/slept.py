"""The sleeper as a process between two stubs of the agent, and an API server that answers as a test says."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from careen.agent.asleep import sleeper
from careen.agent.asleep.handover import PREFIXES
from tests.patience import ended, wait_until

OPERATOR = Path(sleeper.__file__).parents[3]
STUB = Path(__file__).with_name("stub_agent.py")
METADATA = {"uid": "u1", "labels": {"zone": "a"}, "annotations": {"careen.dev/phase": "Idle"}, "resourceVersion": "7"}
CONFIG = {"uid": "c1", "resourceVersion": "3"}
NODES = "/api/v1/nodes?fieldSelector=metadata.name%3Dn1"
OWN = "/api/v1/nodes/n1"
KINDS = {"configmaps": "config", "watch=1": "watch", "fieldSelector": "list"}  # by a word of the path
CONFIGS = "/api/v1/namespaces/careen/configmaps/careen"

# Runs the sleeper with other pauses.
WITH_PAUSES = """
import sys
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("sleeper", {file!r})
sleeper = module_from_spec(spec)
sys.modules["sleeper"] = sleeper
spec.loader.exec_module(sleeper)
vars(sleeper).update({pauses!r})
sleeper.main(sys.argv[1:])
"""


@dataclass
class Api:
    """Answers a watch with open silence, the Node and the ConfigMap as they were handed over. `answers` replaces the
    next answers: a status, or for a watch a list of events after which the connection stays open."""

    port: int = 0
    node: dict[str, Any] = field(default_factory=lambda: dict(METADATA))
    config: dict[str, Any] = field(default_factory=lambda: dict(CONFIG))
    watches: list[int | list[dict[str, Any]]] = field(default_factory=list)
    gets: list[int] = field(default_factory=list)
    configs: list[int] = field(default_factory=list)
    always: int = 0
    seen: list[tuple[str, str]] = field(default_factory=list)  # kind, Authorization
    moments: list[float] = field(default_factory=list)
    ends: threading.Event = field(default_factory=threading.Event)

    def count(self, kind: str) -> int:
        return sum(1 for each, _ in list(self.seen) if each == kind)

    def kinds(self) -> list[str]:
        return [kind for kind, _ in list(self.seen)]


@contextmanager
def serving(tls: ssl.SSLContext | None = None, api: Api | None = None) -> Iterator[Api]:
    held = api if api is not None else Api()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            kind = next((kind for word, kind in KINDS.items() if word in self.path), "node")
            held.moments.append(time.monotonic())
            held.seen.append((kind, self.headers.get("Authorization", "")))
            queue: list[Any] = {"config": held.configs, "watch": held.watches}.get(kind, held.gets)
            answer = queue.pop(0) if queue else held.always
            if isinstance(answer, int) and answer:
                self.say(answer, {"kind": "Status", "code": answer})
            elif kind == "watch":
                self.stream(answer or [])
            else:
                items = [{"metadata": held.node}] if held.node else []
                bodies = {
                    "list": {"metadata": {"resourceVersion": "20"}, "items": items},
                    "node": {"metadata": held.node},
                    "config": {"metadata": held.config},
                }
                self.say(200, bodies[kind])

        def say(self, status: int, body: dict[str, Any]) -> None:
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def stream(self, events: list[dict[str, Any]]) -> None:
            self.send_response(200)
            self.end_headers()
            for event in events:
                self.wfile.write(json.dumps(event).encode() + b"\n")
            self.wfile.flush()
            held.ends.wait()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """A sleeper that woke has closed its watch."""

    server = Server(("127.0.0.1", held.port), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    held.port = server.server_port
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield held
    finally:
        held.ends.set()
        server.shutdown()
        server.server_close()


class Slept:
    """One process that falls asleep and is woken."""

    def __init__(self, folder: Path, api: Api, **more: Any) -> None:
        self.folder = folder
        self.sentinel = folder / "reboot-required"
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.lock = os.open(folder / "careen.lock", os.O_RDWR | os.O_CREAT)
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.content: dict[str, Any] = {
            "name": "n1",
            "wake_at": sleeper.boot_seconds() + 3600,
            "files": {str(self.sentinel): sleeper.file_signature(str(self.sentinel))},
            "file_seconds": 15.0,
            "moment": None,
            "node": {
                "path": NODES,
                "own_path": OWN,
                "version": "7",
                "prefixes": PREFIXES,
                "signature": sleeper.object_signature(METADATA, PREFIXES),
                "may_watch": True,
            },
            "config": {"path": CONFIGS, "signature": [CONFIG["uid"], CONFIG["resourceVersion"]]},
            "server": {
                "host": "127.0.0.1",
                "port": api.port,
                "tls": False,
                "agent": "test",
                "authorization": "Bearer t",
            },
            "not_ready": "",
            "stop_line": "n1: the sleeping agent stops on request",
            "metrics": "",
            "helps": {},
            "requests": {},
            "listener": self.listener.fileno(),
            "lock": self.lock,
        }
        for name, value in more.items():
            self.content[name] = {**(self.content.get(name) or {}), **value} if isinstance(value, dict) else value
        self.process: subprocess.Popen[str]

    def begin(self, *, python: str = sys.executable, **pauses: float) -> Slept:
        """Starts it. `pauses` are constants of the sleeper, in seconds."""
        if pauses:
            named = {(name if hasattr(sleeper, name) else f"_{name}"): value for name, value in pauses.items()}
            assert all(hasattr(sleeper, name) for name in named), named
            (self.folder / "sleeper.py").write_text(WITH_PAUSES.format(file=sleeper.__file__, pauses=named))
        (self.folder / "handover.json").write_text(json.dumps(self.content))
        with (self.folder / "log").open("w") as log:
            self.process = subprocess.Popen(
                [python, "-I", "-S", str(STUB), str(OPERATOR), str(self.folder)],
                pass_fds=(self.listener.fileno(), self.lock),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                text=True,
            )
        os.close(self.lock)  # only the process holds it now
        return self

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def is_asleep(self) -> bool:
        command = Path(f"/proc/{self.process.pid}/cmdline").read_text().split("\0")
        return "/sleeper" in "".join(command[3:4])  # empty in the middle of an exec

    def falls_asleep(self) -> Slept:
        """Until the sleeper answers."""
        wait_until(self.is_asleep, lambda: self.log)
        assert "asleep" in self.get("/healthz")
        return self

    def get(self, path: str) -> str:
        port = self.listener.getsockname()[1]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as response:
            return str(response.read().decode())

    def woken(self) -> dict[str, Any]:
        """What the woken stub got."""
        file = self.folder / "woken.json"
        wait_until(lambda: file.exists() or self.process.poll() is not None, lambda: self.log)
        assert file.exists(), f"exit code {self.process.poll()}: {self.log}"
        found: dict[str, Any] = json.loads(file.read_text())
        return found

    def why(self) -> str:
        return str(self.woken()["handover"]["woken_by"])

    def stays_asleep_until(self, condition: Callable[[], bool]) -> None:
        wait_until(lambda: condition() or (self.folder / "woken.json").exists(), lambda: self.log)
        assert not (self.folder / "woken.json").exists(), self.why()

    def ends(self) -> int:
        return ended(self.process, lambda: self.log)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.ends()

    def close(self) -> None:
        self.listener.close()
        if hasattr(self, "process"):
            self.process.kill()
            self.process.wait()
        else:
            with suppress(OSError):
                os.close(self.lock)
