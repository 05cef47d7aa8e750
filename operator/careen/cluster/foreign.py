"""Other reboot coordinators in the cluster: a kured that runs, or a live lock that one left behind."""

from __future__ import annotations

from careen.cluster import objects
from careen.cluster.wire.api import ApiServer
from careen.core.facts.keys import LOCK_ANNOTATION

DAEMONSETS = "/apis/apps/v1/daemonsets"


async def find_foreign(api: ApiServer, *, namespace: str, name: str) -> tuple[str, ...]:
    """A sentence for each foreign coordinator; `namespace` and `name` are our own DaemonSet's, which does not count.

    Seen are DaemonSets whose image is called kured and that have pods, and kured's lock on any other DaemonSet.
    """
    found: list[str] = []
    for each in await api.items(DAEMONSETS, objects.DaemonSet):
        meta = each.metadata
        if (meta.namespace, meta.name) == (namespace, name):
            continue
        title = f"DaemonSet {meta.namespace}/{meta.name}"
        if _runs_kured(each):
            found.append(
                f"{title} runs kured on {each.status.desired_number_scheduled} nodes: two coordinators would "
                "reboot at once; remove one of them"
            )
        elif lock := (meta.annotations or {}).get(LOCK_ANNOTATION):
            found.append(
                f"{title} carries a lock of another coordinator ({lock[:120]}): wait for its reboot to end, "
                f"or remove the annotation {LOCK_ANNOTATION}"
            )
    return tuple(sorted(found))


def _runs_kured(daemonset: objects.DaemonSet) -> bool:
    if max(daemonset.status.desired_number_scheduled, daemonset.status.current_number_scheduled) == 0:
        return False
    containers = daemonset.spec.template.spec.containers or ()
    return any(_image_name(container.image) == "kured" for container in containers)


def _image_name(image: str) -> str:
    """`kured` for `ghcr.io/kubereboot/kured:1.23.0`."""
    return image.rsplit("/", 1)[-1].split("@", 1)[0].split(":", 1)[0]
