"""Lists every kind of text from outside, with the function that reads it first, the exceptions that this function may
raise, and a few valid texts. Strategies combine these texts with random texts.
"""

from __future__ import annotations

import asyncio
import io
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from careen.cluster import access, objects
from careen.cluster.wire.answers import is_evicted, the_object, the_page, the_review
from careen.cluster.wire.client import CannotReachCluster, load_configuration
from careen.cluster.wire.errors import ClusterError, UnreadableAnswer, http_date, raise_unless_ok, retry_after
from careen.cluster.wire.transport import Request, Response
from careen.core.decision import stored_refusals
from careen.core.facts import keys
from careen.core.facts.observation import NodeView
from careen.core.facts.progress import from_annotation
from careen.core.facts.selectors import Selector
from careen.core.facts.times import from_rfc3339
from careen.core.facts.untrusted import json_of
from careen.core.gates.hold import until_of
from careen.core.lock import notation
from careen.host.commands import _ends_of
from careen.host.inhibitors import of_shutdown
from careen.services import notification_urls
from careen.services.prometheus import Prometheus
from careen.settings import last_good, live, scheduler_config, yaml_text
from careen.settings.sources import BadSettings, resolve
from careen.settings.tree import DEFAULTS, SETTINGS
from scheduler_core.config.configuration import Configuration
from scheduler_core.config.fields import ConfigurationError, parse_duration_seconds
from scheduler_core.config.kube_version import KubeVersion, UnsupportedKubeVersionError
from scheduler_core.model.quantity import QuantityError, parse_nanos
from scheduler_core.snapshot.dump import UnreadableDumpError, read_dump
from scheduler_core.snapshot.loading import PageReader

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Input:
    """A kind of text from outside. `read` parses the text or the bytes. `refusals` are the exceptions that the caller
    of `read` handles.
    """

    name: str
    read: Callable[[Any], object]
    refusals: tuple[type[Exception], ...] = ()
    known: tuple[str, ...] = ()
    is_bytes: bool = False
    is_yaml: bool = False  # its reader is Python, and takes long for large texts


def as_judged(text: str) -> str:
    return scheduler_config._why_not(text, may_name_files=False)


def as_configuration(text: str) -> object:
    return Configuration.from_mapping(yaml_text.load(text))


def as_kubeconfig(text: str) -> object:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "config"
        file.write_text(text, encoding="utf-8", errors="surrogatepass")
        return load_configuration(file)


def as_inhibitor(raw: bytes) -> object:
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder) / "run/systemd/inhibit"
        files.mkdir(parents=True)
        (files / "1").write_bytes(raw)
        return of_shutdown(Path(folder))


def as_output(raw: bytes) -> object:
    async def read() -> bytes:
        pipe = asyncio.StreamReader()
        pipe.feed_data(raw)
        pipe.feed_eof()
        return await _ends_of(pipe)

    return asyncio.run(read())


def as_alerts(text: str) -> object:
    class Answering(Prometheus):
        def _query(self) -> Any:
            rows = json.loads(text)
            if not isinstance(rows, list):
                raise TypeError("the result of the query is not a list")
            return rows

    return asyncio.run(Answering("http://p", timeout_seconds=3000).active_alerts())


def as_config_map(text: str) -> object:
    return resolve(
        flags={"node_id": ["n1"]}, environment={}, config_map=live.parse(text, "careen/careen"), config_map_name="c"
    )


def as_kept_settings(text: str) -> object:
    return last_good.restore(text, "why", flags={"node_id": ["n1"]}, environment={}, name="careen")


def as_refusals(text: str) -> object:
    return stored_refusals(NodeView(name="n", uid="u", resource_version="1", annotations={keys.REFUSALS: text}))


def as_failure(raw: bytes) -> object:
    raise_unless_ok(
        Request(method="GET", path="/"), Response(status=500, headers={"retry-after": "1"}, body=raw), now=NOW
    )
    return None


def as_retry_after(text: str) -> object:
    return retry_after(Response(status=429, headers={"retry-after": text}, body=b""), now=NOW)


def as_pages(raw: bytes) -> object:
    """Parse an API server's list page as a forecast does, and return the snapshot of its objects."""
    reader = PageReader(reports_unknown=True)
    reader.add(raw)
    return reader.snapshot()


DUMP = (
    '{"careen":"snapshot","version":1,"kubeVersion":"v1.36.0","takenAt":"2026-03-04T12:00:00Z"}\n'
    '{"kind":"NodeList","apiVersion":"v1","items":[]}\n{"end":1}\n'
)
META = '"metadata":{"name":"n1","uid":"u","resourceVersion":"5"}'
NODE = f'{{"kind":"Node","apiVersion":"v1",{META},"spec":{{}},"status":{{}}}}'
NODES = (
    '{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"n1","uid":'
    '"u","resourceVersion":"5"},"spec":{"taints":[{"key":"a","effect":"NoSchedule"}]},"status":{"allocatable":{"cpu":'
    '"4","memory":"8Gi"}}}]}'
)
PODS = (
    '{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"p","namespace'
    '":"shop","uid":"u","resourceVersion":"5"},"spec":{"nodeName":"n1","containers":[{"name":"c","resources":{'
    '"requests":{"cpu":"100m"}}}]},"status":{"phase":"Running"}}]}'
)
STATUS = '{"kind":"Status","status":"Failure","reason":"Forbidden","message":"no","code":403}'
EVICTED = '{"kind":"Status","status":"Success","code":201}'
REVIEW = '{"kind":"SelfSubjectAccessReview","status":{"allowed":true}}'
KUBECONFIG = (
    "{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}], users: [{name: u, "
    "user: {token: t}}], contexts: [{name: x, context: {cluster: c, user: u}}], current-context: x}"
)
SCHEDULER = (
    "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- schedulerName: a\n"
    "  plugins: {score: {disabled: [{name: '*'}], enabled: [{name: NodeResourcesFit, weight: 5}]}}\n"
    "  pluginConfig:\n  - name: NodeResourcesFit\n    args: {scoringStrategy: {type: MostAllocated}}\n"
)

