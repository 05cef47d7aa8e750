"""Undoes a drain when the agent's turns break with an exception, and reports the error. The functions read the Node's
JSON and return one merge patch.

Nothing here uses the code that decides in a normal turn: a cordoned node must come back into service even if the Node's
content breaks that code. Any part of the JSON may be missing or nonsense; no function raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from msgspec import field

from careen.core.facts import keys
from careen.core.facts.phases import Phase
from careen.core.facts.reasons import Code
from careen.core.node import autoscalers
from careen.core.plain_text import LONGEST_LINE, annotation, one_line
from scheduler_core.values import Value

BROKEN_TURNS = 5
"""So many turns in a row must break, over `BROKEN_SECONDS` at least, before the agent undoes the drain."""
BROKEN_SECONDS = 30.0
"""A shorter disturbance is no reason to undo a drain."""

_SAYS = "the agent's turns break"
_SUFFIX = re.compile(rf"(?:^|; ){re.escape(_SAYS)}: [^;]*\Z")
_LONGEST = 300  # characters of a fault or a hold: still readable in `kubectl describe`
_VERSION = 1
_BEFORE_THE_REBOOT = frozenset({Phase.CLAIMING.value, Phase.DRAINING.value})
_KEPT_TEXTS = ("claim", "lock", "boot_left", "taint_key")
_KEPT_INSTANTS = ("need_since", "tainted_at")
_INSTANT = re.compile(r"(?:19[7-9]\d|20\d\d|21\d\d)-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)  # as careen writes it
_KEPT_NUMBERS = ("reboots_for_need", "tries", "failures")
_MOST = 10**6  # the largest count that a record may hold
_PAUSE = re.compile(r'[{,]\s*"nodeID"\s*:\s*"manual"', re.ASCII)
_LABEL_KEY = re.compile(r"(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")


class Circumstances(Value, kw_only=True):
    """What the agent knows besides the Node's JSON. `because` is an error of its turns, a hold, or a pause of the
    lock."""

    because: str
    now: str  # RFC 3339
    uptime: float
    boot: str  # empty when it cannot be read
    labels: Mapping[str, str] = field(default_factory=dict)  # --pre-reboot-node-labels, as last known


def is_node(node: Any, name: str) -> bool:
    """Whether this is the Node of that name, and not another answer of the API server or a proxy."""
    metadata = _dict(_dict(node).get("metadata"))
    is_whole = bool(_text(metadata.get("resourceVersion")) and _text(metadata.get("uid")))
    return _dict(node).get("kind") == "Node" and metadata.get("name") == name and is_whole


def says(node: Any, fault: str) -> dict[str, Any] | None:
    """The patch that appends the fault to the Node's reason; None if it is there already, or the JSON is no Node."""
    before = _text(_annotations(node).get(keys.REASON))
    sentence = with_fault(before, fault)
    # The stored reason was cut and cleaned when it was written, so compare it with the cleaned form.
    return None if sentence == one_line(before) else _patch(node, {keys.REASON: sentence})


def says_no_more(node: Any) -> dict[str, Any] | None:
    """The patch that removes an earlier fault from the Node's reason; None if there is none."""
    before = _text(_annotations(node).get(keys.REASON))
    sentence = without_fault(before)
    return None if sentence == before else _patch(node, {keys.REASON: sentence or None})


def with_fault(sentence: str, fault: str) -> str:
    """The sentence with the fault as its last clause, in place of an older one, within the limit of an annotation."""
    told = f"{_SAYS}: {_as_one_clause(fault)}"
    rest = one_line(without_fault(sentence), LONGEST_LINE - len(told) - len("; "))
    return f"{rest}; {told}" if rest else told


def without_fault(sentence: str) -> str:
    """The sentence without the clause about a fault."""
    return _SUFFIX.sub("", sentence)


def is_under_way(node: Any) -> bool:
    """Whether record and phase annotation say Claiming or Draining: no reboot is announced yet. False for a newer
    release's record."""
    told = [phase for phase in (_text(_record(node).get("phase")), _text(_annotations(node).get(keys.PHASE))) if phase]
    return bool(told) and set(told) <= _BEFORE_THE_REBOOT and not _is_newer(_record(node))


def undone(node: Any, given: Circumstances) -> dict[str, Any] | None:
    """The patch that puts the node back into service and marks its claim for release; None if the agent must not touch
    the node: its record announces a reboot, so the host may go down at any moment, or is of a newer release."""
    if not is_under_way(node):
        return None
    record = _record(node)
    is_lifted = _is_cordoned(node) and _is_cordon_ours(node, record)
    what_happens = "the node is uncordoned, and the claim is released" if is_lifted else "the claim is released"
    annotations: dict[str, str | None] = {
        keys.PHASE: Phase.FAILED.value,
        keys.SINCE: given.now,
        keys.REFUSALS: None,
        keys.PROGRESS: _released(record, given),
        keys.REASON: f"{_as_one_clause(given.because)}: {what_happens}",
        **autoscalers.taken_back(_annotations(node)),
    }
    labels = {keys.REBOOT_LABEL: "failed", **_prior_labels(node, record, given.labels)}
    return _patch(node, annotations, labels, {"unschedulable": None} if is_lifted else None)


