"""Tests the sources of settings (flags, environment, ConfigMap): which source has precedence, and which errors stop the
start of an agent."""

from __future__ import annotations

from typing import Any

import pytest

from careen.core.facts.selectors import Selector
from careen.settings.sources import BadSettings, Resolved, Source, resolve
from careen.settings.tree import SETTINGS


def settle(
    flags: dict[str, Any] | None = None,
    environment: dict[str, str] | None = None,
    config_map: dict[str, Any] | None = None,
) -> Resolved:
    """Resolve the settings of the agent on n1 from these sources."""
    written = {name: value if isinstance(value, tuple) else (value,) for name, value in (flags or {}).items()}
    return resolve(
        flags={"node_id": ("n1",), **written},
        environment=environment or {},
        config_map=config_map,
        config_map_name="careen/careen",
    )


def problems(**given: Any) -> tuple[str, ...]:
    with pytest.raises(BadSettings) as caught:
        settle(**given)
    return caught.value.problems


ALL = {
    "flags": {"period": "1m"},
    "environment": {"CAREEN_PERIOD": "2m", "KURED_PERIOD": "3m"},
    "config_map": {"period": "4m"},
}


@pytest.mark.parametrize(
    ("without", "seconds", "source", "where"),
    [
        ((), 60, Source.FLAG, "--period"),
        (("flags",), 120, Source.CAREEN_ENVIRONMENT, "CAREEN_PERIOD"),
        (("flags", "careen"), 180, Source.KURED_ENVIRONMENT, "KURED_PERIOD"),
        (("flags", "environment"), 240, Source.CONFIG_MAP, "`period` in ConfigMap careen/careen"),
        (("flags", "environment", "config_map"), 3600, Source.DEFAULT, "default"),
    ],
)
def test_the_source_with_the_highest_precedence_is_used_and_reported(
    without: tuple[str, ...], seconds: float, source: Source, where: str
) -> None:
    given: dict[str, Any] = {name: value for name, value in ALL.items() if name not in without}
    if "careen" in without:
        given["environment"] = {"KURED_PERIOD": "3m"}
    resolved = settle(**given)
    assert resolved.settings.period == seconds
    assert (resolved.origins["period"].source, resolved.origins["period"].where) == (source, where)


SLACK = "slack://T00000000/B00000000/SECRETWORDSECRETWORDSECR"


def test_a_flag_that_overrides_an_environment_variable_with_another_value_is_reported() -> None:
    assert settle({"period": "1m"}, {"KURED_PERIOD": "3m"}).notes == (
        "--period is given as a flag (1m) and as KURED_PERIOD (3m): the flag is used (kured would use the variable)",
    )
    assert settle({"period": "1m"}, {"KURED_PERIOD": "1m"}).notes == ()
    assert settle({}, {"KURED_PERIOD": "1m"}).notes == ()


def test_the_report_of_two_different_secrets_shows_neither_secret() -> None:
    notes = settle({"notify_url": SLACK}, {"KURED_NOTIFY_URL": SLACK.replace("T0", "T1")}).notes
    assert [note[:32] for note in notes] == ["--notify-url is given as a flag ", "--notify-url contains a secret a"]
    assert "SECRET" not in "".join(notes)


@pytest.mark.parametrize(
    "given",
    [
        {"flags": {"notify_url": f"{SLACK}/more"}},
        {"environment": {"CAREEN_NOTIFY_URL": f"{SLACK}/more"}},
        {"config_map": {"notify-url": [SLACK, f"{SLACK}/more"]}},
        {"flags": {"slack_hook_url": "https://example.com/SECRETWORD"}},
        {"flags": {"prometheus_url": "http://name:SECRETWORD@host:port"}},
    ],
)
def test_the_report_of_an_invalid_secret_does_not_show_the_secret(given: dict[str, Any]) -> None:
    (problem,) = problems(**given)
    assert "expected" in problem
    assert "SECRET" not in problem


