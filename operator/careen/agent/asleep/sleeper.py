"""Stands in for an agent that has nothing to do: the agent replaces itself by this program, which looks whether
anything has changed, and replaces itself by the agent if so. Both are the same process to the kubelet.

It imports a few modules of the standard library and nothing of careen: such an interpreter needs 6 MiB, the agent 35.
It decides nothing and writes nothing. Whatever it does not understand wakes the agent.

`SleepersLooks` says when to wake. It meets time, chance, files and the API server only through `Outside`, so a
simulation runs it too: each look is a coroutine, which here never suspends, because `Outside` blocks.

The main thread answers probes and scrapes. One thread looks at files, one follows the Node, one reads the ConfigMap;
each ends with the first reason to wake. All threads but the main one block signals, because `exec` ends them, and a
SIGTERM with them.
"""

# ruff: noqa: PTH116, PTH120, PTH123, PTH208, SIM105, TRY004, TRY301 - pathlib and contextlib would cost memory; an
# answer of the wrong type is an answer that cannot be used

from __future__ import annotations

import _thread
import io
import json
import os
import random
import select
import signal
import socket
import ssl
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
    from typing import Any, NoReturn

VERSION = 1
VARIABLE = "CAREEN_HANDOVER"
"""The environment variable of the agent that the sleeper wakes: the handover's descriptor, then those that are
passed on (the listener, the file lock), so that they can be closed if the handover cannot be read."""

FILE_SECONDS = 2.0  # as often as an agent that is awake looks at its sentinel file
SEALS = 0x1 | 0x2 | 0x4 | 0x8  # F_SEAL_SEAL, _SHRINK, _GROW, _WRITE of linux/fcntl.h
_ADD_SEALS, _GET_SEALS = 1033, 1034
_MOST_BYTES = 4 * 1024 * 1024  # of a handover, an answer or an event; a Node's metadata is a few KiB
_WATCH_SECONDS = 3600
_SILENCE_SECONDS = 150.0  # between two events: a watch gets a bookmark about once a minute
_REQUEST_SECONDS = 10.0  # for the whole answer
_RARE_SECONDS = 300.0  # between two reads of the ConfigMap, and of the Node without the right to watch it
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 1.0, 60.0
_LATE_SECONDS = 60.0  # after which an agent that should have woken, or a file system that hangs, is unhealthy
_FINISH_SECONDS = 1.0  # for open answers, before the process becomes the agent
_CONNECTION_SECONDS, _MOST_CONNECTIONS, _MOST_REQUEST = 10.0, 16, 8192
_METADATA = "application/json;as={};g=meta.k8s.io;v=v1"
_ONE, _LIST = "PartialObjectMetadata", "PartialObjectMetadataList"
_STOPS = (signal.SIGTERM, signal.SIGINT)


class Wake(Exception):
    """A reason to wake the agent."""


def boot_seconds() -> float:
    """Seconds since the host's boot, with the time in suspend."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def file_signature(path: str) -> str:
    """A text that changes whenever a look at the file may give another answer. Raises OSError if it cannot be told."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        try:
            return f"absent:{os.stat(os.path.dirname(path)).st_mode >> 12}"
        except FileNotFoundError:
            return "absent:no folder"
    return f"{found.st_mode}:{found.st_ino}:{found.st_size}:{found.st_mtime_ns}"


def object_signature(metadata: dict[str, Any], prefixes: list[str]) -> str:
    """What an agent may react to in an object's metadata: identity, deletion, labels, and the annotations whose keys
    begin with one of `prefixes`."""
    annotations = metadata.get("annotations") or {}
    return json.dumps(
        [
            metadata.get("uid"),
            metadata.get("deletionTimestamp"),
            metadata.get("labels") or {},
            {key: value for key, value in annotations.items() if key.startswith(tuple(prefixes))},
        ],
        sort_keys=True,
    )


def moment_seconds(handover: dict[str, Any], wall: float) -> float:
    """How long to wait until this node's moment in the minute of the clock; 0 in a small fleet."""
    moment = handover.get("moment")
    if moment is None:
        return 0.0
    since = (wall - float(moment["at"])) % float(moment["every"])
    return 0.0 if since < float(moment["lasts"]) else float(moment["every"]) - since


