package main

import (
	"context"
	"runtime"

	v1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// Yielding is a filter plugin that gives up the processor at each node. With GOMAXPROCS=1 the scheduler's
// workers then take turns node by node. So they advance at the same pace, as they do on several processors.
const Yielding = "Yielding"

type yielding struct{}

var _ fwk.FilterPlugin = yielding{}

func (yielding) Name() string { return Yielding }

func (yielding) Filter(context.Context, fwk.CycleState, *v1.Pod, fwk.NodeInfo) *fwk.Status {
	runtime.Gosched()
	return nil
}

func init() {
	plugins = append(plugins, scheduler.WithPlugin(Yielding, func(context.Context, apiruntime.Object, fwk.Handle) (fwk.Plugin, error) {
		return yielding{}, nil
	}))
}
