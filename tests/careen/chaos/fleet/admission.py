"""Admission and controllers that edit what agents write: a webhook removes or changes one field of a write, always or
sometimes; a GitOps controller takes the field back a second after the write."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from tests.careen.chaos.fleet import people

if TYPE_CHECKING:
    from tests.careen.chaos.fleet.world import World

Object = dict[str, Any]
GITOPS, GITOPS_SECONDS = "argocd-controller", 1.0
LOCK = "weave.works/kured-node-lock"
_ANOTHER = "changed-by-a-webhook"


class Field(StrEnum):
    """A field that agents write."""

    RECORD = "careen.dev/progress"
    REASON = "careen.dev/reason"
    SETTINGS = "careen.dev/settings"
    ANNOTATIONS = "all of careen's annotations"
    LABEL = "careen.dev/reboot"
    TAINT = "the soft taint"
    CORDON = "the cordon"
    LOCK = "the lock"


class How(StrEnum):
    """What happens to the field."""

    DROPPED = "the field stays as it was"
    CHANGED = "the field gets another value"
    TAKEN_BACK = "a controller takes the write of the field back a second later"


@dataclass(frozen=True, kw_only=True)
class Edit:
    """What happens to one field of all agents' writes, with this probability."""

    field: Field
    how: How
    probability: float = 1.0


class Admission:
    """Edits the agents' writes, as a server's admission chain and a controller would."""

    def __init__(self, later: Callable[[float, Callable[[], None]], None], chance: random.Random) -> None:
        self.edits: list[Edit] = []
        self.has_lost_records = False
        self.edited = 0
        """How many writes it has edited."""
        self.take_back: Callable[[str, str, str, Callable[[Object], Object]], None] = lambda *_: None
        self._later = later
        self._chance = chance

    def admit(self, old: Object, new: Object) -> Object:
        """The object that the server stores."""
        for edit in self.edits:
            names = _changed(edit.field, old, new)
            if not names or self._chance.random() >= edit.probability:
                continue
            self.edited += 1
            if edit.how is How.TAKEN_BACK:
                self._take_back_later(old, new, names)
            else:
                for name in names:
                    new = _with(new, name, _edited(edit.how, name, _get(old, name), _get(new, name)))
        return new

    def _take_back_later(self, old: Object, new: Object, names: list[str]) -> None:
        before = {name: _get(old, name) for name in names}
        after = {name: _get(new, name) for name in names}
        metadata = new["metadata"]

        def edit(now: Object) -> Object:
            for name in names:
                if _get(now, name) == after[name]:
                    now = _with(now, name, before[name])
            return now

        plural = "daemonsets" if new.get("kind") == "DaemonSet" else "nodes"
        self._later(
            GITOPS_SECONDS, lambda: self.take_back(plural, metadata["name"], metadata.get("namespace", ""), edit)
        )


def has_changed(field: Field, old: Object, new: Object) -> bool:
    """Whether the write changes this field."""
    return bool(_changed(field, old, new))


def _changed(field: Field, old: Object, new: Object) -> list[str]:
    return [name for name in _names(field, old, new) if _get(old, name) != _get(new, name)]


def _names(field: Field, old: Object, new: Object) -> list[str]:
    is_lock = new.get("kind") == "DaemonSet"
    if field is Field.LOCK or is_lock:
        return [f"annotation {LOCK}"] if field is Field.LOCK and is_lock else []
    if field is Field.ANNOTATIONS:
        keys = {*(old["metadata"].get("annotations") or {}), *(new["metadata"].get("annotations") or {})}
        return [f"annotation {key}" for key in sorted(keys) if key.startswith("careen.dev/")]
    if field is Field.TAINT:
        return ["taint"]
    if field is Field.CORDON:
        return ["cordon"]
    return [f"label {field.value}" if field is Field.LABEL else f"annotation {field.value}"]


def _edited(how: How, name: str, before: Any, after: Any) -> Any:
    if how is How.DROPPED or not isinstance(after, str):
        return before
    return "{}" if name.endswith(LOCK) else _ANOTHER


def _get(obj: Object, name: str) -> Any:
    kind, _, key = name.partition(" ")
    if kind == "cordon":
        return (obj.get("spec") or {}).get("unschedulable") or None
    if kind == "taint":
        taints = (obj.get("spec") or {}).get("taints") or []
        return any(each["key"] == "careen.dev/reboot" for each in taints)
    return (obj["metadata"].get(f"{kind}s") or {}).get(key)


def _with(obj: Object, name: str, value: Any) -> Object:
    kind, _, key = name.partition(" ")
    obj = copy.deepcopy(obj)
    if kind == "cordon":
        obj["spec"]["unschedulable"] = value
        if value is None:
            del obj["spec"]["unschedulable"]
    elif kind == "taint":
        others = [each for each in obj["spec"].get("taints") or [] if each["key"] != "careen.dev/reboot"]
        ours = [{"key": "careen.dev/reboot", "effect": "PreferNoSchedule"}] if value else []
        obj["spec"]["taints"] = [*others, *ours]
    else:
        texts = {**(obj["metadata"].get(f"{kind}s") or {}), key: value}
        obj["metadata"][f"{kind}s"] = {each: text for each, text in texts.items() if text is not None}
    return obj


# Acts of storms ----------------------------------------------------------------------------------------------------


def edit_writes(world: World, _name: str) -> None:
    """Edit one field of all agents' writes for 20 to 250 seconds."""
    edit = Edit(
        field=world.chance.choice(list(Field)),
        how=world.chance.choice(list(How)),
        probability=world.chance.choice((1.0, 1.0, 0.5)),
    )
    world.note(f"admission: {edit.field}: {edit.how} ({edit.probability})")
    world.admission.edits.append(edit)
    world.admission.has_lost_records |= edit.how is How.TAKEN_BACK or edit.field in (Field.RECORD, Field.ANNOTATIONS)
    world.at(
        world.chance.uniform(20.0, 250.0),
        lambda: world.admission.edits.remove(edit) if edit in world.admission.edits else None,
    )


def calm(world: World) -> None:
    """No write is edited any more. A person removes the records that a webhook made unreadable, as their agents ask,
    and restores what only a lost record said (docs/known-gaps.md)."""
    world.admission.edits.clear()
    for node in world.server.all("nodes"):
        name, record = node["metadata"]["name"], (node["metadata"].get("annotations") or {}).get(Field.RECORD, "")
        if record == _ANOTHER:
            people.wipe_record(world, name)
        if not world.admission.has_lost_records:
            continue
        if node["spec"].get("unschedulable") and '"is_cordoned_by_us":true' not in record:
            people.uncordon(world, name)
        if name in world.initial and '"prior_labels"' not in record:
            _put_back(world, name, has_record=bool(record))


def _put_back(world: World, name: str, *, has_record: bool) -> None:
    """A person restores what only a lost record said: labels and annotations of others from before the drain, and
    without a record careen's as well."""
    before = world.initial[name]["metadata"]

    def restored(old: Object) -> Object:
        texts = {
            key: {
                **{
                    each: text
                    for each, text in (old["metadata"].get(key) or {}).items()
                    if has_record and _is_ours(each)
                },
                **(before.get(key) or {}),
            }
            for key in ("labels", "annotations")
        }
        return {**old, "metadata": {**old["metadata"], **texts}}

    world.server.change("nodes", name, restored, actor="person")


def _is_ours(key: str) -> bool:
    return key.startswith("careen.dev/")