def passed_on(text: str) -> list[int]:
    """The descriptors in the text of VARIABLE; the first is the handover. Those that are not numbers are left out."""
    return [int(each) for each in text.split(",") if each.isdecimal()]


def drop(descriptors: list[int]) -> None:
    """Closes them. An agent that leaked the file lock would wait for itself for ever."""
    for descriptor in descriptors:
        try:
            os.close(descriptor)
        except OSError:
            pass


def encoded(handover: dict[str, Any]) -> bytes:
    """With its version."""
    return json.dumps({**handover, "version": VERSION}).encode()


def decoded(text: bytes) -> dict[str, Any]:
    """Raises ValueError if it is not a handover of this version."""
    found = json.loads(text)
    if not isinstance(found, dict) or found.get("version") != VERSION:
        raise ValueError("the handover has another version")
    return found


def write_handover(handover: dict[str, Any]) -> int:
    """A sealed memfd that a program started by `exec` inherits."""
    import fcntl

    descriptor = os.memfd_create("careen-handover", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    left = encoded(handover)
    while left:
        left = left[os.write(descriptor, left) :]
    fcntl.fcntl(descriptor, _ADD_SEALS, SEALS)
    os.set_inheritable(descriptor, True)
    return descriptor


def read_handover(descriptor: int) -> dict[str, Any]:
    """Reads and closes it. Raises ValueError or OSError if it is not a sealed handover of this version."""
    import fcntl

    try:
        if fcntl.fcntl(descriptor, _GET_SEALS) != SEALS:
            raise ValueError("the handover is not sealed")
        return decoded(os.pread(descriptor, _MOST_BYTES, 0))
    finally:
        os.close(descriptor)


class TimedBytes(io.RawIOBase):
    """The bytes of an answer until `ends`, by `time.monotonic`. The time limit of a socket holds for each read, so a
    server that sends a byte now and then would never exceed it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.ends = time.monotonic() + _REQUEST_SECONDS

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self.ends - time.monotonic()
        if left <= 0:
            raise TimeoutError("the answer takes too long")
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


class Api:
    """Reads from one API server, each request on its own connection."""

    def __init__(self, server: dict[str, Any], counts: dict[str, float]) -> None:
        self._server = server
        self._counts = counts

    async def get(self, path: str, accept: str) -> tuple[int, dict[str, Any]]:
        """The status, and the body if it is JSON."""
        status, body, _ = self._ask(path, accept)
        text = b""
        for piece in body:
            text += piece
            if len(text) > _MOST_BYTES:
                raise ValueError("the answer is too long")
        found = json.loads(text) if status == 200 else {}
        if not isinstance(found, dict):
            raise ValueError("the answer is not an object")
        return status, found

    async def watch(self, path: str, accept: str) -> tuple[int, AsyncIterator[dict[str, Any]]]:
        """The status, and the events until the server ends the watch, or sends none for too long."""
        status, body, answer = self._ask(path, accept)
        answer.ends = time.monotonic() + _SILENCE_SECONDS
        return status, _lines(body, answer)

    def _ask(self, path: str, accept: str) -> tuple[int, Iterator[bytes], TimedBytes]:
        server = self._server
        try:
            connection = socket.create_connection((server["host"], server["port"]), timeout=_REQUEST_SECONDS)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if server["tls"]:
                name = server.get("name") or server["host"]
                connection = self._tls().wrap_socket(connection, server_hostname=name)
            lines = [f"GET {server.get('prefix', '')}{path} HTTP/1.1", f"Host: {server['host']}:{server['port']}"]
            lines += [f"Accept: {accept}", "Connection: close", f"User-Agent: {server['agent']}"]
            if authorization := self._authorization():
                lines.append(f"Authorization: {authorization}")
            connection.sendall("\r\n".join([*lines, "", ""]).encode())
            answer = TimedBytes(connection)
            reader = io.BufferedReader(answer)
            version, _, rest = reader.readline(_MOST_REQUEST).partition(b" ")
            status = int(rest[:3])
            if not version.startswith(b"HTTP/1."):
                raise ValueError("not an answer of HTTP/1")
            headers = _headers(reader)
        except BaseException:
            self._count("lost")
            raise
        self._count(str(status))
        return status, _body(reader, headers), answer

    def _tls(self) -> ssl.SSLContext:
        server = self._server  # its files may change, and a request is rare
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if server.get("insecure"):
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        elif server.get("ca"):
            context.load_verify_locations(server["ca"])
        else:
            context.set_default_verify_paths()
        if server.get("certificate"):
            context.load_cert_chain(server["certificate"], server.get("key"))
        return context

    def _authorization(self) -> str:
        """The kubelet renews the file's token."""
        if path := self._server.get("token_file"):
            with open(path, encoding="utf-8") as file:
                return f"Bearer {file.read().strip()}"
        return str(self._server.get("authorization") or "")

    def _count(self, status: str) -> None:
        self._counts[f"GET {status}"] = self._counts.get(f"GET {status}", 0.0) + 1


def _headers(reader: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for _ in range(100):
        line = reader.readline(_MOST_REQUEST)
        if not line.strip():
            return found
        name, _, value = line.decode("latin-1").partition(":")
        found[name.strip().lower()] = value.strip().lower()
    raise ValueError("the answer has too many headers")


def _body(reader: Any, headers: dict[str, str]) -> Iterator[bytes]:
    if headers.get("transfer-encoding") == "chunked":
        while size := int(reader.readline(_MOST_REQUEST).split(b";")[0], 16):
            if size > _MOST_BYTES:
                raise ValueError("the answer has too long a chunk")
            yield _exactly(reader, size)
            reader.readline(_MOST_REQUEST)
    elif "content-length" in headers:
        yield _exactly(reader, min(int(headers["content-length"]), _MOST_BYTES))
    else:
        while piece := reader.read1(65536):
            yield piece


def _exactly(reader: Any, size: int) -> bytes:
    if size < 0:
        raise ValueError("the answer has a negative length")
    found: bytes = reader.read(size)
    if len(found) < size:
        raise ConnectionError("the answer ended early")
    return found


async def _lines(body: Iterator[bytes], answer: TimedBytes) -> AsyncIterator[dict[str, Any]]:
    text = b""
    for piece in body:
        *whole, text = (text + piece).split(b"\n")
        for line in whole:
            event = json.loads(line)
            if not isinstance(event, dict):
                raise ValueError("the event is not an object")
            answer.ends = time.monotonic() + _SILENCE_SECONDS
            yield event
        if len(text) > _MOST_BYTES:
            raise ValueError("the event is too long")


class _Refusals:
    """Counts answers 401 and 403 in a row: a token may just have been renewed, so the first may be an error."""

    def __init__(self) -> None:
        self._denied = 0

    def judge(self, status: int) -> None:
        """Returns only after a 200. Raises `Wake`, or OSError to try again."""
        self._denied = self._denied + 1 if status in (401, 403) else 0
        if self._denied >= 2:
            raise Wake(f"the API server refuses the agent ({status})")
        if status == 404:
            raise Wake("the Node does not exist")
        if status != 200:
            raise ConnectionError(f"the API server answered {status}")


class Outside:
    """Time, chance and files, and the API server in `api`."""

    def __init__(self, handover: dict[str, Any]) -> None:
        self.api = Api(handover["server"], handover["requests"])

    def now(self) -> float:
        """Seconds since the host's boot."""
        return boot_seconds()

    def wall(self) -> float:
        """Seconds of the wall clock."""
        return time.time()

    def chance(self) -> float:
        """In [0, 1)."""
        return random.random()  # noqa: S311 - spreads requests

    async def pause(self, seconds: float) -> None:
        """Blocks the thread of one look."""
        time.sleep(seconds)

    async def signature(self, path: str) -> str:
        """Raises OSError if it cannot be told. Hangs as long as the file system does."""
        return file_signature(path)


class WatchedNode:
    """The own Node, followed by a watch. `look` ends with the first reason to wake."""

    def __init__(self, handover: dict[str, Any], outside: Outside) -> None:
        self._node = handover["node"]
        self._version = str(self._node["version"])  # where the next watch begins
        self._outside, self._api = outside, outside.api
        self._refusals = _Refusals()
        self._may_watch = bool(self._node.get("may_watch", True))
        self._must_read = False
        self._pause = _FIRST_PAUSE_SECONDS
        self._rarely = _RARE_SECONDS * outside.chance()
        self.seen = _number(self._node["version"])
        """The highest resourceVersion of the Node; 0: none was a number."""

    async def look(self) -> NoReturn:
        """Raises `Wake`. Each watch is followed by a pause, which grows unless the watch lasted: however it ends, the
        requests stay few. Unless its time was over, the Node is read first: perhaps the store was restored from a
        backup, and a watch from a later version would be silent."""
        while True:
            began = self._outside.now()
            try:
                if not self._may_watch:
                    await self._outside.pause(self._rarely)
                    self._rarely = _RARE_SECONDS
                    await self._get_node()
                elif self._must_read:
                    await self._list_node()
                else:
                    await self._follow()
                    self._must_read = self._outside.now() - began < _WATCH_SECONDS
            except (OSError, ValueError):  # ssl.SSLError is an OSError; an answer that is no JSON a ValueError
                self._must_read = True
            if self._outside.now() - began > _LONGEST_PAUSE_SECONDS:
                self._pause = _FIRST_PAUSE_SECONDS
            await self._outside.pause(self._pause * (0.5 + 0.5 * self._outside.chance()))
            self._pause = min(2 * self._pause, _LONGEST_PAUSE_SECONDS)

    async def _follow(self) -> None:
        """Follows the Node until the watch ends. Each event proves that the server answers."""
        query = f"watch=1&allowWatchBookmarks=true&timeoutSeconds={_WATCH_SECONDS}&resourceVersion={self._version}"
        status, events = await self._api.watch(f"{self._node['path']}&{query}", _METADATA.format(_ONE))
        if status == 403:
            self._may_watch = False
        if status in (403, 410):
            return
        self._refusals.judge(status)
        async for event in events:
            found = event.get("object") or {}
            match event.get("type"):
                case "BOOKMARK":
                    self._go_on_from(found["metadata"])
                case "ADDED" | "MODIFIED":
                    self._compare(found["metadata"])
                    self._go_on_from(found["metadata"])
                case "ERROR":
                    raise ConnectionError("the server ended the watch with an error")
                case kind:
                    raise Wake(f"the Node was {str(kind).lower()}")

    async def _list_node(self) -> None:
        """As a list of one: the next watch begins from its version."""
        status, found = await self._api.get(self._node["path"], _METADATA.format(_LIST))
        self._refusals.judge(status)
        if not found["items"]:
            raise Wake("the Node does not exist")
        self._compare(found["items"][0]["metadata"])
        self._go_on_from(found["metadata"])
        self._must_read = False

    async def _get_node(self) -> None:
        status, found = await self._api.get(self._node["own_path"], _METADATA.format(_ONE))
        self._refusals.judge(status)
        self._compare(found["metadata"])

    def _compare(self, metadata: dict[str, Any]) -> None:
        if object_signature(metadata, self._node["prefixes"]) != self._node["signature"]:
            raise Wake("the Node has changed")
        if 0 < (version := _number(metadata["resourceVersion"])) < self.seen:
            raise Wake(f"the Node has resourceVersion {version} after {self.seen}")
        self.seen = max(self.seen, version)

    def _go_on_from(self, metadata: dict[str, Any]) -> None:
        """The version of a list or a bookmark: that of the Node may be older than the server's history."""
        self._version = str(metadata["resourceVersion"])


def _number(version: object) -> int:
    text = str(version)
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 40 else 0


class WatchedConfig:
    """The ConfigMap, read once in five minutes."""

    def __init__(self, config: dict[str, Any], outside: Outside) -> None:
        self._config = config
        self._outside, self._api = outside, outside.api
        self._refusals = _Refusals()

    async def look(self) -> NoReturn:
        """Raises `Wake`. A server that cannot be reached is no reason: the woken agent could not read it either."""
        pause = _RARE_SECONDS * self._outside.chance()  # spreads the requests of a fleet
        while True:
            await self._outside.pause(pause)
            pause = _RARE_SECONDS
            try:
                status, found = await self._api.get(self._config["path"], _METADATA.format(_ONE))
                if status == 404:
                    found = {}
                else:
                    self._refusals.judge(status)
            except (OSError, ValueError):
                continue
            metadata = found.get("metadata") or {}
            if [metadata.get("uid", ""), metadata.get("resourceVersion", "")] != self._config["signature"]:
                raise Wake("the ConfigMap has changed")


class Files:
    """The files that say whether the host needs a reboot. `look` ends with the first reason to wake."""

    def __init__(self, handover: dict[str, Any], outside: Outside) -> None:
        self._signatures: dict[str, str] = handover["files"]
        self._handover, self._outside = handover, outside
        self.began = outside.now()  # of the last look; a file system may hang
        self.has_ended = True
        self.seen_at: float | None = None

    async def look(self) -> NoReturn:
        """Raises `Wake`. The first look comes at once: a file may have appeared during the exec."""
        while True:
            self.began, self.has_ended = self._outside.now(), False
            for path, signature in self._signatures.items():
                try:
                    found = await self._outside.signature(path)
                except OSError as error:
                    raise Wake(f"{path} cannot be checked: {error.strerror}") from error
                if found != signature:
                    self.seen_at, self.has_ended = self._outside.now(), True
                    await self._outside.pause(moment_seconds(self._handover, self._outside.wall()))
                    raise Wake(f"{path} has changed")
            self.has_ended = True
            await self._outside.pause(FILE_SECONDS)


class SleepersLooks:
    """All that a sleeping agent looks at."""

    def __init__(self, handover: dict[str, Any], outside: Outside) -> None:
        self._handover, self._outside = handover, outside
        self._files = Files(handover, outside)
        self._node = WatchedNode(handover, outside)
        self._all: list[Files | WatchedNode | WatchedConfig] = [self._files, self._node]
        if config := handover.get("config"):
            self._all.append(WatchedConfig(config, outside))

    def all(self) -> list[Coroutine[Any, None, str]]:
        """Each gives its reason to wake. They run at the same time."""
        return [self._why(each.look) for each in self._all]

    async def _why(self, look: Callable[[], Coroutine[Any, None, NoReturn]]) -> str:
        try:
            await look()
        except Wake as reason:
            return str(reason)
        except Exception as error:
            return f"the sleeping agent met an error: {error!r}"

    @property
    def left_seconds(self) -> float:
        """Until the agent wakes although nothing has changed; then not more than 0."""
        return float(self._handover["wake_at"]) - self._outside.now()

    @property
    def is_need_unknown(self) -> bool:
        """Whether a look at the files has not ended in time."""
        return self._hangs_for() > float(self._handover["file_seconds"])

    @property
    def late(self) -> str:
        """Why the agent is not healthy; "" if it is."""
        if self.left_seconds < -_LATE_SECONDS:
            return "asleep for too long"
        if self._hangs_for() > float(self._handover["file_seconds"]) + _LATE_SECONDS:
            return "a look at the files of the need does not end"
        return ""

    def _hangs_for(self) -> float:
        return 0.0 if self._files.has_ended else self._outside.now() - self._files.began

    def handed_back(self, why: str) -> dict[str, Any]:
        """What the woken agent gets."""
        node = {**self._handover["node"], "seen": self._node.seen}
        return {**self._handover, "node": node, "woken_by": why, "need_seen_at": self._files.seen_at}


class Probes:
    """Answers /healthz, /readyz and /metrics on a listening socket that outlives the exec."""

    def __init__(self, listener: socket.socket, answer: Any) -> None:
        """`answer` returns status and body for a path."""
        self._listener, self._answer = listener, answer
        self._open: dict[int, tuple[socket.socket, bytearray, float]] = {}
        listener.setblocking(False)

    def register(self, poll: select.poll) -> None:
        """Only once: connections come and go by themselves."""
        self._poll = poll
        poll.register(self._listener, select.POLLIN)

    def handle(self, descriptor: int) -> None:
        """Serves what is ready on this descriptor. Raises OSError if no connection can be accepted."""
        if descriptor == self._listener.fileno():
            self._accept()
        elif descriptor in self._open:
            try:
                self._read(descriptor)
            except OSError:  # of one client
                self._close(descriptor)

    def tidy(self) -> None:
        """Closes connections that have sent no request in time."""
        for descriptor, (_, _, until) in list(self._open.items()):
            if until < time.monotonic():
                self._close(descriptor)

    def finish(self, seconds: float) -> None:
        """Accepts no more, so that the kernel queues connections, and answers those that are open."""
        self._poll.unregister(self._listener)
        end = time.monotonic() + seconds
        while self._open and (left := end - time.monotonic()) > 0:
            for descriptor, _ in self._poll.poll(1000 * left):
                self.handle(descriptor)
        for descriptor in list(self._open):
            self._close(descriptor)

    def _accept(self) -> None:
        try:
            client, _ = self._listener.accept()
        except (BlockingIOError, ConnectionError):  # a client that has given up
            return
        client.settimeout(1.0)
        if len(self._open) >= _MOST_CONNECTIONS:
            self._close(next(iter(self._open)))
        self._open[client.fileno()] = client, bytearray(), time.monotonic() + _CONNECTION_SECONDS
        self._poll.register(client, select.POLLIN)

    def _read(self, descriptor: int) -> None:
        client, text, _ = self._open[descriptor]
        piece = client.recv(4096)
        text += piece
        if b"\r\n\r\n" in text:
            path = text.partition(b" ")[2].split(b" ", 1)[0].partition(b"?")[0].decode("latin-1")
            status, body = self._answer(path)
            reason = {200: "OK", 404: "Not Found", 503: "Service Unavailable"}[status]
            kind = "text/plain; version=0.0.4; charset=utf-8" if path == "/metrics" else "text/plain; charset=utf-8"
            head = f"HTTP/1.1 {status} {reason}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
            client.sendall(f"{head}Connection: close\r\n\r\n".encode() + body)
            self._close(descriptor)
        elif not piece or len(text) > _MOST_REQUEST:
            self._close(descriptor)

    def _close(self, descriptor: int) -> None:
        if descriptor not in self._open:
            return
        client = self._open.pop(descriptor)[0]
        self._poll.unregister(descriptor)
        client.close()


class Sleeper:
    """The process, from its start to the exec of the agent."""

    def __init__(self, handover: dict[str, Any]) -> None:
        self._handover = handover
        self._looks = SleepersLooks(handover, Outside(handover))
        self._woken_by = ""
        self._wake_read, self._wake_write = os.pipe()

    def sleep(self) -> str:
        """Looks until there is a reason to wake. Ends the process after SIGTERM."""
        os.set_blocking(self._wake_write, False)
        signal.set_wakeup_fd(self._wake_write)  # a signal just before `poll` begins ends it too
        for number in _STOPS:
            signal.signal(number, self._stop)
        _thread.stack_size(256 * 1024)
        for look in self._looks.all():
            _thread.start_new_thread(self._run, (look,))  # with signals still blocked
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)
        try:
            why = self._serve()
        except Exception as error:
            why = f"the sleeping agent met an error: {error!r}"
        signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
        return why

    def _run(self, look: Any) -> None:
        why = "the sleeping agent met an error: a look was suspended"
        try:
            look.send(None)  # to its end, because `Outside` blocks
        except StopIteration as end:
            why = str(end.value)
        self._woken_by = self._woken_by or why
        os.write(self._wake_write, b"w")

    def _serve(self) -> str:
        poll = select.poll()
        poll.register(self._wake_read, select.POLLIN)
        probes = None
        if (listener := self._handover.get("listener")) is not None:
            self._listener = socket.socket(fileno=listener)  # kept: the woken agent needs it open
            probes = Probes(self._listener, self._answer)
            probes.register(poll)
        while not self._woken_by and (left := self._looks.left_seconds) > 0:
            for descriptor, _ in poll.poll(1000 * min(left + 0.001, 5.0)):
                if probes is not None:
                    probes.handle(descriptor)
            if probes is not None:
                probes.tidy()
        if probes is not None:
            poll.unregister(self._wake_read)
            probes.finish(_FINISH_SECONDS)
        return self._woken_by or "a look is due"

    def _stop(self, *_: object) -> NoReturn:
        print(self._handover["stop_line"], file=sys.stderr, flush=True)
        os._exit(0)

    def _answer(self, path: str) -> tuple[int, bytes]:
        looks = self._looks
        return answer(self._handover, path, late=looks.late, is_asleep=True, is_unknown=looks.is_need_unknown)

    def wake(self, why: str, command: list[str]) -> NoReturn:
        """Becomes the agent. If that fails, the process ends, and the kubelet starts another."""
        kept = [self._handover[name] for name in ("listener", "lock") if self._handover.get(name) is not None]
        try:
            text = ",".join(map(str, [write_handover(self._looks.handed_back(why)), *kept]))
        except OSError:  # no memory or no descriptor: an ordinary start
            text = ""
            drop(kept)
        if text:
            os.environ[VARIABLE] = text
        if signal.sigpending() & set(_STOPS):
            self._stop()
        os.execve(command[0], command, os.environ)  # noqa: S606 - the command line of this very process


def answer(
    handover: dict[str, Any], path: str, *, late: str, is_asleep: bool, is_unknown: bool = False
) -> tuple[int, bytes]:
    """Status and body for a path, while no agent is loaded. `late`: why the process is not healthy."""
    if path == "/metrics":
        return 200, exposition(handover, is_asleep=is_asleep, is_unknown=is_unknown).encode()
    if path in ("/healthz", "/readyz"):
        held = handover["not_ready"] if path == "/readyz" else ""
        said = late or held or ("asleep until a look is due or something changes" if is_asleep else "waking")
        return 503 if late or held else 200, f"{said}\n".encode()
    return 404, b"/metrics, /healthz, /readyz\n"


def exposition(handover: dict[str, Any], *, is_asleep: bool, is_unknown: bool) -> str:
    """The agent's last metrics, with those of this process and the requests since."""
    node, used = handover["name"], os.times()
    with open("/proc/self/statm", encoding="ascii") as file:
        virtual, resident = (int(pages) * os.sysconf("SC_PAGE_SIZE") for pages in file.read().split()[:2])
    families: list[tuple[str, str, list[tuple[str, float]]]] = [
        ("process_cpu_seconds_total", "counter", [("", used.user + used.system)]),
        ("process_resident_memory_bytes", "gauge", [("", resident)]),
        ("process_virtual_memory_bytes", "gauge", [("", virtual)]),
        ("process_open_fds", "gauge", [("", len(os.listdir("/proc/self/fd")))]),
        ("careen_need_unknown", "gauge", [(f'{{node="{node}"}}', float(is_unknown))]),
        ("careen_asleep", "gauge", [(f'{{node="{node}"}}', float(is_asleep))]),
        (
            "careen_api_requests_total",
            "counter",
            [
                (f'{{method="{key.split()[0]}",node="{node}",status="{key.split()[1]}"}}', count)
                for key, count in sorted(handover["requests"].items())
            ],
        ),
    ]
    lines = [handover["metrics"].rstrip("\n")]
    for name, kind, samples in families:
        lines += [f"# HELP {name} {handover['helps'].get(name, name)}", f"# TYPE {name} {kind}"]
        lines += [f"{name}{labels} {value}" for labels, value in samples]
    return "\n".join([*lines, ""])


def main(arguments: list[str]) -> NoReturn:
    """`FD,FD,… -- COMMAND…`. A handover that cannot be read leads to an ordinary start."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
    command, descriptors = arguments[arguments.index("--") + 1 :], passed_on(arguments[0])
    try:
        sleeper = Sleeper(read_handover(descriptors[0]))
        why = sleeper.sleep()
    except Exception as error:
        print(f"the sleeping agent failed and starts again: {error!r}", file=sys.stderr, flush=True)
        drop(descriptors[1:])
        os.execve(command[0], command, os.environ)  # noqa: S606
    sleeper.wake(why, command)


if __name__ == "__main__":
    main(sys.argv[1:])
