"""The sleeper as a process: what wakes it, what does not, what it passes on, and how it ends."""

from __future__ import annotations

import fcntl
import io
import json
import os
import resource
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from careen.agent.asleep import sleeper
from tests.careen.agent.asleep.slept import METADATA, OPERATOR, STUB, Api, Slept, serving
from tests.careen.services import nasty
from tests.patience import wait_until

Begin = Callable[..., Slept]


@pytest.fixture
def api() -> Iterator[Api]:
    with serving() as found:
        yield found


@pytest.fixture
def slept(tmp_path: Path, api: Api) -> Iterator[Begin]:
    """Makes a process that is not started yet."""
    made: list[Slept] = []

    def make(**content: Any) -> Slept:
        made.append(Slept(tmp_path, api, **content))
        return made[-1]

    yield make
    for each in made:
        each.close()


# ---- what wakes ----


def test_a_sentinel_file_wakes_and_the_moment_it_was_seen_is_handed_over(slept: Begin) -> None:
    agent = slept().begin().falls_asleep()
    agent.sentinel.touch()
    handover = agent.woken()["handover"]
    assert handover["woken_by"] == f"{agent.sentinel} has changed"
    assert 0 <= sleeper.boot_seconds() - handover["need_seen_at"] < 600


def test_a_file_that_appears_during_the_exec_wakes(slept: Begin) -> None:
    agent = slept()
    agent.sentinel.touch()  # after its signature was taken
    assert agent.begin(FILE_SECONDS=3600.0).why() == f"{agent.sentinel} has changed"


def test_a_file_that_cannot_be_checked_wakes(slept: Begin, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "folder").symlink_to("real")
    file = str(tmp_path / "folder/file")
    agent = slept(files={file: sleeper.file_signature(file)}).begin(FILE_SECONDS=0.05).falls_asleep()
    (tmp_path / "no folder").touch()
    (tmp_path / "no folder").rename(tmp_path / "folder")  # at once: without a folder the file would only be absent
    assert "cannot be checked: Not a directory" in agent.why()


def event(kind: str, **metadata: Any) -> dict[str, Any]:
    return {"type": kind, "object": {"metadata": {**METADATA, "resourceVersion": "8", **metadata}}}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (event("MODIFIED", uid="u2"), "the Node has changed"),
        (event("MODIFIED", deletionTimestamp="2026-01-01T00:00:00Z"), "the Node has changed"),
        (event("MODIFIED", labels={"zone": "b"}), "the Node has changed"),
        (
            event("MODIFIED", annotations={**METADATA["annotations"], "careen.dev/request": "reboot"}),
            "the Node has changed",
        ),
        (
            event("MODIFIED", annotations={**METADATA["annotations"], "weave.works/kured-x": "1"}),
            "the Node has changed",
        ),
        (event("DELETED"), "the Node was deleted"),
        ({"type": "MODIFIED", "object": {}}, "the sleeping agent met an error: KeyError('metadata')"),
        (event("MODIFIED", resourceVersion="6"), "the Node has resourceVersion 6 after 7"),
        ({"type": "BOOKMARK", "object": {}}, "the sleeping agent met an error: KeyError('metadata')"),
        ({"type": "MODIFIED", "object": 3}, "the sleeping agent met an error"),
    ],
)
def test_a_change_of_the_node_that_an_agent_may_react_to_wakes(
    slept: Begin, api: Api, change: dict[str, Any], why: str
) -> None:
    api.watches.append([change])
    assert slept().begin().why().startswith(why)


def test_a_change_of_the_node_that_no_agent_reacts_to_does_not_wake(slept: Begin, api: Api) -> None:
    foreign = event("MODIFIED", annotations={**METADATA["annotations"], "example.com/x": "1"})
    later = event("MODIFIED", resourceVersion="9")
    api.watches.append([foreign, {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "12"}}}, later])
    agent = slept().begin().falls_asleep()
    wait_until(lambda: api.count("watch") == 1)
    agent.stays_asleep_until(lambda: api.count("watch") == 1 and "asleep" in agent.get("/readyz"))


def test_a_watch_that_ends_is_renewed_without_a_wake(slept: Begin, api: Api) -> None:
    api.ends.set()  # each watch ends at once
    agent = slept().begin(FIRST_PAUSE_SECONDS=0.01).falls_asleep()
    agent.stays_asleep_until(lambda: api.count("watch") > 3)


