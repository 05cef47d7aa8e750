"""Tests that `manifests/people.yaml` grants people the rights for the requests that each command sends, and nothing
more."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from careen.cluster import snapshot_reader
from careen.core.facts import keys
from careen.core.lock.content import Entry, LockContent
from drydock.server.kinds.resources import resource_named
from tests.architecture.source_tree import ROOT
from tests.careen.cli.conftest import Desk
from tests.careen.cli.test_plan import a_node, a_replica

ROLES = {
    role["metadata"]["name"]: role for role in yaml.safe_load_all((ROOT / "manifests" / "people.yaml").read_text())
}

# Every command that asks a cluster, by the role that it needs.
COMMANDS = {
    "careen-view": (
        ("status",),
        ("history",),
        ("history", "n1"),
        ("why", "n1"),
        ("why", "n2"),
        ("forecast", "n1"),
        ("plan", "--start", "2199-03-04T22:00:00Z"),
        ("explain", "shop/web-1"),
        ("snapshot", "--file", "{folder}/dump"),
        ("lock", "show"),
        ("config",),
        ("watch", "--once"),
    ),
    "careen-shadow": (("shadow", "--once", "--for", "1", "--snapshot", "{folder}/dump"),),
    "careen-operate": (
        ("hold", "n1", "--reason", "disk swap"),
        ("unhold", "n1"),
        ("retry", "n2"),
        ("recheck", "n1", "n2"),
        ("hold", "--selector", "!example.org/nothing", "--reason", "disk swap"),
        ("unhold", "--selector", "!example.org/nothing"),
        ("reboot", "n1", "--no-wait"),
        ("reboot", "n1", "--end"),
        ("drain", "n1", "--no-wait"),
        ("drain", "n1", "--end"),
        ("maintenance", "n1", "--reason", "disk swap", "--no-wait"),
        ("maintenance", "n1", "--end"),
        ("lock", "pause"),
        ("lock", "resume"),
        ("lock", "release", "n2", "--yes"),
        ("cleanup",),
        ("cleanup", "--yes", "--even-with-agents"),
    ),
}

# verb, group, resource, name ("" for any)
Grant = tuple[str, str, str, str]


def granted(role: dict[str, Any]) -> Iterator[Grant]:
    for rule in role["rules"]:
        yield from product(rule["verbs"], rule["apiGroups"], rule["resources"], rule.get("resourceNames", [""]))


# Rights for kured's DaemonSet, and for kinds that are read only for pods with volumes or devices. The embedded server
# does not have these kinds; tests/cluster/test_people.py uses the real server.
SELDOM = {(verb, "apps", "daemonsets", "kured") for verb in ("get", "patch")} | {
    (verb, path.split("/")[2] if path.startswith("/apis/") else "", path.rsplit("/", 1)[-1], "")
    for verb in ("list", "watch")
    for path in (*snapshot_reader.VOLUMES, *snapshot_reader.DEVICES)
}


def covers(grant: Grant, asked: Grant) -> bool:
    return grant[:3] == asked[:3] and grant[3] in ("", asked[3])


def asked(desk: Desk, folder: Path, *words: str) -> set[Grant]:
    """Run the command. Return the rights that its requests need, each as a tuple of verb, API group, resource and
    name."""
    desk.server.api.requests.clear()
    done = desk.run(*(word.replace("{folder}", str(folder)) for word in words))
    assert done.exit_code in (0, 4), done.output  # 4: a shadow that saw no binding
    return {
        (each.verb, resource_named(each.resource).group, each.resource, each.name)
        for each in desk.server.api.requests
        if each.resource
    }


@pytest.fixture
def town(desk: Desk) -> Desk:
    sound, failed = a_node("n1"), a_node("n2")
    sound["status"]["nodeInfo"] = {"bootID": "boot-1"}
    failed["metadata"]["annotations"] = {keys.PHASE: "Failed", keys.REASON: "x", keys.SINCE: "2026-03-04T12:00:00Z"}
    task = a_replica("task-1", "n1", owner="task")
    task["metadata"]["ownerReferences"][0] |= {"apiVersion": "batch/v1", "kind": "Job"}
    desk.server.seed(sound, failed, a_replica("web-1", "n1"), a_replica("web-2", "n2"), task)
    desk.server.seed({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "careen", "namespace": "careen"}})
    desk.lock(LockContent(entries=(Entry(node="n2", id="c2"),), max_owners=1))
    return desk


@pytest.mark.parametrize("role", ROLES)
def test_each_role_for_people_grants_exactly_the_rights_that_its_commands_need(
    town: Desk, tmp_path: Path, role: str
) -> None:
    given = set(granted(ROLES[role]))
    wanted = {words: asked(town, tmp_path, *words) for words in COMMANDS[role]}
    missing = {
        words: short
        for words, rights in wanted.items()
        if (short := {right for right in rights if not any(covers(grant, right) for grant in given)})
    }
    assert missing == {}
    every = set().union(*wanted.values())
    unused = {grant for grant in given if not any(covers(grant, right) for right in every)}
    assert unused - SELDOM == set()


@pytest.mark.parametrize("role", ROLES)
def test_no_role_for_people_grants_a_wildcard(role: str) -> None:
    assert [grant for grant in granted(ROLES[role]) if "*" in "".join(grant)] == []


def test_the_roles_for_people_are_not_aggregated_into_view_or_edit() -> None:
    assert {name: role["metadata"].get("labels") for name, role in ROLES.items()} == dict.fromkeys(COMMANDS)


def test_the_viewer_role_grants_no_writes() -> None:
    assert {verb for verb, *_ in granted(ROLES["careen-view"])} <= {"get", "list"}
    assert {verb for verb, *_ in granted(ROLES["careen-shadow"])} <= {"get", "list", "watch"}
