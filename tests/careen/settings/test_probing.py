"""A probe that cannot work the way the agent reaches its host is refused at the start."""

from __future__ import annotations

import pytest

from careen.host.probes import PROBES, Reach
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
def test_several_sentinels_are_given_in_one_value_or_in_many(texts: tuple[str, ...]) -> None:
    assert settle(reboot_sentinel=texts).reboot_sentinel == ("/run/a", "/run/b")


def test_a_comma_in_a_path_divides_nothing() -> None:
    assert settle(reboot_sentinel=("/run/a,b",)).reboot_sentinel == ("/run/a,b",)


def test_sentinels_may_stand_in_the_config_map_as_a_list() -> None:
    found = resolve(flags={"node_id": ("n1",)}, environment={}, config_map={"reboot-sentinel": ["/a", "/b"]})
    assert found.settings.reboot_sentinel == ("/a", "/b")


def test_without_a_word_everything_is_as_before() -> None:
    settings = settle()
    assert (settings.reboot_probes, settings.reboot_sentinel) == (("sentinel",), ("/var/run/reboot-required",))


def test_the_default_manifest_takes_every_probe() -> None:
    settle(reboot_probes=(",".join(PROBES),), reboot_max_uptime=("720h",), **DEFAULT_MANIFEST)


@pytest.mark.parametrize("name", [name for name, reach in PROBES.items() if reach is not Reach.NOTHING])
def test_what_needs_the_host_is_refused_with_the_signal_method(name: str) -> None:
    problem = refused(reboot_probes=(name,), reboot_method=("signal",), host_root=("/host",))
    assert problem.startswith(f"the probe {name} of --reboot-probes ")
    assert problem.endswith("which --reboot-method=signal has no right to: it needs --reboot-method=command")


@pytest.mark.parametrize("name", [name for name, reach in PROBES.items() if reach is Reach.FILES])
def test_without_the_hosts_files_a_probe_would_look_at_the_containers(name: str) -> None:
    assert "give --host-root=/proc/1/root" in refused(reboot_probes=(name,))
    settle(reboot_probes=(name,), host_exec=("direct",))


def test_the_uptime_is_asked_for_whole() -> None:
    assert "belong together" in refused(reboot_probes=("uptime",))
    assert "belong together" in refused(reboot_max_uptime=("1h",))
    settle(reboot_probes=("sentinel,uptime",), reboot_max_uptime=("1h",), reboot_method=("signal",))


def test_packages_without_a_list_of_packages_are_refused() -> None:
    assert "--reboot-packages needs" in refused(
        reboot_packages=("^linux-",), reboot_sentinel=("",), reboot_sentinel_command=("true",)
    )
    assert "--reboot-packages needs" in refused(
        reboot_packages=("^linux-",), reboot_probes=("suse",), **DEFAULT_MANIFEST
    )
    settle(reboot_packages=("^linux-",))


def test_packages_beside_a_command_are_remarked_on() -> None:
    flags = {"node_id": ("n1",), "reboot_packages": ("^linux-",), "reboot_sentinel_command": ("true",)}
    (note,) = resolve(flags=flags, environment={}).notes
    assert note.startswith("--reboot-packages does nothing beside --reboot-sentinel-command")


def test_no_probe_and_no_sentinel_are_refused() -> None:
    assert refused(reboot_probes=("",)).startswith("--reboot-probes is empty: name at least one of sentinel, ")
    assert "the agent could not tell when a reboot is needed" in refused(reboot_sentinel=("",))
    settle(reboot_sentinel=("",), reboot_probes=("suse",), **DEFAULT_MANIFEST)
    assert "expected one of sentinel, " in refused(reboot_probes=("suse,reboot",), **DEFAULT_MANIFEST)


def test_a_max_uptime_alone_may_stand_in_the_config_map_and_a_probe_may_not() -> None:
    flags = {"node_id": ("n1",), "reboot_probes": ("sentinel,uptime",)}
    found = resolve(flags=flags, environment={}, config_map={"reboot-max-uptime": "720h", "reboot-packages": "^linux-"})
    assert found.settings.reboot_max_uptime == 720 * 3600
    with pytest.raises(BadSettings, match="it decides what runs as root on every host"):
        resolve(flags={"node_id": ("n1",)}, environment={}, config_map={"reboot-probes": "zypper"})
