"""A real Prometheus with one rule, whose alert a story switches on and off."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import urllib3
import yaml

from tests.cluster.harness.machines.processes import Guardian, Program, free_port


class Prometheus:
    """Listens on `url` until `close`."""

    def __init__(self, folder: Path, *, guardian: Guardian) -> None:
        program = shutil.which("prometheus")
        if program is None:
            raise RuntimeError("prometheus is missing: `make test-cluster` installs Debian's package")
        folder.mkdir(parents=True)
        self._rules = folder / "rules.yml"
        self._firing("")
        settings = {
            "global": {"evaluation_interval": "1s", "scrape_interval": "1s"},
            "rule_files": [str(self._rules)],
        }
        (folder / "prometheus.yml").write_text(yaml.safe_dump(settings))
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._program = Program(
            "prometheus",
            (
                *(program, f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}"),
                f"--web.listen-address=127.0.0.1:{port}",
            ),
            guardian=guardian,
            log=folder / "prometheus.log",
        )
        self._http = urllib3.PoolManager(retries=False, timeout=3)

    def fire(self, alert: str) -> None:
        """Takes effect at the next evaluation, one second later."""
        self._firing(alert)
        self._program.signal(signal.SIGHUP)

    def quiet(self) -> None:
        self._firing("")
        self._program.signal(signal.SIGHUP)

    def is_firing(self, alert: str) -> bool:
        """The alerts that an agent would read."""
        answer = self._http.request("GET", f"{self.url}/api/v1/alerts").json()
        return any(one["labels"]["alertname"] == alert and one["state"] == "firing" for one in answer["data"]["alerts"])

    def is_ready(self) -> bool:
        try:
            return self._http.request("GET", f"{self.url}/-/ready").status == 200
        except urllib3.exceptions.HTTPError:
            return False

    def close(self) -> None:
        self._http.clear()
        self._program.stop()

    def _firing(self, alert: str) -> None:
        rules = [{"alert": alert, "expr": "vector(1)", "labels": {"severity": "critical"}}] if alert else []
        group = {"name": "story", "rules": rules or [{"record": "quiet", "expr": "vector(1)"}]}
        self._rules.write_text(yaml.safe_dump({"groups": [group]}))
