"""A simulated roll-out for people and programs: order, moves, risks and remedies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from msgspec import field

from careen.core.facts.policy import Order
from careen.core.facts.times import duration, rfc3339
from careen.core.plain_text import one_line
from careen.plan.ranges import Ranges
from careen.plan.unblocking import Bought
from careen.report.plan_causes import (
    bought,
    causes_json,
    left_by_reason,
    merged_hindrances,
    remedy_of_obstacle,
    unblocks_json,
    unfinished,
)
from careen.report.tables import listed, paragraph, table
from scheduler_core.sentences import count_of
from scheduler_core.simulation.timeline import Timeline, Visit, Wait
from scheduler_core.values import Value


class Origin(Value, kw_only=True):
    """Where a plan's data comes from. An empty text means unknown."""

    taken_at: datetime  # of the snapshot
    kubernetes: str = ""  # the Kubernetes release that the simulation reproduces
    server: str = ""
    context: str = ""  # of the kubeconfig
    dump: str = ""  # the file, if no cluster was asked
    # the settings that affect a plan, in the notation of flags
    settings: Mapping[str, str] = field(default_factory=dict)


class Plan(Value, kw_only=True):
    """A simulated roll-out, and how it was computed. `zone` is the report's time zone."""

    timeline: Timeline
    line: Order
    agents_line: Order  # --order of the cluster's agents
    concurrency: int
    zone: tzinfo = UTC
    notes: tuple[str, ...] = ()
    ranges: Ranges | None = None  # over several seeds; the timeline is that of the first
    others: Mapping[Order, Timeline] = field(default_factory=dict)  # the same roll-out in other orders, to compare
    at_once: Mapping[int, Timeline] = field(default_factory=dict)  # and with other values of --concurrency
    origin: Origin | None = None
    closes: datetime | None = None  # when the window in which the last node is done ends; None: it never does
    unblocks: tuple[Bought, ...] = ()  # what changes buy, each on top of those before it
    zone_of: Mapping[str, str] = field(default_factory=dict)  # each node's topology zone


class Risk(Value, kw_only=True):
    """What a person should consider before the roll-out."""

    what: str
    remedy: str


def is_clean(plan: Plan) -> bool:
    """All nodes reboot in one window and every pod finds room, with every simulated seed."""
    return plan.timeline.is_clean and not (plan.ranges and plan.ranges.not_clean)


SCREEN = 40
"""So many lines a plan has at most; -o json and --report have all of it."""
_SHOWN = 3


def plan_text(plan: Plan, *, width: int | None = None) -> str:
    """The plan for a terminal: the verdict, what hinders most, the nodes, as far as a screen has room for them."""
    timeline = plan.timeline
    if not timeline.nodes:
        return paragraph("No node of the plan needs a reboot: there is nothing to plan.", width=width)
    before = [paragraph(verdict(plan), width=width), paragraph(headline(plan), width=width)]
    if plan.unblocks:
        before += [
            "",
            "What would unblock most:",
            *(paragraph(each, indent="  ", width=width) for each in bought(plan.unblocks)),
        ]
    if found := risks(plan):
        told = [paragraph(f"- {risk.what}. {risk.remedy}", indent="  ", width=width) for risk in found[:_SHOWN]]
        before += ["", "At risk:", *told]
        if len(found) > _SHOWN:
            before.append(f"  - and {count_of(len(found) - _SHOWN, 'more risk')} (-o json)")
    after = ["", *(paragraph(sentence, width=width) for sentence in summary(plan)[1:])]
    if plan.others:
        after += ["", comparison_text(plan, width=width)]
    notes = [paragraph(f"Note: {note}.", width=width) for note in plan.notes]
    after += notes
    rows = [_row(plan, visit) for visit in timeline.visits]
    header = ["NODE", f"START ({plan.zone})", "END", "MOVES", "NOTE"]
    text = table(header, rows, width=width).split("\n") if rows else []
    room = max(3, SCREEN - _height(before) - _height(after) - 2)
    if len(text) > room + 1:
        shown = rows[: room - 1]
        text = table(header, [[*row[:-1], one_line(row[-1], _SHORT_NOTE)] for row in shown]).split("\n")
        text.append(f"… and {count_of(len(rows) - len(shown), 'more visit')} of nodes: -o json or --report=FILE.html")
    lines = [*before, *(["", *text] if text else []), *after]
    return "\n".join(lines)


