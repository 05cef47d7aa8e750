"""Tests that environment variables of the caller, such as KUBECONFIG or COLUMNS, do not change the results of tests."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.patience import run

ROOT = Path(__file__).resolve().parents[2]

# Variables that once made tests fail, and other variables that the programs under test read.
HOSTILE = {
    "CAREEN_PERIOD": "nonsense",
    "CAREEN_CONCURRENCY": "0",
    "CAREEN_DS_NAMESPACE": "a/b",
    "KURED_PERIOD": "nonsense",
    "KURED_NO_SUCH": "1",
    "KUBECONFIG": "/nowhere/kubeconfig",
    "KUBERNETES_SERVICE_HOST": "192.0.2.1",
    "KUBERNETES_SERVICE_PORT": "6443",
    "HTTP_PROXY": "http://192.0.2.1:3128",
    "HTTPS_PROXY": "http://192.0.2.1:3128",
    "http_proxy": "http://192.0.2.1:3128",
    "ALL_PROXY": "socks5://192.0.2.1:1",
    "SSL_CERT_FILE": "/nowhere/ca.pem",
    "REQUESTS_CA_BUNDLE": "/nowhere/ca.pem",
    "TZ": "Pacific/Kiritimati",
    "LC_ALL": "C",
    "LANG": "de_DE.UTF-8",
    "COLUMNS": "12",
    "LINES": "3",
    "TERM": "dumb",
    "FORCE_COLOR": "1",
    "NO_COLOR": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONWARNINGS": "ignore",
    "MAKEFLAGS": "-n",
}
# Settings of agents and commands, help pages and tables, times, requests to a server in the same process, child
# processes.
SENSITIVE = (
    "tests/careen/cli/test_config.py",
    "tests/careen/cli/support/test_agent_options.py",
    "tests/careen/cli/test_status.py",
    "tests/careen/cli/test_hold.py",
    "tests/careen/report/test_tables.py",
    "tests/careen/settings/test_sources.py",
    "tests/careen/services/test_prometheus.py",
    "tests/careen/cli/support/test_connection.py::test_commands_use_the_kubeconfig_in_the_home_folder_like_kubectl",
    "tests/careen/agent/test_process.py::test_the_error_for_missing_credentials_suggests_the_flag_kubeconfig",
    "tests/careen/agent/test_process.py::test_an_agent_with_an_invalid_config_map_exits_with_code_2",
    "tests/careen/services/test_notify_child.py",
    "tests/architecture/test_continuous_integration.py",
    "tests/drydock/test_kubectl.py",
)


def test_exported_variables_of_the_caller_do_not_reach_tests(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text("no: kubeconfig")
    done = run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *SENSITIVE],
        cwd=ROOT,
        env={**os.environ, **HOSTILE, "HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
