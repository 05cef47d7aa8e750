"""Tests injected faults: the same seed gives the same faults, and no fault breaks a guarantee of the API."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from drydock.server.faults import Fault, FaultKind, FaultRates, no_faults, seeded_faults
from drydock.server.kinds.resources import resource_named
from drydock.server.requests.info import RequestInfo
from drydock.server.testing import RunningServer
from tests.patience import wait_until

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}


def asked(verb: str) -> RequestInfo:
    return RequestInfo(verb=verb, resource=resource_named("nodes"), namespace="", name="n1", subresource="")


def drawn(seed: int, verb: str, count: int = 400, **options: Any) -> list[Fault | None]:
    plan = seeded_faults(seed, suffers=lambda user: user == "agent", **options)
    return [plan(asked(verb), "agent", False) for _ in range(count)]


def test_the_seed_determines_the_injected_faults() -> None:
    assert drawn(1, "patch") == drawn(1, "patch")
    assert drawn(1, "patch") != drawn(2, "patch")


def test_faults_are_injected_only_into_requests_of_the_chosen_users() -> None:
    plan = seeded_faults(1, suffers=lambda user: user == "agent")
    assert {plan(asked("patch"), "person", False) for _ in range(400)} == {None}


@pytest.mark.parametrize(
    ("verb", "never"),
    [
        (
            "get",
            {FaultKind.LOST_AFTER, FaultKind.LATE, FaultKind.ERROR_AFTER, FaultKind.CONFLICT, FaultKind.STALE_LIST},
        ),
        (
            "list",
            {FaultKind.LOST_AFTER, FaultKind.LATE, FaultKind.ERROR_AFTER, FaultKind.CONFLICT, FaultKind.STALE_LIST},
        ),
        ("create", {FaultKind.CONFLICT, FaultKind.STALE_LIST}),
        ("patch", {FaultKind.STALE_LIST}),
    ],
)
def test_a_request_gets_only_faults_that_a_real_server_can_cause(verb: str, never: set[FaultKind]) -> None:
    kinds = {fault.kind for fault in drawn(3, verb, 3000) if fault is not None}
    assert kinds == set(FaultKind) - never


def test_faults_are_injected_at_the_given_rates() -> None:
    faults = drawn(
        5,
        "patch",
        5000,
        rates=FaultRates(
            slow=0, lost_before=0, lost_after=0.5, late=0, error_after=0, conflict=0, throttled=0, server_error=0
        ),
    )
    assert 2300 < sum(fault is not None for fault in faults) < 2700


def request(server: RunningServer, method: str, path: str, body: Any = None) -> tuple[int, Any, Any]:
    data = None if body is None else json.dumps(body).encode()
    made = urllib.request.Request(
        server.url + path, data=data, method=method, headers={"Content-Type": "application/merge-patch+json"}
    )
    try:
        with urllib.request.urlopen(made) as answer:
            return answer.status, json.loads(answer.read()), answer.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read()), error.headers


LABEL = {"metadata": {"labels": {"x": "1"}}}


@pytest.mark.parametrize(("kind", "is_written"), [(FaultKind.LOST_BEFORE, False), (FaultKind.LOST_AFTER, True)])
def test_a_lost_answer_does_not_show_whether_the_write_was_stored(
    server: RunningServer, kind: FaultKind, is_written: bool
) -> None:
    server.seed(NODE)
    server.api.plan = lambda _info, _user, _stale: Fault(kind=kind)
    with pytest.raises((urllib.error.URLError, ConnectionError)):
        request(server, "PATCH", "/api/v1/nodes/n1", LABEL)
    assert ("labels" in (server.get("nodes", "n1") or {})["metadata"]) is is_written
    assert (server.api.requests[-1].code, server.api.requests[-1].fault) == (0, kind.value)


def test_a_delayed_write_is_applied_after_its_client_has_given_up(server: RunningServer) -> None:
    server.seed(NODE)
    server.api.plan = lambda _info, _user, _stale: Fault(kind=FaultKind.LATE, seconds=0.3)
    with pytest.raises((urllib.error.URLError, ConnectionError)):
        request(server, "PATCH", "/api/v1/nodes/n1", LABEL)
    given_up = server.store.clock()
    server.api.plan = no_faults
    wait_until(lambda: "labels" in (server.get("nodes", "n1") or {})["metadata"])
    assert server.store.journal[-1].at > given_up
    assert request(server, "GET", "/api/v1/nodes/n1")[1]["metadata"]["labels"] == {"x": "1"}


def test_a_delayed_write_with_an_old_resource_version_changes_nothing(server: RunningServer) -> None:
    """A client that gets no response to its write sends another write. The second write changes the resourceVersion, so
    the delayed first write fails.
    """
    (stored,) = server.seed(NODE)
    server.api.plan = lambda _info, _user, _stale: Fault(kind=FaultKind.LATE, seconds=0.3)
    with pytest.raises((urllib.error.URLError, ConnectionError)):
        request(
            server,
            "PATCH",
            "/api/v1/nodes/n1",
            {"metadata": {"resourceVersion": str(stored.version), "labels": {"late": "1"}}},
        )
    server.api.plan = no_faults
    assert request(server, "PATCH", "/api/v1/nodes/n1", LABEL)[0] == 200
    wait_until(lambda: not server.api._late)
    assert request(server, "GET", "/api/v1/nodes/n1")[1]["metadata"]["labels"] == {"x": "1"}


def test_an_injected_error_after_the_write_does_not_undo_the_write(server: RunningServer) -> None:
    server.seed(NODE)
    server.api.plan = lambda _info, _user, _stale: Fault(kind=FaultKind.ERROR_AFTER)
    assert request(server, "PATCH", "/api/v1/nodes/n1", LABEL)[0] == 504
    assert (server.get("nodes", "n1") or {})["metadata"]["labels"] == {"x": "1"}


@pytest.mark.parametrize(
    ("fault", "code", "reason"),
    [
        (Fault(kind=FaultKind.CONFLICT), 409, "Conflict"),
        (Fault(kind=FaultKind.THROTTLED, seconds=2), 429, "TooManyRequests"),
        (Fault(kind=FaultKind.SERVER_ERROR, code=503), 503, "ServiceUnavailable"),
        (Fault(kind=FaultKind.SERVER_ERROR, code=500), 500, "InternalError"),
    ],
)
def test_an_injected_error_before_the_write_changes_nothing(
    server: RunningServer, fault: Fault, code: int, reason: str
) -> None:
    server.seed(NODE)
    server.api.plan = lambda _info, _user, _stale: fault
    answer = request(server, "PATCH", "/api/v1/nodes/n1", LABEL)
    assert (answer[0], answer[1]["reason"], answer[2].get("Retry-After")) == (
        code,
        reason,
        "2" if code == 429 else None,
    )
    assert "labels" not in (server.get("nodes", "n1") or {})["metadata"]


def test_a_delayed_response_contains_the_requested_node(server: RunningServer) -> None:
    server.seed(NODE)
    server.api.plan = lambda _info, _user, _stale: Fault(kind=FaultKind.SLOW, seconds=0.05)
    assert request(server, "GET", "/api/v1/nodes/n1")[1]["metadata"]["name"] == "n1"
    assert server.api.requests[-1].seconds >= 0.05


def test_only_clients_that_accept_old_versions_get_a_stale_list(server: RunningServer) -> None:
    """A client that sends resourceVersion=0 accepts any version. Without resourceVersion the client must get the newest
    list.
    """
    clock = [0.0]
    server.store.clock = lambda: clock[0]
    server.seed(NODE)
    clock[0] = 100.0
    server.seed({**NODE, "metadata": {"name": "n2"}})
    server.api.plan = lambda _info, _user, may_be_stale: (
        Fault(kind=FaultKind.STALE_LIST, seconds=10) if may_be_stale else None
    )
    assert [n["metadata"]["name"] for n in request(server, "GET", "/api/v1/nodes?resourceVersion=0")[1]["items"]] == [
        "n1"
    ]
    assert [n["metadata"]["name"] for n in request(server, "GET", "/api/v1/nodes")[1]["items"]] == ["n1", "n2"]
