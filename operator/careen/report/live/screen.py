"""The roll-out on a terminal of a given size, as lines with a style each; and as one line for a pipe."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import StrEnum

from careen.core.facts.times import age, duration, rfc3339
from careen.core.plain_text import one_line
from careen.report.live.rollout_document import RolloutScene, headline_of, says
from careen.rollout.model import Cause, NodeState, State
from scheduler_core.sentences import count_of
from scheduler_core.values import Value


class Style(StrEnum):
    """What a line says; the terminal chooses its colour. None relies on colour alone."""

    TITLE = "title"
    GOOD = "good"
    BAD = "bad"
    PLAIN = "plain"
    DIM = "dim"


class ScreenLine(Value):
    """One line, cut to the terminal's width."""

    text: str
    style: Style = Style.PLAIN


_TONES = {"fine": Style.GOOD, "working": Style.TITLE, "stuck": Style.BAD}
_LEAST_ROWS = 3
_INDENT = "    "


def screen(scene: RolloutScene, *, width: int, height: int) -> list[ScreenLine]:
    """At most `height` lines of at most `width` characters: verdict, bar, nodes at work, causes, queue."""
    tone, sentence, detail = headline_of(scene)
    top = [ScreenLine(each, _TONES[tone]) for each in _folded(sentence, width, 2)]
    top += [ScreenLine(_bar(scene, width))] if scene.done or scene.view.counts.open else []
    top += [ScreenLine(each, Style.DIM) for each in _folded(detail, width, 2)]
    foot = [ScreenLine(_foot(scene), Style.BAD if scene.seen.trouble else Style.DIM)]
    left = max(0, height - len(top) - len(foot))
    body = _body(scene, left)
    return [ScreenLine(_cut(line.text, width), line.style) for line in (*top, *body[:left], *foot)][:height]


def sentence_line(scene: RolloutScene) -> str:
    """For a pipe: the instant, why the last look failed, and the verdict."""
    trouble = f"{scene.seen.trouble} " if scene.seen.trouble else ""
    return one_line(f"{rfc3339(scene.seen.at)} {trouble}{headline_of(scene)[1]}")


def _body(scene: RolloutScene, rows: int) -> list[ScreenLine]:
    nodes = [node for state in _SHOWN for node in scene.view.in_state(state)]
    causes = scene.view.causes
    half = max(_LEAST_ROWS, rows // 2)
    for_nodes = min(len(nodes), half if causes else rows - 2)
    found: list[ScreenLine] = []
    if nodes:
        found.append(ScreenLine(""))
        found += [_node_line(scene, node) for node in nodes[:for_nodes]]
        if len(nodes) > for_nodes:
            found.append(ScreenLine(f"  and {len(nodes) - for_nodes} more at work", Style.DIM))
    if causes:
        room = max(1, rows - len(found) - 3)
        found += [ScreenLine(""), ScreenLine("What holds nodes back:", Style.TITLE)]
        found += [_cause_line(scene, cause) for cause in causes[:room]]
        if len(causes) > room:
            found.append(ScreenLine(f"  and {count_of(len(causes) - room, 'more cause')}", Style.DIM))
    return found


_SHOWN = (State.STUCK, State.FAILED, State.WORKING, State.KEPT_DOWN)


def _node_line(scene: RolloutScene, node: NodeState) -> ScreenLine:
    style = Style.BAD if node.state in (State.STUCK, State.FAILED) else Style.PLAIN
    end = f", done {_clock(node.expected.end)}" if node.expected else ""
    doing = node.doing or node.phase
    return ScreenLine(
        f"  {node.name}  {doing} {age(node.since, scene.seen.at)}{end}: {says(node, scene.seen.at)}", style
    )


def _cause_line(scene: RolloutScene, cause: Cause) -> ScreenLine:
    since = f" for {age(cause.since, scene.seen.at)}" if cause.since else ""
    return ScreenLine(f"  {count_of(len(cause.nodes), 'node')}: {cause.sentence.rstrip('.')}{since}")


def _bar(scene: RolloutScene, width: int) -> str:
    done, still = len(scene.done), scene.view.counts.open
    share = f" {100 * done // max(1, done + still)} %"
    end = scene.view.counts.finish
    finish = f", finish about {_clock(end)}" if end else ""
    room = max(10, width - len(share) - len(finish) - 2)
    filled = room * done // max(1, done + still)
    return f"[{'#' * filled}{'.' * (room - filled)}]{share}{finish}"


def _foot(scene: RolloutScene) -> str:
    trouble = f"{scene.seen.trouble} " if scene.seen.trouble else ""
    every = duration(timedelta(seconds=scene.seen.refresh_seconds))
    return f"{trouble}Read {_clock(scene.seen.at)}, every {every}; Ctrl-C ends."


def _clock(at: datetime) -> str:
    return f"{at.astimezone(UTC):%H:%M:%S} UTC"


def _cut(text: str, width: int) -> str:
    return one_line(text, max(2, width))


def _folded(text: str, width: int, most: int) -> list[str]:
    """At most `most` lines; the rest is cut. The indent keeps a text from the cluster from looking like a line of its
    own."""
    words = one_line(text).split(" ")
    found = [""]
    for word in words:
        longer = f"{found[-1]} {word}" if found[-1] else word
        if len(longer) <= width or not found[-1]:
            found[-1] = longer
        else:
            found.append(f"{_INDENT}{word}")
    if len(found) > most:
        found[most - 1 :] = [" ".join([found[most - 1], *(each.strip() for each in found[most:])])]
    return found
