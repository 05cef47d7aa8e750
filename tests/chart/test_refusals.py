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
    case("a misspelled setting", "configuration: {rebotDays: [mo]}", "rebotDays", "not allowed"),
    case("a misspelled top-level value", "tolerationz: []", "tolerationz", "not allowed"),
    case("a duration without a unit", "configuration: {drainTimeout: '30'}", "/configuration/drainTimeout"),
    case("a number without a unit", "configuration: {lockReleaseDelay: 30}", "/configuration/lockReleaseDelay"),
    case("a deadline of zero", "configuration: {rebootDeadline: 0}", "/configuration/rebootDeadline"),
    case("an hour after 23", "configuration: {startTime: '25:00'}", "/configuration/startTime"),
    case("a minute after 59", "configuration: {endTime: '9:75'}", "/configuration/endTime"),
    case("13 o'clock in the afternoon", "configuration: {endTime: 13pm}", "/configuration/endTime"),
    case("an unknown time zone", "configuration: {timeZone: Europe/Berln}", "/configuration/timeZone"),
    case("an abbreviation as time zone", "configuration: {timeZone: CEDT}", "/configuration/timeZone"),
    case("an unknown day", "configuration: {rebootDays: [someday]}", "/configuration/rebootDays"),
    case("an unknown reboot method", "configuration: {rebootMethod: kexec}", "/configuration/rebootMethod"),
    case("a concurrency of zero", "configuration: {concurrency: 0}", "/configuration/concurrency"),
    case(
        "a label without a value", "configuration: {preRebootNodeLabels: [key-]}", "/configuration/preRebootNodeLabels"
    ),
    case(
        "a message template with two placeholders",
        "configuration: {messageTemplateDrain: '%s %s'}",
        "/configuration/messageTemplateDrain",
    ),
    case(
        "an address without a scheme", "configuration: {prometheusUrl: prometheus:9090}", "/configuration/prometheusUrl"
    ),
    case("an invalid switch", "configuration: {forceReboot: sometimes}", "/configuration/forceReboot"),
    case("an unknown flag", "extraArgs: {force-rebot: true}", "force-rebot"),
    case("the name of the DaemonSet as a setting", "configuration: {dsName: other}", "dsName"),
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
        "is kured's own image, which is not careen; give the one that you built and pushed",
    ),
    case(
        "a PodSecurityPolicy",
        "podSecurityPolicy: {create: true}",
        "no PodSecurityPolicy since 1.25",
        "label the namespace",
    ),
    case("kured's autolock", "autolock: {enabled: true}", "no CronJob", "configuration.rebootDays"),
    case(
        "the old name of a value",
        "configuration: {annotationTtl: 5m}",
        "configuration.annotationTtl: kured itself renamed it to lockTtl",
        "remove it",
    ),
    case(
        "dsAnnotations contains the lock annotation",
        'dsAnnotations: {weave.works/kured-node-lock: \'{"nodeID":"manual"}\'}',
        "this annotation is the lock",
        "careen lock pause",
    ),
    case(
        "dsAnnotations contains the annotation that lockAnnotation names",
        "{configuration: {lockAnnotation: a.b/c}, dsAnnotations: {a.b/c: x}}",
        "dsAnnotations.a.b/c: this annotation is the lock",
    ),
    case(
        "message URLs in two places",
        "{notifyUrlSecret: a, extraEnvVars: [{name: CAREEN_NOTIFY_URL_FILE, value: /x}]}",
        "CAREEN_NOTIFY_URL_FILE and notifyUrlSecret are both given",
    ),
    case(
        "another value for the label in the DaemonSet's selector",
        "podLabels: {name: other}",
        "podLabels.name: the DaemonSet selects its pods by this label",
    ),
    case(
        "a sentinel file on a volume of the container",
        "{configuration: {useRebootSentinelHostPath: false, rebootSentinel: /a/x}, volumeMounts: [{mountPath: /a}]}",
        "kured looks for rebootSentinel in its container, and careen looks on the host",
        "configuration.hostRoot",
    ),
    case(
        "a setting given as a value and as a flag",
        "{configuration: {drainTimeout: 5m}, extraArgs: {drain-timeout: 6m}}",
        "configuration.drainTimeout is given as well",
    ),
    case(
        "a setting given as a value and as a variable",
        "{configuration: {drainTimeout: 5m}, extraEnvVars: [{name: KURED_DRAIN_TIMEOUT, value: 6m}]}",
        "KURED_DRAIN_TIMEOUT and configuration.drainTimeout are both given",
    ),
    case(
        "a setting given as a flag and as a variable",
        "{extraArgs: {drain-timeout: 5m}, extraEnvVars: [{name: CAREEN_DRAIN_TIMEOUT, value: 6m}]}",
        "CAREEN_DRAIN_TIMEOUT and extraArgs.drain-timeout are both given",
    ),
    case(
        "a setting given as a variable and as a value that equals the default",
        "{configuration: {drainTimeout: 0}, extraEnvVars: [{name: KURED_DRAIN_TIMEOUT, value: 6m}]}",
        "KURED_DRAIN_TIMEOUT and configuration.drainTimeout are both given",
    ),
    case(
        "a repeated variable",
        "extraEnvVars: [{name: A, value: '1'}, {name: B, value: '1'}, {name: A, value: '1'}]",
        "extraEnvVars: A is given twice; keep one of them",
    ),
    case(
        "a variable with both prefixes, KURED_ and CAREEN_",
        "extraEnvVars: [{name: KURED_PERIOD, value: 1h}, {name: CAREEN_PERIOD, value: 1h}]",
        "CAREEN_PERIOD and KURED_PERIOD are both given",
    ),
    case("an unknown variable", "extraEnvVars: [{name: KURED_DRAIN_TIMEOUTS, value: 6m}]", "is no setting"),
    case(
        "the node id as a variable",
        "extraEnvVars: [{name: KURED_NODE_ID, value: x}]",
        "the chart itself sets KURED_NODE_ID",
    ),
    case(
        "the name of the DaemonSet as a flag",
        "extraArgs: {ds-name: other}",
        "extraArgs.ds-name: the chart itself sets this flag",
        "fullnameOverride",
    ),
    case(
        "a switch without a value, as kured's chart takes it",
        "extraArgs: {annotate-nodes: ''}",
        "extraArgs.annotate-nodes: has no value; write true or false for a switch",
    ),
    case(
        "a secret as a flag", "extraArgs: {notify-url: 'discord://a@1'}", "this is a secret", "configuration.notifyUrl"
    ),
    case(
        "a message URL in addition to an existing Secret",
        "{existingSecret: mine, configuration: {notifyUrl: 'discord://a@1'}}",
        "configuration.notifyUrl or configuration.slackHookUrl is given as well as existingSecret",
        "move the URL into your Secret",
    ),
    case(
        "the settings as text of the ConfigMap",
        "configMapData: {config.yaml: x}",
        "the chart itself writes this key from the values under configuration",
        "give your settings under configuration",
    ),
    case(
        "alertFilterMatchOnly without an expression",
        "configuration: {alertFilterMatchOnly: true}",
        "without alertFilterRegexp no alert could ever forbid a reboot",
    ),
    case(
        "a setting for alerts without a server that reports alerts",
        "configuration: {alertFiringOnly: true}",
        "without prometheusUrl or alertmanagerUrl no alert is looked at",
    ),
    case(
        "forceRebootPastBudgets without forceReboot",
        "configuration: {forceRebootPastBudgets: true}",
        "does nothing without forceReboot",
    ),
    case(
        "a user without a password",
        "configuration: {prometheusUrl: 'https://a', prometheusUsername: me}",
        "needs prometheusPasswordFile",
    ),
    case(
        "a metrics address that probes cannot reach",
        "configuration: {metricsHost: 127.0.0.1}",
        "the kubelet sends its probes to the pod's IP address",
    ),
    case("a metrics port of zero", "configuration: {metricsPort: 0}", "0 is any free port"),
    case(
        "the reboot method `command` although the component `signal` is on",
        "{components: {signal: true}, configuration: {rebootMethod: command}}",
        "this component makes careen reboot the host by a signal, but rebootMethod is command",
    ),
    case("two contradicting components", "components: {signal: true, privileged: true}", "choose one"),
    case(
        "a sentinel command although the component `signal` is on",
        "{components: {signal: true}, configuration: {rebootSentinelCommand: x}}",
        "rebootSentinelCommand needs the host's namespaces",
    ),
    case(
        "a path of the sentinel although the component `signal` is on",
        "{components: {signal: true}, configuration: {rebootSentinel: /x}}",
        "the component signal itself sets --reboot-sentinel",
        "if the host has another sentinel, change the two units in manifests/signal/host",
    ),
    case(
        "too few capabilities",
        "containerSecurityContext: {privileged: false, capabilities: {add: [CAP_KILL], drop: ['*']}}",
        "lacks SYS_ADMIN, SYS_CHROOT, SYS_PTRACE",
        "components.signal",
    ),
    case(
        "a container user that is not root",
        "containerSecurityContext: {privileged: true, runAsUser: 1000}",
        "belongs to root",
    ),
    case("a pod user that is not root", "podSecurityContext: {runAsNonRoot: true}", "belongs to root"),
    case("no tolerations", "tolerateAllTaints: false", "no control plane"),
    case(
        "an invalid quantity of memory",
        "resources: {limits: {memory: 2GB}}",
        "2GB is no quantity of memory",
        "write for example 1Gi",
    ),
    case("a negative quantity of memory", "resources: {limits: {memory: -1Gi}}", "-1Gi is no quantity of memory"),
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
        "resources": {"limits": {"memory": "64MB"}},
        "podLabels": {"name": "x"},
    }
    told = said(template(tmp_path, values=values))
    assert all(each in told for each in ("podSecurityPolicy", "resources.limits.memory", "podLabels.name"))


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(
            {"resources": {"limits": {"memory": "200Mi"}}, "configuration": {"forecast": "off"}},
            id="a small memory limit without forecasts",
        ),
        *(
            pytest.param({"resources": {"limits": {"memory": text}}}, id=f"a small memory limit of {text}")
            for text in ("1Mi", "64Mi", "128Mi", "6e8", "1073741824m")
        ),
        pytest.param({"resources": {"limits": {"memory": 1073741824}}}, id="a memory limit as a number of bytes"),
        pytest.param({"resources": {"limits": {"memory": "0.8G"}}}, id="a memory limit with a decimal fraction"),
        *(
            pytest.param({"resources": {"limits": {"memory": text}}}, id=f"a memory limit of {text}")
            for text in ("1e9", "1E9", "1.e+9", "1Pi", "1Ei", "1E", "2P", "+1Gi", ".7Gi", "1073741824000m", 1e9)
        ),
        pytest.param(
            {"containerSecurityContext": {"capabilities": {"add": ["ALL"]}}}, id="a container with all capabilities"
        ),
        pytest.param(
            {"tolerateAllTaints": False, "tolerations": [{"operator": "Exists"}]},
            id="own tolerations instead of the default toleration",
        ),
        pytest.param(
            {
                "extraEnvVars": [{"name": "KURED_PROMETHEUS_URL", "value": "http://p"}],
                "configuration": {"alertFiringOnly": True},
            },
            id="the Prometheus URL in an environment variable",
        ),
        pytest.param(
            {"configuration": {"metricsHost": "127.0.0.1"}, "hostNetwork": True},
            id="metrics on the host's loopback address",
        ),
    ],
)
def test_the_chart_accepts_a_valid_combination_of_values(tmp_path: Path, values: dict[str, Any]) -> None:
    done = template(tmp_path, values=values)
    assert done.returncode == 0, done.stderr
