"""Finds other reboot coordinators in the cluster: a DaemonSet with pods that run kured, or a DaemonSet whose lock is
held or paused, for example because kured's pods were removed while a node held the lock.

Any tenant who may create a DaemonSet can give it kured's image name or annotation. So careen ignores such a DaemonSet
until it has pods. Only administrators can create `kube-system/kured`. So for this DaemonSet careen does not wait for
pods:

* If its image is kured, careen reports it as soon as it is to run on at least one node.
* If its lock contains a claim, careen reports it even if it is to run on no node, because a node may be down under that
  claim.
"""

from __future__ import annotations

from urllib.parse import quote

from careen.cluster import objects
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.errors import NotFound, Withheld
from careen.core.facts.keys import LOCK_ANNOTATION
from careen.core.lock.content import Garbage, LockContent
from careen.core.lock.notation import parse
from careen.core.plain_text import one_line
from scheduler_core.sentences import first_few
from scheduler_core.values import Value

DAEMONSETS = "/apis/apps/v1/daemonsets"
KUREDS_PLACE = ("kube-system", "kured")  # where its manifests and its chart's documentation put it
_SHOWN_HOLDERS = 3


async def find_foreign(api: ClusterApi, *, namespace: str, name: str) -> tuple[str, ...]:
    """Returns one sentence for each other reboot coordinator in the cluster. `namespace` and `name` are those of the
    agents' own DaemonSet, which is left out.

    Finds DaemonSets with pods whose image is named kured, and DaemonSets whose lock annotation contains a claim or a
    pause.
    """
    found: list[str] = []
    for each in await _daemonsets(api):
        place = (each.metadata.namespace, each.metadata.name)
        pods = max(_pods(each), each.status.desired_number_scheduled if place == KUREDS_PLACE else 0)
        if place == (namespace, name) or not (pods or place == KUREDS_PLACE):
            continue
        daemonset = one_line(f"DaemonSet {place[0]}/{place[1]}", 400)
        if pods and _has_kureds_image(each):
            found.append(
                f"{daemonset} runs kured on {pods} nodes: kured and careen would reboot nodes at the same time; remove "
                "kured or careen"
            )
        elif held := _held((each.metadata.annotations or {}).get(LOCK_ANNOTATION)):
            found.append(
                f"{daemonset} carries a lock of another reboot coordinator ({held}): wait until that "
                f"coordinator has finished its reboot, or remove the annotation {LOCK_ANNOTATION}"
            )
    return tuple(sorted(found))


async def _daemonsets(api: ClusterApi) -> list[objects.DaemonSet]:
    """Lists all DaemonSets. Without the right to list them, reads only `kube-system/kured`."""
    try:
        return await api.items(DAEMONSETS, objects.DaemonSet)
    except Withheld:
        namespace, name = KUREDS_PLACE
    try:
        return [await api.get(f"/apis/apps/v1/namespaces/{namespace}/daemonsets/{name}", objects.DaemonSet)]
    except NotFound:
        return []


class Pods(Value, kw_only=True):
    """On how many nodes a DaemonSet has pods, and whether these pods run kured's image."""

    number: int
    are_kureds: bool


async def pods_of(api: ClusterApi, *, namespace: str, name: str) -> Pods:
    """Reads on how many nodes this DaemonSet has pods, and whether the pods are kured's. Raises `NotFound` if the
    DaemonSet does not exist."""
    path = f"/apis/apps/v1/namespaces/{quote(namespace, safe='')}/daemonsets/{quote(name, safe='')}"
    daemonset = await api.get(path, objects.DaemonSet)
    return Pods(number=_pods(daemonset), are_kureds=_has_kureds_image(daemonset))


def _pods(daemonset: objects.DaemonSet) -> int:
    """Returns on how many nodes the DaemonSet has pods, including nodes that its selector no longer matches. Includes
    pods that are not ready, because they may start at any moment."""
    return max(0, daemonset.status.current_number_scheduled) + max(0, daemonset.status.number_misscheduled)


def _held(annotation: str | None) -> str:
    """Returns a clause about the lock's state: its holders, a pause, or an unreadable content. Returns an empty text if
    the lock has no holder and is not paused, for example if it is an empty list of claims, which kured may leave."""
    content = parse(annotation)
    if isinstance(content, Garbage):
        return "careen cannot read the lock's content"
    if content.is_paused:
        return "a person has paused the lock"
    return f"the lock is held by {_names(content)}" if content.entries else ""


def _names(content: LockContent) -> str:
    return first_few(content.holders, _SHOWN_HOLDERS)  # unreadable names are already replaced by "unreadable entry 1"


def _has_kureds_image(daemonset: objects.DaemonSet) -> bool:
    return any(_image_name(each.image) == "kured" for each in daemonset.spec.template.spec.containers)


def _image_name(image: str) -> str:
    """Returns the image's name without registry, path and tag: `kured` for `ghcr.io/kubereboot/kured:1.23.0`."""
    return image.rsplit("/", 1)[-1].split("@", 1)[0].split(":", 1)[0]
