"""Tests that the policies of manifests/admission allow an agent everything that it needs, and do not affect other
accounts.
"""

from __future__ import annotations

import json

import pytest

from careen.core.facts import keys
from careen.core.node import marks
from careen.core.node.marks import Proof
from tests.cluster.harness.api import Object
from tests.cluster.harness.cluster import CAREEN, LOCK_ANNOTATION
from tests.cluster.harness.guards import PARAMETERS, POLICIES, Guarded, annotated, evict, refusal
from tests.cluster.harness.workloads import bare_pod

pytestmark = pytest.mark.cluster


OWN_ANNOTATIONS = [key for key, mark in marks.ANNOTATIONS.items() if mark.proof is not Proof.PERSON]


@pytest.mark.parametrize("key", OWN_ANNOTATIONS)
def test_an_agents_token_can_set_and_remove_each_of_careens_annotations(scene: Guarded, key: str) -> None:
    node = f"/api/v1/nodes/{scene.own}"
    scene.agent.patch(node, annotated(**{key: "x"}))
    scene.agent.patch(node, annotated(**{key: None}))


@pytest.mark.parametrize("key", sorted(marks.LABELS))
def test_an_agents_token_can_set_and_remove_each_of_careens_labels(scene: Guarded, key: str) -> None:
    node = f"/api/v1/nodes/{scene.own}"
    scene.agent.patch(node, {"metadata": {"labels": {key: "x"}}})
    scene.agent.patch(node, {"metadata": {"labels": {key: None}}})


def test_an_agents_token_can_cordon_and_taint_a_node_that_has_other_taints(scene: Guarded) -> None:
    node, ours = f"/api/v1/nodes/{scene.own}", {"key": keys.DEFAULT_TAINT_KEY, "effect": keys.TAINT_EFFECT}
    theirs = {"key": "example.org/theirs", "effect": "NoSchedule", "value": "x"}
    scene.story.admin.patch(node, {"spec": {"taints": [theirs]}})
    scene.agent.patch(
        node, {"spec": {"taints": [theirs, ours], "unschedulable": True}, **annotated(**{keys.PHASE: "x"})}
    )
    tainted = scene.story.wait_for(
        "the node controller has added the cordon's taint",
        lambda: next((each for each in [scene.story.admin.get(node)["spec"]["taints"]] if len(each) == 3), None),
    )
    without = [each for each in tainted if each["key"] != keys.DEFAULT_TAINT_KEY]
    scene.agent.patch(node, {"spec": {"taints": without, "unschedulable": None}, **annotated(**{keys.PHASE: None})})
    scene.story.admin.patch(node, {"spec": {"taints": None}})


@pytest.mark.parametrize("key", [keys.RETRY, keys.REQUEST, keys.RECHECK])
def test_an_agents_token_can_remove_the_annotation_of_a_request_that_careen_has_fulfilled(
    scene: Guarded, key: str
) -> None:
    node = f"/api/v1/nodes/{scene.own}"
    scene.story.admin.patch(node, annotated(**{key: "2026-01-01T00:00:00Z"}))
    scene.agent.patch(node, annotated(**{key: None}))


def test_the_policies_allow_keys_that_an_annotation_of_the_daemonset_lists(scene: Guarded) -> None:
    """The policies refuse other taints, labels and annotations until an annotation of the DaemonSet lists them."""
    story, node = scene.story, f"/api/v1/nodes/{scene.own}?dryRun=All"
    wanted: dict[str, Object] = {
        "taints": {"spec": {"taints": [{"key": "example.org/soft", "effect": "PreferNoSchedule"}]}},
        "labels": {"metadata": {"labels": {"example.org/label": "x"}}},
        "annotations": annotated(**{"example.org/annotation": "x"}),
    }
    listed = {
        "taints": "a, example.org/soft",
        "labels": "example.org/label",
        "annotations": "b , example.org/annotation",
    }
    for name, patch in wanted.items():
        assert f"admission.careen.dev/{name}" in refusal(lambda patch=patch: scene.agent.patch(node, patch))  # type: ignore[misc]
        story.admin.patch(CAREEN.path, annotated(**{f"admission.careen.dev/{name}": listed[name]}))
        story.wait_for(
            "the policy allows the patch", lambda patch=patch: not refusal(lambda: scene.agent.patch(node, patch))
        )  # type: ignore[misc]
    story.admin.patch(CAREEN.path, PARAMETERS)


LOCKS = {
    "no claim in the lock": None,
    "another node's claim": '{"nodeID":"n01","metadata":{"unschedulable":false},"TTL":0,"locks":[{"nodeID":"n01"}]}',
    "kured's format with white space": '{ "nodeID" : "n01" }',
    "an unreadable entry": '{"nodeID":"unreadable entry","locks":[{"boot":7}]}',
}


@pytest.mark.parametrize("before", LOCKS.values(), ids=LOCKS)
def test_an_agents_token_can_take_and_release_its_claim(scene: Guarded, before: str | None) -> None:
    scene.story.write_lock(before)
    others = json.loads(before).get("locks", [{"nodeID": "n01"}]) if before else []
    first = others[0].get("nodeID", "unreadable entry") if others else scene.own
    claimed = {"nodeID": first, "locks": [*others, {"nodeID": scene.own, "id": "1"}], "next": ["n01"]}
    for text in (compact(claimed), None if before is None else compact(json.loads(before)), None):
        scene.agent.patch(CAREEN.path, annotated(**{LOCK_ANNOTATION: text}))


