"""Prefers nodes that already have the pod's images. An image that few nodes have adds less to the score. Refuses
nothing."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar, Final

import numpy as np

from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.framework.cycle_state import CycleState
from scheduler_core.framework.extension_points import Scores
from scheduler_core.model.kept_with_spec import kept_with_spec
from scheduler_core.model.pod import Pod, PodSpec
from scheduler_core.snapshot.node_info import NodeInfo
from scheduler_core.snapshot.node_list import NodeList
from scheduler_core.snapshot.nodes.node_images import share_between
from scheduler_core.values import Value

# Below the first threshold an image is pulled too quickly to matter; above the second, per container, the score stays
# the same (plugins/imagelocality/image_locality.go, v1.36).
_LEAST_BYTES: Final = 23 * 2**20
_MOST_BYTES_PER_CONTAINER: Final = 1000 * 2**20


class ImageLocality(Value):
    """The score, from 0 to 100, says where the size of the pod's images on the node lies between two thresholds: 23
    MiB, and 1000 MiB for each container (since 1.37 for each container and image volume)."""

    kube_version: KubeVersion
    name: ClassVar[str] = "ImageLocality"

    def node_key(self, pod: Pod) -> Hashable:
        return self._images(pod.spec), self._most_bytes(pod.spec)

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:  # noqa: ARG002
        total = node_info.cluster_size
        states = (node_info.image_state(name) for name in self._images(pod.spec))
        at_hand = sum(state.spread_bytes(total) for state in states if state is not None)
        return int(share_between(at_hand, _LEAST_BYTES, self._most_bytes(pod.spec)))

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeList) -> Scores:  # noqa: ARG002
        images = nodes.columns.images
        shares = images.shares(self._images(pod.spec), _LEAST_BYTES, self._most_bytes(pod.spec))
        return nodes.take(shares).astype(np.int64)

    def _images(self, spec: PodSpec) -> tuple[str, ...]:
        return images_of(spec, with_volumes=self.kube_version.image_volumes_count)

    def _most_bytes(self, spec: PodSpec) -> int:
        containers = len(spec.init_containers) + len(spec.containers)
        counted = len(self._images(spec)) if self.kube_version.image_volumes_share_the_score else containers
        return _MOST_BYTES_PER_CONTAINER * counted


@kept_with_spec
def images_of(spec: PodSpec, *, with_volumes: bool) -> tuple[str, ...]:
    """The images that a pod runs or mounts, with explicit tags; one that occurs twice in the spec is listed twice."""
    named = [c.image for c in (*spec.init_containers, *spec.containers)]
    mounted = [v.image for v in spec.volumes if v.kind == "image"] if with_volumes else []
    return tuple(_with_tag(name) for name in named + mounted)


def _with_tag(name: str) -> str:
    """Appends `:latest` if the name has neither a tag nor a digest after the last slash."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"
