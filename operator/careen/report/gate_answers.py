"""What each gate answers about one node, as far as Node and lock show it.

The Node has the answers of the last turn. The agent sees a later hold or pause only in the next turn, so this report
reads both itself.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum

from careen.core.decision import Refusal
from careen.core.facts.observation import NodeView, PodView, Unknown
from careen.core.facts.phases import Phase
from careen.core.facts.policy import Policy
from careen.core.facts.progress import Progress, UnreadableProgress
from careen.core.facts.reasons import Code
from careen.core.facts.times import span
from careen.core.gates import GATES
from careen.core.gates.gate_annotations import annotated, gate_annotations
from careen.core.gates.halt import halt, halted
from careen.core.gates.hold import closed, held_because, hold
from careen.core.gates.question import Cost, Gate, No, When
from careen.core.lock.content import LockContent
from careen.report.lock_report import LockState
from careen.rollout.older_records import refusals_of
from careen.rollout.openings import opening_clause
from careen.rollout.refusals import Surroundings, disproof, with_authors
from careen.rollout.remedies import general
from scheduler_core.values import Value


class Answer(StrEnum):
    """A gate's answer, as far as the Node shows it."""

    YES = "yes"
    REFUSES = "refuses"
    WILL_REFUSE = "will refuse"  # a person's hold or pause that the agent has not seen yet
    IS_OVER = "is over"  # lock and Nodes disprove a refusal, and the agent has not looked since
    NOT_ASKED = "not asked"


class GateAnswer(Value, kw_only=True):
    """A gate and its answer. A refusal also has a code, a start and a remedy."""

    gate: str
    answer: Answer
    sentence: str = ""
    code: Code | None = None
    since: datetime | None = None
    remedy: str = ""
    longest_seconds: float = 0.0


class NodeStory(Value, kw_only=True):
    """The facts about one node.

    `agents`: the careen pods on the node. `holders`: None if they were not read. `named`: other nodes that its refusals
    name. `policy` and `fleet_size` (the number of agents): None if unknown.
    """

    node: NodeView
    lock: LockState
    agents: Sequence[PodView] | Unknown
    now: datetime
    holders: Sequence[NodeView] | None = None
    named: Sequence[NodeView] = ()
    policy: Policy | None = None
    fleet_size: int | None = None

    @property
    def phase(self) -> str:
        """The phase that the Node shows."""
        return self.node.shown_phase

    @property
    def is_holder(self) -> bool:
        """By the lock."""
        return isinstance(self.lock, LockContent) and self.node.name in self.lock.holders

    @property
    def progress(self) -> Progress | UnreadableProgress:
        """The record, or why it is unreadable."""
        return self.node.record

    def disproof(self, refusal: Refusal) -> str:
        """Why a stored refusal no longer holds; "" if nothing speaks against it."""
        if self.phase != Phase.WAITING:
            return ""
        views = {node.name: node for node in (*(self.holders or ()), *self.named, self.node)}
        return disproof(refusal, self.node, Surroundings(views=views, lock=self.lock, now=self.now, policy=self.policy))


def gate_answers(story: NodeStory) -> tuple[GateAnswer, ...]:
    """In the order in which the agent asks. A gate that refuses for two reasons has two answers."""
    stored = refusals_of(story.node)
    known = {gate.name for gate in GATES}
    answers: list[GateAnswer] = []
    for gate in GATES:
        refused = [each for each in stored if each.gate == gate.name]
        refused += [
            each
            for each in _said_since(story)
            if each.gate == gate.name and each.code not in {known_one.code for known_one in refused}
        ]
        answers += [_answer(each, story) for each in refused] or [
            _without_refusal(story, gate, {each.gate for each in stored})
        ]
    # Written by another release, whose gates have other names.
    return (*answers, *(_refusal(each, story) for each in stored if each.gate not in known))


