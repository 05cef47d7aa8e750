"""Fixtures: the embedded API server, and a real connection to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.client import connect
from drydock.server.testing import RunningServer, running_server
from tests.careen.virtual_shell import Meddling, VirtualClock


@dataclass
class Cluster:
    """An embedded API server, and a ClusterApi connected to it. A test can make the requests of this ClusterApi
    fail."""

    server: RunningServer
    wire: Meddling
    api: ClusterApi

    def put_node(self, name: str, **metadata: Any) -> dict[str, Any]:
        spec = metadata.pop("spec", {})
        status = metadata.pop(
            "status", {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"bootID": f"boot-{name}"}}
        )
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, **metadata},
            "spec": spec,
            "status": status,
        }
        self.server.seed(node)
        return self.node(name)

    def node(self, name: str) -> dict[str, Any]:
        found = self.server.get("nodes", name)
        assert found is not None
        return found

    def put_pod(self, name: str, node: str = "n1", **more: Any) -> None:
        self.server.seed(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": more.pop("namespace", "shop"), **more.pop("metadata", {})},
                "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}], **more.pop("spec", {})},
                "status": {
                    "phase": "Running",
                    "conditions": [{"type": "Ready", "status": "True"}],
                    **more.pop("status", {}),
                },
            }
        )

    def put_daemonset(
        self,
        namespace: str = "careen",
        name: str = "careen",
        *,
        image: str = "careen:1",
        scheduled: int | None = 3,
        status: dict[str, int] | None = None,
        **metadata: Any,
    ) -> None:
        self.server.seed(
            {
                "apiVersion": "apps/v1",
                "kind": "DaemonSet",
                "metadata": {"name": name, "namespace": namespace, **metadata},
                "spec": {
                    "selector": {"matchLabels": {"a": "b"}},
                    "template": {
                        "metadata": {"labels": {"a": "b"}},
                        "spec": {"containers": [{"name": "c", "image": image}]},
                    },
                },
                "status": status
                if status is not None
                else {}
                if scheduled is None
                else {"desiredNumberScheduled": scheduled, "currentNumberScheduled": scheduled},
            }
        )


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with running_server() as server:
        transport = connect(server.write_kubeconfig(tmp_path / "kubeconfig"), part="test")
        wire = Meddling(transport)
        yield Cluster(server=server, wire=wire, api=ClusterApi(wire, VirtualClock(), chance=lambda: 0.0))
        transport.close()
