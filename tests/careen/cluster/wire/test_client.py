"""Tests the HTTP client for the API server with real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from careen.cluster.wire import client
from careen.cluster.wire.client import CannotReachCluster, ClientTransport, load_configuration
from careen.cluster.wire.errors import AnswerTooLong, NotSent, Unclear
from careen.cluster.wire.transport import MERGE_PATCH, Request
from tests.patience import LONG_SECONDS, growing, until

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nDate: Wed, 04 Mar 2026 12:00:00 GMT\r\n\r\n{}"


class RawServer:
    """A TCP server that passes each connection to a function, and keeps the bytes that it received."""

    def __init__(self, behave: Callable[[socket.socket], None]) -> None:
        self.received: list[bytes] = []
        self._behave = behave
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._connections: list[socket.socket] = []
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):  # cut from either side
            while data := connection.recv(65536):
                self.received.append(data)
                self._behave(connection)

    @property
    def requests(self) -> int:
        """Return the number of requests that arrived. A request that arrived in several pieces counts once."""
        return b"".join(self.received).count(b" HTTP/1.1\r\n")

    def close(self) -> None:
        for each in [self._socket, *self._connections]:
            each.close()


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[socket.socket], None]], RawServer]]:
    servers: list[RawServer] = []

    def start(behave: Callable[[socket.socket], None]) -> RawServer:
        servers.append(RawServer(behave))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def kubeconfig(folder: Path, url: str, user: str = "token: one") -> Path:
    file = folder / "kubeconfig"
    file.write_text(
        f"{{apiVersion: v1, kind: Config, current-context: c, clusters: [{{name: s, cluster: {{server: '{url}'}}}}],"
        f" users: [{{name: u, user: {{{user}}}}}], contexts: [{{name: c, context: {{cluster: s, user: u}}}}]}}"
    )
    return file


@pytest.fixture
def transport_to(tmp_path: Path) -> Iterator[Callable[..., ClientTransport]]:
    made: list[ClientTransport] = []

    def make(url: str, threads: int = 8, **more: str) -> ClientTransport:
        file = kubeconfig(tmp_path, url, **more)
        made.append(ClientTransport(lambda: load_configuration(file), agent="careen-agent", threads=threads))
        return made[-1]

    yield make
    for transport in made:
        transport.close()


def patch(seconds: float = 5.0) -> Request:
    return Request(
        method="PATCH",
        path="/api/v1/nodes/n1",
        query={"dryRun": "All"},
        body=b"{}",
        content_type=MERGE_PATCH,
        timeout_seconds=seconds,
    )


async def test_a_request_is_sent_with_method_path_and_body(serve, transport_to) -> None:  # type: ignore[no-untyped-def]
    server = serve(lambda connection: connection.sendall(OK))
    response = await transport_to(server.url).send(patch())
    assert (response.status, response.body, response.headers["date"]) == (200, b"{}", "Wed, 04 Mar 2026 12:00:00 GMT")
    await until(lambda: b"".join(server.received).endswith(b"{}"))  # the body may arrive in a separate piece
    sent = b"".join(server.received).decode()
    assert sent.startswith("PATCH /api/v1/nodes/n1?dryRun=All HTTP/1.1\r\n")
    assert "Authorization: Bearer one\r\n" in sent
    assert "Content-Type: application/merge-patch+json\r\n" in sent
    assert "User-Agent: careen-agent" in sent
    assert sent.endswith("\r\n\r\n{}")


async def test_a_request_on_a_refused_connection_raises_a_not_sent_error(transport_to) -> None:  # type: ignore[no-untyped-def]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(NotSent, match=r"PATCH /api/v1/nodes/n1: .*refused"):
        await transport_to(f"http://127.0.0.1:{port}").send(patch())


async def test_a_request_whose_connection_closes_raises_an_error_and_is_not_repeated(serve, transport_to) -> None:  # type: ignore[no-untyped-def]
    """By default, the client library would send the PUT again, and the second PUT would conflict with the first."""
    server = serve(lambda connection: connection.shutdown(socket.SHUT_RDWR))
    with pytest.raises(Unclear):
        await transport_to(server.url).send(Request(method="PUT", path="/x", body=b"{}"))
    assert server.requests == 1


async def test_a_request_to_a_silent_server_raises_an_error_after_the_deadline(serve, transport_to) -> None:  # type: ignore[no-untyped-def]
    server = serve(lambda _: None)
    with pytest.raises(Unclear):
        await transport_to(server.url).send(patch(0.2))
    await until(lambda: server.requests)
    assert server.requests == 1


async def test_a_request_raises_an_error_if_its_answer_is_incomplete_at_the_total_deadline(
    serve, transport_to, monkeypatch: pytest.MonkeyPatch
) -> None:  # type: ignore[no-untyped-def]
    """Each byte arrives within the read deadline, but the response never ends."""
    monkeypatch.setattr(client, "CONNECT_SECONDS", 0.1)
    ended = threading.Event()

    def drip(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while not ended.is_set():
            connection.sendall(b"x")
            time.sleep(0.05)

    server = serve(drip)
    said = ""
    for seconds in growing(0.2):
        with pytest.raises(Unclear) as unclear:
            await transport_to(server.url).send(patch(seconds))
        if "no complete answer" in (said := str(unclear.value)):
            break
    ended.set()
    assert "no complete answer" in said


async def test_the_thread_of_an_answer_that_drips_ends_at_the_deadline(serve, transport_to) -> None:  # type: ignore[no-untyped-def]
    """Whatever drips: the status line, a header or the body. Otherwise eight such answers would stop the agent."""
    ended = threading.Event()
    heads = [b"H", b"HTTP/1.1 200 OK\r\nx: ", b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"]

    def drip(connection: socket.socket) -> None:
        connection.sendall(heads[min(server.requests, len(heads)) - 1])
        while not ended.is_set():
            connection.sendall(b"x")
            time.sleep(0.02)

    server = serve(drip)
    transport = transport_to(server.url, threads=1)
    for _ in heads:
        with pytest.raises(Unclear):
            await transport.send(Request(method="GET", path="/x", timeout_seconds=0.2))
    transport.close()
    idle = asyncio.get_running_loop().run_in_executor(None, transport._threads.shutdown)
    await until(idle.done, lambda: "the end of the thread")
    ended.set()


@pytest.mark.parametrize("packed", [False, True])
async def test_an_answer_that_is_longer_than_the_limit_raises_an_error(
    packed: bool, serve, transport_to, monkeypatch: pytest.MonkeyPatch
) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(client, "MOST_BYTES", 2**20)
    bodies = [b" " * 2**20, b" " * (2**20 + 1)]

    def answer(connection: socket.socket) -> None:
        body = bodies[min(server.requests - 1, 1)]
        body, head = (gzip.compress(body), b"Content-Encoding: gzip\r\n") if packed else (body, b"")
        connection.sendall(b"HTTP/1.1 200 OK\r\n%bContent-Length: %d\r\n\r\n" % (head, len(body)) + body)

    server = serve(answer)
    transport = transport_to(server.url)
    assert (await transport.send(Request(method="GET", path="/x"))).body == bodies[0]
    with pytest.raises(AnswerTooLong, match="GET /x: the answer is longer than 1 MiB"):
        await transport.send(Request(method="GET", path="/x"))


async def test_requests_one_after_another_use_one_connection(serve, transport_to) -> None:  # type: ignore[no-untyped-def]
    answers = [
        OK,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nnot",
        b"HTTP/1.1 204 No Content\r\n\r\n",
        OK,
    ]
    server = serve(lambda connection: connection.sendall(answers[server.requests - 1]))
    transport = transport_to(server.url)
    statuses = [(await transport.send(Request(method="GET", path="/x"))).status for _ in answers]
    assert (statuses, len(server._connections)) == ([200, 200, 404, 204, 200], 1)


def test_a_watch_may_last_longer_than_its_headers_may_take(
    serve, transport_to, monkeypatch: pytest.MonkeyPatch
) -> None:  # type: ignore[no-untyped-def]
    goes_on = threading.Event()

    def watch(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        goes_on.wait(LONG_SECONDS)
        connection.sendall(b"{}")

    request = Request(method="GET", path="/x", timeout_seconds=LONG_SECONDS)
    with contextlib.closing(transport_to(serve(watch).url).open(request)) as answer:
        later = SimpleNamespace(monotonic=lambda: time.monotonic() + 10 * LONG_SECONDS)
        monkeypatch.setattr("scheduler_core.extenders.timed_http.time", later)
        goes_on.set()
        assert answer.read(100) == b"{}"


class Gate:
    """A server that answers each request. The response to the first request waits until the test sets `is_open`."""

    def __init__(self) -> None:
        self.is_open = threading.Event()
        self.asked = 0

    def __call__(self, connection: socket.socket) -> None:
        self.asked += 1
        if self.asked == 1:
            self.is_open.wait(LONG_SECONDS)
        connection.sendall(OK)


async def test_a_request_that_finds_no_free_thread_is_never_sent(
    serve, transport_to, monkeypatch: pytest.MonkeyPatch
) -> None:  # type: ignore[no-untyped-def]
    """If the request stayed in the queue of the thread pool, it could change the cluster after the caller has stopped
    waiting for it."""
    monkeypatch.setattr(client, "THREAD_SECONDS", 0.1)
    gate = Gate()
    server = serve(gate)
    transport = transport_to(server.url, threads=1)
    first = asyncio.ensure_future(transport.send(patch()))
    await until(lambda: gate.asked == 1)
    with pytest.raises(NotSent, match="no thread was free"):
        await transport.send(Request(method="POST", path="/late", body=b"{}"))
    gate.is_open.set()
    assert (await first).status == 200
    assert (await transport.send(Request(method="GET", path="/after"))).status == 200, "the queue of requests is empty"
    assert b"/late" not in b"".join(server.received)


async def test_a_request_that_is_cancelled_while_it_waits_for_a_thread_is_never_sent(serve, transport_to) -> None:  # type: ignore[no-untyped-def]
    gate = Gate()
    server = serve(gate)
    transport = transport_to(server.url, threads=1)
    first = asyncio.ensure_future(transport.send(patch()))
    await until(lambda: gate.asked == 1)
    cut = asyncio.ensure_future(transport.send(Request(method="POST", path="/late", body=b"{}")))
    await asyncio.sleep(0.05)
    cut.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cut
    gate.is_open.set()
    await first
    await transport.send(Request(method="GET", path="/after"))
    assert b"/late" not in b"".join(server.received)


async def test_the_time_limit_of_a_request_starts_when_a_thread_sends_the_request(
    serve, transport_to, monkeypatch: pytest.MonkeyPatch
) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(client, "CONNECT_SECONDS", 0.1)
    gate = Gate()
    transport = transport_to(serve(gate).url, threads=1)
    first = asyncio.ensure_future(transport.send(patch(10)))
    await until(lambda: gate.asked == 1)
    second = asyncio.ensure_future(transport.send(patch(1)))
    await asyncio.sleep(2.5)  # longer than the time limit of `second`: CONNECT_SECONDS + 2 · 1 s
    assert not second.done()
    gate.is_open.set()
    assert (await second).status == 200
    assert (await first).status == 200


async def test_a_request_raises_a_not_sent_error_if_no_thread_can_start(
    serve, transport_to, monkeypatch: pytest.MonkeyPatch
) -> None:  # type: ignore[no-untyped-def]
    server = serve(lambda connection: connection.sendall(OK))
    transport = transport_to(server.url)
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name.startswith("api"):
            raise RuntimeError("can't start new thread")
        start(thread)

    with monkeypatch.context() as without:
        without.setattr(threading.Thread, "start", refuse)
        with pytest.raises(NotSent, match="can't start new thread"):
            await transport.send(Request(method="POST", path="/late", body=b"{}"))
    assert (await transport.send(Request(method="GET", path="/after"))).status == 200
    assert b"/late" not in b"".join(server.received), "the pool drops the request that it had queued"


async def test_an_incomplete_answer_raises_an_error(serve, transport_to) -> None:  # type: ignore[no-untyped-def]
    def half(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
        connection.shutdown(socket.SHUT_RDWR)

    with pytest.raises(Unclear):
        await transport_to(serve(half).url).send(patch())


async def test_the_client_follows_no_redirect(serve, transport_to) -> None:  # type: ignore[no-untyped-def]
    moved = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/login\r\nContent-Length: 0\r\n\r\n"
    server = serve(lambda connection: connection.sendall(moved))
    assert (await transport_to(server.url).send(Request(method="GET", path="/x"))).status == 302
    assert server.requests == 1


async def test_after_a_401_the_request_is_sent_again_with_a_new_token(
    serve, transport_to, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(client, "RELOAD_SECONDS", 0.0)
    token = tmp_path / "token"
    token.write_text("old")

    def behave(connection: socket.socket) -> None:
        known = b"Bearer new" in server.received[-1]
        connection.sendall(OK if known else b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")

    server = serve(behave)
    transport = transport_to(server.url, user=f"tokenFile: {token}")
    assert (await transport.send(Request(method="GET", path="/x"))).status == 401
    token.write_text("new")
    assert (await transport.send(Request(method="GET", path="/x"))).status == 200
    assert transport.credentials().authorization == "Bearer new"


async def test_credentials_that_were_read_recently_are_not_read_again_after_a_401(serve, transport_to) -> None:  # type: ignore[no-untyped-def]
    server = serve(lambda connection: connection.sendall(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"))
    transport = transport_to(server.url)
    for _ in range(3):
        assert (await transport.send(Request(method="GET", path="/x"))).status == 401
    assert server.requests == 3


def test_the_client_in_a_pod_reads_the_token_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kubernetes.config import incluster_config

    (tmp_path / "token").write_text("pod-token\n")
    (tmp_path / "ca.crt").write_text("certificate")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    configuration = load_configuration(None)
    assert configuration.host == "https://[fd00::1]:443"
    assert client._authorization(configuration) == "bearer pod-token"
    assert configuration.retries is False


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "the file does not exist"),
        ("{}", "kubeconfig"),
        ("[", "kubeconfig"),
        ("- a", "the file is not a valid kubeconfig"),
        ("root:x:0:0", "the file is not a valid kubeconfig"),
        ("{current-context: x, contexts: [], clusters: [], users: []}", "kubeconfig"),
    ],
)
def test_the_error_about_an_unusable_kubeconfig_shows_its_path_and_the_remedy(
    tmp_path: Path, content: str | None, words: str
) -> None:
    file = tmp_path / "kubeconfig"
    if content is not None:
        file.write_text(content)
    with pytest.raises(CannotReachCluster, match=words) as caught:
        load_configuration(file)
    assert str(file) in str(caught.value)
    assert "correct the file" in str(caught.value)


def test_the_error_about_a_missing_kubeconfig_outside_a_pod_shows_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(CannotReachCluster, match="--kubeconfig FILE"):
        load_configuration(None)
