"""Tests how a changed ConfigMap affects the settings of a running agent: an edit applies as a whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from careen.core.facts.observation import Unknown
from careen.settings import last_good
from careen.settings.last_good import LastGood
from careen.settings.live import Invocation, LiveSettings, SeenConfigMap
from careen.settings.sources import BadSettings

GIVEN = Invocation(flags={"node_id": ("n1",), "drain_timeout": ("5m",)}, environment={})


# Flags that permit every setting in the ConfigMap.
TRUSTED = Invocation(
    flags={**GIVEN.flags, "config_map_may_run_commands": ("true",), "config_map_may_name_files": ("true",)},
    environment={},
)


def config(text: str, **more: str) -> SeenConfigMap:
    return SeenConfigMap(uid="u", data={"config.yaml": text, **more})


def live(text: str = "", given: Invocation = GIVEN) -> LiveSettings:
    return LiveSettings(given, config(text), config_map_name="careen/careen")


def test_without_a_config_map_the_agent_uses_flags_and_defaults() -> None:
    settings = LiveSettings(GIVEN, None, config_map_name="careen/careen").settings
    assert (settings.drain_timeout, settings.concurrency) == (300.0, 1)


def test_a_valid_config_map_edit_applies_immediately_but_flags_override_the_edit() -> None:
    there = live("concurrency: 2")
    assert there.offer(config("concurrency: 3\ndrain-timeout: 1h")) == ()
    assert (there.policy.concurrency, there.policy.drain.timeout_seconds) == (3, 300.0)


@pytest.mark.parametrize(
    "text",
    [
        "concurrency: 0",
        "concurency: 3",
        "[",
        "- a",
        "concurrency: 3\nperiod: x",
        "alert-firing-only: true",
        "a: &a [*a]",
        "text",
    ],
)
def test_an_invalid_config_map_edit_changes_nothing_and_is_reported(text: str) -> None:
    there = live("concurrency: 2")
    before = (there.settings, there.policy)
    problems = there.offer(config(text))
    assert problems
    assert all("careen/careen" in problem or "--" in problem for problem in problems)
    assert (there.settings, there.policy) == before
    assert there.offer(config("concurrency: 4")) == ()
    assert there.policy.concurrency == 4


@pytest.mark.parametrize(
    "line",
    [
        "notify-url: slack://SECRETWORD: x",
        "notify-url: [slack://SECRETWORD",
        "notify-url: *SECRETWORD",
        "notify-url: !SECRETWORD x",
        "notify-url: 'SECRETWORD",
        'notify-url: "\\SECRETWORD"',
    ],
)
def test_the_error_about_invalid_yaml_shows_the_position_but_not_the_text(line: str) -> None:
    """The message of the YAML library quotes the invalid line, which may contain a secret. careen's message must not
    quote the line, because each agent logs the message and posts it as an Event."""
    (problem,) = live().offer(config(f"concurrency: 2\n{line}\n"))
    assert "`config.yaml` in ConfigMap careen/careen is not YAML: line " in problem
    assert "SECRET" not in problem


def test_a_changed_secret_is_logged_without_its_value(caplog: pytest.LogCaptureFixture) -> None:
    there = live()
    with caplog.at_level("INFO", logger="careen"):
        assert there.offer(config("notify-url: slack://T00000000/B00000000/SECRETWORDSECRETWORDSECR")) == ()
    assert "notify-url is now slack (set) (`notify-url` in ConfigMap careen/careen)" in caplog.text
    assert "SECRET" not in caplog.text


def test_a_deleted_config_map_is_reported_and_its_last_settings_stay_in_use() -> None:
    there = live("reboot-days: []\nconcurrency: 2")
    before = there.policy
    (problem,) = there.offer(None)
    assert "ConfigMap careen/careen was deleted, and its settings stay in force: create the ConfigMap again" in problem
    assert there.policy == before
    assert there.offer(config("reboot-days: []\nconcurrency: 2")) == (), "the same ConfigMap, created again"
    assert there.policy == before


@pytest.mark.parametrize(
    "empty",
    [
        SeenConfigMap(uid="u"),
        SeenConfigMap(uid="u", data={"config.yaml": ""}),
        SeenConfigMap(uid="u", data={"other": "x"}),
    ],
)
def test_an_emptied_config_map_restores_the_defaults(empty: SeenConfigMap) -> None:
    there = live("concurrency: 2")
    there.offer(None)
    assert there.offer(empty) == ()
    assert there.policy.concurrency == 1


def test_only_a_config_map_that_existed_before_is_reported_as_missing() -> None:
    there = LiveSettings(GIVEN, None, config_map_name="careen/careen")
    assert there.offer(None) == ()
    there.offer(config("concurrency: 2"))
    assert there.offer(None) != ()
    assert there.policy.concurrency == 2


def test_an_invalid_config_map_stops_the_start_of_an_agent() -> None:
    with pytest.raises(BadSettings, match="concurrency"):
        live("concurrency: 0")


def test_a_changed_setting_that_needs_a_restart_is_used_only_after_the_restart(
    caplog: pytest.LogCaptureFixture,
) -> None:
    there = live(given=TRUSTED)
    assert there.offer(config("reboot-command: /sbin/reboot\nconcurrency: 2")) == ()
    assert (there.settings.reboot_command, there.settings.concurrency) == ("/bin/systemctl reboot", 2)
    assert "reboot-command is now /sbin/reboot" in caplog.text
    assert "when the agent starts again" in caplog.text


ONE = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{schedulerName: one}]\n"
TWO = ONE.replace("one", "two")
NAMED = "scheduler-config: configmap:scheduler.yaml"


def test_the_scheduler_configuration_comes_from_a_file_or_a_config_map_key(tmp_path: Path) -> None:
    (tmp_path / "scheduler.yaml").write_text(ONE)
    assert live().scheduler_config == ""
    assert live(f"scheduler-config: {tmp_path}/scheduler.yaml", TRUSTED).scheduler_config == ONE
    there = LiveSettings(GIVEN, config(NAMED, **{"scheduler.yaml": ONE}), config_map_name="c")
    assert there.scheduler_config == ONE
    there.offer(config(NAMED, **{"scheduler.yaml": TWO}))
    assert there.scheduler_config == TWO


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (
            {},
            (
                ": ConfigMap careen/careen has no key `scheduler.yaml`: add the key, or remove the setting "
                "--scheduler-config"
            ),
        ),
        ({"scheduler.yaml": " \n"}, ": the key `scheduler.yaml` of the ConfigMap is empty"),
        ({"scheduler.yaml": "["}, "is not a KubeSchedulerConfiguration: the text is not YAML: line 1, column 2"),
        (
            {"scheduler.yaml": "kind: Secret"},
            "is not a KubeSchedulerConfiguration: kind: the kind must be KubeSchedulerConfiguration, not Secret",
        ),
        ({"scheduler.yaml": "- a"}, "a KubeSchedulerConfiguration must be a mapping, not a list"),
        ({"scheduler.yaml": "profiles: 7"}, "is not a KubeSchedulerConfiguration"),
        ({"scheduler.yaml": "at: 2026-99-99"}, "is not a KubeSchedulerConfiguration"),
        ({"scheduler.yaml": "? {a: b}\n: c"}, "is not a KubeSchedulerConfiguration"),
    ],
)
def test_an_invalid_scheduler_configuration_is_refused_at_start_and_in_an_edit(
    data: dict[str, str], words: str
) -> None:
    there = live("concurrency: 2")
    (problem,) = there.offer(config(f"concurrency: 3\n{NAMED}", **data))
    assert problem.startswith("`scheduler-config` in ConfigMap careen/careen: ")
    assert words in problem
    assert there.policy.concurrency == 2
    with pytest.raises(BadSettings) as raised:
        LiveSettings(GIVEN, config(NAMED, **data), config_map_name="careen/careen")
    assert raised.value.problems == (problem,)


def test_the_scheduler_configuration_stays_in_use_after_its_key_is_removed() -> None:
    """A person first removes the key, and later the setting that names the key. Between the two edits, forecasts must
    use the old configuration."""
    there = LiveSettings(
        GIVEN, config(f"{NAMED}\nconcurrency: 2", **{"scheduler.yaml": ONE}), config_map_name="careen/careen"
    )
    assert there.offer(config(f"{NAMED}\nconcurrency: 3")) != ()
    assert (there.scheduler_config, there.policy.concurrency) == (ONE, 2)
    assert there.offer(config("concurrency: 4")) == ()
    assert (there.scheduler_config, there.policy.concurrency) == (ONE, 4), (
        "a change of the setting scheduler-config takes effect only after a restart"
    )
    assert there.offer(config("concurrency: 5", other="x")) == ()
    assert there.scheduler_config == ONE


def test_a_missing_scheduler_configuration_file_makes_only_the_forecast_unknown(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(ONE)
    there = live(f"scheduler-config: {file}", TRUSTED)
    file.unlink()
    found = there.scheduler_config
    assert isinstance(found, Unknown)
    assert found.why == f"--scheduler-config: the file {file} does not exist: mount the file, or name another file"
    assert there.offer(config(f"scheduler-config: {file}\nconcurrency: 3")) == ()
    assert there.policy.concurrency == 3
    file.write_text(TWO)
    assert there.scheduler_config == TWO


@pytest.mark.parametrize(
    "make",
    [
        lambda file: file.mkdir(),
        lambda file: file.write_bytes(b"\xff\xfe"),
        os.mkfifo,
        lambda file: file.write_text(""),
        lambda file: file.write_text("a" * (2**20 + 1)),
        lambda file: file.symlink_to(file),
    ],
)
def test_an_unreadable_scheduler_configuration_file_is_an_invalid_setting(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "file")
    with pytest.raises(BadSettings, match=f"`scheduler-config` in ConfigMap careen/careen: the file {tmp_path}/file "):
        live(f"scheduler-config: {tmp_path}/file", TRUSTED)


def test_a_large_scheduler_configuration_is_checked_in_the_child_process() -> None:
    """The check may need much time and memory, so it runs in the child process, which has a deadline and a memory
    limit.
    """
    lists = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [{','.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(20)
    )
    for text in (lists, "# " + "x" * 100_000, "[" * 60_000, "- " * 30_000, "- 1\n" * 15_000):
        there = LiveSettings(GIVEN, config(NAMED, **{"scheduler.yaml": text}), config_map_name="c")
        assert there.scheduler_config == text


# ---- older settings that stand in ----


def older(text: str = "", given: Invocation = GIVEN, **more: str) -> LastGood:
    kept = last_good.to_annotation(LiveSettings(given, config(text, **more), config_map_name="careen/careen").resolved)
    return last_good.restore(kept, "the ConfigMap is bad", flags=given.flags, environment={}, name="careen/careen")


def test_stored_settings_apply_until_the_config_map_is_valid() -> None:
    there = LiveSettings(
        GIVEN, config("concurrency: none"), config_map_name="careen/careen", instead=older("concurrency: 2")
    )
    assert (there.policy.concurrency, there.stands_in, there.policy.settings_problem) == (
        2,
        "the ConfigMap is bad",
        "the ConfigMap is bad",
    )
    assert there.offer(config("concurrency: none")) != ()
    assert there.offer(None) != ()
    assert there.policy.settings_problem == "the ConfigMap is bad"
    assert there.offer(config("concurrency: 3")) == ()
    assert (there.policy.concurrency, there.stands_in, there.policy.settings_problem, there.waiting) == (3, "", "", ())


def test_the_agent_stops_reporting_a_problem_when_the_config_map_is_valid_again() -> None:
    there = LiveSettings(
        GIVEN, config("concurrency: 2"), config_map_name="careen/careen", instead=older("concurrency: 2")
    )
    assert there.offer(config("concurrency: 2")) == ()
    assert there.policy.settings_problem == ""


def test_stored_settings_stay_on_the_node_until_a_valid_edit_changes_them() -> None:
    there = LiveSettings(TRUSTED, None, config_map_name="careen/careen", instead=older("concurrency: 2", TRUSTED))
    assert json.loads(there.policy.kept_settings)["settings"] == {"concurrency": ["2"]}
    there.offer(config("concurrency: 3\nreboot-command: /sbin/reboot"))
    assert json.loads(there.policy.kept_settings)["settings"] == {
        "concurrency": ["3"],
        "reboot-command": ["/sbin/reboot"],
    }
    assert there.waiting == ("reboot_command",)


def test_the_scheduler_configuration_is_unknown_while_the_agent_uses_stored_settings() -> None:
    there = LiveSettings(GIVEN, None, config_map_name="careen/careen", instead=older(NAMED, **{"scheduler.yaml": ONE}))
    assert isinstance(there.scheduler_config, Unknown)
    there.offer(config(NAMED, **{"scheduler.yaml": TWO}))
    assert there.scheduler_config == TWO
