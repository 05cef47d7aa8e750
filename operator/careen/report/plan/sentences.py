"""The plan's verdict and figures, one sentence each."""

from __future__ import annotations

from careen.core.facts.times import duration
from careen.plan.ranges import Ranges
from careen.report.plan.causes import merged_hindrances, unfinished
from careen.report.plan.values import Plan, instant, seconds_text, waited, without_zone
from careen.report.tables import listed
from scheduler_core.sentences import count_of

SHOWN = 3


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
            f"{seconds_text(timeline.pending_seconds)} in total; {longest.pod} waits longest, "
            f"{waited(timeline, longest)}."
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
        f"{seconds_text(each.seconds)}."
        for each in merged[:SHOWN]
    ]
    if len(merged) > SHOWN:
        sentences.append(f"{count_of(len(merged) - SHOWN, 'more hindrance')}: -o json.")
    return sentences


def ranges_sentence(plan: Plan, ranges: Ranges) -> str:
    """How much the plan depends on the seed, as ranges: `38-44 moves, 2-5 double moves`."""
    if not plan.timeline.is_open:
        return "No step of the plan depends on chance: every seed gives the same plan."
    if ranges.is_single:
        return "Another seed may give another plan: --seeds=5 shows the differences."
    first, last = without_zone(plan, ranges.ends[0]), instant(plan, ranges.ends[1])
    is_one = ranges.ends[0] == ranges.ends[1]
    day = f"{ranges.ends[0].astimezone(plan.zone):%a %Y-%m-%d} "
    both = f"{first}-{last.removeprefix(day)}" if last.startswith(day) else f"between {first} and {last}"
    ends = last if is_one else both
    least, most = (seconds_text(each) for each in ranges.pending_seconds)
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
