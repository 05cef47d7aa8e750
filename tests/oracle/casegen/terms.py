"""Generates a pod's requirements on nodes and other pods: tolerations, affinity, spread."""

from __future__ import annotations

from typing import Any

from tests.oracle.casegen import vocabulary as word
from tests.oracle.casegen.draw import Draw, without_none


def tolerations(d: Draw) -> list[dict[str, Any]]:
    """Returns tolerations that match some taints, some effects, or everything."""
    if d.maybe(0.1):
        return [{"operator": "Exists"}]
    found = []
    for _ in range(d.randint(0, 3)):
        one: dict[str, Any] = {
            "key": d.choice(
                ("dedicated", "spot", "flaky", "node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready")
            )
        }
        if d.maybe(0.5):
            one["operator"] = "Exists"
        else:
            one |= {"operator": "Equal"} if d.maybe(0.7) else {}
            one["value"] = d.choice(("a", "b", ""))
        if d.maybe(0.5):
            one["effect"] = d.choice(("NoSchedule", "PreferNoSchedule", "NoExecute"))
        if one.get("effect") == "NoExecute" and d.maybe(0.5):
            one["tolerationSeconds"] = 30
        found.append(one)
    if d.maybe(0.04):  # an empty key with Equal is against the API's rules, and compares values alone
        found.append(
            d.choice(
                (
                    {"operator": "Equal", "value": "a"},
                    {"operator": "Exists", "effect": "PreferNoSchedule"},
                    {"key": "", "operator": "Exists", "effect": "NoSchedule"},
                    {},
                )
            )
        )
    if d.maybe(0.03):
        found.append(
            {"key": "spot", "operator": d.choice(("Gt", "Lt")), "value": "3"}
        )  # alpha operators: no match by default
    return found


def node_term(d: Draw, nodes: list[str]) -> dict[str, Any]:
    """Returns one node selector term. It may select by fields, be unreadable, or be empty."""
    kind = d.random()
    if kind < 0.04:
        return {}
    if kind < 0.14:
        fields = [
            {
                "key": "metadata.name",
                "operator": d.often(("In", "NotIn"), ("Exists",), 0.05),
                "values": d.some([*nodes, "nowhere"], 1),
            }
        ]
        term: dict[str, Any] = {"matchFields": fields}
        if d.maybe(0.3):
            term["matchExpressions"] = [word.node_expression(d)]
        return term
    return {
        "matchExpressions": [word.node_expression(d, parsable=not d.maybe(0.06)) for _ in range(d.choice((1, 1, 2)))]
    }


def node_affinity(d: Draw, nodes: list[str], required: float, preferred: float) -> dict[str, Any]:
    """Returns node affinity. `required` and `preferred` are the probabilities of its two parts."""
    affinity: dict[str, Any] = {}
    if d.maybe(required):
        if d.maybe(0.15):  # every term pins names: the plugin answers with a set of nodes
            terms = [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [d.choice(nodes)]}]}
                for _ in range(d.randint(1, 2))
            ]
            if d.maybe(0.3):
                terms[0]["matchFields"].append({"key": "metadata.name", "operator": "In", "values": [d.choice(nodes)]})
        else:
            terms = [node_term(d, nodes) for _ in range(d.choice((1, 2, 2, 3)))]
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if d.maybe(preferred):
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {
                "weight": d.often(tuple(range(1, 101)), (0,), 0.03),
                "preference": {} if d.maybe(0.04) else {"matchExpressions": [word.node_expression(d)]},
            }
            for _ in range(d.randint(1, 3))
        ]
    return affinity


def pod_term(d: Draw, labels: dict[str, str]) -> dict[str, Any]:
    """Returns one pod affinity term. It selects namespaces by name, by a selector, by both, or not at all."""
    term: dict[str, Any] = {
        "topologyKey": d.often(word.TOPOLOGY_KEYS, ("disk", "absent"), 0.06),
        "labelSelector": word.label_selector(d, labels.get("app") if d.maybe(0.5) else None),
    }
    where = d.random()
    if where < 0.2:
        term["namespaces"] = d.some(word.NAMESPACES, 2)
    if 0.12 < where < 0.4:
        term["namespaceSelector"] = d.choice(
            (
                {},
                {"matchLabels": {"team": "red"}},
                {"matchExpressions": [{"key": "team", "operator": "Exists"}]},
                {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["red"]}]},
                {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
                {"matchLabels": {"team": "nobody"}},
            )
        )
    if (
        labels and term["labelSelector"] and d.maybe(0.08)
    ):  # as the API server stores it: already merged into the selector
        key = d.choice(sorted(labels))
        field, operator = d.choice((("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")))
        term[field] = [key]
        term["labelSelector"].setdefault("matchExpressions", []).append(
            {"key": key, "operator": operator, "values": [labels[key]]}
        )
    return without_none(term)


def pod_affinity(d: Draw, labels: dict[str, str], strength: float) -> dict[str, Any]:
    """Returns podAffinity and podAntiAffinity. Required and preferred terms each occur with the probability
    `strength`, but required podAffinity is rarer."""
    affinity: dict[str, Any] = {}
    for field, required in (("podAffinity", strength * 0.6), ("podAntiAffinity", strength)):
        part: dict[str, Any] = {}
        if d.maybe(required):
            part["requiredDuringSchedulingIgnoredDuringExecution"] = [
                pod_term(d, labels) for _ in range(d.choice((1, 1, 2)))
            ]
        if d.maybe(strength):
            part["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": d.randint(1, 100), "podAffinityTerm": pod_term(d, labels)}
                for _ in range(d.choice((1, 1, 2)))
            ]
        if part:
            affinity[field] = part
    return affinity


def spread(d: Draw, labels: dict[str, str]) -> list[dict[str, Any]]:
    """Returns topology spread constraints with all their fields."""
    found, taken = [], set()
    for _ in range(d.choice((1, 1, 2, 3))):
        key = d.often(word.TOPOLOGY_KEYS, (word.REGION, "disk", "absent"), 0.1)
        when = d.choice(("DoNotSchedule", "ScheduleAnyway"))
        if (key, when) in taken:
            continue  # the API refuses two constraints with the same key and the same `when`
        taken.add((key, when))
        one: dict[str, Any] = {
            "maxSkew": d.choice((1, 1, 2, 3)),
            "topologyKey": key,
            "whenUnsatisfiable": when,
            "labelSelector": word.label_selector(d, labels.get("app") if d.maybe(0.75) else None),
        }
        if when == "DoNotSchedule" and d.maybe(0.25):
            one["minDomains"] = d.randint(1, 5)
        for policy, chance in (("nodeAffinityPolicy", 0.3), ("nodeTaintsPolicy", 0.3)):
            if d.maybe(chance):
                one[policy] = d.choice(("Honor", "Ignore"))
        if d.maybe(0.2) and one["labelSelector"] is not None:
            inside = set(one["labelSelector"].get("matchLabels") or {})
            keys = [key for key in ("version", "tier", "track", "app") if key not in inside]
            one["matchLabelKeys"] = d.some(keys, 2)
        found.append(without_none(one))
    return found
