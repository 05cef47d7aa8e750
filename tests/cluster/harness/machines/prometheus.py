"""Starts a real Prometheus. A test can switch an alert on and off, or let Prometheus scrape agents and read rules."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import urllib3
import yaml

from tests.cluster.harness.machines.processes import Guardian, Program, free_port
from tests.patience import LONG_SECONDS


class QueryError(Exception):
    """Raised if Prometheus answers a query with an error or a warning. The message contains Prometheus's text."""


class Prometheus:
    """A Prometheus that listens on `url` until `close`."""

    def __init__(
        self, folder: Path, *, guardian: Guardian, targets: Sequence[str] = (), groups: Sequence[object] = ()
    ) -> None:
        """Start Prometheus. It scrapes /metrics of each `host:port` in `targets`, and evaluates the rule groups in
        `groups`.
        """
        program = shutil.which("prometheus")
        if program is None:
            raise RuntimeError("prometheus is missing: `make test-cluster` installs Debian's package")
        folder.mkdir(parents=True)
        self._rules = folder / "rules.yml"
        self._groups = groups
        self._firing("")
        settings = {
            "global": {"evaluation_interval": "1s", "scrape_interval": "1s"},
            "rule_files": [str(self._rules)],
            "scrape_configs": [{"job_name": "careen", "static_configs": [{"targets": list(targets)}]}],
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
        self._http = urllib3.PoolManager(retries=False, timeout=LONG_SECONDS)

    def fire(self, alert: str) -> None:
        """Switch the alert on. It fires after the next evaluation of the rules, about one second later."""
        self._firing(alert)
        self._program.signal(signal.SIGHUP)

    def quiet(self) -> None:
        self._firing("")
        self._program.signal(signal.SIGHUP)

    def is_firing(self, alert: str) -> bool:
        """Whether Prometheus reports to clients that the alert fires."""
        answer = self._http.request("GET", f"{self.url}/api/v1/alerts").json()
        return any(one["labels"]["alertname"] == alert and one["state"] == "firing" for one in answer["data"]["alerts"])

    def is_ready(self) -> bool:
        try:
            return self._http.request("GET", f"{self.url}/-/ready").status == 200
        except urllib3.exceptions.HTTPError:
            return False

    def query(self, expression: str) -> list[Any]:
        """Return the series of an instant query. Raises `QueryError` if Prometheus reports an error or a warning."""
        return self._asked("query", query=expression)

    def query_range(self, expression: str, *, start: float, end: float, step_seconds: float) -> list[Any]:
        """Send a range query, as a time series panel of Grafana does, and return the series in the answer. Raises
        `QueryError`."""
        return self._asked("query_range", query=expression, start=str(start), end=str(end), step=str(step_seconds))

    def rules(self) -> dict[str, Any]:
        """Map the name of each rule to the rule's last evaluation."""
        groups = self._http.request("GET", f"{self.url}/api/v1/rules").json()["data"]["groups"]
        return {rule["name"]: rule for group in groups for rule in group["rules"]}

    def _asked(self, how: str, **fields: str) -> list[Any]:
        answer = self._http.request("GET", f"{self.url}/api/v1/{how}", fields=fields).json()
        if answer["status"] != "success" or answer.get("warnings"):
            raise QueryError(f"{fields['query']}: {answer.get('error') or answer.get('warnings')}")
        found = answer["data"]["result"]
        return found if isinstance(found, list) else [found]

    def close(self) -> None:
        self._http.clear()
        self._program.stop()

    def _firing(self, alert: str) -> None:
        rules = [{"alert": alert, "expr": "vector(1)", "labels": {"severity": "critical"}}] if alert else []
        group = {"name": "story", "rules": rules or [{"record": "quiet", "expr": "vector(1)"}]}
        self._rules.write_text(yaml.safe_dump({"groups": [group, *self._groups]}))
