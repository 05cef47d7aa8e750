"""A forecast as a table, and the agent's decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from careen.core.drain.drain_memory import DrainMemory, KnownOwner
from careen.core.drain.forecast_objection import (
    bound_in,
    lost_in,
    objection_to,
    objection_to_bound,
    objection_to_disturbance,
    objection_to_loss,
    protected_in,
)
from careen.core.facts import keys
from careen.core.facts.policy import ForecastPolicy, Policy
from careen.core.facts.times import age, from_rfc3339, rfc3339
from careen.report.tables import listed, paragraph, table
from scheduler_core.sentences import count_of
from scheduler_core.simulation.forecast import Forecast, NodesAnswer, Opens, Outcome, PodForecast

_NONE: Mapping[str, DrainMemory] = {}

# Exit codes of `careen forecast`, for scripts: 1 and 2 mean errors.
CLEAN, SOMETHING_STUCK, NOT_KNOWN = 0, 3, 4


def exit_code(forecast: Forecast) -> int:
    """3 if a pod would find no room or may not be evicted; otherwise 4 if one cannot be predicted; otherwise 0."""
    if forecast.count(Outcome.PENDING) or forecast.count(Outcome.BLOCKED) > len(forecast.slow):
        return SOMETHING_STUCK
    return NOT_KNOWN if forecast.count(Outcome.UNKNOWN) else CLEAN


def exit_code_of_all(forecasts: Sequence[Forecast]) -> int:
    """3 if any has 3; otherwise 4 if any has 4; otherwise 0."""
    codes = {exit_code(each) for each in forecasts}
    return next((code for code in (SOMETHING_STUCK, NOT_KNOWN) if code in codes), CLEAN)


def forecasts_text(
    forecasts: Sequence[Forecast],
    now: datetime,
    policy: Policy | None = None,
    *,
    width: int | None = None,
    memories: Mapping[str, DrainMemory] = _NONE,
) -> str:
    """A block for each node. With --with-nodes, a last paragraph says what more nodes would change. `memories` are what
    the nodes remember of their slow pods, by name."""
    others = len(forecasts) - 1
    blocks = [
        forecast_text(each, now, policy, width=width, others=others, memory=memories.get(each.node))
        for each in forecasts
    ]
    answers = [nodes_text(each.more_nodes) for each in forecasts[:1] if each.more_nodes]
    return "\n\n".join([*blocks, *(paragraph(each, width=width) for each in answers)])


def forecasts_json(
    forecasts: Sequence[Forecast], policy: Policy | None = None, memories: Mapping[str, DrainMemory] = _NONE
) -> dict[str, Any]:
    """One forecast as an object, several as a list under the key `forecasts`."""
    each = [forecast_json(forecast, policy, memories.get(forecast.node)) for forecast in forecasts]
    return each[0] if len(each) == 1 else {"forecasts": each}


def forecast_text(
    forecast: Forecast,
    now: datetime,
    policy: Policy | None = None,
    *,
    width: int | None = None,
    others: int = 0,
    memory: DrainMemory | None = None,
) -> str:
    """For a terminal, with the pods in the order of their evictions. `policy` is None if unknown; `others` is the
    number of nodes that are drained together with this one."""
    drained = f"{forecast.node} and {count_of(others, 'other node')}" if others else forecast.node
    lines = [
        paragraph(
            f"If {drained} were drained now (a forecast for {count_of(len(forecast.pods), 'pod')}, made "
            f"{age(from_rfc3339(forecast.made_at), now)} ago):",
            width=width,
        )
    ]
    rows = [_row(pod, _seen(pod, memory), now) for pod in forecast.pods]
    if rows:
        lines += ["", table(["POD", "OUTCOME", "TO", "WHY"], rows, width=width), ""]
    lines.append(paragraph(_counted(forecast), width=width))
    if forecast.already_pending:
        lines.append(
            paragraph(
                f"{count_of(forecast.already_pending, 'pod')} of the cluster had no node even before this drain.",
                width=width,
            )
        )
    lines += [paragraph(_way_out(pod), width=width) for pod in forecast.pods if pod.remedies]
    lines += [paragraph(f"Note: {note}.", width=width) for note in forecast.notes]
    lines.append(paragraph(verdict(forecast, policy), width=width))
    return "\n".join(lines)


def nodes_text(answer: NodesAnswer) -> str:
    """How many pods would find a place on the added nodes, why the others would not, and how many nodes are needed."""
    added = answer.added or {answer.template: answer.count}
    more_nodes = listed([f"{count_of(number, 'more node')} like {name}" for name, number in added.items()])
    if not answer.pods:
        return f"{more_nodes} would make no difference, because every pod finds a place without more nodes."
    homeless = f"the {count_of(answer.pods, 'pod')} that {_find(answer.pods)} no room"
    sentences = [f"With {more_nodes}, {len(answer.placed)} of {homeless} would find a place."]
    reasons: dict[str, list[str]] = {}
    for pod, why in answer.refused.items():
        reasons.setdefault(why, []).append(pod)
    sentences += [f"{listed(pods)} would still find no place: {why.rstrip('.')}." for why, pods in reasons.items()]
    return " ".join([*sentences, _cheapest(answer) if answer.added else _needed(answer)])


def _find(pods: int) -> str:
    return "finds" if pods == 1 else "find"


def _cheapest(answer: NodesAnswer) -> str:
    kinds = listed(list(answer.added))
    if not answer.cheapest:
        return f"More nodes like {kinds} would take none of these pods."
    nodes = listed([f"{number} like {name}" for name, number in answer.cheapest.items()])
    rest = "" if answer.is_cheapest else "; a cheaper choice may exist, not all were tried"
    cost = f" for {answer.price:g}" if answer.price != answer.best_count else ""
    if answer.needed is None:
        took = f"would take {count_of(answer.best_placed, 'pod')}, and further nodes would take no more"
        return f"More nodes like {kinds} would not take all pods: {nodes}{cost} {took}{rest}."
    pods = "this pod" if answer.pods == 1 else f"all {answer.pods} pods"
    return f"To place {pods}, it is enough to add {nodes}{cost}{rest}."


def _needed(answer: NodesAnswer) -> str:
    if answer.needed is not None:
        pods = "this pod" if answer.pods == 1 else f"all {answer.pods} pods"
        instead = "" if answer.needed == answer.count else f" instead of {answer.count}"
        added = count_of(answer.needed, "node")
        return f"To place {pods}, it is enough to add {added} like {answer.template}{instead}."
    tried = f"the simulation tried up to {count_of(answer.tried, 'node')}"
    if not answer.best_count:
        return f"More nodes like the node {answer.template} would take none of these pods ({tried})."
    most = f"{count_of(answer.best_count, 'node')} would take {count_of(answer.best_placed, 'pod')}"
    return (
        f"More nodes like the node {answer.template} would not take all pods ({tried}): {most}, and further nodes "
        "would take no more pods."
    )


def forecast_json(
    forecast: Forecast, policy: Policy | None = None, memory: DrainMemory | None = None
) -> dict[str, Any]:
    """The forecast as JSON, with the pods by outcome, and why the agent would refuse the drain, if it would."""
    known = policy or Policy(node_name=forecast.node)
    asked = (objection_to_disturbance, objection_to_bound, objection_to, objection_to_loss)
    objection = "; ".join(each for ask in asked if (each := ask(forecast, known)))
    mapping = forecast.to_mapping()
    return mapping | {
        "pods": [
            _NOTHING_SAID | written | _seen_json(_seen(pod, memory))
            for pod, written in zip(forecast.pods, mapping["pods"], strict=True)
        ],
        "counts": {outcome.value: number for outcome, number in forecast.counts.items()},
        "refusal": objection or None,
    }


_NOTHING_SAID: Mapping[str, Any] = {
    "namespace": None,
    "name": None,
    "uid": None,
    "outcome": None,
    "sentence": None,
    "landing": [],
    "shares": [],
    "never": False,
    "losesData": False,
    "cut": False,
    "bound": False,
    "opens": None,
    "opensSeen": None,
    "wantsRest": None,
    "owner": None,
    "ownerUid": None,
    "score": None,
    "runnerUp": None,
    "remedies": [],
    "budget": None,
}
"""What `PodForecast` leaves out of its JSON. In the report every pod has every key."""


def verdict(forecast: Forecast, policy: Policy | None = None) -> str:
    """Whether the agent would drain the node. Unknown settings are the defaults."""
    node, known = forecast.node, policy or Policy(node_name=forecast.node)
    agent = "The agent" if policy else "An agent with the default settings"
    bound, others = bound_in(forecast, known), _protected(forecast, known)
    if others:
        return f"{agent} would not drain {node}, because {others}."
    if bound and (known.forecast is not ForecastPolicy.REFUSE or not objection_to(forecast, known)):
        pods, are = listed([pod.title for pod in bound]), "is" if len(bound) == 1 else "are"
        return (
            f"{agent} would not drain {node}, because {pods} {are} bound to {node} and would return after each "
            "eviction (--pods-bound-to-node=stay leaves such pods on the node)."
        )
    if known.forecast is not ForecastPolicy.REFUSE:
        return f"{agent} would drain {node} whatever the forecast says, because of --forecast={known.forecast}."
    if not objection_to(forecast, known):
        return f"{agent} would drain {node}."
    # The table has the reason; the objection's own sentence would repeat it.
    culprits = [
        *bound,
        *forecast.never,
        *forecast.with_outcome(Outcome.PENDING),
        *forecast.with_outcome(Outcome.UNKNOWN),
    ]
    return f"{agent} would not drain {node}, because of {listed([pod.title for pod in culprits])}."


def _protected(forecast: Forecast, policy: Policy) -> str:
    """A clause about the pods of the gates `protected-pods` and `lost-pods`; "" without such pods."""
    resting = [pod.title for pod in protected_in(forecast, policy)]
    if resting:
        asks = "asks" if len(resting) == 1 else "ask"
        return f"{listed(resting)} {asks} not to be disturbed (--protected-pods=evict lets drains evict such pods)"
    lost = [pod.title for pod, _ in lost_in(forecast, policy)]
    return f"{listed(lost)} would be lost (an entry of --blocking-pods has `lost`)" if lost else ""


def _seen(pod: PodForecast, memory: DrainMemory | None) -> KnownOwner | None:
    """How the budget or webhook of a slow pod opened in an earlier drain of its node; None if the node never saw it."""
    known = memory.known.get(pod.owner) if memory is not None and pod.opens is not None else None
    return known if known is not None and known.opens is not Opens.UNSEEN and known.at is not None else None


def _seen_json(seen: KnownOwner | None) -> dict[str, Any]:
    return {"opens": seen.opens.value, "opensSeen": rfc3339(seen.at)} if seen is not None and seen.at else {}


def _row(pod: PodForecast, seen: KnownOwner | None, now: datetime) -> list[str]:
    why = pod.sentence
    if pod.outcome is Outcome.BLOCKED:
        when = "the pod can never be evicted in the current state" if pod.is_never else "the pod cannot be evicted now"
        when = f"opens: {pod.opens}" if pod.opens else when
        when = f"opens: {seen.opens}, seen {age(seen.at, now)} ago" if seen else when
        why = f"{when}: {why}"
    if pod.loses_data:
        loss = "the data in the pod's emptyDir is lost"
        why = f"{why}; {loss}" if why else loss
    return [pod.title, pod.outcome.value, _landing(pod), why]


def _way_out(pod: PodForecast) -> str:
    """Any one of these changes would allow the eviction or make room."""
    any_change = ", or with ".join(pod.remedies)
    if pod.outcome is Outcome.BLOCKED:
        return f"{pod.title} could be evicted with {any_change}."
    return f"{pod.title} would find a place with {any_change}."


def _landing(pod: PodForecast) -> str:
    """The landing, with shares if the nodes are not equally likely, and a sign at the end if others are possible
    too."""
    shown = [f"{name} {share:.0%}" for name, share in zip(pod.landing, pod.shares, strict=False)] or pod.landing
    named = listed(shown, most=3).replace(", ", "|").replace(" and ", "|+").replace(" more", "")
    return f"{named}|{keys.AND_OTHERS}" if pod.is_cut and named else named


def _counted(forecast: Forecast) -> str:
    counted = ", ".join(f"{number} {outcome.value}" for outcome, number in forecast.counts.items())
    return f"{count_of(len(forecast.pods), 'pod')}{f': {counted}' if counted else ''}."
