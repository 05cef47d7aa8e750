"""One entry of `--windows`: days and times, or a cron expression with a duration."""

from __future__ import annotations

import re
from datetime import UTC, date, time, tzinfo

from careen.core.facts.windows import Cron, Dates, NamedWindow, Window
from careen.core.windows import cron
from careen.settings import kinds
from careen.settings.lists.fields import Fields, ListFieldError, fields_of
from scheduler_core.values import Value

FIELDS = ("name", "days", "start", "end", "cron", "duration", "time-zone", "nodes", "exclude")
_BY_DAYS = ("days", "start", "end")
_SHORTEST_SECONDS, _LONGEST_SECONDS = 60.0, 7 * 86400.0
_YEARS = range(1970, 3000)
_MOST_DATES = 500
_EVERY_DAY = tuple(range(7))


class ConfiguredWindow(Value, kw_only=True):
    """As a person wrote it. Without `has_zone`, times are in the zone of --time-zone."""

    window: NamedWindow
    has_zone: bool
    text: str


def parse(text: str) -> ConfiguredWindow:
    """Raises `ListFieldError`."""
    fields = fields_of(text, FIELDS)
    utc: tzinfo = UTC
    zone = fields.one("time-zone", kinds.time_zone, utc)
    window = NamedWindow(
        name=fields.one("name", kinds.short_name),
        opens=Cron(expression=fields.one("cron", _cron), seconds=fields.one("duration", _duration), zone=zone)
        if _is_cron(fields)
        else _by_days(fields, zone),
        nodes=fields.one("nodes", kinds.set_selector) if "nodes" in fields else None,
        excluded=_excluded(fields),
    )
    return ConfiguredWindow(window=window, has_zone="time-zone" in fields, text=fields.text)


def _is_cron(fields: Fields) -> bool:
    by_days = next((name for name in _BY_DAYS if name in fields), "")
    if "cron" in fields and by_days:
        raise ListFieldError(
            by_days, f"a window with `cron` cannot have the field `{by_days}`: give either `cron`, or days and times"
        )
    if "duration" in fields and "cron" not in fields:
        raise ListFieldError(
            "duration", "`duration` needs the field `cron`; a window of days has `start` and `end` instead"
        )
    if "cron" not in fields and not by_days:
        raise ListFieldError(
            "", "the window does not say when it opens: give `cron` and `duration`, or `days`, `start` and `end`"
        )
    return "cron" in fields


def _by_days(fields: Fields, zone: tzinfo) -> Window:
    days = tuple(day for part in fields.several("days", _days) for day in part) or _EVERY_DAY
    start = fields.one("start", kinds.time_of_day, time(0, 0))
    end = fields.one("end", kinds.time_of_day, time(23, 59, 59))
    if start == end:
        raise ListFieldError("end", "the end is the same as the start: the window would be open for one second")
    return Window(days=frozenset(days), start=start, end=end, zone=zone)


def _excluded(fields: Fields) -> tuple[Dates, ...]:
    dates = fields.several("exclude", _dates)
    if len(dates) > _MOST_DATES:
        raise ListFieldError("exclude", f"the list has more than {_MOST_DATES} entries")
    return tuple(sorted(dates, key=lambda each: (each.first, each.last)))


def _days(text: str) -> tuple[int, ...]:
    return tuple(kinds.weekday(part) for part in kinds.comma_separated(text))


def _cron(text: str) -> str:
    if why := cron.refusal(text):
        raise ValueError(f"expected a cron expression such as 0 2 * * SUN: {why}")
    return " ".join(text.split())


def _duration(text: str) -> float:
    seconds = kinds.duration(text)
    if not _SHORTEST_SECONDS <= seconds <= _LONGEST_SECONDS:
        raise ValueError("expected a duration from 1m to 168h")
    return seconds


def _dates(text: str) -> Dates:
    first, dots, last = text.partition("..")
    found = Dates(first=_date(first), last=_date(last if dots else first))
    if found.last < found.first:
        raise ValueError("the last date is before the first")
    return found


def _date(text: str) -> date:
    # YAML readers with a date type, such as Helm's, add a time to dates.
    bare = text.strip().removesuffix("T00:00:00Z")
    try:
        found = date.fromisoformat(bare) if re.fullmatch(r"\d{4}-\d{2}-\d{2}", bare, re.ASCII) else None
    except ValueError:
        found = None
    if found is None or found.year not in _YEARS:
        raise ValueError(
            "expected a date such as 2026-12-24, or a first and a last date such as 2026-12-24..2027-01-02"
        )
    return found