def test_a_secret_on_the_command_line_causes_a_warning() -> None:
    assert settle(environment={"CAREEN_NOTIFY_URL": SLACK}).notes == ()
    (note,) = settle({"notify_url": SLACK}).notes
    assert (
        note == "--notify-url contains a secret and is on the command line, where everyone on the host can read "
        "the secret: give it as CAREEN_NOTIFY_URL, from a Secret"
    )


def test_messages_may_be_sent_to_several_notify_urls() -> None:
    settings = settle({"notify_url": (SLACK, "logger://")}).settings
    assert [target.service for target in settings.notify_url] == ["slack", "logger"]
    settings = settle(environment={"KURED_NOTIFY_URL": f"{SLACK}\nlogger://"}).settings
    assert [target.service for target in settings.notify_url] == ["slack", "logger"]


@pytest.mark.parametrize("name", [name for name, setting in SETTINGS.items() if setting.is_kureds])
def test_every_flag_of_kured_can_be_set_by_kureds_environment_variable(name: str) -> None:
    values = {
        "notify_url": SLACK,
        "concurrency": "2",
        "reboot_signal": "9",
        "metrics_port": "1",
        "prometheus_url": "http://x",
        "drain_grace_period": "5",
        "skip_wait_for_delete_timeout": "5",
    }
    by_metavar = {
        "DURATION": "7m",
        "BOOL": "true",
        "TEXT": "x",
        "PATH": "/x",
        "KEY": "example.com/x",
        "REGEXP": "x",
        "SELECTOR": "a=b",
        "DAYS": "mo",
        "KEY=VALUE,…": "a=b",
        "NAME": "x",
        "NAMESPACE": "x",
        "URL": "https://hooks.slack.com/services/T/B/C",
        "TIME": "3:00",
        "ZONE": "Europe/Berlin",
        "command|signal": "signal",
        "text|json": "json",
    }
    environment = {f"KURED_{name.upper()}": values.get(name) or by_metavar[SETTINGS[name].kind.metavar]}
    also = {"alert_filter_regexp": "x", "prometheus_url": "http://p"} if name.startswith("alert") else {}
    resolved = settle({key: value for key, value in also.items() if key != name}, environment)
    if name != "node_id":
        assert resolved.origins[name].source is Source.KURED_ENVIRONMENT
        assert getattr(resolved.settings, name) != resolve(
            flags={"node_id": ("n1",)}, environment={}
        ).settings.__getattribute__(name)


def test_kureds_environment_variable_sets_the_blocking_pod_selector() -> None:
    """kured itself ignores KURED_BLOCKING_POD_SELECTOR, because it cannot read this type of flag from the environment.
    Under kured, a blocking pod would therefore not keep the node from rebooting."""
    settings = settle(environment={"KURED_BLOCKING_POD_SELECTOR": "app=db,tier=x\napp=cache"}).settings
    assert settings.blocking_pod_selector == (Selector.parse("app=db,tier=x"), Selector.parse("app=cache"))


@pytest.mark.parametrize(
    ("written", "days"),
    [(("mo,tu",), (0, 1)), (("mo", "tu"), (0, 1)), (("",), ())],
    ids=["one flag with commas", "a repeated flag", "an empty flag means no days"],
)
def test_list_settings_may_be_repeated_or_separated_by_commas(written: tuple[str, ...], days: tuple[int, ...]) -> None:
    assert settle({"reboot_days": written}).settings.reboot_days == days


def test_a_list_given_as_a_flag_replaces_the_list_in_the_environment_variable() -> None:
    """kured, in contrast, combines the values of the flag and of the environment variable."""
    assert settle({"reboot_days": "mo"}, {"KURED_REBOOT_DAYS": "tu"}).settings.reboot_days == (0,)


def test_a_config_map_accepts_every_yaml_type() -> None:
    settings = settle(
        config_map={
            "concurrency": 3,
            "force-reboot": True,
            "drain-timeout": "5m",
            "reboot-days": ["mo", "tu"],
            "blocking-pod-selector": ["app=db", "app=cache"],
            "drain-delay": 0,
            "prefer-no-schedule-taint": None,
            "budget": ["zone=1"],
        }
    ).settings
    assert (settings.concurrency, settings.force_reboot, settings.drain_timeout, settings.reboot_days) == (
        3,
        True,
        300.0,
        (0, 1),
    )
    assert (
        len(settings.blocking_pod_selector),
        settings.drain_delay,
        settings.prefer_no_schedule_taint,
        len(settings.budget),
    ) == (2, 0.0, "", 1)


