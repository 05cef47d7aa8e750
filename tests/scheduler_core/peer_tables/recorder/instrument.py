"""Makes a writable copy of the module k8s.io/kubernetes write down what the tests of its scheduler ask.

The methods of the plugins are renamed, and get a wrapper that calls `peertables.Dump` (peertables.go) with the
arguments and the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

HERE: Final = Path(__file__).parent
_IMPORT: Final = '\n\t"k8s.io/kubernetes/pkg/scheduler/peertables"\n'


class _Wrapped(NamedTuple):
    """The names of a method's arguments, those of its results, and what is written."""

    arguments: str
    results: str
    written: str


_STATUS: Final = '"status": peertables.Status(st)'
_ON_NODE: Final = '"node": peertables.Node(nodeInfo)'
_OTHER: Final = f'"pod": pod, "other": podInfo.GetPod(), {_ON_NODE}, {_STATUS}'
_METHODS: Final = {
    "PreFilter": _Wrapped(
        "ctx cycleState pod nodes", "r, st", f'"pod": pod, "nodes": peertables.Names(nodes), {_STATUS}, "result": r'
    ),
    "Filter": _Wrapped("ctx cycleState pod nodeInfo", "st", f'"pod": pod, {_ON_NODE}, {_STATUS}'),
    "PreScore": _Wrapped("ctx cycleState pod nodes", "st", f'"pod": pod, "nodes": peertables.Names(nodes), {_STATUS}'),
    "Score": _Wrapped("ctx cycleState pod nodeInfo", "n, st", f'"pod": pod, {_ON_NODE}, "score": n, {_STATUS}'),
    "NormalizeScore": _Wrapped("ctx cycleState pod scores", "st", f'"pod": pod, "scores": scores, {_STATUS}'),
    "PreEnqueue": _Wrapped("ctx pod", "st", f'"pod": pod, {_STATUS}'),
    "AddPod": _Wrapped("ctx cycleState pod podInfo nodeInfo", "st", _OTHER),
    "RemovePod": _Wrapped("ctx cycleState pod podInfo nodeInfo", "st", _OTHER),
    "PostFilter": _Wrapped(
        "ctx cycleState pod m",
        "r, st",
        f'"pod": pod, "result": r, {_STATUS}, "plugins": pluginsOf(pl), "statuses": statusesOf(pl, m)',
    ),
    "SelectVictimsOnNode": _Wrapped(
        "ctx cycleState pod nodeInfo pdbs",
        "victims, violating, st",
        '"pod": pod, "node": before, "pdbs": pdbs, "victims": victims, "violating": violating, '
        f'{_STATUS}, "plugins": pluginsOf(pl)',
    ),
    "SelectCandidate": _Wrapped("ctx candidates", "c", '"candidates": candidatesOf(candidates), "chosen": chosenOf(c)'),
}
_HINT: Final = _Wrapped(
    "logger pod oldObj newObj",
    "h, err",
    '"pod": pod, "old": oldObj, "new": newObj, "oldType": fmt.Sprintf("%T", oldObj), '
    '"newType": fmt.Sprintf("%T", newObj), "hint": h, "error": fmt.Sprint(err)',
)
_METHOD: Final = re.compile(r"^func \((\w+) (\*?\w+)\) (\w+)\(", re.MULTILINE)
_CONSTRUCTOR: Final = re.compile(
    r"^func (New|NewFit|NewBalancedAllocation|NewCSI)\((\w+) context\.Context, (.*?)\) \((\S+), error\) \{$",
    re.MULTILINE,
)

