"""Tests the examples of docs/health.md: settings, responses of Prometheus, and the results of the gate for health
queries."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest

from careen.core.facts.observation import Sample, Unknown
from careen.core.facts.policy import Policy
from careen.core.gates.health_queries import health_queries
from careen.core.gates.question import When
from careen.services.prometheus import Prometheus
from careen.settings import live
from careen.settings.policy import policy_of
from careen.settings.sources import resolve
from tests.careen.core.builders import a_situation
from tests.patience import LONG_SECONDS

PAGE = (Path(__file__).parents[3] / "docs" / "health.md").read_text()
TOLD = re.compile(r"^(?P<verdict>Holds:|Refuses: .*)$\n\n```json\n(?P<answer>.*?)\n```", re.MULTILINE)
YAML = re.compile(r"^```yaml\n(.*?)```", re.MULTILINE | re.DOTALL)


def examples() -> list[Any]:
    """Return one test case for each response of Prometheus in docs/health.md: the settings, the response, and the
    verdict of the gate."""
    storage = PAGE.partition("## Storage and etcd")[2]
    blocks = list(YAML.finditer(storage))
    ends = [*(block.start() for block in blocks[1:]), len(storage)]
    return [
        pytest.param(
            block[1],
            told["answer"],
            told["verdict"].removeprefix("Refuses: "),
            id=f"query {number + 1}, response {at + 1}",
        )
        for number, (block, end) in enumerate(zip(blocks, ends, strict=True))
        for at, told in enumerate(TOLD.finditer(storage, block.end(), end))
    ]


def test_four_documented_examples_pass_the_health_gate_and_five_are_refused() -> None:
    verdicts = [example.values[2] == "Holds:" for example in examples()]
    assert verdicts.count(True) == 4
    assert verdicts.count(False) == 5


class Answers:
    """A fake Prometheus that sends the same response to each query, with samples that are `age` seconds old."""

    def __init__(self, answer: str, *, age: float = 15.0, timestamps: str | None = None) -> None:
        self.asked: list[dict[str, str]] = []
        outer, stamps = self, timestamps if timestamps is not None else _timestamps(answer, age)

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if "query=" not in self.path:  # one of the checks of a start
                    self.send_error(404)
                    return
                query = {key: value[0] for key, value in parse_qs(urlparse(self.path).query).items()}
                outer.asked.append(query)
                body = (stamps if query["query"].startswith("timestamp(") else answer).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


def _timestamps(answer: str, age: float) -> str:
    found = json.loads(answer)
    for row in found["data"]["result"]:
        row["metric"].pop("__name__", None)
        row["value"][1] = str(row["value"][0] - age)
    return json.dumps(found)


@pytest.fixture
def started() -> Iterator[list[Answers]]:
    servers: list[Answers] = []
    yield servers
    for each in servers:
        each.server.shutdown()
        each.server.server_close()


def policy_from(settings: str, url: str) -> Policy:
    flags = {"node_id": ["n1"], "prometheus_url": [url]}
    return policy_of(
        resolve(flags=flags, environment={}, config_map=live.parse(settings, "x"), config_map_name="x").settings
    )


async def asked(policy: Policy, url: str) -> dict[str, tuple[Sample, ...] | Unknown]:
    source = Prometheus(url, timeout_seconds=LONG_SECONDS)
    return {
        each.name: await source.samples(each.query, fresh_seconds=each.fresh_seconds) for each in policy.health_queries
    }


async def verdict(settings: str, server: Answers) -> str | None:
    policy = policy_from(settings, server.url)
    now = datetime.fromtimestamp(1772625600, UTC)
    situation = a_situation(policy=policy, now=now, queries=await asked(policy, server.url))
    refused = health_queries.ask(situation, When.READY)
    return refused.sentence if refused else None


@pytest.mark.parametrize(("settings", "answer", "told"), examples())
async def test_each_example_of_the_documentation_has_the_documented_verdict(
    settings: str, answer: str, told: str, started: list[Answers]
) -> None:
    started.append(Answers(answer))
    assert await verdict(settings, started[0]) == (None if told == "Holds:" else told)


CEPH, HEALTHY = examples()[0].values[:2]


async def test_a_prometheus_sample_older_than_the_limit_is_unknown(started: list[Answers]) -> None:
    started.append(Answers(str(HEALTHY), age=121.0))
    assert "older than 2m" in (await verdict(str(CEPH), started[0]) or "")
    assert {each.get("lookback_delta") for each in started[0].asked} == {"120s"}


@pytest.mark.parametrize(
    ("answer", "timestamps"),
    [
        pytest.param(
            HEALTHY,
            '{"status":"success","data":{"resultType":"vector","result":[]}}',
            id="the query for the timestamp finds nothing",
        ),
        pytest.param(HEALTHY, '{"status":"error","error":"x","errorType":"y"}', id="the query for the timestamp fails"),
        pytest.param('{"status":"error","error":"bad_data","errorType":"bad_data"}', None, id="an error response"),
        pytest.param(
            '{"status":"success","data":{"resultType":"scalar","result":[1,"0"]}}',
            None,
            id="a scalar instead of a vector",
        ),
        pytest.param(
            '{"status":"success","data":{"resultType":"vector","result":{}}}', None, id="an object instead of a list"
        ),
        pytest.param(
            '{"status":"success","data":{"resultType":"vector","result":[{"metric":{}}]}}',
            None,
            id="a sample without a value",
        ),
        pytest.param("<html>log in</html>", None, id="an HTML page instead of JSON"),
    ],
)
async def test_an_invalid_prometheus_answer_is_unknown(
    answer: str, timestamps: str | None, started: list[Answers]
) -> None:
    started.append(Answers(answer, timestamps=timestamps if timestamps is not None else ""))
    assert (await verdict(str(CEPH), started[0]) or "").startswith(
        "careen cannot tell whether a health query holds: ceph"
    )


def test_the_documented_ceph_query_passes_a_warning_and_refuses_an_error_after_the_drain() -> None:
    (block,) = [each[1] for each in YAML.finditer(PAGE) if "ceph_health_status" in each[1]]
    policy = policy_from(block, "http://prometheus:9090")
    (query,) = policy.health_queries
    assert [query.holds(value) for value in (0.0, 1.0, 2.0)] == [True, False, False]
    assert [query.holds_late(value) for value in (0.0, 1.0, 2.0)] == [True, True, False]
