"""The Grafana dashboards, from tables of panels with their queries; `make docs` writes them into `manifests/dashboard/`
and `manifests/shadow-monitoring/`.

Every query aggregates by node or by code, never by pod, so that a line continues when an agent's pod is replaced.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from functools import partial
from typing import Any

from scheduler_core.values import Value

# Grafana's number for the layout of a dashboard's JSON; newer releases migrate it when they load it.
SCHEMA_VERSION = 39
WIDTH = 24  # of a row, in Grafana's units
SIZES = {"stat": (6, 4), "timeseries": (12, 8), "table": (12, 8)}  # width and height of a panel by its kind


class Panel(Value, kw_only=True):
    """`legend` is Grafana's template for the name of a series, `unit` Grafana's name of the unit."""

    title: str
    says: str
    kind: str  # a key of SIZES
    query: str
    legend: str = ""
    unit: str = "short"


PANELS: tuple[Panel, ...] = (
    Panel(
        title="Nodes that need a reboot",
        says="Hosts that need a reboot, including hosts whose reboot a gate refuses.",
        kind="stat",
        query="sum(max by (node) (kured_reboot_required)) or vector(0)",
    ),
    Panel(
        title="Nodes that hold the lock",
        says="Nodes that are about to drain, draining, rebooting, in maintenance, or settling.",
        kind="stat",
        query=(
            'sum(max by (node) (careen_phase{phase=~"Claiming|Draining|Rebooting|Verifying|Maintenance|Settling"}))'
            " or vector(0)"
        ),
    ),
    Panel(
        title="Failed nodes",
        says="Nodes whose reboot failed. `careen why NODE` says why and what to do.",
        kind="stat",
        query='sum(max by (node) (careen_phase{phase="Failed"})) or vector(0)',
    ),
    Panel(
        title="Oldest need",
        says="The longest time for which a node has needed its reboot.",
        kind="stat",
        query="max(time() - max by (node) (careen_need_since_seconds)) or vector(0)",
        unit="s",
    ),
    Panel(
        title="Nodes by phase",
        says="The number of nodes in each phase.",
        kind="timeseries",
        query="sum by (phase) (max by (node, phase) (careen_phase)) > 0",
        legend="{{phase}}",
    ),
    Panel(
        title="What refuses",
        says="The number of nodes that each gate keeps from their reboot, by code. docs/reasons.md explains the codes.",
        kind="timeseries",
        query="sum by (gate, code) (max by (node, gate, code) (careen_refused)) > 0",
        legend="{{gate}}: {{code}}",
    ),
    Panel(
        title="Nodes that wait longest",
        says="For how long each node has needed a reboot.",
        kind="table",
        query="topk(20, time() - max by (node) (careen_need_since_seconds))",
        unit="s",
    ),
    Panel(
        title="Nodes that hold the lock too long",
        says="Nodes that hold the lock and did not return to service in time, as other agents report.",
        kind="table",
        query="max by (holder) (time() - careen_overdue_holder_timestamp_seconds)",
        unit="s",
    ),
    Panel(
        title="Evictions by answer",
        says="Eviction requests per second: accepted, refused by a budget, denied, or with an unclear answer.",
        kind="timeseries",
        query="sum by (answer) (rate(careen_evictions_total[5m]))",
        legend="{{answer}}",
        unit="reqps",
    ),
    Panel(
        title="Forecast hits of the last week",
        says="Share of the evicted pods whose replacements run on a node of the forecast.",
        kind="timeseries",
        query=(
            'sum(increase(careen_forecast_pods_total{result="hit"}[7d])) / '
            'sum(increase(careen_forecast_pods_total{result=~"hit|miss"}[7d]))'
        ),
        legend="inside",
        unit="percentunit",
    ),
    Panel(
        title="Requests to the API server",
        says="Requests per second by HTTP status. `lost` means that no response arrived.",
        kind="timeseries",
        query="sum by (status) (rate(careen_api_requests_total[5m]))",
        legend="{{status}}",
        unit="reqps",
    ),
    Panel(
        title="Agents: memory",
        says="Resident memory of the largest agents.",
        kind="timeseries",
        query="topk(5, max by (instance) (process_resident_memory_bytes and on (instance) careen_last_turn_seconds))",
        legend="{{instance}}",
        unit="bytes",
    ),
)

OF_THE_SHADOW: tuple[Panel, ...] = (
    Panel(
        title="Agreement with kube-scheduler in the last day",
        says="Share of the compared pods for which the forecast's rules and the scheduler agree.",
        kind="stat",
        query=(
            '1 - (sum(increase(careen_shadow_pods_total{outcome="disagreed"}[1d])) or vector(0)) / '
            'sum(increase(careen_shadow_pods_total{outcome=~"agreed|disagreed"}[1d]))'
        ),
        unit="percentunit",
    ),
    Panel(
        title="Another configuration",
        says="1 while kube-scheduler probably has another configuration than careen was given.",
        kind="stat",
        query="max(careen_shadow_other_configuration)",
    ),
    Panel(
        title="Kinds that the shadow cannot watch",
        says="Kinds of objects that the shadow cannot list or watch. The shadow's log has each kind and the reason.",
        kind="stat",
        query="max(careen_shadow_troubled_kinds)",
    ),
    Panel(
        title="Bound pods that are not compared yet",
        says="If this grows, the scheduler binds pods faster than the shadow compares them.",
        kind="stat",
        query="max(careen_shadow_waiting)",
    ),
    Panel(
        title="Compared pods by outcome",
        says="Pods per second. Pods with the outcome `cannot-say` do not count in the agreement.",
        kind="timeseries",
        query="sum by (outcome) (rate(careen_shadow_pods_total[1h]))",
        legend="{{outcome}}",
        unit="ops",
    ),
    Panel(
        title="Disagreements by profile and reason",
        says="Disagreements in the last hour. docs/shadow.md explains the reasons.",
        kind="timeseries",
        query='sum by (profile, reason) (increase(careen_shadow_pods_total{outcome="disagreed"}[1h])) > 0',
        legend="{{profile}}: {{reason}}",
    ),
    Panel(
        title="Events of the API server",
        says="Bytes per second of the shadow's watches.",
        kind="timeseries",
        query="sum(rate(careen_shadow_event_bytes_total[5m]))",
        legend="events",
        unit="Bps",
    ),
    Panel(
        title="Memory",
        says="Resident memory of the shadow.",
        kind="timeseries",
        query="max by (instance) (process_resident_memory_bytes and on (instance) careen_shadow_troubled_kinds)",
        legend="{{instance}}",
        unit="bytes",
    ),
)


class Board(Value, kw_only=True):
    """`uid` is also the name of the dashboard's file."""

    uid: str
    title: str
    says: str
    panels: tuple[Panel, ...]
    config_map: str


