"""The agent reports each missing RBAC right once, with the rule that grants the right. The agent sends no further
requests that need a missing right."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from careen.agent.startup.rights import Rights, asked_for_by, rules
from careen.agent.telemetry.metrics import Metrics
from careen.cluster.access import OptionalRight, Right, needed_rights
from careen.cluster.agents_nodes import AgentsNodes
from careen.cluster.events import Subject, post_event
from careen.cluster.foreign import find_foreign
from careen.cluster.lock_store import LockStore
from careen.cluster.nodes import list_nodes
from careen.cluster.pods import Owner, read_owners
from careen.cluster.wire.client import connect
from careen.cluster.wire.errors import Unclear, Withheld
from careen.cluster.wire.writes import Landed, Rejected, Stale
from careen.core.actions import WriteLock
from careen.settings.sources import resolve
from drydock.server.testing import RunningServer, running_server
from tests.architecture.source_tree import ROOT
from tests.careen.virtual_shell import Meddling, VirtualClock, api_on

NEEDED = needed_rights(
    node="n1", namespace="kube-system", daemonset="kured", config_map="careen", forecast=True, sleeps=True
)


def kureds_grants() -> set[tuple[str, str, str, str]]:
    """Return the rules of kured's two roles as tuples of verb, group, resource and name."""
    return grants_of("tests/cluster/kured/kured-rbac.yaml")


def grants_of(path: str) -> set[tuple[str, str, str, str]]:
    roles = [
        each
        for each in yaml.safe_load_all((ROOT / path).read_text())
        if each and each["kind"] in {"ClusterRole", "Role"}
    ]
    return {
        (verb, group, resource, name)
        for role in roles
        for rule in role["rules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
    }


class World:
    """A cluster that grants the agent the rights in `grants`, and a connection that records requests."""

    def __init__(self, server: RunningServer, wire: Meddling) -> None:
        self.server, self.wire = server, wire
        self.grants = kureds_grants()
        self.metrics = Metrics("n1")
        self.api = api_on(wire, VirtualClock())
        self.rights = self.of()
        server.api.authorizer = self._allows

    def of(self, *kept: OptionalRight) -> Rights:
        return Rights(self.api, self.api.clock, self.metrics, node="n1", needed=NEEDED, kept=kept)

    def _allows(self, user: str, verb: str, group: str, resource: str, namespace: str, name: str) -> bool:
        asked = {(verb, group, resource, name), (verb, group, resource, "")}
        return group == "authorization.k8s.io" or bool(asked & self.grants)

    def denied(self) -> list[str]:
        return [f"{each.verb} {each.resource}" for each in self.server.api.requests if each.code == 403]

    def seed_node(self, name: str, **labels: str) -> None:
        self.server.seed({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}})

    def seed_agent(self, node: str, daemonset: str = "kured") -> None:
        owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": daemonset, "uid": "u", "controller": True}
        self.server.seed(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"{daemonset}-{node}", "namespace": "kube-system", "ownerReferences": [owner]},
                "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]},
            }
        )

    def seed_daemonset(self, name: str = "kured", **annotations: str) -> None:
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        self.server.seed(
            {
                "apiVersion": "apps/v1",
                "kind": "DaemonSet",
                "metadata": {"name": name, "namespace": "kube-system", "annotations": annotations},
                "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
            }
        )


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with running_server() as server:
        transport = connect(server.write_kubeconfig(tmp_path / "kubeconfig", user="agent"), part="test")
        yield World(server, Meddling(transport))
        transport.close()


