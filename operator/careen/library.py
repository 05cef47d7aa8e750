"""A cluster as a snapshot of scheduler_core, for programs and notebooks."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from careen.agent.clock import SystemClock
from careen.cluster.whole_cluster import read_cluster
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.client import connect
from scheduler_core.snapshot.snapshot import Snapshot


def from_kubeconfig(path: str | Path | None = None, *, context: str | None = None) -> Snapshot:
    """Reads a cluster: by default that of KUBECONFIG or of ~/.kube/config, and its current context.

    Reads what `careen forecast` reads and changes nothing. Raises CannotReachCluster if the kubeconfig cannot be used,
    and ClusterError if a list fails.
    """
    file = Path(path or os.environ.get("KUBECONFIG") or Path.home() / ".kube" / "config")
    transport = connect(file, part="library", context=context)
    api = ClusterApi(transport, SystemClock(), chance=lambda: 0.0)
    try:
        # A notebook's thread already has a running event loop.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(lambda: asyncio.run(read_cluster(api))).result()
    finally:
        transport.close()