_SHORT_NOTE = 60


def _height(texts: Sequence[str]) -> int:
    return sum(text.count("\n") + 1 for text in texts)


def verdict(plan: Plan) -> str:
    """How many nodes reboot by when, and what the others need."""
    timeline = plan.timeline
    if not timeline.left or not timeline.visits:
        return summary(plan)[0]
    return unfinished(timeline, instant(plan, timeline.ends))


def headline(plan: Plan) -> str:
    """One sentence: number of nodes, start, concurrency, order."""
    marked = f" (the agents use another order: --order={plan.agents_line})" if plan.line is not plan.agents_line else ""
    nodes = count_of(len(plan.timeline.nodes), "node")
    return (
        f"Plan for {nodes} from {instant(plan, plan.timeline.begins)}, {plan.concurrency} at a time, in the order "
        f"{plan.line}{marked}."
    )


def summary(plan: Plan) -> list[str]:
    """The plan's figures, one sentence each."""
    timeline = plan.timeline
    rebooted, total = len(timeline.reboots), len(timeline.nodes)
    sentences = [
        f"{rebooted} of {count_of(total, 'node')} reboot" + (f"; {_ending(plan)}." if rebooted == total > 0 else ".")
    ]
    sentences += [
        f"The window ends at {instant(plan, closing.at)} with {count_of(closing.left, 'node')} still to reboot."
        for closing in timeline.closings[:3]
    ]
    if len(timeline.closings) > 3:
        last = timeline.closings[-1]
        sentences.append(
            f"{count_of(len(timeline.closings), 'window')} end before all nodes have rebooted; the last of these "
            f"windows ends at {instant(plan, last.at)} with {count_of(last.left, 'node')} still to reboot."
        )
    pods = len(timeline.moves_by_pod)
    sentences.append(
        f"The plan has {count_of(len(timeline.moves), 'move')} of {count_of(pods, 'pod')}, including "
        f"{count_of(timeline.double_moves, 'double move')}."
        if pods
        else "No pod moves."
    )
    if plan.ranges is not None:
        sentences.append(ranges_sentence(plan, plan.ranges))
    if ties := sum(1 for move in timeline.moves if move.choices > 1):
        sentences.append(
            f"In {count_of(ties, 'move')}, the pod could equally go to another node with the same score: another seed "
            "gives a slightly different plan."
        )
    if unseen := sum(1 for move in timeline.moves if move.is_open):
        sentences.append(
            f"In {count_of(unseen, 'move')}, the pod may go to another node: kube-scheduler examines only a part of "
            "the fitting nodes, unless its percentageOfNodesToScore is 100."
        )
    if pending := timeline.pending:
        longest = max(pending, key=lambda wait: wait.seconds(timeline.ends))
        sentences.append(
            f"In {count_of(len(pending), 'case')}, a pod finds no room; these pods wait "
            f"{_seconds(timeline.pending_seconds)} in total; {longest.pod} waits longest, {waited(timeline, longest)}."
        )
    if returns := len(timeline.waits) - len(timeline.pending):
        sentences.append(
            f"{count_of(returns, 'pod')} can run on one node only and wait{'s' if returns == 1 else ''} until "
            "that node is back."
        )
    hindrances = sorted(timeline.hindrances, key=lambda each: -each.seconds)
    merged = merged_hindrances([each for each in hindrances if each.seconds])
    sentences += [
        f"The rule {each.rule} makes {listed(each.nodes)} wait ({each.subject}), so a claim is unused for "
        f"{_seconds(each.seconds)}."
        for each in merged[:_SHOWN]
    ]
    if len(merged) > _SHOWN:
        sentences.append(f"{count_of(len(merged) - _SHOWN, 'more hindrance')}: -o json.")
    return sentences


def ranges_sentence(plan: Plan, ranges: Ranges) -> str:
    """How much the plan depends on the seed, as ranges: `38-44 moves, 2-5 double moves`."""
    if not plan.timeline.is_open:
        return "No step of the plan depends on chance: every seed gives the same plan."
    if ranges.is_single:
        return "Another seed may give another plan: --seeds=5 shows the differences."
    first, last = _without_zone(plan, ranges.ends[0]), instant(plan, ranges.ends[1])
    is_one = ranges.ends[0] == ranges.ends[1]
    day = f"{ranges.ends[0].astimezone(plan.zone):%a %Y-%m-%d} "
    both = f"{first}-{last.removeprefix(day)}" if last.startswith(day) else f"between {first} and {last}"
    ends = last if is_one else both
    least, most = (_seconds(each) for each in ranges.pending_seconds)
    waits = f"; in total, pods without room wait {least} to {most}" if ranges.pending_seconds[1] else ""
    return (
        f"With {ranges.seeds} different seeds, the plan has {_range(*ranges.moves)} moves and "
        f"{_range(*ranges.double_moves)} double moves, and ends {ends}{waits}."
    )


