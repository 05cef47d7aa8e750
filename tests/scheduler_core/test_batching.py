"""Tests which pods kube-scheduler places in batches, and that a forecast then contains a note about the batches."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.batching import batches
from scheduler_core.config.configuration import Configuration
from scheduler_core.cycle import Scheduler
from scheduler_core.framework.verdict import SUCCESS
from scheduler_core.simulation.drain import simulate_drain
from scheduler_core.snapshot.loading import load_objects
from tests.scheduler_core.simulation.test_drain import a_node, a_pod

Manifest = dict[str, Any]
NO_DEFAULTS = {"name": "PodTopologySpread", "args": {"defaultingType": "List", "defaultConstraints": []}}
UNSPREAD: Manifest = {"profiles": [{"pluginConfig": [NO_DEFAULTS]}]}
WITHOUT: Manifest = {"profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "PodTopologySpread"}]}}}]}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
NEAR = {"podAffinityTerm": {"topologyKey": "zone", "labelSelector": {}}, "weight": 1}


@pytest.mark.parametrize(
    ("configuration", "version", "spec", "is_batched"),
    [
        pytest.param({}, "1.36", {}, False, id="the default spread constraints of the default profile prevent batches"),
        pytest.param(
            UNSPREAD, "1.36", {}, True, id="a configuration without default spread constraints allows batches"
        ),
        pytest.param(UNSPREAD, "1.34", {}, False, id="Kubernetes 1.34, which has no batches"),
        pytest.param(WITHOUT, "1.36", {}, True, id="a profile without PodTopologySpread allows batches"),
        pytest.param(
            {**UNSPREAD, "extenders": [{"urlPrefix": "http://x", "filterVerb": "f"}]},
            "1.36",
            {},
            False,
            id="a configuration with an extender prevents batches",
        ),
        pytest.param(
            UNSPREAD,
            "1.36",
            {"topologySpreadConstraints": [SPREAD]},
            False,
            id="a pod with its own spread constraints is not placed in a batch",
        ),
        pytest.param(
            WITHOUT,
            "1.36",
            {"topologySpreadConstraints": [SPREAD]},
            True,
            id="without PodTopologySpread, a pod with spread constraints is placed in a batch",
        ),
        pytest.param(
            UNSPREAD,
            "1.36",
            {"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [NEAR]}}},
            False,
            id="a pod with anti-affinity is not placed in a batch",
        ),
        pytest.param(
            UNSPREAD,
            "1.36",
            {"schedulerName": "another"},
            False,
            id="a pod of another scheduler is not placed in a batch",
        ),
    ],
)
def test_the_library_knows_which_pods_kube_scheduler_places_in_batches(
    configuration: Manifest, version: str, spec: Manifest, is_batched: bool
) -> None:
    pod = load_objects([a_pod("p", "", **spec)]).pending[0]
    assert batches(Scheduler(Configuration.from_mapping(configuration), version), pod) is is_batched


class Own:
    """An out-of-tree plugin, which is assumed to have no method SignPod. So its profile places no pods in batches."""

    name = "Own"

    def filter(self, *_: Any) -> Any:
        return SUCCESS


def test_an_out_of_tree_plugin_disables_batching() -> None:
    profile = {**UNSPREAD["profiles"][0], "plugins": {"filter": {"enabled": [{"name": "Own"}]}}}
    configuration = Configuration.from_mapping({"profiles": [profile]})
    pod = load_objects([a_pod("p", "")]).pending[0]
    assert not batches(Scheduler(configuration, plugins={"Own": lambda _args, _version: Own()}), pod)


@pytest.mark.parametrize(("replicas", "is_said"), [(1, False), (2, True)])
def test_a_forecast_notes_that_identical_pods_are_placed_in_batches(replicas: int, is_said: bool) -> None:
    objects = [*(a_node(f"n{n}") for n in range(4)), *(a_pod(f"p{n}", "n0", app="web") for n in range(replicas))]
    (made,) = simulate_drain(
        load_objects(objects), ["n0"], made_at="", configuration=Configuration.from_mapping(UNSPREAD)
    )
    assert any("places identical pods in batches" in note for note in made.notes) is is_said


@pytest.mark.parametrize(
    ("version", "when"),
    [("1.36", "does not fit on the node of the previous pod"), ("1.37", "comes right after another one")],
)
def test_since_1_37_a_batch_goes_on_also_on_the_same_node(version: str, when: str) -> None:
    objects = [*(a_node(f"n{n}") for n in range(4)), *(a_pod(f"p{n}", "n0", app="web") for n in range(2))]
    (made,) = simulate_drain(
        load_objects(objects),
        ["n0"],
        made_at="",
        configuration=Configuration.from_mapping(UNSPREAD),
        kube_version=version,
    )
    assert any(f"if one of these 2 pods {when}" in note for note in made.notes)
