"""Checks, before the agent's first write, whether --ds-namespace and --ds-name refer to the agents' own DaemonSet.

An agent looks for claims only in the lock of the DaemonSet that these flags name. If two agents used different locks,
neither lock would contain the claims of both agents, so two nodes could reboot at once. By default, the flags name
kured's DaemonSet, as in kured. So without the flags, an agent of another DaemonSet would use the wrong lock. If both
flags are given, the agent trusts the flags, because a person may want the agents of two DaemonSets to share one lock.
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
    """The pod that this process runs in, according to the service account's files and the environment."""

    namespace: str
    name: str


class Judged(Value):
    """The result of the check whether the agent may use the lock of the DaemonSet in the settings. If there is a
    `refusal`, the agent must not use this lock, and starts only if its node has a claim. If there is a `remark`, the
    agent logs it and starts. `refusal` and `remark` are empty if this is the DaemonSet to which the agents belong."""

    refusal: str = ""
    remark: str = ""


async def judge(api: ClusterApi, named: LockPlace, *, is_given: bool, pod: OwnPod | None, annotation: str) -> Judged:
    """Checks whether the agent may use the lock of `named`, the DaemonSet in the settings. `is_given` is true if
    --ds-namespace and --ds-name are both given, as flags or as environment variables. `pod` is the agent's own pod, or
    None if this process does not run in a pod.

    If `named` is the DaemonSet that controls `pod`, the result is empty. Otherwise there are three cases:

    * There is a pod, and `is_given` is false. The result has a refusal.
    * There is a pod, and `is_given` is true. The result has a refusal if `named` does not exist. If `named` exists and
      another DaemonSet controls the pod, the result has a remark. If `named` exists and no DaemonSet controls the pod,
      the result is empty.
    * There is no pod. The result has a refusal if `is_given` is false and `named` does not exist. Otherwise the result
      is empty.

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
