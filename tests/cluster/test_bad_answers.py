"""Tests agents whose proxy to the API server returns invalid responses, breaks connections, or delays a write until
another client has written.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable

import pytest

from tests.cluster.harness.machines.hosts import Host
from tests.cluster.harness.machines.proxy import LOST, Answer, Call
from tests.cluster.harness.story import Story
from tests.cluster.harness.workloads import deployment

pytestmark = pytest.mark.cluster

NONSENSE = {
    "an empty object": b"{}",
    "a Status": b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":200}',
    "no items": b'{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":""},"items":null}',
    "a login page": b'{"login":"https://sso.example.com/","message":"please log in"}',
}
OFTEN = 1  # the number of bad answers to each request of each phase before a correct one


class Nonsense:
    """A proxy rule that answers the first request of each kind in each phase with status 200 and `body`. The API server
    still executes writes.
    """

    def __init__(self, story: Story, host: Host, body: bytes) -> None:
        self.answered: Counter[str] = Counter()
        self._story, self._host, self._body = story, host, body
        self._guard = threading.Lock()

    def __call__(self, call: Call, forward: Callable[[], Answer]) -> Answer | None:
        if not self._host.sentinel.exists() and self._story.phase(self._host) == "Idle":
            return None
        kind = f"{self._story.phase(self._host)}: {call.method} {re.sub(r'/(careen|shop|default)/', '/*/', call.path)}"
        with self._guard:
            self.answered[kind] += 1
            is_spoilt = self.answered[kind] <= OFTEN
        if not is_spoilt:
            return None
        if call.method != "GET":
            forward()
        return Answer(status=200, body=self._body)


def test_agents_treat_an_empty_response_with_status_200_as_an_error(story: Story) -> None:
    """In each phase, the first request of each kind gets a response without content. Agents must not treat this
    response as an empty list, an empty Node or a successful write."""
    theirs = {"key": "example.com/theirs", "value": "1", "effect": "PreferNoSchedule"}
    hosts = story.nodes(4, "--concurrency=2", change=story.behind_proxy)
    for host in hosts:
        story.admin.patch(f"/api/v1/nodes/{host.name}", {"spec": {"taints": [theirs]}})
    story.workloads(deployment("web", 8, stop_seconds=4))
    rules = [Nonsense(story, host, body) for host, body in zip(hosts, NONSENSE.values(), strict=True)]
    for host, rule in zip(hosts, rules, strict=True):
        story.proxies[host.name].rule = rule
    story.need_reboot(hosts)
    story.finishes(hosts, 240)
    story.judge(concurrency=2)
    story.is_clean(hosts)
    for host, rule in zip(hosts, rules, strict=True):
        assert any(kind.startswith("Draining: GET /api/v1/pods") for kind in rule.answered), (
            f"the agent of {host.name} received no invalid response: {rule.answered}"
        )
        lost = [
            seen
            for seen in story.observer.node_history(host.name)
            if ("example.com/theirs", "PreferNoSchedule") not in seen.taints and seen.labels.get("careen.dev/reboot")
        ]
        assert not lost, f"another client's taint was lost on {host.name}"
    assert [len(host.reboots) for host in hosts] == [1] * 4


def writes_a_phase(call: Call, node: str) -> str | None:
    """Return the phase that a patch of the Node writes, or Idle if the patch removes the phase. Return None if the
    request does not change the phase.
    """
    if not call.is_patch_of_node(node) or "careen.dev/progress" not in call.annotations:
        return None
    return call.annotations.get("careen.dev/phase") or "Idle"


class FirstPatch:
    """A proxy rule that disturbs, for each phase, the first patch that writes this phase. The function `befall` decides
    whether the patch reaches the API server, and returns the response to the agent."""

    def __init__(self, host: Host, befall: Callable[[Callable[[], Answer]], Answer]) -> None:
        self.met: list[str] = []
        self._host, self._befall = host, befall

    def __call__(self, call: Call, forward: Callable[[], Answer]) -> Answer | None:
        phase = writes_a_phase(call, self._host.name)
        if phase is None or phase in self.met:
            return None
        self.met.append(phase)
        return self._befall(forward)


ONCE_EACH = ("DrainStarted", "Rebooted", "GivenBack", "Released")


def test_agents_post_each_event_once_although_patches_fail(story: Story) -> None:
    """Three nodes have one fault each: a conflict with a person's write, a lost response, a lost request. The fourth
    node has no fault.
    """
    clash, lost_answer, lost_request, _plain = hosts = story.nodes(4, change=story.behind_proxy)

    def a_person_writes_first(forward: Callable[[], Answer]) -> Answer:
        story.annotate_node(clash, "example.com/note", f"note {len(clashed.met)} of a person")
        return forward()

    def the_answer_is_lost(forward: Callable[[], Answer]) -> Answer:
        forward()
        return LOST

    story.proxies[clash.name].rule = clashed = FirstPatch(clash, a_person_writes_first)
    story.proxies[lost_answer.name].rule = FirstPatch(lost_answer, the_answer_is_lost)
    story.proxies[lost_request.name].rule = FirstPatch(lost_request, lambda _forward: LOST)
    story.need_reboot(hosts)
    story.finishes(hosts, 240)
    story.judge()
    assert {"Draining", "Settling", "Idle"} <= set(clashed.met)

    def posted() -> dict[str, Counter[str]]:
        found = [(event["involvedObject"]["name"], event["reason"]) for event in story.events()]
        return {
            host.name: Counter(reason for name, reason in found if name == host.name and reason in ONCE_EACH)
            for host in hosts
        }

    once = {host.name: Counter(ONCE_EACH) for host in hosts}
    try:
        story.wait_for("the agents have posted one Event for each step", lambda: posted() == once, 10)
    except AssertionError as late:
        raise AssertionError(f"the agents posted {posted()}") from late