def _range(least: int, most: int) -> str:
    return str(least) if least == most else f"{least}-{most}"


def _ending(plan: Plan) -> str:
    """When the roll-out ends, and whether in the window in which it begins."""
    timeline = plan.timeline
    end, took = instant(plan, timeline.ends), duration(timeline.ends - timeline.begins)
    if plan.closes is None:
        return f"the roll-out ends {end}, after {took}"
    closes = instant(plan, plan.closes)
    if timeline.closings:
        return f"the roll-out ends {end}, after {took}, inside a later window that closes {closes}"
    return f"the roll-out ends {end}, after {took}, inside the window that closes {closes}"


def facts(plan: Plan) -> list[tuple[str, str]]:
    """Names and values: cluster, context, dump, Kubernetes, snapshot. Without unknown ones: a plan of a dump has no
    context."""
    origin = plan.origin
    if origin is None:
        return []
    found = [
        ("Cluster", origin.server),
        ("Context", origin.context),
        ("Dump", origin.dump),
        ("Kubernetes", origin.kubernetes),
        ("Snapshot", instant(plan, origin.taken_at)),
    ]
    return [(name, value) for name, value in found if value]


def risks(plan: Plan) -> list[Risk]:
    """The risks, worst first."""
    timeline = plan.timeline
    found = [
        Risk(what=f"{listed(names)} cannot reboot: {sentence}", remedy=remedy_of_obstacle(obstacle, len(names)))
        for obstacle, sentence, names in sorted(left_by_reason(timeline), key=lambda row: -len(row[2]))
    ]
    if undone := timeline.undone:
        found.append(
            Risk(
                what=f"the agents would undo {count_of(len(undone), 'drain')} "
                f"({listed([visit.node for visit in undone])}): {undone[0].undone}",
                remedy="Start earlier, lengthen the window by the time of one drain, or set --late-policy=reboot.",
            )
        )
    if timeline.closings:
        first = timeline.closings[0]
        # nodes that something else holds would not have rebooted in a longer window either
        others = sum(1 for left in timeline.left if left.obstacle.rule not in {"maintenance-window", "time"})
        by_window = first.left - others
    if timeline.closings and by_window > 0:
        found.append(
            Risk(
                what=f"the window ends at {instant(plan, first.at)} with {count_of(by_window, 'node')} still to reboot",
                remedy="Lengthen the window, or raise --concurrency as far as the budgets allow.",
            )
        )
    for node, waits in _by_node(timeline.pending):
        longest = max(waits, key=lambda wait: wait.seconds(timeline.ends))
        found.append(
            Risk(
                what=f"draining {node} leaves {listed([wait.pod for wait in waits], most=3)} without room, "
                f"{waited(timeline, longest)}: {longest.why.rstrip('.')}",
                remedy=f"Add room or scale down beforehand; `careen forecast {node}` shows which single change "
                f"would make room for each pod, and with `--with-nodes {node}=1` says whether more nodes would help.",
            )
        )
    if plan.ranges and plan.ranges.not_clean and timeline.is_clean:
        found.append(
            Risk(
                what=f"with {plan.ranges.not_clean} of {plan.ranges.seeds} seeds, the plan has a problem, such as a "
                "node that does not reboot in the first window or a pod that finds no room",
                remedy="Leave more room on the nodes, or lengthen the window. This plan shows a simulation without "
                "problems. In the real roll-out, a node may not reboot in the first window, or a pod may find no room.",
            )
        )
    if timeline.slow:
        found.append(
            Risk(
                what=f"the drains wait until what refuses the eviction of {listed(timeline.slow, most=3)} now "
                "allows it; the plan assumes that this takes no time",
                remedy="Check that the operators of these pods run. A drain that they hold up is undone after half an "
                "hour without progress.",
            )
        )
    if timeline.lost:
        found.append(
            Risk(
                what=f"{listed(timeline.lost)} will not be created again: they have no controller, or their Job has "
                "no retry left",
                remedy="Recreate these pods by hand, give them a controller, or let their Job ignore evictions "
                "(podFailurePolicy).",
            )
        )
    if timeline.unknown:
        found.append(
            Risk(
                what=f"the simulation cannot say where {listed(timeline.unknown)} would go",
                remedy="Give the configuration of these pods' scheduler with --scheduler-config, or check by hand "
                "whether other nodes can hold the pods.",
            )
        )
    return found


