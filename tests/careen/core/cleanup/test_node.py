"""Tests what `careen cleanup` removes from a Node, and what it keeps."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from careen.core.actions import PatchNode
from careen.core.cleanup.node import NodeLeftovers, leftovers
from careen.core.cleanup.values import Extent
from careen.core.facts import keys
from careen.core.facts.observation import NodeView, SignedNode, Taint
from careen.core.facts.phases import Phase
from careen.core.facts.progress import Announcement, to_annotation
from careen.core.lock.content import Entry
from careen.core.node.autoscalers import protected
from careen.core.node.changed_labels import labels_to_report
from careen.core.node.marks import ANNOTATIONS, Proof
from tests.careen.core.builders import BOOT, UPTIME, a_marked_node, a_node, a_policy, a_progress

AGENT, TAINTER = (keys.FIELD_MANAGER,), (keys.TAINT_MANAGER,)
SOFT = Taint(key=keys.DEFAULT_TAINT_KEY, effect="PreferNoSchedule")
KUREDS_TAINT = Taint(key="weave.works/kured-node-reboot", effect="PreferNoSchedule")
FOREIGN = Taint(key="example.org/theirs", effect="PreferNoSchedule", time_added="2026-03-04T12:00:00Z")
CLAIM = Entry(node="n1", id="claim-1", uid="uid-n1", boot=BOOT)
KUREDS_CLAIM = Entry(node="n1")
NOTHING = Extent()
WITH_KUREDS = Extent(with_kureds=True)
KUREDS_KEY = Extent(policy=a_policy(taint_key=KUREDS_TAINT.key))
VALUED, HARD = replace(SOFT, value="x"), replace(SOFT, effect="NoSchedule")
OLD = replace(SOFT, key="careen.dev/old")


def keys_with(*proofs: Proof) -> list[str]:
    return [key for key, mark in ANNOTATIONS.items() if mark.proof in proofs]


def found(node: NodeView, extent: Extent = NOTHING, entry: Entry | None = None, **signed: Any) -> NodeLeftovers:
    return leftovers(SignedNode(node=node, **signed), extent, entry)


def cleaned(node: NodeView, extent: Extent = NOTHING, entry: Entry | None = None, **signed: Any) -> NodeView:
    """Return the Node after the patch of `careen cleanup`, or the unchanged Node if the cleanup makes no patch."""
    patch = found(node, extent, entry, **signed).patch
    return node if patch is None else after(node, patch)


def after(node: NodeView, patch: PatchNode) -> NodeView:
    def merged(now: Any, change: Any) -> dict[str, str]:
        return {key: value for key, value in {**now, **change}.items() if value is not None}

    return replace(
        node,
        labels=merged(node.labels, patch.labels),
        annotations=merged(node.annotations, patch.annotations),
        taints=node.taints if patch.taints is None else patch.taints,
        unschedulable=node.unschedulable if patch.unschedulable is None else patch.unschedulable,
    )


@pytest.mark.parametrize("key", keys_with(Proof.KEY, Proof.PERSON))
def test_a_cleanup_removes_every_annotation_of_careen(key: str) -> None:
    assert cleaned(a_node(annotations={key: "x", "example.org/theirs": "y"})).annotations == {"example.org/theirs": "y"}


def test_a_cleanup_removes_careens_label_and_keeps_other_labels() -> None:
    assert cleaned(a_node(labels={keys.REBOOT_LABEL: "required", "pool": "web"})).labels == {"pool": "web"}


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase is not Phase.IDLE])
def test_a_cleanup_restores_a_node_in_any_phase_of_a_reboot(phase: Phase) -> None:
    """The cleanup removes careen's record, label, taint and cordon. It restores the labels that the drain changed."""
    before = a_node(labels={"pool": "web"}, taints=(FOREIGN,))
    is_at_work = phase not in (Phase.WAITING, Phase.CLAIMING)
    progress = a_progress(phase, taint_key=keys.DEFAULT_TAINT_KEY, is_cordoned_by_us=is_at_work)
    if is_at_work:
        progress = replace(progress, prior_labels={"pool": "web", "extra": None})
    node = a_marked_node(
        progress,
        labels={"pool": "maintenance", "extra": "x"} if is_at_work else {"pool": "web"},
        taints=(FOREIGN, SOFT),
        annotations={keys.LAST_REBOOT: "{}"},
    )
    extent = Extent(policy=a_policy(pre_reboot_labels={"pool": "maintenance", "extra": "x"}))
    assert cleaned(node, extent) == before
    assert cleaned(before, extent) == before