def test_watches_that_end_at_once_are_renewed_after_longer_and_longer_pauses(slept: Begin, api: Api) -> None:
    """Thousands of sleepers would otherwise ask a server behind a broken proxy all the time."""
    api.ends.set()
    agent = slept().begin(FIRST_PAUSE_SECONDS=0.02, FILE_SECONDS=0.02).falls_asleep()
    agent.stays_asleep_until(lambda: len(api.moments) >= 6)
    assert api.moments[5] - api.moments[0] >= 0.02 * (1 + 2 + 4 + 8 + 16) / 2


@pytest.mark.parametrize("answer", [*nasty.SLOW, *nasty.ENDLESS], ids=lambda each: each.__name__)
def test_an_answer_without_an_end_neither_wakes_nor_makes_deaf(slept: Begin, answer: Callable[..., Any]) -> None:
    nasty.packed()
    with nasty.serving(answer) as server:
        agent = slept(server={"port": int(server.url.rpartition(":")[2])})
        agent.begin(REQUEST_SECONDS=0.5, SILENCE_SECONDS=0.5, FIRST_PAUSE_SECONDS=0.05, LONGEST_PAUSE_SECONDS=0.05)
        agent.falls_asleep().stays_asleep_until(lambda: server.opened > 3)


def test_a_watch_that_sends_bytes_but_no_event_ends(slept: Begin) -> None:
    def dripping(_: str) -> Iterator[bytes]:
        yield nasty.JSON + b"\r\n"
        while True:
            yield b" "

    with nasty.serving(dripping) as server:
        agent = slept(server={"port": int(server.url.rpartition(":")[2])})
        agent.begin(SILENCE_SECONDS=0.5, FIRST_PAUSE_SECONDS=0.05).falls_asleep()
        agent.stays_asleep_until(lambda: server.opened > 1)


def test_an_answer_of_negative_length_is_not_read() -> None:
    with pytest.raises(ValueError, match="negative"):
        sleeper._exactly(io.BytesIO(b"x"), -1)


def test_a_version_that_the_server_no_longer_has_costs_one_read(slept: Begin, api: Api) -> None:
    api.watches += [410, [{"type": "ERROR", "object": {"code": 410, "metadata": {}}}]]
    agent = slept().begin(FIRST_PAUSE_SECONDS=0.01).falls_asleep()
    agent.stays_asleep_until(lambda: api.count("watch") == 3)
    assert api.kinds() == ["watch", "list", "watch", "list", "watch"]


@pytest.mark.parametrize("metadata", [{**METADATA, "uid": "u2"}, {}])
def test_a_node_that_was_recreated_or_deleted_during_an_outage_wakes(
    slept: Begin, api: Api, metadata: dict[str, Any]
) -> None:
    api.watches.append(410)
    api.node = metadata
    assert slept().begin().why() in ("the Node has changed", "the Node does not exist")


@pytest.mark.parametrize("status", [401, 403])
def test_the_second_refusal_in_a_row_wakes_and_the_first_does_not(slept: Begin, api: Api, status: int) -> None:
    """The first may be a token that was just renewed. A watch that is forbidden is followed by reads."""
    api.watches.append(status)
    api.gets += [status, status]
    agent = slept().begin(RARE_SECONDS=0.05, FIRST_PAUSE_SECONDS=0.01)
    assert agent.why() == f"the API server refuses the agent ({status})"
    refused = [kind for kind in api.kinds() if kind != "config"]
    assert refused == {401: ["watch", "list"], 403: ["watch", "node", "node"]}[status]


@pytest.mark.parametrize("status", [401, 500, 503])
def test_one_refusal_or_an_outage_does_not_wake(slept: Begin, api: Api, status: int) -> None:
    api.watches.append(status)
    agent = slept().begin(FIRST_PAUSE_SECONDS=0.01).falls_asleep()
    agent.stays_asleep_until(lambda: api.count("watch") == 2)


def test_refusals_with_an_answer_between_them_do_not_wake(slept: Begin, api: Api) -> None:
    api.watches += [401, 401]
    agent = slept().begin(FIRST_PAUSE_SECONDS=0.01).falls_asleep()
    agent.stays_asleep_until(lambda: api.count("watch") == 3)
    assert api.kinds() == ["watch", "list", "watch", "list", "watch"]


def test_a_node_that_does_not_exist_wakes(slept: Begin, api: Api) -> None:
    api.watches.append(404)
    assert slept().begin().why() == "the Node does not exist"


def test_a_server_that_cannot_be_reached_does_not_wake(tmp_path: Path) -> None:
    agent = Slept(tmp_path, Api(port=1)).begin(FIRST_PAUSE_SECONDS=0.01, LONGEST_PAUSE_SECONDS=0.01)
    try:
        agent.falls_asleep()
        agent.stays_asleep_until(lambda: 'status="lost"} 5' in agent.get("/metrics"))
    finally:
        agent.close()


