"""Tests how careen evicts one pod, and which outcome it returns for each answer of the server."""

from __future__ import annotations

from typing import Any

import pytest

from careen.cluster.evictions import Evicted, allowed_disruptions, evict, eviction
from careen.cluster.wire.errors import NotSent, Unclear
from careen.core.actions import EvictPod
from careen.core.facts.memory import EvictAnswer
from tests.careen.cluster.conftest import Cluster
from tests.careen.virtual_shell import Scripted, a_list, an_object, answer, api_on, methods, status

POD = EvictPod(namespace="shop", name="a", uid="u1")
WEBHOOK = 'admission webhook "guard.example.org" denied the request'
POLICY = (
    "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed expression: false"
)
NO_CLAIM = (
    "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'our-careen-evict-with-claim' with binding "
    "'our-careen-evict-with-claim' denied request: careen's agent may evict only while its Node holds a claim in "
    "the lock"
)
MAP_TOO_BIG = (
    'poddisruptionbudgets.policy "a" is forbidden: DisruptedPods map too big - too many evictions '
    "not confirmed by PDB controller"
)
NO_RIGHT = (
    'pods "a" is forbidden: User "agent" cannot create resource "pods/eviction" in API group "" in the namespace "shop"'
)
FAILING = (
    'Internal error occurred: failed calling webhook "guard.example.org": failed to call webhook: '
    "context deadline exceeded"
)
BUDGET = "Cannot evict pod as it would violate the pod's disruption budget."


async def test_an_eviction_contains_the_pods_uid_and_is_sent_once(cluster: Cluster) -> None:
    cluster.put_pod("a", metadata={"uid": "u1"})
    assert await evict(cluster.api, POD) == Evicted(answer=EvictAnswer.ACCEPTED)
    assert methods(cluster.wire.asked) == ["POST /api/v1/namespaces/shop/pods/a/eviction"]
    assert cluster.server.get("pods", "a", "shop") is None


@pytest.mark.parametrize(
    ("grace", "options"), [(None, {}), (0, {"gracePeriodSeconds": 0}), (30, {"gracePeriodSeconds": 30})]
)
def test_an_eviction_uses_the_pods_grace_period_by_default(grace: int | None, options: dict[str, Any]) -> None:
    pod = EvictPod(namespace="shop", name="a", uid="u1", grace_seconds=grace)
    assert eviction(pod, dry_run=False) == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "a", "namespace": "shop"},
        "deleteOptions": {"preconditions": {"uid": "u1"}, **options},
    }


def test_a_dry_run_is_also_marked_in_the_body_of_the_request() -> None:
    """A proxy may drop the query of the request. A server that finds `dryRun` neither in the query nor in the body
    really evicts the pod."""
    assert eviction(POD, dry_run=True)["deleteOptions"]["dryRun"] == ["All"]


async def test_a_dry_run_eviction_checks_budgets_and_evicts_nothing(cluster: Cluster) -> None:
    cluster.put_pod("a", metadata={"uid": "u1", "labels": {"app": "db"}})
    before = cluster.server.get("pods", "a", "shop")
    assert (await evict(cluster.api, POD, dry_run=True)).answer is EvictAnswer.ACCEPTED
    put_budget(cluster, allowed=0)
    assert (await evict(cluster.api, POD, dry_run=True)).answer is EvictAnswer.BUDGET
    assert cluster.server.get("pods", "a", "shop") == before
    assert [request.query for request in cluster.wire.asked] == [{"dryRun": "All"}] * 2


def put_budget(cluster: Cluster, name: str = "pdb", *, allowed: int) -> None:
    cluster.server.seed(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "shop", "generation": 1},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "db"}}},
            "status": {
                "observedGeneration": 1,
                "disruptionsAllowed": allowed,
                "currentHealthy": 1,
                "desiredHealthy": 1,
                "expectedPods": 1,
            },
        }
    )


