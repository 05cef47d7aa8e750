"""Checks the files in a command's options before the command begins its work. If a file cannot be read or written, the
command ends with exit code 2 and a message with the option and the file.

Each check tries to read or write the file, because only this detects missing rights, read-only file systems and missing
folders.
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
    """The type of an option that names an output file. Before the command begins its work, this type checks whether the
    file can be written. The check leaves no new file behind and changes no existing file. The command writes the file
    at the end of its work."""

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
    # A pipe or a device is not opened here, because that may block until a reader opens it too. If it cannot be
    # written, the command fails at the end.
    if stat.S_ISREG(kind):
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND))


def try_folder(folder: Path) -> None:
    """Tries to create a file in this folder. Raises OSError if that fails. Leaves no file behind."""
    with TemporaryFile(dir=folder):
        pass


def text_of(path: Path, option: str) -> str:
    """Returns the text of a file that an option names. Ends the command with exit code 2 if it cannot be read or is not
    text."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise BadInput(f"{option} {path} cannot be read: {why(error)}") from error


def try_to_read(path: Path, option: str) -> None:
    """Checks a file that another process will read. Ends the command with exit code 2 if it cannot be read."""
    if not path.is_file():
        return  # a pipe returns each byte once, so only its reader may read it
    try:
        with path.open("rb") as file:
            file.read(1)
    except OSError as error:
        raise BadInput(f"{option} {path} cannot be read: {why(error)}") from error


def dump_of(path: Path) -> Dump:
    """Returns the dump in the file of the option --from. Ends the command with exit code 2 if it cannot be read or is
    not a dump."""
    from scheduler_core.snapshot.dump import UnreadableDumpError, read_dump

    try:
        with path.open("rb") as file:
            return read_dump(file)
    except UnreadableDumpError as error:
        raise BadInput(f"--from {path}: {error}") from error
    except OSError as error:
        raise BadInput(f"--from {path} cannot be read: {why(error)}") from error


def why(error: OSError | ValueError) -> str:
    """Returns the error's message without the error number and the file name."""
    if isinstance(error, UnicodeDecodeError):
        return "the file is not UTF-8 text"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
