"""Tests files with one notify URL on each line. A message about an invalid line shows no secret."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from careen.services.notification_files import read
from careen.services.notification_urls import parse

SLACK = "slack://T00000000/B00000000/SECRETWORDSECRETWORDSECR"


def test_each_line_of_a_file_is_read_as_a_notify_url(tmp_path: Path) -> None:
    (tmp_path / "urls").write_text(f"# ours\n\n  {SLACK}  \r\njson://localhost\n")
    found = read([str(tmp_path / "urls")])
    assert found.targets == (parse(SLACK), parse("json://localhost"))
    assert (found.refused, found.unread) == ((), ())


def test_a_folder_of_files_with_notify_urls_is_read_like_a_mounted_secret(tmp_path: Path) -> None:
    (tmp_path / "..2026").mkdir()
    (tmp_path / "..data").symlink_to("..2026")
    for name, text in (("b", "json://b"), ("a", "json://a")):
        (tmp_path / "..2026" / name).write_text(text)
        (tmp_path / name).symlink_to(f"..data/{name}")
    assert [target.url for target in read([str(tmp_path)]).targets] == ["json://a", "json://b"]


def test_an_empty_folder_contains_no_notify_urls(tmp_path: Path) -> None:
    assert read([str(tmp_path)]) == read([])


def test_a_changed_file_of_notify_urls_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "urls"
    file.write_text("json://old")
    assert [target.url for target in read([str(file)]).targets] == ["json://old"]
    file.write_text("json://new")
    assert [target.url for target in read([str(file)]).targets] == ["json://new"]


def test_the_valid_lines_of_a_file_are_used_despite_an_invalid_line(tmp_path: Path) -> None:
    (tmp_path / "urls").write_text(f"json://a\nnonsense://SECRETWORD\n{SLACK}\n")
    found = read([str(tmp_path / "urls")])
    assert [target.service for target in found.targets] == ["json", "slack"]
    (sentence,) = found.refused
    assert sentence.startswith(f"{tmp_path}/urls, line 2: expected a shoutrrr URL")
    assert "SECRET" not in sentence


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(b"\xff\xfe\x00", "is not text"), (b"#" * 70_000, "is longer than 64 KiB")],
)
def test_a_file_that_is_not_text_or_is_too_long_is_refused(tmp_path: Path, content: bytes, sentence: str) -> None:
    (tmp_path / "urls").write_bytes(content)
    found = read([str(tmp_path / "urls")])
    assert [sentence in each for each in found.refused] == [True]


def test_a_missing_file_is_reported_and_the_next_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("json://a")
    found = read([f"{tmp_path}/none", f"{tmp_path}/there"])
    assert found.unread == (f"{tmp_path}/none cannot be read: No such file or directory",)
    assert len(found.targets) == 1


def test_a_fifo_in_place_of_a_file_of_notify_urls_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert read([f"{tmp_path}/pipe"]).unread == (f"{tmp_path}/pipe cannot be read: it is not a regular file",)


def test_a_byte_order_mark_in_a_file_of_notify_urls_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "urls").write_bytes(b"\xef\xbb\xbfjson://a")
    assert [target.url for target in read([f"{tmp_path}/urls"]).targets] == ["json://a"]
