"""How often scheduler_core and the scheduler agree."""

from __future__ import annotations

from typing import Any

from careen.report.tables import paragraph, table
from careen.shadow.outcomes import MEANINGS, Agreement, Compared, outcome_of
from careen.shadow.tally import LEAST_AGREEMENT, RunCounts, agreement_of
from scheduler_core.sentences import count_of, first_few
from scheduler_core.values import Value

AGREES = 0
DISAGREES = 3
NOTHING_TO_SAY = 4
_SHOWN_NODES = 3


class Followed(Value, kw_only=True):
    """For how long, and how much, one run followed."""

    seconds: float
    nodes: int
    pods: int
    events: int
    lists: int
    notes: tuple[str, ...] = ()


def exit_code(tally: RunCounts) -> int:
    """4 if no pod was compared, 3 if the scheduler probably has another configuration, otherwise 0."""
    if tally.is_too_low:
        return DISAGREES
    return AGREES if tally.compared else NOTHING_TO_SAY


def shadow_text(tally: RunCounts, followed: Followed, *, last: int, width: int | None = None) -> str:
    """For a terminal: summary, a line for each profile and reason, likely causes, and the last disagreements."""
    parts = [paragraph(_headline(tally, followed), width=width)]
    if tally.counts:
        parts.append(table(["PROFILE", "OUTCOME", "REASON", "PODS", "MEANING"], _rows(tally), width=width))
    parts += [paragraph(f"Likely cause: {cause}.", width=width) for cause in tally.causes()]
    parts += [paragraph(f"Note: {note}.", width=width) for note in followed.notes]
    shown = list(tally.disagreements)[-last:] if last else []
    if shown:
        title = "The last disagreement:" if len(shown) == 1 else f"The last {len(shown)} disagreements:"
        rows = [[each.at, each.pod, nodes_said(each), each.node or "none", each.why] for each in shown]
        parts.append(title + "\n" + table(["AT", "POD", "SAID", "TOOK", "WHY NOT"], rows, width=width))
    return "\n\n".join(parts)


def _headline(tally: RunCounts, followed: Followed) -> str:
    agreed, unsaid = tally.number(Agreement.AGREED), tally.number(Agreement.CANNOT_SAY)
    seen = (
        f"{count_of(followed.nodes, 'node')} and {count_of(followed.pods, 'pod')} were followed for "
        f"{followed.seconds:.0f} s ({count_of(followed.events, 'event')})"
    )
    if not tally.compared:
        return f"{seen}; no bound pod could be compared{_besides(unsaid)}."
    share = f"{100 * (tally.agreement or 0.0):.1f} %"
    sets = f", and expects {tally.mean_set:.1f} possible nodes per pod on average" if tally.mean_set else ""
    result = (
        f"{seen}: scheduler_core agrees with the scheduler on {agreed} of {count_of(tally.compared, 'pod')} "
        f"({share}){sets}"
    )
    warning = (
        f" An agreement below {100 * LEAST_AGREEMENT:.0f} % means that the scheduler probably has another "
        "configuration than the one given to careen."
    )
    return f"{result}{_besides(unsaid)}.{warning if tally.is_too_low else ''}"


def _besides(unsaid: int) -> str:
    return f"; {count_of(unsaid, 'pod')} could not be judged" if unsaid else ""


def _rows(tally: RunCounts) -> list[list[str]]:
    order = list(MEANINGS)
    counts = sorted(tally.counts.items(), key=lambda pair: (pair[0][0], order.index(pair[0][1])))
    return [
        [profile, outcome_of(reason).value, reason.value, str(count), MEANINGS[reason]]
        for (profile, reason), count in counts
    ]


def nodes_said(each: Compared) -> str:
    """The expected nodes, most likely first, cut after a few."""
    if not each.said:
        return "none"
    return first_few([name for name, _ in each.said], _SHOWN_NODES)


def shadow_json(tally: RunCounts, followed: Followed, *, last: int) -> dict[str, Any]:
    """The result as JSON."""
    profiles = sorted({profile for profile, _ in tally.counts})
    return {
        "agreement": tally.agreement,
        "agreed": tally.number(Agreement.AGREED),
        "disagreed": tally.number(Agreement.DISAGREED),
        "cannotSay": tally.number(Agreement.CANNOT_SAY),
        "meanSet": tally.mean_set,
        "gaps": tally.gaps,
        "seconds": round(followed.seconds, 1),
        "nodes": followed.nodes,
        "pods": followed.pods,
        "events": followed.events,
        "lists": followed.lists,
        "otherConfiguration": tally.is_too_low,
        "likelyCauses": list(tally.causes()),
        "notes": list(followed.notes),
        "profiles": [_profile(tally, profile) for profile in profiles],
        "disagreements": [_json(each) for each in (list(tally.disagreements)[-last:] if last else [])],
    }


def _profile(tally: RunCounts, profile: str) -> dict[str, Any]:
    agreed, disagreed = tally.number(Agreement.AGREED, profile), tally.number(Agreement.DISAGREED, profile)
    return {
        "profile": profile,
        "agreement": agreement_of(agreed, disagreed),
        "reasons": {reason.value: count for (each, reason), count in sorted(tally.counts.items()) if each == profile},
    }


def _json(each: Compared) -> dict[str, Any]:
    return {
        "at": each.at,
        "pod": each.pod,
        "profile": each.profile,
        "reason": each.reason.value,
        "said": [{"node": name, "share": share} for name, share in each.said],
        "node": each.node or None,
        "why": each.why or None,
        "plugin": each.plugin or None,
    }
