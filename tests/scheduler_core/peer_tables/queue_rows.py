"""Judges the calls that kube-scheduler's tests of its queue (scheduling_queue_test.go) make: each has the queue before
and after it, and what hints and PreEnqueue plugins answered. Our queue gets the same state, answers and call."""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from scheduler_core.config.kube_version import KubeVersion
from scheduler_core.framework.verdict import SUCCESS, Verdict, unresolvable
from scheduler_core.model.manifests.error import ManifestError
from scheduler_core.model.manifests.from_manifest import pod_from_manifest
from scheduler_core.model.pod import Pod
from scheduler_core.queue.active import Happening
from scheduler_core.queue.backoff import BackoffPolicy
from scheduler_core.queue.events import ASSIGNED_POD_ADDED, Action, ClusterEvent, EventHint, Resource
from scheduler_core.queue.hints.changes import pod_changes
from scheduler_core.queue.queued_pod import QueuedPod
from scheduler_core.queue.scheduling_queue import ProfileInQueue, QueueRules, Room, SchedulingQueue
from scheduler_core.queue.waiting import RegisteredHints, Requeue
from tests.oracle.releases import RELEASES
from tests.scheduler_core.peer_tables.calls import Call, Question
from tests.scheduler_core.peer_tables.objects import ImpossibleError, named
from tests.scheduler_core.peer_tables.results import Outcome, Row

HERE: Final = Path(__file__).parent
QUEUE_RECORDINGS: Final = {
    version: path for version in RELEASES if (path := HERE / f"queue-{RELEASES[version]}.txt.gz").exists()
}
# Which pod an update is about has a name of its own since 1.37.
_RESOURCES: Final = {"TargetPod": Resource.UNSCHEDULED_POD, "UnscheduledPod": Resource.UNSCHEDULED_POD}
_STRATEGIES: Final = (Requeue.STAY, Requeue.AFTER_BACKOFF, Requeue.AT_ONCE)
_BEGINNING: Final = -62_135_596_800.0  # Go's zero time
_DAY_NANOS: Final = 1_795_737_600_000_000_000

EXPLAINED: Final = (
    (
        r"(_when_Pod_is|_no_longer|_still)_gated.*\[AddUnschedulable",
        "a gated pod is put back; it can never have been popped",
    ),
    (r"^TestRecentlyTriedPodsGoBack \[Pop", "pods of equal priority and time: Go's heap decides"),
    (r"^TestPerPodSchedulingMetrics.*\[(Add|Update)\]", "the test changes the queue's plugins after it was made"),
    (r"gatedSetUponCreation.*\[Update\]", "a profile without any hints, which no scheduler has"),
)


def queue_questions(version: str) -> Iterator[Question]:
    """Equal calls are one."""
    seen: set[str] = set()
    with gzip.open(QUEUE_RECORDINGS[version], "rt", encoding="utf-8") as lines:
        for line in lines:
            call = json.loads(line)
            key = json.dumps({name: value for name, value in call.items() if name != "test"}, sort_keys=True)
            if key not in seen:
                seen.add(key)
                yield Question(call["test"], "queue", call["method"], (call,))


@cache
def queue_rows(version: str) -> tuple[Row, ...]:
    return tuple(judge_call(question, version) for question in queue_questions(version))


def judge_call(question: Question, version: str) -> Row:
    call = question.calls[0]
    try:
        ours, theirs = Replayed(call, KubeVersion.parse(version)).result(), _recorded(call)
    except ImpossibleError as impossible:
        return Row(question, Outcome.IMPOSSIBLE, str(impossible))
    if ours == theirs:
        return Row(question, Outcome.EQUAL)
    where = f"{question.test} [{question.kind}]"
    why = next((text for pattern, text in EXPLAINED if re.search(pattern, where)), "")
    differs = {name: (theirs[name], ours[name]) for name in theirs if theirs[name] != ours[name]}
    return Row(question, Outcome.EXPLAINED if why else Outcome.DIFFERENT, why or json.dumps(differs, default=str))


# ---- what was recorded ----


def _recorded(call: Call) -> dict[str, Any]:
    after, answer = call["after"], call["answer"] or {}
    given = answer.get("info")
    said = {name: value for name, value in answer.items() if name != "info"}
    if "info" in answer:
        said["popped"] = None if given is None else _key_of(given["pod"])
    return {
        "active": _seen(after["active"]),
        "backoff": _seen([*after["backoff"], *after["failed"]], with_end=True),
        "waiting": _seen(after["waiting"]),
        "in flight": sorted(_identity(each["pod"]) for each in after["inFlight"] if "pod" in each),
        "events": [int(_event(each["event"]).action) for each in after["inFlight"] if "event" in each],
        "nominated": {
            node: sorted(_normal(each["key"]) for each in pods) for node, pods in after["nominated"].items() if pods
        },
        "answer": said,
    }


