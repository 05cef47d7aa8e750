"""Why a node does not reboot: every gate's answer, since when, and the remedy."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from careen.core.facts import keys
from careen.core.facts.observation import Unknown
from careen.core.facts.phases import UNDER_CLAIM, Phase
from careen.core.facts.progress import Progress, UnreadableProgress
from careen.core.facts.reasons import Code
from careen.core.facts.times import age, from_rfc3339
from careen.core.lock.content import LockContent
from careen.core.node.autoscalers import left_alone
from careen.core.node.cordons import foreign_author, is_cordon_proven
from careen.core.people.requests import not_understood
from careen.plan.next_turn import NextTurn, next_turn
from careen.report.fleet_report import node_json
from careen.report.gate_answers import Answer, GateAnswer, NodeStory, gate_answers
from careen.report.lock_report import StrayClaim, lock_json, lock_sentence, stray_claims, stray_json
from careen.report.tables import paragraph, table
from careen.rollout.durations import is_for_maintenance
from careen.rollout.model import told_phase
from careen.rollout.older_records import refusals_of
from careen.rollout.openings import next_opening
from careen.rollout.reading import last_look
from careen.rollout.remedies import for_holders
from careen.rollout.troubles import not_ready, unready
from scheduler_core.sentences import count_of


def remedy_for(code: Code, node: str) -> str:
    """With this node's name."""
    return code.remedy.replace("NODE", node)


def summary(story: NodeStory) -> str:
    """One sentence: phase, since when, and reason."""
    name, phase, reason = story.node.name, story.phase, story.node.annotations.get(keys.REASON, "")
    if isinstance(story.progress, UnreadableProgress):
        return f"the Node {name} shows the phase {phase}, but {story.progress.why}"
    if phase == Phase.IDLE:
        return f"{name} is Idle: {left_alone(story.node) or 'its agent has seen no need for a reboot'}"
    since = from_rfc3339(story.node.annotations.get(keys.SINCE, ""))
    if phase == Phase.MAINTENANCE and since is not None:
        return f"{name} has been in maintenance for {age(since, story.now)}: {reason}"
    if phase in {Phase.WAITING, *UNDER_CLAIM}:
        phase = told_phase(phase, is_for_maintenance=is_for_maintenance(story.node, story.now))
    stored = refusals_of(story.node)
    if stored and all(overs := [story.disproof(each) for each in stored]):
        reason = f"{overs[0]}, so this is over: {reason}"
    stands = f"is {phase}" if since is None else f"has been {phase} for {age(since, story.now)}"
    return f"{name} {stands}: {reason}"


def remedies(story: NodeStory) -> list[str]:
    """What a person can do, one sentence each; first the remedy of the node's failure."""
    found = []
    progress = story.progress
    if isinstance(progress, UnreadableProgress):
        found.append(f"record: {progress.why}. {remedy_for(Code.PROGRESS_UNREADABLE, story.node.name)}")
    elif story.phase == Phase.FAILED and progress.failed in set(Code):
        # A failure is often the consequence of another holder's: its pods are missing elsewhere.
        found += for_holders([each for each in story.holders or () if not_ready(each, story.now)])
        found.append(f"{progress.failed}: {remedy_for(Code(progress.failed), story.node.name)}")
    if not_ready(story.node, story.now) and story.is_holder:
        found += for_holders([story.node])
    if agent := agent_remark(story):
        found.append(agent)
    found += [f"stray claim: {each.sentence}" for each in strays(story)]
    found += [f"{each.code}: {each.remedy}" for each in gate_answers(story) if each.code and each.remedy]
    return list(dict.fromkeys(found))


def agent_remark(story: NodeStory) -> str:
    """Warns that the report may be out of date: the node's agent is missing or not ready. "" if one is ready, or if the
    agents could not be read."""
    if isinstance(story.agents, Unknown):
        return ""
    if not story.agents:
        return (
            f"agent: no careen agent runs on {story.node.name}, so nothing in this report is up to date. Look at the "
            "DaemonSet's node selector and events."
        )
    if not any(pod.is_ready for pod in story.agents):
        agent = story.agents[0].title
        return f"agent: {agent} is not ready, so this report may be out of date. Look at the log of {agent}."
    return ""


