"""Tests the messages of a command that fails: no Python traceback, the documented exit code, and the next step."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from careen.cli import cli
from careen.cluster.wire import api
from drydock.server.testing import write_kubeconfig
from tests.careen.cli.conftest import Desk

INSIDES = re.compile(
    r"HTTPS?Connection|Errno|Traceback|object at 0x|urllib3|\b[A-Z]\w+(Error|Exception)\b|<class|_ssl\.c|NoneType"
)


def problem(result: Result) -> str:
    """Return the error output as one line. Fails if the output contains a traceback."""
    assert not INSIDES.search(result.output), result.output
    return " ".join(result.output.split())


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "READ_PATIENCE_SECONDS", 0.1)


def asked(tmp_path: Path, server: str, *words: str) -> Result:
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", server)
    return CliRunner().invoke(cli, [*words, "--kubeconfig", str(kubeconfig)])


@pytest.fixture
def raw_server() -> Iterator[str]:
    """Run a server that answers each request with text that is not HTTP, and closes the connection. Yield its port."""

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = server.accept()
                with connection, contextlib.suppress(OSError):
                    connection.recv(65536)
                    connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        yield str(server.getsockname()[1])


COMMANDS = (("status",), ("why", "n1"), ("lock", "show"), ("plan",), ("explain", "a/b"), ("cleanup",), ("config",))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_whose_connection_is_refused_prints_one_error_and_no_usage_text(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    result = asked(tmp_path, "http://127.0.0.1:9", *command)
    assert "http://127.0.0.1:9 refused the connection" in problem(result)
    assert (result.exit_code, "Usage:" in result.output) == (1, False)


def test_the_forecast_of_an_unreachable_cluster_is_unknown(tmp_path: Path) -> None:
    result = asked(tmp_path, "http://127.0.0.1:9", "forecast", "n1")
    assert "the forecast could not be made: the API server cannot be reached" in problem(result)
    assert result.exit_code == 4


@pytest.mark.parametrize(
    ("server", "words"),
    [
        ("https://127.0.0.1:{raw}", "https://127.0.0.1:{raw} does not speak TLS on this port"),
        ("http://127.0.0.1:{raw}", "http://127.0.0.1:{raw} does not answer with HTTP"),
        (
            "https://name.invalid:6443",
            "https://name.invalid:6443 cannot be found: no name server of this host resolves its name",
        ),
        ("http://[::1", "Invalid IPv6 URL; correct the file"),
        ("ftp://127.0.0.1", "ftp://127.0.0.1 is not the address of a server"),
        ("http://me:secret@127.0.0.1:9", "http://127.0.0.1:9 refused the connection"),
        ("http://127.0.0.1:99999", "http://127.0.0.1:99999 "),
    ],
)
def test_a_network_error_shows_its_cause_and_no_password(
    tmp_path: Path, raw_server: str, server: str, words: str
) -> None:
    result = asked(tmp_path, server.format(raw=raw_server), "status")
    assert words.format(raw=raw_server) in problem(result)
    assert result.exit_code in (1, 2)
    assert "secret" not in result.output


def test_a_network_error_says_that_the_certificate_is_not_trusted(tmp_path: Path, tls_server: str) -> None:
    result = asked(tmp_path, tls_server, "status")
    assert f"{tls_server} shows a certificate that is not trusted: self-signed certificate" in problem(result)


@pytest.fixture
def tls_server(tmp_path: Path) -> Iterator[str]:
    import ssl

    from tests.patience import run

    key, certificate = tmp_path / "key", tmp_path / "certificate"
    run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-subj",
            "/CN=x",
            "-keyout",
            str(key),
            "-out",
            str(certificate),
            "-addext",
            "subjectAltName=IP:127.0.0.1",
        ]
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with contextlib.suppress(OSError):
                context.wrap_socket(connection, server_side=True).close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        yield f"https://127.0.0.1:{server.getsockname()[1]}"


# ---- contexts ----


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            "prd",
            "there is no context 'prd' in {file}; did you mean prod? the kubeconfig has the contexts prod, staging",
        ),
        ("elsewhere", "there is no context 'elsewhere' in {file}; the kubeconfig has the contexts prod, staging"),
        (
            "",
            (
                "{file} has no current context: choose a context with --context; the kubeconfig has the contexts "
                "prod, staging"
            ),
        ),
    ],
)
@pytest.mark.parametrize("command", [("status",), ("config",)], ids=" ".join)
def test_the_error_about_an_unknown_context_lists_the_existing_contexts(
    tmp_path: Path, given: str, words: str, command: tuple[str, ...]
) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(
        "{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}],"
        " users: [{name: u, user: {}}], contexts: [{name: prod, context: {cluster: c, user: u}},"
        f" {{name: staging, context: {{cluster: c, user: u}}}}], current-context: '{given}'}}"
    )
    result = CliRunner().invoke(cli, [*command, "--kubeconfig", str(file)])
    assert words.format(file=file) in problem(result)
    assert (result.exit_code, "Usage:" in result.output) == (2, False)
    if command == ("status",) and given:
        named = CliRunner().invoke(cli, ["status", "--kubeconfig", str(file), "--context", given])
        assert named.output == result.output


# ---- did you mean ----


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["statu"], "there is no command 'statu'; did you mean status?"),
        (["lock", "pasue"], "there is no command 'pasue'; did you mean pause?"),
        (["status", "--contex", "x"], "--context"),
        (["why", "worker-0l"], "there is no Node 'worker-0l'; did you mean worker-01?"),
        (["plan", "worker-0l"], "there is no Node 'worker-0l'; did you mean worker-01?"),
        (["hold", "worker-0l", "--reason", "x"], "did you mean worker-01?"),
        (["plan", "--set", "concurency=3"], "the agents have no setting 'concurency'; did you mean concurrency?"),
        (["zzzz"], "No such command 'zzzz'"),
    ],
)
def test_a_misspelled_name_is_reported_with_a_suggestion(desk: Desk, words: list[str], told: str) -> None:
    desk.node("worker-01")
    desk.lock()
    result = desk.run(*words)
    assert told in problem(result)
    assert result.exit_code == 2


# ---- state is no grammar ----


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["retry", "n1"], "n1 is Idle, so there is nothing to try again"),
        (["lock", "release", "n1"], "n1 holds no claim in the lock of DaemonSet careen/careen"),
        (["why", "zzz"], "there is no Node 'zzz' among the 1 Node of this cluster"),
        (["explain", "a/b"], "there is no pending or running pod 'a/b'"),
    ],
)
def test_an_error_about_an_object_of_the_cluster_prints_no_usage_text(desk: Desk, words: list[str], told: str) -> None:
    desk.node("n1")
    desk.lock()
    result = desk.run(*words)
    assert told in problem(result)
    assert (result.exit_code, "Usage:" in result.output) == (2, False)


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["forecast", "n1", "--from", "{file}"], "--from"),
        (["plan", "--from", "{file}"], "--from"),
        (["explain", "a/b", "--from", "{file}"], "--from"),
        (["forecast", "n1", "--scheduler-config", "{file}"], "--scheduler-config"),
        (["plan", "--scheduler-config", "{file}"], "--scheduler-config"),
        (["explain", "a/b", "--scheduler-config", "{file}"], "--scheduler-config"),
    ],
)
def test_the_error_about_a_file_of_the_wrong_type_shows_file_and_option(
    desk: Desk, tmp_path: Path, words: list[str], option: str
) -> None:
    desk.node("n1")
    desk.lock()
    file = tmp_path / "nonsense"
    file.write_text("kind: Nothing")
    result = desk.run(*(word.replace("{file}", str(file)) for word in words))
    assert option in problem(result)
    assert str(file) in result.output.replace("\n", "")
    assert result.exit_code == 2


# ---- --set ----


def test_a_note_lists_the_given_settings_that_do_not_affect_a_plan(desk: Desk) -> None:
    desk.node("n1")
    desk.lock()
    notes = desk.json("plan", "--set", "drain-timeout=3s", "--set", "period=1m", "--set", "concurrency=2")["notes"]
    assert notes[0].startswith(
        "--set changes settings that do not affect a plan: drain-timeout, period. The settings that change a plan: "
        "concurrency"
    )
    assert "reboot-delay" in notes[0]
    assert "do not affect a plan" not in " ".join(desk.json("plan", "--set", "concurrency=2")["notes"])


@pytest.mark.parametrize(
    "words",
    [
        ["plan", "--from"],
        ["forecast", "n1", "--from"],
        ["explain", "a/b", "--from"],
        ["plan", "--scheduler-config"],
        ["explain", "a/b", "--scheduler-config"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("content", [b"x", b"\xff\xfe"], ids=["text of another format", "bytes that are not text"])
def test_the_error_about_a_file_with_invalid_content_shows_file_and_option(
    desk: Desk, tmp_path: Path, words: list[str], content: bytes
) -> None:
    desk.node("n1")
    file = tmp_path / "file"
    file.write_bytes(content)
    result = desk.run(*words, str(file))
    assert f"Error: {words[-1]} {file}" in " ".join(result.output.split())
    assert (result.exit_code, "Usage:" in result.output) == (2, False)