@pytest.mark.parametrize(
    ("metadata", "status"),
    [({"uid": "c1", "resourceVersion": "4"}, 0), ({"uid": "c2", "resourceVersion": "3"}, 0), ({}, 404)],
)
def test_a_change_of_the_config_map_wakes(slept: Begin, api: Api, metadata: dict[str, Any], status: int) -> None:
    agent = slept().begin(RARE_SECONDS=0.05).falls_asleep()
    agent.stays_asleep_until(lambda: api.count("config") > 2)
    api.config = metadata
    if status:
        api.always = status
    assert agent.why() == "the ConfigMap has changed"


def test_the_next_look_or_the_question_of_a_command_wakes_when_it_is_due(slept: Begin) -> None:
    """`wake_at` is the earlier of both: tests/careen/core/test_asleep.py."""
    agent = slept(wake_at=sleeper.boot_seconds() + 0.5).begin()
    assert agent.why() == "a look is due"
    assert sleeper.boot_seconds() >= agent.content["wake_at"]


@pytest.mark.parametrize(("ahead", "lasts"), [(2.0, 1.0), (-1.0, 300.0)])
def test_above_500_agents_a_need_wakes_at_the_nodes_own_moment(slept: Begin, ahead: float, lasts: float) -> None:
    moment = {"at": time.time() + ahead, "every": 600.0, "lasts": lasts}
    agent = slept(moment=moment).begin(FILE_SECONDS=0.05).falls_asleep()
    agent.sentinel.touch()
    woken = agent.woken()
    assert woken["handover"]["woken_by"] == f"{agent.sentinel} has changed"
    assert woken["wall_clock"] >= moment["at"]


# ---- reads ----


def test_without_the_right_to_watch_the_node_is_read_once_in_five_minutes(slept: Begin, api: Api) -> None:
    assert sleeper._RARE_SECONDS == 300.0
    api.watches.append(403)
    agent = slept().begin(RARE_SECONDS=0.2).falls_asleep()
    agent.stays_asleep_until(lambda: api.count("node") == 4)
    assert api.count("watch") == 1, "it does not ask for the watch again"
    api.node = {**METADATA, "labels": {}}
    assert agent.why() == "the Node has changed"
    assert api.count("list") == 0, "those roles allow no list either"


