"""values.schema.json: name, type and pattern of each value of the chart. With it, `helm install` refuses a misspelled
value, which could otherwise silently remove a gate.

It cannot detect an invalid selector or expression, or two values that contradict each other: the templates refuse
those, or the agent at its start.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from careen.settings import kinds
from careen.settings.tree import SETTINGS, flag
from docs.chart.objects import components
from docs.chart.settings import empty_is_a_value, key, place

Schema = dict[str, Any]

_LENGTH = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)"
_NOTHING = r"(0+(\.0*)?|\.0+)(ns|us|µs|μs|ms|s|m|h)"
_WORD = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_DNS = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_KEY = rf"({_DNS}(\.{_DNS})*/)?{_WORD}"
_TRUE_OR_FALSE = "^([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee]|[TtFf01])$"

TEXT: Schema = {"type": "string"}
SWITCH: Schema = {"type": "boolean"}
NUMBER: Schema = {"type": "integer"}
LIST: Schema = {"type": "array"}
MAP: Schema = {"type": "object"}


def _pattern(text: str) -> Schema:
    return {"type": "string", "pattern": f"^({text})$"}


_HOUR, _SIXTY = "([01]?[0-9]|2[0-3])", "[0-5]?[0-9]"
# Not of this machine's database: the schema must be the same wherever `make docs` runs.
_ZONES = (Path(__file__).parent / "time_zones.txt").read_text().split()

_FORMS: list[tuple[kinds.ValueKind, list[Schema]]] = [
    (kinds.SWITCH, [SWITCH, {"type": "string", "pattern": _TRUE_OR_FALSE}]),
    (kinds.DURATION, [{"const": 0}, _pattern(f"0|({_LENGTH})+")]),
    (kinds.DEADLINE, [{**_pattern(f"({_LENGTH})+"), "not": _pattern(f"({_NOTHING})+")}]),
    (kinds.MEMORY, [{"type": "integer", "minimum": 64 * 2**20}, _pattern("[0-9]+(Ki|Mi|Gi|k|M|G)?")]),
    (
        kinds.TIME,
        [
            {"type": "integer", "minimum": 0, "maximum": 23},
            _pattern(f"{_HOUR}|{_HOUR}:{_SIXTY}(:{_SIXTY})?|(0?[1-9]|1[0-2])(:{_SIXTY})?[aApP][mM]"),
        ],
    ),
    (kinds.ZONE, [{"enum": ["", "Local", *_ZONES]}]),
    (kinds.URL, [_pattern(r"https?://[^/?#\s]+\S*")]),
    (kinds.KEY, [_pattern(_KEY)]),
    (kinds.ANNOTATION, [_pattern(_KEY)]),
    (kinds.TEMPLATE, [_pattern("([^%]|%%)*(%s([^%]|%%)*)?")]),
]


def of_setting(name: str) -> Schema:
    """The schema of the value `configuration.NAME`."""
    kind = SETTINGS[name].kind
    forms = _forms(kind)
    if kind.many:
        forms = [{"type": "array", "items": {"anyOf": forms}}, TEXT]
    nothing: list[Schema] = [{"type": "null"}]
    if SETTINGS[name].is_kureds or empty_is_a_value(name):
        nothing.append({"const": ""})
    return {"description": SETTINGS[name].help, "anyOf": [*forms, *nothing]}


def _forms(kind: kinds.ValueKind) -> list[Schema]:
    if kind.choices:
        off: list[Schema] = [{"const": False}] if "off" in kind.choices else []
        return [{"enum": list(kind.choices)}, *off]
    if kind.bounds:
        lowest, highest = kind.bounds
        return [{"type": "integer", "minimum": lowest, "maximum": highest}, _pattern("[+-]?[0-9]+")]
    if kind is kinds.DAYS:
        days = "su(n(day)?)?|mo(n(day)?)?|tu(e(sday)?)?|we(d(nesday)?)?|th(u(rsday)?)?|fr(i(day)?)?|sa(t(urday)?)?"
        anyhow = "".join(f"[{each.upper()}{each}]" if each.isalpha() else each for each in days)
        return [{"type": "integer", "minimum": 0, "maximum": 6}, _pattern(f"[0-6]|{anyhow}")]
    if kind is kinds.LABELS:
        return [_pattern(rf"{_KEY}=({_WORD})?(=.*)?")]
    if kind.is_mapping:
        return [MAP, TEXT]
    if kind is kinds.BUDGETS:
        return [_pattern("(zone|control-plane|topology:.+|selector:.+)=[0-9]+%?")]
    return next((forms for each, forms in _FORMS if each is kind), [TEXT])


def _configuration() -> Schema:
    settings = {key(name): of_setting(name) for name in SETTINGS if place(name) != "chart"}
    return _closed(
        {
            "useRebootSentinelHostPath": {
                "description": "A value that the chart of kured also has.",
                "anyOf": [SWITCH, {"type": "null"}],
            },
            **settings,
            "annotationTtl": {
                "description": "A value of an old chart of kured. The templates refuse this value and name its "
                "replacement."
            },
        }
    )


def _extra_args() -> Schema:
    """A map from each flag to its value, or to a list of values for a repeated flag. The templates refuse a flag
    that the chart already sets."""
    one: list[Schema] = [TEXT, {"type": "number"}, SWITCH, {"type": "null"}]
    some: Schema = {"anyOf": [*one, {"type": "array", "items": {"anyOf": one[:3]}}]}
    return _closed({flag(name): some for name in SETTINGS})


def _closed(properties: Schema, **more: Any) -> Schema:
    return {"type": "object", "additionalProperties": False, "properties": properties, **more}


def _or_nothing(form: Schema) -> Schema:
    return {"anyOf": [form, {"type": "null"}]}


_TEXTS: Schema = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}
_COUNT: Schema = {"anyOf": [{"type": "integer", "minimum": 0}, _pattern("[0-9]+%?")]}


def of_values() -> Schema:
    """The whole content of values.schema.json."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$comment": "Written by `make docs` from operator/careen/settings/tree.py and docs/chart/; edit those.",
        **_closed(
            {
                **_of_the_pod(),
                "configuration": _configuration(),
                "extraArgs": _or_nothing(_extra_args()),
                "extraEnvVars": _or_nothing({"type": "array", "items": {"type": "object", "required": ["name"]}}),
                "existingSecret": _or_nothing(TEXT),
                "notifyUrlSecret": _or_nothing(TEXT),
                "configMapData": _or_nothing({"type": "object", "additionalProperties": TEXT}),
                "components": _closed(dict.fromkeys(components(), SWITCH)),
                "namespace": _closed({"create": SWITCH}),
                "rbac": _closed({"create": SWITCH}),
                "serviceAccount": _closed(
                    {"create": SWITCH, "name": _or_nothing(TEXT), "extraAnnotations": _or_nothing(_TEXTS)}
                ),
                "service": _closed(
                    {
                        "create": SWITCH,
                        "port": {"type": "integer", "minimum": 1, "maximum": 65535},
                        "nodePort": _or_nothing({"type": "integer", "minimum": 1, "maximum": 65535}),
                        "annotations": _or_nothing(_TEXTS),
                        "name": _or_nothing(TEXT),
                        "type": {"enum": ["ClusterIP", "NodePort", "LoadBalancer"]},
                    }
                ),
                "metrics": _closed(
                    {
                        "create": SWITCH,
                        "namespace": _or_nothing(TEXT),
                        "labels": _or_nothing(_TEXTS),
                        "interval": _or_nothing(TEXT),
                        "scrapeTimeout": _or_nothing(TEXT),
                    }
                ),
                "podSecurityPolicy": _closed({"create": SWITCH}),
                "autolock": {
                    "description": "A value of an old chart of kured. The templates refuse this value and name its "
                    "replacement."
                },
                "nameOverride": _or_nothing(TEXT),
                "fullnameOverride": _or_nothing({"type": "string", "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$"}),
                "global": {},
            }
        ),
    }


