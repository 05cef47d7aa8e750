from __future__ import annotations

from scheduler_core.snapshot.pods.affinity_groups import NO_GROUP, AffinityGroups, IncomingPod
from scheduler_core.testing.builders import PodBuilder, a_pod

WEB = IncomingPod("default", (), (("app", "web"),))


def groups_of(*builders: PodBuilder) -> tuple[AffinityGroups, list[int]]:
    groups = AffinityGroups()
    return groups, [groups.number_of(builder.build().spec) for builder in builders]


def test_pods_with_equal_affinity_terms_share_a_group() -> None:
    shy = a_pod("a").away_from("zone", {"app": "web"})
    _, numbers = groups_of(shy, shy.requesting(cpu="1"), a_pod("b"), a_pod("c").near("zone", {"app": "web"}))
    assert numbers == [0, 0, NO_GROUP, 1]


def test_equal_terms_in_different_namespaces_select_different_pods() -> None:
    _, numbers = groups_of(
        *[a_pod("a", namespace).away_from("zone", {"app": "web"}) for namespace in ("default", "ops")]
    )
    assert numbers == [0, 1]


def test_only_affinity_terms_that_select_the_incoming_pod_are_listed() -> None:
    groups, _ = groups_of(
        a_pod("0").away_from("zone", {"app": "web"}),
        a_pod("1").near("host", {"app": "web"}),
        a_pod("2").preferring_near("zone", {"app": "web"}, 7),
        a_pod("3").preferring_away_from("zone", {"app": "web"}, 7),
        a_pod("4").preferring_near("zone", {"app": "db"}, 9),
    )
    assert groups.pulls_on(WEB) == {
        0: (("keeps off", "zone", 1),),
        1: (("required", "host", 1),),
        2: (("preferred", "zone", 7),),
        3: (("preferred", "zone", -7),),
    }


def test_an_empty_label_selector_selects_every_pod_and_a_null_selector_selects_no_pod() -> None:
    """A selector with the operator Exists selects only pods that have the label."""
    selector = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
    groups, _ = groups_of(
        a_pod("0").away_from("zone", {}, labelSelector=selector),
        a_pod("1").away_from("zone", {}, labelSelector={}),
        a_pod("2").away_from("zone", {}, labelSelector=None),
    )
    assert groups.pulls_on(WEB) == {0: (("keeps off", "zone", 1),), 1: (("keeps off", "zone", 1),)}
    assert groups.pulls_on(IncomingPod("default", (), ())) == {1: (("keeps off", "zone", 1),)}


def test_namespace_selectors_check_the_incoming_pods_namespace() -> None:
    groups, _ = groups_of(
        a_pod("0", "ops").away_from("zone", {"app": "web"}, namespaceSelector={"matchLabels": {"team": "red"}})
    )
    assert groups.pulls_on(WEB) == {}
    assert groups.pulls_on(IncomingPod("default", (("team", "red"),), (("app", "web"),))) == {
        0: (("keeps off", "zone", 1),)
    }


def test_a_cached_result_includes_affinity_groups_that_were_added_later() -> None:
    groups, _ = groups_of(a_pod("0").away_from("zone", {"app": "web"}))
    assert list(groups.pulls_on(WEB)) == [0]
    groups.number_of(a_pod("1").away_from("host", {"app": "web"}).build().spec)
    assert groups.pulls_on(WEB) == {0: (("keeps off", "zone", 1),), 1: (("keeps off", "host", 1),)}
