"""The kinds of settings. Each parses text in the same way for flags, environment and ConfigMap. A parser raises
ValueError with what it expected; `sources.py` adds the setting and the source."""

from __future__ import annotations

import csv
import ipaddress
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, time, tzinfo
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from careen.core.actions import Occasion
from careen.core.facts import keys
from careen.core.facts.policy import Budget, BudgetKind
from careen.core.facts.selectors import Selector
from careen.core.people import templates
from careen.host.probes import PROBES
from careen.services import notification_urls
from careen.services.wire.asking import without_login
from careen.settings.go_regexp import GoRegexp, checked
from scheduler_core.model.labels import is_label_key, is_label_value
from scheduler_core.values import Value


class ValueKind(Value, kw_only=True):
    """How people write the values of a setting. With `many`, the flag may be repeated, or the ConfigMap has a list.

    `split` cuts one text into several values. As in kured, a stringSlice is split at commas and a stringArray is not,
    because it may contain label selectors with commas.
    """

    metavar: str
    parse: Callable[[str], Any]
    many: bool = False
    split: Callable[[str], list[str]] = lambda text: [text]
    is_switch: bool = False
    is_mapping: bool = False
    """The ConfigMap contains a list of mappings."""
    choices: tuple[str, ...] = ()
    """The allowed words, if they are fixed."""
    bounds: tuple[int, int] | None = None
    """The least and the greatest allowed number."""
    is_secret: bool = False  # the value belongs into a Secret, not on a command line
    redacted: Callable[[str], str] = lambda text: text
    """The text without its secrets, for messages."""
    show: Callable[[Any], str] = str
    may_begin_with_a_quote: bool = False
    """Whether quotes around the whole text may be intended. Elsewhere they come from a YAML mistake, as in
    `--notify-url=""`."""
    remark: Callable[[str], str] = lambda _: ""
    """A remark if careen reads the text differently from how it is written, otherwise ""."""

    def shown(self, value: Any) -> str:
        """As a person would write it; `split` and `parse` can read it again."""
        if self.many:
            return ("\n" if self.split is one_per_line else ",").join(self.show(each) for each in value)
        return "" if value is None else self.show(value)


def unquoted(text: str, kind: ValueKind) -> str:
    """Removes one pair of quotes around the text. kured's own manifest has `- --notify-url=""` in its comments, and
    such a line passes the two quotes to the agent."""
    inside = text[1:-1]
    is_pair = len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'" and text[0] not in inside
    return inside if is_pair and not (inside and kind.may_begin_with_a_quote) else text


_DURATION_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
# Almost the range of Go's durations. A longer one would end after the calendar's last year.
_LONGEST_SECONDS = 290 * 365.25 * 86400


def duration(text: str) -> float:
    """Go's notation, such as `1h30m`, `90s`, `1.5h`, `+5m` or `0`, in seconds."""
    text = text.removeprefix("+")
    is_negative, text = text.startswith("-"), text.removeprefix("-")
    if text == "0":
        return 0.0
    if not re.fullmatch(f"(?:{_DURATION_PART.pattern})+", text, re.ASCII):
        raise ValueError("expected a duration such as 90s, 5m or 1h30m (only the number 0 may have no unit)")
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in _DURATION_PART.findall(text))
    if is_negative and seconds:
        raise ValueError("expected a duration that is not negative")
    if seconds > _LONGEST_SECONDS:
        raise ValueError("expected a duration of at most 290 years")
    return seconds


def deadline(text: str) -> float:
    """Longer than 0: people write 0 for "no limit", but such a deadline leaves no time at all."""
    seconds = duration(text)
    if seconds <= 0:
        raise ValueError("expected a duration longer than 0; there is no way to switch this limit off")
    return seconds


def format_duration(seconds: float) -> str:
    """Seconds in Go's notation, as `duration` reads it: 5400 becomes `1h30m`."""
    if seconds == 0:
        return "0"
    if seconds != int(seconds):
        return f"{seconds:g}s"
    minutes, second = divmod(int(seconds), 60)
    hour, minute = divmod(minutes, 60)
    return "".join(f"{number}{unit}" for number, unit in ((hour, "h"), (minute, "m"), (second, "s")) if number)


