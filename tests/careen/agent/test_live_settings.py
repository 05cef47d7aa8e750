"""What a changed ConfigMap does to the settings in force: all of it or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from careen.agent.live_settings import Given, LiveSettings, SeenConfigMap
from careen.agent.settings_sources import BadSettings

GIVEN = Given(flags={"node_id": ("n1",), "drain_timeout": ("5m",)}, environment={})


def config(text: str, **more: str) -> SeenConfigMap:
    return SeenConfigMap(uid="u", data={"config.yaml": text, **more})


def live(text: str = "") -> LiveSettings:
    return LiveSettings(GIVEN, config(text), config_map_name="careen/careen")


def test_without_a_config_map_flags_and_defaults_hold() -> None:
    settings = LiveSettings(GIVEN, None, config_map_name="careen/careen").settings
    assert (settings.drain_timeout, settings.concurrency) == (300.0, 1)


def test_a_good_edit_is_in_force_at_once_and_flags_stay_stronger() -> None:
    there = live("concurrency: 2")
    assert there.offer(config("concurrency: 3\ndrain-timeout: 1h")) == ()
    assert (there.policy.concurrency, there.policy.drain.timeout_seconds) == (3, 300.0)


@pytest.mark.parametrize("text", ["concurrency: 0", "concurency: 3", "[", "- a", "concurrency: 3\nperiod: x", "alert-firing-only: true", "a: &a [*a]", "text"])
def test_a_bad_edit_changes_nothing_and_says_why(text: str) -> None:
    there = live("concurrency: 2")
    before = (there.settings, there.policy)
    problems = there.offer(config(text))
    assert problems
    assert all("careen/careen" in problem or "--" in problem for problem in problems)
    assert (there.settings, there.policy) == before
    assert there.offer(config("concurrency: 4")) == ()
    assert there.policy.concurrency == 4


@pytest.mark.parametrize("line", ["notify-url: slack://SECRETWORD: x", "notify-url: [slack://SECRETWORD", "notify-url: *SECRETWORD", "notify-url: !SECRETWORD x", "notify-url: 'SECRETWORD", 'notify-url: "\\SECRETWORD"'])
def test_yaml_that_cannot_be_read_is_told_by_its_place_and_not_by_its_words(line: str) -> None:
    """What YAML itself says quotes the line, and it stands in an Event and in every agent's log."""
    (problem,) = live().offer(config(f"concurrency: 2\n{line}\n"))
    assert "`config.yaml` in ConfigMap careen/careen is no YAML: line " in problem
    assert "SECRET" not in problem


def test_a_changed_secret_is_logged_without_itself(caplog: pytest.LogCaptureFixture) -> None:
    there = live()
    with caplog.at_level("INFO", logger="careen"):
        assert there.offer(config("notify-url: slack://T00000000/B00000000/SECRETWORDSECRETWORDSECR")) == ()
    assert "notify-url is now slack (set) (`notify-url` in ConfigMap careen/careen)" in caplog.text
    assert "SECRET" not in caplog.text


def test_a_deleted_config_map_leaves_flags_and_defaults() -> None:
    there = live("concurrency: 2")
    assert there.offer(None) == ()
    assert there.policy.concurrency == 1


def test_at_the_start_there_is_nothing_older_to_stay_in_force() -> None:
    with pytest.raises(BadSettings, match="concurrency"):
        live("concurrency: 0")


def test_what_cannot_change_while_the_agent_runs_waits_for_its_restart(caplog: pytest.LogCaptureFixture) -> None:
    there = live()
    assert there.offer(config("reboot-command: /sbin/reboot\nconcurrency: 2")) == ()
    assert (there.settings.reboot_command, there.settings.concurrency) == ("/bin/systemctl reboot", 2)
    assert "reboot-command is now /sbin/reboot" in caplog.text
    assert "when the agent starts again" in caplog.text


def test_the_schedulers_configuration_comes_from_a_file_or_a_key(tmp_path: Path) -> None:
    (tmp_path / "scheduler.yaml").write_text("kind: A")
    assert live().scheduler_config == ""
    assert live(f"scheduler-config: {tmp_path}/scheduler.yaml").scheduler_config == "kind: A"
    there = LiveSettings(GIVEN, config("scheduler-config: configmap:scheduler.yaml", **{"scheduler.yaml": "kind: B"}), config_map_name="c")
    assert there.scheduler_config == "kind: B"
    there.offer(config("scheduler-config: configmap:scheduler.yaml", **{"scheduler.yaml": "kind: C"}))
    assert there.scheduler_config == "kind: C"