def _answer(refusal: Refusal, story: NodeStory) -> GateAnswer:
    if over := story.disproof(refusal):
        return GateAnswer(
            gate=refusal.gate,
            answer=Answer.IS_OVER,
            sentence=f"{over}; its agent has not looked again since it found: {refusal.sentence}",
            since=refusal.since,
        )
    views = {node.name: node for node in (*story.named, story.node)}
    known = replace(refusal, sentence=with_authors(refusal, views, story.now))
    return _refusal(_with_opening(known, story), story)


def _said_since(story: NodeStory) -> list[Refusal]:
    """Refusals that the last turn may not have seen: holds, pauses, an unreadable lock, failures of other nodes, and
    annotations that forbid the reboot."""
    found = []
    lock, node = story.lock, story.node
    if not isinstance(lock, Unknown) and (no := closed(lock)):
        found.append(hold.refusal(no))
    is_asked = story.phase in {Phase.IDLE, Phase.WAITING, Phase.CLAIMING}
    if is_asked and isinstance(lock, LockContent) and (no := halted(lock, besides=node.name)):
        found.append(halt.refusal(no))
    if no := annotated(node, {}):
        found.append(gate_annotations.refusal(no))
    if held := held_because(node, story.now):
        found.append(hold.refusal(No(Code.HELD, held)))
    return found


def _with_opening(refusal: Refusal, story: NodeStory) -> Refusal:
    """Adds the next opening to `Code.OUTSIDE_WINDOW`. The agent does not write it on the Node, because the annotation
    would change in each turn."""
    if refusal.code is not Code.OUTSIDE_WINDOW or story.policy is None:
        return refusal
    opening = opening_clause(story.policy, [story.node], story.now)
    return replace(refusal, sentence=f"{refusal.sentence.rstrip('.')}, {opening}")


def _refusal(refusal: Refusal, story: NodeStory) -> GateAnswer:
    usual = general(refusal).replace("NODE", story.node.name)
    return GateAnswer(
        gate=refusal.gate,
        answer=Answer.REFUSES if refusal.since else Answer.WILL_REFUSE,
        sentence=f"{refusal.sentence}{_too_long(refusal, story.now)}",
        code=refusal.code,
        since=refusal.since,
        remedy=f"{refusal.remedy}. {usual}".rstrip() if refusal.remedy else usual,
        longest_seconds=refusal.longest_seconds,
    )


def _too_long(refusal: Refusal, now: datetime) -> str:
    """A clause if the refusal has lasted longer than the limit in --blocking-pods, otherwise ""."""
    if not refusal.longest_seconds or refusal.since is None:
        return ""
    if (now - refusal.since).total_seconds() <= refusal.longest_seconds:
        return ""
    return f"; the refusal has lasted longer than the limit of {span(refusal.longest_seconds)} in --blocking-pods"


def _without_refusal(story: NodeStory, gate: Gate, refusing: Collection[str]) -> GateAnswer:
    """Yes, or not asked: the agent asks costly gates one after another, and only if no cheap gate refuses."""
    if isinstance(story.progress, UnreadableProgress):
        return _not_asked(gate, "the agent asks no gate while it cannot read the record")
    if story.phase == Phase.IDLE:
        return _not_asked(gate, "the agent of an idle node asks no gate")
    if story.phase == Phase.FAILED:
        return _not_asked(gate, "the agent asks no gate before the node's failure is resolved")
    if story.phase == Phase.WAITING and When.READY not in gate.when:
        return _not_asked(gate, "only the agent of a node with a claim asks this gate")
    if story.phase == Phase.WAITING and gate.cost is Cost.COSTLY:
        before = [each.name for each in GATES[: GATES.index(gate)] if each.name in refusing]
        after = [each.name for each in GATES[GATES.index(gate) :] if each.name in refusing]
        if before:
            return _not_asked(gate, f"the earlier gate `{before[0]}` refuses, so the agent does not ask this gate")
        if not after:
            return _not_asked(gate, "only the agent of the next node in line asks this gate")
    return GateAnswer(gate=gate.name, answer=Answer.YES)


def _not_asked(gate: Gate, sentence: str) -> GateAnswer:
    return GateAnswer(gate=gate.name, answer=Answer.NOT_ASKED, sentence=sentence)
