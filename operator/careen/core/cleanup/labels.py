"""Finds the values that labels had before --post-reboot-node-labels changed them. The Node's report of its last reboot
(annotation `careen.dev/last-reboot`) keeps these values, so that a cleanup can restore them. The API server's managed
fields are not enough to find labels to restore: they also name careen for a label whose earlier value careen has
restored."""

from __future__ import annotations

import re

from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.policy import Policy
from careen.core.facts.progress import Progress
from careen.core.facts.untrusted import object_of
from scheduler_core.values import Value

_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")


class Changed(Value, kw_only=True):
    """A label that reboots changed: its value before the first of these reboots, and the value that careen set."""

    was: str | None
    to: str


def changed_by_reboots(node: NodeView) -> dict[str, Changed]:
    """Return the labels that reboots changed, according to the Node's report of its last reboot; empty if the report
    cannot be read."""
    told = object_of(node.annotations.get(keys.LAST_REBOOT)).get("labels")
    rows = told.items() if isinstance(told, dict) else ()
    return {key: change for key, row in rows if (change := _changed(row))}


def labels_to_report(node: NodeView, progress: Progress, policy: Policy) -> dict[str, dict[str, str | None]]:
    """Return the labels that reboots changed, for the report of the reboot that ends now. Each has its value from
    before the first reboot that changed it, and the value that careen set."""
    changes = changed_by_reboots(node)
    before = {**node.labels, **progress.prior_labels}
    for key, value in policy.post_reboot_labels.items():
        changes[key] = Changed(was=original(before.get(key), changes.get(key)), to=value)
    return {key: {"was": each.was, "to": each.to} for key, each in changes.items() if each.was != each.to}


def original(value: str | None, earlier: Changed | None) -> str | None:
    """Return the value of a label from before the reboots. `value` is the label's value from before the latest reboot.
    If an earlier reboot set that value, as `earlier` says, return the value from before that earlier reboot instead."""
    return earlier.was if earlier is not None and value == earlier.to else value


def _changed(row: object) -> Changed | None:
    match row:
        case {"was": was, "to": str(to)} if was is None or (isinstance(was, str) and _VALUE.fullmatch(was)):
            return Changed(was=was, to=to)
        case _:
            return None
