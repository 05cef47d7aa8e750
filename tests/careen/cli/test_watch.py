from __future__ import annotations

import asyncio
import os
import pty
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from careen.agent.clock import SystemClock
from careen.cli.serving import looks
from careen.cli.support.connection import Cluster, ask
from careen.cli.watch import lines
from careen.cluster.wire.errors import Withheld
from careen.cluster.wire.transport import Request, Response
from careen.core.facts import keys
from tests.careen.cli.conftest import Desk
from tests.careen.live_fleet import roll_out


def test_a_pipe_gets_lines_without_colours(desk: Desk) -> None:
    desk.server.seed(*roll_out(30, datetime.now(UTC), blocked=5))
    said = desk.ok("watch", "--once")
    assert said.count("\n") == 1
    assert "12 of 30 done, 2 working" in said
    assert "\x1b" not in said


def test_a_pipe_is_told_that_the_cluster_does_not_answer_and_that_it_does_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    began = datetime.now(UTC)
    desk.server.seed(*roll_out(30, began, blocked=5))
    monkeypatch.setattr(looks, "LEAST_SECONDS", 0.01)
    monkeypatch.setattr(SystemClock, "now", lambda _: began)  # ages are part of the line
    said: list[str] = []

    async def story(cluster: Cluster) -> None:
        watching = asyncio.ensure_future(lines(cluster))
        transport, send = cluster.api.transport, cluster.api.transport.send

        async def refused(request: Request) -> Response:
            raise Withheld(f"{request.method} {request.path}", "not in this test")

        for number, each in enumerate((send, refused, send), start=1):
            monkeypatch.setattr(transport, "send", each)
            while len(said) < number:
                await asyncio.sleep(0.01)
                said.extend(capsys.readouterr().out.splitlines())
                assert not watching.done()
        watching.cancel()

    ask(
        story,
        kubeconfig=str(desk.kubeconfig),
        context=None,
        namespace="careen",
        name="careen",
        annotation=keys.LOCK_ANNOTATION,
    )
    before, during, after = (line.partition(" ")[2] for line in said)
    assert during.startswith("The cluster could not be read since ")
    assert during.endswith(before)
    assert after == before


def on_a_terminal(desk: Desk, **environment: str) -> str:
    """What `careen watch --once` prints on a terminal of 24 lines of 80 columns."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "careen", "watch", "--once", "--kubeconfig", str(desk.kubeconfig)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"} | environment,
    )
    os.close(theirs)
    said = b""
    try:
        while chunk := os.read(ours, 65536):
            said += chunk
    except OSError:  # Linux's end of a terminal
        pass
    os.close(ours)
    assert process.wait() == 0, said
    return said.decode()


@pytest.mark.parametrize(("environment", "has_colours"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_a_terminal_gets_a_screen_and_no_color_is_honoured(
    desk: Desk, environment: dict[str, str], has_colours: bool
) -> None:
    now = datetime.now(UTC)
    desk.server.seed(*(each for each in roll_out(30, now) if "last-reboot" in str(each)))
    desk.lock()
    said = on_a_terminal(desk, **environment)
    assert "The roll-out is over: 12 nodes rebooted." in said
    assert ("\x1b[1;32m" in said) is has_colours
