"""Other reboot coordinators: a DaemonSet with pods that run kured, or one whose lock is held or paused, for example
because kured's pods were removed while a node held the lock.

Any tenant who may create a DaemonSet can give it kured's image name or annotation. So it is ignored until it has pods.
Only administrators can create `kube-system/kured`, which need not have pods:

* Kured's image is reported as soon as it is to run on a node.
* A claim in its lock is reported even if it is to run on no node: a node may be down under that claim.
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
    """One sentence for each other coordinator, without the agents' own DaemonSet."""
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
    """Without the right to list DaemonSets only `kube-system/kured`."""
    try:
        return await api.items(DAEMONSETS, objects.DaemonSet)
    except Withheld:
        namespace, name = KUREDS_PLACE
    try:
        return [await api.get(f"/apis/apps/v1/namespaces/{namespace}/daemonsets/{name}", objects.DaemonSet)]
    except NotFound:
        return []


class Pods(Value, kw_only=True):
    """On how many nodes a DaemonSet has pods, and whether they run kured's image."""

    number: int
    are_kureds: bool


async def pods_of(api: ClusterApi, *, namespace: str, name: str) -> Pods:
    """Raises `NotFound` if the DaemonSet does not exist."""
    path = f"/apis/apps/v1/namespaces/{quote(namespace, safe='')}/daemonsets/{quote(name, safe='')}"
    daemonset = await api.get(path, objects.DaemonSet)
    return Pods(number=_pods(daemonset), are_kureds=_has_kureds_image(daemonset))


def _pods(daemonset: objects.DaemonSet) -> int:
    """With nodes that its selector no longer matches, and pods that are not ready, which may start at any moment."""
    return max(0, daemonset.status.current_number_scheduled) + max(0, daemonset.status.number_misscheduled)


def _held(annotation: str | None) -> str:
    """The lock's holders, its pause, or that it is unreadable; "" if it is free, for example an empty list of claims,
    which kured may leave."""
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
    """`kured` for `ghcr.io/kubereboot/kured:1.23.0`."""
    return image.rsplit("/", 1)[-1].split("@", 1)[0].split(":", 1)[0]