def _seen(infos: list[Any], *, with_end: bool = False) -> list[Any]:
    """Times in tenths of a second: a real clock goes on between the recording and the call."""
    return sorted(
        (
            _key_of(info["pod"]),
            info["attempts"],
            info["refusals"],
            info["errors"],
            sorted(info["refusedBy"]),
            sorted(info["pendingFor"]),
            info["gate"],
            info["flushed"],
            round(_seconds(info["timestamp"]), 1),
            round(_seconds(info["until"]), 1) if with_end else 0,
        )
        for info in infos
    )


def _seconds(nanos: int | None) -> float:
    """Since the day of the recording: so small that a float still tells nanoseconds."""
    return _BEGINNING if nanos is None else (nanos - _DAY_NANOS) / 1e9


def _key_of(pod: Any) -> str:
    meta = pod["metadata"]
    return f"{meta.get('namespace') or 'default'}/{meta.get('name') or 'pod'}"


def _normal(key: str) -> str:
    namespace, _, name = key.partition("/")
    return f"{namespace or 'default'}/{name or 'pod'}"


def _identity(pod: Any) -> str:
    return pod["metadata"].get("uid") or _key_of(pod)


def _pod(written: Any) -> Pod:
    if written is None:
        raise ImpossibleError("an event without its object")
    manifest = named(json.loads(json.dumps(written)), "Pod", "pod")
    try:
        return pod_from_manifest(manifest, strict=False)
    except ManifestError as problem:
        raise ImpossibleError(f"a pod that no API server stores: {problem}") from problem


def _event(written: Any) -> ClusterEvent:
    resource = written["resource"]
    if not written["action"]:
        raise ImpossibleError(f"an action that the library does not have: {written['label']}")
    try:
        return ClusterEvent(_RESOURCES.get(resource) or Resource(resource), Action(written["action"]))
    except ValueError as problem:
        raise ImpossibleError(f"an event that the library does not have: {written['label']}") from problem


def _object(written: Any) -> Any:
    if written is None:
        return None
    return _pod(written["object"]) if written["type"] == "*v1.Pod" else written["object"]


# ---- the same by our queue ----


class _Gate:
    def __init__(self, name: str, ask: Callable[[Pod], bool]) -> None:
        self.name, self._ask = name, ask

    def pre_enqueue(self, pod: Pod) -> Verdict:
        return SUCCESS if self._ask(pod) else unresolvable("gated")


