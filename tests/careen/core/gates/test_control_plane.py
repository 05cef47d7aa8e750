"""A control-plane node begins its reboot only while the API server and etcd report that they are ready."""

from __future__ import annotations

import pytest

from careen.core.facts import keys
from careen.core.facts.observation import NOT_ASKED, Asked, Unknown
from careen.core.facts.reasons import Code
from careen.core.gates.control_plane import control_plane
from careen.core.gates.question import When
from tests.careen.core.builders import a_node, a_situation


@pytest.mark.parametrize("label", [keys.CONTROL_PLANE, keys.MASTER])
@pytest.mark.parametrize(
    ("failing", "code", "sentence"),
    [
        ((), None, ""),
        (("etcd", "informer-sync"), Code.CONTROL_PLANE_NOT_READY, "the API server is not ready: etcd, informer-sync"),
        (
            Unknown("the API server did not answer"),
            Code.READYZ_UNKNOWN,
            "careen cannot tell whether the API server and etcd are ready: the API server did not answer",
        ),
        (
            NOT_ASKED,
            Code.READYZ_UNKNOWN,
            (
                "careen cannot tell whether the API server and etcd are ready: the agent has not read this fact in "
                "this turn"
            ),
        ),
    ],
)
def test_the_reboot_of_a_control_plane_node_is_refused_if_the_api_server_is_not_ready(
    label: str, failing: Asked[tuple[str, ...]], code: Code | None, sentence: str
) -> None:
    refused = control_plane.ask(a_situation(a_node(labels={label: ""}), readyz=failing), When.READY)
    assert (refused and refused.code) == code
    assert refused is None or sentence in refused.sentence


def test_the_control_plane_gate_refuses_no_worker_node() -> None:
    assert control_plane.ask(a_situation(a_node(), readyz=("etcd",)), When.READY) is None
