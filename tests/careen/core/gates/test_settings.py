"""The settings gate. It decides what the agent may do while its current settings are invalid."""

from __future__ import annotations

import pytest

from careen.core.facts.reasons import Code
from careen.core.gates.question import When
from careen.core.gates.settings import settings
from tests.careen.core.builders import a_policy, a_situation


@pytest.mark.parametrize(
    ("problem", "is_whole", "when", "is_refused"),
    [
        ("", True, When.READY, False),
        ("", False, When.BEFORE_REBOOT, False),
        ("no ConfigMap", True, When.READY, True),
        ("no ConfigMap", True, When.CLAIMED, True),
        ("no ConfigMap", True, When.BEFORE_REBOOT, False),
        ("no ConfigMap", False, When.READY, True),
        ("no ConfigMap", False, When.BEFORE_REBOOT, True),
    ],
)
def test_while_the_newest_settings_are_unusable_no_node_may_begin_its_drain(
    problem: str,
    is_whole: bool,
    when: When,
    is_refused: bool,
) -> None:
    """The agent then runs on older settings. A node that is already drained may reboot if the older settings are
    complete. If the older settings are incomplete, the drained node may not reboot."""
    refused = settings.ask(a_situation(policy=a_policy(settings_problem=problem, are_settings_whole=is_whole)), when)
    assert (refused is not None) is is_refused
    if refused is not None:
        assert (refused.code, refused.sentence) == (Code.SETTINGS_UNUSABLE, "no ConfigMap")
