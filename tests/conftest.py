"""Fixtures for all tests. No variable of the caller's environment reaches a test, and pytest's timeout is the only
wall-clock limit.

pytest loads this file before any test module, in the main process and in each worker of pytest-xdist.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import time

from hypothesis import HealthCheck, settings

# Whatever careen, kured's flags, the Kubernetes client, HTTP libraries, Python, click and rich would read. One list for
# all tests, so that none of them needs its own.
_PREFIXES = ("CAREEN_", "_CAREEN_", "KURED_", "KUBERNETES_", "LC_")
_NAMES = {
    "KUBECONFIG",
    "KUBE_EDITOR",
    "KUBECTL_EXTERNAL_DIFF",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NETRC",
    "TZ",
    "PYTHONTZPATH",
    "LANG",
    "LANGUAGE",
    "COLUMNS",
    "LINES",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "FORCE_COLOR",
    "TTY_COMPATIBLE",
    "TTY_INTERACTIVE",
    "PAGER",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONWARNINGS",
    "PYTHONIOENCODING",
    "PYTHONUTF8",
    "PYTHONDEVMODE",
    "PYTHONASYNCIODEBUG",
    "MAKEFLAGS",
    "MAKELEVEL",
    "MFLAGS",
}


def _isolate() -> None:
    for name in [name for name in os.environ if name in _NAMES or name.startswith(_PREFIXES)]:
        del os.environ[name]
    os.environ["LC_ALL"] = "C.UTF-8"
    os.environ["HOME"] = tempfile.mkdtemp(prefix="careen-tests-home-")  # a home without ~/.kube/config
    atexit.register(shutil.rmtree, os.environ["HOME"], ignore_errors=True)
    time.tzset()


_isolate()

# A slow machine makes an example slow, never wrong. The same commit always runs the same examples, so a test fails in
# the change that broke it. `make hunt` tries other examples.
_PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("hunt", **_PATIENT, print_blob=True)
settings.register_profile("patient", **_PATIENT, derandomize=True)
settings.load_profile("patient")