def test_a_second_cleanup_changes_nothing() -> None:
    node = a_marked_node(a_progress(Phase.DRAINING, taint_key=keys.DEFAULT_TAINT_KEY), taints=(SOFT,))
    assert found(cleaned(node)).goes == ()


@pytest.mark.parametrize(
    ("name", "changes", "entry", "extent", "is_lifted"),
    [
        ("the record says that careen cordoned the node", {"record": True}, None, NOTHING, True),
        (
            "the record and the managed fields say that careen cordoned the node",
            {"record": True, "by": AGENT},
            None,
            NOTHING,
            True,
        ),
        ("a person cordoned the node again", {"record": True, "by": ("kubectl",)}, None, NOTHING, False),
        (
            "the managed fields say that careen and a person cordoned the node",
            {"record": True, "by": (*AGENT, "kubectl")},
            None,
            NOTHING,
            False,
        ),
        ("a cordon from before the drain", {"record": False}, None, NOTHING, False),
        ("only the managed fields say that careen cordoned the node", {"by": AGENT}, None, NOTHING, True),
        ("no proof", {}, None, NOTHING, False),
        ("the claim and the label prove that careen cordoned the node", {"label": "in-progress"}, CLAIM, NOTHING, True),
        ("cordoned before the claim", {"label": "in-progress"}, replace(CLAIM, cordoned=True), NOTHING, False),
        ("kured's cordon", {}, KUREDS_CLAIM, NOTHING, False),
        ("kured's cordon, removed on request", {}, KUREDS_CLAIM, WITH_KUREDS, True),
        ("cordoned before kured's claim", {}, replace(KUREDS_CLAIM, cordoned=True), WITH_KUREDS, False),
        ("a person's cordon", {"by": ("kubectl",)}, None, WITH_KUREDS, False),
    ],
)
def test_a_cleanup_removes_a_cordon_only_if_careen_set_the_cordon(
    name: str, changes: dict[str, Any], entry: Entry | None, extent: Extent, is_lifted: bool
) -> None:
    annotations = {}
    if "record" in changes:
        record = a_progress(
            Phase.DRAINING, is_cordoned_by_us=changes["record"], prior_unschedulable=not changes["record"]
        )
        annotations[keys.PROGRESS] = to_annotation(record)
    node = a_node(
        unschedulable=True,
        cordoned_by=changes.get("by", ()),
        annotations=annotations,
        labels={keys.REBOOT_LABEL: changes["label"]} if "label" in changes else {},
    )
    assert cleaned(node, extent, entry).unschedulable is not is_lifted, name


