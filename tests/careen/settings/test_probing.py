"""Tests that an agent refuses to start if it lacks the access to the host that a probe needs."""

from __future__ import annotations

import pytest

from careen.host.probes import PROBES, HostAccess
from careen.settings.sources import BadSettings, resolve
from careen.settings.tree import Settings

DEFAULT_MANIFEST = {"host_root": ("/proc/1/root",)}


def settle(**flags: tuple[str, ...]) -> Settings:
    return resolve(flags={"node_id": ("n1",), **flags}, environment={}).settings


def refused(**flags: tuple[str, ...]) -> str:
    with pytest.raises(BadSettings) as error:
        settle(**flags)
    (problem,) = error.value.problems
    return problem


@pytest.mark.parametrize("texts", [("/run/a,/run/b",), ("/run/a", "/run/b"), ("/run/a\n/run/b",), ("/run/a, /run/b,",)])
def test_several_sentinel_paths_can_be_given_in_one_flag_or_in_several_flags(texts: tuple[str, ...]) -> None:
    assert settle(reboot_sentinel=texts).reboot_sentinel == ("/run/a", "/run/b")


def test_a_comma_inside_a_sentinel_path_does_not_separate_two_paths() -> None:
    assert settle(reboot_sentinel=("/run/a,b",)).reboot_sentinel == ("/run/a,b",)


@pytest.mark.parametrize("text", ["run/reboot-required", "./reboot", "a,/run/b", "reboot-required\n/run/b"])
def test_a_sentinel_with_a_relative_path_is_refused(text: str) -> None:
    with pytest.raises(BadSettings, match=r"--reboot-sentinel=.*expected an absolute path, such as /"):
        settle(reboot_sentinel=(text,))


def test_sentinels_may_be_a_list_in_the_config_map() -> None:
    found = resolve(flags={"node_id": ("n1",)}, environment={}, config_map={"reboot-sentinel": ["/a", "/b"]})
    assert found.settings.reboot_sentinel == ("/a", "/b")


def test_by_default_only_the_sentinel_is_probed() -> None:
    settings = settle()
    assert (settings.reboot_probes, settings.reboot_sentinel) == (("sentinel",), ("/var/run/reboot-required",))


def test_with_the_default_manifest_every_probe_can_be_configured() -> None:
    settle(reboot_probes=(",".join(PROBES),), reboot_max_uptime=("720h",), **DEFAULT_MANIFEST)


@pytest.mark.parametrize("name", [name for name, reach in PROBES.items() if reach is not HostAccess.NOTHING])
def test_probes_that_need_host_access_are_refused_with_the_signal_method(name: str) -> None:
    problem = refused(reboot_probes=(name,), reboot_method=("signal",), host_root=("/host",))
    assert problem.startswith(f"the probe {name} of --reboot-probes ")
    assert problem.endswith("which --reboot-method=signal does not permit: use --reboot-method=command")


@pytest.mark.parametrize("name", [name for name, reach in PROBES.items() if reach is HostAccess.FILES])
def test_a_file_probe_is_refused_if_the_agent_cannot_read_files_of_the_host(name: str) -> None:
    assert "give --host-root=/proc/1/root" in refused(reboot_probes=(name,))
    settle(reboot_probes=(name,), host_exec=("direct",))


def test_the_uptime_probe_and_its_limit_must_be_given_together() -> None:
    assert "belong together" in refused(reboot_probes=("uptime",))
    assert "belong together" in refused(reboot_max_uptime=("1h",))
    settle(reboot_probes=("sentinel,uptime",), reboot_max_uptime=("1h",), reboot_method=("signal",))


def test_a_package_filter_without_a_package_list_is_refused() -> None:
    assert "--reboot-packages needs" in refused(
        reboot_packages=("^linux-",), reboot_sentinel=("",), reboot_sentinel_command=("true",)
    )
    assert "--reboot-packages needs" in refused(
        reboot_packages=("^linux-",), reboot_probes=("suse",), **DEFAULT_MANIFEST
    )
    settle(reboot_packages=("^linux-",))


def test_a_package_filter_together_with_a_sentinel_command_causes_a_warning() -> None:
    flags = {"node_id": ("n1",), "reboot_packages": ("^linux-",), "reboot_sentinel_command": ("true",)}
    (note,) = resolve(flags=flags, environment={}).notes
    assert note.startswith("--reboot-packages has no effect with --reboot-sentinel-command")


def test_settings_with_neither_a_probe_nor_a_sentinel_are_refused() -> None:
    assert refused(reboot_probes=("",)).startswith("--reboot-probes is empty: name at least one of sentinel, ")
    assert "the agent could not find out when a reboot is needed" in refused(reboot_sentinel=("",))
    settle(reboot_sentinel=("",), reboot_probes=("suse",), **DEFAULT_MANIFEST)
    assert "expected one of sentinel, " in refused(reboot_probes=("suse,reboot",), **DEFAULT_MANIFEST)


def test_the_config_map_may_set_the_maximum_uptime_but_may_not_choose_probes() -> None:
    flags = {"node_id": ("n1",), "reboot_probes": ("sentinel,uptime",)}
    found = resolve(flags=flags, environment={}, config_map={"reboot-max-uptime": "720h", "reboot-packages": "^linux-"})
    assert found.settings.reboot_max_uptime == 720 * 3600
    with pytest.raises(BadSettings, match="the setting decides what runs as root on every host"):
        resolve(flags={"node_id": ("n1",)}, environment={}, config_map={"reboot-probes": "zypper"})
