"""The real transport, over the Kubernetes client's connection pool.

Of the client it uses only the configuration (in-cluster files, kubeconfig) and the pool, never its typed models. The
pool's retries are off: a retry would resend a PUT whose response was lost, and so cause a false conflict on the
lock.
"""

from __future__ import annotations

import asyncio
import math
import os
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

import urllib3
import yaml
from kubernetes.client.configuration import Configuration
from kubernetes.client.rest import RESTClientObject
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.incluster_config import load_incluster_config
from kubernetes.config.kube_config import KubeConfigMerger, load_kube_config

from careen.cluster.wire.errors import AnswerTooLong, NotSent, Unclear
from careen.cluster.wire.network_errors import description, opened, timed, was_surely_not_sent
from careen.cluster.wire.transport import Request, Response
from scheduler_core.extenders.timed_http import TooLong, whole
from scheduler_core.values import Value

if TYPE_CHECKING:
    from urllib3.connection import HTTPConnection

T = TypeVar("T")

CONNECT_SECONDS = 5.0
# Every thread may be waiting for an answer; a later retry is as good as a longer wait.
THREAD_SECONDS = 10.0
# In-cluster tokens live an hour and the kubelet renews them at 80 % of that; the client reads the file again each
# minute. After a 401 the credentials are read again at once, but not more often than this.
RELOAD_SECONDS = 10.0
# One pool serves the turn's requests and a batch of parallel evictions.
CONNECTIONS = 16
MOST_BYTES = 32 * 2**20
"""Of an answer, after decompression: etcd takes no object above 1.5 MiB, and a page of larger ones is asked for in
parts."""


class CannotReachCluster(Exception):
    """Neither the in-cluster files nor the kubeconfig could be read. A person must correct them."""


class NoSuchContext(CannotReachCluster):
    """The kubeconfig has no such context; without a name, no current one. `names` are those that it has."""

    def __init__(self, kubeconfig: Path, name: str, names: Sequence[str]) -> None:
        super().__init__(
            f"there is no context {name!r} in {kubeconfig}" if name else f"{kubeconfig} has no current context"
        )
        self.name = name
        self.names = tuple(names)


class Credentials(Value, kw_only=True):
    """For other clients in the same process."""

    server: str
    authorization: str | None
    ca_file: str | None
    certificate_file: str | None
    key_file: str | None
    insecure: bool


def user_agent(part: str) -> str:
    """`careen-agent/0.1.0`, which identifies careen's requests in an audit log."""
    try:
        return f"careen-{part}/{version('careen')}"
    except PackageNotFoundError:
        return f"careen-{part}"


def load_configuration(kubeconfig: Path | None, *, context: str | None = None) -> Configuration:
    """From `kubeconfig`, otherwise from the files that Kubernetes mounts into a pod. Raises `CannotReachCluster` with a
    sentence for people."""
    configuration = Configuration()
    configuration.retries = False
    configuration.connection_pool_maxsize = CONNECTIONS
    try:
        if kubeconfig is None:
            load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        else:
            load_kube_config(  # type: ignore[no-untyped-call]
                str(kubeconfig), context=context, client_configuration=configuration, persist_config=False
            )
    except (
        ConfigException,
        yaml.YAMLError,
        OSError,
        AttributeError,
        KeyError,
        TypeError,
        ValueError,
        RecursionError,
    ) as error:
        if kubeconfig is not None:
            _look_for_context(kubeconfig, context)
        problem = _what_is_wrong(kubeconfig, error)
        raise CannotReachCluster(
            f"the kubeconfig {kubeconfig} cannot be read: {problem}; correct the file"
            if kubeconfig
            else f"the service account files of this pod cannot be read: {problem}; run the command inside a pod, or "
            "give --kubeconfig FILE"
        ) from error
    return configuration


def current_context(kubeconfig: Path) -> str:
    """Empty if it cannot be read."""
    try:
        merged = KubeConfigMerger(str(kubeconfig)).config.value  # type: ignore[no-untyped-call]
        return str(merged.get("current-context") or "")
    except (ConfigException, yaml.YAMLError, OSError, AttributeError, KeyError, TypeError, ValueError):
        return ""


def _look_for_context(kubeconfig: Path, wanted: str | None) -> None:
    """Raises `NoSuchContext` if the file is readable and does not contain the context."""
    try:
        merged = KubeConfigMerger(str(kubeconfig)).config.value  # type: ignore[no-untyped-call]
        names = [str(each["name"]) for each in merged.get("contexts") or ()]
        name = str(merged.get("current-context") or "") if wanted is None else wanted
    except Exception:  # the error that led here says what is wrong with the file
        return
    if names and name not in names:
        raise NoSuchContext(kubeconfig, name, names)


