"""Which rights the agent has: asked at its start, before the first of them is missed, and told once.

Under kured's own roles, what they do not give is switched off, because kured does without it: its requests are not
sent any more, and each reader has another way. Under all other roles a gap is a mistake, and what protects is never
switched off: it is tried all the same, so that a right which is granted later is found, and the node waits. So it
does for a setting that a person has given."""

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
    OptionalRight.SETTINGS: "no ConfigMap is read, so flags and environment are all the settings there are",
    OptionalRight.FOLLOWING: "a change of the ConfigMap counts from the next start on",
    OptionalRight.PATCH: "claims are written into the lock by an update of the whole DaemonSet, as kured writes them",
    OptionalRight.NODES: "each Node is read by itself, and one without an agent does not count as down",
    OptionalRight.COORDINATORS: "another coordinator is seen at kube-system/kured alone",
    OptionalRight.OWNERS: "nodes do not wait for their pods' owners after a reboot, nor ask if they bind pods to it",
    OptionalRight.EVENTS: "no Events are posted there; the log has the same messages",
    OptionalRight.FORECAST: "no drain is forecast; evictions are still tried with a dry run before anything moves",
}

_PROTECTS_NOTHING = frozenset({OptionalRight.EVENTS, OptionalRight.FOLLOWING})
"""Switched off under any roles."""

_BY_SETTING = {"forecast": OptionalRight.FORECAST, "settle_policy": OptionalRight.OWNERS, "budget": OptionalRight.NODES}
"""What a person asks for who gives one of these settings."""


def asked_for_by(origins: Mapping[str, Supplied]) -> frozenset[OptionalRight]:
    """The parts that somebody has asked for, whichever source the settings came from."""
    return frozenset(
        part for name, part in _BY_SETTING.items() if name in origins and origins[name].source is not Source.DEFAULT
    )


class Rights:
    """What the review found, and what follows from it."""

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
        """`kept`: parts that a person has asked for."""
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
        """What is switched off."""

    @property
    def is_known(self) -> bool:
        """Whether the API server has told."""
        return self._missing is not None

    @property
    def is_whole(self) -> bool:
        """Whether no right is missing."""
        return self._missing == ()

    async def review(self) -> None:
        """Asks, and switches off what can be done without."""
        try:
            self._missing = await self._ask()
        except ClusterError as error:
            _LOG.info("whether rights are missing is not known: %s", error)
            return
        self._switch_off()

    def keep(self, parts: Collection[OptionalRight]) -> None:
        """A person has asked for them."""
        self._kept |= {*parts}
        self._switch_off()

    def tell(self, *, besides: Collection[OptionalRight] = ()) -> None:
        """In the log each once, in the metric how many; `besides` are parts that the settings do not want, or that are
        told later."""
        missing = [right for right in self._missing or () if right.part not in besides]
        self._metrics.missing_rights.labels(self._node).set(len(missing))
        self._log([right for right in missing if right not in self._told])
        self._told |= {*missing}

    async def _ask(self) -> tuple[Right, ...]:
        missing = await missing_rights(self._api, self._needed)
        if all(right.part is None for right in missing):
            return missing
        # kured's Role lets the lock be updated, and ours only patched: so they are told apart.
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
            return f"the right to {right.title} is missing" if right else ""

        self._api.withheld = why

    def _kept_by_the_roles(self, missing: Iterable[Right]) -> frozenset[OptionalRight]:
        # A role that is not bound yet gives the rest too, and a window may stand in the ConfigMap.
        if any(right.part is None for right in missing):
            return frozenset(OptionalRight) - {OptionalRight.PATCH}
        return frozenset() if self._are_kureds else frozenset(OptionalRight) - _PROTECTS_NOTHING

    def _log(self, missing: Iterable[Right]) -> None:
        parts: dict[OptionalRight | None, list[Right]] = defaultdict(list)
        for right in missing:
            parts[right.part].append(right)
        for right in parts.pop(None, []):
            _LOG.error("a right is missing: %s; %s: add %s", right.title, right.because, rules([right]))
        for part, rights in parts.items():
            assert part is not None
            titles = ", ".join(right.title for right in rights)
            is_one = len(rights) == 1
            head = (
                f"a right is missing: {titles}; without it" if is_one else f"rights are missing: {titles}; without them"
            )
            if part not in self.without:
                _LOG.error("%s nothing is begun: add %s", head, rules(rights))
            else:
                _LOG.warning("%s %s. To have it, add %s", head, _DOES_WITHOUT[part], rules(rights))


def _needed_after_all(right: Right, patch: Right) -> Right:
    return replace(right, part=None) if right is patch else right


def rules(rights: Iterable[Right]) -> str:
    """RBAC rules that give the rights, ready to be copied, and what kind of role they belong to."""
    verbs: dict[tuple[str, str, str, str], list[str]] = defaultdict(list)
    for right in rights:
        resource = f"{right.resource}/{right.subresource}" if right.subresource else right.resource
        # A right on the own Node is one on all: RBAC has no word for "own".
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
