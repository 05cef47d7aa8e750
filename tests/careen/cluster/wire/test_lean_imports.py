"""Tests that the agent loads its libraries without the parts that it does not use."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests import patience

# Loads the client as the agent does, sends a request, and then tries what the lean client lacks.
CLIENT = """
import asyncio, json, sys
from pathlib import Path

from tests import patience
from careen.cluster.wire.lean_imports import load_lean_client
load_lean_client()
load_lean_client()
from careen.cluster.wire.client import ClientTransport, load_configuration
from careen.cluster.wire.errors import NotSent
from careen.cluster.wire.transport import Request
Path("kubeconfig").write_text(
    "{apiVersion: v1, current-context: c, clusters: [{name: s, cluster: {server: 'http://127.0.0.1:1'}}],"
    " users: [{name: u, user: {token: t}}], contexts: [{name: c, context: {cluster: s, user: u}}]}"
)
transport = ClientTransport(lambda: load_configuration(Path("kubeconfig")), agent="test")
try:
    asyncio.run(transport.send(Request(method="GET", path="/")))
except NotSent:
    sent = True
heavy = {"pydantic", "dateutil", "requests", "requests_oauthlib", "oauthlib", "websocket", "kubernetes.client.models"}
loaded = sorted(heavy & set(sys.modules))
from kubernetes.config import kube_config
refused = []
for left_out in (kube_config.OAuth2Session, kube_config.ApiClient):
    try:
        left_out("client")
    except NotImplementedError as error:
        refused.append(str(error).partition(";")[0])
try:
    from kubernetes.client import CoreV1Api
except ImportError:
    refused.append("CoreV1Api")
import requests
print(json.dumps({"sent": sent, "loaded": loaded, "refused": refused, "requests": requests.Session.__module__}))
"""

KOPF = """
import json, sys
from careen.cluster.wire.lean_imports import load_lean_client, load_lean_kopf
load_lean_client()
load_lean_kopf()
load_lean_kopf()
import aiohttp, kopf
print(json.dumps({
    "kopf": hasattr(kopf, "operator"),
    "loaded": sorted({"pydantic", "oauthlib", "aiohttp.web_app", "kubernetes.client.models"} & set(sys.modules)),
    "web": (__import__("aiohttp.web"), aiohttp.web.Application.__module__)[1],
}))
"""

LOADED_ALREADY = """
import kubernetes.config.kube_config as k
from careen.cluster.wire.lean_imports import load_lean_client
load_lean_client()
import requests_oauthlib
assert k.OAuth2Session is requests_oauthlib.OAuth2Session
"""


def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return patience.run([sys.executable, "-c", program], cwd=folder)


def test_the_kubernetes_client_works_without_its_models_and_oauth_flows(tmp_path: Path) -> None:
    done = run(CLIENT, tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "sent": True,
        "loaded": [],
        "refused": [
            "OAuth2Session is left out of the agent to save memory",
            "ApiClient is left out of the agent to save memory",
            "CoreV1Api",
        ],
        "requests": "requests.sessions",
    }


def test_kopf_loads_without_its_web_server_and_leaves_no_stub_modules(tmp_path: Path) -> None:
    done = run(KOPF, tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "kopf": True,
        "loaded": [],
        "web": "aiohttp.web_app",
    }


def test_a_kubernetes_client_that_is_already_loaded_is_left_unchanged(tmp_path: Path) -> None:
    done = run(LOADED_ALREADY, tmp_path)
    assert done.returncode == 0, done.stderr
