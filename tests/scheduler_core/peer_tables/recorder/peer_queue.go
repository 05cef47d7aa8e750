package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

type peerKnown struct {
	depth int
	about map[string]any
}

var (
	peerLock   sync.Mutex
	peerQueue  = map[*PriorityQueue]*peerKnown{}
	peerAsked  []map[string]any
	peerWrites = os.Getenv("PEER_KINDS") == "Queue"
)

func peerNote(about map[string]any) {
	peerLock.Lock()
	peerAsked = append(peerAsked, about)
	peerLock.Unlock()
}

func (p *PriorityQueue) runPreEnqueuePlugin(ctx context.Context, pl fwk.PreEnqueuePlugin, pInfo *framework.QueuedPodInfo, record bool) *fwk.Status {
	s := p.peerrunPreEnqueuePlugin(ctx, pl, pInfo, record)
	peerNote(map[string]any{"gate": pl.Name(), "pod": peerKey(pInfo.Pod), "ok": s.IsSuccess()})
	return s
}

func peerOptions(o *priorityQueueOptions) {
	if !peerWrites {
		return
	}
	hints := QueueingHintMapPerProfile{}
	for profile, byEvent := range o.queueingHintMap {
		hints[profile] = QueueingHintMap{}
		for event, fns := range byEvent {
			for _, fn := range fns {
				wrapped, name, inner := *fn, fn.PluginName, fn.QueueingHintFn
				wrapped.QueueingHintFn = func(l klog.Logger, pod *v1.Pod, o, n interface{}) (fwk.QueueingHint, error) {
					hint, err := inner(l, pod, o, n)
					peerNote(map[string]any{"hint": name, "pod": peerKey(pod), "helps": hint == fwk.Queue || err != nil})
					return hint, err
				}
				hints[profile][event] = append(hints[profile][event], &wrapped)
			}
		}
	}
	o.queueingHintMap = hints
}

func peerMade(p *PriorityQueue, less fwk.LessFunc, o *priorityQueueOptions) {
	if !peerWrites || less == nil {
		return
	}
	pod := func(priority int32) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: v1.PodSpec{Priority: &priority}}
	}
	info := func(priority int32, at int64) *framework.QueuedPodInfo {
		queued := &framework.QueuedPodInfo{PodInfo: &framework.PodInfo{Pod: pod(priority)}}
		queued.Timestamp = time.Unix(at, 0)
		return queued
	}
	hints := map[string]any{}
	for profile, byEvent := range o.queueingHintMap {
		list := []any{}
		for event, fns := range byEvent {
			for _, fn := range fns {
				list = append(list, map[string]any{"event": peerEvent(event), "plugin": fn.PluginName})
			}
		}
		hints[profile] = list
	}
	gates := map[string]any{}
	for profile, plugins := range o.preEnqueuePluginMap {
		names := []string{}
		for _, plugin := range plugins {
			names = append(names, plugin.Name())
		}
		gates[profile] = names
	}
	peerLock.Lock()
	defer peerLock.Unlock()
	peerQueue[p] = &peerKnown{about: map[string]any{
		"highFirst": less(info(2, 1), info(1, 1)), "lowFirst": less(info(1, 1), info(2, 1)), "oldFirst": less(info(1, 1), info(1, 2)),
		"hints": hints, "gates": gates, "initial": o.podInitialBackoffDuration.Seconds(), "max": o.podMaxBackoffDuration.Seconds(),
		"patience": o.podMaxInUnschedulablePodsDuration.Seconds(), "early": p.isPopFromBackoffQEnabled,
		"queueingHints": p.isSchedulingQueueHintEnabled, "groups": p.isGenericWorkloadEnabled,
	}}
}

func peerKey(pod *v1.Pod) string { return pod.Namespace + "/" + pod.Name }

func peerTime(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixNano()
}

// peerActions numbers the actions of 1.37 as 1.36 does, without the two that are new.
func peerActions(since137 int64) int64 {
	return since137&0xff | since137>>9&3<<8 | since137>>12&7<<10
}

func peerEvent(e fwk.ClusterEvent) any {
	return map[string]any{"resource": string(e.Resource), "action": int64(e.ActionType), "label": e.Label()}
}