def _what_is_wrong(kubeconfig: Path | None, error: Exception) -> str:
    """The library's own errors are misleading: it passes Python's errors through, and calls a missing file invalid."""
    if isinstance(error, (AttributeError, KeyError, TypeError, RecursionError)):
        return "the file is not a valid kubeconfig"
    # KUBECONFIG may name several files, of which some may be missing.
    if kubeconfig is not None and os.pathsep not in str(kubeconfig) and not kubeconfig.exists():
        return "the file does not exist"
    return " ".join(str(error).split())


class Turnstile:
    """A request is never sent after its caller gave up, for example because no thread was free in time. The thread
    passes before it sends, the caller when it gives up, and only the first succeeds. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def pass_once(self) -> bool:
        """True for the first caller only."""
        return self._lock.acquire(blocking=False)


class ClientTransport:
    """Sends requests with urllib3 in its own threads, each with a connect, a read and a total deadline."""

    def __init__(self, load: Callable[[], Configuration], *, agent: str, threads: int = 8) -> None:
        self._load = load
        self._agent = agent
        configuration = load()
        self.server: str = configuration.host
        self._rest = _bounded(configuration)
        self._loaded_at = time.monotonic()
        # Its own threads, so that the process can end while a read hangs.
        self._threads = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="api")

    async def send(self, request: Request) -> Response:
        response = await self._send_once(request)
        if response.status == 401 and self._reload():
            # The server did not process the request, so it is safe to send it again.
            return await self._send_once(request)
        return response

    def open(self, request: Request) -> OpenAnswer:
        """The response, with any status, as soon as the headers have arrived. The caller reads the body and closes it.
        Raises the errors of `send`.

        For watches. It blocks, so each call needs a thread of its own. `timeout_seconds` limits how long the server may
        send nothing.
        """
        answer = self._begin(self._rest, request)
        if answer.status == 401 and self._reload():
            answer.close()
            answer = self._begin(self._rest, request)
        return OpenAnswer(answer, f"{request.method} {request.path}", self.server)

    def credentials(self) -> Credentials:
        """For kopf's own connections; read again each time, because tokens are rotated."""
        configuration = self._load()
        return Credentials(
            server=configuration.host,
            authorization=_authorization(configuration),
            ca_file=configuration.ssl_ca_cert,
            certificate_file=configuration.cert_file,
            key_file=configuration.key_file,
            insecure=not configuration.verify_ssl,
        )

    def close(self) -> None:
        """Does not wait for outstanding responses."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._rest.close()

    async def _send_once(self, request: Request) -> Response:
        """The deadline starts when a thread begins to send. If none becomes free in time, the request is never sent."""
        what = f"{request.method} {request.path}"
        turn, begun = Turnstile(), asyncio.Event()
        loop, rest = asyncio.get_running_loop(), self._rest

        def work() -> Response:
            if not turn.pass_once():
                raise NotSent(f"{what}: the caller gave up before the request was sent")
            loop.call_soon_threadsafe(begun.set)
            return self._exchange(rest, request)

        try:
            call = asyncio.wrap_future(self._threads.submit(work))
        except RuntimeError as error:  # no thread can be started; the work may still be queued
            if turn.pass_once():
                raise NotSent(f"{what}: {error}") from error
            raise Unclear(f"{what}: {error}") from error
        try:
            await _within(THREAD_SECONDS, begun.wait())
        except TimeoutError as error:
            if turn.pass_once():
                call.cancel()
                raise NotSent(
                    f"{what}: no thread was free to send the request within {THREAD_SECONDS:.0f} s"
                ) from error
        except asyncio.CancelledError:
            turn.pass_once()
            call.cancel()
            raise
        try:
            # The thread ends at the same time, unless it could not even connect.
            return await _within(CONNECT_SECONDS + 2 * request.timeout_seconds, call)
        except TimeoutError as error:
            raise Unclear(_incomplete(request)) from error

    def _exchange(self, rest: RESTClientObject, request: Request) -> Response:
        began = time.monotonic()
        with self._begin(rest, request) as answer:
            try:
                body = whole(partial(answer.read1, decode_content=True), MOST_BYTES)
            except TooLong as error:
                raise AnswerTooLong(f"{request.method} {request.path}: {error}") from error
            except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
                raise Unclear(_failed(request, error, rest.configuration.host, began)) from error
        return Response(status=answer.status, headers={k.lower(): v for k, v in answer.headers.items()}, body=body)

    def _begin(self, rest: RESTClientObject, request: Request) -> urllib3.BaseHTTPResponse:
        """The answer's status and headers. Its body has the rest of the deadline."""
        url = rest.configuration.host + request.path + ("?" + urlencode(request.query) if request.query else "")
        began = time.monotonic()
        try:
            return rest.pool_manager.request(
                request.method,
                url,
                body=request.body,
                headers=self._headers(rest.configuration, request),
                timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=request.timeout_seconds),
                retries=False,
                redirect=False,
                preload_content=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            what = _failed(request, error, rest.configuration.host, began)
            raise (NotSent if was_surely_not_sent(error) else Unclear)(what) from error

    def _headers(self, configuration: Configuration, request: Request) -> Mapping[str, str]:
        headers = {"User-Agent": self._agent, "Accept": request.accept, "Accept-Encoding": "gzip"}
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        if authorization := _authorization(configuration):
            headers["Authorization"] = authorization
        return headers

    def _reload(self) -> bool:
        """Reads the credentials again after a 401. Returns False if that was a moment ago or fails."""
        if time.monotonic() - self._loaded_at < RELOAD_SECONDS:
            return False
        self._loaded_at = time.monotonic()
        try:
            self._rest = _bounded(self._load())
        except CannotReachCluster:
            return False
        return True


