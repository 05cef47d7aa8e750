"""Checks the holders: whether each still has the claim id on its Node and makes progress.

A waiting node's agent reads the holders' Nodes, removes stale claims from the lock, and marks the holders that take
longer than usual, so that every other waiting node can report them. The first node in line checks most often. Nothing
here depends on how long an agent's process lives.
"""

from __future__ import annotations

from datetime import datetime

from careen.core.actions import Notify, Occasion
from careen.core.decision import Decision, stored_refusals
from careen.core.facts.observation import Holders, Unknown
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.reasons import Code
from careen.core.facts.times import from_rfc3339
from careen.core.lock import changes, overdue, stale_claims
from careen.core.lock import content as lock
from careen.core.lock.content import Entry, LockContent
from careen.core.lock.stale_claims import StaleClaims
from careen.core.outcomes import Status, Stay, stay, waiting_label, write_lock
from careen.core.situation import Situation
from careen.core.steps.shared import crowd
from scheduler_core.values import replace_value as replace

LOOK_SECONDS = 30.0  # the pause of the first in line; the second checks half as often, and so on
OTHERS_LOOK_SECONDS = 3600.0  # for a node outside of the line: all nodes in the line may be dead


def look(situation: Situation) -> Decision | None:
    """Check the holders if a check is due: free a stale claim, or mark an overdue holder."""
    content = situation.content
    if content is None or content.is_paused or not _is_due(situation, content):
        return None
    holders = situation.read(Evidence.HOLDERS)
    pause = pause_seconds(situation.node.name, content, _lookers(situation))
    check = replace(situation.memory.holder_check, at=situation.seen.uptime + pause)
    situation.remember(holder_check=check)
    if holders is None:
        return None
    stale = examined(situation, content, holders)
    situation.remember(holder_check=replace(check, suspected=stale.suspected))
    return _free(situation, content, stale.proven) if stale.proven else _mark(situation, content, holders)


def examined(situation: Situation, content: LockContent, holders: Holders) -> StaleClaims:
    """The stale and the suspected claims, by the memory of earlier checks and the marks in the lock."""
    return stale_claims.examine(
        content,
        holders,
        situation.memory.holder_check.suspected,
        uptime=situation.seen.uptime,
        server_now=None if isinstance(situation.seen.clock_skew_seconds, Unknown) else situation.server_now,
        deadline_seconds=situation.policy.absence_seconds,
    )


def pause_seconds(name: str, content: LockContent, lookers: int | None) -> float:
    """The seconds until this node checks the holders again: 30 for the first in the line, 60 for the second and so on,
    an hour outside of the line. While the line is empty, all `lookers` together check about once a second."""
    if not content.line.names:
        return max(LOOK_SECONDS, lookers or 0)
    return LOOK_SECONDS * (1 + content.line.names.index(name)) if name in content.line.names else OTHERS_LOOK_SECONDS


def _lookers(situation: Situation) -> int | None:
    """How many nodes may check while the line is empty: the waiting nodes if this node has counted them, otherwise all
    nodes with an agent."""
    counted = crowd.counted(situation)
    return situation.memory.agents if counted is None else counted


def _is_due(situation: Situation, content: LockContent) -> bool:
    """Whether this node has to check now. No check is due until a claim is as old as the pause between two checks: most
    claims are released before that age."""
    name, left = situation.node.name, situation.memory.holder_check.at - situation.seen.uptime
    pause = pause_seconds(name, content, _lookers(situation))
    # `left` comes from an earlier, longer pause, for example from before a count found that only a few nodes wait.
    is_outdated = not content.line.names and left > pause
    if left > 0 and not is_outdated:
        return False
    old = pause if content.line.names else LOOK_SECONDS
    return any(_age_seconds(entry, situation.seen.now) >= old for entry in content.entries if entry.node != name)


def _age_seconds(entry: Entry, now: datetime) -> float:
    """The age of the claim. A claim that was created at an unreadable or future instant counts as old."""
    created = from_rfc3339(entry.created)
    seconds = (now - created).total_seconds() if created is not None else -1.0
    return seconds if seconds >= 0 else OTHERS_LOOK_SECONDS


def _free(situation: Situation, content: LockContent, proven: tuple[Entry, ...]) -> Decision:
    nodes = ", ".join(sorted({entry.node for entry in proven}))
    return stay(
        situation,
        Status(
            Code.STALE_CLAIM_FREED,
            f"the agent removed the claim of {nodes} from the lock, because provably no node uses the claim",
            refusals=stored_refusals(situation.node),
            label=waiting_label(situation.node),
        ),
        Stay(
            look=0.0,
            actions=(write_lock(situation, f"free the claim of {nodes}", changes.remove_all(content, proven)),),
        ),
    )


def _mark(situation: Situation, content: LockContent, holders: Holders) -> Decision | None:
    """Update the marks of overdue claims, as soon as the API server's time is known. A new mark is reported as a
    warning, the removal of a mark not at all."""
    if isinstance(situation.seen.clock_skew_seconds, Unknown):
        return None
    marked = overdue.marked(content, holders, situation.policy, now=situation.server_now)
    if marked == content:
        return None
    new = [entry for entry in overdue.holders_overdue(marked) if entry not in content.entries]
    nothing_new = Code.NO_NEED if situation.phase is Phase.IDLE else Code.WAITING_FOR_TURN
    code = Code.HOLDER_OVERDUE if new else nothing_new
    sentence = f"overdue: {overdue.sentences(new)}" if new else "no holder is overdue any more"
    nodes = ", ".join(sorted(entry.node for entry in marked.entries if entry not in content.entries))
    return stay(
        situation,
        Status(code, sentence, is_silent=True),
        Stay(
            look=0.0,
            actions=(
                write_lock(situation, f"update the overdue mark of {nodes}", marked),
                *_standstill(situation, marked, new),
            ),
        ),
    )


def _standstill(situation: Situation, marked: LockContent, new: list[Entry]) -> tuple[Notify, ...]:
    """The message that the roll-out stands still, sent by the agent whose mark is the last that the limit of claims
    allows: with --concurrency=2 the second. `new` are the claims whose mark is new or changed."""
    late = overdue.holders_overdue(marked)
    if not new or len(late) < lock.limit(marked, situation.policy.concurrency):
        return ()
    sentence = f"the roll-out waits for overdue nodes: {overdue.sentences(late)}"
    return (Notify(occasion=Occasion.HALTED, sentence=sentence, reason=sentence),)
