"""The rescue: what an agent writes on its Node if rounds of its loop fail. A draining node returns to service. A node
whose host was asked to reboot is not changed. The rescue works with any content of the Node."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from careen.core import rescue
from careen.core.facts import keys
from careen.core.facts.progress import Progress, from_annotation, to_annotation
from careen.core.facts.reasons import Code
from careen.core.steps.failed import is_tried_again
from tests.careen.core.builders import BOOT, a_policy, ago

GIVEN = rescue.Circumstances(
    because="6 turns broke (KeyError)",
    now="2026-03-04T12:00:00Z",
    uptime=99.5,
    boot=BOOT,
    labels={"pool": "maintenance"},
)
DRAINING = Progress(
    phase="Draining",
    claim="c1",
    lock="ds/key",
    boot_left=BOOT,
    claimed=ago(60),
    is_cordoned_by_us=True,
    need_since="2026-03-04T11:00:00Z",
    taint_key="careen.dev/reboot",
    prior_labels={"pool": None},
    drain_started=ago(50),
    displaced=3,
    failures=1,
)


def a_raw_node(
    record: Progress | str | None = DRAINING,
    *,
    phase: str | None = "Draining",
    cordoned: bool = True,
    **metadata: Any,
) -> dict[str, Any]:
    text = to_annotation(record) if isinstance(record, Progress) else record
    annotations = {
        keys.PROGRESS: text,
        keys.PHASE: phase,
        keys.REASON: "3 pods have to leave the node",
        **metadata.pop("annotations", {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "n1",
            "uid": "uid-n1",
            "resourceVersion": "7",
            "labels": {"pool": "maintenance", keys.REBOOT_LABEL: "in-progress"},
            "annotations": {key: value for key, value in annotations.items() if value is not None},
            **metadata,
        },
        "spec": {"unschedulable": True} if cordoned else {},
    }


def managed_by(*managers: str) -> list[dict[str, Any]]:
    return [
        {"manager": each, "operation": "Update", "fieldsV1": {"f:spec": {"f:unschedulable": {}}}} for each in managers
    ]


def undone(node: Any) -> dict[str, Any]:
    patch = rescue.undone(node, GIVEN)
    assert patch is not None
    return patch


def record_after(patch: dict[str, Any]) -> Progress:
    record = from_annotation(patch["metadata"]["annotations"][keys.PROGRESS])
    assert isinstance(record, Progress), record
    return record


def test_the_rescue_patch_uncordons_a_draining_node_and_marks_its_claim_for_release() -> None:
    patch = undone(a_raw_node())
    assert patch["metadata"]["resourceVersion"] == "7", (
        "the patch needs the resourceVersion, so that an announced reboot causes a conflict"
    )
    assert patch["spec"] == {"unschedulable": None}
    assert patch["metadata"]["labels"] == {keys.REBOOT_LABEL: "failed", "pool": None}
    record = record_after(patch)
    assert (record.phase, record.claim, record.is_releasing, record.is_cordoned_by_us) == (
        "Failed",
        "c1",
        True,
        False,
    )
    assert (record.failed, record.failures, record.need_since) == (
        Code.TURN_BROKEN.value,
        2,
        DRAINING.need_since,
    )
    assert "6 turns broke (KeyError): the node is uncordoned" in patch["metadata"]["annotations"][keys.REASON]


def test_a_node_that_was_rescued_tries_again_after_a_back_off() -> None:
    """Without the back-off, an agent that fails in each drain would drain the node again and again."""
    record = record_after(undone(a_raw_node()))
    assert record.failed_at is not None
    assert (record.failed_at.boot, record.failed_at.uptime) == (BOOT, 99.5)
    assert is_tried_again(record, a_policy())


def test_the_rescue_patch_of_a_claiming_node_releases_the_claim_without_an_uncordon() -> None:
    patch = undone(a_raw_node(Progress(phase="Claiming", claim="c1", boot_left=BOOT), phase="Claiming", cordoned=False))
    assert "spec" not in patch
    assert record_after(patch).is_releasing


@pytest.mark.parametrize("phase", ["", "Idle", "Waiting", "Rebooting", "Verifying", "Settling", "Failed", "Elsewhere"])
def test_the_rescue_patch_changes_only_claiming_and_draining_nodes(phase: str) -> None:
    """If the annotation with the node's progress says that a reboot follows, the host may go down at any moment. The
    agent then does not change the Node."""
    assert (
        rescue.undone(
            a_raw_node(Progress(phase=phase, claim="c1", boot_left=BOOT, is_cordoned_by_us=True), phase=phase or None),
            GIVEN,
        )
        is None
    )


@pytest.mark.parametrize(("record", "phase"), [("Rebooting", "Draining"), ("Draining", "Rebooting")])
def test_a_node_whose_record_or_phase_annotation_says_rebooting_gets_no_rescue_patch(record: str, phase: str) -> None:
    assert rescue.undone(a_raw_node(Progress(phase=record, claim="c1", boot_left=BOOT), phase=phase), GIVEN) is None


def test_the_rescue_patch_keeps_a_cordon_from_before_the_claim() -> None:
    node = a_raw_node(
        Progress(phase="Draining", claim="c1", boot_left=BOOT, prior_unschedulable=True),
        managedFields=managed_by("kubectl-cordon"),
    )
    assert "spec" not in undone(node)


POISON = to_annotation(DRAINING).replace('"uptime":9950.0', f'"uptime":{"9" * 400}')


def test_the_rescue_patch_writes_a_progress_record_without_the_unreadable_fields() -> None:
    """The new annotation contains the id of the claim, so that the agent can later release this claim. Without the
    invalid fields, the rounds of the agent's loop can succeed again."""
    assert "9" * 400 in POISON
    patch = undone(a_raw_node(POISON))
    assert patch["spec"] == {"unschedulable": None}
    assert (record_after(patch).claim, record_after(patch).is_releasing) == ("c1", True)


