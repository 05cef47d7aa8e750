"""Runs `careen serve` in a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from drydock.server.testing import RunningServer
from tests.patience import SECONDS


@contextmanager
def served(server: RunningServer, folder: Path, *options: str) -> Iterator[str]:
    """The page's address. At the end the command must end by itself, without a message."""
    kubeconfig = server.write_kubeconfig(folder / "kubeconfig")
    process = subprocess.Popen(
        [sys.executable, "-m", "careen", "serve", "--port", "0", *options, "--kubeconfig", str(kubeconfig)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/", said)
        assert address, said
        yield address[0]
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=SECONDS)
        assert (process.returncode, errors) == (0, "")
    finally:
        process.kill()
        process.wait()
