"""The client without what an agent never uses."""

from __future__ import annotations

import json
import sys

from tests.patience import run

# As the agent loads it, then a request that is really sent, then what other parts may need later.
PROGRAM = """
import asyncio, json, sys
from pathlib import Path
from careen.cluster.lean_client import load_lean_client
load_lean_client()
load_lean_client()
from careen.cluster.client import CannotReachCluster, ClientTransport, load_configuration
from careen.cluster.errors import NotSent
from careen.cluster.transport import Request
Path("kubeconfig").write_text("{apiVersion: v1, current-context: c, clusters: [{name: s, cluster: {server: 'http://127.0.0.1:1'}}], users: [{name: u, user: {token: t}}], contexts: [{name: c, context: {cluster: s, user: u}}]}")
transport = ClientTransport(lambda: load_configuration(Path("kubeconfig")), agent="test")
try:
    asyncio.run(transport.send(Request(method="GET", path="/")))
except NotSent:
    sent = True
left_out = sorted({"requests", "requests_oauthlib", "oauthlib", "websocket"} & set(sys.modules))
from kubernetes.config import kube_config
try:
    kube_config.OAuth2Session("client")
except NotImplementedError as error:
    refused = str(error)
import requests
print(json.dumps({"sent": sent, "left_out": left_out, "refused": refused, "requests": requests.Session.__module__}))
"""


def test_requests_are_sent_and_nothing_of_the_rest_is_loaded_until_somebody_needs_it(tmp_path) -> None:  # type: ignore[no-untyped-def]
    done = run([sys.executable, "-c", PROGRAM], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "sent": True,
        "left_out": [],
        "refused": "OAuth2Session is left out of the agent to save memory; give it a kubeconfig with a token or a certificate",
        "requests": "requests.sessions",
    }


def test_where_the_client_is_loaded_already_nothing_changes() -> None:
    program = "import kubernetes.config.kube_config as k; from careen.cluster.lean_client import load_lean_client; load_lean_client(); import requests_oauthlib; assert k.OAuth2Session is requests_oauthlib.OAuth2Session"
    assert run([sys.executable, "-c", program]).returncode == 0