def comparison(plan: Plan) -> list[tuple[Order, Timeline]]:
    """Each order with its timeline, the plan's own first."""
    return [(plan.line, plan.timeline), *plan.others.items()]


def widths(plan: Plan) -> list[tuple[int, Timeline]]:
    """The plan's --concurrency and the others, with their timelines, in order."""
    return sorted({**plan.at_once, plan.concurrency: plan.timeline}.items())


def order_note(plan: Plan, line: Order) -> str:
    """Who uses this order: the agents now, everybody by default, or whoever opts in."""
    if line is plan.agents_line:
        return "the agents' order"
    return "the default" if line is Order.OLDEST else "opt-in"


def comparison_text(plan: Plan, *, width: int | None = None) -> str:
    """The roll-out's figures in each order, and with each number of nodes at once, as tables."""
    columns = ["REBOOTS", "TAKES", "MOVES", "DOUBLE", "PENDING", "NOTE"]
    orders = [[line.value, *_shown_figures(each), order_note(plan, line)] for line, each in comparison(plan)]
    tables = [table(["ORDER", *columns], orders, width=width)]
    if plan.at_once:
        rows = [[str(most), *_shown_figures(each), width_note(plan, most)] for most, each in widths(plan)]
        tables.append(table(["AT ONCE", *columns], rows, width=width))
    return "\n\n".join(tables)


def width_note(plan: Plan, most: int) -> str:
    """Whether the plan, and the agents, have this --concurrency."""
    return "this plan" if most == plan.concurrency else ""


def _shown_figures(timeline: Timeline) -> list[str]:
    return [
        str(len(timeline.reboots)),
        duration(timeline.ends - timeline.begins),
        str(len(timeline.moves)),
        str(timeline.double_moves),
        _seconds(timeline.pending_seconds),
    ]


def plan_json(plan: Plan) -> dict[str, Any]:
    """The plan as JSON. Times are in UTC, durations in seconds."""
    return {
        "order": plan.line.value,
        "agentsOrder": plan.agents_line.value,
        "concurrency": plan.concurrency,
        "origin": _origin_json(plan.origin) if plan.origin else None,
        "closes": rfc3339(plan.closes) if plan.closes else None,
        "notes": list(plan.notes),
        **_timeline_json(plan.timeline),
        "ranges": _ranges_json(plan, plan.ranges) if plan.ranges else None,
        "verdict": verdict(plan),
        "causes": causes_json(plan.timeline),
        "unblocks": unblocks_json(plan.unblocks),
        "risks": [{"what": risk.what, "remedy": risk.remedy} for risk in risks(plan)],
        "comparison": {line.value: _figures(timeline) for line, timeline in comparison(plan)},
        "atOnce": {str(most): _figures(timeline) for most, timeline in widths(plan)},
    }


def _ranges_json(plan: Plan, ranges: Ranges) -> dict[str, Any]:
    """Each range is a list of minimum and maximum."""
    return {
        "seeds": ranges.seeds,
        "leftToChance": plan.timeline.is_open,
        "moves": list(ranges.moves),
        "doubleMoves": list(ranges.double_moves),
        "ends": [rfc3339(each) for each in ranges.ends],
        "seconds": [round((each - plan.timeline.begins).total_seconds()) for each in ranges.ends],
        "pendingSeconds": [round(each) for each in ranges.pending_seconds],
        "notClean": ranges.not_clean,
    }


def instant(plan: Plan, at: datetime) -> str:
    """`Thu 2026-01-01 06:00 CET` in the plan's zone, with seconds only if they are not 0."""
    return f"{_without_zone(plan, at)} {at.astimezone(plan.zone):%Z}"


