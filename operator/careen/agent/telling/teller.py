"""Reports a node that has been refused for too long, and reads the figures for the message about a roll-out's end. Of
many agents with the same report, one sends it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from careen.agent.messages import Messenger
from careen.agent.telling.held_back import HeldBack, due, is_reported_by_another
from careen.cluster.events import Subject, is_first
from careen.cluster.nodes import list_nodes
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.errors import ClusterError
from careen.core.actions import Occasion
from careen.core.facts.observation import NodeView
from careen.core.lock.reading import LockReading
from careen.core.observation import Observation
from careen.settings.tree import Settings

if TYPE_CHECKING:
    from careen.agent.turn import TurnResult
    from careen.core.people.rollout import Figures

_LOG = logging.getLogger("careen.messages")


async def figures_of_rollout(api: ClusterApi) -> Figures | None:
    """The figures of the last roll-out, from a list of the Nodes; None if that fails."""
    from careen.core.people.rollout import figures  # once in a roll-out

    try:
        return figures(await list_nodes(api))
    except ClusterError as error:
        _LOG.info("the roll-out's figures are not known: %s", error)
        return None


class Teller:
    """Gets each turn's refusals, and reports those that last too long."""

    def __init__(
        self,
        *,
        api: ClusterApi,
        settings: Callable[[], Settings],
        messages: Messenger,
        in_background: Callable[[Coroutine[Any, Any, object]], None],
    ) -> None:
        self._api = api
        self._settings = settings
        self._messages = messages
        self._in_background = in_background
        self._told = ""

    def look(self, result: TurnResult) -> None:
        """After each turn. Sends no request unless a report is due."""
        settings, seen = self._settings(), result.observation
        node = seen.node
        if not isinstance(node, NodeView) or not self._messages.is_wanted(Occasion.BLOCKED):
            return
        found = due(
            node.name, result.decision.refusals, result.phase, seen.now, after_seconds=settings.notify_blocked_after
        )
        if found is not None and found.once != self._told:
            self._told = found.once
            self._in_background(self._report_if_first(found, self._subject(found, node, seen), node.name))

    def _subject(self, found: HeldBack, node: NodeView, seen: Observation) -> Subject:
        """The Event's object: the lock's DaemonSet if the gate refuses every node and the lock was read, otherwise the
        Node."""
        if not found.is_cluster_wide or not isinstance(seen.lock, LockReading):
            return Subject(kind="Node", name=node.name, uid=node.uid)
        settings = self._settings()
        return Subject(
            kind="DaemonSet",
            name=settings.ds_name,
            namespace=settings.ds_namespace,
            uid=seen.lock.daemonset_uid,
            api_version="apps/v1",
        )

    async def _report_if_first(self, found: HeldBack, subject: Subject, node: str) -> None:
        sentence = found.message.sentence
        if not await is_first(self._api, subject, reason="HeldBack", sentence=sentence, host=node, once=found.once):
            return
        if not found.is_cluster_wide or not await self._is_reported_by_another(found):
            self._messages.tell(found.message)

    async def _is_reported_by_another(self, found: HeldBack) -> bool:
        """If the waiting Nodes cannot be listed, False: a second report is better than none."""
        try:
            waiting = await list_nodes(self._api, reboot_label=("ready", "required"))
        except ClusterError as error:
            _LOG.info("the agent cannot tell whether another agent has sent this report: %s", error)
            return False
        return is_reported_by_another(found, waiting)
