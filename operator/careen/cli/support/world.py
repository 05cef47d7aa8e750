"""The cluster of a command about one pod: live or from a dump."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from careen.agent.forecast.child import supported
from careen.cli.support.files import dump_of
from careen.cli.support.screen import BadInput, did_you_mean, say
from scheduler_core.model.manifests.fields import clock_at
from scheduler_core.model.pod import Pod
from scheduler_core.snapshot.snapshot import Snapshot, UnknownPodError

if TYPE_CHECKING:
    from careen.cli.support.connection import Cluster

World = tuple[Snapshot, str, Callable[[], float] | None]  # and the release of its scheduler, the time of the lists


async def from_cluster(cluster: Cluster) -> World:
    from careen.cluster.snapshot_reader import server_version  # a dump needs no client
    from careen.cluster.whole_cluster import read_cluster

    version, note = supported(await server_version(cluster.api))
    _say(note)
    moment = cluster.clock.now().timestamp()
    return await read_cluster(cluster.api), version, lambda: moment


def from_dump(path: Path) -> World:
    dump = dump_of(path)
    version, note = supported(dump.header.kube_version)
    _say(note)
    return dump.snapshot, version, clock_at(dump.header.taken_at)


def _say(note: str) -> None:
    if note:
        say(f"Note: {note}.", err=True)


def find_pod(snapshot: Snapshot, key: str) -> Pod:
    """Without a namespace: in `default`, as in kubectl."""
    wanted = key if "/" in key else f"default/{key}"
    try:
        return snapshot.pod(wanted)
    except UnknownPodError as error:
        raise BadInput(f"there is no pending or running pod {key!r}{_suggestion(snapshot, wanted)}") from error


def _suggestion(snapshot: Snapshot, wanted: str) -> str:
    """Pods of the same name in other namespaces, or of a similar name."""
    keys = [pod.key for pod in (*snapshot.placed_pods, *snapshot.pending)]
    same = sorted(each for each in keys if each.rpartition("/")[2] == wanted.rpartition("/")[2])
    if same:
        return f"; did you mean {', '.join(same[:3])}?"
    return did_you_mean(wanted, keys, otherwise="; write the pod as NAMESPACE/POD")
