"""Receivers of messages in files with one URL per line. The files are read for each message, because Secrets change."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from careen.services.notification_urls import Target, parse
from scheduler_core.values import Value

_LONGEST_FILE = 64 * 2**10


class FoundTargets(Value, kw_only=True):
    """The receivers, and the problems with the files. An error names only the service, because the URL may be
    secret."""

    targets: tuple[Target, ...] = ()
    refused: tuple[str, ...] = ()
    """One for each line that is not the URL of a receiver, with the file and the line's number."""
    unread: tuple[str, ...] = ()
    """Files that cannot be read. No error in the settings, because a Secret may be created later."""


def read(paths: Sequence[str]) -> FoundTargets:
    """In order. Of a folder, such as a mounted Secret, all files without a leading dot. Empty lines and lines with a
    leading # do not count."""
    targets: list[Target] = []
    refused: list[str] = []
    unread: list[str] = []
    for path in paths:
        for file in _files(path):
            try:
                lines = _lines(file)
            except OSError as error:
                unread.append(f"{file} cannot be read: {error.strerror or 'it is not a regular file'}")
                continue
            except ValueError as error:
                refused.append(str(error))
                continue
            for number, line in lines:
                try:
                    targets.append(parse(line))
                except ValueError as error:
                    refused.append(f"{file}, line {number}: {error}")
    return FoundTargets(targets=tuple(targets), refused=tuple(refused), unread=tuple(unread))


def _files(path: str) -> list[Path]:
    """The file, or those of the folder without a leading dot: the kubelet's own entries in a mounted Secret begin with
    two."""
    place = Path(path)
    try:
        return sorted(each for each in place.iterdir() if not each.name.startswith("."))
    except OSError:
        return [place]


def _lines(file: Path) -> list[tuple[int, str]]:
    """Numbered, without empty lines and comments. Raises OSError if the file cannot be read, ValueError if it is not
    text."""
    if file.exists() and not file.is_file():
        raise OSError  # reading a pipe would block
    with file.open("rb") as opened:
        content = opened.read(_LONGEST_FILE + 1)
    if len(content) > _LONGEST_FILE:
        raise ValueError(f"{file} is longer than {_LONGEST_FILE // 2**10} KiB: expected one URL on each line")
    try:
        text = content.decode("utf-8-sig")
    except ValueError:
        raise ValueError(f"{file} is not text: expected one URL on each line") from None
    numbered = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
    return [(number, line) for number, line in numbered if line and not line.startswith("#")]