_TRUE = {"1", "t", "true"}
_FALSE = {"0", "f", "false"}


def boolean(text: str) -> bool:
    """As Go's strconv.ParseBool."""
    lowered = text.lower()
    if lowered in _TRUE | _FALSE:
        return lowered in _TRUE
    raise ValueError("expected true or false")


def integer(lowest: int, highest: int = 2**31 - 1) -> Callable[[str], int]:
    """A parser for whole numbers within these bounds."""

    def parse(text: str) -> int:
        try:
            # As pflag reads it, except that 010 is 10 and not 8.
            number = (
                int(text) if re.fullmatch(r"[+-]?\d+", text, re.ASCII) else int(text, 0) if text.isascii() else None
            )
        except ValueError:
            number = None
        if number is None or not lowest <= number <= highest:
            raise ValueError(f"expected a whole number from {lowest} to {highest}")
        return number

    return parse


def at_once(text: str) -> int:
    """A number of nodes, at least 1."""
    if text.lstrip("+-").strip("0") == "" and text:
        raise ValueError(
            "expected a whole number of at least 1: with 0, no node would ever reboot (kured reads 0 as 1). "
            "Give 1; `careen lock pause` stops a roll-out"
        )
    return integer(1)(text)


def one_of(*choices: str) -> Callable[[str], str]:
    """A parser that accepts only these words."""

    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"expected one of {', '.join(choices)}")
        return text

    return parse


def regexp(text: str) -> GoRegexp | None:
    """None for an empty text."""
    return checked(text) if text else None


_QUANTITY = {"": 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "k": 10**3, "M": 10**6, "G": 10**9}
_LEAST_MEMORY = 64 * 2**20


def memory(text: str) -> int:
    """A Kubernetes quantity such as `512Mi`, in bytes."""
    match = re.fullmatch(r"(\d+)(Ki|Mi|Gi|k|M|G|)", text)
    if not match:
        raise ValueError("expected an amount of memory such as 512Mi")
    count = int(match[1]) * _QUANTITY[match[2]]
    if count < _LEAST_MEMORY:
        raise ValueError(
            "expected at least 64Mi of memory: no simulation starts with less (a number without a unit means bytes)"
        )
    return count


def format_memory(count: int) -> str:
    """Bytes as `memory` reads them: 536870912 becomes `512Mi`."""
    for unit in ("Gi", "Mi", "Ki"):
        if count and count % _QUANTITY[unit] == 0:
            return f"{count // _QUANTITY[unit]}{unit}"
    return str(count)


_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def weekday(text: str) -> int:
    """0 for Monday to 6 for Sunday. Accepts what kured accepts: `mo`, `mon`, `monday`, or kured's own number, 0 for
    Sunday to 6 for Saturday."""
    lowered = text.lower()
    if lowered.isdigit() and int(lowered) <= 6:
        return (int(lowered) - 1) % 7
    for number, name in enumerate(_DAYS):
        if lowered in (name[:2], name[:3], name):
            return number
    raise ValueError("expected a weekday such as mo, tue or saturday")


def time_of_day(text: str) -> time:
    """What kured accepts: `22:30`, `22:30:15`, `22`, `10:30pm`, `10pm`."""
    for form in ("%H:%M", "%H:%M:%S", "%I:%M%p", "%H", "%I%p"):
        try:
            return datetime.strptime(text, form).time()  # noqa: DTZ007 - the zone is a setting of its own
        except ValueError:
            continue
    raise ValueError("expected a time of day such as 22:30, 22:30:15 or 10pm")


def time_zone(text: str) -> tzinfo:
    """A zone of the time zone database. `Local` is this process's, as in Go."""
    if text in ("", "UTC"):
        return UTC
    import zoneinfo  # few agents name a zone

    try:
        if text == "Local":
            local = Path("/etc/localtime")
            if not local.exists():
                return UTC
            with local.open("rb") as file:
                return zoneinfo.ZoneInfo.from_file(file, key="Local")
        return zoneinfo.ZoneInfo(text)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError("expected a time zone such as UTC or Europe/Berlin") from error


