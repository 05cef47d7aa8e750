"""careen recognises its own soft taint (PreferNoSchedule) by the annotation in which it stores the progress of a
reboot. Without this annotation, it uses the taint's key and managedFields. The tests also show when careen removes the
taint."""

from __future__ import annotations

from typing import Any

import pytest

from careen.core.decision import Decision
from careen.core.facts import keys
from careen.core.facts.observation import NodeView, Taint
from careen.core.facts.phases import Phase
from careen.core.facts.progress import Progress, to_annotation
from careen.core.facts.reasons import Code
from careen.core.node.own_taint import keys_of_ours, with_ours
from tests.careen.core.builders import (
    NO,
    UNKNOWN_NEED,
    YES,
    a_marked_node,
    a_node,
    a_policy,
    a_progress,
    decided,
    the_patch,
    the_record,
)

THEIRS = Taint(key="theirs", effect="PreferNoSchedule")
KURED = "weave.works/kured-node-reboot"
PROVEN = (keys.TAINT_MANAGER,)


def soft(key: str, **changes: Any) -> Taint:
    return Taint(**{"key": key, "effect": "PreferNoSchedule", **changes})


OURS = soft("careen.dev/reboot")


def tainted(*taints: Taint, by: tuple[str, ...] = (), **changes: Any) -> NodeView:
    return a_node(taints=(THEIRS, *taints), tainted_by=by, **changes)


@pytest.mark.parametrize(
    ("node", "policy", "expected"),
    [
        pytest.param(tainted(OURS), {}, {OURS.key}, id="a taint with the default key"),
        pytest.param(tainted(OURS), {"taint_key": None}, {OURS.key}, id="the default key, but taints are switched off"),
        pytest.param(
            tainted(OURS), {"taint_key": KURED}, {OURS.key}, id="the default key, but another key is configured"
        ),
        pytest.param(
            tainted(OURS, by=("kube-controller-manager",)),
            {},
            {OURS.key},
            id="the default key, and the node controller made the last change of the taints",
        ),
        pytest.param(
            tainted(soft("careen.dev/soon")),
            {"taint_key": "careen.dev/soon"},
            {"careen.dev/soon"},
            id="a configured key of careen's domain",
        ),
        pytest.param(tainted(soft("careen.dev/team")), {}, set(), id="another key of careen's domain"),
        pytest.param(tainted(soft(OURS.key, value="x")), {}, set(), id="the default key with a value"),
        pytest.param(tainted(soft(OURS.key, effect="NoSchedule")), {}, set(), id="the default key with another effect"),
        pytest.param(
            tainted(soft(KURED)),
            {"taint_key": KURED},
            set(),
            id="the taint's key is in another domain, and the Node has no managed fields",
        ),
        pytest.param(
            tainted(soft(KURED), by=PROVEN),
            {"taint_key": KURED},
            {KURED},
            id="the taint's key is in another domain, and careen set a taint in the last change of the taints",
        ),
        pytest.param(
            tainted(soft(KURED), by=("kured",)),
            {"taint_key": KURED},
            set(),
            id="the taint's key is in another domain, and kured made the last change of the taints",
        ),
        pytest.param(
            tainted(soft(KURED), by=("careen-agent",)),
            {"taint_key": KURED},
            set(),
            id="the taint's key is in another domain, and careen removed a taint in the last change of the taints",
        ),
        pytest.param(
            tainted(soft(KURED), by=("kured", *PROVEN)),
            {"taint_key": KURED},
            set(),
            id="the taint's key is in another domain, and the taints have two managers, kured and careen",
        ),
        pytest.param(
            tainted(soft(KURED), by=PROVEN),
            {},
            set(),
            id="the taint's key is in another domain and is not the configured key",
        ),
    ],
)
def test_the_key_and_the_managed_fields_identify_careens_taint_if_the_progress_record_is_missing(
    node: NodeView, policy: dict[str, Any], expected: set[str]
) -> None:
    assert keys_of_ours(node, Progress(), a_policy(**policy)) == expected


def test_an_existing_progress_record_identifies_careens_taint() -> None:
    assert keys_of_ours(tainted(OURS), a_progress(Phase.WAITING), a_policy()) == frozenset()
    assert keys_of_ours(tainted(OURS), a_progress(Phase.WAITING, taint_key=OURS.key), a_policy()) == {OURS.key}
    assert keys_of_ours(tainted(), a_progress(Phase.WAITING, taint_key=OURS.key), a_policy()) == frozenset()


def wiped(**changes: Any) -> Decision:
    """Return the decision for a waiting node that has lost only the annotation with its progress. All other
    labels, annotations and taints of careen are still on the Node."""
    node = {
        "taints": (THEIRS, OURS),
        "labels": {keys.REBOOT_LABEL: "ready"},
        "annotations": {keys.PHASE: "Waiting"},
        **changes.pop("node", {}),
    }
    return decided(node=node, **changes)


