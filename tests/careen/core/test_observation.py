"""Tests which facts of an observation count as missing and which as known (`careen.core.observation`)."""

from __future__ import annotations

from typing import Any

import pytest

from careen.core.facts.observation import NOT_ASKED, Unknown
from careen.core.facts.phases import Evidence
from careen.core.observation import Observation
from tests.careen.core.builders import an_observation


@pytest.mark.parametrize(
    ("pods", "is_lacking", "is_known"),
    [(NOT_ASKED, True, False), (Unknown("503"), False, False), ((), False, True)],
    ids=["not asked", "unknown", "an empty list"],
)
def test_a_fact_is_lacking_until_the_agent_tries_to_read_it(pods: Any, is_lacking: bool, is_known: bool) -> None:
    seen: Observation = an_observation(pods=pods)
    assert (seen.lacks(Evidence.PODS), seen.knows(Evidence.PODS)) == (is_lacking, is_known)