@pytest.mark.parametrize(
    ("name", "taints", "changes", "extent", "left"),
    [
        ("a key in careen's domain", (FOREIGN, SOFT), {}, NOTHING, (FOREIGN,)),
        ("careen's taints have no value", (VALUED,), {}, NOTHING, (VALUED,)),
        ("careen did not set this taint", (HARD,), {}, NOTHING, (HARD,)),
        (
            "the settings contain the taint's key, but nothing proves that careen set the taint",
            (KUREDS_TAINT,),
            {},
            KUREDS_KEY,
            (KUREDS_TAINT,),
        ),
        ("the record contains the key", (KUREDS_TAINT,), {"record": KUREDS_TAINT.key}, NOTHING, ()),
        ("careen made the last change of the taints", (FOREIGN, KUREDS_TAINT), {"by": TAINTER}, KUREDS_KEY, (FOREIGN,)),
        (
            "careen made the last change of the taints, and one taint exists",
            (KUREDS_TAINT,),
            {"by": TAINTER},
            NOTHING,
            (),
        ),
        (
            "careen made the last change of the taints, but two taints exist",
            (KUREDS_TAINT, FOREIGN),
            {"by": TAINTER},
            NOTHING,
            (KUREDS_TAINT, FOREIGN),
        ),
        (
            "`careen cleanup --key` names the key of the taint",
            (KUREDS_TAINT, FOREIGN),
            {},
            Extent(also=frozenset({KUREDS_TAINT.key})),
            (FOREIGN,),
        ),
        ("another release's key", (OLD,), {}, NOTHING, (OLD,)),
        ("another release's key, removed on request", (OLD,), {}, Extent(with_unknown=True), ()),
    ],
)
def test_a_cleanup_removes_a_taint_only_if_careen_set_the_taint(
    name: str, taints: tuple[Taint, ...], changes: dict[str, Any], extent: Extent, left: tuple[Taint, ...]
) -> None:
    record = a_progress(Phase.WAITING, taint_key=changes["record"]) if "record" in changes else None
    node = a_node(
        taints=taints,
        tainted_by=changes.get("by", ()),
        annotations={keys.PROGRESS: to_annotation(record)} if record else {},
    )
    assert cleaned(node, extent).taints == left, name


CONFIGURED = Extent(policy=a_policy(post_reboot_labels={"state": "rebooted"}, annotate_nodes=True))


REBOOTED = {keys.LAST_REBOOT: '{"labels":{"state":{"was":null,"to":"done"},"pool":{"was":"web","to":"db"}}}'}


@pytest.mark.parametrize(
    ("name", "labels", "authors", "extent", "left"),
    [
        ("two labels get their earlier values", {"state": "done", "pool": "db"}, {}, NOTHING, {"pool": "web"}),
        ("the managed fields say that careen set the label", {"state": "done"}, {"state": AGENT}, NOTHING, {}),
        (
            "the managed fields say that careen's taint patch set the label",
            {"state": "done"},
            {"state": TAINTER},
            NOTHING,
            {},
        ),
        ("another client changed the label", {"state": "mine"}, {}, NOTHING, {"state": "mine"}),
        (
            "another client set the same value",
            {"state": "done"},
            {"state": ("kubectl",)},
            NOTHING,
            {"state": "done"},
        ),
        (
            "another client applies the same value",
            {"state": "done"},
            {"state": (*AGENT, "x")},
            NOTHING,
            {"state": "done"},
        ),
        (
            "`careen cleanup --key` names the key of the label",
            {"state": "mine"},
            {},
            Extent(also=frozenset({"state"})),
            {},
        ),
    ],
)
def test_a_cleanup_restores_labels_changed_for_the_reboot(
    name: str, labels: dict[str, str], authors: dict[str, tuple[str, ...]], extent: Extent, left: dict[str, str]
) -> None:
    assert cleaned(a_node(labels=labels, annotations=REBOOTED), extent, labels_by=authors).labels == left, name


def test_a_cleanup_keeps_a_label_that_careen_has_already_restored() -> None:
    """managedFields name careen as the manager of a label even after careen has undone the drain. `careen cleanup`
    therefore restores only labels that a reboot report on the Node lists."""
    node = a_node(labels={"state": "before"})
    assert cleaned(node, CONFIGURED, labels_by={"state": AGENT}) == node


@pytest.mark.parametrize(("prior", "left"), [("done", {}), ("mine", {"state": "mine"})])
def test_a_cleanup_during_a_second_reboot_restores_labels_from_before_the_first_reboot(
    prior: str, left: dict[str, str]
) -> None:
    progress = replace(a_progress(Phase.DRAINING), prior_labels={"state": prior})
    node = a_marked_node(progress, labels={"state": "rebooting"}, annotations=REBOOTED)
    assert cleaned(node).labels == left


