"""Tests which Nodes are read by commands and agents, with and without the right to list Nodes.
`agent/startup/test_rights.py` tests the other effects of a missing right."""

from __future__ import annotations

from careen.cluster.agents_nodes import AgentsNodes
from careen.cluster.nodes import NODES
from tests.careen.cluster.conftest import Cluster


async def test_all_nodes_are_read_with_one_list_if_the_agent_may_list_nodes(cluster: Cluster) -> None:
    for name in ("n7", "n8"):
        cluster.server.seed({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    nodes = AgentsNodes(cluster.api, own="n7", namespace="careen", daemonset="careen")
    assert nodes.may_be_listed
    assert {"n7", "n8"} <= {node.name for node in await nodes.read()}


async def test_the_agents_own_node_is_read_if_the_agent_may_not_list_nodes(cluster: Cluster) -> None:
    for name in ("n7", "n8"):
        cluster.server.seed({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    cluster.api.withheld = lambda request: "no right" if request.path == NODES else ""
    nodes = AgentsNodes(cluster.api, own="n7", namespace="careen", daemonset="careen")
    assert not nodes.may_be_listed
    assert [node.name for node in await nodes.read()] == ["n7"]
