"""Reviews the agent's RBAC rights at its start, before a missing right causes a failure, and reports each missing right
once.

kured works with fewer rights. So with kured's own roles the agent switches off the features whose rights are missing:
it does not send what the server would deny, and uses a fallback.

With other roles a missing right is a mistake. The feature stays on, the node waits, and the agent tries again, so it
notices a right that is granted later. A feature that a person has configured stays on in any case.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from careen.agent.telemetry.metrics import Metrics
from careen.cluster.access import OptionalRight, Right, missing_rights
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.errors import ClusterError
from careen.cluster.wire.transport import Clock, Request
from careen.settings.sources import Source, Supplied

_LOG = logging.getLogger("careen.rights")

AGAIN_SECONDS = 600.0
UNKNOWN_SECONDS = 60.0

_DOES_WITHOUT: dict[OptionalRight, str] = {
    OptionalRight.SETTINGS: "the agent reads no ConfigMap: its settings come only from flags and environment",
    OptionalRight.FOLLOWING: "a change of the ConfigMap takes effect only at the agent's next start",
    OptionalRight.WATCHING: "a sleeping agent reads its Node once in five minutes",
    OptionalRight.PATCH: "the agent writes claims into the lock by an update of the whole DaemonSet, as kured does",
    OptionalRight.NODES: "the agent reads the Nodes one by one, and a Node without an agent does not count as down",
    OptionalRight.COORDINATORS: "the agent looks for another coordinator only at kube-system/kured",
    OptionalRight.OWNERS: "after a reboot the agent does not wait until the pods' owners are healthy, and does not "
    "check whether these owners bind pods to the node",
    OptionalRight.EVENTS: "the agent posts no Events in that namespace; the agent's log has the same messages",
    OptionalRight.FORECAST: "the agent makes no forecasts; it still tries each eviction as a dry run before it moves "
    "a pod",
}

_PROTECTS_NOTHING = frozenset({OptionalRight.EVENTS, OptionalRight.FOLLOWING, OptionalRight.WATCHING})
"""Features that protect no workloads: always switched off if their right is missing. Others only with kured's roles."""

_BY_SETTING = {"forecast": OptionalRight.FORECAST, "settle_policy": OptionalRight.OWNERS, "budget": OptionalRight.NODES}
"""The optional feature that a setting requests."""


def asked_for_by(origins: Mapping[str, Supplied]) -> frozenset[OptionalRight]:
    """The optional features that flags, variables or the ConfigMap request."""
    return frozenset(
        part for name, part in _BY_SETTING.items() if name in origins and origins[name].source is not Source.DEFAULT
    )