BAD = [
    pytest.param({"flags": {"period": "1x"}}, "--period='1x': expected a duration", id="an invalid value of a flag"),
    pytest.param(
        {"environment": {"KURED_PERIOD": "often"}},
        "KURED_PERIOD is 'often': expected a duration",
        id="an invalid value of kured's variable",
    ),
    pytest.param(
        {"config_map": {"concurrency": 0}},
        "`concurrency` in ConfigMap careen/careen is '0': expected a whole number of at least 1",
        id="an invalid value in the ConfigMap",
    ),
    pytest.param(
        {"config_map": {"windwo": 1}},
        "`windwo` in ConfigMap careen/careen is not a setting",
        id="an unknown key in the ConfigMap",
    ),
    pytest.param({"config_map": {"perid": "1m"}}, "did you mean period?", id="an unknown key similar to a known key"),
    pytest.param(
        {"config_map": {"node-id": "n2"}},
        "must be known before the ConfigMap can be read",
        id="a key that is needed before the ConfigMap is read",
    ),
    pytest.param(
        {"config_map": {"period": {"hours": 1}}}, "expected a text, a number", id="a mapping instead of one value"
    ),
    pytest.param(
        {"config_map": {"period": ["1m", "2m"]}}, "expected one value, not a list", id="a list instead of one value"
    ),
    pytest.param(
        {"environment": {"KURED_BLOCKING_POD_SELECTR": "app=db"}},
        "did you mean KURED_BLOCKING_POD_SELECTOR?",
        id="an unknown variable of kured",
    ),
    pytest.param(
        {"environment": {"CAREEN_WINDOW": "x"}}, "CAREEN_WINDOW is not a setting", id="an unknown variable of careen"
    ),
    pytest.param(
        {"environment": {"KURED_FORECAST": "off"}},
        "KURED_FORECAST is not a setting",
        id="a setting of careen with kured's prefix",
    ),
    pytest.param({"flags": {"node_id": ""}}, "the agent does not know which Node it serves", id="an empty node name"),
    pytest.param({"flags": {"reboot_command": " "}}, "--reboot-command is empty", id="an empty command"),
    pytest.param(
        {"flags": {"boot_id_file": ""}},
        "could not find out whether the host rebooted",
        id="an empty path to the file with the boot id",
    ),
    pytest.param(
        {"config_map": {"reboot-deadline": 0}},
        "expected a duration longer than 0",
        id="a deadline of zero",
    ),
    pytest.param(
        {"flags": {"prometheus_url": "prometheus:9090"}},
        "expected an address such as http://",
        id="a URL without http",
    ),
    pytest.param(
        {"flags": {"reboot_sentinel": ""}}, "could not find out when a reboot is needed", id="an empty sentinel path"
    ),
    pytest.param(
        {"flags": {"alert_filter_match_only": "true", "prometheus_url": "http://p"}},
        "no alert could ever forbid",
        id="--alert-filter-match-only without a filter",
    ),
    pytest.param(
        {"flags": {"alert_filter_regexp": "x"}}, "need --prometheus-url", id="an alert filter without a Prometheus"
    ),
    pytest.param(
        {"flags": {"settle_timeout": "0"}}, "would halt the roll-out after every reboot", id="a settle timeout of zero"
    ),
    pytest.param(
        {"flags": {"force_reboot_past_budgets": "true"}},
        "needs --force-reboot",
        id="--force-reboot-past-budgets without --force-reboot",
    ),
    pytest.param(
        {"flags": {"budget": ("zone=1", "zone=2")}}, "two limits for the same group", id="two budgets for one group"
    ),
    pytest.param(
        {"flags": {"node_id": "A_B"}},
        "--node-id='A_B': expected the name of a Kubernetes object",
        id="an invalid Node name",
    ),
    pytest.param(
        {"environment": {"CAREEN_DS_NAMESPACE": "a/b"}},
        "expected the name of a namespace",
        id="an invalid namespace name",
    ),
    pytest.param(
        {"config_map": {"blocking-pod-selector": "A_B!/x=1"}},
        "is not a label selector",
        id="an invalid label selector",
    ),
    pytest.param(
        {"config_map": {"drain-pod-selector": f"app={'x' * 64}"}},
        "is not a label value",
        id="a label value that is too long",
    ),
    pytest.param({"flags": {"prefer_no_schedule_taint": "a..b/c"}}, "expected a key", id="an invalid taint"),
    pytest.param(
        {"flags": {"post_reboot_node_labels": "a=1,a=2"}},
        "--post-reboot-node-labels sets the label `a` twice",
        id="one label with two values",
    ),
    pytest.param(
        {"flags": {"scheduler_config": "configmap:x", "config_map": ""}},
        "but --config-map is empty",
        id="a ConfigMap key without a ConfigMap",
    ),
    pytest.param({"flags": {"reboot_command": "sh -c 'x"}}, "balanced quotes", id="a command with an unclosed quote"),
    pytest.param(
        {"flags": {"prometheus_token_file": "/t"}},
        "--prometheus-token-file needs --prometheus-url",
        id="a token without a Prometheus",
    ),
    pytest.param(
        {"flags": {"prometheus_url": "https://p", "prometheus_username": "a"}},
        "belong together",
        id="a user without a password",
    ),
    pytest.param(
        {"flags": {"prometheus_url": "https://p", "prometheus_client_key_file": "/k"}},
        "needs --prometheus-client-certificate-file",
        id="a client key without its certificate",
    ),
    pytest.param(
        {
            "flags": {
                "prometheus_url": "https://p",
                "prometheus_token_file": "/t",
                "prometheus_username": "a",
                "prometheus_password_file": "/p",
            }
        },
        "two kinds of credentials",
        id="both a token and a user name",
    ),
    pytest.param(
        {"flags": {"pre_reboot_node_labels": "key-"}}, "expected a label as key=value", id="a label without a value"
    ),
]


