"""The table of careen's marks on a Node (`careen.core.node.marks`) is complete, and the agent and `careen cleanup` obey
it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from careen.core.actions import PatchNode
from careen.core.cleanup.node import leftovers
from careen.core.cleanup.values import Extent
from careen.core.facts import keys
from careen.core.facts.observation import NodeView, SignedNode, Taint
from careen.core.facts.phases import Phase
from careen.core.facts.progress import Progress
from careen.core.node.marks import MARKS, Kind, MarkRow, Proof, Until
from careen.core.node.restoring import NodeChange, as_before, as_idle, is_as_idle
from tests.architecture.source_tree import modules
from tests.careen.core.builders import a_marked_node, a_node, a_policy, a_progress

KEY = re.compile(r"(careen\.dev|weave\.works)/[a-z-]+")
POLICY = a_policy(annotate_nodes=True, pre_reboot_labels={"pool": "down"}, post_reboot_labels={"tier": "new"})
DRAINING = a_progress(Phase.DRAINING, prior_labels={"pool": None}, taint_key=keys.DEFAULT_TAINT_KEY)


def test_the_table_has_every_key_of_careens_domains() -> None:
    named = {value for value in vars(keys).values() if isinstance(value, str) and KEY.fullmatch(value)}
    assert named
    assert named - {keys.LOCK_ANNOTATION} == {mark.key for mark in MARKS if KEY.fullmatch(mark.key)}


def a_node_with(mark: MarkRow) -> NodeView:
    """Return a draining Node that has this mark and its proof."""
    if mark.kind is Kind.TAINT:
        return a_marked_node(DRAINING, taints=(Taint(key=mark.key, effect=keys.TAINT_EFFECT),))
    if mark.kind is Kind.CORDON:
        return a_marked_node(DRAINING)
    if mark.proof is Proof.REPORT:
        report = json.dumps({"labels": {"tier": {"was": None, "to": "new"}}})
        return a_marked_node(DRAINING, labels={"tier": "new"}, annotations={keys.LAST_REBOOT: report})
    if mark.proof is Proof.RECORD:
        return a_marked_node(DRAINING, labels={"pool": "down"})
    if mark.kind is Kind.LABEL:
        return a_marked_node(DRAINING, labels={mark.key: "x"})
    if mark.proof is Proof.EARLIER_VALUE:
        before = {keys.SET_ANNOTATIONS: json.dumps({mark.key: None}), mark.key: "true"}
        return a_marked_node(DRAINING, annotations=before)
    if mark.key == keys.PROGRESS:
        return a_marked_node(DRAINING)
    return a_node(annotations={mark.key: "{}"})


def what_goes(change: NodeChange | PatchNode, node: NodeView) -> set[tuple[Kind, str]]:
    """Return the marks that the change removes from the Node."""
    taints = set() if change.taints is None else set(node.taints) - set(change.taints)
    return {
        *((Kind.LABEL, key) for key, value in change.labels.items() if value is None and key in node.labels),
        *((Kind.ANNOTATION, key) for key, value in change.annotations.items() if value is None),
        *((Kind.TAINT, taint.key) for taint in taints),
        *([(Kind.CORDON, "")] if change.unschedulable is False else []),
    }


def name_of(mark: MarkRow) -> tuple[Kind, str]:
    of_settings = {Proof.RECORD: "pool", Proof.REPORT: "tier"}
    return mark.kind, mark.key or (of_settings[mark.proof] if mark.kind is Kind.LABEL else "")


def of_mark(mark: MarkRow) -> str:
    return f"{mark.kind} {mark.key or mark.proof}"


@pytest.mark.parametrize("mark", MARKS, ids=of_mark)
def test_the_agent_and_a_cleanup_remove_each_mark_when_the_table_says(mark: MarkRow) -> None:
    node = a_node_with(mark)
    record = node.record
    assert isinstance(record, Progress)
    patch = leftovers(SignedNode(node=node), Extent(policy=POLICY)).patch
    assert patch is not None
    assert name_of(mark) in what_goes(patch, node)
    is_at_service = name_of(mark) in what_goes(as_before(node, record, POLICY), node)
    is_at_idle = name_of(mark) in what_goes(as_idle(node, record, POLICY), node)
    assert is_at_service is (mark.until is Until.SERVICE)
    if mark.until is not Until.SERVICE:
        assert is_at_idle is (mark.until is Until.IDLE)
    elif mark.kind is Kind.ANNOTATION:
        assert is_at_idle, "the node may become Idle although it never went back into service"


def a_node_without_proof(mark: MarkRow) -> NodeView:
    """Return a Node that another client gave what looks like this mark."""
    match mark.kind, mark.proof:
        case Kind.CORDON, _:
            record = a_progress(Phase.DRAINING, is_cordoned_by_us=False, prior_unschedulable=True)
            return a_marked_node(record, cordoned_by=("kubectl",))
        case Kind.TAINT, _:
            return a_node(taints=(Taint(key=mark.key, effect=keys.TAINT_EFFECT, value="theirs"),))
        case Kind.LABEL, Proof.REPORT:
            report = json.dumps({"labels": {"tier": {"was": None, "to": "new"}}})
            return a_node(labels={"tier": "theirs"}, annotations={keys.LAST_REBOOT: report})
        case Kind.LABEL, _:
            return a_marked_node(DRAINING, labels={"pool": "theirs"})
        case _:
            return a_node(annotations={mark.key: "true"})


@pytest.mark.parametrize("mark", [mark for mark in MARKS if mark.proof not in (Proof.KEY, Proof.PERSON)], ids=of_mark)
def test_neither_the_agent_nor_a_cleanup_removes_a_mark_without_its_proof(mark: MarkRow) -> None:
    node, policy = a_node_without_proof(mark), replace(POLICY, annotate_nodes=False)
    record = node.record
    assert isinstance(record, Progress)
    patch = leftovers(SignedNode(node=node), Extent(policy=policy)).patch
    for change in (patch, as_before(node, record, policy), as_idle(node, record, policy)):
        assert change is None or name_of(mark) not in what_goes(change, node)


@pytest.mark.parametrize("mark", [mark for mark in MARKS if mark.until is Until.IDLE], ids=of_mark)
def test_an_idle_node_with_a_mark_of_a_need_is_not_as_it_should_be(mark: MarkRow) -> None:
    given: dict[str, Any] = {
        Kind.LABEL: {"labels": {mark.key: "required"}},
        Kind.TAINT: {"taints": (Taint(key=mark.key, effect=keys.TAINT_EFFECT),)},
    }.get(mark.kind, {"annotations": {mark.key: "x"}})
    assert not is_as_idle(a_node(**given), Progress(), POLICY)
    assert is_as_idle(a_node(), Progress(), POLICY)


@pytest.mark.parametrize("package", ["careen"])
def test_all_keys_of_annotations_labels_and_taints_are_defined_in_the_same_module(package: str) -> None:
    """No module except `careen.core.facts.keys` contains a key of careen's or kured's domain, such as
    `careen.dev/progress`: the table would miss it."""
    found = [
        f"{module.where}: {text}"
        for module in modules(package)
        if module.name != "careen.core.facts.keys"
        for text in module.strings()
        if KEY.fullmatch(text)
    ]
    assert found == []
