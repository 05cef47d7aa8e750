"""Tests the client that silences alerts in a real Alertmanager: a silence is created, extended under the same id,
ended, and expires."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import urllib3

from careen.core.facts.observation import Unknown
from careen.services.alertmanager import Alertmanager
from careen.services.silences import Silences
from careen.services.wire import starts
from careen.settings.lists.silence_matchers import DEFAULT, Matchers
from tests.cluster.harness.machines.processes import free_port
from tests.patience import LONG_SECONDS, ended, until

pytestmark = pytest.mark.cluster


class RealAlertmanager:
    def __init__(self, folder: Path) -> None:
        program = shutil.which("prometheus-alertmanager")
        if program is None:
            raise RuntimeError("prometheus-alertmanager is missing: `make test-cluster` installs Debian's package")
        (folder / "am.yml").write_text("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.http = urllib3.PoolManager(retries=False, timeout=LONG_SECONDS)
        with (folder / "log").open("w") as log:
            self.process = subprocess.Popen(
                [
                    program,
                    f"--config.file={folder / 'am.yml'}",
                    f"--storage.path={folder / 'data'}",
                    f"--web.listen-address=127.0.0.1:{port}",
                    "--cluster.listen-address=",
                ],
                stderr=log,
                stdout=log,
            )

    def is_ready(self) -> bool:
        try:
            return self.http.request("GET", f"{self.url}/-/ready").status == 200
        except urllib3.exceptions.HTTPError:
            return False

    def fire(self, **labels: str) -> None:
        assert self.http.request("POST", f"{self.url}/api/v2/alerts", json=[{"labels": labels}]).status == 200

    async def active(self) -> set[str]:
        found = await Alertmanager(self.url, timeout_seconds=LONG_SECONDS).active_alerts()
        assert not isinstance(found, Unknown)
        return {alert.name for alert in found}

    def silences(self, state: str) -> dict[str, Any]:
        rows = self.http.request("GET", f"{self.url}/api/v2/silences").json()
        return {row["id"]: row for row in rows if row["status"]["state"] == state}

    def of(self, node: str, *given: Matchers) -> Silences:
        return Silences(
            self.url,
            node=node,
            matchers=[each.of_node(node) for each in given or DEFAULT],
            timeout_seconds=LONG_SECONDS,
        )


@pytest.fixture
async def alertmanager(tmp_path: Path) -> AsyncIterator[RealAlertmanager]:
    running = RealAlertmanager(tmp_path)
    await until(running.is_ready)
    yield running
    running.process.terminate()
    ended(running.process, (tmp_path / "log").read_text)


async def test_alertmanager_suppresses_the_alerts_of_a_node_while_its_silences_exist(
    alertmanager: RealAlertmanager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starts, "SETTLES_SECONDS", -1.0)  # this one has just started, and nobody sends alerts again
    alertmanager.fire(alertname="NodeDown", node="n1")
    alertmanager.fire(alertname="Slow", instance="n1:9100")
    alertmanager.fire(alertname="Other", node="n10", instance="n10:9100")
    assert await alertmanager.active() == {"NodeDown", "Slow", "Other"}
    silences = alertmanager.of("n1")
    assert await silences.begin(120, now=datetime.now(UTC)) == ""
    first = alertmanager.silences("active")
    while await alertmanager.active() != {"Other"}:
        pass
    assert await silences.begin(600, now=datetime.now(UTC)) == ""
    extended = alertmanager.silences("active")
    assert extended.keys() == first.keys(), "the same silences"
    assert all(extended[name]["endsAt"] > first[name]["endsAt"] for name in first)
    assert await silences.end() == ""
    assert alertmanager.silences("expired").keys() == first.keys()
    while await alertmanager.active() != {"NodeDown", "Slow", "Other"}:
        pass


async def test_a_silence_that_is_never_ended_expires(alertmanager: RealAlertmanager) -> None:
    assert await alertmanager.of("n1", DEFAULT[0]).begin(2, now=datetime.now(UTC)) == ""
    await until(lambda: len(alertmanager.silences("expired")) == 1)


async def test_matchers_that_alertmanager_rejects_are_reported(alertmanager: RealAlertmanager) -> None:
    odd = Matchers("odd", (("node", "=~", "(?<name>$NODE)("),))
    answer = await alertmanager.of("n1", odd).begin(60, now=datetime.now(UTC))
    assert answer == Unknown(f"Alertmanager at {alertmanager.url} gave no usable answer: status 400")