func peerObject(o interface{}) any {
	if o == nil {
		return nil
	}
	return map[string]any{"type": fmt.Sprintf("%T", o), "object": o}
}

func peerPod(queued any) *v1.Pod {
	if i, ok := queued.(*framework.QueuedPodInfo); ok {
		return i.Pod
	}
	return nil
}

// peerInfo is nil for a group of pods, which a queue may hold since 1.37.
func peerInfo(queued any) any {
	i, ok := queued.(*framework.QueuedPodInfo)
	if !ok || i == nil {
		return nil
	}
	out := map[string]any{"pod": i.Pod, "timestamp": peerTime(i.Timestamp), "attempts": i.Attempts, "refusals": i.UnschedulableCount,
		"errors": i.ConsecutiveErrorsCount, "until": peerTime(i.BackoffExpiration), "refusedBy": i.UnschedulablePlugins.UnsortedList(),
		"pendingFor": i.PendingPlugins.UnsortedList(), "gate": i.GatingPlugin, "flushed": i.WasFlushedFromUnschedulable}
	events := []any{}
	for _, e := range i.GatingPluginEvents {
		events = append(events, peerEvent(e))
	}
	out["gateEvents"] = events
	if i.InitialAttemptTimestamp != nil {
		out["first"] = peerTime(*i.InitialAttemptTimestamp)
	}
	return out
}

func peerInfos[T any](in []T) any {
	out := []any{}
	for _, i := range in {
		out = append(out, peerInfo(i))
	}
	return out
}

func peerState(p *PriorityQueue) (out map[string]any) {
	out = map[string]any{}
	defer func() {
		if r := recover(); r != nil {
			out["problem"] = fmt.Sprint(r)
		}
	}()
	a := p.activeQ.(*activeQueue)
	b := p.backoffQ.(*backoffQueue)
	out["now"] = p.clock.Now().UnixNano()
	out["active"] = peerInfos(a.queue.List())
	out["failed"] = peerInfos(b.podErrorBackoffQ.List())
	out["backoff"] = peerInfos(b.podBackoffQ.List())
	waiting := []any{}
	for _, i := range p.unschedulablePods.podInfoMap {
		waiting = append(waiting, i)
	}
	out["waiting"] = peerInfos(waiting)
	flight := []any{}
	for e := a.inFlightEvents.Front(); e != nil; e = e.Next() {
		switch x := e.Value.(type) {
		case *v1.Pod:
			flight = append(flight, map[string]any{"pod": x})
		case *clusterEvent:
			flight = append(flight, map[string]any{"event": peerEvent(x.event), "old": peerObject(x.oldObj), "new": peerObject(x.newObj)})
		}
	}
	out["inFlight"] = flight
	uids := []string{}
	for uid := range a.inFlightPods {
		uids = append(uids, string(uid))
	}
	out["inFlightUids"] = uids
	nominated := map[string]any{}
	for node, refs := range p.nominator.nominatedPods {
		list := []any{}
		for _, r := range refs {
			list = append(list, map[string]any{"key": r.namespace + "/" + r.name, "uid": string(r.uid)})
		}
		nominated[node] = list
	}
	out["nominated"] = nominated
	lister := []any{}
	if p.nominator.podLister != nil {
		if pods, err := p.nominator.podLister.List(labels.Everything()); err == nil {
			for _, pod := range pods {
				lister = append(lister, map[string]any{"key": peerKey(pod), "node": pod.Spec.NodeName})
			}
		}
	}
	out["lister"] = lister
	return out
}

func peerCopy(v any) json.RawMessage {
	out, err := json.Marshal(v)
	if err != nil {
		out, _ = json.Marshal(map[string]any{"unwritable": err.Error()})
	}
	return out
}

// peerCall runs a method, and writes it unless another one of this queue calls it.
func peerCall(p *PriorityQueue, method string, given func() map[string]any, run func() map[string]any) {
	peerLock.Lock()
	known := peerQueue[p]
	nested := !peerWrites || known == nil || known.depth > 0
	if known != nil {
		known.depth++
	}
	peerLock.Unlock()
	if nested {
		run()
		if known != nil {
			peerLock.Lock()
			known.depth--
			peerLock.Unlock()
		}
		return
	}
	arguments := peerCopy(given())
	before := peerCopy(peerState(p))
	peerLock.Lock()
	peerAsked = nil
	peerLock.Unlock()
	answer := run()
	peerLock.Lock()
	asked := peerAsked
	known.depth--
	peerLock.Unlock()
	line, err := json.Marshal(map[string]any{"kind": "Queue", "method": method, "about": known.about, "given": arguments,
		"before": before, "after": peerState(p), "answer": answer, "asked": asked})
	if err != nil {
		return
	}
	fmt.Fprintf(os.Stdout, "\nPEER %s\n", line)
}

