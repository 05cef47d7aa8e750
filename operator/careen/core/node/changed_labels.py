"""The values that labels had before careen changed them: for the drain (--pre-reboot-node-labels), by the record on the
Node, and at the end of reboots (--post-reboot-node-labels), by the report of the last reboot.

Managed fields are not enough: they name careen as the owner of a label also after careen has restored its earlier
value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.policy import Policy
from careen.core.facts.progress import Progress
from careen.core.facts.untrusted import object_of
from scheduler_core.values import Value

_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")


class Changed(Value, kw_only=True):
    """A label that careen changed at the end of reboots: `was` is its value before the first of them, None if it was
    missing."""

    was: str | None
    to: str


def before_the_drain(node: NodeView, progress: Progress, ours: Mapping[str, str]) -> dict[str, str | None]:
    """The values from before the drain of the labels that another client has not changed since. `ours` are the values
    that careen sets."""
    return {
        key: prior
        for key, prior in progress.prior_labels.items()
        if key not in ours or node.labels.get(key) == ours[key]
    }


def changed_by_reboots(node: NodeView) -> dict[str, Changed]:
    """The labels that careen changed at the end of reboots, by key; empty if the report cannot be read."""
    told = object_of(node.annotations.get(keys.LAST_REBOOT)).get("labels")
    rows = told.items() if isinstance(told, dict) else ()
    return {key: change for key, row in rows if (change := _changed(row))}


def labels_to_report(node: NodeView, progress: Progress, policy: Policy) -> dict[str, dict[str, str | None]]:
    """The changed labels for the report of the reboot that ends now, such as `{"tier": {"was": None, "to": "new"}}`."""
    changes = changed_by_reboots(node)
    before = {**node.labels, **progress.prior_labels}
    for key, value in policy.post_reboot_labels.items():
        changes[key] = Changed(was=original(before.get(key), changes.get(key)), to=value)
    return {key: {"was": each.was, "to": each.to} for key, each in changes.items() if each.was != each.to}


def original(value: str | None, earlier: Changed | None) -> str | None:
    """The value before careen first changed the label, given its value before the latest reboot: an earlier reboot may
    have set that one."""
    return earlier.was if earlier is not None and value == earlier.to else value


def _changed(row: object) -> Changed | None:
    match row:
        case {"was": was, "to": str(to)} if was is None or (isinstance(was, str) and _VALUE.fullmatch(was)):
            return Changed(was=was, to=to)
        case _:
            return None
