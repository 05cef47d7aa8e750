"""Checks whether the admission policies allow the taint, label and annotation keys in the settings, when the settings
are read. Otherwise only a denied write during a roll-out would show the problem.

The policies read the allowed keys from annotations of the DaemonSet (manifests/admission/parameters.yaml), because an
agent has no right to read policies. Without such annotations, the agent assumes that there are no policies. The module
is loaded only if a setting names a key that is not careen's own.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from urllib.parse import quote

from careen.cluster import objects
from careen.cluster.events import Subject, post_event
from careen.cluster.wire.api import ClusterApi
from careen.cluster.wire.errors import ClusterError, Forbidden, NotFound
from careen.core.facts import keys
from careen.core.plain_text import one_line
from careen.settings.tree import Settings, flag

_LOG = logging.getLogger("careen.rights")

PREFIX = "admission.careen.dev/"
_OWN = (keys.DEFAULT_TAINT_KEY, keys.REBOOT_LABEL, keys.LOCK_ANNOTATION)
"""The keys that the admission policies always allow."""
_AGAIN_SECONDS = 60.0


def needed(settings: Settings) -> dict[tuple[str, str], list[str]]:
    """The keys beyond the policies' defaults that the agent will write, by allow list and setting, for example
    `{("taints", "prefer_no_schedule_taint"): ["example.com/reboot"]}`."""
    found = {
        ("taints", "prefer_no_schedule_taint"): [settings.prefer_no_schedule_taint],
        ("labels", "pre_reboot_node_labels"): [key for key, _ in settings.pre_reboot_node_labels],
        ("labels", "post_reboot_node_labels"): [key for key, _ in settings.post_reboot_node_labels],
        ("annotations", "annotate_nodes"): [keys.KURED_IN_PROGRESS, keys.KURED_MOST_RECENT] * settings.annotate_nodes,
        ("lock-annotation", "lock_annotation"): [settings.lock_annotation],
    }
    own = {*_OWN, ""}
    return {which: wanted for which, every in found.items() if (wanted := [key for key in every if key not in own])}


def unlisted(wanted: Mapping[tuple[str, str], list[str]], annotations: Mapping[str, str], daemonset: str) -> str:
    """Which of these keys the policies do not allow, and how to allow them; "" if they allow all."""
    if not any(key.startswith(PREFIX) for key in annotations):
        return ""
    problems = []
    for (name, setting), each in wanted.items():
        listed = {key.strip() for key in annotations.get(PREFIX + name, "").split(",")}
        if missing := [key for key in dict.fromkeys(each) if key not in listed]:
            quoted = ", ".join(f"`{key}`" for key in missing)
            these = "this key" if len(missing) == 1 else "these keys"
            problems.append(
                f"--{flag(setting)} needs {quoted}, but the annotation {PREFIX}{name} does not list {these}"
            )
    if not problems:
        return ""
    return (
        f"the admission policies will refuse some keys in the settings, because DaemonSet {daemonset} does not allow "
        f"these keys: {'; '.join(problems)}. Add the keys to these annotations, or change the settings"
    )


class AllowedKeys:
    """Reports configured keys that the DaemonSet's annotations do not allow. Compares again only if the settings need
    other keys."""

    def __init__(self, api: ClusterApi, basics: Settings) -> None:
        self._api = api
        self._node = basics.node_id
        self._namespace, self._name = basics.ds_namespace, basics.ds_name
        self._wanted: dict[tuple[str, str], list[str]] = {}

    async def check(self, settings: Settings) -> None:
        """Tries again until the API server answers or newer settings need other keys. Reports nothing if the DaemonSet
        does not exist or may not be read."""
        wanted = needed(settings)
        if wanted == self._wanted:
            return
        self._wanted = wanted
        while self._wanted is wanted:
            try:
                found = await self._daemonset()
            except (Forbidden, NotFound):
                return
            except ClusterError as error:
                _LOG.debug(
                    "the agent cannot tell yet whether the admission policies allow the keys in the settings: %s", error
                )
                await self._api.clock.sleep(_AGAIN_SECONDS)
                continue
            await self._tell(unlisted(wanted, found.metadata.annotations or {}, self._place), found.metadata.uid)
            return

    @property
    def _place(self) -> str:
        return f"{self._namespace}/{self._name}"

    async def _daemonset(self) -> objects.LockObject:
        namespace, name = quote(self._namespace, safe=""), quote(self._name, safe="")
        return await self._api.get(f"/apis/apps/v1/namespaces/{namespace}/daemonsets/{name}", objects.LockObject)

    async def _tell(self, sentence: str, uid: str) -> None:
        """In the log, and in an Event of the DaemonSet: one for all agents of the fleet together."""
        if not sentence:
            return
        _LOG.warning("%s", one_line(sentence))
        subject = Subject(kind="DaemonSet", api_version="apps/v1", name=self._name, namespace=self._namespace, uid=uid)
        await post_event(
            self._api,
            subject,
            reason="KeysNotAllowed",
            sentence=sentence,
            is_warning=True,
            host=self._node,
            once=sentence,
        )