class OpenAnswer:
    """A response whose body is read while it arrives."""

    def __init__(self, answer: Any, what: str, server: str) -> None:
        self.status = answer.status
        self.headers = {key.lower(): value for key, value in answer.headers.items()}
        answer._original_response.timed.ends = math.inf  # only the headers have a deadline
        self._answer: urllib3.BaseHTTPResponse = answer
        self._what = what
        self._server = server

    def read(self, most: int) -> bytes:
        """The next bytes, none at the end. Raises `Unclear` if the connection breaks or no byte arrives for too
        long."""
        try:
            return self._answer.read1(most, decode_content=True)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise Unclear(f"{self._what}: {description(error, self._server)}") from error

    def give_up(self) -> None:
        """Ends a `read` in another thread."""
        # The answer has already ended, or its connection is already closed.
        with suppress(ValueError, RuntimeError, OSError):
            self._answer.shutdown()

    def close(self) -> None:
        """Even if the response has not ended."""
        self._answer.close()


class ServerAccess:
    """The API server's address and this process's credentials, for other clients in the process. Raises
    `CannotReachCluster`."""

    def __init__(self, kubeconfig: Path | None, *, context: str | None = None) -> None:
        self._kubeconfig = kubeconfig
        self._context = context
        self._take(load_configuration(kubeconfig, context=context))

    def _take(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self.host: str = configuration.host
        self.proxy: str | None = configuration.proxy
        self.tls_server_name: str | None = configuration.tls_server_name
        self.ca_file: str | None = configuration.ssl_ca_cert
        self.certificate_file: str | None = configuration.cert_file
        self.key_file: str | None = configuration.key_file
        self.insecure = not configuration.verify_ssl

    def authorization(self) -> str | None:
        """The header. A mounted token is read again each minute."""
        return _authorization(self._configuration)

    def reload(self) -> None:
        """Keeps the present credentials if they cannot be read."""
        with suppress(CannotReachCluster):
            self._take(load_configuration(self._kubeconfig, context=self._context))


def connect(
    kubeconfig: Path | None, *, part: str, context: str | None = None, connections: int = CONNECTIONS
) -> ClientTransport:
    """A transport to the kubeconfig's cluster, or to this pod's, with up to `connections` open. Raises
    `CannotReachCluster`."""

    def load() -> Configuration:
        configuration = load_configuration(kubeconfig, context=context)
        configuration.connection_pool_maxsize = connections
        return configuration

    return ClientTransport(load, agent=user_agent(part))


def _bounded(configuration: Configuration) -> RESTClientObject:
    """With a deadline for each whole answer: twice the time for which the server may send nothing."""
    rest = RESTClientObject(configuration)
    manager: Any = rest.pool_manager
    manager.pool_classes_by_scheme = {
        scheme: type(kind.__name__, (kind,), {"ConnectionCls": timed(kind.ConnectionCls, _opened, _ends)})
        for scheme, kind in manager.pool_classes_by_scheme.items()
    }
    return rest


def _opened(connection: HTTPConnection) -> socket.socket:
    return opened(connection, time.monotonic() + CONNECT_SECONDS)


def _ends(connection: HTTPConnection) -> float:
    return time.monotonic() + 2 * (connection.timeout or CONNECT_SECONDS)


def _failed(request: Request, error: Exception, server: str, began: float) -> str:
    if not was_surely_not_sent(error) and time.monotonic() - began >= 2 * request.timeout_seconds:
        return _incomplete(request)
    return f"{request.method} {request.path}: {description(error, server)}"


def _incomplete(request: Request) -> str:
    seconds = 2 * request.timeout_seconds
    return f"{request.method} {request.path}: the API server sent no complete answer within {seconds:.0f} s"


async def _within(seconds: float, what: Awaitable[T]) -> T:
    async with asyncio.timeout(seconds):
        return await what


def _authorization(configuration: Configuration) -> str | None:
    value = configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
    return value.strip() if value else None
