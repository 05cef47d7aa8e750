"""The settings may contain keys of labels, annotations or taints that the admission policies would refuse. The agent
reports these keys when it reads the settings, long before a roll-out would fail."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from careen.agent.startup.allowed_keys import PREFIX, AllowedKeys, needed, unlisted
from careen.agent.startup.start import SETTINGS_WITH_KEYS
from careen.settings.sources import resolve
from careen.settings.tree import DEFAULTS, Settings, flag
from tests.architecture.source_tree import ROOT
from tests.careen.virtual_shell import Answer, Scripted, VirtualClock, an_object, answer, api_on, status

BASICS: dict[str, list[str]] = {"node_id": ["n1"], "ds_namespace": ["careen"], "ds_name": ["careen"]}
DEFAULT = resolve(flags=BASICS, environment={}).settings
LISTS = {
    f"{PREFIX}taints": "careen.dev/reboot",
    f"{PREFIX}labels": "",
    f"{PREFIX}annotations": "weave.works/kured-reboot-in-progress,weave.works/kured-most-recent-reboot-needed",
    f"{PREFIX}lock-annotation": "weave.works/kured-node-lock",
}
PLACE = "careen/careen"


def settings(**changes: Any) -> Settings:
    return replace(DEFAULT, **changes)


@pytest.mark.parametrize(
    ("changes", "lists", "told"),
    [
        pytest.param({}, LISTS, "", id="the settings contain only careen's own keys"),
        pytest.param({"prefer_no_schedule_taint": ""}, LISTS, "", id="the settings contain no taint"),
        pytest.param(
            {"prefer_no_schedule_taint": "a.b/c"},
            LISTS,
            "--prefer-no-schedule-taint needs `a.b/c`, "
            "but the annotation admission.careen.dev/taints does not list this key",
            id="the taint is not listed",
        ),
        pytest.param(
            {"pre_reboot_node_labels": (("a", "1"), ("b", "2"), ("c", ""))},
            LISTS | {f"{PREFIX}labels": "b , x"},
            "--pre-reboot-node-labels needs `a`, `c`, "
            "but the annotation admission.careen.dev/labels does not list these keys",
            id="two of three labels are not listed",
        ),
        pytest.param(
            {"pre_reboot_node_labels": (("a", "1"),), "post_reboot_node_labels": (("a", "2"),)},
            LISTS | {f"{PREFIX}labels": "a"},
            "",
            id="all labels are listed",
        ),
        pytest.param(
            {"post_reboot_node_labels": (("careen.dev/reboot", "x"), ("careen.dev/other", "x"))},
            LISTS,
            "--post-reboot-node-labels needs `careen.dev/other`, "
            "but the annotation admission.careen.dev/labels does not list this key",
            id="careen.dev/reboot needs no entry, another careen.dev label needs one",
        ),
        pytest.param({"annotate_nodes": True}, LISTS, "", id="kured's annotations are listed by default"),
        pytest.param(
            {"annotate_nodes": True},
            LISTS | {f"{PREFIX}annotations": "weave.works/kured-reboot-in-progress"},
            "--annotate-nodes needs `weave.works/kured-most-recent-reboot-needed`, "
            "but the annotation admission.careen.dev/annotations does not list this key",
            id="one of kured's annotations is not listed",
        ),
        pytest.param(
            {"lock_annotation": "a.b/lock"},
            LISTS,
            "--lock-annotation needs `a.b/lock`, "
            "but the annotation admission.careen.dev/lock-annotation does not list this key",
            id="the lock annotation is not listed",
        ),
        pytest.param(
            {"pre_reboot_node_labels": (("a", "1"),)},
            {f"{PREFIX}taints": "x"},
            "--pre-reboot-node-labels needs `a`, but the annotation admission.careen.dev/labels does not list this key",
            id="the list of labels is missing",
        ),
        pytest.param({"pre_reboot_node_labels": (("a", "1"),)}, {}, "", id="the policies are not installed"),
        pytest.param(
            {"pre_reboot_node_labels": (("a", "1"),)},
            {"weave.works/kured-node-lock": "{}"},
            "",
            id="the DaemonSet has a lock annotation and no list of allowed keys",
        ),
    ],
)
def test_keys_that_the_admission_policies_would_refuse_are_reported(
    changes: dict[str, Any], lists: dict[str, str], told: str
) -> None:
    sentence = unlisted(needed(settings(**changes)), lists, PLACE)
    assert told in sentence
    assert bool(sentence) is bool(told)
    if told:
        assert sentence.startswith(
            "the admission policies will refuse some keys in the settings, because DaemonSet careen/careen does not "
            "allow these keys: --"
        )
        assert sentence.endswith("Add the keys to these annotations, or change the settings")


def test_all_refused_keys_are_in_one_message() -> None:
    changed = settings(prefer_no_schedule_taint="t", pre_reboot_node_labels=(("l", "1"),))
    sentence = unlisted(needed(changed), LISTS, PLACE)
    assert (
        "--prefer-no-schedule-taint needs `t`, but the annotation admission.careen.dev/taints does not list this key"
    ) in sentence
    assert (
        "--pre-reboot-node-labels needs `l`, but the annotation admission.careen.dev/labels does not list this key"
    ) in sentence


def test_the_check_of_allowed_keys_covers_exactly_the_settings_that_contain_keys() -> None:
    """Settings that contain no label, annotation or taint key cannot conflict with the admission policies."""
    others = {"prefer_no_schedule_taint": "t", "annotate_nodes": True, "lock_annotation": "l"}
    labels = dict.fromkeys(("pre_reboot_node_labels", "post_reboot_node_labels"), (("l", "1"),))
    changed = others | labels
    assert {setting for _, setting in needed(settings(**changed))} == set(SETTINGS_WITH_KEYS) == set(changed)
    assert needed(settings(**{name: DEFAULTS[name] for name in SETTINGS_WITH_KEYS})) == {}


def test_the_agent_reads_the_same_lists_of_allowed_keys_as_the_admission_policies() -> None:
    parameters = (ROOT / "manifests" / "admission" / "parameters.yaml").read_text()
    changed = settings(
        prefer_no_schedule_taint="t", annotate_nodes=True, lock_annotation="l", pre_reboot_node_labels=(("l", "1"),)
    )
    for name, setting in needed(changed):
        assert f"    {PREFIX}{name}: " in parameters
        assert flag(setting) in parameters


# ---- requests to the API server ----

LABELLED = settings(pre_reboot_node_labels=(("a", "1"),))


COUNTS = {"desiredNumberScheduled": 1, "currentNumberScheduled": 1, "numberMisscheduled": 0}


def daemonset(lists: dict[str, str]) -> Answer:
    made = an_object("DaemonSet", "careen", namespace="careen", metadata={"annotations": lists})
    return answer(200, {**made, "apiVersion": "apps/v1", "status": COUNTS})


def asking(*answers: Answer) -> tuple[AllowedKeys, Scripted, VirtualClock]:
    wire, clock = Scripted(*answers), VirtualClock()
    return AllowedKeys(api_on(wire, clock), DEFAULT), wire, clock


POSTED = answer(201, an_object("Event", "careen.x", namespace="careen"))


async def test_refused_keys_are_reported_once_as_an_event_of_the_daemonset(caplog: pytest.LogCaptureFixture) -> None:
    keys, wire, _ = asking(daemonset(LISTS), POSTED)
    await keys.check(LABELLED)
    await keys.check(replace(LABELLED, concurrency=2))
    asked, posted = wire.asked
    assert (asked.method, asked.path) == ("GET", "/apis/apps/v1/namespaces/careen/daemonsets/careen")
    assert posted.path == "/api/v1/namespaces/careen/events"
    body = wire.bodies[1]
    involved = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "careen", "namespace": "careen"}
    assert body["involvedObject"] == {**involved, "uid": "uid-careen"}
    assert (body["reason"], body["type"]) == ("KeysNotAllowed", "Warning")
    assert "generateName" not in body["metadata"], "every agent of the fleet posts the same Event"
    (line,) = [record.getMessage() for record in caplog.records if record.name == "careen.rights"]
    assert (
        "--pre-reboot-node-labels needs `a`, but the annotation admission.careen.dev/labels does not list this key"
    ) in line


async def test_the_agent_checks_keys_again_after_a_change_of_the_settings() -> None:
    keys, wire, _ = asking(daemonset({}), daemonset({}))
    await keys.check(LABELLED)
    await keys.check(settings(pre_reboot_node_labels=(("b", "1"),)))
    assert len(wire.asked) == 2


@pytest.mark.parametrize("refused", [status(403, "Forbidden"), status(404, "NotFound")])
async def test_an_agent_that_may_not_read_the_daemonset_reports_no_missing_key(
    refused: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    keys, wire, _ = asking(refused)
    await keys.check(LABELLED)
    assert len(wire.asked) == 1
    assert caplog.records == []


async def test_the_check_of_allowed_keys_is_repeated_if_the_server_gives_no_usable_answer() -> None:
    keys, wire, clock = asking(status(401, "Unauthorized"), status(401, "Unauthorized"), daemonset({}))
    await keys.check(LABELLED)
    assert len(wire.asked) == 3
    assert clock.seconds >= 120.0
