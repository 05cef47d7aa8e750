"""The wait of a drained node until the volumes of the evicted pods are detached."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from careen.core.decision import Decision
from careen.core.facts.observation import NOT_ASKED, AttachedVolume, Unknown
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.policy import DrainPolicy
from careen.core.facts.reasons import Code
from tests.careen.core.builders import NOW, a_daemon_pod, a_pod, a_policy, a_progress, ago, decided, the_record

RECORD = a_progress(Phase.DRAINING, volumes=2)
WAITING = replace(RECORD, drained=ago(20))
DB, LOG = AttachedVolume(name="pv-db"), AttachedVolume(name="pv-log", stays=True)
IN_USE = {"volumes": ("csi^pv-db",)}
KEEPER = a_daemon_pod("log-1", claims=("log",))


def drained(record: Any = RECORD, **changes: Any) -> Decision:
    return decided(record, **{"volumes": (), **changes})


@pytest.mark.parametrize(
    ("changes", "waits"),
    [
        pytest.param({}, False, id="no volume is left"),
        pytest.param({"node": IN_USE}, True, id="the Node lists a volume"),
        pytest.param({"volumes": (DB,)}, True, id="the Node lists no volume, but its attachment still exists"),
        pytest.param({"volumes": Unknown("403")}, False, id="the Node lists none, and the attachments are unreadable"),
        pytest.param(
            {"node": IN_USE, "pods": (KEEPER,), "volumes": (LOG,)}, False, id="a pod that stays uses the volume"
        ),
        pytest.param(
            {"node": IN_USE, "pods": (KEEPER,), "volumes": (DB, LOG)}, True, id="only one of the two volumes stays"
        ),
        pytest.param(
            {"node": IN_USE, "pods": (KEEPER,), "volumes": Unknown("403")},
            False,
            id="as many volumes as the pods claim that stay, and the attachments are unreadable",
        ),
        pytest.param(
            {"node": {"volumes": ("a", "b")}, "pods": (KEEPER,), "volumes": Unknown("403")},
            True,
            id="more volumes than the pods claim that stay, and the attachments are unreadable",
        ),
    ],
)
def test_a_drained_node_waits_for_the_volumes_of_evicted_pods(changes: dict[str, Any], waits: bool) -> None:
    for record in (RECORD, WAITING):
        decision = drained(record, **changes)
        assert (decision.phase is Phase.DRAINING) is waits
        assert (decision.reason.code is Code.DETACHING) is waits


def test_a_node_that_never_had_volumes_lists_no_attachment() -> None:
    assert drained(replace(RECORD, volumes=0), volumes=NOT_ASKED).phase is Phase.REBOOTING
    assert drained(volumes=NOT_ASKED).wants == {Evidence.VOLUMES}
    assert drained(volumes=NOT_ASKED, node=IN_USE).reason.code is Code.DETACHING, "the Node answers first"


def test_the_wait_is_recorded_told_and_slows_down() -> None:
    first = drained(node=IN_USE)
    assert the_record(first).drained == ago(0)
    assert first.reason.sentence == "the node is drained and waits until its volumes are detached: csi^pv-db"
    looks = [drained(replace(RECORD, drained=ago(waited)), node=IN_USE).look_again_seconds for waited in (1, 20, 299)]
    assert looks == [2.0, 5.0, 1.0]


@pytest.mark.parametrize(("waited", "phase"), [(299, Phase.DRAINING), (300, Phase.REBOOTING)])
def test_the_wait_ends_after_five_minutes_and_the_reboot_names_the_volumes(waited: float, phase: Phase) -> None:
    decision = drained(replace(RECORD, drained=ago(waited)), node=IN_USE)
    assert decision.phase is phase
    if phase is Phase.REBOOTING:
        assert decision.reason.sentence == (
            "the node is drained (after 5m these volumes are still attached: csi^pv-db), and no gate refuses: "
            "the node reboots"
        )


def test_a_reboot_delay_runs_at_the_same_time() -> None:
    policy = a_policy(reboot_delay_seconds=10.0)
    assert drained(WAITING, policy=policy, node=IN_USE).reason.code is Code.DETACHING
    assert drained(WAITING, policy=policy).phase is Phase.REBOOTING


def test_a_pod_for_which_the_drain_does_not_wait_keeps_its_volume() -> None:
    policy = a_policy(drain=DrainPolicy(skip_wait_for_delete_seconds=1.0))
    stuck = a_pod("stuck", deletion_timestamp=NOW.replace(year=2025), claims=("db",))
    held = replace(DB, stays=True)
    assert drained(policy=policy, node=IN_USE, pods=(stuck,), volumes=(held,)).phase is Phase.REBOOTING