def test_a_renewed_token_is_used_for_the_next_request(slept: Begin, api: Api, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first\n")
    api.ends.set()
    agent = slept(server={"token_file": str(tmp_path / "token")}).begin(FIRST_PAUSE_SECONDS=0.01).falls_asleep()
    agent.stays_asleep_until(lambda: ("watch", "Bearer first") in api.seen)
    (tmp_path / "next").write_text("second\n")
    (tmp_path / "next").rename(tmp_path / "token")  # as the kubelet does
    agent.stays_asleep_until(lambda: ("watch", "Bearer second") in api.seen)


def test_a_token_that_was_renewed_after_the_first_401_does_not_wake(slept: Begin, api: Api, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("old\n")
    api.watches.append(401)
    agent = slept(server={"token_file": str(tmp_path / "token")}).begin(FIRST_PAUSE_SECONDS=1.0).falls_asleep()
    wait_until(lambda: api.count("watch") == 1)
    (tmp_path / "token").write_text("new\n")
    agent.stays_asleep_until(lambda: api.seen[1:2] == [("list", "Bearer new")])


def authority(folder: Path, name: str) -> ssl.SSLContext:
    """A new authority, as `name`.pem, with its server's certificate."""
    subprocess.run(
        (
            "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=x -addext subjectAltName=IP:127.0.0.1 "
            f"-keyout {name}.key -out {name}.pem"
        ).split(),
        cwd=folder,
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    return context


def test_a_change_of_the_servers_authority_is_followed_without_a_wake(tmp_path: Path) -> None:
    first, second = authority(tmp_path, "first"), authority(tmp_path, "second")
    ca = tmp_path / "ca.pem"
    ca.write_bytes((tmp_path / "first.pem").read_bytes())
    known = Api()
    with serving(first, known):
        agent = Slept(tmp_path, known, server={"tls": True, "ca": str(ca)}).begin(FIRST_PAUSE_SECONDS=0.01)
        try:
            agent.falls_asleep()
            agent.stays_asleep_until(lambda: known.count("watch") == 1)
        except BaseException:
            agent.close()
            raise
    try:
        with serving(second, Api(port=known.port)) as other:
            agent.stays_asleep_until(lambda: 'status="lost"}' in agent.get("/metrics"))
            assert other.seen == [], "an unknown authority gets no token"
            ca.write_bytes((tmp_path / "second.pem").read_bytes())
            agent.stays_asleep_until(lambda: other.count("watch") == 1)
    finally:
        agent.close()


# ---- what is handed over, and what is not ----


def test_only_standard_streams_listener_and_file_lock_reach_the_woken_agent(slept: Begin) -> None:
    agent = slept().begin().falls_asleep()
    assert children(agent.process.pid) == []
    agent.sentinel.touch()
    woken = agent.woken()
    inode = (agent.folder / "careen.lock").stat().st_ino
    names = woken["files"]
    assert [name for name in names.values() if name.endswith("careen.lock")] == [str(agent.folder / "careen.lock")]
    assert sum(name.startswith("socket:") for name in names.values()) == 1
    assert not [name for name in names.values() if "memfd" in name]
    # The doorkeeper's pipe has two ends, and the poll object none.
    assert sum(name.startswith("pipe:") for name in names.values()) == 2
    assert Path(f"/proc/{agent.process.pid}/fd/{woken['handover']['lock']}").stat().st_ino == inode
    assert woken["command"][-1] == str(agent.folder), "the tail of the command line stays"
    assert woken["environment"] == [], "the variable is for one start"


def children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_the_file_lock_is_held_all_the_time(slept: Begin) -> None:
    agent = slept().begin().falls_asleep()
    with (agent.folder / "careen.lock").open() as other:
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        agent.sentinel.touch()
        agent.woken()
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        agent.process.kill()
        fcntl.flock(other, fcntl.LOCK_EX)  # SIGKILL: the kernel releases it


def memfd(content: bytes, *, seals: int = sleeper.SEALS) -> int:
    descriptor = os.memfd_create("careen-handover", os.MFD_ALLOW_SEALING)
    os.write(descriptor, content)
    fcntl.fcntl(descriptor, sleeper._ADD_SEALS, seals)
    os.set_inheritable(descriptor, True)
    return descriptor


GOOD = json.dumps({"version": sleeper.VERSION}).encode()
UNUSABLE = {
    "not JSON": (b"{", sleeper.SEALS),
    "empty": (b"", sleeper.SEALS),
    "a list": (b"[]", sleeper.SEALS),
    "the next version": (json.dumps({"version": sleeper.VERSION + 1}).encode(), sleeper.SEALS),
    "no version": (b"{}", sleeper.SEALS),
    "not sealed": (GOOD, 0),
    "partly sealed": (GOOD, sleeper.SEALS & ~0x8),
    "without what a sleeper needs": (GOOD, sleeper.SEALS),
}


@pytest.mark.parametrize("what", UNUSABLE)
def test_a_handover_that_the_sleeper_cannot_read_leads_to_an_ordinary_start(
    tmp_path: Path, api: Api, what: str
) -> None:
    """The sleeper is started with descriptors of which the first is no usable handover."""
    agent = Slept(tmp_path, api)
    (tmp_path / "asleep").touch()
    passed = [memfd(UNUSABLE[what][0], seals=UNUSABLE[what][1]), agent.listener.fileno(), agent.lock]
    woken = started(agent, ["-I", "-S", sleeper.__file__, ",".join(map(str, passed)), "--", *stub(agent)], passed)
    ordinary(woken)
    assert "the sleeping agent failed and starts again" in agent.log


@pytest.mark.parametrize("what", [name for name in UNUSABLE if name != "without what a sleeper needs"])
def test_a_handover_that_the_woken_agent_cannot_read_leads_to_an_ordinary_start(
    tmp_path: Path, api: Api, what: str
) -> None:
    agent = Slept(tmp_path, api)
    (tmp_path / "asleep").touch()
    passed = [memfd(UNUSABLE[what][0], seals=UNUSABLE[what][1]), agent.listener.fileno(), agent.lock]
    ordinary(started(agent, stub(agent)[1:], passed, ",".join(map(str, passed))))


@pytest.mark.parametrize("text", ["99,98", "x", "-1", "1e9,", ",,"])
def test_a_damaged_variable_leads_to_an_ordinary_start(tmp_path: Path, api: Api, text: str) -> None:
    agent = Slept(tmp_path, api)
    (tmp_path / "asleep").touch()
    ordinary(started(agent, stub(agent)[1:], [], text))


def stub(agent: Slept) -> list[str]:
    return [sys.executable, "-I", "-S", str(STUB), str(OPERATOR), str(agent.folder)]


def started(agent: Slept, arguments: list[str], passed: list[int], variable: str = "") -> dict[str, Any]:
    environment = {**os.environ, **({sleeper.VARIABLE: variable} if variable else {})}
    with (agent.folder / "log").open("w") as log:
        agent.process = subprocess.Popen(
            [sys.executable, *arguments], pass_fds=passed, env=environment, stderr=log, text=True
        )
    try:
        return agent.woken()
    finally:
        agent.close()
        for each in passed:
            if each != agent.listener.fileno():
                with suppress(OSError):
                    os.close(each)


def ordinary(woken: dict[str, Any]) -> None:
    assert woken["handover"] is None
    left = [name for name in woken["files"].values() if "socket:" in name or "lock" in name or "memfd" in name]
    assert left == [], "all passed descriptors are closed"
    assert woken["environment"] == []


# ---- no memory, no descriptors ----


def test_a_sleeper_without_descriptors_wakes_and_does_not_spin(slept: Begin) -> None:
    agent = slept().begin().falls_asleep()
    used = {int(each.name) for each in Path(f"/proc/{agent.process.pid}/fd").iterdir()}
    free = [number for number in range(len(used) + 10) if number not in used][:10]  # inherited ones leave gaps
    resource.prlimit(agent.process.pid, resource.RLIMIT_NOFILE, (free[-1] + 1, free[-1] + 1))
    held = [socket.create_connection(agent.listener.getsockname()) for _ in range(12)]
    try:
        woken = agent.woken()
        assert woken["handover"] is None or "Too many open files" in woken["handover"]["woken_by"]
    finally:
        for each in held:
            each.close()


def test_a_sleeper_that_cannot_write_the_handover_does_an_ordinary_start(slept: Begin) -> None:
    agent = slept().begin().falls_asleep()
    resource.prlimit(agent.process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))  # a memfd is a file, too
    agent.sentinel.touch()
    ordinary(agent.woken())


def test_an_exec_that_fails_ends_the_process_with_an_error(slept: Begin, tmp_path: Path) -> None:
    """The kubelet starts another."""
    interpreter = tmp_path / "python"
    interpreter.symlink_to(sys.executable)
    agent = slept().begin(python=str(interpreter)).falls_asleep()
    interpreter.unlink()
    agent.sentinel.touch()
    assert agent.ends() == 1
    assert "No such file or directory" in agent.log


# ---- probes ----


def test_the_sleeper_answers_probes_and_scrapes_and_nothing_else(slept: Begin) -> None:
    agent = slept(not_ready="without its lock").begin()
    wait_until(agent.is_asleep)
    assert "asleep" in agent.get("/healthz?verbose=1")
    for path, status, body in (
        ("/readyz", 503, "without its lock"),
        ("/x", 404, "/metrics"),
        ("/metrics", 200, "careen_asleep"),
    ):
        with socket.create_connection(agent.listener.getsockname()) as client:
            client.sendall(f"GET {path} HTTP/1.1\r\n".encode())
            client.sendall(b"Host: x\r\n\r\n")  # in two pieces
            with client.makefile("rb") as reader:
                answer = reader.read().decode()
        assert answer.startswith(f"HTTP/1.1 {status} ")
        assert body in answer


def test_clients_that_say_nothing_do_not_keep_others_from_an_answer(slept: Begin) -> None:
    agent = slept().begin().falls_asleep()
    silent = [socket.create_connection(agent.listener.getsockname()) for _ in range(40)]
    try:
        assert "asleep" in agent.get("/healthz")
        assert len(list(Path(f"/proc/{agent.process.pid}/fd").iterdir())) < 40
    finally:
        for each in silent:
            each.close()


@pytest.mark.parametrize("text", [b"", b"\r\n\r\n", b"GET\r\n\r\n", b"\xff" * 9000, b"GET /healthz\r\n\r\n"])
def test_a_request_that_cannot_be_read_neither_wakes_nor_ends_the_sleeper(slept: Begin, text: bytes) -> None:
    agent = slept().begin().falls_asleep()
    with socket.create_connection(agent.listener.getsockname()) as client:
        client.sendall(text)
        client.shutdown(socket.SHUT_WR)
        with suppress(ConnectionResetError):
            client.recv(1000)
    agent.stays_asleep_until(lambda: "asleep" in agent.get("/healthz"))


def test_the_door_stays_open_while_the_agent_is_woken(slept: Begin) -> None:
    """The stub never serves itself: the doorkeeper answers."""
    agent = slept().begin().falls_asleep()
    agent.sentinel.touch()
    agent.woken()
    assert "waking" in agent.get("/healthz")
    assert 'careen_asleep{node="n1"} 0.0' in agent.get("/metrics")