_PREEMPTION: Final = """
func candidatesOf(cs []Candidate) any {
	out := []any{}
	for _, c := range cs {
		out = append(out, chosenOf(c))
	}
	return out
}

func chosenOf(c Candidate) any {
	if c == nil {
		return nil
	}
	return map[string]any{"node": c.Name(), "victims": c.Victims()}
}
"""
_DEFAULT_PREEMPTION: Final = """
func pluginsOf(pl *DefaultPreemption) any {
	if f, ok := pl.fh.(interface{ ListPlugins() *config.Plugins }); ok {
		return f.ListPlugins()
	}
	return nil
}

func statusesOf(pl *DefaultPreemption, m fwk.NodeToStatusReader) any {
	out := map[string]any{}
	infos, _ := pl.fh.SnapshotSharedLister().NodeInfos().List()
	for _, n := range infos {
		out[n.Node().Name] = peertables.Status(m.Get(n.Node().Name))
	}
	return out
}
"""
_SCHEDULE_POD: Final = """
func (sched *Scheduler) schedulePod(
	ctx context.Context, fwk framework.Framework, state fwk.CycleState, podInfo *framework.QueuedPodInfo,
) (ScheduleResult, error) {
	r, err := sched.peerSchedulePod(ctx, fwk, state, podInfo)
	fields := map[string]any{"pod": podInfo.Pod, "host": r.SuggestedHost, "evaluated": r.EvaluatedNodes,
		"feasible": r.FeasibleNodes, "error": fmt.Sprint(err), "plugins": fwk.ListPlugins(),
		"extenders": len(sched.Extenders), "percentage": sched.percentageOfNodesToScore}
	if fit, ok := err.(*framework.FitError); ok {
		statuses := map[string]any{}
		infos, _ := fwk.SnapshotSharedLister().NodeInfos().List()
		for _, n := range infos {
			statuses[n.Node().Name] = peertables.Status(fit.Diagnosis.NodeToStatus.Get(n.Node().Name))
		}
		fields["statuses"], fields["prefilter"] = statuses, fit.Diagnosis.PreFilterMsg
	}
	peertables.Made(fwk, nil, fwk, nil)
	peertables.Dump("schedulePod", fwk, "", fields)
	return r, err
}
"""
_QUEUE_METHODS: Final = (
    *("Add", "Update", "Delete", "Activate", "Pop", "PopSpecificPod", "Done", "AddUnschedulableIfNotPresent"),
    *("AssignedPodAdded", "AssignedPodUpdated", "MoveAllToActiveOrBackoffQueue", "AddNominatedPod", "moveToActiveQ"),
    *("moveToBackoffQ", "flushBackoffQCompleted", "flushUnschedulablePodsLeftover", "isPodWorthRequeuing"),
    "runPreEnqueuePlugin",
)
# Since 1.37 the queue holds entities: pods, and groups of pods.
_UNTIL_1_36: Final = ("PopSpecificPod", "AssignedPodAdded", "AssignedPodUpdated")
_METHODS_SINCE_1_37: Final = {
    "AddUnschedulableIfNotPresent": "AddUnschedulablePodIfNotPresent",
    "flushUnschedulablePodsLeftover": "flushUnschedulableEntitiesLeftover",
}
_SINCE_1_37: Final = (
    ("i.WasFlushedFromUnschedulable}", 'i.WasFlushedFromUnschedulable, "flushedAt": peerTime(i.FlushTimestamp)}'),
    ("b.podErrorBackoffQ", "b.entityErrorBackoffQ"),
    ("b.podBackoffQ", "b.entityBackoffQ"),
    ("p.unschedulablePods.podInfoMap", "p.unschedulableEntities.entityInfoMap"),
    ("p.isSchedulingQueueHintEnabled", "true"),
    ("int64(e.ActionType)", "peerActions(int64(e.ActionType))"),
    ("Change(newPod, oldPod)", "Change(newPod, oldPod, true)"),
    (
        "Pop(logger klog.Logger) (info *framework.QueuedPodInfo",
        "Pop(logger klog.Logger) (info framework.QueuedEntityInfo",
    ),
    ("Delete(pod *v1.Pod) {", "Delete(logger klog.Logger, pod *v1.Pod) {"),
    ("p.peerDelete(pod)", "p.peerDelete(logger, pod)"),
    ("pInfo *framework.QueuedPodInfo, event string", "pInfo framework.QueuedEntityInfo, event string"),
    ("event string) (added", "event string, strategy *queueingStrategy) (added"),
    ("fromBackoff bool) (added", "fromBackoff bool, strategy *queueingStrategy) (added"),
    ("(logger, pInfo, event, fromBackoff)", "(logger, pInfo, event, fromBackoff, strategy)"),
    (".peermoveToBackoffQ(logger, pInfo, event)", ".peermoveToBackoffQ(logger, pInfo, event, strategy)"),
    ("newObj interface{}) (strategy", "newObj interface{}, keys *preQueueingHintPodKeys) (strategy"),
    ("(logger, pInfo, event, oldObj, newObj)", "(logger, pInfo, event, oldObj, newObj, keys)"),
)