# What the API server accepts as names (apimachinery, pkg/util/validation).
_DNS_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_DNS_SUBDOMAIN = re.compile(rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*")
_KEY_OF_A_CONFIG_MAP = re.compile(r"[-._a-zA-Z0-9]{1,253}")


def object_name(text: str) -> str:
    """A Node, a DaemonSet or a ConfigMap; empty means none."""
    if text and not (len(text) <= 253 and _DNS_SUBDOMAIN.fullmatch(text)):
        raise ValueError("expected the name of a Kubernetes object: small letters, digits, - and .")
    return text


def namespace(text: str) -> str:
    """The name must not be empty."""
    if not (len(text) <= 63 and re.fullmatch(_DNS_LABEL, text)):
        raise ValueError("expected the name of a namespace: small letters, digits and -")
    return text


def listen_host(text: str) -> str:
    """IPv4, IPv6 (also in brackets, as kured requires), or a host name; empty for all addresses."""
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if text and not (_is_ipv6(bare) or (bare == text and (_is_ipv4(bare) or _is_host_name(bare)))):
        raise ValueError("expected an IP address such as 10.0.0.1 or ::1, or a host name, without a port")
    return text


def _is_ipv6(text: str) -> bool:
    return _is_address(ipaddress.IPv6Address, text)


def _is_ipv4(text: str) -> bool:
    return _is_address(ipaddress.IPv4Address, text)


def _is_address(kind: Callable[[str], object], text: str) -> bool:
    try:
        kind(text)
    except ValueError:
        return False
    return True


def _is_host_name(text: str) -> bool:
    """In small or capital letters. A name that ends in a number is probably a malformed address."""
    return (
        len(text) <= 253
        and bool(_DNS_SUBDOMAIN.fullmatch(text.lower()))
        and not re.fullmatch(r"\d+", text.rsplit(".", 1)[-1])
    )


def short_name(text: str) -> str:
    """The name of one entry of a list, such as a window: 1 to 63 letters, digits, `-`, `_` and `.`; the first and the
    last a letter or a digit."""
    if not re.fullmatch(r"[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?", text):
        raise ValueError("expected a name of at most 63 letters, digits, -, _ and .")
    return text


def needed_name(text: str) -> str:
    """The name of an object; it must not be empty."""
    if not text:
        raise ValueError("expected a name")
    return object_name(text)


def label(text: str) -> tuple[str, str]:
    """`key=value` by the API server's rules for labels."""
    key, equals, value = text.partition("=")
    if not equals or not is_label_key(key) or not is_label_value(value):
        raise ValueError("expected a label as key=value")
    if key == keys.REBOOT_LABEL:
        raise ValueError(f"expected a label other than {keys.REBOOT_LABEL}: careen itself writes that label")
    return key, value


def kureds_label(text: str) -> tuple[str, str]:
    """As in kured, a second `=` and what follows are left out, because no label can contain them."""
    return label("=".join(text.split("=")[:2]))


def second_equals(text: str) -> str:
    """A remark on labels that `kureds_label` has cut, if any."""
    cut = [part for part in comma_separated(text) if part.count("=") > 1]
    return (
        f"careen ignores the second = of {', '.join(cut)} and the text after it, as kured does: a label has only one ="
        if cut
        else ""
    )


def label_key(text: str) -> str:
    """The key of a label, taint or annotation; empty means none."""
    if text and not is_label_key(text):
        raise ValueError("expected a key such as example.com/name, or an empty text")
    return text


def annotation_key(text: str) -> str:
    """The key must not be empty."""
    if not text:
        raise ValueError("expected a key such as example.com/name")
    return label_key(text)


def scheduler_config(text: str) -> str:
    """A file, or `configmap:KEY` for a key of the ConfigMap."""
    kind, colon, key = text.partition(":")
    if kind == "configmap" and colon and not _KEY_OF_A_CONFIG_MAP.fullmatch(key):
        raise ValueError("expected configmap:KEY with a key of the ConfigMap, such as configmap:scheduler.yaml")
    return text


def command_line(text: str) -> str:
    """The quotes must be balanced, because the agent splits the command as a shell would."""
    try:
        shlex.split(text)
    except ValueError as error:
        raise ValueError(f"expected a command with balanced quotes: {error}") from None
    return text


def selector(text: str) -> Selector | None:
    """None for an empty text."""
    return Selector.parse(text) if text.strip() else None


def set_selector(text: str) -> Selector:
    """Refuses an empty selector, which would select everything."""
    parsed = Selector.parse(text)
    if not parsed.requirements:
        raise ValueError("expected a label selector such as app=db; an empty selector would match every pod")
    return parsed


_ANY_NUMBER = 2**31 - 1


def budget(text: str) -> Budget:
    """`zone=1`, `control-plane=1`, `topology:example.com/rack=25%` or `selector:app=db=1`: how many nodes of a group,
    or how many percent of them, may be down at once."""
    group, _, number = text.rpartition("=")
    bare = number.removesuffix("%")
    is_percent, is_number = bare != number, bare.isascii() and bare.isdigit()
    limit = integer(1, 100 if is_percent else _ANY_NUMBER)(bare) if is_number else 0
    found = _group(group) if limit else None
    if found is None:
        raise ValueError(
            "expected zone=N, control-plane=N, topology:LABEL=N or selector:SELECTOR=N, where N is at least 1, or a "
            "share such as 25%"
        )
    return replace(found, limit=_ANY_NUMBER, percent=limit) if is_percent else replace(found, limit=limit)


def _group(text: str) -> Budget | None:
    kind, _, rest = text.partition(":")
    if text in ("zone", "control-plane"):
        return Budget(kind=BudgetKind(text), limit=1)
    if kind == "topology" and is_label_key(rest):
        return Budget(kind=BudgetKind.TOPOLOGY, limit=1, key=rest)
    if kind == "selector":
        return Budget(kind=BudgetKind.SELECTOR, limit=1, selector=set_selector(rest))
    return None


def format_budget(value: Budget) -> str:
    """As `budget` reads it."""
    group = f"selector:{value.selector.text}" if value.selector else value.kind.value
    group = f"topology:{value.key}" if value.key else group
    return f"{group}={value.limit}" if value.percent is None else f"{group}={value.percent}%"


def url(text: str) -> str:
    """The URL of a web server, or an empty text."""
    try:
        is_one = not text or (
            re.fullmatch(r"https?://[^/?#\s]+\S*", text) is not None
            and bool(urlsplit(text).hostname)
            and urlsplit(text).port != 0
        )
    except ValueError:
        is_one = False
    if not is_one:
        raise ValueError("expected an address such as http://prometheus.monitoring:9090, or an empty text")
    return text


def template(text: str) -> str:
    """A message with at most one `%s`, the node's name."""
    return _template(text, templates.FIELDS)


def template_of_figures(text: str) -> str:
    """The message at the end of a roll-out, which may use more fields."""
    return _template(text, templates.FIELDS + templates.FIGURES)


_LONGEST_TEMPLATE = 4096  # a field's value may have as many characters


def _template(text: str, known: tuple[str, ...]) -> str:
    if len(text) > _LONGEST_TEMPLATE:
        raise ValueError(f"expected a text of at most {_LONGEST_TEMPLATE} characters")
    if text.replace("%%", "").replace("%s", "", 1).count("%"):
        raise ValueError("expected a text with one %s for the node's name (%% for a percent sign)")
    if unknown := [name for name in templates.fields_of(text) if name not in known]:
        raise ValueError(
            f"the field {{{unknown[0][:40]}}} is not known; known fields: {', '.join(f'{{{name}}}' for name in known)} "
            "(double the braces of text that is not a field)"
        )
    return text


def comma_separated(text: str) -> list[str]:
    """kured's stringSlice, one line of CSV."""
    return [part for each in next(csv.reader([text]), []) if (part := each.strip())]


def one_per_line(text: str) -> list[str]:
    """kured's stringArray: at line breaks only, because selectors contain commas."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def paths(text: str) -> list[str]:
    """At line breaks, and at commas before an absolute path; other commas belong to a path."""
    return [part for each in re.split(r"[,\n](?=\s*/)", text) if (part := each.strip().rstrip(",").strip())]


def absolute_path(text: str) -> str:
    """A relative path would depend on the agent's working directory."""
    if not text.startswith("/"):
        raise ValueError(f"expected an absolute path, such as /{text.removeprefix('./')}")
    return text


def probe(text: str) -> str:
    """The name of a probe in `host/probes`."""
    return one_of(*PROBES)(text)


TEXT = ValueKind(metavar="TEXT", parse=str, may_begin_with_a_quote=True)
MESSAGE_URLS = ValueKind(
    metavar="URL",
    parse=notification_urls.parse,
    many=True,
    split=notification_urls.several,
    is_secret=True,
    redacted=lambda _: "a secret",
    show=lambda value: f"{value.service} (set)",
)
SLACK_HOOK = ValueKind(
    metavar="URL",
    parse=notification_urls.slack_hook,
    is_secret=True,
    redacted=lambda _: "a secret",
    show=lambda value: "(set)" if value else "",
)
LISTEN_HOST = ValueKind(metavar="TEXT", parse=listen_host)
PATH = ValueKind(metavar="PATH", parse=str)
PATHS = ValueKind(metavar="PATH", parse=absolute_path, many=True, split=paths)
PROBE_NAMES = ValueKind(metavar="PROBE", parse=probe, many=True, split=comma_separated, choices=tuple(PROBES))
KEY = ValueKind(metavar="KEY", parse=label_key)
ANNOTATION = ValueKind(metavar="KEY", parse=annotation_key)
SWITCH = ValueKind(metavar="BOOL", parse=boolean, is_switch=True, show=lambda value: str(value).lower())
URL = ValueKind(metavar="TEXT", parse=url, show=without_login, redacted=without_login)
NAME = ValueKind(metavar="NAME", parse=object_name)
NEEDED_NAME = ValueKind(metavar="NAME", parse=needed_name)
NAMESPACE = ValueKind(metavar="NAMESPACE", parse=namespace)
COMMAND = ValueKind(metavar="TEXT", parse=command_line, may_begin_with_a_quote=True)
SCHEDULER_CONFIG = ValueKind(metavar="PATH", parse=scheduler_config)
DEADLINE = ValueKind(metavar="DURATION", parse=deadline, show=format_duration)
DURATION = ValueKind(metavar="DURATION", parse=duration, show=format_duration)
REGEXP = ValueKind(metavar="REGEXP", parse=regexp, show=lambda value: str(value.text))
MEMORY = ValueKind(metavar="MEMORY", parse=memory, show=format_memory)
TIME = ValueKind(metavar="TIME", parse=time_of_day, show=time.isoformat)
ZONE = ValueKind(metavar="ZONE", parse=time_zone)
SELECTOR = ValueKind(metavar="SELECTOR", parse=selector, show=lambda value: str(value.text))
TEMPLATE = ValueKind(metavar="TEXT", parse=template, may_begin_with_a_quote=True)
TEMPLATE_OF_FIGURES = ValueKind(metavar="TEXT", parse=template_of_figures, may_begin_with_a_quote=True)
OCCASIONS = ValueKind(
    metavar="OCCASION",
    parse=one_of(*(each.value for each in Occasion)),
    many=True,
    split=comma_separated,
    choices=tuple(each.value for each in Occasion),
)
AT_ONCE = ValueKind(metavar="NUMBER", parse=at_once, bounds=(1, 2**31 - 1))
DAYS = ValueKind(metavar="DAYS", parse=weekday, many=True, split=comma_separated, show=lambda value: _DAYS[value][:2])
LABELS = ValueKind(
    metavar="KEY=VALUE,…", parse=kureds_label, many=True, split=comma_separated, show="=".join, remark=second_equals
)
SELECTORS = ValueKind(
    metavar="SELECTOR", parse=set_selector, many=True, split=one_per_line, show=lambda value: str(value.text)
)
BUDGETS = ValueKind(metavar="GROUP=N", parse=budget, many=True, split=one_per_line, show=format_budget)


def whole_number(lowest: int, highest: int = 2**31 - 1) -> ValueKind:
    """A whole number within these bounds."""
    return ValueKind(metavar="NUMBER", parse=integer(lowest, highest), bounds=(lowest, highest))


def word(*choices: str) -> ValueKind:
    """One of these words."""
    return ValueKind(metavar="|".join(choices), parse=one_of(*choices), choices=choices)