REBOOTS = Board(
    uid="careen",
    title="careen: reboots",
    says="Which nodes need a reboot, which gates refuse, and how far the roll-out is.",
    panels=PANELS,
    config_map="careen-dashboard",
)
SHADOW = Board(
    uid="careen-shadow",
    title="careen: forecast and scheduler",
    says="How often the forecast's rules and kube-scheduler agree, and what `careen shadow` costs.",
    panels=OF_THE_SHADOW,
    config_map="careen-shadow-dashboard",
)
BOARDS = (REBOOTS, SHADOW)


def dashboard(board: Board = REBOOTS) -> str:
    """The JSON that Grafana imports. A variable selects the data source there."""
    made = {
        "uid": board.uid,
        "title": board.title,
        "description": board.says,
        "tags": ["careen", "kubernetes"],
        "timezone": "browser",
        "editable": True,
        "graphTooltip": 1,
        "schemaVersion": SCHEMA_VERSION,
        "refresh": "1m",
        "time": {"from": "now-24h", "to": "now"},
        "templating": {
            "list": [{"type": "datasource", "name": "source", "label": "Data source", "query": "prometheus"}]
        },
        "panels": _placed(board.panels),
    }
    return json.dumps(made, indent=2) + "\n"


def _placed(panels: tuple[Panel, ...]) -> list[dict[str, Any]]:
    """From left to right, in a new row when one is full."""
    placed, x, y, tallest = [], 0, 0, 0
    for number, panel in enumerate(panels, 1):
        width, height = SIZES[panel.kind]
        if x + width > WIDTH:
            x, y, tallest = 0, y + tallest, 0
        placed.append(_panel(number, panel, {"x": x, "y": y, "w": width, "h": height}))
        x, tallest = x + width, max(tallest, height)
    return placed


def _panel(number: int, panel: Panel, position: dict[str, int]) -> dict[str, Any]:
    source = {"type": "prometheus", "uid": "${source}"}
    target = {"refId": "A", "datasource": source, "expr": panel.query, "legendFormat": panel.legend or "__auto"}
    target |= {"instant": True, "format": "table"} if panel.kind == "table" else {"instant": panel.kind == "stat"}
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.says,
        "datasource": source,
        "gridPos": position,
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "targets": [target],
    }


def config_map(board: Board = REBOOTS) -> str:
    """A ConfigMap with the JSON, and with the label by which Grafana's sidecar finds it."""
    return (
        "# Written by `make docs` from docs/dashboard.py; edit that file, not this one.\n"
        "apiVersion: v1\n"
        "kind: ConfigMap\n"
        "metadata:\n"
        f"  name: {board.config_map}\n"
        "  namespace: careen\n"
        "  labels:\n"
        '    grafana_dashboard: "1"\n'
        "data:\n"
        f"  {board.uid}.json: |\n"
        f"{textwrap.indent(dashboard(board), '    ')}"
    )


PAGES: dict[str, Callable[[], str]] = {
    "manifests/dashboard/careen.json": dashboard,
    "manifests/dashboard/config-map.yaml": config_map,
    "manifests/shadow-monitoring/careen-shadow.json": partial(dashboard, SHADOW),
    "manifests/shadow-monitoring/config-map.yaml": partial(config_map, SHADOW),
}