@pytest.mark.parametrize(("given", "words"), BAD)
def test_an_invalid_setting_stops_the_start_with_a_message(given: dict[str, Any], words: str) -> None:
    (problem,) = problems(**given)
    assert words in problem


def test_all_invalid_settings_are_reported_at_once() -> None:
    found = problems(
        flags={"period": "x"}, environment={"CAREEN_CONCURRENCY": "0", "KURED_X": "1"}, config_map={"y": 1}
    )
    assert len(found) == 4


def test_an_invalid_value_is_refused_even_if_another_source_overrides_it() -> None:
    assert problems(flags={"period": "1m"}, config_map={"period": "x"})


def test_environment_variables_of_a_kubernetes_service_are_not_settings() -> None:
    settle(
        environment={
            "CAREEN_SERVICE_HOST": "10.0.0.1",
            "CAREEN_SERVICE_PORT": "8080",
            "CAREEN_SERVICE_PORT_METRICS": "8080",
            "CAREEN_PORT": "tcp://10.0.0.1:8080",
            "CAREEN_PORT_8080_TCP": "x",
            "CAREEN_PORT_8080_TCP_PROTO": "tcp",
            "CAREEN_PORT_8080_TCP_ADDR": "x",
            "KURED_SERVICE_HOST": "x",
            "PATH": "/bin",
        }
    )