FIRST = {"state": {"was": "before", "to": "rebooted"}}
NEW = {"state": {"was": None, "to": "rebooted"}}
OTHER = {"other": {"was": None, "to": "x"}}


@pytest.mark.parametrize(
    ("name", "earlier", "labels", "prior", "told"),
    [
        ("the first reboot", {}, {"state": "rebooting"}, {"state": "before"}, FIRST),
        ("the node did not have the label", {}, {"state": "rebooting"}, {"state": None}, NEW),
        ("the drain did not change the label", {}, {"state": "before"}, {}, FIRST),
        ("the label already had the new value", {}, {"state": "rebooting"}, {"state": "rebooted"}, {}),
        ("the second reboot", FIRST, {}, {"state": "rebooted"}, FIRST),
        (
            "another client changed the label between two reboots",
            FIRST,
            {},
            {"state": "mine"},
            {"state": {"was": "mine", "to": "rebooted"}},
        ),
        (
            "the earlier report contains a label that this reboot does not change",
            OTHER,
            {"other": "x"},
            {"state": None},
            {**OTHER, **NEW},
        ),
        ("nonsense", {"state": 7, "other": {"was": "no value!", "to": "x"}}, {}, {"state": None}, NEW),
    ],
)
def test_the_reboot_report_contains_the_labels_that_careen_replaced(
    name: str, earlier: Any, labels: dict[str, str], prior: dict[str, str | None], told: Any
) -> None:
    node = a_node(labels=labels, annotations={keys.LAST_REBOOT: json.dumps({"labels": earlier})})
    progress = replace(a_progress(Phase.VERIFYING), prior_labels=prior)
    assert labels_to_report(node, progress, a_policy(post_reboot_labels={"state": "rebooted"})) == told, name


def test_a_cleanup_keeps_a_label_that_a_person_changed_during_the_drain() -> None:
    progress = replace(a_progress(Phase.DRAINING), prior_labels={"pool": "web"})
    node = a_marked_node(progress, labels={"pool": "db"})
    extent = Extent(policy=a_policy(pre_reboot_labels={"pool": "maintenance"}))
    assert cleaned(node, extent).labels == {"pool": "db"}
    assert cleaned(node, labels_by={"pool": ("kubectl",)}).labels == {"pool": "db"}
    assert cleaned(node, labels_by={"pool": AGENT}).labels == {"pool": "web"}


@pytest.mark.parametrize("key", keys_with(Proof.AUTHOR))
@pytest.mark.parametrize(
    ("authors", "extent", "goes"),
    [
        (AGENT, NOTHING, True),
        (TAINTER, NOTHING, True),
        (("kured",), NOTHING, False),
        (("kured",), CONFIGURED, False),
        (("kured",), Extent(with_kureds=True), True),
        (None, CONFIGURED, True),
        (None, NOTHING, False),
    ],
)
def test_a_cleanup_removes_kureds_annotations_that_careen_wrote(
    key: str, authors: tuple[str, ...] | None, extent: Extent, goes: bool
) -> None:
    signed = {} if authors is None else {"annotations_by": {key: authors}}
    assert (key not in cleaned(a_node(annotations={key: "x"}), extent, **signed).annotations) is goes


@pytest.mark.parametrize("part", ["annotations", "labels"])
def test_a_cleanup_removes_unknown_keys_of_careens_domain_only_on_request(part: str) -> None:
    node = a_node(**{part: {"careen.dev/of-yesterday": "x"}})
    assert cleaned(node) == node
    assert [mark.name for mark in found(node).stays] == ["careen.dev/of-yesterday"]
    assert getattr(cleaned(node, Extent(with_unknown=True)), part) == {}


