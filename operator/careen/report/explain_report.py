"""Every scheduler plugin's verdict on one pod: a table of the nodes that fit, and the others by reason. Also why a pod
has no node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from careen.core.facts.times import span
from careen.report.tables import listed, paragraph, table
from scheduler_core.framework.verdict import Verdict
from scheduler_core.sentences import count_of
from scheduler_core.simulation.record import NodeRecord, Record

if TYPE_CHECKING:
    from careen.scheduler.why_pending import NextTry, WhyPending


def explain_text(record: Record, *, node: str | None = None, every_node: bool = False, width: int | None = None) -> str:
    """The nodes that fit with their scores, and the others by plugin and reason; or with `every_node` a line for each,
    with `node` all verdicts on that node."""
    lines = [paragraph(_headline(record), width=width), ""]
    if node is not None:
        return "\n".join([*lines, *_one_node(next(row for row in record.nodes if row.node == node), width)])
    if every_node:
        return "\n".join([*lines, _table(record, record.nodes, width)])
    passed = sorted((row for row in record.nodes if row.refusal is None), key=lambda row: -(row.total or 0))
    parts = [
        *([_table(record, passed[:_SHOWN_NODES], width) + _more(passed[_SHOWN_NODES:], width)] if passed else []),
        *(
            ["\n".join(paragraph(line, width=width) for line in _groups(record))]
            if len(passed) < len(record.nodes)
            else []
        ),
    ]
    return "\n".join(lines) + "\n" + "\n\n".join(parts)


_SHOWN_NODES = 20
_SHOWN_NAMES = 3


def _table(record: Record, rows: Sequence[NodeRecord], width: int | None) -> str:
    plugins = _scoring_plugins(record)
    equal = any(_equal(row, plugins) for row in rows)
    cells = [
        [
            row.node,
            _sum(row),
            *(str(row.scores[name]) if name in row.scores else "" for name in plugins),
            *([_of_equal(row, plugins)] if equal else []),
            _verdict(row.refusal),
        ]
        for row in rows
    ]
    return table(["NODE", "TOTAL", *plugins, *(["OTHERS"] if equal else []), "VERDICT"], cells, width=width)


def _equal(row: NodeRecord, shown: Sequence[str]) -> int:
    """The scores without a column of their own, which are equal on all nodes: with them, the columns add up."""
    return sum(score for name, score in row.scores.items() if name not in shown)


def _of_equal(row: NodeRecord, shown: Sequence[str]) -> str:
    return str(_equal(row, shown)) if row.scores else ""


def _more(rows: Sequence[NodeRecord], width: int | None) -> str:
    if not rows:
        return ""
    totals = sorted({row.total or 0 for row in rows})
    lowest, highest = totals[0], totals[-1]
    scores = f"{lowest}" if lowest == highest else f"{lowest} to {highest}"
    text = f"{count_of(len(rows), 'more node')} can hold the pod, with total scores of {scores}; --all shows each node."
    return "\n" + paragraph(text, width=width)


def _groups(record: Record) -> list[str]:
    """One line per reason, the most frequent first."""
    names: dict[str, list[str]] = {}
    for row in record.nodes:
        if row.refusal is not None:
            names.setdefault(_verdict(row.refusal), []).append(row.node)
    return [
        f"{count_of(len(nodes), 'node')} cannot hold the pod: {why_refused} ({_named(nodes)})"
        for why_refused, nodes in sorted(names.items(), key=lambda group: (-len(group[1]), group[0]))
    ]


def _named(nodes: Sequence[str]) -> str:
    return ", ".join([*nodes[:_SHOWN_NAMES], *(["…"] if len(nodes) > _SHOWN_NAMES else [])])


def explain_json(record: Record) -> dict[str, Any]:
    """The verdicts as JSON."""
    return {
        "pod": record.pod.key,
        "now": record.pod.node_name or None,
        "node": record.result.node,
        "best": list(record.result.best),
        "sentence": record.result.sentence or None,
        "nodes": [
            {
                "node": row.node,
                "total": row.total,
                "scores": dict(row.scores),
                "refusal": _json(row.refusal) if row.refusal else None,
                "verdicts": {plugin: _json(verdict) for plugin, verdict in row.verdicts.items()},
            }
            for row in record.nodes
        ],
    }


def _headline(record: Record) -> str:
    pod, result = record.pod.key, record.result
    place = f"is on {record.pod.node_name}" if record.pod.node_name else "is not on a node"
    cpu, memory = f"{record.cpu_millis}m cpu", f"{-(-record.memory_bytes // 2**20)}Mi memory"
    now = f"The pod {pod} {place} and requests {cpu} and {memory}."
    if result.node is None:
        return f"{now} The pod would find no node: {result.sentence or result.error}{_doubt(record)}"
    passed = sum(1 for row in record.nodes if row.refusal is None)
    among = f", chosen at random among the equal nodes {listed(result.best)}" if len(result.best) > 1 else ""
    fitting = f"{passed} of {count_of(len(record.nodes), 'node')} can hold the pod"
    return f"{now} The pod would go to {result.node}{among}; {fitting}."


def _doubt(record: Record) -> str:
    """About preemption, behind the scheduler's message, which ends with a full stop."""
    doubt = record.result.preemption.doubt if record.result.preemption else ""
    return f" {doubt[0].upper()}{doubt[1:]}." if doubt else ""


