"""A value for each setting in the chart's notation. All can be used together, and each differs from the default if the
default is not an empty text."""

from __future__ import annotations

import json
from typing import Any

from careen.settings.tree import SETTINGS
from docs.chart.settings import key, place

GIVEN: dict[str, Any] = {
    "configMapMayRunCommands": True,
    "configMapMayNameFiles": True,
    "rebootProbes": ["sentinel", "uptime"],
    "rebootSentinel": ["/run/x", "/run/y"],
    "rebootPackages": "^linux-",
    "rebootMaxUptime": "720h",
    "rebootSentinelCommand": "test -e '/a b'",
    "period": "90s",
    "sentinelTimeout": "1.5h",
    "hostRoot": "",
    "hostExec": "direct",
    "hostLockDir": "",
    "bootIdFile": "/b",
    "rebootMethod": "signal",
    "rebootCommand": '/sbin/reboot "now"',
    "rebootSignal": 38,
    "rebootTimeout": "2m",
    "rebootProof": "soft-reboots",
    "rebootDelay": "1s",
    "rebootDeadline": "2h",
    "verifyTimeout": "3m",
    "rebootLoopLimit": 0,
    "concurrency": 1000000,
    "order": "zone",
    "budget": ["zone=2", "topology:example.com/rack=25%"],
    "countCordoned": False,
    "rebootCordoned": "false",
    "lockAnnotation": "example.org/lock",
    "lockTtl": "5m",
    "protectFromAutoscalers": False,
    "loadBalancerSettle": "30s",
    "lockReleaseDelay": "1m",
    "preferNoScheduleTaint": "",
    "minimumInterval": "1h",
    "clusterMinimumInterval": "2h",
    "drainDelay": "7s",
    "drainTimeout": "8m",
    "drainGracePeriod": 0,
    "drainPodSelector": "app in (a,b)",
    "podsBoundToNode": "stay",
    "drainParallel": 3,
    "skipWaitForDeleteTimeout": "60",
    "forceReboot": True,
    "forceRebootPastBudgets": True,
    "latePolicy": "reboot",
    "settlePolicy": "continue",
    "settleTimeout": 0,
    "unknownPatience": "9m",
    "failureBackoff": "0s",
    "rebootDays": ["mo", 2],
    "startTime": 22,
    "endTime": "5:30am",
    "timeZone": "Europe/Berlin",
    "windows": [
        {"name": "a", "cron": "0 2 * * SUN", "duration": "4h", "nodes": "pool=batch", "exclude": ["2026-12-24"]},
        {"name": "b", "days": ["mo"], "start": "22:00", "end": "04:00"},
    ],
    "blockingPodSelector": ["app=a,tier=b", "x"],
    "slowPodSelector": ["app=vm"],
    "prometheusUrl": "https://p:9090",
    "prometheusTimeout": "11s",
    "prometheusTokenFile": "",
    "prometheusUsername": "me",
    "prometheusPasswordFile": "/p",
    "prometheusCaFile": "/ca",
    "prometheusClientCertificateFile": "/c",
    "prometheusClientKeyFile": "/k",
    "prometheusHeaders": ["X-Scope-OrgID: a", "X-Api-Key: @/k"],
    "alertmanagerUrl": "https://a:9093",
    "alertmanagerTokenFile": "/t",
    "alertmanagerCaFile": "/ca",
    "alertmanagerHeaders": ["THANOS-TENANT: a|b"],
    "blockingPods": [
        {
            "name": "backup",
            "pods": "app=backup",
            "namespaces": ["shop"],
            "scope": "group",
            "group": "pool",
            "longest": "2h",
        },
        {"name": "quiet", "annotations": ["a/b=c"]},
        {"name": "lost", "lost": True},
    ],
    "protectedPods": "evict",
    "healthQueries": [
        {"name": "ceph", "query": "ceph_health_status", "holds": "== 0", "fresh": "2m", "labels": ["job=ceph"]}
    ],
    "alertmanagerSilence": "30m",
    "alertmanagerSilenceMatchers": ['node="$NODE"', '{a="$NODE",b!="c"}'],
    "alertFilterRegexp": "^a\\d<&>{{ b }}$",
    "alertFilterMatchOnly": True,
    "alertFiringOnly": True,
    "forecast": False,
    "forecastPendingAllowed": 1,
    "forecastUnknownAllowed": 2,
    "forecastPatience": 0,
    "forecastTimeout": "5m",
    "forecastMemory": 1073741824,
    "schedulerConfig": "configmap:s",
    "annotateNodes": True,
    "preRebootNodeLabels": ["a=b"],
    "postRebootNodeLabels": "c=d,e=f",
    "notifyUrl": ["discord://token@1", "discord://token@2"],
    "slackHookUrl": "https://hooks.slack.com/services/T0/B0/x",
    "notifyTimeout": "16s",
    "notifyUrlFile": ["/etc/careen/messages/urls", "/etc/careen/more"],
    "slackUsername": "{{ .Release.Name }}",
    "slackChannel": "c",
    "messageTemplateDrain": "a: %s",
    "messageTemplateReboot": "100%% %s",
    "messageTemplateUncordon": "\"%s\" 'x'",
    "messageTemplateBlocked": "{node} {{ b }}",
    "messageTemplateHalted": "{reason}",
    "messageTemplateDone": "{nodes}",
    "notifyOn": ["done", "halted"],
    "notifyBlockedAfter": "2h",
    "clusterName": "prod",
    "metricsHost": "0.0.0.0",
    "metricsPort": 9000,
    "sleep": "off",
    "logFormat": "json",
    "logLevel": "debug",
}

NAMES = {key(name): name for name in SETTINGS if place(name) != "chart"}
"""The chart's keys of the settings, each with the setting's name in the tree."""


def parsed(chart_key: str) -> Any:
    """The value in GIVEN as the agent must understand it."""
    kind, value = SETTINGS[NAMES[chart_key]].kind, GIVEN[chart_key]
    value = {"slackUsername": "careen", "forecast": "off"}.get(chart_key, value)
    texts = [
        each if isinstance(each, str) else json.dumps(each) for each in (value if isinstance(value, list) else [value])
    ]
    return tuple(kind.parse(part) for text in texts for part in kind.split(text)) if kind.many else kind.parse(texts[0])