def _without_zone(plan: Plan, at: datetime) -> str:
    """For a column whose header names the zone."""
    local = at.astimezone(plan.zone)
    return f"{local:%a %Y-%m-%d %H:%M:%S}" if local.second else f"{local:%a %Y-%m-%d %H:%M}"


def waited(timeline: Timeline, wait: Wait) -> str:
    """Such as "for 4m", or that the pod waits until after the end of the plan."""
    return f"for {_seconds(wait.seconds(timeline.ends))}" if wait.until else "until after the end of the plan"


def visit_note(plan: Plan, visit: Visit) -> str:
    """Why a drain is undone, and which pods wait: `2 pods without room, 1 pod waits until the node is back`."""
    waiting = [
        wait for wait in plan.timeline.waits if wait.node == visit.node and visit.start <= wait.since <= visit.end
    ]
    pending = sum(1 for wait in waiting if not wait.returns)
    returning = len(waiting) - pending
    parts = [f"undone: {visit.undone}"] if visit.undone else []
    parts += [f"{count_of(pending, 'pod')} without room"] if pending else []
    wait = "waits" if returning == 1 else "wait"
    parts += [f"{count_of(returning, 'pod')} {wait} until the node is back"] if returning else []
    return ", ".join(parts)


def _row(plan: Plan, visit: Visit) -> list[str]:
    return [
        visit.node,
        _without_zone(plan, visit.start),
        f"{visit.end.astimezone(plan.zone):%H:%M:%S}",
        str(visit.moves),
        visit_note(plan, visit),
    ]


def _by_node(waits: Sequence[Wait]) -> list[tuple[str, list[Wait]]]:
    groups: dict[str, list[Wait]] = defaultdict(list)
    for wait in waits:
        groups[wait.node].append(wait)
    return list(groups.items())


def _seconds(seconds: float) -> str:
    return duration(timedelta(seconds=seconds))


def _origin_json(origin: Origin) -> dict[str, Any]:
    return {
        "server": origin.server or None,
        "context": origin.context or None,
        "dump": origin.dump or None,
        "kubernetes": origin.kubernetes or None,
        "takenAt": rfc3339(origin.taken_at),
        "settings": dict(origin.settings),
    }


def _figures(timeline: Timeline) -> dict[str, Any]:
    return {
        "reboots": len(timeline.reboots),
        "seconds": round((timeline.ends - timeline.begins).total_seconds()),
        "moves": len(timeline.moves),
        "doubleMoves": timeline.double_moves,
        "pending": len(timeline.pending),
        "pendingSeconds": round(timeline.pending_seconds),
        "left": len(timeline.left),
    }


def _timeline_json(timeline: Timeline) -> dict[str, Any]:
    return {
        "begins": rfc3339(timeline.begins),
        "ends": rfc3339(timeline.ends),
        "nodes": list(timeline.nodes),
        "mostAtOnce": timeline.most_at_once(),
        "figures": _figures(timeline),
        "visits": [
            {
                "node": visit.node,
                "start": rfc3339(visit.start),
                "end": rfc3339(visit.end),
                "moves": visit.moves,
                "undone": visit.undone or None,
                "steps": [
                    {"step": span.step.value, "start": rfc3339(span.start), "end": rfc3339(span.end)}
                    for span in visit.spans
                ],
            }
            for visit in timeline.visits
        ],
        "moves": [
            {
                "pod": move.pod,
                "from": move.source,
                "to": move.target,
                "at": rfc3339(move.at),
                "choices": move.choices,
                "preempted": move.is_preempted,
                "open": move.is_open,
            }
            for move in timeline.moves
        ],
        "waits": [
            {
                "pod": wait.pod,
                "node": wait.node,
                "since": rfc3339(wait.since),
                "until": rfc3339(wait.until) if wait.until else None,
                "returns": wait.returns,
                "why": wait.why,
            }
            for wait in timeline.waits
        ],
        "lost": list(timeline.lost),
        "unknown": list(timeline.unknown),
        "slow": list(timeline.slow),
        "hindrances": [
            {"rule": each.rule, "subject": each.subject, "seconds": round(each.seconds), "nodes": list(each.nodes)}
            for each in timeline.hindrances
        ],
        "closings": [{"at": rfc3339(closing.at), "left": closing.left} for closing in timeline.closings],
        "left": [
            {"node": left.node, "rule": left.obstacle.rule, "sentence": left.obstacle.sentence}
            for left in timeline.left
        ],
    }
