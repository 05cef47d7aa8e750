"""The agent of the image sleeps and wakes: no probe fails, and each form finds its bytecode."""

from __future__ import annotations

import re
import socket
import subprocess
import threading
import urllib.request
from pathlib import Path

import pytest

from bench.agent.__main__ import NODE, relabel, seed
from drydock.server.testing import server_in_thread
from tests.image.conftest import ROOT, Container
from tests.patience import wait_until

pytestmark = pytest.mark.image

CHANGES = 4


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def test_no_probe_fails_while_the_agent_of_the_image_changes_its_form(container: Container, tmp_path: Path) -> None:
    port, failed, is_over = free_port(), list[str](), threading.Event()
    (tmp_path / "var/run").mkdir(parents=True)
    (tmp_path / "run").mkdir()
    (tmp_path / "boot_id").write_text("boot-1\n")

    def get(path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
            return str(answer.read().decode())

    def is_asleep() -> bool:
        return bool(re.search(r'^careen_asleep\{node="[^"]*"\} 1', get("/metrics"), re.MULTILINE))

    def probe() -> None:
        while not is_over.is_set():
            try:
                get("/healthz")
                get("/readyz")
            except OSError as error:
                failed.append(repr(error))

    with server_in_thread() as server, (tmp_path / "log").open("w+") as log:
        seed(server)
        server.write_kubeconfig(tmp_path / "kubeconfig", user="agent")
        agent = (
            f"--node-id={NODE} --kubeconfig=/node/kubeconfig --host-root=/node --boot-id-file=/node/boot_id "
            "--host-exec=direct --reboot-command=/bin/true --ds-namespace=careen --ds-name=careen --sleep=auto "
            f"--host-lock-dir=/run/careen --metrics-host=127.0.0.1 --metrics-port={port}"
        ).split()
        buildah = [
            ROOT / "mk/image/buildah",
            "run",
            "--isolation",
            "chroot",
            f"--volume={tmp_path}:/node",
            container.name,
        ]
        command = [*buildah, "--", *container.config["Entrypoint"], "agent", *agent]
        process = subprocess.Popen(command, stdout=log, stderr=log)
        said = (tmp_path / "log").read_text
        try:
            wait_until(lambda: "on port" in said() and is_asleep(), said)
            prober = threading.Thread(target=probe)
            prober.start()
            for number in range(CHANGES // 2):
                relabel(server, str(number))
                wait_until(
                    lambda awake=number + 1: said().count("the agent wakes: the Node has changed") == awake, said
                )  # type: ignore[misc]
                wait_until(is_asleep, said)
            is_over.set()
            prober.join()
            process.terminate()
            process.wait()
        finally:
            is_over.set()
            process.kill()
            process.wait()
    assert failed == []
    assert "Traceback" not in said()