def is_paused(content: str | None) -> bool:
    """Whether a person paused the lock (an owner named `manual`, anywhere in it). False for a lock that is no JSON."""
    try:
        json.loads(content or "{}")
    except (ValueError, RecursionError):
        return False
    return _PAUSE.search(content or "") is not None


def hold_of(node: Any) -> str | None:
    """The hold on the Node, even an expired one; None if there is none."""
    held = _annotations(node).get(keys.HOLD)
    return held if isinstance(held, str) else None


# ---- the record ----


def _released(record: Mapping[str, Any], given: Circumstances) -> str | None:
    """The record's well-formed fields, marked for the release of the claim; None without a claim id: then the agent
    looks for the claim in the lock."""
    kept: dict[str, Any] = {key: record[key] for key in _KEPT_TEXTS if _text(record.get(key))}
    kept |= {key: record[key] for key in _KEPT_INSTANTS if _INSTANT.fullmatch(_text(record.get(key)))}
    kept |= {key: record[key] for key in _KEPT_NUMBERS if _is_count(record.get(key))}
    if not (kept.get("claim") and kept.get("boot_left")):
        return None
    kept |= {
        "version": _VERSION,
        "phase": Phase.FAILED.value,
        "is_giving_back": True,
        "failed": Code.TURN_BROKEN.value,
        "failures": kept.get("failures", 0) + 1,
        "failed_at": {"boot": given.boot or kept["boot_left"], "uptime": round(given.uptime, 3)},
    }
    return json.dumps(kept, separators=(",", ":"), sort_keys=True)


def _record(node: Any) -> Mapping[str, Any]:
    try:
        return _dict(json.loads(_text(_annotations(node).get(keys.PROGRESS)) or "{}"))
    except (ValueError, RecursionError):
        return {}


def _is_newer(record: Mapping[str, Any]) -> bool:
    version = record.get("version")
    return type(version) is int and version > _VERSION


def _prior_labels(node: Any, record: Mapping[str, Any], ours: Mapping[str, str]) -> dict[str, str | None]:
    """The labels from before the drain, without those that another client has changed since and values that the API
    server would reject."""
    now = _dict(_dict(_dict(node).get("metadata")).get("labels"))
    return {
        key: value
        for key, value in _dict(record.get("prior_labels")).items()
        if _LABEL_KEY.fullmatch(key)
        and key != keys.REBOOT_LABEL
        and (value is None or (isinstance(value, str) and _LABEL_VALUE.fullmatch(value)))
        and (key not in ours or now.get(key) == ours[key])
    }


# ---- the cordon ----


def _is_cordoned(node: Any) -> bool:
    return _dict(_dict(node).get("spec")).get("unschedulable") is True


def _is_cordon_ours(node: Any, record: Mapping[str, Any]) -> bool:
    """By the record; if it cannot be read, careen must be the only field manager of the cordon."""
    word = record.get("is_cordoned_by_us")
    if isinstance(word, bool):
        return word
    if record.get("version") == _VERSION and "is_cordoned_by_us" not in record:
        return False  # a record leaves out what is false
    rows = _dict(_dict(node).get("metadata")).get("managedFields")
    managers = {
        _text(_dict(row).get("manager"))
        for row in (rows if isinstance(rows, list) else [])
        if not _dict(row).get("subresource")
        and "f:unschedulable" in _dict(_dict(_dict(row).get("fieldsV1")).get("f:spec"))
    }
    return managers == {keys.FIELD_MANAGER}


# ---- JSON ----


def _patch(
    node: Any,
    annotations: Mapping[str, str | None],
    labels: Mapping[str, str | None] | None = None,
    spec: Mapping[str, Any] | None = None,
) -> dict[str, Any] | None:
    """A merge patch guarded by the resourceVersion that was read; None if the object is no Node."""
    metadata = _dict(_dict(node).get("metadata"))
    if not is_node(node, _text(metadata.get("name"))):
        return None
    changed: dict[str, Any] = {
        "resourceVersion": metadata["resourceVersion"],
        "annotations": {key: None if value is None else annotation(value) for key, value in annotations.items()},
    }
    if labels:
        changed["labels"] = dict(labels)
    return {"metadata": changed, "spec": dict(spec)} if spec else {"metadata": changed}


def _annotations(node: Any) -> Mapping[str, Any]:
    return _dict(_dict(_dict(node).get("metadata")).get("annotations"))


def _as_one_clause(text: str) -> str:
    """The text on one readable line without semicolons, which end a clause for `_SUFFIX`."""
    return one_line(" ".join(text[: 4 * _LONGEST].replace(";", ",").split()), _LONGEST)


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _MOST
