"""Tests which events match a plugin's registration (kube-scheduler's MatchClusterEvents)."""

import pytest

from scheduler_core.queue.events import Action, ClusterEvent, Resource

ANY = ClusterEvent(Resource.ANY, Action.ALL)


@pytest.mark.parametrize(
    ("registered", "happened", "heard"),
    [
        pytest.param(
            ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL),
            True,
            id="an event matches if its action is one of several registered actions",
        ),
        pytest.param(
            ClusterEvent(Resource.NODE, Action.ADD),
            ClusterEvent(Resource.NODE, Action.DELETE),
            False,
            id="an event with another action does not match",
        ),
        pytest.param(
            ClusterEvent(Resource.NODE, Action.ADD),
            ClusterEvent(Resource.CSI_NODE, Action.ADD),
            False,
            id="an event of another resource does not match",
        ),
        pytest.param(
            ClusterEvent(Resource.POD, Action.DELETE),
            ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE),
            True,
            id="a registration for pods matches an event of an assigned pod",
        ),
        pytest.param(
            ClusterEvent(Resource.POD, Action.UPDATE_POD_TOLERATION),
            ClusterEvent(Resource.UNSCHEDULED_POD, Action.UPDATE_POD_TOLERATION),
            True,
            id="a registration for pods matches an event of an unscheduled pod",
        ),
        pytest.param(
            ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE),
            ClusterEvent(Resource.POD, Action.DELETE),
            False,
            id="a registration for assigned pods does not match an event of the resource Pod",
        ),
        pytest.param(
            ClusterEvent(Resource.POD, Action.UPDATE_POD_LABEL),
            ClusterEvent(Resource.ASSIGNED_POD, Action.UPDATE),
            False,
            id="an event that sets all update actions at once does not match a registration for label updates",
        ),
        pytest.param(
            ClusterEvent(Resource.POD, Action.ALL),
            ClusterEvent(Resource.ASSIGNED_POD, Action.UPDATE),
            True,
            id="an event that sets all update actions at once matches a registration for all actions",
        ),
        pytest.param(
            ANY, ClusterEvent(Resource.CSI_DRIVER, Action.ADD), True, id="a wildcard registration matches every event"
        ),
        pytest.param(
            ClusterEvent(Resource.NODE, Action.ALL),
            ANY,
            False,
            id="a wildcard event matches no registration for nodes",
        ),
    ],
)
def test_a_registered_event_matches_as_in_kube_scheduler(
    registered: ClusterEvent, happened: ClusterEvent, heard: bool
) -> None:
    assert registered.matches(happened) is heard
