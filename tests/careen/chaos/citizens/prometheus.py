"""Answers careen's queries on virtual time: the production client, with a simulated server in place of the network."""

from __future__ import annotations

import json
from collections.abc import Callable
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import requests
from requests.adapters import BaseAdapter
from requests.models import PreparedRequest, Response

from careen.core.facts.observation import Unknown
from careen.services.prometheus import Prometheus
from careen.services.wire import starts
from careen.services.wire.asking import TooEarly
from drydock.zoo.monitoring import Monitoring

if TYPE_CHECKING:
    from tests.careen.chaos.fleet.world import World

T = TypeVar("T")


class _Answers(BaseAdapter):
    def __init__(self, monitoring: Monitoring) -> None:
        super().__init__()
        self._monitoring = monitoring

    def send(self, request: PreparedRequest, *_: Any, **__: Any) -> Response:
        asked = parse_qs(urlsplit(str(request.url)).query)
        asked |= parse_qs(request.body.decode() if isinstance(request.body, bytes) else str(request.body or ""))
        headers = {str(name): str(value) for name, value in request.headers.items()}
        code, body = self._monitoring.answer(asked.get("query", [""])[0], headers)
        response = Response()
        response.status_code = code
        response._content = json.dumps(body).encode()
        response.headers["Content-Type"] = "application/json"
        response.request, response.url = request, str(request.url)
        return response

    def close(self) -> None:
        return None


class _Session(requests.Session):
    """Sends every request to the simulated server, whatever adapters the client mounts."""

    def __init__(self, monitoring: Monitoring) -> None:
        super().__init__()
        self._answers = _Answers(monitoring)
        self.trust_env = False

    def get_adapter(self, url: str | bytes) -> BaseAdapter:
        return self._answers


class InProcessPrometheus(Prometheus):
    """Asks at once and without a thread, because threads do not follow virtual time."""

    def __init__(self, monitoring: Monitoring) -> None:
        super().__init__("http://prometheus.example", timeout_seconds=3.0)
        self._session = _Session(monitoring)
        self._monitoring = monitoring

    def _start(self, session: requests.Session, *, with_rules: bool) -> starts.ServerStart:
        found = starts.of_prometheus(self._get, self._url, with_rules=with_rules)
        if found.why:
            raise TooEarly(found.why)
        return found

    def _get(self, path: str) -> starts.CheckAnswer | None:
        if path != "/api/v1/status/runtimeinfo":
            return None
        code, body = self._monitoring.runtime_information()
        verbs = self._monitoring.verbs
        if code != 200 or verbs is None:
            return None
        return starts.CheckAnswer(json.dumps(body).encode(), {"Date": format_datetime(verbs.wall_clock())})

    async def _asked(self, question: Callable[[requests.Session], T]) -> T | Unknown:
        try:
            return question(self._session)
        except Exception as error:
            return Unknown(f"Prometheus at http://prometheus.example: {error}")


def add_prometheus(world: World) -> Monitoring:
    """A Prometheus that evaluates its rules over the whole cluster and scrapes the citizens. All agents use it."""
    monitoring = Monitoring(world.zoo.habitat(), serve=world.zoo.series, started_at=-3600.0)
    world.zoo.settle([lambda _: monitoring.citizen()])
    world.agents.alerts = world.agents.metrics = InProcessPrometheus(monitoring)
    return monitoring
