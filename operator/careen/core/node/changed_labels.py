"""Finds the values that labels had before --post-reboot-node-labels changed them. The Node's report of its last reboot
(annotation `careen.dev/last-reboot`) keeps these values, so that a cleanup can restore them. The API server's managed
fields are not enough: they name careen as the owner of a label also after careen has restored the label's earlier
value."""

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
    """A label that careen changed at the end of reboots (--post-reboot-node-labels): the value before the first of
    these reboots (`was`, None if the label was missing), and the value that careen set (`to`)."""

    was: str | None
    to: str


def changed_by_reboots(node: NodeView) -> dict[str, Changed]:
    """Return the labels that careen changed at the end of reboots, by key, according to the Node's report of its last
    reboot; empty if the report cannot be read."""
    told = object_of(node.annotations.get(keys.LAST_REBOOT)).get("labels")
    rows = told.items() if isinstance(told, dict) else ()
    return {key: change for key, row in rows if (change := _changed(row))}


def labels_to_report(node: NodeView, progress: Progress, policy: Policy) -> dict[str, dict[str, str | None]]:
    """Return the changed labels for the report of the reboot that ends now, such as `{"tier": {"was": None, "to":
    "new"}}`. `to` is the value that careen set. `was` is the label's value before this reboot, or None if the label was
    missing. But if careen set that value at the end of an earlier reboot, `was` is copied from the report of the
    earlier reboot."""
    changes = changed_by_reboots(node)
    before = {**node.labels, **progress.prior_labels}
    for key, value in policy.post_reboot_labels.items():
        changes[key] = Changed(was=original(before.get(key), changes.get(key)), to=value)
    return {key: {"was": each.was, "to": each.to} for key, each in changes.items() if each.was != each.to}


def original(value: str | None, earlier: Changed | None) -> str | None:
    """Return the value that the label had before careen first changed it. `value` is the label's value before the
    latest reboot. If careen itself set that value at an earlier reboot (`earlier.to`), return `earlier.was`."""
    return earlier.was if earlier is not None and value == earlier.to else value


def _changed(row: object) -> Changed | None:
    match row:
        case {"was": was, "to": str(to)} if was is None or (isinstance(was, str) and _VALUE.fullmatch(was)):
            return Changed(was=was, to=to)
        case _:
            return None
