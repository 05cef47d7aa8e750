"""The placed pods that use claims or legacy disks: volume plugins read only these, because most pods use neither."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import ClassVar, Final

from msgspec import field

from scheduler_core.model.pod import Pod, PodSpec
from scheduler_core.snapshot.columns import Columns
from scheduler_core.snapshot.pods.change_log import Changes
from scheduler_core.snapshot.pods.pod_table import PodTable
from scheduler_core.values import Value


class VolumeUsers(Value, eq=False):
    """`by_row` has these pods by their node's row. `uses` maps each used claim ("namespace/name") to the number of pod
    volumes that refer to it.

    Claims made for one pod (ephemeral volumes) are not in `uses`, because no other pod can refer to them.
    """

    by_row: Mapping[int, tuple[Pod, ...]] = field(default_factory=dict)
    uses: Mapping[str, int] = field(default_factory=dict)


class VolumeUsersTally(Value):
    """Reads the whole table of pods once, and updates the result with each change of pods."""

    reads_every_pod: ClassVar[bool] = True

    def count(self, columns: Columns, table: PodTable) -> VolumeUsers:  # noqa: ARG002 -- the tally's signature
        concerns: dict[PodSpec, bool] = {}
        by_row: dict[int, list[Pod]] = {}
        uses: dict[str, int] = {}
        for pod, row in zip(table.pods, table.rows, strict=True):
            concern = concerns.get(pod.spec)
            if concern is None:
                concern = concerns[pod.spec] = pod.spec.has_claims_or_disks
            if concern:
                by_row.setdefault(int(row), []).append(pod)
                _count_uses(uses, pod, 1)
        return VolumeUsers({row: tuple(pods) for row, pods in by_row.items()}, uses)

    def after(self, value: VolumeUsers, changes: Changes, columns: Columns, table: PodTable) -> VolumeUsers:  # noqa: ARG002
        relevant = [change for change in changes if change.pod.spec.has_claims_or_disks]
        if not relevant:
            return value
        by_row, uses = dict(value.by_row), dict(value.uses)
        for change in relevant:
            others = tuple(pod for pod in by_row.get(change.row, ()) if pod.key != change.pod.key)
            remaining = (*others, change.pod) if change.sign > 0 else others
            if remaining:
                by_row[change.row] = remaining
            else:
                by_row.pop(change.row, None)
            _count_uses(uses, change.pod, change.sign)
        return VolumeUsers(by_row, uses)

    def basis(self, columns: Columns) -> Hashable:  # noqa: ARG002
        return None

    def over(self, value: VolumeUsers, rows: int) -> VolumeUsers:  # noqa: ARG002
        return value


VOLUME_USERS: Final = VolumeUsersTally()


def _count_uses(uses: dict[str, int], pod: Pod, sign: int) -> None:
    for volume in pod.spec.volumes:
        if volume.claim_name is not None:
            key = f"{pod.namespace}/{volume.claim_name}"
            uses[key] = uses.get(key, 0) + sign
            if not uses[key]:
                del uses[key]
