"""The lines that kube-scheduler logs, as klog's text format writes them."""

from __future__ import annotations

import json
from datetime import datetime

from careen.core.plain_text import one_line
from scheduler_core.running.commands import Note


def log_line(note: Note, at: datetime) -> str:
    """Such as `I1127 10:00:00.000000 "Successfully bound pod to node" pod="shop/web-1" node="n1" evaluatedNodes=3
    feasibleNodes=2`, in one line."""
    fields = {
        "pod": note.pod or None,
        "node": note.node or None,
        "evaluatedNodes": note.evaluated,
        "feasibleNodes": note.feasible,
        "err": note.why or None,
    }
    said = [f"{name}={_value(value)}" for name, value in fields.items() if value is not None]
    letter = "I" if note.verbosity else "E"  # what is logged at every level is an error
    return " ".join((f"{letter}{at:%m%d %H:%M:%S.%f} {_value(note.text)}", *said))


def _value(value: str | int) -> str:
    return str(value) if isinstance(value, int) else json.dumps(one_line(value), ensure_ascii=False)
