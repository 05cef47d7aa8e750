"""Tests `careen scheduler` on an API server that is slow, breaks watches, answers nonsense, or refuses. No pod is lost
or bound twice, and no node has more than it can allocate.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager

import pytest

from tests.cluster.harness.api import Object
from tests.cluster.harness.machines.proxy import LOST, Answer, Call, Proxy
from tests.cluster.harness.machines.schedulers import Schedulers, condition
from tests.patience import wait_until

pytestmark = pytest.mark.cluster

NODES, CPUS = 20, 4
GONE = Answer(
    status=410,
    body=b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version",'
    b'"reason":"Expired","code":410}',
)
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"


@pytest.fixture
def proxy(schedulers: Schedulers) -> Iterator[Proxy]:
    with closing(Proxy(schedulers.plane.server, schedulers.plane.certificate_authority)) as proxy:
        yield proxy


def binds_all(schedulers: Schedulers, proxy: Proxy, *, met: Callable[[], bool] = lambda: True) -> None:
    """The cluster has room for exactly the pods that are created, in three bursts and with some deletions. The last
    burst waits for the fault that was `met`."""
    schedulers.nodes(NODES, cpus=CPUS)
    schedulers.start(server=proxy.url)
    schedulers.pods(f"a{number}" for number in range(50))
    wait_until(lambda: len(schedulers.bindings()) >= 10)
    for number in range(30):
        schedulers.delete(f"a{number}")
    schedulers.pods(f"b{number}" for number in range(30))
    wait_until(lambda: len(schedulers.bindings()) >= 40)
    wait_until(met)
    schedulers.pods(f"c{number}" for number in range(NODES * CPUS - 50))
    schedulers.all_bound()
    schedulers.judge()


def test_every_pod_is_bound_once_although_each_answer_takes_200_ms(schedulers: Schedulers, proxy: Proxy) -> None:
    def slow(_call: Call, _forward: Callable[[], Answer]) -> None:
        time.sleep(0.2)

    proxy.rule = slow
    binds_all(schedulers, proxy)


def test_every_pod_is_bound_once_although_watches_break_every_second(schedulers: Schedulers, proxy: Proxy) -> None:
    proxy.watch_seconds = 1.0
    binds_all(schedulers, proxy)


def test_every_pod_is_bound_once_although_watches_are_often_too_old(schedulers: Schedulers, proxy: Proxy) -> None:
    """Every second watch of a kind is answered with 410, so the kind is listed again and again."""
    seen: Counter[str] = Counter()

    def often_gone(call: Call) -> Answer | None:
        seen[call.path] += 1
        return GONE if seen[call.path] % 2 == 0 else None

    proxy.watch_seconds = 1.0
    proxy.watch_rule = often_gone
    binds_all(schedulers, proxy, met=lambda: seen["/api/v1/pods"] >= 3)


@pytest.mark.parametrize("seed", [1, 2])
def test_every_pod_is_bound_once_although_answers_to_writes_are_lost_or_empty(
    schedulers: Schedulers, proxy: Proxy, seed: int
) -> None:
    """A third of the writes is answered with `{}`, a server error or not at all. Half of these have reached the
    server."""
    chance, met = random.Random(seed), Counter[int]()

    def spoilt(call: Call, forward: Callable[[], Answer]) -> Answer | None:
        if call.method == "GET" or chance.random() > 0.33:
            return None
        if chance.random() < 0.5:
            forward()
        answer = chance.choice([LOST, Answer(status=200, body=b"{}"), Answer(status=500, body=b"oops")])
        met[answer.status] += 1
        return answer

    proxy.rule = spoilt
    binds_all(schedulers, proxy)
    assert len(met) == 3, met


def test_pods_whose_binding_a_policy_refuses_wait_and_delay_no_other(schedulers: Schedulers) -> None:
    with refusal(schedulers, "pods/binding", "!object.metadata.name.startsWith('upload-')"):
        schedulers.nodes(5)
        schedulers.start()
        schedulers.pods([f"upload-{number}" for number in range(4)])
        wait_until(lambda: all("reason" in condition(each) for each in schedulers.listed().values()))
        said = condition(schedulers.listed()["upload-0"])
        assert said["reason"] == "SchedulerError"
        assert "binding rejected" in said["message"]
        assert "not today" in said["message"]
        schedulers.pods(f"web-{number}" for number in range(16))
        wait_until(lambda: len(schedulers.unbound()) == 4)
    schedulers.all_bound()
    schedulers.judge()


def test_pods_are_bound_although_every_event_is_refused(schedulers: Schedulers) -> None:
    with refusal(schedulers, "events", "request.namespace != 'shop'"):
        schedulers.nodes(5)
        schedulers.start()
        schedulers.pods(f"web-{number}" for number in range(20))
        schedulers.all_bound()
        wait_until(lambda: _codes_of_events(schedulers) == {422: 20}, lambda: str(_codes_of_events(schedulers)))
    schedulers.judge()


def _codes_of_events(schedulers: Schedulers) -> Counter[int]:
    """Return how often the API server gave each answer to a request about an Event."""
    return Counter(
        each["responseStatus"]["code"]
        for each in schedulers.requests()
        if each["objectRef"]["resource"] == "events" and each["objectRef"]["namespace"] == "shop"
    )


@contextmanager
def refusal(schedulers: Schedulers, resource: str, allowed: str) -> Iterator[None]:
    """While the context lasts, the API server refuses to create such objects unless the CEL expression is true."""
    admin = schedulers.plane.admin
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": [resource]}
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "not-today"},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": allowed, "message": "not today"}],
        },
    }
    binding = {**policy, "kind": "ValidatingAdmissionPolicyBinding"}
    binding["spec"] = {"policyName": "not-today", "validationActions": ["Deny"]}
    admin.create(f"{POLICIES}ies", policy)
    admin.create(f"{POLICIES}ybindings", binding)
    try:
        wait_until(lambda: "not today" in schedulers.why_refused(*_PROBES[resource]))
        yield
    finally:
        for plural in ("ybindings", "ies"):
            admin.delete(f"{POLICIES}{plural}/not-today")


_PROBE = {"metadata": {"name": "upload-probe", "namespace": "shop"}}
_PROBES: Mapping[str, tuple[str, Object]] = {
    "pods/binding": (
        "/api/v1/namespaces/shop/pods/upload-probe/binding",
        {**_PROBE, "apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": "nowhere"}},
    ),
    "events": (
        "/api/v1/namespaces/shop/events",
        {**_PROBE, "apiVersion": "v1", "kind": "Event", "involvedObject": {"namespace": "shop"}},
    ),
}
