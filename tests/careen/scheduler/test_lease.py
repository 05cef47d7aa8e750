"""Who may take the Lease, and what is written."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from careen.scheduler.lease import Lease, LeaseSettings, LeaseStep, body, next_step

SETTINGS = LeaseSettings(name="careen-scheduler")
AT = datetime(2026, 11, 27, 10, tzinfo=UTC)


def a_lease(holder: str | None, *, seconds: int = 15) -> Lease:
    return msgspec.convert(
        {
            "metadata": {"name": "careen-scheduler", "resourceVersion": "5"},
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": seconds,
                "acquireTime": "2026-11-27T09:00:00.000000Z",
                "leaseTransitions": 3,
            },
        },
        Lease,
    )


@pytest.mark.parametrize(
    ("lease", "unchanged", "step"),
    [
        pytest.param(None, 0.0, LeaseStep.CREATE, id="there is none"),
        pytest.param(a_lease("me"), 99.0, LeaseStep.RENEW, id="it is mine"),
        pytest.param(a_lease("other"), 14.0, LeaseStep.WAIT, id="another holds it"),
        pytest.param(a_lease("other"), 16.0, LeaseStep.TAKE, id="another did not renew it"),
        pytest.param(a_lease("other", seconds=60), 16.0, LeaseStep.WAIT, id="the holder asked for more time"),
        pytest.param(a_lease(""), 0.0, LeaseStep.TAKE, id="it was released"),
        pytest.param(a_lease(None), 0.0, LeaseStep.TAKE, id="it never had a holder"),
    ],
)
def test_a_lease_is_taken_only_if_nobody_renews_it(lease: Lease | None, unchanged: float, step: LeaseStep) -> None:
    assert next_step(lease, me="me", unchanged_seconds=unchanged) is step


def test_a_write_is_bound_to_the_version_that_was_read() -> None:
    written: Any = body(SETTINGS, LeaseStep.TAKE, a_lease("other"), me="me", at=AT)
    assert written["metadata"]["resourceVersion"] == "5"


def test_taking_counts_a_transition_and_renewing_keeps_when_it_was_acquired() -> None:
    taken: Any = body(SETTINGS, LeaseStep.TAKE, a_lease("other"), me="me", at=AT)
    renewed: Any = body(SETTINGS, LeaseStep.RENEW, a_lease("me"), me="me", at=AT)
    assert (taken["spec"]["leaseTransitions"], renewed["spec"]["leaseTransitions"]) == (4, 3)
    assert renewed["spec"]["acquireTime"] == "2026-11-27T09:00:00.000000Z"
    assert taken["spec"]["acquireTime"] == renewed["spec"]["renewTime"] == "2026-11-27T10:00:00.000000Z"
