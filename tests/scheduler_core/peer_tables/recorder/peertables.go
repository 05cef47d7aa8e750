// Package peertables writes what a scheduler plugin was asked, what it could see, and what it answered, one JSON line a
// call on standard output. recorder/instrument.py puts it into a copy of k8s.io/kubernetes and calls it from the plugins.
package peertables

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"unsafe"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
)

type made struct {
	args   json.RawMessage
	fts    any
	handle fwk.Handle
}

var (
	mu    sync.Mutex
	known = map[uintptr]made{}
	kinds = os.Getenv("PEER_KINDS")
)

// Made remembers the arguments of a plugin.
func Made(plugin any, args runtime.Object, handle fwk.Handle, fts any) {
	v := reflect.ValueOf(plugin)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return
	}
	m := made{fts: fts, handle: handle}
	if args != nil && !reflect.ValueOf(args).IsNil() {
		if out, err := scheme.Scheme.ConvertToVersion(args.DeepCopyObject(), configv1.SchemeGroupVersion); err == nil {
			m.args, _ = json.Marshal(out)
		} else {
			m.args, _ = json.Marshal(fmt.Sprint("ERROR ", err))
		}
	}
	mu.Lock()
	known[v.Pointer()] = m
	mu.Unlock()
}

// Status is a verdict as JSON.
func Status(s *fwk.Status) any {
	if s == nil {
		return map[string]any{"code": "Success"}
	}
	return map[string]any{"code": s.Code().String(), "plugin": s.Plugin(), "reasons": s.Reasons(), "error": fmt.Sprint(s.AsError())}
}

// Node is a node with its pods as JSON.
func Node(n fwk.NodeInfo) any {
	if n == nil || reflect.ValueOf(n).IsNil() {
		return nil
	}
	pods := []any{}
	for _, p := range n.GetPods() {
		pods = append(pods, p.GetPod())
	}
	out := map[string]any{"node": n.Node(), "pods": pods}
	return out
}

// Nodes are several of them.
func Nodes(ns []fwk.NodeInfo) any {
	out := []any{}
	for _, n := range ns {
		out = append(out, Node(n))
	}
	return out
}

// Names of nodes.
func Names(ns []fwk.NodeInfo) any {
	out := []string{}
	for _, n := range ns {
		if n != nil && n.Node() != nil {
			out = append(out, n.Node().Name)
		}
	}
	return out
}

func try(f func()) {
	defer func() { _ = recover() }()
	f()
}

func list[T any](into map[string]any, kind string, l func(labels.Selector) ([]T, error)) {
	try(func() {
		found, err := l(labels.Everything())
		if err != nil || len(found) == 0 {
			return
		}
		if old, ok := into[kind].([]T); !ok || len(old) < len(found) {
			into[kind] = found
		}
	})
}

func fromFactory(into map[string]any, f informers.SharedInformerFactory) {
	if f == nil || reflect.ValueOf(f).IsNil() {
		return
	}
	list(into, "PersistentVolumeClaim", f.Core().V1().PersistentVolumeClaims().Lister().List)
	list(into, "PersistentVolume", f.Core().V1().PersistentVolumes().Lister().List)
	list(into, "StorageClass", f.Storage().V1().StorageClasses().Lister().List)
	list(into, "CSINode", f.Storage().V1().CSINodes().Lister().List)
	list(into, "CSIDriver", f.Storage().V1().CSIDrivers().Lister().List)
	list(into, "CSIStorageCapacity", f.Storage().V1().CSIStorageCapacities().Lister().List)
	list(into, "VolumeAttachment", f.Storage().V1().VolumeAttachments().Lister().List)
	list(into, "Namespace", f.Core().V1().Namespaces().Lister().List)
	list(into, "Service", f.Core().V1().Services().Lister().List)
	list(into, "ReplicationController", f.Core().V1().ReplicationControllers().Lister().List)
	list(into, "ReplicaSet", f.Apps().V1().ReplicaSets().Lister().List)
	list(into, "StatefulSet", f.Apps().V1().StatefulSets().Lister().List)
	list(into, "PodDisruptionBudget", f.Policy().V1().PodDisruptionBudgets().Lister().List)
}

func fromHandle(into map[string]any, seen map[string]any, h fwk.Handle) {
	if h == nil || reflect.ValueOf(h).IsNil() {
		return
	}
	try(func() { seen["snapshot"] = Nodes(must(h.SnapshotSharedLister().NodeInfos().List())) })
	try(func() { fromFactory(into, h.SharedInformerFactory()) })
	try(func() { fromDRA(into, h.SharedDRAManager()) })
	try(func() {
		if l, ok := h.(interface{ ListPlugins() any }); ok {
			seen["plugins"] = l.ListPlugins()
		}
	})
}

