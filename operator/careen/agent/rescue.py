"""Handles turns that raise an error: reports it on the Node, in a metric and in an Event, and puts a node in Claiming
or Draining back into service.

It needs only the transport and the clock to send what `core/rescue.py` composes. Everything else, such as metrics, is
optional and may fail.
"""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import quote

from careen.agent.apply import EVENT_PAUSES_SECONDS, Hands
from careen.cluster.events import Subject, post_event
from careen.cluster.nodes import NODES
from careen.cluster.wire.errors import ClusterError
from careen.cluster.wire.transport import MERGE_PATCH, Request, Response
from careen.core import rescue
from careen.core.actions import Notify, Occasion
from careen.core.facts import keys
from careen.core.facts.observation import Gone, NodeView, Unknown
from careen.core.facts.policy import Policy
from careen.core.facts.reasons import Code, event_reason
from careen.core.facts.times import rfc3339, span
from careen.core.gates.hold import until_of

_LOG = logging.getLogger("careen.rescue")
T = TypeVar("T")

_RETELL_SECONDS = 60.0
_REQUEST_SECONDS = 5.0
_ATTEMPTS = 3  # one concurrent write is common, three in a row are not


class Rescue:
    """Counts consecutive broken turns, and puts the node back into service if the loop itself cannot."""

    def __init__(self, hands: Hands) -> None:
        self._hands = hands
        self._count = 0
        self._since = 0.0
        self._told_at: float | None = None
        self._is_event_posted = False

    async def worked(self, node: NodeView | Gone | Unknown) -> bool:
        """After a turn without an error: removes the report of earlier ones. Returns whether the Node was written."""
        self._count, self._told_at, self._is_event_posted = 0, None, False
        self._show()
        reason = node.annotations.get(keys.REASON, "") if isinstance(node, NodeView) else ""
        if rescue.without_fault(reason) == reason:
            return False
        patch = rescue.says_no_more(await self._read())
        return patch is not None and await self._lands(patch)

    async def broke(self, error: Exception, policy: Policy | None) -> bool:
        """After a broken turn: reports the error on the Node; after several, undoes claim or drain. Returns whether the
        node is back in service."""
        self._count_one_more()
        fault, sent = fault_of(error), ""
        for _ in range(_ATTEMPTS):
            node = await self._read()
            if node is None:
                return False
            self._post_once(node, fault)
            if sent and _reason(node) == sent:
                return self._gave_back(node, sent)  # the patch landed, its answer was lost
            because = await self._why_undo(node, fault)
            undone = rescue.undone(node, self._circumstances(because, policy)) if because else None
            if undone is None:
                await self._say(node, fault)
                return False
            sent = undone["metadata"]["annotations"][keys.REASON]
            if await self._lands(undone):
                return self._gave_back(node, sent)
        return False

    def _count_one_more(self) -> None:
        now = self._hands.api.clock.monotonic()
        self._since = self._since if self._count else now
        self._count += 1
        self._show()

    def _show(self) -> None:
        self._hands.metrics.broken_turns.labels(self._hands.node_name).set(self._count)

    # ---- when to undo ----

    async def _why_undo(self, node: dict[str, Any], fault: str) -> str:
        """Why to undo claim or drain now, or "". Normally several turns must have failed; with a hold or a pause one is
        enough."""
        if not rescue.is_under_way(node):
            return ""
        held = rescue.hold_of(node)
        if held is not None and not _hint(lambda: _is_over(held, self._hands.api.clock.now()), False):
            return f"held: {held}" if held.strip() else "the node is held by a person who gave no reason"
        if await self._is_paused():
            return "a person paused the lock"
        lasted = self._hands.api.clock.monotonic() - self._since
        if self._count < rescue.BROKEN_TURNS or lasted < rescue.BROKEN_SECONDS:
            return ""
        return f"{self._count} turns in a row failed within {span(round(lasted))} ({fault})"

    async def _is_paused(self) -> bool:
        try:
            return rescue.is_paused((await self._hands.lock.read()).text)
        except Exception as error:  # this may be the error that breaks the turns
            _LOG.info("the agent cannot tell whether a person paused the lock: %r", error)
            return False

    def _circumstances(self, because: str, policy: Policy | None) -> rescue.Circumstances:
        host = self._hands.host
        return rescue.Circumstances(
            because=because,
            now=rfc3339(self._hands.api.clock.now()),
            uptime=_hint(host.uptime, 0.0),
            boot=_hint(lambda: "" if isinstance(boot := host.read_boot_id(), Unknown) else boot, ""),
            labels=policy.pre_reboot_labels if policy else {},
        )

    # ---- reports ----

    async def _say(self, node: dict[str, Any], fault: str) -> None:
        now = self._hands.api.clock.monotonic()
        if self._told_at is not None and now - self._told_at < _RETELL_SECONDS:
            return
        patch = rescue.says(node, fault)
        if patch is None or await self._lands(patch):
            self._told_at = now

    def _post_once(self, node: dict[str, Any], fault: str) -> None:
        if not self._is_event_posted:
            self._is_event_posted = True
            self._post(node, f"a turn failed: {fault}; see the agent's log")

    def _gave_back(self, node: dict[str, Any], sentence: str) -> bool:
        _LOG.error("after failures of its loop, the agent released the claim: %s", sentence)
        self._told_at = self._hands.api.clock.monotonic()
        self._post(node, sentence)
        self._hands.notify(Notify(occasion=Occasion.FAILED, sentence=f"Node {self._hands.node_name}: {sentence}"))
        return True

    def _post(self, node: dict[str, Any], sentence: str) -> None:
        hands = self._hands
        subject = Subject(kind="Node", name=hands.node_name, uid=str(node["metadata"]["uid"]))
        reason = event_reason(Code.TURN_BROKEN)
        hands.in_background(
            post_event(
                hands.api,
                subject,
                reason=reason,
                sentence=sentence,
                is_warning=True,
                host=hands.node_name,
                pauses=EVENT_PAUSES_SECONDS,
            )
        )

    # ---- the server ----

    async def _read(self) -> dict[str, Any] | None:
        response = await self._send(Request(method="GET", path=self._path, timeout_seconds=_REQUEST_SECONDS))
        if response is None or response.status != 200:
            return None
        try:
            node = json.loads(response.body)
        except (ValueError, RecursionError):
            return None
        return node if rescue.is_node(node, self._hands.node_name) else None

    async def _lands(self, patch: dict[str, Any]) -> bool:
        """Returns whether the Node now certainly contains the patch, which carries a resourceVersion, so it conflicts
        if it arrives late."""
        response = await self._send(
            Request(
                method="PATCH",
                path=self._path,
                query={"fieldManager": keys.FIELD_MANAGER},
                body=json.dumps(patch).encode(),
                content_type=MERGE_PATCH,
                timeout_seconds=_REQUEST_SECONDS,
            )
        )
        if response is not None and response.status not in (200, 409):
            _LOG.error(
                "the agent cannot write the failures of its loop on the Node: %s %s",
                response.status,
                response.body[:200].decode("utf-8", "replace"),
            )
        return response is not None and response.status == 200

    async def _send(self, request: Request) -> Response | None:
        try:
            return await self._hands.api.transport.send(request)
        except ClusterError as error:
            _LOG.info("%s", error)
            return None

    @property
    def _path(self) -> str:
        return f"{NODES}/{quote(self._hands.node_name, safe='')}"


def fault_of(error: BaseException) -> str:
    """The error's class and where it was raised; not its message, which may contain a secret or be long."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    frames = [(frame.f_globals.get("__name__", "?"), line) for frame, line in traceback.walk_tb(error.__traceback__)]
    ours = [each for each in frames if str(each[0]).startswith(("careen.", "scheduler_core."))] or frames
    return f"{type(error).__name__} in {ours[-1][0]}, line {ours[-1][1]}" if ours else type(error).__name__


def _is_over(hold: str, now: datetime) -> bool:
    until = until_of(hold)
    return until is not None and until <= now


def _hint(ask: Callable[[], T], otherwise: T) -> T:
    """`otherwise` if `ask` raises an error."""
    try:
        return ask()
    except Exception as error:
        _LOG.info("the agent undoes the drain although it cannot read a fact: %r", error)
        return otherwise


def _reason(node: dict[str, Any]) -> object:
    annotations = node["metadata"].get("annotations")
    return annotations.get(keys.REASON) if isinstance(annotations, dict) else None