SETTING_TEXTS = ("1h30m", "mon,tue", "9:00", "a=b", "Europe/Berlin", "app in (a, b)", "http://p", "5m")


def _settings() -> list[Input]:
    """Return one input for each format of setting values, because most settings share a format."""
    parsers: dict[Any, Input] = {}
    for name, setting in SETTINGS.items():
        known = (setting.kind.shown(DEFAULTS[name]), *SETTING_TEXTS)
        parsers.setdefault(setting.kind.parse, Input(f"setting {name}", setting.kind.parse, (ValueError,), known))
    return list(parsers.values())


INPUTS: tuple[Input, ...] = (
    *_settings(),
    Input("selector", Selector.parse, (ValueError,), ("a=b,c!=d", "a in (b,c),!d,e notin (f)", "x.io/y")),
    Input(
        "settings YAML",
        as_config_map,
        (BadSettings,),
        ("period: 5m\nconcurrency: 2", "reboot-days: [mon, tue]"),
        is_yaml=True,
    ),
    Input(
        "YAML",
        yaml_text.load,
        (yaml_text.BadYaml,),
        ("a: [1, {b: c}]", "&a [*a]", "? a\n: b", "!!python/none x"),
        is_yaml=True,
    ),
    Input("kept settings", as_kept_settings, (), ('{"version":1,"settings":{"period":["5m"]},"leftOut":[]}',)),
    Input(
        "scheduler configuration", as_configuration, (ConfigurationError, yaml_text.BadYaml), (SCHEDULER,), is_yaml=True
    ),
    Input("judged scheduler configuration", as_judged, (), (SCHEDULER,), is_yaml=True),
    Input("scheduler duration", parse_duration_seconds, (), ("1h30m", "5s")),
    Input("quantity", parse_nanos, (QuantityError,), ("100m", "8Gi", "1e3", ".5", "-1", "9" * 5000, "1e" + "9" * 5000)),
    Input("Kubernetes version", KubeVersion.parse, (UnsupportedKubeVersionError,), ("v1.36.3", "1." + "9" * 5000)),
    Input("notification URL", notification_urls.parse, (ValueError,), ("slack://a/b/c", "generic+https://h/p?x=1")),
    Input("Slack hook", notification_urls.slack_hook, (ValueError,), ("https://hooks.slack.com/services/A/B/C",)),
    Input("lock", notation.parse, (), ('{"nodeID":"n1"}', '{"maxOwners":2,"locks":[{"nodeID":"n1","id":"c"}]}')),
    Input("record", from_annotation, (), ('{"version":1,"phase":"Draining","claim":"c","boot_left":"b"}',)),
    Input("refusals", as_refusals, (), ('[{"gate":"hold","code":"held","sentence":"s","since":null}]',)),
    Input("JSON in an annotation", json_of, (), ('{"a":[1e999,"\\ud800"]}',)),
    Input("instant", from_rfc3339, (), ("2026-03-04T12:00:00Z", "9999-12-31T23:59:59-23:59")),
    Input("hold", until_of, (), ("until=2026-03-04T12:00:00Z a fan",)),
    Input("Retry-After", as_retry_after, (), ("5", "9" * 5000, "Wed, 04 Mar 2026 12:00:00 GMT")),
    Input("HTTP date", http_date, (), ("Wed, 04 Mar 2026 12:00:00 GMT", "Wed, 04 Mar 99999 12:00:00 +9999")),
    Input("alerts", as_alerts, (), ('[{"metric":{"alertname":"a","alertstate":"firing"},"value":[1,"1"]}]',)),
    Input("kubeconfig", as_kubeconfig, (CannotReachCluster,), (KUBECONFIG,), is_yaml=True),
    Input("dump", lambda raw: read_dump(io.BytesIO(raw)), (UnreadableDumpError,), (DUMP,), is_bytes=True),
    Input("pages for a forecast", as_pages, (ValueError,), (NODES, PODS), is_bytes=True),
    Input(
        "object",
        lambda raw: the_object(raw, "/api/v1/nodes/n1", objects.ManagedNode, ""),
        (UnreadableAnswer,),
        (NODE,),
        is_bytes=True,
    ),
    Input("list", lambda raw: the_page(raw, "/api/v1/nodes", ""), (UnreadableAnswer,), (NODES,), is_bytes=True),
    Input(
        "review",
        lambda raw: the_review(raw, access.REVIEWS, access._Review, ""),
        (UnreadableAnswer,),
        (REVIEW,),
        is_bytes=True,
    ),
    Input("eviction's answer", lambda raw: is_evicted(raw, ""), (UnreadableAnswer,), (EVICTED, STATUS), is_bytes=True),
    Input("failure's answer", as_failure, (ClusterError,), (STATUS, "<html>"), is_bytes=True),
    Input("output of a command", as_output, (), ("command not found",), is_bytes=True),
    Input("inhibitor", as_inhibitor, (), ("WHAT=shutdown:sleep\nWHO=x\nMODE=block\n",), is_bytes=True),
)