@pytest.mark.parametrize("prefix", ["CAREEN", "KURED"])
@pytest.mark.parametrize("service", ["METRICS", "NODE_ID", "X"])
@pytest.mark.parametrize("address", ["10.0.0.1", "fd00::1"])
def test_variables_of_a_kubernetes_service_such_as_careen_metrics_are_ignored(
    prefix: str, service: str, address: str
) -> None:
    """For a Service named `careen-metrics`, Kubernetes sets CAREEN_METRICS_PORT, which is also the variable of
    --metrics-port.
    """
    link = f"{prefix}_{service}"
    url = f"tcp://[{address}]:8080" if ":" in address else f"tcp://{address}:8080"
    environment = {
        f"{link}_SERVICE_HOST": address,
        f"{link}_SERVICE_PORT": "8080",
        f"{link}_SERVICE_PORT_METRICS": "8080",
        f"{link}_PORT": url,
        f"{link}_PORT_8080_TCP": url,
        f"{link}_PORT_8080_TCP_PROTO": "tcp",
        f"{link}_PORT_8080_TCP_PORT": "8080",
        f"{link}_PORT_8080_TCP_ADDR": address,
    }
    resolved = settle(environment=environment)
    assert (resolved.settings.metrics_port, resolved.notes) == (8080, ())
    assert resolved.origins["metrics_port"].source is Source.DEFAULT


def test_kured_metrics_port_is_read_as_a_setting_if_its_value_is_a_port_number() -> None:
    """For a Service named `kured-metrics`, Kubernetes sets the environment variable KURED_METRICS_PORT to an address
    such as tcp://10.0.0.1:8080. If the pod's manifest sets KURED_METRICS_PORT to 9090, the container gets 9090."""
    environment = {"KURED_METRICS_SERVICE_HOST": "10.0.0.1", "KURED_METRICS_PORT": "9090"}
    assert settle(environment=environment).settings.metrics_port == 9090


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [
        ("KURED_METRIC_PORT", "9090", "KURED_METRICS_PORT"),
        ("CAREEN_METRIC_PORT", "9090", "CAREEN_METRICS_PORT"),
        ("KURED_METRICSPORT", "9090", "KURED_METRICS_PORT"),
        ("KURED_METRICS_HOST_PORT", "tcp", "KURED_METRICS_PORT"),
    ],
)
def test_a_misspelled_variable_similar_to_a_service_variable_is_refused(name: str, value: str, meant: str) -> None:
    (problem,) = problems(environment={name: value})
    assert f"the environment variable {name} is not a setting (did you mean {meant}?)" in problem


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"force_reboot": "true"}, "does nothing without --drain-timeout"),
        ({"reboot_days": ""}, "no node will ever reboot"),
        ({"prometheus_url": "http://p", "prometheus_token_file": "/t"}, "is not encrypted"),
        ({"prometheus_url": "https://a:b@p"}, "give them as --prometheus-username and --prometheus-password-file"),
        ({"lock_ttl": "30m"}, "--lock-ttl alone frees no claim"),
    ],
)
def test_a_valid_but_suspicious_setting_causes_a_warning(flags: dict[str, str], words: str) -> None:
    (note,) = settle(flags).notes
    assert words in note


def test_only_the_node_name_is_required_before_the_config_map_is_read() -> None:
    resolve(flags={"node_id": ("n1",), "alert_firing_only": ("true",)}, environment={}, is_whole=False)
    with pytest.raises(BadSettings, match="the agent does not know which Node it serves"):
        resolve(flags={}, environment={}, is_whole=False)


@pytest.mark.parametrize("key", ["reboot_command", "reboot_sentinel_comand"])
def test_a_config_map_key_with_underscores_is_reported_with_the_correct_name(key: str) -> None:
    with pytest.raises(BadSettings, match=r"is not a setting \(did you mean reboot-(sentinel-)?command\?\)"):
        resolve(flags={"node_id": ("n1",)}, environment={}, config_map={key: "x"}, config_map_name="careen/careen")


@pytest.mark.parametrize("elsewhere", ["flags", "environment"])
def test_an_overridden_config_map_setting_is_reported(elsewhere: str) -> None:
    """The flags in manifests/signal/ set the path of the sentinel file. If the ConfigMap could replace
    this path by a path without a file, no node would reboot."""
    flags = {"node_id": ("n1",)}
    environment = {}
    if elsewhere == "flags":
        flags["reboot_sentinel"] = ("/run/careen/need/reboot-required",)
    else:
        environment["CAREEN_REBOOT_SENTINEL"] = "/run/careen/need/reboot-required"
    where = "--reboot-sentinel" if elsewhere == "flags" else "CAREEN_REBOOT_SENTINEL"

    def notes(text: str) -> tuple[str, ...]:
        config_map = {"reboot-sentinel": text}
        return resolve(flags=flags, environment=environment, config_map=config_map, config_map_name="a/b").notes

    (note,) = notes("/var/run/other")
    assert note == (
        f"`reboot-sentinel` in ConfigMap a/b (/var/run/other) has no effect: {where} "
        "(/run/careen/need/reboot-required) is used; remove one of them"
    )
    assert notes("/run/careen/need/reboot-required") == ()