def _of_the_pod() -> Schema:
    return {
        "image": _closed(
            {
                "repository": {"type": "string", "minLength": 1},
                "tag": _or_nothing({"type": ["string", "number"]}),
                "pullPolicy": _or_nothing({"enum": ["", "Always", "IfNotPresent", "Never"]}),
                "pullSecrets": _or_nothing({"type": "array", "items": {"anyOf": [TEXT, MAP]}}),
            }
        ),
        "revisionHistoryLimit": _or_nothing({"type": "integer", "minimum": 0}),
        "updateStrategy": {"enum": ["RollingUpdate", "OnDelete"]},
        "maxUnavailable": _or_nothing(_COUNT),
        "podAnnotations": _or_nothing(_TEXTS),
        "dsAnnotations": _or_nothing(_TEXTS),
        "podLabels": _or_nothing(_TEXTS),
        "priorityClassName": _or_nothing(TEXT),
        "tolerations": _or_nothing({"type": "array", "items": MAP}),
        "tolerateAllTaints": SWITCH,
        "affinity": _or_nothing(MAP),
        "nodeSelector": _or_nothing(_TEXTS),
        "hostNetwork": SWITCH,
        "dnsPolicy": _or_nothing(
            {"enum": ["", "ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"]},
        ),
        "resources": _or_nothing(MAP),
        "podSecurityContext": _or_nothing(MAP),
        "containerSecurityContext": _or_nothing(MAP),
        "initContainers": _or_nothing(
            {"anyOf": [{"type": "array", "items": MAP}, {"type": "object", "maxProperties": 0}]}
        ),
        "volumes": _or_nothing({"type": "array", "items": MAP}),
        "volumeMounts": _or_nothing({"type": "array", "items": MAP}),
        **{name: _or_nothing(MAP) for name in ("livenessProbe", "readinessProbe", "startupProbe")},
    }