async def test_the_allowed_disruptions_of_all_budgets_are_read_with_one_list() -> None:
    counted = {"status": {"disruptionsAllowed": 2}}
    budgets = [
        an_object("PodDisruptionBudget", "web", namespace="shop", **counted),
        an_object("PodDisruptionBudget", "new", namespace="data"),
    ]
    wire = Scripted(answer(200, a_list("PodDisruptionBudget", *budgets)))
    assert await allowed_disruptions(api_on(wire)) == {"shop/web": 2, "data/new": 0}
    assert methods(wire.asked) == ["GET /apis/policy/v1/poddisruptionbudgets"]


async def test_an_eviction_refused_by_a_budget_is_not_sent_again(cluster: Cluster) -> None:
    cluster.put_pod("a", metadata={"uid": "u1", "labels": {"app": "db"}})
    put_budget(cluster, allowed=0)
    outcome = await evict(cluster.api, POD)
    assert outcome.answer is EvictAnswer.BUDGET
    assert outcome.detail.startswith(BUDGET)
    assert len(cluster.wire.asked) == 1


async def test_an_eviction_is_refused_if_two_budgets_select_the_pod(cluster: Cluster) -> None:
    cluster.put_pod("a", metadata={"uid": "u1", "labels": {"app": "db"}})
    put_budget(cluster, "one", allowed=1)
    put_budget(cluster, "two", allowed=1)
    outcome = await evict(cluster.api, POD)
    assert outcome.answer is EvictAnswer.DENIED
    assert "more than one PodDisruptionBudget" in outcome.detail


async def test_a_new_pod_with_the_same_name_is_not_evicted(cluster: Cluster) -> None:
    cluster.put_pod("a", "n2", metadata={"uid": "u2"})
    assert (await evict(cluster.api, POD)).answer is EvictAnswer.GONE
    assert cluster.server.get("pods", "a", "shop") is not None


async def test_the_eviction_of_a_deleted_pod_returns_the_outcome_gone(cluster: Cluster) -> None:
    cluster.put_node("n1")
    assert (await evict(cluster.api, POD)).answer is EvictAnswer.GONE


