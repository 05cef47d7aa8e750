"""Estimates when a node's agent begins its next turn or retries a failed reboot, from the Node's record and the lock.

Only the agent knows the exact time, from its last decision: the time depends on its memory and on evidence that nobody
else has. A test checks that no agent sleeps longer than this estimate."""

from __future__ import annotations

from datetime import datetime

from careen.core.decision import stored_refusals
from careen.core.drain import baseline
from careen.core.facts import keys
from careen.core.facts.observation import NodeView, Unknown
from careen.core.facts.phases import Phase
from careen.core.facts.policy import Policy
from careen.core.facts.progress import Progress
from careen.core.facts.times import from_rfc3339, span
from careen.core.gates import COSTLY
from careen.core.lock import order, pauses
from careen.core.lock.content import Garbage, LockContent
from careen.core.steps import draining, failed, idle, line, maintenance, rebooting, verifying
from careen.core.steps.shared import failing
from scheduler_core.values import Value


class NextTurn(Value, kw_only=True):
    """With `is_retry`, the agent retries a failed reboot after exactly `seconds`; otherwise its next turn begins after
    at most `seconds`."""

    seconds: float
    is_retry: bool = False

    @property
    def sentence(self) -> str:
        """The estimate as a sentence."""
        if self.is_retry:
            when = f"in {span(round(self.seconds))}" if self.seconds >= 1 else "now"
            return f"the node's agent retries the reboot {when}"
        return f"the node's agent decides again within {span(round(self.seconds))}"


def next_turn(
    node: NodeView,
    progress: Progress,
    lock: LockContent | Garbage | Unknown,
    policy: Policy,
    now: datetime,
    *,
    agents: int | None = None,
) -> NextTurn:
    """When the agent acts next, if its clock and this computer's clock agree. `agents` is their number, if known."""
    phase = Phase(progress.phase) if progress.phase else Phase.IDLE
    if phase is Phase.WAITING:
        return NextTurn(seconds=_of_the_waiting(node, lock, policy, agents))
    if phase is Phase.FAILED and (left := _until_the_retry(node, progress, policy, now)) is not None:
        return NextTurn(seconds=left, is_retry=True)
    return NextTurn(seconds=_LOOKS[phase])


_LOOKS = {
    Phase.IDLE: idle.LOOK_SECONDS,
    Phase.CLAIMING: idle.LOOK_SECONDS,
    Phase.DRAINING: draining.LOOK_SECONDS,
    Phase.MAINTENANCE: maintenance.LOOK_SECONDS,
    Phase.REBOOTING: rebooting.LOOK_SECONDS,
    Phase.VERIFYING: verifying.LOOK_SECONDS,
    Phase.SETTLING: baseline.SLOW_LOOK_SECONDS,
    Phase.FAILED: failing.LOOK_SECONDS,
}

# The number of waiting nodes that is assumed if the number of agents is unknown. With this many waiting nodes, a node
# outside the line pauses for LONGEST_LOOK_SECONDS, the longest pause.
_ANY_NUMBER = int(pauses.LONGEST_LOOK_SECONDS * pauses.LOOKS_PER_SECOND)


def _of_the_waiting(node: NodeView, lock: LockContent | Garbage | Unknown, policy: Policy, agents: int | None) -> float:
    content, refused = lock if isinstance(lock, LockContent) else LockContent(), stored_refusals(node)
    # The agent may have looked when more nodes waited than now, and it may know the number of agents.
    waiting = _ANY_NUMBER if agents is None else max(content.line.waiting, agents)
    look = line.LOOK_SECONDS
    if node.labels.get(keys.REBOOT_LABEL) == order.READY:
        look = pauses.look_again_seconds(node.name, content, policy, 1.0, waiting=waiting)
    if any(each.gate in COSTLY for each in refused):
        look = max(look, line.COSTLY_PAUSE_LIMIT_SECONDS * 1.25)
    if node.name not in content.line.names:
        look = pauses.paced(look, waiting, 1.0)
    return min(look, pauses.LONGEST_LOOK_SECONDS)


def _until_the_retry(node: NodeView, progress: Progress, policy: Policy, now: datetime) -> float | None:
    """The seconds until the agent retries a failed reboot; None if only a person can start a retry."""
    since = from_rfc3339(node.annotations.get(keys.SINCE, ""))
    if since is None or progress.claim or not failed.is_tried_again(progress, policy):
        return None
    return max(0.0, failed.backoff_seconds(progress, policy) - (now - since).total_seconds())