def test_a_waiting_node_that_lost_its_progress_record_recognises_its_taint_again() -> None:
    decision = wiped(need=YES)
    assert (decision.phase, the_patch(decision).taints, the_record(decision).taint_key) == (
        Phase.WAITING,
        None,
        OURS.key,
    )


@pytest.mark.parametrize(
    "node",
    [{}, {"labels": {}, "annotations": {}}],
    ids=["only the progress record is lost", "only the taint remains"],
)
def test_a_node_that_needs_no_reboot_and_lost_its_progress_record_removes_careens_taint(node: dict[str, Any]) -> None:
    decision = wiped(need=NO, node=node)
    assert (decision.phase, decision.reason.code) == (Phase.IDLE, Code.HOME)
    assert the_patch(decision).taints == (THEIRS,)


def test_a_taint_with_a_foreign_key_is_removed_only_if_managed_fields_name_careen() -> None:
    policy, node = a_policy(taint_key=KURED), {"taints": (THEIRS, soft(KURED)), "labels": {}, "annotations": {}}
    assert the_patch(wiped(need=NO, policy=policy, node={**node, "tainted_by": PROVEN})).taints == (THEIRS,)
    assert wiped(need=NO, policy=policy, node={**node, "tainted_by": ("kubectl-taint",)}).actions == ()


def test_only_the_patch_that_adds_the_taint_uses_the_field_manager_for_taints() -> None:
    assert the_patch(decided(need=YES)).adds_taint
    assert not the_patch(wiped(need=NO)).adds_taint
    assert not the_patch(wiped(need=YES)).adds_taint


# Records that careen cannot read.

GARBAGE = {"annotations": {keys.PROGRESS: "garbage", keys.PHASE: "Waiting"}}
ELSEWHERE = {"annotations": {keys.PROGRESS: to_annotation(Progress(phase="Elsewhere")), keys.PHASE: "Waiting"}}


@pytest.mark.parametrize("node", [GARBAGE, ELSEWHERE])
@pytest.mark.parametrize(("need", "taints"), [(NO, (THEIRS,)), (YES, None), (UNKNOWN_NEED, None)])
def test_if_the_progress_record_is_unreadable_the_agent_removes_at_most_the_taint(
    node: dict[str, Any], need: Any, taints: Any
) -> None:
    decision = wiped(need=need, node={**node, "unschedulable": True, "cordoned_by": (keys.FIELD_MANAGER,)})
    patch = the_patch(decision)
    assert (decision.reason.code, patch.taints, patch.unschedulable, patch.labels) == (
        Code.PROGRESS_UNREADABLE,
        taints,
        None,
        {},
    )
    assert set(patch.annotations) == {keys.REASON}


def test_an_unreadable_progress_record_is_reported_once_with_the_command_to_remove_it() -> None:
    decision = wiped(need=YES, node=GARBAGE)
    said = the_patch(decision).annotations[keys.REASON]
    assert said == (
        "the annotation careen.dev/progress is not JSON that careen wrote; careen does nothing until a person runs "
        "`kubectl annotate node n1 careen.dev/progress-`"
    )
    told = {"annotations": {**GARBAGE["annotations"], keys.REASON: said}, "taints": ()}
    assert wiped(need=NO, node=told, memory=decision.memory).actions == ()


@pytest.mark.parametrize(
    ("owned", "wanted", "before", "after", "ours"),
    [
        ("", "k", (), ("k",), "k"),
        ("k", "k", ("k",), None, "k"),
        ("", "k", ("k",), None, ""),
        ("k", "new", ("k",), ("new",), "new"),
        ("k", None, ("k",), (), ""),
        ("", None, (), None, ""),
        ("k", "k", (), ("k",), "k"),
        ("k", "new", ("k", "new"), ("new",), ""),
    ],
)
def test_the_node_gets_the_configured_taint_and_keeps_foreign_taints(
    owned: str, wanted: str | None, before: tuple[str, ...], after: Any, ours: str
) -> None:
    def taints(names: tuple[str, ...]) -> tuple[Taint, ...]:
        return tuple(Taint(key=name, effect="PreferNoSchedule") for name in names)

    progress = a_progress(Phase.WAITING, taint_key=owned)
    node = a_marked_node(progress, taints=taints(before))
    found, key = with_ours(node, progress, a_policy(taint_key=wanted))
    assert (found, key) == (None if after is None else taints(after), ours)


def test_a_taint_with_another_effect_is_never_treated_as_careens_taint() -> None:
    foreign = Taint(key=OURS.key, effect="NoSchedule")
    progress = a_progress(Phase.WAITING, taint_key=OURS.key)
    node = a_marked_node(progress, taints=(foreign, OURS))
    found, _ = with_ours(node, progress, a_policy(taint_key=None))
    assert found == (foreign,)
