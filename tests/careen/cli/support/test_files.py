"""Tests each option that takes a file: a command refuses an unusable file at once, and a failed write loses no finished
result.
"""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from careen.cli import COMMANDS, cli
from careen.cli.support.files import Written
from tests.careen.cli.conftest import Desk
from tests.careen.cli.test_plan import a_node, a_replica

START = ("--start", "2199-03-04T22:00:00Z")

_SHADOW = ("shadow", "--once", "--for", "1")
WRITTEN = {("plan", "--report"): ("plan",), ("snapshot", "--file"): ("snapshot",), ("shadow", "--snapshot"): _SHADOW}
READ = {
    ("plan", "--from"): ("plan",),
    ("plan", "--scheduler-config"): ("plan",),
    ("forecast", "--from"): ("forecast", "n1"),
    ("forecast", "--scheduler-config"): ("forecast", "n1"),
    ("explain", "--from"): ("explain", "shop/web-1"),
    ("explain", "--scheduler-config"): ("explain", "shop/web-1"),
    ("why-pending", "--from"): ("why-pending", "shop/web-1"),
    ("why-pending", "--scheduler-config"): ("why-pending", "shop/web-1"),
    ("shadow", "--scheduler-config"): _SHADOW,
    ("serve", "--plan"): ("serve", "--port", "0"),
    ("scheduler", "--config"): ("scheduler",),
}
FOLDERS = {("demo", "--keep")}  # tests/careen/cli/test_demo.py


@pytest.fixture
def shop(desk: Desk) -> Desk:
    desk.server.seed(a_node("n1"), a_node("n2"), a_node("n3"), a_replica("web-1", "n1"))
    return desk


def test_this_file_tests_every_option_that_takes_a_file() -> None:
    """The test looks at the type of each option to find the options that take a file. The test fails if such an option
    is missing from the tables of this file."""
    found = set()
    for entry in COMMANDS:
        command = cli.get_command(click.Context(cli), entry.name)
        assert command is not None
        commands = [command, *(command.commands.values() if isinstance(command, click.Group) else ())]
        found |= {
            (entry.name, next(opt for opt in option.opts if opt.startswith("--")))
            for each in commands
            for option in each.params
            if isinstance(option, click.Option) and isinstance(option.type, (click.Path, click.File, Written))
        }
    assert found == {*WRITTEN, *READ, *FOLDERS}


@pytest.mark.parametrize(
    ("path", "words"),
    [
        pytest.param("missing/file", "there is no folder", id="the folder of the file does not exist"),
        pytest.param("file/below", "there is no folder", id="the parent of the file is not a folder"),
        pytest.param("folder", "the path is a folder", id="the path is a folder"),
        pytest.param("/proc/careen", "No such file or directory", id="the file is in /proc"),
        pytest.param("nul\0byte", "null", id="the path contains a null byte"),
    ],
)
@pytest.mark.parametrize(("command", "option"), WRITTEN)
def test_a_command_refuses_an_unwritable_file_before_it_reads_anything(
    shop: Desk, tmp_path: Path, command: str, option: str, path: str, words: str
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    result = shop.run(*WRITTEN[command, option], option, str(tmp_path / path))
    said = " ".join(result.output.split())
    assert result.exit_code == 2, result.output
    assert option in said
    assert str(tmp_path / path).split("\0")[0] in said
    assert words in said
    assert "Traceback" not in said
    assert not shop.server.api.requests


@pytest.mark.parametrize(("command", "option"), WRITTEN)
def test_a_refused_command_creates_no_file_and_changes_no_file(
    shop: Desk, tmp_path: Path, command: str, option: str
) -> None:
    older = tmp_path / "older"
    older.write_text("as it was")
    for path in (tmp_path / "new", older):
        assert shop.run(*WRITTEN[command, option], option, str(path), "--ds-name", "No/Name").exit_code == 2
    assert not (tmp_path / "new").exists()
    assert older.read_text() == "as it was"


def test_plan_prints_the_plan_even_if_the_report_cannot_be_written(shop: Desk) -> None:
    """/dev/full behaves like a file on a full disk: a command can open it, but each write fails."""
    result = shop.run("plan", *START, "--report", "/dev/full")
    assert result.exit_code == 1
    assert "Plan for 3 nodes from Mon 2199-03-04 22:00" in result.output
    assert "Error: the report could not be written to /dev/full: No space left on device" in result.output
    assert "The report is in" not in result.output


def test_a_snapshot_that_cannot_be_written_is_reported(shop: Desk) -> None:
    result = shop.run("snapshot", "--file", "/dev/full")
    assert result.exit_code == 1
    assert "Error: the dump cannot be written to /dev/full: No space left on device" in result.output


@pytest.mark.parametrize(
    ("content", "is_text"),
    [(b"\x80\x81\xff", False), (b"", True), (b"a: [b", True)],
    ids=["not text", "empty", "damaged"],
)
@pytest.mark.parametrize(("command", "option"), [key for key in READ if key[1] == "--from"])
def test_the_refusal_of_an_invalid_dump_shows_its_file(
    shop: Desk, tmp_path: Path, command: str, option: str, content: bytes, is_text: bool
) -> None:
    (tmp_path / "dump").write_bytes(content)
    result = shop.run(*READ[command, option], option, str(tmp_path / "dump"))
    assert result.exit_code == 2, result.output
    assert str(tmp_path / "dump") in " ".join(result.output.split())


@pytest.mark.parametrize(("command", "option"), READ)
def test_a_command_refuses_an_unreadable_file_before_any_request(
    shop: Desk, tmp_path: Path, command: str, option: str
) -> None:
    """The test tries a folder, a missing file, and a file that cannot be read (/proc/self/mem at address 0)."""
    for path in (tmp_path, tmp_path / "missing", Path("/proc/self/mem")):
        result = shop.run(*READ[command, option], option, str(path))
        assert result.exit_code == 2, result.output
        assert option in result.output
        assert str(path) in " ".join(result.output.split())
        assert "Traceback" not in result.output
    assert not shop.server.api.requests


@pytest.mark.parametrize(("command", "option"), [key for key in READ if key[1] == "--scheduler-config"])
def test_a_scheduler_configuration_that_is_not_text_is_refused(
    shop: Desk, tmp_path: Path, command: str, option: str
) -> None:
    (tmp_path / "config").write_bytes(b"\x80\x81")
    result = shop.run(*READ[command, option], option, str(tmp_path / "config"))
    assert result.exit_code == 2, result.output
    assert f"{tmp_path}/config cannot be read: the file is not UTF-8 text" in " ".join(result.output.split())
