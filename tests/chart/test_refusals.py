"""Tests that helm refuses invalid values with a message that names the remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.helm import said, template

pytestmark = pytest.mark.cluster


def case(name: str, values: str, *sentence: str) -> Any:
    return pytest.param(yaml.safe_load(values), sentence, id=name)


FORMS = [
    case("a typing error", "configuration: {rebotDays: [mo]}", "rebotDays", "not allowed"),
    case("a typing error above", "tolerationz: []", "tolerationz", "not allowed"),
    case("a duration without a unit", "configuration: {drainTimeout: '30'}", "/configuration/drainTimeout"),
    case("a number without a unit", "configuration: {lockReleaseDelay: 30}", "/configuration/lockReleaseDelay"),
    case("a deadline of nothing", "configuration: {rebootDeadline: 0}", "/configuration/rebootDeadline"),
    case("no such day", "configuration: {rebootDays: [someday]}", "/configuration/rebootDays"),
    case("no such word", "configuration: {rebootMethod: kexec}", "/configuration/rebootMethod"),
    case("no node at once", "configuration: {concurrency: 0}", "/configuration/concurrency"),
    case(
        "a label without a value", "configuration: {preRebootNodeLabels: [key-]}", "/configuration/preRebootNodeLabels"
    ),
    case(
        "two names in a message",
        "configuration: {messageTemplateDrain: '%s %s'}",
        "/configuration/messageTemplateDrain",
    ),
    case(
        "an address without a scheme", "configuration: {prometheusUrl: prometheus:9090}", "/configuration/prometheusUrl"
    ),
    case("an invalid switch", "configuration: {forceReboot: sometimes}", "/configuration/forceReboot"),
    case("an unknown flag", "extraArgs: {force-rebot: true}", "force-rebot"),
    case("the lock's place", "configuration: {dsName: other}", "dsName"),
    case("an init container that is a map", "initContainers: {name: x}", "/initContainers"),
]


@pytest.mark.parametrize(("values", "words"), FORMS)
def test_the_schema_of_the_chart_refuses_an_invalid_value(
    tmp_path: Path, values: dict[str, Any], words: tuple[str, ...]
) -> None:
    told = said(template(tmp_path, values=values)).replace("'", "").replace('"', "")
    for word in words:
        assert word in told or word.removeprefix("/").replace("/", ".") in told, told


SENTENCES = [
    case(
        "kured's image",
        "image: {repository: ghcr.io/kubereboot/kured}",
        "is kured's own image",
        "give the one that you built",
    ),
    case(
        "a policy that is no more",
        "podSecurityPolicy: {create: true}",
        "no PodSecurityPolicy since 1.25",
        "label the namespace",
    ),
    case("autolock", "autolock: {enabled: true}", "no CronJob", "configuration.rebootDays"),
    case("an old name", "configuration: {annotationTtl: 5m}", "renamed it to lockTtl", "remove it"),
    case(
        "the lock as a value",
        'dsAnnotations: {weave.works/kured-node-lock: \'{"nodeID":"manual"}\'}',
        "this is the lock",
        "careen lock pause",
    ),
    case(
        "another lock as a value",
        "{configuration: {lockAnnotation: a.b/c}, dsAnnotations: {a.b/c: x}}",
        "dsAnnotations.a.b/c: this is the lock",
    ),
    case(
        "two places for URLs",
        "{notifyUrlSecret: a, extraEnvVars: [{name: CAREEN_NOTIFY_URL_FILE, value: /x}]}",
        "CAREEN_NOTIFY_URL_FILE and notifyUrlSecret are both given",
    ),
    case("the selector's label", "podLabels: {name: other}", "selects its pods by this label"),
    case(
        "a sentinel in the container",
        "{configuration: {useRebootSentinelHostPath: false, rebootSentinel: /a/x}, volumeMounts: [{mountPath: /a}]}",
        "careen looks on the host",
        "configuration.hostRoot",
    ),
    case(
        "twice: flag",
        "{configuration: {drainTimeout: 5m}, extraArgs: {drain-timeout: 6m}}",
        "configuration.drainTimeout is given as well",
    ),
    case(
        "twice: variable",
        "{configuration: {drainTimeout: 5m}, extraEnvVars: [{name: KURED_DRAIN_TIMEOUT, value: 6m}]}",
        "KURED_DRAIN_TIMEOUT and configuration.drainTimeout are both given",
    ),
    case(
        "twice: both more",
        "{extraArgs: {drain-timeout: 5m}, extraEnvVars: [{name: CAREEN_DRAIN_TIMEOUT, value: 6m}]}",
        "CAREEN_DRAIN_TIMEOUT and extraArgs.drain-timeout are both given",
    ),
    case(
        "twice: a value like the default",
        "{configuration: {drainTimeout: 0}, extraEnvVars: [{name: KURED_DRAIN_TIMEOUT, value: 6m}]}",
        "KURED_DRAIN_TIMEOUT and configuration.drainTimeout are both given",
    ),
    case(
        "a variable twice",
        "extraEnvVars: [{name: A, value: '1'}, {name: B, value: '1'}, {name: A, value: '1'}]",
        "extraEnvVars: A is given twice; keep one of them",
    ),
    case(
        "a variable of both names",
        "extraEnvVars: [{name: KURED_PERIOD, value: 1h}, {name: CAREEN_PERIOD, value: 1h}]",
        "CAREEN_PERIOD and KURED_PERIOD are both given",
    ),
    case("an unknown variable", "extraEnvVars: [{name: KURED_DRAIN_TIMEOUTS, value: 6m}]", "is no setting"),
    case("whose agent", "extraEnvVars: [{name: KURED_NODE_ID, value: x}]", "what the chart itself tells"),
    case(
        "the lock's place as a flag", "extraArgs: {ds-name: other}", "what the chart itself tells", "fullnameOverride"
    ),
    case(
        "a secret as a flag", "extraArgs: {notify-url: 'discord://a@1'}", "this is a secret", "configuration.notifyUrl"
    ),
    case(
        "two secrets", "{existingSecret: mine, configuration: {notifyUrl: 'discord://a@1'}}", "put it into your Secret"
    ),
    case("the settings as a key", "configMapData: {config.yaml: x}", "give them under configuration"),
    case(
        "only alerts that match nothing",
        "configuration: {alertFilterMatchOnly: true}",
        "without alertFilterRegexp no alert",
    ),
    case(
        "alerts without a source",
        "configuration: {alertFiringOnly: true}",
        "without prometheusUrl or alertmanagerUrl no alert",
    ),
    case("force past nothing", "configuration: {forceRebootPastBudgets: true}", "does nothing without forceReboot"),
    case(
        "a user without a password",
        "configuration: {prometheusUrl: 'https://a', prometheusUsername: me}",
        "needs prometheusPasswordFile",
    ),
    case(
        "an address that probes cannot reach",
        "configuration: {metricsHost: 127.0.0.1}",
        "the kubelet asks the pod's own address",
    ),
    case("any port", "configuration: {metricsPort: 0}", "0 is any free port"),
    case(
        "a command beside the signal",
        "{components: {signal: true}, configuration: {rebootMethod: command}}",
        "it reboots by a signal, and rebootMethod says command",
    ),
    case("both ends", "components: {signal: true, privileged: true}", "choose one"),
    case(
        "a command without a way",
        "{components: {signal: true}, configuration: {rebootSentinelCommand: x}}",
        "rebootSentinelCommand needs the host's namespaces",
    ),
    case(
        "another sentinel beside the units",
        "{components: {signal: true}, configuration: {rebootSentinel: /x}}",
        "it says --reboot-sentinel itself",
        "let the host's two units follow it",
    ),
    case(
        "kured's rights for signals",
        "containerSecurityContext: {privileged: false, capabilities: {add: [CAP_KILL], drop: ['*']}}",
        "lacks SYS_ADMIN, SYS_CHROOT, SYS_PTRACE",
        "components.signal",
    ),
    case("not root", "containerSecurityContext: {privileged: true, runAsUser: 1000}", "belongs to root"),
    case("not root by the pod", "podSecurityContext: {runAsNonRoot: true}", "belongs to root"),
    case("no control plane", "tolerateAllTaints: false", "no control plane"),
    case("too little memory", "resources: {limits: {memory: 128Mi}}", "less than the 672Mi", "leave resources out"),
    case(
        "too little for this forecast",
        "{resources: {limits: {memory: 1Gi}}, configuration: {forecastMemory: 1Gi}}",
        "less than the 1184Mi",
    ),
    case("too little as an exponent", "resources: {limits: {memory: '6e8'}}", "6e8 is less than the 672Mi"),
    case("too little in thousandths", "resources: {limits: {memory: 1073741824m}}", "1073741824m is less than"),
    case("no quantity", "resources: {limits: {memory: 2GB}}", "2GB is no quantity of memory", "write for example 1Gi"),
    case("less than nothing", "resources: {limits: {memory: -1Gi}}", "-1Gi is no quantity of memory"),
]


@pytest.mark.parametrize(("values", "words"), SENTENCES)
def test_the_chart_refuses_contradicting_values_and_shows_the_remedy(
    tmp_path: Path, values: dict[str, Any], words: tuple[str, ...]
) -> None:
    told = said(template(tmp_path, values=values))
    for word in words:
        assert word in told, told


def test_the_chart_reports_all_problems_at_once(tmp_path: Path) -> None:
    values = {
        "podSecurityPolicy": {"create": True},
        "resources": {"limits": {"memory": "64Mi"}},
        "podLabels": {"name": "x"},
    }
    told = said(template(tmp_path, values=values))
    assert all(each in told for each in ("podSecurityPolicy", "resources.limits.memory", "podLabels.name"))


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(
            {"resources": {"limits": {"memory": "200Mi"}}, "configuration": {"forecast": "off"}}, id="without forecasts"
        ),
        pytest.param({"resources": {"limits": {"memory": 1073741824}}}, id="in bytes"),
        pytest.param({"resources": {"limits": {"memory": "0.8G"}}}, id="a fraction"),
        *(
            pytest.param({"resources": {"limits": {"memory": text}}}, id=f"memory {text}")
            for text in ("1e9", "1E9", "1.e+9", "1Pi", "1Ei", "1E", "2P", "+1Gi", ".7Gi", "1073741824000m", 1e9)
        ),
        pytest.param({"containerSecurityContext": {"capabilities": {"add": ["ALL"]}}}, id="all capabilities"),
        pytest.param({"tolerateAllTaints": False, "tolerations": [{"operator": "Exists"}]}, id="other tolerations"),
        pytest.param(
            {
                "extraEnvVars": [{"name": "KURED_PROMETHEUS_URL", "value": "http://p"}],
                "configuration": {"alertFiringOnly": True},
            },
            id="Prometheus by variable",
        ),
        pytest.param({"configuration": {"metricsHost": "127.0.0.1"}, "hostNetwork": True}, id="the host's own address"),
    ],
)
def test_the_chart_accepts_a_valid_combination_of_values(tmp_path: Path, values: dict[str, Any]) -> None:
    done = template(tmp_path, values=values)
    assert done.returncode == 0, done.stderr
