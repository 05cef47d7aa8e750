"""The real agent in its two forms: the file lock against a second agent, another Node, and the order of its start."""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

from careen.agent.asleep.sleeper import VARIABLE, Outside, SleepersLooks, answer
from tests.careen.agent.test_process import Agent, Node
from tests.careen.agent.test_process import node as node  # noqa: PLC0414 - a fixture
from tests.careen.agent.test_sleep import falls_asleep, is_asleep, person_asks
from tests.patience import run, wait_until

FLAGS = ("--sleep=auto", "--host-lock-dir=/run/careen")


def test_the_successor_of_a_pod_that_was_deleted_by_force_waits_until_the_sleeper_ends(node: Node) -> None:
    sleeping = falls_asleep(node)
    successor = node.start(*FLAGS)
    successor.says("another agent of this node has locked the file")
    person_asks(node)
    wait_until(lambda: node.annotation("phase") != "", lambda: sleeping.log)
    assert "another agent of this node" in successor.log.splitlines()[-1], "the woken agent still holds the lock"
    sleeping.process.send_signal(signal.SIGKILL)
    wait_until(lambda: "Waiting" in successor.log or "drain" in successor.log.lower(), lambda: successor.log)


def test_a_woken_agent_whose_lock_file_is_another_file_ends_before_it_writes(node: Node) -> None:
    sleeping = falls_asleep(node)
    (file,) = (node.folder / "host/run/careen").iterdir()
    file.rename(file.with_suffix(".old"))
    file.touch()
    person_asks(node)
    assert sleeping.ends() == 0
    assert "the file lock of this node is another file than before the sleep" in sleeping.log
    assert node.annotation("phase") == ""


def test_a_node_that_is_created_again_wakes_the_agent_which_sleeps_again(node: Node) -> None:
    agent = falls_asleep(node)
    found = node.server.get("nodes", "n1")
    assert found is not None
    node.server.seed({**found, "metadata": {"name": "n1", "uid": "another"}})
    agent.says("the agent wakes: the Node has changed")
    wait_until(lambda: is_asleep(agent), lambda: agent.log)
    assert zombies_of(agent) == []


def test_a_sigkill_of_the_sleeper_leaves_nothing_that_keeps_the_next_agent_from_sleeping(node: Node) -> None:
    falls_asleep(node).process.send_signal(signal.SIGKILL)
    agent = falls_asleep(node)
    assert "another agent" not in agent.log


def zombies_of(agent: Agent) -> list[str]:
    return Path(f"/proc/{agent.process.pid}/task/{agent.process.pid}/children").read_text().split()


OPENED = """
import sys
import careen.__main__
from careen.agent.asleep import doorkeeper
def open_door():
    print(*{name.split(".")[0] for name in sys.modules} - sys.stdlib_module_names - {"__main__"})
    sys.exit()
doorkeeper.open_door = open_door
sys.argv = ["careen", "agent"]
careen.__main__.main()
"""


def test_the_woken_agent_opens_its_door_before_it_loads_a_library() -> None:
    done = run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {OPERATOR!r}){OPENED}"],
        env={**os.environ, VARIABLE: "9"},
    )
    assert (done.stdout.split(), done.stderr) == (["careen"], "")


OPERATOR = str(Path(sys.modules[SleepersLooks.__module__].__file__ or "").parents[3])


# ---- a file system that hangs ----


class Hanging(Outside):
    """The looks at files end only when the test says so."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def now(self) -> float:
        return self.seconds

    async def signature(self, path: str) -> str:
        await _Never()
        return path


class _Never:
    def __await__(self) -> Any:
        yield


def test_a_look_that_hangs_makes_the_need_unknown_and_after_a_minute_the_agent_unhealthy_but_wakes_nobody() -> None:
    outside = Hanging()
    handover: dict[str, Any] = {
        "name": "n1", "files": {"/x": "absent:4"}, "file_seconds": 15.0, "wake_at": 5000.0, "not_ready": "",
        "server": {}, "requests": {}, "node": {"version": "7"}, "metrics": "", "helps": {},
    }  # fmt: skip
    outside.api = None  # type: ignore[assignment] - no request is made
    looks = SleepersLooks(handover, outside)
    files, *others = looks.all()
    for each in others:
        each.close()
    assert files.send(None) is None, "it hangs"

    def seen() -> tuple[bool, int, int, str]:
        late, unknown = looks.late, looks.is_need_unknown
        said = answer(handover, "/metrics", late=late, is_asleep=True, is_unknown=unknown)[1].decode()
        metric = re.search(r"^careen_need_unknown\S* (\S+)$", said, re.MULTILINE)
        assert metric is not None
        status = [answer(handover, path, late=late, is_asleep=True)[0] for path in ("/healthz", "/readyz")]
        return unknown, status[0], status[1], metric[1]

    for seconds, expected in (
        (15.0, (False, 200, 200, "0.0")),
        (15.1, (True, 200, 200, "1.0")),
        (75.0, (True, 200, 200, "1.0")),
        (75.1, (True, 503, 503, "1.0")),
    ):
        outside.seconds = 1000.0 + seconds
        assert seen() == expected
    assert looks.left_seconds > 0
    outside.seconds = 5060.1
    assert looks.left_seconds < 0, "the time to wake still comes"
