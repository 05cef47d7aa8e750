from __future__ import annotations

import gzip
import http.client
import json
import socket
from collections.abc import Iterator

import pytest

from careen.cli.serving.guard import HEADERS
from careen.cli.serving.web_server import Document, Failure, WebServer
from tests.careen.poisoned_texts import POISON
from tests.patience import SECONDS


class Shelf:
    """A source with fixed documents, which notes what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[object] = []
        self.rollout_is: Document | Failure = Document.json({"nodes": ["n"] * 1000})

    def rollout(self) -> Document | Failure:
        self.asked.append("rollout")
        return self.rollout_is

    def node(self, name: str) -> Document | Failure:
        self.asked.append(name)
        return Document.json({"name": name})

    def report(self, days: int, *, as_page: bool) -> Document | Failure:
        self.asked.append((days, as_page))
        return Document.html("<p>x") if as_page else Document.json({})


class Browser:
    """Sends one request for each connection."""

    def __init__(self, port: int, shelf: Shelf) -> None:
        self.port, self.shelf = port, shelf

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, headers={"Host": f"localhost:{self.port}"} | given)
        answer = connection.getresponse()
        found = answer.status, dict(answer.getheaders()), answer.read()
        connection.close()
        return found


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[WebServer, Shelf]]:
    shelf = Shelf()
    server = WebServer("127.0.0.1", 0, shelf)
    try:
        yield server, shelf
    finally:
        server.close()


@pytest.fixture
def browser(server: tuple[WebServer, Shelf]) -> Browser:
    found, shelf = server
    shelf.__init__()  # type: ignore[misc] - each test begins with a fresh shelf
    return Browser(found.port, shelf)


PATHS = ("/", "/live.js", "/live.css", "/icon.svg", "/report", "/report.json", "/rollout.json", "/nodes/n1.json")


@pytest.mark.parametrize("path", [*PATHS, "/elsewhere"])
def test_every_answer_has_the_strict_headers(browser: Browser, path: str) -> None:
    status, headers, _ = browser.ask(path)
    assert status == (404 if path == "/elsewhere" else 200)
    assert headers.items() >= HEADERS.items()
    assert "Python" not in headers["Server"]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"])
def test_no_method_that_could_write_is_answered(browser: Browser, method: str) -> None:
    status, headers, _ = browser.ask("/rollout.json", method)
    assert (status, headers["Allow"]) == (405, "GET, HEAD")
    assert headers.items() >= HEADERS.items()
    assert browser.shelf.asked == []


@pytest.mark.parametrize("path", PATHS)
def test_a_rebound_name_gets_nothing_on_any_path(browser: Browser, path: str) -> None:
    status, headers, body = browser.ask(path, Host="rebound.example")
    assert status == 403
    assert "error" in json.loads(body)
    assert headers.items() >= HEADERS.items()
    assert browser.shelf.asked == []


def test_an_unchanged_document_is_not_sent_again(browser: Browser) -> None:
    _, headers, body = browser.ask("/rollout.json")
    assert json.loads(body)["nodes"]
    status, again, nothing = browser.ask("/rollout.json", If_None_Match=headers["ETag"])
    assert (status, nothing, again["ETag"]) == (304, b"", headers["ETag"])
    browser.shelf.rollout_is = Document.json({"nodes": []})
    assert browser.ask("/rollout.json", If_None_Match=headers["ETag"])[0] == 200


def test_a_browser_that_can_unpack_gets_fewer_bytes(browser: Browser) -> None:
    _, _, plain = browser.ask("/rollout.json")
    _, headers, packed = browser.ask("/rollout.json", Accept_Encoding="gzip")
    assert headers["Content-Encoding"] == "gzip"
    assert len(packed) < len(plain) / 10
    assert gzip.decompress(packed) == plain


def test_head_has_the_headers_of_get_and_no_body(browser: Browser) -> None:
    status, headers, body = browser.ask("/rollout.json", "HEAD")
    assert (status, body) == (200, b"")
    assert int(headers["Content-Length"]) > 0


def test_a_failure_is_a_sentence_in_json(browser: Browser) -> None:
    browser.shelf.rollout_is = Failure(503, POISON)
    status, headers, body = browser.ask("/rollout.json")
    assert (status, headers["Content-Type"]) == (503, "application/json; charset=utf-8")
    assert json.loads(body) == {"error": POISON}
    assert body.isascii()


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/nodes/n%2F1.json", "n/1"),
        ("/nodes/..%2F..%2Fetc%2Fpasswd.json", "../../etc/passwd"),
        ("/report", (31, True)),
        ("/report?days=7", (7, True)),
        ("/report.json?days=365", (365, False)),
    ],
)
def test_paths_name_documents(browser: Browser, path: str, asked: object) -> None:
    assert browser.ask(path)[0] == 200
    assert browser.shelf.asked == [asked]


@pytest.mark.parametrize("query", ["days=0", "days=-1", "days=99999", "days=x", "days=", "days=٣", "x=1", "days=1&x=1"])
def test_a_wrong_number_of_days_is_refused(browser: Browser, query: str) -> None:
    from urllib.parse import quote

    assert browser.ask(f"/report?{quote(query, safe='=&-')}")[0] == 400
    assert browser.shelf.asked == []


@pytest.mark.parametrize(
    "path", ["/../web_server.py", "/live/../../__init__.py", "//etc/passwd", "/nodes/n1", "/nodes/a/b.json", "/live.py"]
)
def test_no_other_file_is_served(browser: Browser, path: str) -> None:
    assert browser.ask(path)[0] == 404


def test_a_request_that_cannot_be_read_is_answered_under_the_same_headers(browser: Browser) -> None:
    with socket.create_connection(("127.0.0.1", browser.port), timeout=SECONDS) as raw:
        raw.sendall(b"nonsense\r\n\r\n")
        said = b"".join(iter(lambda: raw.recv(65536), b"")).decode()
    assert "Content-Security-Policy: default-src 'none'" in said


def test_the_script_never_parses_text_as_markup(browser: Browser) -> None:
    script = browser.ask("/live.js")[2].decode()
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "DOMParser", "setHTML"):
        assert word not in script
    page = browser.ask("/")[2].decode()
    assert "style=" not in page
    assert "onclick" not in page
    assert page.count("<script") == page.count('<script src="live.js"') == 1
