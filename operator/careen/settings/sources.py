"""Combines the sources of settings. The strongest first: flag, CAREEN_X, KURED_X, the ConfigMap, the default.

In kured the environment overrides flags. Here the flag wins, and the agent says so at its start if both differ.
Unknown, unreadable and contradictory settings are rejected, because a typing error could switch off a gate. All
problems are reported together, each with setting, source and remedy.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from careen.settings import config_map_limits
from careen.settings.checks.contradictions import contradictions, missing_node_name, remarks
from careen.settings.kinds import ValueKind, unquoted
from careen.settings.lists.item import ListElement
from careen.settings.tree import DEFAULTS, SETTINGS, Setting, Settings, flag, variable
from scheduler_core.values import Value


class Source(StrEnum):
    """The strongest first."""

    FLAG = "flag"
    CAREEN_ENVIRONMENT = "CAREEN environment"
    KURED_ENVIRONMENT = "KURED environment"
    CONFIG_MAP = "ConfigMap"
    DEFAULT = "default"


class Supplied(Value, kw_only=True):
    """A value as a person wrote it. `texts` has several elements only if the setting was repeated."""

    source: Source
    where: str
    texts: tuple[str, ...]


class Resolved(Value, kw_only=True):
    """The settings, the source of each, and remarks for the log at the start."""

    settings: Settings
    origins: Mapping[str, Supplied]
    notes: tuple[str, ...]


class BadSettings(Exception):
    """The settings must not be used. `problems` are sentences for a person; the process ends with exit code 2."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


def resolve(
    *,
    flags: Mapping[str, Sequence[str]],
    environment: Mapping[str, str],
    config_map: Mapping[str, Any] | None = None,
    config_map_name: str = "",
    is_whole: bool = True,
) -> Resolved:
    """The settings from all sources: `flags` by field name, `config_map` as parsed YAML.

    Without `is_whole`, contradictions are not checked: the ConfigMap, not read yet, may resolve them. Raises
    `BadSettings` with every problem.
    """
    problems: list[str] = []
    given: dict[str, list[Supplied]] = {name: [] for name in SETTINGS}
    for each in (
        _from_flags(flags),
        _from_environment(environment, problems),
        _from_config_map(config_map or {}, config_map_name, problems),
    ):
        for name, value in each.items():
            given[name].extend(value)
    values: dict[str, Any] = {}
    origins: dict[str, Supplied] = {}
    unheard: list[str] = []
    for name, setting in SETTINGS.items():
        parsed = [
            (each, value) for each in given[name] if (value := _parsed(name, setting, each, problems)) is not _BAD
        ]
        if parsed:
            origins[name], values[name] = parsed[0]
            unheard.extend(_unheard(name, parsed))
        else:
            origins[name] = Supplied(source=Source.DEFAULT, where="default", texts=())
            values[name] = DEFAULTS[name]
    settings = Settings(**values)
    problems.extend(_beyond_the_config_map(given, settings))
    if not problems:
        problems.extend(contradictions(settings) if is_whole else missing_node_name(settings))
    if problems:
        raise BadSettings(problems)
    return Resolved(
        settings=settings,
        origins=origins,
        notes=(*_differences(given), *unheard, *_in_the_open(origins), *_taken_otherwise(origins), *remarks(settings)),
    )


def _beyond_the_config_map(given: Mapping[str, Sequence[Supplied]], settings: Settings) -> list[str]:
    """What only the DaemonSet may set, but the ConfigMap does. A flag that overrides it does not help: it would take
    effect as soon as somebody removes the flag."""
    return [
        f"{each.where}: {why}"
        for name, values in given.items()
        for each in values
        if each.source is Source.CONFIG_MAP and (why := config_map_limits.refusal(name, each.texts, settings))
    ]


def is_written(name: str, flags: Mapping[str, Sequence[str]], environment: Mapping[str, str]) -> bool:
    """Given as a flag or a variable."""
    return name in flags or any(variable(name, prefix) in environment for prefix in ("CAREEN", "KURED"))


