"""Checks the holders, the nodes with claims in the lock: whether each of them still has the claim id on its Node and
makes progress.

A waiting node's agent reads the holders' Nodes and removes the stale claims from the lock. The agent also marks the
holders that take longer than usual, so that every other waiting node can report them. The first node in line checks
most often. Nothing here depends on how long an agent's process lives.
"""

from __future__ import annotations

from dataclasses import replace

from careen.core.actions import Notify, Occasion
from careen.core.decision import Decision
from careen.core.facts import keys
from careen.core.facts.memory import HolderCheck
from careen.core.facts.observation import Holders, Unknown
from careen.core.facts.phases import Evidence, Phase
from careen.core.facts.reasons import Code
from careen.core.facts.times import from_rfc3339
from careen.core.lock import changes, order, overdue, stale_claims
from careen.core.lock import content as lock
from careen.core.lock.content import Entry, LockContent
from careen.core.lock.stale_claims import StaleClaims
from careen.core.situation import Situation
from careen.core.steps.shared import crowd
from careen.core.writing import Status, Stay, stay, stored_refusals, want, write_lock

LOOK_SECONDS = 30.0  # the pause of the first in line; the second checks half as often, and so on
OTHERS_LOOK_SECONDS = 3600.0  # for a node outside of the line: all nodes in the line may be dead


def look(situation: Situation) -> Decision | Situation:
    """Check the nodes with claims if a check is due. Return a decision if the agent first has to read or write
    something. Otherwise return the situation with which this round of the agent's loop continues."""
    content = situation.lock
    if not isinstance(content, LockContent) or content.is_paused or not _is_due(situation, content):
        return situation
    if situation.seen.lacks(Evidence.HOLDERS):
        return want(situation, Evidence.HOLDERS)
    pause = pause_seconds(situation.node.name, content, _lookers(situation))
    check = replace(situation.memory.holder_check, at=situation.seen.uptime + pause)
    situation, holders = _with_check(situation, check), situation.seen.holders
    if not isinstance(holders, Holders):
        return situation
    stale = examined(situation, content, holders)
    situation = _with_check(situation, replace(check, suspected=stale.suspected))
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


def _with_check(situation: Situation, check: HolderCheck) -> Situation:
    return situation.with_memory(replace(situation.memory, holder_check=check))


def pause_seconds(name: str, content: LockContent, lookers: int | None) -> float:
    """Return the seconds after which this node checks the nodes with claims again. The first node in the line checks
    again after 30 seconds (`LOOK_SECONDS`), the second node after 60 seconds, and so on. A node outside of the line
    checks again after an hour.

    While the line is empty, every waiting node may check. The pause is then so long that all of them together check
    about once a second. `lookers` is the number of nodes that may check, None if unknown.
    """
    if not content.line.names:
        return max(LOOK_SECONDS, lookers or 0)
    return LOOK_SECONDS * (1 + content.line.names.index(name)) if name in content.line.names else OTHERS_LOOK_SECONDS


def _lookers(situation: Situation) -> int | None:
    """Return how many nodes may check the nodes with claims while the line in the lock is empty. This is the number of
    waiting nodes if this node has counted them, and the number of nodes with an agent if not."""
    counted = crowd.counted(situation)
    return situation.memory.agents if counted is None else counted


def _is_due(situation: Situation, content: LockContent) -> bool:
    """Whether this node has to check the nodes with claims now. No check is due until a claim is as old as the pause
    between two checks, because most claims are released before that age. The lock has the age of each claim, so a
    process that has just started knows the age too."""
    name, left = situation.node.name, situation.memory.holder_check.at - situation.seen.uptime
    pause = pause_seconds(name, content, _lookers(situation))
    # `left` comes from an earlier, longer pause, for example from before a count found that only a few nodes wait.
    is_outdated = not content.line.names and left > pause
    if left > 0 and not is_outdated:
        return False
    old = pause if content.line.names else LOOK_SECONDS
    return any(_age_seconds(situation, entry) >= old for entry in content.entries if entry.node != name)


def _age_seconds(situation: Situation, entry: Entry) -> float:
    """Return the age of the claim in seconds. If the instant of creation is unreadable or in the future, return the
    seconds of one hour (`OTHERS_LOOK_SECONDS`), so that this node checks the claim as it checks an old claim."""
    created = from_rfc3339(entry.created)
    seconds = (situation.seen.now - created).total_seconds() if created is not None else -1.0
    return seconds if seconds >= 0 else OTHERS_LOOK_SECONDS


def _free(situation: Situation, content: LockContent, proven: tuple[Entry, ...]) -> Decision:
    nodes = ", ".join(sorted({entry.node for entry in proven}))
    return stay(
        situation,
        Status(
            Code.STALE_CLAIM_FREED,
            f"the agent removed the claim of {nodes} from the lock, because provably no node uses the claim",
            refusals=stored_refusals(situation.node),
            label=_label(situation),
        ),
        Stay(
            look=0.0,
            actions=(write_lock(situation, f"free the claim of {nodes}", changes.remove_all(content, proven)),),
        ),
    )


def _mark(situation: Situation, content: LockContent, holders: Holders) -> Decision | Situation:
    """Return the decision to update the marks of overdue claims in the lock. Return the situation if the marks stay the
    same, or if the API server's time is unknown. A new mark is reported as a warning; the removal of a mark is not
    reported."""
    if isinstance(situation.seen.clock_skew_seconds, Unknown):
        return situation
    marked = overdue.marked(content, holders, situation.policy, now=situation.server_now)
    if marked == content:
        return situation
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
    """Return the message to people that the roll-out stands still, if two conditions are met: a write into the lock
    marks a claim as overdue or changes such a mark, and afterwards at least as many claims are marked as the lock may
    hold. Otherwise return nothing. For example, with --concurrency=2 the agent that marks the second claim sends the
    message.

    `marked` is the content that the agent is about to write into the lock. `new` are the claims whose mark is new or
    changed in that content.
    """
    late = overdue.holders_overdue(marked)
    if not new or len(late) < lock.limit(marked, situation.policy.concurrency):
        return ()
    sentence = f"the roll-out waits for overdue nodes: {overdue.sentences(late)}"
    return (Notify(occasion=Occasion.HALTED, sentence=sentence, reason=sentence),)


def _label(situation: Situation) -> str:
    return order.READY if situation.node.labels.get(keys.REBOOT_LABEL) == order.READY else "required"