@pytest.mark.parametrize(
    ("answers", "outcome"),
    [
        pytest.param(
            [status(404), answer(200, an_object("Pod", "a", namespace="shop", metadata={"uid": "u1"}))],
            EvictAnswer.BARRED,
            id="404 although the pod exists, because the server has no eviction API",
        ),
        pytest.param(
            [status(404), answer(200, an_object("Pod", "a", namespace="shop", metadata={"uid": "u2"}))],
            EvictAnswer.GONE,
            id="404, and a new pod has this name",
        ),
        pytest.param([status(404), status(404)], EvictAnswer.GONE, id="404 for the eviction and for the pod"),
        pytest.param([status(404), status(403)], EvictAnswer.UNCLEAR, id="404, and the pod cannot be read"),
        pytest.param(
            [status(409, "Conflict", "Precondition failed: UID in precondition: u1, UID in object meta: u2")],
            EvictAnswer.GONE,
            id="409 because the pod has another UID",
        ),
        pytest.param(
            [status(409, "Conflict", "the object has been modified")], EvictAnswer.UNCLEAR, id="409 for another reason"
        ),
        pytest.param(
            [status(429, "TooManyRequests", BUDGET, retry_after="10")],
            EvictAnswer.BUDGET,
            id="429 because of a disruption budget",
        ),
        pytest.param(
            [status(429, "TooManyRequests", "too many requests, please try again later", retry_after="1")],
            EvictAnswer.UNCLEAR,
            id="429 because the server is busy",
        ),
        pytest.param(
            [status(403, "Forbidden", "admission webhook said no")], EvictAnswer.DENIED, id="a webhook refuses with 403"
        ),
        pytest.param(
            [status(400, "BadRequest", "admission webhook said no")],
            EvictAnswer.DENIED,
            id="a webhook refuses with 400",
        ),
        pytest.param(
            [status(500, "InternalError", "failed calling webhook")],
            EvictAnswer.UNCLEAR,
            id="the server cannot call a webhook",
        ),
        pytest.param(
            [answer(201, {"kind": "Status", "status": "Success", "code": 201})],
            EvictAnswer.ACCEPTED,
            id="201 with a Status of success",
        ),
        pytest.param(
            [answer(200, {"kind": "Status", "status": "Success", "code": 200})],
            EvictAnswer.UNCLEAR,
            id="200 with a Status of success",
        ),
        pytest.param(
            [answer(200, {"kind": "Status", "status": "Failure", "code": 201})],
            EvictAnswer.UNCLEAR,
            id="200 with a Status of failure",
        ),
        pytest.param([answer(200, {})], EvictAnswer.UNCLEAR, id="200 without content"),
        pytest.param(
            [answer(200, an_object("Pod", "a", namespace="shop"))],
            EvictAnswer.UNCLEAR,
            id="200 with the pod instead of a Status",
        ),
        pytest.param(
            [answer(200, {"error": "login_required"})], EvictAnswer.UNCLEAR, id="200 with a login error in JSON"
        ),
        pytest.param(
            [answer(404, b"no such page"), answer(404, b"no such page")],
            EvictAnswer.UNCLEAR,
            id="a proxy answers every request with 404",
        ),
        pytest.param(
            [status(404), *[answer(200, {})] * 50],
            EvictAnswer.UNCLEAR,
            id="404, and the read of the pod returns 200 without content",
        ),
        pytest.param(
            [status(500, "InternalError", f"{WEBHOOK}: not on Fridays")],
            EvictAnswer.DENIED,
            id="a webhook refuses with 500",
        ),
        pytest.param(
            [status(429, "TooManyRequests", f"{WEBHOOK}: later")], EvictAnswer.DENIED, id="a webhook refuses with 429"
        ),
        pytest.param(
            [status(403, "", f"{WEBHOOK} without explanation")],
            EvictAnswer.DENIED,
            id="a webhook refuses without a reason",
        ),
        pytest.param([status(422, "Invalid", POLICY)], EvictAnswer.DENIED, id="an admission policy refuses with 422"),
        pytest.param(
            [status(403, "Forbidden", NO_CLAIM)],
            EvictAnswer.BARRED,
            id="an admission policy does not see the node's claim yet",
        ),
        pytest.param(
            [status(403, "Forbidden", MAP_TOO_BIG)], EvictAnswer.DENIED, id="the budget cannot record one more eviction"
        ),
        pytest.param(
            [status(403, "Forbidden", NO_RIGHT)], EvictAnswer.BARRED, id="the agent lacks the RBAC right to evict"
        ),
        pytest.param([status(403, "", "<html>blocked")], EvictAnswer.BARRED, id="a proxy answers with 403"),
        pytest.param(
            [status(401, "Unauthorized", "Unauthorized")], EvictAnswer.BARRED, id="the agent's token has expired"
        ),
        pytest.param(
            [status(400, "BadRequest", "the object provided is unrecognized")],
            EvictAnswer.BARRED,
            id="400 because the server does not recognise the object",
        ),
        pytest.param(
            [status(405, "MethodNotAllowed", "the server does not allow this method")],
            EvictAnswer.BARRED,
            id="the server does not allow the method",
        ),
        pytest.param(
            [status(504, "Timeout", 'couldn\'t update PodDisruptionBudget "a" due to conflicts')],
            EvictAnswer.UNCLEAR,
            id="504 because of conflicting writes of the disruption budget",
        ),
        pytest.param([status(500, "InternalError", FAILING)], EvictAnswer.UNCLEAR, id="a webhook times out"),
        pytest.param([Unclear("reset")], EvictAnswer.UNCLEAR, id="the answer is lost"),
        pytest.param([NotSent("refused")] * 9, EvictAnswer.UNCLEAR, id="the connection is refused"),
    ],
)
async def test_each_answer_to_an_eviction_gives_the_correct_outcome(answers: list[Any], outcome: EvictAnswer) -> None:
    assert (await evict(api_on(Scripted(*answers)), POD)).answer is outcome


async def test_the_outcome_of_an_eviction_contains_the_servers_message_and_retry_after_time() -> None:
    outcome = await evict(api_on(Scripted(status(429, "TooManyRequests", BUDGET, retry_after="10"))), POD)
    assert outcome == Evicted(answer=EvictAnswer.BUDGET, detail=BUDGET, retry_after_seconds=10.0)