func fromDRA(into map[string]any, m fwk.SharedDRAManager) {
	try(func() {
		if c, err := m.ResourceClaims().List(); err == nil && len(c) > 0 {
			into["ResourceClaim"] = c
		}
	})
	try(func() {
		if c, err := m.ResourceSlices().ListWithDeviceTaintRules(); err == nil && len(c) > 0 {
			into["ResourceSlice"] = c
		}
	})
	try(func() {
		if c, err := m.DeviceClasses().List(); err == nil && len(c) > 0 {
			into["DeviceClass"] = c
		}
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// look goes through the fields of a plugin, also unexported ones, for listers.
func look(into, seen map[string]any, v reflect.Value, depth int) {
	if depth > 8 {
		return
	}
	if v.CanInterface() && v.IsValid() && (v.Kind() != reflect.Interface && v.Kind() != reflect.Pointer || !v.IsNil()) {
		switch x := v.Interface().(type) {
		case fwk.Handle:
			fromHandle(into, seen, x)
			return
		case fwk.SharedLister:
			if _, ok := seen["snapshot"]; !ok {
				try(func() { seen["snapshot"] = Nodes(must(x.NodeInfos().List())) })
			}
			return
		case fwk.SharedDRAManager:
			fromDRA(into, x)
			return
		case informers.SharedInformerFactory:
			return
		case corelisters.PersistentVolumeClaimLister:
			list(into, "PersistentVolumeClaim", x.List)
		case corelisters.PersistentVolumeLister:
			list(into, "PersistentVolume", x.List)
		case corelisters.NamespaceLister:
			list(into, "Namespace", x.List)
		case corelisters.ServiceLister:
			list(into, "Service", x.List)
		case corelisters.ReplicationControllerLister:
			list(into, "ReplicationController", x.List)
		case appslisters.ReplicaSetLister:
			list(into, "ReplicaSet", x.List)
		case appslisters.StatefulSetLister:
			list(into, "StatefulSet", x.List)
		case storagelisters.StorageClassLister:
			list(into, "StorageClass", x.List)
		case storagelisters.CSINodeLister:
			list(into, "CSINode", x.List)
		case storagelisters.CSIDriverLister:
			list(into, "CSIDriver", x.List)
		case storagelisters.CSIStorageCapacityLister:
			list(into, "CSIStorageCapacity", x.List)
		case storagelisters.VolumeAttachmentLister:
			list(into, "VolumeAttachment", x.List)
		case policylisters.PodDisruptionBudgetLister:
			list(into, "PodDisruptionBudget", x.List)
		}
		name := v.Type().String()
		if v.Kind() != reflect.Interface && (strings.Contains(name, "informers.") || strings.Contains(name, "cache.") || strings.HasSuffix(name, "Lister") && strings.HasPrefix(name, "v1.")) {
			return
		}
		if strings.HasPrefix(name, "framework.") && strings.HasSuffix(name, "Lister") { // the fakes of the tests
			into["fake "+name] = v.Interface()
			return
		}
	}
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() {
			look(into, seen, v.Elem(), depth+1)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			look(into, seen, v.Elem(), depth+1)
		}
	case reflect.Struct:
		if !v.CanAddr() {
			return
		}
		for i := 0; i < v.NumField(); i++ {
			f := v.Field(i)
			switch f.Kind() {
			case reflect.Interface, reflect.Pointer, reflect.Struct, reflect.Slice:
				look(into, seen, reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem(), depth+1)
			}
		}
	}
}

// Dump writes one call.
func Dump(kind string, plugin any, name string, fields map[string]any) {
	if kinds != "" && !strings.Contains(","+kinds+",", ","+kind+",") {
		return
	}
	seen, objects := map[string]any{}, map[string]any{}
	v := reflect.ValueOf(plugin)
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		mu.Lock()
		m, ok := known[v.Pointer()]
		mu.Unlock()
		if ok {
			fields["args"], fields["features"] = m.args, m.fts
			fromHandle(objects, seen, m.handle)
		}
		fields["instance"] = fmt.Sprintf("%x", v.Pointer())
		try(func() { look(objects, seen, v, 0) })
	}
	for k, s := range seen {
		fields[k] = s
	}
	if len(objects) > 0 {
		fields["objects"] = objects
	}
	fields["kind"], fields["pluginName"] = kind, name
	line, err := json.Marshal(fields)
	if err != nil {
		line, _ = json.Marshal(map[string]any{"kind": kind, "pluginName": name, "unwritable": err.Error()})
	}
	mu.Lock()
	defer mu.Unlock()
	_, _ = fmt.Fprintf(os.Stdout, "\nPEER %s\n", line)
}
