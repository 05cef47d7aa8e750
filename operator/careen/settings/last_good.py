"""The ConfigMap's settings at the time of the claim, for an agent that restarts and cannot use the ConfigMap.

They are in an annotation of the Node for as long as the claim exists. A file beside the file lock on the host would not
survive the reboot, because that folder is in memory. The record has no room, because an older release rejects an
unknown field in it. Secrets are left out, because everybody who can read Nodes could read them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from careen.settings import config_map_limits
from careen.settings.sources import BadSettings, Resolved, Source, resolve
from careen.settings.tree import SETTINGS, flag
from scheduler_core.values import Value

VERSION = 1
_LONGEST = 32 * 1024  # all annotations of a Node share 256 KiB
_NAMES = {flag(name): name for name, setting in SETTINGS.items() if not setting.bootstrap}


class LastGood(Value, kw_only=True):
    """The settings that replace an unusable ConfigMap: from the annotation `text`, because of `why`.

    `is_whole`: `resolved` has every setting of the ConfigMap on which a decision depends. Otherwise it may lack some,
    for example because the annotation is unreadable.
    """

    resolved: Resolved
    is_whole: bool
    text: str
    why: str


def to_annotation(resolved: Resolved) -> str:
    """The ConfigMap's settings as short JSON; "" if they are too long for an annotation."""
    given = {flag(name): each.texts for name, each in resolved.origins.items() if each.source is Source.CONFIG_MAP}
    secret = sorted(name for name, texts in given.items() if _is_secret(name, texts))
    record: dict[str, Any] = {
        "version": VERSION,
        "settings": {name: list(texts) for name, texts in given.items() if name not in secret},
    }
    if secret:
        record["leftOut"] = secret
    text = json.dumps(record, separators=(",", ":"), sort_keys=True)
    return text if len(text) <= _LONGEST else ""


def says_nothing(text: str) -> bool:
    """No setting, or unreadable, for example because another release wrote it."""
    found = _read(text)
    return found is None or not (found.settings or found.left_out)


def restore(
    text: str,
    why: str,
    *,
    flags: Mapping[str, Sequence[str]],
    environment: Mapping[str, str],
    name: str,
    lock_annotation: str = "",
) -> LastGood:
    """Restores the settings from flags, environment and the Node's annotation `text`.

    `lock_annotation` is the lock's key as recorded with the claim. Raises `BadSettings` if flags and environment alone
    are unusable: then there are no usable settings.
    """
    found = _read(text)
    values: dict[str, Any] = {}
    if found is not None:
        # A writer of the Node's annotations must not get more power than an editor of the ConfigMap.
        basics = resolve(flags=flags, environment=environment, is_whole=False).settings
        values = {
            key: texts
            for key, texts in found.settings.items()
            if key in _NAMES and not config_map_limits.refusal(_NAMES[key], texts, basics)
        }
    is_whole = found is not None and len(values) == len(found.settings) and not any(map(_matters, found.left_out))
    if lock_annotation:
        values.setdefault("lock-annotation", [lock_annotation])
    for given, is_all in ((values, True), (values, False), ({}, False)):
        try:
            resolved = resolve(
                flags=flags,
                environment=environment,
                config_map=given,
                config_map_name=f"{name} (stored on the Node)",
                is_whole=is_all,
            )
        except BadSettings:
            if not given:
                raise
            continue
        return LastGood(resolved=resolved, is_whole=is_whole and is_all, text=text, why=why)
    raise AssertionError("unreachable: resolve() without a ConfigMap either returns or raises BadSettings")


class _Kept(Value):
    settings: dict[str, list[str]]
    left_out: tuple[str, ...]


def _read(text: str) -> _Kept | None:
    """None if this release cannot understand it."""
    try:
        record = json.loads(text)
        if record["version"] != VERSION:
            return None
        settings = {_text(key): [_text(each) for each in _list(texts)] for key, texts in record["settings"].items()}
        return _Kept(settings, tuple(_text(each) for each in _list(record.get("leftOut", []))))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, not a value of the type {type(value).__name__}")
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"expected a list, not a value of the type {type(value).__name__}")
    return value


def _is_secret(name: str, texts: Sequence[str]) -> bool:
    kind = SETTINGS[_NAMES[name]].kind
    return kind.is_secret or any(kind.redacted(text) != text for text in texts)


def _matters(name: str) -> bool:
    """No decision depends on settings for messages to people."""
    return name not in _NAMES or not SETTINGS[_NAMES[name]].kind.is_secret