class Rights:
    """The review's result, and the features that are switched off."""

    def __init__(
        self,
        api: ClusterApi,
        clock: Clock,
        metrics: Metrics,
        *,
        node: str,
        needed: tuple[Right, ...],
        kept: Collection[OptionalRight] = (),
    ) -> None:
        """`kept` are optional features that a person has requested. They are never switched off."""
        self._api = api
        self._clock = clock
        self._metrics = metrics
        self._node = node
        self._needed = needed
        self._kept = frozenset(kept)
        self._missing: tuple[Right, ...] | None = None
        self._are_kureds = False
        self._told: frozenset[Right] = frozenset()
        self.without: frozenset[OptionalRight] = frozenset()
        """Switched off, because rights are missing."""

    @property
    def is_known(self) -> bool:
        """Whether the API server has said which rights are missing."""
        return self._missing is not None

    @property
    def is_whole(self) -> bool:
        """Whether no right is missing."""
        return self._missing == ()

    def are_as_before(self) -> None:
        """Of a process that slept: no right was missing. As in one that lives on, a denied request shows a change."""
        self._missing = ()

    async def review(self) -> None:
        """Reviews the rights, and switches off optional features."""
        try:
            self._missing = await self._ask()
        except ClusterError as error:
            _LOG.info("the agent cannot tell whether rights are missing: %s", error)
            return
        self._switch_off()

    def keep(self, parts: Collection[OptionalRight]) -> None:
        """Keeps these features on, because a person has requested them."""
        self._kept |= {*parts}
        self._switch_off()

    def tell(self, *, besides: Collection[OptionalRight] = ()) -> None:
        """Logs each missing right once and sets the metric, without the features in `besides`, which the settings do
        not use or a later call reports."""
        missing = [right for right in self._missing or () if right.part not in besides]
        self._metrics.missing_rights.labels(self._node).set(len(missing))
        self._log([right for right in missing if right not in self._told])
        self._told |= {*missing}

    async def _ask(self) -> tuple[Right, ...]:
        missing = await missing_rights(self._api, self._needed)
        if all(right.part is None for right in missing):
            return missing
        # kured's Role permits an update of the lock, careen's only a patch; this distinguishes them.
        patch = next(right for right in self._needed if right.part is OptionalRight.PATCH)
        self._are_kureds = not await missing_rights(self._api, (replace(patch, verb="update"),))
        return missing if self._are_kureds else tuple(_needed_after_all(right, patch) for right in missing)

    def _switch_off(self) -> None:
        missing = self._missing or ()
        kept = self._kept | self._kept_by_the_roles(missing)
        off = [right for right in missing if right.part is not None and right.part not in kept]
        self.without = frozenset(right.part for right in off if right.part is not None)

        def why(request: Request) -> str:
            right = next((right for right in off if right.is_asked_by(request)), None)
            return f"the agent lacks the right to {right.title}" if right else ""

        self._api.withheld = why

    def _kept_by_the_roles(self, missing: Iterable[Right]) -> frozenset[OptionalRight]:
        # If a required right is missing, perhaps a role is not bound yet that also grants the optional ones. So the
        # features stay on; otherwise, for example, the agent would ignore a maintenance window in the ConfigMap.
        if any(right.part is None for right in missing):
            return frozenset(OptionalRight) - {OptionalRight.PATCH}
        return frozenset() if self._are_kureds else frozenset(OptionalRight) - _PROTECTS_NOTHING

    def _log(self, missing: Iterable[Right]) -> None:
        parts: dict[OptionalRight | None, list[Right]] = defaultdict(list)
        for right in missing:
            parts[right.part].append(right)
        for right in parts.pop(None, []):
            _LOG.error(
                "the agent lacks the right to %s, which it needs because %s: add %s",
                right.title,
                right.because,
                rules([right]),
            )
        for part, rights in parts.items():
            assert part is not None
            titles = ", ".join(right.title for right in rights)
            if part not in self.without:
                _LOG.error(
                    "the agent lacks the right to %s. Without this right no node begins a reboot: add %s",
                    titles,
                    rules(rights),
                )
            else:
                _LOG.warning(
                    "the agent lacks the right to %s. Without this right %s. To enable the feature, add %s",
                    titles,
                    _DOES_WITHOUT[part],
                    rules(rights),
                )


def _needed_after_all(right: Right, patch: Right) -> Right:
    return replace(right, part=None) if right is patch else right


def rules(rights: Iterable[Right]) -> str:
    """RBAC rules that grant the rights, to be copied into a role. Each group begins with its role: `to a ClusterRole:`
    or `to a Role in careen:`."""
    verbs: dict[tuple[str, str, str, str], list[str]] = defaultdict(list)
    for right in rights:
        resource = f"{right.resource}/{right.subresource}" if right.subresource else right.resource
        # A right on the agent's own Node is a right on all Nodes: RBAC cannot express "own".
        name = right.name if right.namespace else ""
        verbs[right.namespace, right.group, name, resource].append(right.verb)
    resources: dict[tuple[str, str, str, tuple[str, ...]], list[str]] = defaultdict(list)
    for (namespace, group, name, resource), given in verbs.items():
        resources[namespace, group, name, tuple(given)].append(resource)
    roles: dict[str, list[str]] = defaultdict(list)
    for (namespace, group, name, given_verbs), named in resources.items():
        only = f", resourceNames: [{name}]" if name else ""
        roles[f"a Role in {namespace}" if namespace else "a ClusterRole"].append(
            f'- {{apiGroups: ["{group}"], resources: [{", ".join(named)}]{only}, verbs: [{", ".join(given_verbs)}]}}'
        )
    return "; ".join(f"to {role}: {' '.join(lines)}" for role, lines in roles.items())