func (p *PriorityQueue) Add(ctx context.Context, pod *v1.Pod) {
	peerCall(p, "Add", func() map[string]any { return map[string]any{"pod": pod} }, func() map[string]any { p.peerAdd(ctx, pod); return nil })
}

func (p *PriorityQueue) Activate(logger klog.Logger, pods map[string]*v1.Pod) {
	peerCall(p, "Activate", func() map[string]any { return map[string]any{"pods": pods} }, func() map[string]any { p.peerActivate(logger, pods); return nil })
}

func (p *PriorityQueue) AddUnschedulableIfNotPresent(logger klog.Logger, pInfo *framework.QueuedPodInfo, cycle int64) (err error) {
	peerCall(p, "AddUnschedulableIfNotPresent", func() map[string]any { return map[string]any{"info": peerInfo(pInfo)} }, func() map[string]any {
		err = p.peerAddUnschedulableIfNotPresent(logger, pInfo, cycle)
		return map[string]any{"error": err != nil}
	})
	return err
}

func (p *PriorityQueue) flushBackoffQCompleted(logger klog.Logger) {
	peerCall(p, "flushBackoffQCompleted", func() map[string]any { return nil }, func() map[string]any { p.peerflushBackoffQCompleted(logger); return nil })
}

func (p *PriorityQueue) flushUnschedulablePodsLeftover(logger klog.Logger) {
	peerCall(p, "flushUnschedulablePodsLeftover", func() map[string]any { return nil }, func() map[string]any { p.peerflushUnschedulablePodsLeftover(logger); return nil })
}

func (p *PriorityQueue) Pop(logger klog.Logger) (info *framework.QueuedPodInfo, err error) {
	a := p.activeQ.(*activeQueue)
	if a.queue.Len() == 0 && (a.backoffQPopper == nil || a.backoffQPopper.lenBackoff() == 0) {
		return p.peerPop(logger) // it waits
	}
	peerCall(p, "Pop", func() map[string]any { return nil }, func() map[string]any {
		info, err = p.peerPop(logger)
		return map[string]any{"info": peerInfo(info)}
	})
	return info, err
}

func (p *PriorityQueue) Done(uid types.UID) {
	peerCall(p, "Done", func() map[string]any { return map[string]any{"uid": uid} }, func() map[string]any { p.peerDone(uid); return nil })
}

func (p *PriorityQueue) Update(ctx context.Context, oldPod, newPod *v1.Pod) {
	peerCall(p, "Update", func() map[string]any {
		events := []any{}
		if oldPod != nil {
			for _, e := range framework.PodSchedulingPropertiesChange(newPod, oldPod) {
				events = append(events, peerEvent(e))
			}
		}
		return map[string]any{"old": oldPod, "new": newPod, "events": events}
	}, func() map[string]any { p.peerUpdate(ctx, oldPod, newPod); return nil })
}

func (p *PriorityQueue) Delete(pod *v1.Pod) {
	peerCall(p, "Delete", func() map[string]any { return map[string]any{"pod": pod} }, func() map[string]any { p.peerDelete(pod); return nil })
}

func (p *PriorityQueue) MoveAllToActiveOrBackoffQueue(logger klog.Logger, event fwk.ClusterEvent, oldObj, newObj interface{}, preCheck PreEnqueueCheck) {
	peerCall(p, "MoveAllToActiveOrBackoffQueue", func() map[string]any {
		given := map[string]any{"event": peerEvent(event), "old": peerObject(oldObj), "new": peerObject(newObj)}
		if preCheck != nil && p.isEventOfInterest(logger, event) {
			may := []string{}
			for _, i := range p.unschedulablePods.podInfoMap {
				if pod := peerPod(i); pod != nil && preCheck(pod) {
					may = append(may, peerKey(pod))
				}
			}
			given["may"] = may
		}
		return given
	}, func() map[string]any {
		p.peerMoveAllToActiveOrBackoffQueue(logger, event, oldObj, newObj, preCheck)
		return nil
	})
}