def _from_flags(flags: Mapping[str, Sequence[str]]) -> dict[str, list[Supplied]]:
    return {
        name: [Supplied(source=Source.FLAG, where=f"--{flag(name)}", texts=tuple(texts))]
        for name, texts in flags.items()
    }


# The variables that the kubelet sets in a pod for each Service of its namespace (pkg/kubelet/envvars). A final PORT is
# no proof: a Service careen-metrics gives CAREEN_METRICS_PORT, but KURED_METRIC_PORT=9090 is a misspelt setting.
_LINK_BY_NAME = re.compile(r"\w+_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)")
_LINKED_ADDRESS = re.compile(r"(tcp|udp|sctp)://\S+:\d+")


def is_service_link(name: str, value: str) -> bool:
    """Kubernetes set it for a Service, so it is not a setting."""
    if name.endswith("_PORT") and _LINKED_ADDRESS.fullmatch(value):
        return True
    return _LINK_BY_NAME.fullmatch(name) is not None


def _from_environment(environment: Mapping[str, str], problems: list[str]) -> dict[str, list[Supplied]]:
    found: dict[str, list[Supplied]] = {}
    for prefix, source in (("CAREEN", Source.CAREEN_ENVIRONMENT), ("KURED", Source.KURED_ENVIRONMENT)):
        known = {
            variable(name, prefix): name
            for name, setting in SETTINGS.items()
            if prefix == "CAREEN" or setting.is_kureds
        }
        for key in sorted(key for key in environment if key.startswith(f"{prefix}_")):
            if is_service_link(key, environment[key]):
                continue
            if key in known:
                found.setdefault(known[key], []).append(Supplied(source=source, where=key, texts=(environment[key],)))
            else:
                problems.append(
                    f"the environment variable {key} is not a setting{_meant(key, known)}; correct or remove it"
                )
    return found


def _from_config_map(values: Mapping[str, Any], config_map_name: str, problems: list[str]) -> dict[str, list[Supplied]]:
    found: dict[str, list[Supplied]] = {}
    known = {flag(name): name for name, setting in SETTINGS.items() if not setting.bootstrap}
    for key, value in values.items():
        where = f"`{key}` in ConfigMap {config_map_name}"
        if key not in known:
            problems.append(
                f"{where} must be known before the ConfigMap can be read: give it as a flag or in the environment"
                if key in map(flag, SETTINGS)
                else f"{where} is not a setting{_meant(str(key), known)}; correct or remove it"
            )
            continue
        is_mapping = SETTINGS[known[key]].kind.is_mapping
        texts = _mapping_texts(value) if is_mapping else _texts(value)
        if texts is None and is_mapping:
            problems.append(f"{where} is not a list of mappings")
            continue
        if texts is None:
            problems.append(
                f"{where} has an unsupported value: expected a text, a number, true, false or a list of these"
            )
            continue
        found[known[key]] = [Supplied(source=Source.CONFIG_MAP, where=where, texts=texts)]
    return found


def _texts(value: Any) -> tuple[str, ...] | None:
    """As texts; None for a mapping, and for a list that contains a mapping or a list."""
    match value:
        case bool():
            return (str(value).lower(),)
        case str() | int() | float():
            return (str(value),)
        case None:
            return ("",)
        case list():
            parts = [_texts(each) for each in value]
            return (
                None
                if any(part is None or len(part) != 1 for part in parts)
                else tuple(part[0] for part in parts if part)
            )
        case _:
            return None


def _mapping_texts(value: Any) -> tuple[str, ...] | None:
    """A list of mappings as texts; None for anything else."""
    if value is None or isinstance(value, str):
        return (value or "",)
    if not isinstance(value, list) or not all(isinstance(each, str | dict) for each in value):
        return None
    return tuple(each if isinstance(each, str) else json.dumps(each, default=str) for each in value)


_BAD = object()


