"""Tests two agents on one node that share no lock file, as after a forced deletion of a pod that still runs."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

import pytest

from tests.cluster.harness.machines.proxy import Answer, Call
from tests.cluster.harness.story import Story

pytestmark = pytest.mark.cluster


class Together:
    """Proxy rules that send the same write of two agents to the server at the same time, so that one of the agents gets
    a conflict. The write is the announcement: the patch of the Node right before the reboot command.
    """

    def __init__(self, node: str) -> None:
        self.met: list[int] = []
        self._node = node
        self._barrier = threading.Barrier(2)

    def rule(self) -> Callable[[Call, Callable[[], Answer]], Answer | None]:
        """Return a rule for the proxy of one agent. The rule holds back the agent's first announcement until the other
        agent also sends its announcement, but at most 8 seconds. Then the rule forwards the announcement.
        """
        is_first = True

        def meet(call: Call, forward: Callable[[], Answer]) -> Answer | None:
            nonlocal is_first
            if not (
                is_first
                and call.is_patch_of_node(self._node)
                and call.annotations.get("careen.dev/phase") == "Rebooting"
            ):
                return None
            is_first = False
            with contextlib.suppress(threading.BrokenBarrierError):
                self._barrier.wait(timeout=8)
            answer = forward()
            self.met.append(answer.status)
            return answer

        return meet


def test_if_two_agents_record_a_reboot_at_the_same_time_only_one_agent_reboots_the_host(story: Story) -> None:
    (host,) = story.nodes(
        1, "--host-lock-dir=", change=lambda host: (story.behind_proxy(host), setattr(host, "shutdown_seconds", 12.0))
    )
    together = Together(host.name)
    story.proxies[host.name].rule = together.rule()
    other = story.behind_proxy(host, "-second")
    other.rule = together.rule()
    story.the_fleet().start_another_agent(host, api_server=other.url)
    story.wait_for("the second agent runs", lambda: host.name in (host.folder / "second-agent.log").read_text())
    story.need_reboot([host])
    story.wait_for("the host was asked to reboot", host.requests.exists)
    story.stays(
        "the claim stays in the lock while the host goes down",
        lambda: not host.up or story.holders() == (host.name,),
        4,
    )
    story.wait_for("it is down", lambda: not host.up)
    assert len(host.requests.read_text().split()) == 1, (
        f"the host was asked more than once; simultaneous announcements: {together.met}"
    )
    assert sorted(together.met) == [200, 409], (
        "the two announcements were not simultaneous, so this test proves nothing"
    )
    story.finishes([host])
    story.judge()
