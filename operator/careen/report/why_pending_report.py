"""Why a pod has no node, as text."""

from __future__ import annotations

from careen.core.facts.times import span
from careen.report.tables import paragraph
from careen.scheduler.why_pending import NextTry, WhyPending
from scheduler_core.sentences import count_of


def why_pending_text(why: WhyPending, width: int | None = None) -> str:
    """The refusals, the changes that would help, and the next try."""
    lines = [_headline(why)]
    for group in why.groups:
        more = ", …" if group.count > len(group.nodes) else ""
        plugin = f" ({group.plugin})" if group.plugin else ""
        lines.append(f"  {count_of(group.count, 'node')}: {group.reason}{plugin}: {', '.join(group.nodes)}{more}")
    lines += _what_helps(why)
    lines += [] if why.node else _next(why.next_try)
    return "\n".join(paragraph(line.strip(), indent="  " * line.startswith(" "), width=width) for line in lines)


def _headline(why: WhyPending) -> str:
    if why.node:
        step = why.next_try.queue
        return f"The pod {why.pod} is {f'on its way to {why.node}: {step}' if step else f'on {why.node}'}."
    if why.fits_on:
        return f"The pod {why.pod} has no node. It fits on {why.fits_on} now."
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


def _next(said: NextTry) -> list[str]:
    lines = []
    if said.queue:
        tries = f", tried {count_of(said.attempts, 'time')}" if said.attempts else ""
        lines.append(f"It is {said.queue}{tries}.")
    if said.seconds is not None and said.seconds > 0:
        lines.append(f"It is tried again in {span(round(said.seconds))} at the latest.")
    if said.events:
        lines += ["One of these events makes the scheduler try it earlier:", *(f"  {each}" for each in said.events)]
    return lines
