"""Log lines as text or as JSON, each with the node, its phase and the reason."""

from __future__ import annotations

import json
import logging
import sys
import textwrap
from datetime import UTC, datetime
from typing import TextIO

from careen.core.facts.times import rfc3339
from careen.core.plain_text import json_text, lines, one_line

LOGGER = logging.getLogger("careen")

_INDENT = "    "
_LONGEST_ENTRY = 16_000  # characters; container runtimes split lines that are longer than 16 KiB

# The standard attributes of a LogRecord; all others come from `extra=` and are fields of the line.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "node", "phase", "reason", "taskName"}


class LogContext(logging.Filter):
    """Adds the node's phase and reason, which the loop keeps up to date, to every line."""

    def __init__(self, node: str) -> None:
        super().__init__()
        self.node = node
        self.phase = ""
        self.reason = ""

    def filter(self, record: logging.LogRecord) -> bool:
        """Never drops a line."""
        record.node, record.phase, record.reason = self.node, self.phase, self.reason
        return True


class TextFormat(logging.Formatter):
    """`2026-11-21T08:12:28.123Z INFO  n1 Waiting(refused) message key=value`."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, and a traceback that is indented, so that its lines cannot be mistaken for log entries."""
        where = f"{_of(record, 'phase')}({_of(record, 'reason')})" if _of(record, "reason") else ""
        place = " ".join(part for part in (_of(record, "node"), where) if part)
        fields = "".join(f" {key}={_quoted(value)}" for key, value in _fields(record).items())
        line = one_line(f"{_time(record)} {record.levelname:<7} {place}: {_message(record)}{fields}", _LONGEST_ENTRY)
        return f"{line}\n{textwrap.indent(self._traceback(record), _INDENT)}" if record.exc_info else line

    def _traceback(self, record: logging.LogRecord) -> str:
        return _ends(lines(self.formatException(record.exc_info or (None, None, None))))


class JsonFormat(logging.Formatter):
    """Each line as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """The line as JSON."""
        line: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "message": _message(record),
        }
        line |= {key: value for key in ("node", "phase", "reason") if (value := _of(record, key))}
        line |= {
            key: value if isinstance(value, int | float | bool) else one_line(str(value))
            for key, value in _fields(record).items()
        }
        if record.exc_info:
            line["traceback"] = _ends(lines(self.formatException(record.exc_info)))
        return json_text(json.dumps(line, ensure_ascii=False))


def set_up(*, form: str, level: str, node: str, stream: TextIO | None = None) -> LogContext:
    """Makes every logger of the process write to `stream`. The caller keeps the `LogContext` up to date."""
    place = LogContext(node)
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormat() if form == "json" else TextFormat())
    handler.addFilter(place)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    LOGGER.setLevel(level.upper())
    return place


def _of(record: logging.LogRecord, name: str) -> str:
    return one_line(str(getattr(record, name, "")))


def _message(record: logging.LogRecord) -> str:
    return one_line(record.getMessage())


def _ends(text: str) -> str:
    """Leaves out the middle of a text that is too long."""
    half = _LONGEST_ENTRY // 2
    return text if len(text) <= _LONGEST_ENTRY else f"{text[:half]}\n…\n{text[-half:]}"


def _fields(record: logging.LogRecord) -> dict[str, object]:
    return {key: value for key, value in vars(record).items() if key not in _STANDARD}


def _time(record: logging.LogRecord) -> str:
    return rfc3339(datetime.fromtimestamp(record.created, UTC), "milliseconds")


def _quoted(value: object) -> str:
    text = one_line(str(value))
    return json.dumps(text, ensure_ascii=False) if not text or any(letter in text for letter in ' "=\n') else text