def _parsed(name: str, setting: Setting, given: Supplied, problems: list[str]) -> Any:
    """An invalid value adds its reason to `problems` and gives `_BAD`."""
    kind = setting.kind
    if kind.is_mapping:
        return _mappings(name, kind, given, problems)
    texts = [unquoted(text.strip(), kind) for text in given.texts]
    try:
        if kind.many:
            return tuple(kind.parse(part) for text in texts for part in kind.split(text))
        return kind.parse(_only(texts).strip())
    except ValueError as error:
        shown = ", ".join("a secret" if kind.is_secret else repr(kind.redacted(text)) for text in given.texts)
        problems.append(
            f"{given.where}={shown}: {error}"
            if given.source is Source.FLAG
            else f"{given.where} is {shown}: {error} (setting {flag(name)})"
        )
        return _BAD


def _mappings(name: str, kind: ValueKind, given: Supplied, problems: list[str]) -> Any:
    """An invalid mapping adds line, field and reason to `problems` and gives `_BAD`."""
    values: list[Any] = []
    try:
        parts = [
            part for text in given.texts if text.strip() or isinstance(text, ListElement) for part in kind.split(text)
        ]
    except ValueError as error:
        problems.append(f"{given.where} is not YAML: {error}")
        return _BAD
    for number, part in enumerate(parts):
        try:
            values.append(kind.parse(part))
        except ValueError as error:
            field, lines = getattr(error, "field", ""), getattr(part, "lines", {})
            line = lines.get(field, lines.get(""))
            where = f"{given.where}, line {line}" if line and len(parts) == len(given.texts) else given.where
            problems.append(f"{where}: `{flag(name)}[{number}]{f'.{field}' if field else ''}`: {error}")
    return tuple(values) if len(values) == len(parts) else _BAD


def _only(texts: Sequence[str]) -> str:
    if len(texts) != 1:
        raise ValueError("expected one value, not a list")
    return texts[0]


def _differences(given: Mapping[str, Sequence[Supplied]]) -> list[str]:
    """Flags that override a variable with another value. In kured, the variable would win."""
    return [
        f"--{flag(name)} is given as a flag ({_written(name, each[0])}) and as {other.where} "
        f"({_written(name, other)}): the flag is used (kured would use the variable)"
        for name, each in given.items()
        for other in each[1:]
        if each[0].source is Source.FLAG
        and other.source in (Source.CAREEN_ENVIRONMENT, Source.KURED_ENVIRONMENT)
        and other.texts != each[0].texts
    ]


def _unheard(name: str, parsed: Sequence[tuple[Supplied, Any]]) -> list[str]:
    """Values in the ConfigMap that a flag or a variable overrides: the component manifests/signal/ sets the sentinel by
    a flag, so one in the ConfigMap has no effect."""
    (first, value), *others = parsed
    return [
        f"{other.where} ({_written(name, other)}) has no effect: {first.where} ({_written(name, first)}) is used; "
        "remove one of them"
        for other, theirs in others
        if other.source is Source.CONFIG_MAP and theirs != value
    ]


def _in_the_open(origins: Mapping[str, Supplied]) -> list[str]:
    """Secrets on the command line: everybody on the host can see it in the list of processes."""
    return [
        f"{given.where} contains a secret and is on the command line, where everyone on the host can read "
        f"the secret: give it as {variable(name, 'CAREEN')}, from a Secret"
        for name, given in origins.items()
        if SETTINGS[name].kind.is_secret and given.source is Source.FLAG and any(given.texts)
    ]


def _taken_otherwise(origins: Mapping[str, Supplied]) -> list[str]:
    return [
        f"{given.where}: {remark}"
        for name, given in origins.items()
        for text in given.texts
        if (remark := SETTINGS[name].kind.remark(text))
    ]


def _written(name: str, given: Supplied) -> str:
    """As a person wrote it, without its secrets."""
    return ", ".join(SETTINGS[name].kind.redacted(text) for text in given.texts)


def _meant(key: str, known: Mapping[str, str]) -> str:
    import difflib  # only where a name is wrong

    # Compare without CAREEN_ or KURED_: the common prefix would make all names similar.
    prefix = next((each for each in ("CAREEN_", "KURED_") if key.startswith(each)), "")
    bare = key.removeprefix(prefix)
    close = [
        prefix + each for each in difflib.get_close_matches(bare, [name.removeprefix(prefix) for name in known], n=1)
    ]
    return f" (did you mean {close[0]}?)" if close else ""
