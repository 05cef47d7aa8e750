"""Tests requests to servers other than the API server. The result is the content of the response, or the reason why
there is none."""

from __future__ import annotations

import errno
import itertools
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest

from careen.core.facts.observation import Unknown
from careen.services.alertmanager import Alertmanager
from careen.services.prometheus import AlertSource, Prometheus
from careen.services.silences import Silences
from careen.services.wire import bounded
from careen.services.wire.asking import (
    Access,
    CannotAsk,
    CredentialsRejected,
    UnusableAnswer,
    answer_of,
    read_json,
    secret_in,
    without_login,
)
from tests.patience import LONG_SECONDS

URL = "http://me:secret@127.0.0.1:9"
SHOWN = "Ours at http://127.0.0.1:9"


def raising(error: Exception) -> object:
    raise error


async def test_the_answer_is_unknown_if_the_client_library_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """For example because no file can be opened any more."""
    monkeypatch.delattr("careen.services.wire.bounded")
    monkeypatch.setitem(sys.modules, "careen.services.wire.bounded", None)
    assert isinstance(await answer_of("Ours", URL, 60.0, lambda _: [1]), Unknown)


async def test_the_answer_of_the_server_is_returned() -> None:
    assert await answer_of("Ours", URL, 60.0, lambda _: [1]) == [1]


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (CannotAsk("no token"), f"{SHOWN} was not queried: no token"),
        (
            CredentialsRejected("status 401: a token"),
            f"{SHOWN} refuses the credentials of careen (status 401: a token)",
        ),
        (UnusableAnswer("status 503"), f"{SHOWN} gave no usable answer: status 503"),
        (KeyError("data"), f"{SHOWN} gave no usable answer: the answer does not have the expected structure"),
        (ValueError(f"GET {URL}/x"), f"{SHOWN} gave no usable answer: the answer does not have the expected structure"),
        (RecursionError("deep"), f"{SHOWN} gave no usable answer: the answer does not have the expected structure"),
        (ConnectionRefusedError(errno.ECONNREFUSED, f"{URL}"), f"{SHOWN} refused the connection"),
    ],
)
async def test_an_exception_in_a_request_makes_the_answer_unknown_and_shows_no_login(
    error: Exception, why: str
) -> None:
    assert await answer_of("Ours", URL, 60.0, lambda _: raising(error)) == Unknown(why)


@pytest.mark.parametrize("source", [Alertmanager, Prometheus])
async def test_the_message_about_a_refused_connection_shows_no_client_internals(
    source: Callable[..., AlertSource], unused_tcp_port: int
) -> None:
    url = f"http://127.0.0.1:{unused_tcp_port}"
    answer = await source(url, timeout_seconds=LONG_SECONDS).active_alerts()
    assert answer == Unknown(f"{source.__name__} at {url} refused the connection")


async def test_a_long_error_text_of_a_server_is_cut() -> None:
    answer = await answer_of("Ours", URL, 60.0, lambda _: raising(UnusableAnswer("x" * 10_000)))
    assert isinstance(answer, Unknown)
    assert len(answer.why) < 400


async def test_a_hanging_request_is_abandoned_after_twice_its_deadline() -> None:
    answer = await answer_of("Ours", URL, 0.01, lambda _: time.sleep(0.5))
    assert answer == Unknown(f"{SHOWN} did not answer within 0.02s")


@pytest.mark.parametrize("content", [b"", b"\n", b"two\nlines", b"\xff\xfe", "sécret".encode()])
def test_a_credentials_file_must_contain_exactly_one_line(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    with pytest.raises(CannotAsk) as caught:
        secret_in(str(file))
    assert str(caught.value).startswith(str(file))
    assert "two" not in str(caught.value)


def test_the_line_of_a_credentials_file_is_read_without_its_line_break(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("abc\n")
    assert secret_in(str(tmp_path / "token")) == "abc"


@contextmanager
def an_endless_answer(encoding: str = "", size: int = 2**20) -> Iterator[str]:
    """Run a server that sends blocks of `size` spaces until the client closes the connection. Yield its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            if encoding:
                self.send_header("Content-Encoding", encoding)
            self.end_headers()
            spaces, packer = b" " * size, zlib.compressobj(wbits=31)
            try:
                while True:
                    self.wfile.write(packer.compress(spaces) if encoding else spaces)
            except OSError:
                pass  # the client has read enough

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_an_endless_answer_is_read_up_to_a_limit(encoding: str) -> None:
    session = bounded.session(LONG_SECONDS, LONG_SECONDS)
    with an_endless_answer(encoding) as url, pytest.raises(bounded.Unbounded, match="the answer is longer than 16 MiB"):
        read_json(session, "GET", url, Access(), if_rejected="")


def test_an_answer_that_arrives_slowly_is_abandoned_after_twice_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each single read of the response ends in time, so the deadline for reads never ends the request. Without a total
    deadline, the thread of this request would never be free again."""
    clock = itertools.count(0.0, LONG_SECONDS)
    for module in ("careen.services.wire.bounded", "scheduler_core.extenders.timed_http"):
        monkeypatch.setattr(f"{module}.time", SimpleNamespace(monotonic=lambda: next(clock)))
    session = bounded.session(LONG_SECONDS, 100 * LONG_SECONDS)
    with an_endless_answer(size=1) as url, pytest.raises(bounded.Unbounded, match="the answer did not end within"):
        read_json(session, "GET", url, Access(), if_rejected="")


async def test_the_message_says_why_reading_the_answer_failed() -> None:
    from urllib3.exceptions import ReadTimeoutError

    error = ReadTimeoutError(None, URL, "Read timed out.")  # type: ignore[arg-type]
    assert await answer_of("Ours", URL, 60.0, lambda _: raising(error)) == Unknown(f"{SHOWN} did not answer in time")


async def test_an_endless_answer_of_an_alertmanager_makes_alerts_and_silences_unknown() -> None:
    with an_endless_answer() as url:
        alerts = await Alertmanager(url, timeout_seconds=LONG_SECONDS).active_alerts()
        silence = await Silences(url, node="n1", matchers=[], timeout_seconds=LONG_SECONDS).end()
    told = f"Alertmanager at {url} gave no usable answer: the answer is longer than"
    assert (alerts, silence) == (Unknown(f"{told} 16 MiB"), Unknown(f"{told} 16 MiB"))


def test_a_message_about_a_url_does_not_show_its_login() -> None:
    assert without_login(f"{URL}/p@th") == "http://127.0.0.1:9/p@th"