def test_the_policies_accept_a_lock_of_the_largest_size(scene: Guarded) -> None:
    """If an expression of a policy costs too much, the API server stops its evaluation and refuses the request."""
    story = scene.story
    claims = [{"nodeID": f"node-{number:04}.example.org", "id": "x" * 140, "TTL": 0} for number in range(999)]
    story.write_lock(compact({"nodeID": claims[0]["nodeID"], "locks": claims}))
    mine = {"nodeID": claims[0]["nodeID"], "locks": [*claims, {"nodeID": scene.own}]}
    scene.agent.patch(CAREEN.path, annotated(**{LOCK_ANNOTATION: compact(mine)}))
    story.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}, bare_pod("late", scene.own))
    story.wait_for(
        "the API server accepts an eviction by the agent, whose claim is the last of 1,000 claims",
        lambda: not refusal(lambda: evict(scene.agent, "shop", "late")),
    )
    fewer = {"nodeID": claims[0]["nodeID"], "locks": claims[:800]}
    story.write_lock(compact(fewer))
    gone = {"nodeID": claims[1]["nodeID"], "locks": claims[1:800]}
    scene.agent.patch(CAREEN.path, annotated(**{LOCK_ANNOTATION: compact(gone)}))
    story.write_lock(None)


def test_the_policies_accept_a_paused_lock_with_a_thousand_entries(scene: Guarded) -> None:
    rows = [{"nodeID": "manual", "metadata": {"unschedulable": False}, "TTL": 0}] * 1_000
    scene.story.write_lock(compact({"nodeID": "manual", "locks": rows}))
    mine = {"nodeID": "manual", "locks": [{"nodeID": scene.own}, *rows[1:]]}
    scene.agent.patch(CAREEN.path, annotated(**{LOCK_ANNOTATION: compact(mine)}))
    scene.story.write_lock(None)


def test_the_policies_accept_a_node_with_the_largest_annotations(scene: Guarded) -> None:
    node = f"/api/v1/nodes/{scene.own}"
    many = {f"example.org/note-{number:04}": "x" * 80 for number in range(2_000)}
    scene.story.admin.patch(node, annotated(**many))
    scene.agent.patch(node, annotated(**{keys.PHASE: "x"}))
    scene.agent.patch(node, annotated(**{keys.PHASE: None}))
    scene.story.admin.patch(node, annotated(**dict.fromkeys(many)))


def test_an_agents_token_can_write_a_paused_lock_without_ending_the_pause(scene: Guarded) -> None:
    scene.story.write_lock('{"nodeID": "manual", "reason": "a \\"nodeID\\": \\"n01\\" in a text, \u00e4"}')
    after = {"nodeID": "manual", "locks": [{"nodeID": "manual"}, {"nodeID": scene.own}], "reason": '{"nodeID":"n01"}'}
    scene.agent.patch(CAREEN.path, annotated(**{LOCK_ANNOTATION: compact(after)}))
    scene.story.write_lock(None)


def test_an_agents_token_can_dry_run_an_eviction_although_the_node_has_no_claim_in_the_lock(scene: Guarded) -> None:
    """After the agent has written a claim of the node into the lock, the API server also accepts an eviction that is
    not a dry run."""
    story, dry = scene.story, {"query": "?dryRun=All", "dryRun": ["All"]}
    story.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}, bare_pod("guest", scene.own))
    evict(scene.agent, "shop", "guest", **dry)
    scene.agent.patch(CAREEN.path, annotated(**{LOCK_ANNOTATION: lock_of(scene.own)}))
    # The policies learn of the claim a moment later. An agent repeats the request as after a webhook's refusal.
    story.wait_for("the policy sees the claim", lambda: not refusal(lambda: evict(scene.agent, "shop", "guest")))
    story.write_lock(None)


def lock_of(node: str) -> str:
    return compact({"nodeID": node, "locks": [{"nodeID": node, "id": "1"}]})


def compact(lock: object) -> str:
    """As agents write it, kured's too."""
    return json.dumps(lock, separators=(",", ":"))


def test_the_policies_do_not_restrict_other_accounts(scene: Guarded) -> None:
    story = scene.story
    story.admin.patch(f"/api/v1/nodes/{scene.own}", {"metadata": {"labels": {"topology.kubernetes.io/zone": "zone-x"}}})
    story.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}, bare_pod("visitor", scene.own))
    evict(story.admin, "shop", "visitor")


def test_the_api_server_gives_no_warnings_about_the_policies(scene: Guarded) -> None:
    for policy in POLICIES:
        if policy["kind"] == "ValidatingAdmissionPolicy":
            path = f"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/{policy['metadata']['name']}"
            status = scene.story.wait_for(
                "the API server has checked the policy", lambda path=path: scene.story.admin.get(path).get("status")
            )  # type: ignore[misc]
            assert not status.get("typeChecking", {}).get("expressionWarnings"), status
