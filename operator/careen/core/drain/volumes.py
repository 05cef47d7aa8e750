"""Which volumes of evicted pods are still attached to the drained node. The node waits for them before its reboot: a
volume that is attached to a node that is down can be attached to another only after minutes."""

from __future__ import annotations

from collections.abc import Iterable

from careen.core.drain.drain_plan import DrainPlan
from careen.core.facts.observation import PodView
from careen.core.facts.phases import Evidence
from careen.core.facts.times import span
from careen.core.situation import Situation
from scheduler_core.sentences import first_few

# Cloud providers and Longhorn take up to about two minutes. A volume that is attached after five will stay so: the
# attach/detach controller itself gives up after six (maxWaitForUnmountDuration) and detaches by force.
MOST_SECONDS = 300.0
_LOOK_SECONDS, _LONGEST_LOOK_SECONDS = 2.0, 15.0  # a look may list the VolumeAttachments of the whole cluster
_LOOK_SHARE = 0.25  # of the time so far


def look_seconds(waited: float) -> float:
    """The seconds until the next look, after a wait of so many seconds."""
    return min(max(_LOOK_SECONDS, waited * _LOOK_SHARE), _LONGEST_LOOK_SECONDS, MOST_SECONDS - waited)


def waited_seconds(situation: Situation) -> float | None:
    """How long the node has been drained; None before the first look."""
    return situation.elapsed(situation.progress.drained)


def awaited(situation: Situation, plan: DrainPlan) -> tuple[str, ...]:
    """The names of the volumes that the node waits for; () if none is left, or the wait took too long."""
    return () if _is_over(situation) else _attached(situation, (*plan.staying, *plan.given_up))


def said(situation: Situation, plan: DrainPlan) -> str:
    """A clause about the volumes for which the node no longer waits, for the sentence that reports the reboot; ""
    without any."""
    left = _attached(situation, (*plan.staying, *plan.given_up)) if _is_over(situation) else ()
    return f" (after {span(MOST_SECONDS)} these volumes are still attached: {first_few(left)})" if left else ""


def _is_over(situation: Situation) -> bool:
    return (waited_seconds(situation) or 0.0) >= MOST_SECONDS


def _attached(situation: Situation, staying: Iterable[PodView]) -> tuple[str, ...]:
    """The names of the volumes; () if none is left, or the node had none.

    The Node's status answers first. But the attach/detach controller removes a volume from it before it detaches the
    volume, so at the end the VolumeAttachments decide, if they can be listed. They also tell which volumes the pods
    use that stay on the node.
    """
    listed, claims = situation.node.volumes, {(pod.namespace, claim) for pod in staying for claim in pod.claims}
    if not listed and not situation.progress.volumes:
        return ()
    if listed and not claims:
        return listed
    found = situation.read(Evidence.VOLUMES)
    if found is not None:
        return tuple(each.name for each in found if not each.stays)
    return listed if len(listed) > len(claims) else ()
