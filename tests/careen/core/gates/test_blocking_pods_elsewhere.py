"""The gate for pods that block the reboots of a group of nodes or of every node."""

from __future__ import annotations

from typing import Any

import pytest

from careen.core.decision import Refusal
from careen.core.facts.observation import NOT_ASKED, PlacedPod, Unknown
from careen.core.facts.phases import Evidence
from careen.core.facts.policy import BlockingPods, BlockingScope
from careen.core.facts.reasons import Code
from careen.core.facts.selectors import Selector
from careen.core.gates.blocking_pods_elsewhere import blocking_pods_elsewhere
from careen.core.gates.question import When
from tests.careen.core.builders import a_fleet, a_node, a_policy, a_situation

POOL = "example.com/pool"
BACKUP = BlockingPods(name="backup", selector=Selector.parse("app=backup"), scope=BlockingScope.CLUSTER)
DB = BlockingPods(
    name="db", selector=Selector.parse("app=db"), scope=BlockingScope.GROUP, group=POOL, longest_seconds=7200
)
HERE = BlockingPods(name="here", selector=Selector.parse("app=x"))


def of_pool(name: str, pool: str | None = "a") -> Any:
    return a_node(name, labels={} if pool is None else {POOL: pool})


FLEET = a_fleet(of_pool("n1"), of_pool("n2"), of_pool("n3", "b"), of_pool("n4", None))


def pod(node: str, rule: str, name: str = "p") -> PlacedPod:
    return PlacedPod(title=f"shop/{name}", node=node, rule=rule)


def refused(*rules: BlockingPods, node: Any = None, when: When = When.READY, **changes: Any) -> Refusal | None:
    changes = {"fleet": FLEET, **changes}
    situation = a_situation(node or of_pool("n1"), a_policy(blocking_pods=rules), **changes)
    return blocking_pods_elsewhere.ask(situation, when)


@pytest.mark.parametrize(
    ("pods", "node", "sentence"),
    [
        pytest.param((), "n1", None, id="no pod matches a selector"),
        pytest.param(
            (pod("n3", "backup"),),
            "n1",
            "shop/p on n3 matches app=backup (backup); such a pod forbids the reboot of every node of the cluster",
            id="a pod on any node blocks the whole cluster",
        ),
        pytest.param(
            (pod("", "backup"),),
            "n1",
            "shop/p matches app=backup (backup); such a pod forbids the reboot of every node of the cluster",
            id="a pod that is not scheduled yet blocks the whole cluster",
        ),
        pytest.param(
            (pod("n2", "db", "b"), pod("n1", "db", "a"), pod("n3", "db")),
            "n1",
            f"shop/a on n1 and 1 more matches app=db (db); such a pod forbids the reboot of every node with {POOL}=a",
            id="a pod on another node of the same group",
        ),
        pytest.param(
            (pod("n3", "db"), pod("n4", "db"), pod("", "db"), pod("gone", "db")),
            "n1",
            None,
            id="a pod on a node of another group",
        ),
        pytest.param(
            (pod("n1", "db"),), "n4", None, id="a pod on a node of a group to which this node does not belong"
        ),
        pytest.param(
            (pod("n4", "db"),),
            "n4",
            f"shop/p on n4 matches app=db (db); such a pod forbids the reboot of every node without {POOL}",
            id="this node and the pod's node both lack the group's label",
        ),
    ],
)
@pytest.mark.parametrize("when", list(When))
def test_a_pod_blocks_the_reboots_of_the_nodes_in_its_scope(
    pods: tuple[PlacedPod, ...], node: str, sentence: str | None, when: When
) -> None:
    view = next(each for each in FLEET.nodes if each.name == node)
    found = refused(DB, BACKUP, HERE, node=view, blockers=pods, when=when)
    assert (found.sentence if found else None) == sentence


@pytest.mark.parametrize(("rule", "of_cluster", "longest"), [(BACKUP, True, 0), (DB, False, 7200)])
def test_a_refusal_copies_the_scope_and_the_time_limit_of_the_setting(
    rule: BlockingPods, of_cluster: bool, longest: float
) -> None:
    """The setting is an entry of --blocking-pods. If the entry has the scope `cluster`, the refusal says that the gate
    refuses every node. If a reboot is refused for longer than the entry's time limit, an alert fires. The limit 0 means
    that no alert fires."""
    found = refused(rule, blockers=(pod("n2", rule.name),))
    assert found is not None
    assert (found.code, found.is_of_cluster, found.longest_seconds) == (Code.BLOCKING_POD, of_cluster, longest)


@pytest.mark.parametrize("blockers", [NOT_ASKED, Unknown("503")])
def test_an_unknown_list_of_blocking_pods_refuses_the_reboot_if_a_setting_needs_the_list(blockers: Any) -> None:
    found = refused(BACKUP, blockers=blockers)
    assert found is not None
    assert (found.code, found.is_of_cluster) == (Code.PODS_UNKNOWN, True)
    assert refused(HERE, blockers=blockers) is None
    assert refused(blockers=blockers) is None


@pytest.mark.parametrize("fleet", [NOT_ASKED, Unknown("503")])
def test_while_the_list_of_nodes_is_unknown_only_nodes_with_the_group_label_are_refused(fleet: Any) -> None:
    """All nodes with the same value of the group label form a group. A node without the label is alone in its group, so
    its agent does not need the list."""
    found = refused(DB, blockers=(pod("n3", "db"),), fleet=fleet)
    assert found is not None
    assert found.code is Code.FLEET_UNKNOWN
    assert refused(DB, blockers=(), fleet=fleet) is None
    assert refused(DB, node=of_pool("n4", None), blockers=(pod("n3", "db"),), fleet=fleet) is None


@pytest.mark.parametrize(
    ("rules", "needed"),
    [
        ((), frozenset()),
        ((HERE,), frozenset()),
        ((BACKUP, HERE), {Evidence.BLOCKERS}),
        ((BACKUP, DB), {Evidence.BLOCKERS, Evidence.FLEET}),
    ],
)
def test_the_gate_reads_only_the_facts_that_its_settings_need(rules: tuple[BlockingPods, ...], needed: Any) -> None:
    assert blocking_pods_elsewhere.needs(a_policy(blocking_pods=rules)) == needed