async def test_an_agent_with_kureds_roles_switches_off_all_optional_features(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    await world.rights.review()
    assert world.rights.without == set(OptionalRight)
    world.rights.tell()
    world.rights.tell()
    told = [record.getMessage() for record in caplog.records if record.name == "careen.rights"]
    assert len(told) == len(OptionalRight), "the agent writes one log line for each feature that it switches off"
    assert all(record.levelno < logging.ERROR for record in caplog.records)
    assert any(
        line.endswith('add to a ClusterRole: - {apiGroups: [""], resources: [nodes], verbs: [list]}') for line in told
    )
    assert world.denied() == []


async def test_a_feature_that_is_switched_off_sends_no_request(world: World) -> None:
    await world.rights.review()
    world.seed_node("n1")
    with pytest.raises(Withheld, match="the agent lacks the right to list nodes"):
        await list_nodes(world.api)
    assert await read_owners(world.api, [Owner("ReplicaSet", "shop", "web")]) == ()
    subject = Subject(kind="Node", name="n1", uid="u")
    why = await post_event(world.api, subject, reason="R", sentence="S", is_warning=False, host="n1")
    assert "the agent lacks the right to create events in namespace default" in why
    assert world.denied() == []


async def test_an_agent_that_may_not_list_nodes_reads_each_node_by_name(world: World) -> None:
    await world.rights.review()
    for name in ("n1", "n2", "n3"):
        world.seed_node(name)
    world.seed_node("n4", **{"careen.dev/reboot": "ready"})
    for name in ("n2", "n4"):
        world.seed_agent(name)
    world.seed_agent("n3", daemonset="other")
    world.seed_agent("gone")
    nodes = AgentsNodes(world.api, own="n1", namespace="kube-system", daemonset="kured")
    assert [node.name for node in await nodes.read()] == ["n1", "n2", "n4"]
    assert [node.name for node in await nodes.read(reboot_label=("ready", "required"))] == ["n4"]
    assert not nodes.may_be_listed
    assert world.denied() == []


async def test_an_agent_without_the_right_to_patch_the_lock_uses_update(world: World) -> None:
    world.seed_daemonset(keep="this")
    await world.rights.review()
    lock = LockStore(world.api, namespace="kube-system", name="kured", annotation="example.com/lock")
    seen = await lock.read()
    wanted = WriteLock(
        purpose="p", content="x", expected_resource_version=seen.resource_version, daemonset_uid=seen.daemonset_uid
    )
    assert isinstance(await lock.write(wanted), Landed)
    found = world.server.get("daemonsets", "kured", "kube-system")
    assert found is not None
    assert found["metadata"]["annotations"] == {"keep": "this", "example.com/lock": "x"}
    assert isinstance(await lock.write(wanted), Stale), "a write with an old resourceVersion conflicts"
    seen = await lock.read()
    gone = WriteLock(
        purpose="p", content=None, expected_resource_version=seen.resource_version, daemonset_uid=seen.daemonset_uid
    )
    assert isinstance(await lock.write(gone), Landed)
    assert (await lock.read()).text is None
    assert world.denied() == []


async def test_an_agent_without_the_right_to_write_the_lock_logs_an_error(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.grants -= {("update", "apps", "daemonsets", "kured")}
    world.seed_daemonset()
    await world.rights.review()
    world.rights.tell()
    errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    (error,) = [
        each for each in errors if "the agent lacks the right to patch daemonsets.apps kube-system/kured" in each
    ]
    assert "resourceNames: [kured], verbs: [patch]}" in error
    assert OptionalRight.SETTINGS not in world.rights.without, (
        "a RoleBinding that does not exist yet may grant the right to read the ConfigMap"
    )
    lock = LockStore(world.api, namespace="kube-system", name="kured", annotation="example.com/lock")
    seen = await lock.read()
    wanted = WriteLock(
        purpose="p", content="x", expected_resource_version=seen.resource_version, daemonset_uid=seen.daemonset_uid
    )
    assert isinstance(await lock.write(wanted), Rejected)


async def test_an_agent_without_list_rights_finds_kured_in_kureds_default_namespace(world: World) -> None:
    await world.rights.review()
    assert await find_foreign(world.api, namespace="ops", name="careen") == ()
    world.seed_daemonset(**{"weave.works/kured-node-lock": '{"nodeID":"n9"}'})
    (found,) = await find_foreign(world.api, namespace="ops", name="careen")
    assert "held by n9" in found
    assert await find_foreign(world.api, namespace="kube-system", name="kured") == (), (
        "careen's own lock is not a foreign lock"
    )
    assert world.denied() == []


async def test_a_missing_right_never_switches_off_a_feature_that_a_setting_needs(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    rights = world.of(OptionalRight.SETTINGS)
    await rights.review()
    rights.keep({OptionalRight.FORECAST})
    rights.tell()
    assert rights.without == set(OptionalRight) - {OptionalRight.SETTINGS, OptionalRight.FORECAST}
    errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == 2
    assert all("no node begins a reboot: add " in error for error in errors)


async def test_no_safety_check_is_switched_off_if_careens_roles_lack_a_right(world: World) -> None:
    """The ConfigMap contains the maintenance window. If an administrator removes the right to read the ConfigMap, no
    node may reboot outside of the window."""
    ours = {(verb, group, resource, "") for verb, group, resource, _ in grants_of("manifests/rbac.yaml")}
    parts = {
        (each.verb, each.group, each.resource, ""): each.part for each in NEEDED if each.part and not each.subresource
    }
    for right, part in parts.items():
        world.grants = ours - {right}
        rights = world.of()
        await rights.review()
        assert not rights.is_whole
        assert rights.without <= {OptionalRight.EVENTS, OptionalRight.FOLLOWING, OptionalRight.WATCHING}, (right, part)


async def test_kureds_roles_with_a_right_to_patch_the_lock_enable_only_the_lock_patch(world: World) -> None:
    """kured's roles alone enable no optional feature, because they lack at least one right of each feature. Here they
    also have the right to patch the DaemonSet of the lock. With this right, the agent uses one optional feature: it
    writes the lock by a patch. All other optional features stay off."""
    world.grants |= {("patch", "apps", "daemonsets", "kured")}
    await world.rights.review()
    assert world.rights.without == set(OptionalRight) - {OptionalRight.PATCH}


@pytest.mark.parametrize(
    ("name", "value", "part"),
    [
        ("forecast", "refuse", OptionalRight.FORECAST),
        ("settle_policy", "halt", OptionalRight.OWNERS),
        ("budget", "zone=1", OptionalRight.NODES),
    ],
)
def test_the_agent_knows_which_optional_right_a_setting_needs(name: str, value: str, part: OptionalRight) -> None:
    given = {"node_id": ("n1",), "kubeconfig": ("k",)}
    assert asked_for_by(resolve(flags=given, environment={}).origins) == frozenset()
    assert asked_for_by(resolve(flags={**given, name: (value,)}, environment={}).origins) == {part}


async def test_only_missing_rights_that_the_settings_need_are_reported(world: World) -> None:
    await world.rights.review()
    world.rights.tell(besides=(OptionalRight.FORECAST,))
    with_forecast = sum(right.part is OptionalRight.FORECAST for right in NEEDED)
    fewer = _missing(world.metrics)
    world.rights.tell()
    assert _missing(world.metrics) - fewer == with_forecast


def _missing(metrics: Metrics) -> float:
    (sample,) = next(iter(metrics.missing_rights.collect())).samples
    return sample.value


async def test_no_feature_is_switched_off_if_the_server_does_not_answer_the_rights_review(world: World) -> None:
    world.wire.after = lambda _: Unclear("down")
    await world.rights.review()
    assert (world.rights.is_known, world.rights.is_whole, world.rights.without) == (False, False, frozenset())


async def test_the_agent_notices_a_right_that_is_granted_later(world: World) -> None:
    await world.rights.review()
    world.grants |= {("list", "", "nodes", "")}
    await world.rights.review()
    assert OptionalRight.NODES not in world.rights.without
    world.seed_node("n1")
    assert [node.name for node in await list_nodes(world.api)] == ["n1"]


@pytest.mark.parametrize("right", NEEDED, ids=[right.title for right in NEEDED])
def test_the_rule_in_the_message_grants_the_missing_right(right: Right) -> None:
    text = rules([right])
    head, _, rule = text.partition(": ")
    (given,) = yaml.safe_load(rule)
    resource = f"{right.resource}/{right.subresource}" if right.subresource else right.resource
    assert (given["verbs"], given["apiGroups"], given["resources"]) == ([right.verb], [right.group], [resource])
    assert given.get("resourceNames", []) == ([right.name] if right.namespace and right.name else [])
    assert head == (f"to a Role in {right.namespace}" if right.namespace else "to a ClusterRole")
