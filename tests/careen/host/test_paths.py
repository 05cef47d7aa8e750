"""Tests how paths of the host are found below the folder where the host is mounted."""

from __future__ import annotations

from pathlib import Path

import pytest

from careen.host.paths import under_root


def test_a_path_is_unchanged_if_the_host_root_is_the_agents_root() -> None:
    assert under_root(Path("/"), "/var/run/reboot-required") == Path("/var/run/reboot-required")


def test_an_absolute_symlink_is_resolved_inside_the_host_root(tmp_path: Path) -> None:
    """On Debian, /var/run is a link to /run. Resolved from the root of the container, the link would lead to the
    container's /run.
    """
    (tmp_path / "var").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "var/run").symlink_to("/run")
    assert under_root(tmp_path, "/var/run/reboot-required") == tmp_path / "run/reboot-required"


def test_relative_symlinks_and_parent_folders_stay_inside_the_host_root(tmp_path: Path) -> None:
    (tmp_path / "var").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "var/run").symlink_to("../run")
    (tmp_path / "escape").symlink_to("../../../../etc")
    assert under_root(tmp_path, "/var/run/x") == tmp_path / "run/x"
    assert under_root(tmp_path, "/escape/passwd") == tmp_path / "etc/passwd"
    assert under_root(tmp_path, "/../../etc/passwd") == tmp_path / "etc/passwd"


def test_a_symlink_in_the_last_component_of_a_path_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "sentinel").symlink_to("/nowhere")
    assert under_root(tmp_path, "/sentinel") == tmp_path / "sentinel"


def test_a_cycle_of_symlinks_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("/b")
    (tmp_path / "b").symlink_to("/a")
    with pytest.raises(OSError, match="symbolic links"):
        under_root(tmp_path, "/a/x")