class Replayed:
    def __init__(self, call: Call, version: KubeVersion) -> None:
        about, before = call["about"], call["before"]
        if not about["queueingHints"]:
            raise ImpossibleError("the gate SchedulerQueueingHints is off; it is locked on since 1.34")
        if about["groups"]:
            raise ImpossibleError("the gate GenericWorkload is off by default")
        if about["patience"] != 300:
            raise ImpossibleError("an option of the queue that no configuration has")
        for name in ("before", "after", "given"):
            if "unwritable" in (call[name] or {}) or "problem" in (call[name] or {}):
                raise ImpossibleError("objects of the test without a form as JSON")
        self.call, self.now = call, _seconds(before["now"])
        self.answers: dict[tuple[str, str, str], list[bool]] = defaultdict(list)
        for each in call["asked"] or ():
            kind = "hint" if "hint" in each else "gate"
            answer = each["helps"] if kind == "hint" else each["ok"]
            self.answers[kind, each[kind], _normal(each["pod"])].append(answer)
        rules = QueueRules(
            hears_gating_plugin_only=version.only_the_gating_plugin_is_heard,
            nominates_gated=version.gated_pods_are_nominated,
            flushes_gated=version.gated_pods_are_flushed,
        )
        self.queue = SchedulingQueue(self._goes_before, self._profiles(about), policy=_policy(about), rules=rules)
        self._fill(before)

    def _ask(self, kind: str, plugin: str, pod: Pod, otherwise: bool) -> bool:
        left = self.answers[kind, plugin, pod.key]
        return left.pop(0) if left else otherwise

    def _goes_before(self, one: QueuedPod, other: QueuedPod) -> bool:
        about: dict[str, bool] = self.call["about"]
        if one.pod.priority != other.pod.priority:
            return (one.pod.priority > other.pod.priority) == about["highFirst"]
        return one.timestamp < other.timestamp if about["oldFirst"] else False

    def _profiles(self, about: Any) -> dict[str, ProfileInQueue]:
        return {
            name or "default-scheduler": ProfileInQueue(
                gatekeepers=tuple(map(self._gate, (about["gates"].get(name) or ()))), hints=self._hints(about, name)
            )
            for name in sorted({*about["hints"], *about["gates"]}, reverse=True)  # the tests' pods have no name of one
        }

    def _gate(self, name: str) -> _Gate:
        return _Gate(name, lambda pod: self._ask("gate", name, pod, otherwise=True))

    def _hints(self, about: Any, profile: str) -> RegisteredHints:
        by_plugin: dict[str, list[EventHint]] = {}
        for each in about["hints"].get(profile) or ():
            by_plugin.setdefault(each["plugin"], []).append(
                EventHint(_event(each["event"]), self._hint(each["plugin"]))
            )
        return RegisteredHints(by_plugin={name: tuple(hints) for name, hints in by_plugin.items()})

    def _hint(self, plugin: str) -> Callable[[Pod, Any, Any], bool]:
        return lambda pod, _old, _new: self._ask("hint", plugin, pod, otherwise=False)

    def _fill(self, before: Any) -> None:
        queue = self.queue
        for info in before["active"]:
            queue._active.put(_queued(info))
        for info in (*before["backoff"], *before["failed"]):
            queue._backoff.put(_queued(info))
        for info in before["waiting"]:
            queue._waiting.put(_queued(info))
        room = queue._active
        for each in before["inFlight"]:
            if "pod" in each:
                room._in_flight[_identity(each["pod"])] = room._count
            else:
                happening = Happening(room._count, _event(each["event"]), _object(each["old"]), _object(each["new"]))
                room._happenings.append(happening)
                room._count += 1
        known = {
            each.pod.key: each.pod for part in (queue._active, queue._backoff, queue._waiting) for each in part.pods
        }
        for node, pods in before["nominated"].items():
            for each in pods:
                key = _normal(each["key"])
                name = {"namespace": key.partition("/")[0], "name": key.partition("/")[2], "uid": each["uid"]}
                queue.nominations.add(known.get(key) or _pod({"metadata": name, "spec": {"containers": []}}), node)

    def result(self) -> dict[str, Any]:
        method = self.call["method"]
        said = getattr(self, f"_{method}")(self.call["given"] or {})
        queue = self.queue
        nominated: dict[str, list[str]] = {}
        for pod, node in queue.nominations.all:
            nominated.setdefault(node, []).append(pod.key)
        return {
            "active": self._room(queue._active.pods),
            "backoff": self._room(queue._backoff.pods, with_end=True),
            "waiting": self._room(queue._waiting.pods),
            "in flight": sorted(queue.in_flight),
            "events": [int(each.event.action) for each in queue._active._happenings],
            "nominated": {node: sorted(pods) for node, pods in nominated.items()},
            "answer": said or {},
        }

    def _room(self, pods: tuple[QueuedPod, ...], *, with_end: bool = False) -> list[Any]:
        return sorted(
            (
                each.key,
                each.attempts,
                each.unschedulable_count,
                each.consecutive_errors,
                sorted(each.unschedulable_plugins),
                sorted(each.pending_plugins),
                each.gating_plugin,
                each.was_flushed,
                round(each.timestamp, 1),
                round(_BEGINNING if each.backoff_until is None else each.backoff_until, 1) if with_end else 0,
            )
            for each in pods
        )

    def _given(self, info: Any) -> QueuedPod:
        """The pod itself if it is in the queue."""
        found = self.queue.find(_pod(info["pod"]).key)
        return found[1] if found is not None else _queued(info)

    # ---- the methods ----

    def _Add(self, given: Any) -> None:
        pod = _pod(given["pod"])
        if pod.nominated_node_name:
            self._must_be_listed(given["pod"])
        self.queue.add(pod, self.now)

    def _Activate(self, given: Any) -> None:
        self.queue.activate(map(_pod, given["pods"].values()), self.now)

    def _AddUnschedulableIfNotPresent(self, given: Any) -> dict[str, Any]:
        info = given["info"]
        try:
            self.queue.add_unschedulable(
                _queued(info), self.now, refused_by=info["refusedBy"], pending_for=info["pendingFor"]
            )
        except ValueError:
            return {"error": True}
        return {"error": False}

    def _flushBackoffQCompleted(self, _given: Any) -> None:
        self.queue.flush_backoff(self.now)

    def _flushUnschedulablePodsLeftover(self, _given: Any) -> None:
        self.queue.flush_waiting(self.now)

    def _Pop(self, _given: Any) -> dict[str, Any]:
        found = self.queue.pop()
        return {"popped": None if found is None else found.key}

    def _PopSpecificPod(self, given: Any) -> dict[str, Any]:
        found = self.queue.pop_pod(_pod(given["pod"]).key, self.now)
        return {"popped": None if found is None else found.key}

    def _Done(self, given: Any) -> None:
        flying = [each["pod"] for each in self.call["before"]["inFlight"] if "pod" in each]
        found = next((pod for pod in flying if (pod["metadata"].get("uid") or "") == given["uid"]), None)
        if found is not None:
            self.queue.done(_pod(found))

    def _Update(self, given: Any) -> None:
        if given["old"] is None:
            raise ImpossibleError("the update of a pod that was never seen")
        old, new = _pod(given["old"]), _pod(given["new"])
        self.queue.update(old, new, pod_changes(old, new), self.now)

    def _Delete(self, given: Any) -> None:
        self.queue.delete(_pod(given["pod"]))

    def _AssignedPodAdded(self, given: Any) -> None:
        self.queue.move_all(ASSIGNED_POD_ADDED, None, _pod(given["pod"]), self.now)

    def _AssignedPodUpdated(self, given: Any) -> None:
        self.queue.move_all(_event(given["event"]), _pod(given["old"]), _pod(given["new"]), self.now)

    def _MoveAllToActiveOrBackoffQueue(self, given: Any) -> None:
        may = None if "may" not in given else set(map(_normal, given["may"]))
        self.queue.move_all(
            _event(given["event"]),
            _object(given["old"]),
            _object(given["new"]),
            self.now,
            may_move=None if may is None else lambda pod: pod.key in may,
        )

    def _AddNominatedPod(self, given: Any) -> None:
        self._must_be_listed(given["pod"])
        self.queue.nominations.add(_pod(given["pod"]), given.get("node"))

    def _UpdateNominatedPod(self, given: Any) -> None:
        self._must_be_listed(given["new"])
        self.queue.nominations.update(_pod(given["old"]), _pod(given["new"]))

    def _must_be_listed(self, pod: Any) -> None:
        nodes = {_normal(each["key"]): each["node"] for each in self.call["before"]["lister"]}
        if nodes.get(_key_of(pod)) != "":
            raise ImpossibleError("a pod that does not exist or has a node; the machine nominates pending pods only")

    def _DeleteNominatedPodIfExists(self, given: Any) -> None:
        self.queue.nominations.remove(_pod(given["pod"]))

    def _moveToActiveQ(self, given: Any) -> dict[str, Any]:
        queued = self._given(given["info"])
        room = self.queue._to_active(queued, "", self.now, from_backoff=given["fromBackoff"])
        return {"ok": room is Room.ACTIVE}

    def _moveToBackoffQ(self, given: Any) -> dict[str, Any]:
        return {"ok": self.queue._to_backoff(self._given(given["info"]), "") is Room.BACKOFF}

    def _isPodWorthRequeuing(self, given: Any) -> dict[str, Any]:
        queued = _queued(given["info"])
        hints = self.queue.profile(queued.pod.spec.scheduler_name).hints
        answer = hints.judge(queued, _event(given["event"]), _object(given["old"]), _object(given["new"]))
        return {"strategy": _STRATEGIES.index(answer)}


def _queued(info: Any) -> QueuedPod:
    if info is None:
        raise ImpossibleError("a group of pods")
    pod = _pod(info["pod"])
    return QueuedPod(
        pod=pod,
        timestamp=_seconds(info["timestamp"]),
        first_attempt_at=None if "first" not in info else _seconds(info["first"]),
        attempts=info["attempts"],
        unschedulable_count=info["refusals"],
        consecutive_errors=info["errors"],
        backoff_until=None if info["until"] is None else _seconds(info["until"]),
        unschedulable_plugins=set(info["refusedBy"]),
        pending_plugins=set(info["pendingFor"]),
        gating_plugin=info["gate"],
        gating_events=tuple(map(_event, info["gateEvents"])),
        was_flushed=info["flushed"],
        flushed_at=_seconds(info["flushedAt"]) if info.get("flushedAt") else None,
    )


def _policy(about: Any) -> BackoffPolicy:
    return BackoffPolicy(initial_seconds=about["initial"], max_seconds=about["max"], aligned=about["early"])
