"""Whether a server of alerts or metrics has just started and does not know everything yet.

Each kind of server has its own check; the first that a server has decides.

* Prometheus: `/api/v1/status/runtimeinfo` says since when it runs.
* Thanos: the same of the querier, which may not have found its stores yet; then the rules, below.
* Mimir, Cortex, and Thanos for the servers behind it: `/api/v1/rules` says when each group of rules was last evaluated.
* VictoriaMetrics: the rules of its vmalert (with `-vmalert.proxyURL`), and the uptime among its own metrics.
* Alertmanager: `/api/v2/status` says since when it runs, and whether it has joined its cluster.

No check can make a server unknown for ever: one that it does not have, does not permit, answers with an error or too
slowly does not count, nor does a start in the future of the server's own clock.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import msgspec

from careen.core.facts.times import from_rfc3339, span
from careen.core.plain_text import one_line
from scheduler_core.sentences import first_few
from scheduler_core.values import Value

if TYPE_CHECKING:
    from requests import Session

_LOG = logging.getLogger("careen.services")

SETTLES_SECONDS = 180.0
"""Two evaluations of rules at the default interval of a minute, one before and one after the first scrapes, and as much
again for the longest default of what follows: Prometheus sends an alert to Alertmanager again after a minute. Shorter
than --unknown-patience: the drain itself may have moved the server."""
RECENT_SECONDS = 900.0
"""Until then alerts that fired before the start may be pending: ten minutes, after the second evaluation."""
LONGEST_UNEVALUATED_SECONDS = 300.0
"""A group of rules that is not evaluated for longer has another reason than a start: a long interval, or an error."""

_MOST_GROUPS = 10_000
_UNEVALUATED: dict[tuple[str, str], float] = {}
"""Server and group: since when this process has seen the group without an evaluation."""


class CheckAnswer(Value):
    """Content and headers of an answer with status 200."""

    content: bytes
    headers: Mapping[str, str]


class ServerStart(Value):
    """`why`: the predicate of a sentence that says why the server cannot know everything yet; "" if it can, or if no
    check says otherwise."""

    why: str = ""
    is_recent: bool = False


Get = Callable[[str], CheckAnswer | None]
"""The answer to a GET of this path; None for anything but status 200 in time."""


@contextmanager
def asking(session: Session, url: str, timeout_seconds: float, **arguments: Any) -> Iterator[Get]:
    """Asks with the certificates of `session` and a deadline of its own, so that a check that hangs does not use up the
    time of the question. `arguments` go to requests."""
    from careen.services.wire import bounded

    with bounded.session(timeout_seconds / 4, timeout_seconds / 2) as own:
        own.verify, own.cert = session.verify, session.cert

        def get(path: str) -> CheckAnswer | None:
            try:
                answer = own.get(f"{url}{path}", **arguments)
            except Exception as error:  # of any kind: the question itself was answered
                _LOG.debug("the check %s of a start was not answered: %s", path, type(error).__name__)
                return None
            return CheckAnswer(answer.content, answer.headers) if answer.status_code == 200 else None

        yield get


def of_prometheus(get: Get, url: str, *, with_rules: bool) -> ServerStart:
    """For all servers with Prometheus' query API. `with_rules`: alerts are asked for, so the evaluation of their rules
    counts."""
    runtime = get("/api/v1/status/runtimeinfo")
    info = _decoded(runtime, _Runtime)
    if runtime and info and (age := _age(info.data.start_time, runtime.headers)) is not None:
        start = _of_age(age, "it evaluates its rules after its first scrapes")
        if start.why or info.data.is_of_prometheus:
            return start
    else:
        start = _of_victoria_metrics(get("/metrics"))
        if start.why:
            return start
    return _of_rules(get("/api/v1/rules?type=alert&exclude_alerts=true"), url) if with_rules else start


def of_alertmanager(get: Get) -> ServerStart:
    """It keeps no alerts over a restart; Prometheus sends them again within a minute or two."""
    found = get("/api/v2/status")
    status = _decoded(found, _AlertmanagerStatus)
    if found is None or status is None:
        return ServerStart()
    age = _age(status.uptime, found.headers)
    start = ServerStart() if age is None else _of_age(age, "it gets the alerts when Prometheus sends them again")
    if not start.why and status.cluster and status.cluster.status == "settling":
        return ServerStart("has not joined its cluster yet")
    return start


class _RuntimeData(Value, rename="camel"):
    start_time: str = ""
    storage_retention: str = ""
    reload_config_success: bool | None = None

    @property
    def is_of_prometheus(self) -> bool:
        """Thanos' answer has neither."""
        return bool(self.storage_retention) or self.reload_config_success is not None


