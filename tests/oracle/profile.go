package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	resourceslicetracker "k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	configscheme "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	plfeature "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

// profile is one scheduler profile over a frozen cluster, with everything that its plugins need.
type profile struct {
	framework.Framework
	snapshot   *cache.Snapshot
	informers  informers.SharedInformerFactory
	preemption *defaultpreemption.DefaultPreemption // nil if the configuration leaves the plugin out
}

// newProfiles returns the profiles of the configuration by name, and the first of them. The first one judges the
// pods whose schedulerName is no profile's name, because pods in files often lack a schedulerName.
func newProfiles(ctx context.Context, cl *cluster, raw json.RawMessage) (map[string]*profile, *profile, error) {
	cfg, err := readConfiguration(raw)
	if err != nil {
		return nil, nil, err
	}
	snapshot, err := cl.snapshot(ctx)
	if err != nil {
		return nil, nil, err
	}
	byName := map[string]*profile{}
	for i := range cfg.Profiles {
		p, err := newProfile(ctx, cl, &cfg.Profiles[i], snapshot)
		if err != nil {
			return nil, nil, err
		}
		byName[cfg.Profiles[i].SchedulerName] = p
	}
	return byName, byName[cfg.Profiles[0].SchedulerName], nil
}

func readConfiguration(raw json.RawMessage) (*config.KubeSchedulerConfiguration, error) {
	if len(raw) == 0 {
		raw = json.RawMessage(`{"apiVersion":"` + configv1.SchemeGroupVersion.String() + `","kind":"KubeSchedulerConfiguration"}`)
	}
	obj, gvk, err := configscheme.Codecs.UniversalDecoder().Decode(raw, nil, nil)
	if err != nil {
		return nil, err
	}
	cfg, ok := obj.(*config.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("the configuration is a %s, not a KubeSchedulerConfiguration", gvk)
	}
	cfg.APIVersion = gvk.GroupVersion().String()
	// Client connection and leader election stay empty, because no decision depends on them.
	return cfg, validation.ValidateKubeSchedulerConfiguration(cfg)
}

func newProfile(ctx context.Context, cl *cluster, cfg *config.KubeSchedulerProfile, snapshot *cache.Snapshot) (*profile, error) {
	h, err := newHandles(ctx, cl, snapshot)
	if err != nil {
		return nil, err
	}
	p := &profile{snapshot: snapshot, informers: h.factory}
	registry := plugins.NewInTreeRegistry()
	registry[defaultpreemption.Name] = func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		preemption, err := defaultpreemption.New(ctx, args, handle, plfeature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate))
		p.preemption = preemption
		return preemption, err
	}
	if p.Framework, err = frameworkruntime.NewFramework(ctx, registry, cfg, append(h.options, frameworkruntime.WithEventRecorder(noEvents{}))...); err != nil {
		return nil, err
	}
	waiting := queue.NewSchedulingQueue(p.QueueSortFunc(), h.factory, queue.WithPodLister(h.factory.Core().V1().Pods().Lister()))
	p.SetPodNominator(waiting)
	h.factory.Start(ctx.Done())
	h.factory.WaitForCacheSync(ctx.Done())
	h.listeners.wait(ctx)
	for _, pod := range cl.nominated {
		waiting.Add(ctx, pod)
	}
	return p, nil
}

// handles contains the options that scheduler.New gives to each framework, and the informers behind them.
type handles struct {
	factory   informers.SharedInformerFactory
	listeners *heard
	options   []frameworkruntime.Option
}

func newHandles(ctx context.Context, cl *cluster, snapshot *cache.Snapshot) (*handles, error) {
	client := frozenClient(cl)
	listeners := &heard{}
	factory := factoryHeardBy(client, listeners)
	claims := assumecache.NewAssumeCache(klog.FromContext(ctx), factory.Resource().V1().ResourceClaims().Informer(), "ResourceClaim", "", nil)
	tracked := resourceslicetracker.Options{
		EnableDeviceTaintRules:   utilfeature.DefaultFeatureGate.Enabled(features.DRADeviceTaintRules),
		EnableConsumableCapacity: utilfeature.DefaultFeatureGate.Enabled(features.DRAConsumableCapacity),
		SliceInformer:            factory.Resource().V1().ResourceSlices(),
		KubeClient:               client,
	}
	if tracked.EnableDeviceTaintRules {
		tracked.TaintInformer = factory.Resource().V1beta2().DeviceTaintRules()
		tracked.ClassInformer = factory.Resource().V1().DeviceClasses()
	}
	slices, err := resourceslicetracker.StartTracker(ctx, tracked)
	if err != nil {
		return nil, err
	}
	devices := dynamicresources.NewDRAManager(ctx, claims, slices, factory)
	if utilfeature.DefaultFeatureGate.Enabled(features.DRAExtendedResource) {
		// addAllEventHandlers of pkg/scheduler/eventhandlers.go does the same. Without this handler no DeviceClass
		// offers an extended resource.
		offered := devices.DeviceClassResolver().(*extendedresourcecache.ExtendedResourceCache)
		if _, err := factory.Resource().V1().DeviceClasses().Informer().AddEventHandler(offered); err != nil {
			return nil, err
		}
	}
	return &handles{factory, listeners, []frameworkruntime.Option{
		frameworkruntime.WithComponentConfigVersion(configv1.SchemeGroupVersion.String()),
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSharedDRAManager(devices),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())),
		frameworkruntime.WithSnapshotSharedLister(snapshot),
		frameworkruntime.WithParallelism(1),
		frameworkruntime.WithWaitingPods(frameworkruntime.NewWaitingPodsMap()),
		frameworkruntime.WithPodsInPreBind(frameworkruntime.NewPodsInPreBindMap()),
	}}, nil
}

// frozenClient returns a client that serves the objects and ignores every write. Preemption and deallocation are
// decided but not carried out, so each pod is judged in the same cluster.
func frozenClient(cl *cluster) *fake.Clientset {
	objects := append([]runtime.Object{}, cl.others...)
	for _, pod := range cl.asked {
		objects = append(objects, pod)
	}
	for _, pod := range cl.nominated {
		objects = append(objects, pod)
	}
	client := fake.NewSimpleClientset(objects...) //nolint:staticcheck // field management would take time and change no decision
	client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		switch action.GetVerb() {
		case "get", "list", "watch":
			return false, nil, nil
		case "update":
			return true, action.(clienttesting.UpdateAction).GetObject(), nil
		default:
			return true, &v1.Pod{}, nil
		}
	})
	return client
}

type noEvents struct{}

func (noEvents) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {}
func (n noEvents) WithLogger(logr.Logger) events.EventRecorderLogger                           { return n }