def _one_node(row: NodeRecord, width: int | None) -> list[str]:
    rows = [
        [plugin, "filter", _verdict(None if verdict.is_success else verdict)]
        for plugin, verdict in row.verdicts.items()
    ]
    rows += [[plugin, "score", str(score)] for plugin, score in row.scores.items()]
    if row.total is not None:
        rows.append(["all plugins", "score", str(row.total)])
    if not rows:
        rows = [[row.refusal.plugin if row.refusal else "", "prefilter", _verdict(row.refusal)]]
    return [paragraph(f"{row.node}:"), table(["PLUGIN", "POINT", "ANSWER"], rows, width=width)]


def _scoring_plugins(record: Record) -> list[str]:
    """Those whose scores differ between nodes: a column of equal numbers explains nothing."""
    scored = [row.scores for row in record.nodes if row.scores]
    return [name for name in (scored[0] if scored else ()) if len({scores[name] for scores in scored}) > 1]


def _sum(row: NodeRecord) -> str:
    return "" if row.total is None else str(row.total)


def _verdict(refusal: Verdict | None) -> str:
    if refusal is None:
        return "passes"
    return f"{refusal.plugin}: {refusal.message}" if refusal.plugin else refusal.message


def _json(verdict: Verdict) -> dict[str, Any]:
    return {"code": verdict.code.value, "plugin": verdict.plugin or None, "reasons": list(verdict.reasons)}


# ---- a pod without a node ----


def why_pending_text(why: WhyPending, width: int | None = None) -> str:
    """The refusals, the changes that would help, and the next try."""
    said = [_headline_of_pending(why)]
    for group in why.groups:
        more = ", …" if group.count > len(group.nodes) else ""
        plugin = f" ({group.plugin})" if group.plugin else ""
        said.append(f"  {count_of(group.count, 'node')}: {group.reason}{plugin}: {', '.join(group.nodes)}{more}")
    said += _what_helps(why)
    if why.is_untried:
        said.append(f"No scheduler has refused it yet. Does one run for {why.scheduler}?")
    said += [] if why.node else _next_try(why.next_try)
    return "\n".join(paragraph(line.strip(), indent="  " * line.startswith(" "), width=width) for line in said)


def _headline_of_pending(why: WhyPending) -> str:
    if why.node:
        step = why.next_try.queue
        return f"The pod {why.pod} is {f'on its way to {why.node}: {step}' if step else f'on {why.node}'}."
    if why.fits_on:
        failed = f" Its last attempt failed: {why.sentence}" if why.sentence else ""
        return f"The pod {why.pod} has no node. It fits on {why.fits_on} now.{failed}"
    return f"The pod {why.pod} has no node: {why.sentence}"


def _what_helps(why: WhyPending) -> list[str]:
    said = [f"  {' and '.join(change.orders)}" for change in why.changes]
    if why.new_nodes is not None:
        new = why.new_nodes
        alike = f", for all {new.pods} pods of this kind" if new.pods > 1 else ""
        said.append(f"  add {count_of(new.count, 'node')} like {new.like}{alike}")
    if why.preempts_on:
        said.append(f"  preemption evicts {', '.join(why.evicts)} on {why.preempts_on}")
        said += [f"  {why.doubt}"] if why.doubt else []
    if not said:
        return ["Nothing is known that would help."] if why.groups else []
    return ["One of these helps:", *said]


def _next_try(next_try: NextTry) -> list[str]:
    said = []
    if next_try.queue:
        tries = f", tried {count_of(next_try.attempts, 'time')}" if next_try.attempts else ""
        said.append(f"It is {next_try.queue}{tries}.")
    if next_try.seconds is not None and next_try.seconds > 0:
        said.append(f"It is tried again in {span(round(next_try.seconds))} at the latest.")
    if next_try.events:
        said += ["One of these events makes the scheduler try it earlier:", *(f"  {each}" for each in next_try.events)]
    return said