def cordon_sentence(story: NodeStory) -> str:
    """Who cordoned the node, if known; "" if it is not cordoned."""
    node, progress = story.node, story.progress
    if not node.unschedulable:
        return ""
    if isinstance(progress, Progress) and progress.is_cordoned_by_us:
        return f"careen cordoned {node.name}, because {node.name} holds a claim"
    if is_cordon_proven(node) and isinstance(progress, UnreadableProgress):
        return f"careen cordoned {node.name}, and leaves it cordoned until its record can be read"
    if is_cordon_proven(node):
        return f"careen cordoned {node.name}, which no longer holds a claim: the node's agent removes the cordon"
    if node.cordoned_by:
        since = f" {age(node.cordoned_at, story.now)} ago" if node.cordoned_at is not None else ""
        return f"{foreign_author(node)} cordoned {node.name}{since}, and careen leaves the node cordoned"
    return (
        f"{node.name} is cordoned, but the API server does not report which client cordoned {node.name}. The cordon "
        f"may be left over from a claim whose record was removed; `kubectl uncordon {node.name}` removes the cordon"
    )


def unready_sentence(story: NodeStory) -> str:
    """First in the report if the node is not Ready: nothing that its agent wrote before is a promise then. "" if it is
    Ready."""
    return unready(story.node, story.now)


def line_sentence(story: NodeStory) -> str:
    """The node's place in line; "" if it has none."""
    if not isinstance(story.lock, LockContent):
        return ""
    name = story.node.name
    if story.is_holder:
        return f"{name} holds a claim"
    if name in (line := story.lock.line.names):
        if len(line) == 1:
            return f"{name} is the only node that the lock names next"
        return f"{name} is number {line.index(name) + 1} of the {len(line)} nodes that are named next in the lock"
    if story.node.labels.get(keys.REBOOT_LABEL) == "ready":
        return f"{name} is ready, but the lock does not name it as next yet"
    return ""


def next_sentence(story: NodeStory) -> str:
    """When the next turn begins, or the agent retries a failed reboot; "" if unknown, or if the node's agent is
    probably dead."""
    if not_ready(story.node, story.now):
        return ""
    return looked.sentence if (looked := _next_turn(story)) else ""


def seen_sentence(story: NodeStory) -> str:
    """How old the answers of the gates are; "" if unknown. A waiting agent writes only what has changed."""
    at = last_look(story.node)
    if at is None:
        return ""
    return f"the answers are as the node's agent wrote them {age(at, story.now)} ago; it writes what has changed"


def _next_turn(story: NodeStory) -> NextTurn | None:
    progress = story.progress
    if story.policy is None or isinstance(progress, UnreadableProgress) or progress.phase not in ("", *Phase):
        return None
    return next_turn(story.node, progress, story.lock, story.policy, story.now, agents=story.fleet_size)


def _next_opening(story: NodeStory) -> datetime | None:
    """None if a window is open, if none ever opens again, or if the policy is unknown."""
    if story.policy is None:
        return None
    found = next_opening(story.policy, [story.node], story.now)
    return None if found == story.now else found


def strays(story: NodeStory) -> tuple[StrayClaim, ...]:
    """The stray claims that this node waits for."""
    if story.holders is None or story.phase != Phase.WAITING:
        return ()
    return stray_claims(story.lock, [*story.holders, story.node])


