"""Paths of the host below the folder where it is mounted."""

from __future__ import annotations

from pathlib import Path

import pytest

from careen.host.paths import under_root


def test_our_own_root_changes_nothing() -> None:
    assert under_root(Path("/"), "/var/run/reboot-required") == Path("/var/run/reboot-required")


def test_an_absolute_link_of_the_host_is_followed_inside_the_host(tmp_path: Path) -> None:
    """Debian: /var/run → /run. Followed literally, it would lead into the agent's own container."""
    (tmp_path / "var").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "var/run").symlink_to("/run")
    assert under_root(tmp_path, "/var/run/reboot-required") == tmp_path / "run/reboot-required"


def test_relative_links_and_steps_up_stay_inside_the_host(tmp_path: Path) -> None:
    (tmp_path / "var").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "var/run").symlink_to("../run")
    (tmp_path / "escape").symlink_to("../../../../etc")
    assert under_root(tmp_path, "/var/run/x") == tmp_path / "run/x"
    assert under_root(tmp_path, "/escape/passwd") == tmp_path / "etc/passwd"
    assert under_root(tmp_path, "/../../etc/passwd") == tmp_path / "etc/passwd"


def test_the_last_part_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "sentinel").symlink_to("/nowhere")
    assert under_root(tmp_path, "/sentinel") == tmp_path / "sentinel"


def test_a_circle_of_links_is_an_error_and_no_endless_loop(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("/b")
    (tmp_path / "b").symlink_to("/a")
    with pytest.raises(OSError, match="symbolic links"):
        under_root(tmp_path, "/a/x")