@pytest.mark.parametrize("key", keys_with(Proof.PERSON))
def test_a_cleanup_keeps_the_annotations_of_people_if_agents_still_run(key: str) -> None:
    node = a_node(annotations={key: "x"})
    assert cleaned(node, Extent(agents=3)) == node
    assert cleaned(node).annotations == {}


ASKED = Announcement(boot=BOOT, uptime=UPTIME)


@pytest.mark.parametrize(
    ("name", "phase", "changes", "node", "is_rebooting"),
    [
        ("announced", Phase.REBOOTING, {"announced": ASKED}, {}, True),
        ("the kubelet never reported a boot id", Phase.REBOOTING, {"announced": ASKED}, {"boot_id": ""}, True),
        ("the host runs a new boot", Phase.REBOOTING, {"announced": ASKED}, {"boot_id": "boot-2"}, False),
        ("the node failed after the announced reboot", Phase.FAILED, {"announced": ASKED}, {}, True),
        (
            "the node failed, and its drain was undone",
            Phase.FAILED,
            {"announced": ASKED, "is_releasing": True},
            {},
            False,
        ),
        ("the node failed before a reboot was announced", Phase.FAILED, {"announced": None}, {}, False),
        ("draining", Phase.DRAINING, {}, {}, False),
        ("verifying", Phase.VERIFYING, {}, {"boot_id": "boot-2"}, False),
    ],
)
def test_the_progress_record_shows_whether_a_node_is_rebooting(
    name: str, phase: Phase, changes: dict[str, Any], node: dict[str, Any], is_rebooting: bool
) -> None:
    marked = a_marked_node(replace(a_progress(phase), **changes), **node)
    assert bool(found(marked).rebooting) is is_rebooting, name


@pytest.mark.parametrize(
    ("boot", "is_rebooting"),
    [(BOOT, True), ("boot-0", False), ("", True)],
    ids=["the host runs the same boot", "the host runs a new boot", "the claim has no boot id"],
)
def test_the_phase_and_the_claim_show_whether_a_node_without_a_progress_record_is_rebooting(
    boot: str, is_rebooting: bool
) -> None:
    node = a_node(annotations={keys.PHASE: Phase.REBOOTING.value}, unschedulable=True)
    assert bool(found(node, NOTHING, replace(CLAIM, boot=boot)).rebooting) is is_rebooting


def test_a_node_with_an_unreadable_progress_record_is_treated_as_rebooting() -> None:
    assert found(a_node(annotations={keys.PROGRESS: "?"})).rebooting.endswith("so the node may be rebooting")


# ---- annotations that keep autoscalers away ----


@pytest.mark.parametrize(
    ("before", "during", "after"),
    [
        ({}, {}, {}),
        ({keys.SCALE_DOWN_DISABLED: "false"}, {}, {keys.SCALE_DOWN_DISABLED: "false"}),
        ({keys.DO_NOT_DISRUPT: "true"}, {}, {keys.DO_NOT_DISRUPT: "true"}),
        ({}, {keys.DO_NOT_DISRUPT: "a person's"}, {keys.DO_NOT_DISRUPT: "a person's"}),
    ],
)
def test_a_cleanup_restores_autoscaler_annotations_that_careen_set(
    before: dict[str, str], during: dict[str, str], after: dict[str, str]
) -> None:
    claimed = {key: str(value) for key, value in {**before, **protected(a_node(annotations=before))}.items()}
    node = a_node(annotations={**claimed, **during})
    assert cleaned(node).annotations == after
    told = {mark.name: mark.afterwards for mark in found(node).goes}
    assert told.get(keys.SCALE_DOWN_DISABLED) == (
        "set back to false" if keys.SCALE_DOWN_DISABLED in before else "removed"
    )


def test_a_cleanup_keeps_autoscaler_annotations_that_careen_did_not_set() -> None:
    theirs = {keys.SCALE_DOWN_DISABLED: "true", keys.DO_NOT_DISRUPT: "true"}
    assert cleaned(a_node(annotations=theirs)).annotations == theirs
