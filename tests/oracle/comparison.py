"""Decides whether two results for one pod are equivalent.

Three results of the real scheduler depend on the random order of a Go map: the order of scalar resources among
NodeResourcesFit's reasons, the choice between equally good preemptions, and, above a hundred nodes, which candidates
are examined.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

FIELDS = ("preenqueue", "prefilter", "nodes", "scores", "best", "fit_error")
FIXED_ORDER = ("Too many pods", "Insufficient cpu", "Insufficient memory", "Insufficient ephemeral-storage")
SAMPLED_ABOVE = 100  # nodes; pkg/scheduler/framework/plugins/defaultpreemption, minCandidateNodesAbsolute


def differences(want: Mapping[str, Any], got: Mapping[str, Any]) -> list[str]:
    """Returns the fields in which `got`, a result of scheduler_core, differs from `want`, the result of the oracle (a
    program with kube-scheduler's own code)."""
    if "error" in want or "error" in got:
        return [] if ("error" in want) == ("error" in got) else ["error"]
    options, ours = want.get("preemptions", []), got.get("preemption")
    want = _with_our_choice(want, got)
    found = [field for field in FIELDS if _settled(field, want.get(field)) != _settled(field, got.get(field))]
    sampled = len(want.get("nodes") or {}) > SAMPLED_ABOVE
    if bool(ours) != bool(options) or (ours and not sampled and ours not in options):
        found.append("preemption")
    return found


def _with_our_choice(want: Mapping[str, Any], got: Mapping[str, Any]) -> Mapping[str, Any]:
    """Since 1.37 the sentence names the node where preemption evicts. If ours is another of the equally good ones,
    only the words before it must be equal; which nodes are equally good is compared elsewhere."""
    theirs, ours = (_ANNOUNCED.fullmatch(each.get("fit_error") or "") for each in (want, got))
    if theirs is None or ours is None or theirs["node"] == ours["node"] or len(want.get("preemptions", ())) < 2:
        return want
    return {**want, "fit_error": theirs["before"] + ours["announcement"]}


_ANNOUNCED = re.compile(
    r"(?P<before>.*preemption: )"
    r"(?P<announcement>found a potential placement for pod on node (?P<node>\S+), preempting \d+ victims)"
)


def _settled(field: str, value: Any) -> Any:
    if field == "fit_error" and value:
        return re.sub(
            r'(preemption: running "\w+" filter plugin: ).*', r"\1…", value
        )  # a failure inside the search for victims: its details are Go's own
    if field != "nodes" or not value:
        return value
    return {node: _settled_verdict(verdict) for node, verdict in value.items()}


def _settled_verdict(verdict: dict[str, Any]) -> dict[str, Any]:
    if verdict.get("plugin") != "NodeResourcesFit":
        return verdict
    fixed = [reason for reason in verdict["reasons"] if reason in FIXED_ORDER]
    scalar = sorted(reason for reason in verdict["reasons"] if reason not in FIXED_ORDER)
    # The reasons in `FIXED_ORDER` must come before all others. They are not sorted, so their order is compared.
    in_order = verdict["reasons"][: len(fixed)] == fixed
    return verdict | {"reasons": fixed + scalar if in_order else verdict["reasons"]}


def first_difference(want: Mapping[str, Any], got: Mapping[str, Any], field: str, most: int = 3) -> str:
    """Returns a text that describes how one field differs between two results: the first nodes with different values,
    or the two values.
    """
    if field == "preemption":
        return f"one of {want.get('preemptions')} expected, got {got.get('preemption')}"
    left, right = _settled(field, want.get(field)), _settled(field, got.get(field))
    if isinstance(left, dict) and isinstance(right, dict):
        keys = [key for key in sorted(left.keys() | right.keys()) if left.get(key) != right.get(key)]
        return "; ".join(
            f"{key}: {_part(left.get(key), right.get(key))} expected, got {_part(right.get(key), left.get(key))}"
            for key in keys[:most]
        ) + (f" … ({len(keys)} differences)" if len(keys) > most else "")
    return f"{left!r} expected, got {right!r}"


def _part(one: Any, other: Any) -> Any:
    """If both values contain the plugins' scores of a node, returns only the scores in `one` that differ from those in
    `other`. Otherwise returns `one` unchanged.
    """
    if not (isinstance(one, dict) and isinstance(other, dict) and "plugins" in one and "plugins" in other):
        return one
    return {
        name: one["plugins"].get(name)
        for name in sorted(one["plugins"].keys() | other["plugins"].keys())
        if one["plugins"].get(name) != other["plugins"].get(name)
    }