def instrument(root: Path, staging: str) -> None:
    """`staging`: the version of the modules that k8s.io/kubernetes has as folders, such as v0.36.3."""
    go_mod = root / "go.mod"
    go_mod.write_text(re.sub(r"=> \./staging/src/(k8s\.io/\S+)", rf"=> \1 {staging}", go_mod.read_text()))
    for each in ("go.work", "go.work.sum"):
        (root / each).unlink(missing_ok=True)
    scheduler = root / "pkg/scheduler"
    (scheduler / "peertables").mkdir(exist_ok=True)
    (scheduler / "peertables/peertables.go").write_text((HERE / "peertables.go").read_text())
    preemption = scheduler / "framework/preemption/preemption.go"
    for path in [*sorted(scheduler.glob("framework/plugins/*/*.go")), preemption]:
        if not path.name.endswith("_test.go"):
            _wrap(path)
    preemption.write_text(preemption.read_text() + _PREEMPTION)
    plugins = scheduler / "framework/plugins"
    plugin = plugins / "defaultpreemption/default_preemption.go"
    plugin.write_text(plugin.read_text() + _DEFAULT_PREEMPTION)
    devices = plugins / "dynamicresources/dynamicresources.go"
    devices.write_text(devices.read_text().replace(', "plugins": pluginsOf(pl), "statuses": statusesOf(pl, m)', ""))
    cycle = scheduler / "schedule_one.go"
    text = cycle.read_text().replace("func (sched *Scheduler) schedulePod(", "func (sched *Scheduler) peerSchedulePod(")
    cycle.write_text(_with_import(text) + _SCHEDULE_POD)


def instrument_queue(root: Path) -> None:
    """Raises ValueError if the queue has other methods than those of 1.36 or 1.37."""
    folder = root / "pkg/scheduler/backend/queue"
    path = folder / "scheduling_queue.go"
    text, written = path.read_text(), (HERE / "peer_queue.go").read_text()
    methods: tuple[str, ...] = _QUEUE_METHODS
    if "unschedulableEntities" in text:
        methods = tuple(_METHODS_SINCE_1_37.get(each, each) for each in methods if each not in _UNTIL_1_36)
        written = _of_entities(written)
    for method in methods:
        found = re.compile(rf"^func \(p \*PriorityQueue\) {method}\(", re.MULTILINE)
        text = _replaced(text, found, f"func (p *PriorityQueue) peer{method}(")
    text = _replaced(text, "\t\topt(&options)\n\t}\n", "\t\topt(&options)\n\t}\n\tpeerOptions(&options)\n")
    made = "\tpq.nominator = newPodNominator(options.podLister)\n"
    text = _replaced(text, made, f"{made}\tpeerMade(pq, lessFn, &options)\n")
    path.write_text(text)
    (folder / "peer_queue.go").write_text(written)


def _of_entities(written: str) -> str:
    """peer_queue.go for the queue since 1.37. The calls keep the names that they had before."""
    written = written.partition("// ---- until 1.36 ----")[0]
    for before, after in _METHODS_SINCE_1_37.items():
        written = _replaced(written, f") {before}(", f") {after}(")
        written = _replaced(written, f".peer{before}(", f".peer{after}(")
    for part, other in _SINCE_1_37:
        written = _replaced(written, part, other)
    return written


def _replaced(text: str, part: str | re.Pattern[str], other: str) -> str:
    pattern = re.compile(re.escape(part)) if isinstance(part, str) else part
    replaced, count = pattern.subn(lambda _: other, text)
    if not count:
        raise ValueError(f"this release has no {pattern.pattern!r}")
    return replaced