def why_text(story: NodeStory, *, width: int | None = None, is_whole: bool = False) -> str:
    """The report for a terminal. While no gate refuses and a person need do nothing, it is short, unless `is_whole`."""
    answers, found = gate_answers(story), remedies(story)
    refuses = any(each.answer in (Answer.REFUSES, Answer.WILL_REFUSE) for each in answers)
    if not (is_whole or refuses or found or unready_sentence(story)):
        return "\n".join(_calm(story, width))
    told = next((each.code for each in answers if each.code is Code.HALTED), "")
    lines = [
        *([paragraph(f"{dead}.", width=width)] if (dead := unready_sentence(story)) else []),
        paragraph(f"{summary(story).rstrip('.')}.", width=width),
        paragraph(f"Lock: {lock_sentence(story.lock, story.now, told=told)}.", width=width),
    ]
    if place := line_sentence(story):
        lines.append(paragraph(f"Line: {place}."))
    if cordon := cordon_sentence(story):
        lines.append(paragraph(f"Cordon: {cordon}.", width=width))
    lines += _written(story, width)
    if coming := next_sentence(story):
        lines.append(paragraph(f"Next: {coming}."))
    if refuses and (seen := seen_sentence(story)):
        lines.append(paragraph(f"Seen: {seen}.", width=width))
    # Old answers of a dead agent say nothing.
    if is_whole or not unready_sentence(story) or any(each.code or each.answer is Answer.IS_OVER for each in answers):
        shown = answers if is_whole else [each for each in answers if not _says_nothing(each, story)]
        rows = [[each.gate, each.answer, age(each.since, story.now), each.sentence] for each in shown]
        lines += ["", table(["GATE", "ANSWER", "SINCE", "WHY"], rows, width=width)] if rows else [""]
        if left := len(answers) - len(shown):
            rest = "whose old answers say nothing" if unready_sentence(story) else "that the agent does not ask"
            lines.append(paragraph(f"… and {count_of(left, 'gate')} {rest} (`--all`)."))
    if found:
        lines += ["", "What you can do:", *(paragraph(each, indent="  ", width=width) for each in found)]
    return "\n".join(lines)


def _says_nothing(answer: GateAnswer, story: NodeStory) -> bool:
    """The agent of an idle or failed node, or of one with an unreadable record, asks no gate: 26 rows would say only
    that. Nor does a dead agent's yes say anything."""
    if unready_sentence(story):
        return answer.code is None and answer.answer is not Answer.IS_OVER
    rests = story.phase in {Phase.IDLE, Phase.FAILED} or isinstance(story.progress, UnreadableProgress)
    return rests and answer.answer is Answer.NOT_ASKED


def _calm(story: NodeStory, width: int | None) -> list[str]:
    """Three lines (the node, the lock with the place in line, the next turn), and one more for each fact that a person
    would not expect of such a node."""
    place = line_sentence(story)
    is_own_cordon = isinstance(story.progress, Progress) and story.progress.is_cordoned_by_us and story.is_holder
    lock = lock_sentence(story.lock, story.now)
    lines = [
        paragraph(f"{summary(story).rstrip('.')}.", width=width),
        paragraph(f"Lock: {lock if story.is_holder or not place else f'{lock}; {place}'}.", width=width),
        paragraph(f"Next: {next_sentence(story) or 'unknown, because the settings could not be read'}.", width=width),
    ]
    if not is_own_cordon and (cordon := cordon_sentence(story)):
        lines.append(paragraph(f"Cordon: {cordon}.", width=width))
    return [*lines, *_written(story, width)]


def _written(story: NodeStory, width: int | None) -> list[str]:
    """What the agent wrote on the Node about the coming reboot, and a request that it does not understand."""
    found = (
        ("Request", not_understood(story.node)),
        ("Warning", story.node.annotations.get(keys.WARNING)),
        ("Prepared", story.node.annotations.get(keys.PREPARED)),
    )
    return [paragraph(f"{what}: {text}.", width=width) for what, text in found if text]


def why_json(story: NodeStory) -> dict[str, Any]:
    """The whole report as JSON."""
    looked = _next_turn(story)
    return {
        "node": node_json(story.node, story.lock),
        "summary": summary(story),
        "notReady": unready_sentence(story) or None,
        "seen": last_look(story.node),
        "next": {"seconds": round(looked.seconds), "what": "retry" if looked.is_retry else "look"} if looked else None,
        "nextOpening": _next_opening(story),
        "prepared": story.node.annotations.get(keys.PREPARED),
        "strayClaims": stray_json(strays(story)),
        "cordon": {"by": list(story.node.cordoned_by), "sentence": cordon_sentence(story)}
        if story.node.unschedulable
        else None,
        "lock": lock_json(story.lock),
        "gates": [
            {
                "gate": each.gate,
                "answer": each.answer.value,
                "code": each.code.value if each.code else None,
                "sentence": each.sentence,
                "since": each.since,
                "remedy": each.remedy,
                "longestSeconds": each.longest_seconds or None,
            }
            for each in gate_answers(story)
        ],
        "agents": None
        if isinstance(story.agents, Unknown)
        else [{"pod": pod.title, "ready": pod.is_ready} for pod in story.agents],
        "remedies": remedies(story),
    }
