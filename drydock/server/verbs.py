"""What each verb of the API does to the store, for HTTP requests and for the controllers in this process.

`api_server.py` speaks HTTP, `kinds/object_rules.py` has the rules of kinds, `evictions.py` the evictions.
"""

from __future__ import annotations

import base64
import json
import random
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from drydock.server import api_errors
from drydock.server.admission import admitted_pod
from drydock.server.kinds.object_rules import (
    Object,
    prepared_for_create,
    prepared_for_update,
    refuse_if_invalid,
    refuse_stale,
)
from drydock.server.kinds.resources import RESOURCE_TYPES, ResourceType, resource_named
from drydock.server.requests.selectors import Matches
from drydock.server.store import HistoryGone, Key, Store, Stored

# apimachinery util/rand: no vowels, so that no words appear by chance.
_NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def rfc3339(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of a list: its items, the version at which they were read, and where the next page begins."""

    items: list[Stored]
    version: int
    next_token: str = ""
    remaining: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """The fields of `metav1.DeleteOptions` that change what a deletion does."""

    grace_seconds: int | None = None
    uid: str = ""
    resource_version: str = ""
    orphan: bool = False
    dry_run: bool = False

    @classmethod
    def from_body(cls, body: Mapping[str, Any], *, dry_run: bool = False) -> DeleteOptions:
        preconditions = body.get("preconditions") or {}
        return cls(
            grace_seconds=body.get("gracePeriodSeconds"),
            uid=preconditions.get("uid") or "",
            resource_version=preconditions.get("resourceVersion") or "",
            orphan=body.get("propagationPolicy") == "Orphan",
            dry_run=dry_run or "All" in (body.get("dryRun") or []),
        )


EvictionWebhook = Callable[["Verbs", Mapping[str, Any], DeleteOptions], DeleteOptions]
"""An admission webhook for evictions: gets the pod and the eviction's options, and returns the options with which the
eviction goes on. Raises `api_errors.denied` to refuse."""


class Verbs:
    """Reads and writes with kube-apiserver's semantics. Every refusal is an ApiError."""

    def __init__(self, store: Store, *, wall_clock: Callable[[], datetime], chance: random.Random) -> None:
        self.store = store
        self.wall_clock = wall_clock
        self.eviction_webhooks: list[EvictionWebhook] = []
        self._chance = chance

    def now(self) -> str:
        return rfc3339(self.wall_clock())

    # Reading -------------------------------------------------------------------------------------------------

    def read(self, resource: ResourceType, namespace: str, name: str) -> Stored:
        found = self.store.get(resource.storage, (namespace, name))
        if found is None:
            raise api_errors.not_found(resource, name)
        return found

    def page(
        self,
        resource: ResourceType,
        namespace: str = "",
        *,
        selected: Matches | None = None,
        limit: int = 0,
        token: str = "",
        at_version: int | None = None,
    ) -> Page:
        """All pages of a list show the version of the first one, as in etcd."""
        version, after = self._page_start(token, at_version)
        try:
            found = (
                self.store.items(resource.storage, namespace)
                if version is None
                else self.store.items_at(resource.storage, version, namespace)
            )
        except HistoryGone as gone:
            raise api_errors.expired(
                "The provided continue parameter is too old to display a consistent list result. "
                "You must start a new list without the continue parameter (the oldest kept resource version is "
                f"{gone.oldest})."
            ) from gone
        read_at = self.store.version if version is None else version
        items = [
            item
            for item in found
            if (after is None or item.key > after) and (selected is None or selected(item.content))
        ]
        if not limit or len(items) <= limit:
            return Page(items=items, version=read_at)
        token = base64.urlsafe_b64encode(json.dumps([read_at, *items[limit - 1].key]).encode()).decode().rstrip("=")
        # With a selector the real server does not know how many are left either.
        return Page(
            items=items[:limit],
            version=read_at,
            next_token=token,
            remaining=len(items) - limit if selected is None else None,
        )

    def _page_start(self, token: str, at_version: int | None) -> tuple[int | None, Key | None]:
        if not token:
            return at_version, None
        try:
            version, namespace, name = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        except ValueError as error:
            raise api_errors.bad_request(f"continue key is not valid: {error}") from error
        return int(version), (namespace, name)

    # Writing -------------------------------------------------------------------------------------------------

    def create(
        self, resource: ResourceType, namespace: str, obj: Object, *, actor: str, dry_run: bool = False
    ) -> Stored:
        metadata = dict(obj.get("metadata") or {})
        if not resource.namespaced:
            metadata.pop("namespace", None)
        elif metadata.get("namespace") not in (None, "", namespace):
            raise api_errors.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request "
                f"({metadata['namespace']} != {namespace})"
            )
        else:
            self._refuse_dead_namespace(resource, namespace)
            metadata["namespace"] = namespace
        if metadata.get("resourceVersion"):
            raise api_errors.bad_request("resourceVersion should not be set on objects to be created")
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = metadata["generateName"] + "".join(self._chance.choices(_NAME_LETTERS, k=5))
        if not metadata.get("name"):
            raise api_errors.invalid(
                resource, "", [("metadata.name", "Required value: name or generateName is required")]
            )
        metadata.update(uid=str(uuid.UUID(int=self._chance.getrandbits(128), version=4)), creationTimestamp=self.now())
        for server_only in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"):
            metadata.pop(server_only, None)
        prepared = prepared_for_create(resource, {**obj, "metadata": metadata})
        if resource.plural == "pods":
            prepared = admitted_pod(prepared, self.store)
        refuse_if_invalid(resource, prepared, None)
        key = (metadata.get("namespace", ""), metadata["name"])
        if self.store.get(resource.storage, key) is not None:
            raise api_errors.already_exists(resource, metadata["name"])
        return self._put(resource, key, prepared, actor=actor, verb="create", dry_run=dry_run)

    def _refuse_dead_namespace(self, resource: ResourceType, namespace: str) -> None:
        namespaces = resource_named("namespaces")
        found = self.store.get(namespaces.storage, ("", namespace))
        if found is None:
            raise api_errors.not_found(namespaces, namespace)
        if "deletionTimestamp" in found.content["metadata"]:
            refusal = api_errors.forbidden(
                resource, "", f"unable to create new content in namespace {namespace} because it is being terminated"
            )
            refusal.details["causes"] = [
                {
                    "reason": "NamespaceTerminating",
                    "message": f"namespace {namespace} is being terminated",
                    "field": "metadata.namespace",
                }
            ]
            raise refusal

    def replace(
        self,
        resource: ResourceType,
        namespace: str,
        name: str,
        obj: Object,
        *,
        actor: str,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Stored:
        """A PUT: fields that the new object lacks go. A resourceVersion in it must be the newest."""
        if (obj.get("metadata") or {}).get("name") not in (None, "", name):
            raise api_errors.bad_request(
                f"the name of the object ({obj['metadata']['name']}) does not match the name on the URL ({name})"
            )
        return self.change(
            resource,
            namespace,
            name,
            lambda _old: obj,
            actor=actor,
            subresource=subresource,
            dry_run=dry_run,
            verb="update",
        )

    def change(
        self,
        resource: ResourceType,
        namespace: str,
        name: str,
        edit: Callable[[Object], Object],
        *,
        actor: str,
        subresource: str = "",
        dry_run: bool = False,
        verb: str = "patch",
    ) -> Stored:
        """Applies `edit` to the current object. Writes nothing if it changes nothing."""
        stored = self.read(resource, namespace, name)
        old = stored.content
        # A patch that names no version means the one it is applied to; a PUT without one is unconditional here,
        # as it is on the real server for the kinds that allow it.
        edited = edit(dict(old))
        if not isinstance(edited, dict) or not isinstance(edited.get("metadata", {}), dict):
            raise api_errors.bad_request("the patched document is not an object")
        wanted = str((edited.get("metadata") or {}).get("resourceVersion") or "")
        refuse_stale(resource, old, wanted)
        new = prepared_for_update(
            resource, old, {**edited, "metadata": dict(edited.get("metadata") or {})}, subresource
        )
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        if new == old:
            return stored
        refuse_if_invalid(resource, new, old)
        key = (namespace, name)
        if (
            "deletionTimestamp" in new["metadata"]
            and not new["metadata"].get("finalizers")
            and not self._still_stopping(resource, new)
        ):
            return stored if dry_run else self.store.remove(resource.storage, key, actor=actor, verb="delete")
        return self._put(
            resource, key, new, actor=actor, verb=verb if not subresource else f"{verb}/{subresource}", dry_run=dry_run
        )

    @staticmethod
    def _still_stopping(resource: ResourceType, obj: Mapping[str, Any]) -> bool:
        """Whether a deleted object waits for its kubelet: only a pod with a grace period does, others wait for
        finalizers."""
        return resource.plural == "pods" and bool(obj["metadata"].get("deletionGracePeriodSeconds"))

    def _put(
        self, resource: ResourceType, key: Key, content: Object, *, actor: str, verb: str, dry_run: bool = False
    ) -> Stored:
        if dry_run:
            return Stored(key, self.store.version, content)
        return self.store.put(resource.storage, key, content, actor=actor, verb=verb)

    # Deleting ------------------------------------------------------------------------------------------------

    def delete(
        self,
        resource: ResourceType,
        namespace: str,
        name: str,
        options: DeleteOptions,
        *,
        actor: str,
        verb: str = "delete",
    ) -> Stored:
        """Deletes the object, or marks it as deleted if a kubelet or finalizers act first. Returns it as it is after
        the request.

        `verb` is the name in the journal: an eviction is a deletion too.
        """
        stored = self.read(resource, namespace, name)
        metadata = stored.content["metadata"]
        if options.uid and options.uid != metadata["uid"]:
            raise api_errors.conflict(
                resource,
                name,
                f"Precondition failed: UID in precondition: {options.uid}, UID in object meta: {metadata['uid']}",
            )
        if options.resource_version and options.resource_version != metadata["resourceVersion"]:
            raise api_errors.conflict(
                resource,
                name,
                f"Precondition failed: ResourceVersion in precondition: {options.resource_version}, "
                f"ResourceVersion in object meta: {metadata['resourceVersion']}",
            )
        grace = self._grace_seconds(resource, stored.content, options)
        if options.dry_run:
            return stored
        if options.orphan:
            self._orphan_dependents(metadata["uid"], actor)
        if resource.plural == "namespaces":
            self._empty_namespace(name, actor)
        if grace or metadata.get("finalizers"):
            return self._mark_deleted(resource, stored, grace, actor=actor, verb=verb)
        return self.store.remove(resource.storage, stored.key, actor=actor, verb=verb)

    @staticmethod
    def _grace_seconds(resource: ResourceType, obj: Mapping[str, Any], options: DeleteOptions) -> int:
        """The seconds that the kubelet may take to stop the pod (CheckGracefulDelete in
        pkg/registry/core/pod/strategy.go)."""
        if resource.plural != "pods":
            return 0
        spec, phase = obj.get("spec", {}), obj.get("status", {}).get("phase")
        if not spec.get("nodeName") or phase in ("Succeeded", "Failed"):
            return 0
        asked = options.grace_seconds
        grace = int(spec.get("terminationGracePeriodSeconds", 30) if asked is None else asked)
        earlier = obj["metadata"].get("deletionGracePeriodSeconds")
        return max(0, grace if earlier is None or asked is not None else min(grace, int(earlier)))

    def _mark_deleted(self, resource: ResourceType, stored: Stored, grace: int, *, actor: str, verb: str) -> Stored:
        metadata = stored.content["metadata"]
        earlier = metadata.get("deletionGracePeriodSeconds")
        if "deletionTimestamp" in metadata and (
            resource.plural != "pods" or (earlier is not None and earlier <= grace)
        ):
            return stored
        due = rfc3339(self.wall_clock() + timedelta(seconds=grace))
        marked = {**metadata, "deletionTimestamp": due, "deletionGracePeriodSeconds": grace}
        if "generation" in metadata:
            marked["generation"] = metadata["generation"] + 1
        return self.store.put(
            resource.storage, stored.key, {**stored.content, "metadata": marked}, actor=actor, verb=verb
        )

    def _orphan_dependents(self, uid: str, actor: str) -> None:
        for resource, item in self.dependents_of(uid):
            owners = [o for o in item.content["metadata"]["ownerReferences"] if o["uid"] != uid]
            self.store.put(
                resource.storage,
                item.key,
                {**item.content, "metadata": {**item.content["metadata"], "ownerReferences": owners}},
                actor=actor,
                verb="patch",
            )

    def dependents_of(self, uid: str) -> Iterable[tuple[ResourceType, Stored]]:
        """Every object, of any kind, whose ownerReferences contain this uid."""
        for resource in RESOURCE_TYPES:
            if resource.storage == (resource.group, resource.plural):
                for item in self.store.items(resource.storage):
                    if any(o.get("uid") == uid for o in item.content["metadata"].get("ownerReferences") or ()):
                        yield resource, item

    def _empty_namespace(self, namespace: str, actor: str) -> None:
        """At once; the real server goes step by step, but no controller here needs to see the namespace terminate."""
        for resource in RESOURCE_TYPES:
            if resource.namespaced and resource.storage == (resource.group, resource.plural):
                for item in self.store.items(resource.storage, namespace):
                    self.store.remove(resource.storage, item.key, actor=actor, verb="delete")

    # Pods ----------------------------------------------------------------------------------------------------

    def bind(
        self, namespace: str, name: str, binding: Mapping[str, Any], *, actor: str, dry_run: bool = False
    ) -> Stored:
        """No other verb sets spec.nodeName (assignPod in pod/storage/storage.go)."""
        pods = resource_named("pods")
        pod = self.read(pods, namespace, name).content
        target = (binding.get("target") or {}).get("name")
        if not target:
            raise api_errors.invalid(pods, name, [("target.name", "Required value")])
        uid = (binding.get("metadata") or {}).get("uid")
        if uid and uid != pod["metadata"]["uid"]:
            raise api_errors.conflict(
                pods,
                name,
                f"Precondition failed: UID in precondition: {uid}, UID in object meta: {pod['metadata']['uid']}",
            )
        if "deletionTimestamp" in pod["metadata"]:
            raise api_errors.conflict(pods, name, f"pod {name} is being deleted, cannot be assigned to a host")
        if pod["spec"].get("nodeName"):
            raise api_errors.conflict(pods, name, f"pod {name} is already assigned to node {pod['spec']['nodeName']!r}")
        if pod["spec"].get("schedulingGates"):
            raise api_errors.conflict(pods, name, f"pod {name} has non-empty .spec.schedulingGates")
        status = {
            **pod["status"],
            "conditions": with_condition(pod["status"].get("conditions") or [], "PodScheduled", "True", self.now()),
        }
        bound = {**pod, "spec": {**pod["spec"], "nodeName": target}, "status": status}
        return self._put(pods, (namespace, name), bound, actor=actor, verb="bind", dry_run=dry_run)


def with_condition(
    conditions: list[Object], kind: str, status: str, now: str, *, reason: str = "", message: str = ""
) -> list[Object]:
    """Replaces the condition of this type. lastTransitionTime changes only with the status."""
    before = next((c for c in conditions if c.get("type") == kind), None)
    since = before.get("lastTransitionTime", now) if before and before.get("status") == status else now
    made: Object = {"type": kind, "status": status, "lastTransitionTime": since}
    if reason:
        made["reason"] = reason
    if message:
        made["message"] = message
    if before is None:
        return [*conditions, made]
    return [made if c is before else c for c in conditions]
