"""Fills an etcd with the bench's cluster before an API server starts on it: 150,000 pods in minutes instead of hours.

The objects are JSON, which an API server reads as well as its own protobuf; its responses are the same. Without
controllers and scheduler, nothing changes while lists are read.
"""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import urllib3

from tests.cluster.harness.machines.control_plane import ControlPlane
from tests.cluster.harness.machines.processes import Guardian

_PLACES = {
    "NodeList": "minions",
    "PodList": "pods",
    "NamespaceList": "namespaces",
    "ServiceList": "services/specs",
    "ReplicaSetList": "replicasets",
}
_PER_REQUEST = 100  # etcd takes at most 128 operations and 1.5 MiB at once


class FilledControlPlane(ControlPlane):
    """Only etcd and kube-apiserver. etcd has the objects of the list pages in a folder."""

    def __init__(self, folder: Path, pages: Iterable[bytes], *, guardian: Guardian) -> None:
        self._pages = pages
        super().__init__(folder, guardian=guardian)

    def start_api_server(self) -> None:
        """Fills etcd first: the server reads all objects once when it starts."""
        fill(f"http://127.0.0.1:{self._etcd_port}", self._pages)
        super().start_api_server()

    def _wait_until_ready(self, patience_seconds: float = 1800) -> None:
        super()._wait_until_ready(patience_seconds)

    def _start_the_rest(self) -> None:
        """No controllers and no scheduler: this bench only reads lists."""


def fill(etcd: str, pages: Iterable[bytes]) -> None:
    """Writes every object through etcd's HTTP gateway."""
    http = urllib3.PoolManager()
    _wait_for(http, etcd)
    puts = (put for page in pages for put in _puts(json.loads(page)))
    while several := list(islice(puts, _PER_REQUEST)):
        answer = http.request("POST", f"{etcd}/v3/kv/txn", body=json.dumps({"success": several}))
        if answer.status != 200:
            raise RuntimeError(f"etcd answered with status {answer.status}: {answer.data.decode()[:300]}")


def _wait_for(http: urllib3.PoolManager, etcd: str, patience_seconds: float = 60) -> None:
    give_up = time.monotonic() + patience_seconds
    while True:
        try:
            if http.request("GET", f"{etcd}/health", retries=False).status == 200:
                return
        except urllib3.exceptions.HTTPError:
            pass
        if time.monotonic() > give_up:
            raise RuntimeError(f"etcd did not answer within {patience_seconds} s")
        time.sleep(0.1)


def _puts(page: dict[str, Any]) -> Iterator[dict[str, Any]]:
    kind = page["kind"].removesuffix("List")
    for item in page["items"]:
        meta = {
            "creationTimestamp": "2026-01-01T00:00:00Z",
            **{key: value for key, value in item["metadata"].items() if key != "resourceVersion"},
        }
        stored = {"kind": kind, "apiVersion": page["apiVersion"], **item, "metadata": meta}
        key = "/".join(
            part for part in ("/registry", _PLACES[page["kind"]], meta.get("namespace"), meta["name"]) if part
        )
        yield {
            "requestPut": {
                "key": b64encode(key.encode()).decode(),
                "value": b64encode(json.dumps(stored).encode()).decode(),
            }
        }
