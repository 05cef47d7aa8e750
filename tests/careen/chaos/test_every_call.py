"""Crash points: in each run of a simulated roll-out, another request is lost, late or refused, or its sender dies. No
rule breaks, and every node returns to idle.

A crash point is a pair of a request and a fault. Together, the simulated roll-outs (stories) reach every call in
careen's source that sends a request. `make test` tries a small sample that contains every kind of fault. `make
crash-points` tries a twentieth of the crash points, `.ci/run` a fortieth; both cover each call with each fault. `make
soak` tries every crash point."""

from __future__ import annotations

import functools
import math
import os
import zlib
from typing import NamedTuple

import pytest

from careen.cluster.wire.transport import Request
from tests.careen.chaos.fleet.agents import FROZEN_SECONDS, Fault, can_meet
from tests.careen.chaos.fleet.branches import Branch, judged
from tests.careen.chaos.fleet.call_sites import CallSite, all_call_sites, current_call_site
from tests.careen.chaos.fleet.stories import STORIES, Story, played
from tests.careen.chaos.fleet.world import World

EVERY = int(os.environ.get("CHAOS_EVERY", "997"))
"""A run tries one in this many crash points: one in 997 in `make test`, one in 20 in `make crash-points`."""
WHOLE_SHARE = 100
"""A run that tries at least one in 100 crash points covers each call site with each fault."""
PARTS = max(1, 400 // EVERY)
"""The number of parallel tests into which each story (a simulated roll-out) is divided. The smallest story has some two
thousand crash points."""
SLOW_SECONDS = {Fault.SLOW: 12.0, **FROZEN_SECONDS}
"""By how many seconds each of these faults delays a response. Everything else that the agent has read before is then
that old."""

FOR_PEOPLE_ONLY = {
    CallSite("cli/support/agents_settings.py", "launch_of_agents", "get", 1): "commands read the agents' DaemonSet",
    CallSite("cli/support/agents_settings.py", "config_map_data", "get", 1): "commands read the agents' ConfigMap",
    CallSite("cluster/nodes.py", "list_signed_nodes", "items", 1): "`careen cleanup` lists Nodes with field managers",
    CallSite("cluster/nodes.py", "read_signed_node", "get", 1): "`careen cleanup` reads a Node again after a conflict",
    CallSite("cluster/foreign.py", "pods_of", "get", 1): "`careen cleanup` checks whether agents still run",
    CallSite("cluster/reflector/reflector.py", "Reflector._list", "pages", 1): "`careen shadow` lists all objects",
}
"""Calls by careen's commands. No agent sends these requests, so they cannot affect a roll-out."""
OF_LARGE_FLEETS = {
    CallSite(
        "cluster/nodes.py", "count_nodes", "pages", 1
    ): "agents send this request only in fleets of more than 180 agents; test_thousands_wait.py simulates such fleets"
}
"""Calls that agents send only in large fleets. The fleets of these stories are smaller. If this request fails, the
agent counts the agents instead."""
OF_MESSAGES = {
    CallSite("cluster/events.py", "is_first", "post", 1): "of several agents, "
    "only the first to post this Event sends the message: tests/careen/agent/telling/test_teller.py"
}
"""Calls that affect only messages to people."""
NOT_HERE = FOR_PEOPLE_ONLY.keys() | OF_LARGE_FLEETS.keys() | OF_MESSAGES.keys()
_READS = frozenset({"get", "get_plain", "pages", "items", "ask"})


class Asked(NamedTuple):
    """One request in a simulated roll-out in which no fault is added: its position among all requests, and the call in
    careen's source that sent it."""

    number: int
    request: Request
    site: CallSite | str


@functools.cache
def requests_of(name: str) -> tuple[Asked, ...]:
    """Play this simulated roll-out without an added fault, and return its requests. With a fault at one request, the
    roll-out sends the same requests up to the fault."""
    asked: list[Asked] = []
    played(STORIES[name], lambda number, _, request: asked.append(Asked(number, request, current_call_site())))
    return tuple(asked)


def sites_of(name: str) -> frozenset[CallSite | str]:
    return frozenset(each.site for each in requests_of(name))


def crash_points(name: str, fault: Fault) -> list[Asked]:
    return [each for each in requests_of(name) if can_meet(each.request, fault)]


def tried(name: str, fault: Fault, every: int) -> list[Asked]:
    """Return a sample of those requests of this simulated roll-out that the fault can hit. The tests let the fault hit
    each request in the sample. For example, with `every=20`, the sample contains about one in 20 of these requests.

    Each fault is tried at least once: for each fault, the sample of at least one roll-out is not empty. If `every` is
    at most `WHOLE_SHARE`, each fault is also tried at each call site whose requests the fault can hit: the sample of at
    least one roll-out contains a request from this call site.
    """
    points = crash_points(name, fault)
    begin = zlib.crc32(f"{fault} {name}".encode())
    wanted = {each.number for each in points[begin % every :: every]}
    if name == _story_of(fault):
        wanted.add(points[begin % len(points)].number)
    if every <= WHOLE_SHARE:
        before = list(STORIES)[: list(STORIES).index(name)]
        known = {each.site for story in before for each in crash_points(story, fault)}
        wanted |= {
            site.number for site in {each.site: each for each in reversed(points) if each.site not in known}.values()
        }
    return [each for each in points if each.number in wanted]


def _story_of(fault: Fault) -> str:
    """Return the name of a simulated roll-out in which this fault can hit a request. The function `tried` always adds
    one such request to the sample of this roll-out. So each fault is tried at least once, however small the samples
    are.

    For the first fault in `Fault`, this function tries the first roll-out in `STORIES` first. For the second fault, it
    tries the second roll-out first, and so on. In this way the faults are spread over all roll-outs.
    """
    turn = list(Fault).index(fault)
    return next(name for name in [*list(STORIES)[turn % len(STORIES) :], *STORIES] if crash_points(name, fault))


def _taint_seconds(fault: Fault) -> float:
    """Return the time limit for careen's taint, in seconds since the host began to need a reboot. A fault that stops
    the server or suspends the agent delays the taint."""
    return 15.0 + FROZEN_SECONDS.get(fault, 60.0)


def test_the_simulated_roll_outs_send_a_request_from_every_call_site() -> None:
    """The test fails if there is a call site outside `NOT_HERE` from which no simulated roll-out sends a request. The
    test also fails if a simulated roll-out sends a request from a call site in `NOT_HERE`, or from a place that
    `all_call_sites` does not find."""
    reached = frozenset().union(*(sites_of(name) for name in STORIES))
    assert reached == all_call_sites() - NOT_HERE
    assert all(site.method in _READS for site in NOT_HERE - OF_MESSAGES.keys()), (
        "every call that writes must be reached by a simulated roll-out"
    )


def test_a_sample_of_crash_points_covers_each_call_with_each_fault() -> None:
    counted = {(name, fault): crash_points(name, fault) for name in STORIES for fault in Fault}
    every = min(EVERY, WHOLE_SHARE)
    chosen = {(name, fault): tried(name, fault, every) for name, fault in counted}
    have = {(each.site, fault) for (_, fault), points in counted.items() for each in points}
    assert {(each.site, fault) for (_, fault), points in chosen.items() for each in points} == have
    exist, covered = (sum(map(len, points.values())) for points in (counted, chosen))
    assert math.ceil(exist / every) <= covered <= exist
    now = sum(len(tried(name, fault, EVERY)) for name, fault in counted)
    places = len(all_call_sites() - NOT_HERE)
    print(f"crash points: tried {now} of {exist}, from {places} places of the source")


@pytest.mark.parametrize("every", [WHOLE_SHARE, EVERY, 10**9])
def test_every_sample_of_crash_points_covers_each_fault_and_each_roll_out(every: int) -> None:
    have = {(name, fault) for name in STORIES for fault in Fault if tried(name, fault, every)}
    assert {fault for _, fault in have} == set(Fault)
    assert {name for name, _ in have} == set(STORIES)


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
def test_a_simulated_roll_out_without_faults_breaks_no_rule(story: Story) -> None:
    world = played(story)
    assert not (broken := world.verdict(but=story.tolerated)), world.report(broken)
    assert world.now < 300 + story.asleep_seconds


@pytest.mark.timeout(0)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", STORIES)
def test_a_fault_at_any_request_breaks_no_rule(name: str, part: int) -> None:
    """The faults hit every request that the sample contains, including the first read and the last write of a
    roll-out."""
    pairs = [(fault, each) for fault in Fault for each in tried(name, fault, EVERY)][part::PARTS]
    assert pairs, "this test has no crash point to try: make PARTS smaller"
    faults: dict[int, list[Fault]] = {}
    for fault, each in pairs:
        faults.setdefault(each.number, []).append(fault)

    def judge(world: World, branch: Branch) -> str:
        broken = world.verdict(
            but=STORIES[name].tolerated,
            taint_seconds=_taint_seconds(branch.fault),
            answer_seconds=SLOW_SECONDS.get(branch.fault, 0.0),
        )
        return world.report(broken) if broken else ""

    judgements = judged(STORIES[name], faults, judge)
    assert judgements.keys() == {Branch(each.number, fault) for fault, each in pairs}
    for fault, each in pairs:
        wrong = judgements[Branch(each.number, fault)]
        assert not wrong, f"{fault.name} hits request {each.number}, {each.site}: {wrong}"