@pytest.mark.parametrize("instant", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59Z", "soon", 7])
def test_the_rescue_patch_drops_a_time_in_an_invalid_format(instant: Any) -> None:
    node = a_raw_node(
        json.dumps(
            {
                **json.loads(to_annotation(DRAINING)),
                "need_since": instant,
                "tainted_at": "2026-03-04T11:30:00Z",
            }
        )
    )
    record = record_after(undone(node))
    assert (record.need_since, record.tainted_at) == ("", "2026-03-04T11:30:00Z")


@pytest.mark.parametrize(
    "record",
    ["nonsense", "[]", '{"version":1,', "9" * 5000, "[" * 100_000, None],
    ids=["a text", "a JSON list", "truncated JSON", "a number of 5,000 digits", "deeply nested JSON", "no annotation"],
)
@pytest.mark.parametrize(
    ("managers", "is_lifted"),
    [
        ((keys.FIELD_MANAGER,), True),
        (("kubectl-cordon",), False),
        ((keys.FIELD_MANAGER, "kubectl"), False),
        ((), False),
    ],
)
def test_if_the_progress_record_is_unreadable_managed_fields_show_who_cordoned_the_node(
    record: str | None, managers: tuple[str, ...], is_lifted: bool
) -> None:
    patch = undone(a_raw_node(record, managedFields=managed_by(*managers)))
    assert ("spec" in patch) is is_lifted
    assert patch["metadata"]["annotations"][keys.PROGRESS] is None, (
        "the patch removes the record, and the agent recovers from the claim in the lock"
    )


def test_a_node_with_the_progress_record_of_a_newer_release_gets_no_rescue_patch() -> None:
    newer = json.dumps({**json.loads(to_annotation(DRAINING)), "version": 2})
    assert rescue.undone(a_raw_node(newer), GIVEN) is None


@pytest.mark.parametrize(
    ("prior", "now", "restored"),
    [
        ({"pool": "web"}, "maintenance", {"pool": "web"}),
        ({"pool": "web"}, "somebody's", {}),
        ({"not a key!": "x", "ok/key": "y" * 64, "pool": 7, keys.REBOOT_LABEL: "ready"}, "maintenance", {}),
    ],
    ids=[
        "the label has not changed since the drain",
        "a person has changed the label since the drain",
        "the earlier values are invalid",
    ],
)
def test_the_rescue_patch_restores_labels_whose_earlier_values_are_readable(
    prior: dict[str, Any], now: str, restored: dict[str, str]
) -> None:
    record = json.dumps({**json.loads(to_annotation(DRAINING)), "prior_labels": prior})
    node = a_raw_node(record, labels={"pool": now})
    assert undone(node)["metadata"]["labels"] == {keys.REBOOT_LABEL: "failed", **restored}


@pytest.mark.parametrize(
    "answer",
    [
        {},
        [],
        None,
        "login",
        {"kind": "Status"},
        {**a_raw_node(), "kind": "Pod"},
        {**a_raw_node(), "metadata": {**a_raw_node()["metadata"], "resourceVersion": ""}},
    ],
    ids=[
        "an empty object",
        "a JSON list",
        "null",
        "a text",
        "a Status object",
        "a Pod",
        "a Node without a resourceVersion",
    ],
)
def test_an_invalid_node_is_never_patched(answer: Any) -> None:
    assert rescue.undone(answer, GIVEN) is None
    assert rescue.says(answer, "KeyError") is None
    assert not rescue.is_node(answer, "n1")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["version", "phase", "claim", "prior_labels", "x", "f:spec"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(
    record=JSON,
    metadata=st.dictionaries(st.sampled_from(["labels", "annotations", "managedFields", "uid"]), JSON, max_size=3),
    spec=JSON,
)
def test_a_rescue_patch_can_be_made_for_a_node_with_any_annotations(
    record: Any, metadata: dict[str, Any], spec: Any
) -> None:
    node = a_raw_node(json.dumps(record))
    node = {**node, "metadata": {**node["metadata"], **metadata}, "spec": spec}
    rescue.says_no_more(node)
    rescue.says(node, "KeyError")
    patch = rescue.undone(node, GIVEN)
    if patch is not None and (text := patch["metadata"]["annotations"][keys.PROGRESS]) is not None:
        assert isinstance(from_annotation(text), Progress)


def test_an_agents_error_is_appended_to_the_earlier_reason_and_later_removed_completely() -> None:
    told = rescue.says(a_raw_node(), "KeyError in careen.core; line 3\nsecret")
    assert told is not None
    assert told["metadata"]["annotations"] == {
        keys.REASON: "3 pods have to leave the node; the agent's turns break: KeyError in careen.core, line 3 secret"
    }
    node = a_raw_node(annotations=told["metadata"]["annotations"])
    assert rescue.says(node, "KeyError in careen.core; line 3\nsecret") is None, (
        "the annotation already contains the error"
    )
    taken_back = rescue.says_no_more(node)
    assert taken_back is not None
    assert taken_back["metadata"]["annotations"] == {keys.REASON: "3 pods have to leave the node"}
    assert rescue.says_no_more(a_raw_node()) is None


def test_an_agents_error_is_removed_completely_from_an_idle_node() -> None:
    node = a_raw_node(None, phase=None, annotations={keys.REASON: None})
    told = rescue.says(node, "KeyError")
    assert told is not None
    taken_back = rescue.says_no_more(a_raw_node(None, phase=None, annotations=told["metadata"]["annotations"]))
    assert taken_back is not None
    assert taken_back["metadata"]["annotations"] == {keys.REASON: None}


def test_a_long_error_message_is_shortened_to_a_readable_length() -> None:
    assert len(rescue.with_fault("waits", "x" * 10_000)) < 400


@pytest.mark.parametrize(
    ("content", "is_paused"),
    [
        (None, False),
        ("", False),
        ("{", False),
        ("[" * 100_000, False),
        ("[]", False),
        ('{"nodeID":"n2"}', False),
        ('{"locks":7}', False),
        ('{"nodeID":"manual"}', True),
        ('{"nodeID":"","locks":[null,{"nodeID":"manual"}],"maxOwners":"x"}', True),
    ],
)
def test_a_pause_takes_effect_in_an_otherwise_invalid_lock(content: str | None, is_paused: bool) -> None:
    assert rescue.is_paused(content) is is_paused


@pytest.mark.parametrize(
    "reason",
    [
        pytest.param("x" * 4_000, id="a reason of the greatest length"),
        pytest.param("x" * 150_000, id="a reason that is far too long"),
        pytest.param("a\nb\x1b[31m" + "; y" * 2_000, id="a reason with control characters and semicolons"),
        pytest.param("two\nlines", id="a reason of two lines"),
    ],
)
def test_an_agents_error_is_appended_once_to_a_reason_of_any_length(reason: str) -> None:
    node = a_raw_node(annotations={keys.REASON: reason})
    told = rescue.says(node, "KeyError")
    assert told is not None
    written = told["metadata"]["annotations"][keys.REASON]
    assert written.endswith("the agent's turns break: KeyError")
    node["metadata"]["annotations"][keys.REASON] = written
    assert rescue.says(node, "KeyError") is None, "the annotation already contains the error"
    assert rescue.says_no_more(node) is not None