def _wrap(path: Path) -> None:
    text = path.read_text()
    added = [*_wrapped_methods(text), *_wrapped_constructors(text)]
    if not added:
        return
    for pattern, _ in added:
        text = pattern.sub(lambda match: match[0].replace(match["name"], f"peer{match['name']}", 1), text, count=1)
    text = _with_import(text)
    if any("fmt.Sprint" in wrapper for _, wrapper in added) and '\t"fmt"\n' not in text:
        text = text.replace("import (\n", 'import (\n\t"fmt"\n', 1)
    path.write_text(text + "".join(wrapper for _, wrapper in added))


def _with_import(text: str) -> str:
    return re.sub(r"^import \(\n", "import (" + _IMPORT, text, count=1, flags=re.MULTILINE)


def _wrapped_methods(text: str) -> Iterator[tuple[re.Pattern[str], str]]:
    for match in _METHOD.finditer(text):
        _, owner, method = match.groups()
        is_hint = "SchedulableAfter" in method
        if method not in _METHODS and not is_hint:
            continue
        wrapped = _HINT if is_hint else _METHODS[method]
        end = _closing(text, match.end() - 1)
        types, names = _types(text[match.end() : end]), wrapped.arguments.split()
        if method == "SelectVictimsOnNode" and len(types) == len(names) + 1:  # since 1.37
            names.insert(-1, "allPossibleVictims")
        if len(types) != len(names):
            continue
        returned = text[end + 1 : text.index("{\n", end)].strip()
        returned = re.sub(r"^\((\w+) (\*fwk\.Status)\)$", r"\2", returned)
        parameters = ", ".join(f"{name} {kind}" for name, kind in zip(names, types, strict=True))
        before = "\tbefore := peertables.Node(nodeInfo)\n" if "before" in wrapped.written else ""
        written = f'"method": "{method}", {wrapped.written}' if is_hint else wrapped.written
        about = "pl.Name()" if owner.lstrip("*") != "Evaluator" else '"Evaluator"'
        wrapper = (
            f"\nfunc (pl {owner}) {method}({parameters}) {returned} {{\n{before}"
            f"\t{wrapped.results} := pl.peer{method}({', '.join(names)})\n"
            f'\tpeertables.Dump("{"Hint" if is_hint else method}", pl, {about}, map[string]any{{{written}}})\n'
            f"\treturn {wrapped.results}\n}}\n"
        )
        yield re.compile(rf"^func \(\w+ {re.escape(owner)}\) (?P<name>{method})\(", re.MULTILINE), wrapper


def _wrapped_constructors(text: str) -> Iterator[tuple[re.Pattern[str], str]]:
    for match in _CONSTRUCTOR.finditer(text):
        name, types, gives = match[1], _types("c context.Context, " + match[3]), match[4]
        names = ["ctx", "args", "h", "fts"][: len(types)]
        parameters = ", ".join(f"{each} {kind}" for each, kind in zip(names, types, strict=True))
        features = "fts" if len(types) == 4 else "nil"
        wrapper = (
            f"\nfunc {name}({parameters}) ({gives}, error) {{\n\tp, err := peer{name}({', '.join(names)})\n"
            f"\tif err == nil {{\n\t\tpeertables.Made(p, args, h, {features})\n\t}}\n\treturn p, err\n}}\n"
        )
        yield re.compile(rf"^func (?P<name>{name})\(", re.MULTILINE), wrapper


def _closing(text: str, at: int) -> int:
    depth = 0
    for place in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place
    raise ValueError(text[at : at + 80])


def _types(parameters: str) -> list[str]:
    """The types of a parameter list, one for each name."""
    found: list[str] = []
    waiting = 0
    for part in re.split(r",(?![^\[(]*[\])])", parameters.strip().rstrip(",")):
        words = part.split(None, 1)
        waiting += 1
        if len(words) == 2:
            found += [words[1].strip()] * waiting
            waiting = 0
    return found