class _Runtime(Value):
    data: _RuntimeData


class _Rule(Value):
    type: str = ""


class _Group(Value, rename="camel"):
    name: str = ""
    file: str = ""
    last_evaluation: str = ""
    rules: tuple[_Rule, ...] = ()


class _Groups(Value):
    groups: tuple[_Group, ...] = ()


class _Rules(Value):
    data: _Groups


class _Cluster(Value):
    status: str = ""


class _AlertmanagerStatus(Value):
    uptime: str | None = None  # the start
    cluster: _Cluster | None = None


def _decoded(answer: CheckAnswer | None, kind: type[Any]) -> Any:
    """None if the answer has another structure."""
    try:
        return None if answer is None else msgspec.json.decode(answer.content, type=kind)
    except (ValueError, RecursionError):
        return None


def _age(started: str | None, headers: Mapping[str, str]) -> float | None:
    """In seconds, by the server's own clock if it says its time. None if the text is no instant, or of the future: the
    server's clock was set since."""
    at = from_rfc3339(started)
    if at is None:
        return None
    try:
        now = parsedate_to_datetime(headers.get("Date", ""))
    except (ValueError, TypeError):
        now = datetime.now(UTC)
    age = (now.replace(tzinfo=now.tzinfo or UTC) - at).total_seconds()
    return age if age >= -1 else None  # the header has whole seconds


def _of_age(age: float, until: str) -> ServerStart:
    if age < SETTLES_SECONDS:
        left = span(max(SETTLES_SECONDS - age, 1))
        return ServerStart(f"started {span(max(age, 1))} ago and does not know every alert yet: {until}; wait {left}")
    return ServerStart(is_recent=age < RECENT_SECONDS)


_VM_UPTIME = re.compile(rb"^vm_app_uptime_seconds (\d{1,12})", re.MULTILINE)


def _of_victoria_metrics(metrics: CheckAnswer | None) -> ServerStart:
    found = _VM_UPTIME.search(metrics.content) if metrics else None
    return (
        _of_age(float(found[1]), "it gets samples and alerts when they are written again") if found else ServerStart()
    )


def _of_rules(answer: CheckAnswer | None, url: str) -> ServerStart:
    rules = _decoded(answer, _Rules)
    groups = rules.data.groups if rules else ()
    new = {
        (url, f"{each.file};{each.name}"): each.name
        for each in groups[:_MOST_GROUPS]
        if each.rules and any(rule.type == "alerting" for rule in each.rules) and _is_never(each.last_evaluation)
    }
    now = time.monotonic()
    for key in [key for key in _UNEVALUATED if key[0] == url and key not in new]:
        del _UNEVALUATED[key]
    for key in new:
        _UNEVALUATED.setdefault(key, now)
    waiting = [name for key, name in new.items() if now - _UNEVALUATED[key] < LONGEST_UNEVALUATED_SECONDS]
    if not waiting:
        return ServerStart()
    names = first_few([one_line(name, 60) for name in sorted(waiting)], 1)
    return ServerStart(f"has not evaluated its alert rules since its start: {names}")


def _is_never(last: str) -> bool:
    """Go's zero time, or that of protocol buffers. A group without the field says nothing."""
    return last.startswith(("0001-01-01", "1970-01-01"))
