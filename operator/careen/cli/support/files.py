"""Checks the files in a command's options before the work begins. A bad one ends the command with exit code 2 and names
option and file.

Each check really reads or writes: only this detects missing rights, read-only file systems and missing folders.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

import click

from careen.cli.support.screen import BadInput

if TYPE_CHECKING:
    from scheduler_core.snapshot.dump import Dump


class Written(click.ParamType[Path]):
    """An output file, checked before the command works and written at its end. The check leaves no new file and changes
    none."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = Path(value)
        try:
            _try_to_write(path)
        except (OSError, ValueError) as error:
            self.fail(f"{path} cannot be written: {why(error)}", param, ctx)
        return path


def _try_to_write(path: Path) -> None:
    if not path.parent.is_dir():
        raise OSError(f"there is no folder {path.parent}")
    try:
        kind = path.stat().st_mode
    except FileNotFoundError:
        try_folder(path.parent)
        return
    if stat.S_ISDIR(kind):
        raise OSError("the path is a folder")
    # A pipe or a device is not opened here: that may block until a reader opens it too. If it cannot be written, the
    # command fails at the end.
    if stat.S_ISREG(kind):
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND))


def try_folder(folder: Path) -> None:
    """Creates a file in this folder and removes it. Raises OSError."""
    with TemporaryFile(dir=folder):
        pass


def text_of(path: Path, option: str) -> str:
    """Exit code 2 if the file cannot be read or is not text."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise BadInput(f"{option} {path} cannot be read: {why(error)}") from error


def try_to_read(path: Path, option: str) -> None:
    """Checks a file that another process will read; otherwise exit code 2."""
    if not path.is_file():
        return  # a pipe returns each byte once, so only its reader may read it
    try:
        with path.open("rb") as file:
            file.read(1)
    except OSError as error:
        raise BadInput(f"{option} {path} cannot be read: {why(error)}") from error


def dump_of(path: Path) -> Dump:
    """The dump of --from. Exit code 2 if it cannot be read or is not a dump."""
    from scheduler_core.snapshot.dump import UnreadableDumpError, read_dump

    try:
        with path.open("rb") as file:
            return read_dump(file)
    except UnreadableDumpError as error:
        raise BadInput(f"--from {path}: {error}") from error
    except OSError as error:
        raise BadInput(f"--from {path} cannot be read: {why(error)}") from error


def why(error: OSError | ValueError) -> str:
    """The message without error number and file name."""
    if isinstance(error, UnicodeDecodeError):
        return "the file is not UTF-8 text"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
