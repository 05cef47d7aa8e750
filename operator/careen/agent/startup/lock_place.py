"""Checks, before the agent's first write, whether --ds-namespace and --ds-name name the agents' own DaemonSet.

With two locks, neither contains all claims, and two nodes could reboot at once. The defaults name kured's DaemonSet, as
in kured, so an agent of another DaemonSet would use the wrong lock. If both flags are given, the agent trusts them: a
person may want the agents of two DaemonSets to share one lock.
"""

from __future__ import annotations

from careen.cluster.lock_store import LockStore
from careen.cluster.pods import read_controller
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.errors import NotFound
from scheduler_core.values import Value


class LockPlace(Value):
    """The DaemonSet that carries a lock."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"DaemonSet {self.namespace}/{self.name}"

    @property
    def flags(self) -> str:
        """The flags that would make an agent use this DaemonSet."""
        return f"--ds-namespace={self.namespace} --ds-name={self.name}"


class OwnPod(Value):
    """This process's pod, according to the service account's files and the environment."""

    namespace: str
    name: str


class Judged(Value):
    """Whether the agent may use the lock that the settings name. With a `refusal` it must not, and starts only if its
    node has a claim. A `remark` is logged. Both are empty if the DaemonSet is the agents' own."""

    refusal: str = ""
    remark: str = ""


async def judge(api: ClusterApi, named: LockPlace, *, is_given: bool, pod: OwnPod | None, annotation: str) -> Judged:
    """Whether the agent may use the lock of `named`. `is_given`: both flags (or environment variables) are given. `pod`
    is None outside a pod.

    Empty if `named` controls `pod`. Otherwise:

    * With a pod, flags not given: a refusal.
    * With a pod, flags given: a refusal if `named` does not exist, a remark if another DaemonSet controls the pod,
      empty if none does.
    * Without a pod: a refusal if the flags are not given and `named` does not exist, otherwise empty.

    Raises `ClusterError` if the server gives no answer.
    """
    if pod is None and is_given:
        return Judged()  # without the DaemonSet every refusal names that cause anyway
    own = await _own_place(api, pod) if pod else None
    if own == named:
        return Judged()
    if pod and own and not is_given:
        return Judged(
            refusal=f"this agent belongs to {own}, but would use the lock of {named}, because --ds-namespace and "
            f"--ds-name are not both given. With two locks, two nodes could reboot at once. Give {own.flags}"
        )
    if pod and not own and not is_given:
        return Judged(
            refusal=f"the agent cannot tell which DaemonSet controls its own pod {pod.namespace}/{pod.name}. Give both "
            "--ds-namespace and --ds-name, or set POD_NAME"
        )
    if not await _is_there(api, named, annotation):
        return Judged(
            refusal=f"{named} does not exist, but it must carry the lock; name the agents' own DaemonSet with "
            "--ds-namespace and --ds-name"
        )
    return Judged(remark=f"this agent belongs to {own} and shares the lock of {named}") if own else Judged()


async def _own_place(api: ClusterApi, pod: OwnPod) -> LockPlace | None:
    owner = await read_controller(api, pod.namespace, pod.name)
    return LockPlace(owner.namespace, owner.name) if owner and owner.kind == "DaemonSet" else None


async def _is_there(api: ClusterApi, place: LockPlace, annotation: str) -> bool:
    try:
        await LockStore(api, namespace=place.namespace, name=place.name, annotation=annotation).read()
    except NotFound:
        return False
    return True
