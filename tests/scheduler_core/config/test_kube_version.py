"""Tests `KubeVersion`, which says for each behaviour of kube-scheduler whether a release has this behaviour. The tests
check each behaviour in all releases from 1.32 to 1.37."""

import sys

import pytest

from scheduler_core.config.kube_version import KubeVersion, UnsupportedKubeVersionError
from tests.architecture.source_tree import ROOT
from tests.patience import run

FIRST_RELEASE_WITH = {
    "balanced_allocation_skips_best_effort": 33,
    "status_resources_count": 33,
    "pops_from_backoff": 33,
    "async_preemption": 33,
    "sidecar_host_ports_count": 33,
    "nominated_pods_free_room": 33,
    "only_new_domains_requeue": 33,
    "attachments_requeue_by_driver": 33,
    "oversized_request_is_unresolvable": 34,
    "volume_attributes_class": 34,
    "dynamic_resources": 34,
    "only_the_gating_plugin_is_heard": 34,
    "pod_level_resources": 34,
    "dynamic_resources_score": 35,
    "shuffles_first_nodes": 35,
    "opportunistic_batching": 35,
    "missing_post_filter_clears_nomination": 35,
    "balanced_allocation_compares_without_pod": 36,
    "image_volumes_count": 36,
    "extended_resources_by_device_class": 36,
    "node_declared_features": 36,
    "pod_level_resize": 36,
    "device_binding_conditions": 36,
    "foreign_claim_refusal_has_capitals": 36,
    "nominated_pods_are_neighbours": 36,
    "own_labels_requeue": 36,
    "deleted_opponents_requeue": 36,
    "storage_capacity_scoring": 37,
    "volume_limit_scaling": 37,
    "image_volumes_share_the_score": 37,
    "node_name_limits_the_search": 37,
    "claims_may_need_node_operations": 37,
    "whole_sums_are_compared": 37,
    "preemption_is_announced": 37,
    "one_anti_affinity_term_requeues": 37,
    "batches_keep_the_last_node": 37,
    "gated_pods_are_nominated": 37,
    "gated_pods_are_flushed": 37,
    "deleted_claims_requeue": 37,
    "device_post_filter_is_silent": 37,
    "unstarted_victims_age_in_order": 37,
    "first_overdrawn_budget_ends_the_count": 37,
}
LAST_RELEASE_WITH = {
    "volume_affinity_refusal_says_conflict": 32,
    "taint_refusal_names_the_taint": 33,
    "read_write_once_pod_refusal_names_the_node": 33,
    "attempts_lengthen_backoff": 33,
    "portworx_disks_need_an_annotation": 35,
}


def version(minor: int) -> KubeVersion:
    return KubeVersion.parse(f"1.{minor}")


@pytest.mark.parametrize("minor", range(32, 38))
@pytest.mark.parametrize("behaviour", FIRST_RELEASE_WITH)
def test_each_newer_behaviour_is_on_from_its_first_release(behaviour: str, minor: int) -> None:
    assert getattr(version(minor), behaviour) is (minor >= FIRST_RELEASE_WITH[behaviour])


@pytest.mark.parametrize("minor", range(32, 38))
@pytest.mark.parametrize("behaviour", LAST_RELEASE_WITH)
def test_a_removed_behaviour_is_on_only_in_releases_before_its_removal(behaviour: str, minor: int) -> None:
    assert getattr(version(minor), behaviour) is (minor <= LAST_RELEASE_WITH[behaviour])


@pytest.mark.parametrize(
    ("minor", "rule"), [(32, "random"), (33, "random"), (34, "random"), (35, "heap"), (36, "heap"), (37, "heap")]
)
def test_ties_are_broken_at_random_until_1_34_and_by_heap_order_later(minor: int, rule: str) -> None:
    assert version(minor).tie_break == rule


@pytest.mark.parametrize("minor", range(32, 38))
def test_negative_namespace_selectors_match_all_from_1_34_to_1_36(minor: int) -> None:
    assert version(minor).negative_namespace_selector_matches_all is (34 <= minor <= 36)


def test_every_version_switch_is_tested() -> None:
    switches = {name for name, value in vars(KubeVersion).items() if type(value).__name__ == "cached_property"}
    assert switches == set(FIRST_RELEASE_WITH) | set(LAST_RELEASE_WITH) | {
        "tie_break",
        "negative_namespace_selector_matches_all",
    }


def test_a_table_test_fails_for_each_version_switch_that_is_turned() -> None:
    done = run([sys.executable, "-m", "tests.scheduler_core.config.turned_switches"], cwd=ROOT)
    assert (done.returncode, done.stdout.split()) == (0, []), done.stderr


@pytest.mark.parametrize("text", ["1.36", "v1.36", "v1.36.3", " 1.36.0 ", "v1.36.2-eks-abc", "v1.36.1+k3s1"])
def test_a_release_is_read_with_or_without_its_patch(text: str) -> None:
    assert str(KubeVersion.parse(text)) == "1.36"


@pytest.mark.parametrize("text", ["", "1", "1.x", "latest", "36"])
def test_an_invalid_version_is_refused(text: str) -> None:
    with pytest.raises(UnsupportedKubeVersionError, match="is not a Kubernetes version"):
        KubeVersion.parse(text)


@pytest.mark.parametrize("text", ["1.31", "1.38", "2.0"])
def test_the_error_for_an_unsupported_release_lists_the_supported_releases(text: str) -> None:
    with pytest.raises(UnsupportedKubeVersionError, match=r"the supported releases are 1\.32 to 1\.37"):
        KubeVersion.parse(text)