func (p *PriorityQueue) AddNominatedPod(logger klog.Logger, pi fwk.PodInfo, info *fwk.NominatingInfo) {
	peerCall(p, "AddNominatedPod", func() map[string]any {
		given := map[string]any{"pod": pi.GetPod()}
		if info.Mode() == fwk.ModeOverride {
			given["node"] = info.NominatedNodeName
		}
		return given
	}, func() map[string]any { p.peerAddNominatedPod(logger, pi, info); return nil })
}

func (p *PriorityQueue) UpdateNominatedPod(logger klog.Logger, oldPod *v1.Pod, pi fwk.PodInfo) {
	peerCall(p, "UpdateNominatedPod", func() map[string]any { return map[string]any{"old": oldPod, "new": pi.GetPod()} }, func() map[string]any {
		p.nominator.UpdateNominatedPod(logger, oldPod, pi)
		return nil
	})
}

func (p *PriorityQueue) DeleteNominatedPodIfExists(pod *v1.Pod) {
	peerCall(p, "DeleteNominatedPodIfExists", func() map[string]any { return map[string]any{"pod": pod} }, func() map[string]any {
		p.nominator.DeleteNominatedPodIfExists(pod)
		return nil
	})
}

func (p *PriorityQueue) moveToActiveQ(logger klog.Logger, pInfo *framework.QueuedPodInfo, event string, fromBackoff bool) (added bool) {
	peerCall(p, "moveToActiveQ", func() map[string]any {
		return map[string]any{"info": peerInfo(pInfo), "event": event, "fromBackoff": fromBackoff}
	}, func() map[string]any {
		added = p.peermoveToActiveQ(logger, pInfo, event, fromBackoff)
		return map[string]any{"ok": added}
	})
	return added
}

func (p *PriorityQueue) moveToBackoffQ(logger klog.Logger, pInfo *framework.QueuedPodInfo, event string) (added bool) {
	peerCall(p, "moveToBackoffQ", func() map[string]any { return map[string]any{"info": peerInfo(pInfo), "event": event} }, func() map[string]any {
		added = p.peermoveToBackoffQ(logger, pInfo, event)
		return map[string]any{"ok": added}
	})
	return added
}

func (p *PriorityQueue) isPodWorthRequeuing(logger klog.Logger, pInfo *framework.QueuedPodInfo, event fwk.ClusterEvent, oldObj, newObj interface{}) (strategy queueingStrategy) {
	peerCall(p, "isPodWorthRequeuing", func() map[string]any {
		return map[string]any{"info": peerInfo(pInfo), "event": peerEvent(event), "old": peerObject(oldObj), "new": peerObject(newObj)}
	}, func() map[string]any {
		strategy = p.peerisPodWorthRequeuing(logger, pInfo, event, oldObj, newObj)
		return map[string]any{"strategy": int(strategy)}
	})
	return strategy
}

// ---- until 1.36 ----

func (p *PriorityQueue) PopSpecificPod(logger klog.Logger, pod *v1.Pod) (info *framework.QueuedPodInfo) {
	peerCall(p, "PopSpecificPod", func() map[string]any { return map[string]any{"pod": pod} }, func() map[string]any {
		info = p.peerPopSpecificPod(logger, pod)
		return map[string]any{"info": peerInfo(info)}
	})
	return info
}

func (p *PriorityQueue) AssignedPodAdded(logger klog.Logger, pod *v1.Pod) {
	peerCall(p, "AssignedPodAdded", func() map[string]any { return map[string]any{"pod": pod} }, func() map[string]any { p.peerAssignedPodAdded(logger, pod); return nil })
}

func (p *PriorityQueue) AssignedPodUpdated(logger klog.Logger, oldPod, newPod *v1.Pod, event fwk.ClusterEvent) {
	peerCall(p, "AssignedPodUpdated", func() map[string]any {
		return map[string]any{"old": oldPod, "new": newPod, "event": peerEvent(event)}
	}, func() map[string]any { p.peerAssignedPodUpdated(logger, oldPod, newPod, event); return nil })
}