def test_a_teams_connector_causes_a_warning_with_its_remedy() -> None:
    url = "teams://group@tenant/alternative/SECRETWORD?host=example.webhook.office.com"
    (note,) = settle(environment={"CAREEN_NOTIFY_URL": url}).notes
    assert note.startswith(
        "--notify-url: the URL belongs to an Office 365 connector of Teams, and Microsoft has switched these "
        "connectors off"
    )
    assert "SECRET" not in note


@pytest.mark.parametrize(
    ("name", "template", "field"),
    [
        ("message_template_drain", "{node} {colour}", "{colour}"),
        ("message_template_reboot", "{nodes}", "{nodes}"),
        ("message_template_done", "{nodes} {Nodes}", "{Nodes}"),
        ("message_template_blocked", "{since}", "{since}"),
    ],
)
def test_the_refusal_of_an_unknown_template_field_lists_the_known_fields(name: str, template: str, field: str) -> None:
    (problem,) = problems(flags={name: template})
    assert (
        f"the field {field} is not known; known fields: {{node}}, {{cluster}}, {{reason}}, {{duration}}, {{forecast}}"
        in problem
    )
    assert problem.startswith(f"--{name.replace('_', '-')}=")


@pytest.mark.parametrize(
    "template", ["Draining %s", "{node} {{colour}}", '{"text": "%s"}', "{cluster} {reason} {duration} {forecast}", "%%"]
)
def test_a_template_with_known_fields_or_kureds_placeholder_is_accepted(template: str) -> None:
    flags = {"message_template_drain": template, "cluster_name": "prod"}
    assert settle(flags).settings.message_template_drain == template
    assert settle(flags).notes == ()


def test_messages_without_a_cluster_name_cause_a_warning() -> None:
    (note,) = settle({"message_template_halted": "{cluster}"}).notes
    assert note == "--message-template-halted contains the field {cluster}, but --cluster-name is empty"


def test_an_unknown_kind_of_message_in_notify_on_is_refused() -> None:
    assert settle({"notify_on": "done, halted"}).settings.notify_on == ("done", "halted")
    assert settle({"notify_on": ""}).settings.notify_on == ()
    (problem,) = problems(flags={"notify_on": "done,end"})
    assert "expected one of drain, reboot, uncordon, failed, blocked, halted, done" in problem


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"alertmanager_silence": "30m"}, "--alertmanager-silence needs --alertmanager-url"),
        (
            {"alertmanager_silence": "59s", "alertmanager_url": "http://am"},
            "--alertmanager-silence: expected 1m to 24h",
        ),
        (
            {"alertmanager_silence": "25h", "alertmanager_url": "http://am"},
            "--alertmanager-silence: expected 1m to 24h",
        ),
        (
            {"alertmanager_silence": "30m", "alertmanager_url": "http://am", "alertmanager_silence_matchers": ""},
            "--alertmanager-silence needs --alertmanager-silence-matchers",
        ),
        ({"alertmanager_silence_matchers": 'job="x"'}, "expected at least one matcher with $NODE"),
    ],
)
def test_an_invalid_silence_setting_is_refused(flags: dict[str, str], words: str) -> None:
    (problem,) = problems(flags=flags)
    assert words in problem


def test_silences_are_off_by_default_and_match_the_labels_node_and_instance() -> None:
    settings = settle().settings
    assert settings.alertmanager_silence == 0
    assert [each.text for each in settings.alertmanager_silence_matchers] == [
        'node="$NODE"',
        'instance=~"$NODE(:[0-9]+)?"',
    ]
    assert settle({"alertmanager_silence": "30m", "alertmanager_url": "http://am"}).notes == ()
