"""Tests that the agent loads its libraries without the parts that it does not use."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from careen.cluster.wire.lean_imports import ON_USE as ON_USE_NAMES
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
import json, ssl, sys
real = ssl.create_default_context
from careen.cluster.wire.lean_imports import load_lean_client, load_lean_kopf
load_lean_client()
load_lean_kopf()
load_lean_kopf()
import aiohttp, aiohttp.connector, kopf
trusted = aiohttp.connector._SSL_CONTEXT_VERIFIED
print(json.dumps({
    "trusted": trusted.cert_store_stats()["x509_ca"],
    "verifies": trusted.verify_mode == ssl.CERT_REQUIRED and trusted.check_hostname,
    "restored": ssl.create_default_context is real,
    "kopf": hasattr(kopf, "operator"),
    "loaded": sorted({"pydantic", "oauthlib", "aiohttp.web_app", "kubernetes.client.models"} & set(sys.modules)),
    "web": (__import__("aiohttp.web"), aiohttp.web.Application.__module__)[1],
}))
"""

ON_USE = """
import json, sys, threading
from types import ModuleType
sys.path.append("/nowhere/python.zip")
from careen.cluster.wire.lean_imports import ON_USE, load_lean_client
load_lean_client()
import html, shutil, jsonpatch
import html as again
waiting = {name: type(sys.modules[name]) is not ModuleType for name in ("html", "shutil", "jsonpatch")}
lengths = []
threads = [threading.Thread(target=lambda: lengths.append(len(html.entities.html5))) for _ in range(8)]
for each in threads: each.start()
for each in threads: each.join()
from shutil import which
try:
    jsonpatch.no_such_name
except AttributeError as error:
    said = str(error)
print(json.dumps({
    "waiting": waiting,
    "same": again is html is sys.modules["html"],
    "escaped": html.escape("<"),
    "lengths": sorted(set(lengths)) == [len(sys.modules["html.entities"].html5)] and len(lengths) == 8,
    "which": which.__module__,
    "loaded": type(html) is ModuleType,
    "file": html.__spec__.loader.get_filename("html") == html.__file__,
    "said": said,
    "path": "/nowhere/python.zip" in sys.path,
}))
"""

# Imports one lazily loaded module, uses it, and prints which other lazily loaded modules were used meanwhile.
ALONE = """
import sys
from importlib import import_module
from types import ModuleType
from careen.cluster.wire.lean_imports import ON_USE, lean_start
from careen.cluster.wire import lean_imports
more = sys.argv[2:]
lean_imports.ON_USE = ON_USE = (*ON_USE, *more)
lean_imports.TRICKS.update({f"on-use:{name}": "" for name in more})
lean_imports._load_on_use()
for name in set(ON_USE) & set(sys.modules):
    del sys.modules[name]
module = import_module(sys.argv[1])
was_waiting = type(module) is not ModuleType
try:
    module.no_such_name
except AttributeError:
    pass
assert was_waiting and type(module) is ModuleType, module
used = [name for name in ON_USE if name != sys.argv[1] and type(sys.modules.get(name)) is ModuleType]
print(*used)
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
        "trusted": 0,
        "verifies": True,
        "restored": True,
        "kopf": True,
        "loaded": [],
        "web": "aiohttp.web_app",
    }


def test_a_lazily_loaded_module_is_complete_when_it_is_used(tmp_path: Path) -> None:
    done = run(ON_USE, tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "waiting": {"html": True, "shutil": True, "jsonpatch": True},
        "same": True,
        "escaped": "&lt;",
        "lengths": True,
        "which": "shutil",
        "loaded": True,
        "file": True,
        "said": "module 'jsonpatch' has no attribute 'no_such_name'",
        "path": False,
    }


def modules_used_while_loading(module: str, folder: Path, *more: str) -> list[str]:
    done = patience.run([sys.executable, "-c", ALONE, module, *more], cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("name", ON_USE_NAMES)
def test_no_other_lazy_module_is_used_while_python_loads_a_lazy_module(name: str, tmp_path: Path) -> None:
    """Python holds a lock while it loads a module. If two lazily loaded modules used each other, two threads that load
    them could wait for each other for ever."""
    assert modules_used_while_loading(name, tmp_path) == []


def test_the_check_finds_a_lazily_loaded_module_that_uses_another_lazily_loaded_module(tmp_path: Path) -> None:
    (tmp_path / "uses_between.py").write_text("import between")
    (tmp_path / "between.py").write_text("import last\nnumber = last.number")
    (tmp_path / "last.py").write_text("number = 1")
    assert modules_used_while_loading("uses_between", tmp_path, "uses_between", "last") == ["last"]


def test_a_kubernetes_client_that_is_already_loaded_is_left_unchanged(tmp_path: Path) -> None:
    done = run(LOADED_ALREADY, tmp_path)
    assert done.returncode == 0, done.stderr
