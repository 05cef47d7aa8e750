package main

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// heard collects the registrations of event handlers, so that the oracle can wait for the handlers. To wait for
// the informers is not enough: plugins read volumes and resource claims from caches that the handlers fill later.
type heard struct {
	registrations []cache.ResourceEventHandlerRegistration
}

func (h *heard) wait(ctx context.Context) {
	for _, registration := range h.registrations {
		cache.WaitFor(ctx, "", registration.HasSyncedChecker())
	}
}

// factoryHeardBy returns a factory that already contains the informers of these caches, before a plugin asks for
// them. Each informer adds the registrations of its handlers to h.
func factoryHeardBy(client kubernetes.Interface, h *heard) informers.SharedInformerFactory {
	factory := informers.NewSharedInformerFactory(client, 0)
	byNamespace := func() cache.Indexers { // each informer needs its own map, because plugins add to it
		return cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	}
	put := func(kind runtime.Object, build func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer) {
		factory.InformerFor(kind, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
			return &recordedInformer{build(client, resync), h}
		})
	}
	put(&v1.PersistentVolume{}, func(c kubernetes.Interface, d time.Duration) cache.SharedIndexInformer {
		return coreinformers.NewPersistentVolumeInformer(c, d, byNamespace())
	})
	put(&v1.PersistentVolumeClaim{}, func(c kubernetes.Interface, d time.Duration) cache.SharedIndexInformer {
		return coreinformers.NewPersistentVolumeClaimInformer(c, "", d, byNamespace())
	})
	put(&resourceapi.ResourceClaim{}, func(c kubernetes.Interface, d time.Duration) cache.SharedIndexInformer {
		return resourceinformers.NewResourceClaimInformer(c, "", d, byNamespace())
	})
	put(&resourceapi.DeviceClass{}, func(c kubernetes.Interface, d time.Duration) cache.SharedIndexInformer {
		return resourceinformers.NewDeviceClassInformer(c, d, byNamespace())
	})
	put(&resourceapi.ResourceSlice{}, func(c kubernetes.Interface, d time.Duration) cache.SharedIndexInformer {
		return resourceinformers.NewResourceSliceInformer(c, d, byNamespace())
	})
	return factory
}

type recordedInformer struct {
	cache.SharedIndexInformer
	h *heard
}

func (r *recordedInformer) record(reg cache.ResourceEventHandlerRegistration, err error) (cache.ResourceEventHandlerRegistration, error) {
	if err == nil {
		r.h.registrations = append(r.h.registrations, reg)
	}
	return reg, err
}

func (r *recordedInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return r.record(r.SharedIndexInformer.AddEventHandler(handler))
}

func (r *recordedInformer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, resync time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return r.record(r.SharedIndexInformer.AddEventHandlerWithResyncPeriod(handler, resync))
}

func (r *recordedInformer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return r.record(r.SharedIndexInformer.AddEventHandlerWithOptions(handler, options))
}
