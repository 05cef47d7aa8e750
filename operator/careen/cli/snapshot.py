"""`careen snapshot`: saves what a forecast reads of the cluster, for example for a bug report."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import click

from careen.cli.support.connection import Cluster
from careen.cli.support.files import Written, why
from careen.cli.support.options import cluster_command
from careen.cli.support.screen import say
from careen.cluster.snapshot_reader import again_if_expired, pages, server_version
from careen.core.facts.times import rfc3339
from scheduler_core.sentences import count_of
from scheduler_core.snapshot.dump import DumpWriter, Header


@click.command()
@click.option(
    "--file", "-f", "target", type=Written(), metavar="FILE", help="The file to write; the default is standard output."
)
@cluster_command
async def snapshot(cluster: Cluster, *, target: Path | None) -> None:
    """Write the part of the cluster that a forecast reads: `careen snapshot > dump.json.gz`.

    The dump has no Secrets, environment variables or commands, and only the annotations that the scheduler reads. It
    has names, labels, images and requests: look at it before you share it (`zcat dump.json.gz`)."""
    if target is None and sys.stdout.isatty():
        raise click.UsageError(
            "a dump cannot be shown on a terminal: give --file FILE, or redirect it: `careen snapshot > dump.json.gz`"
        )
    list_pages, size = await write_snapshot(cluster, await server_version(cluster.api), target)
    say(f"the dump contains {count_of(list_pages, 'list page')} in {size:,} bytes, compressed", err=True)


async def write_snapshot(
    cluster: Cluster, release: str, target: Path | None, learnt: Callable[[], Mapping[str, Any] | None] = lambda: None
) -> tuple[int, int]:
    """Writes the dump to `target`, or to standard output. Returns the numbers of list pages and of bytes.

    `learnt` is called after the last list: what `careen shadow` has learned becomes the last part. A cluster that
    cannot be read completely leaves no partial file.
    """
    header = Header(kube_version=release, taken_at=rfc3339(cluster.clock.now()))
    return await again_if_expired(lambda: _read_and_hand_on(cluster, header, target, learnt))


async def _read_and_hand_on(
    cluster: Cluster, header: Header, target: Path | None, learnt: Callable[[], Mapping[str, Any] | None]
) -> tuple[int, int]:
    with TemporaryFile() as whole, closing(DumpWriter(header, whole)) as writer:
        async for page in pages(cluster.api):
            writer.add(page)
        writer.finish(learnt())
        size = whole.tell()
        whole.seek(0)
        _hand_on(whole, target)
    return writer.pages, size


def _hand_on(whole: IO[bytes], target: Path | None) -> None:
    if target is None:
        shutil.copyfileobj(whole, sys.stdout.buffer)
        return
    try:
        with target.open("wb") as file:
            shutil.copyfileobj(whole, file)
    except OSError as error:
        raise click.ClickException(f"the dump cannot be written to {target}: {why(error)}") from error
